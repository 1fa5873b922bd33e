/* heddle.c - the module `heddle`: what Lua code can ask of the runtime. What waits is in receive.c, supervise.c and input.c. */
#include <errno.h>
#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "handle.h"
#include "process.h"

#define BEGINNING 1000000000000000 /* of heddle's clock */

int push_error(lua_State *L, int err)
{
	lua_pushnil(L);
	lua_pushstring(L, hd_error(err));
	return 2;
}

/* true; or nil, and what the error means. */
static int push_outcome(lua_State *L, int err)
{
	if (err < 0)
		return push_error(L, err);
	lua_pushboolean(L, 1);
	return 1;
}

/* A number of seconds, as nanoseconds. */
static hd_time check_duration(lua_State *L, int i)
{
	lua_Number seconds = luaL_checknumber(L, i);

	if (isnan(seconds))
		luaL_argerror(L, i, "not a number of seconds");
	return seconds <= 0 ? 0 : seconds > 9e9 ? HD_FOREVER : (hd_time)(seconds * 1e9);
}

hd_time check_until(lua_State *L, int i)
{
	if (lua_isnoneornil(L, i))
		return HD_FOREVER;
	hd_time ns = check_duration(L, i);
	return ns == 0 ? 0 : ns == HD_FOREVER ? HD_FOREVER : hd_after(ns);
}

static hd_pid pid_of(const struct identity *who)
{
	return atomic_load_explicit(&who->pid, memory_order_relaxed);
}

static int self(lua_State *L)
{
	handle_push(L, process_of(L)->me);
	return 1;
}

static int push_no_name(lua_State *L, int i)
{
	lua_pushnil(L);
	lua_pushfstring(L, "no process is registered as '%s'", lua_tostring(L, i));
	return 2;
}

/* Before there is anything to release. */
static void check_target(lua_State *L, int i)
{
	if (lua_type(L, i) != LUA_TSTRING && handle_test(L, i) == NULL)
		luaL_typeerror(L, i, "pid or name");
}

static int send(lua_State *L)
{
	struct process *p = process_of(L);
	struct identity *found;

	luaL_checkany(L, 2);
	lua_settop(L, 2);
	check_target(L, 1);
	letter_release(p->question);
	p->question = NULL;
	struct letter *letter = p->question =
		letter_write(L, 1); /* the process may end while it looks for the name, and has the letter then */
	struct identity *who = handle_target(L, 1, &found);
	p->question = NULL;
	int err = who == NULL ? -ENOENT : hd_send_move(who->port, 0, letter, letter->size, letter_release, 0);
	if (err != 0)
		letter_release(letter);
	identity_release(found);
	return who == NULL ? push_no_name(L, 1) : push_outcome(L, err);
}

int call_wait(struct process *p)
{
	struct letter *question = p->question;

	p->question = NULL;
	int err = hd_call_move(p->callee->port, 1, question, question->size, letter_release, &p->reply, p->until);
	if (err != 0 && err != -EPIPE && err != -ETIMEDOUT && err != -ECANCELED)
		letter_release(question);
	return err;
}

static int call_k(lua_State *L, int status, lua_KContext context)
{
	struct process *p = process_of(L);

	(void)status;
	(void)context;
	process_waited(L, "heddle.call");
	identity_release(p->callee);
	p->callee = NULL;
	letter_release(p->question); /* it was not sent: the wait was refused */
	p->question = NULL;
	lua_pushboolean(L, p->answer == 0);
	if (p->answer != 0) {
		lua_pushstring(L, p->answer == -ETIMEDOUT ? "timeout"
				  : p->answer == -EPIPE	  ? "the process has ended, or forgotten the request, without a reply"
							  : hd_error(p->answer));
		return 2;
	}
	letter_read(L, p->reply.data);
	process_drop_message(p, &p->reply);
	return 2;
}

