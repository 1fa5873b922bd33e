/* life/info.c - what processes are doing.
 *
 * Owns:      struct hd_process_info. Everything is read as it is, without stopping a process. The generation is read before
 *            and after, and what is read between with acquire (spawn stores it with release), so that a description is
 *            never of two processes.
 * Callers:   any thread; the deadlock report. */
#include <errno.h>
#include <heddle/machine.h>
#include <stdio.h>

#include "life/life.h"

const char *hd__wait_name(enum hd_wait why)
{
	static const char *const names[] = {
		[HD_WAIT_NONE] = "nothing",
		[HD_WAIT_SLEEP] = "hd_sleep",
		[HD_WAIT_SEMAPHORE] = "hd_semaphore_wait",
		[HD_WAIT_JOIN] = "hd_join",
		[HD_WAIT_SUSPEND] = "hd_suspend",
		[HD_WAIT_TERMINATE] = "hd_terminate",
		[HD_WAIT_MUTEX] = "hd_mutex_lock",
		[HD_WAIT_CONDITION] = "hd_condition_wait",
		[HD_WAIT_REENTER] = "hd_condition_wait, signalled, for the mutex",
		[HD_WAIT_READ] = "hd_rwlock_read",
		[HD_WAIT_WRITE] = "hd_rwlock_write",
		[HD_WAIT_BARRIER] = "hd_barrier_wait",
		[HD_WAIT_ONCE] = "hd_once",
		[HD_WAIT_EVENT] = "hd_event_wait",
		[HD_WAIT_WAITGROUP] = "hd_waitgroup_wait",
		[HD_WAIT_PROMISE] = "hd_promise_value",
		[HD_WAIT_PUT] = "hd_queue_put",
		[HD_WAIT_NEXT] = "hd_queue_next",
		[HD_WAIT_SELECT] = "hd_select",
		[HD_WAIT_GROUP] = "hd_group_wait",
		[HD_WAIT_REST] = "hd_group_wait, for members that were cancelled",
		[HD_WAIT_FD_READ] = "hd_read",
		[HD_WAIT_FD_WRITE] = "hd_write",
		[HD_WAIT_FD_READ_TURN] = "hd_read, for its turn",
		[HD_WAIT_FD_WRITE_TURN] = "hd_write, for its turn",
		[HD_WAIT_FD_POLL] = "hd_fd_poll",
		[HD_WAIT_FD_CLOSE] = "hd_close",
		[HD_WAIT_FILE] = "a file",
		[HD_WAIT_FILE_SYNC] = "hd_fsync",
		[HD_WAIT_FILE_LOCK] = "hd_fcntl_lock",
		[HD_WAIT_FILE_OPEN] = "hd_open",
		[HD_WAIT_BLOCKING] = "hd_blocking",
		[HD_WAIT_NAME] = "hd_getaddrinfo",
		[HD_WAIT_SIGNAL] = "hd_sigwait",
		[HD_WAIT_CHILD] = "hd_waitpid",
		[HD_WAIT_RECEIVE] = "hd_receive",
		[HD_WAIT_SEND] = "hd_send",
		[HD_WAIT_CALL] = "hd_call",
		[HD_WAIT_COWN] = "hd_when, for its cowns",
		[HD_WAIT_QUIESCE] = "hd_quiesce",
	};
	return names[why];
}

bool hd__edge_of(struct hd__sched *sched, struct hd_process *p, struct hd__edge *edge)
{
	struct hd_waiter x;
	int64_t holder;
	uint64_t control = ld_acq(&p->control);

	edge->waiter = ld_acq(&p->waiter);
	edge->switches = ld_acq(&p->switches);
	edge->timed = ld_acq(&p->wait) >> HD__WAIT_BITS != 0;
	/* Its record is on a stack that may be another's by now, and what it waits for may be gone: but then it does not wait there any
	 * more when we look again. */
	if (control & HD__DEAD || edge->waiter == NULL || !hd__os_peek(&x, edge->waiter, sizeof x))
		return false;
	edge->why = x.why;
	edge->rules = x.rules;
	if (x.owner == NULL || x.why == HD_WAIT_CONDITION || !hd__os_peek(&holder, x.owner, sizeof holder))
		return false;
	edge->holder = holder;
	return (hd__outcome(ld_acq(&p->wait)) == HD__WAITING || x.place == HD__MOVED) && ld_acq(&p->waiter) == edge->waiter &&
	       ld_acq(&p->switches) == edge->switches && HD__GENERATION(ld_acq(&p->control)) == HD__GENERATION(control) &&
	       holder != 0 && holder != hd__pid(&sched->table, p);
}

