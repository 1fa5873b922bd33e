/* sync/findings.c - interleavings that went wrong once. Most of them need the simulated runtime to happen. */
#include "life/life.h"
#include "sched/workers.h"

static struct hd_process *block_of(hd_pid pid)
{
	return hd__table_find(&hd__self()->sched->table, pid);
}

/* ---- barrier ---- */
static struct hd_barrier bar;
static long passed, timed;
static long at_bar;
static void *meet(void *arg)
{
	add(&at_bar, 1);
	while (value_of(&at_bar) % 2 != 0)
		sched_yield();
	int err = hd_barrier_wait(&bar, hd_after((long)arg));
	if (err >= 0)
		add(&passed, 1);
	else {
		CHECK_EQ(err, -ETIMEDOUT);
		add(&timed, 1);
	}
	return NULL;
}
static void *barrier_main(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		hd_barrier_init(&bar, 2);
		passed = timed = 0;
		struct crew crew;
		start_crew(&crew, NULL, 2, meet, (void *[]){ (void *)2000L, (void *)3000L });
		join_crew_members(&crew);
		CHECK_EQ(bar.arrived, 0);
		CHECK(passed != 1);
	}
	return NULL;
}
HD_TEST(barrier_does_not_count_who_has_left)
{
	CHECK_EQ(run_with_workers(2, barrier_main, NULL), 0);
}
static void *tries(void *arg)
{
	for (int i = 0; i < 20; i++) {
		int err = hd_barrier_wait(&bar, 0);
		CHECK(err == -ETIMEDOUT || err == 1 || err == 0);
	}
	return arg;
}
static void *barrier_try_main(void *arg)
{
	hd_barrier_init(&bar, 2);
	struct crew crew;
	start_crew(&crew, NULL, 2, tries, NULL);
	join_crew_members(&crew);
	CHECK_EQ(bar.arrived, 0);
	return arg;
}
HD_TEST(barrier_try_leaves_no_trace)
{
	CHECK_EQ(run_with_workers(2, barrier_try_main, NULL), 0);
}

/* ---- shutdown with a moved waiter ---- */
static struct hd_monitor mon;
static int inside;
static void *moved(void *arg)
{
	hd_monitor_enter(&mon, HD_FOREVER);
	inside = 1;
	hd_monitor_wait(&mon, NULL, HD_FOREVER);
	hd_monitor_exit(&mon);
	return arg;
}
static void *holder(void *arg)
{
	hd_monitor_enter(&mon, HD_FOREVER);
	hd_monitor_signal(&mon, NULL);
	hd_sleep(HD_SEC(1000)); /* ends here, inside */
	return arg;
}
static void *moved_main(void *arg)
{
	hd_spawn(moved, NULL);
	while (!inside)
		hd_sleep(HD_MS(1));
	hd_spawn(holder, NULL);
	hd_sleep(HD_MS(1));
	hd_shutdown(3);
	return arg;
}
HD_TEST(runtime_ends_though_somebody_signalled_waits_for_a_mutex_of_nobody)
{
	CHECK_EQ(run_with_workers(1, moved_main, NULL), 3);
}

/* ---- inheritance at hand-over ---- */
static struct hd_mutex im = HD_MUTEX(HD_INHERIT);
static int order;
static int a_at, m_at;
static void *low(void *arg)
{
	hd_mutex_lock(&im, HD_FOREVER);
	a_at = ++order;
	hd_mutex_unlock(&im);
	return arg;
}
static void *high(void *arg)
{
	hd_mutex_lock(&im, HD_FOREVER);
	hd_mutex_unlock(&im);
	return arg;
}
static void *middle(void *arg)
{
	m_at = ++order;
	return arg;
}
HD_PROCESS_TEST(inherit_heir_has_its_boost_before_it_runs)
{
	hd_mutex_lock(&im, HD_FOREVER);
	hd_pid a = hd_spawn_at(30, low, NULL);
	hd_sleep(HD_MS(1));			/* a waits */
	hd_pid h = hd_spawn_at(60, high, NULL); /* h waits behind it */
	hd_sleep(HD_MS(1));
	hd_set_priority(hd_self(), 55);
	hd_pid m = hd_spawn_at(50, middle, NULL); /* ready */
	hd_mutex_unlock(&im);			  /* a's: and it is wanted at 60 */
	hd_join(h, NULL, HD_FOREVER);
	hd_join(a, NULL, HD_FOREVER);
	hd_join(m, NULL, HD_FOREVER);
	CHECK(a_at < m_at);
}

