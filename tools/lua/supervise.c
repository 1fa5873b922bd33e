/* supervise.c - heddle.supervise: hd_supervise, with children that are Lua processes.
 *
 * Owns:       struct plan: what hd_supervise needs of the table, outside of Lua; from heddle.supervise until that is over, or the process ends. */
#include <errno.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "spawn.h"

struct child {
	struct letter *start;
	char *name;
	size_t memory;
};

struct plan {
	struct hd_supervisor supervisor;
	struct hd_supervised *supervised;
	struct child *children;
	size_t count;
};

void plan_drop(struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		letter_release(plan->children[i].start);
		free(plan->children[i].name);
	}
	free(plan->children);
	free(plan->supervised);
	free(plan);
}

/* A child is started, for the first time or again. */
static void *make_child(void *arg)
{
	struct child *child = arg;
	char *name = NULL;

	if (child->name != NULL && (name = strdup(child->name)) == NULL)
		return NULL;
	struct process *p = process_new(letter_retain(child->start), NULL, child->memory);
	if (p == NULL) {
		letter_release(child->start);
		free(name);
		return NULL;
	}
	p->registered = name;
	return p;
}

/* Which of the words the field has; the first, if it is missing. */
static int word_field(lua_State *L, int i, const char *name, const char *const words[])
{
	int which = 0;

	if (lua_getfield(L, i, name) != LUA_TNIL) {
		const char *word = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
		while (words[which] != NULL && strcmp(words[which], word) != 0)
			which++;
		if (words[which] == NULL) {
			luaL_Buffer b;
			luaL_buffinit(L, &b);
			for (int k = 0; words[k] != NULL; k++) {
				luaL_addstring(&b, k > 0 ? ", " : "");
				luaL_addstring(&b, words[k]);
			}
			luaL_pushresult(&b);
			luaL_error(L, "%s is none of %s", name, lua_tostring(L, -1));
		}
	}
	lua_pop(L, 1);
	return which;
}

static hd_time seconds_field(lua_State *L, int i, const char *name)
{
	hd_time ns = 0;

	if (lua_getfield(L, i, name) != LUA_TNIL) {
		lua_Number seconds = lua_isnumber(L, -1) ? lua_tonumber(L, -1) : -1;
		if (!(seconds > 0 && seconds <= 1e9))
			luaL_error(L, "%s is not a number of seconds above 0", name);
		ns = (hd_time)(seconds * 1e9);
		ns = ns > 0 ? ns : 1;
	}
	lua_pop(L, 1);
	return ns;
}

/* The function and its arguments, as the child's table has them. */
static struct letter *write_start(lua_State *L, int i)
{
	int n = 0;

	lua_getfield(L, i, "start");
	if (lua_iscfunction(L, -1) || (lua_type(L, -1) != LUA_TSTRING && !lua_isfunction(L, -1)))
		luaL_error(L, "start is a %s: it is a Lua function, or the name of a module, that the child runs",
			   luaL_typename(L, -1));
	int function = lua_gettop(L);
	if (lua_getfield(L, i, "args") != LUA_TNIL) {
		if (!lua_istable(L, -1))
			luaL_error(L, "args is no table");
		n = (int)luaL_len(L, -1);
		luaL_checkstack(L, n + 8, "too many arguments");
		for (int k = 1; k <= n; k++)
			lua_geti(L, function + 1, k);
	}
	lua_remove(L, function + 1);
	struct letter *start = letter_write(L, n + 1);
	lua_settop(L, function - 1);
	return start;
}

