/* harness/simulated.c - the world of tests in a build that simulates the runtime itself: a plan for each round.
 *
 * HEDDLE_SIM has the plan, or an explorer; else the round makes one, from HD_TEST_SEED on (1). */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/harness.h"
#include "sim/threads.h"

/* Every second plan is a random one; the others have few switches, at random places of runs of any length, and every second of
 * these lets time pass and sleeps end early. */
static const char *make_plan(int round)
{
	static char plan[96];
	const char *first = getenv("HD_TEST_SEED");
	uint64_t seed = (first != NULL ? strtoull(first, NULL, 10) : 1) + (uint64_t)round;
	static const unsigned lengths[] = { 300, 3000, 30000, 300000 };

	if (seed % 2 == 0)
		snprintf(plan, sizeof plan, "random:%" PRIu64, seed);
	else
		snprintf(plan, sizeof plan, "pct:%u:%u:%" PRIu64 "%s", 2 + (unsigned)(seed / 2 % 4), lengths[seed / 8 % 4],
			 seed, seed % 4 == 3 ? ":fail=time+eintr" : "");
	return plan;
}

void harness_world_begin(int round)
{
	setenv("HEDDLE_SIM", make_plan(round), 0);
	hd__sim_threads_begin();
}

void harness_world_end(void)
{
	hd__sim_threads_end();
}

const char *harness_world(int round)
{
	static char text[128];

	if (getenv("HEDDLE_SIM") != NULL)
		return "";
	snprintf(text, sizeof text, "HEDDLE_SIM=%s ", make_plan(round));
	return text;
}

bool hd_is_simulated(void)
{
	return true;
}
