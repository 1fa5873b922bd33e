/* sync/inherit.c - priority inheritance: whoever has an HD_INHERIT mutex runs with at least the priority of whoever waits for it.
 *
 * With one worker the order is exact. Most tests are played from the owner's side: it takes the mutex at a low priority, lets the
 * others come, and looks who runs when. */
#include "sync/common.h"

static struct hd_mutex a = HD_MUTEX(HD_INHERIT), b = HD_MUTEX(HD_INHERIT), c = HD_MUTEX(HD_INHERIT);

static void *do_nothing(void *arg)
{
	return arg;
}

struct actor {
	const char *word;
	struct hd_mutex *own, *wants;
	hd_time until; /* 0: HD_FOREVER */
	int answer;
};

/* Takes its own mutex, if it has one, then the one that it wants, says its word, and gives all back. */
static void *act(void *arg)
{
	struct actor *me = arg;

	if (me->own != NULL)
		CHECK_EQ(hd_mutex_lock(me->own, HD_FOREVER), 0);
	me->answer = hd_mutex_lock(me->wants, me->until != 0 ? me->until : HD_FOREVER);
	trace("%s ", me->word);
	if (me->answer == 0)
		CHECK_EQ(hd_mutex_unlock(me->wants), 0);
	if (me->own != NULL)
		CHECK_EQ(hd_mutex_unlock(me->own), 0);
	return NULL;
}

/* Runs from now on, to the end of all who are ready. */
static void play(int priority, hd_entry entry, void *arg)
{
	run_at(priority, entry, arg);
	run_at(10, do_nothing, NULL);
}

static hd_pid spawn_actor(int priority, struct actor *actor)
{
	return spawned(hd_spawn_at(priority, act, actor));
}

static hd_pid spawn_word(int priority, const char *word)
{
	return spawned(hd_spawn_at(priority, say_word, (void *)word));
}

/* ---- the owner runs ---- */

static void *low_has_it(void *mutex)
{
	struct actor high = { .word = "high", .wants = mutex };

	CHECK_EQ(hd_mutex_lock(mutex, HD_FOREVER), 0);
	hd_pid pid = spawn_actor(60, &high);
	spawn_word(40, "middle");
	trace("low ");
	CHECK_EQ(hd_mutex_unlock(mutex), 0);
	trace("low-again ");
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	return NULL;
}

HD_PROCESS_TEST(inherit_owner_runs_before_those_between_it_and_its_waiter)
{
	play(20, low_has_it, &a);
	CHECK_STR(trace_text(), "low high middle low-again ");
}

HD_PROCESS_TEST(inherit_is_an_attribute)
{
	struct hd_mutex plain = HD_MUTEX(0);

	play(20, low_has_it, &plain);
	CHECK_STR(trace_text(), "middle low high low-again ");
}

HD_PROCESS_TEST(inherit_works_by_priority_and_with_barging)
{
	for (unsigned flags = 0; flags < 8; flags++) {
		struct hd_mutex m = HD_MUTEX(flags | HD_INHERIT);
		trace_clear();
		play(20, low_has_it, &m);
		CHECK_STR(trace_text(), "low high middle low-again ");
	}
}

static void *low_was_preempted(void *arg)
{
	struct actor high = { .word = "high", .wants = &a };
	hd_pid *pid = arg;

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	*pid = spawn_actor(60, &high);
	trace("low ");
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return NULL;
}

/* The priority that it was given is not the one that it runs with. */
static void *low_looks_at_itself(void *arg)
{
	struct actor high = { .word = "high", .wants = &a };

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	spawn_actor(60, &high);
	CHECK_EQ(hd_priority(hd_self()), 20);
	CHECK_EQ(info_on(hd_self()).priority, 20);
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return arg;
}

HD_PROCESS_TEST(inherit_does_not_change_what_hd_priority_says)
{
	play(20, low_looks_at_itself, NULL);
	CHECK_STR(trace_text(), "high ");
}

/* Recursion: the boost lasts until the last unlock. */
static void *low_has_it_twice(void *arg)
{
	struct actor high = { .word = "high", .wants = &a };

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	spawn_actor(60, &high);
	spawn_word(40, "middle");
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	trace("low ");
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return arg;
}

HD_PROCESS_TEST(inherit_lasts_until_the_last_unlock)
{
	play(20, low_has_it_twice, NULL);
	CHECK_STR(trace_text(), "low high middle ");
}

