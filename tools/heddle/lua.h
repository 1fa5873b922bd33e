/* lua.h - `heddle lua`. */
#ifndef LUA_H
#define LUA_H

#include <stdbool.h>

/* argv begins behind the command's own name. Returns the exit code. */
int lua_main(int argc, char **argv);

/* Whether a file is a Lua program, by its name. */
bool is_lua(const char *file);

/* The program that runs Lua files. Dies when heddle was built without Lua. */
const char *find_lua(void);

#endif
