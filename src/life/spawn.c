/* life/spawn.c - a process begins.
 *
 * Owns:       the making of a process: its block, its promise of a stack, its first state.
 * Invariant:  when spawn fails, nothing is left of it; when it succeeds, the process will end, and its end can be joined.
 * Callers:    any thread. A process spawns on its own worker; a plain thread sends the new one to a worker's share. */
#include <errno.h>
#include <string.h>

#include "life/life.h"

static inline bool is_loose(const struct hd_process *p, bool suspended)
{
	return !p->daemon && (p->roams == HD__MOVABLE || (p->roams == HD__UNSTARTED && suspended));
}

/* p, which counts as loose if it was spawned suspended, becomes ready or suspended. It may be somebody else's afterwards. */
static void arrive_roaming(struct hd_worker *w, struct hd_process *p, bool suspended)
{
	bool stop = hd__should_stop(ld_acq(&p->control)); /* if that is just being changed, its nudge comes yet */
	bool was_loose = is_loose(p, suspended), loose = is_loose(p, stop);

	if (loose && !was_loose)
		add_acq_rel(&w->sched->loose, 1);
	if (stop)
		hd__move(w, p, HD_SUSPENDED);
	else
		hd__resume_owner(w, p);
	if (was_loose && !loose)
		add_acq_rel(&w->sched->loose, -1);
}

static inline void arrive_at_home(struct hd_worker *w, struct hd_process *p, bool suspended)
{
	if (unlikely(p->roams)) {
		arrive_roaming(w, p, suspended);
		return;
	}
	bump(&w->counted, (uint64_t)!p->daemon);
	hd__make_ready(w, p);
}

/* From a plain thread, suspended: it is in no share, so its worker must take it in. */
static void apply_spawn(void *worker, struct hd_note *note)
{
	arrive_at_home(worker, (struct hd_process *)((char *)note - offsetof(struct hd_process, wake)), true);
}

int hd__spawn_check(const struct hd_spawn *how, hd_entry entry)
{
	if (entry == NULL || how->policy < 0 || how->policy > HD_IO)
		return -EINVAL;
	if (how->priority != 0 && (how->priority < HD__PRIORITY_MIN || how->priority > HD__PRIORITY_MAX))
		return -EINVAL;
	if (how->stack_size != 0 && hd__stack_class(how->stack_size) == 0)
		return -EINVAL;
	if (how->name != NULL && strnlen(how->name, HD_NAME_SIZE) == HD_NAME_SIZE)
		return -ENAMETOOLONG;
	return 0;
}

/* From a plain thread: to whatever worker has room. Requests by id find it, with this control word, once it has a home. */
static void send(struct hd__sched *sched, struct hd_process *p, uint64_t control, bool suspended)
{
	struct hd_worker *home;

	add_acq_rel(&sched->sent, 1);
	if (suspended) {
		home = hd__some_worker(sched);
		st_rlx(&p->home, home);
		st_rel(&p->control, control);
		p->wake.apply = apply_spawn;
		hd__post(home, &p->wake);
	} else {
		home = hd__share_send(sched, p, control);
	}
	if (ld_seq(&sched->stopping)) /* pairs with hd__stop: the worker may have looked for the last time before p came */
		hd__raise(home, HD__LOOK);
}

/* The caller's, without what it has for others' sake. */
static inline int own_priority(const struct hd_worker *w)
{
	return w->current != NULL ? HD__CONTROL_PRIORITY(ld_rlx(&w->current->control)) : HD_PRIORITY_USER;
}

static inline hd_pid spawn(struct hd__caller caller, const struct hd_spawn *how, enum hd__roaming roams,
			   struct hd__mourner *mourner, hd_entry entry, void *arg)
{
	struct hd__sched *sched = caller.sched;
	unsigned size_class = likely(how->stack_size == 0) ? sched->stack_class : hd__stack_class(how->stack_size);
	struct hd__stacks *stacks = &sched->stacks[size_class];
	int priority = how->priority != 0 ? how->priority : caller.w != NULL ? own_priority(caller.w) : HD_PRIORITY_USER;
	enum hd_policy policy = how->policy != HD_POLICY_DEFAULT ? how->policy : sched->config.policy;

	if (unlikely(ld_rlx(&sched->stopping)))
		return -ESHUTDOWN;
	int err = hd__stacks_promise(stacks);
	if (unlikely(err != 0))
		return err;
	struct hd_process *p = hd__table_take(&sched->table, hd__own_blocks(caller));
	if (unlikely(p == NULL)) {
		hd__stacks_unpromise(stacks);
		return -EAGAIN;
	}

