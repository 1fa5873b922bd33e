/* os/lock.c - the contended side of the byte lock. */
#include "os/lock.h"

#include "os/thread.h"
#include "context.h"

#define SPINS 100

void hd__lock_slowly(unsigned char *lock)
{
	for (;;) {
		for (int i = 0; i < SPINS; i++) {
			unsigned char free = 0;
			if (ld_rlx(lock) == 0 && cas_acq(lock, &free, 1))
				return;
			hd__arch_pause();
		}
		hd__os_thread_yield();
	}
}
