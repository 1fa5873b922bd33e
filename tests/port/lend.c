/* port/lend.c - a process runs with at least the priority of every process that waits for its answer.
 *
 * Most tests are played by actors, which do one thing at a time, when the first process says so; that one has the highest priority, and looks at
 * the levels in between. The tests with a trace play on one worker, where the order is exact. */
#include "life/life.h"
#include "port/common.h"

enum { ACTORS_MAX = 70 };

enum what { CALL, RECEIVE, REPLY, DROP, PASS, PASS_ALL, LOCK, UNLOCK, END };

struct actor {
	hd_pid pid;
	struct hd_process *p;
	hd_port *port;
	struct hd_semaphore go;
	enum what what;
	struct actor *to;
	struct hd_mutex *mutex;
	hd_time until;
	int answer; /* of what it was told to do; 1: it has not done it yet */
	long did;   /* how many things it has done */
	struct hd_message m;
};

static struct actor actors[ACTORS_MAX];
static int nactors;

static int act(struct actor *me)
{
	switch (me->what) {
	case CALL:
		return hd_call(me->to->port, 1, NULL, 0, NULL, me->until);
	case RECEIVE:
		return hd_receive(me->port, &me->m, HD_FOREVER);
	case REPLY: {
		int err = hd_reply(&me->m, 2, NULL, 0);
		hd_message_drop(&me->m);
		return err;
	}
	case DROP:
		hd_message_drop(&me->m);
		return 0;
	case PASS: {
		int err = hd_send_with(me->to->port, &(struct hd_sending){ .carried = me->m.carried }, 0);
		if (err == 0)
			hd_message_drop(&me->m);
		return err;
	}
	case PASS_ALL: {
		struct hd_parcel parcel = { .port = me->to->port, .what = { .carried = me->m.carried } };
		int err = hd_send_all(&parcel, 1);
		hd_message_drop(&me->m);
		return err;
	}
	case LOCK:
		return hd_mutex_lock(me->mutex, HD_FOREVER);
	case UNLOCK:
		return hd_mutex_unlock(me->mutex);
	default:
		return 0;
	}
}

static void *play(void *arg)
{
	struct actor *me = arg;

	me->port = hd_port_retain(made_port(NULL));
	do {
		add(&me->did, 1);
		CHECK_EQ(hd_semaphore_wait(&me->go, HD_FOREVER), 0);
		int answer = act(me);
		hd_cancel_clear();
		__atomic_store_n(&me->answer, answer, __ATOMIC_RELEASE);
	} while (me->what != END);
	return NULL;
}

/* ---- the first process's view ---- */

HD_AS_RUNTIME static bool is_settled(struct actor *a)
{
	hd__waitq_lock(&a->p->news);
	uint64_t control = ld_acq(&a->p->control);
	hd__waitq_unlock(&a->p->news);
	return (control & (HD__REBOOST | HD__NUDGED)) == 0;
}

/* Until all that was asked of the actors is done. Requests go along the chains: with each look in a row that finds none, those that could still
 * be on their way are one step farther. */
static void settle(void)
{
	for (int looks = 0; looks <= nactors; looks++)
		for (int i = 0; i < nactors; i++)
			if (!is_settled(&actors[i])) {
				CHECK_EQ(hd_sleep(HD_US(50)), 0);
				looks = -1;
				break;
			}
}

static int level_of(struct actor *a)
{
	settle();
	return ld_rlx(&a->p->priority);
}

static void await_waiting(struct actor *a)
{
	while (ld_acq(&a->p->state) != HD_WAITING)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
}

/* Begins to do it; returns when it waits. */
static void tell(struct actor *a, enum what what)
{
	a->answer = 1;
	a->what = what;
	CHECK_EQ(hd_semaphore_signal(&a->go), 0);
	CHECK_EQ(hd_sleep(HD_US(50)), 0);
	await_waiting(a);
}

static void tell_to(struct actor *a, enum what what, struct actor *to)
{
	a->to = to;
	tell(a, what);
}

static void tell_lock(struct actor *a, enum what what, struct hd_mutex *m)
{
	a->mutex = m;
	tell(a, what);
}

/* Does it, to its end. */
static void have_done(struct actor *a, enum what what)
{
	long before = value_of(&a->did);

	tell(a, what);
	while (value_of(&a->did) == before)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	CHECK_EQ(a->answer, 0);
}

