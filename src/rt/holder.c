/* rt/holder.c - a behaviour that waits while it has cowns, and was not made with HD_WHEN_MAY_BLOCK: reported.
 *
 * Callers:    the behaviour, which has begun to wait: on its stack, inside its lane, with no other lock.
 *
 * Each function of a behaviour is told of once for each kind of wait. Under the simulator such a wait ends the program: it is what
 * the exploration is to find. */
#include <execinfo.h>
#include <stdlib.h>

#include "base/assert.h"
#include "rt/rt.h"
#include "when/when.h"

void hd__holder_waits(struct hd_worker *w, struct hd_process *me)
{
	const struct hd__behaviour *b = me->value;
	enum hd_wait why = me->why;
	void *frames[HD__FRAMES_MAX];
	char who[HD__WHO_SIZE];

	if (b == NULL || !hd__is_new_site(w->sched, (uint64_t)(uintptr_t)b->fn ^ ((uint64_t)why + 1) << 56))
		return;
	hd__complain("heddle: %s, a behaviour, waits in %s and has cowns meanwhile: all behaviours that need them wait too, "
		     "and if it waits for one "
		     "of these, that is a deadlock. Make another behaviour for the rest, or allow it with HD_WHEN_MAY_BLOCK. "
		     "It is here:\n",
		     hd__who(w->sched, hd__pid(&w->sched->table, me), who), hd__wait_name(why));
	hd__print_frames(frames, backtrace(frames, HD__FRAMES_MAX));
	if (w->sched->doors.choose != NULL)
		abort();
}
