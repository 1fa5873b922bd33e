/* wait/wait.h - the only way to sleep.
 *
 * A primitive locks its wait queue, looks whether it must wait, and parks; the thread that ends the wait claims the waiter under the
 * same lock, unlocks, and unparks it. Timeouts and the end of the runtime end waits without knowing the primitive. Works for
 * processes and for plain threads, which sleep in the kernel. */
#ifndef WAIT_WAIT_H
#define WAIT_WAIT_H

#include <errno.h>

#include "os/lock.h"
#include "sched/switch.h"

/* How a wait ended. The thread that moves it away from WAITING has decided the wait; all others leave it. */
enum hd__outcome {
	HD__WAITING = 0,
	HD__GRANTED,
	HD__TIMED_OUT,
	HD__CLOSED,    /* what it waited for will never come */
	HD__CANCELLED, /* the waiter was cancelled */
	HD__TERMINATED /* the waiter must end */
};

/* Where a record is; under the queue's lock. */
enum hd__place {
	HD__OUT = 0, /* in no queue, and not claimed */
	HD__LINKED,  /* in its queue */
	HD__MOVED,   /* in its queue, where the thread that claimed it elsewhere has put it: only a claim takes it out */
	HD__CLAIMED  /* taken by a claim */
};

/* What a wait allows; 0: a cancel or a termination ends it, and its call. */
enum hd__rules {
	HD__NO_CANCEL = 1,   /* it is no cancellation point */
	HD__NO_KILL = 2,     /* nor does termination end it */
	HD__HEEDS_LATER = 4, /* the call has something to put in order when its wait was called off; then it says hd__heed */
	HD__HANDS_BACK = 8   /* it may have lent its turn: the process whose end it waits for hands the worker back */
};

struct hd_waiter;

/* What else must happen when a wait ends in an unusual way; each may be NULL. */
struct hd__wait_ops {
	/* x is out of its queue, and was not claimed. Under the lock of the queue, which this function releases. */
	void (*left)(struct hd_worker *w, struct hd_waiter *x);
	/* The wait of x is over, and its process does not go on: it is suspended; or, `for_good`, the runtime is over. Inside its home's
	 * lane; no locks are held. May be called twice. It unparks others by hd__unpark_later. */
	void (*stalled)(struct hd_worker *w, struct hd_waiter *x, bool for_good);
};

/* On the waiter's stack while it waits in a queue. */
struct hd_waiter {
	struct hd_waiter *next, *prev; /* in the queue, under its lock; once claimed, the claimer's to chain */
	struct hd_process *process;    /* NULL: a plain thread */
	struct hd_worker *home; /* the home of its process, while it is in its queue; NULL: a plain thread, or one of several */
	struct hd_waitq *queue;
	uint8_t why;	   /* enum hd_wait: a label */
	uint8_t rules;	   /* enum hd__rules */
	uint8_t place;	   /* enum hd__place */
	bool several;	   /* one of several records of its process, which waits in as many queues */
	uint32_t unparked; /* plain thread: the word it sleeps on; release, acquire */
	uint64_t wait;	   /* plain thread: as p->wait; a process has it in its block */

	/* the primitive's own */
	const struct hd__wait_ops *ops; /* or NULL */
	const int64_t *owner;		/* the owner of what it waits for: a process, or less a thread; NULL: unknown */
	struct hd_waiter *behind;	/* NULL: to the head of the queue */
	/* Neither a process nor a thread waits: to unpark it is to call this. Or NULL. */
	void (*told)(struct hd_worker *w, struct hd_waiter *x);
	struct hd_waiter *sibling; /* `several`: the next of its process's */
	void *data;
	unsigned number;
	bool ahead; /* it goes behind `behind`, else to the tail */
	bool boosts; /* it boosts another process, on which it waits: the worker takes in its notes before it chooses the next process */
	hd_time since; /* when its owner began to wait; 0: unknown */
};

