/* life/info.c - what processes say of themselves and of each other. */
#include "life/common.h"

#include <string.h>

#include "sched/workers.h"

static struct hd_semaphore never;

static void *wait_forever(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	return arg;
}

static void *sleep_long(void *arg)
{
	hd_sleep_until(HD_FOREVER);
	return arg;
}

static void *join_it(void *arg)
{
	CHECK_EQ(hd_join(*(hd_pid *)arg, NULL, HD_FOREVER), 0);
	return NULL;
}

static void *suspend_itself(void *arg)
{
	CHECK_EQ(hd_suspend(hd_self(), HD_FOREVER), 0);
	return arg;
}

static void spawn_one_of_each(hd_pid pids[7])
{
	struct hd_spawn how = { .daemon = true, .priority = 50 };

	pids[0] = born(hd_spawn_with(&how, wait_forever, NULL));
	pids[1] = born(hd_spawn_with(&how, sleep_long, NULL));
	pids[2] = born(hd_spawn_with(&how, join_it, &pids[0]));
	pids[3] = born(hd_spawn_with(&how, suspend_itself, NULL));
	pids[4] = born(hd_spawn_with(&how, nothing, NULL)); /* a zombie now */
	how.priority = 20;
	pids[5] = born(hd_spawn_with(&how, nothing, NULL)); /* ready */
	how.suspended = true;
	pids[6] = born(hd_spawn_with(&how, nothing, NULL));
}

HD_PROCESS_TEST(process_info_of_every_state)
{
	static const struct {
		enum hd_state state;
		enum hd_wait why;
		int priority;
		bool suspended, has_stack;
	} expected[] = {
		{ HD_WAITING, HD_WAIT_SEMAPHORE, 50, false, true }, { HD_WAITING, HD_WAIT_SLEEP, 50, false, true },
		{ HD_WAITING, HD_WAIT_JOIN, 50, false, true },	    { HD_SUSPENDED, HD_WAIT_NONE, 50, true, true },
		{ HD_ENDED, HD_WAIT_NONE, 50, false, false },	    { HD_READY, HD_WAIT_NONE, 20, false, false },
		{ HD_SUSPENDED, HD_WAIT_NONE, 20, true, false },
	};
	static hd_pid pids[7];

	spawn_one_of_each(pids);
	for (int i = 0; i < 7; i++) {
		struct hd_process_info info = info_of(pids[i]);

		CHECK_EQ(info.state, expected[i].state);
		CHECK_EQ(info.why, expected[i].why);
		CHECK_EQ(info.priority, expected[i].priority);
		CHECK_EQ(info.suspended, expected[i].suspended);
		CHECK_EQ(info.stack_size > 0, expected[i].has_stack);
		CHECK_EQ(info.stack_used > 0, expected[i].has_stack);
		CHECK(info.stack_used <= info.stack_size);
		CHECK_EQ(info.switches, i < 5 ? 1 : 0);
		CHECK_EQ(info.policy, HD_FIFO);
		CHECK(info.daemon);
		CHECK(!info.detached);
		CHECK_EQ(info.holder, i == 2 ? pids[0] : 0);
		CHECK(info.since > 0);
	}
	struct hd_process_info me = info_of(hd_self());
	CHECK_EQ(me.state, HD_RUNNING);
	CHECK(!me.daemon && !me.suspended && !me.detached);
	CHECK_STR(me.name, "main");
}

static void look_from_outside(void *arg)
{
	hd_pid *pids = arg;
	struct hd_process_info info;

	CHECK_EQ(info_of(pids[0]).why, HD_WAIT_SEMAPHORE);
	CHECK_EQ(info_of(pids[1]).why, HD_WAIT_SLEEP);
	CHECK_EQ(info_of(pids[2]).why, HD_WAIT_JOIN);
	CHECK_EQ(state_of(pids[3]), HD_SUSPENDED);
	CHECK_EQ(state_of(pids[4]), HD_ENDED);
	CHECK_EQ(state_of(pids[6]), HD_SUSPENDED);
	CHECK_EQ(hd_process_info(0, &info), -ESRCH);
	CHECK_EQ(hd_process_info(-5, &info), -ESRCH);
	CHECK_EQ(hd_process_info(pids[0] + ((hd_pid)1 << 24), &info), -ESRCH);
}

