/* counters.c - what the runtime says that it did while a case ran, its warming up included. */
#include "../harness.h"
#include "cases.h"

enum { COUNTERS = 8 };

static const char *const names[COUNTERS] = {
	"switches", "direct_switches", "handoffs", "remote_wakes", "idles", "wakes", "steals", "stolen",
};
static uint64_t uncounted[COUNTERS];

static void read_counters(uint64_t values[COUNTERS])
{
	struct hd_stats s;

	bench_ok(hd_stats(&s), "hd_stats");
	uint64_t now[COUNTERS] = {
		s.switches, s.direct_switches, s.handoffs, s.remote_wakes, s.idles, s.wakes, s.steals, s.stolen,
	};
	memcpy(values, now, sizeof now);
}

/* Runs what does not belong to the case. */
void run_uncounted(void (*run)(void))
{
	uint64_t before[COUNTERS], after[COUNTERS];

	read_counters(before);
	run();
	read_counters(after);
	for (int i = 0; i < COUNTERS; i++)
		uncounted[i] += after[i] - before[i];
}

void print_counters(void)
{
	uint64_t values[COUNTERS];

	read_counters(values);
	for (int i = 0; i < COUNTERS; i++)
		printf("# %s %llu\n", names[i], (unsigned long long)(values[i] - uncounted[i]));
}