/* The primitive's own fields as zeroes, and nothing else: for hot paths. */
static inline void hd__waiter_init(struct hd_waiter *x)
{
	x->several = x->ahead = x->boosts = false;
	x->rules = 0;
	x->ops = NULL;
	x->owner = NULL;
}

/* How many forks this program is the child of, modulo 256. It has the waiters of its parent in its queues, and the stacks on which their
 * records are; but none of them waits here. */
extern unsigned char hd__forks;

/* What a program does is ordered by the locks of wait queues, and by little else: so TSan is told here. */
static inline void hd__waitq_lock(struct hd_waitq *q)
{
	hd__lock_told(&q->lock);
}

static inline void hd__waitq_unlock(struct hd_waitq *q)
{
	hd__unlock(&q->lock);
}

static inline uint64_t *hd__wait_of(struct hd_waiter *x)
{
	return likely(x->process != NULL) ? &x->process->wait : &x->wait;
}

static inline enum hd__outcome hd__outcome(uint64_t wait)
{
	return (enum hd__outcome)(wait & ((1 << HD__WAIT_BITS) - 1));
}

/* Decides a wait, if nothing has. */
static inline bool hd__decide(uint64_t *word, enum hd__outcome outcome)
{
	uint64_t wait = ld_rlx(word);

	do
		if (hd__outcome(wait) != HD__WAITING)
			return false;
	while (!cas_acq_rel(word, &wait, wait | outcome)); /* pairs with the acquire of the waiter, when it goes on */
	return true;
}

/* As hd__decide, for a waiter in a queue that the caller has locked. When it is at home here no atomic operation is needed: its
 * timeout and its end are decided inside this lane too, and other granters are kept off by the lock. `w` is the worker in whose lane
 * the caller is, NULL on a plain thread. */
static inline bool hd__decide_locked(struct hd_worker *w, struct hd_waiter *x, enum hd__outcome outcome)
{
	struct hd_process *p = x->process;

	if (unlikely(p == NULL || ld_rlx(&p->home) != w || x->several))
		return hd__decide(hd__wait_of(x), outcome);
	uint64_t wait = ld_rlx(&p->wait);
	if (unlikely(hd__outcome(wait) != HD__WAITING))
		return false;
	st_rlx(&p->wait, wait | outcome);
	return true;
}

/* Under the lock: x, which has been taken out, is the caller's if nothing else has decided it. */
static inline bool hd__claim_this(struct hd_worker *w, struct hd_waiter *x, enum hd__outcome outcome)
{
	bool claimed = likely(hd__decide_locked(w, x, outcome)) || x->place == HD__MOVED;
	x->place = claimed ? HD__CLAIMED : HD__OUT;
	if (unlikely(x->several) && claimed)
		x->process->inner->won = x;
	return claimed;
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
		if (hd__claim_this(w, x, outcome))
			return x;
	}
}

/* As hd__waitq_claim, for a grant inside the lane of w: claims the first waiter if its process is at home here, and will be ready at once:
 * it has no deadline and is not suspended. hd__wake_and_leave must follow. NULL: nothing has been done. */
static inline struct hd_waiter *hd__waitq_claim_here(struct hd_worker *w, struct hd_waitq *q)
{
	struct hd_waiter *x = q->head;

	if (x == NULL || unlikely(x->home != w))
		return NULL;
	struct hd_process *p = x->process;
	if (unlikely(ld_rlx(&p->wait) != HD__WAITING || ld_acq(&p->control) & HD__SUSPEND)) /* pairs as in hd__make_ready */
		return NULL;
	st_rlx(&p->wait, HD__GRANTED);
	x->place = HD__CLAIMED;
	q->head = x->next;
	if (likely(x->next == NULL))
		q->tail = NULL;
	else
		x->next->prev = NULL;
	return x;
}

/* Under the lock: claims this waiter, which is in the queue; false when something else has decided it: it is out in any case. */
bool hd__waitq_claim_one(struct hd_worker *w, struct hd_waitq *q, struct hd_waiter *x, enum hd__outcome outcome);

