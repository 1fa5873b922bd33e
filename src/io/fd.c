/* io/fd.c - descriptors: turns, waits for the kernel, the end.
 *
 * Owns:       the table of descriptors, struct hd__fd.
 * Invariant:  an operation is on its way only in its turn; hd_close takes both turns before the number goes back to the kernel. So no
 *             system call of a process meets a number that has become another descriptor's.
 * Locking:    a flow's queue lock guards its queue, edges and end; f->lock guards which poller watches it. Order: a lane, then either;
 *             f->lock, then the queue's.
 * Callers:    processes, and plain threads where it says so; workers and the watcher with what has happened.
 *
 *      take_turn --> attempt --> (drained? wait_for_kernel --> attempt)* --> pass_turn
 *
 * A process that is woken comes to the worker that watches the descriptor; one that thieves take away several times in a row takes its
 * descriptor along (watch). So connections spread over workers as their processes do. */
#include "io/fd.h"

#include <errno.h>
#include <heddle/io.h>

#include "base/assert.h"
#include "io/ring.h"
#include "os/memory.h"
#include "sched/gate.h"

#define CHUNK 1024  /* records that are made together */
#define CHUNKS 4096 /* so there are no more than 4 million descriptors */
#define STRAYS 4    /* waits on other workers, in a row, after which the descriptor moves */

struct hd__io {
	struct hd__fd *chunks[CHUNKS]; /* NULL: none of them was used; set once, by any thread */
};

/* ---- the table ---- */

/* *place, or if it is NULL zeroed memory of that size, which any thread may be about to put there. */
static void *get_or_make(void **place, size_t size)
{
	void *there = ld_acq(place), *made;

	if (likely(there != NULL))
		return there;
	if ((made = hd__os_reserve(size, false)) == NULL)
		return NULL;
	if (cas_acq_rel(place, &there, made))
		return made;
	hd__os_unreserve(made, size); /* another thread was faster */
	return there;
}

struct hd__fd *hd__fd_get(struct hd__sched *sched, int fd, int *err)
{
	*err = -EBADF;
	if (fd < 0 || fd >= CHUNK * CHUNKS)
		return NULL;
	*err = -ENOMEM;
	struct hd__io *io = get_or_make((void **)&sched->io, sizeof *io);
	if (io == NULL)
		return NULL;
	struct hd__fd *chunk = get_or_make((void **)&io->chunks[fd / CHUNK], CHUNK * sizeof *chunk);
	if (unlikely(chunk == NULL))
		return NULL;
	if (unlikely(ld_rlx(&chunk[fd % CHUNK].how) ==
		     HD__BELL)) { /* a call that comes too late, for a number that was the program's */
		*err = -EBADF;
		return NULL;
	}
	return &chunk[fd % CHUNK];
}

void hd__fd_is_ours(struct hd__sched *sched, int fd)
{
	int err;
	struct hd__fd *f = hd__fd_get(sched, fd, &err);

	if (f != NULL)
		st_rel(&f->how, HD__BELL);
}

/* Closes what the program does not know of. */
static void close_own(struct hd__sched *sched)
{
	hd__rings_drop(sched);
	for (unsigned i = 0; i < sched->nworkers; i++)
		if (sched->workers[i].watched != NULL)
			hd__os_outside_fini(sched->workers[i].watched);
	for (int i = 0; sched->io != NULL && i < CHUNKS; i++)
		for (int k = 0; sched->io->chunks[i] != NULL && k < CHUNK; k++)
			if (sched->io->chunks[i][k].own)
				hd__os_close(i * CHUNK + k);
}

void hd__io_drop(struct hd__sched *sched)
{
	close_own(sched);
	for (unsigned i = 0; i < sched->nworkers; i++)
		hd__os_free(sched->workers[i].watched);
	for (int i = 0; sched->io != NULL && i < CHUNKS; i++)
		if (sched->io->chunks[i] != NULL)
			hd__os_unreserve(sched->io->chunks[i], CHUNK * sizeof(struct hd__fd));
	if (sched->io != NULL)
		hd__os_unreserve(sched->io, sizeof *sched->io);
}

