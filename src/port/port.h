/* port/port.h - ports, mailboxes and letters: what a message is while it is under way.
 *
 *     sender ---- letter ----> port ----> mailbox of its owner ----> hd_receive ----> held, until it is dropped
 *                                                      \-- the owner waits for it: from hand to hand
 *
 * A process has one mailbox, made when it first needs one; all its ports deliver there. The lock of the mailbox's wait queue guards the
 * mailbox, its ports and the letters in them. A reply port stands alone: its own lock guards it. */
#ifndef PORT_PORT_H
#define PORT_PORT_H

#include <heddle/port.h>

#include "life/life.h"
#include "port/line.h"
#include "sync/select.h"

enum { HD__URGENT, HD__PLAIN, HD__CLASSES };

/* What a message is until it is dropped. One whose message has nothing to be dropped is gone when it is received. */
struct hd__letter {
	struct hd_message m;
	struct hd__link in_box;	    /* among what has arrived in the mailbox, or what its owner holds; in a store: the next */
	struct hd__link in_port;    /* among what has arrived in the port */
	struct hd__mailbox *holder; /* whose owner has received and not dropped it; NULL: none. The owner's, as `held` */
	void (*drop)(void *data);   /* m.data was moved, and is dropped with this; or NULL */
	uint8_t class;		    /* HD__URGENT or HD__PLAIN */
	bool exempt;		    /* it does not count in a port with limits */
	bool answered;		    /* m was a call, and the process that has m has answered it */
	bool emptied;		    /* a thread that is not its holder has dropped what is in it (*) */
	bool large;		    /* it is longer than HD__LETTER_ROOM, and no store takes it */
	_Alignas(16) unsigned char room[];
};
#define HD__LETTER_SIZE 192
#define HD__LETTER_ROOM (HD__LETTER_SIZE - sizeof(struct hd__letter))

static inline struct hd__letter *hd__in_box(struct hd__link *link)
{
	return link == NULL ? NULL : (struct hd__letter *)((char *)link - offsetof(struct hd__letter, in_box));
}

static inline struct hd__letter *hd__in_port(struct hd__link *link)
{
	return link == NULL ? NULL : (struct hd__letter *)((char *)link - offsetof(struct hd__letter, in_port));
}

/* An empty letter for a notice of `size` bytes. NULL: no memory. Outside a lane. */
struct hd__letter *hd__letter_alloc(size_t size);

/* One letter more is in use, or less: for the statistics. By the thread of w. */
void hd__count_letter(struct hd_worker *w, int64_t change);

/* Gives the letter back, which has nothing to be dropped. By the thread of w, inside or outside its lane. */
#define HD__STORE_MAX 512 /* letters in a worker's store */
void hd__letter_free_slowly(struct hd_worker *w, struct hd__letter *l);
static inline void hd__letter_free(struct hd_worker *w, struct hd__letter *l)
{
	if (unlikely(w == NULL || l->large || w->letters.count >= HD__STORE_MAX)) {
		hd__letter_free_slowly(w, l);
		return;
	}
	bump(&w->letters.live, -1);
	l->in_box.next = w->letters.first;
	w->letters.first = &l->in_box;
	w->letters.count++;
}

/* A letter with `size` bytes at `data`; from the store if it can be. Inside the lane of w, which may be left meanwhile; NULL: on a plain
 * thread. NULL: no memory. */
struct hd__letter *hd__letter_make(struct hd_worker *w, const void *data, size_t size);
static inline struct hd__letter *hd__letter_new(struct hd_worker *w, const void *data, size_t size)
{
	if (unlikely(w == NULL || size > HD__LETTER_ROOM || w->letters.count == 0))
		return hd__letter_make(w, data, size);
	struct hd__letter *l = hd__in_box(w->letters.first);
	w->letters.first = l->in_box.next;
	w->letters.count--;
	bump(&w->letters.live, 1);
	if (size > 0)
		hd__copy(l->room, data, size);
	return l;
}

