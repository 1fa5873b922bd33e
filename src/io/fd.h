/* io/fd.h - what heddle knows of a descriptor: whose turn it is, what the kernel has said of it, which poller watches it. */
#ifndef IO_FD_H
#define IO_FD_H

#include "io/use.h"
#include "os/io.h"
#include "wait/wait.h"

/* A descriptor is two flows, which have nothing to do with each other. */
enum hd__way { HD__READING = 0, HD__WRITING = 1 };

/* One flow. An operation takes its turn, then tries, and waits for the kernel as often as it must, then passes the turn on: so two
 * messages never mix. The process whose turn it is waits for the kernel at the head of the queue, those that wait for their turn behind it.
 *
 * `edges` counts what the kernel has said. The process whose turn it is reads it before it tries; if the kernel then has no more, that was
 * the truth after so many edges, and `drained` is one more than them: until the next edge the flow is not worth a try. An edge that comes
 * between the try and the store of `drained` is not lost, because what is stored does not depend on when. */
struct hd__flow {
	struct hd_waitq waiters;
	int64_t owner;	     /* whose turn it is: a process, less a thread, 0: none; from 0 by CAS, else under the lock */
	uint32_t edges;	     /* under the lock; read by the owner, acquire */
	uint32_t drained;    /* the owner's; read by others as a hint */
	uint32_t generation; /* of the descriptor: how often the number has been closed */
	uint16_t locks;	     /* hd_fd_lock of its owner, that keeps its turn over operations; the owner's */
	bool waits;	     /* its owner waits for the kernel, at the head */
	bool busy;	     /* locks > 0: an operation is on its way */
	bool closing;	     /* hd_close has begun; seq_cst */
};

/* A call touches one cache line of it or two: that of its flow, and the first. */
struct hd__fd {
	struct hd__flow reading;
	unsigned char lock; /* guards what the poller knows; a process that only watches reads it without, relaxed: */
	uint8_t how;	    /* enum hd__how */
	uint16_t poller;    /* the worker that watches it, plus 1; 0: none */
	uint8_t strays;	    /* how often in a row it was waited for on other workers */
	bool stream;	    /* a short count says that there is no more */
	bool hung_up;	    /* but not any more: what comes may be an end or an error */
	bool born;	    /* heddle made it: if the number is reused, heddle hears of it */

	struct hd__flow writing;
	uint32_t watching; /* processes that wait for either flow without taking a turn: any thread, seq_cst */
	uint32_t news;	   /* of it, while there are such; under the lock of: */
	struct hd_waitq watchers;
	struct hd__uses uses; /* operations that take no turn */
	bool waits[2];	      /* a file that cannot be read, or written, without perhaps waiting for the disk; a hint */
	bool own;	      /* it was born, and the program does not know it: see hd__fd_born_own */
} __attribute__((aligned(64)));

static inline struct hd__flow *hd__flow_of(struct hd__fd *f, enum hd__way way)
{
	return way == HD__READING ? &f->reading : &f->writing;
}

/* The record of fd; NULL: -EBADF or -ENOMEM, in *err. */
struct hd__fd *hd__fd_get(struct hd__sched *sched, int fd, int *err);

/* fd is one of heddle's own, until the runtime ends: a call of the program on that number answers -EBADF. */
void hd__fd_is_ours(struct hd__sched *sched, int fd);

/* The kernel has just given out this number, for a descriptor of this nature: what is known of it is of an earlier one. Returns fd. On a
 * process or a plain thread. */
int hd__fd_born(int fd, enum hd__how how, bool stream);
int hd__fd_born_as(int fd, const struct hd__nature *nature);
int hd__fd_born_of(int fd, int parent); /* a connection to a listening socket */

/* As hd__fd_born, for a descriptor of a wait, which its process closes afterwards. If the runtime ends over that process, or in a forked child, it is
 * closed by heddle. On a process. */
void hd__fd_born_own(int fd);

/* An operation on a descriptor. */
struct hd__op {
	/* Tries it, without blocking the worker: a count or -errno; -EAGAIN when it would have to wait for the poller, -ECANCELED when hd__heed must
	 * follow. */
	ssize_t (*attempt)(struct hd__op *op, enum hd__how how);
	struct hd__fd *f; /* of fd; NULL on a plain thread. hd__fd_do sets it, and `until` */
	hd_time until;
	int fd;
	enum hd__way way;
	enum hd_wait why; /* what hd_process_info tells; 0: by `way` */
	bool whole;	  /* it goes on until `wanted` is 0 */
	bool by_count;	  /* a short count says that there is no more */
	bool apart; /* it asks for something else than what the flow knows of: it is always tried, and its -EAGAIN says nothing of the flow */
	size_t all, wanted; /* bytes to move; still to move */
	int err;	    /* what ended it when something had been moved, but not all; 0: the end */
	size_t offered;	    /* what the last attempt could have moved: `wanted`, or less if that has many parts */
	const struct iovec *iov;
	int n;
	struct msghdr *message;
	int flags;
	void *address, *size;
};

