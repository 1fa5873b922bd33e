/* port/tie.c - links and watches: what is between two processes, and ends with either of them.
 *
 * Owns:       struct hd__tie: a link between two mailboxes, or a watch: of the process that has one mailbox, by a port of the other.
 * Invariant:  a tie is in the lines of both its mailboxes, or in neither. The thread that takes it out of them, under the lock, does with
 *             it what there is to do, and frees it. A mailbox that ends takes its ties out before it is freed.
 * Locking:    sched->ties_lock guards all ties of the runtime; inside it, the news of a process, so that a tie with a process is made before
 *             it is marked dead, or not at all. It is held for a few instructions, and longer only by a caller that undoes a tie and must
 *             search for it. Nothing is sent, killed or freed under it. Rejected: a lock for each mailbox. Every operation here is about
 *             two of them, which end in any order.
 * Callers:    any thread; the end of a process.
 *
 * The end of a process: it closes its mailbox; unless it was a normal end, kills what is linked with it and waits until its children are dead
 * and have told that (hd__ties_end); is marked dead; tells those that watched it, and at last parts from its creator, which may wait for
 * that (hd__ties_tell). One that never ran does the second step in the last. */
#include <heddle/link.h>

#include "os/memory.h"
#include "port/port.h"

enum kind { LINK, CHILD /* the second has spawned the first */, WATCH /* of the first, by a port of the second */ };

struct hd__tie {
	struct end {
		struct hd__link link; /* among the ties of the mailbox */
		struct hd__mailbox *box;
		unsigned side; /* 0 or 1: which end this is */
	} ends[2];	       /* the first member */
	enum kind kind;
	hd_port *port;		   /* WATCH: where the notice goes; a reference */
	struct hd__letter *notice; /* WATCH: written beforehand, so that it cannot fail */
	struct hd__tie *next;	   /* of those that a thread has taken out */
	hd_pid pid;		   /* taken out: the process at the other end */
};

static struct end *end_of(struct hd__link *link)
{
	return (struct end *)((char *)link - offsetof(struct end, link));
}

static struct hd__tie *tie_of(struct end *end)
{
	return (struct hd__tie *)(end - end->side);
}

/* Outside a lane. NULL: no memory. */
static struct hd__tie *new_tie(enum kind kind, hd_port *port)
{
	struct hd__tie *tie = hd__os_alloc(sizeof *tie);

	if (tie == NULL)
		return NULL;
	tie->kind = kind;
	tie->ends[1].side = 1;
	if (kind != WATCH)
		return tie;
	tie->notice = hd__letter_alloc(sizeof(struct hd_ended));
	if (tie->notice == NULL) {
		hd__os_free(tie);
		return NULL;
	}
	tie->port = hd_port_retain(port);
	return tie;
}

/* Inside or outside a lane, by the thread of w. */
static void free_tie(struct hd_worker *w, struct hd__tie *tie)
{
	struct hd_waiter *woken = NULL;

	if (tie->notice != NULL)
		hd__letter_free(w, tie->notice);
	if (tie->port != NULL) { /* of a mail port: none is woken */
		struct hd__link *unread = hd__port_release(w, tie->port, &woken);
		if (unread != NULL) /* it had no owner, and the watch had the last reference: the watched process has ended */
			hd__letters_leave(w, unread);
	}
	hd__os_free(tie);
}

/* Under the lock. */
static void count_link(struct hd__tie *tie, uint32_t change)
{
	for (int i = 0; i < 2 && tie->kind != WATCH; i++)
		st_rlx(&tie->ends[i].box->more->links, tie->ends[i].box->more->links + change); /* pairs with hd_stuck's look */
}

/* Under the lock. */
static void join(struct hd__tie *tie, struct hd__mailbox *first, struct hd__mailbox *second)
{
	tie->ends[0].box = first;
	tie->ends[1].box = second;
	hd__line_push(&first->more->ties, &tie->ends[0].link);
	hd__line_push(&second->more->ties, &tie->ends[1].link);
	count_link(tie, 1);
}

/* Under the lock. If it was that of the last child for which its creator waits, *woken receives the creator's wait: to be unparked when the lock
 * is released. */
static void part(struct hd_worker *w, struct hd__tie *tie, struct hd_waiter **woken)
{
	struct hd__mailbox *creator = tie->ends[1].box;

	for (int i = 0; i < 2; i++)
		hd__line_remove(&tie->ends[i].box->more->ties, &tie->ends[i].link);
	count_link(tie, -1u);
	if (tie->kind != CHILD || !creator->mourns)
		return;
	hd__mailbox_lock(creator);
	if (creator->receiver.head != NULL && --creator->receiver.head->number == 0)
		*woken = hd__waitq_claim(w, &creator->receiver, HD__GRANTED);
	hd__mailbox_unlock(creator);
}

