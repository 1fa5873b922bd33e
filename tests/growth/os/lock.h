/* growth/os/lock.h - the byte lock of src/os/lock.h, which counts how many steps it is held for.
 *
 * The build of growth.c's library looks for headers here first. */
#ifndef OS_LOCK_H
#define OS_LOCK_H

#include "base/atomic.h"

/* In growth.c. */
void growth_locked(void);
void growth_unlocked(void);

void hd__lock_slowly(unsigned char *lock);

static inline void hd__lock(unsigned char *lock)
{
	unsigned char free = 0;
	if (unlikely(!cas_acq(lock, &free, 1)))
		hd__lock_slowly(lock);
	growth_locked();
}

static inline void hd__unlock(unsigned char *lock)
{
	growth_unlocked();
	st_rel(lock, 0);
}

#endif
