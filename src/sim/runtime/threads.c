/* sim/runtime/threads.c - simulated kernel threads, and what they sleep on.
 *
 * Owns:       the virtual threads: which runs, which sleeps on what word and until when; virtual time.
 * Invariant:  one thread goes on at a time, and another one only from a point: before an atomic operation, while it sleeps,
 *             when it gives the CPU away. Between two points nothing else happens: memory is sequentially consistent, but for
 *             stores that are late (st_late).
 * Callers:    the runtime and its tests, on the one kernel thread there is: at their points, by os.c and by libc.c. */
#define _GNU_SOURCE
#include "sim/runtime/threads.h"

#include <errno.h>
#include <execinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "arch/carry.h"
#include "base/assert.h"
#include "base/point.h"
#include "context.h"
#include "os/clock.h"
#include "sched/worker.h"
#include "sim/choice.h"
#include "sim/server.h"
#include "sim/sim.h"
#include "sim/threads.h"

#define THREADS_MAX 192
#define STACK_SIZE ((size_t)256 << 10)
#define STEP 100	 /* ns */
#define READING HD_US(2) /* of the clock */
#define STEPS_MAX 20000000
#define TRIES 4
#define TRIES_BY_CLOCK 100 /* as base/point.h has it */

enum state { FREE, READY, ASLEEP, ENDED };

struct thread {
	enum state state;
	struct hd__context context;
	struct hd_worker *self; /* what hd__self answers there */
	int saved_errno;
	unsigned waits;	      /* for locks */
	hd_time clock;	      /* in a run by the clock, while another thread goes on */
	const uint32_t *word; /* ASLEEP: on this; NULL: for time alone */
	hd_time until;
	uint64_t order; /* ASLEEP: smaller is earlier */
	void *(*fn)(void *);
	void *arg, *result;
	uint32_t ended; /* a word to sleep on */
	bool detached;
	bool hears; /* interrupts */
	char *stack;
	struct hd__carried carried; /* of the stack it was on when it stopped */
	unsigned char *late;	    /* where a store goes that the others do not see yet; NULL: none */
	unsigned char late_value;
	unsigned late_points; /* that it has passed since */
};

static struct {
	struct thread thread[THREADS_MAX];
	unsigned current;
	unsigned steps; /* in a row */
	uint64_t sleeps;
	unsigned threads;  /* none beyond */
	hd_time now, next; /* next: no thread that sleeps is due before */
	bool inside;	   /* code of this file runs: its points do not switch */
	bool by_clock;	   /* there is no plan; `now` is the clock of the current thread */
	hd_time earliest;  /* by the clock: none of the others goes on before */
	hd_time waking, oversleep;
} s;

int hd__sim_tries = TRIES;

bool hd__sim_fails(unsigned what)
{
	return hd__sim_threads && !s.by_clock && hd__sim_page->plan.faults & what &&
	       hd__sim_decide(HD__SIM_FAULT, 2, 1, NULL) == 1;
}

/* ---- which thread goes on ---- */

/* The compiler need not know that the stack changes. */
__attribute__((noinline)) static void switch_to(unsigned next)
{
	struct thread *from = &s.thread[s.current], *to = &s.thread[next];

	from->self = hd__self();
	from->saved_errno = errno;
	s.current = next;
	s.steps = 0;
	if (hd__carries)
		hd__carried_exchange(&from->carried, &to->carried, from->state == ENDED, true);
	hd__arch_switch(&from->context, &to->context);
	hd__set_self(from->self);
	errno = from->saved_errno;
}

/* Threads whose time has come are ready; s.next is the first time of the others. */
static void wake_due(void)
{
	if (s.now < s.next)
		return;
	s.next = HD_FOREVER;
	for (unsigned i = 0; i < s.threads; i++) {
		struct thread *t = &s.thread[i];
		if (t->state != ASLEEP)
			continue;
		if (t->until <= s.now)
			t->state = READY;
		else if (t->until < s.next)
			s.next = t->until;
	}
}

/* Nothing will ever happen again: some wake-up was lost, or the test waits for something that no thread does. */
static void stuck(void)
{
	for (unsigned i = 0; i < s.threads; i++)
		if (s.thread[i].state == ASLEEP)
			hd__complain("heddle: thread %u sleeps %s for ever\n", i,
				     s.thread[i].word != NULL ? "on a word" : "for time");
	hd__complain("heddle: every thread sleeps, and no deadline will come\n");
	if (s.by_clock)
		abort();
	hd__sim_give_up(HD__SIM_DEADLOCK);
}

/* For the story of the run: a line for each switch. */
static void tell(unsigned next)
{
	struct hd__sim_page *page = hd__sim_page;
	void *frames[HD__SIM_FRAMES];

	if (!page->tell)
		return;
	struct hd__sim_event *e = &page->event[page->events++ % HD__SIM_EVENTS_MAX];
	*e = (struct hd__sim_event){ .when = s.now - HD__BEGINNING,
				     .decision = page->result.decisions,
				     .who = s.current,
				     .next = next,
				     .holder = HD__SIM_NONE,
				     .state = s.thread[s.current].state == READY ? HD_READY : HD_WAITING,
				     .name = "thread",
				     .next_name = "thread" };
	int n = backtrace(frames, HD__SIM_FRAMES);
	for (int i = 0; i < n; i++)
		e->frame[e->frames++] = (uintptr_t)frames[i];
}