/* The owner is not running, but ready behind the waiter's inferiors. */
HD_PROCESS_TEST(inherit_reaches_an_owner_that_was_preempted)
{
	hd_pid high = 0;
	hd_pid low = spawned(hd_spawn_at(20, low_was_preempted, &high));

	CHECK_EQ(hd_join(low, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "low high ");
}

/* ---- chains ---- */

static void *end_of_a_chain(void *arg)
{
	struct actor second = { .word = "second", .own = &b, .wants = &a }, third = { .word = "third", .own = &c, .wants = &b };
	struct actor high = { .word = "high", .wants = &c };

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	spawn_actor(20, &second);
	spawn_actor(25, &third);
	spawn_actor(60, &high);
	spawn_word(50, "middle");
	trace("first ");
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	trace("end ");
	return arg;
}

HD_PROCESS_TEST(inherit_goes_through_a_chain_of_three)
{
	play(15, end_of_a_chain, NULL);
	CHECK_STR(trace_text(), "first second third high middle end ");
}

/* The last of the chain gives up: all others fall back. */
static void *chain_that_breaks(void *arg)
{
	struct actor second = { .word = "second", .own = &b, .wants = &a };
	struct actor high = { .word = "high", .wants = &b, .until = hd_after(HD_MS(100)) };

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	spawn_actor(20, &second);
	hd_pid pid = spawn_actor(60, &high);
	spawn_word(50, "middle");
	while (high.answer == 0)
		hd_checkpoint();
	trace("first ");
	CHECK_EQ(high.answer, -ETIMEDOUT);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return arg;
}

HD_PROCESS_TEST(inherit_through_a_chain_is_undone_by_a_timeout)
{
	play(15, chain_that_breaks, NULL);
	CHECK_STR(trace_text(), "high middle first second ");
}

/* A priority that changes at the end of a chain goes through all of it. */
static void *chain_that_is_lowered(void *arg)
{
	struct actor second = { .word = "second", .own = &b, .wants = &a }, third = { .word = "third", .own = &c, .wants = &b };
	struct actor high = { .word = "high", .wants = &c };

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	spawn_actor(20, &second);
	spawn_actor(25, &third);
	hd_pid pid = spawn_actor(60, &high);
	spawn_word(50, "middle");
	trace("first ");
	CHECK_EQ(hd_set_priority(pid, 45), 0);
	spawn_word(40, "lower");
	trace("first-again ");
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return arg;
}

HD_PROCESS_TEST(inherit_through_a_chain_follows_a_change_of_priority)
{
	play(15, chain_that_is_lowered, NULL);
	CHECK_STR(trace_text(), "first middle first-again second third high lower ");
}

/* ---- undone ---- */

static void *low_is_left_by_timeout(void *arg)
{
	struct actor high = { .word = "high", .wants = &a, .until = hd_after(HD_MS(100)) };

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	spawn_word(20, "equal");
	hd_pid pid = spawn_actor(60, &high);
	spawn_word(40, "middle");
	while (high.answer == 0)
		hd_checkpoint();
	trace("low ");
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return arg;
}

/* It falls back to the head of its level, and is before its equal. */
HD_PROCESS_TEST(inherit_is_undone_by_a_timeout_and_keeps_the_place)
{
	if (hd_is_simulated())
		SKIP("the deadline may pass before anybody waits: then it is preempted as usual, and goes to the tail");
	play(20, low_is_left_by_timeout, NULL);
	CHECK_STR(trace_text(), "high middle low equal ");
}

static void *low_is_left_by_kill(void *arg)
{
	struct actor high = { .word = "never", .wants = &a };

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	hd_pid pid = spawn_actor(60, &high);
	spawn_word(40, "middle");
	trace("low ");
	CHECK_EQ(hd_kill(pid, 3), 0);
	trace("low-again ");
	CHECK_EQ(end_of(pid).err, 3);
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return arg;
}

HD_PROCESS_TEST(inherit_is_undone_when_the_waiter_is_terminated)
{
	play(20, low_is_left_by_kill, NULL);
	CHECK_STR(trace_text(), "low middle low-again ");
}

/* A cancel does not end a wait for a mutex, so the owner keeps its boost. */
static void *low_is_not_left_by_cancel(void *arg)
{
	struct actor high = { .word = "high", .wants = &a };

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	hd_pid pid = spawn_actor(60, &high);
	spawn_word(40, "middle");
	CHECK_EQ(hd_cancel(pid), 0);
	trace("low ");
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return arg;
}

HD_PROCESS_TEST(inherit_survives_a_cancel_of_the_waiter)
{
	play(20, low_is_not_left_by_cancel, NULL);
	CHECK_STR(trace_text(), "low high middle ");
}

static void *waiter_is_lowered(void *arg)
{
	struct actor high = { .word = "high", .wants = &a };

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	hd_pid pid = spawn_actor(60, &high);
	spawn_word(40, "middle");
	trace("low ");
	CHECK_EQ(hd_set_priority(pid, 30), 0);
	spawn_word(25, "lower");
	trace("low-again ");
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return arg;
}

HD_PROCESS_TEST(inherit_follows_a_waiter_whose_priority_falls)
{
	play(20, waiter_is_lowered, NULL);
	CHECK_STR(trace_text(), "low middle low-again high lower ");
}

static void *waiter_is_raised(void *arg)
{
	struct actor waiter = { .word = "waiter", .wants = &a };

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	hd_pid pid = spawn_actor(30, &waiter);
	CHECK_EQ(hd_set_priority(pid, 60), 0);
	spawn_word(40, "middle");
	trace("low ");
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return arg;
}

HD_PROCESS_TEST(inherit_follows_a_waiter_whose_priority_rises)
{
	play(20, waiter_is_raised, NULL);
	CHECK_STR(trace_text(), "low waiter middle ");
}

/* ---- what is left of it ---- */

static void *low_has_equals(void *arg)
{
	struct actor high = { .word = "high", .wants = &a };

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	spawn_word(20, "equal");
	spawn_actor(60, &high);
	trace("low ");
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	trace("low-again ");
	return arg;
}

HD_PROCESS_TEST(inherit_owner_falls_back_to_the_head_of_its_level)
{
	play(20, low_has_equals, NULL);
	CHECK_STR(trace_text(), "low high low-again equal ");
}

static void *low_changes_itself(void *arg)
{
	struct actor high = { .word = "high", .wants = &a };

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	spawn_actor(60, &high);
	spawn_word(40, "middle");
	CHECK_EQ(hd_set_priority(hd_self(), (int)(long)arg), 0);
	CHECK_EQ(hd_priority(hd_self()), (int)(long)arg);
	trace("low ");
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	trace("low-again ");
	return NULL;
}

HD_PROCESS_TEST(inherit_does_not_forget_what_the_owner_was_given_meanwhile)
{
	play(20, low_changes_itself, (void *)50L);
	CHECK_STR(trace_text(), "low high low-again middle ");
	trace_clear();
	play(20, low_changes_itself, (void *)15L);
	CHECK_STR(trace_text(), "low high middle low-again ");
}

static void *low_has_two(void *arg)
{
	struct actor higher = { .word = "60", .wants = &a }, high = { .word = "50", .wants = &b };

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	CHECK_EQ(hd_mutex_lock(&b, HD_FOREVER), 0);
	spawn_actor(50, &high);
	spawn_actor(60, &higher);
	spawn_word(55, "55");
	spawn_word(45, "45");
	trace("low ");
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	trace("low ");
	CHECK_EQ(hd_mutex_unlock(&b), 0);
	trace("low ");
	return arg;
}

HD_PROCESS_TEST(inherit_owner_of_two_keeps_the_boost_of_the_other)
{
	play(20, low_has_two, NULL);
	CHECK_STR(trace_text(), "low 60 55 low 50 45 low ");
}

static void unlock(void *mutex)
{
	CHECK_EQ(hd_mutex_unlock(mutex), 0);
}

static void *low_ends_inside(void *arg)
{
	struct actor high = { .word = "high", .wants = &a };
	struct hd_cleanup cleanup;

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	CHECK_EQ(hd_cleanup_push(&cleanup, unlock, &a), 0);
	*(hd_pid *)arg = spawn_actor(60, &high);
	spawn_word(40, "middle");
	trace("low ");
	hd_exit(NULL);
	return NULL;
}

HD_PROCESS_TEST(inherit_lasts_until_the_cleanup_of_the_owner)
{
	hd_pid high = 0;

	play(20, low_ends_inside, &high);
	CHECK_STR(trace_text(), "low high middle ");
}

/* ---- the next owner ---- */

static void *low_has_an_heir(void *arg)
{
	struct actor heir = { .word = "heir", .wants = &a }, high = { .word = "high", .wants = &a };

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	spawn_actor(25, &heir);
	spawn_actor(60, &high);
	spawn_word(40, "middle");
	trace("low ");
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	trace("low-again ");
	return arg;
}

/* Those behind it in the queue wait for the heir now. */
HD_PROCESS_TEST(inherit_goes_to_the_next_owner_at_once)
{
	play(20, low_has_an_heir, NULL);
	CHECK_STR(trace_text(), "low heir high middle low-again ");
}

static void *low_is_granted(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	trace("low ");
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return arg;
}

/* It was granted the mutex, but has not run yet, when somebody better comes to wait for it. */
HD_PROCESS_TEST(inherit_reaches_an_owner_that_has_not_run_since_it_was_granted)
{
	struct actor high = { .word = "high", .wants = &a };

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	hd_pid low = spawned(hd_spawn_at(20, low_is_granted, NULL));
	await_queued(&a.waiters, 1);
	CHECK_EQ(hd_mutex_unlock(&a), 0); /* it is ready, and we go on */
	spawn_actor(60, &high);
	trace("main ");
	CHECK_EQ(hd_join(low, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "low high main ");
}

static int unlocked;

static void *have_it_on_a_thread(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	await_queued(&a.waiters, 2);
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	set_flag(&unlocked, 1);
	return arg;
}

/* A plain thread has no priority to raise; but whoever gets the mutex from it has. */
HD_PROCESS_TEST(inherit_reaches_the_heir_of_a_thread)
{
	struct actor high = { .word = "high", .wants = &a };
	struct plain_thread *thread = start_thread(have_it_on_a_thread, NULL);

	while (hd_mutex_try_lock(&a) == 0) {
		CHECK_EQ(hd_mutex_unlock(&a), 0);
		hd_sleep(HD_US(50));
	}
	hd_pid low = spawned(hd_spawn_at(20, low_is_granted, NULL));
	await_queued(&a.waiters, 1);
	spawn_actor(60, &high);
	await_flag(&unlocked, 1); /* no safe point */
	hd_checkpoint();
	trace("main ");
	CHECK_EQ(hd_join(low, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "low high main ");
	join_thread(thread);
}

/* ---- conditions ---- */

static struct hd_condition condition;

static void *wait_for_condition(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	CHECK_EQ(hd_condition_wait(&condition, &a, HD_FOREVER), 0);
	trace("%s ", (const char *)arg);
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return NULL;
}

static void *low_signals(void *arg)
{
	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	CHECK_EQ(hd_condition_signal(&condition), 0);
	spawn_word(40, "middle");
	trace("low ");
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	trace("low-again ");
	return arg;
}

/* Who is signalled waits for the mutex, as if it had come to lock it. */
HD_PROCESS_TEST(inherit_counts_who_waits_to_enter_again)
{
	spawned(hd_spawn_at(60, wait_for_condition, (void *)"high"));
	play(20, low_signals, NULL);
	CHECK_STR(trace_text(), "low high middle low-again ");
}

/* The same for one that was signalled when the mutex was free, and has it before it runs. */
HD_PROCESS_TEST(inherit_reaches_an_owner_that_was_passed_a_free_mutex)
{
	struct actor high = { .word = "high", .wants = &a };
	hd_pid low = spawned(hd_spawn_at(20, wait_for_condition, (void *)"low"));

	await_queued(&condition.waiters, 1);
	CHECK_EQ(hd_condition_signal(&condition), 0);
	spawn_actor(60, &high);
	trace("main ");
	CHECK_EQ(hd_join(low, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "low high main ");
}

static void *low_waits_for_a_condition(void *arg)
{
	struct actor high = { .word = "high", .wants = &a };

	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	spawn_actor(60, &high);
	spawn_word(40, "middle");
	trace("low ");
	CHECK_EQ(hd_condition_wait(&condition, &a, hd_after(HD_MS(1))), -ETIMEDOUT);
	trace("low-again ");
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return arg;
}

HD_PROCESS_TEST(inherit_is_undone_by_a_wait_that_gives_the_mutex_up)
{
	play(20, low_waits_for_a_condition, NULL);
	CHECK_STR(trace_text(), "low high middle low-again ");
}

/* ---- on several workers ---- */

static struct hd_mutex far = HD_MUTEX(HD_INHERIT);
static long turns, over;
static struct hd_semaphore go[4], news;

enum { LOW, HOG, HIGH };
static int high_waits_for_ever;

/* Has the mutex until somebody waits (forever) or all is over. */
static void *far_low(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&go[LOW], HD_FOREVER), 0);
	CHECK_EQ(hd_set_priority(hd_self(), 20), 0);
	CHECK_EQ(hd_mutex_lock(&far, HD_FOREVER), 0);
	CHECK_EQ(hd_semaphore_signal(&news), 0);
	while (high_waits_for_ever ? queued(&far.waiters) == 0 : value_of(&over) == 0) {
		hd_checkpoint();
		sched_yield();
	}
	CHECK_EQ(hd_mutex_unlock(&far), 0);
	return arg;
}

/* On the same worker: keeps it from running. */
static void *far_hog(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&go[HOG], HD_FOREVER), 0);
	CHECK_EQ(hd_set_priority(hd_self(), 40), 0);
	CHECK_EQ(hd_semaphore_signal(&news), 0);
	while (value_of(&over) == 0) {
		add(&turns, 1);
		hd_checkpoint();
		sched_yield();
	}
	return arg;
}

