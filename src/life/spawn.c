/* life/spawn.c - a process begins.
 *
 * Owns:       the making of a process: its block, its promise of a stack, its first state.
 * Invariant:  when spawn fails, nothing is left of it; when it succeeds, the process will end, and its end can be joined.
 * Callers:    any thread. A process spawns into its own worker's lane; a plain thread sends the new one to a worker by a note. */
#include <errno.h>
#include <heddle/machine.h>
#include <string.h>

#include "life/life.h"
#include "sched/preempt.h"

/* A process that a plain thread has sent comes to its home. */
static void apply_spawn(void *worker, struct hd_note *note)
{
	hd__make_ready(worker, (struct hd_process *)((char *)note - offsetof(struct hd_process, wake)));
}

static inline int check(const struct hd_spawn *how, const struct hd_machine_ops *machine, hd_entry entry)
{
	if (machine != NULL ? machine->interpret == NULL : entry == NULL)
		return -EINVAL;
	if (how->policy < 0 || how->policy > HD_IO)
		return -EINVAL;
	if (how->priority != 0 && (how->priority < HD__PRIORITY_MIN || how->priority > HD__PRIORITY_MAX))
		return -EINVAL;
	if (how->stack_size != 0 && hd__stack_class(how->stack_size) == 0)
		return -EINVAL;
	if (how->name != NULL && strnlen(how->name, HD_NAME_SIZE) == HD_NAME_SIZE)
		return -ENAMETOOLONG;
	return 0;
}

int hd__spawn_check(const struct hd_spawn *how, hd_entry entry)
{
	return how->own_tls && how->machine != NULL ? -EINVAL : check(how, how->machine, entry);
}

/* p has its id, or requests by that id find it. */
static inline void tell_born(struct hd__mourner *mourner, hd_pid pid)
{
	if (unlikely(mourner != NULL && mourner->ops->born != NULL))
		mourner->ops->born(mourner, pid);
}

/* From a plain thread: to an idle worker, else to one that runs less than p, else to each in turn. Requests by id find p, with this
 * control word, once it has a home. */
static void send(struct hd__sched *sched, struct hd_process *p, uint64_t control, struct hd__mourner *mourner, hd_pid pid)
{
	struct hd_worker *home = hd__some_worker(sched);

	if (!hd__is_better_there(home, p->priority))
		home = &sched->workers[add_rlx(&sched->rotor, 1) % sched->nregular];
	add_acq_rel(&sched->sent, 1);
	st_rlx(&p->home, home);
	if (hd__visit_surely(
		    home)) { /* then it is in a queue when the call returns, and workers that run less have been told */
		st_rel(&p->control, control);
		tell_born(mourner, pid);
		hd__make_ready(home, p);
		hd__unvisit(home);
		return;
	}
	st_rel(&p->control, control);
	tell_born(mourner, pid);
	p->wake.apply = apply_spawn;
	hd__post(home, &p->wake);
}

/* Of a new process, if it has no other: the runner's own, without a boost. */
static inline int default_priority(const struct hd_worker *w)
{
	return w != NULL ? HD__CONTROL_PRIORITY(ld_rlx(&w->current->control)) : HD_PRIORITY_USER;
}

/* Whether the caller is a behaviour of a log, which may make no process. The first process of all is made before there is a runner. */
static inline bool is_logged(const struct hd_worker *w)
{
	return likely(w != NULL && w->current != NULL) && ld_rlx(&w->current->control) & HD__LOGGED;
}

