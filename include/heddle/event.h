/* heddle/event.h - something that has happened, or not yet.
 *
 * Setting an event lets all its waiters go, and every later caller of hd_event_wait, until it is reset. An event that resets by
 * itself (HD_EVENT_AUTO) lets one waiter go for each set; a set while it is set already is lost. Zeroed memory is an event that
 * has not happened. */
#ifndef HEDDLE_EVENT_H
#define HEDDLE_EVENT_H

#include <heddle/base.h>

HD_BEGIN

/* Flags for HD_EVENT and hd_event_init. */
enum {
	HD_EVENT_AUTO = 1, /* resets by itself: each set lets one waiter go */
	HD_EVENT_SET = 2   /* has happened already */
};

/* All of it is private. */
struct hd_event {
	struct hd_waitq waiters;
	unsigned char flags;
};
/* An event with flags from above; 0 is none. hd_event_init makes one of memory that is not in use; any thread. */
#define HD_EVENT(flags)                                                                                                        \
	{                                                                                                                      \
		{ NULL, NULL, 0 }, (flags)                                                                                     \
	}
HD_API void hd_event_init(struct hd_event *e, unsigned flags);

/* Waits until the event is set. Returns 0; -ETIMEDOUT; -ECANCELED. Cancellation point. Process or plain thread. */
HD_API HD_MUST_USE int hd_event_wait(struct hd_event *e, hd_time until);

/* As hd_event_wait, but never waits. Returns 0; -EAGAIN when the event is not set. Process or plain thread. */
HD_API HD_MUST_USE int hd_event_try_wait(struct hd_event *e);

/* Sets the event, or resets it. Returns 0. Process or plain thread. */
HD_API int hd_event_set(struct hd_event *e);
HD_API int hd_event_reset(struct hd_event *e);

/* Whether the event is set now. Process or plain thread. */
HD_API bool hd_event_is_set(const struct hd_event *e);

HD_END
#endif
