/* os/fault.c - failure on demand.
 *
 * Owns:      the countdown of each kind. Armed by tests before the calls they are for; calls count down on any thread. */
#include "os/fault.h"

#include "base/atomic.h"

static struct {
	unsigned countdown; /* calls until the one that fails, itself included; 0: not armed */
	bool from_then_on;
} faults[HD__FAULTS];

bool (*hd__fault_door)(enum hd__fault kind);
bool hd__fault_possible;

void hd__fault_arm(enum hd__fault kind, unsigned nth, bool from_then_on)
{
	faults[kind].from_then_on = from_then_on;
	st_rel(&faults[kind].countdown, nth); /* pairs with hd__fault_decide's acquire: publishes from_then_on */
	st_rel(&hd__fault_possible, true);    /* pairs with hd__fault_strikes: publishes the countdown */
}

bool hd__fault_decide(enum hd__fault kind)
{
	unsigned n = ld_acq(&faults[kind].countdown);
	bool (*door)(enum hd__fault kind) = ld_acq(&hd__fault_door); /* a test may take it away at any time */

	if (unlikely(door != NULL))
		return door(kind);
	while (n != 0) {
		bool strikes = n == 1;
		unsigned next = strikes && faults[kind].from_then_on ? 1 : n - 1;
		if (cas_acq_rel(&faults[kind].countdown, &n, next))
			return strikes;
	}
	return false;
}
