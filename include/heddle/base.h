/* heddle/base.h - the words that every heddle header uses: time, process ids, entry functions, wait queues.
 *
 * Calls answer 0, a count or an id on success and -errno on failure (hd_error tells what that means). Everywhere -ENXIO says that no
 * runtime runs, -ENOTSUP that only a process can make this call, and -EPERM that the caller is not the owner. `errno` itself is left alone by every heddle call, also when the
 * caller goes on on another kernel thread (errno.h).
 * A call that waits has `hd_time until` as its last parameter: an absolute time on heddle's clock (hd_now, hd_after). A time
 * that has passed, 0 included, means: try once; with 0 or less the call is no cancellation point either. The clock begins at 10^15
 * with the program: what is more than 0, and earlier than an hour before that, can only be a duration (HD_SEC(5) for
 * hd_after(HD_SEC(5))), and every call that has an `until` answers -EINVAL and has done nothing. */
#ifndef HEDDLE_BASE_H
#define HEDDLE_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifndef __cplusplus
#include <stdbool.h>
#endif

#ifdef __cplusplus
#define HD_BEGIN extern "C" {
#define HD_END }
#else
#define HD_BEGIN
#define HD_END
#endif

/* HD_API: the library has it. HD_MUST_USE: a program that does not look at the answer goes on without the lock, the item, the value or
 * the process, and the compiler warns of that. HD_PRINTF: the compiler checks the arguments against the format. */
#if defined(__GNUC__)
#define HD_API __attribute__((visibility("default")))
#define HD_MUST_USE __attribute__((warn_unused_result))
#define HD_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))
#else
#define HD_API
#define HD_MUST_USE
#define HD_PRINTF(text, first)
#endif

HD_BEGIN

/* Nanoseconds: a point on heddle's monotonic clock, which begins at 10^15, or a distance on it. */
typedef int64_t hd_time;

/* A time that never comes; microseconds, milliseconds and seconds. */
#define HD_FOREVER INT64_MAX
#define HD_US(n) ((hd_time)(n)*1000)
#define HD_MS(n) ((hd_time)(n)*1000000)
#define HD_SEC(n) ((hd_time)(n)*1000000000)

/* A process: positive, and never used again for another one while the runtime runs. */
typedef int64_t hd_pid;

/* What a process runs: its argument in, its result out (see hd_join). */
typedef void *(*hd_entry)(void *arg);

/* What an error means, in a few words, when heddle answers it: of -ESRCH "there is no such process, or not any more". The sign does not matter;
 * for an error that heddle itself never answers, what strerror(3) says, or gai_strerror(3) if it is a resolver's (HD_EAI). The words are constant. Any thread, with or without a runtime. */
HD_API const char *hd_error(int err);

/* Why a process waits, as hd_process_info and the deadlock report say it. */
enum hd_wait {
	HD_WAIT_NONE = 0,      /* it does not wait */
	HD_WAIT_SLEEP,	       /* hd_sleep, hd_sleep_until */
	HD_WAIT_SEMAPHORE,     /* hd_semaphore_wait */
	HD_WAIT_JOIN,	       /* hd_join, hd_join_end */
	HD_WAIT_SUSPEND,       /* hd_suspend: for another process to stop */
	HD_WAIT_TERMINATE,     /* hd_terminate: for another process to end */
	HD_WAIT_MUTEX,	       /* hd_mutex_lock, hd_monitor_enter */
	HD_WAIT_CONDITION,     /* hd_monitor_wait, hd_condition_wait */
	HD_WAIT_REENTER,       /* hd_monitor_wait, hd_condition_wait: that wait is over, and it waits for the mutex */
	HD_WAIT_READ,	       /* hd_rwlock_read */
	HD_WAIT_WRITE,	       /* hd_rwlock_write */
	HD_WAIT_BARRIER,       /* hd_barrier_wait */
	HD_WAIT_ONCE,	       /* hd_once */
	HD_WAIT_EVENT,	       /* hd_event_wait */
	HD_WAIT_WAITGROUP,     /* hd_waitgroup_wait */
	HD_WAIT_PROMISE,       /* hd_promise_value */
	HD_WAIT_PUT,	       /* hd_queue_put */
	HD_WAIT_NEXT,	       /* hd_queue_next */
	HD_WAIT_SELECT,	       /* hd_select */
	HD_WAIT_GROUP,	       /* hd_group_wait */
	HD_WAIT_REST,	       /* hd_group_wait, or the owner ends: for members that were told to stop */
	HD_WAIT_FD_READ,       /* hd_read and the like: for the kernel to have something */
	HD_WAIT_FD_WRITE,      /* hd_write and the like: for the kernel to take it; hd_connect */
	HD_WAIT_FD_READ_TURN,  /* hd_read and the like: another process reads that descriptor */
	HD_WAIT_FD_WRITE_TURN, /* hd_write and the like: another process writes to it */
	HD_WAIT_FD_POLL,       /* hd_fd_poll, hd_fd_select */
	HD_WAIT_FD_CLOSE,      /* hd_close: for the end of a call that has begun */
	HD_WAIT_FILE,	       /* hd_pread, hd_read of a file, hd_stat and the like: for the disk */
	HD_WAIT_FILE_SYNC,     /* hd_fsync, hd_fdatasync, hd_msync, hd_tcdrain: for what was written to be there */
	HD_WAIT_FILE_LOCK,     /* hd_flock, hd_fcntl_lock: another program, or process, has the lock */
	HD_WAIT_FILE_OPEN,     /* hd_open, hd_openat: for the disk, or the other side of a FIFO */
	HD_WAIT_BLOCKING,      /* hd_blocking */
	HD_WAIT_NAME,	       /* hd_getaddrinfo, hd_getnameinfo */
	HD_WAIT_SIGNAL,	       /* hd_sigwait, hd_sigwaitinfo */
	HD_WAIT_CHILD,	       /* hd_waitpid, hd_spawn_child, hd_system */
	HD_WAIT_RECEIVE,       /* hd_receive and its like: for a message */
	HD_WAIT_SEND,	       /* hd_send, hd_call: for room in a port */
	HD_WAIT_CALL,	       /* hd_call: for the answer */
	HD_WAIT_COWN,	       /* a behaviour that has not begun: for its cowns */
	HD_WAIT_QUIESCE	       /* hd_quiesce: for behaviours to end */
};

/* A request to a worker, inside what it is about. Private. */
struct hd_note {
	struct hd_note *next;
	void (*apply)(void *worker, struct hd_note *note);
};

/* The queue inside everything that can be waited for. Zeroed memory is an empty queue. All of it is private. */
struct hd_waiter;
struct hd_waitq {
	struct hd_waiter *head, *tail;
	unsigned char lock;
};

HD_END
#endif
