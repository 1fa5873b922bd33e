/* spawn.c - heddle.spawn and heddle.spawn_with. */
#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handle.h"
#include "process.h"
#include "spawn.h"

#define STACK                                                                                                                  \
	(1 << 20) /* Lua lets C code and Lua code call each other to a depth of 200, and frames of string.gsub have 2 KiB */

/* The name of a process that was given none: where its function is, the end of it if it is long. */
static void name_of(lua_State *L, int function, char name[HD_NAME_SIZE])
{
	char where[LUA_IDSIZE + 16];
	lua_Debug ar;

	if (lua_isfunction(L, function)) {
		lua_pushvalue(L, function);
		lua_getinfo(L, ">S", &ar);
		const char *file = strrchr(ar.short_src, '/');
		snprintf(where, sizeof where, "%s:%d", file != NULL ? file + 1 : ar.short_src, ar.linedefined);
	} else {
		snprintf(where, sizeof where, "%.60s", lua_tostring(L, function));
	}
	size_t n = strlen(where), skip = n >= HD_NAME_SIZE ? n - HD_NAME_SIZE + 1 : 0;
	memcpy(name, where + skip, n - skip + 1);
}

void check_function(lua_State *L, int i)
{
	if (lua_iscfunction(L, i))
		luaL_argerror(L, i, "a function that is written in C cannot be spawned: write a Lua function that calls it");
	if (lua_type(L, i) != LUA_TSTRING && !lua_isfunction(L, i))
		luaL_typeerror(L, i, "function or name of a module");
}

static bool flag(lua_State *L, int i, const char *name)
{
	lua_getfield(L, i, name);
	bool set = lua_toboolean(L, -1);
	lua_pop(L, 1);
	return set;
}

void check_fields(lua_State *L, int i, const char *const names[], const char *what)
{
	for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1)) {
		const char *const *name = names;
		if (lua_type(L, -2) != LUA_TSTRING)
			luaL_error(L, "%s has the key [%s], which means nothing", what, luaL_tolstring(L, -2, NULL));
		while (*name != NULL && strcmp(*name, lua_tostring(L, -2)) != 0)
			name++;
		if (*name == NULL)
			luaL_error(L, "%s has the field '%s', which means nothing", what, lua_tostring(L, -2));
	}
}

lua_Integer number_field(lua_State *L, int i, const char *name, lua_Integer least, lua_Integer most, lua_Integer missing)
{
	int is_integer;

	if (lua_getfield(L, i, name) == LUA_TNIL) {
		lua_pop(L, 1);
		return missing;
	}
	lua_Integer value = lua_tointegerx(L, -1, &is_integer);
	if (!is_integer || value < least || value > most)
		luaL_error(L, "%s is not an integer from %I to %I", name, (LUAI_UACINT)least, (LUAI_UACINT)most);
	lua_pop(L, 1);
	return value;
}

void check_how(lua_State *L, int i, struct how *how)
{
	how->spawn.priority = (int)number_field(L, i, "priority", 10, 80, 0);
	how->memory = (size_t)number_field(L, i, "memory", 0, INT64_MAX, (lua_Integer)program.memory);
	how->spawn.daemon = flag(L, i, "daemon");
}

/* Spawns what is at `function`, with what is behind it as arguments. */
static int spawn_at(lua_State *L, int function, struct how *how)
{
	struct process *p = process_of(L);
	char name[HD_NAME_SIZE];
	hd_pid pid = -ENOMEM;

	check_function(L, function);
	if (how->spawn.name == NULL) {
		name_of(L, function, name);
		how->spawn.name = name;
	}
	struct letter *start = letter_write(L, lua_gettop(L) - function + 1);
	hd_port *port = hd_port_new(&(struct hd_port_options){ .unowned = true });
	struct identity *who = port != NULL ? identity_new(port) : NULL;
	struct process *new = who != NULL ? process_new(start, who, how->memory) : NULL;
	if (new != NULL) {
		/* One reference is ours: where an error leaves it, the next spawn or the end of this process releases it. */
		identity_release(p->callee);
		p->callee = identity_retain(who);
		how->spawn.port = port;
		pid = hd_spawn_with(&how->spawn, NULL, new);
		if (pid < 0)
			process_drop(new);
	} else {
		letter_release(start);
		if (who != NULL)
			identity_release(who);
		else
			hd_port_release(port);
	}
	if (pid < 0)
		return push_error(L, (int)pid);
	atomic_store_explicit(&who->pid, pid, memory_order_relaxed);
	handle_push(L, p->callee);
	identity_release(p->callee);
	p->callee = NULL;
	return 1;
}

struct how default_how(void)
{
	return (struct how){ .spawn = { .stack_size = STACK, .detached = true, .machine = &process_ops },
			     .memory = program.memory };
}

int spawn(lua_State *L)
{
	struct how how = default_how();

	return spawn_at(L, 1, &how);
}

int spawn_with(lua_State *L)
{
	static const char *const fields[] = { "name", "priority", "memory", "daemon", "link", "watch", NULL };
	struct how how = default_how();

	luaL_checktype(L, 1, LUA_TTABLE);
	check_fields(L, 1, fields, "how to spawn");
	check_how(L, 1, &how);
	if (lua_getfield(L, 1, "name") != LUA_TNIL) {
		if (lua_type(L, -1) != LUA_TSTRING || lua_rawlen(L, -1) >= HD_NAME_SIZE)
			return luaL_error(L, "name is not a string of at most %d bytes", HD_NAME_SIZE - 1);
		how.spawn.name = lua_tostring(L, -1); /* the table has it, too */
	}
	lua_pop(L, 1);
	how.spawn.link = flag(L, 1, "link");
	bool watched = flag(L, 1, "watch");
	if (watched)
		how.spawn.watch = process_of(L)->me->port;
	int n = spawn_at(L, 2, &how);
	if (n == 1 && watched)
		watch_table_add(L, -1);
	return n;
}
