/* handle.c - what Lua code has in its hands of other processes: pids and requests.
 *
 * Owns:       the userdata of both types, and the table of all pids in a state, whose values are weak.
 * Invariant:  a state has one userdata for an identity. A request has the message until that is answered. */
#include "handle.h"

#include <lauxlib.h>
#include <string.h>

#include "process.h"

#define PID "heddle.pid"
#define REQUEST "heddle.request"

const char handle_any;

static const char all; /* its address is the key of the table of all pids */

struct identity *handle_test(lua_State *L, int i)
{
	struct identity **handle = luaL_testudata(L, i, PID);

	return handle != NULL ? *handle : NULL;
}

struct identity *handle_check(lua_State *L, int i)
{
	struct identity *who = handle_test(L, i);

	if (who == NULL)
		luaL_typeerror(L, i, "pid");
	return who;
}

struct identity *handle_target(lua_State *L, int i, struct identity **found)
{
	*found = NULL;
	if (lua_type(L, i) == LUA_TSTRING)
		return *found = names_find(lua_tostring(L, i));
	return handle_test(L, i);
}

void handle_push(lua_State *L, struct identity *who)
{
	lua_rawgetp(L, LUA_REGISTRYINDEX, &all);
	if (lua_rawgetp(L, -1, who) == LUA_TNIL) {
		lua_pop(L, 1);
		struct identity **handle = lua_newuserdatauv(L, sizeof(struct identity *), 0);
		*handle = NULL;
		luaL_setmetatable(L, PID);
		*handle = identity_retain(who);
		lua_pushvalue(L, -1);
		lua_rawsetp(L, -3, who);
	}
	lua_remove(L, -2);
}

static int drop_pid(lua_State *L)
{
	struct identity **handle = luaL_checkudata(L, 1, PID);

	identity_release(*handle);
	*handle = NULL;
	return 0;
}

static int print_pid(lua_State *L)
{
	struct identity *who = handle_check(L, 1);

	lua_pushfstring(L, "<pid %I>", (LUAI_UACINT)atomic_load_explicit(&who->pid, memory_order_relaxed));
	return 1;
}

void request_push(lua_State *L, struct hd_message *m)
{
	struct hd_message *request = lua_newuserdatauv(L, sizeof *request, 0);

	memset(request, 0, sizeof *request);
	luaL_setmetatable(L, REQUEST);
	*request = *m;
	memset(m, 0, sizeof *m);
}

bool request_test(lua_State *L, int i)
{
	return luaL_testudata(L, i, REQUEST) != NULL;
}

struct hd_message *request_check(lua_State *L, int i)
{
	struct hd_message *request = luaL_checkudata(L, i, REQUEST);

	if (request->carried == NULL)
		luaL_argerror(L, i, "this request was answered before");
	return request;
}

/* The process that has called hears that there will be no answer. */
static int drop_request(lua_State *L)
{
	struct hd_message *request = luaL_checkudata(L, 1, REQUEST);

	process_drop_message(process_of(L), request);
	return 0;
}

static int print_request(lua_State *L)
{
	lua_pushfstring(L, "<request %p>", luaL_checkudata(L, 1, REQUEST));
	return 1;
}

static void new_type(lua_State *L, const char *name, lua_CFunction print, lua_CFunction drop)
{
	luaL_newmetatable(L, name);
	lua_pushcfunction(L, print);
	lua_setfield(L, -2, "__tostring");
	lua_pushcfunction(L, drop);
	lua_setfield(L, -2, "__gc");
	lua_pushboolean(L, 0); /* setmetatable cannot take it away, nor getmetatable show it */
	lua_setfield(L, -2, "__metatable");
	lua_pop(L, 1);
}

void handle_open(lua_State *L)
{
	new_type(L, PID, print_pid, drop_pid);
	new_type(L, REQUEST, print_request, drop_request);
	lua_newtable(L);
	lua_createtable(L, 0, 1);
	lua_pushliteral(L, "v");
	lua_setfield(L, -2, "__mode");
	lua_setmetatable(L, -2);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &all);
}