void hd__io_forget(struct hd__sched *sched)
{
	close_own(sched);
}

/* ---- turns ---- */

/* The caller, as an owner. */
static int64_t self_of(const struct hd_worker *w)
{
	return w != NULL ? hd__pid(&w->sched->table, w->current) : -hd__os_thread_id();
}

/* Under the lock, which it releases: waits for the caller's turn, from inside its lane, which is left. */
static int wait_for_turn(struct hd_worker *w, struct hd__flow *flow, int fd, enum hd_wait why, hd_time until, unsigned rules)
{
	int64_t none = 0, me = self_of(w);

	if (cas_seq(&flow->owner, &none, me)) { /* it was passed on to none meanwhile */
		hd__waitq_unlock(&flow->waiters);
		hd__leave_quietly(w);
		return 0;
	}
	struct hd_waiter x = {
		.number = (unsigned)fd, .owner = &flow->owner, .rules = (uint8_t)rules, .data = (void *)(intptr_t)me
	};
	int err = hd__park_as(w, &x, &flow->waiters, until, why, NULL);
	return err == -EPIPE ? -EBADF : err;
}

/* Under the lock: the turn goes to the first that waits for it. Returns that one, claimed; NULL: there is none. */
static struct hd_waiter *pass_on(struct hd_worker *w, struct hd__flow *flow)
{
	struct hd_waiter *x = hd__waitq_claim(w, &flow->waiters, HD__GRANTED);

	st_rel(&flow->owner, x != NULL ? (int64_t)(intptr_t)x->data : 0); /* pairs with hd__fd_take_turn's CAS */
	return x;
}

void hd__fd_pass_turn(struct hd__flow *flow)
{
	struct hd_worker *w = hd__self();
	struct hd_waiter *x = NULL;

	hd__enter(w);
	hd__waitq_lock(&flow->waiters);
	HD_ASSERT(ld_rlx(&flow->owner) == self_of(w), "a process passed on a turn that it did not have");
	flow->busy = false;
	if (unlikely(flow->closing))
		flow->locks = 0; /* or hd_close would take the turn from the next process, which is about to pass it on */
	if (likely(flow->locks == 0))
		x = pass_on(w, flow);
	hd__waitq_unlock(&flow->waiters);
	if (x != NULL)
		hd__unpark_claimed(w, x);
	hd__leave_call(w);
}

static void forsake(struct hd__flow *flow)
{
	struct hd_waiter *x = NULL;

	if (ld_acq(&flow->owner) <= 0)
		return; /* none, or a thread's */
	hd__waitq_lock(&flow->waiters);
	if (ld_rlx(&flow->owner) > 0) {
		flow->locks = 0;
		x = pass_on(NULL, flow);
	}
	hd__waitq_unlock(&flow->waiters);
	if (x != NULL)
		hd__unpark_claimed(NULL, x);
}

void hd__io_forsake(struct hd__sched *sched)
{
	struct hd__io *io = ld_acq(&sched->io);

	for (int i = 0; io != NULL && i < CHUNKS; i++) {
		struct hd__fd *chunk = ld_acq(&io->chunks[i]);
		for (int k = 0; chunk != NULL && k < CHUNK; k++) {
			forsake(&chunk[k].reading);
			forsake(&chunk[k].writing);
		}
	}
}

void hd__io_forsake_uses(struct hd__sched *sched)
{
	struct hd__io *io = ld_acq(&sched->io);

	for (int i = 0; io != NULL && i < CHUNKS; i++) {
		struct hd__fd *chunk = ld_acq(&io->chunks[i]);
		for (int k = 0; chunk != NULL && k < CHUNK; k++)
			hd__uses_forsake(&chunk[k].uses);
	}
}

