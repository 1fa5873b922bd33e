/* stats.c - `heddle stats`: a program in numbers, for people, as JSON, or for Prometheus.
 *
 * What is counted is read from the program's memory, as for `heddle ps`: its workers' counters, and its processes one by one. How long processes are ready before
 * they run is known only while the program is traced: --latency records it for some seconds. */
#define _GNU_SOURCE
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "process/process.h"
#include "recording.h"
#include "say.h"

#define LATENCY_MAX 600 /* seconds */

/* Upper bounds, ns; above the last: +Inf. */
static const int64_t bounds[] = { 1000,	   2000,    5000,    10000,    20000,	 50000,	   100000,    200000,	 500000,
				  1000000, 2000000, 5000000, 10000000, 20000000, 50000000, 100000000, 1000000000 };
#define BOUNDS (sizeof bounds / sizeof bounds[0])

struct latency {
	uint64_t count[BOUNDS + 1]; /* each of those not above its bound, and above the one before */
	uint64_t all;
	int64_t sum, most;
};

/* A counter: what it is called, here and in Prometheus, and where it stands. */
static const struct counter {
	int field;
	const char *name, *help;
	bool gauge;
} counters[] = {
	{ HD__INSIDE_WORKER_SWITCHES, "switches", "Times that a process was given a worker.", false },
	{ HD__INSIDE_WORKER_SPAWNED, "spawned", "Processes made by processes.", false },
	{ HD__INSIDE_WORKER_ENDED, "ended", "Processes that have ended.", false },
	{ HD__INSIDE_WORKER_HANDOFFS, "handoffs", "Switches by hand-off.", false },
	{ HD__INSIDE_WORKER_PREEMPTIONS, "preemptions", "Times that a process lost its worker to a higher priority.", false },
	{ HD__INSIDE_WORKER_FORCED, "forced", "Safe points that a signal forced on a process.", false },
	{ HD__INSIDE_WORKER_QUANTA, "expired_quanta", "Quanta that were over.", false },
	{ HD__INSIDE_WORKER_REMOTE_WAKES, "remote_wakes", "Requests that came from other kernel threads.", false },
	{ HD__INSIDE_WORKER_TIMEOUTS, "timeouts", "Deadlines that came before what was waited for.", false },
	{ HD__INSIDE_WORKER_IDLES, "idles", "Times that a worker had nothing to run.", false },
	{ HD__INSIDE_WORKER_WOKEN, "wakes", "Times that a sleeping worker was woken by another thread.", false },
	{ HD__INSIDE_WORKER_STEALS, "steals", "Times that a worker took processes that were ready on another.", false },
	{ HD__INSIDE_WORKER_STOLEN, "stolen", "Processes taken so.", false },
	{ HD__INSIDE_WORKER_TIMERS, "timers", "Deadlines pending.", true },
};
#define COUNTERS (sizeof counters / sizeof counters[0])

struct figures {
	uint64_t states[HD_ENDED + 1], waiting[HD__INSIDE_WAITS], ready[HD__PRIORITY_MAX + 1];
	uint64_t stacks, stack_bytes; /* bound to a process; what these have used */
	int64_t longest_ready, messages;
	struct latency latency;
	bool measured;
};

static void count(const struct census *c, struct figures *f)
{
	for (uint32_t i = 0; i < c->count; i++) {
		const struct row *r = &c->rows[i];
		unsigned priority = r->lent > r->own ? r->lent : r->own;
		f->states[r->state]++;
		if (r->state == HD_WAITING)
			f->waiting[r->why]++;
		if (r->state == HD_READY && priority <= HD__PRIORITY_MAX) {
			f->ready[priority]++;
			f->longest_ready = age_of(c, r) > f->longest_ready ? age_of(c, r) : f->longest_ready;
		}
		f->stacks += r->stack != 0;
		f->stack_bytes += r->stack_used;
	}
	for (uint32_t i = 0; i < c->nworkers; i++)
		f->messages += (int64_t)census_number(c, (int)i, HD__INSIDE_WORKER_LETTERS);
	if (f->messages < 0) /* plain threads have dropped some that workers had sent */
		f->messages = 0;
}

