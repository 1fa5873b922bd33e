/* io/ring.h - operations on files that the kernel does by itself, and says when they are done. */
#ifndef IO_RING_H
#define IO_RING_H

#include "os/ring.h"
#include "wait/wait.h"

/* Has the kernel do it, and waits for its end: a count or -errno. -ENOSYS: it was not done, and a thread must do it. When time is up, or the
 * caller is cancelled, the kernel is asked to call it off, and its end is waited for nevertheless: -ETIMEDOUT or -ECANCELED only if
 * it was called off; then hd__heed must follow. On a process, outside its lane, or on a plain thread, which has no ring. */
ssize_t hd__ring_do(const struct hd__task *task, hd_time until, enum hd_wait why);

/* The poller has heard the bell of this worker's ring. Inside the lane of w, or on another thread (NULL). */
void hd__ring_rang(struct hd__sched *sched, struct hd_worker *w, unsigned index);

/* The workers have run for the last time: waits until the kernel uses no stack any more. */
void hd__rings_finish(struct hd__sched *sched);
void hd__rings_drop(struct hd__sched *sched);

#endif
