/* io/pool.c - kernel threads that run jobs.
 *
 *   hd__pool_run                a thread                                  the process
 *   QUEUED ------------------> RUNNING ------------------> DONE           goes on, if it waits
 *      |                          |
 *      | called off: `left`       +-- called off, WAITED_FOR: it waits on
 *      v                          +-- called off, INTERRUPTIBLE, STOPPABLE: it waits on, and interrupts the thread every now and then
 *   the process takes it back     +-- called off, ABANDONABLE: it leaves; the thread drops the job
 *                                 +-- the runtime ends: forsaken; the thread undoes the job, and unmaps its stack
 *
 * Owns:       the threads, and every job from hd__pool_run to its end.
 * Invariant:  jobs begin in the order in which they came. A job is queued only if a thread will come for it. The threads
 *             that are not in an INTERRUPTIBLE job are at most threads_max: what may block for ever takes no thread from the others, or a
 *             process that would let it go on (by unlocking a file, say) might wait behind it.
 * Locking:    one lock, of the queue in which the processes wait. It is held while a thread is started: so its handle is known before the
 *             thread can be found, and a job is not queued for a thread that does not come. Taken inside a lane (`left`) and outside;
 *             stacks' locks below it.
 * Callers:    processes, and the pool's own threads; rt/ at the beginning and the end. */
#include "io/pool.h"

#include <errno.h>
#include <heddle/runtime.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/assert.h"
#include "os/futex.h"
#include "os/interrupt.h"
#include "os/memory.h"
#include "os/thread.h"
#include "sched/gate.h"

#define IDLE_MAX HD_SEC(5)   /* a thread that had no job for so long ends */
#define PAUSE_MIN HD_US(100) /* between two interrupts of a job */
#define PAUSE_MAX HD_MS(50)

struct thread {
	struct hd__pool *pool;
	struct hd__thread thread;
	struct thread *next, *next_idle;
	struct hd__job *job; /* that it runs; NULL: none */
	bool detached;	     /* no thread will join it */
	uint32_t called;     /* 1: it should look for a job. Written under the lock, release; it sleeps on it */
};

struct hd__pool {
	struct hd_waitq waiters; /* its lock is the pool's */
	unsigned threads_max;
	struct hd__job *first, *last; /* QUEUED */
	struct thread *threads;	      /* all */
	struct thread *idle;	      /* of these, the one that became idle last comes first: so the others may end */
	struct thread *ended;	      /* not in `threads` any more, and to be joined; or NULL */
	unsigned count;		      /* of threads */
	unsigned endless;	      /* INTERRUPTIBLE jobs, queued and running */
	uint64_t jobs;		      /* ever */
	uint64_t pending; /* jobs for which a process waits; less by one after it was woken. Any thread, atomically */
	bool asked;	  /* a worker that is about to sleep has found some pending; any thread, seq_cst with `pending` */
	bool over;	  /* hd__pool_forsake: no job begins */
	bool gone;	  /* hd__pool_end: the stacks of the runtime are unmapped, but for those that were kept */
	struct hd__job *forsaken; /* in the order in which they were forsaken; from `gone` on, not used any more */
	unsigned users;		  /* hd__pool_end and detached threads: the last one frees the pool */
};

static unsigned forks; /* of which this is the child; constant while threads run */

static void lock(struct hd__pool *pool)
{
	hd__lock(&pool->waiters.lock); /* what a job and its process tell each other, they tell by hd__publish(job) */
}

static void unlock(struct hd__pool *pool)
{
	hd__waitq_unlock(&pool->waiters);
}

struct hd__pool *hd__pool_new(unsigned threads_max)
{
	struct hd__pool *pool = hd__os_alloc(sizeof *pool);

	if (pool != NULL) {
		pool->threads_max = threads_max;
		pool->users = 1;
	}
	return pool;
}

static void release_locked(struct hd__pool *pool)
{
	bool last = --pool->users == 0;

	unlock(pool);
	if (last)
		hd__os_free(pool);
}

/* ---- a thread ---- */

static struct hd__job *take_first_locked(struct hd__pool *pool)
{
	struct hd__job *job = pool->first;

	if (job != NULL) {
		pool->first = job->next;
		if (pool->first == NULL)
			pool->last = NULL;
	}
	return job;
}

/* The process that had a job may have gone on and waited for something else, and its worker may have found the pool busy, before the job was
 * taken off the account: so that worker, or another, looks again. */
