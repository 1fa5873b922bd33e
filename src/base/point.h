/* base/point.h - where a simulator of the runtime itself may switch threads: nowhere, in this build.
 *
 * sim/runtime/ has another one. The build chooses by the order in which it looks for headers. */
#ifndef BASE_POINT_H
#define BASE_POINT_H

#define hd__point() ((void)0)

/* hd__point, before an access to *p: a plain load, a plain store, a locked operation. */
#define hd__point_load(p) ((void)0)
#define hd__point_store(p) ((void)0)
#define hd__point_locked(p) ((void)0)

/* A thread that waits for another one pauses. */
#define hd__pause_passes() ((void)0)

#define HD__TRIES 100 /* of a thread that waits for another one, before it takes it that the other one has no CPU */

/* A store that other CPUs may see after this thread's next load. */
#define hd__store_late(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

#endif
