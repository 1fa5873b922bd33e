/* os/lock.h - a lock of one byte, for short times.
 *
 * Nothing of it is touched after its release, so it may live in memory that the next holder frees. The holder does not sleep,
 * does not switch and calls no function of the program. It may
 *   take further locks     a lane, then a wait queue (a condition's, then its mutex's), then stacks, table or trace
 *   call its primitive     x->ops->left in wait.c, the spawn in group.c
 *   call the kernel        guards and discards in stack.c, a futex wake; rt/ allocates and prints for its deadlock reports */
#ifndef OS_LOCK_H
#define OS_LOCK_H

#include "arch/carry.h"
#include "base/atomic.h"

/* Spins, then gives the CPU away between tries: the holder may have lost its own. */
void hd__lock_slowly(unsigned char *lock);

/* How often the calling thread has had to wait for a lock. */
unsigned hd__lock_waits(void);

static inline void hd__lock(unsigned char *lock)
{
	unsigned char free = 0;
	if (unlikely(!cas_acq(lock, &free, 1))) /* pairs with hd__unlock's release */
		hd__lock_slowly(lock);
}

/* As hd__lock, for a lock that orders what the program does: TSan is told, if it does not see it. What was done before is published at once:
 * the holder does nothing of the program's. hd__lock_free is then a value that no lock has, so that the attempt fails: it costs
 * nothing to find out. */
void hd__lock_told_slowly(unsigned char *lock);
extern unsigned char hd__lock_free __attribute__((visibility("hidden"))); /* 0; constant once the program has begun */

/* As hd__lock_told, if the lock is free; false: it is not, or TSan must be told. */
static inline bool hd__try_lock_told(unsigned char *lock)
{
	unsigned char free = hd__lock_free;
	return likely(cas_acq(lock, &free, 1)); /* pairs with hd__unlock's release */
}

static inline void hd__lock_told(unsigned char *lock)
{
	if (unlikely(!hd__try_lock_told(lock)))
		hd__lock_told_slowly(lock);
}

static inline void hd__unlock(unsigned char *lock)
{
	st_rel(lock, 0); /* pairs with hd__lock's acquire: publishes what the lock guards */
}

#endif