/* By the clock: when t goes on, if no other thread does anything to it. */
static hd_time goes_on_at(const struct thread *t)
{
	if (t->state == READY)
		return t->clock;
	return t->state == ASLEEP && t->until != HD_FOREVER ? t->until + s.oversleep : HD_FOREVER;
}

/* By the clock: the thread that is the earliest goes on. */
static void go_on(void)
{
	unsigned next = 0;
	hd_time first = HD_FOREVER;

	s.thread[s.current].clock = s.now;
	s.earliest = HD_FOREVER;
	for (unsigned i = 0; i < s.threads; i++) {
		hd_time at = goes_on_at(&s.thread[i]);
		if (at < first) {
			s.earliest = first;
			first = at;
			next = i;
		} else if (at < s.earliest) {
			s.earliest = at;
		}
	}
	if (first == HD_FOREVER)
		stuck();
	s.thread[next].state = READY;
	s.now = first;
	if (next != s.current)
		switch_to(next);
}

/* By the clock: so much of the current thread's time passes. */
static void pass(hd_time ns)
{
	s.now += ns;
	if (s.now > s.earliest)
		go_on();
}

void hd__sim_pay(enum hd__sim_deed deed)
{
	if (s.by_clock)
		pass(hd__sim_charge(deed, 0));
}

bool hd__sim_is_by_clock(void)
{
	return s.by_clock;
}

/* t is ready, by a deed of the current thread. */
static void make_ready(struct thread *t, hd_time delay)
{
	t->state = READY;
	t->clock = s.now + delay;
	if (t->clock < s.earliest)
		s.earliest = t->clock;
}

/* One step: another thread may go on. `stays`: the current one could. */
static void step(bool stays)
{
	if (s.by_clock) {
		go_on();
		return;
	}
	hd_pid who[THREADS_MAX];
	unsigned n = 0, first = stays ? s.current : s.current + 1;
	struct hd__sim_page *page = hd__sim_page;

	s.inside = true;
	s.now += STEP;
	if (++page->result.steps > (page->plan.steps != 0 ? page->plan.steps : STEPS_MAX))
		hd__sim_give_up(HD__SIM_NOT_OVER);
	if (s.next != HD_FOREVER && s.now < s.next && hd__sim_fails(HD__SIM_FAIL_TIME))
		s.now = s.next;
	if (stays && hd__sim_insists(++s.steps)) {
		s.steps = 0;
		stays = false;
		first = s.current + 1;
	}
	if (!stays)
		hd__sim_yielded(s.current + 1, true);
	for (;;) {
		wake_due();
		for (unsigned i = 0; i < s.threads; i++)
			if (s.thread[(first + i) % s.threads].state == READY)
				who[n++] = (first + i) % s.threads + 1;
		if (n > 0)
			break;
		if (s.next == HD_FOREVER)
			stuck();
		s.now = s.next;
	}
	enum hd__sim_kind kind = stays ? HD__SIM_STAYS : s.thread[s.current].state == READY ? HD__SIM_YIELDS : HD__SIM_LEAVES;
	unsigned free = stays ? 1 : kind == HD__SIM_YIELDS && n > 1 ? n - 1 : n;
	unsigned next = (unsigned)who[hd__sim_decide(kind, n, free, who)] - 1;
	hd__sim_mix(next);
	if (next != s.current)
		tell(next);
	s.inside = false;
	if (next != s.current)
		switch_to(next);
}

/* The others see it now. */
static void publish_late(struct thread *t)
{
	if (t->late != NULL)
		__atomic_store_n(t->late, t->late_value, __ATOMIC_RELAXED);
	t->late = NULL;
}

void hd__sim_publish_all(void)
{
	for (unsigned i = 0; i < s.threads; i++)
		publish_late(&s.thread[i]);
}

void hd__sim_store_late(unsigned char *where, unsigned char what)
{
	struct thread *me = &s.thread[s.current];

	publish_late(me);
	me->late = where;
	me->late_value = what;
	me->late_points = 0;
	if (!hd__sim_threads || s.by_clock)
		publish_late(me);
}

/* The access happens after the others have come to the same time, and then takes what it takes. */
static void pass_to_access(enum hd__sim_access access, const void *where)
{
	pass(hd__sim_charge(HD__SIM_BETWEEN, 0));
	pass(hd__sim_charge_access(access, where, s.current, s.now));
}

void hd__sim_pause(void)
{
	hd__sim_pay(HD__SIM_PAUSE);
}

void hd__sim_work(hd_time ns)
{
	pass(hd__sim_charge(HD__SIM_WORK, ns));
}

