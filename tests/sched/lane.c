/* sched/lane.c - one thread at a time is inside a lane: its worker, by the bias or by the lock, or a visitor. */
#include "sched/lane.h"

#include <pthread.h>
#include <stdlib.h>

#include <heddle.h>

#include "harness/harness.h"
#include "os/fault.h"
#include "os/thread.h"

static struct {
	struct hd__sched *sched;
	struct hd_worker *worker;
	unsigned entries, visits; /* to do */
	int inside;		  /* no atomic operation: TSan looks too */
	bool done;		  /* the worker has entered for the last time */
} t;

static void be_inside(void)
{
	CHECK_EQ(t.inside++, 0);
	for (int i = 0; i < 5; i++)
		hd__point(); /* where the simulator may let another thread go on */
	CHECK_EQ(--t.inside, 0);
}

static void *enter_often(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < t.entries; i++) {
		hd__enter(t.worker);
		be_inside();
		hd__leave(t.worker);
		if (i % 1000 == 20)
			hd__rest(t.worker);
	}
	hd__rest(t.worker);
	st_rel(&t.done, true);
	return NULL;
}

static void *visit_often(void *arg)
{
	bool insists = arg != NULL;
	unsigned visits = 0;

	for (unsigned i = 0; i < t.visits || (insists && visits == 0); i++) {
		if (!hd__visit(t.worker, insists))
			continue;
		visits++;
		be_inside();
		hd__unvisit(t.worker);
	}
	return NULL;
}

static void enter_and_visit(unsigned calm, unsigned entries, unsigned visits)
{
	pthread_t thread[3];

	t.sched = aligned_alloc(64, (sizeof *t.sched + 2 * sizeof(struct hd_worker) + 63) / 64 * 64);
	t.sched->nworkers = t.sched->nregular = t.sched->room = 2;
	t.sched->watched = true;
	t.sched->calm = calm;
	hd__board_init(&t.sched->board);
	t.worker = &t.sched->workers[1];
	*t.worker =
		(struct hd_worker){ .sched = t.sched, .index = 1, .crowd = true, .lane = { .calm = calm, .calm_after = calm } };
	t.entries = entries;
	t.visits = visits;
	CHECK_EQ(pthread_create(&thread[0], NULL, enter_often, NULL), 0);
	CHECK_EQ(pthread_create(&thread[1], NULL, visit_often, &t), 0);
	CHECK_EQ(pthread_create(&thread[2], NULL, visit_often, NULL), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	CHECK(t.done);
	CHECK(hd__visit_surely(t.worker));
	be_inside();
	hd__unvisit(t.worker);
	free(t.sched);
}

HD_TEST(lane_has_one_thread_inside)
{
	unsigned calm = hd__os_barrier_init();

	enter_and_visit(calm == 0 ? 0 : 2, hd_is_simulated() ? 60 : 1000000, hd_is_simulated() ? 20 : 2000);
}

HD_TEST(lane_has_one_thread_inside_when_barriers_begin_to_fail)
{
	unsigned calm = hd__os_barrier_init();

	hd__fault_arm(HD__FAULT_BARRIER, 3, true);
	enter_and_visit(calm == 0 ? 0 : 2, hd_is_simulated() ? 60 : 1000000, hd_is_simulated() ? 20 : 2000);
}

HD_TEST(lane_has_one_thread_inside_where_there_is_no_barrier)
{
	enter_and_visit(0, hd_is_simulated() ? 60 : 200000, hd_is_simulated() ? 20 : 2000);
}

static void *yield_and_shut_down(void *arg)
{
	for (int i = 0; i < 3000; i++)
		hd_yield(); /* until the lane is biased */
	hd__fault_arm(HD__FAULT_BARRIER, 1, true);
	CHECK_EQ(hd_shutdown(7), 0);
	return arg;
}

HD_TEST(lane_of_a_worker_that_ends_the_runtime_is_open_to_it)
{
	const struct hd_config config = { .workers = 2, .fixed = true };

	CHECK_EQ(hd_run(&config, yield_and_shut_down, NULL), 7);
}
