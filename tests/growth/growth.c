/* growth/growth.c - what a wait costs does not depend on how many wait: steps are counted, not time.
 *
 * Runs the crowds of bench/heddle/crowds.c on a library whose compiler has put a call into every basic block
 * (-fsanitize-coverage=trace-pc). A step is such a block: on one worker, the number of steps hardly differs from run to run. */
#include <stdio.h>
#include <string.h>

#include "../../bench/heddle/crowds.h"

#define FEW 300
#define MANY 3000

/* Of the kernel thread: the watcher counts its own. */
static _Thread_local long steps, locked_at, longest;

void __sanitizer_cov_trace_pc(void);
void growth_locked(void);
void growth_unlocked(void);

void __sanitizer_cov_trace_pc(void)
{
	steps++;
}

void growth_locked(void)
{
	locked_at = steps;
}

void growth_unlocked(void)
{
	if (steps - locked_at > longest)
		longest = steps - locked_at;
}

static long each, held;

static void begin(void)
{
	steps = longest = 0;
	growth_locked();
}

static void end(void)
{
	each = steps;
	held = longest;
}

/* Whether each of MANY takes no more steps than each of FEW, but for a half of that and 20: heaps grow, and memory is used for the
 * first time. Nor is a lock held for longer. */
static bool is_flat(const struct crowd *crowd)
{
	crowd_run(crowd, FEW, begin, end);
	long few = each / FEW, held_by_few = held;
	crowd_run(crowd, MANY, begin, end);
	long many = each / MANY, held_by_many = held;
	bool flat = many <= few + few / 2 + 20, brief = held_by_many <= held_by_few + held_by_few / 2 + 20;

	printf("%-30s %7ld %7ld %9ld %7ld%s%s\n", crowd->name, few, many, held_by_few, held_by_many, flat ? "" : "  grows",
	       brief ? "" : "  holds a lock over a walk");
	return flat && brief;
}

/* All crowds, or those whose names are arguments. */
int main(int argc, char **argv)
{
	bool well = true;

	printf("%-30s %15s %17s\n%30s %7d %7d %9d %7d\n", "", "steps of each", "longest hold", "of", FEW, MANY, FEW, MANY);
	for (const struct crowd *c = crowds; c->name != NULL; c++) {
		bool wanted = argc == 1;
		for (int i = 1; i < argc; i++)
			wanted |= strcmp(argv[i], c->name) == 0;
		if (wanted)
			well &= is_flat(c);
	}
	return well ? 0 : 1;
}
