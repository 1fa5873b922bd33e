/* life/local.c - variables of which every process has its own. */
#include "life/common.h"

/* Values are words; hd_local_set wants no const. */
static void set_word(struct hd_local *local, const char *text)
{
	CHECK_EQ(hd_local_set(local, (void *)text), 0);
}

static void note(void *value)
{
	trace("%s ", (const char *)value);
}

static struct hd_local word = HD_LOCAL(note), plain;

static void *own_word(void *arg)
{
	CHECK(hd_local_get(&word) == NULL);
	CHECK_EQ(hd_local_set(&word, arg), 0);
	hd_yield();
	CHECK(hd_local_get(&word) == arg);
	hd_yield();
	CHECK(hd_local_get(&word) == arg);
	return NULL;
}

HD_PROCESS_TEST(local_is_every_processes_own)
{
	hd_pid pids[] = { spawn_word(own_word, "a"), spawn_word(own_word, "b"), spawn_word(own_word, "c") };

	join_all(pids, 3);
	CHECK(hd_local_get(&word) == NULL);
	CHECK_STR(trace_text(), "a b c ");
}

static void *set_and_leave(void *arg)
{
	set_word(&word, "destroyed");
	set_word(&plain, "without destructor");
	if (arg == NULL)
		hd_exit(NULL);
	hd_fail(*(int *)arg);
	return NULL;
}

HD_PROCESS_TEST(local_is_destroyed_by_exit_and_fail)
{
	int err = EIO;

	CHECK_EQ(hd_join(born(hd_spawn(set_and_leave, NULL)), NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "destroyed ");
	CHECK_EQ(hd_join(born(hd_spawn(set_and_leave, &err)), NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "destroyed destroyed ");
}

static void *set_to_null(void *arg)
{
	set_word(&word, "forgotten");
	set_word(&word, "replaced");
	CHECK_STR(hd_local_get(&word), "replaced");
	CHECK_EQ(hd_local_set(&word, NULL), 0);
	CHECK(hd_local_get(&word) == NULL);
	return arg;
}

HD_PROCESS_TEST(local_that_is_null_is_not_destroyed)
{
	CHECK_EQ(hd_join(born(hd_spawn(set_to_null, NULL)), NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "");
}

#define MANY 100

static struct hd_local many[MANY];
static int destroyed;

static void count_one(void *value)
{
	(void)value;
	destroyed++;
}

static void *set_many(void *arg)
{
	for (int i = 0; i < MANY; i++) {
		many[i].destroy = count_one;
		CHECK_EQ(hd_local_set(&many[i], &many[i]), 0);
	}
	for (int i = 0; i < MANY; i++)
		CHECK(hd_local_get(&many[i]) == &many[i]);
	return arg;
}

HD_PROCESS_TEST(locals_may_be_many)
{
	CHECK_EQ(hd_join(born(hd_spawn(set_many, NULL)), NULL, HD_FOREVER), 0);
	CHECK_EQ(destroyed, MANY);
}

static void set_again(void *value);
static struct hd_local stubborn = HD_LOCAL(set_again);

static void set_again(void *value)
{
	destroyed++;
	CHECK(hd_local_get(&stubborn) == NULL);
	CHECK_EQ(hd_local_set(&stubborn, value), 0);
}

static void *set_stubborn(void *arg)
{
	CHECK_EQ(hd_local_set(&stubborn, &stubborn), 0);
	return arg;
}

HD_PROCESS_TEST(local_that_sets_itself_again_is_left_after_four_rounds)
{
	CHECK_EQ(hd_join(born(hd_spawn(set_stubborn, NULL)), NULL, HD_FOREVER), 0);
	CHECK_EQ(destroyed, 4);
}

static void set_other(void *value)
{
	trace("first ");
	CHECK_EQ(hd_local_set(&word, value), 0);
}

static struct hd_local first = HD_LOCAL(set_other);

static void *set_first(void *arg)
{
	set_word(&first, "second");
	return arg;
}

/* A destructor sets a local that was never set before: that one is destroyed too. */
HD_PROCESS_TEST(destructor_may_set_another_local)
{
	CHECK_EQ(hd_join(born(hd_spawn(set_first, NULL)), NULL, HD_FOREVER), 0);
	CHECK_STR(trace_text(), "first second ");
}

/* Destructors run on the ending process, which may still wait; a joiner hears of the end afterwards. */
static hd_pid destroyer;

static void destroy_slowly(void *value)
{
	destroyer = hd_self();
	hd_yield();
	CHECK_EQ(hd_sleep(HD_US(100)), 0);
	trace("%s", (const char *)value);
}

static struct hd_local slow = HD_LOCAL(destroy_slowly);

static void *set_slow(void *arg)
{
	set_word(&slow, "destroyed, ");
	return arg;
}

HD_PROCESS_TEST(destructor_may_wait_and_the_joiner_waits_for_it)
{
	hd_pid pid = born(hd_spawn(set_slow, &slow));
	void *result = NULL;

	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
	trace("joined");
	CHECK(result == &slow);
	CHECK_EQ(destroyer, pid);
	CHECK_STR(trace_text(), "destroyed, joined");
}
