/* sim/runtime/io.c - simulated descriptors: pipes, pairs of sockets, a file, and sets of them to sleep in.
 *
 * Owns:       the descriptors and sets of a run. Takes the place of os/io.c, and of the part of os/file.c that
 *             reads and writes: there is no kernel, and no other program.
 * Invariant:  what a set tells is edge-triggered, as epoll's: a change makes an entry pending, and what it tells is read when it is taken.
 * Callers:    the io room and its tests, on the one kernel thread there is. A call is a point, and happens at once; the plan may have it
 *             interrupted, have a socket move less than it could (a pipe does so only when it is full or empty), tell what has happened in
 *             any order, a part of it, or for no reason. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/assert.h"
#include "base/point.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/futex.h"
#include "os/io.h"
#include "sim/choice.h"
#include "sim/threads.h"

#define FIRST 100 /* so that no real descriptor is meant */
#define FDS 64
#define SETS 64
#define CAPACITY 16 /* of a channel: small, so that it is full often */

/* Bytes on their way. */
struct channel {
	unsigned char data[CAPACITY];
	unsigned first, length;
	int readers, writers; /* descriptors */
};

#define DISK 64 /* bytes: it is soon full */

enum kind { FREE, PIPE, SOCKET, REGULAR };

/* The one file that there is. */
static struct {
	unsigned char data[DISK];
	size_t size;
} disk;

static struct descriptor {
	enum kind kind;
	struct channel *in, *out; /* or NULL */
	size_t position;	  /* REGULAR */
	struct {
		int set; /* plus 1; 0: it is in none */
		uint64_t whose;
		bool pending;
	} entry[SETS];
} fds[FDS];

static struct channel channels[FDS];

static struct {
	bool used, ringing;
	uint32_t changes; /* a word to sleep on */
} sets[SETS];

/* Whether something unusual happens now. */
static bool odd(void)
{
	return hd__sim_threads && hd__sim_decide(HD__SIM_FAULT, 2, 1, NULL) == 1;
}

static struct descriptor *find(int fd)
{
	hd__point();
	return fd >= FIRST && fd < FIRST + FDS && fds[fd - FIRST].kind != FREE ? &fds[fd - FIRST] : NULL;
}

/* ---- what happens ---- */

static uint32_t readiness(const struct descriptor *d)
{
	uint32_t what = 0;

	if (d->in != NULL && (d->in->length > 0 || d->in->writers == 0))
		what |= HD__CAN_READ | (d->in->writers == 0 ? HD__HUNG_UP : 0);
	if (d->out != NULL && (d->out->length < CAPACITY || d->out->readers == 0))
		what |= HD__CAN_WRITE | (d->out->readers == 0 ? HD__HUNG_UP : 0);
	return what;
}

static void change_set(unsigned set)
{
	sets[set].changes++;
	hd__os_futex_wake(&sets[set].changes);
}

/* Something has changed for the descriptors at that end of a channel. */
static void change(const struct channel *c, bool reading)
{
	bool changed[SETS] = { false };

	for (int i = 0; i < FDS; i++)
		if (fds[i].kind != FREE && (reading ? fds[i].in : fds[i].out) == c)
			for (unsigned e = 0; e < SETS; e++)
				if (fds[i].entry[e].set != 0)
					fds[i].entry[e].pending = changed[fds[i].entry[e].set - 1] = true;
	for (unsigned set = 0; set < SETS; set++)
		if (changed[set])
			change_set(set);
}

/* ---- bytes ---- */

static size_t take(struct channel *c, unsigned char *to, size_t n)
{
	size_t i = 0;

	for (; i < n && c->length > 0; i++, c->length--) {
		to[i] = c->data[c->first];
		c->first = (c->first + 1) % CAPACITY;
	}
	return i;
}

static size_t put(struct channel *c, const unsigned char *from, size_t n)
{
	size_t i = 0;

	for (; i < n && c->length < CAPACITY; i++)
		c->data[(c->first + c->length++) % CAPACITY] = from[i];
	return i;
}

ssize_t hd__os_read(int fd, enum hd__how how, const struct iovec *iov, int n)
{
	struct descriptor *d = find(fd);
	size_t done = 0;

	(void)how;
	if (d == NULL || d->in == NULL)
		return -EBADF;
	if (odd())
		return -EINTR;
	if (d->in->length == 0)
		return d->in->writers == 0 ? 0 : -EAGAIN;
	bool was_full = d->in->length == CAPACITY;
	for (int i = 0; i < n; i++) {
		size_t want = iov[i].iov_len;
		bool cut = want > 1 && d->kind == SOCKET && odd();
		done += take(d->in, iov[i].iov_base, cut ? 1 : want);
		if (cut)
			break;
	}
	if (was_full)
		change(d->in, false);
	return (ssize_t)done;
}

