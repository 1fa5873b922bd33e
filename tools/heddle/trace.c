/* trace.c - `heddle trace`: records what a program does, for a while, and makes a timeline of it.
 *
 * The program is asked by one word that is written into its memory (struct hd__trace in obs/trace.h): its workers have tapes from then on, which are read here
 * while they are written. The word has a time limit: if this command dies, the program stops by itself, and gives the memory back. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "help.h"
#include "inspect.h"
#include "recording.h"
#include "say.h"

#define SECONDS_MAX 3600
#define ORDER 18	/* 262,144 events, 8 MiB, for each worker */
#define PAUSE 4000000	/* ns between two reads */
#define LIMIT_MORE 2000 /* ms that the program would record for longer, if nothing told it to stop */
#define PROCESSES 500

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ 0, PAUSE }, NULL);
}

static void ask(struct memory *m, const struct copy *copy, uint64_t wish)
{
	struct hd__inside_field f = copy->inside.field[HD__INSIDE_TRACE_WISH];
	struct iovec here = { &wish, sizeof wish }, there = { (void *)(uintptr_t)(copy->inside.sched + f.at), sizeof wish };

	if (f.size != sizeof wish)
		die("%s: its heddle cannot be traced from outside: it is older than this command", m->name);
	if (process_vm_writev(m->pid, &here, 1, &there, 1, 0) != sizeof wish)
		die("%s cannot be asked for a trace: %s", m->name, strerror(errno));
}

/* The only runtime that runs there. */
static const struct copy *running_copy(const struct inspected *target)
{
	const struct copy *copy = NULL;

	for (size_t i = 0; i < target->count; i++)
		if (copy_runs(&target->copies[i])) {
			if (copy != NULL)
				die("%s has several runtimes that run: which of them is not known", target->memory.name);
			copy = &target->copies[i];
		}
	return copy;
}

static unsigned workers_of(const struct census *c, unsigned before)
{
	uint64_t n = census_number(c, -1, HD__INSIDE_SCHED_NWORKERS);
	return n > before && n <= 1024 ? (unsigned)n : before;
}

/* Records from a program that runs, for so many seconds, or until it ends, or there are enough events. */
static void record(struct recording *r, struct inspected *target, double seconds, unsigned order, size_t events_max)
{
	const struct copy *copy = running_copy(target);
	struct memory *m = &target->memory;
	struct trace_place place;

	if (!trace_find(m, copy, &place))
		die("%s: its heddle cannot be traced from outside: it is older than this command", m->name);
	if (place.clock.begin_ns != 0 && !place.from_start)
		die("%s is being traced by another `heddle trace`, or was a moment ago: wait until that is over, 12 seconds "
		    "more than it was given at most",
		    m->name);
	uint64_t wish = HD__WISH(1 + (unsigned)(getpid() % 255), order, (uint64_t)(seconds * 1000) + LIMIT_MORE);
	int64_t until = now() + (int64_t)(seconds * 1e9);
	bool heard = place.from_start, there = true;

	signal(SIGINT, on_interrupt);
	signal(SIGTERM, on_interrupt);
	recording_init(r, &copy->inside);
	r->events_max = events_max;
	recording_add_names(r, &target->censuses[0]);
	if (!place.from_start)
		ask(m, copy, wish);
	r->workers = target->censuses[0].nworkers;
	while (there && now() < until && !interrupted && r->events < r->events_max) {
		nap();
		there = trace_find(m, copy, &place);
		if (there && !heard && place.obeyed == wish) {
			if (place.clock.begin_ns == 0)
				die("%s has no memory for a trace: give --size less", m->name);
			heard = true;
		}
		if (there && heard)
			there = recording_read(r, m, &place);
		r->workers = workers_of(&target->censuses[0], r->workers); /* spares may begin */
	}
	if (!place.from_start && there)
		ask(m, copy, HD__WISH(2 + (unsigned)(getpid() % 254), 0, 0));
	if (!heard)
		fprintf(stderr, "heddle: %s slept all the time: nothing has happened in it\n", m->name);
	else if (!there)
		fprintf(stderr, "heddle: %s has ended, or its runtime has: the trace is as far as it went\n", m->name);
	else if (r->events >= r->events_max)
		fprintf(stderr, "heddle: enough: %zu events; --events says how many are kept\n", r->events);
}