static void await_answer(struct actor *a, int answer)
{
	while (__atomic_load_n(&a->answer, __ATOMIC_ACQUIRE) == 1)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	await_waiting(a);
	CHECK_EQ(a->answer, answer);
}

static struct actor *start_with(struct actor *a, const struct hd_spawn *how)
{
	*a = (struct actor){ .until = HD_FOREVER };
	a->pid = born(hd_spawn_with(how, play, a));
	a->p = hd__table_find(&hd__self()->sched->table, a->pid);
	while (value_of(&a->did) == 0)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	await_waiting(a);
	return a;
}

static struct actor *start(int priority)
{
	CHECK(nactors < ACTORS_MAX);
	CHECK_EQ(hd_set_priority(hd_self(), 80), 0);
	struct actor *a = start_with(&actors[nactors], &(struct hd_spawn){ .priority = priority });
	nactors++;
	return a;
}

static void end(struct actor *a)
{
	a->what = END;
	CHECK_EQ(hd_semaphore_signal(&a->go), 0);
	CHECK_EQ(hd_join(a->pid, NULL, HD_FOREVER), 0);
	hd_port_release(a->port);
	a->port = NULL;
}

/* Of the actor that started last. */
static void kill_last(struct actor *a)
{
	CHECK(a == &actors[--nactors]);
	CHECK_EQ(hd_terminate(a->pid, HD_FOREVER), 0);
	CHECK_EQ(hd_join(a->pid, NULL, HD_FOREVER), 0);
	hd_port_release(a->port);
}

static void end_all(void)
{
	for (int i = 0; i < nactors; i++) {
		CHECK_EQ(level_of(&actors[i]), hd_priority(actors[i].pid));
		CHECK_EQ(ld_rlx(&actors[i].p->lent), 0);
	}
	while (nactors > 0)
		end(&actors[--nactors]);
	check_all_gone();
}

/* ---- a loan begins and ends ---- */

HD_WORKERS_TEST(lend_lasts_from_the_call_to_the_reply)
{
	struct actor *high = start(60), *server = start(40);

	(void)workers;
	tell_to(high, CALL, server); /* it is in the port */
	CHECK_EQ(level_of(server), 60);
	have_done(server, RECEIVE); /* the server holds it */
	CHECK_EQ(level_of(server), 60);
	have_done(server, REPLY);
	await_answer(high, 0);
	CHECK_EQ(level_of(server), 40);
	tell(server, RECEIVE); /* and from hand to hand */
	tell_to(high, CALL, server);
	await_answer(server, 0);
	CHECK_EQ(level_of(server), 60);
	have_done(server, REPLY);
	await_answer(high, 0);
	end_all();
}

HD_WORKERS_TEST(lend_is_nothing_between_equals_and_from_below)
{
	struct actor *equal = start(40), *low = start(30), *server = start(40);

	(void)workers;
	tell_to(equal, CALL, server);
	tell_to(low, CALL, server);
	CHECK_EQ(level_of(server), 40);
	CHECK_EQ(ld_rlx(&server->p->lent), 0);
	for (int i = 0; i < 2; i++) {
		have_done(server, RECEIVE);
		have_done(server, REPLY);
	}
	await_answer(equal, 0);
	await_answer(low, 0);
	end_all();
}

HD_WORKERS_TEST(lend_ends_when_the_message_is_dropped)
{
	struct actor *high = start(60), *server = start(40);

	(void)workers;
	tell_to(high, CALL, server);
	have_done(server, RECEIVE);
	have_done(server, DROP);
	await_answer(high, -EPIPE);
	CHECK_EQ(level_of(server), 40);
	end_all();
}

HD_WORKERS_TEST(lend_ends_when_time_is_up)
{
	struct actor *high = start(60), *server = start(40);

	(void)workers;
	high->until = hd_after(HD_MS(2));
	tell_to(high, CALL, server);
	await_answer(high, -ETIMEDOUT);
	CHECK_EQ(level_of(server), 40);
	high->until = 0;
	tell_to(high, CALL, server);
	await_answer(high, -ETIMEDOUT);
	CHECK_EQ(level_of(server), 40);
	for (int i = 0; i < 2; i++) {
		have_done(server, RECEIVE);
		have_done(server, DROP);
	}
	end_all();
}

