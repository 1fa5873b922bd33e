/* rt/report.c - what each process waits for, since when, and its owner; printed when no process can run any more. */
#include <stdio.h>

#include "base/assert.h"
#include "rt/rt.h"

#define LINES_MAX 50

static void report(const struct hd_process_info *info, hd_time now)
{
	char name[HD_NAME_SIZE + 4] = "", holder[48] = "", doing[128] = "is suspended";

	if (info->name[0] != 0)
		snprintf(name, sizeof name, " \"%s\"", info->name);
	if (info->holder != 0)
		snprintf(holder, sizeof holder, " for %s %lld", info->holder > 0 ? "process" : "thread",
			 (long long)(info->holder > 0 ? info->holder : -info->holder));
	if (info->state == HD_WAITING)
		snprintf(doing, sizeof doing, "waits in %s%s%s", hd__wait_name(info->why), holder,
			 info->suspended ? ", suspended" : "");
	hd__complain("heddle:   process %lld%s of priority %d %s, for %.3f s\n", (long long)info->pid, name, info->priority,
		     doing, (double)(now - info->since) / 1e9);
}

void hd__report_stuck(struct hd__sched *sched, const char *headline)
{
	hd_time now = hd__clock(sched);
	unsigned lines = 0;

	hd__complain("heddle: %s\n", headline);
	for (uint32_t slot = 0; slot < ld_acq(&sched->table.made); slot++) {
		struct hd_process *p = &sched->table.blocks[slot];
		struct hd_process_info info;
		if (ld_acq(&p->control) & HD__DEAD || ++lines > LINES_MAX)
			continue;
		hd__describe(sched, p, &info);
		report(&info, now);
	}
	if (lines > LINES_MAX)
		hd__complain("heddle:   and %u more\n", lines - LINES_MAX);
}