HD_PROCESS_TEST(process_info_from_a_plain_thread)
{
	static hd_pid pids[7];

	spawn_one_of_each(pids);
	on_plain_thread(look_from_outside, pids);
}

HD_PROCESS_TEST(process_info_of_the_dead)
{
	hd_pid zombie = born(hd_spawn_with(&(struct hd_spawn){ .name = "zombie", .priority = 41 }, nothing, NULL));

	CHECK_EQ(state_of(zombie), HD_ENDED);
	CHECK_STR(info_of(zombie).name, "zombie");
	CHECK_EQ(info_of(zombie).priority, 41);
	CHECK_EQ(hd_join(zombie, NULL, 0), 0);
	CHECK(is_gone(zombie));
	hd_pid heir = born(hd_spawn(nothing, NULL)); /* perhaps in the same slot */
	CHECK(is_gone(zombie));
	CHECK_EQ(state_of(heir), HD_READY);
}

static void *spin_for(void *arg)
{
	hd_time until = hd_after(*(hd_time *)arg);

	while (hd_now() < until)
		hd_checkpoint();
	return NULL;
}

/* Whoever runs after a process that ended is not billed for it. */
HD_PROCESS_TEST(cpu_time_of_a_process_that_ended_is_not_billed_to_the_next)
{
	hd_time some = HD_MS(200), none = 0;
	hd_pid busy = born(hd_spawn(spin_for, &some)), idle = born(hd_spawn(spin_for, &none));

	hd_yield();
	CHECK(info_of(busy).cpu_time >= HD_MS(100)); /* coarse */
	CHECK(info_of(busy).cpu_time > info_of(idle).cpu_time);
}

static void *spin_and_stay(void *arg)
{
	spin_for(arg);
	hd_yield();
	return NULL;
}

HD_PROCESS_TEST(cpu_time_counts_what_a_process_used)
{
	hd_time some = HD_MS(100);
	hd_pid pid = born(hd_spawn(spin_and_stay, &some));

	hd_yield();
	CHECK(info_of(pid).cpu_time >= HD_MS(50));
	CHECK_EQ(info_of(pid).switches, 1);
	hd_yield();
	CHECK_EQ(info_of(pid).switches, 2);
	CHECK_EQ(info_of(pid).cpu_time == 0, false);
}

struct seen {
	hd_pid pids[16];
	int count, stop_at;
};

static int see(const struct hd_process_info *info, void *arg)
{
	struct seen *seen = arg;

	CHECK(seen->count < 16);
	seen->pids[seen->count++] = info->pid;
	return seen->count == seen->stop_at ? 7 : 0;
}

static bool has_seen(const struct seen *seen, hd_pid pid)
{
	int times = 0;

	for (int i = 0; i < seen->count; i++)
		times += seen->pids[i] == pid;
	CHECK(times <= 1);
	return times == 1;
}

static void see_from_outside(void *arg)
{
	CHECK_EQ(hd_each_process(see, arg), 0);
}

