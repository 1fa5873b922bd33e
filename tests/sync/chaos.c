/* sync/chaos.c - everything at once, and nothing is lost.
 *
 * Actors use nearly all the primitives at random while meddlers, a process and often a plain thread, cancel, suspend, steer and end
 * them. Who must be alone somewhere looks whether it is; and when all is over the books must balance:
 *
 *     signals given = taken + left             who let others through a barrier >= who was let through
 *     items put = taken + left                 who has come in has gone out: nobody owns anything, or waits
 *
 * That is exact although actors are ended in the middle, because whoever ends in a call has got nothing from it. What they do follows
 * from a seed, which the tests count; when they do it, from the machine, or from the plan of the simulated runtime. */
#include "sync/common.h"

enum { ACTORS = 6, MUTEXES = 4, CHILDREN = 2, ACTIONS = 25, MEDDLINGS = 30 };

static struct hd_mutex mutexes[MUTEXES];
static struct hd_monitor monitor;
static struct hd_rwlock rwlock;
static struct hd_semaphore semaphore;
static struct hd_event event;
static struct hd_barrier barrier;
static hd_queue *queue;

static struct books {
	long in_mutex[MUTEXES], in_monitor, readers, writers; /* who is there */
	long given, taken;				      /* signals */
	long put, got;					      /* the sums of items */
	long let_others, was_let;			      /* through the barrier */
	long alive;					      /* who has begun and not ended */
} books;

static unsigned roll(unsigned *dice, unsigned n)
{
	return next_random(dice) % n;
}

/* Where each begins that has dice of its own. */
static unsigned dice_of(unsigned seed, long who)
{
	unsigned dice = seed * 7919 + (unsigned)who * 104729;

	next_random(&dice);
	return dice;
}

/* A deadline that may have passed, or comes in the middle of things. */
static hd_time soon(unsigned *dice)
{
	return roll(dice, 4) == 0 ? 0 : hd_after(HD_US(roll(dice, 30)));
}

/* Lets others do something, and may end here. */
static void wander(unsigned *dice)
{
	switch (roll(dice, 4)) {
	case 0:
		hd_yield();
		break;
	case 1:
		hd_sleep(HD_US(roll(dice, 10)));
		break;
	default:
		hd_checkpoint();
	}
}

static void leave(void *count)
{
	add(count, -1);
}

/* ---- places where one is alone ---- */

static void be_alone(unsigned *dice, long *inside)
{
	struct hd_cleanup cleanup;

	CHECK_EQ(add(inside, 1), 1);
	CHECK_EQ(hd_cleanup_push(&cleanup, leave, inside), 0);
	wander(dice);
	CHECK_EQ(hd_cleanup_pop(&cleanup, true), 0);
}

struct visit {
	unsigned *dice;
	unsigned number; /* of the mutex */
};

static void enter_mutex(unsigned *dice, unsigned number, hd_time until);

/* With the mutex, and at times on to the next one: always upwards, so nobody waits in a circle. */
static void be_in_mutex(void *arg)
{
	struct visit *visit = arg;

	be_alone(visit->dice, &books.in_mutex[visit->number]);
	if (visit->number + 1 < MUTEXES && roll(visit->dice, 3) == 0)
		enter_mutex(visit->dice, visit->number + 1, soon(visit->dice));
	be_alone(visit->dice, &books.in_mutex[visit->number]);
}

static void enter_mutex(unsigned *dice, unsigned number, hd_time until)
{
	struct visit visit = { dice, number };

	ANY_ANSWER(hd_mutex_critical(&mutexes[number], be_in_mutex, &visit, until));
}

static void use_mutex(unsigned *dice)
{
	unsigned number = roll(dice, MUTEXES);

	enter_mutex(dice, number, roll(dice, 2) == 0 ? soon(dice) : HD_FOREVER);
}

static void be_in_monitor(void *arg)
{
	unsigned *dice = arg;

	for (int i = 0; i < 2; i++) {
		be_alone(dice, &books.in_monitor);
		switch (roll(dice, 4)) {
		case 0:
			CHECK_EQ(hd_monitor_signal(&monitor, NULL), 0);
			break;
		case 1:
			CHECK_EQ(hd_monitor_signal_all(&monitor, NULL), 0);
			break;
		default:
			ANY_ANSWER(hd_monitor_wait(&monitor, NULL, soon(dice)));
		}
		be_alone(dice, &books.in_monitor);
	}
}

