/* main.c - heddle-bench: runs the case that the command line names as the first process of a runtime.
 *
 * The number of workers is BENCH_WORKERS, or one; the environment that heddle reads has no say (hd_config.fixed). `heddle-bench
 * --build` prints which compiler made it, and for which machine: the first word of lines in bench/instructions.txt. */
#include "../harness.h"
#include "cases.h"

static const struct bench_case cases[] = {
	{ "yield2", yield2 },
	{ "yield1000", yield1000 },
	{ "spawn_join", spawn_join },
	{ "spawn_1m", spawn_1m },
	{ "pingpong", pingpong },
	{ "pingpong_mixed", pingpong_mixed },
	{ "ring1000", ring1000 },
	{ "ring1000_mixed", ring1000_mixed },
	{ "skynet", skynet },
	{ "fanout", fanout },
	{ "mutex2", mutex2 },
	{ "mutex2_barging", mutex2_barging },
	{ "mutex1000", mutex1000 },
	{ "mutex1000_barging", mutex1000_barging },
	{ "queue_1x1", queue_1x1 },
	{ "queue_4x4", queue_4x4 },
	{ "queue_100x100", queue_100x100 },
	{ "condition", condition },
	{ "promise", promise },
	{ "select8", select8 },
	{ "port_pingpong", port_pingpong },
	{ "port_pingpong_16", port_pingpong_16 },
	{ "port_send", port_send },
	{ "port_bounded", port_bounded },
	{ "machine_life", machine_life },
	{ "machine_turn", machine_turn },
	{ "when_1", when_1 },
	{ "when_2", when_2 },
	{ "when_1_many", when_1_many },
	{ "when_2_many", when_2_many },
	{ "when_bank", when_bank },
	{ "when_store", when_store },
	{ "when_log", when_log },
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
	{ "mutex_starve", mutex_starve },
	{ "ticker_loop", ticker_loop },
	{ "ticker_usleep", ticker_usleep },
	{ "blocked_1m", blocked_1m },
	{ "machines_1m", machines_1m },
	{ "sleepers_1m", sleepers_1m },
	{ NULL, NULL },
};

static const struct {
	const char *name;
	void (*run)(long n);
} counts[] = {
	{ "count_yield", count_yield },
	{ "count_semaphore_hop", count_semaphore_hop },
	{ "count_spawn_join", count_spawn_join },
	{ "count_mutex_pair", count_mutex_pair },
	{ "count_queue_pair", count_queue_pair },
	{ "count_send_pair", count_send_pair },
	{ "count_call", count_call },
	{ "count_machine_life", count_machine_life },
	{ "count_machine_turn", count_machine_turn },
	{ "count_when_1", count_when_1 },
	{ "count_when_2", count_when_2 },
};

struct command_line {
	int argc;
	char **argv;
	int code;
};

static void *first_process(void *arg)
{
	struct command_line *c = arg;

	for (size_t i = 0; c->argc > 2 && i < sizeof counts / sizeof counts[0]; i++)
		if (strcmp(counts[i].name, c->argv[1]) == 0) {
			counts[i].run(atol(c->argv[2]));
			return NULL;
		}
	c->code = bench_main(c->argc, c->argv, cases);
	if (c->code == 0)
		print_counters();
	return NULL;
}

int main(int argc, char **argv)
{
	struct command_line c = { argc, argv, 0 };
	/* A count keeps the other workers in a system call (count.c): spare ones would come in their place. */
	struct hd_config config = { .workers = bench_workers(),
				    .spares = argc > 1 && strncmp(argv[1], "count_", 6) == 0 ? -1 : 0,
				    .fixed = true };

	if (argc == 2 && strcmp(argv[1], "--build") == 0) {
		puts(BENCH_BUILD);
		return 0;
	}
	bench_ok(hd_run(&config, first_process, &c), "hd_run");
	return c.code;
}
