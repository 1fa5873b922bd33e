/* when/when.h - cowns, behaviours, and the tickets between them.
 *
 *      cown a   last ------------------------.                   cown b   last ---------.
 *                                            v                                         v
 *      line:   [ticket of B1] -> [ticket of B2] -> [ticket of B3]      line:   [ticket of B2]
 *                has a            waits for a                                    has b
 *
 * A behaviour has one ticket for each of its cowns. A cown's tickets form a line; the first of them has the cown, and so have the readers that
 * follow a reader. A behaviour runs when all its tickets have their cowns. */
#ifndef WHEN_WHEN_H
#define WHEN_WHEN_H

#include <heddle/when.h>

#include "life/life.h"

struct hd__behaviour;
struct hd__urgency;

/* A behaviour's place in the line of a cown. Inside the behaviour's memory; or inside the cown's, as its last ticket, which ends the cown. */
struct hd__ticket {
	hd_cown *use;			 /* the cown; HD__READS is up in it if the behaviour only reads. NULL: given up early */
	struct hd__behaviour *behaviour; /* NULL: it is the cown's last ticket */
	uintptr_t link;			 /* the next ticket, and the bits below: by the rules in line.c */
};
#define HD__READS ((uintptr_t)1)   /* in use */
#define HD__COUNTED ((uintptr_t)2) /* in use: it counts in the cown's urgency until it has the cown (urgency.c) */
enum {
	HD__PLACED = 1,	    /* all tickets of its call are in their lines: others may come behind it */
	HD__ACTIVE = 2,	    /* it reads, and has the cown */
	HD__NEXT_READS = 4, /* the next one reads */
	HD__LINK_BITS = 7
};

struct hd_cown {
	struct hd__ticket *last; /* the end of its line; NULL: no ticket is in it. Any thread, by exchange */
	struct hd__ticket
		*next_writer; /* it waits for the readers that have the cown; written before `readers` says that it does */
	uint32_t readers;     /* 2 for each that has the cown, and 1 if a writer waits for them. Any thread, by addition */
	uint32_t strong;      /* references, and ENDING (cown.c); any thread */
	uint32_t weak;	      /* weak references, and one for all the others */
	uint32_t forks; /* twice hd__forks, when it was last used; one more while a thread of a forked child takes it over */
	uint8_t level;	/* the priority of the first behaviour on it; 0: there was none (urgency.c) */
	struct hd__urgency *urgency; /* NULL: all behaviours on it have had that priority; set once, by any thread */
	struct hd_process *holder;   /* of the behaviour that got it last; any thread, relaxed: a hint */
	bool failed;		     /* a behaviour that had it did not return; written by behaviours that have it */
	uint64_t id;		     /* constant: the order in which a behaviour joins the lines of its cowns */
	void *data;		     /* constant */
	void (*drop)(void *data);    /* constant */
	struct hd__ticket end;	     /* joins the line when the last reference is gone */
	hd_cown *dead;		     /* the next that is to be ended, in a chain */
};

static inline hd_cown *hd__cown_of(const struct hd__ticket *t)
{
	return (hd_cown *)((uintptr_t)t->use & ~(HD__READS | HD__COUNTED));
}

static inline bool hd__ticket_reads(const struct hd__ticket *t)
{
	return ((uintptr_t)t->use & HD__READS) != 0;
}

static inline struct hd__ticket *hd__next_ticket(uintptr_t link)
{
	return (struct hd__ticket *)(link & ~(uintptr_t)HD__LINK_BITS);
}

/* What follows from a ticket that gets its cown, and is done when the caller is outside its lane. */
struct hd__aftermath {
	hd_cown *dead;			/* cowns that have ended, chained by `dead` */
	struct hd__behaviour *forsaken; /* behaviours that will never run, and have all their cowns now; chained by `next` */
};

/* Tickets `first` to `last`, of the same cown and chained by their links, come to its line together. Whether the first has the cown at once; the rest
 * follow it as if each had come alone. `all`: it is the last line that its call joins. `w` is the worker in whose lane the caller is, NULL on a plain
 * thread. (line.c) */