/* Does it: waits for its turn and for the kernel, at the longest until `until`. Returns what attempt answered, the sum of it if `whole`;
 * -ETIMEDOUT, -ECANCELED (not if something was moved), -EBADF when the descriptor was closed meanwhile, -ENOTSUP on a process that
 * is simulated. On a plain thread it waits in the kernel. Cancellation point. */
ssize_t hd__fd_do(struct hd__op *op, hd_time until);

/* f->how and what belongs to it are known. In the caller's turn, or use. Returns 0, -EBADF. */
int hd__fd_learn(struct hd__fd *f, int fd);

/* The bytes of op->iov that are still to be moved, or their beginning: so many are offered. Returns how many parts they have. */
#define HD__PARTS 16
int hd__op_rest(struct hd__op *op, struct iovec parts[HD__PARTS]);

/* How much a vector is in all; -EINVAL if it has too many parts, or is more than a count can say. */
ssize_t hd__iov_sum(const struct iovec *iov, size_t n);

/* w watches the bell of its ring (io/ring.h) from now on. On w's thread, outside its lane. */
int hd__fd_watch_bell(struct hd_worker *w, int bell);

/* A poller watches fd from now on, if none does. Returns 0; -EPERM: it is always ready; -EBADF and their like. In a turn, or not; outside the lane of
 * the worker w, on its thread. */
int hd__fd_watch(struct hd_worker *w, struct hd__fd *f, int fd);

/* Tells processes that watch the descriptor of this generation: there is news (HD__GRANTED), or it is closed (HD__CLOSED). */
void hd__fd_tell(struct hd_worker *w, struct hd__fd *f, uint32_t generation, enum hd__outcome outcome);
extern const struct hd__case_ops hd__fd_case;

/* Says that a simulated program cannot have this, and returns -ENOTSUP. */
int hd__fd_refuse(void);

/* Where a call begins that goes outside: a safe point, and a cancellation point. Returns 0, or its answer. */
int hd__io_begin(hd_time until);

/* A call that begins has found the marks of hd_close, when this was the generation: whether that is over, and the number may be another descriptor's.
 * Waits for close(2), if that is under way: it may have given the number out again already. Outside all lanes. */
bool hd__fd_is_another(struct hd__fd *f, uint32_t generation);

/* Turns (io/turn.c). The caller's turn in a flow: it takes it (0, or as hd__fd_do), and passes it on, unless it has locked the flow. */
int hd__turn_take(struct hd__fd *f, int fd, enum hd__way way, hd_time until);
void hd__turn_pass(struct hd__flow *flow);

/* For hd_fd_lock. In its turn, the caller keeps it, once more: 0, or -EBADF, -EAGAIN, and it has passed it on, unless it has locked the flow before.
 * It gives up one of its locks of that generation, or all: how many are left, or -EPERM. */
int hd__turn_keep(struct hd__flow *flow);
int hd__turn_give(struct hd__flow *flow, uint32_t generation, bool wholly);

/* For hd_close. From now on operations that wait, or begin, answer -EBADF: false: another process or thread does it. Inside the lane of w (NULL: a plain
 * thread). Then waits for the end of the operation that is on its way; the lane is left. Then the flow is another descriptor's. */
bool hd__turn_begin_close(struct hd_worker *w, struct hd__flow *flow);
void hd__turn_take_last(struct hd_worker *w, struct hd__flow *flow, int fd);
void hd__turn_begin_anew(struct hd__flow *flow);

/* The runtime has ended over the process whose turn it is, if any: the turn goes to the first thread that waits for it. */
void hd__turn_forsake(struct hd__flow *flow);

/* The kernel has said something of the flow of the descriptor of this generation (io/op.c). Inside the lane of w, or on another thread (NULL). */
void hd__op_hear(struct hd_worker *w, struct hd__flow *flow, uint32_t generation);

/* Something has happened to n descriptors (the poller's). */
void hd__fds_happened(struct hd__sched *sched, struct hd_worker *w, const struct hd__happening *events, int n);

/* The runtime ends: no process runs any more, and what is in use by one, on its stack, is so no longer. */
void hd__io_forsake_uses(struct hd__sched *sched);

/* The runtime ends: all processes are gone, and if one was abandoned in its turn, a plain thread may wait for that in hd_close. */
void hd__io_forsake(struct hd__sched *sched);

/* And no plain thread is inside. */
void hd__io_drop(struct hd__sched *sched);

/* In a forked child: closes its copies of what the program does not know, the sets that its parent's workers sleep in and the descriptors of
 * waits. The parent's stay as they are. */
void hd__io_forget(struct hd__sched *sched);

/* w watches fd from now on, in place of the worker that did (0: none). On w's thread, outside its lane; under f->lock. */
int hd__poller_watch(struct hd_worker *w, int fd, uint64_t whose);
void hd__poller_unwatch(struct hd__sched *sched, unsigned poller, int fd);

extern const struct hd__poller hd__epoll_poller;

#endif