int hd__fd_keep_turn(struct hd__flow *flow)
{
	struct hd_worker *w = hd__enter_call();
	struct hd_waiter *x = NULL;

	hd__waitq_lock(&flow->waiters);
	int err = flow->closing ? -EBADF : flow->locks == UINT16_MAX ? -EAGAIN : 0;
	flow->busy = false;
	flow->locks = flow->closing ? 0 : (uint16_t)(flow->locks + (err == 0));
	if (flow->locks == 0)
		x = pass_on(w, flow);
	hd__waitq_unlock(&flow->waiters);
	if (x != NULL)
		hd__unpark_claimed(w, x);
	hd__leave_call(w);
	return err;
}

int hd__fd_give_turn(struct hd__flow *flow, uint32_t generation, bool wholly)
{
	struct hd_worker *w = hd__enter_call();
	struct hd_waiter *x = NULL;

	hd__waitq_lock(&flow->waiters);
	bool mine = ld_rlx(&flow->owner) == self_of(w) && flow->locks > 0 && flow->generation == generation;
	int left = !mine ? -EPERM : wholly ? 0 : flow->locks - 1;
	if (mine)
		flow->locks = (uint16_t)left;
	if (left == 0)
		x = pass_on(w, flow);
	hd__waitq_unlock(&flow->waiters);
	if (x != NULL)
		hd__unpark_claimed(w, x);
	hd__leave_call(w);
	return left;
}

bool hd__fd_is_another(struct hd__fd *f, uint32_t generation)
{
	hd__lock(&f->lock); /* hd_close has it from before close(2) until its marks are gone */
	hd__unlock(&f->lock);
	return ld_acq(&f->reading.generation) != generation;
}

#define CLOSING (-ESTALE) /* the call has not begun to wait, and finds the marks of hd_close */

static int take_turn(struct hd__flow *flow, int fd, enum hd__way way, hd_time until)
{
	struct hd_worker *w;
	int64_t none = 0;
	bool waited = false;
	int err = hd__begin_wait(&w, until);

	if (unlikely(err != 0))
		return err;
	int64_t me = self_of(w);
	if (likely(cas_seq(&flow->owner, &none, me))) {
		hd__leave(w);
	} else {
		hd__waitq_lock(&flow->waiters);
		if (flow->closing) {
			hd__waitq_unlock(&flow->waiters);
			hd__leave(w);
			return CLOSING;
		}
		if (ld_rlx(&flow->owner) == me) { /* it has locked the flow */
			flow->busy = true;
			hd__waitq_unlock(&flow->waiters);
			hd__leave(w);
			return 0;
		}
		waited = true;
		err = wait_for_turn(w, flow, fd, way == HD__READING ? HD_WAIT_FD_READ_TURN : HD_WAIT_FD_WRITE_TURN, until, 0);
		if (err != 0)
			return err;
	}
	if (unlikely(ld_seq(&flow->closing))) { /* pairs with begin_close: it sees the owner, or we see it */
		hd__fd_pass_turn(flow);
		return waited ? -EBADF : CLOSING;
	}
	return 0;
}

int hd__fd_take_turn(struct hd__fd *f, int fd, enum hd__way way, hd_time until)
{
	for (;;) {
		uint32_t generation = ld_acq(&f->reading.generation);
		int err = take_turn(hd__flow_of(f, way), fd, way, until);
		if (likely(err != CLOSING))
			return err;
		if (!hd__fd_is_another(f, generation))
			return -EBADF;
	}
}

/* ---- what the kernel says ---- */

static void say(struct hd_worker *w, struct hd__flow *flow, uint32_t generation)
{
	struct hd_waiter *x = NULL;

	/* If no operation is on its way, and the next one will try in any case, there is nothing to say. One that begins at this moment
	 * tries after the kernel said this. Pairs with pass_on: what the last operation found drained is visible. */
	if (ld_seq(&flow->owner) == 0 && ld_rlx(&flow->edges) + 1 != ld_rlx(&flow->drained))
		return;
	hd__waitq_lock(&flow->waiters);
	if (flow->generation == generation) {
		st_rel(&flow->edges, flow->edges + 1); /* pairs with go_on's acquire: hung_up is visible */
		if (flow->waits) {
			flow->waits = false;
			x = flow->waiters.head;
			if (!hd__waitq_claim_one(w, &flow->waiters, x, HD__GRANTED))
				x = NULL; /* its deadline, or a cancel, came first */
		}
	}
	hd__waitq_unlock(&flow->waiters);
	if (x != NULL)
		hd__unpark_claimed(w, x);
}

