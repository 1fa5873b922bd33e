/* receive.c - heddle.receive: the messages of a process, in their order, or those that match.
 *
 * Owns:       the mailbox of a process: messages that were received and not wanted yet. They are Lua values, in a table of the state; the order is an array of
 *             references to them.
 * Invariant:  what is in the mailbox came before what is in the port. A message is in the port, or in p->incoming, or in the mailbox, or was returned; never lost:
 *             an error, or a lack of memory, leaves it where it was. One call of receive shows each message to each pattern once.
 *
 * A pattern is a value that a message equals; or a table, which matches a table that has, for each of its keys, a value that matches; or a function, which
 * matches what it answers true for; or heddle.any. */
#include <errno.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "handle.h"
#include "process.h"

#define LEVELS 100  /* tables in tables, in a pattern */
#define EXAMINED 10 /* instructions that a message counts for which is shown to patterns and not wanted */

static const char waiting; /* its address is the key of the table of messages in the mailbox */
static const char watched; /* and that of the table of watched processes: pid -> handle, and -pid -> how often */

void push_watched(lua_State *L)
{
	if (lua_rawgetp(L, LUA_REGISTRYINDEX, &watched) == LUA_TTABLE)
		return;
	lua_pop(L, 1);
	lua_newtable(L);
	lua_pushvalue(L, -1);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &watched);
}

static void push_waiting(lua_State *L)
{
	if (lua_rawgetp(L, LUA_REGISTRYINDEX, &waiting) == LUA_TTABLE)
		return;
	lua_pop(L, 1);
	lua_newtable(L);
	lua_pushvalue(L, -1);
	lua_rawsetp(L, LUA_REGISTRYINDEX, &waiting);
}

void forget_watched(lua_State *L, hd_pid pid)
{
	push_watched(L);
	lua_rawgeti(L, -1, -pid);
	lua_Integer times = lua_tointeger(L, -1);
	if (times > 1) {
		lua_pushinteger(L, times - 1);
		lua_rawseti(L, -3, -pid);
	} else {
		lua_pushnil(L);
		lua_rawseti(L, -3, pid);
		lua_pushnil(L);
		lua_rawseti(L, -3, -pid);
	}
	lua_pop(L, 2);
}

/* {"ended", pid, how, what} */
static void push_ended(lua_State *L, const struct hd_ended *ended)
{
	lua_createtable(L, 4, 0);
	lua_pushliteral(L, "ended");
	lua_rawseti(L, -2, 1);
	push_watched(L);
	lua_rawgeti(L, -1, ended->pid);
	lua_remove(L, -2);
	struct identity *who = handle_test(L, -1);
	/* Pairs with the release of identity_last_words. */
	const char *words = who != NULL ? atomic_load_explicit(&who->last_words, memory_order_acquire) : NULL;
	lua_rawseti(L, -2, 2);
	switch (ended->end.kind) {
	case HD_END_RETURNED:
		lua_pushliteral(L, "normal");
		words = NULL;
		break;
	case HD_END_FAILED:
		lua_pushliteral(L, "error");
		if (words == NULL)
			words = hd_error(ended->end.err);
		break;
	case HD_END_CANCELLED:
		lua_pushliteral(L, "cancelled");
		break;
	case HD_END_KILLED:
		lua_pushliteral(L, "killed");
		words = NULL;
		break;
	default: /* it was forgotten before it was watched */
		lua_pushstring(L, words != NULL ? "error" : "gone");
		break;
	}
	lua_rawseti(L, -2, 3);
	if (ended->end.kind == HD_END_KILLED && ended->end.err != 0)
		lua_pushinteger(L, ended->end.err);
	else
		lua_pushstring(L, words);
	lua_rawseti(L, -2, 4);
	forget_watched(L, ended->pid); /* last: what is before may fail, and be done again */
}

/* Takes the next message out of the port, if there is one, and pushes its value. */
static bool push_next(lua_State *L, struct process *p)
{
	struct hd_message *m = &p->incoming;

	if (!p->has_incoming && hd_receive(p->me->port, m, 0) != 0)
		return false;
	p->has_incoming = true;
	/* An error from here on leaves the message in p->incoming, for the next receive. */
	if (m->tag == HD_TAG_ENDED) {
		struct hd_ended ended;
		memcpy(&ended, m->data, sizeof ended);
		push_ended(L, &ended);
	} else if (m->carried != NULL) {
		lua_createtable(L, 3, 0);
		lua_pushliteral(L, "call");
		lua_rawseti(L, -2, 1);
		letter_read(L, m->data);
		lua_rawseti(L, -2, 3);
		request_push(L, m);
		lua_rawseti(L, -2, 2);
	} else {
		letter_read(L, m->data);
	}
	process_drop_message(p, m);
	p->has_incoming = false;
	return true;
}

