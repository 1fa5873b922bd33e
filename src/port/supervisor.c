/* port/supervisor.c - processes that start others, and start them again when they end.
 *
 * Owns:       struct supervisor: what a process that is in hd_supervise knows of its children.
 * Invariant:  a child that lives has its pid here: it is watched from its spawn on, spawning is no cancellation point, and the pid is given up
 *             when its notice has come or hd_terminate has seen it dead. So at most one process of each child lives, and the cleanup knows all.
 *             A notice with a pid that no child has is of a child that was stopped: it is dropped.
 * Locking:    none: all of it belongs to the supervising process. While that stops children it hears no cancel.
 * Callers:    processes.
 *
 *     RUNS ----- it has ended: note_end ----------> ENDED, or DUE, as hd_supervised.restart says
 *     RUNS ----- with a sibling: take_down -------> DUE, or ENDED if it is HD_RESTART_NEVER
 *     ENDED ---- with a sibling: take_down -------> DUE, unless it is HD_RESTART_NEVER
 *     DUE ------ its time has come: start_due ----> RUNS, or DUE again
 *     any ------ hd_supervisor_stop --------------> STOPPED
 *     any ------ hd_supervisor_restart -----------> RUNS, or STOPPED if it cannot be started
 *
 * What is due starts only after a wait on the port: then the notices that have arrived are known, and a cancel is heard before it starts. */
#include <errno.h>
#include <heddle/cancel.h>
#include <heddle/link.h>
#include <heddle/machine.h>
#include <heddle/runtime.h>
#include <heddle/supervisor.h>
#include <string.h>

#include "base/assert.h"
#include "os/memory.h"

#define DEFAULT_RESTARTS 3
#define DEFAULT_WITHIN HD_SEC(5)
#define DEFAULT_SHUTDOWN HD_SEC(5)
#define DEFAULT_BACKOFF_MAX HD_SEC(30)

/* Requests to a supervisor; an answer has the tag 0, or an errno. */
enum { ASK_CHILDREN = 0x68640001, ASK_STOP, ASK_RESTART };

struct child {
	hd_pid pid; /* RUNS; else 0 */
	enum hd_supervised_state state;
	unsigned starts;
	hd_time since; /* when it was last started */
	hd_time due;   /* DUE: when it is to be started */
	hd_time delay; /* how long it was waited before the last restart; 0: none yet */
};

struct supervisor {
	const struct hd_supervisor *plan;
	hd_port *port; /* notices and requests */
	bool named;    /* the port has the name */
	bool stuck;    /* a child did not end in its time */
	int restarts;  /* the plan's, or the default; of `times` */
	hd_time within, backoff_max;
	uint64_t restarted; /* times */
	hd_time *times;	    /* of the last restarts, in a ring */
	struct child children[];
};

/* ---- the plan ---- */

static bool is_sane_child(const struct hd_supervised *c)
{
	const struct hd_spawn *how = &c->how;

	return c->entry != NULL && (unsigned)c->restart <= HD_RESTART_NEVER && c->shutdown >= 0 && how->group == NULL &&
	       how->port == NULL && how->watch == NULL && !how->link;
}

static bool is_sane(const struct hd_supervisor *plan)
{
	if ((unsigned)plan->strategy > HD_REST_FOR_ONE || plan->restarts < HD_RESTARTS_NONE || plan->within < 0 ||
	    plan->backoff < 0 || plan->backoff_max < 0 || (plan->children == NULL && plan->count > 0))
		return false;
	if (plan->restarts > HD_RESTARTS_MAX && plan->restarts != HD_RESTARTS_UNLIMITED)
		return false;
	for (size_t i = 0; i < plan->count; i++)
		if (!is_sane_child(&plan->children[i]))
			return false;
	return true;
}

/* NULL: no memory. */
static struct supervisor *new_supervisor(const struct hd_supervisor *plan)
{
	int restarts = plan->restarts != 0 ? plan->restarts : DEFAULT_RESTARTS;
	size_t size, ring = restarts > 0 && restarts <= HD_RESTARTS_MAX ? (size_t)restarts * sizeof(hd_time) : 0;