/* Under the lock: x joins the queue, at its tail; takes it out. */
static inline void hd__waitq_link(struct hd_waitq *q, struct hd_waiter *x, enum hd__place place)
{
	x->next = NULL;
	x->prev = q->tail;
	if (likely(q->tail == NULL))
		q->head = x;
	else
		q->tail->next = x;
	q->tail = x;
	x->place = (uint8_t)place;
}
void hd__waitq_unlink(struct hd_waitq *q, struct hd_waiter *x);

/* Under the lock: the waiters do not exist any more (in a forked child). */
static inline void hd__waitq_forget(struct hd_waitq *q)
{
	q->head = q->tail = NULL;
}

/* Under the lock: all waiters with this reason (HD_WAIT_NONE: any), chained by `next`, for hd__unpark_all. A walk of the queue: for one
 * that is short. */
struct hd_waiter *hd__waitq_claim_all(struct hd_worker *w, struct hd_waitq *q, enum hd__outcome outcome, enum hd_wait why);

/* Under the lock, which it releases: claims waiters by next(w, arg), which answers NULL when there is none to claim, and unparks them in
 * the same order when the lock is released. Many are served in batches, between which the lock is free. `let_go` takes the place of
 * hd__unpark, unless it is NULL. */
void hd__waitq_serve(struct hd_worker *w, struct hd_waitq *q, struct hd_waiter *(*next)(struct hd_worker *w, void *arg),
		     void *arg, void (*let_go)(struct hd_worker *w, struct hd_waiter *x));

/* As hd__waitq_serve, for all waiters that are in the queue now. */
void hd__waitq_serve_all(struct hd_worker *w, struct hd_waitq *q, enum hd__outcome outcome,
			 void (*let_go)(struct hd_worker *w, struct hd_waiter *x));

/* The wait is over, and decided: its deadline is. Inside the lane of w, its home. */
static inline void hd__end_wait(struct hd_worker *w, struct hd_process *p)
{
	HD_ASSERT(p->state == HD_WAITING, "a process that does not wait was woken");
	uint64_t wait = ld_rlx(&p->wait);
	if (unlikely(wait >> HD__WAIT_BITS != 0)) {
		st_rlx(&p->wait, hd__outcome(wait));
		hd__timers_forget(&w->timers);
	}
}

/* p's wait is over, and it is suspended, or (`for_good`) will never run again. Inside its home's lane; no locks are held (a hook of
 * sched/). */
void hd__wait_stalled(struct hd_worker *w, struct hd_process *p, bool for_good);

/* What p, which is about to wait, waits for: a descriptor, or the address of a queue; 0: neither (a hook of sched/). */
uint64_t hd__waits_for(const struct hd_process *p);

/* Then it is ready. */
static inline void hd__wake_here(struct hd_worker *w, struct hd_process *p)
{
	hd__end_wait(w, p);
	hd__make_ready(w, p);
}

/* Ends the wait of a process that hd__waitq_claim_here has claimed, and the call of the runner, which has released the lock; w->chores is 0.
 * Returns 0. */
int hd__wake_and_leave(struct hd_worker *w, struct hd_process *p);

void hd__unpark_elsewhere(struct hd_worker *w, struct hd_waiter *x);

/* Ends the wait of a waiter that the caller itself has just claimed. Nothing of its queue is touched. `w` is the worker in whose
 * lane the caller is, NULL on a plain thread. */
__attribute__((always_inline)) static inline void hd__unpark_claimed(struct hd_worker *w, struct hd_waiter *x)
{
	if (likely(x->process != NULL && ld_rlx(&x->process->home) == w))
		hd__wake_here(w, x->process);
	else
		hd__unpark_elsewhere(w, x);
}

/* As hd__unpark_claimed, for a waiter that another function has claimed. */
__attribute__((always_inline)) static inline void hd__unpark(struct hd_worker *w, struct hd_waiter *x)
{
	HD_ASSERT(hd__outcome(ld_rlx(hd__wait_of(x))) != HD__WAITING, "a waiter was unparked that nobody had claimed");
	hd__unpark_claimed(w, x);
}