static void unlock_rwlock(void *l)
{
	CHECK_EQ(hd_rwlock_unlock(l), 0);
}

static void read_or_write(unsigned *dice)
{
	struct hd_cleanup unlock, cleanup;
	bool writes = roll(dice, 2) == 0;
	hd_time until = soon(dice);
	long *same = writes ? &books.writers : &books.readers, *others = writes ? &books.readers : &books.writers;

	if ((writes ? hd_rwlock_write(&rwlock, until) : hd_rwlock_read(&rwlock, until)) != 0)
		return;
	CHECK_EQ(hd_cleanup_push(&unlock, unlock_rwlock, &rwlock), 0);
	CHECK(add(same, 1) == 1 || !writes);
	CHECK_EQ(hd_cleanup_push(&cleanup, leave, same), 0);
	wander(dice);
	CHECK_EQ(value_of(others), 0);
	CHECK_EQ(hd_cleanup_pop(&cleanup, true), 0);
	CHECK_EQ(hd_cleanup_pop(&unlock, true), 0);
}

/* ---- things that are given and taken ---- */

static void give_signal(void)
{
	CHECK_EQ(hd_semaphore_signal(&semaphore), 0);
	add(&books.given, 1);
}

static void take_signal(unsigned *dice)
{
	if (hd_semaphore_wait(&semaphore, soon(dice)) == 0)
		add(&books.taken, 1);
}

static void put_or_get(unsigned *dice)
{
	long item = 1 + (long)roll(dice, 1000);

	if (roll(dice, 2) == 0) {
		if (hd_queue_put(queue, &item, soon(dice)) == 0)
			add(&books.put, item);
	} else if (hd_queue_next(queue, &item, soon(dice)) == 0) {
		add(&books.got, item);
	}
}

static void set_or_await(unsigned *dice)
{
	if (roll(dice, 2) == 0)
		CHECK_EQ(hd_event_set(&event), 0);
	else
		ANY_ANSWER(hd_event_wait(&event, soon(dice)));
}

static void meet(unsigned *dice)
{
	int answer = hd_barrier_wait(&barrier, soon(dice));

	if (answer == 1)
		add(&books.let_others, 1);
	else if (answer == 0)
		add(&books.was_let, 1);
}

/* ---- children ---- */

static void do_a_little(unsigned *dice)
{
	struct hd_cleanup cleanup;

	add(&books.alive, 1);
	CHECK_EQ(hd_cleanup_push(&cleanup, leave, &books.alive), 0);
	wander(dice);
	switch (roll(dice, 5)) {
	case 0:
		hd_fail(3);
		break;
	case 1:
		use_mutex(dice);
		break;
	default:
		take_signal(dice);
	}
	CHECK_EQ(hd_cleanup_pop(&cleanup, true), 0);
}

static void *stray(void *seed)
{
	unsigned dice = (unsigned)(long)seed;

	do_a_little(&dice);
	return NULL;
}

static void *random_seed(unsigned *dice)
{
	return (void *)(long)next_random(dice);
}

struct child {
	unsigned dice;
	long *alive; /* as the rest of it, on its parent's stack */
};

static void *grow(void *arg)
{
	struct child *me = arg;
	struct hd_cleanup cleanup;

	add(me->alive, 1);
	CHECK_EQ(hd_cleanup_push(&cleanup, leave, me->alive), 0);
	do_a_little(&me->dice);
	CHECK_EQ(hd_cleanup_pop(&cleanup, true), 0);
	return NULL;
}

static void check_none(void *count)
{
	CHECK_EQ(value_of(count), 0);
}

/* No child outlives the group, also if its parent is ended: that cleanup was pushed before the group was opened, so it runs after the
 * last member has ended. */
static void use_group(unsigned *dice)
{
	struct hd_group group = { .owner = 0 };
	struct child children[CHILDREN];
	struct hd_cleanup cleanup;
	long alive = 0;

	CHECK_EQ(hd_cleanup_push(&cleanup, check_none, &alive), 0);
	for (int i = 0; i < CHILDREN; i++) {
		children[i] = (struct child){ next_random(dice), &alive };
		ANY_ANSWER(hd_spawn_with(&(struct hd_spawn){ .group = &group, .pinned = i % 2 == 0 }, grow, &children[i]));
	}
	wander(dice);
	ANY_ANSWER(hd_group_wait(&group, soon(dice)));
	CHECK_EQ(hd_cleanup_pop(&cleanup, true), 0);
}

