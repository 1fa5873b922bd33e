/* letter.c - Lua values on their way from one Lua process to another.
 *
 * Owns:       the form of a letter.
 * Invariant:  what is read is what was written: the same values, tables with the same keys, and what was one table, one function or one variable of several
 *             functions is one again. Nothing in a letter belongs to a Lua state.
 * Locking:    none. A letter does not change; the process that writes it has a draft of its own.
 *
 * The form: a byte that says what comes, then that. Numbers stand as they are in memory: a letter does not leave the program.
 *
 *   n f t              nil, false, true
 *   i d                an integer, a float: 8 bytes
 *   s                  a string: its length, its bytes
 *   {                  a table: how many entries it has, how long its sequence is; key, value, key, value...; then its metatable, or nil
 *   F                  a Lua function: how many upvalues it has, the length of its code, its code (lua_dump); for each upvalue a value, or
 *   u                  an upvalue of a function before it: which function, which upvalue
 *   @                  a table or function that was begun before: which one
 *   p                  a process: which handle
 *   *                  heddle.any
 *   m                  a module: its name
 *   c                  a function of a module: its name, the function's
 *
 * A table is copied, unless there is something in the letter that cannot be copied (a C function, say): then it is written again, and modules travel by name. */
#include "letter.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "handle.h"
#include "process.h"

#define LEVELS 500     /* tables in tables */
#define BYTES 8	       /* that count as one instruction */
#define KEPT (1 << 16) /* bytes that a draft keeps for the next letter */

struct seen {
	const void *what;
	uint64_t number;
};

/* What writing a value comes to. */
enum written { DONE = 0, NO_MEMORY, CANNOT, BY_NAME };

void draft_fini(struct draft *d)
{
	free(d->text);
	for (unsigned i = 0; i < d->handles; i++)
		identity_release(d->who[i]);
	free(d->who);
	free(d->seen);
	memset(d, 0, sizeof *d);
}

/* Forgets what is in it. */
static void clear(struct draft *d)
{
	for (unsigned i = 0; i < d->handles; i++)
		identity_release(d->who[i]);
	if (d->room > KEPT || d->seen_room * sizeof *d->seen > KEPT) {
		d->handles = 0;
		draft_fini(d);
		return;
	}
	if (d->seen_count > 0)
		memset(d->seen, 0, d->seen_room * sizeof *d->seen);
	d->size = d->handles = d->seen_count = d->values = 0;
	d->shared = d->by_name = false;
	d->level = 0;
	d->where[0] = d->why[0] = 0;
}

static bool put(struct draft *d, const void *data, size_t size)
{
	if (d->room - d->size < size) {
		size_t room = 2 * d->room + size + 64;
		unsigned char *text = realloc(d->text, room);
		if (text == NULL)
			return false;
		d->text = text;
		d->room = room;
	}
	memcpy(d->text + d->size, data, size);
	d->size += size;
	return true;
}

static bool put_byte(struct draft *d, char byte)
{
	return put(d, &byte, 1);
}

static bool put_number(struct draft *d, uint32_t number)
{
	return put(d, &number, sizeof number);
}

/* With `what`, of n bytes. */
static bool put_bytes(struct draft *d, char kind, const char *what, size_t n)
{
	return put_byte(d, kind) && put(d, &n, sizeof n) && put(d, what, n);
}

static struct seen *slot(struct seen *seen, unsigned room, const void *what)
{
	size_t i = ((uintptr_t)what >> 4) * 11400714819323198485u >> 20;

	while (seen[i & (room - 1)].what != NULL && seen[i & (room - 1)].what != what)
		i++;
	return &seen[i & (room - 1)];
}

/* The entry for a thing, which is new (its `what` is NULL), or has its number. NULL: no memory. */
static struct seen *look_up(struct draft *d, const void *what)
{
	if (2 * d->seen_count >= d->seen_room) {
		unsigned room = d->seen_room != 0 ? 2 * d->seen_room : 16;
		struct seen *seen = calloc(room, sizeof *seen);
		if (seen == NULL)
			return NULL;
		for (unsigned i = 0; i < d->seen_room; i++)
			if (d->seen[i].what != NULL)
				*slot(seen, room, d->seen[i].what) = d->seen[i];
		free(d->seen);
		d->seen = seen;
		d->seen_room = room;
	}
	return slot(d->seen, d->seen_room, what);
}

