/* state.c - a Lua state for a process: its memory, its libraries, and the hook that ends its turns.
 *
 * Invariant:  p->memory is what the state has of the C library, and not more than p->limit, unless that is 0. Every program.budget instructions a process gives its
 *             equals a turn, wherever it is. */
#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handle.h"
#include "process.h"

void *state_allocate(void *process, void *block, size_t old, size_t size)
{
	struct process *p = process;

	if (block == NULL)
		old = 0; /* Lua says there what kind of object it will be */
	if (size == 0) {
		free(block);
		p->memory -= old;
		return NULL;
	}
	if (size > old && p->limit != 0 && size - old > p->limit - (p->memory < p->limit ? p->memory : p->limit))
		return NULL; /* Lua collects its garbage and tries again; then it is an error in the process */
	void *new = realloc(block, size);
	if (new == NULL)
		return size <= old ? block : NULL; /* Lua relies on it that less can always be had */
	p->memory += size - old;
	return new;
}

/* The budget is used up. Where the coroutine cannot be left, because C code has called it (table.sort, string.gsub...), the process keeps its stack and gives way
 * there; if it was killed, it ends there. */
static void turn_is_over(lua_State *L, lua_Debug *ar)
{
	struct process *p = process_of(L);

	(void)ar;
	if (lua_gethookcount(L) != (int)program.budget)
		state_hook(L); /* after state_charge: the next one comes after a whole budget again */
	p->charged = 0;
	if (lua_isyieldable(L)) {
		p->wish = WISH_TURN;
		lua_yield(L, 0);
		return;
	}
	hd_yield();
	hd_test_cancel();
}

void state_hook(lua_State *L)
{
	lua_sethook(L, turn_is_over, LUA_MASKCOUNT, (int)program.budget);
}

void state_charge(lua_State *L, size_t instructions)
{
	struct process *p = process_of(L);

	p->charged += instructions;
	if (p->charged > program.budget)
		lua_sethook(L, turn_is_over, LUA_MASKCOUNT, 1); /* the turn is over with the next instruction */
}

/* As Lua's, but what is printed is one piece, whatever other processes print. */
static int print(lua_State *L)
{
	int n = lua_gettop(L);
	luaL_Buffer b;
	size_t size;

	luaL_buffinit(L, &b);
	for (int i = 1; i <= n; i++) {
		if (i > 1)
			luaL_addchar(&b, '\t');
		luaL_tolstring(L, i, NULL);
		luaL_addvalue(&b);
	}
	luaL_addchar(&b, '\n');
	luaL_pushresult(&b);
	const char *text = lua_tolstring(L, -1, &size);
	fwrite(text, 1, size, stdout);
	return 0;
}

/* os.exit ends the program, and with it all processes. */
static int exit_program(lua_State *L)
{
	int code = lua_isnoneornil(L, 1) || (lua_isboolean(L, 1) && lua_toboolean(L, 1)) ? 0
		   : lua_isboolean(L, 1)						 ? 1
											 : (int)(luaL_checkinteger(L, 1) & 255);
	int err = hd_shutdown(code);

	if (err != 0 && err != -EALREADY)
		return luaL_error(L, "os.exit: %s", hd_error(err));
	hd_exit(NULL);
	return 0;
}

static void hide(lua_State *L, const char *name)
{
	lua_pushnil(L);
	lua_setfield(L, -2, name);
}

void library_change(lua_State *L, const char *name)
{
	if (strcmp(name, LUA_COLIBNAME) == 0) {
		coroutine_change(L);
	} else if (strcmp(name, LUA_OSLIBNAME) == 0) {
		lua_pushcfunction(L, exit_program);
		lua_setfield(L, -2, "exit");
	} else if (strcmp(name, LUA_DBLIBNAME) == 0) {
		hide(L, "sethook"); /* the hook is heddle's */
		hide(L, "getregistry");
		hide(L, "debug"); /* reads the standard input, on and on */
	}
}

void state_open(lua_State *L)
{
	library_open(L);
	lua_pushcfunction(L, print);
	lua_setglobal(L, "print");
	handle_open(L);
	heddle_open(L);
}
