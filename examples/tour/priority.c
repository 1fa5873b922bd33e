/* priority.c - on one worker, which process runs next is never a guess. */
#include "chapter.h"

static struct hd_semaphore alarm_bell;

/* tour: begin */
static void *fire_brigade(void *arg)
{
	printf("  80: asleep until the bell rings\n");
	if (hd_semaphore_wait(&alarm_bell, HD_FOREVER) == 0)
		printf("  80: out at once\n");
	return arg;
}

static void *gardener(void *arg)
{
	printf("  20: at last, when no other process has anything to do\n");
	return arg;
}

static void *citizen(void *arg)
{
	hd_pid low = hd_spawn_at(HD_PRIORITY_SYSTEM_BACKGROUND, gardener, NULL);
	hd_pid high = hd_spawn_at(HD_PRIORITY_TIMING, fire_brigade, NULL); /* runs before hd_spawn_at returns */

	printf("  40: rings the bell\n");
	hd_semaphore_signal(&alarm_bell); /* and so does this */
	printf("  40: goes on\n");
	if (hd_join(high, NULL, HD_FOREVER) != 0 || hd_join(low, NULL, HD_FOREVER) != 0)
		hd_shutdown(1);
	return arg;
}

int chapter_priority(void)
{
	return hd_run(&(struct hd_config){ .workers = 1, .fixed = true }, citizen, NULL);
}
/* tour: end */