/* ---- condition wait, HD_INHERIT, suspended ---- */
static struct hd_mutex cm = HD_MUTEX(HD_INHERIT);
static struct hd_condition cc;
static void *cond_waiter(void *arg)
{
	hd_mutex_lock(&cm, HD_FOREVER);
	for (int i = 0; i < 3; i++)
		hd_condition_wait(&cc, &cm, hd_after(HD_US(20)));
	hd_mutex_unlock(&cm);
	return arg;
}
static struct crew ccrew;
static void *cond_suspender(void *arg)
{
	for (int i = 0; i < 4; i++) {
		hd_suspend(ccrew.members[0].pid, 0);
		hd_resume(ccrew.members[0].pid);
	}
	return arg;
}
static void *cond_either(void *arg)
{
	return arg == NULL ? cond_waiter(arg) : cond_suspender(arg);
}
static void *cond_main(void *arg)
{
	start_crew(&ccrew, NULL, 2, cond_either, (void *[]){ NULL, (void *)1L });
	join_crew_members(&ccrew);
	return arg;
}
HD_TEST(condition_wait_may_be_suspended_as_it_gives_up_the_mutex)
{
	CHECK_EQ(run_with_workers(2, cond_main, NULL), 0);
}

/* ---- a request to find the boost lost ---- */
static struct hd_mutex rm = HD_MUTEX(HD_INHERIT);
static hd_pid owner;
static struct hd_semaphore go, done_;
static void *rowner(void *arg)
{
	hd_mutex_lock(&rm, HD_FOREVER);
	hd_semaphore_signal(&go);
	hd_semaphore_wait(&done_, HD_FOREVER);
	hd_mutex_unlock(&rm);
	return arg;
}
static void *rwaiter(void *arg)
{
	if ((long)arg == 0)
		return rowner(arg);
	hd_set_priority(hd_self(), 50 + (int)(long)arg);
	while (ld_acq(&rm.owner) == 0)
		sched_yield();
	hd_mutex_lock(&rm, HD_FOREVER);
	hd_mutex_unlock(&rm);
	return NULL;
}
static struct crew rcrew;
static void *reboost_main(void *arg)
{
	start_crew(&rcrew, NULL, 4, rwaiter, (void *[]){ NULL, (void *)1L, (void *)2L, (void *)3L });
	owner = rcrew.members[0].pid;
	hd_sleep(HD_MS(50));
	struct hd_process *p = block_of(owner);
	uint64_t control = ld_acq(&p->control);
	int n = 0;
	for (int i = 1; i < 4; i++) {
		struct hd_process_info info;
		hd_process_info(rcrew.members[i].pid, &info);
		n += info.state == HD_WAITING && info.why == HD_WAIT_MUTEX;
	}
	if (n == 3) {
		CHECK_EQ(control & (HD__REBOOST | HD__NUDGED), 0);
		CHECK_EQ(HD__CONTROL_BOOST(control), 53);
		CHECK_EQ(ld_rlx(&p->priority), 53);
	}
	hd_semaphore_signal(&done_);
	join_crew_members(&rcrew);
	return arg;
}
HD_TEST(inherit_boost_is_found_as_often_as_asked)
{
	CHECK_EQ(run_with_workers(4, reboost_main, NULL), 0);
}

