/* when/common.h - what the tests of behaviours share. */
#ifndef TESTS_WHEN_COMMON_H
#define TESTS_WHEN_COMMON_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "life/common.h"
#include "os/fault.h"
#include "sched/workers.h"

static inline int many(int n)
{
	return hd_is_simulated() ? n / 100 + 2 : hd_scaled(n);
}

static inline hd_cown *made_cown(void *data)
{
	hd_cown *c = hd_cown_new(data, NULL);

	CHECK(c != NULL);
	return c;
}

static inline void quiesce(void)
{
	CHECK_EQ(hd_quiesce(HD_FOREVER), 0);
}

/* No cown and no behaviour is left. */
static inline void check_none_left(void)
{
	struct hd_stats stats = stats_now();

	CHECK_EQ(stats.live_cowns, 0);
	CHECK_EQ(stats.live_behaviours, 0);
}

#endif
