/* when/quiesce.c - hd_quiesce: no behaviour is left.
 *
 * Owns:       the counters of behaviours, made and over, two for each worker and two for all plain threads; sched->quiet, quiescers.
 * Invariant:  a behaviour is counted before its first ticket joins a line, and is over when it has left all of them. All counters only grow: if what is over, read
 *             first, equals what was made, read second, then there was a moment in between at which no behaviour was left.
 * Locking:    the lock of sched->quiet, for the waiters. The counters have one writer each.
 *
 * No word is written by all behaviours. A behaviour that ends looks whether a caller waits (a word that is nearly always only read), and adds the
 * counters up only then, and only if no behaviour is next on its worker: the last of all is never followed by one. Its counter may be visible later than
 * its look at that word: so the caller of hd_quiesce has all threads execute a fence after it has said that it waits; where there is no such fence, it
 * looks again every millisecond. */
#include <heddle/cancel.h>

#include "os/thread.h"
#include "when/when.h"

#define LOOK_EVERY HD_MS(1)

uint64_t hd__behaviours_made(struct hd__sched *sched, uint64_t *live)
{
	uint64_t over = ld_acq(&sched->over), made; /* acquires what the behaviours did */

	for (unsigned i = 0; i < hd__workers(sched); i++)
		over += ld_acq(&sched->workers[i].stats.over);
	made = ld_acq(&sched->whens);
	for (unsigned i = 0; i < hd__workers(sched); i++)
		made += ld_acq(&sched->workers[i].stats.whens);
	*live = made - over;
	return made;
}

static bool is_quiet(struct hd__sched *sched)
{
	uint64_t live;

	hd__behaviours_made(sched, &live);
	return live == 0;
}

void hd__quiet_look(struct hd__sched *sched, struct hd_worker *w)
{
	struct hd_process *next = w != NULL ? hd__runq_peek(&w->runq) : NULL;

	if (next != NULL && hd__is_behaviour(next) &&
	    next->value != NULL) /* one that is over may be ready too: a request to it came at its end */
		return;
	hd__waitq_lock(&sched->quiet);
	if (is_quiet(sched))
		hd__waitq_serve_all(w, &sched->quiet, HD__GRANTED, NULL);
	else
		hd__waitq_unlock(&sched->quiet);
}

/* Waits until a behaviour that ends finds none left, or for as long as it must not wait any longer without a look. */
static int wait(struct hd__sched *sched, bool fenced, hd_time until)
{
	struct hd_worker *w;
	int err = hd__begin_wait(&w, until);

	if (err != 0)
		return err;
	hd__waitq_lock(&sched->quiet);
	if (is_quiet(sched)) {
		hd__waitq_unlock(&sched->quiet);
		hd__leave_quietly(w);
		return 0;
	}
	hd_time soon = fenced || until <= 0 ? HD_FOREVER : hd__exact_time(w) + LOOK_EVERY;
	err = hd__park(w, &sched->quiet, soon < until ? soon : until, HD_WAIT_QUIESCE);
	return err == -ETIMEDOUT && soon < until ? -EAGAIN : err;
}

static void stop_asking(void *sched)
{
	add_acq_rel(&((struct hd__sched *)sched)->quiescers, -1u);
}

int hd_quiesce(hd_time until)
{
	struct hd_worker *w = hd__self();
	struct hd_cleanup cleanup; /* a process may be terminated meanwhile */

	if (w != NULL && hd__is_behaviour(w->current))
		return -EDEADLK;
	struct hd__sched *sched = hd__look_begin();
	if (sched == NULL)
		return -ENXIO;
	add_seq(&sched->quiescers, 1);
	if (w != NULL)
		hd_cleanup_push(&cleanup, stop_asking, sched);
	bool fenced = hd__os_barrier();
	int err;
	do
		err = wait(sched, fenced, until);
	while (err == -EAGAIN);
	if (w != NULL)
		hd_cleanup_pop(&cleanup, false);
	stop_asking(sched);
	hd__look_end();
	hd__learn(&sched->quiet.lock);
	return err;
}
