/* sync/rendezvous.c - what a rendezvous promises: a put and a next wait for each other, and each item passes once or not at all. */
#include <errno.h>
#include <string.h>

#include "life/common.h"
#include "os/fault.h"
#include "sched/workers.h"

static int many(int n)
{
	return hd_is_simulated() ? n / 100 + 2 : hd_scaled(n);
}

static hd_queue *q;

static void make_rendezvous(size_t item_size)
{
	q = hd_queue_new_rendezvous(item_size);
	CHECK(q != NULL);
}

/* ---- nobody waits on the other side ---- */

static void check_answers(void)
{
	long item = 5, items[3] = { 1, 2, 3 };

	make_rendezvous(sizeof item);
	CHECK_EQ(hd_queue_try_put(q, &item), -EAGAIN);
	CHECK_EQ(hd_queue_try_next(q, &item), -EAGAIN);
	CHECK_EQ(hd_queue_put(q, &item, 0), -ETIMEDOUT);
	CHECK_EQ(hd_queue_next(q, &item, 0), -ETIMEDOUT);
	CHECK_EQ(hd_queue_put(q, &item, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_queue_next(q, &item, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_queue_put_many(q, items, 3, 0), -ETIMEDOUT);
	CHECK_EQ(hd_queue_next_many(q, items, 3, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_EQ(hd_queue_peek(q, &item), -EAGAIN);
	CHECK_EQ(hd_queue_length(q), 0);
	CHECK_EQ(hd_queue_close(q), 0);
	CHECK_EQ(hd_queue_close(q), -EALREADY);
	CHECK_EQ(hd_queue_put(q, &item, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_queue_next(q, &item, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_queue_try_put(q, &item), -EPIPE);
	CHECK_EQ(hd_queue_try_next(q, &item), -EPIPE);
	CHECK_EQ(hd_queue_put_many(q, items, 3, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_queue_next_many(q, items, 3, HD_FOREVER), -EPIPE);
	CHECK_EQ(hd_queue_peek(q, &item), -EPIPE);
	CHECK_EQ(item, 5);
	hd_queue_drop(q);
}

HD_TEST(rendezvous_with_no_partner_passes_nothing_on_plain_thread)
{
	check_answers();
}

HD_PROCESS_TEST(rendezvous_with_no_partner_passes_nothing_on_process)
{
	check_answers();
}

HD_TEST(rendezvous_without_memory_is_none)
{
	for (unsigned nth = 1; nth <= 2; nth++) {
		hd__fault_arm(HD__FAULT_ALLOC, nth, false);
		CHECK(hd_queue_new_rendezvous(8) == NULL);
	}
	hd__fault_arm(HD__FAULT_ALLOC, 0, false);
}

/* ---- one waits ---- */

struct side {
	const char *word;
	long item;
};

static void *put_and_say(void *arg)
{
	struct side *side = arg;
	int err = hd_queue_put(q, &side->item, HD_FOREVER);

	trace("%s:%d ", side->word, err);
	return NULL;
}

static void *take_and_say(void *arg)
{
	struct side *side = arg;
	int err = hd_queue_next(q, &side->item, HD_FOREVER);

	trace("%s:%d,%ld ", side->word, err, side->item);
	return NULL;
}

HD_PROCESS_TEST(rendezvous_putter_waits_until_its_item_is_taken)
{
	struct side a = { "a", 7 }, b = { "b", 8 };
	long item = 0;

	make_rendezvous(sizeof(long));
	hd_pid pid = born(hd_spawn_at(50, put_and_say, &a));
	born(hd_spawn_at(60, put_and_say, &b));
	CHECK_EQ(info_of(pid).why, HD_WAIT_PUT);
	CHECK_EQ(hd_queue_length(q), 0);
	CHECK_EQ(hd_queue_peek(q, &item), -EAGAIN);
	CHECK_EQ(hd_queue_try_put(q, &item), -EAGAIN); /* the waiters are on the same side */
	CHECK_EQ(hd_queue_next(q, &item, HD_FOREVER), 0);
	trace("%ld ", item);
	CHECK_EQ(hd_queue_try_next(q, &item), 0);
	trace("%ld ", item);
	CHECK_EQ(hd_queue_try_next(q, &item), -EAGAIN);
	CHECK_STR(trace_text(), "a:0 7 b:0 8 ");
	hd_queue_drop(q);
}

HD_PROCESS_TEST(rendezvous_taker_waits_until_an_item_is_put)
{
	struct side a = { "a", 0 }, b = { "b", 0 };
	long item = 7;

	make_rendezvous(sizeof(long));
	hd_pid pid = born(hd_spawn_at(50, take_and_say, &a));
	born(hd_spawn_at(60, take_and_say, &b));
	CHECK_EQ(info_of(pid).why, HD_WAIT_NEXT);
	CHECK_EQ(hd_queue_try_next(q, &item), -EAGAIN);
	CHECK_EQ(hd_queue_try_put(q, &item), 0);
	CHECK_EQ(hd_queue_put(q, &(long){ 8 }, HD_FOREVER), 0);
	CHECK_EQ(hd_queue_try_put(q, &item), -EAGAIN);
	CHECK_STR(trace_text(), "a:0,7 b:0,8 ");
	hd_queue_drop(q);
}

/* A waiter that leaves the queue passes nothing, and its neighbours are served as if it had never been there. */
HD_PROCESS_TEST(rendezvous_waiters_that_leave_pass_nothing)
{
	struct side puts[] = { { "a", 1 }, { "b", 2 }, { "c", 3 } }, takes[] = { { "d", 0 }, { "e", 0 }, { "f", 0 } };
	hd_pid pids[3];
	long item = 0;

	make_rendezvous(sizeof(long));
	for (int i = 0; i < 3; i++)
		pids[i] = born(hd_spawn_at(50, put_and_say, &puts[i]));
	CHECK_EQ(hd_cancel(pids[0]), 0);
	CHECK_EQ(hd_terminate(pids[1], HD_FOREVER), 0);
	CHECK_EQ(hd_queue_try_next(q, &item), 0);
	CHECK_EQ(item, 3);
	CHECK_EQ(hd_queue_try_next(q, &item), -EAGAIN);
	for (int i = 0; i < 3; i++)
		pids[i] = born(hd_spawn_at(50, take_and_say, &takes[i]));
	CHECK_EQ(hd_cancel(pids[0]), 0);
	CHECK_EQ(hd_terminate(pids[1], HD_FOREVER), 0);
	CHECK_EQ(hd_queue_try_put(q, &(long){ 4 }), 0);
	CHECK_EQ(hd_queue_try_put(q, &(long){ 5 }), -EAGAIN);
	CHECK_STR(trace_text(), "a:-125 c:0 d:-125,0 f:0,4 ");
	hd_queue_drop(q);
}

HD_PROCESS_TEST(rendezvous_close_tells_the_waiters_of_either_side)
{
	struct side a = { "a", 1 }, b = { "b", 2 };

	for (int i = 0; i < 2; i++) {
		make_rendezvous(sizeof(long));
		born(hd_spawn_at(50, i == 0 ? put_and_say : take_and_say, &a));
		born(hd_spawn_at(50, i == 0 ? put_and_say : take_and_say, &b));
		CHECK_EQ(hd_queue_close(q), 0);
		hd_queue_drop(q);
	}
	CHECK_STR(trace_text(), "a:-32 b:-32 a:-32,1 b:-32,2 ");
}

/* A suspended waiter keeps its place, and an item that comes to it is kept for it. */
HD_PROCESS_TEST(rendezvous_suspended_taker_gets_the_item_that_came)
{
	struct side a = { "a", 0 };

	make_rendezvous(sizeof(long));
	hd_pid pid = born(hd_spawn_at(50, take_and_say, &a));
	CHECK_EQ(hd_suspend(pid, HD_FOREVER), 0);
	CHECK_EQ(hd_queue_try_put(q, &(long){ 9 }), 0);
	CHECK_STR(trace_text(), "");
	CHECK_EQ(hd_resume(pid), 0);
	CHECK_STR(trace_text(), "a:0,9 ");
	hd_queue_drop(q);
}

static void *put_bytes(void *item)
{
	CHECK_EQ(hd_queue_put(q, item, HD_FOREVER), 0);
	return NULL;
}

static void *take_bytes(void *item)
{
	CHECK_EQ(hd_queue_next(q, item, HD_FOREVER), 0);
	return NULL;
}

/* From the waiter to the caller and from the caller to the waiter. Nothing outside the item is touched; items of no size need no memory. */
HD_PROCESS_TEST(rendezvous_passes_items_of_any_size_whole)
{
	static const size_t sizes[] = { 0, 1, 8, 24, 1000 };
	static unsigned char item[1000], got[1002];

	for (int i = 0; i < 10; i++) {
		size_t size = sizes[i / 2];
		make_rendezvous(size);
		for (size_t k = 0; k < size; k++)
			item[k] = (unsigned char)(k * 31 + size);
		memset(got, 0xee, sizeof got);
		hd_pid pid = born(hd_spawn_at(50, i % 2 ? put_bytes : take_bytes, size == 0 ? NULL : i % 2 ? item : got + 1));
		CHECK_EQ(i % 2 ? hd_queue_try_next(q, got + 1) : hd_queue_try_put(q, item), 0);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		CHECK(memcmp(item, got + 1, size) == 0 && got[0] == 0xee && got[size + 1] == 0xee);
		hd_queue_drop(q);
	}
}

/* ---- many at a time ---- */

HD_PROCESS_TEST(rendezvous_next_many_takes_from_all_that_wait)
{
	struct side sides[] = { { "a", 1 }, { "b", 2 }, { "c", 3 } };
	long got[5] = { 0 };

	make_rendezvous(sizeof(long));
	for (int i = 0; i < 3; i++)
		born(hd_spawn_at(50, put_and_say, &sides[i]));
	CHECK_EQ(hd_queue_next_many(q, got, 2, HD_FOREVER), 2);
	CHECK_EQ(hd_queue_next_many(q, got + 2, 3, HD_FOREVER), 1);
	for (long i = 0; i < 3; i++)
		CHECK_EQ(got[i], i + 1);
	CHECK_EQ(hd_queue_next_many(q, got, 2, 0), -ETIMEDOUT);
	CHECK_STR(trace_text(), "a:0 b:0 c:0 ");
	hd_queue_drop(q);
}

HD_PROCESS_TEST(rendezvous_put_many_tells_how_many_were_taken)
{
	struct side sides[] = { { "a", 0 }, { "b", 0 } };

	make_rendezvous(sizeof(long));
	for (int i = 0; i < 2; i++)
		born(hd_spawn_at(50, take_and_say, &sides[i]));
	CHECK_EQ(hd_queue_put_many(q, (long[]){ 1, 2, 3 }, 3, 0), 2);
	CHECK_EQ(hd_queue_put_many(q, (long[]){ 3 }, 1, hd_after(HD_MS(1))), -ETIMEDOUT);
	CHECK_STR(trace_text(), "a:0,1 b:0,2 ");
	hd_queue_drop(q);
}

/* ---- select ---- */

static struct hd_semaphore sem;

struct selection {
	struct hd_case cases[2];
	int happened;
};

static void *select_one(void *arg)
{
	struct selection *s = arg;

	s->happened = hd_select(s->cases, 2, HD_FOREVER);
	CHECK(s->happened < 0 || s->cases[s->happened].err == 0);
	return NULL;
}

/* It waits to put or to take, or for a semaphore; a call on the other side meets it. */
HD_PROCESS_TEST(rendezvous_select_that_waits_is_met)
{
	long gift = 4, item = 0;

	make_rendezvous(sizeof(long));
	struct selection takes = { .cases = { hd_case_semaphore(&sem), hd_case_next(q, &item) } };
	struct selection puts = { .cases = { hd_case_put(q, &gift), hd_case_semaphore(&sem) } };
	hd_pid pid = born(hd_spawn_at(50, select_one, &takes));
	CHECK_EQ(hd_queue_try_next(q, &gift), -EAGAIN);
	CHECK_EQ(hd_queue_try_put(q, &gift), 0);
	CHECK_EQ(hd_queue_try_put(q, &gift), -EAGAIN);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK(takes.happened == 1 && item == 4);
	pid = born(hd_spawn_at(50, select_one, &puts));
	CHECK_EQ(hd_queue_try_put(q, &gift), -EAGAIN);
	CHECK_EQ(hd_queue_try_next(q, &item), 0);
	CHECK_EQ(hd_queue_try_next(q, &item), -EAGAIN);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK(puts.happened == 0 && item == 4);
	CHECK_EQ(hd_semaphore_try_wait(&sem), -EAGAIN);
	hd_queue_drop(q);
}

/* Select meets select, whichever side comes first; each leaves its other queue alone. */
HD_PROCESS_TEST(rendezvous_select_meets_select)
{
	for (int i = 0; i < 2; i++) {
		long gift = 4, item = 0;
		make_rendezvous(sizeof(long));
		struct selection takes = { .cases = { hd_case_semaphore(&sem), hd_case_next(q, &item) } };
		struct selection puts = { .cases = { hd_case_put(q, &gift), hd_case_semaphore(&sem) } };
		hd_pid pid = born(hd_spawn_at(50, select_one, i == 0 ? &takes : &puts));
		select_one(i == 0 ? &puts : &takes);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		CHECK(takes.happened == 1 && puts.happened == 0 && item == 4);
		hd_queue_drop(q);
	}
	CHECK(sem.waiters.head == NULL);
}

/* A process that waits on both sides does not meet itself; another one does meet it, on one side. */
HD_PROCESS_TEST(rendezvous_select_of_both_sides_does_not_meet_itself)
{
	for (int i = 0; i < 3; i++) {
		long gift = 1, item = 0, other_gift = 2, other_item = 0;
		make_rendezvous(sizeof(long));
		struct selection both = { .cases = { hd_case_put(q, &gift), hd_case_next(q, &item) } };
		struct selection other = { .cases = { hd_case_next(q, &other_item), hd_case_put(q, &other_gift) } };
		CHECK_EQ(hd_select(both.cases, 2, 0), -ETIMEDOUT);
		CHECK_EQ(hd_select(both.cases, 2, hd_after(HD_MS(1))), -ETIMEDOUT);
		CHECK(item == 0);
		hd_pid pid = born(hd_spawn_at(50, select_one, &both));
		if (i == 0)
			CHECK_EQ(hd_queue_put(q, &other_gift, HD_FOREVER), 0);
		else if (i == 1)
			CHECK_EQ(hd_queue_next(q, &other_item, HD_FOREVER), 0);
		else
			select_one(&other);
		CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
		CHECK(both.happened == 0 ? item == 0 && other_item == 1 : item == 2 && other_item == 0);
		CHECK(i == 2 || both.happened == 1 - i);
		CHECK_EQ(hd_queue_try_put(q, &gift), -EAGAIN);
		CHECK_EQ(hd_queue_try_next(q, &item), -EAGAIN);
		hd_queue_drop(q);
	}
}

HD_PROCESS_TEST(rendezvous_select_finds_it_closed)
{
	long gift = 1, item = 0;

	make_rendezvous(sizeof(long));
	struct selection both = { .cases = { hd_case_put(q, &gift), hd_case_next(q, &item) } };
	struct selection waits = both;
	hd_pid pid = born(hd_spawn_at(50, select_one, &waits));
	CHECK_EQ(hd_cancel(pid), 0);
	CHECK_EQ(hd_join(pid, NULL, HD_FOREVER), 0);
	CHECK_EQ(waits.happened, -ECANCELED);
	CHECK_EQ(hd_queue_close(q), 0);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(hd_select(&both.cases[i], 1, HD_FOREVER), 0);
		CHECK_EQ(both.cases[i].err, -EPIPE);
	}
	hd_queue_drop(q);
}

/* ---- many to many ---- */

#define SIDES 6

static hd_queue *other;
static long put_sum, put_count, taken_sum, taken_count, next_item;
static int each_tries;

static void count_put(long item)
{
	add(&put_sum, item);
	add(&put_count, 1);
}

static void count_taken(long item)
{
	add(&taken_sum, item);
	add(&taken_count, 1);
}

static void try_select(unsigned *seed, hd_time until)
{
	long gifts[2] = { add(&next_item, 1), add(&next_item, 1) }, items[2] = { 0, 0 };
	struct hd_case cases[] = { hd_case_put(q, &gifts[0]), hd_case_next(other, &items[0]), hd_case_put(other, &gifts[1]),
				   hd_case_next(q, &items[1]) };
	bool turned = next_random(seed) % 2; /* so that two of them come to the queues in opposite orders */
	struct hd_case list[] = { cases[turned ? 2 : 0], cases[turned ? 3 : 1], cases[turned ? 0 : 2] };
	size_t n = 2 + next_random(seed) % 2; /* two queues; or both sides of one of them too */
	int which = next_random(seed) % 2 ? hd_select(list, n, until) : hd_select_first(list, n, until);

	if (which < 0) {
		CHECK(which == -ETIMEDOUT || which == -ECANCELED);
		CHECK(items[0] == 0 && items[1] == 0);
	} else if (list[which].kind == HD_CASE_PUT) {
		CHECK_EQ(list[which].err, 0);
		CHECK(items[0] == 0 && items[1] == 0);
		count_put(*(long *)list[which].data);
	} else {
		CHECK_EQ(list[which].err, 0);
		CHECK((items[0] != 0) + (items[1] != 0) == 1);
		count_taken(items[0] + items[1]);
	}
}

/* Puts, takes or selects, with deadlines, so that it ends though there may be no partner. */
static void *pass_at_random(void *arg)
{
	unsigned seed = (unsigned)(long)arg;

	for (int i = 0; i < each_tries; i++) {
		hd_queue *which = next_random(&seed) % 2 ? q : other;
		hd_time until = hd_after(next_random(&seed) % 3 == 0 ? next_random(&seed) % 20000 : HD_US(100));
		long items[3] = { 0 }, n = 0;
		switch (next_random(&seed) % (hd_self() != 0 ? 6 : 3)) {
		case 0:
			items[0] = add(&next_item, 1);
			if (hd_queue_put(which, items, until) == 0)
				count_put(items[0]);
			break;
		case 1:
			n = hd_queue_next_many(which, items, 1 + next_random(&seed) % 3, until);
			for (long k = 0; k < n; k++)
				count_taken(items[k]);
			break;
		case 2:
			if (hd_queue_next(which, items, until) == 0)
				count_taken(items[0]);
			break;
		default:
			try_select(&seed, until);
		}
		if (hd_self() != 0)
			hd_cancel_clear();
	}
	return NULL;
}

static void pass_items(int n, bool movable, bool cancels)
{
	hd_pid pids[SIDES];
	unsigned seed = 9;

	put_sum = put_count = taken_sum = taken_count = next_item = 0;
	each_tries = n / SIDES + 1;
	make_rendezvous(sizeof(long));
	other = hd_queue_new_rendezvous(sizeof(long));
	CHECK(other != NULL);
	struct plain_thread *thread = start_thread(pass_at_random, (void *)33L);
	for (long i = 0; i < SIDES; i++)
		pids[i] = born(hd_spawn_with(&(struct hd_spawn){ .pinned = !movable }, pass_at_random, (void *)(i + 1)));
	for (int i = 0; cancels && i < n / 8; i++) {
		hd_cancel(pids[next_random(&seed) % SIDES]);
		hd_sleep(HD_US(next_random(&seed) % 10));
	}
	join_all(pids, SIDES);
	join_thread(thread);
	CHECK_EQ(taken_count, put_count);
	CHECK_EQ(taken_sum, put_sum);
	CHECK(hd_is_simulated() || put_count > 0);
	hd_queue_drop(q);
	hd_queue_drop(other);
}

HD_WORKERS_TEST(rendezvous_neither_loses_nor_doubles_an_item)
{
	(void)workers;
	for (int i = 0; i < 4; i++)
		pass_items(many(2000), i % 2, i / 2);
}

HD_WORKERS_STRESS(rendezvous_neither_loses_nor_doubles_one_of_many_items)
{
	(void)workers;
	for (int i = 0; i < 4; i++)
		pass_items(many(60000), i % 2, i / 2);
}

/* Processes of two kinds select in opposite orders, each with what the other kind wants. Two that come to the queues at the same time decide for
 * each other as well as for themselves; whatever comes of that, each meets one of the other kind each time. */
static int meetings;

static void *meet(void *arg)
{
	bool second = (long)arg % 2;

	for (int i = 0; i < meetings; i++) {
		long gift = second ? 2 : 1, item = 0;
		struct hd_case cases[] = { hd_case_put(second ? other : q, &gift), hd_case_next(second ? q : other, &item) };
		int which = hd_select_first(cases, 2, HD_FOREVER);
		CHECK(which >= 0 && cases[which].err == 0);
		CHECK_EQ(item, which == 0 ? 0 : second ? 1 : 2);
		add(which == 0 ? &put_count : &taken_count, 1);
	}
	return NULL;
}

HD_WORKERS_TEST(rendezvous_processes_that_select_in_opposite_orders_meet)
{
	(void)workers;
	meetings = many(1000);
	for (int i = 0; i < 2; i++) {
		hd_pid pids[SIDES];
		put_count = taken_count = 0;
		make_rendezvous(sizeof(long));
		other = hd_queue_new_rendezvous(sizeof(long));
		CHECK(other != NULL);
		for (long k = 0; k < SIDES; k++)
			pids[k] = born(hd_spawn_with(&(struct hd_spawn){ .pinned = i == 0 }, meet, (void *)k));
		join_all(pids, SIDES);
		CHECK_EQ(put_count, SIDES / 2 * meetings);
		CHECK_EQ(taken_count, SIDES / 2 * meetings);
		hd_queue_drop(q);
		hd_queue_drop(other);
	}
}

/* ---- close meets both sides ---- */

static void *put_until_closed(void *arg)
{
	int err;

	while ((err = hd_queue_put(q, &(long){ 1 }, HD_FOREVER)) == 0)
		add(&put_count, 1);
	CHECK_EQ(err, -EPIPE);
	return arg;
}

static void *take_until_closed(void *arg)
{
	int err;

	while ((err = hd_queue_next(q, &(long){ 0 }, HD_FOREVER)) == 0)
		add(&taken_count, 1);
	CHECK_EQ(err, -EPIPE);
	return arg;
}

HD_WORKERS_TEST(rendezvous_close_reaches_both_sides_and_loses_nothing)
{
	(void)workers;
	for (int round = 0; another_round(round, many(300)); round++) {
		hd_pid pids[4];
		put_count = taken_count = 0;
		make_rendezvous(sizeof(long));
		for (int i = 0; i < 4; i++)
			pids[i] = born(hd_spawn_with(&(struct hd_spawn){ .pinned = round % 2 == 0 },
						     i % 2 ? put_until_closed : take_until_closed, NULL));
		hd_sleep(HD_US(50));
		CHECK_EQ(hd_queue_close(q), 0);
		join_all(pids, 4);
		CHECK_EQ(put_count, taken_count);
		hd_queue_drop(q);
	}
}
