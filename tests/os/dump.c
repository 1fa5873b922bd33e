/* os/dump.c - what a core file has of the memory that heddle reserves: what is used, and little more. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "harness/process.h"
#include "os/fault.h"
#include "sched/worker.h"

enum { MANY = 1000, FEW = 300 };

static struct hd_semaphore hold;
static char *tops[MANY];
static int begun;

static void *wait_for_hold(void *arg)
{
	char here;

	*(char **)arg = &here;
	begun++;
	CHECK_EQ(hd_semaphore_wait(&hold, HD_FOREVER), 0);
	return NULL;
}

/* What the kernel says of each mapping: whether a core file has it. */
static struct mapping {
	uintptr_t from, to;
	bool dumped;
} mappings[8192];
static size_t count;

static void read_mappings(void)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	struct mapping m = { 0, 0, false };
	char line[512];

	CHECK(f != NULL);
	for (count = 0; count < sizeof mappings / sizeof mappings[0] && fgets(line, sizeof line, f) != NULL;)
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &m.from, &m.to) != 2 && strncmp(line, "VmFlags:", 8) == 0) {
			m.dumped = strstr(line, " dd") == NULL;
			mappings[count++] = m;
		}
	fclose(f);
	if (count == 0)
		SKIP("the kernel does not tell what a core file has");
}

/* Whether a core file has this address. */
static bool is_dumped(const void *address)
{
	uintptr_t wanted = (uintptr_t)address;

	for (size_t i = 0; i < count; i++)
		if (wanted >= mappings[i].from && wanted < mappings[i].to)
			return mappings[i].dumped;
	CHECK(!"the address is mapped");
	return false;
}

/* The used part of the table and of the stacks is in a core file; the rest of them, terabytes, is not. */
static void *look(void *arg)
{
	struct hd__sched *sched = hd__self()->sched;
	int n = *(int *)arg;
	hd_pid pids[MANY];

	for (int i = 0; i < n; i++)
		CHECK((pids[i] = hd_spawn(wait_for_hold, &tops[i])) > 0);
	while (begun < n)
		hd_yield();
	read_mappings();
	for (int i = 0; i < n; i += 37) {
		CHECK_EQ(is_dumped(tops[i]), 1);
		CHECK_EQ(is_dumped(hd__table_find(&sched->table, pids[i])), 1);
	}
	CHECK_EQ(is_dumped(tops[n - 1]), 1);
	CHECK_EQ(is_dumped(hd__table_find(&sched->table, pids[n - 1])), 1);
	CHECK_EQ(is_dumped(sched), 1);

	struct hd__stacks *stacks = &sched->stacks[sched->stack_class];
	CHECK_EQ(is_dumped(stacks->base + stacks->reserved - 1), 0);
	CHECK_EQ(is_dumped(&sched->table.blocks[sched->table.capacity - 1]), 0);
	CHECK_EQ(is_dumped(&sched->workers[0].timers.heap[sched->workers[0].timers.capacity - 1]), 0);
	CHECK_EQ(is_dumped(&sched->workers[0].timers.heap[1]), 1);
	/* not much more than is used, either */
	CHECK(stacks->dumped <= stacks->made + stacks->made / 4 + 16);
	for (int i = 0; i < n; i++)
		CHECK_EQ(hd_semaphore_signal(&hold), 0);
	for (int i = 0; i < n; i++)
		CHECK_EQ(hd_join(pids[i], NULL, HD_FOREVER), 0);
	return NULL;
}

HD_TEST(dump_has_what_is_used)
{
	int n = MANY;

	if (hd_is_emulated())
		SKIP("the emulator does not hear what a core file should have");
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, look, &n), 0);
	begun = 0; /* a second runtime begins with another table, and other stacks */
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, look, &n), 0);
}

HD_TEST(dump_has_what_is_used_with_guards_by_mprotect)
{
	int n = FEW;

	if (hd_is_emulated())
		SKIP("the emulator does not hear what a core file should have");
	hd__fault_arm(HD__FAULT_INSTALL, 1, true);
	CHECK_EQ(hd_run(&(struct hd_config){ .fixed = true, .workers = 1 }, look, &n), 0);
	hd__fault_arm(HD__FAULT_INSTALL, 0, false);
}
