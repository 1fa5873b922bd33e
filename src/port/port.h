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
#include "sched/record.h"
#include "sync/select.h"

enum { HD__URGENT, HD__PLAIN, HD__CLASSES };

/* How much room a letter has: it is a mere tag, or has up to so many bytes of data in place. Those of HD__LARGE come from malloc, and all others from
 * slabs (letter.c). Each takes whole cache lines. */
enum hd__letter_kind { HD__BARE, HD__SHORT, HD__LONG, HD__LARGE };
_Static_assert(HD__LARGE == HD__LETTER_KINDS, "there is a store for each kind but the last");

/* What a message is until it is dropped. A bare one is gone when it is received. */
struct hd__letter {
	struct hd__link in_box;	 /* among what has arrived in the mailbox, or what its owner holds; in its slab: the next */
	struct hd__link in_port; /* among what has arrived in the port */
	union {
		hd_port *port; /* where it has arrived; until it is received */
		struct hd__mailbox
			*holder; /* whose owner has received and not dropped it; NULL: none. The owner's, as `held` */
	};
	hd_pid sender;
	int64_t tag;
	uint8_t class;	 /* HD__URGENT or HD__PLAIN */
	bool exempt;	 /* it does not count in a port with limits */
	bool answered;	 /* it was a call, and the process that has it has answered that */
	bool emptied;	 /* a thread that is not its holder has dropped what is in it (*) */
	uint8_t kind;	 /* enum hd__letter_kind; constant */
	uint8_t tick;	 /* HD__LARGE: it is sent again and again (after.c); 0: it is not */
	uint16_t number; /* among the letters of its slab; constant */

	/* not of a bare letter */
	size_t size;
	void *data;
	hd_port *carried;
	void (*drop)(void *data); /* `data` was moved, and is dropped with this; or NULL */
	_Alignas(16) unsigned char room[];
};
#define HD__BARE_SIZE offsetof(struct hd__letter, size)
#define HD__SHORT_SIZE 128
#define HD__LONG_SIZE 192
#define HD__SHORT_ROOM (HD__SHORT_SIZE - sizeof(struct hd__letter))
#define HD__LONG_ROOM (HD__LONG_SIZE - sizeof(struct hd__letter))
_Static_assert(HD__BARE_SIZE == 64, "a mere tag takes one cache line");

static inline struct hd__letter *hd__in_box(struct hd__link *link)
{
	return (struct hd__letter *)link;
}

static inline struct hd__letter *hd__in_port(struct hd__link *link)
{
	return link == NULL ? NULL : (struct hd__letter *)((char *)link - offsetof(struct hd__letter, in_port));
}

/* The port that travels with the letter; NULL: none. */
static inline hd_port *hd__carried(const struct hd__letter *l)
{
	return l->kind != HD__BARE ? l->carried : NULL;
}

/* The bytes of its data. */
static inline size_t hd__letter_size(const struct hd__letter *l)
{
	return l->kind != HD__BARE ? l->size : 0;
}

/* An empty letter for a notice of `size` bytes, with these: HD__LARGE. NULL: no memory. Outside a lane. */
struct hd__letter *hd__letter_alloc(size_t size);

/* One letter more is in use, or less: for the statistics. By the thread of w. */
void hd__count_letter(struct hd_worker *w, int64_t change);

/* The store of w for letters of this kind. */
static inline struct hd__store *hd__store_of(struct hd_worker *w, unsigned kind)
{
	struct hd__store *store = &w->letters.stores[kind];

	__asm__("" : "+r"(store)); /* or the compiler multiplies again for each place in it */
	return store;
}

/* Gives the letter back, which has nothing to be dropped. By the thread of w, inside or outside its lane. */
#define HD__BATCH 64 /* letters that go from a store to the depot, or back */
void hd__letter_free_slowly(struct hd_worker *w, struct hd__letter *l);
static inline void hd__letter_free(struct hd_worker *w, struct hd__letter *l)
{
	struct hd__store *store = likely(w != NULL) ? hd__store_of(w, l->kind) : NULL;

	if (unlikely(store == NULL || store->room == 0)) {
		hd__letter_free_slowly(w, l);
		return;
	}
	store->letters[--store->room] = l;
	bump(&w->letters.live, -1);
}