static int call(lua_State *L)
{
	struct process *p = process_of(L);
	struct identity *found;

	luaL_checkany(L, 2);
	check_target(L, 1);
	p->until = check_until(L, 3);
	lua_settop(L, 2);
	letter_release(p->question);
	p->question = NULL;
	process_drop_message(p, &p->reply); /* one that could not be read */
	p->question = letter_write(L, 1);
	struct identity *who = handle_target(L, 1, &found);
	if (who == NULL) {
		push_no_name(L, 1);
		lua_pushboolean(L, 0);
		lua_replace(L, -3);
		return 2;
	}
	identity_release(p->callee);
	p->callee = found != NULL ? found : identity_retain(who);
	return process_wait(L, WISH_CALL, "heddle.call", call_k, 0);
}

static int reply(lua_State *L)
{
	struct hd_message *request = request_check(L, 1);

	lua_settop(L, 2);
	struct letter *letter = letter_write(L, 1);
	int err = hd_reply_move(request, 0, letter, letter->size, letter_release);
	if (err != 0)
		letter_release(letter);
	process_drop_message(process_of(L), request);
	return push_outcome(L, err);
}

static int give_way_k(lua_State *L, int status, lua_KContext context)
{
	(void)L;
	(void)status;
	(void)context;
	return 0;
}

static int give_way(lua_State *L)
{
	if (lua_isyieldable(L))
		return process_wait(L, WISH_TURN, "heddle.yield", give_way_k, 0);
	hd_yield();
	return 0;
}

static int sleep_k(lua_State *L, int status, lua_KContext context)
{
	(void)status;
	(void)context;
	process_waited(L, "heddle.sleep");
	return 0;
}

static int sleep_for(lua_State *L)
{
	struct process *p = process_of(L);

	hd_time ns = check_duration(L, 1);
	if (ns == 0)
		return give_way(L);
	p->until = ns == HD_FOREVER ? HD_FOREVER : hd_after(ns);
	if (p->nap == NULL && (p->nap = hd_port_new(NULL)) == NULL)
		return luaL_error(L, "not enough memory");
	return process_wait(L, WISH_SLEEP, "heddle.sleep", sleep_k, 0);
}

static int link_with(lua_State *L)
{
	return push_outcome(L, hd_link(pid_of(handle_check(L, 1))));
}

static int unlink_from(lua_State *L)
{
	return push_outcome(L, hd_unlink(pid_of(handle_check(L, 1))));
}

void watch_table_add(lua_State *L, int handle)
{
	hd_pid pid = pid_of(handle_check(L, handle));

	handle = lua_absindex(L, handle);
	push_watched(L);
	lua_rawgeti(L, -1, -pid);
	lua_Integer times = lua_tointeger(L, -1);
	lua_pop(L, 1);
	lua_pushvalue(L, handle);
	lua_rawseti(L, -2, pid);
	lua_pushinteger(L, times + 1);
	lua_rawseti(L, -2, -pid);
	lua_pop(L, 1);
}

static int watch(lua_State *L)
{
	struct process *p = process_of(L);
	hd_pid pid = pid_of(handle_check(L, 1));

	watch_table_add(L, 1); /* before: it may fail */
	int err = hd_watch(pid, p->me->port);
	if (err != 0)
		forget_watched(L, pid);
	return push_outcome(L, err);
}

static int unwatch(lua_State *L)
{
	hd_pid pid = pid_of(handle_check(L, 1));
	int err = hd_unwatch(pid, process_of(L)->me->port);

	if (err == 0)
		forget_watched(L, pid);
	return push_outcome(L, err);
}

static const char *check_name(lua_State *L, int i)
{
	size_t n;
	const char *name = luaL_checklstring(L, i, &n);

	luaL_argcheck(L, n > 0 && n < 256 && strlen(name) == n, i, "a name has 1 to 255 bytes, none of them 0");
	return name;
}

static int register_name(lua_State *L)
{
	struct process *p = process_of(L);
	const char *name = check_name(L, 1);
	int err = names_add(name, p->me);

	if (err == -EEXIST) {
		lua_pushnil(L);
		lua_pushfstring(L, "a process is registered as '%s' already", name);
		return 2;
	}
	if (err == 0)
		p->names++;
	return push_outcome(L, err);
}

