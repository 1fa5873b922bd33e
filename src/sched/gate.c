/* sched/gate.c - how plain threads get at the runtime.
 *
 * Owns:      one word: whether the gate is open, and how many are inside. A thread that finds it shut does not count, so that once it is
 *            shut the number only falls, however many knock. A process needs no gate: its runtime cannot end before it. */
#include "sched/gate.h"

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "os/futex.h"

#define OPEN (1u << 31)

static uint32_t gate;
static struct hd__sched *running; /* written while the gate is shut; published by opening it */

struct hd__sched *hd__gate_enter(void)
{
	uint32_t word = ld_rlx(&gate);

	do
		if (!(word & OPEN))
			return NULL;
	while (!cas_acq_rel(&gate, &word, word + 1)); /* pairs with hd__gate_open */
	return running;
}

void hd__gate_enter_surely(void)
{
	add_acq_rel(&gate, 1);
}

void hd__gate_leave(void)
{
	/* pairs with hd__gate_is_empty: what was done inside is done */
	if (unlikely(add_acq_rel(&gate, -1u) == 1)) /* it is shut, and the caller was the last inside */
		hd__os_futex_wake(&gate);
}

void hd__gate_open(struct hd__sched *sched)
{
	running = sched;
	or_acq_rel(&gate, OPEN);
}

void hd__gate_shut(void)
{
	and_acq_rel(&gate, ~OPEN);
}

bool hd__gate_is_empty(void)
{
	return ld_acq(&gate) == 0;
}

void hd__gate_wait(hd_time until)
{
	uint32_t word = ld_acq(&gate);

	if (word != 0)
		hd__os_futex_wait(&gate, word, until);
}

struct hd__sched *hd__gate_forget(void)
{
	struct hd__sched *was = ld_rlx(&gate) != 0 ? running : NULL; /* a thread may be inside a gate that is shut */

	st_rlx(&gate, 0);
	return was;
}
