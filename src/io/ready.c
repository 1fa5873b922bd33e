/* io/ready.c - waiting until one of several descriptors is ready, without reading or writing: hd_fd_poll, hd_fd_select, and what hd_select asks
 * of a descriptor.
 *
 * Owns:       f->watchers, f->watching, f->news.
 * Invariant:  a process that watches a descriptor counts in `watching` before it asks the kernel whether the descriptor is ready. So what the
 *             kernel tells later raises `news`, and the process, which has remembered the number from before it asked, does not wait.
 * Locking:    the lock of f->watchers guards the queue and news.
 * Callers:    processes; a plain thread waits in the kernel. hd__fd_tell: with what has happened, any thread.
 *
 *      prepare --> (ask the kernel --> wait for news)* --> release */
#include <errno.h>
#include <heddle/io.h>
#include <sys/select.h>

#include "io/fd.h"
#include "os/memory.h"
#include "sync/select.h"

#define FEW 8 /* descriptors for which a call needs no memory */

/* ---- news ---- */

void hd__fd_tell(struct hd_worker *w, struct hd__fd *f, uint32_t generation, enum hd__outcome outcome)
{
	hd__waitq_lock(&f->watchers);
	if (ld_acq(&f->reading.generation) != generation) {
		hd__waitq_unlock(&f->watchers);
		return;
	}
	st_rel(&f->news, f->news + 1);			     /* pairs with look and has_news */
	hd__waitq_serve_all(w, &f->watchers, outcome, NULL); /* which unlocks */
}

/* ---- a descriptor as a case of hd_select ---- */

static int fd_of(const struct hd_case *c)
{
	return (int)(uint32_t)c->number;
}

/* In place of the present news: so the kernel is asked once before the process waits. */
#define NOT_YET (UINT64_C(1) << 31)

static uint32_t generation_of(const struct hd_case *c)
{
	return (uint32_t)(c->seen >> 32);
}

/* The news of now, of the same descriptor: what comes later is news to the caller. */
static void look(struct hd_case *c)
{
	struct hd__fd *f = c->object;
	c->seen = (uint64_t)generation_of(c) << 32 | ld_acq(&f->news);
}

static bool is_closed(const struct hd_case *c)
{
	struct hd__fd *f = c->object;
	return ld_acq(&f->reading.generation) != generation_of(c) || ld_seq(&f->reading.closing);
}

static void release(struct hd_case *c)
{
	struct hd__fd *f = c->object;

	if (f != NULL)
		add_seq(&f->watching, (uint32_t)-1);
}

/* Outside the lane. c->object is the descriptor's record; NULL: it is not open. If it is closed in the middle of this, hd_close finds it watched, or
 * we find it closed. */
static int prepare(struct hd_case *c)
{
	struct hd_worker *w = hd__self();
	struct hd__fd *f;

	c->object = NULL;
	if (unlikely(w->sched->doors.at_call != NULL))
		return hd__fd_refuse();
	f = hd__fd_get(w->sched, fd_of(c), &c->err);
	if (f == NULL)
		return c->err == -EBADF ? 0 : c->err;
	add_seq(&f->watching, 1); /* pairs with `forget` and `happened` in io/fd.c */
	c->object = f;
	uint32_t generation;
	do { /* again, if the number became another descriptor's meanwhile */
		generation = ld_acq(&f->reading.generation);
		c->err = hd__fd_watch(w, f, fd_of(c));
	} while (ld_acq(&f->reading.generation) != generation);
	c->seen = (uint64_t)generation << 32 | (ld_acq(&f->news) ^ NOT_YET);
	if (c->err == -EPERM)
		c->err = 0; /* there is never news of it: it is always ready, or never for what is asked */
	if (c->err == 0)
		return 0;
	release(c);
	c->object = NULL;
	return c->err == -EBADF ? 0 : c->err;
}

/* Outside the lane: whether it is ready. */
static bool confirm(struct hd_case *c)
{
	struct pollfd p = { .fd = fd_of(c), .events = (short)(c->number >> 32) };

	if (c->err == 0) {
		look(c);
		int ready = hd__os_poll(&p, 1, 0);
		if (p.revents & POLLNVAL || is_closed(c))
			c->err = -EBADF;
		else if (ready <= 0)
			return false;
	}
	if (c->data != NULL)
		*(short *)c->data = c->err != 0 ? POLLNVAL : p.revents;
	return true;
}

static struct hd_waitq *lock_watchers(struct hd_worker *w, struct hd_case *c)
{
	struct hd__fd *f = c->object;

	(void)w;
	if (f == NULL)
		return NULL;
	hd__waitq_lock(&f->watchers);
	return &f->watchers;
}

static bool has_news(const struct hd_worker *w, const struct hd_case *c)
{
	(void)w;
	struct hd__fd *f = c->object;
	return ld_acq(&f->news) != (uint32_t)c->seen || is_closed(c);
}

static int take_news(struct hd_worker *w, struct hd_case *c, struct hd_waiter **woken)
{
	(void)w, (void)woken;
	return is_closed(c) ? -EBADF : 0;
}

static int told(const struct hd_case *c, enum hd__outcome outcome)
{
	(void)c;
	return outcome == HD__CLOSED ? -EBADF : 0;
}

const struct hd__case_ops hd__fd_case = { .why = HD_WAIT_FD_POLL,
					  .lock = lock_watchers,
					  .can = has_news,
					  .happen = take_news,
					  .granted = told,
					  .prepare = prepare,
					  .confirm = confirm,
					  .release = release };

/* ---- many descriptors ---- */

