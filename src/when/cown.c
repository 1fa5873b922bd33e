/* when/cown.c - cowns: their references, and their end.
 *
 * Owns:       cown->strong, weak, data, end.
 * Invariant:  the data is there while there is a reference, or a ticket in the line. When the last reference goes, the cown's last ticket joins the line
 *             as a writer would: when it has its turn, and none is behind it, no thread knows the cown any more, but for weak references. So behaviours
 *             need no references of their own, and cost none. A behaviour that has the cown may make a reference when there is none: the last ticket,
 *             which is in the line then (ENDING), finds it when it has its turn, and goes.
 * Callers:    any thread. */
#include "base/assert.h"
#include "os/memory.h"
#include "os/thread.h"
#include "sync/sync.h"
#include "when/when.h"

#define ENDING (1u << 31) /* in strong: the last ticket is in the line */

static uint64_t made, ended; /* cowns; any thread, relaxed */

uint64_t hd__cowns_live(void)
{
	uint64_t gone = ld_rlx(&ended);
	return ld_rlx(&made) - gone;
}

hd_cown *hd_cown_new(void *data, void (*drop)(void *data))
{
	hd_cown *c = hd__os_alloc(sizeof *c);

	if (c == NULL)
		return NULL;
	c->strong = c->weak = 1;
	c->forks = 2u * hd__forks;
	c->id = add_rlx(&made, 1) + 1; /* relaxed: a number that no other cown has */
	c->data = data;
	c->drop = drop;
	c->end.use = c;
	return c;
}

hd_cown *hd_cown_retain(hd_cown *c)
{
	add_rlx(&c->strong, 1); /* relaxed: the caller has a reference, or is a behaviour that has the cown */
	return c;
}

static void forget(hd_cown *c)
{
	if (add_acq_rel(&c->weak, -1u) == 1) {
		hd__cown_unmix(c);
		hd__os_free(c);
	}
}

void hd__cowns_drop(hd_cown *dead)
{
	while (dead != NULL) {
		hd_cown *c = dead;
		dead = c->dead;
		hd__learn(c);
		if (c->drop != NULL)
			c->drop(c->data);
		add_rlx(&ended, 1);
		forget(c);
	}
}

/* The last ticket comes to the line, or comes again: a behaviour that had the cown, and no reference to it, has made another one. */
static void await_end(struct hd_worker *w, hd_cown *c, struct hd__aftermath *after)
{
	if (hd__line_join(w, &c->end, &c->end, true, after))
		hd__cown_end(w, c, after);
}

/* The last ticket has left the line, or is not in it yet. Whether there is a reference after all: its release will bring the ticket to the line. */
static bool is_wanted(hd_cown *c)
{
	uint32_t strong = ld_rlx(&c->strong);

	while (strong != ENDING)
		if (cas_acq_rel(&c->strong, &strong, strong & ~ENDING))
			return true;
	return false;
}

void hd__cown_end(struct hd_worker *w, hd_cown *c, struct hd__aftermath *after)
{
	/* A caller that had the last reference has made its behaviours before it released that: `strong` is looked at first. */
	if (likely(ld_acq(&c->strong) == ENDING && ld_acq(&c->last) == &c->end)) {
		c->dead = after->dead;
		after->dead = c;
		return;
	}
	hd__line_leave(w, &c->end, after); /* a behaviour has come behind it, or there is a reference */
	if (!is_wanted(c))
		await_end(w, c, after);
}

void hd_cown_release(hd_cown *c)
{
	struct hd__aftermath after = { .dead = NULL };

	if (c == NULL)
		return;
	hd__publish(c);
	uint32_t strong = ld_rlx(&c->strong);
	/* Releases what the caller did to the data; the last one acquires it. */
	while (!cas_acq_rel(&c->strong, &strong, strong == 1 ? ENDING : strong - 1))
		;
	if (strong != 1)
		return;
	hd__cown_look(c);
	struct hd_worker *w = hd__self();
	if (w != NULL)
		hd__enter(w);
	await_end(w, c, &after);
	hd__leave_quietly(w);
	hd__settle(&after);
}

void hd__cown_take_over(hd_cown *c)
{
	uint32_t mine = 2u * hd__forks, was = ld_acq(&c->forks);

	if (was == mine)
		return;
	if (was != mine + 1 && cas_acq(&c->forks, &was, mine + 1)) {
		st_rlx(&c->last, NULL);
		st_rlx(&c->readers, 0);
		st_rel(&c->forks, mine);
		return;
	}
	while (ld_acq(&c->forks) != mine)
		hd__os_thread_yield();
}

/* ---- weak references ---- */

hd_weak_cown *hd_cown_weaken(hd_cown *c)
{
	add_rlx(&c->weak, 1); /* relaxed: the caller has a reference */
	return (hd_weak_cown *)c;
}

hd_cown *hd_weak_cown_promote(hd_weak_cown *weak)
{
	hd_cown *c = (hd_cown *)weak;
	uint32_t strong = ld_rlx(&c->strong);

	do
		if (strong == ENDING || strong == 0)
			return NULL;
	while (!cas_acq(&c->strong, &strong, strong + 1)); /* pairs with nothing: what the data is, its lines tell */
	return c;
}

void hd_weak_cown_release(hd_weak_cown *weak)
{
	if (weak != NULL)
		forget((hd_cown *)weak);
}

/* ---- failure ---- */

bool hd_cown_failed(const hd_cown *c)
{
	return ld_rlx(&c->failed); /* relaxed: to a behaviour that has the cown its line has published it */
}

void hd_cown_clear(hd_cown *c)
{
	st_rlx(&c->failed, false);
}
