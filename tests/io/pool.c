/* io/pool.c - jobs that can be interrupted, and jobs that are left behind. */
#include <stdlib.h>

#include "io/pool.h"
#include "os/fault.h"
#include "os/futex.h"
#include "sync/common.h"

/* ---- interruptible: a system call that would block for ever ---- */

struct sleeper {
	struct hd__job job;
	uint32_t *word; /* it sleeps while this is 0 */
	int stopped;	/* why it did not sleep on */
};

static long asleep;

static void sleep_on_word(struct hd__job *job)
{
	struct sleeper *s = (struct sleeper *)job;

	add(&asleep, 1);
	while (__atomic_load_n(s->word, __ATOMIC_ACQUIRE) == 0 && (s->stopped = hd__job_stop(job)) == 0)
		hd__os_futex_wait(s->word, 0, HD_FOREVER);
	add(&asleep, -1);
}

static int sleep_in_pool(uint32_t *word, hd_time until, int *stopped)
{
	struct sleeper s = { .job = { .run = sleep_on_word, .kind = HD__JOB_INTERRUPTIBLE }, .word = word };
	int err = hd__pool_run(&s.job, until, HD_WAIT_BLOCKING);

	*stopped = s.stopped;
	return err;
}

static void wake(uint32_t *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	hd__os_futex_wake(word);
}

static void *sleep_for_ever(void *word)
{
	int stopped;

	CHECK_EQ(sleep_in_pool(word, HD_FOREVER, &stopped), 0);
	return (void *)(long)stopped;
}

static void await_asleep(long n)
{
	while (value_of(&asleep) != n)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
}

HD_WORKERS_TEST(pool_interrupts_a_job_that_is_called_off)
{
	uint32_t words[4] = { 0 };
	void *result;
	int stopped;

	while (sleep_in_pool(&words[0], hd_after(HD_MS(1)), &stopped) == -ETIMEDOUT)
		; /* no thread had begun it */
	CHECK_EQ(stopped, -ETIMEDOUT);
	hd_pid cancelled = spawned(hd_spawn(sleep_for_ever, &words[1]));
	hd_pid killed = spawned(hd_spawn(sleep_for_ever, &words[2]));
	hd_pid woken = spawned(hd_spawn(sleep_for_ever, &words[3]));
	await_asleep(3);
	CHECK_EQ(hd_cancel(cancelled), 0);
	CHECK_EQ(hd_join(cancelled, &result, HD_FOREVER), 0);
	CHECK_EQ((long)result, -ECANCELED);
	CHECK_EQ(hd_terminate(killed, HD_FOREVER), 0);
	CHECK_EQ(value_of(&asleep), 1);
	wake(&words[3]);
	CHECK_EQ(hd_join(woken, &result, HD_FOREVER), 0);
	CHECK_EQ((long)result, 0);
	(void)workers;
}

/* What may block for ever does not keep others from running. */
HD_PROCESS_TEST_WITH(pool_has_threads_for_others_beside_endless_jobs, .blocking_threads = 1)
{
	uint32_t words[5] = { 0 }, awake = 1;
	hd_pid pids[5];
	int stopped;

	for (int i = 0; i < 5; i++)
		pids[i] = spawned(hd_spawn(sleep_for_ever, &words[i]));
	await_asleep(5);
	CHECK_EQ(sleep_in_pool(&awake, HD_FOREVER, &stopped), 0);
	hd__fault_arm(HD__FAULT_THREAD, 1, true); /* the one that is idle will do */
	struct sleeper s = { .job = { .run = sleep_on_word, .kind = HD__JOB_WAITED_FOR }, .word = &awake };
	CHECK_EQ(hd__pool_run(&s.job, HD_FOREVER, HD_WAIT_BLOCKING), 0);
	hd__fault_arm(HD__FAULT_THREAD, 0, false);
	for (int i = 0; i < 5; i++) {
		wake(&words[i]);
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	}
}

/* All threads may be asleep for ever: a job does not wait behind them. */
HD_PROCESS_TEST(pool_queues_nothing_behind_endless_jobs)
{
	uint32_t word = 0, awake = 1;
	hd_pid pid = spawned(hd_spawn(sleep_for_ever, &word));
	int stopped;

	await_asleep(1);
	hd__fault_arm(HD__FAULT_THREAD, 1, true);
	struct sleeper s = { .job = { .run = sleep_on_word, .kind = HD__JOB_WAITED_FOR }, .word = &awake };
	CHECK_EQ(hd__pool_run(&s.job, HD_FOREVER, HD_WAIT_BLOCKING), -EAGAIN);
	CHECK_EQ(sleep_in_pool(&awake, HD_FOREVER, &stopped), -EAGAIN);
	hd__fault_arm(HD__FAULT_THREAD, 0, false);
	CHECK_EQ(hd__pool_run(&s.job, HD_FOREVER, HD_WAIT_BLOCKING), 0);
	wake(&word);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
}

static long woken_calls, stopped_calls;

static void *sleep_often(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (int i = 0; i < hd_scaled(40); i++) {
		uint32_t word = next_random(&seed) % 2;
		int stopped = 0, err = sleep_in_pool(&word, hd_after(HD_US(next_random(&seed) % 60)), &stopped);
		CHECK(err == 0 || err == -ETIMEDOUT || err == -ECANCELED);
		CHECK(stopped == 0 || (err == 0 && word == 0));
		CHECK(err != 0 || word == 1 || stopped != 0);
		add(err == 0 && stopped == 0 ? &woken_calls : &stopped_calls, 1);
		hd_cancel_clear();
	}
	return NULL;
}