HD_WORKERS_TEST(lend_ends_when_the_caller_is_cancelled_or_ends)
{
	struct actor *server = start(40), *high = start(60), *higher = start(70);

	(void)workers;
	tell_to(high, CALL, server);
	tell_to(higher, CALL, server);
	CHECK_EQ(level_of(server), 70);
	kill_last(higher);
	CHECK_EQ(level_of(server), 60);
	CHECK_EQ(hd_cancel(high->pid), 0);
	await_answer(high, -ECANCELED);
	CHECK_EQ(level_of(server), 40);
	for (int i = 0; i < 2; i++) {
		have_done(server, RECEIVE);
		have_done(server, DROP);
	}
	end_all();
}

/* The port where the answer goes outlives the server that was to answer: the next process in its slot is lent nothing. */
HD_WORKERS_TEST(lend_ends_with_the_server)
{
	struct actor *high = start(60), *server = start(40);

	(void)workers;
	tell_to(high, CALL, server);
	have_done(server, RECEIVE);
	hd_port *answer = hd_port_retain(server->m.carried);
	struct hd_process *before = server->p;
	kill_last(server);
	CHECK_EQ(ld_rlx(&before->lent), 0);
	CHECK_EQ(high->answer, 1);
	server = start(30);
	CHECK(server->p == before);
	CHECK_EQ(hd_set_priority(high->pid, 65), 0); /* it waits for the one that has ended */
	CHECK_EQ(level_of(server), 30);
	CHECK_EQ(ld_rlx(&server->p->lent), 0);
	CHECK_EQ(hd_send(answer, 3, NULL, 0, 0), 0);
	hd_port_release(answer);
	await_answer(high, 0);
	CHECK_EQ(level_of(server), 30);
	tell_to(high, CALL, server);
	CHECK_EQ(level_of(server), 65);
	kill_last(server); /* the call is in its port */
	await_answer(high, -EPIPE);
	end_all();
}

/* ---- several ---- */

HD_WORKERS_TEST(lend_is_the_highest_of_all_callers)
{
	enum { CALLERS = 6 };
	static const int priorities[CALLERS] = { 50, 70, 60, 35, 70, 55 };
	static const int left[CALLERS] = { 70, 70, 70, 70, 55, 40 }; /* when the first i + 1 have been answered */
	struct actor *server = start(40), *callers[CALLERS];

	(void)workers;
	for (int i = 0; i < CALLERS; i++) {
		callers[i] = start(priorities[i]);
		tell_to(callers[i], CALL, server);
	}
	for (int i = 0; i < CALLERS; i++) {
		CHECK_EQ(level_of(server), i == 0 ? 70 : left[i - 1]);
		have_done(server, RECEIVE);
		have_done(server, REPLY);
		await_answer(callers[i], 0);
		CHECK_EQ(level_of(server), left[i]);
	}
	end_all();
}

/* ---- passing on ---- */

HD_WORKERS_TEST(lend_is_passed_on_with_the_call)
{
	struct actor *high = start(60), *first = start(40), *second = start(30), *third = start(20);

	(void)workers;
	tell_to(high, CALL, first);
	have_done(first, RECEIVE);
	first->to = second;
	have_done(first, PASS);
	CHECK_EQ(level_of(first), 40);
	CHECK_EQ(level_of(second), 60);
	have_done(second, RECEIVE);
	second->to = third;
	have_done(second, PASS_ALL);
	CHECK_EQ(level_of(second), 30);
	CHECK_EQ(level_of(third), 60);
	have_done(third, RECEIVE);
	have_done(third, REPLY);
	await_answer(high, 0);
	CHECK_EQ(level_of(third), 20);
	end_all();
}

HD_WORKERS_TEST(lend_comes_back_when_the_call_cannot_be_passed_on)
{
	struct actor *high = start(60), *first = start(40), *ended = start(30);

	(void)workers;
	tell_to(high, CALL, first);
	have_done(first, RECEIVE);
	hd_port_retain(ended->port);
	kill_last(ended);
	tell_to(first, PASS, ended);
	await_answer(first, -ESRCH);
	CHECK_EQ(level_of(first), 60);
	hd_port_release(ended->port);
	have_done(first, REPLY);
	await_answer(high, 0);
	end_all();
}

