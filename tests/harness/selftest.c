/* harness/selftest.c - the harness's own tests: the runner is run on specimens that fail in every way there is. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "harness/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

HD_SPECIMEN(specimen_passes)
{
}

HD_SPECIMEN(specimen_fails_check)
{
	CHECK(1 + 1 == 3);
}

HD_SPECIMEN(specimen_fails_check_eq)
{
	int apples = 3;
	CHECK_EQ(apples, 4);
}

HD_SPECIMEN(specimen_fails_check_str)
{
	trace("one ");
	trace("%s", "three");
	CHECK_STR(trace_text(), "one two");
}

HD_SPECIMEN(specimen_skips)
{
	SKIP("no such machine");
}

HD_SPECIMEN(specimen_hangs)
{
	for (;;)
		pause();
}

/* The child of specimen_leaves_a_child keeps the output's pipe open after the test itself has ended, and this one. */
static int leash[2];

HD_SPECIMEN(specimen_leaves_a_child)
{
	if (fork() == 0)
		for (;;)
			pause();
}

HD_SPECIMEN(specimen_crashes)
{
	signal(SIGSEGV, SIG_DFL); /* not the sanitizer's */
	raise(SIGSEGV);
}

HD_SPECIMEN_DIES(specimen_survives, "the last words")
{
	fprintf(stderr, "the last words\n");
}

HD_SPECIMEN_DIES(specimen_dies_with_other_words, "the last words")
{
	abort();
}

/* Runs `--only name`; what it printed ends up in the trace. Answers the exit status. */
static int run_specimen(const char *name)
{
	static char program[] = "program", only[] = "--only", text[8192];
	char *argv[] = { program, only, (char *)name, NULL };
	int saved = dup(STDOUT_FILENO), file = memfd_create("output", 0);

	CHECK(saved >= 0 && file >= 0);
	fflush(stdout);
	dup2(file, STDOUT_FILENO);
	int status = harness_run(3, argv);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	ssize_t n = pread(file, text, sizeof text - 1, 0);
	CHECK(n >= 0);
	text[n] = '\0';
	trace_clear();
	trace("%s", text);
	return status;
}

static bool printed(const char *words)
{
	if (strstr(trace_text(), words) != NULL)
		return true;
	fprintf(stderr, "not printed: %s\nprinted:\n%s", words, trace_text());
	return false;
}

HD_TEST(harness_passing_test_passes)
{
	CHECK_EQ(run_specimen("specimen_passes"), 0);
	CHECK(printed("ok   specimen_passes  "));
	CHECK(printed("\n1 passed, 0 failed\n"));
}

HD_TEST(harness_failing_check_fails_and_says_how_to_run_it_alone)
{
	CHECK_EQ(run_specimen("specimen_fails_check"), 1);
	CHECK(printed("FAIL specimen_fails_check  "));
	CHECK(printed("tests/harness/selftest.c:"));
	CHECK(printed(": CHECK(1 + 1 == 3) does not hold\n"));
	CHECK(printed("run it alone: program --only specimen_fails_check\n"));
	CHECK(printed("\n0 passed, 1 failed\n"));
}

HD_TEST(harness_check_eq_shows_both_values)
{
	CHECK_EQ(run_specimen("specimen_fails_check_eq"), 1);
	CHECK(printed("CHECK_EQ(apples, 4)\n       got: 3\n  expected: 4\n"));
}

HD_TEST(harness_check_str_points_at_the_difference)
{
	CHECK_EQ(run_specimen("specimen_fails_check_str"), 1);
	CHECK(printed("they differ from byte 5 on:\n       got: one three\n  expected: one two\n                 ^\n"));
}

HD_TEST(harness_skipped_test_is_neither)
{
	CHECK_EQ(run_specimen("specimen_skips"), 0);
	CHECK_STR(trace_text(), "skip specimen_skips: no such machine\n0 passed, 0 failed, 1 skipped\n");
}

HD_TEST(harness_hanging_test_is_killed)
{
	setenv("HD_TEST_TIMEOUT", "0.2", 1);
	CHECK_EQ(run_specimen("specimen_hangs"), 1);
	CHECK(printed("did not end within 0.2 s\n"));
}

HD_TEST(harness_orphans_neither_hold_up_the_runner_nor_survive)
{
	char nothing;

	CHECK_EQ(pipe(leash), 0);
	CHECK_EQ(run_specimen("specimen_leaves_a_child"), 0);
	close(leash[1]);
	CHECK_EQ(read(leash[0], &nothing, 1), 0); /* the end: no OS process has its other end any more */
}

HD_TEST(harness_crash_is_a_failure)
{
	CHECK_EQ(run_specimen("specimen_crashes"), 1);
	CHECK(printed("killed by signal 11 (Segmentation fault)\n"));
}

HD_TEST(harness_unknown_name_is_an_error)
{
	CHECK_EQ(run_specimen("specimen_that_nobody_wrote"), 2);
}

HD_TEST_DIES(harness_expected_death_passes, "the last words")
{
	fprintf(stderr, "these are the last words\n");
	abort();
}

HD_TEST(harness_survival_is_a_failure_where_death_is_expected)
{
	CHECK_EQ(run_specimen("specimen_survives"), 1);
	CHECK(printed("it did not abort\n"));
}

HD_TEST(harness_death_without_the_words_is_a_failure)
{
	CHECK_EQ(run_specimen("specimen_dies_with_other_words"), 1);
	CHECK(printed("it aborted and did not say so\n"));
}
