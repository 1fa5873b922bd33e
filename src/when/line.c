/* when/line.c - the line of a cown: tickets join it by one exchange, and pass the cown on from one to the next.
 *
 * Owns:       cown->last, next_writer, readers; ticket->link.
 * Invariant:  the line is a chain of tickets from the first, which has the cown, to cown->last. A ticket leaves it when its behaviour is over; nothing of
 *             the ticket is touched by others after it has left, and nothing of the cown by the ticket that leaves an empty line.
 *             Tickets of one call join the lines of all their cowns before another ticket comes behind any of them (HD__PLACED): so any two calls that have
 *             two cowns in common are in the same order in both lines, and no circle of behaviours that wait for each other can form. A ticket is placed after
 *             the one before it, also if it is the only one of its call: behind it, a ticket could else overtake a call that is still joining its lines.
 * Locking:    none. A thread spins in two places, for the few instructions that another one needs which no safe point interrupts:
 *             join, until the ticket before it is placed; leave, until the ticket behind it has linked itself.
 *
 * Joining in the order of the cowns' ids, a thread that waits for a ticket to be placed waits for one whose caller is joining a line of a higher id:
 * these waits form no circle either.
 *
 * The link of a ticket, word by word:
 *
 *   0 or ACTIVE              not placed: a ticket that has come behind it spins
 *   PLACED                   last in its line, or the next ticket has not linked itself yet
 *   next | PLACED | ..       followed by `next`, which has HD__NEXT_READS if it reads. This store is the last thing that the thread which joins
 *                            does to the ticket: its behaviour may be over, and free, right after
 *   ACTIVE, of a reader      it has the cown. One read-modify-write of the link sets this bit, another one links the next ticket: the one that comes
 *                            second sees the other. So a reader that comes behind a reader is let in by exactly one of the two.
 *
 * Readers count in cown->readers before they are told. The line may be empty while readers have the cown: a writer that finds it so adds 1, and the
 * reader that leaves last (3 -> 1) passes the cown to it; or the writer finds that none was left (0 -> 1). A writer behind a reader is announced by
 * that reader when it leaves: it takes 2 away and adds 1. */
#include "os/thread.h"
#include "when/when.h"

#include "context.h"

#define YIELDS 50 /* rounds of tries after which the thread sleeps between two: the other one may have lost its CPU */

/* Waits until the link has one of these bits. Returns it. */
static uintptr_t spin(struct hd__ticket *t, uintptr_t bits)
{
	uintptr_t link;

	for (unsigned i = 1; !((link = ld_acq(&t->link)) & bits); i++) /* pairs with hd__line_placed, and with join */
		if (i % HD__TRIES != 0)
			hd__arch_pause();
		else if (i < (unsigned)(YIELDS * HD__TRIES))
			hd__os_thread_yield();
		else
			hd__os_thread_nap();
	return link;
}

/* t, a writer, has its cown. */
static inline void grant(struct hd_worker *w, struct hd__ticket *t, struct hd__aftermath *after)
{
	if (unlikely(t->behaviour == NULL)) {
		hd__cown_end(w, hd__cown_of(t), after);
		return;
	}
	hd__ticket_got(t);
	hd__behaviour_got(w, t->behaviour, 1, after);
}

/* t, a reader, has its cown, and so have the readers that follow it; unless `told`, its behaviour is told. */
static void admit(struct hd_worker *w, struct hd__ticket *t, bool told, struct hd__aftermath *after)
{
	hd_cown *c = hd__cown_of(t); /* is there as long as a ticket that has not been told is in its line */

	for (;;) {
		struct hd__behaviour *b = t->behaviour;
		add_acq_rel(&c->readers, 2);
		hd__ticket_got(t);
		uintptr_t link = or_acq_rel(&t->link, HD__ACTIVE); /* pairs with join's */
		if (!told)
			hd__behaviour_got(w, b, 1, after); /* it may be over now, and t gone with it */
		if (!(link & HD__NEXT_READS))
			break;
		t = hd__next_ticket(link);
		told = false;
	}
}