/* A letter of this kind with `size` bytes at `data`, from the store if it can be. Inside the lane of w, which may be left meanwhile; NULL: on a plain
 * thread. NULL: no memory. */
struct hd__letter *hd__letter_make(struct hd_worker *w, unsigned kind, const void *data, size_t size);
static inline struct hd__letter *hd__letter_new(struct hd_worker *w, unsigned kind, const void *data, size_t size)
{
	struct hd__store *store = w != NULL ? hd__store_of(w, kind) : NULL;
	struct hd__letter *l = store != NULL ? store->letters[store->room] : NULL;
	if (unlikely(l == NULL))
		return hd__letter_make(w, kind, data, size);
	__builtin_prefetch(store->letters[store->room + HD__STORE_AHEAD], 1);
	store->room++;
	bump(&w->letters.live, 1);
	if (size > 0)
		hd__copy(l->room, data, size);
	return l;
}

/* How many letters are in use; any thread. */
int64_t hd__letters_live(const struct hd__sched *sched);

/* How many ports there are; any thread. */
int64_t hd__ports_live(void);

/* A worker that runs no more gives up its store. When all have: the slabs that have no letter in use are freed. */
void hd__letters_fini(struct hd__letters *letters);
void hd__depot_trim(void);

/* In a forked child: another thread of the parent may have been using the depot. The parent's letters stay, unused. */
void hd__depot_forget(void);

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

enum hd__port_kind { HD__NO_PORT, HD__MAIL_PORT, HD__REPLY_PORT };

/* What every port begins with. */
struct hd__port_head {
	uint32_t refs; /* of a mail port: any thread, add and subtract; of a reply port: under its lock, st_rel */
	uint8_t kind;  /* constant as long as there are references */
	bool owners;   /* of a mail port: the owner's reference is heddle's to release at its end; the owner's */
	bool freed;    /* of a mail port: there are no references; it is there until its last letter is taken */
	bool fresh;    /* of a mail port whose mailbox has had several: as box->fresh, for this port */
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
	uint32_t length, high_water;
	struct hd__mailbox *box;   /* constant */
	struct hd__limits *limits; /* NULL: none; constant as long as there are references */
};

/* A port for which there was no room in its mailbox. */
struct hd__later_port {
	hd_port port; /* the first member */
	struct hd__line line[HD__CLASSES];
	struct hd__line afters;		     /* as struct hd__more's */
	struct hd__later_port *next, **link; /* among those of the mailbox; link: what points to this one. In `gone`: next */
};

/* What hd_receive_where remembers, on the owner's stack; under the lock. */
struct hd__look {
	const hd_port *port;			/* where it looks; NULL: in all of its ports */
	struct hd__letter *shown;		/* what it is looking at without the lock: it is not dropped; or NULL */
	struct hd__letter *looked[HD__CLASSES]; /* the last letter that it has looked at; NULL: none */
};

/* In `received`: the letter in `taken`, the only one, was put there by a process that called the owner (direct.c), and the length does not count it. */
#define HD__HANDED UINT32_MAX

/* What only some mailboxes need: made on first use, and there as long as the mailbox. */
struct hd__more {
	struct hd__reply *reply;	    /* for its owner's next call; the owner's; or NULL */
	struct hd__line first[HD__CLASSES]; /* the letters in the mailbox's first port, if that has had others */
	struct hd__later_port *ports;	    /* the others */
	struct hd__later_port *gone;	    /* ports that are to be freed when no lock is held */
	struct hd__line ties;		    /* its owner's links and watches, and watches to its ports (tie.c) */
	uint32_t links;		/* of the ties: those that are links; under ties_lock, read by any thread, relaxed */
	struct hd__name *names; /* of its ports (name.c) */
	struct hd__line afters; /* what is to be sent to its first port at a time (after.c) */

