/* io/file.c - files, and other calls that may block a kernel thread.
 *
 * Owns:       nothing: a call is a system call with its arguments, on the stack of its process, made on a thread of the pool.
 * Invariant:  the process stays in its call until the system call has ended: that uses its stack, its buffers and its descriptors, which
 *             hd_close gives back only when their uses have ended (io/use.h).
 * Callers:    processes, and plain threads, on which it is a mere system call.
 *
 *      hd_pread --> use --> RWF_NOWAIT: a count -------------------------------------> end of use
 *                             | would wait, or cannot tell
 *                             +--> io_uring, or a thread: preadv --> a count, an error --^   */
#define _GNU_SOURCE
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <heddle/file.h>

#include "io/pool.h"
#include "io/ring.h"
#include "os/file.h"

#define A_MOMENT HD_MS(10) /* for what is ready, when time is up */

struct call {
	struct hd__job job;
	ssize_t (*make)(struct call *c);
	ssize_t answer;
	int fd, flags;
	bool writes, only_tries;
	unsigned mode;
	const char *path;
	const struct iovec *iov;
	int parts;
	int64_t offset;
	void *data;
	size_t n;
	struct hd__nature nature;
	int other;	       /* sendfile, splice: the descriptor that is read */
	int64_t *other_offset; /* its place in it */
	int64_t *own_offset;   /* splice: the place in fd */
};

static void run(struct hd__job *job)
{
	struct call *c = (struct call *)job;

	do {
		c->answer = hd__job_stop(job); /* 0, always, if it is only waited for */
		if (c->answer == 0)
			c->answer = c->make(c);
	} while (c->answer == -EINTR);
}

/* Has it made on a thread of the pool; one that may wait for ever has a thread of its own. -ECANCELED: hd__heed must follow. */
static ssize_t make_on_thread(struct call *c, bool for_ever, hd_time until, enum hd_wait why)
{
	c->job.run = run;
	c->job.kind = for_ever ? HD__JOB_INTERRUPTIBLE : c->only_tries ? HD__JOB_STOPPABLE : HD__JOB_WAITED_FOR;
	c->job.number = c->fd >= 0 ? (unsigned)c->fd : (unsigned)-1;
	int err = hd__pool_run_heeds_later(&c->job, until, why);
	if (unlikely(err == -EAGAIN || err == -ENOMEM)) {
		if (for_ever)
			return -ENOMEM;
		run(&c->job); /* better late than never: the worker waits for the disk */
		err = 0;
	}
	return err != 0 ? err : c->answer;
}

/* Has the kernel do it, or a thread of the pool; `task` says the same as c. -ECANCELED: hd__heed must follow. */
static ssize_t make_by_kernel(const struct hd__task *task, struct call *c, hd_time until, enum hd_wait why)
{
	ssize_t answer = hd__ring_do(task, until, why);
	return answer != -ENOSYS ? answer : make_on_thread(c, false, until, why);
}

static ssize_t heeded(ssize_t answer)
{
	if (unlikely(answer == -ECANCELED))
		hd__heed(); /* does not return if the caller must end */
	return answer;
}

/* The descriptor, unless it is less than 0, is in use by the caller; *f is its record, NULL on a plain thread. */
static int use(struct hd__use *use, int fd, struct hd__job *job, struct hd__fd **f)
{
	struct hd_worker *w = hd__self();
	int err;

	*use = (struct hd__use){ .uses = NULL };
	*f = NULL;
	if (w == NULL || fd < 0)
		return 0;
	*f = hd__fd_get(w->sched, fd, &err);
	if (*f == NULL)
		return err;
	for (;;) {
		uint32_t generation = ld_acq(&(*f)->reading.generation);
		err = hd__use_begin(&(*f)->uses, use, job);
		if (likely(err != -EBADF) || !hd__fd_is_another(*f, generation))
			return err;
	}
}

/* A call that has begun, about c->fd if that is a descriptor. */
static ssize_t go_on(struct call *c, bool for_ever, hd_time until, enum hd_wait why)
{
	struct hd__use in_use;
	struct hd__fd *f;
	ssize_t answer = use(&in_use, c->fd, for_ever || c->only_tries ? &c->job : NULL, &f);

	if (answer != 0)
		return answer;
	answer = make_on_thread(c, for_ever, until, why);
	hd__use_end(&in_use);
	return heeded(answer);
}

