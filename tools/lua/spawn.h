/* spawn.h - how a Lua process is spawned, as a table of Lua says it. */
#ifndef SPAWN_H
#define SPAWN_H

#include "process.h"

struct how default_how(void);

/* From the table at i: priority, memory, daemon. */
void check_how(lua_State *L, int i, struct how *how);

/* Raises an error unless the value at i can be spawned: a Lua function, or the name of a module. */
void check_function(lua_State *L, int i);

/* Raises an error if the table at i, which is `what`, has a key that is not among these names. */
void check_fields(lua_State *L, int i, const char *const names[], const char *what);

/* The integer in the field of the table at i. */
lua_Integer number_field(lua_State *L, int i, const char *name, lua_Integer least, lua_Integer most, lua_Integer missing);

#endif