/* The process of x, a process's wait that the caller has claimed, comes to the lane of w, if it may, and waits there. Whether it is there. */
bool hd__come_home(struct hd_worker *w, struct hd_waiter *x);

/* Rule 9: as hd__unpark, and if the process may run at once in place of the runner, it is at home here, ready and in no queue, and returned: hd__park_as
 * or hd__yield_to switches to it. NULL: it was woken as by hd__unpark. */
struct hd_process *hd__unpark_for_hand_off(struct hd_worker *w, struct hd_waiter *x);

void hd__unpark_all(struct hd_worker *w, struct hd_waiter *chain);

/* As hd__unpark, but a process gets a note: from where a wake may be the consequence of a wake. */
void hd__unpark_later(struct hd_worker *w, struct hd_waiter *x);

/* As hd__unpark, for a process at home here that the runner hands the worker to: it is ready, and in no queue. */
static inline struct hd_process *hd__unpark_to_run(struct hd_worker *w, struct hd_waiter *x)
{
	hd__end_wait(w, x->process);
	hd__move(w, x->process, HD_READY);
	return x->process;
}

/* The exact time, for a process or a plain thread. */
static inline hd_time hd__exact_time(struct hd_worker *w)
{
	const struct hd__clock *clock = w != NULL ? w->sched->doors.clock : hd__plain_clock;
	return clock->now(clock);
}

/* Whether a deadline has passed; reads the clock only if it must. */
static inline bool hd__is_past(struct hd_worker *w, hd_time until)
{
	if (until == HD_FOREVER || until <= 0)
		return until <= 0;
	return until <= (w != NULL ? hd__clock(w->sched) : hd__plain_clock->now(hd__plain_clock));
}

/* What a request to p, in its control word, does to a wait with these rules: HD__WAITING when nothing. */
static inline enum hd__outcome hd__called_off(const struct hd_process *p, uint64_t control, unsigned rules)
{
	if (likely(!(control & (HD__DOOMED | HD__CANCEL))) || p->ending || (p->inner != NULL && p->inner->deaf))
		return HD__WAITING;
	if (control & HD__DOOMED)
		return rules & HD__NO_KILL ? HD__WAITING : HD__TERMINATED;
	return rules & HD__NO_CANCEL ? HD__WAITING : HD__CANCELLED;
}

/* The caller, outside its lane, does what was asked of it: returns 0; -ECANCELED; -ENOTSUP in a behaviour of a log; does not return when it must end. */
int hd__heed(void);

/* Whether something was asked of the runner that this call must heed; a mere try heeds nothing. A behaviour of a log may not even try. */
static inline bool hd__must_heed(struct hd_worker *w, hd_time until)
{
	if (w == NULL || likely(!(ld_rlx(&w->current->control) & (HD__DOOMED | HD__CANCEL | HD__LOGGED))))
		return false;
	return until > 0 || ld_rlx(&w->current->control) & HD__LOGGED;
}

/* As hd__heed, for a caller inside its lane, *w: it is left meanwhile, and for good if the answer is not 0. */
int hd__heed_inside(struct hd_worker **w);

/* Where a call begins that may wait: a safe point, and unless it is a mere try a cancellation point. *w is the caller's worker, its
 * lane entered; NULL on a plain thread. Returns 0; -ECANCELED, -ENOTSUP, or -EINVAL when `until` is a duration, and the lane is left; does not return
 * when the caller must end. A duration is found whether or not the call would have to sleep: the mistake shows in the first test. */
__attribute__((always_inline)) static inline int hd__begin_wait(struct hd_worker **w, hd_time until)
{
	struct hd_worker *mine = hd__self();

	if (hd__is_duration(until))
		return -EINVAL;
	if (likely(mine != NULL)) {
		hd__enter(mine);
		mine = hd__safe_point(mine);
	}
	int err = 0;
	if (unlikely(hd__must_heed(mine, until))) {
		struct hd_worker *other = mine; /* its address, not that of `mine`: the caller's can stay in a register */
		err = hd__heed_inside(&other);
		mine = other;
	}
	*w = mine;
	return err;
}

