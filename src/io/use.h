/* io/use.h - operations on a descriptor that take no turn, and hd_close, which waits for them. */
#ifndef IO_USE_H
#define IO_USE_H

#include "io/pool.h"

/* One such operation, on the stack of its process. */
struct hd__use {
	struct hd__uses *uses; /* NULL: a plain thread's, which no list has */
	struct hd__use *next, **link;
	struct hd__job *job; /* that hd_close interrupts: it may wait for ever; NULL: it ends soon by itself */
};

/* Those of a descriptor. Zeroed memory is a descriptor without any. */
struct hd__uses {
	struct hd_waitq closer; /* hd_close waits here; its lock guards all of it */
	struct hd__use *first;
	bool closing;
};

/* The descriptor is in use, until hd__use_end. Returns 0; -EBADF: it is being closed. On a process, outside its lane. */
int hd__use_begin(struct hd__uses *uses, struct hd__use *use, struct hd__job *job);
void hd__use_end(struct hd__use *use);

/* No operation begins any more, those that might wait for ever are interrupted, and the caller waits for the end of all. On a process,
 * outside its lane, or a plain thread inside the gate. */
void hd__uses_close(struct hd__sched *sched, struct hd__uses *uses, int fd);

/* The number may be another descriptor's now. */
void hd__uses_open(struct hd__uses *uses);

/* The processes do not run any more, and the list will be gone with their stacks: hd__uses_close does not wait for it. */
void hd__uses_forsake(struct hd__uses *uses);

#endif