	/* What hd__describe reads is stored with release: a reader that sees it also sees, in the control word, that the block
	 * is not the old process's any more. */
	st_rlx(&p->home, likely(caller.w != NULL) ? caller.w : &sched->workers[0]); /* if none yet: not NULL for old requests */
	st_rlx(&p->roams, roams);
	st_rlx(&p->shared, 0);
	p->chores = HD__START | (policy != HD_FIFO ? HD__BEGIN_QUANTUM : 0);
	p->priority = (uint8_t)priority;
	p->policy = (uint8_t)policy;
	p->waiter = NULL;
	st_rlx(&p->timer, 0);
	st_rel(&p->cpu_time, 0);
	st_rel(&p->switches, 0);
	p->saved_errno = 0;
	p->inner = NULL;
	p->mourner = mourner;
	p->end_err = 0;
	p->entry = entry;
	p->value = arg;
	st_rel(&p->bond, how->detached ? HD__DETACHED : HD__JOINABLE);
	st_rel(&p->stack_class, (uint8_t)size_class);
	st_rel(&p->daemon, how->daemon);
	st_rlx(&p->ending, false);
	p->doom_boost = 0;
	st_rel(&p->name[0], 0);
	for (int i = 0; unlikely(how->name != NULL) && (i == 0 || how->name[i - 1] != 0); i++)
		st_rel(&p->name[i], how->name[i]); /* its length was checked */
	hd_pid pid = hd__pid(&sched->table, p);
	uint64_t control = HD__CONTROL(HD__GENERATION(pid), policy, priority, how->suspended ? HD__SUSPEND : 0);

	if (unlikely(roams) && is_loose(p, how->suspended))
		add_acq_rel(&sched->loose, 1);
	if (likely(caller.w != NULL)) {
		st_rel(&p->control, control); /* published: from here on requests by id find it */
		bump(&caller.w->stats.spawned, 1);
		arrive_at_home(caller.w, p, how->suspended);
	} else {
		send(sched, p, control, how->suspended);
	}
	return pid;
}

/* With one worker nobody need roam, but who comes from a plain thread begins in a share. */
static inline enum hd__roaming roams(struct hd__caller caller, const struct hd_spawn *how)
{
	if (likely(caller.sched->nworkers == 1 && caller.w != NULL))
		return HD__PINNED;
	return how->movable || caller.sched->config.movable ? HD__MOVABLE : HD__UNSTARTED;
}

hd_pid hd_spawn_with(const struct hd_spawn *how, hd_entry entry, void *arg)
{
	static const struct hd_spawn defaults;

	if (how == NULL)
		how = &defaults;
	int err = hd__spawn_check(how, entry);
	if (err != 0)
		return err;
	if (how->group != NULL)
		return hd__group_spawn(how, entry, arg);
	struct hd__caller caller = hd__call_begin();
	if (caller.sched == NULL)
		return -EPERM;
	hd_pid pid = spawn(caller, how, roams(caller, how), NULL, entry, arg);
	hd__call_end(caller);
	return pid;
}

hd_pid hd__spawn_mourned(struct hd__caller caller, const struct hd_spawn *how, struct hd__mourner *mourner, hd_entry entry,
			 void *arg)
{
	return spawn(caller, how, roams(caller, how), mourner, entry, arg);
}

hd_pid hd__spawn_here(struct hd_worker *w, const struct hd_spawn *how, hd_entry entry, void *arg)
{
	return spawn((struct hd__caller){ w, w->sched }, how, HD__PINNED, NULL, entry, arg);
}

hd_pid hd_spawn(hd_entry entry, void *arg)
{
	static const struct hd_spawn defaults;

	if (entry == NULL)
		return -EINVAL;
	struct hd__caller caller = hd__call_begin();
	hd_pid pid = caller.sched != NULL ? spawn(caller, &defaults, roams(caller, &defaults), NULL, entry, arg) : -EPERM;
	hd__call_end(caller);
	return pid;
}

hd_pid hd_spawn_at(int priority, hd_entry entry, void *arg)
{
	if (priority == 0)
		return -EINVAL; /* 0 means the creator's only where it was not asked for by number */
	return hd_spawn_with(&(struct hd_spawn){ .priority = priority }, entry, arg);
}

hd_pid hd_self(void)
{
	struct hd_worker *w = hd__self();
	return w != NULL ? hd__pid(&w->sched->table, w->current) : 0;
}