/* What a call has answered that is not the last thing that its caller does: so the caller keeps its frame meanwhile, and the stories of `heddle explore` and
 * backtraces tell in which heddle call a process is. For the rare side of a function whose usual side needs no frame. */
static inline int hd__keep_frame(int answer)
{
	__asm__ volatile("" : "+r"(answer));
	return answer;
}

/* hd__enter_call and hd__waitq_lock in one, if nothing is in the way: the caller is a process, its worker has nothing to do first, and neither its lane
 * nor q keeps it waiting. False: nothing has been done. A call that begins so and goes straight on calls no function, and so saves no
 * registers; what is unusual it leaves to functions that end the call in its place. w->chores is 0. */
__attribute__((always_inline)) static inline bool hd__enter_at_once(struct hd_worker *w, struct hd_waitq *q)
{
	if (unlikely(w == NULL || !hd__try_enter(w)))
		return false;
	if (likely((w->resched | w->chores) == 0 && hd__try_lock_told(&q->lock)))
		return true;
	hd__step_out(w);
	return false;
}

/* As hd__enter_at_once, where a call begins with a safe point; hd__begin_wait_at_once, for hd__begin_wait. */
__attribute__((always_inline)) static inline bool hd__begin_at_once(struct hd_worker *w, struct hd_waitq *q, hd_time until)
{
	if (unlikely(w == NULL || hd__is_duration(until) || !hd__try_enter(w)))
		return false;
	if (likely((ld_rlx(&w->attention) | w->resched | w->chores) == 0 && w->runq.highest <= w->running_priority &&
		   hd__try_lock_told(&q->lock)))
		return true;
	hd__step_out(w);
	return false;
}

__attribute__((always_inline)) static inline bool hd__begin_wait_at_once(struct hd_worker *w, struct hd_waitq *q, hd_time until)
{
	return likely(w != NULL && !hd__must_heed(w, HD_FOREVER)) && hd__begin_at_once(w, q, until);
}

/* Under the lock of q: the runner is about to wait there, and can be claimed when the lock is released. */
__attribute__((always_inline)) static inline void hd__waitq_join(struct hd_worker *w, struct hd_process *me, struct hd_waitq *q,
								 struct hd_waiter *x)
{
	x->process = me;
	x->home = w;
	hd__leaves_stack(me);
	hd__waitq_link(q, x, HD__LINKED);
	st_rlx(&me->waiter, x);
}

/* What hd__park returns when the wait of `me`, outside its lane, has not been granted. */
int hd__wait_failed(struct hd_process *me, enum hd__outcome outcome);

/* The wait of `me` is over, and it runs again, inside the lane of w: leaves the lane. Returns what hd__park does. */
__attribute__((always_inline)) static inline int hd__awake(struct hd_worker *w, struct hd_process *me)
{
	st_rlx(&me->waiter, NULL);
	hd__leave(w);
	enum hd__outcome outcome = hd__outcome(ld_acq(&me->wait)); /* pairs with hd__decide's release */
	return likely(outcome == HD__GRANTED) ? 0 : hd__wait_failed(me, outcome);
}

/* As hd__begin_wait, if the caller is a process, and nothing is in the way: its lane is entered. False: nothing has been done. */
__attribute__((always_inline)) static inline bool hd__begin_quietly(struct hd_worker *w, hd_time until)
{
	if (unlikely(w == NULL || hd__must_heed(w, HD_FOREVER) || hd__is_duration(until) || !hd__try_enter(w)))
		return false;
	if (likely((ld_rlx(&w->attention) | w->resched) == 0 && w->runq.highest <= w->running_priority))
		return true;
	hd__step_out(w);
	return false;
}

/* A new deadline of the runner, inside its lane: what is to be put into its wait word. The worker has a chore then, perhaps. */
uint64_t hd__set_deadline(struct hd_worker *w, struct hd_process *me, hd_time until);