/* How many letters are in use; any thread. */
int64_t hd__letters_live(const struct hd__sched *sched);

/* How many ports there are; any thread. */
int64_t hd__ports_live(void);

/* Frees a worker's store. */
void hd__letters_fini(struct hd__letters *letters);

/* Ends all that the letter has, and gives it back. Outside a lane; no locks are held. */
void hd__letter_drop(struct hd__letter *l);

/* As hd__letter_drop, for all of a chain by in_box.next. */
void hd__letters_drop(struct hd__link *chain);

/* The two chains as one. */
static inline struct hd__link *hd__chain(struct hd__link *first, struct hd__link *rest)
{
	struct hd__link **end = &first;

	while (*end != NULL)
		end = &(*end)->next;
	*end = rest;
	return first;
}

/* Whether a received message has something that must be dropped. */
static inline bool hd__letter_matters(const struct hd__letter *l)
{
	return l->m.data != NULL || l->m.carried != NULL || l->drop != NULL;
}

enum hd__port_kind { HD__MAIL_PORT, HD__REPLY_PORT };

/* What every port begins with. */
struct hd__port_head {
	uint32_t refs; /* of a mail port: any thread, add and subtract; of a reply port: under its lock, st_rel */
	uint8_t kind;  /* constant */
};

/* Of a port with limits. */
struct hd__limits {
	struct hd_waitq room; /* senders that wait for room; its lock is taken inside the mailbox's. x->data is the letter */
	size_t capacity, memory;
	enum hd_port_full full;
	size_t count, bytes; /* of letters that are not exempt */
	uint64_t dropped;
};

struct hd_port {
	struct hd__port_head head;
	bool owners; /* the owner's reference is heddle's to release at its end; the owner's */
	bool freed;  /* there are no references; it is there until its last letter is taken */
	uint32_t length, high_water;
	struct hd__mailbox *box; /* constant */
	struct hd__line line[HD__CLASSES];
	struct hd__limits *limits; /* NULL: none; constant */
	hd_port *next, **link;	   /* among the ports of the mailbox; link: what points to this one */
};

/* Where all letters to a process arrive. It is there as long as its owner or one of its ports is. */
struct hd__mailbox {
	struct hd__mourner mourner; /* the first member */
	struct hd_waitq receiver;   /* where its owner waits: one record, or those of one hd_select */
	uint64_t number;	    /* an order of all mailboxes, in which several are locked (batch.c); constant */
	hd_pid owner;		    /* 0: none yet; any thread, relaxed */
	uint32_t refs;		    /* its ports, and its owner */
	bool bound;		    /* it has an owner, or will have in a moment */
	bool closed;		    /* its owner has ended, or does: nothing arrives any more */
	bool mourns;		    /* its owner ends, and waits in `receiver` for the end of its children */
	uint32_t children;	    /* under ties_lock: how many ties it has as a creator */
	struct hd__line arrived[HD__CLASSES];
	struct hd__line
		held; /* what its owner has received and not dropped; the owner's, and when that waits, the thread's that has claimed
			       * its wait */
	hd_port *ports;
	hd_port *gone;				/* ports that are to be freed when no lock is held */
	struct hd__letter *shown;		/* what hd_receive_where is looking at without the lock: it is not dropped */
	const hd_port *looks_in;		/* and the port that it looks at; NULL: all */
	struct hd__letter *looked[HD__CLASSES]; /* the last letter that it has looked at; NULL: none */
	struct hd__line ties;			/* its owner's links and watches, and watches to its ports (tie.c) */
	struct hd__name *names;			/* of its ports (name.c) */
	struct hd__reply *reply;		/* for its owner's next call; the owner's; or NULL */
};

/* As hd__letters_drop, inside the lane of w: calls are broken, and ports released; letters with a function of the program's are dropped when
 * hd_run ends. */
void hd__letters_leave(struct hd_worker *w, struct hd__link *chain);

