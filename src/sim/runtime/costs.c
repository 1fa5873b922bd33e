/* sim/runtime/costs.c - what threads pay in a run by the clock.
 *
 * Owns:       the prices, the tally, and which CPUs have a copy of which cache line.
 * Callers:    threads.c, on the one kernel thread there is.
 *
 * Lines are followed for atomic operations alone. A load or a locked operation waits for a line that its CPU has no copy of; a plain
 * store does not, because of the store buffer. A line goes to one CPU after the other. The first access to a line costs nothing, nor
 * does one to a line that the table has no room for. */
#include "sim/runtime/costs.h"

#include <string.h>

#define CPUS 192
#define LINES (1u << 17)
#define PROBES 16

static struct {
	struct hd__sim_costs costs;
	struct hd__sim_tally tally;
	uint64_t rest; /* picoseconds that were not charged yet */
	struct line {
		uintptr_t number;
		hd_time until; /* on its way until then */
		uint64_t copies[CPUS / 64];
	} line[LINES];
} s;

hd_time hd__sim_charge(enum hd__sim_deed deed, hd_time ns)
{
	if (deed != HD__SIM_WORK) {
		s.rest += s.costs.ps[deed];
		ns = (hd_time)(s.rest / 1000);
		s.rest %= 1000;
	}
	s.tally.times[deed]++;
	s.tally.took[deed] += ns;
	return ns;
}

/* The line with this number; if it is a new one, no CPU has a copy. */
static struct line *find_line(uintptr_t number)
{
	size_t at = (size_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 40);
	struct line *l = &s.line[at % LINES];

	for (size_t i = 0; i < PROBES; i++) {
		struct line *next = &s.line[(at + i) % LINES];
		if (next->number == number)
			return next;
		if (next->number == 0) {
			l = next;
			break;
		}
	}
	*l = (struct line){ .number = number };
	return l;
}

/* Whether the CPU must wait for the line; it has a copy from now on, and after a store the only one. */
static bool is_missing(struct line *l, unsigned cpu, bool writes)
{
	uint64_t bit = UINT64_C(1) << (cpu % 64), others = 0;
	bool mine = (l->copies[cpu / 64] & bit) != 0;

	for (unsigned i = 0; i < CPUS / 64; i++)
		others |= i == cpu / 64 ? l->copies[i] & ~bit : l->copies[i];
	if (writes)
		memset(l->copies, 0, sizeof l->copies);
	l->copies[cpu / 64] |= bit;
	return writes ? others != 0 : !mine && others != 0;
}

hd_time hd__sim_charge_access(enum hd__sim_access access, const void *where, unsigned thread, hd_time now)
{
	hd_time took = 0;

	if (access == HD__SIM_NO_ACCESS)
		return 0;
	struct line *l = find_line((uintptr_t)where / 64);
	bool missing = is_missing(l, thread, access != HD__SIM_LOAD);

	if (access == HD__SIM_LOCKED)
		took += hd__sim_charge(HD__SIM_RMW, 0);
	if (missing && access != HD__SIM_STORE) {
		hd_time queued = l->until > now ? l->until - now : 0;
		s.tally.took[HD__SIM_LINE] += queued;
		took += queued + hd__sim_charge(HD__SIM_LINE, 0);
		l->until = now + took;
	}
	return took;
}

void hd__sim_costs_begin(const struct hd__sim_costs *costs)
{
	s.costs = *costs;
}

void hd__sim_read_tally(struct hd__sim_tally *tally)
{
	*tally = s.tally;
}