/* `machine`: in place of how->machine. Inlined where some of this is constant: nothing is left there of what is not asked for. */
__attribute__((always_inline)) static inline hd_pid spawn(struct hd__caller caller, const struct hd_spawn *how,
							  const struct hd_machine_ops *machine, struct hd__mourner *mourner,
							  hd_entry entry, void *arg)
{
	struct hd__sched *sched = caller.sched;
	unsigned size_class = likely(how->stack_size == 0) ? sched->stack_class : hd__stack_class(how->stack_size);
	struct hd__stacks *stacks = &sched->stacks[size_class];
	int priority = how->priority != 0 ? how->priority : default_priority(caller.w);
	bool own_tls = machine == NULL && how->own_tls;
	enum hd_policy policy = how->policy != HD_POLICY_DEFAULT ? how->policy : sched->config.policy;

	if (unlikely(ld_rlx(&sched->stopping)))
		return -ESHUTDOWN;
	if (unlikely(is_logged(caller.w)))
		return -ENOTSUP;
	if (how->priority != 0)
		hd__preempt_mix(sched, priority);
	int err = machine == NULL ? hd__stacks_promise(stacks) : 0; /* a machine's turns are lent stacks: it is promised none */
	if (unlikely(err != 0))
		return err;
	struct hd_process *p = hd__table_take(&sched->table, hd__own_blocks(caller));
	if (unlikely(p == NULL)) {
		if (machine == NULL)
			hd__stacks_unpromise(stacks);
		return -EAGAIN;
	}

	/* What hd__describe reads is stored with release: a reader that sees it also sees, in the control word, that the block
	 * is not the old process's any more. */
	st_rlx(&p->home,
	       likely(caller.w != NULL)
		       ? caller.w
		       : &sched->workers
				  [0]); /* from a plain thread any worker: send() sets its home, a stale request may read this one */
	p->pins = how->pinned | sched->config.pinned;
	p->chores = HD__START | (policy != HD_FIFO ? HD__BEGIN_QUANTUM : 0) | (own_tls ? HD__CARRY : 0);
	st_rlx(&p->priority, (uint8_t)priority);
	st_rlx(&p->lowest, (uint8_t)priority);
	p->policy = (uint8_t)policy;
	st_rlx(&p->waiter, NULL);
	st_rlx(&p->wait, 0);
	st_rel(&p->cpu_time, 0);
	st_rel(&p->switches, 0);
	p->saved_errno = 0;
	st_rlx(&p->inner, NULL);
	p->mourner = mourner;
	p->end_err = 0;
	if (machine != NULL)
		p->ops = machine;
	else
		p->entry = entry;
	p->value = arg;
	st_rel(&p->bond, how->detached ? HD__DETACHED : HD__JOINABLE);
	st_rel(&p->stack_class, (uint8_t)size_class);
	st_rel(&p->nature,
	       (uint8_t)((how->daemon ? HD__DAEMON : 0) | (machine != NULL ? HD__MACHINE : 0) | (own_tls ? HD__OWN_TLS : 0)));
	st_rlx(&p->ending, false);
	p->doom_boost = 0;
	st_rel(&p->name[0], 0);
	for (int i = 0; unlikely(how->name != NULL) && (i == 0 || how->name[i - 1] != 0); i++)
		st_rel(&p->name[i], how->name[i]); /* its length was checked */
	hd__publish(p);
	hd_pid pid = hd__pid(&sched->table, p);
	tell_born(mourner, pid);
	uint64_t control = HD__CONTROL(HD__GENERATION(pid), policy, priority, how->suspended ? HD__SUSPEND : 0);

	if (likely(caller.w != NULL)) {
		bump(&caller.w->stats.births, (uint64_t)!how->daemon); /* it counts before it can end */
		bump(&caller.w->stats.spawned, 1);
		st_rel(&p->control, control); /* published: from here on requests by id find it */
		tell_born(mourner, pid);
		/* if it has been asked to stop since then, or to go on, the nudge comes yet */
		if (unlikely(how->suspended)) {
			hd__make_suspended(caller.w, p);
		} else {
			hd__move(caller.w, p, HD_READY);
			hd__runq_append(&caller.w->runq, p);
		}
	} else {
		add_seq(&sched->births, (uint64_t)!how->daemon);
		send(sched, p, control, mourner, pid);
		if (ld_seq(&sched->stopping)) /* pairs with hd__stop, which may have doomed all others before p could be seen */
			hd__ask(caller, pid, HD__SUSPEND, HD__DOOMED, 0);
	}
	return pid;
}