	if (__builtin_mul_overflow(plan->count, sizeof(struct child), &size) ||
	    __builtin_add_overflow(size, sizeof(struct supervisor) + ring, &size))
		return NULL;
	struct supervisor *s = hd__os_alloc(size);
	if (s == NULL)
		return NULL;
	s->plan = plan;
	s->restarts = restarts;
	s->within = plan->within != 0 ? plan->within : DEFAULT_WITHIN;
	s->backoff_max = plan->backoff_max != 0 ? plan->backoff_max : DEFAULT_BACKOFF_MAX;
	s->times = (hd_time *)&s->children[plan->count];
	return s;
}

/* ---- starting and stopping ---- */

static int start(struct supervisor *s, size_t i)
{
	const struct hd_supervised *plan = &s->plan->children[i];
	struct child *c = &s->children[i];
	struct hd_spawn how = plan->how;

	how.watch = s->port;
	how.detached = true;
	if (how.name == NULL)
		how.name = plan->name;
	bool machine = how.machine != NULL;
	void *self = machine ? plan->entry(plan->arg) : plan->arg;
	hd_pid pid = machine && self == NULL ? -ENOMEM : hd_spawn_with(&how, plan->entry, self);
	c->since = hd_now();
	if (pid < 0 && machine && self != NULL && how.machine->drop != NULL)
		how.machine->drop(self);
	if (pid < 0)
		return (int)pid;
	c->pid = pid;
	c->state = HD_SUPERVISED_RUNS;
	c->starts++;
	return 0;
}

/* Terminates the child, if it runs, and waits for its end. The caller does not hear cancels. */
static void stop(struct supervisor *s, size_t i)
{
	const struct hd_supervised *plan = &s->plan->children[i];
	hd_pid pid = s->children[i].pid;

	if (pid == 0)
		return;
	hd_time shutdown = plan->shutdown;
	if (shutdown == 0)
		shutdown = plan->entry == hd_supervisor_entry ? HD_FOREVER : DEFAULT_SHUTDOWN;
	if (hd_terminate(pid, shutdown == HD_FOREVER ? HD_FOREVER : hd_after(shutdown)) == -ETIMEDOUT) {
		s->stuck = true;
		hd__complain("heddle: the child %s, process %lld, of the supervisor %lld was terminated %.3f s ago and has not "
			     "ended: "
			     "it may have disabled cancellation\n",
			     plan->name != NULL ? plan->name : "without a name", (long long)pid, (long long)hd_self(),
			     (double)shutdown / 1e9);
	}
	s->children[i].pid = 0;
	s->children[i].state = HD_SUPERVISED_ENDED;
}

/* Stops children from..to - 1, the last one first. */
static void stop_range(struct supervisor *s, size_t from, size_t to)
{
	int before = hd_set_cancel_state(HD_CANCEL_DISABLED);

	while (to > from)
		stop(s, --to);
	hd_set_cancel_state((enum hd_cancel_state)before);
}

/* ---- restarts ---- */

/* Whether one more restart, now, is allowed; counts it. */
static bool may_restart(struct supervisor *s, hd_time now)
{
	if (s->restarts == HD_RESTARTS_UNLIMITED)
		return true;
	if (s->restarts == HD_RESTARTS_NONE)
		return false;
	hd_time *oldest = &s->times[s->restarted % (uint64_t)s->restarts];
	if (s->restarted >= (uint64_t)s->restarts && now - *oldest <= s->within)
		return false;
	*oldest = now;
	s->restarted++;
	return true;
}

/* How long to wait before the next restart of the child. */
static hd_time next_delay(const struct supervisor *s, struct child *c, hd_time now)
{
	hd_time first = s->plan->backoff < s->backoff_max ? s->plan->backoff : s->backoff_max;

	if (c->delay == 0 || now - c->since >= s->within)
		c->delay = first;
	else
		c->delay = c->delay > s->backoff_max / 2 ? s->backoff_max : 2 * c->delay;
	return c->delay;
}

/* Child i has ended, or could not be started, and is to be started again: stops the children that share its fate, and makes them all due. Returns
 * 0, or why the supervisor gives up. */