uintptr_t hd__entry_of(const struct hd_process *p)
{
	const struct hd_machine_ops *ops;
	struct hd_machine_ops copy = { .interpret = NULL };
	hd_entry entry = NULL;

	if (!(ld_rlx(&p->nature) & HD__MACHINE))
		return hd__os_peek(&entry, &p->entry, sizeof entry) ? (uintptr_t)entry : 0;
	if (!hd__os_peek(&ops, &p->ops, sizeof ops) || !hd__os_peek(&copy, ops, sizeof copy))
		return 0;
	return (uintptr_t)copy.interpret;
}

bool hd__is_owned(enum hd_wait why)
{
	return why == HD_WAIT_MUTEX || why == HD_WAIT_REENTER || why == HD_WAIT_READ || why == HD_WAIT_WRITE ||
	       why == HD_WAIT_ONCE;
}

static void read_name(const struct hd_process *p, char name[HD_NAME_SIZE])
{
	int i = 0;

	while (i < HD_NAME_SIZE - 1 && (name[i] = ld_acq(&p->name[i])) != 0)
		i++;
	name[i] = 0;
}

/* The name of a process, and whether it has ended. A free block keeps the name until it is taken: it has the next generation then, and
 * has run, until spawn stores that it has not. */
static bool find_name(struct hd__sched *sched, hd_pid pid, char name[HD_NAME_SIZE])
{
	const struct hd_process *p = hd__table_find(&sched->table, pid);
	uint64_t control = p != NULL ? ld_acq(&p->control) : 0, age = HD__GENERATION(control) - HD__GENERATION(pid);

	name[0] = 0;
	if (p == NULL || age > 1 || (age == 1 && !(control & HD__DEAD)))
		return true;
	read_name(p, name);
	bool same = HD__GENERATION(ld_acq(&p->control)) == HD__GENERATION(control);
	if (!same || (age == 1 && ld_acq(&p->switches) == 0))
		name[0] = 0;
	return !same || control & HD__DEAD;
}

const char *hd__who(struct hd__sched *sched, int64_t who, char text[HD__WHO_SIZE])
{
	char name[HD_NAME_SIZE];

	if (who < 0 && -who == sched->thread)
		snprintf(text, HD__WHO_SIZE, "the thread that called hd_run");
	else if (who < 0)
		snprintf(text, HD__WHO_SIZE, "thread %lld", (long long)-who);
	if (who < 0)
		return text;
	bool ended = find_name(sched, who, name);
	unsigned slot = (unsigned)(who & (HD__SLOTS - 1));
	unsigned long long generation = HD__GENERATION(who);
	int n = snprintf(text, HD__WHO_SIZE, "%s #%u", name[0] != 0 ? name : "process", slot);
	if (generation > 1)
		n += snprintf(text + n, HD__WHO_SIZE - (size_t)n, ".%llu", generation);
	if (ended)
		snprintf(text + n, HD__WHO_SIZE - (size_t)n, ", which has ended");
	return text;
}

/* The owner of what p waits for; less than 0 is a plain thread. */
static hd_pid holder_of(struct hd__sched *sched, struct hd_process *p)
{
	struct hd__edge edge;
	return ld_acq(&p->state) == HD_WAITING && hd__edge_of(sched, p, &edge) ? edge.holder : 0;
}

/* The descriptor that p waits for; -1: none. */
static int fd_of(struct hd_process *p)
{
	struct hd_waiter x, *waiter = ld_acq(&p->waiter);
	unsigned why = ld_acq(&p->why);

	if (ld_acq(&p->state) != HD_WAITING || why < HD_WAIT_FD_READ || why > HD_WAIT_FILE_LOCK || waiter == NULL ||
	    !hd__os_peek(&x, waiter, sizeof x))
		return -1;
	return ld_acq(&p->waiter) == waiter && x.why == why ? (int)x.number : -1;
}

void hd__describe(struct hd__sched *sched, struct hd_process *p, struct hd_process_info *info)
{
	uint64_t control = ld_acq(&p->control);
	unsigned state = ld_acq(&p->state);
	unsigned size_class = ld_acq(&p->stack_class);
	char *stack = ld_acq(&p->stack);

	if (control & HD__DEAD)
		state = HD_ENDED;
	else if (state == 0) /* spawned by a plain thread, on its way to its worker */
		state = control & HD__SUSPEND ? HD_SUSPENDED : HD_READY;
	*info = (struct hd_process_info){
		.pid = hd__pid(&sched->table, p),
		.state = state,
		.suspended = control & HD__SUSPEND,
		.daemon = ld_acq(&p->nature) & HD__DAEMON,
		.detached = ld_acq(&p->bond) == HD__DETACHED,
		.priority = HD__CONTROL_PRIORITY(control),
		.policy = HD__CONTROL_POLICY(control),
		.worker = (int)ld_rlx(&p->home)->index,
		.why = state == HD_WAITING ? ld_acq(&p->why) : HD_WAIT_NONE,
		.holder = holder_of(sched, p),
		.fd = fd_of(p),
		.since = ld_acq(&p->since),
		.cpu_time = ld_acq(&p->cpu_time),
		.switches = ld_acq(&p->switches),
	};
	read_name(p, info->name);
	if (stack != NULL) {
		info->stack_size = hd__stack_size(size_class);
		info->stack_used = (size_t)(stack + info->stack_size - hd__os_lowest_resident(stack, info->stack_size));
	}
}