	/* letters that the owner has taken out of `arrived`, its only line, all at once, and receives one by one (receive.c); or the one that was handed to
	 * it: the owner's, and while that is ready the thread's inside its lane */
	struct hd__link *taken, *taken_last; /* chained by `next`; the `prev` of all but the first are right. NULL: none */
	uint32_t received; /* of those, since the lock was last held: the port's length counts them still; or HD__HANDED (*) */
	bool hurry;	   /* an urgent letter has arrived meanwhile; under the lock, read by the owner, relaxed */
};

enum { HD__SEVERAL = 1, HD__LOOKS = 2 };

/* Where all letters to a process arrive. It is there as long as its owner or one of its ports is. */
struct hd__mailbox {
	struct hd__mourner mourner; /* the first member */
	struct hd_waitq receiver;   /* where its owner waits: one record, or those of one hd_select */
	hd_pid owner;		    /* 0: none yet; any thread, relaxed */
	uint32_t number; /* in the order of these, and of addresses, several mailboxes are locked (batch.c); constant */
	uint32_t refs;	 /* its ports, and its owner */
	bool bound;	 /* it has an owner, or will have in a moment */
	bool closed;	 /* its owner has ended, or does: nothing arrives any more */
	bool mourns;	 /* its owner ends, and waits in `receiver` for the end of its children; written under ties_lock too */
	uint8_t odd; /* HD__SEVERAL: it has had more than one port, and each has lines of its own; HD__LOOKS: `look` is not NULL */
	bool fresh; /* a letter has arrived since hd_receive_where last looked at all that were there */
	bool sleeper; /* its owner is a machine that waits for a letter, without a record: `asleep` (machine.c); owner's, or under the lock */
	struct hd__line arrived[HD__CLASSES];
	struct hd__line
		held; /* what its owner has received and not dropped; the owner's, and when that waits, the thread's that has claimed
			       * its wait */
	union {
		struct hd__look *look;	   /* its owner is in hd_receive_where; or NULL */
		struct hd_process *asleep; /* `sleeper`: the owner; p->arrival is the port at which it waits, or 0 */
	};
	struct hd__more *more; /* NULL: none yet; any thread, acquire: pairs with hd__more_give */
	hd_port first;	       /* if its kind is HD__NO_PORT, there is room for a port */
};
_Static_assert(sizeof(struct hd__mailbox) <= 136, "a process that waits at its only port needs 400 bytes in all");

/* The letters in a port of a mailbox that has had several. */
static inline struct hd__line *hd__lines_of(const hd_port *port)
{
	return port == &port->box->first ? port->box->more->first : ((struct hd__later_port *)(uintptr_t)port)->line;
}

/* The next of a mailbox's ports; NULL: the first of them; there is no other. Under the lock, or by a thread that alone has the mailbox. */
static inline hd_port *hd__port_after(struct hd__mailbox *box, hd_port *port)
{
	struct hd__more *more = ld_acq(&box->more);
	struct hd__later_port *later;

	if (port == NULL && box->first.head.kind == HD__MAIL_PORT)
		return &box->first;
	if (port == NULL || port == &box->first)
		later = more != NULL ? more->ports : NULL;
	else
		later = ((struct hd__later_port *)port)->next;
	return later != NULL ? &later->port : NULL;
}

/* The process whose wait a delivery has ended: it is to be woken when no locks are held. Zeroed: none. */
struct hd__wakee {
	struct hd_waiter *record;
	struct hd_process *machine; /* it has no record */
};

/* Wakes it. Inside the lane of w; NULL: on a plain thread. */
static inline void hd__wake(struct hd_worker *w, struct hd__wakee who)
{
	if (who.record != NULL)
		hd__unpark_claimed(w, who.record);
	else if (unlikely(who.machine != NULL))
		hd__unpark_bare(w, who.machine);
}

/* As hd__wake; answers the process if the runner is to hand the worker to it (hd__unpark_for_hand_off), else NULL. */
static inline struct hd_process *hd__wake_for_hand_off(struct hd_worker *w, struct hd__wakee who)
{
	if (likely(who.record != NULL))
		return hd__unpark_for_hand_off(w, who.record);
	return who.machine != NULL ? hd__unpark_bare_for_hand_off(w, who.machine) : NULL;
}