static void enter(struct draft *d, struct seen *entry, const void *what, uint64_t number)
{
	*entry = (struct seen){ what, number };
	d->seen_count++;
}

/* Why it cannot be: the first reason stays. */
static enum written cannot(struct draft *d, const char *why)
{
	if (d->why[0] == 0)
		snprintf(d->why, sizeof d->why, "%s", why);
	return CANNOT;
}

/* On the way back from what cannot be written: where it is, from the outside in. */
static void add_where(lua_State *L, struct draft *d, int key)
{
	char step[64], all[sizeof d->where];

	switch (lua_type(L, key)) {
	case LUA_TSTRING:
		snprintf(step, sizeof step, ".%.40s", lua_tostring(L, key));
		break;
	case LUA_TNUMBER:
		snprintf(step, sizeof step, "[%.14g]", lua_tonumber(L, key));
		break;
	default:
		snprintf(step, sizeof step, "[a %s]", luaL_typename(L, key));
	}
	snprintf(all, sizeof all, "%s%.90s", step, d->where);
	memcpy(d->where, all, sizeof all);
}

static enum written write_value(lua_State *L, struct draft *d, int i);

/* Writes the name of the module that the value at i is. False: it is none. */
static bool write_module(lua_State *L, struct draft *d, int i, enum written *result)
{
	lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	int loaded = lua_gettop(L);
	for (lua_pushnil(L); lua_next(L, loaded); lua_pop(L, 1))
		if (lua_type(L, -2) == LUA_TSTRING && lua_rawequal(L, -1, i)) {
			size_t n;
			const char *name = lua_tolstring(L, -2, &n);
			*result = put_bytes(d, 'm', name, n) ? DONE : NO_MEMORY;
			lua_settop(L, loaded - 1);
			return true;
		}
	lua_settop(L, loaded - 1);
	return false;
}

static enum written write_c_function(lua_State *L, struct draft *d, int i)
{
	lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	int loaded = lua_gettop(L);
	for (lua_pushnil(L); lua_next(L, loaded); lua_pop(L, 1)) {
		if (!lua_istable(L, -1) || lua_type(L, -2) != LUA_TSTRING)
			continue;
		for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
			if (lua_type(L, -2) == LUA_TSTRING && lua_rawequal(L, -1, i)) {
				size_t n, m;
				const char *field = lua_tolstring(L, -2, &m), *name = lua_tolstring(L, -4, &n);
				bool fits = put_bytes(d, 'c', name, n) && put(d, &m, sizeof m) && put(d, field, m);
				lua_settop(L, loaded - 1);
				return fits ? DONE : NO_MEMORY;
			}
	}
	lua_settop(L, loaded - 1);
	return cannot(d, "a function that is written in C, and is in no module,");
}

static int put_code(lua_State *L, const void *data, size_t size, void *draft)
{
	(void)L;
	return put(draft, data, size) ? 0 : 1;
}

static enum written write_function(lua_State *L, struct draft *d, int i, uint64_t number)
{
	lua_Debug ar;
	size_t length = 0;

	lua_pushvalue(L, i);
	lua_getinfo(L, ">u", &ar);
	if (!put_byte(d, 'F') || !put_number(d, ar.nups) || !put(d, &length, sizeof length))
		return NO_MEMORY;
	size_t begin = d->size;
	lua_pushvalue(L, i);
	int err = lua_dump(L, put_code, d, 0);
	lua_pop(L, 1);
	if (err != 0)
		return NO_MEMORY;
	length = d->size - begin;
	memcpy(d->text + begin - sizeof length, &length, sizeof length);
	for (int n = 1; n <= ar.nups; n++) {
		const void *id = lua_upvalueid(L, i, n);
		struct seen *seen = look_up(d, id);
		if (seen == NULL)
			return NO_MEMORY;
		if (seen->what != NULL) {
			d->shared = true;
			if (!put_byte(d, 'u') || !put_number(d, (uint32_t)(seen->number >> 8)) ||
			    !put_number(d, (uint32_t)(seen->number & 255)))
				return NO_MEMORY;
			continue;
		}
		enter(d, seen, id, number << 8 | (unsigned)n);
		const char *name = lua_getupvalue(L, i, n);
		enum written result = write_value(L, d, lua_gettop(L));
		lua_pop(L, 1);
		if (result == CANNOT) {
			char step[64];
			snprintf(step, sizeof step, " in local '%.40s'", name);
			memmove(d->where + strlen(step), d->where, sizeof d->where - strlen(step));
			memcpy(d->where, step, strlen(step));
			d->where[sizeof d->where - 1] = 0;
		}
		if (result != DONE)
			return result;
	}
	return DONE;
}