/* The child at the top of the stack. */
static void plan_child(lua_State *L, struct plan *plan)
{
	static const char *const fields[] = { "name", "start", "args", "restart", "shutdown", "priority", "memory", NULL };
	static const char *const restarts[] = { "always", "on_failure", "never", NULL };
	struct child *child = &plan->children[plan->count];
	struct hd_supervised *s = &plan->supervised[plan->count];
	int i = lua_gettop(L);

	if (!lua_istable(L, i))
		luaL_error(L, "a child is a %s, and not a table", luaL_typename(L, i));
	check_fields(L, i, fields, "a child");
	struct how how = default_how();
	check_how(L, i, &how);
	s->restart = (enum hd_restart)word_field(L, i, "restart", restarts);
	s->shutdown = seconds_field(L, i, "shutdown");
	s->how = how.spawn;
	s->how.detached = false;
	child->memory = how.memory;
	if (lua_getfield(L, i, "name") != LUA_TNIL) {
		size_t n = lua_type(L, -1) == LUA_TSTRING ? lua_rawlen(L, -1) : 0;
		if (n == 0 || n >= HD_NAME_SIZE || strlen(lua_tostring(L, -1)) != n)
			luaL_error(L, "name is not a string of 1 to %d bytes", HD_NAME_SIZE - 1);
		child->name = strdup(lua_tostring(L, -1));
		if (child->name == NULL)
			luaL_error(L, "not enough memory");
		s->name = child->name;
	}
	lua_pop(L, 1);
	plan->count++; /* from here on it is dropped with the plan */
	child->start = write_start(L, i);
	s->entry = make_child;
	s->arg = child;
}

static int supervise_k(lua_State *L, int status, lua_KContext context)
{
	struct process *p = process_of(L);

	(void)status;
	(void)context;
	process_waited(L, "heddle.supervise");
	plan_drop(p->plan);
	p->plan = NULL;
	if (p->answer == 0) {
		lua_pushboolean(L, 1);
		return 1;
	}
	if (p->answer != -ENOTRECOVERABLE)
		return push_error(L, p->answer);
	lua_pushnil(L);
	lua_pushliteral(L, "the children were restarted too often");
	return 2;
}

int supervise_wait(struct process *p)
{
	return hd_supervise(&p->plan->supervisor);
}

int supervise(lua_State *L)
{
	static const char *const fields[] = { "strategy", "restarts", "within", "backoff", "backoff_max", "children", NULL };
	static const char *const strategies[] = { "one_for_one", "one_for_all", "rest_for_one", NULL };
	struct process *p = process_of(L);

	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	check_fields(L, 1, fields, "a supervisor");
	if (p->plan != NULL)
		plan_drop(p->plan); /* an error has left it */
	struct plan *plan = p->plan = calloc(1, sizeof *plan);
	if (plan == NULL)
		return luaL_error(L, "not enough memory");
	plan->supervisor.strategy = (enum hd_strategy)word_field(L, 1, "strategy", strategies);
	lua_Integer restarts = number_field(L, 1, "restarts", 0, HD_RESTARTS_MAX, 3);
	plan->supervisor.restarts = restarts == 0 ? HD_RESTARTS_NONE : (int)restarts;
	plan->supervisor.within = seconds_field(L, 1, "within");
	plan->supervisor.backoff = seconds_field(L, 1, "backoff");
	plan->supervisor.backoff_max = seconds_field(L, 1, "backoff_max");
	if (lua_getfield(L, 1, "children") != LUA_TTABLE)
		return luaL_error(L, "children is a %s, and not a table of children", luaL_typename(L, -1));
	lua_Integer n = luaL_len(L, -1);
	plan->children = calloc(n > 0 ? (size_t)n : 1, sizeof *plan->children);
	plan->supervised = calloc(n > 0 ? (size_t)n : 1, sizeof *plan->supervised);
	if (plan->children == NULL || plan->supervised == NULL)
		return luaL_error(L, "not enough memory");
	for (lua_Integer k = 1; k <= n; k++) {
		lua_geti(L, 2, k);
		plan_child(L, plan);
		lua_pop(L, 1);
	}
	plan->supervisor.children = plan->supervised;
	plan->supervisor.count = plan->count;
	return process_wait(L, WISH_SUPERVISE, "heddle.supervise", supervise_k, 0);
}
