/* port/after.c - messages that are sent at a time.
 *
 * Owns:       struct hd__after, one for each timer, in a table of the runtime: made with the first one, and type-stable, so that a thread with an
 *             old id finds that it is dead. Ids are a slot and a generation, as a process's.
 * Invariant:  a timer is among what is to be sent to its port (afters_of) until a thread has claimed it: it is due, it is cancelled, its port ends, the runtime ends. The
 *             thread that claims it takes it out of there, unless the port's end has done so before, and frees it. Of those that may claim it
 *             one does. The letter is written when the timer is set: nothing is allocated when it is due.
 * Locking:    the word decides, without a lock; then the lock of the port's mailbox, to which the timer has a reference, guards `port` and `letter`.
 *             The deadline is in the heap of `home`, and is added to it inside that lane. The table has a lock of its own, taken last.
 * Callers:    any thread. It is due inside the lane of its home: on its worker, or on the watcher, if that worker is deaf.
 *
 *     FREE    -> PENDING   set, by a process: its worker's heap has the deadline
 *     FREE    -> POSTED    set, by a plain thread: a note on its way to `home` will add the deadline
 *     POSTED  -> PENDING   apply_set
 *     PENDING -> FIRING    hd__after_due, of a tick; a thread that cancels it waits for the moment that this takes
 *     FIRING  -> PENDING   hd__after_due: with its next deadline
 *     PENDING -> CLAIMED   hd__after_due, of a message that is sent once; hd_send_cancel, hd__afters_end, hd__afters_drop
 *     POSTED  -> CLAIMED   hd_send_cancel, hd__afters_end
 *     FIRING  -> CLAIMED   hd__after_due, of a tick whose port has ended
 *     CLAIMED -> FREE      free_after, with the next generation
 *
 * A tick has one letter, which is sent again and again:
 *
 *     TICK_HOME -> TICK_OUT    hd__after_due sends it
 *     TICK_OUT  -> TICK_HOME   hd__tick_returns: it has been dropped
 *     TICK_HOME -> TICK_LAST   end_letter, which answers it: it is to be freed
 *     TICK_OUT  -> TICK_LAST   end_letter: it is freed when it is dropped
 *
 * Rejected: a reference to the port. A tick would keep its port for ever, and so the last holder of a reference could not end it.
 * Rejected: a process that sleeps for each timer (a stack), or one for all (every timer would wake it). */
#include <heddle/time.h>

#include "context.h"
#include "os/memory.h"
#include "port/port.h"

#define BATCH 64  /* timers that one holder of a mailbox's lock ends */
#define YIELDS 50 /* rounds of HD__TRIES looks at a tick that is being sent, before a thread sleeps between two */

enum { FREE, POSTED, PENDING, FIRING, CLAIMED };
#define STATE_BITS 8
#define STATE(word) ((unsigned)(word) & ((1u << STATE_BITS) - 1))
#define GENERATION(word) ((word) >> STATE_BITS)
#define WORD(generation, state) ((uint64_t)(generation) << STATE_BITS | (state))

enum { NO_TICK, TICK_HOME, TICK_OUT, TICK_LAST };

struct hd__after {
	uint64_t word; /* generation and state; any thread, acq_rel */
	uint64_t
		number; /* of its deadline in the heap of `home`; 0: it is in none. Stored before the word says PENDING, and by the thread that has
			  * claimed it; any thread inside a lane reads it, relaxed: an old value is found out by the word */
	struct hd_worker *home;	   /* constant while it is set, as what follows */
	struct hd__mailbox *box;   /* a reference */
	hd_time interval;	   /* 0: it is sent once */
	hd_port *port;		   /* under the mailbox's lock, as what follows. NULL: the port has ended */
	struct hd__letter *letter; /* NULL: likewise */
	struct hd__link in_port;   /* in afters_of(port) */
	hd_time when;
	uint64_t missed;	/* ticks, since the last one that was sent */
	uint32_t refs;		/* the timer's own, and that of its note; any thread */
	struct hd_note note;	/* POSTED */
	struct hd__after *next; /* FREE: under the table's lock */
} __attribute__((aligned(64)));