/* A call is not passed on to its own caller: the loan stays where it was. */
HD_WORKERS_TEST(lend_stays_when_a_call_would_come_back_to_its_caller)
{
	struct actor *first = start(40), *high = start(45);

	(void)workers;
	CHECK_EQ(hd_set_priority(high->pid, 60), 0);
	tell_to(high, CALL, first);
	have_done(first, RECEIVE);
	tell_to(first, PASS, high);
	await_answer(first, -EDEADLK);
	CHECK_EQ(level_of(first), 60);
	CHECK_EQ(hd_set_priority(high->pid, 50), 0);
	CHECK_EQ(level_of(first), 50);
	have_done(first, REPLY);
	await_answer(high, 0);
	CHECK_EQ(level_of(first), 40);
	end_all();
}

static hd_port *unowned;

static void *calls_unowned(void *arg)
{
	CHECK_EQ(hd_call(unowned, 1, NULL, 0, NULL, HD_FOREVER), 0);
	return arg;
}

static void *answers_unowned(void *arg)
{
	struct hd_message m;

	CHECK_EQ(hd__self()->current->priority, 60);
	CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
	CHECK_EQ(hd_reply(&m, 1, NULL, 0), 0);
	CHECK_EQ(hd__self()->current->priority, 20);
	return arg;
}

/* A process is born with the calls that were there before it. */
HD_WORKERS_TEST(lend_waits_for_the_birth_of_the_server)
{
	(void)workers;
	unowned = made_port(&(struct hd_port_options){ .unowned = true });
	CHECK_EQ(hd_set_priority(hd_self(), 80), 0);
	hd_pid caller = born(hd_spawn_at(60, calls_unowned, NULL));
	while (length_of(unowned) == 0 || info_of(caller).state != HD_WAITING)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	struct hd_spawn how = { .priority = 20, .port = unowned };
	hd_pid server = born(hd_spawn_with(&how, answers_unowned, NULL));
	join_all((hd_pid[]){ caller, server }, 2);
	hd_port_release(unowned);
	check_all_gone();
}

/* ---- chains ---- */

/* high -> 0 -> 1 -> ... -> n - 1. */
static void chain(int n)
{
	struct actor *links[ACTORS_MAX];

	for (int i = 0; i < n; i++)
		links[i] = start(20 + i % 10);
	for (int i = 0; i < n - 1; i++)
		tell_to(links[i], CALL, links[i + 1]);
	struct actor *high = start(70), *higher = start(75);
	tell_to(high, CALL, links[0]);
	tell_to(higher, CALL, links[n / 2]);
	for (int i = 0; i < n; i++)
		CHECK_EQ(level_of(links[i]), i < n / 2 ? 70 : 75);
	CHECK_EQ(hd_set_priority(high->pid, 78), 0);
	for (int i = 0; i < n; i++)
		CHECK_EQ(level_of(links[i]), 78);
	CHECK_EQ(hd_set_priority(high->pid, 60), 0);
	CHECK_EQ(level_of(links[n - 1]), 75);
	CHECK_EQ(level_of(links[n / 2 - (n > 1)]), n > 1 ? 60 : 75);
	/* from the end on, each answers; the one in the middle has two calls */
	for (int i = n - 1; i >= 0; i--) {
		have_done(links[i], RECEIVE);
		have_done(links[i], REPLY);
		if (i == n / 2) {
			have_done(links[i], RECEIVE);
			have_done(links[i], REPLY);
			await_answer(higher, 0);
		}
		CHECK_EQ(level_of(links[i]), 20 + i % 10);
		if (i > 0)
			await_answer(links[i - 1], 0);
	}
	await_answer(high, 0);
	end_all();
}

HD_WORKERS_TEST(lend_goes_along_a_chain_of_calls)
{
	(void)workers;
	chain(2);
	chain(3);
	chain(hd_is_simulated() ? 8 : 64);
}

static struct hd_mutex mutex = HD_MUTEX(HD_INHERIT);

