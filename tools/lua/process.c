/* process.c - Lua processes: each a Lua state of its own, run as a machine in turns.
 *
 * Owns:       struct process, from process_new to process_drop.
 * Invariant:  a process is in its Lua state only in a turn. What waits is done outside of Lua, on the turn's stack or without one; so what is ended while it waits
 *             leaves no Lua frames behind but those of its suspended coroutine. (One that is killed in a callback from C leaves its frames too: lua_close does
 *             not need them.)
 * Locking:    none: a process is touched by itself, and by its creator before it is spawned.
 *
 * The life of a turn: lua_resume, until the code ends, fails, or yields: because it has used up its budget (state.c), or because it waits, and then p->wish says
 * for what. */
#include "process.h"

#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPORTING (1 << 16) /* bytes beyond its limit that a process may have to say what it died of */

struct program program;

static atomic_int main_status; /* written by the first process, read when hd_run has returned */

int process_main_status(void)
{
	return atomic_load_explicit(&main_status, memory_order_relaxed);
}

void process_fails(const struct process *p)
{
	if (p->first)
		atomic_store_explicit(&main_status, 1, memory_order_relaxed);
}

struct process *process_new(struct letter *start, struct identity *me, size_t memory)
{
	struct process *p = calloc(1, sizeof *p);

	if (p == NULL)
		return NULL;
	p->start = start;
	p->me = me;
	p->limit = memory;
	return p;
}

void process_drop_message(struct process *p, struct hd_message *m)
{
	if (hd_self() != 0 && hd_self() == atomic_load_explicit(&p->me->pid, memory_order_relaxed))
		hd_message_drop(m);
	memset(m, 0, sizeof *m);
}

void process_drop(void *self)
{
	struct process *p = self;

	if (p->names > 0)
		names_forget(p->me);
	if (p->L != NULL)
		lua_close(p->L);
	if (p->has_incoming)
		process_drop_message(p, &p->incoming);
	if (p->me != NULL)
		process_drop_message(p, &p->reply);
	identity_release(p->callee);
	letter_release(p->question);
	letter_release(p->start);
	if (p->plan != NULL)
		plan_drop(p->plan);
	draft_fini(&p->draft);
	free(p->mailbox.refs);
	free(p->registered);
	free(p->line);
	identity_release(p->me);
	free(p);
}

int process_wait(lua_State *L, enum wish wish, const char *what, lua_KFunction k, lua_KContext context)
{
	struct process *p = process_of(L);

	if (!lua_isyieldable(L))
		return luaL_error(L,
				  "%s cannot wait here, inside a function that C code has called (table.sort, string.gsub, "
				  "require, __gc and their like)",
				  what);
	p->wish = wish;
	p->answer = 0;
	return lua_yieldk(L, 0, context, k);
}

void process_waited(lua_State *L, const char *what)
{
	struct process *p = process_of(L);

	if (!p->refused)
		return;
	p->refused = false;
	luaL_error(L,
		   "%s cannot wait here: the coroutine was resumed inside a function that C code has called (table.sort, "
		   "string.gsub, require, __gc and their like)",
		   what);
}

static int begin_k(lua_State *L, int status, lua_KContext context)
{
	(void)L;
	(void)status;
	(void)context;
	return 0;
}

/* The arguments of the first process, also as the global `arg`. Returns how many. */
static int push_arguments(lua_State *L)
{
	int n = 0;

	lua_newtable(L);
	lua_pushstring(L, program.file);
	lua_rawseti(L, -2, 0);
	for (; program.arguments[n] != NULL; n++) {
		lua_pushstring(L, program.arguments[n]);
		lua_rawseti(L, -2, n + 1);
	}
	lua_setglobal(L, "arg");
	luaL_checkstack(L, n, "too many arguments");
	for (int i = 0; i < n; i++)
		lua_pushstring(L, program.arguments[i]);
	return n;
}

/* The first function of every process: calls that which it was spawned with. */
static int begin(lua_State *L)
{
	struct process *p = process_of(L);
	int n;

	if (p->registered != NULL) {
		int err = names_add(p->registered, p->me);
		if (err != 0)
			luaL_error(L, "cannot be registered as '%s': %s", p->registered,
				   err == -EEXIST ? "another process is" : hd_error(err));
		p->names++;
	}
	if (p->start == NULL) {
		if (luaL_loadfile(L, program.file) != LUA_OK)
			lua_error(L);
		n = push_arguments(L);
	} else {
		letter_read(L, p->start);
		n = (int)p->start->values - 1;
		letter_release(p->start);
		p->start = NULL;
		if (lua_type(L, 1) == LUA_TSTRING) { /* a module, that is a function */
			lua_getglobal(L, "require");
			lua_pushvalue(L, 1);
			lua_call(L, 1, 1);
			if (!lua_isfunction(L, -1))
				luaL_error(L,
					   "module '%s' is no function, but a %s: a module that is spawned returns a function",
					   lua_tostring(L, 1), luaL_typename(L, -1));
			lua_replace(L, 1);
		}
	}
	lua_callk(L, n, 0, 0, begin_k);
	return begin_k(L, LUA_OK, 0);
}