static void detach(void *pid)
{
	hd_detach(*(hd_pid *)pid);
}

static void release(void *promise)
{
	hd_promise_release(promise);
}

/* One of several things happens, and no other. */
static void select_one(unsigned *dice, hd_pid pid, hd_promise *promise)
{
	long item = 1 + (long)roll(dice, 1000), next = 0;
	struct hd_end end;
	void *value;
	struct hd_case cases[] = { hd_case_put(queue, &item), hd_case_next(queue, &next), hd_case_semaphore(&semaphore),
				   hd_case_join(pid, &end), hd_case_promise(promise, &value) };

	for (int i = 0; i < 2; i++)
		if (roll(dice, 2) == 0)
			cases[i].kind = HD_CASE_NOTHING; /* or the two would hardly ever wait */
	if (promise == NULL)
		cases[4].kind = HD_CASE_NOTHING;
	switch (hd_select(cases, 5, soon(dice))) {
	case 0:
		add(&books.put, item);
		break;
	case 1:
		add(&books.got, next);
		break;
	case 2:
		add(&books.taken, 1);
		break;
	default:
		break;
	}
}

static void use_select(unsigned *dice)
{
	hd_pid pid = hd_spawn(stray, random_seed(dice));
	hd_promise *promise = roll(dice, 2) == 0 ? hd_promise_spawn(stray, random_seed(dice)) : NULL;
	struct hd_cleanup of_pid, of_promise;

	CHECK_EQ(hd_cleanup_push(&of_pid, detach, &pid), 0);
	CHECK_EQ(hd_cleanup_push(&of_promise, release, promise), 0);
	select_one(dice, pid, promise);
	CHECK_EQ(hd_cleanup_pop(&of_promise, true), 0);
	CHECK_EQ(hd_cleanup_pop(&of_pid, true), 0);
}

/* ---- actors ---- */

static hd_pid actors[ACTORS]; /* 0: not there yet */
static struct crew crew;
static struct scene {
	unsigned seed;
	bool movable, endless;
	hd_time shut_down_at;
} scene;

static void do_something(unsigned *dice)
{
	switch (roll(dice, 10)) {
	case 0:
	case 1:
		use_mutex(dice);
		break;
	case 2:
		ANY_ANSWER(hd_monitor_critical(&monitor, be_in_monitor, dice, HD_FOREVER));
		break;
	case 3:
		read_or_write(dice);
		break;
	case 4:
		give_signal();
		take_signal(dice);
		break;
	case 5:
		put_or_get(dice);
		break;
	case 6:
		set_or_await(dice);
		break;
	case 7:
		meet(dice);
		break;
	case 8:
		use_group(dice);
		break;
	default:
		use_select(dice);
	}
	if (roll(dice, 4) == 0)
		hd_cancel_clear();
}

/* How it takes being asked to stop. Returns whether it hears of it. */
static bool choose_manners(unsigned *dice)
{
	switch (roll(dice, 4)) {
	case 0:
		CHECK_EQ(hd_set_cancel_state(HD_CANCEL_DISABLED), HD_CANCEL_ENABLED);
		return false;
	case 1:
		CHECK_EQ(hd_set_cancel_type(HD_CANCEL_UNWIND), HD_CANCEL_RETURN);
		return true;
	default:
		return true;
	}
}

static void *act(void *number)
{
	unsigned dice = dice_of(scene.seed, (long)number);
	struct hd_cleanup cleanup;

	add(&books.alive, 1);
	CHECK_EQ(hd_cleanup_push(&cleanup, leave, &books.alive), 0);
	bool endless = choose_manners(&dice) && scene.endless;
	for (int i = 0; endless || i < ACTIONS; i++)
		do_something(&dice);
	CHECK_EQ(hd_cleanup_pop(&cleanup, true), 0);
	return NULL;
}