HD_PROCESS_TEST(each_process_sees_every_one_once)
{
	static hd_pid pids[7];
	struct seen seen = { .stop_at = -1 }, again = { .stop_at = 3 }, outside = { .stop_at = -1 };

	spawn_one_of_each(pids);
	hd_pid gone = born(hd_spawn_at(50, nothing, NULL));
	CHECK_EQ(hd_join(gone, NULL, 0), 0);

	CHECK_EQ(hd_each_process(see, &seen), 0);
	CHECK_EQ(seen.count, 8);
	CHECK(has_seen(&seen, hd_self()));
	for (int i = 0; i < 7; i++)
		CHECK(has_seen(&seen, pids[i]));
	CHECK(!has_seen(&seen, gone));

	CHECK_EQ(hd_each_process(see, &again), 7); /* what fn answered */
	CHECK_EQ(again.count, 3);

	on_plain_thread(see_from_outside, &outside);
	for (int i = 0; i < 7; i++)
		CHECK(has_seen(&outside, pids[i]) ||
		      i == 5); /* that one may run meanwhile, and be about to end when it is looked at */
	CHECK(has_seen(&outside, hd_self()) && outside.count <= 8);
}

/* fn may call heddle, even to wait and to end what it is shown. */
static int resume_and_join(const struct hd_process_info *info, void *arg)
{
	if (info->pid != hd_self()) {
		CHECK_EQ(hd_resume(info->pid), 0);
		CHECK_EQ(hd_join(info->pid, NULL, HD_FOREVER), 0);
		++*(int *)arg;
	}
	return 0;
}

HD_PROCESS_TEST(each_process_may_call_heddle)
{
	int n = 0;

	for (int i = 0; i < 50; i++)
		born(hd_spawn_with(&(struct hd_spawn){ .suspended = true }, nothing, NULL));
	CHECK_EQ(hd_each_process(resume_and_join, &n), 0);
	CHECK_EQ(n, 50);
	CHECK_EQ(stats_now().live_processes, 1);
}

HD_PROCESS_TEST(waiting_at_lists_in_the_order_of_running)
{
	hd_pid pids[5], ready[5] = { 0 };

	for (int i = 0; i < 5; i++)
		pids[i] = born(hd_spawn_at(33, nothing, NULL));
	CHECK_EQ(hd_waiting_at(33, ready, 5), 5);
	CHECK_EQ(memcmp(pids, ready, sizeof ready), 0);
	CHECK_EQ(hd_waiting_at(33, NULL, 0), 5);
	memset(ready, 0, sizeof ready);
	CHECK_EQ(hd_waiting_at(33, ready, 2), 5);
	CHECK_EQ(ready[1], pids[1]);
	CHECK_EQ(ready[2], 0);
	CHECK_EQ(hd_waiting_at(40, NULL, 0), 0); /* the runner is not ready, it runs */
	CHECK_EQ(hd_waiting_at(10, NULL, 0), 0);
	CHECK_EQ(hd_waiting_at(80, NULL, 0), 0);
	CHECK_EQ(hd_waiting_at(9, NULL, 0), -EINVAL);
	CHECK_EQ(hd_waiting_at(81, NULL, 0), -EINVAL);
}

static void *self_in_child(void *arg)
{
	*(hd_pid *)arg = hd_self();
	return NULL;
}

HD_PROCESS_TEST(self_is_what_spawn_answered)
{
	hd_pid self = 0, pid = born(hd_spawn(self_in_child, &self));

	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK_EQ(self, pid);
	CHECK(hd_self() != pid);
}

/* ---- errno ---- */

static struct hd_semaphore turn;

static void *own_errno(void *arg)
{
	int mine = *(int *)arg;

	CHECK_EQ(errno, 0); /* a new process begins with none */
	errno = mine;
	for (int i = 0; i < 10; i++) {
		hd_yield();
		CHECK_EQ(errno, mine);
		hd_sleep(HD_US(10));
		CHECK_EQ(errno, mine);
		CHECK_EQ(hd_semaphore_wait(&turn, HD_FOREVER), 0);
		CHECK_EQ(errno, mine);
		hd_semaphore_signal(&turn);
		CHECK_EQ(errno, mine);
	}
	return NULL;
}

