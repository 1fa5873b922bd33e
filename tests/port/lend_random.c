/* port/lend_random.c - whatever has happened, every process runs with the priority of the best that waits for its answer, or for its mutex.
 *
 * Processes call each other, answer, pass calls on, drop them, hold HD_INHERIT mutexes, run out of time, are cancelled and are given other
 * priorities, all at random; then each waits for something for ever, until none can go on. In that stillness the levels are compared with
 * those that follow from which process waits for which: found anew, from what each of them waits for.
 *
 * No circles: a process calls, and passes calls to, those with a higher number only; the first three take the mutexes in their order, and call the
 * last three meanwhile. No process has less of its own than at its birth: see sync/lend.c for what that would mean. */
#include "life/life.h"
#include "port/common.h"
#include "sync/sync.h"

enum { PROCESSES = 6, LOCKERS = 3, MUTEXES = 2, HOLD = 4, STEPS = 12, BIRTH = 30 };

static struct hd_mutex mutexes[MUTEXES];
static struct hd_semaphore thaw;
static hd_port *ports[PROCESSES];
static hd_pid pids[PROCESSES]; /* 0: not there yet */
static struct hd_process *blocks[PROCESSES];
static long
	moves; /* whatever lets another process go on: counted when it is done, and before the process that did it waits again */
static struct crew crew;
static unsigned the_seed;
static bool movable;

/* A process, and the calls that it has to answer. */
struct life {
	int number;
	unsigned dice;
	struct hd_message held[HOLD];
};

static unsigned roll(unsigned *dice, unsigned n)
{
	*dice = *dice * 1664525 + 1013904223;
	return (*dice >> 10) % n;
}

static hd_pid somebody(unsigned *dice)
{
	return __atomic_load_n(&pids[roll(dice, PROCESSES)], __ATOMIC_ACQUIRE);
}

static void take_one(struct life *me)
{
	struct hd_message *m = &me->held[roll(&me->dice, HOLD)];

	if (m->letter != NULL)
		return;
	int err = hd_receive(ports[me->number], m, roll(&me->dice, 2) ? 0 : hd_after(HD_US(roll(&me->dice, 4))));
	CHECK(err == 0 || err == -ETIMEDOUT || err == -ECANCELED);
	if (err != 0)
		*m = (struct hd_message){ .letter = NULL };
}

static void settle_one(struct life *me)
{
	struct hd_message *m = &me->held[roll(&me->dice, HOLD)];
	int higher = PROCESSES - 1 - me->number;

	if (m->letter == NULL)
		return;
	switch (roll(&me->dice, 4)) {
	case 0:
	case 1: {
		int err = hd_reply(m, 1, NULL, 0);
		CHECK(err == 0 || err == -ESRCH);
		break;
	}
	case 2:
		if (higher > 0) {
			hd_port *to = ports[me->number + 1 + (int)roll(&me->dice, (unsigned)higher)];
			int err = hd_send_with(to, &(struct hd_sending){ .carried = m->carried }, 0);
			CHECK(err == 0 || err == -ECANCELED);
		}
		break;
	default:
		break;
	}
	hd_message_drop(m);
	add(&moves, 1);
}

/* Calls one of those from `least` on. */
static int call_one(struct life *me, int least, bool patient)
{
	if (least <= me->number)
		least = me->number + 1;
	if (least >= PROCESSES)
		return -ESRCH;
	hd_port *to = ports[least + (int)roll(&me->dice, (unsigned)(PROCESSES - least))];
	int err = hd_call(to, 1, NULL, 0, NULL, patient ? HD_FOREVER : hd_after(HD_US(roll(&me->dice, 6))));
	CHECK(err == 0 || err == -EPIPE || err == -ESRCH || err == -ETIMEDOUT || err == -ECANCELED);
	return err;
}

