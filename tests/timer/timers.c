/* timer/timers.c - the heap of deadlines, beside a plain array of what it should hold. */
#include "timer/timers.h"

#include <stdlib.h>

#include "harness/harness.h"

enum { OWNERS = 1 << 12 };

static struct hd__timers timers;
static uint64_t waits_for[OWNERS]; /* each owner's live deadline, by its order; 0: none */
static hd_time deadline[OWNERS];

static bool is_live(void *context, uint64_t order)
{
	CHECK(context == waits_for);
	return waits_for[HD__TIMER_WHOSE(order)] == order;
}

static void begin(void)
{
	CHECK_EQ(hd__timers_init(&timers, 1u << 24, 0, 1, is_live, waits_for), 0);
}

static void add(uint32_t whose, hd_time when)
{
	deadline[whose] = when;
	waits_for[whose] = hd__timers_add(&timers, when, whose);
	CHECK(waits_for[whose] != 0);
}

static void forget(uint32_t whose)
{
	waits_for[whose] = 0;
	hd__timers_forget(&timers);
}

/* As forget, by a thread that is outside the heap's lane: it leaves a count, and sweeps nothing. */
static void orphan(uint32_t whose)
{
	waits_for[whose] = 0;
	hd__timers_orphan(&timers);
}

/* What the heap says of itself: so many are waited for, and stale + orphans are the others. */
static void check_accounts(uint32_t live)
{
	CHECK_EQ(hd__timers_live(&timers), live);
	CHECK_EQ(timers.stale + timers.orphans, timers.count - live);
}

/* The owner of the next deadline that is due; -1: none. */
static long take(hd_time now)
{
	struct hd__timer due;

	if (!hd__timers_take_due(&timers, now, &due))
		return -1;
	uint32_t whose = HD__TIMER_WHOSE(due.order);
	CHECK_EQ(due.order, waits_for[whose]);
	CHECK_EQ(due.when, deadline[whose]);
	waits_for[whose] = 0;
	return whose;
}

HD_TEST(timers_come_in_the_order_of_their_deadlines)
{
	begin();
	CHECK_EQ(hd__timers_first(&timers), HD_FOREVER);
	for (uint32_t i = 0; i < 1000; i++)
		add(i, 1 + (hd_time)i * 619 % 1000); /* 619 and 1000 have no common divisor: each of 1 .. 1000 once */
	for (hd_time t = 1; t <= 1000; t++) {
		CHECK_EQ(hd__timers_first(&timers), t);
		CHECK_EQ(take(t - 1), -1);
		long whose = take(t);
		CHECK(whose >= 0);
		CHECK_EQ(deadline[whose], t);
	}
	CHECK_EQ(take(HD_FOREVER - 1), -1);
	CHECK_EQ(hd__timers_first(&timers), HD_FOREVER);
	hd__timers_fini(&timers);
}

HD_TEST(timers_with_equal_deadlines_come_in_the_order_of_arrival)
{
	begin();
	for (uint32_t i = 0; i < 1000; i++) /* owners in another order than their numbers */
		add(i * 619 % 1000, 5 + (i & 1));
	for (uint32_t odd = 0; odd < 2; odd++)
		for (uint32_t i = odd; i < 1000; i += 2)
			CHECK_EQ(take(10), i * 619 % 1000);
	CHECK_EQ(take(10), -1);
	hd__timers_fini(&timers);
}

/* Forgotten ones do not pile up, and forgetting takes none of the others with it. */
HD_TEST(timers_sweep_keeps_exactly_those_that_are_waited_for)
{
	begin();
	for (uint32_t i = 0; i < OWNERS; i++)
		add(i, 1 + (OWNERS - i) / 3);
	for (uint32_t i = 0; i < OWNERS; i++)
		if (i % 7 != 0)
			forget(i);
	CHECK_EQ(hd__timers_live(&timers), (OWNERS + 6) / 7);
	CHECK(timers.count < 3 * ((OWNERS + 6) / 7) + 200);
	for (hd_time before = 0, n = 0; n < (OWNERS + 6) / 7; n++) {
		long whose = take(OWNERS);
		CHECK(whose >= 0);
		CHECK_EQ(whose % 7, 0);
		CHECK(deadline[whose] >= before);
		before = deadline[whose];
	}
	CHECK_EQ(take(OWNERS), -1);
	CHECK_EQ(timers.count, 0);
	CHECK_EQ(timers.stale, 0);
	hd__timers_fini(&timers);
}

