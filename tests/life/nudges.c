/* life/nudges.c - requests to one process from its own worker and from plain threads at once. */
#include <errno.h>

#include "harness/process.h"
#include "wait/threads.h"

static hd_pid target;
static int stop;
static struct hd_semaphore never;

static void *wait_for_ever(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	return arg;
}

static void *steer(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	while (!read_flag(&stop)) {
		hd_pid pid = __atomic_load_n(&target, __ATOMIC_RELAXED);
		int err = 0;
		switch (next_random(&seed) % 4) {
		case 0:
			err = hd_suspend(pid, next_random(&seed) % 2 ? HD_FOREVER : 0);
			break;
		case 1:
			err = hd_resume(pid);
			break;
		default:
			err = hd_set_priority(pid, 20 + (int)(next_random(&seed) % 40));
		}
		CHECK(err == 0 || err == -EALREADY || err == -EINPROGRESS || err == -ESRCH);
	}
	return NULL;
}

/* A request from here must not take a note for delivered that is still on its way. */
HD_PROCESS_TEST(nudge_requests_from_home_and_from_threads)
{
	struct plain_thread *threads[2];
	int n = hd_scaled(300000);

	target = hd_spawn(wait_for_ever, NULL);
	for (long i = 0; i < 2; i++)
		threads[i] = start_thread(steer, (void *)(i + 1));
	for (int i = 0; i < n; i++)
		CHECK_EQ(hd_set_priority(target, 20 + i % 50), 0);
	set_flag(&stop, 1);
	for (int i = 0; i < 2; i++)
		join_thread(threads[i]);
	CHECK_EQ(hd_set_priority(target, 33), 0);
	CHECK_EQ(hd_priority(target), 33);
	hd_resume(target);
	CHECK_EQ(hd_semaphore_signal(&never), 0);
	CHECK_EQ(hd_join(target, NULL, HD_FOREVER), 0);
}

static void *end_soon(void *arg)
{
	hd_yield();
	return arg;
}

/* The target ends under the requests, and its block is used again at once: none of them hits the next tenant. */
HD_PROCESS_TEST(nudge_requests_never_hit_the_next_tenant)
{
	struct plain_thread *threads[2];
	int n = hd_scaled(
		hd_is_simulated() ? 8000 : 20000); /* the threads never rest: more would take a simulated run too many steps */
	hd_pid first = target = hd_spawn(end_soon, NULL);

	for (long i = 0; i < 2; i++)
		threads[i] = start_thread(steer, (void *)(i + 1));
	for (int i = 0; i < n; i++) {
		hd_pid pid = hd_spawn(end_soon, NULL);
		CHECK(pid > 0);
		__atomic_store_n(&target, pid, __ATOMIC_RELAXED);
		if (i % 3 == 0)
			hd_set_priority(pid, 20 + i % 50);
		while (hd_join(pid, NULL, hd_after(HD_MS(1))) == -ETIMEDOUT)
			hd_resume(pid);
		hd_pid bystander = hd_spawn(end_soon, NULL); /* has the same block */
		CHECK_EQ(hd_priority(bystander), 40);
		CHECK_EQ(hd_join(bystander, NULL, HD_FOREVER), 0);
	}
	set_flag(&stop, 1);
	for (int i = 0; i < 2; i++)
		join_thread(threads[i]);
	hd_resume(first);
	CHECK_EQ(hd_join(first, NULL, HD_FOREVER), 0);
}

static void *end_without_a_safe_point(void *arg)
{
	for (volatile int i = 0; i < 300; i++)
		;
	return arg;
}

static long steered;

/* Steers the target, and whoever will have its block next: that one's id is known before it is there. */
static void *steer_heirs(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	while (!read_flag(&stop)) {
		hd_pid pid = __atomic_load_n(&target, __ATOMIC_RELAXED) + ((hd_pid)(next_random(&seed) % 3) << 24);
		if (hd_set_priority(pid, 41 + (int)(next_random(&seed) % 20)) == 0)
			__atomic_fetch_add(&steered, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* A nudge keeps its target from ending before it has come in: or it would be posted for the heir while it is still in the inbox. */
HD_PROCESS_TEST(nudge_on_its_way_keeps_its_target)
{
	struct plain_thread *threads[2];
	long enough = hd_scaled(5000);

	target = hd_spawn(end_without_a_safe_point, NULL);
	CHECK_EQ(hd_join(target, NULL, HD_FOREVER), 0);
	for (long i = 0; i < 2; i++)
		threads[i] = start_thread(steer_heirs, (void *)(i + 1));
	for (int i = 0; i < hd_scaled(2000000) && __atomic_load_n(&steered, __ATOMIC_RELAXED) < enough; i++) {
		hd_pid pid = hd_spawn(end_without_a_safe_point, NULL);
		CHECK(pid > 0);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		__atomic_store_n(&target, pid, __ATOMIC_RELAXED);
	}
	set_flag(&stop, 1);
	for (int i = 0; i < 2; i++)
		join_thread(threads[i]);
}