/* On another worker. */
static void *near_high(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&go[HIGH], HD_FOREVER), 0);
	CHECK_EQ(hd_set_priority(hd_self(), 60), 0);
	if (high_waits_for_ever) {
		CHECK_EQ(hd_mutex_lock(&far, HD_FOREVER), 0);
		CHECK_EQ(hd_mutex_unlock(&far), 0);
	} else {
		CHECK_EQ(hd_mutex_lock(&far, hd_after(HD_MS(1))), -ETIMEDOUT);
		for (long before = value_of(&turns); value_of(&turns) == before;)
			hd_sleep(HD_US(50)); /* the hog runs again, or for ever not */
	}
	set(&over, 1);
	return arg;
}

static void *leave_crew(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&go[3], HD_FOREVER), 0);
	return arg;
}

/* Calls fn on the process that it is told to be, when it is known where everybody is. */
struct seat {
	struct hd_semaphore told;
	hd_entry role;
};

static void *take_role(void *arg)
{
	struct seat *seat = arg;

	CHECK_EQ(hd_semaphore_wait(&seat->told, HD_FOREVER), 0);
	return seat->role(NULL);
}

static void tell(struct seat *seat, hd_entry role)
{
	seat->role = role;
	CHECK_EQ(hd_semaphore_signal(&seat->told), 0);
}

