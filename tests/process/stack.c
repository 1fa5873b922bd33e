/* process/stack.c - stacks: the hottest first, memory given back, promises kept or not made. */
#define _GNU_SOURCE
#include "process/stack.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/harness.h"
#include "os/fault.h"

enum { CLASS = 16 };

static struct hd__stacks stacks;
static struct hd__stack_cache own;

/* A promised stack, of which the highest page was used. */
static char *take(void)
{
	CHECK_EQ(hd__stacks_promise(&stacks), 0);
	char *stack = hd__stacks_take(&stacks, &own);
	CHECK(stack != NULL);
	stack[hd__stack_size(CLASS) - 1] = 'x';
	return stack;
}

static void drop(char *stack)
{
	hd__stacks_drop(&stacks, &own, stack);
	hd__stacks_unpromise(&stacks);
}

static bool has_memory(const char *stack)
{
	size_t page = HD__PAGE_SIZE;
	unsigned char resident;

	CHECK_EQ(mincore((void *)(stack + hd__stack_size(CLASS) - page), page, &resident), 0);
	return resident & 1;
}

HD_TEST(stack_class_is_the_smallest_that_fits)
{
	CHECK_EQ(hd__stack_class(1), HD__STACK_MIN_CLASS);
	CHECK_EQ(hd__stack_class(16 << 10), 14);
	CHECK_EQ(hd__stack_class((16 << 10) + 1), 15);
	CHECK_EQ(hd__stack_class(64 << 10), 16);
	CHECK_EQ(hd__stack_class((size_t)1 << 30), HD__STACK_MAX_CLASS);
	CHECK_EQ(hd__stack_class(((size_t)1 << 30) + 1), 0);
	CHECK_EQ(hd__stack_class(SIZE_MAX), 0);
}

HD_TEST(stack_last_dropped_is_first_taken)
{
	hd__stacks_init(&stacks, CLASS, 1);
	char *a = take(), *b = take(), *c = take();

	CHECK(a != b && b != c && a != c);
	drop(b);
	drop(a);
	CHECK(take() == a);
	drop(c);
	CHECK(take() == c);
	CHECK(take() == b);
	CHECK_EQ(stacks.made, 3);
	hd__stacks_fini(&stacks);
}

HD_TEST(stacks_do_not_overlap)
{
	enum { N = 600 }; /* more than one batch of guards */
	static char *stack[N];

	hd__stacks_init(&stacks, CLASS, 1);
	for (int i = 0; i < N; i++) {
		stack[i] = take();
		stack[i][0] = stack[i][hd__stack_size(CLASS) - 1] = (char)i;
	}
	for (int i = 0; i < N; i++) {
		CHECK_EQ(stack[i][0], (char)i);
		CHECK_EQ(stack[i][hd__stack_size(CLASS) - 1], (char)i);
	}
	hd__stacks_fini(&stacks);
}

HD_TEST(stack_cooling_gives_memory_back_and_keeps_the_hottest)
{
	enum { N = 1000, KEEP = 10 };
	static char *stack[N];
	int rounds = 1;

	hd__stacks_init(&stacks, CLASS, 1);
	for (int i = 0; i < N; i++)
		stack[i] = take();
	for (int i = 0; i < N; i++)
		drop(stack[i]);
	CHECK(has_memory(stack[0]));
	while (hd__stacks_cool(&stacks, KEEP))
		rounds++;
	int warm = KEEP + (int)own.count; /* the worker's own stay warm too */
	CHECK(own.count <= HD__STACK_CACHE);
	CHECK_EQ(rounds, (N - warm + 511) / 512);
	for (int i = 0; i < N; i++)
		CHECK_EQ(has_memory(stack[i]), i >= N - warm);
	CHECK_EQ(stacks.nfree - stacks.cold, KEEP);

	/* the warm ones come first, then cold ones, which are as good as new */
	for (int i = N - 1; i >= 0; i--) {
		CHECK_EQ(hd__stacks_promise(&stacks), 0);
		CHECK(hd__stacks_take(&stacks, &own) == stack[i]);
		CHECK_EQ(stack[i][hd__stack_size(CLASS) - 1], i >= N - warm ? 'x' : 0);
	}
	CHECK_EQ(stacks.made, N);
	CHECK_EQ(stacks.cold, 0);
	hd__stacks_fini(&stacks);
}