bool hd__line_join(struct hd_worker *w, struct hd__ticket *first, struct hd__ticket *last, bool all,
		   struct hd__aftermath *after);

#define HD__FORSAKEN (1u << 31) /* in awaits: its process is gone, and it will never run */

/* What is not usual with a behaviour. */
enum {
	HD__ANSWERS = 1, /* its function is `maker` */
	HD__DROPS = 2,	 /* it has an argument to drop */
	HD__TELLS = 4,	 /* TSan is told of what it does */
	HD__SKIPPED = 8	 /* it was called off before its function was called */
};

struct hd__behaviour {
	uint32_t awaits;   /* tickets that do not have their cowns yet, and one for the call that makes it; any thread */
	uint32_t n;	   /* cowns that were named */
	uint32_t distinct; /* tickets: each cown has one */
	uint8_t size;	   /* which of a store's; HD__SPARE_SIZES: none */
	uint8_t level;	   /* its priority */
	uint8_t odd;	   /* HD__ANSWERS and its like */
	bool mixed;	   /* it has got a cown with behaviours of several priorities; any thread, relaxed */
	struct hd_process *process; /* NULL: it has none, in this life or after it */
	uint64_t
		born; /* the control word with which its process was born, and can die (life/guest.h); 0: it was not, or cannot */
	union {
		hd_behaviour fn;
		hd_when_maker maker;
		struct hd__behaviour *next; /* among spares, or what is forsaken */
	};
	void *arg;
	void (*drop)(void *arg);
	struct hd__ticket tickets[]; /* n of them; then n pointers to data; then what was copied */
};

/* How a behaviour is made, beside what the program says. */
struct hd__making {
	struct hd_when how;
	hd_when_maker maker;	     /* in place of how.fn; or NULL */
	struct hd__mourner *mourner; /* or NULL */
};

/* Makes a behaviour (when.c). Returns 0 or -errno; *pid (or NULL) is its process. */
int hd__behaviour_make(const struct hd__making *m, hd_pid *pid);

/* Whether the caller may make a behaviour of a log: 0; -ENOTSUP; -EBUSY (log.c). */
int hd__log_may_make(void);

/* In steps: whether it can be made; its memory (NULL: there is none), outside any lane; then it begins, inside the lane, in one step, which answers 0, -EAGAIN or
 * -ESHUTDOWN; or it is given a block, which answers likewise, is borne, and its tickets join their lines by other means; or it is unmade, and has no block any more. */
int hd__behaviour_check(const struct hd__making *m);
struct hd__behaviour *hd__behaviour_new(const struct hd__making *m);
int hd__behaviour_begin(struct hd__caller caller, struct hd__behaviour *b, const struct hd__making *m);
int hd__behaviour_embody(struct hd__caller caller, struct hd__behaviour *b);
void hd__behaviour_disembody(struct hd__caller caller, struct hd__behaviour *b);
void hd__behaviour_bear(struct hd__caller caller, struct hd__behaviour *b, const struct hd__making *m);
void hd__behaviour_unmake(struct hd__behaviour *b);

/* The turn of a behaviour (a hook of sched/). */
struct hd_worker *hd__behave(struct hd_process *me, const struct hd__host *host, struct hd_process **next);

/* As hd__behaviour_got, in all cases (when.c). */
void hd__behaviour_got_slowly(struct hd_worker *w, struct hd__behaviour *b, unsigned tickets, struct hd__aftermath *after);

/* The cown's last ticket has its turn: no behaviour has the cown (cown.c). */
void hd__cown_end(struct hd_worker *w, hd_cown *c, struct hd__aftermath *after);

/* Priorities (urgency.c). A behaviour of this priority is about to be made on c: false when there is no memory to count with. A ticket that is about to join its
 * line counts, if it must; has its cown, and counts no more. Behaviours of pid's priority and of others have a cown in common, and one waits: the one that has it finds its
 * boost anew. */
