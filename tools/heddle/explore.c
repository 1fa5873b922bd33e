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

#include "compile.h"
#include "help.h"
#include "progress.h"
#include "say.h"
#include "search.h"
#include "shrink.h"
#include "story.h"
#include "subject.h"

#define JOBS_MAX 64
#define WORD_MAX 100000	    /* bytes that a shell can pass in one word, about */
#define STEPS_MOST 10000000 /* to which the limit grows by itself */
#define GROWTH_MAX 2.0	    /* seconds that a run may take if the limit is to grow once more */

struct exploration {
	struct hd__sim_plan plan; /* what all runs have in common, and the first seed */
	bool exhaustive, quiet;
	unsigned bound, jobs;
	uint64_t schedules;
	double seconds;
	const char *checkpoint;
	char **options;		  /* as they were typed */
	char **argv, **typed;	  /* the program and its arguments; the same as they were typed: a C file perhaps */
	uint64_t not_over;	  /* schedules that were not over when the plan's steps were */
	struct hd__sim_plan slow; /* the first of these */
	bool could_be_late;	  /* deadlines did not pass early, but could have */
	struct left_out out;	  /* exhaustive: what was not searched */
	struct progress progress;
	struct subject subjects[JOBS_MAX];
};

static void add_batch(struct exploration *x, const struct subject *s)
{
	const struct hd__sim_page *page = s->page;

	for (uint32_t i = 0; i < page->done; i++)
		progress_add(&x->progress, page->hashes[i]);
	if (page->not_over > 0 && x->not_over == 0) {
		copy_plan(&x->slow, &page->plan);
		x->slow.seed = page->not_over_seed;
	}
	x->not_over += page->not_over;
	x->could_be_late |= page->could_be_late;
	progress_show(&x->progress);
}

static bool failed(const struct subject *s)
{
	return s->page->result.verdict != HD__SIM_FINE && s->page->result.verdict != HD__SIM_NOT_OVER;
}

static void refuse_threads(const struct subject *s)
{
	if (s->page->result.verdict == HD__SIM_FOREIGN)
		die(HD__SIM_FOREIGN_TEXT);
}

/* How long the next batch may take; 0: as long as it likes. */
static double time_left(const struct exploration *x)
{
	double left = x->seconds - progress_elapsed(&x->progress);

	return x->seconds <= 0 ? 0 : left > 0.001 ? left : 0.001;
}

/* One run of a plan, within the time that is left. */
static bool run_fails(struct exploration *x, struct subject *s, const struct hd__sim_plan *plan)
{
	copy_plan(&s->page->plan, plan);
	subject_go(s, 1, time_left(x));
	subject_wait(s);
	return failed(s);
}

/* The first run. If it is not over, and nobody has said how many steps it may have, it may have ten times as many, and so on: a long
 * program should come to its end. */
static bool first_fails(struct exploration *x, struct subject *s)
{
	bool grows = x->plan.steps == 0;
	struct hd__sim_plan plan = x->plan;

	for (;;) {
		double begun = progress_elapsed(&x->progress);
		bool fails = run_fails(x, s, &plan), over = s->page->result.verdict != HD__SIM_NOT_OVER;
		if (over) {
			x->plan.steps = plan.steps;
			return fails;
		}
		if (!grows || progress_elapsed(&x->progress) - begun > GROWTH_MAX || plan.steps >= STEPS_MOST ||
		    progress_is_late(&x->progress))
			return false;
		plan.steps = 10 * (plan.steps != 0 ? plan.steps : HD__SIM_STEPS);
	}
}

/* `s` has run the first plan: whether another OS process, with its memory at different addresses, gives the same run. If not, no schedule that
 * is found can be repeated. */
static bool is_honest(struct exploration *x, struct subject *s)
{
	struct subject other;

	if (s->page->late)
		return true; /* there is no time to try it */
	subject_start(&other, x->argv, x->plan.faults);
	other.page->patience = s->page->patience;
	subject_run(&other, &s->page->plan);
	refuse_threads(&other);
	bool same = s->page->result.hash == other.page->result.hash;
	subject_stop(&other);
	return same;
}

/* Fails the first call that may fail, then the second, and so on until a run has no more of them; once each, then all from there
 * on. False: none of these runs failed. */