/* Under the lock: the first tie of the mailbox, and the one after x; NULL: none. */
static struct hd__link *first_tie(const struct hd__mailbox *box)
{
	const struct hd__more *more = ld_acq(&box->more);

	return more != NULL ? hd__line_first(&more->ties) : NULL;
}

static struct hd__link *tie_after(const struct hd__mailbox *box, const struct hd__link *x)
{
	return hd__line_after(&box->more->ties, x);
}

/* Under the lock: whether the mailbox has this tie, which may be gone. */
static bool has_tie(const struct hd__mailbox *box, const struct hd__tie *tie)
{
	for (struct hd__link *x = first_tie(box); x != NULL; x = tie_after(box, x))
		if (tie_of(end_of(x)) == tie)
			return true;
	return false;
}

/* ---- making and undoing ---- */

/* What a process gets that has no mailbox yet, or one without a record for ties: made before locks are taken, as no memory is fetched under them. */
struct spare {
	struct hd__mailbox *box;
	struct hd__more *more;
};

static struct spare new_spare(void)
{
	return (struct spare){ hd__mailbox_new(), hd__os_alloc(sizeof(struct hd__more)) };
}

static void free_spare(struct spare *spare)
{
	hd__mailbox_free(spare->box);
	hd__os_free(spare->more);
}

/* Under the ties' lock: ties p, which is alive as pid, to the mailbox `other`; p gets what it needs of `spare`. Returns 0 or -ESRCH. */
static int tie_to(struct hd__tie *tie, struct hd_process *p, hd_pid pid, struct spare *spare, struct hd__mailbox *other)
{
	if (p == NULL)
		return -ESRCH;
	bool alive = hd__news_lock(p, pid);
	if (alive) {
		struct hd__mailbox *box = hd__mailbox_of(p);
		if (box == NULL) {
			box = spare->box;
			spare->box = NULL;
			hd__mailbox_give(box, p, pid);
		}
		hd__more_give(box, &spare->more);
		join(tie, box, other);
	}
	hd__waitq_unlock(&p->news);
	return alive ? 0 : -ESRCH;
}

static int tie_with(struct hd__caller caller, hd_pid pid, struct hd__tie *tie, struct spare *spare, struct hd__mailbox *other)
{
	hd__lock(&caller.sched->ties_lock);
	int err = tie_to(tie, hd__table_find(&caller.sched->table, pid), pid, spare, other);
	hd__unlock(&caller.sched->ties_lock);
	return err;
}

int hd_link(hd_pid pid)
{
	struct hd_worker *w = hd__self();

	if (w == NULL)
		return -ENOTSUP;
	if (pid == hd_self())
		return -EINVAL;
	struct hd__mailbox *mine = hd__mailbox_own(w);
	struct spare spare = new_spare();
	struct hd__tie *tie = new_tie(LINK, NULL);
	int err = -ENOMEM;
	if (mine != NULL && hd__more_own(mine) != NULL && spare.box != NULL && spare.more != NULL && tie != NULL) {
		struct hd__caller caller = hd__call_begin();
		err = tie_with(caller, pid, tie, &spare, mine);
		hd__call_end(caller);
	}
	free_spare(&spare);
	if (err != 0)
		hd__os_free(tie);
	return err;
}

/* Under the lock: a tie of this kind, or NULL, between the two; from the shorter of both lines. */
static struct hd__tie *search(struct hd__mailbox *a, struct hd__mailbox *b, bool (*fits)(const struct hd__tie *, const void *),
			      const void *what)
{
	struct hd__link *x = first_tie(a), *y = first_tie(b);

	while (x != NULL && y != NULL) {
		struct hd__tie *s = tie_of(end_of(x)), *t = tie_of(end_of(y));
		if (s->ends[!end_of(x)->side].box == b && fits(s, what))
			return s;
		if (t->ends[!end_of(y)->side].box == a && fits(t, what))
			return t;
		x = tie_after(a, x);
		y = tie_after(b, y);
	}
	return NULL;
}

static bool is_link(const struct hd__tie *tie, const void *what)
{
	(void)what;
	return tie->kind != WATCH;
}

static bool is_watch_by(const struct hd__tie *tie, const void *port)
{
	return tie->kind == WATCH && tie->port == port;
}

