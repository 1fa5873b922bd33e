/* when/findings.c - behaviours: what a review has found. */
#include "when/common.h"

#include "life/guest.h"
#include "when/when.h"

/* ---- the end of the runtime against plain threads ---- */

static long made, run_or_dropped, cowns_dropped, at_work;

static void count_cown(void *data)
{
	(void)data;
	add(&cowns_dropped, 1);
}

static void do_nothing(void *arg, void *const data[])
{
	(void)arg, (void)data;
}

static void count_once(void *arg)
{
	(void)arg;
	add(&run_or_dropped, 1);
}

/* Makes behaviours until the runtime is over. */
static void make_until_the_end(void *uses)
{
	hd_cown **c = uses;
	int err;

	for (int i = 0;; i++) {
		hd_cown *both[] = { c[0], i % 2 == 0 ? c[1] : HD_READ(c[1]) };
		struct hd_when how = {
			.fn = do_nothing, .arg = &(long){ 0 }, .size = sizeof(long), .drop = count_once, .uses = both, .n = 2
		};
		struct hd_when two[] = { how, how };
		err = hd_when_batch(two, 1 + (size_t)(i % 3 == 0));
		if (err != 0)
			break;
		add(&made, 1 + (i % 3 == 0));
		add(&at_work, 1);
	}
	CHECK(err == -ESHUTDOWN || err == -ENXIO);
}

static void *end_when_it_works(void *arg)
{
	while (value_of(&at_work) < 2)
		hd_yield();
	CHECK_EQ(hd_shutdown(5), 0);
	return arg;
}

static void begin_to_make(void *uses)
{
	while (hd_hold_open(0) == -ENXIO)
		sched_yield();
	make_until_the_end(uses);
}

/* The thread is inside hd_when while the last worker leaves: the behaviour is abandoned before it is in all its lines. */
HD_TEST(when_drops_what_a_plain_thread_is_making_as_the_runtime_ends)
{
	for (int i = 0; i < (hd_is_simulated() ? 3 : 20); i++) {
		struct plain thread;
		hd_cown *c[] = { hd_cown_new(NULL, count_cown), hd_cown_new(NULL, count_cown) };

		CHECK(c[0] != NULL && c[1] != NULL);
		made = run_or_dropped = cowns_dropped = at_work = 0;
		plain_start(&thread, begin_to_make, c);
		CHECK_EQ(run_with_workers(1 + i % 2, end_when_it_works, NULL), 5);
		plain_join(&thread);
		hd_cown_release(c[0]);
		hd_cown_release(c[1]);
		CHECK_EQ(run_or_dropped, made);
		CHECK_EQ(cowns_dropped, 2);
	}
}

/* ---- a cown that came from the parent ---- */

enum { INHERITED = 3000 };
static hd_cown *inherited[INHERITED];
static long runs[INHERITED];
static long racers;

static void count_run(void *arg, void *const data[])
{
	(void)arg;
	++*(long *)data[0];
}

static void *use_all(void *arg)
{
	add(&racers, 1);
	while (value_of(&racers) < 2)
		hd_yield();
	for (int i = 0; i < many(INHERITED); i++)
		CHECK_EQ(hd_when(count_run, NULL, inherited[i]), 0);
	return arg;
}

static void *use_all_twice(void *arg)
{
	hd_pid pids[] = { born(hd_spawn(use_all, NULL)), born(hd_spawn(use_all, NULL)) };

	join_all(pids, 2);
	quiesce();
	for (int i = 0; i < many(INHERITED); i++) {
		CHECK_EQ(runs[i], 2);
		hd_cown_release(inherited[i]);
	}
	check_none_left();
	return arg;
}

/* Two processes of a forked child meet a cown for the first time at the same moment. What a fork changes is changed here: a child of a program with
 * threads has none of its own under the sanitizers. */
HD_TEST(when_in_a_forked_child_takes_a_cown_over_once)
{
	for (int i = 0; i < many(INHERITED); i++)
		inherited[i] = made_cown(&runs[i]);
	hd__forks++;
	CHECK_EQ(run_with_workers(2, use_all_twice, NULL), 0);
}

/* ---- behaviours that come after a promise ---- */

static void see_that_it_is_there(void *arg, void *const data[])
{
	(void)data;
	CHECK_EQ(cowns_dropped, 0);
	add(arg, 1);
}

HD_WORKERS_TEST(when_after_keeps_its_cowns_alive_until_the_behaviour_has_run)
{
	hd_promise *p = hd_promise_new();
	hd_cown *c = hd_cown_new(NULL, count_cown);
	long ran = 0;

	(void)workers;
	cowns_dropped = 0;
	CHECK(p != NULL && c != NULL);
	CHECK_EQ(hd_when_after(p, see_that_it_is_there, &ran, c), 0);
	hd_cown_release(c);
	CHECK_EQ(hd_promise_set(p, NULL), 0);
	hd_promise_release(p);
	quiesce();
	CHECK_EQ(ran, 1);
	CHECK_EQ(cowns_dropped, 1);
	check_none_left();
}