void trace_record(struct recording *r, struct inspected *target, double seconds)
{
	record(r, target, seconds, ORDER, EVENTS_MAX_DEFAULT);
}

/* What HEDDLE_TRACE has recorded, in a core file. */
static void record_core(struct recording *r, struct inspected *target)
{
	struct trace_place place;
	const struct copy *copy = running_copy(target);

	if (!trace_find(&target->memory, copy, &place) || place.tapes == 0)
		die("%s: the program was not being traced", target->memory.name);
	recording_init(r, &copy->inside);
	r->workers = target->censuses[0].nworkers;
	recording_add_names(r, &target->censuses[0]);
	if (!recording_read(r, &target->memory, &place))
		die("%s: the trace is not in it", target->memory.name);
}

static void write_out(struct recording *r, const struct timeline_wish *wish, const char *out)
{
	struct timeline_said said;
	FILE *to = strcmp(out, "-") == 0 ? stdout : fopen(out, "we");

	if (to == NULL)
		die("%s: %s", out, strerror(errno));
	timeline_write(r, wish, to, &said);
	if (fflush(to) != 0 || ferror(to) || (to != stdout && fclose(to) != 0))
		die("%s could not be written: %s", out, strerror(errno));
	fprintf(stderr, "heddle: %s: %zu events in %.3f s: %zu slices, %zu flows, %zu instants, %zu processes\n", out,
		r->events, said.seconds, said.slices, said.flows, said.instants, said.tracks);
	if (said.lost > 0)
		fprintf(stderr,
			"heddle: %zu events were lost: the program was faster than this command could read; --size keeps more "
			"of them\n",
			said.lost);
	if (said.without_track > 0)
		fprintf(stderr,
			"heddle: %zu processes with fewer events have no track of their own; --processes gives more of them "
			"one\n",
			said.without_track);
	if (said.half_flows > 0)
		fprintf(stderr, "heddle: %zu flows are not shown: one of their ends is not\n", said.half_flows);
}

void trace_convert(struct recording *r, const char *out)
{
	write_out(r, &(struct timeline_wish){ .processes = PROCESSES }, out);
}

static double seconds_option(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end != 0 || !isfinite(seconds) || seconds <= 0 || seconds > SECONDS_MAX)
		die("--seconds %s: expected a time of at most an hour", text);
	return seconds;
}

int trace_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "output", required_argument, NULL, 'o' },
		{ "size", required_argument, NULL, 'n' },
		{ "events", required_argument, NULL, 'e' },
		{ "processes", required_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	static struct inspected target;
	struct timeline_wish wish = { .processes = PROCESSES };
	struct recording r;
	const char *out = "trace.json";
	double seconds = 2;
	unsigned order = ORDER;
	size_t events_max = EVENTS_MAX_DEFAULT;
	int64_t program = 0;
	int option;

	while ((option = getopt_long(argc, argv, "o:h", options, NULL)) != -1)
		switch (option) {
		case 's':
			seconds = seconds_option(optarg);
			break;
		case 'o':
			out = optarg;
			break;
		case 'n':
			for (order = HD__TRACE_ORDER_MIN;
			     UINT64_C(1) << order < number_option("--size", optarg, 1, UINT64_C(1) << HD__TRACE_ORDER_MAX);)
				order++;
			break;
		case 'e':
			events_max = (size_t)number_option("--events", optarg, 1, 100000000);
			break;
		case 'p':
			wish.processes = (unsigned)number_option("--processes", optarg, 0, 100000);
			break;
		case 'h':
			help("trace");
			return 0;
		default:
			return 2;
		}
	if (optind + 1 != argc)
		die("which program? `heddle trace PID`, or its name, or a file that HEDDLE_TRACE has made; `heddle help trace` "
		    "explains");
	if (recording_open(&r, argv[optind], &program)) {
		write_out(&r, &wish, out);
	} else {
		inspect(&target, argv[optind], false);
		if (target.memory.live)
			record(&r, &target, seconds, order, events_max);
		else
			record_core(&r, &target);
		wish.program = target.memory.live ? target.memory.pid : 0;
		write_out(&r, &wish, out);
		inspect_end(&target);
	}
	recording_drop(&r);
	return 0;
}