static int undo(hd_pid pid, struct hd__mailbox *mine, bool (*fits)(const struct hd__tie *, const void *), const void *what)
{
	struct hd__caller caller = hd__call_begin();
	struct hd__tie *tie = NULL;
	struct hd_waiter *woken = NULL;

	if (caller.sched == NULL)
		return -ENXIO;
	struct hd_process *p = hd__table_find(&caller.sched->table, pid);
	hd__lock(&caller.sched->ties_lock);
	if (p != NULL && mine != NULL) {
		struct hd__mailbox *other = hd__news_lock(p, pid) ? hd__mailbox_of(p) : NULL;
		if (other != NULL)
			tie = search(mine, other, fits, what);
		if (tie != NULL)
			part(caller.w, tie, &woken);
		hd__waitq_unlock(&p->news);
	}
	hd__unlock(&caller.sched->ties_lock);
	if (woken != NULL)
		hd__unpark(caller.w, woken);
	if (tie != NULL)
		free_tie(caller.w, tie);
	hd__call_end(caller);
	return tie != NULL ? 0 : -ENOENT;
}

int hd_unlink(hd_pid pid)
{
	struct hd_worker *w = hd__self();

	return w == NULL ? -ENOTSUP : undo(pid, hd__mailbox_of(w->current), is_link, NULL);
}

int hd_unwatch(hd_pid pid, hd_port *port)
{
	return port->head.kind != HD__MAIL_PORT ? -ENOENT : undo(pid, port->box, is_watch_by, port);
}

/* Inside the lane of w, or on a plain thread inside the gate. */
static void send_notice(struct hd_worker *w, struct hd__tie *tie, hd_pid pid, const struct hd_end *end)
{
	struct hd__letter *l = tie->notice, *dropped;
	struct hd__wakee woken;
	const struct hd_ended ended = { .pid = pid, .end = *end };

	tie->notice = NULL;
	hd__write_notice(l, pid, HD_TAG_ENDED, &ended, sizeof ended);
	if (hd__deliver(w, tie->port, l, &woken, &dropped) != 0) {
		hd__letter_free(w, l); /* the port's owner has ended, too */
		return;
	}
	hd__wake(w, woken);
}

/* How pid, which does not live any more, has ended. */
static struct hd_end end_of_dead(struct hd__sched *sched, hd_pid pid)
{
	struct hd_process *p = hd__table_find(&sched->table, pid);
	struct hd_end end = { .err = -ESRCH };

	if (p == NULL)
		return end;
	hd__waitq_lock(&p->news);
	if (hd__alive_or_zombie(p, pid) &&
	    ld_acq(&p->state) == HD_ENDED) /* else it has died, and its end is not written (life/guest.h) */
		end = (struct hd_end){ .kind = p->end_kind, .result = p->value, .err = p->end_err };
	if (!hd__alive_or_zombie(p, pid)) /* it was joined meanwhile */
		end = (struct hd_end){ .err = -ESRCH };
	hd__waitq_unlock(&p->news);
	return end;
}

int hd_watch(hd_pid pid, hd_port *port)
{
	if (port->head.kind != HD__MAIL_PORT)
		return -EINVAL;
	struct hd__tie *tie = new_tie(WATCH, port);
	struct spare spare = new_spare();
	bool made = tie != NULL && spare.box != NULL && spare.more != NULL && hd__more_own(port->box) != NULL;
	struct hd__caller caller = hd__call_begin();
	int err = caller.sched == NULL ? -ENXIO : made ? 0 : -ENOMEM;
	if (err == 0 && ld_rlx(&port->box->closed))
		err = -ESRCH;
	bool tied = err == 0 && tie_with(caller, pid, tie, &spare, port->box) == 0;
	if (err == 0 && !tied) {
		const struct hd_end end = end_of_dead(caller.sched, pid);
		send_notice(caller.w, tie, pid, &end);
	}
	if (!tied && tie != NULL)
		free_tie(caller.w, tie);
	hd__call_end(caller);
	free_spare(&spare);
	return err;
}

/* ---- spawning ---- */

/* The mailbox of the new process: that of its port, which is its own from now on, or a new one. */
static int bind(hd_port *port, struct hd__mailbox **box)
{
	if (port == NULL) {
		*box = hd__mailbox_new();
		if (*box == NULL)
			return -ENOMEM;
		(*box)->bound = true;
		return 0;
	}
	if (port->head.kind != HD__MAIL_PORT)
		return -EINVAL;
	*box = port->box;
	hd__mailbox_lock(*box);
	bool free = !(*box)->bound;
	if (free) {
		(*box)->bound = true;
		(*box)->refs++; /* the owner's */
	}
	hd__mailbox_unlock(*box);
	return free ? 0 : -EBUSY;
}