/* ---- a priority lost ---- */
static struct hd_semaphore ps;
static hd_pid pv;
static void *pwait(void *arg)
{
	hd_semaphore_wait(&ps, HD_FOREVER);
	return arg;
}
static struct crew pcrew;
static void *psetter(void *arg)
{
	if (arg == NULL)
		return pwait(arg);
	hd_set_priority(pcrew.members[0].pid, (int)(long)arg);
	hd_set_priority(pcrew.members[0].pid, (int)(long)arg + 1);
	return NULL;
}
static void *priority_main(void *arg)
{
	start_crew(&pcrew, &(struct hd_spawn){ .movable = true }, 3, psetter, (void *[]){ NULL, (void *)30L, (void *)20L });
	pv = pcrew.members[0].pid;
	for (int i = 1; i < 3; i++)
		hd_join(pcrew.members[i].pid, NULL, HD_FOREVER);
	hd_sleep(HD_MS(10));
	struct hd_process *p = block_of(pv);
	if (p->state == HD_WAITING && !(ld_acq(&p->control) & HD__NUDGED))
		CHECK_EQ(ld_rlx(&p->priority), hd_priority(pv));
	hd_semaphore_signal(&ps);
	hd_join(pv, NULL, HD_FOREVER);
	return arg;
}
HD_TEST(priority_of_a_waiting_movable_process_is_the_last_one_set)
{
	CHECK_EQ(run_with_workers(4, priority_main, NULL), 0);
}

/* ---- a group's owner is terminated while a member fails ---- */
static struct hd_mutex gm;
static struct hd_semaphore gready;
static void *stubborn(void *arg)
{
	hd_mutex_lock(&gm, HD_FOREVER); /* not a cancellation point, but a terminated one leaves */
	return arg;
}
static struct hd_group gg;
static struct crew gcrew;
static struct hd_semaphore opened, spawned;
static void *gfails(void *arg)
{
	hd_semaphore_wait(&gready, HD_FOREVER);
	hd_fail(5);
	return arg;
}
static void *gspawner(void *arg)
{
	for (int i = 0; i < 3; i++)
		hd_group_spawn(&gg, stubborn, NULL);
	return arg;
}
static void *gactor(void *arg)
{
	if (arg == NULL) { /* the owner */
		hd_group_spawn(&gg, gfails, NULL);
		hd_semaphore_signal(&opened);
		hd_group_wait(&gg, HD_FOREVER);
	} else { /* on another worker */
		hd_semaphore_wait(&opened, HD_FOREVER);
		gspawner(NULL);
		hd_semaphore_signal(&spawned);
		hd_semaphore_signal(&gready);
		CHECK_EQ(hd_group_cancel(&gg), 0);
	}
	return NULL;
}
static void *group_main(void *arg)
{
	hd_mutex_lock(&gm, HD_FOREVER);
	start_crew(&gcrew, NULL, 2, gactor, (void *[]){ NULL, (void *)1L });
	hd_semaphore_wait(&spawned, HD_FOREVER);
	CHECK_EQ(hd_terminate(gcrew.members[0].pid, HD_FOREVER), 0);
	join_crew_members(&gcrew);
	return arg;
}
HD_TEST(group_of_a_terminated_owner_is_terminated_though_others_cancel_it)
{
	CHECK_EQ(run_with_workers(2, group_main, NULL), 0);
}

/* ---- a spawn into a group that fails ---- */
static void *nothing(void *arg)
{
	return arg;
}
HD_PROCESS_TEST(group_that_nobody_could_be_spawned_into_is_not_open)
{
	struct hd_group g = { .owner = 0 };
	CHECK_EQ(hd_group_cancel(&g), 0);
	CHECK_EQ(hd_group_spawn(&g, nothing, NULL), -ECANCELED);
}

/* ---- a group opened under a cleanup that was popped ---- */
static struct hd_group outer;
static struct hd_semaphore one = { .excess = 1 };
static void *sleeper(void *arg)
{
	hd_sleep(HD_SEC(100));
	return arg;
}
static void spawns(void *arg)
{
	(void)arg;
	hd_group_spawn(&outer, sleeper, NULL);
}
static void *opener(void *arg)
{
	hd_semaphore_critical(&one, spawns, NULL, HD_FOREVER);
	hd_sleep(HD_SEC(100));
	hd_group_wait(&outer, HD_FOREVER);
	return arg;
}
HD_PROCESS_TEST(group_may_outlive_a_cleanup_pushed_before_it)
{
	hd_pid p = hd_spawn(opener, NULL);
	hd_sleep(HD_MS(10));
	CHECK_EQ(hd_terminate(p, HD_FOREVER), 0);
}
