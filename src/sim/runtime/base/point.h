/* base/point.h - where a simulator of the runtime itself may switch threads: before every atomic operation. */
#ifndef BASE_POINT_H
#define BASE_POINT_H

#include <stdbool.h>

enum hd__sim_access { HD__SIM_NO_ACCESS, HD__SIM_LOAD, HD__SIM_STORE, HD__SIM_LOCKED };

extern bool hd__sim_threads; /* a run is on */
extern int hd__sim_tries;
void hd__sim_point(enum hd__sim_access access, const void *where);
void hd__sim_pause(void);

#define hd__sim_point_if_on(access, p) (__builtin_expect(hd__sim_threads, 0) ? hd__sim_point((access), (p)) : (void)0)

#define hd__point() hd__sim_point_if_on(HD__SIM_NO_ACCESS, (const void *)0)
#define hd__point_load(p) hd__sim_point_if_on(HD__SIM_LOAD, (p))
#define hd__point_store(p) hd__sim_point_if_on(HD__SIM_STORE, (p))
#define hd__point_locked(p) hd__sim_point_if_on(HD__SIM_LOCKED, (p))

#define hd__pause_passes() (__builtin_expect(hd__sim_threads, 0) ? hd__sim_pause() : (void)0)

#define HD__TRIES hd__sim_tries

/* A store of a byte that other threads see after this thread's next load, or at a barrier. */
void hd__sim_store_late(unsigned char *where, unsigned char what);
#define hd__store_late(p, v) hd__sim_store_late((p), (v))

#endif
