/* races/races.h - two events compete for one waiter, on every primitive. */
#ifndef RACES_H
#define RACES_H

#include <stdbool.h>
#include <stddef.h>

enum event { GRANT, TIMEOUT, CANCEL, SUSPEND, TERMINATE, CLOSE, EVENTS };
extern const char *const event_names[EVENTS];

extern const size_t primitive_count;
const char *primitive_name(size_t i);

/* Whether that can happen to one that waits for it. */
bool can_happen(size_t primitive, enum event event);

/* One race, as the first process of a runtime: a process waits for the primitive, and both events happen; `delay` is how long it takes
 * till the deadline, in us. Aborts with a message if anything was lost or doubled. Returns the event that came first: the one that ended
 * the wait, or SUSPEND if the waiter was stopped while it still waited; EVENTS when neither did, and what it waited for came at the end. */
enum event race(size_t primitive, enum event a, enum event b, int delay);

#endif
