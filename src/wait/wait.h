/* wait/wait.h - the only way to sleep.
 *
 * A primitive locks its wait queue, looks whether it must wait, and parks; whoever ends the wait claims the waiter under the
 * same lock, unlocks, and unparks it. Timeouts and the end of the runtime end waits without knowing the primitive. Works for
 * processes and for plain threads, which sleep in the kernel. */
#ifndef WAIT_WAIT_H
#define WAIT_WAIT_H

#include "os/lock.h"
#include "sched/switch.h"

/* How a wait ended. Whoever moves it away from WAITING has decided the wait; all others leave it. */
enum hd__outcome {
	HD__WAITING = 0,
	HD__GRANTED,
	HD__TIMED_OUT,
	HD__CLOSED,    /* what it waited for will never come */
	HD__TERMINATED /* the waiter must end */
};

/* On the waiter's stack while it waits in a queue. */
struct hd_waiter {
	struct hd_waiter *next, *prev; /* in the queue, under its lock; once claimed, the claimer's to chain */
	struct hd_process *process;    /* NULL: a plain thread */
	struct hd_waitq *queue;
	uint8_t why;	   /* enum hd_wait */
	bool linked;	   /* in the queue; under its lock */
	uint8_t outcome;   /* plain thread: enum hd__outcome; a process has it in its block */
	uint32_t unparked; /* plain thread: the word it sleeps on; release, acquire */
};

static inline void hd__waitq_lock(struct hd_waitq *q)
{
	hd__lock(&q->lock);
}

static inline void hd__waitq_unlock(struct hd_waitq *q)
{
	hd__unlock(&q->lock);
}

static inline uint8_t *hd__outcome_of(struct hd_waiter *x)
{
	return likely(x->process != NULL) ? &x->process->outcome : &x->outcome;
}

/* Decides a wait, if nothing has. */
static inline bool hd__decide(uint8_t *word, enum hd__outcome outcome)
{
	uint8_t waiting = HD__WAITING;
	return cas_acq_rel(word, &waiting, outcome); /* pairs with the acquire of the waiter, when it goes on */
}

/* The same for a waiter in a queue that the caller has locked. When it is at home here no atomic operation is needed: its
 * timeout and its end are decided on this worker too, and other granters are kept off by the lock. `w` is the caller's
 * worker, NULL on a plain thread. */
static inline bool hd__decide_locked(struct hd_worker *w, struct hd_waiter *x, enum hd__outcome outcome)
{
	struct hd_process *p = x->process;

	if (unlikely(p == NULL || ld_rlx(&p->home) != w))
		return hd__decide(hd__outcome_of(x), outcome);
	if (unlikely(ld_rlx(&p->outcome) != HD__WAITING))
		return false;
	st_rlx(&p->outcome, outcome);
	return true;
}

/* Under the lock: takes the first waiter that nothing else has decided, and decides it. NULL when there is none. It stays
 * where it is until hd__unpark, which must follow once the lock is released. */
static inline struct hd_waiter *hd__waitq_claim(struct hd_worker *w, struct hd_waitq *q, enum hd__outcome outcome)
{
	HD_ASSERT(ld_rlx(&q->lock) != 0, "a wait queue was used without its lock");
	for (;;) {
		struct hd_waiter *x = q->head;
		if (x == NULL)
			return NULL;
		q->head = x->next;
		if (x->next == NULL)
			q->tail = NULL;
		else
			x->next->prev = NULL;
		x->linked = false;
		if (likely(hd__decide_locked(w, x, outcome)))
			return x;
	}
}

/* Under the lock: all waiters with this reason (HD_WAIT_NONE: any), chained by `next`, for hd__unpark_all. */
struct hd_waiter *hd__waitq_claim_all(struct hd_worker *w, struct hd_waitq *q, enum hd__outcome outcome, enum hd_wait why);

/* The wait is over, and decided: its deadline is. On its home worker. */
static inline void hd__end_wait(struct hd_worker *w, struct hd_process *p)
{
	HD_ASSERT(p->state == HD_WAITING, "a process that does not wait was woken");
	if (unlikely(p->timer != 0)) {
		st_rlx(&p->timer, 0);
		hd__timers_forget(&w->timers);
	}
}

/* Then it is ready. */
static inline void hd__wake_owner(struct hd_worker *w, struct hd_process *p)
{
	hd__end_wait(w, p);
	hd__make_ready(w, p);
}

void hd__unpark_elsewhere(struct hd_worker *w, struct hd_waiter *x);

/* Ends the wait of a waiter that the caller itself has just claimed. Nothing of its queue is touched. `w` is the caller's worker,
 * NULL on a plain thread. */
__attribute__((always_inline)) static inline void hd__unpark_claimed(struct hd_worker *w, struct hd_waiter *x)
{
	if (likely(x->process != NULL && ld_rlx(&x->process->home) == w))
		hd__wake_owner(w, x->process);
	else
		hd__unpark_elsewhere(w, x);
}

/* The same for one that came from elsewhere. */
__attribute__((always_inline)) static inline void hd__unpark(struct hd_worker *w, struct hd_waiter *x)
{
	HD_ASSERT(ld_rlx(hd__outcome_of(x)) != HD__WAITING, "a waiter was unparked that nobody had claimed");
	hd__unpark_claimed(w, x);
}

void hd__unpark_all(struct hd_worker *w, struct hd_waiter *chain);

/* Whether a deadline has passed; reads the clock only if it must. */
static inline bool hd__is_past(struct hd_worker *w, hd_time until)
{
	if (until == HD_FOREVER || until <= 0)
		return until <= 0;
	return until <= (w != NULL ? hd__clock(w->sched) : hd__plain_clock->now(hd__plain_clock));
}

/* Waits in `q`, whose lock the caller holds (NULL: for time alone), and releases it once the caller is off its stack. `w` is
 * the caller's worker, NULL on a plain thread; afterwards it may be another. `next`, from hd__take_for_hand_off, runs
 * meanwhile. Returns 0 when granted, -ETIMEDOUT, -EPIPE when closed; does not return when
 * the caller must end. */
int hd__park_for(struct hd_worker *w, struct hd_waitq *q, hd_time until, enum hd_wait why, struct hd_process *next);

static inline int hd__park(struct hd_worker *w, struct hd_waitq *q, hd_time until, enum hd_wait why)
{
	return hd__park_for(w, q, until, why, NULL);
}

/* The deadline of p's wait has come (a hook of sched/). */
void hd__wait_expired(struct hd_worker *w, struct hd_process *p);

/* Ends p's wait because p must end, if nothing else has ended it. */
void hd__wait_terminate(struct hd_worker *w, struct hd_process *p);

#endif