static bool fail_each(struct exploration *x, struct subject *s)
{
	static struct hd__sim_plan plan;

	copy_plan(&plan, &x->plan);
	if (plan.faults == 0)
		return false;
	plan.policy = HD__SIM_LIST;
	plan.unusual = 0;
	for (int on = 0; on < 2; on++) {
		plan.fail_on = on;
		for (plan.fail_at = 1;; plan.fail_at++) {
			bool fails = run_fails(x, s, &plan);
			add_batch(x, s);
			if (fails)
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

/* All schedules with at most x->bound preemptions: first those without any, then those with one, and so on, so that what needs few is
 * found first. Each bound is searched from its beginning; schedules with fewer have been counted before, and are few. */
static struct subject *search_all(struct exploration *x)
{
	static struct hd__sim_plan plan;
	struct subject *s = &x->subjects[0];
	struct checkpoint at = { .search = search_of(x) };

	copy_plan(&plan, &x->plan);
	plan.policy = HD__SIM_LIST;
	plan.unusual = 0;
	if (x->checkpoint != NULL && load_checkpoint(x->checkpoint, &at, &plan))
		x->progress.done = at.done;
	uint64_t begun = at.done, saved = at.done;
	for (; at.bound <= x->bound; at.bound++, plan.unusual = 0, at.out.beyond = false) {
		do {
			bool enough = progress_is_late(&x->progress) || x->progress.done >= begun + x->schedules;
			if (x->checkpoint != NULL && (enough || x->progress.done >= saved + 1000)) {
				saved = at.done = x->progress.done;
				save_checkpoint(x->checkpoint, &at, &plan);
			}
			if (enough) {
				x->exhaustive = false; /* not all */
				return NULL;
			}
			bool fails = run_fails(x, s, &plan);
			if (fails || preemptions_of(s) == at.bound)
				add_batch(x, s);
			if (fails)
				return s;
		} while (next_schedule(s, &plan, at.bound, &at.out));
		x->out = at.out;
		if (!at.out.beyond)
			return NULL; /* there are none with more */
	}
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
	copy_plan(&s->page->plan, &x->plan);
	s->page->plan.seed += *given;
	*given += count;
	subject_go(s, count, time_left(x));
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
	if (word[0] != 0 &&
	    word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:+,=@%")] == 0) {
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

static void print_program(const struct exploration *x)
{
	for (char **arg = x->typed; *arg != NULL; arg++)
		print_word(*arg);
	printf("\n");
}

static void print_replay(const struct exploration *x, const char *option, const struct hd__sim_plan *plan)
{
	static char text[WORD_MAX];

	if (!hd__sim_format(plan, text, sizeof text))
		return;
	printf("  heddle replay%s", option);
	print_word(text);
	print_program(x);
}

/* Runs what failed once more, and has it recorded. Of a livelock a few rounds will do: the plan has no more to say once its last choice is
 * made. */
static void run_for_story(struct subject *s, const struct hd__sim_plan *plan)
{
	static struct hd__sim_plan brief;

	copy_plan(&brief, plan);
	if (brief.policy == HD__SIM_LIST && s->page->result.verdict == HD__SIM_LIVELOCK)
		brief.steps = 60 + (brief.unusual > 0 ? 2 * brief.list[brief.unusual - 1].at : 0);
	s->page->tell = true;
	if (subject_run(s, &brief) != HD__SIM_LIVELOCK && brief.steps != plan->steps)
		subject_run(s, plan);
}

/* Shrinks what failed, tells its story, and says how to repeat it. */
static void report(struct exploration *x, struct subject *s)
{
	static struct hd__sim_plan found, shortest;
	uint32_t decisions = s->page->result.decisions, steps = s->page->result.steps;
	struct shrinking how;

	copy_plan(&found, &s->page->plan);
	copy_plan(&shortest, &found);
	progress_hide(&x->progress);
	refuse_threads(s);
	printf("found after %" PRIu64 " schedule%s: ", x->progress.done, x->progress.done == 1 ? "" : "s");
	print_verdict(s->page);
	if (s->page->result.verdict == HD__SIM_HANG) {
		printf("\nTo repeat it:\n");
		print_replay(x, "", &found);
		return;
	}
	bool shrunk = shrink(s, &shortest, &how);
	run_for_story(s, &shortest);
	printf("it has %" PRIu32 " steps and %" PRIu32 " decisions", steps, decisions);
	if (shrunk)
		printf("; %u unusual one%s of them suffice%s (%u run%s%s)", shortest.unusual, shortest.unusual == 1 ? "" : "s",
		       shortest.unusual == 1 ? "s" : "", how.runs, how.runs == 1 ? "" : "s",
		       how.stopped ? ", then the time was up: fewer may do" : "");
	else
		printf("; it was not shortened: %s", how.why);
	printf(".\n\nIts story, a star where the choice was not the usual one:\n");
	tell_story(s->page, s->pid);
	printf("\nWhat it printed:\n");
	subject_print_output(s, "  ");
	printf("\nTo repeat it:\n");
	print_replay(x, "", &shortest);
	if (shrunk && found.policy != HD__SIM_LIST)
		print_replay(x, "", &found);
}

/* The same once more, with another option. */
static void print_explore(const struct exploration *x, const char *option, const char *value)
{
	printf("  heddle explore");
	for (char **word = x->options; word < x->typed; word++)
		print_word(*word);
	printf(" %s %s", option, value);
	print_program(x);
}

/* What could be tried next. */
static void suggest(const struct exploration *x)
{
	uint32_t steps = x->plan.steps != 0 ? x->plan.steps : HD__SIM_STEPS;
	char more[32];

	if (x->not_over > 0) {
		printf("\n%" PRIu64 " of these %s not over after %" PRIu32 " steps, and not seen to go in a circle.\n",
		       x->not_over, x->not_over == 1 ? "was" : "were", steps);
		printf("To let them run for longer, or to see what one of them does:\n");
		snprintf(more, sizeof more, "%" PRIu64, UINT64_C(10) * steps);
		print_explore(x, "--steps", more);
		print_replay(x, " --trace", &x->slow);
	}
	if (x->could_be_late && x->plan.faults == 0) {
		printf("\nThere were deadlines, and none passed while a process could run. On a slow machine some do:\n");
		print_explore(x, "--fail", "time");
	}
}

static void conclude(struct exploration *x)
{
	double elapsed = progress_elapsed(&x->progress);

	progress_hide(&x->progress);
	printf("nothing found in %" PRIu64 " schedule%s (%" PRIu64 " distinct) in %.1f s", x->progress.done,
	       x->progress.done == 1 ? "" : "s", x->progress.distinct, elapsed);
	if (x->exhaustive && !x->out.too_long)
		printf("; these are all with at most %u preemption%s", x->bound, x->bound == 1 ? "" : "s");
	else if (x->exhaustive)
		printf("; these are not all: the runs are too long to vary everything in them");
	printf("\n");
	suggest(x);
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
		{ "schedules", required_argument, NULL, 'n' },
		{ "policy", required_argument, NULL, 'p' },
		{ "fail", required_argument, NULL, 'f' },
		{ "time", required_argument, NULL, 't' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "workers", required_argument, NULL, 'w' },
		{ "seed", required_argument, NULL, 's' },
		{ "steps", required_argument, NULL, 'k' },
		{ "checkpoint", required_argument, NULL, 'c' },
		{ "no-leaks", no_argument, NULL, 'l' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
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
				die("--fail %s: not some of malloc, alloc, map, guard, time, eintr, with commas between",
				    optarg);
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
	x->options = argv + 1;
	x->typed = argv + optind;
	x->argv = compile_first(x->typed);
}

int explore_main(int argc, char **argv)
{
	static struct exploration x;
	struct subject *first = &x.subjects[0], *culprit = NULL;

	parse(&x, argc, argv);
	for (unsigned i = 0; i < x.jobs; i++) {
		subject_start(&x.subjects[i], x.argv, x.plan.faults);
		if (x.seconds > 0 && x.seconds * 1000 < PATIENCE_MS)
			x.subjects[i].page->patience = (uint32_t)(x.seconds * 1000) + 1;
	}
	progress_start(&x.progress, x.quiet, x.schedules < UINT64_MAX / 2 ? x.schedules : 0, x.seconds);
	if (first_fails(&x, first) && first->page->result.verdict == HD__SIM_HANG) {
		add_batch(&x, first);
		culprit = first;
	}
	refuse_threads(first);
	if (culprit == NULL && !is_honest(&x, first))
		die("the same plan twice gave two different runs: the program asks for the time, for randomness or for "
		    "addresses, "
		    "and what it finds could not be repeated");
	if (first->page->result.verdict == HD__SIM_NOT_OVER && !x.quiet)
		fprintf(stderr,
			"heddle: the first run is not over after %" PRIu32
			" steps; with --steps N runs are cut shorter, and more "
			"of them are tried\n",
			first->page->result.steps);
	x.plan.length = first->page->result.steps;
	if (culprit == NULL && fail_each(&x, first))
		culprit = first;
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
