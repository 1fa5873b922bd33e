/* base/point.h - where a simulator of the runtime itself may switch threads: before every atomic operation. */
#ifndef BASE_POINT_H
#define BASE_POINT_H

#include <stdbool.h>

extern bool hd__sim_threads; /* a run is on */
void hd__sim_point(void);

#define hd__point() (__builtin_expect(hd__sim_threads, 0) ? hd__sim_point() : (void)0)

#define HD__TRIES 4

/* A store of a byte that other threads see after this thread's next load, or at a barrier. */
void hd__sim_store_late(unsigned char *where, unsigned char what);
#define hd__store_late(p, v) hd__sim_store_late((p), (v))

#endif