static int open_state(lua_State *L)
{
	struct process *p = process_of(L);

	state_open(L);
	p->co = lua_newthread(L);
	lua_setfield(L, LUA_REGISTRYINDEX, "heddle.main");
	state_hook(p->co);
	lua_pushcfunction(p->co, begin);
	return 0;
}

/* What was not foreseen: an error outside of a protected call. */
static int panic(lua_State *L)
{
	fprintf(stderr, "heddle: an error in Lua that nothing catches: %s\n", lua_tostring(L, -1));
	return 0; /* Lua aborts the program */
}

static void describe(char *text, size_t size)
{
	struct hd_process_info info;

	if (hd_process_info(hd_self(), &info) != 0 || info.name[0] == 0)
		snprintf(text, size, "process %lld", (long long)hd_self());
	else
		snprintf(text, size, "process %lld (%s)", (long long)hd_self(), info.name);
}

/* With the error on top of p->co's stack: pushes the report. */
static int make_report(lua_State *L)
{
	struct process *p = process_of(L);
	char who[80];

	describe(who, sizeof who);
	lua_pushvalue(p->co, -1);
	lua_xmove(p->co, L, 1);
	const char *why = luaL_tolstring(L, -1, NULL);
	identity_last_words(p->me, why);
	const char *hint = strstr(why, "(global '") == NULL || p->first
				   ? ""
				   : "\n(each process has globals of its own: what a function needs is local, or in a module)";
	lua_pushfstring(L, "heddle: %s died: %s%s", who, why, hint);
	luaL_traceback(L, p->co, lua_tostring(L, -1), 0);
	return 1;
}

/* The code of the process has failed, with the error on top of p->co's stack: says so on stderr. */
static void report(struct process *p, int status)
{
	p->limit += p->limit != 0 ? REPORTING : 0;
	lua_settop(p->L, 0);
	lua_pushcfunction(p->L, make_report);
	const char *text;
	if (lua_pcall(p->L, 0, 1, 0) == LUA_OK)
		text = lua_tostring(p->L, -1);
	else
		text = status == LUA_ERRMEM ? "heddle: a process died: not enough memory"
					    : "heddle: a process died, and could not say what of";
	fprintf(stderr, "%s\n", text);
	if (status == LUA_ERRMEM)
		identity_last_words(p->me, "not enough memory");
	/* Variables that are to be closed are closed now: the code for that runs in this turn, and can be preempted. */
	lua_resetthread(p->co);
}

static struct hd_interrupt end(struct process *p, int status)
{
	if (status == LUA_OK)
		return hd_want_end(NULL, 0);
	report(p, status);
	process_fails(p);
	return hd_want_end(NULL, status == LUA_ERRMEM ? -ENOMEM : -ENOTRECOVERABLE);
}

static int start(struct process *p)
{
	if (p->me == NULL) {
		hd_port *port = hd_port_new(NULL);
		if (port == NULL || (p->me = identity_new(port)) == NULL) {
			hd_port_release(port);
			return -ENOMEM;
		}
		hd_port_release(hd_port_retain(
			port)); /* tells heddle that it need not release the reference, which is the identity's, at our end */
	}
	atomic_store_explicit(&p->me->pid, hd_self(), memory_order_relaxed);
	p->L = lua_newstate(state_allocate, p);
	if (p->L == NULL)
		return -ENOMEM;
	*(struct process **)lua_getextraspace(p->L) = p;
	lua_atpanic(p->L, panic);
	lua_pushcfunction(p->L, open_state);
	return lua_pcall(p->L, 0, 0, 0) == LUA_OK ? 0 : -ENOMEM;
}

static struct hd_interrupt interpret(void *self, uint64_t budget)
{
	struct process *p = self;
	int results;

	(void)budget; /* it is in the hook's count */
	p->charged = 0;
	if (p->L == NULL) {
		int err = start(p);
		if (err != 0) {
			fprintf(stderr, "heddle: a process cannot start: %s\n",
				err == -ENOMEM ? "not enough memory" : hd_error(err));
			return hd_want_end(NULL, err);
		}
	} else {
		p->answer = hd_machine_waited();
		if (p->answer == -ECANCELED)
			return hd_want_end(NULL, -ECANCELED);
	}
	for (;;) {
		p->wish = WISH_NONE;
		int status = lua_resume(p->co, p->L, 0, &results);
		if (status != LUA_YIELD)
			return end(p, status);
		lua_pop(p->co, results);
		switch (p->wish) {
		case WISH_NONE: /* coroutine.yield sees to it that this does not happen */
		case WISH_TURN:
			return hd_want_turn();
		case WISH_MESSAGE:
			return hd_want_message(p->me->port, p->until);
		case WISH_SLEEP:
			return hd_want_message(p->nap, p->until);
		case WISH_CALL:
			p->answer = call_wait(p);
			break;
		case WISH_SUPERVISE:
			p->answer = supervise_wait(p);
			break;
		case WISH_LINE:
			p->answer = read_line_wait(p);
			break;
		}
	}
}

struct hd_machine_ops process_ops = { .interpret = interpret, .drop = process_drop };
