/* heddle/port.h - messages between processes.
 *
 * A port is where messages arrive. It belongs to one process, its owner, which alone receives from it; any process or thread that has a
 * reference may send to it. Messages of one port arrive in one order, and those of one sender in the order in which they were sent; an
 * urgent message overtakes those that are not. hd_call sends a message and waits for the answer, and gives its worker to the process that
 * will answer; hd_reply gives it back. */
#ifndef HEDDLE_PORT_H
#define HEDDLE_PORT_H

#include <heddle/base.h>

HD_BEGIN

typedef struct hd_port hd_port;

/* What a send to a full port does. */
enum hd_port_full {
	HD_FULL_FAIL = 0, /* answers -ENOBUFS; the message stays the sender's */
	HD_FULL_DROP_NEW, /* answers 0 and drops the new message; counted */
	HD_FULL_DROP_OLD, /* answers 0 and drops the oldest message in the port; counted */
	HD_FULL_BLOCK	  /* waits for room */
};

/* How to make a port. Zeroed memory is a port without limits, owned by the caller. Answers to hd_call, death notices and messages of
 * hd_send_after do not count, and arrive in a full port too. */
struct hd_port_options {
	size_t capacity;	/* messages that it holds at most; 0: any number */
	size_t memory;		/* bytes of data that they have at most, in all; 0: any number */
	enum hd_port_full full; /* what a send does then */
	bool unowned;		/* it has no owner until a process is spawned with it (hd_spawn.port) */
};

/* A message, as hd_receive fills it. Its parts belong to the receiver until hd_message_drop. */
struct hd_message {
	hd_port *port;	  /* where it arrived: to be compared. NULL: there are no more references to that port */
	hd_pid sender;	  /* 0: a plain thread or a timer; of a death notice: the process that has ended */
	int64_t tag;	  /* what it is about: 0 or more; HD_TAG_ENDED: a death notice */
	size_t size;	  /* bytes at `data` */
	void *data;	  /* NULL when size is 0, unless it was moved */
	hd_port *carried; /* a port that travels with it; of a call: where the answer goes. NULL: none */
	void *letter;	  /* private */
};

/* The tag of a death notice (hd_watch); its data is a struct hd_ended. */
#define HD_TAG_ENDED (-1)

/* A port. On a process it is the caller's own, unless `options` say that it is unowned; on a plain thread it is unowned. `options` may be
 * NULL: no limits. The caller has a reference and gives it up by hd_port_release. If it is the owner's, and the owner ends without having given
 * up any reference to the port, heddle does. NULL: no memory, or a value out of range. Any thread, with or without a runtime. */
HD_API HD_MUST_USE hd_port *hd_port_new(const struct hd_port_options *options);

/* Adds a reference, or gives one up: without any, the port is gone when its last message has been received. hd_port_retain answers its
 * argument; hd_port_release of NULL does nothing. Any thread, with or without a runtime. */
HD_API hd_port *hd_port_retain(hd_port *port);
HD_API void hd_port_release(hd_port *port);

/* What hd_port_info tells. */
struct hd_port_info {
	hd_pid owner;	   /* 0: none yet, or it has ended */
	bool closed;	   /* its owner has ended: no message can be sent */
	size_t length;	   /* messages in it */
	size_t high_water; /* the most that ever stood in it, or somewhat more: its owner may take many at once, and all count until the last one. A call that
			    * gave its worker to the owner, which had no messages, did not stand there */
	size_t bytes;	   /* of their data; 0 of a port without limits */
	uint64_t dropped;  /* messages that were dropped because it was full */
};
/* Fills `info`: a moment's truth. Any thread that has a reference. */
HD_API void hd_port_info(hd_port *port, struct hd_port_info *info);

/* Sends a message with a copy of `size` bytes at `data` (NULL if size is 0). hd_send_move sends the memory itself: it is the receiver's
 * then, and drop(data) is called when the receiver, or heddle in its place, drops the message (NULL: nothing is called). drop runs in a
 * process, or in the thread that called hd_message_drop or hd_run; it may not wait. Waits only if the port is full and its policy is
 * HD_FULL_BLOCK. Returns
 *
 *   0            the message is in the port, or was received; or dropped, as the policy of a full port says
 *   -ENOBUFS     the port is full
 *   -EMSGSIZE    the message is longer than all the memory that the port may have
 *   -ESRCH       the owner has ended
 *   -EDEADLK     the message passes a call on (hd_sending.carried) to a process that waits, through a chain of calls, for the process that called, or
 *                is that process. HEDDLE_DEADLOCK=report prints the chain
 *   -ETIMEDOUT   there was no room by `until`
 *   -ECANCELED   the caller was cancelled while it waited, or before
 *   -EINVAL      tag is below 0, or data is NULL and size is not 0
 *   -ENOMEM      no memory
 *   -ENXIO       no runtime runs
 *
 * Unless it returns 0 nothing was sent, and what was to be moved is still the caller's. Any thread. Cancellation point, unless `until` is 0. */