/* A writer has come to an empty line: whether it has the cown. */
static inline bool have(hd_cown *c, struct hd__ticket *t)
{
	/* From its exchange on no reader is let in before it. The ticket that left the line empty had counted before it did: 0 is final. */
	if (likely(ld_acq(&c->readers) == 0)) /* pairs with the release of the last reader that left */
		return true;
	st_rlx(&c->next_writer, t);
	if (add_acq_rel(&c->readers, 1) != 0) /* publishes next_writer to the reader that leaves last */
		return false;
	st_rlx(&c->readers, 0);
	return true;
}

bool hd__line_join(struct hd_worker *w, struct hd__ticket *first, struct hd__ticket *last, bool all,
		   struct hd__aftermath *after)
{
	return hd__line_place(w, first, last, hd__line_come(hd__cown_of(first), last), all, after);
}

bool hd__line_place(struct hd_worker *w, struct hd__ticket *first, struct hd__ticket *last, struct hd__ticket *before, bool all,
		    struct hd__aftermath *after)
{
	hd_cown *c = hd__cown_of(first);
	bool reads = hd__ticket_reads(first);

	if (before != NULL)
		spin(before, HD__PLACED);
	if (all) /* before a ticket of this line can be told: then the behaviour may be over at once */
		st_rel(&last->link, HD__PLACED); /* no other thread writes it so far; pairs with spin */
	if (before == NULL) {
		if (!reads && !have(c, first))
			return false;
		if (reads)
			admit(w, first, true, after);
		else if (likely(first->behaviour != NULL))
			hd__ticket_got(first);
		return true;
	}
	if (!hd__ticket_reads(before)) { /* no other thread writes its link now */
		st_rel(&before->link, (uintptr_t)first | HD__PLACED | (reads ? HD__NEXT_READS : 0)); /* pairs with leave */
		return false;
	}
	uintptr_t link = or_acq_rel(&before->link, (uintptr_t)first | (reads ? HD__NEXT_READS : 0)); /* pairs with admit's */
	if (!reads || !(link & HD__ACTIVE))
		return false;
	admit(w, first, true, after);
	return true;
}

/* The ticket behind t, which leaves: its link, or 0 when there is none. */
static inline uintptr_t follower(hd_cown *c, struct hd__ticket *t)
{
	struct hd__ticket *me = t;
	uintptr_t link = ld_acq(&t->link);

	if (hd__next_ticket(link) != NULL)
		return link;
	if (cas_acq_rel(&c->last, &me, NULL)) /* publishes what the behaviour did to the ticket that comes next */
		return 0;
	return spin(t, ~(uintptr_t)HD__LINK_BITS);
}

void hd__line_leave_slowly(struct hd_worker *w, struct hd__ticket *t, struct hd__aftermath *after)
{
	hd_cown *c = hd__cown_of(t);
	uintptr_t link = follower(c, t);
	bool next_reads = link & HD__NEXT_READS;

	if (!hd__ticket_reads(t)) {
		if (next_reads)
			admit(w, hd__next_ticket(link), false, after);
		else if (link != 0)
			grant(w, hd__next_ticket(link), after);
		return;
	}
	/* The next ticket, if it reads, has been let in and may be gone. */
	bool announces = link != 0 && !next_reads;
	if (announces)
		st_rlx(&c->next_writer, hd__next_ticket(link));
	uint32_t left = announces ? add_acq_rel(&c->readers, -1u) - 1 : add_acq_rel(&c->readers, -2u) - 2;
	if (left != 1)
		return;
	struct hd__ticket *writer = ld_rlx(&c->next_writer); /* acquired with `readers` */
	st_rlx(&c->readers, 0);				     /* the writer alone is here */
	grant(w, writer, after);
}