/* As hd__letters_drop, inside the lane of w: calls are broken, and ports released; letters with a function of the program's are dropped when
 * hd_run ends. */
void hd__letters_leave(struct hd_worker *w, struct hd__link *chain);

extern const struct hd__mourner_ops hd__mailbox_ops;

/* In a forked child, which has none of the processes of this runtime, its parent's: their ports are closed, and their calls wait for nothing.
 * What was in them stays, unused. */
void hd__ports_forget(struct hd__sched *parents);

/* Drops what hd__letters_leave has left. No process runs any more. */
void hd__letters_drop_left(struct hd__sched *sched);

/* The mailbox of p, by its own thread, or under p->news.lock; NULL: none yet. */
static inline struct hd__mailbox *hd__mailbox_of(struct hd_process *p)
{
	struct hd__mourner *first = ld_acq(&p->mourner);
	return first != NULL && first->ops == &hd__mailbox_ops ? (struct hd__mailbox *)first : NULL;
}

/* The caller's mailbox, made if it must be; NULL: no memory. Outside its lane. */
struct hd__mailbox *hd__mailbox_own(struct hd_worker *w);

/* A mailbox without an owner, with one reference; NULL: no memory. */
struct hd__mailbox *hd__mailbox_new(void);

/* Frees a mailbox to which there are no references. */
void hd__mailbox_free(struct hd__mailbox *box);

/* What the mailbox has more, made if it must be; NULL: no memory. Any thread that has a reference to it, outside a lane. */
struct hd__more *hd__more_own(struct hd__mailbox *box);

/* If the mailbox has none yet, *more is its from now on, and NULL. */
static inline void hd__more_give(struct hd__mailbox *box, struct hd__more **more)
{
	struct hd__more *none = NULL;

	if (ld_acq(&box->more) == NULL &&	   /* else it is constant, and those that know it is there read it so */
	    cas_acq_rel(&box->more, &none, *more)) /* pairs with the acquire of those that look for it */
		*more = NULL;
}

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

/* Under the lock, by the owner: it begins to look, or (NULL) ends that. */
void hd__set_look(struct hd__mailbox *box, struct hd__look *look);

/* Under the lock: the first letter in `port` (NULL: in any); NULL: none. */
static inline struct hd__letter *hd__first_letter(const struct hd__mailbox *box, const hd_port *port)
{
	if (likely(!(box->odd & HD__SEVERAL) || port == NULL)) {
		struct hd__link *first = hd__line_first(&box->arrived[HD__URGENT]);
		return hd__in_box(first != NULL ? first : hd__line_first(&box->arrived[HD__PLAIN]));
	}
	const struct hd__line *lines = hd__lines_of(port);
	struct hd__link *first = hd__line_first(&lines[HD__URGENT]);
	return hd__in_port(first != NULL ? first : hd__line_first(&lines[HD__PLAIN]));
}

/* Under the lock: the letter of this class after l in `port` (NULL: in any), or before it; NULL: the first; the last. NULL: none. */
struct hd__letter *hd__letter_after(const struct hd__mailbox *box, const hd_port *port, int class, const struct hd__letter *l);
struct hd__letter *hd__letter_before(const struct hd__mailbox *box, const hd_port *port, int class, const struct hd__letter *l);

/* Under the lock: an urgent letter arrives. The owner does not go on with what it has taken. */
static inline void hd__hurry(struct hd__mailbox *box)
{
	struct hd__more *more = ld_acq(&box->more);

	if (more != NULL)
		st_rlx(&more->hurry, true);
}

/* Under the lock, by the owner or the thread that alone has the mailbox: what the owner has taken is back, before all others. */
void hd__untake(struct hd__mailbox *box);