/* Its record was there when the descriptor was added to a set. */
static struct hd__fd *record_of(struct hd__sched *sched, const struct hd__happening *event)
{
	int fd = (int)(uint32_t)event->whose;
	return &ld_acq(&ld_acq(&sched->io)->chunks[fd / CHUNK])[fd % CHUNK]; /* pairs with get_or_make */
}

static void happened(struct hd__sched *sched, struct hd_worker *w, const struct hd__happening *event)
{
	uint32_t generation = (uint32_t)(event->whose >> 32);
	struct hd__fd *f = record_of(sched, event);

	if (unlikely(ld_rlx(&f->how) == HD__BELL)) {
		if (ld_acq(&f->poller) != 0) /* else it is an event of an earlier descriptor of that number */
			hd__ring_rang(sched, w, ld_acq(&f->poller) - 1U);
		return;
	}
	if (event->what & HD__HUNG_UP)
		st_seq(&f->hung_up,
		       true); /* before `say` looks for an owner; if it is an old event, the new descriptor is only read with more care */
	if (event->what & HD__CAN_READ)
		say(w, &f->reading, generation);
	if (event->what & HD__CAN_WRITE)
		say(w, &f->writing, generation);
	/* Pairs with prepare in io/ready.c, which asks the kernel after it has counted. */
	if (unlikely(ld_seq(&f->watching) != 0))
		hd__fd_tell(w, f, generation, HD__GRANTED);
}

/* With thousands of connections their records are not in the cache. They are fetched together, not one after the other. */
void hd__fds_happened(struct hd__sched *sched, struct hd_worker *w, const struct hd__happening *events, int n)
{
	for (int i = 0; i < n; i++)
		__builtin_prefetch(&record_of(sched, &events[i])->reading, 1);
	for (int i = 0; i < n; i++)
		happened(sched, w, &events[i]);
}

/* ---- waiting for the kernel ---- */

/* What an event says of which descriptor it tells. */
static uint64_t whose(struct hd__fd *f, int fd)
{
	return (uint64_t)ld_acq(&f->reading.generation) << 32 | (uint32_t)fd;
}

int hd__fd_watch_bell(struct hd_worker *w, int bell)
{
	int err;
	struct hd__fd *f = hd__fd_get(w->sched, bell, &err);

	if (f == NULL)
		return err;
	hd__lock(&f->lock);
	st_rlx(&f->born, true);
	st_rel(&f->poller, (uint16_t)(w->index + 1));
	st_rel(&f->how, HD__BELL);
	err = hd__poller_watch(w, bell, whose(f, bell));
	if (err != 0) {
		st_rlx(&f->born, false);
		st_rel(&f->poller, 0);
		st_rel(&f->how, HD__HOW_UNKNOWN);
	}
	hd__unlock(&f->lock);
	return err;
}

/* The set of the worker w has fd, or of another worker that has it already. */
int hd__fd_watch(struct hd_worker *w, struct hd__fd *f, int fd)
{
	unsigned mine = w->index + 1, at = ld_acq(&f->poller);
	int err;

	if (likely(at == mine && ld_rlx(&f->born))) {
		if (unlikely(ld_rlx(&f->strays) != 0))
			st_rlx(&f->strays, 0);
		return 0;
	}
	bool stays = at != 0 && (at == mine || ld_rlx(&f->strays) < STRAYS);
	if (at != mine && stays)
		bump(&f->strays, 1); /* a hint: the process that has the turn of the other flow may do so too */
	if (stays && ld_rlx(&f->born))
		return 0;
	hd__lock(&f->lock);
	at = f->poller;
	if (ld_seq(&f->reading.closing)) { /* if it is not, `forget` takes f->lock after us, and finds which set has fd */
		err = -EBADF;
	} else if (stays &&
		   at != 0) { /* is it there still? It may have been closed behind our back, and the number be another one's */
		err = hd__os_outside_add(w->sched->workers[at - 1].watched, fd, whose(f, fd));
		if (err == 0)
			st_rlx(&f->how, HD__HOW_UNKNOWN);
	} else {
		err = hd__poller_watch(w, fd, whose(f, fd));
		if (err == 0 && at != 0)
			hd__poller_unwatch(w->sched, at, fd);
		if (err == 0)
			st_rel(&f->poller, (uint16_t)mine);
		st_rlx(&f->strays, 0);
	}
	hd__unlock(&f->lock);
	if (unlikely(err == -EINVAL))
		return -EBADF; /* the program has closed it, and the number is that of the set itself */
	return err == -EEXIST ? 0 : err;
}