/* The owner ends; has ended. */
void hd__mailbox_ending(struct hd__mourner *mourner, struct hd_process *me, enum hd_end_kind kind, int err);
void hd__mailbox_ended(struct hd__mourner *mourner, struct hd_worker *w, const struct hd_end *end);

/* In a forked child, which has none of the processes of this runtime, its parent's: their ports are closed, and their calls wait for nothing.
 * What was in them stays, unused. */
void hd__ports_forget(struct hd__sched *parents);

/* Drops what hd__letters_leave has left. No process runs any more. */
void hd__letters_drop_left(struct hd__sched *sched);

/* The mailbox of p, by its own thread, or under p->news.lock; NULL: none yet. */
static inline struct hd__mailbox *hd__mailbox_of(struct hd_process *p)
{
	struct hd__mourner *first = ld_acq(&p->mourner);
	return first != NULL && first->ended == hd__mailbox_ended ? (struct hd__mailbox *)first : NULL;
}

/* The caller's mailbox, made if it must be; NULL: no memory. Outside its lane. */
struct hd__mailbox *hd__mailbox_own(struct hd_worker *w);

/* A mailbox without an owner, with one reference; NULL: no memory. */
struct hd__mailbox *hd__mailbox_new(void);

/* Under p->news.lock: the mailbox is p's, which is alive and has none. */
void hd__mailbox_give(struct hd__mailbox *box, struct hd_process *p, hd_pid pid);

static inline void hd__mailbox_lock(struct hd__mailbox *box)
{
	hd__waitq_lock(&box->receiver);
}

static inline void hd__mailbox_unlock(struct hd__mailbox *box)
{
	hd__waitq_unlock(&box->receiver);
}

/* Under the lock, which it releases: one reference less. The mailbox may be gone then. */
void hd__mailbox_release(struct hd__mailbox *box);

/* The owner's record in hd_receive. */
struct hd__receiver {
	struct hd_waiter waiter;
	hd_port *port;	      /* NULL: any of the owner's */
	struct hd_message *m; /* where the message goes; NULL: the owner wants to look for itself */
};

/* Under the lock: the first letter in `port` (NULL: in any); NULL: none. */
static inline struct hd__letter *hd__first_letter(const struct hd__mailbox *box, const hd_port *port)
{
	if (port == NULL) {
		struct hd__link *first = hd__line_first(&box->arrived[HD__URGENT]);
		return hd__in_box(first != NULL ? first : hd__line_first(&box->arrived[HD__PLAIN]));
	}
	struct hd__link *first = hd__line_first(&port->line[HD__URGENT]);
	return hd__in_port(first != NULL ? first : hd__line_first(&port->line[HD__PLAIN]));
}

/* Under the lock: the letter arrives in its port; leaves it. */
static inline void hd__push_letter(struct hd__mailbox *box, hd_port *port, struct hd__letter *l)
{
	l->m.port = port;
	hd__line_push(&box->arrived[l->class], &l->in_box);
	hd__line_push(&port->line[l->class], &l->in_port);
	if (++port->length > port->high_water)
		port->high_water = port->length;
	if (unlikely(port->limits != NULL && !l->exempt)) {
		port->limits->count++;
		port->limits->bytes += l->m.size;
	}
}

void hd__pull_looked(struct hd__mailbox *box, struct hd__letter *l); /* hd_receive_where goes on behind the one before l */
static inline void hd__pull_letter(struct hd__mailbox *box, struct hd__letter *l)
{
	hd_port *port = l->m.port;

	if (unlikely(box->looked[l->class] == l))
		hd__pull_looked(box, l);
	hd__line_remove(&box->arrived[l->class], &l->in_box);
	hd__line_remove(&port->line[l->class], &l->in_port);
	port->length--;
	if (unlikely(port->limits != NULL && !l->exempt)) {
		port->limits->count--;
		port->limits->bytes -= l->m.size;
	}
}

