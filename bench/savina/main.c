/* main.c - heddle-savina: the micro and concurrency programs of the Savina suite, on ports.
 *
 * `heddle-savina NAME` prints the milliseconds of one of them, with Savina's parameters. `heddle-savina --check` runs all of them with
 * small ones, which is a test. The number of workers is BENCH_WORKERS, or one; the environment that heddle reads has no say. */
#include "savina.h"

int reduction = 1;
atomic_ulong work_results;

static const struct bench_case programs[] = {
	{ "ping_pong", ping_pong },
	{ "counting", counting },
	{ "fork_join_throughput", fork_join_throughput },
	{ "fork_join_create", fork_join_create },
	{ "thread_ring", thread_ring },
	{ "chameneos", chameneos },
	{ "big", big },
	{ "dictionary", dictionary },
	{ "sorted_list", sorted_list },
	{ "bounded_buffer", bounded_buffer },
	{ "philosophers", philosophers },
	{ "barber", barber },
	{ "smokers", smokers },
	{ "logistic_map", logistic_map },
	{ "bank", bank },
	{ NULL, NULL },
};

static double timed(void (*run)(void))
{
	double start = bench_now();

	run();
	return (bench_now() - start) / 1e6;
}

/* The median of a few runs, after one that warms up. */
static void measure(const struct bench_case *program)
{
	enum { REPETITIONS = 5 };
	double values[REPETITIONS];
	int repetitions = bench_quick() ? 1 : REPETITIONS;

	program->run();
	for (int i = 0; i < repetitions; i++)
		values[i] = timed(program->run);
	bench_print(program->name, bench_median(values, repetitions));
}

/* Runs all of them; nothing is left of any. */
static void check(void)
{
	struct hd_stats stats;

	for (const struct bench_case *p = programs; p->name != NULL; p++) {
		p->run();
		bench_ok(hd_stats(&stats), "hd_stats");
		if (stats.live_messages != 0 || stats.live_ports != 0) {
			fprintf(stderr, "%s: %llu messages and %llu ports are left\n", p->name,
				(unsigned long long)stats.live_messages, (unsigned long long)stats.live_ports);
			exit(1);
		}
	}
}

struct command_line {
	int argc;
	char **argv;
	int code;
};

static void *first_process(void *arg)
{
	struct command_line *c = arg;
	const char *name = c->argc == 2 ? c->argv[1] : "";

	if (strcmp(name, "--check") == 0) {
		reduction = 200;
		check();
		return NULL;
	}
	for (const struct bench_case *p = programs; p->name != NULL; p++)
		if (strcmp(p->name, name) == 0) {
			measure(p);
			return NULL;
		}
	fprintf(stderr, "usage: heddle-savina --check | NAME, with NAME one of\n");
	for (const struct bench_case *p = programs; p->name != NULL; p++)
		fprintf(stderr, "  %s\n", p->name);
	c->code = 2;
	return NULL;
}

int main(int argc, char **argv)
{
	struct command_line c = { argc, argv, 0 };
	struct hd_config config = { .workers = bench_workers(), .fixed = true };

	bench_ok(hd_run(&config, first_process, &c), "hd_run");
	return c.code;
}
