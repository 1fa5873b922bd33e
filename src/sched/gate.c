/* sched/gate.c - how plain threads get at the runtime.
 *
 * Owns:      one word: whether the gate is open, and how many are inside or about to find it shut. A process needs no gate: its
 *            runtime cannot end before it. */
#include "sched/gate.h"

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"

#define OPEN (1u << 31)

static uint32_t gate;
static struct hd__sched *running; /* written while the gate is shut; published by opening it */

struct hd__sched *hd__gate_enter(void)
{
	if (add_acq_rel(&gate, 1) & OPEN) /* pairs with hd__gate_open */
		return running;
	hd__gate_leave();
	return NULL;
}

void hd__gate_leave(void)
{
	add_acq_rel(&gate, -1u); /* pairs with hd__gate_close: what was done inside is done */
}

void hd__gate_open(struct hd__sched *sched)
{
	running = sched;
	or_acq_rel(&gate, OPEN);
}

bool hd__gate_close(void)
{
	uint32_t empty = OPEN;
	return cas_acq_rel(&gate, &empty, 0);
}

void hd__gate_forget(void)
{
	st_rlx(&gate, 0);
}
