/* rt/report.c - who waits for what, since when, held by whom; printed when nobody can run any more. */
#include <stdio.h>

#include "base/assert.h"
#include "rt/rt.h"

#define LINES_MAX 50

void hd__report_stuck(struct hd_worker *w, const char *headline)
{
	struct hd__sched *sched = w->sched;
	hd_time now = hd__clock(sched);
	unsigned lines = 0;

	hd__complain("heddle: %s\n", headline);
	for (uint32_t slot = 0; slot < sched->table.made; slot++) {
		struct hd_process *p = &sched->table.blocks[slot];
		struct hd_process_info info;
		if (ld_acq(&p->control) & HD__DEAD)
			continue;
		if (++lines > LINES_MAX)
			continue;
		hd__describe(sched, w, p, &info);
		const char *quote = info.name[0] != 0 ? "\"" : "";
		char holder[64] = "";
		if (info.holder != 0)
			snprintf(holder, sizeof holder, " for process %lld", (long long)info.holder);
		hd__complain("heddle:   process %lld %s%s%s%sof priority %d %s%s%s%s, for %.3f s\n", (long long)info.pid, quote,
			     info.name, quote, info.name[0] != 0 ? " " : "", info.priority,
			     info.state == HD_SUSPENDED ? "is suspended" : "waits in ",
			     info.state == HD_WAITING ? hd__wait_name(info.why) : "", holder,
			     info.state == HD_WAITING && info.suspended ? ", suspended" : "", (double)(now - info.since) / 1e9);
	}
	if (lines > LINES_MAX)
		hd__complain("heddle:   and %u more\n", lines - LINES_MAX);
}