/* Two processes are at home on each worker; low and the hog share one. */
static void play_far(int workers)
{
	static struct seat seats[2][WORKERS_MAX];
	struct crew crews[2];
	void *args[WORKERS_MAX];

	CHECK_EQ(hd_set_priority(hd_self(), 70), 0);
	memset(seats, 0, sizeof seats);
	turns = over = 0;
	for (int i = 0; i < 2; i++) {
		for (int j = 0; j < workers; j++)
			args[j] = &seats[i][j];
		start_crew(&crews[i], NULL, workers, take_role, args);
		CHECK(is_apart(&crews[i]));
	}
	int home = crews[0].members[0].worker, taken = 0;
	tell(&seats[0][0], far_low);
	tell(&seats[0][1], near_high);
	for (int j = 2; j < workers; j++)
		tell(&seats[0][j], leave_crew);
	for (int j = 0; j < workers; j++) {
		bool same = crews[1].members[j].worker == home;
		taken += same;
		tell(&seats[1][j], same ? far_hog : leave_crew);
	}
	CHECK_EQ(taken, 1);
	for (int role = LOW; role <= HIGH; role++) {
		CHECK_EQ(hd_semaphore_signal(&go[role]), 0);
		if (role != HIGH)
			CHECK_EQ(hd_semaphore_wait(&news, HD_FOREVER), 0);
	}
	for (int i = 0; i < 2 * workers - 3; i++)
		CHECK_EQ(hd_semaphore_signal(&go[3]), 0);
	join_crew_members(&crews[0]);
	join_crew_members(&crews[1]);
}