struct hd__afters {
	struct hd__after *all; /* reserved; memory comes as they are first used */
	uint32_t capacity;
	uint32_t made; /* slots ever used; written under the lock, read by any thread */
	struct hd__after *free;
	unsigned char lock;
};

/* ---- the table ---- */

/* Outside a lane. NULL: no memory. */
static struct hd__afters *new_table(struct hd__sched *sched)
{
	struct hd__afters *t = hd__os_alloc(sizeof *t), *none = NULL;

	if (t == NULL)
		return NULL;
	t->capacity = HD__AFTERS_MAX(&sched->table);
	t->all = hd__os_reserve(t->capacity * sizeof *t->all, 0);
	if (t->all != NULL)
		hd__os_dump_first(t->all, t->capacity * sizeof *t->all);
	if (t->all != NULL && cas_acq_rel(&sched->afters, &none, t)) /* pairs with the loads of sched->afters */
		return t;
	if (t->all != NULL) /* another thread was faster */
		hd__os_unreserve(t->all, t->capacity * sizeof *t->all);
	hd__os_free(t);
	return none;
}

/* A timer that is not set, with one reference. Inside the lane of caller.w, which may be left meanwhile. */
static int take_after(struct hd__caller caller, struct hd__after **after)
{
	struct hd__afters *t = ld_acq(&caller.sched->afters);

	if (unlikely(t == NULL)) {
		hd__leave_quietly(caller.w);
		t = new_table(caller.sched);
		if (caller.w != NULL)
			hd__enter(caller.w);
		if (t == NULL)
			return -ENOMEM;
	}
	hd__lock(&t->lock);
	struct hd__after *a = t->free;
	if (a != NULL) {
		t->free = a->next;
	} else if (t->made < t->capacity) {
		a = &t->all[t->made];
		st_rlx(&a->word, WORD(1, FREE));
		st_rel(&t->made, t->made + 1); /* pairs with find */
	}
	hd__unlock(&t->lock);
	if (a == NULL)
		return -EAGAIN;
	st_rlx(&a->refs, 1);
	*after = a;
	return 0;
}

static void free_after(struct hd__sched *sched, struct hd__after *a)
{
	struct hd__afters *t = sched->afters;
	uint64_t generation = GENERATION(ld_rlx(&a->word));

	hd__lock(&t->lock);
	if (generation < HD__GENERATION_MAX) { /* else its last id stays dead */
		st_rel(&a->word, WORD(generation + 1, FREE));
		a->next = t->free;
		t->free = a;
	} else {
		st_rel(&a->word, WORD(generation, FREE));
	}
	hd__unlock(&t->lock);
}

const void *hd__afters_memory(const struct hd__sched *sched, size_t *size)
{
	const struct hd__afters *t = sched->afters;

	*size = t != NULL ? t->capacity * sizeof *t->all : 0;
	return t != NULL ? t->all : NULL;
}

/* One reference less to a timer that is claimed, or whose note has come. */
static void release(struct hd__sched *sched, struct hd__after *a)
{
	if (add_acq_rel(&a->refs, -1u) == 1)
		free_after(sched, a);
}

static uint32_t slot_of(const struct hd__afters *t, const struct hd__after *a)
{
	return (uint32_t)(a - t->all);
}

static hd_timer id_of(const struct hd__afters *t, const struct hd__after *a)
{
	return (hd_timer)(GENERATION(ld_rlx(&a->word)) << HD__SLOT_BITS | slot_of(t, a));
}

static struct hd__after *find(struct hd__sched *sched, hd_timer id)
{
	struct hd__afters *t = ld_acq(&sched->afters);
	uint32_t slot = (uint32_t)id & (HD__SLOTS - 1);

	return id > 0 && t != NULL && slot < ld_acq(&t->made) ? &t->all[slot] : NULL;
}

/* Claims the timer, if it has this generation and is set; answers the state that it had, or FREE. Does not wait for a tick that is being sent, but
 * answers FIRING. */
static unsigned try_claim(struct hd__after *a, uint64_t generation)
{
	uint64_t word = ld_acq(&a->word);

	do {
		if (GENERATION(word) != generation || STATE(word) == CLAIMED)
			return FREE;
		if (STATE(word) != PENDING && STATE(word) != POSTED)
			return STATE(word);
	} while (!cas_acq_rel(&a->word, &word, WORD(generation, CLAIMED)));
	return STATE(word);
}