/* The deadline, a cancel and the end of the job race. */
HD_WORKERS_TEST(pool_answers_what_became_of_a_job)
{
	hd_pid pids[6];
	unsigned seed = (unsigned)workers;

	for (long i = 0; i < 6; i++)
		pids[i] = spawned(hd_spawn(sleep_often, (void *)(i + 1)));
	for (int i = 0; i < hd_scaled(60); i++) {
		int err = hd_cancel(pids[next_random(&seed) % 6]);
		CHECK(err == 0 || err == -ESRCH);
		CHECK_EQ(hd_sleep(HD_US(next_random(&seed) % 40)), 0);
	}
	for (int i = 0; i < 6; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	CHECK(stopped_calls > 0);
}

/* ---- abandonable: the process does not wait for what may take long ---- */

struct errand {
	struct hd__job job;
	struct hd_semaphore *until;
};

static long run_errands, dropped;

static void run_errand(struct hd__job *job)
{
	struct errand *e = (struct errand *)job;

	add(&run_errands, 1);
	if (e->until != NULL)
		CHECK_EQ(hd_semaphore_wait(e->until, HD_FOREVER), 0);
}

static void drop_errand(struct hd__job *job)
{
	add(&dropped, 1);
	free(job);
}

static int send(struct hd_semaphore *until, hd_time deadline)
{
	struct errand *e = calloc(1, sizeof *e);

	CHECK(e != NULL);
	*e = (struct errand){ { .run = run_errand, .drop = drop_errand, .kind = HD__JOB_ABANDONABLE }, until };
	int err = hd__pool_run(&e->job, deadline, HD_WAIT_BLOCKING);
	if (err == 0)
		drop_errand(&e->job);
	return err;
}

static struct hd_semaphore back;

static void *send_for_ever(void *arg)
{
	return (void *)(long)send(arg, HD_FOREVER);
}

static void await_errands(const long *counter, long n)
{
	while (value_of(counter) < n)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
}

HD_WORKERS_TEST(pool_drops_a_job_that_its_process_has_left)
{
	void *result;

	hd_semaphore_init(&back, 0);
	set(&run_errands, 0);
	set(&dropped, 0);
	CHECK_EQ(send(NULL, 0), -ETIMEDOUT);
	CHECK_EQ(value_of(&run_errands), 0);
	CHECK_EQ(send(NULL, HD_FOREVER), 0);
	CHECK_EQ(value_of(&dropped), 2);
	hd_pid cancelled = spawned(hd_spawn(send_for_ever, &back));
	hd_pid killed = spawned(hd_spawn(send_for_ever, &back));
	await_errands(&run_errands, 3);
	CHECK_EQ(send(&back, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_cancel(cancelled), 0);
	CHECK_EQ(hd_join(cancelled, &result, HD_FOREVER), 0);
	CHECK_EQ((long)result, -ECANCELED);
	CHECK_EQ(hd_terminate(killed, HD_FOREVER), 0);
	long begun = value_of(&run_errands);
	CHECK(begun >= 3 && begun <= 4);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(hd_semaphore_signal(&back), 0);
	await_errands(&dropped, 5);
	(void)workers;
}

static void *send_often(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (int i = 0; i < hd_scaled(40); i++) {
		int err = send(NULL, hd_after(HD_US(next_random(&seed) % 30)));
		CHECK(err == 0 || err == -ETIMEDOUT || err == -ECANCELED);
		hd_cancel_clear();
	}
	return NULL;
}

HD_WORKERS_TEST(pool_drops_every_job_once)
{
	hd_pid pids[6];
	unsigned seed = (unsigned)workers;

	set(&dropped, 0);
	for (long i = 0; i < 6; i++)
		pids[i] = spawned(hd_spawn(send_often, (void *)(i + 1)));
	for (int i = 0; i < hd_scaled(60); i++) {
		int err = hd_cancel(pids[next_random(&seed) % 6]);
		CHECK(err == 0 || err == -ESRCH);
		CHECK_EQ(hd_sleep(HD_US(next_random(&seed) % 30)), 0);
	}
	for (int i = 0; i < 6; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	await_errands(&dropped, 6 * hd_scaled(40));
	CHECK_EQ(value_of(&dropped), 6 * hd_scaled(40));
}

/* The runtime ends while a thread runs a job that no process waits for: it drops the job later. */
static void *leave_an_errand(void *arg)
{
	CHECK_EQ(send(&back, hd_after(HD_MS(1))), -ETIMEDOUT);
	return arg;
}

HD_TEST(pool_may_have_left_jobs_when_the_runtime_ends)
{
	hd_semaphore_init(&back, 0);
	CHECK_EQ(run_with_workers(2, leave_an_errand, NULL), 0);
	CHECK_EQ(value_of(&dropped) + value_of(&run_errands), 1);
	CHECK_EQ(hd_semaphore_signal(&back), 0);
	/* Its thread frees the pool then; where threads are simulated, ASan does not find the pool in the hands of one that is left. */
	while (value_of(&dropped) < 1 || (hd_is_simulated() && hd__os_thread_count() > 1))
		sched_yield();
}