HD_MANY_WORKERS_TEST(inherit_reaches_an_owner_on_another_worker)
{
	high_waits_for_ever = 1;
	play_far(workers);
}

HD_MANY_WORKERS_TEST(inherit_is_undone_on_another_worker)
{
	high_waits_for_ever = 0;
	play_far(workers);
}

/* ---- many of everything ---- */

#define ACTORS 12
#define MUTEXES 4

static struct hd_mutex many[MUTEXES];
static long held_by[MUTEXES], total[MUTEXES], got_all;
static int each;

/* Takes some of them, in one order; the last with or without a deadline. */
static void *take_some(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	for (int i = 0; i < each; i++) {
		unsigned which = next_random(&seed) % (1u << MUTEXES);
		for (int m = 0; m < MUTEXES; m++) {
			if (!(which & 1u << m))
				continue;
			int err = hd_mutex_lock(&many[m],
						next_random(&seed) % 2 ? HD_FOREVER : hd_after(next_random(&seed) % 20000));
			CHECK(err == 0 || err == -ETIMEDOUT);
			if (err != 0) {
				which &= ~(1u << m);
				continue;
			}
			CHECK_EQ(++held_by[m], 1);
			total[m]++;
			add(&got_all, 1);
		}
		if (next_random(&seed) % 4 == 0)
			hd_yield();
		for (int m = 0; m < MUTEXES; m++) {
			if (!(which & 1u << m))
				continue;
			CHECK_EQ(held_by[m]--, 1);
			CHECK_EQ(hd_mutex_unlock(&many[m]), 0);
		}
	}
	/* nobody waits for anything of ours: we are what we were */
	CHECK_EQ(HD__CONTROL_BOOST(ld_acq(&hd__self()->current->control)), 0);
	return NULL;
}

