/* explore.c - `heddle explore`: runs a program under many schedules, and tells of the first that fails. */
#define _GNU_SOURCE
#include "explore.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "progress.h"
#include "say.h"
#include "search.h"
#include "shrink.h"
#include "story.h"
#include "subject.h"

#define JOBS_MAX 64
#define TEXT_MAX (HD__SIM_LIST_MAX * 16)

struct exploration {
	struct hd__sim_plan plan; /* what all runs have in common, and the first seed */
	bool exhaustive, quiet;
	unsigned bound, jobs;
	uint64_t schedules;
	double seconds;
	const char *checkpoint;
	char **argv;
	struct progress progress;
	struct subject subjects[JOBS_MAX];
};

static void add_batch(struct exploration *x, const struct subject *s)
{
	for (uint32_t i = 0; i < s->page->done; i++)
		progress_add(&x->progress, s->page->hashes[i]);
	progress_show(&x->progress);
}

static bool failed(const struct subject *s)
{
	return s->page->result.verdict != HD__SIM_FINE;
}

/* One run of a plan, counted. */
static bool run_fails(struct exploration *x, struct subject *s, const struct hd__sim_plan *plan)
{
	subject_run(s, plan);
	add_batch(x, s);
	return failed(s);
}

static void refuse_threads(const struct subject *s)
{
	if (s->page->result.verdict == HD__SIM_FOREIGN)
		die("the program has kernel threads of its own: they cannot be simulated");
}

/* Whether one plan, in two OS processes with their memory at different addresses, gives the same run twice. If not, no schedule
 * that is found can be repeated. */
static bool is_honest(struct exploration *x)
{
	struct subject other, *s = &x->subjects[0];

	if (subject_run(s, &x->plan) == HD__SIM_HANG)
		return true; /* it will be found */
	subject_start(&other, x->argv, x->plan.faults);
	subject_run(&other, &x->plan);
	refuse_threads(s);
	refuse_threads(&other);
	bool same = s->page->result.hash == other.page->result.hash;
	subject_stop(&other);
	return same;
}

/* Fails the first call that may fail, then the second, and so on until a run has no more of them; once each, then all from there
 * on. False: none of these runs failed. */
static bool fail_each(struct exploration *x, struct subject *s)
{
	struct hd__sim_plan plan = x->plan;

	if (plan.faults == 0)
		return false;
	plan.policy = HD__SIM_LIST;
	plan.unusual = 0;
	for (int on = 0; on < 2; on++) {
		plan.fail_on = on;
		for (plan.fail_at = 1;; plan.fail_at++) {
			if (run_fails(x, s, &plan))
				return true;
			if (s->page->result.faults_met < plan.fail_at || progress_is_late(&x->progress))
				break;
		}
	}
	return false;
}

/* A number for what is searched, and how far. */
static uint64_t search_of(const struct exploration *x)
{
	uint64_t hash = x->bound + 1469598103934665603u + x->plan.workers * 256u + x->plan.faults;

	for (char **arg = x->argv; *arg != NULL; arg++)
		for (const char *c = *arg;; c++) {
			hash = (hash ^ (unsigned char)*c) * 1099511628211u;
			if (*c == 0)
				break;
		}
	return hash;
}

/* All schedules with at most x->bound preemptions. */
static struct subject *search_all(struct exploration *x)
{
	struct subject *s = &x->subjects[0];
	struct hd__sim_plan plan = x->plan;
	uint64_t begun, saved;

	plan.policy = HD__SIM_LIST;
	plan.unusual = 0;
	if (x->checkpoint != NULL)
		load_checkpoint(x->checkpoint, search_of(x), &plan, &x->progress.done);
	begun = saved = x->progress.done;
	do {
		bool enough = progress_is_late(&x->progress) || x->progress.done >= begun + x->schedules;
		if (x->checkpoint != NULL && (enough || x->progress.done >= saved + 1000)) {
			save_checkpoint(x->checkpoint, search_of(x), &plan, x->progress.done);
			saved = x->progress.done;
		}
		if (enough) {
			x->exhaustive = false; /* not all */
			return NULL;
		}
		if (run_fails(x, s, &plan))
			return s;
	} while (next_schedule(s, &plan, x->bound));
	return NULL;
}

/* Gives an idle subject its next batch; false when there is no more to do. */
static bool give_batch(struct exploration *x, struct subject *s, uint64_t *given)
{
	uint64_t left = x->schedules - *given;
	unsigned count = left < HD__SIM_BATCH ? (unsigned)left : HD__SIM_BATCH;

	if (count == 0 || progress_is_late(&x->progress))
		return false;
	if (x->seconds > 0 && x->progress.done < HD__SIM_BATCH)
		count = 1 + count / 16; /* how fast is it? */
	s->page->plan = x->plan;
	s->page->plan.seed += *given;
	*given += count;
	subject_go(s, count);
	return true;
}

