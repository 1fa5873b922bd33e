/* model/random.c - random programs run as the rules say.
 *
 * HD_MODEL_SEED=number plays that script alone. A script that goes wrong is made smaller, as long as it still goes wrong. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/harness.h"
#include "model/model.h"
#include "model/play.h"

enum { SCRIPTS = 10000, STRESS_SCRIPTS = 1000000 };
enum { LIMIT = 4000, SMALL_LIMIT = 500 }; /* milliseconds for a script; sanitizers and busy machines included */
#define SHRINK_SECONDS 3

static const char *const setting[] = { [HD_PREEMPTED_TAIL] = "tail", [HD_PREEMPTED_HEAD] = "head" };

struct seeds {
	uint64_t next;
	long left;
};

static bool from_seeds(struct script *s, void *context)
{
	struct seeds *seeds = context;

	if (seeds->left-- == 0)
		return false;
	script_generate(s, seeds->next++);
	return true;
}

static bool just_one(struct script *s, void *context)
{
	const struct script **one = context;

	if (*one == NULL)
		return false;
	*s = **one;
	*one = NULL;
	return true;
}

static enum played play_alone(struct stage *stage, enum hd_preempted preempted, const struct script *s)
{
	return play(stage, preempted, just_one, &s, SMALL_LIMIT, true);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Makes *s the simpler script, if that goes wrong too. */
static bool try_instead(struct stage *stage, enum hd_preempted preempted, struct script *s, const struct script *simpler)
{
	if (play_alone(stage, preempted, simpler) == PLAYED_SAME)
		return false;
	*s = *simpler;
	return true;
}

/* Tries to leave out, or to make plainer, each thing in turn, from the end. Returns whether anything was. */
static bool shrink_once(struct stage *stage, enum hd_preempted preempted, struct script *s, double until)
{
	bool shrunk = false;

	for (unsigned p = s->processes; p-- > 0;) {
		struct script t = *s;
		t.process[p].count = 0;
		if (s->process[p].count > 1 && try_instead(stage, preempted, s, &t))
			shrunk = true;
		for (unsigned i = s->process[p].count; i-- > 0 && seconds() < until;) {
			t = *s;
			struct op *op = &t.process[p].ops[i];
			memmove(op, op + 1, (--t.process[p].count - i) * sizeof *op);
			if (try_instead(stage, preempted, s, &t)) {
				shrunk = true;
				continue;
			}
			t = *s;
			op->flag = false;
			if (s->process[p].ops[i].flag && try_instead(stage, preempted, s, &t))
				shrunk = true;
			t = *s;
			op->priority = 0;
			if (op->kind == OP_SPAWN && s->process[p].ops[i].priority != 0 && try_instead(stage, preempted, s, &t))
				shrunk = true;
		}
	}
	for (unsigned i = 0; i < s->semaphores && seconds() < until; i++) {
		struct script t = *s;
		t.signals[i] = 0;
		if (s->signals[i] != 0 && try_instead(stage, preempted, s, &t))
			shrunk = true;
	}
	return shrunk && seconds() < until;
}

static void print_step(const struct log *log, long i)
{
	char text[128] = "-";
	FILE *f = fmemopen(text, sizeof text, "w");

	if (i < (long)log->count)
		script_print_event(f, &log->events[i]);
	fclose(f);
	fprintf(stderr, " %-38s", text);
}

/* How it went wrong, and both logs around that. */
static void print_outcome(const struct stage *stage, enum played played)
{
	long at = stage->difference >= 0 ? stage->difference : (long)stage->real.count;

	if (played == PLAYED_DIED)
		fprintf(stderr, "  the runtime died after step %u\n", stage->real.count);
	else if (played == PLAYED_FOREVER)
		fprintf(stderr, "  the runtime went on for ever after step %u\n", stage->real.count);
	else if (stage->code != 0)
		fprintf(stderr, "  hd_run returned %d after step %u\n", stage->code, stage->real.count);
	fprintf(stderr, "   step  %-38s %-38s\n", "the rules", "the runtime");
	for (long i = at > 10 ? at - 10 : 0; i < at + 6 && (i < (long)stage->expected.count || i < (long)stage->real.count);
	     i++) {
		fprintf(stderr, "%s %5ld ", i == at ? ">" : " ", i);
		print_step(&stage->expected, i);
		print_step(&stage->real, i);
		fprintf(stderr, "\n");
	}
}

static void report(struct stage *stage, enum hd_preempted preempted, enum played played, const char *test)
{
	static struct script small;

	small = stage->script;
	fprintf(stderr, "script %" PRIu64 ", preempted = %s, does not run as the rules say:\n", small.seed, setting[preempted]);
	script_print(stderr, &small);
	print_outcome(stage, played);
	fprintf(stderr, "replay: HD_MODEL_SEED=%" PRIu64 " heddle-tests --only %s\n", small.seed, test);

	if (play_alone(stage, preempted, &small) == PLAYED_SAME) {
		fprintf(stderr, "alone, it runs as it should: what ran before it matters\n");
		return;
	}
	double until = seconds() + SHRINK_SECONDS;
	while (shrink_once(stage, preempted, &small, until))
		;
	played = play_alone(stage, preempted, &small);
	fprintf(stderr, "smaller:\n");
	script_print(stderr, &small);
	print_outcome(stage, played);
}

static void play_seeds(uint64_t first, long count, enum hd_preempted preempted, const char *test)
{
	const char *wish = getenv("HD_MODEL_SEED");
	struct stage *stage = stage_new();
	struct seeds seeds = { .next = first, .left = count };

	if (wish != NULL)
		seeds = (struct seeds){ .next = strtoull(wish, NULL, 0), .left = 1 };
	enum played played = play(stage, preempted, from_seeds, &seeds, LIMIT, false);
	if (played != PLAYED_SAME) {
		report(stage, preempted, played, test);
		CHECK(played == PLAYED_SAME);
	}
	stage_drop(stage);
}

HD_TEST(random_programs_run_as_the_rules_say_preempted_to_tail)
{
	play_seeds(1, hd_scaled(SCRIPTS), HD_PREEMPTED_TAIL, __func__);
}

HD_TEST(random_programs_run_as_the_rules_say_preempted_to_head)
{
	play_seeds(1, hd_scaled(SCRIPTS), HD_PREEMPTED_HEAD, __func__);
}

/* The scripts are worth playing: the model meets every corner of the rules, many times. */
HD_TEST(random_programs_meet_every_corner_of_the_rules)
{
	unsigned long corners[CORNERS] = { 0 };
	static struct script s;
	static struct log log;

	for (uint64_t seed = 1; seed <= SCRIPTS; seed++) {
		script_generate(&s, seed);
		model_run(&s, HD_PREEMPTED_TAIL, &log, corners);
	}
	for (unsigned i = 0; i < CORNERS; i++) {
		if (corners[i] < 50)
			fprintf(stderr, "corner %u: met %lu times\n", i, corners[i]);
		CHECK(corners[i] >= 50);
	}
}

/* Seeds that nobody has tried yet. */
static void play_new_seeds(enum hd_preempted preempted, const char *test)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	uint64_t first = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	fprintf(stderr, "scripts from seed %" PRIu64 " on\n", first);
	play_seeds(first, hd_scaled(STRESS_SCRIPTS), preempted, test);
}

HD_STRESS(million_random_programs_run_as_the_rules_say_preempted_to_tail)
{
	play_new_seeds(HD_PREEMPTED_TAIL, __func__);
}

HD_STRESS(million_random_programs_run_as_the_rules_say_preempted_to_head)
{
	play_new_seeds(HD_PREEMPTED_HEAD, __func__);
}
