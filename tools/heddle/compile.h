/* compile.h - a C file, compiled against heddle. */
#ifndef COMPILE_H
#define COMPILE_H

/* The program that was made of a file, by `compiler` (NULL: CC's, else cc). It is kept, and made again only when something of it has
 * changed. Dies when it does not compile. */
char *compile_file(const char *file, const char *compiler);

/* The words of a command whose first one is a program, a C file or a Lua file: the program in its place, or (Lua) what runs it before it. `words` itself
 * stays as it is. */
char **compile_first(char **words);

#endif