/* high calls server, which waits for the mutex of owner. */
HD_WORKERS_TEST(lend_goes_on_into_a_mutex)
{
	struct actor *owner = start(20), *server = start(40), *high = start(60);

	(void)workers;
	owner->mutex = &mutex;
	have_done(owner, LOCK);
	tell_lock(server, LOCK, &mutex);
	CHECK_EQ(level_of(owner), 40);
	tell_to(high, CALL, server);
	CHECK_EQ(level_of(owner), 60);
	CHECK_EQ(hd_set_priority(high->pid, 30), 0);
	CHECK_EQ(level_of(owner), 40);
	CHECK_EQ(hd_set_priority(high->pid, 55), 0);
	CHECK_EQ(level_of(owner), 55);
	have_done(owner, UNLOCK);
	await_answer(server, 0);
	CHECK_EQ(level_of(owner), 20);
	CHECK_EQ(level_of(server), 55);
	have_done(server, UNLOCK);
	have_done(server, RECEIVE);
	have_done(server, REPLY);
	await_answer(high, 0);
	end_all();
}

/* high waits for the mutex of owner, which calls server. */
HD_WORKERS_TEST(lend_comes_from_a_mutex)
{
	struct actor *owner = start(40), *server = start(20), *high = start(60);

	(void)workers;
	owner->mutex = &mutex;
	have_done(owner, LOCK);
	tell_to(owner, CALL, server);
	CHECK_EQ(level_of(server), 40);
	tell_lock(high, LOCK, &mutex);
	CHECK_EQ(level_of(owner), 60);
	CHECK_EQ(level_of(server), 60);
	have_done(server, RECEIVE);
	have_done(server, REPLY);
	CHECK_EQ(level_of(server), 20);
	await_answer(owner, 0);
	have_done(owner, UNLOCK);
	await_answer(high, 0);
	have_done(high, UNLOCK);
	end_all();
}

/* ---- priorities that change ---- */

HD_WORKERS_TEST(lend_follows_the_priority_of_a_caller_that_waits)
{
	struct actor *caller = start(30), *server = start(40);
	static const int steps[][2] = { { 60, 60 }, { 50, 50 }, { 20, 40 }, { 41, 41 }, { 40, 40 }, { 70, 70 } };

	(void)workers;
	tell_to(caller, CALL, server);
	for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		CHECK_EQ(hd_set_priority(caller->pid, steps[i][0]), 0);
		CHECK_EQ(level_of(server), steps[i][1]);
	}
	have_done(server, RECEIVE);
	have_done(server, REPLY);
	await_answer(caller, 0);
	end_all();
}

HD_WORKERS_TEST(lend_counts_against_what_the_server_has_of_its_own)
{
	struct actor *caller = start(50), *other = start(45), *server = start(40);
	static const int steps[][2] = { { 60, 60 }, { 48, 50 }, { 55, 55 }, { 20, 50 } };

	(void)workers;
	tell_to(caller, CALL, server);
	for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		CHECK_EQ(hd_set_priority(server->pid, steps[i][0]), 0);
		CHECK_EQ(level_of(server), steps[i][1]);
		if (i == 0) /* it is lent less than it has now, and more than it will have */
			tell_to(other, CALL, server);
	}
	have_done(server, RECEIVE);
	have_done(server, REPLY);
	await_answer(caller, 0);
	CHECK_EQ(level_of(server), 45);
	have_done(server, RECEIVE);
	have_done(server, REPLY);
	await_answer(other, 0);
	end_all();
}

HD_WORKERS_TEST(lend_to_a_server_that_was_given_less)
{
	struct actor *caller = start(30), *server = start(40);

	(void)workers;
	CHECK_EQ(hd_set_priority(server->pid, 20), 0);
	tell_to(caller, CALL, server);
	CHECK_EQ(level_of(server), 30);
	have_done(server, RECEIVE);
	have_done(server, REPLY);
	await_answer(caller, 0);
	end_all();
}

/* A loan that ends while the server has more of its own is nothing to it, then and later. */
HD_WORKERS_TEST(lend_that_is_over_does_not_come_back)
{
	struct actor *caller = start(50), *server = start(40);

	(void)workers;
	tell_to(caller, CALL, server);
	CHECK_EQ(level_of(server), 50);
	CHECK_EQ(hd_set_priority(server->pid, 60), 0);
	CHECK_EQ(level_of(server), 60);
	CHECK_EQ(hd_cancel(caller->pid), 0);
	await_answer(caller, -ECANCELED);
	CHECK_EQ(level_of(server), 60);
	CHECK_EQ(hd_set_priority(server->pid, 45), 0);
	CHECK_EQ(level_of(server), 45);
	tell_to(caller, CALL, server);
	CHECK_EQ(level_of(server), 50);
	for (int i = 0; i < 2; i++) {
		have_done(server, RECEIVE);
		have_done(server, DROP);
	}
	await_answer(caller, -EPIPE);
	end_all();
}

