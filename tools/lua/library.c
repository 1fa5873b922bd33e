/* library.c - Lua's libraries, opened when they are first used: a process that needs only a few has half the memory, and is spawned in half the time.
 *
 * Owns:       the tables of libraries that were not used yet. Each is empty, and has a metatable whose functions fill it and take the metatable away.
 * Invariant:  a program that indexes a library, assigns to it or traverses it by pairs finds it complete. (rawget and next before that find nothing.) The
 *             library `package` has to be its own table: once used, it takes the place of the empty one, which from then on stands for it. */
#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

#include "process.h"

static const luaL_Reg late[] = {
	{ LUA_TABLIBNAME, luaopen_table },    { LUA_IOLIBNAME, luaopen_io },	    { LUA_OSLIBNAME, luaopen_os },
	{ LUA_MATHLIBNAME, luaopen_math },    { LUA_UTF8LIBNAME, luaopen_utf8 },    { LUA_DBLIBNAME, luaopen_debug },
	{ LUA_COLIBNAME, luaopen_coroutine }, { LUA_LOADLIBNAME, luaopen_package },
};
#define LATE (sizeof late / sizeof late[0])

static void open_package(lua_State *L)
{
	luaopen_package(L); /* it sets the global `require` */
	lua_pushstring(L, program.path);
	lua_pushliteral(L, ";");
	lua_getfield(L, -3, "path");
	lua_concat(L, 3);
	lua_setfield(L, -2, "path");
	lua_pushvalue(L, -1);
	lua_setglobal(L, LUA_LOADLIBNAME);
	lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	lua_pushvalue(L, -2);
	lua_setfield(L, -2, LUA_LOADLIBNAME);
	lua_pop(L, 1);
}

/* The empty table at 1 stands for the package library, which is on top of the stack. */
static void stand_for(lua_State *L)
{
	lua_createtable(L, 0, 2);
	lua_pushvalue(L, -2);
	lua_setfield(L, -2, "__index");
	lua_pushvalue(L, -2);
	lua_setfield(L, -2, "__newindex");
	lua_setmetatable(L, 1);
}

/* Opens the library whose empty table is at 1. */
static void open_library(lua_State *L)
{
	lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	for (size_t i = 0; i < LATE; i++) {
		lua_getfield(L, -1, late[i].name);
		bool is_it = lua_rawequal(L, -1, 1);
		lua_pop(L, 1);
		if (!is_it)
			continue;
		lua_pop(L, 1);
		if (late[i].func == luaopen_package) {
			open_package(L);
			stand_for(L);
			lua_pop(L, 1);
			return;
		}
		lua_pushnil(L); /* it is not empty, and no function of ours is needed, from here on */
		lua_setmetatable(L, 1);
		late[i].func(L);
		for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
			lua_pushvalue(L, -2);
			lua_pushvalue(L, -2);
			lua_rawset(L, 1);
		}
		lua_pop(L, 1);
		lua_pushvalue(L, 1);
		library_change(L, late[i].name);
		lua_pop(L, 1);
		return;
	}
	lua_pop(L, 1);
}

static int index_library(lua_State *L)
{
	open_library(L);
	lua_pushvalue(L, 2);
	lua_gettable(L, 1);
	return 1;
}

static int assign_to_library(lua_State *L)
{
	open_library(L);
	lua_settop(L, 3);
	lua_settable(L, 1);
	return 0;
}

static int traverse_library(lua_State *L)
{
	open_library(L);
	lua_getglobal(L, "pairs");
	lua_pushvalue(L, 1);
	lua_call(L, 1, 3);
	return 3;
}

/* Until the package library is opened. */
static int late_require(lua_State *L)
{
	int n = lua_gettop(L);

	lua_getglobal(L, LUA_LOADLIBNAME);
	lua_getfield(L, -1, "path");
	lua_settop(L, n);
	lua_getglobal(L, "require");
	lua_insert(L, 1);
	lua_call(L, n, LUA_MULTRET);
	return lua_gettop(L);
}

void library_open(lua_State *L)
{
	static const luaL_Reg opening[] = {
		{ "__index", index_library },
		{ "__newindex", assign_to_library },
		{ "__pairs", traverse_library },
		{ NULL, NULL },
	};

	luaL_requiref(L, LUA_GNAME, luaopen_base, 1);
	luaL_requiref(L, LUA_STRLIBNAME, luaopen_string, 1); /* at once: it is what strings do arithmetic with */
	lua_pop(L, 2);
	luaL_newlib(L, opening);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	for (size_t i = 0; i < LATE; i++) {
		lua_newtable(L);
		lua_pushvalue(L, -3);
		lua_setmetatable(L, -2);
		lua_pushvalue(L, -1);
		lua_setglobal(L, late[i].name);
		lua_setfield(L, -2, late[i].name);
	}
	lua_pop(L, 2);
	lua_pushcfunction(L, late_require);
	lua_setglobal(L, "require");
}
