/* handle.h - what Lua code has in its hands of other processes: pids and requests. */
#ifndef HANDLE_H
#define HANDLE_H

#include <lua.h>

#include "identity.h"

/* Pushes the pid of a process: within a Lua state always the same value, so that it is good for a key. Takes a reference of its own. */
void handle_push(lua_State *L, struct identity *who);

/* The process whose pid the value is; NULL: it is no pid. handle_check raises an error then. It is there as long as the value is. */
struct identity *handle_test(lua_State *L, int i);
struct identity *handle_check(lua_State *L, int i);

/* The process whose pid or name the value is; NULL: no process has that name. Of a name, *found is the same, and the caller releases it; of a pid it is NULL. */
struct identity *handle_target(lua_State *L, int i, struct identity **found);

/* Pushes a request: a message that is a call, which is the request's from now on, until it is answered or collected. */
void request_push(lua_State *L, struct hd_message *m);
bool request_test(lua_State *L, int i);
struct hd_message *request_check(lua_State *L, int i); /* raises an error if the value is none, or was answered */

void handle_open(lua_State *L);

/* The light userdata that matches everything. */
#define ANY ((void *)&handle_any)
extern const char handle_any;

#endif