/* As hd__pull_letter, for the owner. Returns a sender that has room now, to be unparked when the lock is released; or NULL. */
struct hd_waiter *hd__letter_left(struct hd_worker *w, struct hd__mailbox *box, struct hd__letter *l);
static inline struct hd_waiter *hd__take_letter(struct hd_worker *w, struct hd__mailbox *box, struct hd__letter *l)
{
	hd__pull_letter(box, l);
	return unlikely(l->m.port->limits != NULL || l->m.port->freed) ? hd__letter_left(w, box, l) : NULL;
}

/* The owner has received the letter, which has left its port or never was in it: *m is its message. By the owner, or by the thread that has claimed its
 * wait. Returns the letter if it is to be freed. */
static inline struct hd__letter *hd__hold_letter(struct hd__mailbox *box, struct hd__letter *l, struct hd_message *m)
{
	*m = l->m;
	if (!hd__letter_matters(l)) {
		m->letter = NULL;
		return l;
	}
	l->holder = box;
	hd__line_push(&box->held, &l->in_box);
	return NULL;
}

/* Frees the letters that another thread has dropped, up to the first that none has. By the owner, on the thread of w. */
void hd__free_emptied(struct hd_worker *w, struct hd__mailbox *box);

/* Frees the ports that are to be freed; no locks are held. By the owner. */
void hd__free_gone(struct hd__mailbox *box);

/* Delivers a letter to a port, or to a reply port as the answer; it is the mailbox's then, and *woken is to be unparked, or NULL. Inside the
 * caller's lane, or on a plain thread inside the gate; no locks are held. Returns 0; -ESRCH; -ENOBUFS, also when the port's policy is to wait;
 * -EALREADY of a reply port. *dropped is to be dropped outside the lane, if it is not NULL. */
int hd__deliver(struct hd_worker *w, hd_port *port, struct hd__letter *l, struct hd_waiter **woken,
		struct hd__letter **dropped);

/* As hd__deliver, and waits for room if the policy says so: then *w may be another afterwards. Returns too -ETIMEDOUT; -ECANCELED, which
 * hd__heed must follow. */
int hd__deliver_locked(struct hd_worker *w, hd_port *port, struct hd__letter *l, struct hd_waiter **woken);
int hd__deliver_slowly(struct hd_worker **w, hd_port *port, struct hd__letter *l, struct hd_waiter **woken,
		       struct hd__letter **dropped, hd_time until);
static inline int hd__deliver_surely(struct hd_worker **w, hd_port *port, struct hd__letter *l, struct hd_waiter **woken,
				     struct hd__letter **dropped, hd_time until)
{
	if (unlikely(port->head.kind == HD__REPLY_PORT || port->limits != NULL))
		return hd__deliver_slowly(w, port, l, woken, dropped, until);
	struct hd__mailbox *box = port->box;
	hd__mailbox_lock(box);
	if (unlikely(box->closed || box->receiver.head != NULL))
		return hd__deliver_locked(*w, port, l, woken);
	hd__push_letter(box, port, l);
	hd__mailbox_unlock(box);
	return 0;
}

/* Under the lock: as hd__deliver, to a port with a mailbox. *spare is a letter that is to be freed when the lock is released, or NULL. */
int hd__put_letter(struct hd_worker *w, hd_port *port, struct hd__letter *l, struct hd_waiter **woken,
		   struct hd__letter **dropped, struct hd__letter **spare);

/* Under the lock: whether so many messages more, with so many bytes in all, can be sent to the port without waiting. */
bool hd__has_room(const hd_port *port, size_t count, size_t bytes);

/* Fills a new letter with what is to be sent. Inside the lane of w, which may be left meanwhile; NULL: on a plain thread. Returns 0; -EINVAL;
 * -ENOMEM. Inline: most callers know most of what they send. */
