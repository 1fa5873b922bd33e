/* os/lock.h - a lock of one byte, for a few instructions at a time.
 *
 * Nothing of it is touched after its release, so it may live in memory that the next owner frees. A holder never waits,
 * never switches (except in hd__park, which releases on the next stack) and never calls out. */
#ifndef OS_LOCK_H
#define OS_LOCK_H

#include "base/atomic.h"

/* Spins, then gives the CPU away between tries: the holder may have lost it. */
void hd__lock_slowly(unsigned char *lock);

static inline void hd__lock(unsigned char *lock)
{
	unsigned char free = 0;
	if (unlikely(!cas_acq(lock, &free, 1))) /* pairs with hd__unlock's release */
		hd__lock_slowly(lock);
}

static inline void hd__unlock(unsigned char *lock)
{
	st_rel(lock, 0); /* pairs with hd__lock's acquire: publishes what the lock guards */
}

#endif
