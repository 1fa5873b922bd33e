/* sched/runq.c - the run queue: order within a level, and which level is the highest. */
#include "sched/runq.h"

#include <string.h>

#include "harness/harness.h"

static struct hd__runq q;

HD_TEST(runq_is_first_in_first_out_within_a_level)
{
	static struct hd_process p[5];

	for (int i = 0; i < 5; i++) {
		p[i].priority = 40;
		hd__runq_push_tail(&q, &p[i]);
	}
	for (int i = 0; i < 5; i++)
		CHECK(hd__runq_take(&q) == &p[i]);
	CHECK_EQ(q.highest, 0);
}

HD_TEST(runq_head_goes_before_its_equals)
{
	static struct hd_process a = { .priority = 40 }, b = { .priority = 40 }, c = { .priority = 40 };

	hd__runq_push_head(&q, &b); /* into an empty level */
	hd__runq_push_tail(&q, &c);
	hd__runq_push_head(&q, &a);
	CHECK(hd__runq_take(&q) == &a);
	CHECK(hd__runq_take(&q) == &b);
	CHECK(hd__runq_take(&q) == &c);
	CHECK_EQ(q.highest, 0);
}

HD_TEST(runq_that_is_empty_gives_nobody)
{
	CHECK(hd__runq_take(&q) == NULL);
	CHECK_EQ(q.highest, 0);
}

/* Every level by itself, and every pair: priorities 73 and 74 are in different words of the bitmap. */
HD_TEST(runq_finds_the_highest_of_any_two_levels)
{
	static struct hd_process low, high;

	for (int l = HD__PRIORITY_MIN; l <= HD__PRIORITY_MAX; l++) {
		low.priority = (uint8_t)l;
		hd__runq_push_tail(&q, &low);
		CHECK_EQ(q.highest, l);
		for (int h = l + 1; h <= HD__PRIORITY_MAX; h++) {
			high.priority = (uint8_t)h;
			hd__runq_push_tail(&q, &high);
			CHECK_EQ(q.highest, h);
			CHECK(hd__runq_take(&q) == &high);
			CHECK_EQ(q.highest, l);
		}
		CHECK(hd__runq_take(&q) == &low);
		CHECK_EQ(q.highest, 0);
	}
}

HD_TEST(runq_gives_up_any_member)
{
	static struct hd_process p[3];

	for (unsigned gone = 0; gone < 3; gone++) {
		for (unsigned i = 0; i < 3; i++) {
			p[i].priority = 75;
			hd__runq_push_tail(&q, &p[i]);
		}
		hd__runq_remove(&q, &p[gone]);
		for (unsigned i = 0; i < 3; i++)
			if (i != gone)
				CHECK(hd__runq_take(&q) == &p[i]);
		CHECK_EQ(q.highest, 0);
	}
	hd__runq_push_tail(&q, &p[0]);
	hd__runq_remove(&q, &p[0]);
	CHECK_EQ(q.highest, 0);
}

/* The runner of a yield goes behind its equals, and the first of them is taken. */
HD_TEST(runq_rotates)
{
	static struct hd_process a = { .priority = 40 }, b = { .priority = 40 }, c = { .priority = 40 };

	hd__runq_push_tail(&q, &b);
	CHECK(hd__runq_rotate(&q, &a) == &b); /* one alone */
	CHECK(hd__runq_rotate(&q, &b) == &a);
	hd__runq_push_tail(&q, &c);
	CHECK(hd__runq_rotate(&q, &a) == &b); /* a list of two */
	CHECK(hd__runq_rotate(&q, &b) == &c);
	CHECK_EQ(q.highest, 40);
	CHECK(hd__runq_take(&q) == &a);
	CHECK(hd__runq_take(&q) == &b);
	CHECK_EQ(q.highest, 0);
}

/* Where in a plain list of n the next is: the first of the highest priority. */
static unsigned best(struct hd_process **list, unsigned n)
{
	unsigned best = 0;

	for (unsigned k = 1; k < n; k++)
		if (list[k]->priority > list[best]->priority)
			best = k;
	return best;
}

/* Against one list in which who is pushed to a tail is put last, and who is pushed to a head first. The number of processes
 * in it wanders between none and 64; levels are drawn anew at each push. */
static void agree_with_a_list(unsigned levels, int rounds)
{
	static struct hd_process p[64];
	struct hd_process *list[65];
	bool in[64] = { false };
	unsigned n = 0, full = 64;
	uint64_t seed = levels;

	q = (struct hd__runq){ 0 };
	for (int round = 0; round < rounds; round++) {
		seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		unsigned i = seed >> 32 & 63, what = seed >> 40 & 3, at = 0;
		int priority = HD__PRIORITY_MAX - (int)((seed >> 44) % levels);
		if (round % 256 == 0)
			full = 1 + (seed >> 56) % 64;
		if (!in[i] && n < full) {
			p[i].priority = (uint8_t)priority;
			in[i] = true;
			if (what == 0) {
				memmove(&list[1], &list[0], n++ * sizeof list[0]);
				list[0] = &p[i];
				hd__runq_push_head(&q, &p[i]);
				continue;
			}
			list[n++] = &p[i];
			if (what == 1 && n > 1 && q.highest == priority) {
				at = best(list, n);
				CHECK(hd__runq_rotate(&q, &p[i]) == list[at]);
			} else {
				hd__runq_push_tail(&q, &p[i]);
				continue;
			}
		} else if (in[i] && what == 0) {
			while (list[at] != &p[i])
				at++;
			hd__runq_remove(&q, &p[i]);
		} else if (n > 0) {
			at = best(list, n);
			CHECK_EQ(q.highest, list[at]->priority);
			CHECK(hd__runq_take(&q) == list[at]);
		} else {
			CHECK(hd__runq_take(&q) == NULL);
			continue;
		}
		in[list[at] - p] = false;
		memmove(&list[at], &list[at + 1], (--n - at) * sizeof list[0]);
	}
}

HD_TEST(runq_agrees_with_a_plain_list)
{
	agree_with_a_list(3, hd_scaled(500000));
	agree_with_a_list(8, hd_scaled(500000)); /* 73 to 80: on both sides of the bitmap's seam */
	agree_with_a_list(HD__LEVELS, hd_scaled(500000));
}