/* Seed after seed, on all jobs. */
static struct subject *try_seeds(struct exploration *x)
{
	struct pollfd answers[JOBS_MAX];
	uint64_t given = 0;

	for (;;) {
		unsigned busy = 0;
		for (unsigned i = 0; i < x->jobs; i++) {
			struct subject *s = &x->subjects[i];
			if (s->busy || give_batch(x, s, &given))
				busy++;
			answers[i] = (struct pollfd){ .fd = s->busy ? s->answer : -1, .events = POLLIN };
		}
		if (busy == 0)
			return NULL;
		if (poll(answers, x->jobs, 200) < 0 && errno != EINTR)
			die("poll: %s", strerror(errno));
		for (unsigned i = 0; i < x->jobs; i++) {
			struct subject *s = &x->subjects[i];
			if (!s->busy || !(answers[i].revents & (POLLIN | POLLHUP)))
				continue;
			subject_wait(s);
			if (s->page->longest > x->plan.length)
				x->plan.length = s->page->longest;
			add_batch(x, s);
			if (failed(s))
				return s;
		}
		progress_show(&x->progress);
	}
}

/* A word as a shell wants it. */
static void print_word(const char *word)
{
	if (word[0] != 0 && word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:+,=@%")] == 0) {
		printf(" %s", word);
		return;
	}
	printf(" '");
	for (; *word != 0; word++)
		if (*word == '\'')
			printf("'\\''");
		else
			putchar(*word);
	putchar('\'');
}

static void print_replay(const struct exploration *x, const struct hd__sim_plan *plan)
{
	static char text[TEXT_MAX];

	if (!hd__sim_format(plan, text, sizeof text))
		return;
	printf("  heddle replay");
	print_word(text);
	for (char **arg = x->argv; *arg != NULL; arg++)
		print_word(*arg);
	printf("\n");
}

/* Shrinks what failed, tells its story, and says how to repeat it. */
static void report(struct exploration *x, struct subject *s)
{
	struct hd__sim_plan found = s->page->plan, shortest = found;
	uint32_t decisions = s->page->result.decisions, steps = s->page->result.steps;
	unsigned runs = 0;
	bool shrunk;

	progress_hide(&x->progress);
	refuse_threads(s);
	printf("found after %" PRIu64 " schedule%s: ", x->progress.done, x->progress.done == 1 ? "" : "s");
	print_verdict(s->page);
	shrunk = s->page->result.verdict != HD__SIM_HANG && shrink(s, &shortest, &runs);
	if (!shrunk)
		shortest = found;
	if (s->page->result.verdict == HD__SIM_HANG) {
		printf("\nTo repeat it:\n");
		print_replay(x, &found);
		return;
	}
	s->page->tell = true;
	subject_run(s, &shortest);
	printf("it has %" PRIu32 " steps and %" PRIu32 " decisions", steps, decisions);
	if (shrunk)
		printf("; %u unusual one%s of them suffice%s (%u runs)", shortest.unusual, shortest.unusual == 1 ? "" : "s",
		       shortest.unusual == 1 ? "s" : "", runs);
	printf(".\n\nIts story, a star where the choice was not the usual one:\n");
	tell_story(s->page, s->pid);
	printf("\nWhat it printed:\n");
	subject_print_output(s, "  ");
	printf("\nTo repeat it:\n");
	print_replay(x, &shortest);
	if (shrunk && found.policy != HD__SIM_LIST)
		print_replay(x, &found);
}

static void conclude(struct exploration *x)
{
	double elapsed = progress_elapsed(&x->progress);

	progress_hide(&x->progress);
	printf("nothing found in %" PRIu64 " schedule%s (%" PRIu64 " distinct) in %.1f s", x->progress.done,
	       x->progress.done == 1 ? "" : "s", x->progress.distinct, elapsed);
	if (x->exhaustive)
		printf("; these are all with at most %u preemption%s", x->bound, x->bound == 1 ? "" : "s");
	printf("\n");
}

static void parse_policy(struct exploration *x, const char *text)
{
	if (strcmp(text, "random") == 0) {
		x->plan.policy = HD__SIM_RANDOM;
	} else if (strncmp(text, "pct:", 4) == 0) {
		x->plan.policy = HD__SIM_PCT;
		x->plan.depth = (uint8_t)number_option("--policy pct:", text + 4, 1, 100);
	} else if (strcmp(text, "robin") == 0) {
		x->plan.policy = HD__SIM_ROBIN;
		x->schedules = 1;
	} else if (strncmp(text, "exhaustive:", 11) == 0) {
		x->exhaustive = true;
		x->bound = (unsigned)number_option("--policy exhaustive:", text + 11, 0, 1000);
	} else {
		die("--policy %s: not random, pct:DEPTH, robin or exhaustive:PREEMPTIONS", text);
	}
}