static enum written write_table(lua_State *L, struct draft *d, int i)
{
	uint32_t entries = 0, sequence = (uint32_t)lua_rawlen(L, i);

	if (!put_byte(d, '{'))
		return NO_MEMORY;
	size_t at = d->size;
	if (!put_number(d, entries) || !put_number(d, sequence))
		return NO_MEMORY;
	for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1)) {
		int key = lua_gettop(L) - 1;
		enum written result = write_value(L, d, key);
		if (result == DONE)
			result = write_value(L, d, key + 1);
		if (result == CANNOT)
			add_where(L, d, key);
		if (result != DONE) {
			lua_settop(L, key - 1);
			return result;
		}
		entries++;
	}
	memcpy(d->text + at, &entries, sizeof entries);
	if (!lua_getmetatable(L, i))
		return put_byte(d, 'n') ? DONE : NO_MEMORY;
	enum written result = write_value(L, d, lua_gettop(L));
	lua_pop(L, 1);
	return result;
}

/* A table or a function: once, and then that it was before. */
static enum written write_shared(lua_State *L, struct draft *d, int i)
{
	const void *what = lua_topointer(L, i);
	struct seen *seen = look_up(d, what);
	enum written result;

	if (seen == NULL)
		return NO_MEMORY;
	if (seen->what != NULL) {
		d->shared = true;
		return put_byte(d, '@') && put_number(d, (uint32_t)seen->number) ? DONE : NO_MEMORY;
	}
	if (d->by_name && write_module(L, d, i, &result))
		return result;
	if (lua_iscfunction(L, i))
		return d->by_name ? write_c_function(L, d, i) : BY_NAME;
	if (lua_isfunction(L, i) && !d->by_name)
		return BY_NAME;
	if (d->level >= LEVELS)
		return cannot(d, "a table that is nested more than 500 levels deep");
	uint64_t number = d->values++;
	enter(d, seen, what, number);
	d->level++;
	result = lua_isfunction(L, i) ? write_function(L, d, i, number) : write_table(L, d, i);
	d->level--;
	return result;
}

static enum written write_handle(lua_State *L, struct draft *d, struct identity *who)
{
	(void)L;
	if (d->handles == d->handles_room) {
		unsigned room = 2 * d->handles_room + 4;
		struct identity **all = realloc(d->who, room * sizeof(struct identity *));
		if (all == NULL)
			return NO_MEMORY;
		d->who = all;
		d->handles_room = room;
	}
	if (!put_byte(d, 'p') || !put_number(d, d->handles))
		return NO_MEMORY;
	d->who[d->handles++] = identity_retain(who);
	return DONE;
}

static enum written write_value(lua_State *L, struct draft *d, int i)
{
	lua_Integer integer;
	lua_Number number;
	const char *text;
	size_t n;