ssize_t hd__os_write(int fd, enum hd__how how, const struct iovec *iov, int n)
{
	struct descriptor *d = find(fd);
	size_t done = 0, wanted = 0;

	(void)how;
	if (d == NULL || d->out == NULL)
		return -EBADF;
	if (odd())
		return -EINTR;
	if (d->out->readers == 0)
		return -EPIPE;
	for (int i = 0; i < n; i++) {
		bool cut = iov[i].iov_len > 1 && d->kind == SOCKET && odd();
		wanted += iov[i].iov_len;
		done += put(d->out, iov[i].iov_base, cut ? 1 : iov[i].iov_len);
		if (done < wanted)
			break;
	}
	if (wanted > 0 && done == 0)
		return -EAGAIN;
	change(d->out, true);
	return (ssize_t)done;
}

ssize_t hd__os_recvmsg(int fd, struct msghdr *message, int flags)
{
	(void)flags;
	return hd__os_read(fd, HD__BY_SOCKET, message->msg_iov, (int)message->msg_iovlen);
}

ssize_t hd__os_sendmsg(int fd, const struct msghdr *message, int flags)
{
	(void)flags;
	return hd__os_write(fd, HD__BY_SOCKET, message->msg_iov, (int)message->msg_iovlen);
}

/* ---- descriptors ---- */

int hd__os_nature(int fd, struct hd__nature *nature)
{
	const struct descriptor *d = find(fd);

	if (d == NULL)
		return -EBADF;
	*nature = (struct hd__nature){ .how = d->kind == SOCKET	   ? HD__BY_SOCKET
					      : d->kind == REGULAR ? HD__BY_FILE
								   : HD__BY_NOWAIT,
				       .stream = d->kind == PIPE };
	return 0;
}

bool hd__os_is_nonblocking(int fd)
{
	return find(fd) != NULL;
}

bool hd__os_is_ready(int fd, bool writes)
{
	const struct descriptor *d = find(fd);
	return d == NULL || (readiness(d) & (writes ? HD__CAN_WRITE : HD__CAN_READ)) != 0;
}

bool hd__os_is_stream(int fd)
{
	const struct descriptor *d = find(fd);
	return d != NULL && d->kind == SOCKET;
}

/* The lowest number that is free, as the kernel would give it. */
static int new_fd(enum kind kind, struct channel *in, struct channel *out)
{
	for (int i = 0; i < FDS; i++)
		if (fds[i].kind == FREE) {
			fds[i] = (struct descriptor){ .kind = kind, .in = in, .out = out };
			if (in != NULL)
				in->readers++;
			if (out != NULL)
				out->writers++;
			return FIRST + i;
		}
	return -EMFILE;
}

static struct channel *new_channel(void)
{
	for (int i = 0; i < FDS; i++)
		if (channels[i].readers + channels[i].writers == 0) {
			channels[i] = (struct channel){ .length = 0 };
			return &channels[i];
		}
	HD_ASSERT(false, "there are more channels than descriptors");
	return NULL;
}

static int new_pair(enum kind kind, struct channel *there, struct channel *back, int pair[2])
{
	int first = new_fd(kind, there, back), second = first < 0 ? -EMFILE : new_fd(kind, back, there);

	if (second < 0 && first >= 0)
		hd__os_close(first);
	if (second < 0)
		return -EMFILE;
	pair[0] = first;
	pair[1] = second;
	return 0;
}

int hd__os_pipe(int pair[2])
{
	hd__point();
	return new_pair(PIPE, new_channel(), NULL, pair);
}

int hd__os_socketpair(int domain, int type, int pair[2])
{
	(void)domain, (void)type;
	hd__point();
	struct channel *there = new_channel();
	there->readers = 1; /* or the next one is it again */
	struct channel *back = new_channel();
	there->readers = 0;
	return new_pair(SOCKET, there, back, pair);
}

int hd__os_dup_if_lingers(int fd)
{
	(void)fd;
	return -1; /* they have no SO_LINGER */
}

int hd__os_close(int fd)
{
	struct descriptor *d = find(fd);

	if (d == NULL)
		return -EBADF;
	struct channel *in = d->in, *out = d->out;
	*d = (struct descriptor){ .kind = FREE };
	if (in != NULL && --in->readers == 0)
		change(in, false);
	if (out != NULL && --out->writers == 0)
		change(out, true);
	return 0;
}

/* ---- the file ---- */

/* Every path is its. */
int hd__os_openat(int dir, const char *path, int flags, unsigned mode)
{
	(void)dir, (void)path, (void)mode;
	hd__point();
	int fd = new_fd(REGULAR, NULL, NULL);
	if (fd >= 0 && flags & O_TRUNC)
		disk.size = 0;
	return fd;
}

static ssize_t move(int fd, bool writes, const struct iovec *iov, int n, int64_t offset)
{
	struct descriptor *d = find(fd);
	size_t done = 0;

	if (d == NULL || d->kind != REGULAR)
		return -EBADF;
	if (odd())
		return -EINTR;
	size_t at = offset < 0 ? d->position : (size_t)offset;
	if (writes && at >= DISK)
		return -ENOSPC;
	for (bool cut = false; n > 0 && !cut; iov++, n--) {
		size_t end = writes ? DISK : disk.size, most = at < end ? end - at : 0;
		size_t part = iov->iov_len < most ? iov->iov_len : most;
		cut = part > 1 && odd();
		part = cut ? 1 : part;
		memcpy(writes ? disk.data + at : iov->iov_base, writes ? iov->iov_base : disk.data + at, part);
		at += part;
		done += part;
		if (writes && at > disk.size)
			disk.size = at;
		if (part < iov->iov_len)
			break;
	}
	if (offset < 0)
		d->position = at;
	return (ssize_t)done;
}