/* Right after hd__begin_wait. Waits in `q`, whose lock the caller holds, and releases it when the caller can be claimed. `w` is
 * the caller's worker, whose lane is entered, NULL on a plain thread; afterwards it may be another, and no lane is entered. Returns 0 when granted, -ETIMEDOUT, -EPIPE when closed, -ECANCELED; does not return when
 * the caller must end, unless the kind of wait has something to put in order first: then it is -ECANCELED too, and hd__heed
 * follows. */
int hd__park(struct hd_worker *w, struct hd_waitq *q, hd_time until, enum hd_wait why);

/* As hd__park, for time alone. */
int hd__park_for_time(struct hd_worker *w, hd_time until, enum hd_wait why);

/* As hd__park, at any time, with a record of the caller's, zeroed but for the primitive's own fields. If it ends in any other way than by a claim, x->ops->left
 * is called before the caller runs again. `next`, from hd__take_for_hand_off and its like, runs meanwhile; or NULL. */
int hd__park_as(struct hd_worker *w, struct hd_waiter *x, struct hd_waitq *q, hd_time until, enum hd_wait why,
		struct hd_process *next);

/* The runner, a machine, waits from now on, without a record and soon without a stack: until the thread that has claimed its wait (hd__decide_bare) unparks
 * it, or the time has come. It has looked whether it must wait. */
void hd__wait_bare(struct hd_worker *w, hd_time until, enum hd_wait why);

/* As hd__decide_locked, hd__unpark and hd__unpark_for_hand_off, of a process that waits so. */
static inline bool hd__decide_bare(struct hd_worker *w, struct hd_process *p, enum hd__outcome outcome)
{
	struct hd_waiter x;

	x.process = p;
	x.several = false;
	return hd__decide_locked(w, &x, outcome);
}

void hd__unpark_bare_elsewhere(struct hd_worker *w, struct hd_process *p);
static inline void hd__unpark_bare(struct hd_worker *w, struct hd_process *p)
{
	if (likely(ld_rlx(&p->home) == w))
		hd__wake_here(w, p);
	else
		hd__unpark_bare_elsewhere(w, p);
}

static inline struct hd_process *hd__unpark_bare_for_hand_off(struct hd_worker *w, struct hd_process *p)
{
	struct hd_waiter x = { .process = p };
	return hd__unpark_for_hand_off(w, &x);
}

/* Waits in several queues, for a process: hd__waits_begin, then hd__waits_join with a record with `several` in each, under its lock, and
 * without any call in between that is a safe point; then hd__park_several, unless hd__waits_decide says that the wait is the caller's own
 * to end. Afterwards the caller takes the records out, and says hd__waits_end. */
void hd__waits_begin(struct hd_process *me);
void hd__waits_join(struct hd_process *me, struct hd_waitq *q, struct hd_waiter *x);
void hd__waits_end(struct hd_process *me);
static inline bool hd__waits_decide(struct hd_process *me)
{
	return hd__decide(&me->wait, HD__GRANTED);
}
int hd__park_several(struct hd_worker *w, hd_time until, enum hd_wait why); /* HD__HEEDS_LATER */

/* p goes on: what it waited for, and what was asked of it, has happened before (a hook of sched/, if hd__tells). */
void hd__wait_learn(struct hd_process *p);

/* The deadline of p's wait with this number has come, and left the heap of w, inside whose lane the caller is (a hook of sched/). */
void hd__wait_expired(struct hd_worker *w, struct hd_process *p, uint64_t number);

/* Ends p's wait otherwise (cancelled, terminated), if nothing else has ended it. Inside its home's lane; no locks are held. */
void hd__wait_end(struct hd_worker *w, struct hd_process *p, enum hd__outcome outcome);

/* p will never run again: ends its wait, also if it was claimed and moved to a queue where no thread will claim it again, and takes whatever
 * records of it are left out of their queues. If p still waits then, its wake is on the way, or it is about to be moved. */
void hd__wait_abandon(struct hd_worker *w, struct hd_process *p);

#endif