static void tell_idle(struct hd__pool *pool)
{
	struct hd__sched *sched = hd__gate_enter();

	st_seq(&pool->asked, false);
	if (sched != NULL) {
		hd__raise(&sched->workers[0], HD__LOOK);
		hd__gate_leave();
	}
}

/* The job is over. Its process goes on, or is gone. The job may be gone too when this returns. */
static void settle_locked(struct hd__pool *pool, struct hd__job *job)
{
	struct hd_waiter *x = job->waiter;

	if (job->forsaken) {
		if (job->drop != NULL) {
			unlock(pool);
			job->drop(job);
			lock(pool);
		}
		job->state = HD__JOB_DONE;
		if (pool->gone) /* else hd__pool_end does it */
			hd__kept_drop(&job->kept);
		return;
	}
	if (job->left) {
		unlock(pool);
		job->drop(job);
		lock(pool);
		return;
	}
	job->state = HD__JOB_DONE;
	job->waiter = NULL;
	bool claimed = x != NULL && hd__waitq_claim_one(NULL, &pool->waiters, x, HD__GRANTED);
	unlock(pool);
	if (claimed)
		hd__unpark_elsewhere(NULL, x);
	add_seq(&pool->pending, (uint64_t)-1); /* after the wake: see hd__pool_is_busy */
	if (ld_seq(&pool->asked))
		tell_idle(pool);
	lock(pool);
}

static void run_locked(struct thread *me, struct hd__job *job)
{
	struct hd__pool *pool = me->pool;
	unsigned forks_before = forks;
	bool endless = job->kind == HD__JOB_INTERRUPTIBLE, hears = endless || job->kind == HD__JOB_STOPPABLE;

	job->state = HD__JOB_RUNNING;
	me->job = job;
	unlock(pool);
	hd__learn(job);
	if (hears)
		hd__os_interrupt_hear(true);
	job->run(job);
	if (forks != forks_before)
		exit(0); /* a forked child came back: as with threads, its last one has ended */
	if (hears)
		hd__os_interrupt_hear(false); /* a late interrupt waits for the next such job, which it does no harm */
	hd__publish(job);
	lock(pool);
	me->job = NULL;
	pool->endless -= endless;
	settle_locked(pool, job);
}

/* Sleeps until there may be a job. False: none has come for so long. */
static bool rest_locked(struct thread *me)
{
	struct hd__pool *pool = me->pool;
	hd_time until = hd__os_clock.now(&hd__os_clock) + IDLE_MAX;

	st_rlx(&me->called, 0);
	me->next_idle = pool->idle;
	pool->idle = me;
	unlock(pool);
	do
		hd__os_futex_wait(&me->called, 0, until);
	while (ld_acq(&me->called) == 0 && hd__os_clock.now(&hd__os_clock) < until); /* pairs with call_locked */
	lock(pool);
	if (ld_rlx(&me->called))
		return true;
	struct thread **link = &pool->idle;
	while (*link != me)
		link = &(*link)->next_idle;
	*link = me->next_idle;
	return false;
}

/* An idle thread looks for a job. */
static void call_locked(struct hd__pool *pool)
{
	struct thread *t = pool->idle;

	pool->idle = t->next_idle;
	st_rel(&t->called, 1); /* pairs with rest_locked */
	hd__os_futex_wake(&t->called);
}

static void join(struct thread *t)
{
	if (t != NULL) {
		hd__os_thread_join(&t->thread);
		hd__os_free(t);
	}
}

/* More threads than there may be: INTERRUPTIBLE jobs, which do not count, have ended. */
static bool is_too_many_locked(const struct hd__pool *pool)
{
	return pool->count > pool->threads_max + pool->endless;
}

static void *serve(void *arg)
{
	struct thread *me = arg, **link, *before;
	struct hd__pool *pool = me->pool;

	lock(pool);
	while (!pool->over && !is_too_many_locked(pool)) {
		struct hd__job *job = take_first_locked(pool);
		if (job != NULL)
			run_locked(me, job);
		else if (!rest_locked(me))
			break;
	}
	if (me->detached) {
		hd__os_free(me);
		release_locked(pool);
		return NULL;
	}
	if (pool->over) { /* hd__pool_end joins it */
		unlock(pool);
		return NULL;
	}
	for (link = &pool->threads; *link != me; link = &(*link)->next)
		;
	*link = me->next;
	pool->count--;
	before = pool->ended;
	pool->ended = me;
	unlock(pool);
	join(before); /* so that one at most is left */
	return NULL;
}