HD_PROCESS_TEST(every_process_has_its_own_errno)
{
	static int codes[] = { EIO, ENOENT, EPERM, EINVAL };
	hd_pid pids[4];

	hd_semaphore_init(&turn, 1);
	errno = ERANGE;
	for (int i = 0; i < 4; i++)
		pids[i] = born(hd_spawn_at(38 + i, own_errno, &codes[i]));
	CHECK_EQ(errno, ERANGE);
	join_all(pids, 4);
	CHECK_EQ(errno, ERANGE);
}

static void errno_on_plain_threads(void *arg)
{
	struct hd_process_info info;
	struct hd_stats stats;

	errno = EDOM;
	CHECK_EQ(hd_sleep(HD_US(100)), 0);
	CHECK_EQ(hd_semaphore_wait(arg, hd_after(HD_US(100))), -ETIMEDOUT);
	hd_pid pid = born(hd_spawn(nothing, NULL));
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_process_info(pid, &info), -ESRCH);
	CHECK_EQ(hd_stats(&stats), 0);
	CHECK_EQ(hd_suspend(pid, 0), -ESRCH);
	CHECK_EQ(hd_yield(), -ENOTSUP);
	CHECK_EQ(errno, EDOM);
}

HD_PROCESS_TEST(errors_do_not_touch_errno)
{
	struct hd_semaphore s = HD_SEMAPHORE(0);
	char long_name[] = "a name that is longer than any name may be";

	errno = EDOM;
	CHECK_EQ(hd_spawn(NULL, NULL), -EINVAL);
	CHECK_EQ(hd_spawn_with(&(struct hd_spawn){ .name = long_name }, nothing, NULL), -ENAMETOOLONG);
	CHECK_EQ(hd_join(hd_self(), NULL, HD_FOREVER), -EDEADLK);
	CHECK_EQ(hd_join(12345, NULL, HD_FOREVER), -ESRCH);
	CHECK_EQ(hd_set_priority(hd_self(), 3), -EINVAL);
	CHECK_EQ(hd_semaphore_wait(&s, hd_after(HD_US(10))), -ETIMEDOUT);
	CHECK_EQ(hd_semaphore_try_wait(&s), -EAGAIN);
	CHECK_EQ(hd_run(NULL, nothing, NULL), -EBUSY);
	CHECK_EQ(hd_shutdown(-1), -EINVAL);
	CHECK_EQ(errno, EDOM);
	on_plain_thread(errno_on_plain_threads, &s);
}

/* Blocks are used again while another worker looks at them. */
static long looking;

static int look_at(const struct hd_process_info *info, void *arg)
{
	(void)arg;
	CHECK(info->pid > 0);
	return 0;
}

static void *look_at_all(void *arg)
{
	while (value_of(&looking) != 0) {
		CHECK_EQ(hd_each_process(look_at, NULL), 0);
		hd_yield();
	}
	return arg;
}

static void *take_turns(void *mutex)
{
	CHECK_EQ(hd_mutex_lock(mutex, HD_FOREVER), 0);
	hd_yield();
	CHECK_EQ(hd_mutex_unlock(mutex), 0);
	return NULL;
}

HD_MANY_WORKERS_TEST(each_process_while_others_begin_wait_and_end)
{
	static struct hd_mutex mutex;
	static struct crew crew;
	hd_pid pids[8];

	(void)workers;
	set(&looking, 1);
	start_crew(&crew, NULL, 2, look_at_all, NULL);
	for (int i = 0; another_round(i, hd_scaled(300)); i++) {
		for (int j = 0; j < 8; j++)
			pids[j] = born(hd_spawn(take_turns, &mutex));
		join_all(pids, 8);
	}
	set(&looking, 0);
	join_crew_members(&crew);
}

/* ---- counts ---- */

static void *count_them(void *arg)
{
	while (value_of(&looking) != 0) {
		struct hd_process_counts counts;
		uint64_t waiting = 0, ready = 0;
		CHECK_EQ(hd_count_processes(&counts), 0);
		for (int i = 0; i < HD_WAIT_KINDS; i++)
			waiting += counts.waiting[i];
		for (int i = 0; i <= HD_PRIORITY_TIMING; i++)
			ready += counts.ready[i];
		CHECK_EQ(waiting, counts.states[HD_WAITING]);
		CHECK_EQ(ready, counts.states[HD_READY]);
		CHECK_EQ(counts.states[0], 0);
		CHECK(counts.longest_ready >= 0);
		hd_yield();
	}
	return arg;
}