__attribute__((always_inline)) static inline int hd__write_letter(struct hd_worker *w, const struct hd_sending *what,
								  struct hd__letter **letter)
{
	if (unlikely(what->tag < 0 || (what->data == NULL && what->size > 0)))
		return -EINVAL;
	size_t size = what->move ? 0 : what->size;
	struct hd__letter *l = hd__letter_new(w, what->data, size);
	if (unlikely(l == NULL))
		return -ENOMEM;
	l->m.sender = likely(w != NULL) ? hd__pid(&w->sched->table, w->current) : 0;
	l->m.tag = what->tag;
	l->m.size = what->size;
	l->m.data = what->move ? (void *)(uintptr_t)what->data : size > 0 ? l->room : NULL;
	l->m.carried = what->carried != NULL ? hd_port_retain(what->carried) : NULL;
	l->m.letter = l;
	l->holder = NULL;
	l->drop = what->move ? what->drop : NULL;
	l->class = what->urgent ? HD__URGENT : HD__PLAIN;
	l->exempt = l->answered = l->emptied = false;
	*letter = l;
	return 0;
}

/* Undoes it: what was to be moved is the caller's again. Outside a lane. */
void hd__unwrite_letter(struct hd__letter *l);

/* A call failed with err before its letter (or NULL) was delivered: undoes that. Answers err. Does not return if the caller must end. Outside a
 * lane. */
int hd__did_not_send(struct hd__letter *l, int err);

/* For a call: its caller, through whom the answer comes. */
struct hd__reply;

/* The letter, or no letter but a mere tag, answers the call. As hd__deliver. */
int hd__answer(struct hd_worker *w, struct hd__reply *r, struct hd__letter *l, struct hd_waiter **woken);

/* One reference more, or less; without any but the caller's own the call is broken: *woken is to be unparked, or NULL. */
void hd__reply_retain(struct hd__reply *r);
void hd__reply_release(struct hd_worker *w, struct hd__reply *r, struct hd_waiter **woken);

/* The process that will answer is another one from now on; 0: unknown. */
void hd__reply_pass_on(struct hd__reply *r, hd_pid to);

/* The process that waits for this answer; 0: none does any more. */
hd_pid hd__reply_owner(struct hd__reply *r);

/* By the owner of r, which ends or has no more use for it. */
void hd__reply_forget(struct hd__reply *r);

/* In a forked child: its owner does not exist. */
void hd__reply_abandon(struct hd__reply *r);

/* Frees it: it is in no list. */
void hd__port_free(hd_port *port);

/* Under the lock: the port leaves its mailbox's list. */
void hd__port_unlist(hd_port *port);

/* As hd_port_release, inside the lane of w (NULL: a plain thread): *woken, if it is set, is to be unparked, and what is answered to be dropped
 * outside the lane. */
struct hd__link *hd__port_release(struct hd_worker *w, hd_port *port, struct hd_waiter **woken);

/* As hd_port_release, but for the letters, which it answers: to be dropped. */
struct hd__link *hd__port_let_go(hd_port *port);

/* The owner of box, w's runner or one that will never run again, has ended: nothing arrives any more. Answers what is to be dropped outside the
 * lane, chained by in_box.next; the senders that wait for room are unparked. Inside the lane of w. */
struct hd__link *hd__mailbox_close(struct hd_worker *w, struct hd__mailbox *box);

/* hd_spawn_with, with a port, a link or a watch (a hook of life/). */
hd_pid hd__spawn_tied(struct hd__sched *sched, const struct hd_spawn *how, hd_entry entry, void *arg);

/* The owner, which is the caller, ends: ends its links, and waits for the children that it takes with it. */
void hd__ties_end(struct hd__mailbox *box, enum hd_end_kind kind, int err);

/* The owner is dead: ends the links and watches that are left, and tells those that watched it. Inside the lane of w. */
void hd__ties_tell(struct hd_worker *w, struct hd__mailbox *box, const struct hd_end *end);

/* The owner ends: its ports have no names any more. By the thread of w; then: the table is freed. */
void hd__names_end(struct hd_worker *w, struct hd__sched *sched, struct hd__mailbox *box);
void hd__names_drop(struct hd__sched *sched);

extern const struct hd__case_ops hd__receive_case;

#endif