/* One thread more. Returns 0, -EAGAIN or -ENOMEM. */
static int start_locked(struct hd__pool *pool)
{
	struct thread *t = hd__os_alloc(sizeof *t);

	if (t == NULL)
		return -ENOMEM;
	t->pool = pool;
	int err = hd__os_thread_start(&t->thread, "heddle-pool", false, serve, t);
	if (err != 0) {
		hd__os_free(t);
		return err;
	}
	t->next = pool->threads;
	pool->threads = t;
	pool->count++;
	return 0;
}

/* ---- a process ---- */

/* Returns 0: the job is queued, and a thread will take it; -EAGAIN or -ENOMEM. */
static int submit(struct hd__pool *pool, struct hd__job *job)
{
	bool endless = job->kind == HD__JOB_INTERRUPTIBLE;
	int err = 0;

	hd__publish(job);
	lock(pool);
	pool->endless += endless;
	if (pool->idle != NULL)
		call_locked(pool);
	else if (pool->count < pool->threads_max + pool->endless)
		err = start_locked(pool);
	if (err != 0 && pool->count <= pool->endless - endless) { /* nor may any thread ever come back for it */
		pool->endless -= endless;
		unlock(pool);
		return err;
	}
	job->state = HD__JOB_QUEUED;
	job->next = NULL;
	if (pool->last != NULL)
		pool->last->next = job;
	else
		pool->first = job;
	pool->last = job;
	st_rlx(&pool->jobs, pool->jobs + 1);
	add_acq_rel(&pool->pending, 1);
	unlock(pool);
	return 0;
}

static void take_back_locked(struct hd__pool *pool, struct hd__job *job)
{
	struct hd__job **link = &pool->first, *before = NULL;

	for (; *link != job; link = &(*link)->next)
		before = *link;
	*link = job->next;
	if (pool->last == job)
		pool->last = before;
	pool->endless -= job->kind == HD__JOB_INTERRUPTIBLE;
}

/* How a wait for a job was called off. */
enum parting { WAITS_ON, TAKEN_BACK, LEFT };

/* What a process waits for, on its stack: if it leaves the job, that may be gone. */
struct awaited {
	struct hd__job *job;
	enum parting parting;
};

/* The wait for a job was called off, or its process is abandoned. */
static void left(struct hd_worker *w, struct hd_waiter *x)
{
	struct awaited *awaited = x->data;
	struct hd__job *job = awaited->job;
	struct hd__pool *pool = (struct hd__pool *)((char *)x->queue - offsetof(struct hd__pool, waiters));

	(void)w;
	job->waiter = NULL;
	if (job->state == HD__JOB_QUEUED) {
		take_back_locked(pool, job);
		awaited->parting = TAKEN_BACK;
	} else if (job->state == HD__JOB_RUNNING && job->kind == HD__JOB_ABANDONABLE) {
		job->left = true;
		awaited->parting = LEFT;
	}
	if (awaited->parting != WAITS_ON)
		add_acq_rel(&pool->pending, (uint64_t)-1);
	unlock(pool);
}

static const struct hd__wait_ops ops = { .left = left };

/* Waits for the end of the job. Returns 0; -ETIMEDOUT, -ECANCELED, and *parting says what has become of the job. */
static int await(struct hd__pool *pool, struct hd__job *job, hd_time until, enum hd_wait why, unsigned rules,
		 enum parting *parting)
{
	struct hd_worker *w = hd__self();
	struct awaited awaited = { job, WAITS_ON };
	struct hd_waiter x = { .rules = (uint8_t)rules, .ops = &ops, .data = &awaited, .number = job->number };

	hd__enter(w);
	lock(pool);
	if (job->state == HD__JOB_DONE) {
		unlock(pool);
		hd__leave(w);
		return 0;
	}
	job->waiter = &x;
	int err = hd__park_as(w, &x, &pool->waiters, until, why, NULL);
	*parting = awaited.parting;
	return err;
}

void hd__pool_interrupt(struct hd__pool *pool, struct hd__job *job, int why)
{
	lock(pool);
	if (job->stop == 0)
		st_rel(&job->stop, why); /* pairs with hd__job_stop */
	for (struct thread *t = pool->threads; t != NULL; t = t->next)
		if (t->job == job)
			hd__os_interrupt(&t->thread);
	unlock(pool);
}

/* The wait for a job that has begun was called off, because of err: waits for its end nevertheless. An interrupt that comes just before the
 * system call is lost: so it is sent again. */