/* As try_claim, and waits: for some hundred instructions of another thread, if that has a CPU. The caller holds no lock but its lane's. */
static unsigned claim(struct hd__after *a, uint64_t generation)
{
	unsigned state;

	for (unsigned i = 1; (state = try_claim(a, generation)) == FIRING; i++)
		if (i % HD__TRIES != 0)
			hd__arch_pause();
		else if (i < (unsigned)(YIELDS * HD__TRIES))
			hd__os_thread_yield();
		else
			hd__os_thread_nap();
	return state;
}

/* What is to be sent to the port; NULL: nothing ever was. */
static struct hd__line *afters_of(const hd_port *port)
{
	struct hd__more *more = ld_acq(&port->box->more);

	if (port != &port->box->first)
		return &((struct hd__later_port *)(uintptr_t)port)->afters;
	return more != NULL ? &more->afters : NULL;
}

bool hd__has_afters(const hd_port *port)
{
	const struct hd__line *afters = afters_of(port);

	return afters != NULL && afters->last != NULL;
}

/* ---- its deadline ---- */

/* Inside the lane of w, its home. */
static void add_deadline(struct hd_worker *w, struct hd__after *a)
{
	uint32_t slot = slot_of(w->sched->afters, a);

	if (a->when != HD_FOREVER)
		st_rlx(&a->number, HD__TIMER_NUMBER(hd__timers_add(&w->timers, a->when, HD__SLOTS + slot)));
}

/* It was PENDING, and is claimed: its deadline, if it has one, stays in the heap, forgotten. w: in whose lane the caller is, or NULL. */
static void forget_deadline(struct hd_worker *w, struct hd__after *a)
{
	if (ld_rlx(&a->number) == 0)
		return;
	st_rlx(&a->number, 0);
	if (a->home == w)
		hd__timers_forget(&w->timers);
	else
		hd__timers_orphan(&a->home->timers);
}

bool hd__after_is_live(struct hd__sched *sched, uint32_t slot, uint64_t number)
{
	return ld_rlx(&sched->afters->all[slot].number) == number;
}

/* ---- its letter ---- */

bool hd__tick_returns(struct hd__letter *l)
{
	uint8_t out = TICK_OUT;

	return ld_rlx(&l->tick) != NO_TICK && cas_acq_rel(&l->tick, &out, TICK_HOME); /* pairs with send_tick, end_letter */
}

/* Under the mailbox's lock: the timer sends nothing any more. Answers the letter that is to be dropped; or NULL. */
static struct hd__letter *end_letter(struct hd__after *a)
{
	struct hd__letter *l = a->letter;

	a->letter = NULL;
	if (l == NULL || ld_rlx(&l->tick) == NO_TICK) /* the receiver may be giving it back */
		return l;
	return xchg_acq_rel(&l->tick, TICK_LAST) == TICK_HOME ? l : NULL; /* pairs with hd__tick_returns */
}

/* What a delivery leaves to be done when the lock is released. */
struct sent {
	struct hd__wakee woken;
	struct hd__letter *spare;
};

/* Under the mailbox's lock, which is open. w: in whose lane the caller is, or NULL. */
static void put(struct hd_worker *w, hd_port *port, struct hd__letter *l, struct sent *sent)
{
	hd_port *carried = hd__carried(l);
	struct hd__letter *dropped;

	if (unlikely(carried != NULL && carried->head.kind == HD__REPLY_PORT)) /* now it is known which process will answer */
		hd__reply_pass_on((struct hd__reply *)carried, ld_rlx(&port->box->owner));
	int err = hd__put_letter(w, port, l, &sent->woken, &dropped, &sent->spare);
	HD_ASSERT(err == 0 && dropped == NULL, "a message could not be sent to an open port that it is exempt in");
}

