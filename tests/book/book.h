/* book/book.h - the examples of "Concurrent Programming in Pharo" as tests.
 *
 * Each example is a script, run as the first process: as the book's snippets are, in a process of priority 40 that Pharo
 * calls the UI process. Names follow the sections. What is compared is the book's printed output, to the letter, except that
 * every traced message here ends its line, where the book's crTrace begins one, and that quotes are left out. */
#ifndef BOOK_H
#define BOOK_H

#include <heddle.h>

#include "harness/harness.h"

/* Runs a script and all that it forked, on one worker, in a runtime of its own. The trace starts empty. */
static inline void play_with(enum hd_preempted preempted, hd_entry script)
{
	const struct hd_config config = { .workers = 1, .preempted = preempted, .fixed = true };

	trace_clear();
	CHECK_EQ(hd_run(&config, script, NULL), 0);
}

static inline void play(hd_entry script)
{
	play_with(HD_PREEMPTED_TAIL, script);
}

/* The block that the book calls `trace`: says at which priority it runs. */
static inline void at_priority(const char *message)
{
	trace("@%d %s\n", hd_priority(hd_self()), message);
}

/* fork and forkAt: of something that cannot fail here. */
static inline hd_pid fork_at(int priority, hd_entry entry, const void *arg)
{
	hd_pid pid = hd_spawn_at(priority, entry, (void *)arg);
	CHECK(pid > 0);
	return pid;
}

static inline hd_pid fork_equal(hd_entry entry, const void *arg)
{
	return fork_at(hd_priority(hd_self()), entry, arg);
}

#endif
