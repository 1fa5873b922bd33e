/* when/holder.c - behaviours that wait while they have cowns. */
#include "rt/capture.h"
#include "when/common.h"

static struct hd_semaphore gate;

static int passed; /* the gate */

static void waits(void *arg, void *const data[])
{
	(void)arg, (void)data;
	CHECK_EQ(hd_semaphore_wait(&gate, HD_FOREVER), 0);
	__atomic_add_fetch(&passed, 1, __ATOMIC_ACQ_REL);
}

static void sleeps(void *arg, void *const data[])
{
	(void)arg, (void)data;
	CHECK_EQ(hd_sleep(HD_MS(5)), 0);
}

static void yields(void *arg, void *const data[])
{
	(void)arg, (void)data;
	for (int i = 0; i < 10; i++)
		hd_yield();
	CHECK_EQ(hd_semaphore_signal(&gate), 0);
	CHECK_EQ(hd_semaphore_wait(&gate, HD_FOREVER), 0); /* there is a signal: it does not wait */
}

static void gives_up_then_sleeps(void *cowns, void *const data[])
{
	hd_cown **c = cowns;

	(void)data;
	CHECK_EQ(hd_cown_release_early(c[0]), 0);
	CHECK_EQ(hd_cown_release_early(c[1]), 0);
	CHECK_EQ(hd_sleep(HD_US(1)), 0);
}

static void make(hd_behaviour fn, void *arg, hd_cown **uses, size_t n, unsigned flags)
{
	struct hd_when how = { .fn = fn, .arg = arg, .uses = uses, .n = n, .flags = flags };

	CHECK_EQ(hd_when_batch(&how, 1), 0);
}

static int waits_at_gate(const struct hd_process_info *info, void *arg)
{
	(void)arg;
	return info->why == HD_WAIT_SEMAPHORE;
}

static const char told[] = "waits in hd_semaphore_wait and has cowns meanwhile";

/* A wait is told of once for each function and kind of wait, with its place. */
HD_WORKERS_TEST(when_that_waits_with_cowns_is_reported_once)
{
	hd_cown *c = made_cown(NULL);

	(void)workers;
	passed = 0;
	capture_begin();
	for (int i = 0; i < 5; i++) {
		make(waits, NULL, &c, 1, 0);
		make(sleeps, NULL, &c, 1, 0);
	}
	for (int i = 0; i < 5; i++) {
		while (hd_each_process(waits_at_gate, NULL) == 0)
			hd_yield();
		CHECK_EQ(hd_semaphore_signal(&gate), 0);
		while (__atomic_load_n(&passed, __ATOMIC_ACQUIRE) == i)
			hd_yield();
	}
	quiesce();
	const char *text = capture_end();
	CHECK_EQ(times_said(text, told), 1);
	CHECK_EQ(times_said(text, "waits in hd_sleep and has cowns meanwhile"), 1);
	CHECK(says(text, "HD_WHEN_MAY_BLOCK"));
	if (!hd_is_simulated())
		CHECK(says(text, "in sleeps, "));
	hd_cown_release(c);
	check_none_left();
}

/* Neither one that was allowed to wait, nor one without cowns, nor one that merely yields. */
HD_WORKERS_TEST(when_that_may_wait_is_not_reported)
{
	hd_cown *c[2] = { made_cown(NULL), made_cown(NULL) };

	(void)workers;
	capture_begin();
	make(sleeps, NULL, c, 1, HD_WHEN_MAY_BLOCK);
	make(sleeps, NULL, c, 2, HD_WHEN_MAY_BLOCK);
	make(sleeps, NULL, NULL, 0, 0);
	make(yields, NULL, c, 2, 0);
	make(gives_up_then_sleeps, c, c, 2, 0);
	make(yields, NULL, c, 2, 0);
	quiesce();
	CHECK_EQ(times_said(capture_end(), "has cowns meanwhile"), 0);
	hd_cown_release(c[0]);
	hd_cown_release(c[1]);
	check_none_left();
}

/* A process that runs on the worker after such a behaviour may wait as ever. */
HD_PROCESS_TEST(process_that_waits_after_a_behaviour_is_not_reported)
{
	hd_cown *c = made_cown(NULL);

	capture_begin();
	for (int i = 0; i < 3; i++) {
		make(yields, NULL, &c, 1, 0);
		CHECK_EQ(hd_sleep(HD_US(1)), 0);
		quiesce();
	}
	CHECK_EQ(times_said(capture_end(), "has cowns meanwhile"), 0);
	hd_cown_release(c);
}
