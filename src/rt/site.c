/* rt/site.c - which places of the program have been told of: each is told of once.
 *
 * Owns:       sched->sites. When it is full, nothing more is told.
 * Locking:    sched->telling; the caller may be inside its lane. */
#include "os/lock.h"
#include "rt/rt.h"

bool hd__is_new_site(struct hd__sched *sched, uint64_t site)
{
	bool new = false;

	hd__lock(&sched->telling);
	for (unsigned i = 0; i < HD__SITES && !new; i++) {
		if (sched->sites[i] == site)
			break;
		new = sched->sites[i] == 0;
		if (new)
			sched->sites[i] = site;
	}
	hd__unlock(&sched->telling);
	return new;
}