static void unbind(struct hd__mailbox *box)
{
	hd__mailbox_lock(box);
	box->bound = false;
	box->mourner.next = NULL;
	hd__mailbox_release(box);
}

hd_pid hd__spawn_tied(struct hd__sched *sched, const struct hd_spawn *how, hd_entry entry, void *arg)
{
	struct hd_worker *w = hd__self();
	struct hd__mailbox *box, *mine = NULL;
	struct hd__tie *ties[2] = { NULL, NULL };

	if (w == NULL && (how->link || how->group != NULL))
		return -ENOTSUP;
	if (how->watch != NULL && how->watch->head.kind != HD__MAIL_PORT)
		return -EINVAL;
	if (how->link && ((mine = hd__mailbox_own(w)) == NULL || hd__more_own(mine) == NULL))
		return -ENOMEM;
	if (how->watch != NULL && hd__more_own(how->watch->box) == NULL)
		return -ENOMEM;
	hd_pid pid = bind(how->port, &box);
	if (pid != 0)
		return pid;
	bool made = ((!how->link && how->watch == NULL) || hd__more_own(box) != NULL) &&
		    (!how->link || (ties[0] = new_tie(CHILD, NULL)) != NULL) &&
		    (how->watch == NULL || (ties[1] = new_tie(WATCH, how->watch)) != NULL);
	struct hd__caller caller = hd__call_begin();
	if (made) {
		hd__lock(&sched->ties_lock);
		if (ties[0] != NULL)
			join(ties[0], box, mine);
		if (ties[1] != NULL)
			join(ties[1], box, how->watch->box);
		hd__unlock(&sched->ties_lock);
	}
	hd__call_end(caller);
	if (!made)
		pid = -ENOMEM;
	else if (how->group != NULL)
		pid = hd__group_spawn(how, &box->mourner, entry, arg);
	else {
		caller = hd__call_begin();
		pid = hd__spawn_mourned(caller, how, &box->mourner, entry, arg);
		hd__call_end(caller);
	}
	if (pid > 0)
		return pid;
	caller = hd__call_begin();
	for (int i = 0; i < 2; i++) {
		struct hd_waiter *woken = NULL; /* stays so: the creator is the caller */
		hd__lock(&sched->ties_lock);
		bool there =
			made && has_tie(box, ties[i]); /* not if the owner of the other mailbox has ended: it is freed then */
		if (there)
			part(caller.w, ties[i], &woken);
		hd__unlock(&sched->ties_lock);
		if (ties[i] != NULL && (there || !made))
			free_tie(caller.w, ties[i]);
	}
	hd__call_end(caller);
	unbind(box);
	return pid;
}

/* ---- the end ---- */

/* What a process that was linked with one that ended so hears. */
static int reason_of(enum hd_end_kind kind, int err)
{
	return err != 0 ? err : kind == HD_END_CANCELLED ? -ECANCELED : -EOWNERDEAD;
}

/* Whether a process that ends takes this tie out at once: its links; and when it is dead (`all`), all but that with its creator. */
static bool is_due(const struct hd__tie *tie, const struct end *mine, bool all)
{
	return all ? tie->kind != CHILD || mine->side == 1 : tie->kind == LINK;
}

static struct hd__tie *take_out(struct hd_worker *w, struct hd__mailbox *box, bool all)
{
	struct hd__tie *taken = NULL, **end = &taken;
	struct hd_waiter *woken = NULL; /* stays so: the creator is the owner, which does not wait any more */

	hd__lock(&w->sched->ties_lock);
	for (struct hd__link *x = first_tie(box), *next; x != NULL; x = next) {
		struct end *mine = end_of(x);
		struct hd__tie *tie = tie_of(mine);
		next = tie_after(box, x);
		if (!is_due(tie, mine, all))
			continue;
		part(w, tie, &woken);
		if (tie->ends[0].box == tie->ends[1].box) /* it watched itself: `next` may have been the other end */
			next = first_tie(box);
		tie->pid = ld_rlx(&tie->ends[!mine->side].box->owner);
		tie->next = NULL;
		*end = tie;
		end = &tie->next;
	}
	hd__unlock(&w->sched->ties_lock);
	return taken;
}