static bool matches(lua_State *L, int pattern, int value, int level)
{
	switch (lua_type(L, pattern)) {
	case LUA_TFUNCTION: {
		struct mailbox *box = &process_of(L)->mailbox;
		lua_pushvalue(L, pattern);
		lua_pushvalue(L, value);
		box->asks = true;
		int status = lua_pcall(L, 1, 1, 0);
		box->asks = false;
		if (status != LUA_OK)
			lua_error(L);
		bool wanted = lua_toboolean(L, -1);
		lua_pop(L, 1);
		return wanted;
	}
	case LUA_TLIGHTUSERDATA:
		if (lua_touserdata(L, pattern) == ANY)
			return !lua_isnil(L, value);
		return lua_rawequal(L, pattern, value);
	case LUA_TTABLE:
		break;
	default:
		return lua_rawequal(L, pattern, value);
	}
	if (!lua_istable(L, value))
		return false;
	if (level >= LEVELS)
		luaL_error(L, "a pattern is nested more than %d levels deep", LEVELS);
	luaL_checkstack(L, 8, "a pattern");
	for (lua_pushnil(L); lua_next(L, pattern); lua_pop(L, 1)) {
		int top = lua_gettop(L);
		lua_pushvalue(L, top - 1);
		lua_rawget(L, value);
		bool good = matches(L, top, top + 1, level + 1);
		lua_settop(L, top);
		if (!good) {
			lua_settop(L, top - 2);
			return false;
		}
	}
	return true;
}

/* Which of the patterns, at 1 to n, the value on top of the stack matches; 0: none. Without patterns it is 1. */
static int which(lua_State *L, int n)
{
	int value = lua_gettop(L);

	if (n == 0)
		return 1;
	for (int i = 1; i <= n; i++)
		if (matches(L, i, value, 0))
			return i;
	return 0;
}

/* Puts the value on top of the stack behind the others; it stays there. */
static void keep(lua_State *L, struct process *p)
{
	struct mailbox *box = &p->mailbox;

	if (box->last == box->room) {
		size_t n = box->last - box->first, room = 2 * n + 8;
		if (box->first > n) { /* there is room enough before them */
			room = box->room;
		} else {
			int *refs = realloc(box->refs, room * sizeof *refs);
			if (refs == NULL)
				luaL_error(L, "not enough memory");
			box->refs = refs;
		}
		memmove(box->refs, box->refs + box->first, n * sizeof *box->refs);
		box->first = 0;
		box->last = n;
		box->room = room;
	}
	push_waiting(L);
	lua_pushvalue(L, -2);
	int ref = luaL_ref(L, -2);
	box->refs[box->last++] = ref;
	lua_pop(L, 1);
}

/* Takes message number i out. Those before it move up: as many as were looked at to find it. */
static void unkeep(lua_State *L, struct process *p, size_t i)
{
	struct mailbox *box = &p->mailbox;
	int *refs = box->refs + box->first;

	push_waiting(L);
	luaL_unref(L, -1, refs[i]);
	lua_pop(L, 1);
	memmove(refs + 1, refs, i * sizeof *refs);
	box->first++;
}

static bool look_in_mailbox(lua_State *L, struct process *p, int n, int *found)
{
	struct mailbox *box = &p->mailbox;

	while (box->looked < box->last - box->first) {
		size_t i = box->looked;
		push_waiting(L);
		lua_rawgeti(L, -1, box->refs[box->first + i]);
		lua_remove(L, -2);
		*found = which(L, n);
		if (*found != 0) {
			unkeep(L, p, i);
			return true;
		}
		lua_pop(L, 1);
		box->looked++;
		state_charge(L, EXAMINED);
	}
	return false;
}

static bool look(lua_State *L, struct process *p, int n, int *found)
{
	if (look_in_mailbox(L, p, n, found))
		return true;
	while (push_next(L, p)) {
		if (n == 0) {
			*found = 1;
			return true;
		}
		keep(L, p); /* before a pattern is asked: it may fail */
		*found = which(L, n);
		if (*found != 0) {
			unkeep(L, p, p->mailbox.last - p->mailbox.first - 1);
			return true;
		}
		lua_pop(L, 1);
		p->mailbox.looked++;
		state_charge(L, EXAMINED);
	}
	return false;
}

/* The stack has the patterns and nothing else. */
static int receive_k(lua_State *L, int status, lua_KContext until)
{
	struct process *p = process_of(L);
	int n = lua_gettop(L), found;

	if (status == LUA_YIELD)
		process_waited(L, "heddle.receive");
	bool late = status == LUA_YIELD && p->answer == -ETIMEDOUT;
	if (look(L, p, n, &found)) {
		lua_pushinteger(L, found);
		return 2;
	}
	if (late || until == 0) {
		lua_pushnil(L);
		lua_pushliteral(L, "timeout");
		return 2;
	}
	p->until = (hd_time)until;
	return process_wait(L, WISH_MESSAGE, "heddle.receive", receive_k, until);
}

int receive(lua_State *L)
{
	hd_time until = HD_FOREVER;

	if (process_of(L)->mailbox.asks)
		return luaL_error(L, "heddle.receive inside a function that is a pattern of heddle.receive");
	if (lua_gettop(L) > 0 && lua_type(L, -1) == LUA_TNUMBER) {
		until = check_until(L, lua_gettop(L));
		lua_pop(L, 1);
	}
	for (int i = 1; i <= lua_gettop(L); i++)
		if (lua_isnil(L, i))
			return luaL_argerror(L, i,
					     "a pattern is a value, a table, a function or heddle.any; nil matches nothing");
	hd_test_cancel(); /* a process that was killed, and always finds a message, ends here */
	process_of(L)->mailbox.looked = 0;
	return receive_k(L, LUA_OK, (lua_KContext)until);
}
