/* names.h - the names under which Lua processes are found. */
#ifndef NAMES_H
#define NAMES_H

#include "identity.h"

/* Gives a process a name, until it ends or gives it back. Returns 0; -EEXIST: another process, or the same, has it; -ENOMEM. */
int names_add(const char *name, struct identity *identity);

/* Takes a name back from the process that has it. Returns 0; -ENOENT: it does not have it. */
int names_remove(const char *name, const struct identity *identity);

/* The process of that name, with a reference for the caller; NULL: there is none. */
struct identity *names_find(const char *name);

/* All names of a process that ends, and has had some: it looks at every name there is. */
void names_forget(const struct identity *identity);

#endif