/* One for each worker; those that are more than the workers come from the first ones. */
static void *act_and_bring_others(void *number)
{
	for (long i = (long)number + crew.size; i < ACTORS; i += crew.size) {
		struct hd_spawn how = { .pinned = !scene.movable, .priority = 38 + (int)(i % 4) };
		__atomic_store_n(&actors[i], hd_spawn_with(&how, act, (void *)i), __ATOMIC_RELEASE);
	}
	return act(number);
}

static void start_actors(int workers)
{
	void *numbers[ACTORS];
	int n = workers < ACTORS ? workers : ACTORS;

	for (long i = 0; i < ACTORS; i++)
		numbers[i] = (void *)i;
	start_crew_that(scene.seed % 2 == 0, &crew, NULL, n, act_and_bring_others, numbers);
	for (int i = 0; i < n; i++)
		__atomic_store_n(&actors[i], crew.members[i].pid, __ATOMIC_RELEASE);
}

static hd_pid actor(unsigned i)
{
	return __atomic_load_n(&actors[i], __ATOMIC_ACQUIRE);
}

static void join_actors(void)
{
	for (unsigned i = 0; i < ACTORS; i++) {
		while (actor(i) == 0)
			CHECK_EQ(hd_sleep(HD_US(50)), 0);
		hd_resume(actor(i));
		end_of(actor(i));
	}
}

/* ---- meddlers ---- */

static void end_it(unsigned *dice, hd_pid pid)
{
	if (roll(dice, 2) == 0)
		hd_kill(pid, 7);
	else
		ANY_ANSWER(hd_terminate(pid, soon(dice)));
}

static void meddle_with(unsigned *dice, hd_pid pid)
{
	switch (roll(dice, 8)) {
	case 0:
		hd_cancel(pid);
		break;
	case 1:
		ANY_ANSWER(hd_suspend(pid, 0)); /* perhaps it is not yet when it is resumed */
		break;
	case 2:
		ANY_ANSWER(hd_suspend(pid, soon(dice)));
		break;
	case 3:
	case 4:
		hd_resume(pid);
		break;
	case 5:
	case 6:
		hd_set_priority(pid, 20 + (int)roll(dice, 40));
		break;
	default:
		if (roll(dice, 4) == 0)
			end_it(dice, pid);
	}
	hd_resume(pid);
}

/* On a process or a plain thread; the actor may not be there yet, or any more. */
static void *meddle(void *number)
{
	unsigned dice = dice_of(scene.seed, (long)number);

	for (int i = 0; i < MEDDLINGS; i++) {
		meddle_with(&dice, actor(roll(&dice, ACTORS)));
		if (roll(&dice, 4) == 0)
			hd_yield();
	}
	return NULL;
}

/* ---- before and after ---- */

static void set_scene(unsigned seed, bool endless)
{
	unsigned dice = dice_of(seed, -1);

	scene = (struct scene){ .seed = seed, .movable = roll(&dice, 2), .endless = endless };
	books = (struct books){ .given = 0 };
	for (int i = 0; i < MUTEXES; i++)
		hd_mutex_init(&mutexes[i], roll(&dice, 8));
	hd_monitor_init(&monitor, roll(&dice, 8));
	hd_rwlock_init(&rwlock, (enum hd_rwlock_prefers)roll(&dice, 3));
	hd_semaphore_init(&semaphore, 0);
	hd_event_init(&event, roll(&dice, 4));
	hd_barrier_init(&barrier, 2);
	queue = hd_queue_new(sizeof(long), roll(&dice, 3));
	CHECK(queue != NULL);
	for (int i = 0; i < ACTORS; i++)
		actors[i] = 0;
}

static void check_nobody_is_inside(void)
{
	for (int i = 0; i < MUTEXES; i++) {
		CHECK_EQ(books.in_mutex[i], 0);
		CHECK_EQ(mutexes[i].owner, 0);
		CHECK_EQ(queued(&mutexes[i].waiters), 0);
	}
	CHECK_EQ(books.in_monitor, 0);
	CHECK_EQ(monitor.mutex.owner, 0);
	CHECK_EQ(queued(&monitor.mutex.waiters), 0);
	CHECK_EQ(queued(&monitor.changed.waiters), 0);
	CHECK_EQ(books.readers + books.writers, 0);
	CHECK_EQ(rwlock.readers, 0);
	CHECK_EQ(rwlock.writer, 0);
	CHECK_EQ(rwlock.writers_waiting, 0);
	CHECK_EQ(queued(&rwlock.waiters), 0);
	CHECK_EQ(barrier.arrived, 0);
	CHECK_EQ(queued(&barrier.waiters), 0);
	CHECK_EQ(queued(&event.waiters), 0);
	CHECK_EQ(queued(&semaphore.waiters), 0);
}