/* Under the lock: the letter, of this class, arrives in its port, which has no limits. */
static inline void hd__push_unlimited(struct hd__mailbox *box, hd_port *port, struct hd__letter *l, unsigned class)
{
	l->port = port;
	box->fresh = true;
	if (unlikely(class == HD__URGENT))
		hd__hurry(box);
	hd__line_push(&box->arrived[class], &l->in_box);
	if (unlikely(box->odd & HD__SEVERAL)) {
		port->head.fresh = true;
		hd__line_push(&hd__lines_of(port)[class], &l->in_port);
	}
	if (++port->length > port->high_water)
		port->high_water = port->length;
}

/* As hd__push_unlimited, for any port. */
static inline void hd__push_letter(struct hd__mailbox *box, hd_port *port, struct hd__letter *l)
{
	hd__push_unlimited(box, port, l, l->class);
	if (unlikely(port->limits != NULL && !l->exempt)) {
		port->limits->count++;
		port->limits->bytes += hd__letter_size(l);
	}
}

/* Under the lock: whether a letter that arrives is merely pushed: the mailbox is open, and its owner does not wait. */
static inline bool hd__is_at_rest(const struct hd__mailbox *box)
{
	return likely(!box->closed && box->receiver.head == NULL && !box->sleeper);
}

/* Under the lock: the letter that hd_receive_where is looking at without it; NULL: none. */
static inline struct hd__letter *hd__shown(const struct hd__mailbox *box)
{
	return box->odd & HD__LOOKS ? box->look->shown : NULL;
}

/* As hd__pull_letter, for what an odd mailbox has besides. If l was the last one looked at, that is now the one before it. */
void hd__pull_from_odd(struct hd__mailbox *box, struct hd__letter *l);
static inline void hd__pull_letter(struct hd__mailbox *box, struct hd__letter *l)
{
	hd_port *port = l->port;
	struct hd__limits *limits = port->limits;

	if (unlikely(box->odd != 0))
		hd__pull_from_odd(box, l);
	hd__line_remove(&box->arrived[l->class], &l->in_box);
	port->length--;
	if (unlikely(limits != NULL) && !l->exempt) {
		limits->count--;
		limits->bytes -= hd__letter_size(l);
	}
}

/* As hd__pull_letter, for the owner. Returns a sender that has room now, to be unparked when the lock is released; or NULL. */
struct hd_waiter *hd__letter_left(struct hd_worker *w, struct hd__mailbox *box, struct hd__letter *l);
static inline struct hd_waiter *hd__take_letter(struct hd_worker *w, struct hd__mailbox *box, struct hd__letter *l)
{
	hd_port *port = l->port;
	bool matters = port->limits != NULL || port->head.freed; /* before anything is stored: both are read once */

	hd__pull_letter(box, l);
	return unlikely(matters) ? hd__letter_left(w, box, l) : NULL;
}

/* What the letter says, with `port` as where it arrived. */
static inline void hd__read_letter(const struct hd__letter *l, hd_port *port, struct hd_message *m)
{
	m->port = port;
	m->sender = l->sender;
	m->tag = l->tag;
	if (l->kind == HD__BARE) {
		m->size = 0;
		m->data = NULL;
		m->carried = NULL;
		m->letter = NULL;
	} else {
		m->size = l->size;
		m->data = l->data;
		m->carried = l->carried;
		m->letter = (void *)(uintptr_t)l;
	}
}

/* The owner has received the letter in `port`, which it has left or never was in: *m is its message. By the owner, or by the thread that has claimed its
 * wait. Returns the letter if it is to be freed. */
static inline struct hd__letter *hd__hold_letter(struct hd__mailbox *box, struct hd__letter *l, hd_port *port,
						 struct hd_message *m)
{
	hd__read_letter(l, port, m);
	if (l->kind == HD__BARE)
		return l;
	l->holder = box;
	hd__line_push(&box->held, &l->in_box);
	return NULL;
}

/* For the trace: the letter is sent, by the runner of w; is received, by p. Inside the lane of w. */
static inline void hd__trace_sent(struct hd_worker *w, const struct hd__letter *l)
{
	if (likely(w != NULL))
		hd__trace_event(w, HD__TRACED_SEND, l->sender, 0, (uintptr_t)l);
}