	if (!lua_checkstack(L, 8))
		return NO_MEMORY;
	switch (lua_type(L, i)) {
	case LUA_TNIL:
		return put_byte(d, 'n') ? DONE : NO_MEMORY;
	case LUA_TBOOLEAN:
		return put_byte(d, lua_toboolean(L, i) ? 't' : 'f') ? DONE : NO_MEMORY;
	case LUA_TNUMBER:
		if (lua_isinteger(L, i)) {
			integer = lua_tointeger(L, i);
			return put_byte(d, 'i') && put(d, &integer, sizeof integer) ? DONE : NO_MEMORY;
		}
		number = lua_tonumber(L, i);
		return put_byte(d, 'd') && put(d, &number, sizeof number) ? DONE : NO_MEMORY;
	case LUA_TSTRING:
		text = lua_tolstring(L, i, &n);
		return put_bytes(d, 's', text, n) ? DONE : NO_MEMORY;
	case LUA_TTABLE:
	case LUA_TFUNCTION:
		return write_shared(L, d, i);
	case LUA_TUSERDATA: {
		struct identity *who = handle_test(L, i);
		if (who != NULL)
			return write_handle(L, d, who);
		return cannot(d, request_test(L, i) ? "a request" : "a userdata");
	}
	case LUA_TLIGHTUSERDATA:
		if (lua_touserdata(L, i) == ANY)
			return put_byte(d, '*') ? DONE : NO_MEMORY;
		return cannot(d, "a light userdata");
	case LUA_TTHREAD:
		return cannot(d, "a coroutine");
	default:
		return cannot(d, "a value of an unknown type");
	}
}

static enum written write_all(lua_State *L, struct draft *d, int n)
{
	int top = lua_gettop(L);
	enum written result = DONE;

	for (int i = top - n + 1; i <= top && result == DONE; i++)
		result = write_value(L, d, i);
	lua_settop(L, top); /* what failed has left something there */
	return result;
}

struct letter *letter_write(lua_State *L, int n)
{
	struct draft *d = &process_of(L)->draft;
	struct letter *letter = NULL;

	clear(d);
	enum written result = write_all(L, d, n);
	if (result == BY_NAME || result == CANNOT) {
		clear(d);
		d->by_name = true;
		result = write_all(L, d, n);
	}
	if (result == CANNOT)
		luaL_error(L, "%s cannot be copied to another process%s%s", d->why,
			   d->where[0] == '.' || d->where[0] == '[' ? ": value" : "", d->where);
	if (result == DONE)
		letter = malloc(sizeof *letter + d->size);
	struct identity **who = NULL;
	if (letter != NULL && d->handles > 0) {
		who = malloc(d->handles * sizeof(struct identity *));
		if (who == NULL) {
			free(letter);
			letter = NULL;
		}
	}
	if (letter == NULL)
		luaL_error(L, "not enough memory to copy a value to another process");
	*letter = (struct letter){
		.values = (unsigned)n, .shared = d->shared, .handles = d->handles, .who = who, .size = d->size
	};
	atomic_init(&letter->references, 1);
	memcpy(letter->text, d->text, d->size);
	if (d->handles > 0)
		memcpy(who, d->who, d->handles * sizeof(struct identity *));
	d->handles = 0; /* the references are the letter's now */
	state_charge(L, d->size / BYTES);
	return letter;
}

struct letter *letter_retain(struct letter *letter)
{
	atomic_fetch_add_explicit(&letter->references, 1, memory_order_relaxed); /* the caller has a reference */
	return letter;
}

void letter_release(void *data)
{
	struct letter *letter = data;

	/* Acquire and release: the process that frees it comes after all that have read it. */
	if (letter == NULL || atomic_fetch_sub_explicit(&letter->references, 1, memory_order_acq_rel) != 1)
		return;
	for (unsigned i = 0; i < letter->handles; i++)
		identity_release(letter->who[i]);
	free(letter->who);
	free(letter);
}

/* A letter that is being read. */
struct reading {
	const struct letter *letter;
	const unsigned char *at;
	int shared; /* where the stack has the table of tables and functions so far; 0: there is none */
	lua_Integer values;
};

static void take(struct reading *r, void *data, size_t size)
{
	memcpy(data, r->at, size);
	r->at += size;
}

static uint32_t take_number(struct reading *r)
{
	uint32_t number;

	take(r, &number, sizeof number);
	return number;
}

static void push_text(lua_State *L, struct reading *r)
{
	size_t n;

	take(r, &n, sizeof n);
	lua_pushlstring(L, (const char *)r->at, n);
	r->at += n;
}