static int poll_on_thread(struct pollfd *fds, unsigned n, hd_time until)
{
	int ready;

	if (hd__is_duration(until))
		return -EINVAL;
	do
		ready = hd__os_poll(fds, n, until);
	while (ready == -EINTR);
	return ready != 0 ? ready : -ETIMEDOUT;
}

/* How many the kernel has told of; and those that are closed, whose number may be another descriptor's by now. */
static int count_ready(struct pollfd *fds, const struct hd_case *cases, unsigned n)
{
	int ready = 0;

	for (unsigned i = 0; i < n; i++) {
		bool closed = fds[i].fd >= 0 && (cases[i].object == NULL || (fds[i].revents != 0 && is_closed(&cases[i])));
		if (closed)
			fds[i].revents = POLLNVAL;
		ready += fds[i].revents != 0;
	}
	return ready;
}

/* The cases are prepared. One question to the kernel is for all of them. */
static int poll_prepared(struct pollfd *fds, struct hd_case *cases, unsigned n, hd_time until)
{
	int happened = 0;

	for (;;) {
		for (unsigned i = 0; i < n; i++)
			if (cases[i].object != NULL)
				look(&cases[i]);
		int err = hd__os_poll(fds, n, 0);
		if (err < 0 && err != -EINTR)
			return err;
		int ready = count_ready(fds, cases, n);
		if (ready > 0)
			return ready;
		if (happened < 0 || until <= 0)
			return happened < 0 ? happened : -ETIMEDOUT;
		happened = hd__select_prepared(cases, n, until, true, HD_WAIT_FD_POLL);
		if (happened >= 0 && cases[happened].err == -EBADF) {
			fds[happened].revents = POLLNVAL;
			return 1;
		}
	}
}

/* After -ECANCELED, hd__heed must follow. */
static int poll_many(struct pollfd *fds, size_t n, hd_time until)
{
	struct hd_case few[FEW], *cases = few;
	size_t prepared = 0;
	int answer = 0;

	if (n > INT32_MAX)
		return -EINVAL;
	if (hd__self() == NULL)
		return poll_on_thread(fds, (unsigned)n, until);
	if (n > FEW && (cases = hd__os_alloc(n * sizeof *cases)) == NULL)
		return -ENOMEM;
	for (; prepared < n && answer == 0; prepared += answer == 0) {
		fds[prepared].revents = 0;
		cases[prepared] = hd_case_fd(fds[prepared].fd, fds[prepared].events, NULL);
		if (fds[prepared].fd >= 0)
			answer = prepare(&cases[prepared]);
		if (cases[prepared].object == NULL)
			cases[prepared].kind = HD_CASE_NOTHING;
	}
	if (answer == 0)
		answer = poll_prepared(fds, cases, (unsigned)n, until);
	while (prepared > 0)
		release(&cases[--prepared]);
	if (cases != few)
		hd__os_free(cases);
	return answer;
}

int hd_fd_poll(struct pollfd *fds, size_t n, hd_time until)
{
	int answer = hd__io_begin(until);

	if (answer == 0)
		answer = poll_many(fds, n, until);
	if (answer == -ECANCELED && hd__self() != NULL)
		hd__heed(); /* does not return if the caller must end */
	return answer;
}

/* ---- sets ---- */

enum { READ, WRITE, EXCEPT, SETS };
static const struct {
	short asked, told;
} meaning[SETS] = { { POLLIN, POLLIN | POLLHUP | POLLERR }, { POLLOUT, POLLOUT | POLLERR }, { POLLPRI, POLLPRI } };

/* What the sets ask for, as pollfds; counts them. With NULL it only counts. */
static size_t gather(int nfds, fd_set *const sets[SETS], struct pollfd *fds)
{
	size_t n = 0;

	for (int fd = 0; fd < nfds; fd++) {
		short events = 0;
		for (int s = 0; s < SETS; s++)
			if (sets[s] != NULL && FD_ISSET(fd, sets[s]))
				events |= meaning[s].asked;
		if (events != 0 && fds != NULL)
			fds[n] = (struct pollfd){ .fd = fd, .events = events };
		n += events != 0;
	}
	return n;
}

/* The sets become what is ready. Returns how many bits are set. */
static int scatter(const struct pollfd *fds, size_t n, fd_set *const sets[SETS])
{
	int count = 0;

	for (int s = 0; s < SETS; s++)
		for (size_t i = 0; sets[s] != NULL && i < n; i++)
			if (FD_ISSET(fds[i].fd, sets[s])) {
				if (fds[i].revents & meaning[s].told)
					count++;
				else
					FD_CLR(fds[i].fd, sets[s]);
			}
	return count;
}

int hd_fd_select(int nfds, fd_set *readable, fd_set *writable, fd_set *urgent, hd_time until)
{
	fd_set *const sets[SETS] = { readable, writable, urgent };
	int answer = nfds < 0 || nfds > FD_SETSIZE ? -EINVAL : hd__io_begin(until);

	if (answer != 0)
		return answer;
	size_t n = gather(nfds, sets, NULL);
	struct pollfd *fds = hd__os_alloc((n + 1) * sizeof *fds);
	if (fds == NULL)
		return -ENOMEM;
	gather(nfds, sets, fds);
	answer = poll_many(fds, n, until);
	for (size_t i = 0; answer > 0 && i < n; i++)
		if (fds[i].revents & POLLNVAL)
			answer = -EBADF;
	if (answer > 0)
		answer = scatter(fds, n, sets);
	hd__os_free(fds);
	if (answer == -ECANCELED && hd__self() != NULL)
		hd__heed(); /* does not return if the caller must end */
	return answer;
}