static int unregister_name(lua_State *L)
{
	struct process *p = process_of(L);
	int err = names_remove(check_name(L, 1), p->me);

	if (err != 0) {
		lua_pushnil(L);
		lua_pushfstring(L, "this process is not registered as '%s'", lua_tostring(L, 1));
		return 2;
	}
	p->names--;
	return push_outcome(L, 0);
}

static int whereis(lua_State *L)
{
	struct process *p = process_of(L);
	const char *name = check_name(L, 1);

	identity_release(p->callee); /* where handle_push's errors leave it */
	p->callee = names_find(name);
	if (p->callee == NULL) {
		lua_pushnil(L);
		return 1;
	}
	handle_push(L, p->callee);
	identity_release(p->callee);
	p->callee = NULL;
	return 1;
}

static int kill_process(lua_State *L)
{
	hd_pid pid = pid_of(handle_check(L, 1));
	lua_Integer reason = luaL_optinteger(L, 2, 0);

	luaL_argcheck(L, reason >= INT32_MIN && reason <= INT32_MAX, 2, "out of range");
	return push_outcome(L, hd_kill(pid, (int)reason)); /* itself: it does not return */
}

/* Without a reason as if its function had returned, with one as by an error, of which nothing is printed. */
static int exit_process(lua_State *L)
{
	struct process *p = process_of(L);

	if (lua_isnoneornil(L, 1))
		hd_exit(NULL);
	identity_last_words(p->me, luaL_checkstring(L, 1));
	process_fails(p);
	hd_fail(-ENOTRECOVERABLE);
	return 0;
}

static int now(lua_State *L)
{
	lua_pushnumber(L, (lua_Number)(hd_now() - BEGINNING) / 1e9);
	return 1;
}

/* What the runtime has done, and holds: all that hd_stats says. */
static int stats(lua_State *L)
{
	static const struct {
		const char *name;
		size_t at;
	} fields[] = {
#define FIELD(name) { #name, offsetof(struct hd_stats, name) }
		FIELD(workers),	       FIELD(spawned),	   FIELD(ended),	  FIELD(switches),     FIELD(direct_switches),
		FIELD(handoffs),       FIELD(preemptions), FIELD(expired_quanta), FIELD(remote_wakes), FIELD(timeouts),
		FIELD(idles),	       FIELD(wakes),	   FIELD(steals),	  FIELD(stolen),       FIELD(timers),
		FIELD(live_processes), FIELD(live_stacks), FIELD(cached_stacks),  FIELD(made_stacks),  FIELD(live_ports),
		FIELD(live_messages),
#undef FIELD
	};
	struct hd_stats all;

	int err = hd_stats(&all);
	if (err != 0)
		return push_error(L, err);
	lua_createtable(L, 0, sizeof fields / sizeof fields[0]);
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		lua_pushinteger(L, (lua_Integer) * (const uint64_t *)((const char *)&all + fields[i].at));
		lua_setfield(L, -2, fields[i].name);
	}
	return 1;
}

void heddle_open(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{ "call", call },
		{ "exit", exit_process },
		{ "kill", kill_process },
		{ "link", link_with },
		{ "now", now },
		{ "read_line", read_line },
		{ "receive", receive },
		{ "register", register_name },
		{ "reply", reply },
		{ "self", self },
		{ "send", send },
		{ "sleep", sleep_for },
		{ "spawn", spawn },
		{ "spawn_with", spawn_with },
		{ "stats", stats },
		{ "supervise", supervise },
		{ "unlink", unlink_from },
		{ "unregister", unregister_name },
		{ "unwatch", unwatch },
		{ "watch", watch },
		{ "whereis", whereis },
		{ "yield", give_way },
		{ NULL, NULL },
	};

	luaL_newlib(L, functions);
	lua_pushlightuserdata(L, ANY);
	lua_setfield(L, -2, "any");
	lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	lua_pushvalue(L, -2);
	lua_setfield(L, -2, "heddle");
	lua_pop(L, 1);
	lua_setglobal(L, "heddle");
}