bool hd__cown_mix(hd_cown *c, int priority);
void hd__cown_unmix(hd_cown *c);
void hd__ticket_counts(struct hd__ticket *t);
void hd__ticket_has(struct hd__ticket *t);
void hd__cown_urge(struct hd__sched *sched, hd_cown *c);

static inline void hd__ticket_got(struct hd__ticket *t)
{
	hd_cown *c = hd__cown_of(t);

	st_rlx(&c->holder, t->behaviour->process);
	if (unlikely(ld_acq(&c->urgency) != NULL)) /* pairs with hd__cown_mix */
		hd__ticket_has(t);
}

/* The process of b may run. In all cases; and usually (when.c). */
void hd__behaviour_is_ready_slowly(struct hd_worker *w, struct hd__behaviour *b);
__attribute__((always_inline)) static inline void hd__behaviour_is_ready(struct hd_worker *w, struct hd__behaviour *b)
{
	struct hd_process *p = b->process;

	/* as hd__decide_locked and hd__make_ready have it */
	if (likely(ld_rlx(&p->home) == w && ld_rlx(&p->wait) == HD__WAITING && !(ld_acq(&p->control) & HD__SUSPEND))) {
		st_rlx(&p->wait, HD__GRANTED);
		hd__move(w, p, HD_READY);
		hd__runq_append(&w->runq, p);
	} else {
		hd__behaviour_is_ready_slowly(w, b);
	}
}

/* So many tickets of b's have got their cowns. `w` is the worker in whose lane the caller is, NULL on a plain thread. */
__attribute__((always_inline)) static inline void hd__behaviour_got(struct hd_worker *w, struct hd__behaviour *b,
								    unsigned tickets, struct hd__aftermath *after)
{
	/* A worker that finds nothing else awaited is alone: what is forsaken is so when no worker runs any more. */
	if (likely(w != NULL && ld_acq(&b->awaits) == tickets && !ld_rlx(&b->mixed))) {
		st_rlx(&b->awaits, 0);
		hd__behaviour_is_ready(w, b);
	} else {
		hd__behaviour_got_slowly(w, b, tickets, after);
	}
}

/* A ticket comes to the end of its line by one exchange, and then takes its place there (line.c). */
bool hd__line_place(struct hd_worker *w, struct hd__ticket *first, struct hd__ticket *last, struct hd__ticket *before, bool all,
		    struct hd__aftermath *after);

static inline struct hd__ticket *hd__line_come(hd_cown *c, struct hd__ticket *last)
{
	last->link = 0;
	return xchg_acq_rel(&c->last, last); /* acquire: what the ticket before it is; release: what these are */
}

/* As hd__line_place, for a writer that has come behind a writer which is placed already. False: it is not so, and nothing has been done. */
static inline bool hd__line_follow(struct hd__ticket *t, struct hd__ticket *before, bool all)
{
	if (unlikely(before == NULL || hd__ticket_reads(before) || !(ld_acq(&before->link) & HD__PLACED)))
		return false;
	if (all)
		st_rel(&t->link, HD__PLACED);
	st_rel(&before->link, (uintptr_t)t | HD__PLACED);
	return true;
}

/* As hd__line_place, for a writer that has come to an empty line while no reader has the cown. False: it is not so, and nothing has been done. */
static inline bool hd__line_begin(struct hd__ticket *t, struct hd__ticket *before, bool all)
{
	if (unlikely(before != NULL || ld_acq(&hd__cown_of(t)->readers) != 0))
		return false;
	if (all)
		st_rel(&t->link, HD__PLACED);
	hd__ticket_got(t);
	return true;
}

/* As hd__line_join, for one ticket of a behaviour. */
static inline bool hd__line_join_one(struct hd_worker *w, struct hd__ticket *t, bool all, struct hd__aftermath *after)
{
	struct hd__ticket *before = hd__line_come(hd__cown_of(t), t);

	if (likely(!hd__ticket_reads(t)) && hd__line_follow(t, before, all))
		return false;
	return hd__line_place(w, t, t, before, all, after);
}