/* The wait for the kernel was ended otherwise. */
static void leave_head(struct hd_worker *w, struct hd_waiter *x)
{
	struct hd__flow *flow = x->data;

	(void)w;
	flow->waits = false;
	hd__waitq_unlock(&flow->waiters);
}

static const struct hd__wait_ops at_head = { .left = leave_head };

/* In the caller's turn. Returns 0 when the flow is worth a try; -ECANCELED, and hd__heed must follow. */
static int wait_for_kernel(struct hd__fd *f, struct hd__flow *flow, const struct hd__op *op, uint32_t edges, hd_time until)
{
	struct hd_worker *w = hd__self();
	int err = hd__fd_watch(w, f, op->fd);

	if (unlikely(err == -EPERM))
		st_rlx(&f->how, HD__BY_FILE); /* the kernel says that it is always ready */
	if (unlikely(err != 0))
		return err == -EPERM ? 0 : err;
	hd__enter(w);
	w = hd__safe_point(w);
	hd__waitq_lock(&flow->waiters);
	if (flow->closing || flow->edges != edges) {
		err = flow->closing ? -EBADF : 0;
		hd__waitq_unlock(&flow->waiters);
		hd__leave(w);
		return err;
	}
	flow->waits = true;
	struct hd_waiter x = {
		.ahead = true, .rules = HD__HEEDS_LATER, .ops = &at_head, .data = flow, .number = (unsigned)op->fd
	};
	st_rel(&w->outside, w->outside + 1); /* pairs with hd__awaits_outside */
	enum hd_wait by_way = op->way == HD__READING ? HD_WAIT_FD_READ : HD_WAIT_FD_WRITE;
	err = hd__park_as(w, &x, &flow->waiters, until, op->why != 0 ? op->why : by_way, NULL);
	w = hd__self();
	st_rel(&w->back, w->back + 1);
	return err == -EPIPE ? -EBADF : err;
}

/* ---- operations ---- */

static void set_nature(struct hd__fd *f, const struct hd__nature *nature)
{
	st_rlx(&f->stream, nature->stream);
	st_rlx(&f->waits[HD__READING], nature->reads_wait);
	st_rlx(&f->waits[HD__WRITING], nature->writes_wait);
	st_rel(&f->how, (uint8_t)nature->how);
}

int hd__fd_learn(struct hd__fd *f, int fd)
{
	struct hd__nature nature;

	if (likely(ld_acq(&f->how) != HD__HOW_UNKNOWN))
		return 0;
	int err = hd__os_nature(fd, &nature);
	if (err != 0)
		return err;
	hd__lock(&f->lock);
	set_nature(f, &nature);
	hd__unlock(&f->lock);
	return 0;
}

