/* heddle/select.h - waiting for one of several things.
 *
 * Each case says what may happen; exactly one of them does, and hd_select tells which. For the others no item, signal or end
 * was taken. */
#ifndef HEDDLE_SELECT_H
#define HEDDLE_SELECT_H

#include <heddle/base.h>
#include <heddle/event.h>
#include <heddle/port.h>
#include <heddle/process.h>
#include <heddle/promise.h>
#include <heddle/queue.h>
#include <heddle/semaphore.h>
#include <heddle/waitgroup.h>

HD_BEGIN

/* What may happen. */
enum hd_case_kind {
	HD_CASE_NOTHING = 0, /* never happens: a case that is switched off */
	HD_CASE_PUT,	     /* hd_queue_put */
	HD_CASE_NEXT,	     /* hd_queue_next */
	HD_CASE_SEMAPHORE,   /* hd_semaphore_wait */
	HD_CASE_PROMISE,     /* hd_promise_value */
	HD_CASE_JOIN,	     /* hd_join_end */
	HD_CASE_TIME,	     /* a time comes */
	HD_CASE_EVENT,	     /* hd_event_wait */
	HD_CASE_WAITGROUP,   /* hd_waitgroup_wait */
	HD_CASE_FD,	     /* a descriptor is ready */
	HD_CASE_RECEIVE	     /* hd_receive */
};

/* One thing that may happen. Make it with one of the functions below; of its fields only `kind` and `err` are for the user. */
struct hd_case {
	enum hd_case_kind kind;
	int err;	/* out, for the case that happened: what the call that it stands for would have answered */
	void *object;	/* what it is about */
	void *data;	/* where from, or to */
	int64_t number; /* a process, a time, or a descriptor */
	uint64_t seen;
	void *record[16];
};

/* A case that happens when the call in enum hd_case_kind would not have to wait; hd_case_time: when t comes. The item, value or
 * end goes where that call would put it. Any thread. */
static inline struct hd_case hd_case_put(hd_queue *q, const void *item)
{
	struct hd_case c = { HD_CASE_PUT, 0, q, (void *)(uintptr_t)item, 0, 0, { NULL } };
	return c;
}
static inline struct hd_case hd_case_next(hd_queue *q, void *item)
{
	struct hd_case c = { HD_CASE_NEXT, 0, q, item, 0, 0, { NULL } };
	return c;
}
static inline struct hd_case hd_case_semaphore(struct hd_semaphore *s)
{
	struct hd_case c = { HD_CASE_SEMAPHORE, 0, s, NULL, 0, 0, { NULL } };
	return c;
}
static inline struct hd_case hd_case_promise(hd_promise *p, void **value)
{
	struct hd_case c = { HD_CASE_PROMISE, 0, p, value, 0, 0, { NULL } };
	return c;
}
static inline struct hd_case hd_case_join(hd_pid pid, struct hd_end *end)
{
	struct hd_case c = { HD_CASE_JOIN, 0, NULL, end, pid, 0, { NULL } };
	return c;
}
static inline struct hd_case hd_case_time(hd_time t)
{
	struct hd_case c = { HD_CASE_TIME, 0, NULL, NULL, t, 0, { NULL } };
	return c;
}

static inline struct hd_case hd_case_event(struct hd_event *e)
{
	struct hd_case c = { HD_CASE_EVENT, 0, e, NULL, 0, 0, { NULL } };
	return c;
}
static inline struct hd_case hd_case_waitgroup(struct hd_waitgroup *g)
{
	struct hd_case c = { HD_CASE_WAITGROUP, 0, g, NULL, 0, 0, { NULL } };
	return c;
}

/* Happens when there is a message in the port, one of the caller's (NULL: in any of them); its err is -EPERM when it is not. */
static inline struct hd_case hd_case_receive(hd_port *port, struct hd_message *m)
{
	struct hd_case c = { HD_CASE_RECEIVE, 0, port, m, 0, 0, { NULL } };
	return c;
}

/* Happens when fd is ready for one of `events` (POLLIN, POLLOUT and their like, of poll(2)), or has an error or an end; *revents is then what
 * poll(2) would say. Nothing is read or written, and no turn is taken: another process may be faster, so read with a deadline of 0, or
 * be the one that reads. Its err is -EBADF when fd is closed meanwhile. The system is asked once for each such case in each call. */
static inline struct hd_case hd_case_fd(int fd, short events, short *revents)
{
	struct hd_case c = { HD_CASE_FD, 0, NULL, revents, (int64_t)events * 4294967296 + (uint32_t)fd, 0, { NULL } };
	return c;
}

/* Waits until one of n cases happens; of several that could, any one (hd_select), or the first in the list (hd_select_first).
 * Returns its index, with cases[index].err set: 0, or as the call that it stands for answers when it does not wait any more:
 * -EPIPE of a closed queue, the error of a failed promise, -ESRCH and the like of a join (-EBUSY when a process is in two
 * cases), -EBADF of a descriptor that is closed. Or
 *
 *   -ETIMEDOUT   none had happened by `until`
 *   -ECANCELED   the caller was cancelled, and none happened
 *   -EINVAL      a case is of no known kind, or waits for a time that is a duration (base.h)
 *   -ENOTSUP     on a plain thread
 *
 * Cancellation point. */
HD_API HD_MUST_USE int hd_select(struct hd_case *cases, size_t n, hd_time until);
HD_API HD_MUST_USE int hd_select_first(struct hd_case *cases, size_t n, hd_time until);

HD_END
#endif