static inline void hd__trace_received(struct hd_worker *w, const struct hd__letter *l, hd_pid receiver)
{
	if (likely(w != NULL))
		hd__trace_event(w, HD__TRACED_RECEIVE, receiver, 0, (uintptr_t)l);
}

/* Frees the letters that another thread has dropped, up to the first that none has. By the owner, on the thread of w. */
void hd__free_emptied(struct hd_worker *w, struct hd__mailbox *box);

/* Frees the ports that are to be freed; no locks are held. By the owner. */
void hd__free_gone(struct hd__mailbox *box);

/* Delivers a letter to a port, or to a reply port as the answer; it is the mailbox's then, and *woken is to be woken. Inside the
 * caller's lane, or on a plain thread inside the gate; no locks are held. Returns 0; -ESRCH; -ENOBUFS, also when the port's policy is to wait;
 * -EALREADY of a reply port. *dropped is to be dropped outside the lane, if it is not NULL. */
int hd__deliver(struct hd_worker *w, hd_port *port, struct hd__letter *l, struct hd__wakee *woken, struct hd__letter **dropped);

/* As hd__deliver, and waits for room if the policy says so: then *w may be another afterwards. Returns too -ETIMEDOUT; -ECANCELED, which
 * hd__heed must follow. */
int hd__deliver_locked(struct hd_worker *w, hd_port *port, struct hd__letter *l, struct hd__wakee *woken);
int hd__deliver_slowly(struct hd_worker **w, hd_port *port, struct hd__letter *l, struct hd__wakee *woken,
		       struct hd__letter **dropped, hd_time until);
__attribute__((always_inline)) static inline int hd__deliver_surely(struct hd_worker **w, hd_port *port, struct hd__letter *l,
								    unsigned class, struct hd__wakee *woken,
								    struct hd__letter **dropped, hd_time until)
{
	/* the slow ways are given the addresses of these, so that what the caller has can stay in registers */
	struct hd_worker *mine = *w;
	struct hd__wakee who;
	struct hd__letter *old;
	int err;

	hd__trace_sent(mine, l);
	if (unlikely(port->head.kind == HD__REPLY_PORT || port->limits != NULL)) {
		err = hd__deliver_slowly(&mine, port, l, &who, &old, until);
		*w = mine;
		*woken = who;
		*dropped = old;
		return err;
	}
	struct hd__mailbox *box = port->box;
	hd__mailbox_lock(box);
	if (hd__is_at_rest(box)) {
		hd__push_unlimited(box, port, l, class);
		hd__mailbox_unlock(box);
		return 0;
	}
	err = hd__deliver_locked(mine, port, l, &who);
	*woken = who;
	return err;
}

/* Under the lock: as hd__deliver, to a port with a mailbox. *spare is a letter that is to be freed when the lock is released, or NULL. */
int hd__put_letter(struct hd_worker *w, hd_port *port, struct hd__letter *l, struct hd__wakee *woken,
		   struct hd__letter **dropped, struct hd__letter **spare);

/* Under the lock: whether so many messages more, with so many bytes in all, can be sent to the port without waiting. */
bool hd__has_room(const hd_port *port, size_t count, size_t bytes);

/* What kind of letter this needs; `calls`: it will carry a reply port. */
static inline unsigned hd__kind_for(const struct hd_sending *what, bool calls)
{
	bool bare = what->move ? what->data == NULL && what->drop == NULL : what->size == 0;
	size_t size = what->move ? 0 : what->size;

	if (bare && what->carried == NULL && !calls)
		return HD__BARE;
	return size <= HD__SHORT_ROOM ? HD__SHORT : size <= HD__LONG_ROOM ? HD__LONG : HD__LARGE;
}

/* Fills a new letter with what is to be sent; `calls`: it will carry a reply port. Inside the lane of w, which may be left meanwhile; NULL: on a plain thread. Returns 0; -EINVAL;
 * -ENOMEM. Inline: most callers know most of what they send. */