HD_API HD_MUST_USE int hd_send(hd_port *port, int64_t tag, const void *data, size_t size, hd_time until);
HD_API HD_MUST_USE int hd_send_move(hd_port *port, int64_t tag, void *data, size_t size, void (*drop)(void *data),
				    hd_time until);

/* A message to be sent, with everything. Zeroed memory is tag 0 without data. */
struct hd_sending {
	int64_t tag;
	const void *data;
	size_t size;
	bool move;		  /* as hd_send_move, with `drop` */
	void (*drop)(void *data); /* `move`: called when the message is dropped; or NULL */
	hd_port *carried;	  /* a port that travels with it, for which heddle takes a reference; or NULL */
	bool urgent;		  /* it overtakes messages that are not urgent */
};
/* As hd_send, with everything. */
HD_API HD_MUST_USE int hd_send_with(hd_port *port, const struct hd_sending *what, hd_time until);

/* A message, and where it goes. */
struct hd_parcel {
	hd_port *port;
	struct hd_sending what;
};
#define HD_SEND_ALL_MAX 16 /* parcels in one call */

/* Sends n messages, to as many ports or fewer, in one indivisible step: no process receives one of them, and no other message comes between those to one
 * port, before all have been sent. Never waits: a port that is full and would make the sender wait counts as one that fails. Returns 0;
 *
 *   -ESRCH      the owner of one of the ports has ended
 *   -ENOBUFS    there is not room for all of them
 *   -EMSGSIZE   one has more bytes than its port may ever have
 *   -EDEADLK    one of them passes a call on that would close a circle, as hd_send
 *   -E2BIG      n is more than HD_SEND_ALL_MAX
 *   -EINVAL     as hd_send_with; or one of the ports is one for an answer
 *   -ENOMEM, -ENXIO
 *
 * Unless it returns 0 none was sent, and what was to be moved is still the caller's. Any thread. */
HD_API HD_MUST_USE int hd_send_all(const struct hd_parcel *parcels, size_t n);

/* Receives the next message of a port of the caller's, or (NULL) of all its ports: urgent ones first, else the one that arrived first.
 * *m need not be initialised; what it held before is not dropped. Messages that the receiver has not dropped are dropped at its end.
 * Returns
 *
 *   0            *m has a message
 *   -ETIMEDOUT   none had come by `until`
 *   -ECANCELED   the caller was cancelled; no message was taken
 *   -EPERM       the port is not the caller's; or it is NULL, and the caller has none
 *   -ENOTSUP     on a plain thread
 *
 * Cancellation point. */
HD_API HD_MUST_USE int hd_receive(hd_port *port, struct hd_message *m, hd_time until);

/* As hd_receive, but takes the first message that is wanted and leaves the others where they are, in their order: hd_receive_tag the first
 * with this tag, hd_receive_where the first for which wanted(m, arg) is true. The function is called on the caller's stack and makes no heddle
 * calls; each message is shown to it once in each call of hd_receive_where. It may look at *m, and keeps nothing of it. */
HD_API HD_MUST_USE int hd_receive_tag(hd_port *port, int64_t tag, struct hd_message *m, hd_time until);
HD_API HD_MUST_USE int hd_receive_where(hd_port *port, bool (*wanted)(const struct hd_message *m, void *arg), void *arg,
					struct hd_message *m, hd_time until);

/* Ends what *m has: its data are freed or dropped, the port that it carries is released; if it is a call that was not answered, and no other
 * reference to its reply port is left, the caller's hd_call answers -EPIPE. *m is zeroed. Of a zeroed message it does nothing. By the process that
 * has received it; of a message that was taken: any thread, with or without a runtime. (A message that is not taken may be dropped by
 * another process or thread too, while its receiver lives; what little is left of it is freed by the receiver.) */
HD_API void hd_message_drop(struct hd_message *m);

/* Keeps a message beyond the end of the caller, which has received it: from now on it belongs to the program, any thread of which may drop it.
 * Returns 0; -EPERM when another process has received it, and has not taken it. Process. */
HD_API int hd_message_take(struct hd_message *m);

