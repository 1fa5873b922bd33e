/* process.h - Lua processes: each a Lua state of its own, run as a machine in turns. */
#ifndef PROCESS_H
#define PROCESS_H

#include <heddle.h>
#include <lua.h>

#include "identity.h"
#include "letter.h"
#include "names.h"

/* What is the same for all Lua processes of a program. Constant while they run. */
struct program {
	const char *file; /* of the first process */
	char **arguments; /* of the program, behind the file; the last one is NULL */
	const char *path; /* where modules are looked for, before Lua's own path; "" is nowhere */
	size_t memory;	  /* bytes that a process may have, unless it was spawned otherwise; 0: any number */
	uint64_t budget;  /* instructions in a turn */
};
extern struct program program;

/* What a process needs before it can go on. A Lua function that waits says it, and yields; the turn does it. */
enum wish {
	WISH_NONE = 0,
	WISH_TURN,	/* another turn */
	WISH_MESSAGE,	/* a message, or the time */
	WISH_SLEEP,	/* the time */
	WISH_CALL,	/* an answer */
	WISH_SUPERVISE, /* to supervise others until that is over */
	WISH_LINE	/* a line from the standard input */
};

struct process {
	lua_State *L;  /* NULL: it has not begun */
	lua_State *co; /* the coroutine of L's in which its code runs */
	struct identity *me;
	struct letter *start; /* its function and arguments; NULL: it runs program.file */
	char *registered;     /* the name that it registers when it begins; or NULL */
	unsigned names;	      /* that it has registered */
	bool first;	      /* its failure is the program's */
	size_t memory, limit; /* bytes */
	size_t charged;	      /* what C code has done in this turn, in instructions (state_charge) */

	enum wish wish;
	hd_time until; /* WISH_MESSAGE, WISH_SLEEP, WISH_CALL, WISH_LINE */
	int answer;    /* how that went: 0, -errno, or bytes of a line */
	bool refused;  /* it cannot be waited here */
	hd_port *nap;  /* into which no message ever comes: sleeping is waiting there. NULL: it never slept */

	struct draft draft;
	struct hd_message incoming; /* received, and not yet in the Lua state */
	bool has_incoming;
	struct mailbox {
		int *refs; /* of messages that were received, and not wanted yet: references into the table of them */
		size_t first, last, room;
		size_t looked; /* how many of them the receive under way has looked at */
		bool asks;     /* a function that is a pattern runs */
	} mailbox;

	struct identity *callee; /* WISH_CALL */
	struct letter *question; /* WISH_CALL; or one that heddle.send has written, until it is sent */
	struct hd_message reply; /* zeroed: there is none */
	struct plan *plan;	 /* WISH_SUPERVISE (supervise.c) */
	char *line;		 /* WISH_LINE: what was read */
};

static inline struct process *process_of(lua_State *L)
{
	return *(struct process **)lua_getextraspace(L);
}

/* How a process is spawned. */
struct how {
	struct hd_spawn spawn;
	size_t memory;
};

/* A process that has not been spawned; it takes `start` and `me` over. NULL: no memory, and they are still the caller's. */
struct process *process_new(struct letter *start, struct identity *me, size_t memory);
void process_drop(void *process);

/* It ends with an error: if it is the first, so does the program. */
void process_fails(const struct process *p);

extern struct hd_machine_ops process_ops;

/* A Lua function waits: p->wish has been set. The function goes on in `k`. Raises an error if the caller is inside a call from C that cannot be left. */
int process_wait(lua_State *L, enum wish wish, const char *what, lua_KFunction k, lua_KContext context);

/* At the beginning of such a `k`: raises an error if it could not be waited. */
void process_waited(lua_State *L, const char *what);

/* As hd_message_drop, of a message that the process has received. At the end of the runtime heddle has dropped it. */
void process_drop_message(struct process *p, struct hd_message *m);

/* repeat.c: if the program is explored, begins it anew in a way that can be repeated. */
void be_repeatable(char **argv);

/* The exit status of the program, unless os.exit gave one: 1 if the first process has died of an error. */
int process_main_status(void);

/* Opens what processes have; state.c: libraries, and the hook that ends turns. */
void state_open(lua_State *L);
void state_hook(lua_State *L);
void state_charge(lua_State *L, size_t instructions); /* work that is not done by instructions of Lua counts as so many */
void *state_allocate(void *process, void *block, size_t old, size_t size);
void library_open(lua_State *L);
void library_change(lua_State *L,
		    const char *name); /* on top of the stack: a library, just opened; what is different in a process */
void coroutine_change(lua_State *L);
void heddle_open(lua_State *L);

int receive(lua_State *L);
void push_watched(lua_State *L); /* the table of watched processes: pid -> handle, and -pid -> how often */
void watch_table_add(lua_State *L, int handle);
void forget_watched(lua_State *L, hd_pid pid); /* once */
int spawn(lua_State *L);
int spawn_with(lua_State *L);
int supervise(lua_State *L);
int read_line(lua_State *L);

/* What a turn does for a wish; they keep the stack while they wait. */
int call_wait(struct process *p);
int supervise_wait(struct process *p);
int read_line_wait(struct process *p);
void plan_drop(struct plan *plan);

/* The time that a number of seconds from now is; a missing value is HD_FOREVER. */
hd_time check_until(lua_State *L, int i);

/* nil, and what an error means. */
int push_error(lua_State *L, int err);

#endif