static long asking;

static void quiesce_plain(void *arg)
{
	set(&asking, 1);
	int err = hd_quiesce(HD_FOREVER);
	CHECK(err == 0 || err == -ENXIO);
	(void)arg;
}

struct left_behind {
	struct plain thread;
	hd_promise *promise;
};

static void *leave_one_after_a_promise(void *arg)
{
	struct left_behind *left = arg;
	hd_cown *c = hd_cown_new(NULL, count_cown);

	CHECK(c != NULL && (left->promise = hd_promise_new()) != NULL);
	CHECK_EQ(hd_when_after(left->promise, do_nothing, NULL, c), 0);
	hd_cown_release(c);
	plain_start(&left->thread, quiesce_plain, NULL);
	while (value_of(&asking) == 0) /* no safe point */
		sched_yield();
	for (int i = 0; i < 100; i++)
		sched_yield();
	CHECK_EQ(hd_shutdown(5), 0);
	return arg;
}

/* The process that waits for the promise has not begun when the runtime ends: hd_quiesce does not wait for it for ever. */
HD_TEST(when_after_is_over_when_the_runtime_ends_before_it_began)
{
	struct left_behind left;

	cowns_dropped = asking = 0;
	CHECK_EQ(run_with_workers(1, leave_one_after_a_promise, &left), 5);
	plain_join(&left.thread);
	hd_promise_release(left.promise);
	CHECK_EQ(cowns_dropped, 1);
}

/* ---- references ---- */

static void keep_it(void *arg, void *const data[])
{
	(void)data;
	*(hd_cown **)arg = hd_cown_retain(*(hd_cown **)arg);
}

static void keep_it_for_a_while(void *arg, void *const data[])
{
	keep_it(arg, data);
	hd_cown_release(*(hd_cown **)arg);
}

/* The caller's reference is released while the behaviour has the cown, or before, and the behaviour makes one of its own. */
HD_WORKERS_TEST(cown_lives_on_when_a_behaviour_that_has_it_makes_a_reference)
{
	(void)workers;
	for (int i = 0; i < many(1000); i++) {
		hd_cown *c = hd_cown_new(NULL, count_cown), *kept = c;
		cowns_dropped = 0;
		CHECK(c != NULL);
		CHECK_EQ(hd_when(i % 2 == 0 ? keep_it : keep_it_for_a_while, &kept, i % 3 == 0 ? c : HD_READ(c)), 0);
		CHECK_EQ(hd_when(do_nothing, NULL, c), 0);
		hd_cown_release(c);
		quiesce();
		CHECK_EQ(cowns_dropped, i % 2);
		if (i % 2 == 0)
			hd_cown_release(kept);
		CHECK_EQ(cowns_dropped, 1);
	}
	check_none_left();
}

/* ---- the end of the runtime, seen by a thread that it finds in hd_when ---- */

static long was_dropped;

static void drop_it(void *arg)
{
	add(arg, 1);
}

/* As hd_when does, but the runtime has a second, and gives up waiting for the call to be over. */
static void make_slowly(void *arg)
{
	const struct hd__making how = { .how = { .fn = do_nothing, .arg = arg, .drop = drop_it, .uses = inherited, .n = 2 } };
	struct hd__aftermath after = { .dead = NULL };
	struct hd__caller caller = hd__call_begin();
	struct hd__behaviour *b = hd__behaviour_new(&how);

	unsigned got = 1;

	CHECK(caller.sched != NULL && b != NULL);
	CHECK_EQ(hd__behaviour_embody(caller, b), 0);
	hd__behaviour_bear(caller, b, &how);
	set(&asking, 1);
	while (!(ld_acq(&b->awaits) & HD__FORSAKEN))
		sched_yield();
	for (int i = 0; i < 2; i++)
		got += hd__line_join(NULL, &b->tickets[i], &b->tickets[i], i == 1, &after);
	hd__line_placed(&b->tickets[0]);
	hd__behaviour_got(NULL, b, got, &after);
	CHECK(after.forsaken == b);
	hd__settle(&after);
	CHECK_EQ(value_of(arg), 1);
	hd__call_end(caller);
}

static void *end_meanwhile(void *arg)
{
	plain_start(arg, make_slowly, &was_dropped);
	while (value_of(&asking) == 0)
		sched_yield();
	CHECK_EQ(hd_shutdown(5), 0);
	return NULL;
}

HD_TEST(when_drops_what_the_runtime_has_abandoned_before_it_was_in_its_lines)
{
	struct plain thread;

	asking = was_dropped = cowns_dropped = 0;
	for (int i = 0; i < 2; i++)
		CHECK((inherited[i] = hd_cown_new(NULL, count_cown)) != NULL);
	CHECK_EQ(run_with_workers(1, end_meanwhile, &thread), 5);
	plain_join(&thread);
	for (int i = 0; i < 2; i++)
		hd_cown_release(inherited[i]);
	CHECK_EQ(cowns_dropped, 2);
}