void hd__sim_point(enum hd__sim_access access, const void *where)
{
	if (s.by_clock) {
		pass_to_access(access, where);
		return;
	}
	struct thread *me = &s.thread[s.current];
	bool late = me->late != NULL && me->late_points++ > 0; /* the first point is the load that may come before the store */

	if (!s.inside)
		step(true);
	if (late)
		publish_late(me);
}

void hd__sim_give_way(void)
{
	hd__sim_pay(HD__SIM_CALL);
	if (hd__sim_threads && !s.inside)
		step(false);
}

hd_time hd__sim_now(void)
{
	return s.now;
}

hd_time hd__sim_read_clock(void)
{
	if (!s.by_clock)
		s.now += READING; /* so that a thread that waits for a time by reading the clock does not wait long */
	hd__sim_pay(HD__SIM_CLOCK);
	hd__point();
	return s.now;
}

void hd__sim_thread_sleep(const uint32_t *word, hd_time until)
{
	struct thread *me = &s.thread[s.current];

	me->word = word;
	me->until = until;
	me->order = ++s.sleeps;
	me->state = ASLEEP;
	if (until < s.next)
		s.next = until;
	step(false);
}

bool hd__sim_thread_wake(const uint32_t *word)
{
	struct thread *first = NULL;

	for (unsigned i = 0; i < s.threads; i++) {
		struct thread *t = &s.thread[i];
		if (t->state == ASLEEP && t->word == word && (first == NULL || t->order < first->order))
			first = t;
	}
	if (first != NULL)
		make_ready(first, s.waking);
	return first != NULL;
}

void hd__sim_thread_hear(bool hears)
{
	s.thread[s.current].hears = hears;
}

void hd__sim_thread_interrupt(unsigned index)
{
	struct thread *t = &s.thread[index];

	if (t->hears && t->state == ASLEEP)
		make_ready(t, s.waking);
}

/* ---- a thread's life ---- */

static void begin(void *arg)
{
	struct thread *me = arg;

	hd__set_self(NULL);
	errno = 0;
	me->result = me->fn(me->arg);
	me->ended = 1;
	me->state = ENDED;
	hd__sim_thread_wake(&me->ended);
	step(false);
	__builtin_unreachable();
}

int hd__sim_thread_start(unsigned *index, bool detached, void *(*fn)(void *), void *arg)
{
	unsigned i = 0;

	while (i < THREADS_MAX && s.thread[i].state != FREE && !(s.thread[i].state == ENDED && s.thread[i].detached))
		i++;
	if (i == THREADS_MAX)
		return EAGAIN;
	if (i >= s.threads)
		s.threads = i + 1;
	struct thread *t = &s.thread[i];
	char *stack = t->stack;
	if (stack != NULL && hd__carries)
		hd__carried_fini(&t->carried); /* of the thread that had it before, and did not return from its last frames */
	if (stack == NULL)
		stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED)
		return EAGAIN;
	*t = (struct thread){ .state = READY, .fn = fn, .arg = arg, .detached = detached, .stack = stack };
	t->carried = (struct hd__carried){ .bottom = stack, .size = STACK_SIZE };
	hd__arch_make(&t->context, stack + STACK_SIZE, begin, t);
	make_ready(t, s.waking);
	*index = i;
	return 0;
}

void hd__sim_thread_join(unsigned index, void **result)
{
	struct thread *t = &s.thread[index];

	while (t->state != ENDED)
		hd__sim_thread_sleep(&t->ended, HD_FOREVER);
	if (result != NULL)
		*result = t->result;
	t->state = FREE;
}

void hd__sim_thread_detach(unsigned index)
{
	s.thread[index].detached = true;
}

unsigned hd__sim_thread_current(void)
{
	return s.current;
}

int hd__sim_thread_count(void)
{
	int n = 0;

	for (unsigned i = 0; i < s.threads; i++)
		n += s.thread[i].state == READY || s.thread[i].state == ASLEEP;
	return n;
}

bool hd__sim_thread_sleeps(unsigned index)
{
	return s.thread[index].state == ASLEEP;
}

unsigned *hd__sim_thread_waits(void)
{
	return &s.thread[s.current].waits;
}

static void begin_run(void)
{
	memset(s.thread, 0, sizeof s.thread);
	s.thread[0].state = READY;
	s.current = 0;
	s.threads = 1;
	s.now = HD__BEGINNING;
	s.next = HD_FOREVER;
	hd__plain_clock = &hd__os_clock;
	hd__sim_threads = true;
}

bool hd__sim_threads_begin(void)
{
	if (!hd__sim_begin())
		return false;
	hd__sim_serve();
	begin_run();
	return true;
}

void hd__sim_clocks_begin(const struct hd__sim_costs *costs)
{
	hd__sim_costs_begin(costs);
	begin_run();
	s.by_clock = true;
	s.earliest = HD_FOREVER;
	s.waking = costs->waking;
	s.oversleep = costs->oversleep;
	hd__sim_tries = TRIES_BY_CLOCK;
}

void hd__sim_threads_end(void)
{
	hd__sim_threads = false;
	hd__sim_page->result.elapsed = s.now - HD__BEGINNING;
	hd__sim_page->result.verdict = HD__SIM_FINE;
}
