/* growth/os/lock.h - the byte lock of src/os/lock.h, which counts how many steps it is held for.
 *
 * The build of growth.c's library looks for headers here first. */
#ifndef GROWTH_OS_LOCK_H
#define GROWTH_OS_LOCK_H

#define hd__lock hd__lock_uncounted
#define hd__lock_told hd__lock_told_uncounted
#define hd__try_lock_told hd__try_lock_told_uncounted
#define hd__unlock hd__unlock_uncounted
#include "../../../src/os/lock.h"
#undef hd__lock
#undef hd__lock_told
#undef hd__try_lock_told
#undef hd__unlock

/* In growth.c. */
void growth_locked(void);
void growth_unlocked(void);

static inline void hd__lock(unsigned char *lock)
{
	hd__lock_uncounted(lock);
	growth_locked();
}

static inline void hd__lock_told(unsigned char *lock)
{
	hd__lock_told_uncounted(lock);
	growth_locked();
}

static inline bool hd__try_lock_told(unsigned char *lock)
{
	bool locked = hd__try_lock_told_uncounted(lock);
	growth_locked(); /* an attempt that failed is followed by another one */
	return locked;
}

static inline void hd__unlock(unsigned char *lock)
{
	growth_unlocked();
	hd__unlock_uncounted(lock);
}

#endif
