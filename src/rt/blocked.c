/* rt/blocked.c - a worker whose process is blocked in the kernel: reported (HEDDLE_WARN=blocked).
 *
 * Callers: the watcher. Each place is told of once. */
#include <string.h>

#include "base/assert.h"
#include "os/memory.h"
#include "rt/rt.h"

static uint64_t mix(uint64_t site, const void *bytes, size_t n)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < n; i++)
		site = (site ^ b[i]) * UINT64_C(0x100000001b3);
	return site;
}

void hd__worker_blocked(struct hd_worker *w, const struct hd__blocked_in *where, hd_time since)
{
	struct hd_process *p; /* the worker stores it plainly; a block stays a block */
	void *frames[HD__FRAMES_MAX];
	char who[HD__WHO_SIZE];

	if (!hd__os_peek(&p, &w->current, sizeof p) || p == NULL)
		return;
	if (hd__os_thread_cpu_time(ld_rlx(&w->thread.id)) != where->cpu_time)
		return; /* the worker has gone on, and p may be its next process */
	int n = hd__walk_blocked(w, p, where, frames);
	uint64_t site = mix(mix(1, where->call, strlen(where->call)), frames, (size_t)n * sizeof frames[0]);
	if (!hd__is_new_site(w->sched, site))
		return;
	hd__complain("heddle: worker %u: %s is blocked in the kernel for %lld ms%s%s, and the worker with it: heddle's own "
		     "call for this, or hd_blocking, blocks "
		     "the process alone.%s\n",
		     w->index, hd__who(w->sched, hd__pid(&w->sched->table, p), who), (long long)(since / HD_MS(1)),
		     where->call[0] != 0 ? ", in the system call " : "", where->call, n > 0 ? " It is here:" : "");
	hd__print_frames(frames, n);
}