static void add_latency(unsigned priority, int64_t ns, void *arg)
{
	struct latency *l = arg;
	size_t i = 0;

	(void)priority;
	while (i < BOUNDS && ns > bounds[i])
		i++;
	l->count[i]++;
	l->all++;
	l->sum += ns;
	l->most = ns > l->most ? ns : l->most;
}

/* Nanoseconds that a worker has slept. */
static int64_t idle_of(const struct census *c, uint32_t worker)
{
	int64_t idle = (int64_t)census_number(c, (int)worker, HD__INSIDE_WORKER_IDLE);

	return idle < 0 ? idle + c->now : idle; /* see struct hd_worker */
}

/* For how long there has been a worker: the first is as old as the runtime, a spare is younger. */
static int64_t age(const struct census *c, uint32_t worker)
{
	int64_t begun = (int64_t)census_number(c, (int)worker, HD__INSIDE_WORKER_BEGUN);
	return begun != 0 && c->now > begun ? c->now - begun : 0;
}

/* Nanoseconds that it had something to run. */
static int64_t busy_of(const struct census *c, uint32_t worker)
{
	int64_t busy = age(c, worker) - idle_of(c, worker);
	return busy > 0 ? busy : 0;
}

static uint64_t total(const struct census *c, int field)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < c->nworkers; i++)
		n += census_number(c, (int)i, field);
	return n;
}

static const char *const states[] = { NULL, "ready", "running", "waiting", "suspended", "ended" };

/* ---- for people ---- */

/* The bound below which so many of a hundred are. */
static int64_t percentile(const struct latency *l, unsigned percent)
{
	uint64_t n = 0;

	for (size_t i = 0; i < BOUNDS; i++)
		if ((n += l->count[i]) * 100 >= l->all * percent)
			return bounds[i];
	return l->most;
}

static void print_text(const struct census *c, const struct figures *f)
{
	char text[32];

	print_headline(c);
	printf("processes: ");
	for (int i = HD_READY; i <= HD_ENDED; i++)
		printf("%s%" PRIu64 " %s", i > HD_READY ? ", " : "", f->states[i], states[i]);
	printf("\n");
	for (unsigned i = 0; i < HD__INSIDE_WAITS; i++)
		if (f->waiting[i] > 0)
			printf("  waiting in %s: %" PRIu64 "\n",
			       i != 0 ? c->copy->inside.wait[i].call : "a call that is just beginning", f->waiting[i]);
	for (int i = HD__PRIORITY_MAX; i >= HD__PRIORITY_MIN; i--)
		if (f->ready[i] > 0)
			printf("  ready with priority %d: %" PRIu64 "\n", i, f->ready[i]);
	if (f->longest_ready > 0)
		printf("  ready for the longest: %s\n", span(0, f->longest_ready, text));
	for (uint32_t i = 0; i < c->nworkers; i++)
		printf("worker %" PRIu32 ": busy %.1f %% of %s, %" PRIu64 " switches, %" PRIu32 " ready%s\n", i,
		       age(c, i) > 0 ? 100.0 * (double)busy_of(c, i) / (double)age(c, i) : 0, span(0, age(c, i), text),
		       c->workers[i].switches, c->workers[i].ready, c->workers[i].asleep ? ", asleep" : "");
	for (size_t i = 0; i < COUNTERS; i++)
		printf("%s: %" PRIu64 "\n", counters[i].name, total(c, counters[i].field));
	printf("messages: %" PRId64 "\nstacks: %" PRIu64 ", %" PRIu64 " KiB used\n", f->messages, f->stacks,
	       f->stack_bytes >> 10);
	if (!f->measured)
		return;
	printf("ready until running, %" PRIu64 " times:", f->latency.all);
	if (f->latency.all > 0)
		printf(" half of them within %g us, 99 of 100 within %g us, the longest %g us",
		       (double)percentile(&f->latency, 50) / 1e3, (double)percentile(&f->latency, 99) / 1e3,
		       (double)f->latency.most / 1e3);
	printf("\n");
	for (size_t i = 0; i <= BOUNDS; i++)
		if (f->latency.count[i] > 0)
			printf("  %s %8g us: %" PRIu64 "\n", i < BOUNDS ? "within   " : "more than",
			       (double)bounds[i < BOUNDS ? i : BOUNDS - 1] / 1e3, f->latency.count[i]);
}

/* ---- JSON ---- */

