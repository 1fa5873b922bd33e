/* base/point.h - where a simulator of the runtime itself may switch threads: before every atomic operation. */
#ifndef BASE_POINT_H
#define BASE_POINT_H

#include <stdbool.h>

extern bool hd__sim_threads; /* a run is on */
void hd__sim_point(void);

#define hd__point() (__builtin_expect(hd__sim_threads, 0) ? hd__sim_point() : (void)0)

#endif
