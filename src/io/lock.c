/* io/lock.c - hd_fd_lock: a process keeps its turn in a flow over several calls.
 *
 * Owns:       for each process, the list of what it has locked, which is a local of it: so whatever it has not unlocked when it ends is unlocked
 *             then. An entry may outlive its lock, if another process has closed the descriptor: its generation says so.
 * Callers:    processes. */
#include <errno.h>
#include <heddle/io.h>
#include <heddle/process.h>

#include "io/fd.h"
#include "os/memory.h"

/* What a process has locked: one flow of one descriptor. */
struct locked {
	struct locked *next;
	struct hd__flow *flow;
	uint32_t generation;
};

static void unlock_all(void *list);
static const struct hd_local locked_flows = { .destroy = unlock_all };

/* The process that has locked them ends. */
static void unlock_all(void *list)
{
	for (struct locked *l = list, *next; l != NULL; l = next) {
		next = l->next;
		hd__turn_give(l->flow, l->generation, true);
		hd__os_free(l);
	}
}

static struct locked **find(struct locked **link, const struct hd__flow *flow, uint32_t generation)
{
	while (*link != NULL && ((*link)->flow != flow || (*link)->generation != generation))
		link = &(*link)->next;
	return link;
}

/* The caller has locked the flow, or is about to. */
static int remember(struct hd__flow *flow)
{
	struct locked *first = hd_local_get(&locked_flows), *l;

	if (*find(&first, flow, flow->generation) != NULL)
		return 0;
	if ((l = hd__os_alloc(sizeof *l)) == NULL)
		return -ENOMEM;
	*l = (struct locked){ .next = first, .flow = flow, .generation = flow->generation };
	int err = hd_local_set(&locked_flows, l);
	if (err != 0)
		hd__os_free(l);
	return err;
}

static void forget(struct hd__flow *flow, uint32_t generation)
{
	struct locked *first = hd_local_get(&locked_flows), **link = find(&first, flow, generation), *l = *link;

	if (l != NULL) {
		*link = l->next;
		hd__os_free(l);
		(void)!hd_local_set(&locked_flows, first); /* it is there: no memory is needed */
	}
}

static int lock_flow(struct hd__fd *f, int fd, enum hd__way way, hd_time until)
{
	struct hd__flow *flow = hd__flow_of(f, way);
	int err = hd__turn_take(f, fd, way, until);

	if (err != 0)
		return err;
	if ((err = hd__fd_learn(f, fd)) == 0)
		err = remember(flow);
	if (err == 0)
		return hd__turn_keep(flow);
	hd__turn_pass(flow);
	return err;
}

static int unlock_flow(struct hd__fd *f, enum hd__way way)
{
	struct hd__flow *flow = hd__flow_of(f, way);
	uint32_t generation = ld_acq(&flow->generation);
	int left = hd__turn_give(flow, generation, false);

	if (left == 0)
		forget(flow, generation);
	return left < 0 ? left : 0;
}

static int begin(int fd, int flows, struct hd__fd **f)
{
	struct hd_worker *w = hd__self();
	int err;

	if (w == NULL)
		return -ENOTSUP;
	if (flows <= 0 || flows > (HD_FD_READING | HD_FD_WRITING))
		return -EINVAL;
	if (w->sched->doors.at_call != NULL)
		return hd__fd_refuse();
	*f = hd__fd_get(w->sched, fd, &err);
	return *f == NULL ? err : 0;
}

int hd_fd_lock(int fd, int flows, hd_time until)
{
	struct hd__fd *f;
	int err = begin(fd, flows, &f);

	if (err == 0 && flows & HD_FD_READING)
		err = lock_flow(f, fd, HD__READING, until);
	if (err == 0 &&
	    flows & HD_FD_WRITING) { /* in this order always: so two processes that lock both do not wait for each other */
		err = lock_flow(f, fd, HD__WRITING, until);
		if (err != 0 && flows & HD_FD_READING)
			unlock_flow(f, HD__READING);
	}
	return err;
}

int hd_fd_unlock(int fd, int flows)
{
	struct hd__fd *f;
	int err = begin(fd, flows, &f);

	if (err == 0 && flows & HD_FD_WRITING)
		err = unlock_flow(f, HD__WRITING);
	if (err == 0 && flows & HD_FD_READING)
		err = unlock_flow(f, HD__READING);
	return err;
}
