/* life/own_tls.c - processes with thread-local storage of their own.
 *
 * Owns:       a process's storage, from its spawn to its end. It hears of the end as a mourner: so nothing is asked of processes without one.
 * Invariant:  a storage is used by one thread at a time: the worker that runs its process, or a thread that does something in its place (io/blocking.c),
 *             while the process waits for that.
 * Callers:    spawn; the ending process; hooks of sched/. */
#include <errno.h>

#include "life/life.h"
#include "os/memory.h"
#include "os/tls.h"

struct own {
	struct hd__mourner mourner; /* the first member */
	struct hd__tls *tls;
};

/* Its variables are destroyed when nothing else of the process is left to run but other mourners: it is the last of them to be told. */
static void ending(struct hd__mourner *mourner, struct hd_process *me, enum hd_end_kind kind, int err)
{
	(void)me, (void)kind, (void)err;
	hd__os_tls_destroy(((struct own *)mourner)->tls);
}

/* By the process itself, on its storage: the worker that leaves it drops that (sched/sched.c). Of a process that does not run: at once. */
static void ended(struct hd__mourner *mourner, struct hd_worker *w, const struct hd_end *end)
{
	struct own *own = (struct own *)mourner;

	(void)end;
	if (w->carrier.aboard != NULL && w->carrier.aboard->tls == own->tls)
		hd__carry_for_the_last_time(&w->carrier);
	else
		hd__os_tls_drop(own->tls);
	hd__os_free(own);
}

static const struct hd__mourner_ops ops = { .ending = ending, .ended = ended };

int hd__own_tls_new(struct hd__mourner **first)
{
	struct own *own = hd__os_alloc(sizeof *own);

	if (own == NULL)
		return -ENOMEM;
	int err = hd__os_tls_new(&own->tls);
	if (err != 0) {
		hd__os_free(own);
		return err;
	}
	own->mourner.ops = &ops;
	while (*first != NULL)
		first = &(*first)->next;
	*first = &own->mourner;
	return 0;
}

void hd__own_tls_undo(struct hd__mourner **first)
{
	while ((*first)->ops != &ops)
		first = &(*first)->next;
	struct own *own = (struct own *)*first;
	*first = NULL;
	hd__os_tls_drop(own->tls);
	hd__os_free(own);
}

struct hd__tls *hd__own_tls_of(const struct hd_process *p)
{
	struct hd__mourner *mourner =
		ld_acq(&p->mourner); /* pairs with hd__mailbox_make's release: a mailbox may have come before it */

	while (mourner->ops != &ops)
		mourner = mourner->next;
	return ((struct own *)mourner)->tls;
}
