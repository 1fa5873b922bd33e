/* life/life.h - how processes come, go and are steered; what the rooms above need of it. */
#ifndef LIFE_LIFE_H
#define LIFE_LIFE_H

#include "sched/gate.h"
#include "wait/wait.h"

/* A caller of any kind: its worker, whose lane is entered (NULL on a plain thread), and the runtime (NULL when none runs). Every call
 * that needs a runtime and may come from any thread begins and ends with these; the end is a safe point. */
struct hd__caller {
	struct hd_worker *w;
	struct hd__sched *sched;
};
static inline struct hd__caller hd__call_begin(void)
{
	struct hd_worker *w = hd__enter_call();

	return (struct hd__caller){ w, likely(w != NULL) ? w->sched : hd__gate_enter() };
}

static inline void hd__call_end(struct hd__caller caller)
{
	if (likely(caller.w != NULL))
		hd__leave_call(caller.w);
	else if (caller.sched != NULL)
		hd__gate_leave();
}

/* As hd__call_begin and hd__call_end, for a call that the runner does not leave: a safe point, and then outside the lane. Answers the runtime; NULL
 * when none runs. */
static inline struct hd__sched *hd__look_begin(void)
{
	struct hd_worker *w = hd__self();

	hd__pass_by();
	return w != NULL ? w->sched : hd__gate_enter();
}

static inline void hd__look_end(void)
{
	if (hd__self() == NULL)
		hd__gate_leave();
}

/* The store from which the caller takes blocks and to which it returns them. */
static inline struct hd__blocks *hd__own_blocks(struct hd__caller caller)
{
	return caller.w != NULL ? &caller.w->blocks : NULL;
}

/* The first function on a process's stack (a hook of sched/). */
void hd__begin(void *process);

/* No memory for its stack: it ends without having run (a hook of sched/). */
void hd__cannot_start(struct hd_worker *w, struct hd_process *p);

/* The runner ends; it is outside its lane. Does not return, but is not said so to the compiler: it would call it where it can jump, and the processor
 * would mispredict the returns of the process that runs next (arch/x86_64/begin.S). */
void hd__end(struct hd_process *me, enum hd_end_kind kind, void *result, int err);

/* As hd__end, but the caller, on the thread of `w`, is still on its stack. Answers its worker, whose lane is entered; hd__leave_stack follows, with
 * *back, if that is not NULL. */
struct hd_worker *hd__end_on_stack(struct hd_worker *w, struct hd_process *me, enum hd_end_kind kind, void *result, int err,
				   struct hd_process **back);

/* As hd__end_on_stack, for a behaviour that returns: its lane is entered, and perhaps left meanwhile. */
struct hd_worker *hd__end_inside(struct hd_worker *w, struct hd_process *me, void *result, struct hd_process **back);

/* The runner has ended, or is a machine whose turn is over, and has put itself where it belongs: gives its stack back, and goes on with `next`, which is
 * ready and in no queue, or (NULL) with the first process. Inside the lane. Does not return. */
void hd__leave_stack(struct hd_worker *w, char *stack, unsigned size_class, struct hd_process *next);

/* The runner must not go on (a hook of sched/). Does not return. */
void hd__unwind(struct hd_process *me, enum hd_end_kind kind);

/* Runs what an ending process has pushed, and closes the groups that it has opened, the newest first. */
void hd__clean_up(struct hd_process *me);
void hd__group_close(struct hd_group *g);

/* Ends a process that has never run, or that never will again, and is in no run queue. Inside its home's lane. False when a request to
 * it is on its way: take the news, look again. */
bool hd__end_from_outside(struct hd_worker *w, struct hd_process *p, enum hd_end_kind kind, int err);

/* Spawns the first process, on a worker that does not run yet. */
hd_pid hd__spawn_first(struct hd_worker *w, const struct hd_spawn *how, hd_entry entry, void *arg);

/* Joining, in its parts: whether pid has ended, 1 or 0, with the lock of its news held and *p the process; or -errno, without. Then, under
 * the lock, it may be taken: no other caller can join it any more; and let go again. The caller that has taken it, when it has ended, collects
 * it. */