/* With one or two of the mutexes, if it may have them, calls or waits; `patient`: for ever. */
static void lock_and_call(struct life *me, int first, bool patient)
{
	int m = first + (int)roll(&me->dice, MUTEXES);

	if (me->number >= LOCKERS || m >= MUTEXES) {
		call_one(me, me->number < LOCKERS ? LOCKERS : 0, patient);
		return;
	}
	int err = hd_mutex_lock(&mutexes[m], patient ? HD_FOREVER : hd_after(HD_US(roll(&me->dice, 5))));
	if (err != 0)
		return;
	lock_and_call(me, m + 1, patient);
	if (patient) /* it stands still as the owner, unless it waits in the call */
		while (hd_semaphore_wait(&thaw, HD_FOREVER) != 0)
			hd_cancel_clear();
	CHECK_EQ(hd_mutex_unlock(&mutexes[m]), 0);
	if (patient)
		CHECK_EQ(hd_semaphore_signal(&thaw), 0);
	add(&moves, 1);
}

static void steer_somebody(unsigned *dice)
{
	CHECK_EQ(hd_set_priority(somebody(dice), BIRTH + (int)roll(dice, 30)), 0);
}

static void step(struct life *me)
{
	switch (roll(&me->dice, 10)) {
	case 0:
		lock_and_call(me, 0, false);
		break;
	case 1:
	case 2:
		call_one(me, 0, false);
		break;
	case 3:
		steer_somebody(&me->dice);
		break;
	case 4:
		if (roll(&me->dice, 3) == 0)
			CHECK_EQ(hd_cancel(somebody(&me->dice)), 0);
		break;
	case 5:
		CHECK_EQ(hd_yield(), 0);
		break;
	case 6:
	case 7:
		take_one(me);
		break;
	default:
		settle_one(me);
		break;
	}
	hd_cancel_clear();
}

static void *live(void *number)
{
	struct life me = { .number = (int)(long)number, .dice = the_seed * 1009 + (unsigned)(long)number * 7919 };

	__atomic_store_n(&ports[me.number], hd_port_retain(made_port(NULL)), __ATOMIC_RELEASE);
	for (int i = 0; i < PROCESSES; i++)
		while (__atomic_load_n(&pids[i], __ATOMIC_ACQUIRE) == 0 || __atomic_load_n(&ports[i], __ATOMIC_ACQUIRE) == NULL)
			if (hd_sleep(HD_US(20)) != 0)
				hd_cancel_clear();
	for (int i = 0; i < STEPS; i++)
		step(&me);
	for (int i = 0; i < 2; i++)
		take_one(&me);
	if (roll(&me.dice, 2))
		lock_and_call(&me, 0, true);
	else if (roll(&me.dice, 3) != 0)
		call_one(&me, 0, true);
	while (hd_semaphore_wait(&thaw, HD_FOREVER) != 0)
		hd_cancel_clear();
	CHECK_EQ(hd_semaphore_signal(&thaw), 0); /* for all others too */
	return NULL;
}

/* One for each worker; those that are more than the workers come from the first ones. */
static void *live_and_bring_others(void *number)
{
	for (long i = (long)number + crew.size; i < PROCESSES; i += crew.size) {
		struct hd_spawn how = { .pinned = !movable, .priority = BIRTH };
		__atomic_store_n(&pids[i], born(hd_spawn_with(&how, live, (void *)i)), __ATOMIC_RELEASE);
	}
	return live(number);
}