static void print_json(const struct census *c, const struct figures *f)
{
	printf("{\"format\":1,\"library\":\"%s\",\"now\":%" PRId64 ",\"age\":%" PRId64 ",\"processes\":{",
	       c->copy->inside.library, c->now, age(c, 0));
	for (int i = HD_READY; i <= HD_ENDED; i++)
		printf("%s\"%s\":%" PRIu64, i > HD_READY ? "," : "", states[i], f->states[i]);
	printf("},\"waiting\":{");
	for (unsigned i = 1, n = 0; i < HD__INSIDE_WAITS; i++)
		if (f->waiting[i] > 0)
			printf("%s\"%s\":%" PRIu64, n++ > 0 ? "," : "", c->copy->inside.wait[i].call, f->waiting[i]);
	printf("},\"ready\":{");
	for (int i = HD__PRIORITY_MIN, n = 0; i <= HD__PRIORITY_MAX; i++)
		if (f->ready[i] > 0)
			printf("%s\"%d\":%" PRIu64, n++ > 0 ? "," : "", i, f->ready[i]);
	printf("},\"longest_ready\":%" PRId64 ",\"workers\":[", f->longest_ready);
	for (uint32_t i = 0; i < c->nworkers; i++) {
		printf("%s{\"busy\":%" PRId64 ",\"idle\":%" PRId64 ",\"ready\":%" PRIu32 ",\"asleep\":%s", i > 0 ? "," : "",
		       busy_of(c, i), idle_of(c, i), c->workers[i].ready, c->workers[i].asleep ? "true" : "false");
		for (size_t k = 0; k < COUNTERS; k++)
			printf(",\"%s\":%" PRIu64, counters[k].name, census_number(c, (int)i, counters[k].field));
		printf("}");
	}
	printf("],\"messages\":%" PRId64 ",\"stacks\":%" PRIu64 ",\"stack_bytes\":%" PRIu64, f->messages, f->stacks,
	       f->stack_bytes);
	if (f->measured) {
		printf(",\"latency\":{\"count\":%" PRIu64 ",\"sum\":%" PRId64 ",\"most\":%" PRId64 ",\"buckets\":[",
		       f->latency.all, f->latency.sum, f->latency.most);
		for (size_t i = 0; i < BOUNDS; i++)
			printf("%s{\"within\":%" PRId64 ",\"count\":%" PRIu64 "}", i > 0 ? "," : "", bounds[i],
			       f->latency.count[i]);
		printf("]}");
	}
	printf("}\n");
}

/* ---- Prometheus ---- */

static void head(const char *name, const char *kind, const char *text)
{
	printf("# HELP heddle_%s %s\n# TYPE heddle_%s %s\n", name, text, name, kind);
}