ssize_t hd__os_file_try(int fd, bool writes, const struct iovec *iov, int n, int64_t offset)
{
	return odd() ? -EAGAIN : move(fd, writes, iov, n, offset);
}

ssize_t hd__os_file_move(int fd, bool writes, const struct iovec *iov, int n, int64_t offset)
{
	for (int i = 0; i < 3; i++)
		hd__point(); /* the disk takes its time */
	return move(fd, writes, iov, n, offset);
}

/* There is no other side to talk to. */
int hd__os_socket(int domain, int type, int protocol)
{
	(void)domain, (void)type, (void)protocol;
	return -EAFNOSUPPORT;
}

int hd__os_accept(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	(void)fd, (void)address, (void)size, (void)flags;
	return -EOPNOTSUPP;
}

int hd__os_connect(int fd, const struct sockaddr *address, socklen_t size)
{
	(void)fd, (void)address, (void)size;
	return -EOPNOTSUPP;
}

int hd__os_connected(int fd)
{
	(void)fd;
	return -EOPNOTSUPP;
}

/* ---- sets ---- */

int hd__os_outside_init(struct hd__outside *o)
{
	hd__point();
	for (int i = 0; i < SETS; i++)
		if (!sets[i].used) {
			sets[i].used = true;
			sets[i].ringing = false;
			o->epoll = i;
			return 0;
		}
	return -EMFILE;
}

void hd__os_outside_fini(struct hd__outside *o)
{
	for (int i = 0; i < FDS; i++)
		hd__os_outside_remove(o, FIRST + i);
	sets[o->epoll].used = false;
}

int hd__os_outside_add(struct hd__outside *o, int fd, uint64_t whose)
{
	struct descriptor *d = find(fd);

	if (d == NULL)
		return -EBADF;
	if (d->entry[o->epoll].set != 0)
		return -EEXIST;
	d->entry[o->epoll].set = o->epoll + 1;
	d->entry[o->epoll].whose = whose;
	d->entry[o->epoll].pending = readiness(d) != 0;
	if (d->entry[o->epoll].pending)
		change_set((unsigned)o->epoll);
	return 0;
}

void hd__os_outside_remove(struct hd__outside *o, int fd)
{
	struct descriptor *d = find(fd);

	if (d != NULL)
		d->entry[o->epoll].set = 0;
}

static int take_pending(int set, struct hd__happening *happened, int n)
{
	int count = 0, start = odd() ? 3 : 0, step = odd() ? FDS - 1 : 1;

	for (int k = 0; k < FDS && count < n; k++) {
		struct descriptor *d = &fds[(start + k * step) % FDS];
		uint32_t what = d->kind != FREE ? readiness(d) : 0;
		if (d->kind == FREE || d->entry[set].set == 0 || !d->entry[set].pending)
			continue;
		if (count > 0 && odd())
			break;				    /* the rest comes the next time */
		d->entry[set].pending = what != 0 && odd(); /* or is told again */
		if (what != 0)
			happened[count++] = (struct hd__happening){ d->entry[set].whose, what };
	}
	return count;
}

int hd__os_outside_wait(struct hd__outside *o, hd_time until, struct hd__happening *happened, int n)
{
	int set = o->epoll;

	hd__point();
	uint32_t changes = sets[set].changes;
	int count = take_pending(set, happened, n);
	if (count == 0 && until > 0 && !sets[set].ringing)
		hd__os_futex_wait(&sets[set].changes, changes, until);
	sets[set].ringing = false;
	return count > 0 ? count : take_pending(set, happened, n);
}

void hd__os_outside_ring(struct hd__outside *o)
{
	hd__point();
	sets[o->epoll].ringing = true;
	change_set((unsigned)o->epoll);
}

int hd__os_poll(struct pollfd *p, unsigned n, hd_time until)
{
	int ready = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct descriptor *d = find(p[i].fd);
		uint32_t what = d != NULL ? readiness(d) : 0;
		if (p[i].fd < 0) {
			p[i].revents = 0;
			continue;
		}
		p[i].revents = (short)((what & HD__CAN_READ ? POLLIN : 0) | (what & HD__CAN_WRITE ? POLLOUT : 0));
		p[i].revents = d == NULL ? POLLNVAL : (short)(p[i].revents & p[i].events);
		ready += p[i].revents != 0;
	}
	if (ready == 0 && until > 0) { /* a plain thread looks again and again */
		uint32_t word = 0;
		hd_time soon = hd__plain_clock->now(hd__plain_clock) + HD_US(100);
		hd__os_futex_wait(&word, 0, soon < until ? soon : until);
		if (until <= hd__plain_clock->now(hd__plain_clock))
			return 0;
		return -EINTR;
	}
	return ready;
}