/* Under the lock: a tick is due at a->when, and it is `now`: sends it, if the one before it has been dropped; then a->when is the next time. */
static void send_tick(struct hd_worker *w, struct hd__after *a, hd_timer id, hd_time now, struct sent *sent)
{
	struct hd__letter *l = a->letter;
	hd_time late = (now - a->when) / a->interval, due = a->when + late * a->interval;

	a->missed += (uint64_t)late;
	if (ld_acq(&l->tick) == TICK_HOME) { /* pairs with hd__tick_returns */
		const struct hd_tick tick = { id, due, a->missed };
		hd__write_notice(l, 0, l->tag, &tick, sizeof tick);
		st_rlx(&l->tick, TICK_OUT);
		put(w, a->port, l, sent);
		a->missed = 0;
	} else {
		a->missed++;
	}
	if (__builtin_add_overflow(due, a->interval, &a->when))
		a->when = HD_FOREVER;
}

/* The lock is released. The calling thread may be a visitor in the lane of w: then w's store of letters is not its own, and w, which is deaf, gets
 * no process but those that are its own. */
static void finish(struct hd_worker *w, const struct sent *sent)
{
	struct hd_waiter *x = sent->woken.record;
	bool visits = w != NULL && hd__self() != w;

	if (sent->spare != NULL)
		hd__letter_free(visits ? NULL : w, sent->spare);
	if (visits && x != NULL && ld_rlx(&x->process->home) != w)
		hd__unpark_later(w, x);
	else
		hd__wake(w, sent->woken);
}

/* Under the lock: the timer is set no more, and not among its port's. */
static void unlist(struct hd__after *a)
{
	if (a->port != NULL)
		hd__line_remove(afters_of(a->port), &a->in_port);
	a->port = NULL;
}

void hd__after_due(struct hd_worker *w, uint32_t slot, uint64_t number, hd_time now)
{
	struct hd__after *a = &w->sched->afters->all[slot];
	uint64_t word = ld_acq(&a->word); /* before the number: if that is ours, so is the word, or the exchange fails */
	struct sent sent = { .spare = NULL };

	do {
		if (STATE(word) != PENDING || ld_rlx(&a->number) != number) {
			bump(&w->timers.stale,
			     -1); /* the thread that has claimed it has counted it, and it is out of the heap */
			return;
		}
	} while (!cas_acq_rel(&a->word, &word, WORD(GENERATION(word), ld_rlx(&a->interval) > 0 ? FIRING : CLAIMED)));
	st_rlx(&a->number, 0);
	struct hd__mailbox *box = a->box;
	hd__mailbox_lock(box);
	if (a->port != NULL && a->interval > 0) {
		send_tick(w, a, id_of(w->sched->afters, a), now, &sent);
		add_deadline(w, a);
		st_rel(&a->word, WORD(GENERATION(word), PENDING)); /* before the lock is released: the port's end finds it so */
		hd__mailbox_unlock(box);
		finish(w, &sent);
		return;
	}
	if (a->port != NULL) {
		put(w, a->port, a->letter, &sent);
		unlist(a);
	}
	st_rel(&a->word, WORD(GENERATION(word), CLAIMED));
	hd__mailbox_release(box);
	finish(w, &sent);
	release(w->sched, a);
}

/* ---- setting ---- */

/* A timer that a plain thread has set comes to its home. Inside the lane of the worker, on any thread. */
static void apply_set(void *worker, struct hd_note *note)
{
	struct hd_worker *w = worker;
	struct hd__after *a = (struct hd__after *)((char *)note - offsetof(struct hd__after, note));
	uint64_t word = ld_acq(&a->word);

	if (STATE(word) == POSTED) {
		add_deadline(w, a);
		if (cas_acq_rel(&a->word, &word, WORD(GENERATION(word), PENDING))) { /* pairs with try_claim */
			if (hd__timers_first(&w->timers) < ld_rlx(&w->due.alarm))
				hd__set_alarm(w);
		} else {
			forget_deadline(w, a);
		}
	}
	release(w->sched, a);
}