HD_WORKERS_TEST(lend_to_a_suspended_server_waits_for_it)
{
	struct actor *high = start(60), *server = start(40);

	(void)workers;
	CHECK_EQ(hd_suspend(server->pid, HD_FOREVER), 0);
	tell_to(high, CALL, server);
	CHECK_EQ(level_of(server), 60);
	CHECK(hd__should_stop(ld_acq(&server->p->control)));
	CHECK_EQ(hd_resume(server->pid), 0);
	have_done(server, RECEIVE);
	CHECK_EQ(hd_suspend(server->pid, HD_FOREVER), 0);
	CHECK_EQ(hd_set_priority(high->pid, 50), 0);
	CHECK_EQ(level_of(server), 50);
	CHECK_EQ(hd_resume(server->pid), 0);
	have_done(server, REPLY);
	await_answer(high, 0);
	end_all();
}

/* ---- who runs when ---- */

static hd_port *low_port;
static int over;

static void *high_calls(void *arg)
{
	CHECK_EQ(hd_call(low_port, 1, NULL, 0, NULL, HD_FOREVER), 0);
	trace("high ");
	return arg;
}

static void *low_serves(void *arg)
{
	struct hd_message m;

	low_port = made_port(NULL);
	CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
	trace("low ");
	CHECK_EQ(hd_yield(), 0);
	born(hd_spawn_at(20, say, (void *)"equal "));
	trace("low ");
	CHECK_EQ(hd_reply(&m, 1, NULL, 0), 0);
	hd_message_drop(&m);
	trace("low-again ");
	return arg;
}

static void *hog(void *arg)
{
	trace("hog ");
	while (!is_raised(&over))
		CHECK_EQ(hd_yield(), 0);
	return arg;
}