/* A stack that is taken out of the cold and comes back is warm. */
HD_TEST(stack_that_was_cold_is_cooled_again)
{
	enum { N = 2 * HD__STACK_CACHE };
	static char *stack[N];

	hd__stacks_init(&stacks, CLASS, 1);
	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < N; k++)
			stack[k] = take();
		for (int k = 0; k < N; k++)
			drop(stack[k]);
		CHECK(has_memory(stack[0]));
		CHECK(!hd__stacks_cool(&stacks, 0));
		CHECK(!has_memory(stack[0]));
		CHECK(has_memory(stack[N - 1]));
	}
	CHECK_EQ(stacks.made, N);
	hd__stacks_fini(&stacks);
}

/* Of the largest stacks there are fewer than processes: the promises that cannot be kept are not made. */
HD_TEST(stack_promises_are_as_many_as_can_be_kept)
{
	if (HD_UNDER_ASAN || HD_UNDER_TSAN)
		SKIP("the sanitizers have too much to remember about stacks of 1 GiB");
	hd__stacks_init(&stacks, HD__STACK_MAX_CLASS, 1);
	uint32_t promises = 0;
	while (hd__stacks_promise(&stacks) == 0)
		promises++;
	CHECK_EQ(promises, stacks.capacity);
	CHECK_EQ(hd__stacks_promise(&stacks), -ENOMEM);
	CHECK_EQ(hd__stacks_promise(&stacks), -ENOMEM);
	char *first = hd__stacks_take(&stacks, &own);
	for (uint32_t i = 1; i < promises; i++)
		CHECK(hd__stacks_take(&stacks, &own) != NULL);
	hd__stacks_drop(&stacks, &own, first);
	hd__stacks_unpromise(&stacks);
	CHECK_EQ(hd__stacks_promise(&stacks), 0); /* one was given back, so one can be had, by whomever */
	CHECK(hd__stacks_take(&stacks, &own) == first);
	CHECK_EQ(hd__stacks_promise(&stacks), -ENOMEM);
	hd__stacks_fini(&stacks);
}

HD_TEST(stack_promise_without_any_address_space_fails_and_works_later)
{
	hd__stacks_init(&stacks, CLASS, 1);
	hd__fault_arm(HD__FAULT_MAP, 1, true);
	CHECK_EQ(hd__stacks_promise(&stacks), -ENOMEM);
	hd__fault_arm(HD__FAULT_MAP, 0, false);
	CHECK(take() != NULL);
	hd__stacks_fini(&stacks);
}

/* Guards that each cost a mapping are made when the promise is: the kernel's limit is met at spawn, where it can be told. */
HD_TEST(stack_promise_has_its_guard_where_guards_are_dear)
{
	hd__stacks_init(&stacks, CLASS, 1);
	hd__fault_arm(HD__FAULT_INSTALL, 1, true);
	for (int i = 0; i < 100; i++) {
		take();
		CHECK(stacks.guarded >= stacks.promised);
	}
	CHECK_EQ(stacks.how, HD__GUARD_PROTECT);
	while (stacks.promised < stacks.guarded)
		CHECK_EQ(hd__stacks_promise(&stacks), 0);
	hd__fault_arm(HD__FAULT_GUARD, 1, true);
	CHECK_EQ(hd__stacks_promise(&stacks), -ENOMEM);
	hd__fault_arm(HD__FAULT_GUARD, 0, false);
	CHECK_EQ(hd__stacks_promise(&stacks), 0);
	hd__stacks_fini(&stacks);
}

static void die_of_the_guard(int sig)
{
	(void)sig;
	static const char text[] = "the guard was touched\n";
	if (write(STDERR_FILENO, text, sizeof text - 1) > 0)
		abort();
}

/* One byte below its lowest address is the guard, however it was made. */
static void touch_guard(void)
{
	hd__stacks_init(&stacks, CLASS, 1);
	take();
	char *stack = take();
	stack[0] = 'x';
	signal(SIGSEGV, die_of_the_guard);
	stack[-1] = 'x';
}

HD_TEST_DIES(stack_has_a_guard, "the guard was touched")
{
	touch_guard();
}

HD_TEST_DIES(stack_has_a_guard_made_by_mprotect, "the guard was touched")
{
	hd__fault_arm(HD__FAULT_INSTALL, 1, true);
	touch_guard();
}

HD_TEST_DIES(stack_freed_twice_is_noticed, "a stack was freed twice")
{
	hd__stacks_init(&stacks, CLASS, 1);
	char *stack = take();
	hd__stacks_drop(&stacks, &own, stack);
	hd__stacks_drop(&stacks, &own, stack);
}
