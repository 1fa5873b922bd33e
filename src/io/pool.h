/* io/pool.h - kernel threads for what would block a worker: calls of the program, of the C library and of the kernel.
 *
 * A process gives a job to the pool and waits for it, while its worker goes on. What happens when it is cancelled, terminated or out of time
 * meanwhile is the job's kind. A job that no thread has begun is taken back in any case, and never runs. */
#ifndef IO_POOL_H
#define IO_POOL_H

#include "wait/wait.h"

enum hd__job_kind {
	HD__JOB_WAITED_FOR, /* its process waits for its end, whatever comes: it uses the stack of that process */
	HD__JOB_INTERRUPTIBLE, /* as HD__JOB_WAITED_FOR, but its thread is interrupted, again and again: a system call that may block for ever answers EINTR */
	HD__JOB_STOPPABLE, /* as HD__JOB_INTERRUPTIBLE, but it hardly ever blocks for long: so it has no thread beside those of the others */
	HD__JOB_ABANDONABLE /* it has all that it uses on the heap: its process leaves at once, and the thread drops the job at its end */
};

enum hd__job_state { HD__JOB_QUEUED, HD__JOB_RUNNING, HD__JOB_DONE };

struct hd__job {
	void (*run)(struct hd__job *job); /* on a thread of the pool */
	void (*drop)(
		struct hd__job *
			job); /* ABANDONABLE: frees it. Else, or NULL: undoes it, if the runtime has ended over it. On any thread */
	enum hd__job_kind kind;
	int stop; /* INTERRUPTIBLE, STOPPABLE: 0; -ECANCELED, -ETIMEDOUT, -EBADF: it should end soon. Written under the lock, read by the job (hd__job_stop) */
	unsigned number; /* of the descriptor that it is about, for hd_process_info */

	/* the pool's, under its lock */
	enum hd__job_state state;
	bool left;		  /* ABANDONABLE: its process has left */
	bool forsaken;		  /* the runtime has ended over it: its process is gone, but for its stack, which is kept */
	struct hd__job *next;	  /* QUEUED, or forsaken */
	struct hd_waiter *waiter; /* its process waits; NULL: not yet, or not any more */
	struct hd_process *process;
	struct hd__kept kept;
};

/* Runs the job on a thread of the pool, and waits for its end; on a plain thread it is a mere call. The caller is outside its lane, and has
 * passed its cancellation point. Returns 0 when the job has run; -ETIMEDOUT or -ECANCELED when it has not, and never will, or (ABANDONABLE)
 * the caller has left it; -EAGAIN or -ENOMEM when there is no thread for it and none can be had. Does not return when the caller must end,
 * unless the job has run. An ABANDONABLE job is the caller's again only if the answer is 0. */
int hd__pool_run(struct hd__job *job, hd_time until, enum hd_wait why);

/* As hd__pool_run, but it returns in any case: if the answer is -ECANCELED, hd__heed must follow, once the caller has put in order what it
 * must. */
int hd__pool_run_heeds_later(struct hd__job *job, hd_time until, enum hd_wait why);

/* Runs a WAITED_FOR job, and waits for its end, whatever comes: no cancellation point. If there is no thread for it, the caller's runs it. On a process. */
void hd__pool_run_to_its_end(struct hd__job *job, enum hd_wait why);

/* An INTERRUPTIBLE or STOPPABLE job, which has not ended, should end soon; its thread is interrupted. That may come just before its system call, and be
 * lost: so it is said again, until the job ends. Any thread. */
void hd__pool_interrupt(struct hd__pool *pool, struct hd__job *job, int why);

/* Why the calling job should end soon: -ECANCELED, -ETIMEDOUT, -EBADF; 0: it should not. */
static inline int hd__job_stop(const struct hd__job *job)
{
	return ld_acq(&job->stop);
}

struct hd__pool;

/* NULL: no memory. */
struct hd__pool *hd__pool_new(unsigned threads_max);

/* Whether a process waits for a job; *jobs counts the jobs that there ever were. If so, a worker is told (HD__LOOK) when a job is over. Any
 * thread. */
bool hd__pool_is_busy(struct hd__pool *pool, uint64_t *jobs);

/* How many threads it has, but for one that is about to end. Any thread. */
int hd__pool_threads(struct hd__pool *pool);

/* The workers have run for the last time, and the processes that are left are about to be abandoned: no job begins any more, and the stacks
 * that running jobs may use are kept. */
void hd__pool_forsake(struct hd__sched *sched);

/* All processes and stacks are gone. Waits for the threads that are idle; one that is in a job touches nothing of the runtime any more,
 * and ends after it. */
void hd__pool_end(struct hd__pool *pool);

/* In a forked child: a thread of the pool that finds itself there ends, and the child with it. */
void hd__pool_forget(void);

#endif
