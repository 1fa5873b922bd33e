/* obs/trace.c - rings of events.
 *
 * Owns:       the memory of the tapes.
 * Locking:    hd__trace.turn guards making and dropping; see obs/trace.h for the tapes. */
#include "obs/trace.h"

#include "base/atomic.h"
#include "os/memory.h"

bool hd__trace_make(struct hd__trace *trace, unsigned n, unsigned order)
{
	size_t size = n * (sizeof(struct hd__tape) + (sizeof(struct hd__event) << order));
	struct hd__tape *tapes = hd__os_reserve(size, 0);

	if (tapes == NULL)
		return false;
	struct hd__event *events = (struct hd__event *)(tapes + n);
	for (unsigned i = 0; i < n; i++)
		tapes[i] = (struct hd__tape){ .size = UINT64_C(1) << order, .events = events + ((size_t)i << order) };
	trace->size = size;
	trace->ntapes = n;
	st_rel(&trace->tapes, tapes); /* pairs with the worker's acquire, when it is told to record */
	return true;
}

void hd__trace_drop(struct hd__trace *trace)
{
	struct hd__tape *tapes = trace->tapes;

	st_rlx(&trace->tapes, NULL);
	st_rel(&trace->clock.begin_ns, 0);
	if (tapes != NULL)
		hd__os_unreserve(tapes, trace->size);
}
