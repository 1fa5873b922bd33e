/* shrink.c - the shortest schedule that fails in the same way.
 *
 * A run is described by the decisions in which it left the usual course: mostly switches that were forced upon it. They are
 * dropped, first many at a time, then one by one, as long as what is left still fails. */
#include "shrink.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define RUNS_MAX 5000
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

static bool fails_alike(struct subject *s, const struct hd__sim_plan *plan, struct failure as, unsigned *runs)
{
	++*runs;
	subject_run(s, plan);
	struct failure now = failure_of(s);
	return now.verdict == as.verdict && now.status == as.status;
}

/* What the last run did, as a list. */
static bool to_list(const struct subject *s, struct hd__sim_plan *plan)
{
	const struct hd__sim_page *page = s->page;

	if (page->result.decisions > HD__SIM_LOG_MAX)
		return false;
	plan->policy = HD__SIM_LIST;
	plan->seed = 0;
	plan->depth = 0;
	plan->length = 0;
	plan->unusual = 0;
	for (uint32_t i = 0; i < page->result.decisions; i++) {
		if (page->log[i].option == 0)
			continue;
		if (plan->unusual == HD__SIM_LIST_MAX)
			return false;
		plan->list[plan->unusual++] = (struct hd__sim_unusual){ i, page->log[i].option };
	}
	return true;
}

bool shrink(struct subject *s, struct hd__sim_plan *plan, unsigned *runs)
{
	static struct hd__sim_plan best, less;
	struct failure as = failure_of(s);
	uint32_t steps = plan->steps;

	best = *plan;
	*runs = 0;
	if (as.verdict == HD__SIM_LIVELOCK && s->page->result.steps > LIVELOCK_STEPS) {
		best.steps = LIVELOCK_STEPS;
		fails_alike(s, &best, as, runs);
	}
	if (!to_list(s, &best) || !fails_alike(s, &best, as, runs))
		return false;
	for (uint32_t chunk = best.unusual; chunk > 0; chunk /= 2) {
		bool dropped;
		do {
			dropped = false;
			for (uint32_t at = 0; at < best.unusual && *runs < RUNS_MAX;) {
				uint32_t n = at + chunk < best.unusual ? chunk : best.unusual - at;
				less = best;
				memmove(&less.list[at], &less.list[at + n], (best.unusual - at - n) * sizeof less.list[0]);
				less.unusual -= n;
				if (fails_alike(s, &less, as, runs)) {
					to_list(s, &less); /* what really was unusual */
					if (less.unusual < best.unusual) {
						best = less;
						dropped = true;
						continue;
					}
				}
				at += n;
			}
		} while (dropped && chunk == 1);
	}
	best.steps = steps;
	if (!fails_alike(s, &best, as, runs))
		return false;
	*plan = best;
	return true;
}
