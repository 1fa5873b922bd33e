/* posix/posix.h - what the parts of the POSIX face share.
 *
 * They answer POSIX's errors, and some set errno: no other room does. They are made of heddle's public calls, and so is everything that waits here. A
 * plain thread (in a forked child, or one that the C library has started) has what these calls give a plain thread. */
#ifndef POSIX_POSIX_H
#define POSIX_POSIX_H

#define _GNU_SOURCE
#define HD_PTHREAD_KEEP_NAMES
#define HD_KEEP_ERRNO
#include <errno.h>
#include <heddle/process.h>
#include <heddle/pthread.h>
#include <heddle/runtime.h>
#include <heddle/time.h>
#include <stdbool.h>

/* Priorities of POSIX: 0 is SCHED_OTHER's only one, HD_PRIORITY_USER; SCHED_FIFO and SCHED_RR have those above. */
#define HD__POSIX_PRIORITY_MAX (HD_PRIORITY_TIMING - HD_PRIORITY_USER)

/* A thread that heddle has started, or the first. */
struct hd__thread_face {
	struct hd__thread_face *next, *prev; /* in the list of all */
	hd_pid pid;
	void *(*start)(void *arg);
	void *arg;
	hd_pthread_attr_t attr;	      /* as it was created */
	bool asynchronous;	      /* its cancel type, as it asked; its own */
	char name[16];		      /* under the list's lock */
	struct hd__key_value *values; /* its own; NULL: none yet */
	struct hd_cleanup last;	      /* of its cleanups, the last to run: its keys' values are destroyed */
};

/* The calling process is the program's first thread; all that was known of others is forgotten. */
void hd__faces_begin(void);

/* The calling thread's; NULL: one that heddle has not started. */
struct hd__thread_face *hd__face(void);

bool hd__face_is_first(const struct hd__thread_face *t);

/* The values of the calling thread, which ends, are destroyed. */
void hd__key_values_destroy(struct hd__thread_face *me);

/* A deadline of POSIX on this clock as heddle's; one that has passed is 0. Returns 0 or EINVAL. */
int hd__posix_until(clockid_t clock, const struct timespec *until, hd_time *to);

/* heddle's error as POSIX's number. */
static inline int hd__posix_error(int err)
{
	return err < 0 ? -err : 0;
}

/* Whether a handler of signals runs on the calling thread. */
bool hd__posix_in_handler(void);

/* A wait for something of the C library's, by a thread of the pool: fn(t) returns the error. */
struct hd__theirs {
	int (*fn)(struct hd__theirs *t);
	void *what;
	pthread_mutex_t *mutex; /* of a condition */
	clockid_t clock;
	const struct timespec *until; /* NULL: for ever */
	bool in_vain;		      /* of a condition: there was no signal */
	int err;
};
int hd__theirs_wait(struct hd__theirs *t);

/* Policies as heddle's, and back. 0: there is no such policy. */
enum hd_policy hd__posix_policy(int policy);
int hd__posix_policy_of(enum hd_policy policy);

/* Whether a thread of this policy can have this priority. */
bool hd__posix_priority_is_valid(int policy, int priority);

/* Until the second, the calling thread hears no cancel: for what waits and is no cancellation point. */
static inline int hd__posix_go_deaf(void)
{
	return hd_set_cancel_state(HD_CANCEL_DISABLED);
}

static inline void hd__posix_hear_again(int before)
{
	if (before >= 0)
		hd_set_cancel_state((enum hd_cancel_state)before);
}

#endif