/* The table or function on top of the stack has been begun. */
static void begun(lua_State *L, struct reading *r)
{
	r->values++;
	if (r->shared == 0)
		return;
	lua_pushvalue(L, -1);
	lua_rawseti(L, r->shared, r->values);
}

static void read_value(lua_State *L, struct reading *r);

static void read_table(lua_State *L, struct reading *r)
{
	uint32_t entries = take_number(r), sequence = take_number(r);

	if (sequence > entries)
		sequence = entries;
	lua_createtable(L, (int)sequence, (int)(entries - sequence));
	begun(L, r);
	while (entries-- > 0) {
		read_value(L, r);
		read_value(L, r);
		lua_rawset(L, -3);
	}
	read_value(L, r);
	if (lua_isnil(L, -1))
		lua_pop(L, 1);
	else
		lua_setmetatable(L, -2);
}

struct code {
	const char *data;
	size_t size;
};

static const char *read_code(lua_State *L, void *arg, size_t *size)
{
	struct code *code = arg;

	(void)L;
	*size = code->size;
	code->size = 0;
	return code->data;
}

static void read_function(lua_State *L, struct reading *r)
{
	struct code code;
	uint32_t upvalues = take_number(r);

	take(r, &code.size, sizeof code.size);
	code.data = (const char *)r->at;
	r->at += code.size;
	if (lua_load(L, read_code, &code, "=?", "b") != LUA_OK)
		lua_error(L);
	begun(L, r);
	int function = lua_gettop(L);
	for (int n = 1; n <= (int)upvalues; n++) {
		if (*r->at == 'u') {
			r->at++;
			lua_rawgeti(L, r->shared, (lua_Integer)take_number(r) + 1);
			lua_upvaluejoin(L, function, n, -1, (int)take_number(r));
			lua_pop(L, 1);
			continue;
		}
		read_value(L, r);
		lua_setupvalue(L, function, n);
	}
}

/* The module whose name is on top of the stack, in its place. */
static void load_module(lua_State *L)
{
	lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
	lua_pushvalue(L, -2);
	lua_rawget(L, -2);
	lua_replace(L, -2);
	if (!lua_isnil(L, -1)) {
		lua_replace(L, -2);
		return;
	}
	lua_pop(L, 1);
	lua_getglobal(L, "require");
	lua_insert(L, -2);
	lua_call(L, 1, 1);
}

static void read_value(lua_State *L, struct reading *r)
{
	lua_Integer integer;
	lua_Number number;

	luaL_checkstack(L, 8, "a value from another process");
	switch (*r->at++) {
	case 'n':
		lua_pushnil(L);
		return;
	case 'f':
		lua_pushboolean(L, 0);
		return;
	case 't':
		lua_pushboolean(L, 1);
		return;
	case 'i':
		take(r, &integer, sizeof integer);
		lua_pushinteger(L, integer);
		return;
	case 'd':
		take(r, &number, sizeof number);
		lua_pushnumber(L, number);
		return;
	case 's':
		push_text(L, r);
		return;
	case '{':
		read_table(L, r);
		return;
	case 'F':
		read_function(L, r);
		return;
	case '@':
		lua_rawgeti(L, r->shared, (lua_Integer)take_number(r) + 1);
		return;
	case 'p':
		handle_push(L, r->letter->who[take_number(r)]);
		return;
	case '*':
		lua_pushlightuserdata(L, ANY);
		return;
	case 'm':
		push_text(L, r);
		load_module(L);
		return;
	case 'c':
		push_text(L, r);
		load_module(L);
		push_text(L, r);
		lua_gettable(L, -2); /* the library may not be open yet */
		lua_replace(L, -2);
		return;
	default:
		luaL_error(L, "a letter is damaged");
	}
}

void letter_read(lua_State *L, const struct letter *letter)
{
	struct reading r = { .letter = letter, .at = letter->text };

	luaL_checkstack(L, (int)letter->values + 8, "values from another process");
	if (letter->shared) {
		lua_newtable(L);
		r.shared = lua_gettop(L);
	}
	for (unsigned i = 0; i < letter->values; i++)
		read_value(L, &r);
	if (r.shared != 0)
		lua_remove(L, r.shared);
	state_charge(L, letter->size / BYTES);
}
