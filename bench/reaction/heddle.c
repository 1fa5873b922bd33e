/* heddle.c - how late a process of high priority runs while a process of low priority computes on every worker. */
#include <heddle.h>

#include "reaction.h"

enum { LOW = 20, HIGH = 70 };

static struct reaction reaction;
static pid_t threads[REACTION_HOGS_MAX]; /* where each hog was last, while they are spread; written by the hog, relaxed */
static bool spread;			 /* every worker has a hog; set by the high priority, relaxed */

/* A hog. It gives way until every worker has one: a process that was preempted is not taken by an idle worker, so two could stay on one. And it computes
 * in between: two that only give way to each other are left together. */
static void *low(void *arg)
{
	struct reaction_hog *hog = arg;

	while (!__atomic_load_n(&spread, __ATOMIC_RELAXED)) {
		__atomic_store_n(&threads[hog - reaction.hogs], gettid(), __ATOMIC_RELAXED);
		for (hd_time end = hd_after(HD_US(100)); hd_now() < end;)
			;
		bench_ok(hd_yield(), "hd_yield");
	}
	return reaction.hog(hog);
}

static bool are_apart(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j <= i; j++) {
			pid_t a = __atomic_load_n(&threads[i], __ATOMIC_RELAXED),
			      b = __atomic_load_n(&threads[j], __ATOMIC_RELAXED);
			if (a == 0 || (i != j && a == b))
				return false;
		}
	return true;
}

static void *high(void *arg)
{
	struct reaction *r = arg;
	const struct hd_spawn how = { .priority = LOW, .daemon = true };

	for (unsigned i = 0; i < r->nhogs; i++)
		bench_ok(hd_spawn_with(&how, low, &r->hogs[i]), "hd_spawn_with");
	while (!are_apart(r->nhogs))
		bench_ok(hd_sleep(HD_MS(1)), "hd_sleep");
	__atomic_store_n(&spread, true, __ATOMIC_RELAXED);
	while (!reaction_all_run(r))
		bench_ok(hd_sleep(HD_MS(1)), "hd_sleep");
	reaction_begin(r);
	for (int i = reaction_wakes(); i > 0; i--) {
		hd_time due = hd_after(reaction_nap(r));
		bench_ok(hd_sleep_until(due), "hd_sleep_until");
		reaction_note(r, hd_now() - due);
	}
	return NULL;
}

static void *first(void *arg)
{
	bench_ok(hd_join(bench_ok(hd_spawn_at(HIGH, high, arg), "hd_spawn_at"), NULL, HD_FOREVER), "hd_join");
	return NULL;
}

int main(int argc, char **argv)
{
	reaction_init(&reaction, argc, argv);
	bench_ok(hd_run(&(struct hd_config){ .workers = reaction.nhogs, .fixed = true }, first, &reaction), "hd_run");
	reaction_print(&reaction);
	return 0;
}
