/* arch/carry.c - what other runtimes keep for each kernel thread, though it is a process's.
 *
 * Owns:      the weak symbols of these runtimes: a program that does not link with one of them has none of its functions.
 * Callers:   the scheduler, before it changes stacks; the rooms above, where they tell TSan what happens before what.
 *
 * With one worker a process that gives it away has done what it did before the next one does anything, and a program may rely on that: TSan is
 * told so at each switch. With several it is not: there only what a process does through heddle's calls is ordered, so that TSan finds the
 * race of two processes even when they ran one after the other. */
#include "arch/carry.h"

#include <errno.h>
#include <stdint.h>

__attribute__((weak)) struct hd__exceptions *__cxa_get_globals(void);
__attribute__((weak)) void __cxa_end_catch(void);

__attribute__((weak)) void __sanitizer_start_switch_fiber(void **fake_stack, const void *bottom, size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void *fake_stack, const void **bottom, size_t *size);
__attribute__((weak)) void __asan_unpoison_memory_region(void const volatile *address, size_t size);

__attribute__((weak)) void *__tsan_get_current_fiber(void);
__attribute__((weak)) void *__tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void *fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void *fiber, unsigned flags);
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);
__attribute__((weak)) void AnnotateBenignRaceSized(const char *file, int line, const volatile void *address, size_t size,
						   const char *why);
enum { TSAN_NO_SYNC = 1 };

bool hd__carries, hd__sanitized, hd__tells;

static bool has_exceptions, has_asan, has_tsan;

#if HD__TSAN
#define SEES_HEDDLE true
#else
#define SEES_HEDDLE false
#endif

__attribute__((constructor(101))) static void find_runtimes(void)
{
	has_exceptions = __cxa_get_globals != NULL && __cxa_end_catch != NULL;
	has_asan = __asan_unpoison_memory_region != NULL && __sanitizer_start_switch_fiber != NULL;
	has_tsan = __tsan_create_fiber != NULL;
	hd__sanitized = has_asan || has_tsan;
	hd__carries = has_exceptions || hd__sanitized;
	hd__tells = has_tsan && !SEES_HEDDLE;
}

int hd__sanitizer_threads(void)
{
	return has_tsan; /* it has one in the background, from the first pthread_create on */
}

/* ---- stacks ---- */

void hd__carrier_init(struct hd__carrier *c, bool alone)
{
	*c = (struct hd__carrier){ .aboard = &c->own, .alone = alone || SEES_HEDDLE };
	if (has_tsan)
		c->own.fiber = __tsan_get_current_fiber();
	if (hd__tells && AnnotateBenignRaceSized != NULL) /* all processes of a thread use it, and heddle carries its value */
		AnnotateBenignRaceSized(__FILE__, __LINE__, &errno, sizeof errno, "errno");
}

/* A fiber's past begins with that of the fiber that creates it. So it is the thread's own: that has none of any process's. */
static void *new_fiber(struct hd__carrier *c)
{
	if (c->alone || c->aboard == &c->own)
		return __tsan_create_fiber(0);
	__tsan_switch_to_fiber(c->own.fiber, TSAN_NO_SYNC);
	void *fiber = __tsan_create_fiber(0);
	__tsan_switch_to_fiber(c->aboard->fiber, TSAN_NO_SYNC);
	return fiber;
}

void hd__carried_init(struct hd__carrier *c, struct hd__carried *carried, void *bottom, size_t size)
{
	*carried = (struct hd__carried){ .bottom = bottom, .size = size };
	if (has_tsan)
		carried->fiber = new_fiber(c);
}

/* The C++ runtime has its account in the storage that is in use: that of one with its own needs no carrying. */
__attribute__((cold)) static void exchange_tls(struct hd__carried *from, struct hd__carried *to)
{
	if (has_exceptions && from->tls == NULL)
		from->exceptions = *__cxa_get_globals();
	hd__tls_use(to->tls);
	if (has_exceptions && to->tls == NULL)
		*__cxa_get_globals() = to->exceptions;
}

void hd__carried_exchange(struct hd__carried *from, struct hd__carried *to, bool last, bool alone)
{
	if (from->tls != to->tls) {
		exchange_tls(from, to);
	} else if (has_exceptions) {
		struct hd__exceptions *here = __cxa_get_globals();
		from->exceptions = *here;
		*here = to->exceptions;
	}
	if (has_asan) {
		__sanitizer_start_switch_fiber(last ? NULL : &from->fake_stack, to->bottom, to->size);
		__sanitizer_finish_switch_fiber(to->fake_stack, &from->bottom, &from->size);
	}
	if (hd__tells) {
		__tsan_switch_to_fiber(to->fiber, alone ? 0 : TSAN_NO_SYNC);
		if (last)
			__tsan_destroy_fiber(from->fiber);
	}
}

void hd__carry(struct hd__carrier *c, struct hd__carried *next)
{
	struct hd__carried *before = c->aboard;

	if (before == next)
		return;
	c->aboard = next;
	hd__carried_exchange(before, next, before == &c->gone, c->alone);
}

#if HD__TSAN
__attribute__((no_sanitize("thread"))) void hd__carry_fiber(struct hd__carrier *c)
{
	__tsan_switch_to_fiber(c->aboard->fiber, 0);
	if (c->gone.fiber != NULL)
		__tsan_destroy_fiber(c->gone.fiber);
	c->gone.fiber = NULL;
}
#endif

void hd__exceptions_drop(void)
{
	while (has_exceptions && __cxa_get_globals()->caught != NULL) /* asked anew: a destructor may have waited, and moved */
		__cxa_end_catch();
}

/* Frames that were not returned from have left their red zones poisoned, for the next process and for the memory's next user. */
static void unpoison(const struct hd__carried *carried)
{
	if (has_asan)
		__asan_unpoison_memory_region(carried->bottom, carried->size);
}

void hd__carry_for_the_last_time(struct hd__carrier *c)
{
	unpoison(c->aboard);
	c->gone = *c->aboard;
	c->aboard = &c->gone;
}

void hd__carried_fini(struct hd__carried *carried)
{
	unpoison(carried);
	if (carried->fiber != NULL)
		__tsan_destroy_fiber(carried->fiber);
}

/* ---- what happens before what ---- */

/* TSan forgets what it was told about memory that is freed, and a semaphore may be freed before its waiter has learned who signalled it. So it
 * is told about addresses of our own. Two things that share one are ordered more than they should be; with so many that is rare. */
static char *token_of(const void *what)
{
	static char tokens[1 << 16];

	return &tokens[(uintptr_t)what * UINT64_C(0x9e3779b97f4a7c15) >> 48];
}

void hd__publish_slowly(const void *what)
{
	__tsan_release(token_of(what));
}

void hd__learn_slowly(const void *what)
{
	__tsan_acquire(token_of(what));
}