static ssize_t perform(struct call *c, bool for_ever, hd_time until, enum hd_wait why)
{
	int err = hd__io_begin(until);
	return err != 0 ? err : go_on(c, for_ever, until, why);
}

/* ---- reading and writing ---- */

static ssize_t make_move(struct call *c)
{
	return hd__os_file_move(c->fd, c->writes, c->iov, c->parts, c->offset);
}

/* Some of it. */
static ssize_t move_some(const struct hd__op *op, const struct iovec *iov, int n, int64_t offset)
{
	bool writes = op->way == HD__WRITING;
	ssize_t moved =
		op->f == NULL || ld_rlx(&op->f->waits[op->way]) ? -EOPNOTSUPP : hd__os_file_try(op->fd, writes, iov, n, offset);
	hd_time until = op->until;

	if (moved != -EAGAIN && moved != -EOPNOTSUPP)
		return moved;
	if (moved == -EOPNOTSUPP) {
		if (op->f != NULL)
			st_rlx(&op->f->waits[op->way], true);
		if (hd__is_past(hd__self(), until))
			until = HD_FOREVER; /* it cannot be tried: as for poll(2), a file is always ready */
	}
	struct call c = { .make = make_move, .fd = op->fd, .writes = writes, .iov = iov, .parts = n, .offset = offset };
	struct hd__task task = { .fd = op->fd, .writes = writes, .iov = iov, .n = n, .offset = offset };
	return make_by_kernel(&task, &c, until, HD_WAIT_FILE);
}

ssize_t hd__file_move(const struct hd__op *op, int64_t offset)
{
	struct hd__op rest = *op;
	struct iovec parts[HD__PARTS];
	ssize_t n;

	do {
		if (rest.wanted == rest.all) /* in one piece, if the file system does so */
			n = move_some(&rest, rest.iov, rest.n, offset);
		else
			n = move_some(&rest, parts, hd__op_rest(&rest, parts), offset);
		if (n > 0) {
			rest.wanted -= (size_t)n;
			offset += offset >= 0 ? n : 0;
		}
	} while ((n > 0 && rest.wanted > 0) || n == -EINTR);
	return rest.wanted < op->wanted ? (ssize_t)(op->wanted - rest.wanted) : n;
}

/* A call of another kind. */
struct other_call {
	struct call call;
	struct hd__op *op;
	ssize_t (*make)(struct hd__op *op);
};

static ssize_t make_other(struct call *c)
{
	struct other_call *other = (struct other_call *)c;
	return other->make(other->op);
}

ssize_t hd__op_on_thread(struct hd__op *op, ssize_t (*make)(struct hd__op *op))
{
	bool writes = op->way == HD__WRITING;
	struct other_call c = { .call = { .make = make_other, .fd = op->fd }, .op = op, .make = make };
	struct hd__use in_use;
	struct hd__fd *f;

	if (!hd__os_is_ready(op->fd, writes))
		return -EAGAIN;
	hd_time until = hd__is_past(hd__self(), op->until) ? hd_after(A_MOMENT) : op->until;
	int err = use(&in_use, op->fd, &c.call.job, &f); /* so that hd_close interrupts it */
	if (err != 0)
		return err;
	ssize_t answer = make_on_thread(&c.call, true, until, writes ? HD_WAIT_FD_WRITE : HD_WAIT_FD_READ);
	hd__use_end(&in_use);
	return answer;
}

static ssize_t transfer(int fd, enum hd__way way, const struct iovec *iov, int n, off_t offset, hd_time until)
{
	ssize_t all = n < 0 || offset < 0 ? -EINVAL : hd__iov_sum(iov, (size_t)n);
	struct hd__use in_use;
	struct hd__op op = {
		.until = until, .fd = fd, .way = way, .all = (size_t)all, .wanted = (size_t)all, .iov = iov, .n = n
	};

	if (all < 0)
		return all;
	ssize_t moved = hd__io_begin(until);
	if (moved == 0)
		moved = fd < 0 ? -EBADF : use(&in_use, fd, NULL, &op.f);
	if (moved != 0)
		return moved;
	if (op.f == NULL || (moved = hd__fd_learn(op.f, fd)) == 0)
		moved = hd__file_move(&op, offset);
	hd__use_end(&in_use);
	return heeded(moved);
}

