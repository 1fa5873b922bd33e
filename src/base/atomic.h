/* base/atomic.h - atomic operations, their order in their name.
 *
 * Every access to memory that two kernel threads share without a lock goes through one of these, so that the order is visible
 * where it matters and a simulator can put a scheduling point into each. They work on plain integers and pointers, because
 * structs that users embed must also compile as C++. */
#ifndef BASE_ATOMIC_H
#define BASE_ATOMIC_H

#include "base/point.h"
#include "bump.h"

#define ld_rlx(p) (hd__point_load(p), __atomic_load_n((p), __ATOMIC_RELAXED))
#define ld_acq(p) (hd__point_load(p), __atomic_load_n((p), __ATOMIC_ACQUIRE))
#define ld_seq(p) (hd__point_load(p), __atomic_load_n((p), __ATOMIC_SEQ_CST))

#define st_rlx(p, v) (hd__point_store(p), __atomic_store_n((p), (v), __ATOMIC_RELAXED))
#define st_rel(p, v) (hd__point_store(p), __atomic_store_n((p), (v), __ATOMIC_RELEASE))
#define st_seq(p, v) (hd__point_locked(p), __atomic_store_n((p), (v), __ATOMIC_SEQ_CST))

/* Comes before the thread's next loads for the compiler, but perhaps not for other CPUs: a thread that must know calls hd__os_barrier. */
#define st_late(p, v) (hd__point_store(p), hd__store_late((p), (v)), __atomic_signal_fence(__ATOMIC_SEQ_CST))

#define xchg_acq(p, v) (hd__point_locked(p), __atomic_exchange_n((p), (v), __ATOMIC_ACQUIRE))
#define xchg_acq_rel(p, v) (hd__point_locked(p), __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL))
#define xchg_seq(p, v) (hd__point_locked(p), __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST))

#define add_rlx(p, v) (hd__point_locked(p), __atomic_fetch_add((p), (v), __ATOMIC_RELAXED))
#define add_acq_rel(p, v) (hd__point_locked(p), __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL))
#define add_seq(p, v) (hd__point_locked(p), __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST))
#define or_acq_rel(p, v) (hd__point_locked(p), __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL))
#define or_seq(p, v) (hd__point_locked(p), __atomic_fetch_or((p), (v), __ATOMIC_SEQ_CST))
#define and_acq_rel(p, v) (hd__point_locked(p), __atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL))
#define and_seq(p, v) (hd__point_locked(p), __atomic_fetch_and((p), (v), __ATOMIC_SEQ_CST))

/* `e` points to the expected value and receives the one found. On failure nothing is published. */
#define cas_acq(p, e, v)                                                                                                       \
	(hd__point_locked(p), __atomic_compare_exchange_n((p), (e), (v), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
#define cas_acq_rel(p, e, v)                                                                                                   \
	(hd__point_locked(p), __atomic_compare_exchange_n((p), (e), (v), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
#define cas_seq(p, e, v)                                                                                                       \
	(hd__point_locked(p), __atomic_compare_exchange_n((p), (e), (v), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))

/* A counter with one writer and any readers: a plain increment that other threads may look at. */
#define bump(p, n)                                                                                                             \
	(hd__point_load(p), hd__point_store(p),                                                                                \
	 sizeof *(p) == sizeof(uint64_t)                                                                                       \
		 ? hd__arch_bump((uint64_t *)(void *)(p), (int64_t)(n))                                                        \
		 : __atomic_store_n((p), __atomic_load_n((p), __ATOMIC_RELAXED) + (n), __ATOMIC_RELAXED))

/* As bump by one; what the writer has done before is published. */
#define bump_rel(p) (hd__point_load(p), hd__point_store(p), hd__arch_bump_rel(p))

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#endif
