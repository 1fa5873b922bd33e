/* shrink.c - the shortest schedule that fails in the same way.
 *
 * A run is described by the decisions in which it left the usual course: mostly switches that were forced upon it. They are
 * dropped, first many at a time, then one by one, as long as what is left still fails. */
#include "shrink.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define RUNS_MAX 5000
#define SECONDS_MAX 20
#define LIVELOCK_STEPS 2000 /* enough to be in one; that it never ends is seen to at last */

/* How a run failed: two are alike if these are. */
struct failure {
	uint32_t verdict;
	int32_t status;
};

static struct failure failure_of(const struct subject *s)
{
	const struct hd__sim_result *r = &s->page->result;

	return (struct failure){ r->verdict, r->verdict == HD__SIM_CRASH || r->verdict == HD__SIM_STATUS ? r->status : 0 };
}

static bool fails_alike(struct subject *s, const struct hd__sim_plan *plan, struct failure as, struct shrinking *how)
{
	how->runs++;
	subject_run(s, plan);
	struct failure now = failure_of(s);
	return now.verdict == as.verdict && now.status == as.status;
}

/* What the last run did, as a list. False: it made too many choices. */
static bool to_list(const struct subject *s, struct hd__sim_plan *plan)
{
	const struct hd__sim_page *page = s->page;

	plan->policy = HD__SIM_LIST;
	plan->seed = 0;
	plan->depth = 0;
	plan->length = 0;
	plan->unusual = 0;
	if (page->result.decisions > HD__SIM_LOG_MAX)
		return false;
	for (uint32_t i = 0; i < page->result.decisions; i++) {
		if (page->log[i].option == 0)
			continue;
		if (plan->unusual == HD__SIM_LIST_MAX)
			return false;
		plan->list[plan->unusual++] = (struct hd__sim_unusual){ i, page->log[i].option };
	}
	return true;
}

/* The first list: with the usual number of workers, if it fails with them too; else with as many as there were. */
static bool first_list(struct subject *s, struct hd__sim_plan *plan, struct failure as, struct shrinking *how)
{
	uint32_t seats = s->page->result.seats;

	if (!to_list(s, plan)) {
		how->why = "it made more choices than can be remembered";
		return false;
	}
	if (fails_alike(s, plan, as, how))
		return true;
	how->why = "a list of its choices did not fail in the same way";
	if (plan->workers != 0 || seats == 0)
		return false;
	plan->workers = (uint8_t)seats;
	return fails_alike(s, plan, as, how);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Drops so many entries at a time, as often as that goes. */
static void drop_chunks(struct subject *s, struct hd__sim_plan *best, uint32_t chunk, struct failure as, struct shrinking *how,
			double until)
{
	static struct hd__sim_plan less;

	for (uint32_t at = 0; at < best->unusual;) {
		uint32_t n = at + chunk < best->unusual ? chunk : best->unusual - at;
		if (how->runs >= RUNS_MAX || now() >= until) {
			how->stopped = true;
			return;
		}
		copy_plan(&less, best);
		memmove(&less.list[at], &less.list[at + n], (best->unusual - at - n) * sizeof less.list[0]);
		less.unusual -= n;
		if (fails_alike(s, &less, as, how)) {
			to_list(s, &less); /* what really was unusual */
			if (less.unusual < best->unusual) {
				copy_plan(best, &less);
				continue;
			}
		}
		at += n;
	}
}

bool shrink(struct subject *s, struct hd__sim_plan *plan, struct shrinking *how)
{
	static struct hd__sim_plan best;
	struct failure as = failure_of(s);
	uint32_t steps = plan->steps;
	double until = now() + SECONDS_MAX;

	*how = (struct shrinking){ .runs = 0 };
	copy_plan(&best, plan);
	if (as.verdict == HD__SIM_LIVELOCK && s->page->result.steps > LIVELOCK_STEPS) {
		best.steps = LIVELOCK_STEPS;
		fails_alike(s, &best, as, how);
	}
	if (!first_list(s, &best, as, how))
		return false;
	for (uint32_t chunk = best.unusual; chunk > 0 && !how->stopped; chunk /= 2) {
		uint32_t before;
		do {
			before = best.unusual;
			drop_chunks(s, &best, chunk, as, how, until);
		} while (chunk == 1 && best.unusual < before && !how->stopped);
	}
	best.steps = steps;
	if (!fails_alike(s, &best, as, how))
		return false;
	how->why = NULL;
	copy_plan(plan, &best);
	return true;
}