/* One owner that waits again and again with a deadline that never comes costs room for a few, not for all. */
HD_TEST(timers_that_are_always_forgotten_need_no_room)
{
	begin();
	for (int i = 0; i < hd_scaled(1000000); i++) {
		add(1, HD_SEC(1000) + i);
		forget(1);
		CHECK(timers.count <= 130);
	}
	CHECK_EQ(hd__timers_live(&timers), 0);
	hd__timers_fini(&timers);
}

/* An owner that is adopted at each wait never forgets a deadline here: adding the next one is what sweeps. */
HD_TEST(timers_that_are_always_orphaned_need_no_room)
{
	begin();
	for (int i = 0; i < hd_scaled(1000000); i++) {
		add(1, HD_SEC(1000) + i);
		orphan(1);
		CHECK(timers.count <= 130);
	}
	check_accounts(0);
	hd__timers_fini(&timers);
}

/* The bound of half the heap and a few is of both kinds together. */
HD_TEST(timers_sweep_orphans_and_forgotten_ones_alike)
{
	const uint32_t kept = (OWNERS + 6) / 7;

	begin();
	for (uint32_t i = 0; i < OWNERS; i++)
		add(i, 1 + (OWNERS - i) / 3);
	for (uint32_t i = 0; i < OWNERS; i++)
		if (i % 7 != 0)
			i % 2 == 0 ? forget(i) : orphan(i);
	check_accounts(kept);
	add(1, OWNERS);
	check_accounts(kept + 1);
	CHECK(timers.count < 3 * kept + 200);
	for (hd_time before = 0, n = 0; n <= kept; n++) {
		long whose = take(OWNERS);
		CHECK(whose >= 0 && (whose % 7 == 0 || whose == 1));
		CHECK(deadline[whose] >= before);
		before = deadline[whose];
	}
	CHECK_EQ(take(OWNERS), -1);
	CHECK_EQ(timers.count, 0);
	check_accounts(0);
	hd__timers_fini(&timers);
}

/* They vanish when they are due, too, and then the account is as right as after a sweep. */
HD_TEST(timers_account_for_orphans_that_come_due)
{
	begin();
	for (int round = 0; round < 100; round++) {
		for (uint32_t i = 0; i < 60; i++)
			add(i, 1 + i % 5);
		for (uint32_t i = 0; i < 60; i++)
			if (i % 3 != 0)
				i % 3 == 1 ? orphan(i) : forget(i);
		check_accounts(20);
		for (int i = 0; i < 20; i++)
			CHECK_EQ(take(5) % 3, 0);
		CHECK_EQ(take(5), -1);
		CHECK_EQ(timers.count, 0);
		check_accounts(0);
	}
	hd__timers_fini(&timers);
}

/* The owner that should be next: the earliest deadline, of equals the first to arrive; -1: none is due. */
static long should_be_next(hd_time now, uint32_t owners)
{
	long best = -1;

	for (uint32_t i = 0; i < owners; i++)
		if (waits_for[i] != 0 && deadline[i] <= now &&
		    (best < 0 || deadline[i] < deadline[best] ||
		     (deadline[i] == deadline[best] && waits_for[i] < waits_for[best])))
			best = i;
	return best;
}

/* Few owners and few different deadlines make for many equals; many of both, for a deep heap. */
static void agree_with_an_array(uint32_t owners, unsigned span, int rounds)
{
	hd_time now = 1;
	uint32_t live = 0;
	uint64_t seed = owners;

	begin();
	for (uint32_t i = 0; i < owners; i++)
		waits_for[i] = 0;
	for (int round = 0; round < rounds; round++) {
		seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		uint32_t i = (uint32_t)(seed >> 33) % owners;
		if ((seed >> 20 & 7) == 0) {
			long expected = should_be_next(++now, owners);
			CHECK_EQ(take(now), expected);
			live -= expected >= 0;
		} else if (waits_for[i] == 0) {
			add(i, now + (hd_time)((seed >> 24) % span));
			live++;
		} else if (seed >> 23 & 1) {
			seed >> 22 & 1 ? forget(i) : orphan(i);
			live--;
		}
		check_accounts(live);
		CHECK(hd__timers_live(&timers) == 0 || hd__timers_first(&timers) > 0);
	}
	hd__timers_fini(&timers);
}

HD_TEST(timers_agree_with_a_plain_array)
{
	agree_with_an_array(8, 4, hd_scaled(300000));
	agree_with_an_array(100, 50, hd_scaled(600000));
	agree_with_an_array(OWNERS, 100000, hd_scaled(100000));
}
