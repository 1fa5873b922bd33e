/* letter.h - Lua values on their way from one Lua process to another.
 *
 * A letter is a copy of some values, outside of any Lua state. It can be read by any process, and more than once. */
#ifndef LETTER_H
#define LETTER_H

#include <lua.h>

#include "identity.h"

struct letter {
	atomic_uint references;
	unsigned values;       /* how many there are */
	bool shared;	       /* something in it is reached in more than one way */
	unsigned handles;      /* processes that are named in it */
	struct identity **who; /* these */
	size_t size;	       /* of text */
	unsigned char text[];
};

/* Copies n values on top of the stack; they stay there. If a value cannot be copied, or there is no memory, it raises an error that says which and why. */
struct letter *letter_write(lua_State *L, int n);

/* Pushes the values. May raise an error (no memory), and run Lua code (a module is loaded). The letter stays the caller's. */
void letter_read(lua_State *L, const struct letter *letter);

struct letter *letter_retain(struct letter *letter);
void letter_release(void *letter); /* as hd_send_move wants it; NULL: does nothing */

/* A place where letters are written: one for each Lua process. Zeroed memory is ready to use. */
struct draft {
	unsigned char *text;
	size_t size, room;
	struct identity **who;
	unsigned handles, handles_room;
	struct seen *seen; /* a hash table */
	unsigned seen_count, seen_room;
	unsigned values; /* tables and functions so far */
	bool shared, by_name;
	int level;
	char why[160], where[160];
};
void draft_fini(struct draft *draft);

#endif