/* All tickets of its call are in their lines; not for one that joined the last of them. */
static inline void hd__line_placed(struct hd__ticket *t)
{
	if (likely(!hd__ticket_reads(t)))
		st_rel(&t->link, HD__PLACED); /* no other thread writes it so far; pairs with spin in line.c */
	else
		or_acq_rel(&t->link, HD__PLACED); /* a reader before it may let it in this moment */
}

/* t, which has its cown, gives it up: those behind it get it. Nothing of the cown is touched afterwards. */
void hd__line_leave_slowly(struct hd_worker *w, struct hd__ticket *t, struct hd__aftermath *after);
__attribute__((always_inline)) static inline void hd__line_leave(struct hd_worker *w, struct hd__ticket *t,
								 struct hd__aftermath *after)
{
	uintptr_t link = ld_acq(&t->link); /* pairs with the stores of the thread that joined behind t */
	struct hd__ticket *next = hd__next_ticket(link), *last = t;

	if (likely(!hd__ticket_reads(t))) {
		/* The swap publishes what the behaviour did to the ticket that comes next. */
		if (next == NULL && likely(cas_acq_rel(&hd__cown_of(t)->last, &last, NULL)))
			return;
		if (next != NULL && likely(!(link & HD__NEXT_READS) && next->behaviour != NULL)) {
			hd__ticket_got(next);
			hd__behaviour_got(w, next->behaviour, 1, after);
			return;
		}
	}
	hd__line_leave_slowly(w, t, after);
}

/* The highest priority among those that wait for a cown of the behaviour p; 0: none (a hook of sync/). */
int hd__behaviour_boost(const struct hd_process *p);

/* What follows; outside any lane. */
void hd__settle(struct hd__aftermath *after);
void hd__cowns_drop(hd_cown *dead);

/* In a forked child: the behaviours in its line exist in the parent only. */
void hd__cown_take_over(hd_cown *c);
static inline void hd__cown_look(hd_cown *c)
{
	if (unlikely(ld_acq(&c->forks) != 2u * hd__forks)) /* pairs with hd__cown_take_over */
		hd__cown_take_over(c);
}

/* A behaviour is made; is over, and out of its lines. `w` is the caller's worker, whose lane is entered, or NULL. (quiesce.c) */
static inline void hd__behaviour_counts(struct hd__sched *sched, struct hd_worker *w)
{
	if (likely(w != NULL))
		bump(&w->stats.whens, 1);
	else
		add_seq(&sched->whens, 1);
}

void hd__quiet_look(struct hd__sched *sched, struct hd_worker *w);
static inline void hd__behaviour_counts_as_over(struct hd__sched *sched, struct hd_worker *w)
{
	if (likely(w != NULL))
		bump_rel(&w->stats.over); /* pairs with hd__behaviours_made */
	else
		add_seq(&sched->over, 1);
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* the other half is the barrier in hd_quiesce */
}

/* After that, by the same thread; or another behaviour runs next, and its end looks. */
static inline void hd__behaviour_looks(struct hd__sched *sched, struct hd_worker *w)
{
	if (unlikely(ld_rlx(&sched->quiescers) != 0))
		hd__quiet_look(sched, w);
}

static inline void hd__behaviour_is_over(struct hd__sched *sched, struct hd_worker *w)
{
	hd__behaviour_counts_as_over(sched, w);
	hd__behaviour_looks(sched, w);
}

static inline bool hd__is_behaviour(const struct hd_process *p)
{
	return p->nature & HD__BEHAVIOUR;
}

/* For the statistics: cowns whose data is there; behaviours so far, and of these, those that are not over. */
uint64_t hd__cowns_live(void);
uint64_t hd__behaviours_made(struct hd__sched *sched, uint64_t *live);

/* The runtime ends: the memory of behaviours that a worker has kept. */
void hd__spares_fini(struct hd__spares *spares);

#endif
