/* os/fault.h - failure on demand: the Nth call of a kind fails, so that tests can show what happens then. */
#ifndef OS_FAULT_H
#define OS_FAULT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/atomic.h"

enum hd__fault {
	HD__FAULT_ALLOC,   /* malloc */
	HD__FAULT_MAP,	   /* mmap */
	HD__FAULT_GUARD,   /* a stack's guard */
	HD__FAULT_INSTALL, /* MADV_GUARD_INSTALL: failing it forces the mprotect fallback */
	HD__FAULT_THREAD,  /* pthread_create */
	HD__FAULT_BARRIER, /* membarrier, which a filter of system calls may forbid at any time */
	HD__FAULT_EINTR,   /* a system call on a descriptor is interrupted */
	HD__FAULT_SHORT,   /* a read or write moves one byte */
	HD__FAULT_FD,	   /* no descriptor for the poller */
	HD__FAULT_NAME,	   /* a look-up of a name: no server answers */
	HD__FAULT_RING,	   /* no io_uring */
	HD__FAULTS
};

/* From now on the nth call (1 is the next) of this kind fails: once, or it and all after it. 0 disarms. */
void hd__fault_arm(enum hd__fault kind, unsigned nth, bool from_then_on);

/* Decides, instead of what is armed, whether a call of a kind fails; NULL: what is armed decides. */
extern bool (*hd__fault_door)(enum hd__fault kind);

/* A kind has been armed, ever. */
extern bool hd__fault_possible;

/* As hd__fault_strikes, when it is possible at all. */
bool hd__fault_decide(enum hd__fault kind);

/* Asked by os/ at each call: should this one fail? */
static inline bool hd__fault_strikes(enum hd__fault kind)
{
	return unlikely(ld_acq(&hd__fault_possible) || ld_acq(&hd__fault_door) != NULL) && hd__fault_decide(kind);
}

#endif
