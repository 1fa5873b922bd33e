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

int hd__walk(struct hd_process *p, void *frames[HD__FRAMES_MAX])
{
	uint64_t switches = ld_acq(&p->switches), generation = HD__GENERATION(ld_acq(&p->control));
	char *stack = ld_acq(&p->stack);
	struct hd__context context;
	struct walk walk = { .count = 0 };

	if (stack == NULL || switches == 0 || !is_off(p))
		return 0;
	hd__os_thread_nap(); /* its worker may be switching away from it: then it has saved the context now */
	if (!hd__os_peek(&context, &p->context, sizeof context))
		return 0;
	char *sp = context.sp, *top = hd__stack_top(stack, ld_acq(&p->stack_class));
	size_t used = (size_t)(top - sp);
	if (sp < stack || sp >= top || used > USED_MAX || (uintptr_t)sp % 16 != 0)
		return 0;
	char *memory = hd__os_reserve(ROOM + used, 0);
	if (memory == NULL)
		return 0;
	if (copy_stack(&context, memory + ROOM, used) && ld_acq(&p->switches) == switches && ld_acq(&p->stack) == stack &&
	    HD__GENERATION(ld_acq(&p->control)) == generation) { /* then p has not run meanwhile */
		hd__arch_make_call(&context, look_around, &walk);
		hd__arch_switch(&walk.back, &context);
	}
	hd__os_unreserve(memory, ROOM + used);
	int n = walk.count - OWN_FRAMES;
	for (int i = 0; i < n; i++)
		frames[i] = walk.frames[i + OWN_FRAMES];
	return n > 0 ? n : 0;
}