static double parse_time(const char *text)
{
	char *end;
	double n = strtod(text, &end);

	if (strcmp(end, "m") == 0)
		n *= 60;
	else if (strcmp(end, "h") == 0)
		n *= 3600;
	else if (strcmp(end, "s") != 0 && *end != 0)
		n = -1;
	if (end == text || !(n > 0))
		die("--time %s: not a time such as 30s, 5m or 1h", text);
	return n;
}

static void parse(struct exploration *x, int argc, char **argv)
{
	static const struct option options[] = {
		{ "schedules", required_argument, NULL, 'n' }, { "policy", required_argument, NULL, 'p' },
		{ "fail", required_argument, NULL, 'f' },      { "time", required_argument, NULL, 't' },
		{ "jobs", required_argument, NULL, 'j' },      { "workers", required_argument, NULL, 'w' },
		{ "seed", required_argument, NULL, 's' },      { "steps", required_argument, NULL, 'k' },
		{ "checkpoint", required_argument, NULL, 'c' }, { "no-leaks", no_argument, NULL, 'l' },
		{ "quiet", no_argument, NULL, 'q' },	       { "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	bool counted = false;
	int c;

	x->plan = (struct hd__sim_plan){ .policy = HD__SIM_RANDOM, .seed = 1 };
	x->schedules = 10000;
	x->jobs = 1;
	while ((c = getopt_long(argc, argv, "+n:p:f:t:j:w:s:k:c:lqh", options, NULL)) != -1) {
		switch (c) {
		case 'n':
			x->schedules = number_option("--schedules", optarg, 1, UINT64_MAX / 2);
			counted = true;
			break;
		case 'p':
			parse_policy(x, optarg);
			break;
		case 'f':
			x->plan.faults = (uint8_t)hd__sim_faults(optarg, strlen(optarg));
			if (x->plan.faults == 0)
				die("--fail %s: not some of malloc, alloc, map, guard, time, eintr, with commas between", optarg);
			break;
		case 't':
			x->seconds = parse_time(optarg);
			break;
		case 'j':
			x->jobs = (unsigned)number_option("--jobs", optarg, 1, JOBS_MAX);
			break;
		case 'w':
			x->plan.workers = (uint8_t)number_option("--workers", optarg, 1, HD__SIM_WORKERS_MAX);
			break;
		case 's':
			x->plan.seed = number_option("--seed", optarg, 0, UINT64_MAX);
			break;
		case 'k':
			x->plan.steps = (uint32_t)number_option("--steps", optarg, 1, UINT32_MAX);
			break;
		case 'c':
			x->checkpoint = optarg;
			break;
		case 'l':
			x->plan.ignore_leaks = true;
			break;
		case 'q':
			x->quiet = true;
			break;
		case 'h':
			help("explore");
			exit(0);
		default:
			exit(2); /* getopt has said why */
		}
	}
	if (argv[optind] == NULL)
		die("which program? `heddle help explore` explains");
	if (x->checkpoint != NULL && !x->exhaustive)
		die("--checkpoint is for --policy exhaustive:N; others go on with --seed");
	if ((x->seconds > 0 || x->exhaustive) && !counted)
		x->schedules = UINT64_MAX / 2;
	x->argv = argv + optind;
}

int explore_main(int argc, char **argv)
{
	static struct exploration x;
	struct subject *culprit = NULL;

	parse(&x, argc, argv);
	for (unsigned i = 0; i < x.jobs; i++)
		subject_start(&x.subjects[i], x.argv, x.plan.faults);
	if (!is_honest(&x))
		die("the same plan twice gave two different runs: the program asks for the time, for randomness or for addresses, "
		    "and what it finds could not be repeated");
	x.plan.length = x.subjects[0].page->result.steps;
	progress_start(&x.progress, x.quiet, x.schedules < UINT64_MAX / 2 ? x.schedules : 0, x.seconds);
	if (fail_each(&x, &x.subjects[0]))
		culprit = &x.subjects[0];
	if (culprit == NULL)
		culprit = x.exhaustive ? search_all(&x) : try_seeds(&x);
	if (culprit != NULL)
		report(&x, culprit);
	else
		conclude(&x);
	for (unsigned i = 0; i < x.jobs; i++)
		subject_stop(&x.subjects[i]);
	progress_end(&x.progress);
	return culprit != NULL;
}
