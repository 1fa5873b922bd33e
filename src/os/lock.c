/* os/lock.c - the contended side of the byte lock. */
#include "os/lock.h"

#include "os/thread.h"
#include "context.h"

unsigned char hd__lock_free;

__attribute__((constructor)) static void find_out(void)
{
	hd__lock_free = hd__tells ? 255 : 0;
}

#define YIELDS                                                                                                                 \
	50 /* after so many rounds the thread sleeps between two: under SCHED_FIFO a yield never lets a lower holder run */

unsigned hd__lock_waits(void)
{
	return *hd__os_thread_waits();
}

void hd__lock_slowly(unsigned char *lock)
{
	++*hd__os_thread_waits();
	for (int rounds = 0;; rounds++) {
		for (int i = 0; i < HD__TRIES; i++) {
			unsigned char free = 0;
			if (ld_rlx(lock) == 0 && cas_acq(lock, &free, 1))
				return;
			hd__arch_pause();
		}
		if (rounds < YIELDS)
			hd__os_thread_yield();
		else
			hd__os_thread_nap();
	}
}

void hd__lock_told_slowly(unsigned char *lock)
{
	hd__lock(lock);
	hd__learn(lock);
	hd__publish(lock);
}