static int take_down(struct supervisor *s, size_t i)
{
	enum hd_strategy strategy = s->plan->strategy;
	size_t from = strategy == HD_ONE_FOR_ALL ? 0 : i, to = strategy == HD_ONE_FOR_ONE ? i + 1 : s->plan->count;
	hd_time now = hd_now();

	if (!may_restart(s, now))
		return -ENOTRECOVERABLE;
	hd_time delay = next_delay(s, &s->children[i], now), due = delay > 0 ? hd_after(delay) : now;
	stop_range(s, from, to);
	if (s->stuck)
		return -ETIMEDOUT;
	for (size_t k = from; k < to; k++) {
		struct child *c = &s->children[k];
		if (c->state == HD_SUPERVISED_STOPPED || s->plan->children[k].restart == HD_RESTART_NEVER)
			continue;
		c->state = HD_SUPERVISED_DUE;
		c->due = due; /* of all the same: they start together, in their order */
	}
	return 0;
}

/* Starts what is due, in the order of the table. Returns 0, or why the supervisor gives up. */
static int start_due(struct supervisor *s)
{
	hd_time now = hd_now();

	for (size_t i = 0; i < s->plan->count; i++) {
		if (s->children[i].state != HD_SUPERVISED_DUE || s->children[i].due > now)
			continue;
		int err = start(s, i);
		if (err == -ENOMEM || err == -EAGAIN)
			return take_down(s, i) == 0 ? 0 : err;
		if (err != 0)
			return err;
	}
	return 0;
}

/* A notice has come. Returns 0, or why the supervisor gives up. */
static int note_end(struct supervisor *s, const struct hd_ended *ended)
{
	const struct hd_supervisor *plan = s->plan;
	size_t i = 0;

	while (i < plan->count && s->children[i].pid != ended->pid)
		i++;
	if (i == plan->count)
		return 0;
	s->children[i].pid = 0;
	s->children[i].state = HD_SUPERVISED_ENDED;
	if (plan->ended != NULL)
		plan->ended(&plan->children[i], &ended->end, plan->arg);
	enum hd_restart restart = plan->children[i].restart;
	if (restart == HD_RESTART_NEVER || (restart == HD_RESTART_ON_FAILURE && ended->end.kind == HD_END_RETURNED))
		return 0;
	return take_down(s, i);
}

/* ---- requests ---- */

static void answer(struct hd_message *m, int err)
{
	if (hd_reply(m, -err, NULL, 0) != 0)
		return; /* the process that asked waits no more; or it hears -EPIPE, when m is dropped */
}

static void answer_children(struct supervisor *s, struct hd_message *m)
{
	size_t n = s->plan->count, size = n * sizeof(struct hd_supervised_info);
	struct hd_supervised_info *info = n > 0 ? hd__os_alloc(size) : NULL;

	if (info == NULL) {
		answer(m, n > 0 ? -ENOMEM : 0);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const struct hd_supervised *plan = &s->plan->children[i];
		const struct child *c = &s->children[i];
		if (plan->name != NULL)
			memcpy(info[i].name, plan->name, strnlen(plan->name, HD_NAME_SIZE - 1));
		info[i].pid = c->pid;
		info[i].state = c->state;
		info[i].restarts = c->starts > 0 ? c->starts - 1 : 0;
	}
	if (hd_reply_move(m, 0, info, size, hd__os_free) != 0)
		hd__os_free(info);
}

static int stop_named(struct supervisor *s, const struct hd_message *m, bool again)
{
	const char *name = m->data;
	size_t i = 0, n = s->plan->count;

	if (m->size == 0 || name[m->size - 1] != 0)
		return -EINVAL;
	while (i < n && (s->plan->children[i].name == NULL || strcmp(s->plan->children[i].name, name) != 0))
		i++;
	if (i == n)
		return -ENOENT;
	stop_range(s, i, i + 1);
	s->children[i].state = HD_SUPERVISED_STOPPED;
	return s->stuck ? -ETIMEDOUT : again ? start(s, i) : 0;
}

/* A message that is no notice: a request, or one that was not meant for a supervisor. Returns 0, or why the supervisor gives up. */
static int serve(struct supervisor *s, struct hd_message *m)
{
	if (m->tag == ASK_CHILDREN)
		answer_children(s, m);
	else if (m->tag == ASK_STOP || m->tag == ASK_RESTART)
		answer(m, stop_named(s, m, m->tag == ASK_RESTART));
	return s->stuck ? -ETIMEDOUT : 0;
}

/* ---- supervising ---- */

