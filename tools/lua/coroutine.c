/* coroutine.c - coroutines inside a process.
 *
 * A process is itself a coroutine of its Lua state, and yields when it waits or its turn is over. If that happens in a coroutine that the program has made, the
 * process yields, through all the coroutines between, and goes on in the same place: so resume, wrap and yield are written here anew.
 *
 * Invariant:  p->wish is not WISH_NONE while the process yields, and only then; no code of the program sees such a yield. */
#include <lauxlib.h>
#include <stdlib.h>

#include "process.h"

static lua_State *check_coroutine(lua_State *L)
{
	lua_State *co = lua_tothread(L, 1);

	if (co == NULL)
		luaL_typeerror(L, 1, "coroutine");
	return co;
}

/* The caller cannot be left: what the coroutine waits for is done here, or refused. */
static void wait_here(struct process *p)
{
	if (p->wish == WISH_TURN) {
		hd_yield();
		hd_test_cancel();
	} else {
		p->refused = true;
	}
	p->wish = WISH_NONE;
}

/* Moves what the coroutine yielded, returned or failed with to L. Returns how many values there are; -1: it failed, and there is one. */
static int take_results(lua_State *L, lua_State *co, int status, int results)
{
	if (status != LUA_OK && status != LUA_YIELD) {
		lua_xmove(co, L, 1);
		return -1;
	}
	if (!lua_checkstack(L, results + 1)) {
		lua_pop(co, results);
		lua_pushliteral(L, "too many results to resume");
		return -1;
	}
	lua_xmove(co, L, results);
	return results;
}

/* Resumes until the coroutine has something for the program. Does not return if the process yields; then `k` goes on. */
static int resume(lua_State *L, lua_State *co, int arguments, lua_KFunction k)
{
	struct process *p = process_of(L);
	int results;

	for (;;) {
		int status = lua_resume(co, L, arguments, &results);
		if (status != LUA_YIELD || p->wish == WISH_NONE)
			return take_results(L, co, status, results);
		lua_pop(co, results);
		arguments = 0;
		if (lua_isyieldable(L))
			lua_yieldk(L, 0, (lua_KContext)co, k);
		wait_here(p);
	}
}

static int finish_resume(lua_State *L, int results)
{
	lua_pushboolean(L, results >= 0);
	if (results < 0)
		results = 1;
	lua_insert(L, -(results + 1));
	return results + 1;
}

static int resume_k(lua_State *L, int status, lua_KContext co)
{
	(void)status;
	return finish_resume(L, resume(L, (lua_State *)co, 0, resume_k));
}

/* The arguments are on L: moves them to the coroutine. Returns false, with a message on L, if there are too many. */
static bool give_arguments(lua_State *L, lua_State *co, int n)
{
	if (!lua_checkstack(co, n)) {
		lua_pushliteral(L, "too many arguments to resume");
		return false;
	}
	lua_xmove(L, co, n);
	return true;
}

static int co_resume(lua_State *L)
{
	lua_State *co = check_coroutine(L);
	int n = lua_gettop(L) - 1;

	if (!give_arguments(L, co, n))
		return finish_resume(L, -1);
	return finish_resume(L, resume(L, co, n, resume_k));
}

static int finish_wrapped(lua_State *L, lua_State *co, int results)
{
	if (results >= 0)
		return results;
	int status = lua_status(co);
	if (status != LUA_OK && status != LUA_YIELD) { /* it failed: its variables that are to be closed are closed */
		lua_resetthread(co);
		lua_xmove(co, L, 1); /* the error, perhaps another one now */
	}
	if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
		luaL_where(L, 1);
		lua_insert(L, -2);
		lua_concat(L, 2);
	}
	return lua_error(L);
}

static int wrapped_k(lua_State *L, int status, lua_KContext co)
{
	(void)status;
	return finish_wrapped(L, (lua_State *)co, resume(L, (lua_State *)co, 0, wrapped_k));
}

static int wrapped(lua_State *L)
{
	lua_State *co = lua_tothread(L, lua_upvalueindex(1));
	int n = lua_gettop(L);

	if (!give_arguments(L, co, n))
		return lua_error(L);
	return finish_wrapped(L, co, resume(L, co, n, wrapped_k));
}

static int co_wrap(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TFUNCTION);
	lua_State *co = lua_newthread(L);
	lua_pushvalue(L, 1);
	lua_xmove(L, co, 1);
	lua_pushcclosure(L, wrapped, 1);
	return 1;
}

static int co_yield (lua_State *L)
{
	if (L == process_of(L)->co)
		return luaL_error(L, "attempt to yield from outside a coroutine (heddle.yield gives other processes a turn)");
	return lua_yield(L, lua_gettop(L));
}

static int co_isyieldable(lua_State *L)
{
	lua_State *co = lua_isthread(L, 1) ? lua_tothread(L, 1) : L;

	lua_pushboolean(L, co != process_of(L)->co && lua_isyieldable(co));
	return 1;
}

static int co_running(lua_State *L)
{
	lua_pushthread(L);
	lua_pushboolean(L, L == process_of(L)->co);
	return 2;
}

void coroutine_change(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{ "resume", co_resume },	   { "wrap", co_wrap },	      { "yield", co_yield },
		{ "isyieldable", co_isyieldable }, { "running", co_running }, { NULL, NULL },
	};

	luaL_setfuncs(L, functions, 0);
}