/* Any thread, inside no lane. */
static int describe(struct hd__sched *sched, hd_pid pid, struct hd_process_info *info)
{
	struct hd_process *p = hd__table_find(&sched->table, pid);

	if (p == NULL || !hd__alive_or_zombie(p, pid))
		return -ESRCH;
	hd__describe(sched, p, info);
	return info->pid == pid && hd__alive_or_zombie(p, pid) ? 0 : -ESRCH;
}

int hd_process_info(hd_pid pid, struct hd_process_info *info)
{
	struct hd__sched *sched = hd__look_begin();

	if (sched == NULL)
		return -ENXIO;
	int err = describe(sched, pid, info);
	hd__look_end();
	return err;
}

int hd_each_process(int (*fn)(const struct hd_process_info *info, void *arg), void *arg)
{
	struct hd__sched *sched = hd__look_begin();
	int answer = 0;

	if (sched == NULL)
		return -ENXIO;
	for (uint32_t slot = 0; answer == 0 && slot < ld_acq(&sched->table.made); slot++) {
		struct hd_process_info info;
		struct hd_process *p = &sched->table.blocks[slot];
		if (ld_acq(&p->control) & HD__DEAD && ld_rlx(&p->state) != HD_ENDED)
			continue; /* free */
		hd__pass_by();
		if (describe(sched, hd__pid(&sched->table, p), &info) == 0)
			answer = fn(&info, arg);
	}
	hd__look_end();
	return answer;
}

/* What p does, if it is there: one look, without what it waits for. */
static void count(const struct hd_process *p, hd_time now, struct hd_process_counts *counts)
{
	uint64_t control = ld_acq(&p->control);
	unsigned state = ld_acq(&p->state), why = ld_acq(&p->why), priority = ld_acq(&p->priority);
	hd_time since = ld_acq(&p->since);

	/* a block that is being given to its next process has its control word last, or had it changed meanwhile */
	if ((control & HD__DEAD && state != HD_ENDED) || state == 0 || state > HD_ENDED ||
	    HD__GENERATION(ld_acq(&p->control)) != HD__GENERATION(control))
		return;
	counts->states[state]++;
	if (state == HD_WAITING && why < HD_WAIT_KINDS)
		counts->waiting[why]++;
	if (state != HD_READY || priority > HD__PRIORITY_MAX)
		return;
	counts->ready[priority]++;
	if (now - since > counts->longest_ready)
		counts->longest_ready = now - since;
}
_Static_assert((int)HD_WAIT_QUIESCE < HD_WAIT_KINDS && HD__PRIORITY_MAX == HD_PRIORITY_TIMING, "there is room for all");

int hd_count_processes(struct hd_process_counts *counts)
{
	struct hd__sched *sched = hd__look_begin();

	if (sched == NULL)
		return -ENXIO;
	*counts = (struct hd_process_counts){ .longest_ready = 0 };
	hd_time now = ld_rlx(&sched->now);
	for (uint32_t slot = 0; slot < ld_acq(&sched->table.made); slot++) {
		count(&sched->table.blocks[slot], now, counts);
		if (slot % 1024 == 1023)
			hd__pass_by();
	}
	hd__look_end();
	return 0;
}

int hd_waiting_at(int priority, hd_pid *pids, size_t n)
{
	struct hd_worker *w = hd__self();
	size_t count = 0;

	if (w == NULL)
		return -ENOTSUP;
	if (priority < HD__PRIORITY_MIN || priority > HD__PRIORITY_MAX)
		return -EINVAL;
	hd__enter(w);
	w = hd__safe_point(w);
	hd__runq_spill(&w->runq);
	for (struct hd_process *p = hd__runq_level(&w->runq, priority)->head; p != NULL; p = p->next)
		if (count++ < n)
			pids[count - 1] = hd__pid(&w->sched->table, p);
	hd__leave(w);
	return (int)count;
}