/* When the next child is due (HD_FOREVER: none is); 0: there is nothing to wait for. */
static hd_time next_due(const struct supervisor *s)
{
	hd_time due = 0;

	for (size_t i = 0; i < s->plan->count; i++) {
		const struct child *c = &s->children[i];
		hd_time its = c->state == HD_SUPERVISED_DUE ? c->due : c->state == HD_SUPERVISED_ENDED ? 0 : HD_FOREVER;
		if (its != 0 && (due == 0 || its < due))
			due = its;
	}
	return due;
}

/* Receives one message, and starts what is due. Returns 0, or why the supervisor gives up. */
static int turn(struct supervisor *s, hd_time due)
{
	struct hd_message m;
	int err = hd_receive(s->port, &m, due);

	if (err == -ETIMEDOUT)
		return start_due(s);
	if (err != 0)
		return err;
	bool notice = m.tag == HD_TAG_ENDED;
	err = notice ? note_end(s, m.data) : serve(s, &m);
	hd_message_drop(&m);
	return err != 0 || notice ? err : start_due(s); /* requests do not hold up what is due; of notices there is an end */
}

static int run(struct supervisor *s)
{
	int err = 0;

	if (s->plan->name != NULL) {
		err = hd_register(s->plan->name, s->port);
		s->named = err == 0;
	}
	for (size_t i = 0; i < s->plan->count && err == 0; i++)
		err = start(s, i);
	for (hd_time due; err == 0 && (due = next_due(s)) != 0;)
		err = turn(s, due);
	return err;
}

/* Stops all children, and ends what the supervisor has: in hd_supervise, or as a cleanup. */
static void fini(void *arg)
{
	struct supervisor *s = arg;
	struct hd_message m;

	stop_range(s, 0, s->plan->count);
	if (s->named)
		hd_unregister(s->plan->name);
	while (hd_receive(s->port, &m, 0) == 0) /* requests that have come too late: -EPIPE */
		hd_message_drop(&m);
	hd_port_release(s->port);
	hd__os_free(s);
}

int hd_supervise(const struct hd_supervisor *plan)
{
	struct hd_cleanup cleanup;

	if (hd_self() == 0)
		return -ENOTSUP;
	if (!is_sane(plan))
		return -EINVAL;
	int err = hd_test_cancel();
	if (err != 0)
		return err;
	struct supervisor *s = new_supervisor(plan);
	if (s == NULL)
		return -ENOMEM;
	s->port = hd_port_new(NULL);
	if (s->port == NULL) {
		hd__os_free(s);
		return -ENOMEM;
	}
	hd_cleanup_push(&cleanup, fini, s);
	err = run(s);
	stop_range(s, 0, plan->count);
	if (s->stuck)
		err = -ETIMEDOUT;
	hd_cleanup_pop(&cleanup, true);
	return err;
}

void *hd_supervisor_entry(void *supervisor)
{
	int err = hd_supervise(supervisor);

	if (err != 0)
		hd_fail(err);
	return NULL;
}

/* ---- asking ---- */

int hd_supervisor_children(hd_port *supervisor, struct hd_supervised_info *info, size_t n, hd_time until)
{
	struct hd_message m;
	int err = hd_call(supervisor, ASK_CHILDREN, NULL, 0, &m, until);

	if (err != 0)
		return err;
	size_t count = m.size / sizeof *info;
	err = m.tag != 0 ? -(int)m.tag : (int)count;
	if (m.tag == 0 && n > 0 && count > 0)
		memcpy(info, m.data, (n < count ? n : count) * sizeof *info);
	hd_message_drop(&m);
	return err;
}

static int ask_for(hd_port *supervisor, int64_t tag, const char *child, hd_time until)
{
	struct hd_message m;
	size_t size = child == NULL ? 0 : strnlen(child, HD_NAME_SIZE) + 1;

	if (size == 0 || size > HD_NAME_SIZE)
		return -EINVAL;
	int err = hd_call(supervisor, tag, child, size, &m, until);
	if (err != 0)
		return err;
	err = -(int)m.tag;
	hd_message_drop(&m);
	return err;
}

int hd_supervisor_stop(hd_port *supervisor, const char *child, hd_time until)
{
	return ask_for(supervisor, ASK_STOP, child, until);
}

int hd_supervisor_restart(hd_port *supervisor, const char *child, hd_time until)
{
	return ask_for(supervisor, ASK_RESTART, child, until);
}
