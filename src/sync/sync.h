/* sync/sync.h - what the primitives share. */
#ifndef SYNC_SYNC_H
#define SYNC_SYNC_H

#include <errno.h>
#include <heddle/cancel.h>
#include <heddle/mutex.h>
#include <string.h>

#include "life/life.h"
#include "os/thread.h"

/* The caller as an owner: the id of a process, or the negative number of a plain thread; in a child that a process has forked, the id of
 * that process. */
static inline int64_t hd__owner_self(struct hd_worker *w)
{
	return likely(w != NULL) ? hd__pid(&w->sched->table, w->current) : -hd__os_thread_id();
}

/* Whether what an object with this number of forks knows of its waiters is from before a fork: they wait in the parent only. Asked before
 * a caller waits, or wakes a waiter. The number is the object's from then on. */
static inline bool hd__is_forked(unsigned char *forks)
{
	if (likely(*forks == hd__forks))
		return false;
	*forks = hd__forks;
	return true;
}

/* Ends a call that did not have to wait: a safe point if w->resched says so. */
static inline void hd__sync_got(struct hd_worker *w)
{
	if (w != NULL)
		hd__leave(unlikely(w->resched != 0) ? hd__attend(w) : w);
}

/* What a try_ function answers for the timed one. */
static inline int hd__try(int err)
{
	return err == -ETIMEDOUT ? -EAGAIN : err;
}

/* Copies what the program has. TSan sees memcpy, and would take it for the program's: it does not see a loop. */
static inline void hd__copy(void *to, const void *from, size_t n)
{
	if (likely(!hd__tells)) {
		memcpy(to, from, n);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
		__asm__ volatile("" ::: "memory"); /* or the compiler would make it a memcpy */
	}
}

/* For how long a waiter may be passed by others that take a lock freely. */
#define HD__LATE HD_MS(1)

/* Whether x has waited for that long; `now` is the exact time. */
static inline bool hd__is_late(const struct hd_waiter *x, hd_time now)
{
	return x != NULL && x->since != 0 && now - x->since >= HD__LATE;
}

/* Whether the waiter x will go on when it is unparked: its process, if it has one, is not suspended. */
static inline bool hd__will_come(const struct hd_waiter *x)
{
	return x->process == NULL || !hd__should_stop(ld_rlx(&x->process->control));
}

/* Whether a waiter that was woken to compete is still on its way: *waking, which counts how often this was asked. After many times another
 * one is woken: the first may have a low priority. (If it is suspended or abandoned, it is not on its way.) */
static inline bool hd__one_is_coming(unsigned char *waking)
{
	enum { OFTEN = 200 };

	if (*waking == 0 || *waking > OFTEN)
		return false;
	++*waking;
	return true;
}

/* A waiter for a process, by its level (rank.c): for the mutex that the process has, or for its answer. */
struct hd__ranked {
	struct hd_waiter waiter;
	struct hd__ranked *next, *prev; /* of the same level: a ring */
	struct hd__ranked *below;	/* the first of its level: the first of the next lower one, or NULL */
	uint8_t level;			/* 0: it has no rank */
};

/* Under the lock that guards *highest: x, whose process is known, has a rank from now on; has none any more. */
void hd__rank(struct hd__ranked **highest, struct hd__ranked *x);
void hd__unrank(struct hd__ranked **highest, struct hd__ranked *x);

/* Loans (lend.c). The process of x, which waits or is about to, lends its priority to `to` from now on (x->waiter.boosts), if that is alive and
 * can use it; lends nothing any more. Returns whether `to` must find its boost anew. The lock of the queue in which x is, if any, is held. */
bool hd__lend(struct hd__sched *sched, struct hd__ranked *x, hd_pid to);
bool hd__unlend(struct hd__sched *sched, struct hd__ranked *x, hd_pid to);

/* The priority of p, which waits for an answer, has changed: so does what it lends. Returns the process that must find its boost anew; 0: none.
 * Inside the lane of p's home; no locks are held. */
hd_pid hd__lend_anew(struct hd__sched *sched, struct hd_process *p);

/* The highest priority that p is lent; 0: none. Inside its home's lane. */
int hd__lent(struct hd__sched *sched, struct hd_process *p);

/* p, which has just died, is lent nothing any more (a hook of life/). */
void hd__loans_end(struct hd__sched *sched, struct hd_process *p);

/* The runtime begins, its table is there: returns 0 or -ENOMEM; ends. */
int hd__loans_init(struct hd__sched *sched);
void hd__loans_fini(struct hd__sched *sched);

/* The memory of all loans. */
const void *hd__loans_memory(const struct hd__sched *sched, size_t *size);

/* Finds p's boost; returns its control word then. Inside its home's lane; no locks are held (a hook of life/). */
uint64_t hd__find_boost(struct hd__sched *sched, struct hd_process *p);

/* The priority of p, which waits, has changed: so does its rank among the waiters of a mutex or for an answer. Returns the process that p boosts,
 * the owner of that mutex if it has HD_INHERIT, or the one that will answer; 0: none. Inside the lane of p's home; no locks are held (a hook of life/). */
hd_pid hd__boosts(struct hd__sched *sched, struct hd_process *p);

/* Calls fn(arg), and leave(what) afterwards, also if fn ends the process. */
void hd__protected(void (*fn)(void *arg), void *arg, void (*leave)(void *what), void *what);

/* For conditions: gives up the mutex, which the caller owns, however deep, and answers how deep; *next is to be unparked. */
unsigned hd__mutex_release(struct hd_worker *w, struct hd_mutex *m, struct hd_waiter **next);

/* x, which the caller has claimed, gets the mutex, as deep as x->number says, now or in its turn: then it is unparked. It is the waiter of
 * a struct hd__ranked. */
void hd__mutex_pass_to(struct hd_worker *w, struct hd_mutex *m, struct hd_waiter *x);

/* By a waiter after hd__mutex_pass_to: it owns a mutex with an order; it competes for one without. */
void hd__mutex_passed(struct hd_mutex *m, unsigned depth);

/* Locks it, `depth` deep. Neither a cancel nor a termination ends this wait. */
void hd__mutex_reenter(struct hd_mutex *m, unsigned depth);

#endif