/* In the caller's turn. */
static ssize_t go_on(struct hd__fd *f, struct hd__flow *flow, struct hd__op *op, hd_time until)
{
	ssize_t done = 0, n;
	bool learned = false, last = until <= 0; /* time is up: this attempt is the last one */

	for (;;) {
		if (unlikely((n = hd__fd_learn(f, op->fd)) != 0))
			break;
		uint32_t edges = ld_acq(&flow->edges); /* pairs with say */
		enum hd__how how = ld_rlx(&f->how);
		if (unlikely(how == HD__HOW_UNKNOWN))
			continue; /* the process that has the other turn has found another descriptor there */
		bool try = flow->drained != edges + 1 || last || how == HD__BY_FILE || op->apart;
		op->offered = op->wanted;
		n = try ? op->attempt(op, how) : -EAGAIN;
		if (likely(n >= 0)) {
			done += n;
			op->wanted -= (size_t)n < op->wanted ? (size_t)n : op->wanted; /* MSG_TRUNC tells more than fitted */
			if ((size_t)n < op->offered && n > 0 && op->by_count && f->stream && !ld_seq(&f->hung_up))
				st_rlx(&flow->drained, edges + 1);
			if (!op->whole || op->wanted == 0 || n == 0)
				return done;
		} else if (n == -EAGAIN) {
			if (likely(!op->apart))
				st_rlx(&flow->drained, edges + 1);
			n = last ? -ETIMEDOUT : wait_for_kernel(f, flow, op, edges, until);
			if (n != 0 && (n != -ETIMEDOUT || last))
				break;
			last = n != 0; /* what the kernel has, but has not said yet, beats the deadline */
		} else if (n == -ENOTSOCK && !learned && !f->born) {
			learned = true; /* the number was closed behind our back, and is another one's now */
			st_rlx(&f->how, HD__HOW_UNKNOWN);
		} else if (n == -EOPNOTSUPP && ld_rlx(&f->how) == HD__BY_NOWAIT) {
			st_rlx(&f->how, hd__os_is_nonblocking(op->fd) ? HD__BY_NONBLOCK : HD__BY_THREAD);
		} else if (n != -EINTR) {
			break;
		}
	}
	op->err = (int)n;
	return done > 0 ? done : n;
}

/* A plain thread waits in the kernel, and takes no turns. */
static ssize_t do_on_thread(struct hd__op *op, hd_time until)
{
	struct pollfd ready = { .fd = op->fd, .events = op->way == HD__READING ? POLLIN : POLLOUT };
	struct hd__nature nature;
	op->until = until;
	ssize_t done = 0, n = hd__is_duration(until) ? -EINVAL : hd__os_nature(op->fd, &nature);

	while (n == 0) {
		n = op->attempt(op, nature.how);
		if (n > 0) {
			done += n;
			op->wanted -= (size_t)n < op->wanted ? (size_t)n : op->wanted;
			if (!op->whole || op->wanted == 0)
				return done;
			n = 0;
		} else if (n == 0) {
			return done;
		} else if (n == -EINTR) {
			n = 0;
		} else if (n == -EOPNOTSUPP && nature.how == HD__BY_NOWAIT) {
			nature.how = hd__os_is_nonblocking(op->fd) ? HD__BY_NONBLOCK : HD__BY_THREAD;
			n = 0;
		} else if (n == -EAGAIN) {
			n = hd__os_poll(&ready, 1, until);
			n = n > 0 || n == -EINTR ? 0 : n == 0 ? -ETIMEDOUT : n;
		}
	}
	op->err = (int)n;
	return done > 0 ? done : n;
}

int hd__fd_refuse(void)
{
	hd__complain("heddle: descriptors, signals and children cannot be simulated yet: a program that is explored can have "
		     "no I/O; call the "
		     "functions between which it happens instead\n");
	return -ENOTSUP;
}

ssize_t hd__fd_do(struct hd__op *op, hd_time until)
{
	struct hd_worker *w = hd__self();
	int err;

	if (unlikely(w == NULL))
		return do_on_thread(op, until);
	if (unlikely(w->sched->doors.at_call != NULL))
		return hd__fd_refuse();
	struct hd__fd *f = hd__fd_get(w->sched, op->fd, &err);
	if (unlikely(f == NULL))
		return err;
	struct hd__flow *flow = hd__flow_of(f, op->way);
	op->f = f;
	op->until = until;
	err = hd__fd_take_turn(f, op->fd, op->way, until);
	if (unlikely(err != 0))
		return err;
	ssize_t n = go_on(f, flow, op, until);
	hd__fd_pass_turn(flow);
	if (unlikely(n == -ECANCELED))
		hd__heed(); /* does not return if the caller must end */
	return n;
}

