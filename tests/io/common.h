/* What the tests of the io room share. */
#ifndef TESTS_IO_COMMON_H
#define TESTS_IO_COMMON_H

#include <errno.h>
#include <heddle.h>

#include "harness/harness.h"

static const unsigned worker_counts[] = { 1, 2, 8 };
#define WORKERS(w) for (unsigned i_ = 0, w; i_ < 3 && (w = worker_counts[i_], true); i_++)

static inline void run_on(unsigned workers, hd_entry first, void *arg)
{
	struct hd_config config = { .workers = workers, .fixed = true };
	CHECK_EQ(hd_run(&config, first, arg), 0);
}

static inline hd_pid spawned(hd_entry entry, void *arg)
{
	hd_pid pid = hd_spawn(entry, arg);
	CHECK(pid > 0);
	return pid;
}

static inline void *joined(hd_pid pid)
{
	void *result = NULL;
	CHECK_EQ(hd_join(pid, &result, HD_FOREVER), 0);
	return result;
}

/* Waits until the process waits for this; answers what is known of it then. */
static inline struct hd_process_info when_it_waits(hd_pid pid, enum hd_wait why)
{
	struct hd_process_info info;

	do {
		hd_yield();
		CHECK_EQ(hd_process_info(pid, &info), 0);
	} while (info.state != HD_WAITING || info.why != why);
	return info;
}

static inline unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 16;
}

#endif