ssize_t hd_preadv(int fd, const struct iovec *iov, int n, off_t offset, hd_time until)
{
	return transfer(fd, HD__READING, iov, n, offset, until);
}

ssize_t hd_pread(int fd, void *data, size_t n, off_t offset, hd_time until)
{
	return transfer(fd, HD__READING, &(struct iovec){ data, n }, 1, offset, until);
}

ssize_t hd_pwritev(int fd, const struct iovec *iov, int n, off_t offset, hd_time until)
{
	return transfer(fd, HD__WRITING, iov, n, offset, until);
}

ssize_t hd_pwrite(int fd, const void *data, size_t n, off_t offset, hd_time until)
{
	return transfer(fd, HD__WRITING, &(struct iovec){ (void *)(uintptr_t)data, n }, 1, offset, until);
}

/* ---- opening ---- */

/* -EAGAIN: it may wait for ever, and c->only_tries. If the path becomes a FIFO's between the two calls, it waits nevertheless, on one of the pool's
 * threads, and can be interrupted. */
static ssize_t make_open(struct call *c)
{
	if (c->only_tries && hd__os_may_open_for_ever(c->fd, c->path, c->flags))
		return -EAGAIN;
	int fd = hd__os_openat(c->fd, c->path, c->flags, c->mode);
	if (fd >= 0 && hd__os_nature(fd, &c->nature) != 0)
		c->nature = (struct hd__nature){ .how = HD__HOW_UNKNOWN };
	return fd;
}

/* The process is gone, and so is the one that would close it. */
static void undo_open(struct hd__job *job)
{
	struct call *c = (struct call *)job;

	if (c->answer >= 0)
		hd__os_close((int)c->answer);
}

int hd_openat(int dir, const char *path, int flags, mode_t mode, hd_time until)
{
	struct call c = { .job.drop = undo_open,
			  .make = make_open,
			  .fd = dir,
			  .path = path,
			  .flags = flags,
			  .mode = mode,
			  .only_tries = true };
	ssize_t fd = perform(&c, false, until, HD_WAIT_FILE_OPEN);

	if (fd == -EAGAIN && c.only_tries) {
		c = (struct call){
			.job.drop = undo_open, .make = make_open, .fd = dir, .path = path, .flags = flags, .mode = mode
		};
		fd = perform(&c, true, until, HD_WAIT_FILE_OPEN);
	}
	return hd__fd_born_as((int)fd, &c.nature);
}

int hd_open(const char *path, int flags, mode_t mode, hd_time until)
{
	return hd_openat(AT_FDCWD, path, flags, mode, until);
}

/* ---- what was written is there ---- */

static ssize_t make_fsync(struct call *c)
{
	return hd__os_fsync(c->fd, c->flags);
}

static int sync_file(int fd, bool data_only, hd_time until)
{
	struct call c = { .make = make_fsync, .fd = fd, .flags = data_only };
	struct hd__task task = { .fd = fd, .syncs = true, .data_only = data_only };
	struct hd__use in_use;
	struct hd__fd *f;
	ssize_t answer = hd__io_begin(until);

	if (answer == 0)
		answer = use(&in_use, fd, NULL, &f);
	if (answer != 0)
		return (int)answer;
	do
		answer = make_by_kernel(&task, &c, until, HD_WAIT_FILE_SYNC);
	while (answer == -EINTR);
	hd__use_end(&in_use);
	return (int)heeded(answer);
}

int hd_fsync(int fd, hd_time until)
{
	return sync_file(fd, false, until);
}

int hd_fdatasync(int fd, hd_time until)
{
	return sync_file(fd, true, until);
}

static ssize_t make_msync(struct call *c)
{
	return hd__os_msync(c->data, c->n, c->flags);
}

