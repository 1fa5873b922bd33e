/* io/fd.c - descriptors: the table, which worker's set has one, its birth and its end.
 *
 * Owns:       the table of struct hd__fd; of each, what the poller knows.
 * Invariant:  the number goes back to the kernel when hd_close has both turns, and no use is left.
 * Locking:    f->lock guards what the poller knows, and is held from before close(2) until the marks of hd_close are gone. Order: f->lock, then
 *             the lock of a flow's queue.
 * Callers:    processes, and plain threads where it says so; workers and the watcher with what has happened.
 *
 * A process that is woken comes to the worker that watches the descriptor; one that thieves take away several times in a row takes its
 * descriptor along (hd__fd_watch). So connections spread over workers as their processes do. */
#include "io/fd.h"

#include <errno.h>
#include <heddle/io.h>

#include "base/assert.h"
#include "io/pool.h"
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
	for (unsigned i = 0; i < hd__workers(sched); i++)
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
	for (unsigned i = 0; i < hd__workers(sched); i++)
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

void hd__io_forsake(struct hd__sched *sched)
{
	struct hd__io *io = ld_acq(&sched->io);

	for (int i = 0; io != NULL && i < CHUNKS; i++) {
		struct hd__fd *chunk = ld_acq(&io->chunks[i]);
		for (int k = 0; chunk != NULL && k < CHUNK; k++) {
			hd__turn_forsake(&chunk[k].reading);
			hd__turn_forsake(&chunk[k].writing);
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

/* ---- what has happened ---- */

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
		       true); /* before hd__op_hear looks for an owner; if it is an old event, the new descriptor is only read with more care */
	if (event->what & HD__CAN_READ)
		hd__op_hear(w, &f->reading, generation);
	if (event->what & HD__CAN_WRITE)
		hd__op_hear(w, &f->writing, generation);
	/* Pairs with prepare in io/ready.c, which asks the kernel after it has counted. */
	if (unlikely(ld_seq(&f->watching) != 0))
		hd__fd_tell(w, f, generation, HD__GRANTED);
}

/* With thousands of connections neither their records are in the cache, nor the processes that wait. They are fetched some together, not one after the
 * other: first the records, then what these tell of their processes. */
#define TOGETHER 16

static void fetch(struct hd__sched *sched, const struct hd__happening *events, int n)
{
	struct hd_process *readers[TOGETHER];

	for (int i = 0; i < n; i++) {
		struct hd__fd *f = record_of(sched, &events[i]);
		__builtin_prefetch(&f->reading, 1);
		__builtin_prefetch(&f->writing, 1);
	}
	for (int i = 0; i < n; i++) {
		readers[i] = hd__table_find(&sched->table, ld_rlx(&record_of(sched, &events[i])->reading.owner));
		if (readers[i] != NULL) {
			__builtin_prefetch(readers[i], 1);
			__builtin_prefetch((char *)readers[i] + 64, 1);
		}
	}
	for (int i = 0; i < n; i++)
		if (readers[i] != NULL)
			__builtin_prefetch(ld_rlx(&readers[i]->waiter), 1);
}

void hd__fds_happened(struct hd__sched *sched, struct hd_worker *w, const struct hd__happening *events, int n)
{
	for (int i = 0; i < n; i += TOGETHER) {
		int end = n - i < TOGETHER ? n : i + TOGETHER;
		fetch(sched, events + i, end - i);
		for (int k = i; k < end; k++)
			happened(sched, w, &events[k]);
	}
}

/* ---- which set has it ---- */

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

/* ---- its nature ---- */

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

int hd__fd_refuse(void)
{
	hd__complain("heddle: descriptors, signals and children cannot be simulated yet: a program that is explored can have "
		     "no I/O; call the "
		     "functions between which it happens instead\n");
	return -ENOTSUP;
}

int hd__io_begin(hd_time until)
{
	struct hd_worker *w;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	hd__leave_quietly(w);
	return w != NULL && w->sched->doors.at_call != NULL ? hd__fd_refuse() : 0;
}

/* ---- the end of a descriptor ---- */

#define CLOSING (-ESTALE) /* another process or thread does it */

bool hd__fd_is_another(struct hd__fd *f, uint32_t generation)
{
	hd__lock(&f->lock); /* hd_close has it from before close(2) until its marks are gone */
	hd__unlock(&f->lock);
	return ld_acq(&f->reading.generation) != generation;
}

/* The last close(2) of a socket with SO_LINGER waits until what was written has arrived. The process waits for that, and a thread makes the call. */
struct lingering {
	struct hd__job job;
	int fd;
};

static void close_on_thread(struct hd__job *job)
{
	hd__os_close(((struct lingering *)job)->fd);
}

/* A second descriptor, to be closed by close_second when the number has been given back; -1: there is no need. */
static int second_if_lingers(const struct hd__fd *f, int fd)
{
	enum hd__how how = f != NULL ? ld_rlx(&f->how) : HD__HOW_UNKNOWN;
	bool may = how == HD__HOW_UNKNOWN || (how == HD__BY_SOCKET && ld_rlx(&f->stream));
	return may && hd__self() != NULL ? hd__os_dup_if_lingers(fd) : -1;
}

static void close_second(int fd, int number)
{
	struct lingering l = { .job = { .run = close_on_thread, .number = (unsigned)number }, .fd = fd };

	if (fd >= 0)
		hd__pool_run_to_its_end(&l.job, HD_WAIT_FD_CLOSE);
}

/* Everything that is known of fd is forgotten, and whatever waits for it answers -EBADF; with `closes` it is closed, too. An operation that
 * begins in the middle of this finds its marks, until the number is no descriptor: if it could begin before, it would wait for what is then
 * closed, and the kernel would never tell it. The number may be given out again while f->lock is held: see be_born. On a process, outside
 * its lane, or a plain thread inside the gate. */
static int forget(struct hd__sched *sched, struct hd__fd *f, int fd, bool closes)
{
	int err = 0, second = -1;

	for (int way = 0; way < 2; way++) {
		struct hd_worker *w = hd__enter_call();
		bool first = hd__turn_begin_close(w, hd__flow_of(f, (enum hd__way)way));
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
		hd__turn_take_last(hd__enter_call(), hd__flow_of(f, (enum hd__way)way), fd);
	if (closes)
		second = second_if_lingers(f, fd);
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
	hd__turn_begin_anew(&f->writing);
	hd__turn_begin_anew(&f->reading); /* last: it says whether another process or thread may begin to close */
	hd__unlock(&f->lock);
	close_second(second, fd);
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

	if (f == NULL && err == 0 && closes) {
		int second = second_if_lingers(NULL, fd);
		err = hd__os_close(fd);
		close_second(second, fd);
	} else if (f != NULL)
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
