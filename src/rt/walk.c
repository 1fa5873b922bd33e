/* rt/walk.c - where a process is that does not run: the return addresses on its stack.
 *
 * The C library walks only the stack of its caller. So the stack is copied, every word in the copy that points into the stack is made to
 * point into the copy, and a function is called on the copy that looks around. The process itself is not touched: it may go on
 * meanwhile, and then the copy is thrown away. */
#include <execinfo.h>

#include "os/memory.h"
#include "os/thread.h"
#include "rt/rt.h"

#define USED_MAX ((size_t)1 << 20) /* of a stack; one that is deeper is not walked */
#define ROOM ((size_t)64 << 10)	   /* for the walk itself, below the copy */
#define OWN_FRAMES 2		   /* look_around, hd__arch_call */

struct walk {
	struct hd__context back;
	void *frames[HD__FRAMES_MAX + OWN_FRAMES];
	int count;
};

/* Not instrumented: the sanitizers do not know the copy, and it does not return. */
__attribute__((noinline, no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined"))) static void
look_around(void *arg)
{
	struct walk *walk = arg;

	walk->count = backtrace(walk->frames, HD__FRAMES_MAX + OWN_FRAMES);
	hd__arch_jump(&walk->back);
}

/* What the registers of a runner hold that is blocked in the kernel is not known, but for two. The walk reads memory through those that a function has
 * saved its caller's place in, so the frame pointer leads to words that are zero, or, below them, to such words: there the walk ends. */
#define UNKNOWN_WORDS 64
struct unknown {
	uintptr_t below[UNKNOWN_WORDS], zero[UNKNOWN_WORDS];
};

static void *unknown_frame(struct unknown *u)
{
	for (int i = 0; i < UNKNOWN_WORDS; i++) {
		u->below[i] = (uintptr_t)&u->zero[UNKNOWN_WORDS / 2];
		u->zero[i] = 0;
	}
	return u->zero;
}

/* Copies the used part of a stack to `copy`, and makes of it and of its context what can be walked. */
static bool copy_stack(struct hd__context *c, char *copy, size_t used)
{
	char *sp = c->sp;
	uintptr_t *words = (uintptr_t *)copy, low = (uintptr_t)sp, delta = (uintptr_t)copy - low;

	if (!hd__os_peek(copy, sp, used))
		return false;
	for (size_t i = 0; i < used / sizeof *words; i++)
		if (words[i] - low < used)
			words[i] += delta;
	c->sp = copy;
	if ((uintptr_t)c->bp - low < used)
		c->bp = (char *)c->bp + delta;
	return true;
}

/* Whether p is off its stack: it does not run, and is not about to leave. */
static bool is_off(struct hd_process *p)
{
	const struct hd_process *current;

	return ld_acq(&p->state) != HD_RUNNING && hd__os_peek(&current, &ld_rlx(&p->home)->current, sizeof current) &&
	       current != p;
}

/* What says that a process has not run between two looks. */
struct standing {
	uint64_t switches, generation;
	char *stack;
};

static struct standing standing_of(struct hd_process *p)
{
	return (struct standing){ ld_acq(&p->switches), HD__GENERATION(ld_acq(&p->control)), ld_acq(&p->stack) };
}

static bool is_standing(struct hd_process *p, struct standing before)
{
	struct standing now = standing_of(p);

	return now.switches == before.switches && now.generation == before.generation && now.stack == before.stack;
}

/* Copies the stack of p from `context` on, which then is of the copy. NULL: it cannot be. */
static char *copy_from(struct hd_process *p, struct standing before, struct hd__context *context, size_t *size)
{
	char *sp = context->sp, *top = hd__stack_top(before.stack, ld_acq(&p->stack_class));
	size_t used = (size_t)(top - sp);

	if (sp < before.stack || sp >= top || used > USED_MAX || (uintptr_t)sp % sizeof(void *) != 0)
		return NULL;
	*size = ROOM + used;
	char *memory = hd__os_reserve(*size, 0);
	if (memory != NULL && copy_stack(context, memory + ROOM, used) &&
	    is_standing(p, before)) /* then p has not run meanwhile */
		return memory;
	if (memory != NULL)
		hd__os_unreserve(memory, *size);
	return NULL;
}

static int walk_copy(struct hd__context *context, void *frames[HD__FRAMES_MAX])
{
	struct walk walk = { .count = 0 };

	hd__arch_make_call(context, look_around, &walk);
	hd__arch_switch(&walk.back, context);
	int n = walk.count - OWN_FRAMES;
	for (int i = 0; i < n; i++)
		frames[i] = walk.frames[i + OWN_FRAMES];
	return n > 0 ? n : 0;
}

int hd__walk(struct hd_process *p, void *frames[HD__FRAMES_MAX])
{
	struct standing before = standing_of(p);
	struct hd__context context;
	size_t size;

	if (before.stack == NULL || before.switches == 0 || !is_off(p))
		return 0;
	hd__os_thread_nap(); /* its worker may be switching away from it: then it has saved the context now */
	if (!hd__os_peek(&context, &p->context, sizeof context))
		return 0;
	char *memory = copy_from(p, before, &context, &size);
	if (memory == NULL)
		return 0;
	int n = walk_copy(&context, frames);
	hd__os_unreserve(memory, size);
	return n;
}

int hd__walk_blocked(struct hd_worker *w, struct hd_process *p, const struct hd__blocked_in *where,
		     void *frames[HD__FRAMES_MAX])
{
	struct hd__context context = { .sp = where->sp, .ip = where->pc };
	struct standing before = standing_of(p);
	struct unknown unknown;
	size_t size;
	char *memory = before.stack != NULL ? copy_from(p, before, &context, &size) : NULL;
	int n = 0;

	if (memory == NULL)
		return 0;
	if (hd__os_thread_cpu_time(ld_rlx(&w->thread.id)) ==
	    where->cpu_time) { /* else it has gone on, and the copy is of several moments */
		context.bp = unknown_frame(&unknown);
		n = walk_copy(&context, frames);
	}
	hd__os_unreserve(memory, size);
	return n;
}
