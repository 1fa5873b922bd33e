/* obs/trace.c - a ring of events. */
#include "obs/trace.h"

#include "base/atomic.h"
#include "os/lock.h"

void hd__trace_record(struct hd__trace *trace, struct hd__event event)
{
	hd__lock(&trace->lock);
	trace->events[trace->count & (trace->size - 1)] = event;
	st_rel(&trace->count, trace->count + 1); /* a reader that sees the count sees the event */
	hd__unlock(&trace->lock);
}