int hd__join_look(struct hd__caller caller, hd_pid pid, struct hd_process **p);
void hd__join_take_locked(struct hd_process *p);
void hd__join_let_go_locked(struct hd_process *p);
void hd__join_collect(struct hd__caller caller, struct hd_process *p, struct hd_end *end);

/* Spawns a process of whose end a mourner must hear. As hd_spawn_with, but for the checks of `how`, and no safe point. */
hd_pid hd__spawn_mourned(struct hd__caller caller, const struct hd_spawn *how, struct hd__mourner *mourner, hd_entry entry,
			 void *arg);
/* `also`: another mourner, or NULL. */
hd_pid hd__group_spawn(const struct hd_spawn *how, struct hd__mourner *also, hd_entry entry, void *arg);
int hd__spawn_check(const struct hd_spawn *how, hd_entry entry);

/* Asks something of a process, in its control word: clears and sets flags, and boosts it to a priority (0: no boost). Returns 0;
 * -ESRCH; -EALREADY when nothing would change. No safe point. */
int hd__ask(struct hd__caller caller, hd_pid pid, uint64_t clear, uint64_t set, int boost);

/* Makes pid end, for this reason, without waiting for it (hd_kill). Returns 0 or -ESRCH. No safe point. */
int hd__doom(struct hd__caller caller, hd_pid pid, int reason);

/* The waiters for a mutex of pid's, or for its answers, have changed: its home worker will find its boost anew. From a process, or a plain thread
 * inside the gate; locks may be held. */
void hd__ask_reboost(struct hd__sched *sched, hd_pid pid);

/* The runner has given up a mutex with HD_INHERIT, or come into one, or has answered: it finds its boost anew, and gives way if it must. */
void hd__boost_self(struct hd_worker *w, struct hd_process *me);

/* Locks p's news, and answers whether pid lives: then it is not over before the lock is released. By a read-modify-write of the control word, which comes before
 * the one by which a guest dies without the lock (hd__guest_dies), or after it. */
static inline bool hd__news_lock(struct hd_process *p, hd_pid pid)
{
	hd__waitq_lock(&p->news);
	return hd__alive(or_acq_rel(&p->control, 0), pid);
}

/* Whether a process that has returned has nothing in its inner block to be put in order; cleanups and groups apart. */
static inline bool hd__is_bare(const struct hd__inner *inner)
{
	return inner->locals == NULL && inner->trail == NULL;
}

void hd__locals_destroy(struct hd_process *me);

/* Thread-local storage for a process that is being spawned: *first is its first mourner, and one is added at the end. Returns 0, -ENOMEM or -ENOTSUP. And: it
 * cannot be spawned. */
int hd__own_tls_new(struct hd__mourner **first);
void hd__own_tls_undo(struct hd__mourner **first);

/* The storage of a process with HD__OWN_TLS that has not ended. */
struct hd__tls *hd__own_tls_of(const struct hd_process *p);

/* The owner for which a process waits, as long as that is so. */
struct hd__edge {
	hd_pid holder; /* less than 0: a plain thread */
	enum hd_wait why;
	unsigned rules;
	bool timed; /* not for ever */
	struct hd_waiter *waiter;
	uint64_t switches;
};
/* Whether p waits for an owner. Any thread; p may be going on this moment. */
bool hd__edge_of(struct hd__sched *sched, struct hd_process *p, struct hd__edge *edge);

void hd__describe(struct hd__sched *sched, struct hd_process *p, struct hd_process_info *info);
const char *hd__wait_name(enum hd_wait why);

/* The function that p begins with, or has its turns in; 0: p has just changed. Any thread. */
uintptr_t hd__entry_of(const struct hd_process *p);

/* Whether a wait is for something that has an owner, which alone can give it up; and not for the owner itself. */
bool hd__is_owned(enum hd_wait why);

/* What people read of a process, written into `text`: "reader #12", "process #12" when it has no name, "reader #12.3" when it is the third
 * process in its slot. An owner below 0 is a plain thread. */
#define HD__WHO_SIZE (HD_NAME_SIZE + 64)
const char *hd__who(struct hd__sched *sched, int64_t who, char text[HD__WHO_SIZE]);

#endif