/* ---- the end of a descriptor ---- */

/* From now on operations that wait, or begin, answer -EBADF. False: another process or thread does it. */
static bool begin_close(struct hd_worker *w, struct hd__flow *flow)
{
	hd__waitq_lock(&flow->waiters);
	bool first = !flow->closing;
	st_seq(&flow->closing, true); /* pairs with hd__fd_take_turn */
	flow->waits = false;
	if (first)
		hd__waitq_serve_all(w, &flow->waiters, HD__CLOSED, NULL); /* which unlocks */
	else
		hd__waitq_unlock(&flow->waiters);
	return first;
}

/* Waits for the end of the operation that is on its way; it does not wait for the kernel, so that is soon. A process that has locked
 * the flow and is in no operation loses it: the turn is the caller's. */
static void take_last_turn(struct hd_worker *w, struct hd__flow *flow, int fd)
{
	hd__waitq_lock(&flow->waiters);
	bool idle = ld_rlx(&flow->owner) == self_of(w) || (flow->locks > 0 && !flow->busy);
	if (idle) {
		flow->locks = 0;
		st_rel(&flow->owner, self_of(w));
		hd__waitq_unlock(&flow->waiters);
		hd__leave_quietly(w);
	} else {
		HD_ASSERT(wait_for_turn(w, flow, fd, HD_WAIT_FD_CLOSE, HD_FOREVER, HD__NO_CANCEL | HD__NO_KILL) == 0,
			  "hd_close could not wait for an operation");
	}
}

static void begin_anew(struct hd__flow *flow)
{
	hd__waitq_lock(&flow->waiters);
	st_rel(&flow->generation, flow->generation + 1); /* pairs with `prepare` in io/ready.c */
	st_rlx(&flow->edges, 0);			 /* a late event of the old descriptor may look at these two: `say` */
	st_rlx(&flow->drained, 0);
	flow->locks = 0;
	flow->busy = false;
	st_rlx(&flow->closing, false);
	st_rel(&flow->owner, 0);
	hd__waitq_unlock(&flow->waiters);
}

/* Everything that is known of fd is forgotten, and whatever waits for it answers -EBADF; with `closes` it is closed, too. An operation that
 * begins in the middle of this finds its marks, until the number is no descriptor: if it could begin before, it would wait for what is then
 * closed, and the kernel would never tell it. The number may be given out again while f->lock is held: see be_born. On a process, outside
 * its lane, or a plain thread inside the gate. */
static int forget(struct hd__sched *sched, struct hd__fd *f, int fd, bool closes)
{
	int err = 0;

	for (int way = 0; way < 2; way++) {
		struct hd_worker *w = hd__enter_call();
		bool first = begin_close(w, hd__flow_of(f, (enum hd__way)way));
		hd__leave_quietly(w);
		if (!first)
			return CLOSING;
	}
	if (ld_seq(&f->watching) != 0) {
		struct hd_worker *w = hd__enter_call();
		hd__fd_tell(w, f, f->reading.generation, HD__CLOSED);
		hd__leave_quietly(w);
	}
	hd__uses_close(sched, &f->uses, fd);
	for (int way = 0; way < 2; way++)
		take_last_turn(hd__enter_call(), hd__flow_of(f, (enum hd__way)way), fd);
	hd__lock(&f->lock);
	hd__poller_unwatch(sched, f->poller, fd);
	st_rlx(&f->how, HD__HOW_UNKNOWN);
	st_rlx(&f->poller, 0);
	st_rlx(&f->strays, 0);
	st_rlx(&f->hung_up, false); /* a late event may set it again: the new descriptor is only read with more care */
	st_rlx(&f->stream, false);
	st_rlx(&f->born, false);
	f->own = false;
	if (closes)
		err = hd__os_close(fd);
	hd__uses_open(&f->uses);
	begin_anew(&f->writing);
	begin_anew(&f->reading); /* last: it says whether another process or thread may begin to close */
	hd__unlock(&f->lock);
	return err;
}

