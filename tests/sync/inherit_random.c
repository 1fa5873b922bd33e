/* sync/inherit_random.c - whatever has happened, everybody runs with the priority of the best that waits for it.
 *
 * Processes take and give up nested HD_INHERIT mutexes, wait with and without deadlines and change each other's priorities, all at random;
 * then each takes a last few and keeps them, until nobody can go on. In that stillness the boosts are compared with those that follow
 * from who waits for whom: found anew, from nothing but the mutexes' queues.
 *
 * Mutexes are taken in the order of their numbers, so nobody waits in a circle. */
#include "life/life.h"
#include "sync/common.h"

enum { PROCESSES = 5, MUTEXES = 4, DEPTH = 3, NESTS = 6 };

static struct hd_mutex mutexes[MUTEXES];
static struct hd_semaphore thaw;
static hd_pid pids[PROCESSES]; /* 0: not there yet */
static struct hd_process *blocks[PROCESSES];
static long releases; /* counted when it is done, and before whoever did it waits again */
static struct crew crew;
static unsigned the_seed;
static bool movable;

static unsigned roll(unsigned *dice, unsigned n)
{
	return next_random(dice) % n;
}

/* ---- until it is still ---- */

static void steer_somebody(unsigned *dice)
{
	hd_pid pid = __atomic_load_n(&pids[roll(dice, PROCESSES)], __ATOMIC_ACQUIRE);

	if (pid > 0)
		hd_set_priority(pid, 30 + (int)roll(dice, 30)); /* it may have ended */
}

static void wander(unsigned *dice)
{
	switch (roll(dice, 4)) {
	case 0:
		CHECK_EQ(hd_yield(), 0);
		break;
	case 1:
		steer_somebody(dice);
		break;
	case 2:
		CHECK_EQ(hd_sleep(HD_US(roll(dice, 4))), 0);
		break;
	default:
		break;
	}
}

/* Takes some of the mutexes, from the `first` on, and calls `inside`; unless it is patient a deadline may keep it from going deeper. */
static void nest(unsigned *dice, unsigned first, int depth, bool patient, void (*inside)(unsigned *dice))
{
	if (first == MUTEXES || depth == DEPTH) {
		inside(dice);
		return;
	}
	struct hd_mutex *m = &mutexes[first + roll(dice, MUTEXES - first)];
	int err = hd_mutex_lock(m, patient || roll(dice, 2) == 0 ? HD_FOREVER : hd_after(HD_US(roll(dice, 5))));
	if (err == 0) {
		nest(dice, (unsigned)(m - mutexes) + 1, depth + 1, patient, inside);
		CHECK_EQ(hd_mutex_unlock(m), 0);
		add(&releases, 1);
	} else {
		CHECK_EQ(err, -ETIMEDOUT);
		inside(dice);
	}
}

static void stand_still(unsigned *dice)
{
	(void)dice;
	CHECK_EQ(hd_semaphore_wait(&thaw, HD_FOREVER), 0);
}

static void *live(void *number)
{
	unsigned dice = the_seed * 1009 + (unsigned)(long)number * 7;

	for (int i = 0; i < NESTS; i++) {
		nest(&dice, 0, 0, false, wander);
		if (roll(&dice, 3) == 0)
			steer_somebody(&dice);
	}
	nest(&dice, 0, 0, true, stand_still);
	return NULL;
}

/* One for each worker; those that are more than the workers come from the first ones. */
static void *live_and_bring_others(void *number)
{
	for (long i = (long)number + crew.size; i < PROCESSES; i += crew.size) {
		struct hd_spawn how = { .pinned = !movable, .priority = 41 };
		__atomic_store_n(&pids[i], spawned(hd_spawn_with(&how, live, (void *)i)), __ATOMIC_RELEASE);
	}
	return live(number);
}

static void start_all(int workers)
{
	void *numbers[PROCESSES];
	struct hd_spawn how = { .priority = 40 };
	int n = workers < PROCESSES ? workers : PROCESSES;

	for (long i = 0; i < PROCESSES; i++)
		numbers[i] = (void *)i;
	start_crew_that(the_seed / 2 % 2 == 0, &crew, &how, n, live_and_bring_others, numbers);
	for (int i = 0; i < n; i++)
		__atomic_store_n(&pids[i], crew.members[i].pid, __ATOMIC_RELEASE);
	for (int i = 0; i < PROCESSES; i++) {
		while (__atomic_load_n(&pids[i], __ATOMIC_ACQUIRE) == 0)
			CHECK_EQ(hd_sleep(HD_US(50)), 0);
		blocks[i] = hd__table_find(&hd__self()->sched->table, pids[i]);
	}
}

/* ---- the stillness ---- */

/* Whether it waits, and only somebody else can end that. */
static bool is_frozen(struct hd_process *p)
{
	return ld_acq(&p->state) == HD_WAITING && ld_acq(&p->wait) == HD__WAITING;
}