int hd_msync(void *start, size_t n, int flags, hd_time until)
{
	struct call c = { .make = make_msync, .fd = -1, .data = start, .n = n, .flags = flags };
	return (int)perform(&c, false, until, HD_WAIT_FILE_SYNC);
}

static ssize_t make_tcdrain(struct call *c)
{
	return hd__os_tcdrain(c->fd);
}

int hd_tcdrain(int fd, hd_time until)
{
	struct call c = { .make = make_tcdrain, .fd = fd };
	return (int)perform(&c, true, until, HD_WAIT_FILE_SYNC);
}

/* ---- what the file is ---- */

static ssize_t make_ftruncate(struct call *c)
{
	return hd__os_ftruncate(c->fd, c->offset);
}

int hd_ftruncate(int fd, off_t size, hd_time until)
{
	struct call c = { .make = make_ftruncate, .fd = fd, .offset = size };
	return (int)perform(&c, false, until, HD_WAIT_FILE);
}

static ssize_t make_stat(struct call *c)
{
	return hd__os_fstatat(c->fd, c->path, c->data, c->flags);
}

int hd_fstatat(int dir, const char *path, struct stat *st, int flags, hd_time until)
{
	struct call c = { .make = make_stat, .fd = dir, .path = path, .data = st, .flags = flags };
	return (int)perform(&c, false, until, HD_WAIT_FILE);
}

int hd_stat(const char *path, struct stat *st, hd_time until)
{
	return hd_fstatat(AT_FDCWD, path, st, 0, until);
}

int hd_lstat(const char *path, struct stat *st, hd_time until)
{
	return hd_fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW, until);
}

int hd_fstat(int fd, struct stat *st, hd_time until)
{
	return fd < 0 ? -EBADF : hd_fstatat(fd, "", st, AT_EMPTY_PATH, until);
}

/* ---- locks ---- */

static ssize_t make_fcntl_lock(struct call *c)
{
	return hd__os_fcntl_lock(c->fd, c->flags, c->data, !c->only_tries);
}

static ssize_t make_flock(struct call *c)
{
	return hd__os_flock(c->fd, c->flags, !c->only_tries);
}

/* A mere try ends by itself. */
static int lock(struct call *c, hd_time until)
{
	int err = hd__io_begin(until);

	if (err != 0)
		return err;
	c->only_tries = hd__is_past(hd__self(), until);
	if (!c->only_tries)
		return (int)go_on(c, true, until, HD_WAIT_FILE_LOCK);
	err = (int)go_on(c, false, HD_FOREVER, HD_WAIT_FILE_LOCK);
	return err == -EAGAIN ? -ETIMEDOUT : err;
}

int hd_fcntl_lock(int fd, int cmd, struct flock *what, hd_time until)
{
	return lock(&(struct call){ .make = make_fcntl_lock, .fd = fd, .flags = cmd, .data = what }, until);
}

int hd_flock(int fd, int operation, hd_time until)
{
	return lock(&(struct call){ .make = make_flock, .fd = fd, .flags = operation }, until);
}

/* ---- from one descriptor to another ---- */

/* An operation on the descriptor that is written; it has its turn. */
struct passage {
	struct hd__op op;
	ssize_t (*make)(struct call *c);
	int in;
	struct hd__nature from; /* of `in` */
	uint32_t generation;	/* of it: it is in use only while a thread reads it, and may be closed in between */
	off_t *in_offset, *out_offset;
};

static ssize_t make_sendfile(struct call *c)
{
	return hd__os_sendfile(c->fd, c->other, c->other_offset, c->n);
}

/* Whether a thread that uses it without waiting for its readiness may have to wait for ever. */
static bool may_wait_for_ever(int fd, enum hd__how how)
{
	return how != HD__BY_FILE && !hd__os_is_nonblocking(fd);
}