/* Under the mailbox's lock: the timer is set, and waits for its time. Answers whether apply_set must follow. */
static bool wait_for_time(struct hd__caller caller, struct hd__after *a, hd_port *port)
{
	uint64_t generation = GENERATION(ld_rlx(&a->word));
	uint32_t slot = slot_of(caller.sched->afters, a);
	bool post = caller.w == NULL && a->when != HD_FOREVER;

	a->box = port->box;
	a->box->refs++;
	a->port = port;
	hd__line_push(afters_of(port), &a->in_port);
	a->home = caller.w != NULL ? caller.w : &caller.sched->workers[slot % caller.sched->nregular];
	if (post)
		st_rlx(&a->refs, 2);
	else if (caller.w != NULL)
		add_deadline(caller.w, a);
	st_rel(&a->word, WORD(generation, post ? POSTED : PENDING)); /* pairs with try_claim, hd__after_due */
	return post;
}

/* A timer with this letter, which is the timer's if it is set. Inside the lane of caller.w; not that if it is NULL. */
static hd_timer set(struct hd__caller caller, hd_port *port, struct hd__letter *l, hd_time when, hd_time interval)
{
	struct hd_worker *w = caller.w;
	struct hd__after *a;
	struct sent sent = { .spare = NULL };
	bool posts = false, waits = false;

	hd_timer id = take_after(caller, &a);
	if (id < 0)
		return id;
	hd_time now = when > 0 && when != HD_FOREVER ? hd__clock(caller.sched) : 0;
	id = id_of(caller.sched->afters, a);
	a->when = when;
	st_rlx(&a->interval, interval); /* hd__after_due may read it for a timer that was here before */
	a->missed = 0;
	hd__mailbox_lock(port->box);
	if (port->box->closed) {
		id = -ESRCH;
	} else {
		a->letter = l;
		a->port = port;
		l->exempt = true;
		l->sender = 0;
		l->tick = interval > 0 ? TICK_HOME : NO_TICK;
		waits = interval > 0 || when > now;
		if (when <= now && interval > 0)
			send_tick(w, a, id, now, &sent);
		else if (when <= now)
			put(w, port, l, &sent);
		if (waits)
			posts = wait_for_time(caller, a, port);
	}
	hd__mailbox_unlock(port->box);
	if (posts) {
		a->note.apply = apply_set;
		hd__post(a->home, &a->note);
	} else if (!waits) {
		release(caller.sched, a);
	} else if (w != NULL && hd__timers_first(&w->timers) < w->due.alarm) {
		hd__set_alarm(w);
	}
	finish(w, &sent);
	return id;
}

/* If the letter carries a port where a call is answered: this process will answer; 0: that is not known until the letter is sent. */
static void pass_on(const struct hd__letter *l, hd_pid to)
{
	hd_port *carried = hd__carried(l);

	if (carried != NULL && carried->head.kind == HD__REPLY_PORT)
		hd__reply_pass_on((struct hd__reply *)carried, to);
}

hd_timer hd_send_after_with(hd_port *port, const struct hd_sending *what, hd_time when)
{
	struct hd__letter *l = NULL;

	if (hd__is_duration(when) || port->head.kind != HD__MAIL_PORT)
		return -EINVAL;
	if (hd__more_own(port->box) == NULL)
		return -ENOMEM;
	struct hd__caller caller = hd__call_begin();
	if (caller.sched == NULL)
		return -ENXIO;
	hd_timer id = hd__write_letter(caller.w, what, false, &l);
	if (id == 0) {
		hd_pid sender = l->sender;
		pass_on(l, 0);
		id = set(caller, port, l, when, 0);
		if (id < 0)
			pass_on(l, sender); /* the caller has it still */
	}
	hd__call_end(caller);
	if (id < 0 && l != NULL)
		hd__unwrite_letter(l);
	return id;
}

hd_timer hd_send_after(hd_port *port, int64_t tag, const void *data, size_t size, hd_time when)
{
	return hd_send_after_with(port, &(struct hd_sending){ .tag = tag, .data = data, .size = size }, when);
}

hd_timer hd_send_every(hd_port *port, int64_t tag, hd_time first, hd_time interval)
{
	if (hd__is_duration(first) || interval <= 0 || tag < 0 || port->head.kind != HD__MAIL_PORT)
		return -EINVAL;
	struct hd__letter *l = hd__more_own(port->box) != NULL ? hd__letter_alloc(sizeof(struct hd_tick)) : NULL;
	if (l == NULL)
		return -ENOMEM;
	l->tag = tag;
	struct hd__caller caller = hd__call_begin();
	hd_timer id = -ENXIO;
	if (caller.sched != NULL)
		id = set(caller, port, l, first > 0 ? first : hd__clock(caller.sched), interval);
	hd__call_end(caller);
	if (id < 0)
		hd__letter_drop(l);
	return id;
}