static bool is_known(struct hd__fd *f)
{
	return ld_acq(&f->how) != HD__HOW_UNKNOWN || ld_acq(&f->poller) != 0 || ld_acq(&f->reading.owner) != 0 ||
	       ld_acq(&f->writing.owner) != 0;
}

/* The record of fd, if there is one; else NULL, and *err is 0, or -EBADF of one that is heddle's own. */
static struct hd__fd *find_made(struct hd__sched *sched, int fd, int *err)
{
	struct hd__io *io = sched != NULL ? ld_acq(&sched->io) : NULL;

	*err = 0;
	if (io == NULL || fd < 0 || fd >= CHUNK * CHUNKS || ld_acq(&io->chunks[fd / CHUNK]) == NULL)
		return NULL;
	return hd__fd_get(sched, fd, err);
}

/* And it has been used. */
static struct hd__fd *find_known(struct hd__sched *sched, int fd)
{
	int err;
	struct hd__fd *f = find_made(sched, fd, &err);
	return f != NULL && is_known(f) ? f : NULL;
}

static struct hd__sched *begin_plain(void)
{
	struct hd_worker *w = hd__self();
	return w != NULL ? w->sched : hd__gate_enter();
}

static void end_plain(struct hd__sched *sched)
{
	if (sched != NULL && hd__self() == NULL)
		hd__gate_leave();
}

/* Whether it is known or not: its first operation may begin at this moment, or be one that takes no turn. */
static int forget_or_close(int fd, bool closes)
{
	struct hd__sched *sched = begin_plain();
	uint32_t generation;
	int err;
	struct hd__fd *f = find_made(sched, fd, &err);

	if (f == NULL)
		err = err == 0 && closes ? hd__os_close(fd) : err;
	else
		do {
			generation = ld_acq(&f->reading.generation);
			err = forget(sched, f, fd, closes);
		} while (err == CLOSING && hd__fd_is_another(f, generation));
	end_plain(sched);
	hd__pass_by();
	return err == CLOSING ? -EBADF : err;
}

int hd_fd_forget(int fd)
{
	return forget_or_close(fd, false);
}

int hd_close(int fd)
{
	return forget_or_close(fd, true);
}

/* On a process or a plain thread inside the gate. */
static void be_born(struct hd__sched *sched, int fd, const struct hd__nature *nature)
{
	int err;
	struct hd__fd *f = find_known(sched, fd);

	if (f !=
	    NULL) /* an earlier one of that number was closed by other means than hd_close; or hd_close has f->lock still */
		forget(sched, f, fd, false);
	f = hd__fd_get(sched, fd, &err);
	if (f == NULL)
		return; /* it is treated as one from elsewhere */
	hd__lock(&f->lock);
	st_rlx(&f->born, true);
	set_nature(f, nature);
	/* A process that watched a descriptor of this number in the moment of its end may have added that one to its set. */
	if (unlikely(f->poller != 0))
		hd__os_outside_add(sched->workers[f->poller - 1].watched, fd, whose(f, fd));
	hd__unlock(&f->lock);
}

int hd__fd_born_as(int fd, const struct hd__nature *nature)
{
	struct hd__sched *sched = fd >= 0 ? begin_plain() : NULL;

	if (sched != NULL)
		be_born(sched, fd, nature);
	end_plain(sched);
	return fd;
}

int hd__fd_born(int fd, enum hd__how how, bool stream)
{
	return hd__fd_born_as(fd, &(struct hd__nature){ .how = how, .stream = stream });
}

void hd__fd_born_own(int fd)
{
	struct hd__fd *f;
	int err;

	hd__fd_born(fd, HD__BY_NONBLOCK, false);
	f = hd__fd_get(hd__self()->sched, fd, &err);
	if (f != NULL)
		f->own = true;
}

int hd__fd_born_of(int fd, int parent)
{
	struct hd__sched *sched = begin_plain();
	struct hd__fd *f = find_known(sched, parent);

	if (sched != NULL)
		be_born(sched, fd, &(struct hd__nature){ .how = HD__BY_SOCKET, .stream = f != NULL && ld_rlx(&f->stream) });
	end_plain(sched);
	return fd;
}