/* Both are ready, as far as that can be known; a thread does it, since the file that is read or written may have to wait for its disk. */
static ssize_t pass(struct passage *p, bool for_ever)
{
	struct call c = { .make = p->make,
			  .fd = p->op.fd,
			  .other = p->in,
			  .other_offset = p->in_offset,
			  .own_offset = p->out_offset,
			  .n = p->op.wanted,
			  .flags = p->op.flags };
	struct hd__job *job = for_ever ? &c.job : NULL;
	struct hd__use out, in;
	struct hd__fd *f;
	hd_time until = p->op.until;

	if (hd__is_past(hd__self(), until))
		until = for_ever ? hd_after(A_MOMENT) : HD_FOREVER;
	ssize_t n = use(&out, p->op.fd, job, &f);
	if (n != 0)
		return n;
	n = use(&in, p->in, job, &f);
	if (n == 0) {
		bool is_same = f == NULL || ld_acq(&f->reading.generation) == p->generation;
		n = is_same ? make_on_thread(&c, for_ever, until, HD_WAIT_FD_WRITE) : -EBADF;
		hd__use_end(&in);
	}
	hd__use_end(&out);
	return n;
}

/* What there is to know of `in` before the first attempt. Returns 0 or -errno. */
static int learn(struct passage *p)
{
	struct hd_worker *w = hd__self();
	int err = 0;
	struct hd__fd *f = w != NULL ? hd__fd_get(w->sched, p->in, &err) : NULL;

	if (f != NULL)
		p->generation = ld_acq(&f->reading.generation);
	return w != NULL && f == NULL ? err : hd__os_nature(p->in, &p->from);
}

/* -ENODATA: it is `in` that is not ready. */
static ssize_t try_pass(struct hd__op *op, enum hd__how how)
{
	struct passage *p = (struct passage *)op;
	bool from_file = p->from.how == HD__BY_FILE;

	if (how != HD__BY_FILE && !hd__os_is_ready(op->fd, true))
		return -EAGAIN;
	if (!from_file && !hd__os_is_ready(p->in, false))
		return -ENODATA;
	ssize_t n = pass(p, may_wait_for_ever(op->fd, how) || may_wait_for_ever(p->in, p->from.how));
	return n == -EAGAIN && !from_file && !hd__os_is_ready(p->in, false) ? -ENODATA : n;
}

ssize_t hd_sendfile(int out, int in, off_t *offset, size_t n, hd_time until)
{
	struct passage p = { .op = { .attempt = try_pass, .fd = out, .way = HD__WRITING, .whole = true, .all = n, .wanted = n },
			     .make = make_sendfile,
			     .in = in,
			     .in_offset = offset };
	int err = hd__io_begin(until);

	if (err == 0)
		err = learn(&p);
	if (err != 0)
		return err;
	if (p.from.how != HD__BY_FILE || offset == NULL)
		return -EINVAL;
	return n == 0 ? 0 : hd__fd_do(&p.op, until);
}

static ssize_t make_splice(struct call *c)
{
	return hd__os_splice(c->other, c->other_offset, c->fd, c->own_offset, c->n, (unsigned)c->flags | SPLICE_F_NONBLOCK);
}

/* Moves nothing: waits until the descriptor is ready. */
static ssize_t try_nothing(struct hd__op *op, enum hd__how how)
{
	return how == HD__BY_FILE || hd__os_is_ready(op->fd, op->way == HD__WRITING) ? 1 : -EAGAIN;
}

ssize_t hd_splice(int in, off_t *in_offset, int out, off_t *out_offset, size_t n, unsigned flags, hd_time until)
{
	struct passage p = {
		.op = { .attempt = try_pass, .fd = out, .way = HD__WRITING, .all = n, .wanted = n, .flags = (int)flags },
		.make = make_splice,
		.in = in,
		.in_offset = in_offset,
		.out_offset = out_offset
	};
	struct hd__op ready = { .attempt = try_nothing, .fd = in, .way = HD__READING };
	ssize_t moved = hd__io_begin(until);

	if (moved == 0)
		moved = learn(&p);
	if (moved != 0)
		return moved;
	if (flags & SPLICE_F_NONBLOCK)
		until = 0;
	do
		moved = hd__fd_do(&p.op, until);
	while (moved == -ENODATA && (moved = hd__fd_do(&ready, until)) > 0);
	return moved == -ETIMEDOUT && flags & SPLICE_F_NONBLOCK ? -EAGAIN : moved;
}