static void start_all(int workers)
{
	void *numbers[PROCESSES];
	struct hd_spawn how = { .priority = BIRTH };
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

/* Whether it waits, and only another process can end that. */
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

/* Whether none will ever run unless it is thawed. One that seemed frozen and was then let go was let go by one that ran; and that one has
 * counted it before it could seem frozen itself. */
static bool is_still(void)
{
	long before = value_of(&moves);

	return all_are(is_frozen) && value_of(&moves) == before;
}

/* Requests go on in the stillness, along the chains; with each look in a row that finds none, those that could still be reached are one step
 * farther down the chains. */
static void await_stillness(void)
{
	while (!is_still())
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	for (int looks = 0; looks <= PROCESSES; looks++)
		if (!all_are(is_settled)) {
			looks = -1;
			CHECK_EQ(hd_sleep(HD_US(50)), 0);
		}
}

/* ---- what it should be ---- */

/* The owner of the mutex, if p waits for it. */
HD_AS_RUNTIME static hd_pid owner_for(struct hd_mutex *m, const struct hd_process *p)
{
	hd_pid owner = 0;

	hd__waitq_lock(&m->waiters);
	for (struct hd_waiter *x = m->waiters.head; x != NULL; x = x->next)
		if (x->process == p)
			owner = m->owner;
	hd__waitq_unlock(&m->waiters);
	return owner;
}

static bool calls(struct hd_process *p)
{
	return ld_rlx(&p->why) == HD_WAIT_CALL;
}

/* The process for which the i-th waits, by its number; -1: none. */
static int waits_for(int i)
{
	hd_pid to = calls(blocks[i]) ? (hd_pid)ld_acq(&blocks[i]->arrival) : 0;

	for (int k = 0; k < MUTEXES && to == 0; k++)
		to = owner_for(&mutexes[k], blocks[i]);
	for (int j = 0; j < PROCESSES; j++)
		if (to == pids[j])
			return j;
	CHECK_EQ(to, 0);
	return -1;
}

static void check_levels(void)
{
	int levels[PROCESSES], lent[PROCESSES] = { 0 };
	bool more = true;

	for (int i = 0; i < PROCESSES; i++)
		levels[i] = hd_priority(pids[i]);
	while (more) {
		more = false;
		for (int i = 0; i < PROCESSES; i++) {
			int to = waits_for(i);
			if (to >= 0 && levels[to] < levels[i]) {
				levels[to] = levels[i];
				more = true;
			}
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		int to = waits_for(i);
		if (to >= 0 && calls(blocks[i]) && levels[i] > BIRTH && levels[i] > lent[to])
			lent[to] = levels[i];
	}
	for (int i = 0; i < PROCESSES; i++) {
		CHECK_EQ(ld_rlx(&blocks[i]->priority), levels[i]);
		CHECK_EQ(ld_rlx(&blocks[i]->lent), lent[i]);
	}
}

/* ---- the tests ---- */

static void freeze_and_look(unsigned seed, int workers)
{
	the_seed = seed;
	movable = seed % 2;
	thaw = (struct hd_semaphore){ .excess = 0 };
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = 0;
		ports[i] = NULL;
	}
	for (int i = 0; i < MUTEXES; i++)
		hd_mutex_init(&mutexes[i], HD_INHERIT | (seed / 4 % 2 ? HD_BY_PRIORITY : 0));
	CHECK_EQ(hd_set_priority(hd_self(), 80), 0); /* to look whenever it likes */
	start_all(workers);
	await_stillness();
	check_levels();
	CHECK_EQ(hd_semaphore_signal(&thaw), 0);
	join_all(pids, PROCESSES);
	for (int i = 0; i < PROCESSES; i++)
		hd_port_release(ports[i]);
	check_all_gone();
}

/* A few seeds: in the simulated runtime each round plays them in another way, elsewhere there are more. */
static void freeze_often(int workers, int seeds)
{
	for (int i = 0; another_round(i, seeds); i++)
		freeze_and_look((unsigned)(i * 3 + workers), workers);
}

HD_WORKERS_TEST(lend_random_levels_are_those_of_the_best_waiters)
{
	freeze_often(workers, hd_is_simulated() ? 20 : hd_scaled(60));
}

HD_WORKERS_STRESS(lend_random_levels_are_those_of_the_best_waiters_for_long)
{
	under_stress = true;
	freeze_often(workers, hd_is_simulated() ? 300 : hd_scaled(3000));
}