/* Kills the creator and the children of the caller, which ends. Their ties stay: those with its children till they are dead, because it waits
 * for them; that with its creator till it is dead itself. */
static void kill_kin(struct hd__sched *sched, struct hd__mailbox *box, int reason)
{
	size_t n = 0;
	struct hd__link *x;

	hd__lock(&sched->ties_lock);
	for (x = first_tie(box); x != NULL; x = tie_after(box, x))
		n++;
	while (n-- > 0 &&
	       (x = first_tie(box)) != NULL) { /* each goes to the tail; if some are gone meanwhile, others are killed twice */
		struct end *mine = end_of(x);
		hd__line_remove(&box->more->ties, x);
		hd__line_push(&box->more->ties, x);
		if (tie_of(mine)->kind != CHILD)
			continue;
		hd_pid pid = ld_rlx(&tie_of(mine)->ends[!mine->side].box->owner);
		hd__unlock(&sched->ties_lock);
		hd_kill(pid, reason);
		hd__lock(&sched->ties_lock);
	}
	hd__unlock(&sched->ties_lock);
}

/* The caller, which ends, waits until its children are dead, and their ends told. */
static void wait_for_children(struct hd__mailbox *box)
{
	struct hd_worker *w = hd__self();
	struct hd_waiter x = { .rules = HD__NO_CANCEL | HD__NO_KILL };

	hd__enter(w);
	hd__lock(&w->sched->ties_lock);
	for (struct hd__link *tie = first_tie(box); tie != NULL; tie = tie_after(box, tie))
		x.number += tie_of(end_of(tie))->kind == CHILD && end_of(tie)->side == 1;
	if (x.number == 0) {
		hd__unlock(&w->sched->ties_lock);
		hd__leave(w);
		return;
	}
	hd__mailbox_lock(box);
	box->mourns = true;
	hd__unlock(&w->sched->ties_lock);
	(void)hd__park_as(w, &x, &box->receiver, HD_FOREVER, HD_WAIT_REST, NULL);
}

void hd__ties_end(struct hd__mailbox *box, enum hd_end_kind kind, int err)
{
	struct hd_worker *w = hd__self();

	if (kind == HD_END_RETURNED)
		return;
	if (kind == HD_END_KILLED) {
		hd__waitq_lock(&w->current->news);
		err = w->current->end_err;
		hd__waitq_unlock(&w->current->news);
	}
	struct hd__tie *links = take_out(w, box, false);
	while (links != NULL) {
		struct hd__tie *tie = links;
		links = tie->next;
		hd_kill(tie->pid, reason_of(kind, err));
		free_tie(hd__self(), tie);
	}
	kill_kin(hd__self()->sched, box, reason_of(kind, err));
	wait_for_children(box);
}

/* The tie between the owner of the mailbox and its creator; NULL: none. It is in no line any more. */
static struct hd__tie *part_from_creator(struct hd_worker *w, struct hd__mailbox *box, struct hd_waiter **woken)
{
	struct hd__tie *found = NULL;

	hd__lock(&w->sched->ties_lock);
	for (struct hd__link *x = first_tie(box); x != NULL && found == NULL; x = tie_after(box, x))
		if (tie_of(end_of(x))->kind == CHILD)
			found = tie_of(end_of(x));
	if (found != NULL) {
		found->pid = ld_rlx(&found->ends[1].box->owner);
		part(w, found, woken);
	}
	hd__unlock(&w->sched->ties_lock);
	return found;
}

void hd__ties_tell(struct hd_worker *w, struct hd__mailbox *box, const struct hd_end *end)
{
	struct hd__caller caller = { w, w->sched };
	struct hd_waiter *woken = NULL;
	hd_pid pid = ld_rlx(&box->owner);
	bool normal = end->kind == HD_END_RETURNED;

	for (struct hd__tie *tie = take_out(w, box, true), *next; tie != NULL; tie = next) {
		next = tie->next;
		if (tie->kind == WATCH && tie->ends[0].box == box)
			send_notice(w, tie, pid, end);
		else if (tie->kind != WATCH && !normal)
			hd__doom(caller, tie->pid, reason_of(end->kind, end->err));
		free_tie(w, tie);
	}
	struct hd__tie *tie = part_from_creator(w, box, &woken);
	if (tie == NULL)
		return;
	if (!normal) /* again, unless it never ran: then it hears of it now */
		hd__doom(caller, tie->pid, reason_of(end->kind, end->err));
	if (woken != NULL)
		hd__unpark(w, woken);
	free_tie(w, tie);
}
