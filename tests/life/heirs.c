/* life/heirs.c - ids that nobody has had yet: of the block's next process, or left over from a runtime of before. */
#include "sched/workers.h"

static void *nothing(void *arg)
{
	return arg;
}

static hd_pid id(long generation, long slot)
{
	return generation << 24 | slot;
}

HD_WORKERS_TEST(heir_that_is_not_born_yet_cannot_be_asked_for_anything)
{
	struct hd_process_info info;

	(void)workers;
	for (int round = 0; round < 3; round++) {
		for (long slot = 1; slot < 100; slot++)
			for (long generation = round + 1; generation < 6; generation++) {
				hd_pid pid = id(generation, slot);
				CHECK_EQ(hd_join(pid, NULL, 0), -ESRCH);
				CHECK_EQ(hd_detach(pid), -ESRCH);
				CHECK_EQ(hd_suspend(pid, HD_FOREVER), -ESRCH);
				CHECK_EQ(hd_resume(pid), -ESRCH);
				CHECK_EQ(hd_set_priority(pid, 30), -ESRCH);
				CHECK_EQ(hd_process_info(pid, &info), -ESRCH);
			}
		hd_pid pids[100];
		for (int i = 0; i < 100; i++)
			CHECK((pids[i] = hd_spawn(nothing, NULL)) > 0);
		for (int i = 0; i < 100; i++)
			CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	}
}

static int stop;
static long latest, stolen;

/* Joins and detaches whoever may be next. */
static void *covet(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	while (!read_flag(&stop)) {
		hd_pid pid = value_of(&latest) + ((hd_pid)(next_random(&seed) % 3) << 24);
		int err = next_random(&seed) % 2 ? hd_join(pid, NULL, 0) : hd_detach(pid);
		add(&stolen, err == 0);
	}
	return NULL;
}

/* Each process is collected once: by us or by those who guess its id. */
HD_WORKERS_TEST(heir_is_collected_once_by_whoever_guesses_its_id)
{
	struct plain_thread *threads[2];
	long n = hd_scaled(50000) / workers, kept = 0;

	stop = 0;
	stolen = 0;
	latest = id(1, 1); /* not our own */
	for (long i = 0; i < 2; i++)
		threads[i] = start_thread(covet, (void *)(i + 1));
	for (long i = 0; i < n; i++) {
		hd_pid pid = hd_spawn(nothing, NULL);
		CHECK(pid > 0);
		set(&latest, pid);
		int err;
		while ((err = hd_join(pid, NULL, HD_FOREVER)) == -EBUSY)
			hd_yield();
		CHECK(err == 0 || err == -ESRCH || err == -EINVAL);
		kept += err == 0;
	}
	set_flag(&stop, 1);
	for (int i = 0; i < 2; i++)
		join_thread(threads[i]);
	struct hd_stats stats;
	do {
		hd_sleep(HD_US(10)); /* who was detached may still be about to end */
		CHECK_EQ(hd_stats(&stats), 0);
	} while (stats.ended < (uint64_t)n);
	CHECK_EQ(stats.live_processes, 1);
	CHECK_EQ(kept + stolen, n);
}