/* Low serves high before the hog, which would never let it run; then it is at the head of its level. */
HD_PROCESS_TEST(lend_prevents_inversion_and_leaves_the_server_its_place)
{
	CHECK_EQ(hd_set_priority(hd_self(), 70), 0);
	hd_pid low = born(hd_spawn_at(20, low_serves, NULL));
	while (low_port == NULL || info_of(low).state != HD_WAITING)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	hd_pid middle = born(hd_spawn_at(40, hog, NULL)), high = born(hd_spawn_at(60, high_calls, NULL));
	CHECK_EQ(hd_join(high, NULL, HD_FOREVER), 0);
	raise_flag(&over);
	CHECK_EQ(hd_join(middle, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(low, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_set_priority(hd_self(), 10), 0);
	CHECK_EQ(hd_yield(), 0);
	CHECK_STR(trace_text(), "low low high hog low-again equal ");
}

static void *low_is_ready(void *arg)
{
	struct hd_message m;

	CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
	trace("low ");
	CHECK_EQ(hd_reply(&m, 1, NULL, 0), 0);
	trace("low-again ");
	hd_message_drop(&m);
	return arg;
}

/* A server that was not waiting, but ready at its own level, below the hog: the caller hands it the worker all the same. */
HD_PROCESS_TEST(lend_to_a_ready_server_hands_it_the_worker)
{
	low_port = made_port(&(struct hd_port_options){ .unowned = true });
	over = 0;
	CHECK_EQ(hd_set_priority(hd_self(), 70), 0);
	hd_pid low = born(hd_spawn_with(&(struct hd_spawn){ .priority = 20, .port = low_port }, low_is_ready, NULL));
	hd_pid middle = born(hd_spawn_at(40, hog, NULL)), high = born(hd_spawn_at(60, high_calls, NULL));
	uint64_t before = stats_now().handoffs;
	CHECK_EQ(hd_join(high, NULL, HD_FOREVER), 0);
	CHECK(stats_now().handoffs > before);
	raise_flag(&over);
	CHECK_EQ(hd_join(middle, NULL, HD_FOREVER), 0);
	CHECK_EQ(hd_join(low, NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "low high hog low-again ");
	hd_port_release(low_port);
}

/* ---- on several workers ---- */

static hd_port *far_port;
static hd_pid far_server;
static int workers_then[2];
static struct hd_semaphore leave;

static void *serve_far(void)
{
	struct hd_message m;

	far_port = made_port(NULL);
	__atomic_store_n(&far_server, hd_self(), __ATOMIC_RELEASE);
	CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
	workers_then[0] = worker_of(hd_self());
	CHECK_EQ(hd_reply(&m, 1, NULL, 0), 0);
	hd_message_drop(&m);
	return NULL;
}

static void *call_far(void)
{
	CHECK_EQ(hd_pin(), 0);
	CHECK_EQ(hd_set_priority(hd_self(), 60), 0);
	while (__atomic_load_n(&far_server, __ATOMIC_ACQUIRE) == 0 || info_of(far_server).why != HD_WAIT_RECEIVE)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	workers_then[1] = worker_of(hd_self());
	CHECK_EQ(hd_call(far_port, 1, NULL, 0, NULL, HD_FOREVER), 0);
	for (int i = 0; i < WORKERS_MAX; i++)
		CHECK_EQ(hd_semaphore_signal(&leave), 0);
	return NULL;
}

static void *serve_or_call(void *number)
{
	if ((long)number == 0)
		return serve_far();
	if ((long)number == 1)
		return call_far();
	CHECK_EQ(hd_semaphore_wait(&leave, HD_FOREVER), 0);
	return NULL;
}

/* The server waits on another worker: it comes to the caller's, as one that is lent nothing does. */
HD_MANY_WORKERS_TEST(lend_brings_the_server_to_the_caller)
{
	void *numbers[WORKERS_MAX];
	struct crew crew;

	far_server = 0;
	leave = (struct hd_semaphore){ .excess = 0 };
	for (long i = 0; i < workers; i++)
		numbers[i] = (void *)i;
	start_crew_that(false, &crew, &(struct hd_spawn){ .priority = 40 }, workers, serve_or_call, numbers);
	join_crew_members(&crew);
	CHECK_EQ(workers_then[0], workers_then[1]);
}

static int busy, enough, level_then;

static void *serve_deaf(void)
{
	struct hd_message m;

	far_port = made_port(NULL);
	__atomic_store_n(&far_server, hd_self(), __ATOMIC_RELEASE);
	CHECK_EQ(hd_receive(NULL, &m, HD_FOREVER), 0);
	while (hd__self()->current->priority != 50)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	raise_flag(&busy);
	while (!is_raised(&enough))
		; /* no safe point */
	CHECK_EQ(hd_checkpoint(), 0);
	level_then = hd__self()->current->priority;
	hd_message_drop(&m);
	return NULL;
}

static void *call_deaf(void *arg)
{
	CHECK_EQ(hd_call(far_port, 1, NULL, 0, NULL, HD_FOREVER), -ECANCELED);
	return arg;
}

static void *steer_deaf(void)
{
	while (__atomic_load_n(&far_server, __ATOMIC_ACQUIRE) == 0)
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	hd_pid caller = born(hd_spawn_with(&(struct hd_spawn){ .priority = 50, .pinned = true }, call_deaf, NULL));
	while (!is_raised(&busy))
		CHECK_EQ(hd_sleep(HD_US(50)), 0);
	CHECK_EQ(hd_set_priority(far_server, 60), 0);
	CHECK_EQ(hd_cancel(caller), 0);
	CHECK_EQ(hd_join(caller, NULL, HD_FOREVER), 0); /* it ends a loan that is below what the server has */
	CHECK_EQ(hd_set_priority(far_server, 40), 0);
	raise_flag(&enough);
	return NULL;
}

static void *serve_or_steer(void *number)
{
	return (long)number == 0 ? serve_deaf() : (long)number == 1 ? steer_deaf() : NULL;
}

/* All that happens while it is deaf comes to it at once: its own priority is what it was, the boost that its word has is over. */
HD_MANY_WORKERS_TEST(lend_that_is_over_does_not_come_back_to_a_deaf_server)
{
	void *numbers[WORKERS_MAX];
	struct crew crew;

	far_server = 0;
	busy = enough = 0;
	for (long i = 0; i < workers; i++)
		numbers[i] = (void *)i;
	start_crew(&crew, &(struct hd_spawn){ .priority = 40 }, workers, serve_or_steer, numbers);
	join_crew_members(&crew);
	CHECK_EQ(level_then, 40);
}