static void print_prometheus(const struct census *c, const struct figures *f)
{
	char name[64];

	head("processes", "gauge", "Processes, by what they do.");
	for (int i = HD_READY; i <= HD_ENDED; i++)
		printf("heddle_processes{state=\"%s\"} %" PRIu64 "\n", states[i], f->states[i]);
	head("waiting", "gauge", "Processes that wait, by the call.");
	for (unsigned i = 1; i < HD__INSIDE_WAITS && i < c->copy->inside.waits; i++)
		printf("heddle_waiting{call=\"%s\"} %" PRIu64 "\n", c->copy->inside.wait[i].call, f->waiting[i]);
	head("ready", "gauge", "Processes that are ready, by priority.");
	for (int i = HD__PRIORITY_MIN; i <= HD__PRIORITY_MAX; i++)
		if (f->ready[i] > 0 || i % 10 == 0)
			printf("heddle_ready{priority=\"%d\"} %" PRIu64 "\n", i, f->ready[i]);
	head("longest_ready_seconds", "gauge", "For how long the process that has been ready the longest has been so.");
	printf("heddle_longest_ready_seconds %.9f\n", (double)f->longest_ready / 1e9);
	head("worker_busy_seconds_total", "counter", "Time that a worker had something to run.");
	for (uint32_t i = 0; i < c->nworkers; i++)
		printf("heddle_worker_busy_seconds_total{worker=\"%" PRIu32 "\"} %.9f\n", i, (double)busy_of(c, i) / 1e9);
	head("worker_idle_seconds_total", "counter", "Time that a worker slept.");
	for (uint32_t i = 0; i < c->nworkers; i++)
		printf("heddle_worker_idle_seconds_total{worker=\"%" PRIu32 "\"} %.9f\n", i, (double)idle_of(c, i) / 1e9);
	head("worker_ready", "gauge", "Processes that are ready at a worker.");
	for (uint32_t i = 0; i < c->nworkers; i++)
		printf("heddle_worker_ready{worker=\"%" PRIu32 "\"} %" PRIu32 "\n", i, c->workers[i].ready);
	for (size_t k = 0; k < COUNTERS; k++) {
		snprintf(name, sizeof name, "%s%s", counters[k].name, counters[k].gauge ? "" : "_total");
		head(name, counters[k].gauge ? "gauge" : "counter", counters[k].help);
		for (uint32_t i = 0; i < c->nworkers; i++)
			printf("heddle_%s{worker=\"%" PRIu32 "\"} %" PRIu64 "\n", name, i,
			       census_number(c, (int)i, counters[k].field));
	}
	head("messages", "gauge", "Messages that were sent and not dropped, as workers count them.");
	printf("heddle_messages %" PRId64 "\n", f->messages);
	head("stacks", "gauge", "Stacks of processes.");
	printf("heddle_stacks %" PRIu64 "\n", f->stacks);
	head("stack_used_bytes", "gauge", "The most that was used of these stacks.");
	printf("heddle_stack_used_bytes %" PRIu64 "\n", f->stack_bytes);
	if (!f->measured)
		return;
	uint64_t n = 0;
	head("ready_seconds", "histogram", "For how long processes were ready before they ran, while that was recorded.");
	for (size_t i = 0; i < BOUNDS; i++)
		printf("heddle_ready_seconds_bucket{le=\"%g\"} %" PRIu64 "\n", (double)bounds[i] / 1e9,
		       n += f->latency.count[i]);
	printf("heddle_ready_seconds_bucket{le=\"+Inf\"} %" PRIu64
	       "\nheddle_ready_seconds_sum %.9f\nheddle_ready_seconds_count %" PRIu64 "\n",
	       f->latency.all, (double)f->latency.sum / 1e9, f->latency.all);
}

/* The counters are read now: so must be the processes. */
static void look_again(struct inspected *target)
{
	struct census c;
	char why[256];

	if (!census_take(&c, &target->memory, target->censuses[0].copy, why, sizeof why))
		die("%s: %s", target->memory.name, why);
	census_drop(&target->censuses[0]);
	target->censuses[0] = c;
}

int stats_main(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
						 { "prometheus", no_argument, NULL, 'p' },
						 { "latency", required_argument, NULL, 'l' },
						 { "help", no_argument, NULL, 'h' },
						 { NULL, 0, NULL, 0 } };
	static struct inspected target;
	static struct figures figures;
	bool json = false, prometheus = false;
	double seconds = 0;
	char *end = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1)
		switch (option) {
		case 'j':
			json = true;
			break;
		case 'p':
			prometheus = true;
			break;
		case 'l':
			seconds = strtod(optarg, &end);
			if (end == optarg || *end != 0 || !isfinite(seconds) || seconds <= 0 || seconds > LATENCY_MAX)
				die("--latency %s: expected seconds, at most %d", optarg, LATENCY_MAX);
			break;
		case 'h':
			help("stats");
			return 0;
		default:
			return 2;
		}
	if (optind + 1 != argc)
		die("which program? `heddle stats PID`, or a core file, or the name of a program; `heddle help stats` "
		    "explains");
	inspect(&target, argv[optind], json || prometheus);
	if (seconds > 0 && target.memory.live) {
		struct recording r;
		trace_record(&r, &target, seconds);
		timeline_latencies(&r, add_latency, &figures.latency);
		figures.measured = true;
		recording_drop(&r);
		look_again(&target);
	}
	if (target.running > 1 && (json || prometheus))
		die("%s has several runtimes that run: which of them is not known", target.memory.name);
	for (size_t i = 0; i < target.running; i++) {
		struct census *c = &target.censuses[i];
		struct latency latency = figures.latency;
		figures = (struct figures){ .latency = latency, .measured = figures.measured };
		census_measure_stacks(c);
		count(c, &figures);
		if (json)
			print_json(c, &figures);
		else if (prometheus)
			print_prometheus(c, &figures);
		else
			print_text(c, &figures);
	}
	inspect_end(&target);
	return 0;
}