/* Whether all that was asked of it is done. */
HD_AS_RUNTIME static bool is_settled(struct hd_process *p)
{
	hd__waitq_lock(&p->news);
	uint64_t control = ld_acq(&p->control);
	hd__waitq_unlock(&p->news);
	return (control & (HD__REBOOST | HD__NUDGED)) == 0;
}

static bool all_are(bool (*so)(struct hd_process *p))
{
	for (int i = 0; i < PROCESSES; i++)
		if (!so(blocks[i]))
			return false;
	return true;
}

/* Whether nobody will ever run unless it is thawed. Who seemed frozen and was then let go was let go by one that ran; and that one has
 * counted it before it could seem frozen itself. */
static bool is_still(void)
{
	long before = value_of(&releases);

	return all_are(is_frozen) && value_of(&releases) == before;
}

/* Requests go on in the stillness, along the chains, from who waits to whom it waits for; one may slip past a look at all of them. But
 * with each look in a row that finds none, those that could still be reached are one step farther down the chains. */
static void await_stillness(void)
{
	while (!is_still())
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	for (int looks = 0; looks < PROCESSES; looks++)
		if (!all_are(is_settled)) {
			looks = -1;
			CHECK_EQ(hd_sleep(HD_US(50)), 0);
		}
}

/* ---- what it should be ---- */

struct level {
	int boost, priority; /* the priority is the effective one */
};

static int index_of(const struct hd_process *p)
{
	for (int i = 0; i < PROCESSES; i++)
		if (blocks[i] == p)
			return i;
	return -1;
}

static int owner_of(const struct hd_mutex *m)
{
	for (int i = 0; i < PROCESSES; i++)
		if (pids[i] == m->owner)
			return i;
	return -1;
}

/* Lets the owner have what its waiters have. Returns whether that is more than it had. */
HD_AS_RUNTIME static bool lend(struct hd_mutex *m, struct level *levels)
{
	int owner = owner_of(m);
	bool more = false;

	hd__waitq_lock(&m->waiters);
	CHECK(owner >= 0 || m->waiters.head == NULL);
	for (struct hd_waiter *x = m->waiters.head; x != NULL; x = x->next) {
		int waiter = index_of(x->process);
		CHECK(waiter >= 0);
		if (levels[waiter].priority <= levels[owner].boost)
			continue;
		levels[owner].boost = levels[waiter].priority;
		if (levels[owner].boost > levels[owner].priority)
			levels[owner].priority = levels[owner].boost;
		more = true;
	}
	hd__waitq_unlock(&m->waiters);
	return more;
}

static void work_out(struct level *levels)
{
	bool more = true;

	for (int i = 0; i < PROCESSES; i++)
		levels[i] = (struct level){ .priority = hd_priority(pids[i]) };
	while (more) {
		more = false;
		for (int i = 0; i < MUTEXES; i++)
			more |= lend(&mutexes[i], levels);
	}
}

static void check_levels(void)
{
	struct level levels[PROCESSES];

	work_out(levels);
	for (int i = 0; i < PROCESSES; i++) {
		CHECK_EQ(HD__CONTROL_BOOST(ld_acq(&blocks[i]->control)), levels[i].boost);
		CHECK_EQ(ld_rlx(&blocks[i]->priority), levels[i].priority);
	}
}

/* ---- the tests ---- */

static void thaw_all(void)
{
	for (int i = 0; i < PROCESSES; i++)
		CHECK_EQ(hd_semaphore_signal(&thaw), 0);
	for (int i = 0; i < PROCESSES; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	for (int i = 0; i < MUTEXES; i++) {
		CHECK_EQ(mutexes[i].owner, 0);
		CHECK_EQ(queued(&mutexes[i].waiters), 0);
	}
	CHECK_EQ(thaw.excess, 0);
}

static void freeze_and_look(unsigned seed, int workers)
{
	unsigned dice = seed;

	the_seed = seed;
	movable = seed % 2;
	for (int i = 0; i < PROCESSES; i++)
		pids[i] = 0;
	for (int i = 0; i < MUTEXES; i++)
		hd_mutex_init(&mutexes[i], HD_INHERIT | roll(&dice, 8));
	CHECK_EQ(hd_set_priority(hd_self(), 80), 0); /* to look whenever it likes */
	start_all(workers);
	await_stillness();
	check_levels();
	thaw_all();
}

/* A few seeds: in the simulated runtime each round plays them in another way, elsewhere there are more. */
static void freeze_often(int workers, int seeds)
{
	for (int i = 0; another_round(i, seeds); i++)
		freeze_and_look((unsigned)(i * 3 + workers), workers);
}

HD_WORKERS_TEST(inherit_random_boosts_are_those_of_the_best_waiters)
{
	freeze_often(workers, hd_is_simulated() ? 40 : hd_scaled(40));
}

HD_WORKERS_STRESS(inherit_random_boosts_are_those_of_the_best_waiters_for_long)
{
	under_stress = true;
	freeze_often(workers, hd_is_simulated() ? 300 : hd_scaled(3000));
}