__attribute__((always_inline)) static inline int hd__write_letter(struct hd_worker *w, const struct hd_sending *what,
								  bool calls, struct hd__letter **letter)
{
	if (unlikely(what->tag < 0 || (what->data == NULL && what->size > 0)))
		return -EINVAL;
	size_t size = what->move ? 0 : what->size;
	unsigned kind = hd__kind_for(what, calls);
	struct hd__letter *l = hd__letter_new(w, kind, what->data, size);
	if (unlikely(l == NULL))
		return -ENOMEM;
	l->sender = likely(w != NULL) ? hd__pid(&w->sched->table, w->current) : 0;
	l->tag = what->tag;
	l->class = what->urgent ? HD__URGENT : HD__PLAIN;
	l->exempt = l->answered = l->emptied = false;
	if (kind != HD__BARE) {
		l->size = what->size;
		l->data = what->move ? (void *)(uintptr_t)what->data : size > 0 ? l->room : NULL;
		l->carried = what->carried != NULL ? hd_port_retain(what->carried) : NULL;
		l->drop = what->move ? what->drop : NULL;
	}
	*letter = l;
	return 0;
}

/* Fills a letter of hd__letter_alloc. */
static inline void hd__write_notice(struct hd__letter *l, hd_pid sender, int64_t tag, const void *data, size_t size)
{
	hd__copy(l->room, data, size);
	l->sender = sender;
	l->tag = tag;
	l->class = HD__PLAIN;
	l->exempt = true;
	l->answered = l->emptied = false;
	l->size = size;
	l->data = l->room;
	l->carried = NULL;
	l->drop = NULL;
}

/* Undoes it: what was to be moved is the caller's again. Outside a lane. */
void hd__unwrite_letter(struct hd__letter *l);

/* A call failed with err before its letter (or NULL) was delivered: undoes that. Answers err. Does not return if the caller must end. Outside a
 * lane. */
int hd__did_not_send(struct hd__letter *l, int err);

/* For a call: its caller, through whom the answer comes. */
struct hd__reply;

/* The letter, or no letter but a mere tag, answers the call. As hd__deliver. */
int hd__answer(struct hd_worker *w, struct hd__reply *r, struct hd__letter *l, struct hd__wakee *woken);

/* One reference more, or less; without any but the caller's own the call is broken: *woken is to be unparked, or NULL. */
void hd__reply_retain(struct hd__reply *r);
void hd__reply_release(struct hd_worker *w, struct hd__reply *r, struct hd_waiter **woken);

/* The process that will answer is another one from now on; 0: unknown. */
void hd__reply_pass_on(struct hd__reply *r, hd_pid to);

/* As hd__reply_pass_on, by the process `from` (0: a plain thread), which has the call. Returns 0; -EDEADLK when `to` waits, through a chain of
 * calls, for the caller, or is the caller: then `from` has the call still. */
int hd__reply_delegate(struct hd__sched *sched, struct hd__reply *r, hd_pid from, hd_pid to);

/* If the letter carries the port where a call is answered: the process that will answer is the owner of this port, to which the letter is about to be
 * delivered. As hd__reply_delegate. hd__keep_call undoes it: the letter could not be delivered. */
int hd__pass_on(struct hd__sched *sched, const struct hd__letter *l, hd_port *port);
void hd__keep_call(const struct hd__letter *l);

/* The process that waits for this answer; 0: none does any more. */
hd_pid hd__reply_owner(struct hd__reply *r);

/* By the owner of r, which ends or has no more use for it. */
void hd__reply_forget(struct hd__reply *r);

/* In a forked child: its owner does not exist. */
void hd__reply_abandon(struct hd__reply *r);

/* Under the lock: a port without references and letters leaves its mailbox, whose reference is the caller's to release. Answers what hd__port_free
 * is to free when the lock is released; NULL: its memory is the mailbox's. */
struct hd__later_port *hd__port_retire(hd_port *port);

/* Under the lock: undoes it, of the mailbox's first port: a letter to it was in the owner's hand, and is to be received. It is there until it was. */
void hd__port_revive(hd_port *port);

