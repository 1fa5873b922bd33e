/* life/guest.c - where a guest of a plain thread is at home. */
#include "life/guest.h"

struct hd_worker *hd__guest_home(struct hd__sched *sched, int priority)
{
	struct hd_worker *home = hd__some_worker(sched);

	if (!hd__is_better_there(home, priority))
		home = &sched->workers[add_rlx(&sched->rotor, 1) % sched->nregular];
	return home;
}