HD_MANY_WORKERS_TEST(counts_of_processes_add_up_while_others_begin_wait_and_end)
{
	static struct hd_mutex mutex;
	static struct crew crew;
	hd_pid pids[8];

	(void)workers;
	set(&looking, 1);
	start_crew(&crew, NULL, 2, count_them, NULL);
	for (int i = 0; another_round(i, hd_scaled(300)); i++) {
		for (int j = 0; j < 8; j++)
			pids[j] = born(hd_spawn(take_turns, &mutex));
		join_all(pids, 8);
	}
	set(&looking, 0);
	join_crew_members(&crew);
}

static void *wait_for_signal(void *semaphore)
{
	CHECK_EQ(hd_semaphore_wait(semaphore, HD_FOREVER), 0);
	return NULL;
}

static void *end_at_once(void *arg)
{
	return arg;
}

HD_WORKERS_TEST(counts_of_processes_that_rest_are_exact)
{
	struct hd_process_counts counts;
	struct hd_semaphore gate = HD_SEMAPHORE(0);
	hd_pid pids[9];

	for (int i = 0; i < 4; i++)
		pids[i] = born(hd_spawn(wait_for_signal, &gate));
	for (int i = 4; i < 6; i++)
		pids[i] = born(hd_spawn(sleep_long, NULL));
	for (int i = 6; i < 8; i++)
		pids[i] = born(hd_spawn_with(&(struct hd_spawn){ .suspended = true }, end_at_once, NULL));
	pids[8] = born(hd_spawn(end_at_once, NULL));
	do {
		hd_sleep(HD_MS(1));
		CHECK_EQ(hd_count_processes(&counts), 0);
	} while (counts.states[HD_WAITING] != 6 || counts.states[HD_ENDED] != 1);
	CHECK_EQ(counts.waiting[HD_WAIT_SEMAPHORE], 4);
	CHECK_EQ(counts.waiting[HD_WAIT_SLEEP], 2);
	CHECK_EQ(counts.states[HD_SUSPENDED], 2);
	CHECK_EQ(counts.states[HD_RUNNING], 1);
	CHECK_EQ(counts.states[HD_READY], 0);
	CHECK_EQ(counts.longest_ready, 0);
	for (int i = 0; i < 4; i++)
		hd_semaphore_signal(&gate);
	for (int i = 4; i < 6; i++)
		CHECK_EQ(hd_terminate(pids[i], HD_FOREVER), 0);
	for (int i = 6; i < 8; i++)
		CHECK_EQ(hd_resume(pids[i]), 0);
	join_all(pids, 9);
	CHECK(workers > 0);
}

/* busy and idle together are the time that has passed, for each worker; and neither goes back. */
HD_WORKERS_TEST(stats_of_busy_and_idle_time_add_up)
{
	struct hd_stats before, after;

	(void)workers;
	CHECK_EQ(hd_stats(&before), 0);
	hd_time then = hd_now();
	for (int i = 0; i < 10; i++)
		CHECK_EQ(hd_sleep(HD_MS(2)), 0);
	hd_time passed = hd_now() - then;
	CHECK_EQ(hd_stats(&after), 0);
	CHECK(after.idle_time > before.idle_time || hd_is_simulated()); /* there, time may pass while a worker is busy */
	CHECK(after.busy_time + after.idle_time >= before.busy_time + before.idle_time + after.workers * (uint64_t)passed);
}

HD_TEST(counts_of_processes_need_a_runtime)
{
	struct hd_process_counts counts;

	CHECK_EQ(hd_count_processes(&counts), -ENXIO);
}