static void see_to_its_end(struct hd__pool *pool, struct hd__job *job, int err, enum hd_wait why)
{
	const unsigned rules = HD__NO_CANCEL | HD__NO_KILL;
	hd_time pause = PAUSE_MIN;
	enum parting parting;

	if (job->kind == HD__JOB_WAITED_FOR) {
		err = await(pool, job, HD_FOREVER, why, rules, &parting);
		HD_ASSERT(err == 0, "a process left a job that uses its stack");
		return;
	}
	do {
		hd__pool_interrupt(pool, job, err);
		if (pause < PAUSE_MAX)
			pause *= 2;
	} while (await(pool, job, hd_after(pause), why, rules, &parting) != 0);
}

int hd__pool_run_heeds_later(struct hd__job *job, hd_time until, enum hd_wait why)
{
	struct hd_worker *w = hd__self();
	enum parting parting;

	if (w == NULL || w->sched->doors.at_call != NULL) { /* under heddle explore there is one kernel thread */
		job->run(job);
		return 0;
	}
	struct hd__pool *pool = w->sched->pool;
	job->process = w->current;
	int err = until != HD_FOREVER && hd__is_past(w, until) ? -ETIMEDOUT : submit(pool, job);
	if (err != 0)
		parting = TAKEN_BACK;
	else
		err = await(pool, job, until, why, HD__HEEDS_LATER, &parting);
	if (err != 0 && parting == WAITS_ON) {
		see_to_its_end(pool, job, err, why);
		err = 0;
	}
	if (err == 0)
		hd__learn(job);
	else if (parting == TAKEN_BACK && job->kind == HD__JOB_ABANDONABLE)
		job->drop(job);
	return err;
}

int hd__pool_run(struct hd__job *job, hd_time until, enum hd_wait why)
{
	int err = hd__pool_run_heeds_later(job, until, why);

	if (err == -ECANCELED)
		hd__heed(); /* does not return when the caller must end */
	return err;
}

void hd__pool_run_to_its_end(struct hd__job *job, enum hd_wait why)
{
	struct hd_worker *w = hd__self();

	job->process = w->current;
	if (w->sched->doors.at_call != NULL || submit(w->sched->pool, job) != 0)
		job->run(job);
	else
		see_to_its_end(w->sched->pool, job, 0, why);
	hd__learn(job);
}

/* ---- the runtime ---- */

bool hd__pool_is_busy(struct hd__pool *pool, uint64_t *jobs)
{
	*jobs = ld_acq(&pool->jobs);
	if (ld_seq(&pool->pending) == 0) /* pairs with settle_locked: the processes have been woken */
		return false;
	st_seq(&pool->asked, true);
	return ld_seq(&pool->pending) != 0;
}

int hd__pool_threads(struct hd__pool *pool)
{
	lock(pool);
	int count = (int)pool->count;
	unlock(pool);
	return count;
}

void hd__pool_forsake(struct hd__sched *sched)
{
	struct hd__pool *pool = sched->pool;

	lock(pool);
	pool->over = true;
	for (struct thread *t = pool->threads; t != NULL; t = t->next) {
		struct hd__job *job = t->job;
		if (job == NULL || job->kind == HD__JOB_ABANDONABLE)
			continue;
		struct hd_process *p = job->process;
		job->forsaken = true;
		job->next = pool->forsaken;
		pool->forsaken = job;
		hd__stacks_keep(&sched->stacks[p->stack_class], &job->kept, p->stack);
		st_rlx(&p->stack, NULL);
		if (job->kind != HD__JOB_WAITED_FOR) {
			st_rel(&job->stop, -ECANCELED); /* pairs with hd__job_stop */
			hd__os_interrupt(&t->thread);
		}
	}
	unlock(pool);
}

void hd__pool_end(struct hd__pool *pool)
{
	struct thread *t, *next, *idle = NULL;

	lock(pool);
	pool->over = pool->gone = true;
	while (pool->idle != NULL)
		call_locked(pool);
	for (t = pool->threads; t != NULL; t = next) {
		next = t->next;
		if (t->job != NULL) {
			t->detached = true;
			pool->users++;
			hd__os_thread_detach(&t->thread);
		} else {
			t->next = idle;
			idle = t;
		}
	}
	for (struct hd__job *job = pool->forsaken, *following; job != NULL; job = following) {
		following = job->next;
		if (job->state == HD__JOB_DONE)
			hd__kept_drop(&job->kept);
	}
	unlock(pool);
	for (; idle != NULL; idle = next) {
		next = idle->next;
		join(idle);
	}
	join(pool->ended);
	lock(pool);
	release_locked(pool);
}

void hd__pool_forget(void)
{
	forks++;
}
