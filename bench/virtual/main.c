/* main.c - heddle-virtual: the everyday shapes on virtual CPUs, as many as BENCH_WORKERS says, and one for the watcher.
 *
 * The runtime is simulated (sim/runtime/), by the clock. `heddle-virtual CASE` prints what heddle-bench would, and a line `# NAME VALUE`
 * for each thing that the workers' time went into, in virtual ns over all of them. bench/scaling runs it. */
#include "../heddle/cases.h"
#include "../harness.h"
#include "sim/runtime/costs.h"

/* Of a virtual machine with two CPUs (AMD EPYC, Linux 6.18). All but the first were measured one by one; the first is such that the cases
 * below which only call heddle take as long as there, with one worker. */
static const struct hd__sim_costs costs = {
	.ps = { [HD__SIM_BETWEEN] = 750,
		[HD__SIM_RMW] = 2500,
		[HD__SIM_LINE] = 170000,
		[HD__SIM_PAUSE] = 31000,
		[HD__SIM_CLOCK] = 29000,
		[HD__SIM_CALL] = 400000,
		[HD__SIM_WAKE] = 5000000,
		[HD__SIM_BARRIER] = 14000000 },
	.waking = HD_US(30),
	.oversleep = HD_US(70),
};

static const char *const deeds[HD__SIM_DEEDS] = {
	[HD__SIM_BETWEEN] = "calls", [HD__SIM_RMW] = "locked",	     [HD__SIM_LINE] = "lines",
	[HD__SIM_PAUSE] = "pauses",  [HD__SIM_CLOCK] = "clock",	     [HD__SIM_CALL] = "system_calls",
	[HD__SIM_WAKE] = "waking",   [HD__SIM_BARRIER] = "barriers", [HD__SIM_WORK] = "work",
};

/* The work of the sort: to merge a number. */
enum { MERGE_PS = 4500 };

static const struct bench_case cases[] = {
	{ "yield2", yield2 },
	{ "pingpong", pingpong },
	{ "spawn_join", spawn_join },
	{ "mutex2", mutex2 },
	{ "queue_1x1", queue_1x1 },
	{ "condition", condition },
	{ "when_1", when_1 },
	{ "when_2", when_2 },
	{ "when_1_many", when_1_many },
	{ "when_2_many", when_2_many },
	{ "when_bank", when_bank },
	{ "when_shares", when_shares },
	{ "shape_work", shape_work },
	{ "shape_pool", shape_pool },
	{ "shape_jobs", shape_jobs },
	{ "shape_pipeline", shape_pipeline },
	{ "shape_monitor", shape_monitor },
	{ "shape_mutex", shape_mutex },
	{ "shape_rwlock", shape_rwlock },
	{ "shape_sleepers", shape_sleepers },
	{ "shape_promise", shape_promise },
	{ "shape_sort", shape_sort },
	{ "shape_bank", shape_bank },
	{ "shape_philosophers", shape_philosophers },
	{ "shape_philosophers_in_order", shape_philosophers_in_order },
	{ "fanout", fanout },
	{ NULL, NULL },
};

uint64_t charge_work(uint64_t x, int us)
{
	hd__sim_work(HD_US(us));
	return bench_step(x);
}

void charge_merges(long numbers, double times)
{
	hd__sim_work((hd_time)((double)numbers * times * MERGE_PS / 1000));
}

static int argc;
static char **argv;

static void *first_process(void *arg)
{
	struct hd__sim_tally tally;
	int *code = arg;
	double start = bench_now();

	*code = bench_main(argc, argv, cases);
	if (*code != 0)
		return NULL;
	print_counters();
	hd__sim_read_tally(&tally);
	printf("# elapsed %.0f\n", bench_now() - start);
	for (int i = 0; i < HD__SIM_DEEDS; i++)
		printf("# %s %lld\n# %s_times %llu\n", deeds[i], (long long)tally.took[i], deeds[i],
		       (unsigned long long)tally.times[i]);
	return NULL;
}

int main(int count, char **words)
{
	struct hd_config config = { .workers = bench_workers(), .fixed = true };
	int code = 0;

	argc = count;
	argv = words;
	hd__sim_clocks_begin(&costs);
	bench_ok(hd_run(&config, first_process, &code), "hd_run");
	return code;
}