/* Sends a message and waits for its answer, which it receives into *answer (NULL: it is dropped). The message carries a port of its own for
 * that: the receiver, or any process to which it passes that port on, answers with hd_reply. The process that will answer runs at once in place of
 * the caller, if it is waiting or ready, may run on this worker, and no process that is ready here has a higher priority (64 such hand-offs in
 * a row at most). From when the message is in the port until the call ends, the process that will answer runs with at least the caller's
 * priority; if it waits in a call itself, or for a mutex with HD_INHERIT, so does the process that it waits for, and so on. (A caller whose priority
 * is not above the lowest that the process has ever had of its own lends nothing, also not if that process's own is lowered while it waits.) hd_call_move sends the memory itself, as hd_send_move does; after 0, -EPIPE, -ETIMEDOUT and -ECANCELED, and if the caller is
 * terminated in the call, that memory has been sent or dropped, and is not the caller's any more. Returns
 *
 *   0            *answer has the answer
 *   -EPIPE       it will never be answered: the message was dropped, or the process that had it has ended; or the caller had to wait for room, and
 *                the process that will answer has called it meanwhile, perhaps through others
 *   -EDEADLK     the receiver waits, through a chain of calls, for the caller, or is the caller; nothing was sent. HEDDLE_DEADLOCK=report
 *                prints the chain
 *   -ETIMEDOUT   there was no answer by `until`; one that comes later is dropped, and the process that gives it hears -ESRCH
 *   -ECANCELED   the caller was cancelled; the same holds then
 *   -ENOTSUP     on a plain thread
 *
 * or as hd_send, and then nothing was sent. Cancellation point. */
HD_API HD_MUST_USE int hd_call(hd_port *port, int64_t tag, const void *data, size_t size, struct hd_message *answer,
			       hd_time until);
HD_API HD_MUST_USE int hd_call_move(hd_port *port, int64_t tag, void *data, size_t size, void (*drop)(void *data),
				    struct hd_message *answer, hd_time until);

/* Answers a call, with a copy of `size` bytes at `data`, or (hd_reply_move) with the memory itself. The process that called runs at once, if it
 * may run on this worker and no process that is ready here, nor the one that replies, has a higher priority; the one that replies is then at
 * the tail of its level; if it had its priority from this caller, it falls back to its own, at the head of that level. *m stays the caller's to drop; the port that it carried is gone. Returns
 *
 *   0          the answer has arrived
 *   -EALREADY  the call was answered before
 *   -ESRCH     the call does not wait any more: its time was up, it was cancelled, or its process has ended
 *   -EINVAL    *m is no call, tag is below 0, or data is NULL and size is not 0
 *   -ENOMEM    no memory
 *   -ENOTSUP   on a plain thread
 *
 * Unless it returns 0, what was to be moved is still the caller's. A process that passes a call on sends m->carried with another message
 * (hd_sending.carried); hd_send to such a port is an answer too. Process. */
HD_API HD_MUST_USE int hd_reply(struct hd_message *m, int64_t tag, const void *data, size_t size);
HD_API HD_MUST_USE int hd_reply_move(struct hd_message *m, int64_t tag, void *data, size_t size, void (*drop)(void *data));

/* What hd_stuck tells of a process. */
struct hd_suspect {
	hd_pid pid;
	hd_time since;	   /* it has waited since then; good to some milliseconds */
	size_t ports;	   /* the ports for which it waits */
	size_t references; /* to these, in messages that it or other suspects have; its own are not counted */
};

/* Calls fn for every process that seems to be stuck, oldest slot first, until fn answers something other than 0; returns that, or 0. -ENOMEM: no
 * memory, and fn was not called; -ENXIO when no runtime runs. A process is suspected when it waits in hd_receive and its like, or in
 * hd_select for messages alone, without a deadline, and no message can come: no process and no name, watch or timer has a
 * reference to a port for which it waits, but for the reference with which its owner made it, and those that are carried by messages which suspects
 * have not received, or have received and not dropped. It has no links, and was not cancelled.
 *
 * This is a suspicion. heddle counts references and does not know which process uses them. The suspicion is wrong if another process or thread uses a
 * port, or a message, without a reference of its own: if the owner gave it the pointer without hd_port_retain. And it is right, but no
 * fault, if the process waits only for its end: a cancel, a termination, a new link are not foreseen. A process that keeps a reference to
 * another's port in a variable may use it, as far as heddle knows: so not every process that is stuck is found.
 *
 * No process is stopped. Those that are told were all stuck at one moment in the call, and stay so. Any thread; fn may call heddle. */
HD_API int hd_stuck(int (*fn)(const struct hd_suspect *suspect, void *arg), void *arg);

HD_END
#endif