/* With a port, a link or a watch: the room above does it (port/tie.c). */
static hd_pid spawn_tied(const struct hd_spawn *how, hd_entry entry, void *arg)
{
	struct hd_worker *w = hd__self();
	struct hd__sched *sched = w != NULL ? w->sched : hd__gate_enter();

	if (sched == NULL)
		return -ENXIO;
	hd_pid pid = sched->hooks.spawn_tied(sched, how, entry, arg);
	if (w == NULL)
		hd__gate_leave();
	return pid;
}

hd_pid hd__spawn_mourned(struct hd__caller caller, const struct hd_spawn *how, struct hd__mourner *mourner, hd_entry entry,
			 void *arg)
{
	int err = unlikely(how->own_tls) ? hd__own_tls_new(&mourner) : 0;

	if (unlikely(err != 0))
		return err;
	hd_pid pid = spawn(caller, how, how->machine, mourner, entry, arg);
	if (unlikely(pid < 0 && how->own_tls))
		hd__own_tls_undo(&mourner);
	return pid;
}

static const struct hd_spawn defaults;

/* Ports have a part in it (port/tie.c); ports or a group have. */
static inline bool is_tied(const struct hd_spawn *how)
{
	return ((uintptr_t)how->port | (uintptr_t)how->watch | how->link) != 0;
}

static inline bool has_company(const struct hd_spawn *how)
{
	return ((uintptr_t)how->port | (uintptr_t)how->watch | (uintptr_t)how->group | how->link) != 0;
}

hd_pid hd_spawn_with(const struct hd_spawn *how, hd_entry entry, void *arg)
{
	if (how == NULL)
		how = &defaults;
	int err = hd__spawn_check(how, entry);
	if (err != 0)
		return err;
	if (unlikely(has_company(how)))
		return is_tied(how) ? spawn_tied(how, entry, arg) : hd__group_spawn(how, NULL, entry, arg);
	struct hd__caller caller = hd__call_begin();
	if (caller.sched == NULL)
		return -ENXIO;
	hd_pid pid = hd__spawn_mourned(caller, how, NULL, entry, arg);
	hd__call_end(caller);
	return pid;
}

hd_pid hd_spawn_machine(const struct hd_spawn *how, const struct hd_machine_ops *ops, void *self)
{
	struct hd_worker *w = NULL;

	if (ops == NULL)
		return -EINVAL;
	if (how == NULL)
		how = &defaults;
	int err = check(how, ops, NULL);
	if (err != 0)
		return err;
	if (unlikely((has_company(how) | how->own_tls) || (w = hd__enter_call()) == NULL)) {
		struct hd_spawn machine = *how;
		machine.machine = ops;
		return hd_spawn_with(&machine, NULL, self);
	}
	hd_pid pid = spawn((struct hd__caller){ w, w->sched }, how, ops, NULL, NULL, self);
	hd__leave_call(w);
	return pid;
}

hd_pid hd_spawn(hd_entry entry, void *arg)
{
	if (entry == NULL)
		return -EINVAL;
	struct hd_worker *w = hd__enter_call();
	if (unlikely(w == NULL))
		return hd_spawn_with(&defaults, entry, arg);
	hd_pid pid = spawn((struct hd__caller){ w, w->sched }, &defaults, NULL, NULL, entry, arg);
	hd__leave_call(w);
	return pid;
}

hd_pid hd_spawn_at(int priority, hd_entry entry, void *arg)
{
	if (priority == 0)
		return -EINVAL; /* 0 means the creator's only where it was not asked for by number */
	return hd_spawn_with(&(struct hd_spawn){ .priority = priority }, entry, arg);
}

hd_pid hd__spawn_first(struct hd_worker *w, const struct hd_spawn *how, hd_entry entry, void *arg)
{
	hd_pid pid = hd__spawn_mourned((struct hd__caller){ w, w->sched }, how, NULL, entry, arg);

	if (pid > 0)
		hd__table_find(&w->sched->table, pid)->pins =
			2; /* it begins here, whatever other workers would take: see hd__is_movable */
	return pid;
}

hd_pid hd_self(void)
{
	struct hd_worker *w = hd__self();
	return w != NULL ? hd__pid(&w->sched->table, w->current) : 0;
}