/* ---- its end ---- */

int hd_send_cancel(hd_timer timer)
{
	struct hd__caller caller = hd__call_begin();

	if (caller.sched == NULL)
		return -ENXIO;
	struct hd__after *a = find(caller.sched, timer);
	struct hd__letter *l = NULL;
	unsigned was = a != NULL ? claim(a, (uint64_t)timer >> HD__SLOT_BITS) : FREE;
	if (was != FREE) {
		hd__mailbox_lock(a->box);
		unlist(a);
		l = end_letter(a);
		hd__mailbox_release(a->box);
		if (was == PENDING)
			forget_deadline(caller.w, a);
		release(caller.sched, a);
	}
	hd__call_end(caller);
	if (l != NULL)
		hd__letter_drop(l);
	return was != FREE ? 0 : -ESRCH;
}

/* Under the lock: ends the first n timers of the port. A thread that has claimed one at this moment, or sends its tick, finds that it has no port any
 * more. */
static struct hd__link *end_some(hd_port *port, size_t n, struct hd__link *chain)
{
	struct hd__line *afters = afters_of(port);
	struct hd__link *x;

	while (afters != NULL && n-- > 0 && (x = hd__line_first(afters)) != NULL) {
		struct hd__after *a = (struct hd__after *)((char *)x - offsetof(struct hd__after, in_port));
		unlist(a);
		struct hd__letter *l = end_letter(a);
		if (l != NULL) {
			l->in_box.next = chain;
			chain = &l->in_box;
		}
		unsigned was = try_claim(a, GENERATION(ld_rlx(&a->word)));
		if (was != PENDING && was != POSTED)
			continue;
		port->box->refs--; /* the port's own is left */
		if (was == PENDING)
			forget_deadline(NULL, a);
		release(a->home->sched, a);
	}
	return chain;
}

struct hd__link *hd__afters_end(hd_port *port, struct hd__link *chain)
{
	return end_some(port, SIZE_MAX, chain);
}

void hd__afters_end_all(struct hd__mailbox *box)
{
	for (;;) {
		hd__mailbox_lock(box);
		hd_port *port = NULL;
		while ((port = hd__port_after(box, port)) != NULL && (afters_of(port) == NULL || afters_of(port)->last == NULL))
			;
		struct hd__link *chain = port != NULL ? end_some(port, BATCH, NULL) : NULL;
		hd__mailbox_unlock(box);
		if (port == NULL)
			return;
		hd__letters_drop(chain);
	}
}

void hd__afters_abandon(hd_port *port)
{
	if (afters_of(port) != NULL)
		afters_of(port)->last = NULL;
}

void hd__afters_forget(struct hd__sched *parents)
{
	if (parents->afters != NULL)
		hd__unlock(&parents->afters->lock);
}

/* A plain thread that releases a port may be ending its timers at this moment: it is let get on. */
static void drop_one(struct hd__after *a)
{
	struct hd__letter *l = NULL;
	uint64_t word = ld_acq(&a->word);

	if (try_claim(a, GENERATION(word)) == PENDING) {
		hd__mailbox_lock(a->box);
		unlist(a);
		l = end_letter(a);
		hd__mailbox_release(a->box);
		release(a->home->sched, a);
	}
	while (STATE(ld_acq(&a->word)) != FREE)
		hd__os_thread_yield();
	if (l != NULL)
		hd__letter_drop(l);
}

void hd__afters_drop(struct hd__sched *sched)
{
	struct hd__afters *t = sched->afters;

	if (t == NULL)
		return;
	for (uint32_t i = 0; i < t->made; i++)
		drop_one(&t->all[i]);
	hd__lock(&t->lock); /* a thread that has freed the last one has released it */
	hd__os_unreserve(t->all, t->capacity * sizeof *t->all);
	hd__os_free(t);
	sched->afters = NULL;
}