/* Frees a port that has left its mailbox; or NULL. */
void hd__port_free(struct hd__later_port *port);

/* As hd_port_release, inside the lane of w (NULL: a plain thread): *woken, if it is set, is to be unparked, and what is answered to be dropped
 * outside the lane. */
struct hd__link *hd__port_release(struct hd_worker *w, hd_port *port, struct hd_waiter **woken);

/* Gives up a reference that is not the owner's own. Answers letters that are to be dropped. */
struct hd__link *hd__port_let_go(hd_port *port);

/* The owner of box, w's runner or one that will never run again, has ended: nothing arrives any more. Answers what is to be dropped outside the
 * lane, chained by in_box.next; the senders that wait for room are unparked. Inside the lane of w. */
struct hd__link *hd__mailbox_close(struct hd_worker *w, struct hd__mailbox *box);

/* hd_spawn_with, with a port, a link or a watch (a hook of life/). */
hd_pid hd__spawn_tied(struct hd__sched *sched, const struct hd_spawn *how, hd_entry entry, void *arg);

/* As hd_stuck, on any thread inside no lane; `pass`: on a process, which passes by safe points. */
struct hd_suspect;
int hd__each_suspect(struct hd__sched *sched, bool pass, int (*fn)(const struct hd_suspect *s, void *arg), void *arg);

/* The owner, which is the caller, ends: ends its links, and waits for the children that it takes with it. */
void hd__ties_end(struct hd__mailbox *box, enum hd_end_kind kind, int err);

/* The owner is dead: ends the links and watches that are left, and tells those that watched it. Inside the lane of w. */
void hd__ties_tell(struct hd_worker *w, struct hd__mailbox *box, const struct hd_end *end);

/* The owner ends: its ports have no names any more. By the thread of w; then: the table is freed. */
void hd__names_end(struct hd_worker *w, struct hd__sched *sched, struct hd__mailbox *box);
void hd__names_drop(struct hd__sched *sched);

/* A turn of a machine (a hook of life/). Outside the lane. Does not return. */
void hd__machine_turn(struct hd_process *me);

/* Whether p, which will never run again, is a machine that has not begun to drop its `self`. */
bool hd__machine_is_whole(const struct hd_process *p);

/* Under the lock: a letter arrives in `port`, and the owner is a sleeper. It is woken if it waits for that, and answered: to be unparked. Or NULL. */
struct hd_process *hd__wake_sleeper(struct hd_worker *w, struct hd__mailbox *box, const hd_port *port);

/* ---- messages that are sent at a time (after.c) ---- */

/* Hooks of sched/. */
bool hd__after_is_live(struct hd__sched *sched, uint32_t slot, uint64_t number);
void hd__after_due(struct hd_worker *w, uint32_t slot, uint64_t number, hd_time now);

/* Under the lock of the mailbox: nothing is sent to this port any more at a later time. Answers the letters, before `chain`: to be dropped
 * outside the lane. */
struct hd__link *hd__afters_end(hd_port *port, struct hd__link *chain);

/* Under the lock of the mailbox: whether something is to be sent to this port at a later time. */
bool hd__has_afters(const hd_port *port);

/* The owner, which is the caller, ends: likewise, for all its ports, and drops the letters. Outside a lane. */
void hd__afters_end_all(struct hd__mailbox *box);

/* A tick is dropped, and goes back to what sends it again. False: that is gone, and the letter is to be freed. */
bool hd__tick_returns(struct hd__letter *l);

/* The memory of the table; NULL: there is none. */
const void *hd__afters_memory(const struct hd__sched *sched, size_t *size);

/* In a forked child: nothing is sent to a port of the parent's; another thread of the parent may have had the table's lock. */
void hd__afters_abandon(hd_port *port);
void hd__afters_forget(struct hd__sched *parents);

/* No process runs any more: drops what is left to be sent, and the table. */
void hd__afters_drop(struct hd__sched *sched);

extern const struct hd__case_ops hd__receive_case;

#endif