static void check_nothing_is_lost(void)
{
	long item, left = 0;

	while (hd_queue_try_next(queue, &item) == 0)
		left += item;
	CHECK_EQ(books.put, books.got + left);
	CHECK_EQ(books.given, books.taken + semaphore.excess);
	CHECK(books.let_others >= books.was_let); /* who was let through may have ended before it knew */
}

static void close_books(void)
{
	CHECK_EQ(books.alive, 0);
	check_nobody_is_inside();
	check_nothing_is_lost();
	hd_queue_drop(queue);
}

/* ---- the tests ---- */

/* The books are closed when the strays have ended too: after the run. */
static void *play(void *workers)
{
	start_actors((int)(long)workers);
	hd_pid meddler = spawned(hd_spawn(meddle, (void *)(long)ACTORS));
	struct plain_thread *thread = scene.seed % 3 == 0 ? NULL : start_thread(meddle, (void *)(long)(ACTORS + 1));
	CHECK_EQ(hd_join(meddler, NULL, HD_FOREVER), 0);
	if (thread != NULL)
		join_thread(thread);
	join_actors();
	return NULL;
}

static void live_through(unsigned seed, int workers)
{
	set_scene(seed, false);
	CHECK_EQ(run_with_workers(workers, play, (void *)(long)workers), 0);
	close_books();
}

/* Some time in the middle: it does not matter when. */
static void *play_and_shut_down(void *workers)
{
	unsigned dice = dice_of(scene.seed, -2);

	start_actors((int)(long)workers);
	spawned(hd_spawn(meddle, (void *)(long)ACTORS));
	hd_sleep(HD_US(roll(&dice, 300)));
	scene.shut_down_at = hd_now();
	CHECK_EQ(hd_shutdown(3), 0);
	return NULL;
}

/* Everybody ends, except that who takes longer than a second is abandoned with what it has: one that does not hear that it should end
 * goes on to the end of what it does, and some plans of the simulated runtime let a second pass at any time. */
static void shut_down_amid(unsigned seed, int workers)
{
	set_scene(seed, true);
	struct plain_thread *thread = seed % 3 == 0 ? NULL : start_thread(meddle, (void *)(long)(ACTORS + 1));
	CHECK_EQ(run_with_workers(workers, play_and_shut_down, (void *)(long)workers), 3);
	hd_time took = hd_now() - scene.shut_down_at;
	if (thread != NULL)
		join_thread(thread);
	if (books.alive == 0) {
		close_books();
		return;
	}
	CHECK(took >= HD_SEC(1));
	hd_queue_drop(queue);
	if (HD_UNDER_ASAN)
		SKIP("somebody was abandoned: the memory that it had is nobody's");
}

/* A few seeds: in the simulated runtime each round plays them in another way, elsewhere there are more. */
static void on_one_two_and_eight_workers(void (*test)(unsigned seed, int workers), int seeds)
{
	const int workers[] = { 1, 2, WORKERS_MAX };

	for (int i = 0; another_round(i, seeds); i++)
		test((unsigned)i, workers[i % 3]);
}

HD_TEST(chaos_loses_nothing)
{
	on_one_two_and_eight_workers(live_through, hd_is_simulated() ? 24 : hd_scaled(18));
}

HD_TEST(chaos_ends_when_the_runtime_does)
{
	on_one_two_and_eight_workers(shut_down_amid, hd_is_simulated() ? 24 : hd_scaled(18));
}

HD_STRESS(chaos_loses_nothing_for_long)
{
	under_stress = true;
	on_one_two_and_eight_workers(live_through, hd_is_simulated() ? 300 : hd_scaled(2000));
}

HD_STRESS(chaos_ends_when_the_runtime_does_for_long)
{
	under_stress = true;
	on_one_two_and_eight_workers(shut_down_amid, hd_is_simulated() ? 300 : hd_scaled(2000));
}