static void take_all(int n)
{
	hd_pid pids[ACTORS];
	unsigned seed = 3;
	long sum = 0;

	each = n / ACTORS + 1;
	got_all = 0;
	for (int m = 0; m < MUTEXES; m++) {
		hd_mutex_init(&many[m], HD_INHERIT | (m % 2 ? HD_BY_PRIORITY : 0));
		held_by[m] = total[m] = 0;
	}
	for (long i = 0; i < ACTORS; i++) {
		struct hd_spawn how = { .priority = 20 + (int)i, .pinned = i % 2 == 0 };
		pids[i] = spawned(hd_spawn_with(&how, take_some, (void *)(i + 1)));
	}
	for (int i = 0; i < each / 4; i++) {
		int err = hd_set_priority(pids[next_random(&seed) % ACTORS], 20 + (int)(next_random(&seed) % 20));
		CHECK(err == 0 || err == -ESRCH);
		hd_sleep(HD_US(10));
	}
	for (int i = 0; i < ACTORS; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	for (int m = 0; m < MUTEXES; m++)
		sum += total[m];
	CHECK_EQ(sum, got_all);
}

HD_WORKERS_TEST(inherit_leaves_no_boost_behind)
{
	take_all(hd_scaled(5000));
	(void)workers;
}

HD_WORKERS_STRESS(inherit_leaves_no_boost_behind_for_long)
{
	take_all(hd_scaled(300000));
	(void)workers;
}

/* ---- plain threads ---- */

static int felt;

static void *want_in_vain(void *arg)
{
	while (!read_flag(&felt))
		CHECK_EQ(hd_mutex_lock(&a, hd_after(HD_MS(2))), -ETIMEDOUT);
	return arg;
}

/* Until the home worker has found its boost: it is asked by a note. */
static void await_level(int level)
{
	while (hd__self()->current->priority != level)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
}

static void *be_wanted_by_a_thread(void *arg)
{
	set_flag(&felt, 0);
	CHECK_EQ(hd_mutex_lock(&a, HD_FOREVER), 0);
	struct plain_thread *thread = start_thread(want_in_vain, NULL);
	await_level(HD_PRIORITY_USER);
	set_flag(&felt, 1);
	await_level(20);
	join_thread(thread);
	CHECK_EQ(hd_mutex_unlock(&a), 0);
	return arg;
}

HD_WORKERS_TEST(inherit_from_a_thread_is_a_users_priority_while_it_waits)
{
	run_at(20, be_wanted_by_a_thread, NULL);
	(void)workers;
}
