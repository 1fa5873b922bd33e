/* sched/workers.h - tests that run with one worker, with two and with eight, and processes that are each on a worker of their own. */
#ifndef TESTS_SCHED_WORKERS_H
#define TESTS_SCHED_WORKERS_H

#include <errno.h>

#include "harness/process.h"
#include "wait/threads.h"

#define WORKERS_MAX 8

/* HD_WORKERS_TEST(name) { ... } runs its body as the first process of a runtime three times: `workers` is 1, then 2, then 8.
 * What the body leaves in its file's variables, the next run finds there. */
#define HD_WORKERS_TEST(name) HARNESS_WORKERS(HD_TEST, name, 1, 2, WORKERS_MAX)
#define HD_WORKERS_STRESS(name) HARNESS_WORKERS(HD_STRESS, name, 1, 2, WORKERS_MAX)
/* The same for what one worker alone cannot show. */
#define HD_MANY_WORKERS_TEST(name) HARNESS_WORKERS(HD_TEST, name, 2, WORKERS_MAX)
#define HD_MANY_WORKERS_STRESS(name) HARNESS_WORKERS(HD_STRESS, name, 2, WORKERS_MAX)

#define HARNESS_WORKERS(how, name, ...)                                                                                        \
	static void name##_body(int workers);                                                                                  \
	static void *name##_main(void *workers)                                                                                \
	{                                                                                                                      \
		CHECK_EQ(hd_pin(), 0); /* the first process stays on the first worker */                                       \
		name##_body((int)(long)workers);                                                                               \
		return NULL;                                                                                                   \
	}                                                                                                                      \
	how(name)                                                                                                              \
	{                                                                                                                      \
		const int counts[] = { __VA_ARGS__ };                                                                          \
		for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++)                                                \
			CHECK_EQ(run_with_workers(counts[i], name##_main, (void *)(long)counts[i]), 0);                        \
	}                                                                                                                      \
	static void name##_body(int workers)

static inline int run_with_workers(int n, hd_entry first, void *arg)
{
	return hd_run(&(struct hd_config){ .workers = (unsigned)n, .fixed = true }, first, arg);
}

/* Whether another round is due: of n, unless the machine is so busy that those before took seconds and it is not a stress test. For
 * one loop at a time. */
static bool under_stress;

static inline bool another_round(int round, int n)
{
	static hd_time began;

	if (round == 0)
		began = kernel_now();
	return round < n && (under_stress || round < 3 || kernel_now() < began + HD_MS(1500));
}

static inline long add(long *counter, long n)
{
	return __atomic_add_fetch(counter, n, __ATOMIC_ACQ_REL);
}

static inline long value_of(const long *counter)
{
	return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

static inline void set(long *counter, long n)
{
	__atomic_store_n(counter, n, __ATOMIC_RELEASE);
}

static inline int worker_of(hd_pid pid)
{
	struct hd_process_info info;

	CHECK_EQ(hd_process_info(pid, &info), 0);
	return info.worker;
}

/* ---- a process for each worker ---- */

/* As many processes as there are workers, no two of which start on the same one: whoever has started keeps its worker, without a
 * safe point and unpreempted, until all have. */
struct crew {
	hd_entry entry;
	int size;
	bool stays;
	long started, placed;
	struct hd_semaphore ready; /* all are placed */
	struct member {
		struct crew *crew;
		void *arg;
		hd_pid pid;
		int worker;
	} members[WORKERS_MAX];
};

static inline void *join_crew(void *arg)
{
	struct member *me = arg;
	hd_entry entry = me->crew->entry;
	void *its_arg = me->arg;

	CHECK_EQ(hd_preempt_disable(), 0);
	add(&me->crew->started, 1);
	while (value_of(&me->crew->started) < me->crew->size)
		sched_yield();
	if (me->crew->stays)
		CHECK_EQ(hd_pin(), 0);
	CHECK_EQ(hd_preempt_enable(), 0);
	me->worker = worker_of(hd_self());
	if (add(&me->crew->placed, 1) == me->crew->size)
		CHECK_EQ(hd_semaphore_signal(&me->crew->ready), 0); /* the crew may be gone from here on */
	return entry(its_arg);
}

/* The caller waits, so that its worker is free too, until every member has a worker, and wakes no sooner: it would preempt one that has not begun to
 * keep its worker, and another would take its place. Nobody must be able to keep it from that. Then
 * the members stay where they are (pinned), or may move. */
static inline void start_crew_that(bool stays, struct crew *crew, const struct hd_spawn *how, int size, hd_entry entry,
				   void *const *args)
{
	int priority = hd_priority(hd_self());

	*crew = (struct crew){ .entry = entry, .size = size, .stays = stays };
	hd_semaphore_init(&crew->ready, 0);
	CHECK_EQ(hd_set_priority(hd_self(), 80), 0); /* or the first that is better keeps us from spawning the second */
	for (int i = 0; i < size; i++) {
		struct member *m = &crew->members[i];
		m->crew = crew;
		m->arg = args != NULL ? args[i] : NULL;
		struct hd_spawn with = how != NULL ? *how : (struct hd_spawn){ .name = NULL };
		if (with.priority == 0)
			with.priority = priority;
		m->pid = hd_spawn_with(&with, join_crew, m);
		CHECK(m->pid > 0);
	}
	CHECK_EQ(hd_semaphore_wait(&crew->ready, HD_FOREVER), 0);
	CHECK_EQ(hd_set_priority(hd_self(), priority), 0);
}

static inline void start_crew(struct crew *crew, const struct hd_spawn *how, int size, hd_entry entry, void *const *args)
{
	start_crew_that(true, crew, how, size, entry, args);
}

static inline void join_crew_members(struct crew *crew)
{
	for (int i = 0; i < crew->size; i++)
		CHECK_EQ(hd_join(crew->members[i].pid, NULL, HD_FOREVER), 0);
}

/* Whether the members started on as many workers as there are. */
static inline bool is_apart(const struct crew *crew)
{
	unsigned seen = 0;

	for (int i = 0; i < crew->size; i++)
		seen |= 1u << crew->members[i].worker;
	return __builtin_popcount(seen) == crew->size;
}

#endif
