/* properties/idle.c - a runtime that waits costs nothing. */
#include <sys/resource.h>

#include "harness/process.h"
#include "wait/threads.h"

static struct hd_semaphore never;

static void *wait_for_ever(void *arg)
{
	CHECK_EQ(hd_semaphore_wait(&never, HD_FOREVER), 0);
	return arg;
}

static long cpu_us(const struct rusage *u)
{
	return (u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000L + u->ru_utime.tv_usec + u->ru_stime.tv_usec;
}

/* Whatever the machine does beside us: CPU time and the switches that we asked for are our own. */
HD_PROCESS_TEST(idle_runtime_uses_no_cpu)
{
	struct rusage before, after;

	for (int i = 0; i < hd_scaled(1000); i++)
		CHECK(hd_spawn_with(&(struct hd_spawn){ .daemon = true }, wait_for_ever, NULL) > 0);
	CHECK_EQ(hd_sleep(HD_MS(500)), 0); /* settle: cooling is work, and is over by then */
	CHECK_EQ(getrusage(RUSAGE_SELF, &before), 0);
	CHECK_EQ(hd_sleep(HD_SEC(2)), 0);
	CHECK_EQ(getrusage(RUSAGE_SELF, &after), 0);
	if (HD_UNDER_TSAN)
		SKIP("TSan's own thread is never idle");
	CHECK(after.ru_nvcsw - before.ru_nvcsw <= 10);
	CHECK(cpu_us(&after) - cpu_us(&before) < 2000);
}
