/* heddle/when.h - behaviours: functions that run when all that they use is theirs.
 *
 * A cown (a concurrent owner) owns some data of the program. hd_when makes a behaviour: a function that will run once it has every one of the
 * cowns that it names, alone or, for those that it only reads, together with other readers. The caller does not wait. Behaviours that have a
 * cown in common run in the order of their hd_when calls; others run at the same time, on all workers. No set of behaviours can deadlock, and
 * no data race is possible on what only behaviours touch. A behaviour is a process: hd_self, cancellation and the tools know it. */
#ifndef HEDDLE_WHEN_H
#define HEDDLE_WHEN_H

#include <heddle/base.h>
#include <heddle/promise.h>

HD_BEGIN

typedef struct hd_cown hd_cown;
typedef struct hd_weak_cown hd_weak_cown;
typedef struct hd_noticeboard hd_noticeboard;

/* What runs: its argument, and the data of its cowns in the order in which hd_when named them. */
typedef void (*hd_behaviour)(void *arg, void *const data[]);

/* ---- cowns ---- */

/* A cown that owns `data`. `drop` (or NULL) is called with the data when the last reference is released and no behaviour on the cown is left; in
 * the process or thread that comes last, where it may call heddle but not wait. NULL: no memory. Any thread, with or without a runtime. */
HD_API HD_MUST_USE hd_cown *hd_cown_new(void *data, void (*drop)(void *data));

/* One reference more; one less. A behaviour keeps its cowns alive until it is over, so a caller may release a cown right after hd_when. A behaviour
 * may retain a cown that it has, although it has no reference to it. hd_cown_release(NULL) does nothing. Any thread, with or without a runtime. */
HD_API hd_cown *hd_cown_retain(hd_cown *cown);
HD_API void hd_cown_release(hd_cown *cown);

/* A weak reference does not keep the data alive. hd_cown_weaken makes one (and leaves the caller's reference as it is); hd_weak_cown_promote
 * answers a new reference to the cown, or NULL when its last one has been released. Any thread, with or without a runtime. */
HD_API HD_MUST_USE hd_weak_cown *hd_cown_weaken(hd_cown *cown);
HD_API HD_MUST_USE hd_cown *hd_weak_cown_promote(hd_weak_cown *weak);
HD_API void hd_weak_cown_release(hd_weak_cown *weak);

/* Whether a behaviour that wrote this cown did not return: it failed (hd_fail), was cancelled by unwinding, or was killed; what it was changing may be half
 * done. Ask in a behaviour that has the cown; elsewhere the answer is of some moment. hd_cown_clear says that the data is right again. Any thread. */
HD_API bool hd_cown_failed(const hd_cown *cown);
HD_API void hd_cown_clear(hd_cown *cown);

/* ---- behaviours ---- */

/* In the list of cowns of a behaviour: it only reads what this one owns. */
static inline hd_cown *hd_reads(hd_cown *cown)
{
	return (hd_cown *)((uintptr_t)cown | 1);
}
#define HD_READ(cown) hd_reads(cown)

/* A behaviour to be. Zeroed fields are defaults. */
struct hd_when {
	hd_behaviour fn;
	void *arg;
	size_t size; /* so many bytes at `arg` are copied, and fn gets the copy; 0: fn gets `arg` itself */
	void (*drop)(
		void *arg); /* called with what fn gets before the behaviour gives its cowns up, also if fn never ran; or NULL */
	hd_cown *const *uses; /* its cowns, some of them perhaps HD_READ(cown) */
	size_t n;	      /* how many */
	int priority;	      /* 0 is the creator's */
	unsigned flags;	      /* HD_WHEN_MAY_BLOCK or HD_WHEN_LOGGED; or 0 */
};

/* A behaviour that waits, for a message, a lock or time, keeps its cowns meanwhile: what needs them waits too, and no guarantee against deadlocks covers
 * what it waits for. So heddle reports such a wait to stderr, once for each function and kind of wait; under heddle explore it ends the program. A
 * behaviour with HD_WHEN_MAY_BLOCK may wait.
 *
 * HD_WHEN_LOGGED is for programs whose results must be the same each time, on any number of workers: one process, the dispatcher, makes a behaviour for each entry of a
 * log, in the order of the log. What these behaviours do to their cowns then depends on the log alone, so heddle keeps chance out of them: inside
 * one, hd_when and its like, hd_spawn and its like, and every call that could wait answer -ENOTSUP, hd_now too, and hd_after and hd_noticeboard_read answer 0. Process ids and the numbers in
 * hd_stats are chance as well: do not store them. */
enum { HD_WHEN_MAY_BLOCK = 1, HD_WHEN_LOGGED = 2 };

/* Makes behaviours, in one indivisible step: no behaviour of another call comes between them, on any of their cowns. All or none. A cown may be
 * named more than once: written, if it is written once. Returns
 *
 *   0            they will run
 *   -EINVAL      fn or a cown is NULL, a priority is out of range, or the flags are wrong
 *   -ENOMEM      no memory
 *   -EAGAIN      2^24 processes exist, behaviours that have not run yet included
 *   -ESHUTDOWN   the runtime is ending
 *   -ENXIO       no runtime runs
 *   -ENOTSUP     the caller is a behaviour with HD_WHEN_LOGGED; or it is a plain thread, and wants to make one
 *   -EBUSY       the caller wants to make a behaviour with HD_WHEN_LOGGED, and another process that has made some is alive
 *
 * A behaviour that is still to run when the runtime ends is dropped. Any thread, runtime running. */
HD_API HD_MUST_USE int hd_when_batch(const struct hd_when *whens, size_t n);

/* Makes a behaviour, on n cowns or none. As hd_when_batch. */
HD_API HD_MUST_USE int hd_when_n(hd_behaviour fn, void *arg, hd_cown *const *uses, size_t n);

/* As hd_when_n, with `size` bytes at `args` copied for it; `drop` is as in struct hd_when. */
HD_API HD_MUST_USE int hd_when_args_n(hd_behaviour fn, const void *args, size_t size, void (*drop)(void *args),
				      hd_cown *const *uses, size_t n);

/* A promise for what a behaviour's function returns. If the behaviour ends otherwise the promise fails, as that of hd_promise_spawn does. NULL: as
 * hd_when_n would fail, or no memory for the promise. Any thread, runtime running. */
typedef void *(*hd_when_maker)(void *arg, void *const data[]);
HD_API HD_MUST_USE hd_promise *hd_when_promise_n(hd_when_maker fn, void *arg, hd_cown *const *uses, size_t n);

/* As hd_when_n, but the behaviour comes to its cowns when the promise is settled, kept or failed: it has none of them before, and keeps no other from them. A
 * process waits for the promise meanwhile. Returns what hd_when_n does. Any thread, runtime running. */
HD_API HD_MUST_USE int hd_when_after_n(hd_promise *promise, hd_behaviour fn, void *arg, hd_cown *const *uses, size_t n);

/* Gives a cown up before the behaviour is over, for a long tail that does not need it: the next behaviour has it at once, and the caller must not touch its
 * data any more. Returns 0; -EPERM when the caller is no behaviour that has it. -ENOTSUP on a plain thread. */
HD_API int hd_cown_release_early(hd_cown *cown);

/* Waits until no behaviour is left: at some moment after the call none was running, ready or waiting for its cowns, and what they had to drop was
 * dropped. Returns 0; -ETIMEDOUT; -ECANCELED;
 * -EDEADLK inside a behaviour; -ENXIO. Any thread. Cancellation point. */
HD_API HD_MUST_USE int hd_quiesce(hd_time until);

/* ---- noticeboards ---- */

/* A noticeboard shows a value of `size` bytes that behaviours, processes and plain threads read without a cown and without waiting for each other: first the
 * one at `value`. It is copied byte by byte: what pointers in it lead to is the program's to keep alive. NULL: no memory; `value` is NULL or `size` 0. Any
 * thread, with or without a runtime. */
HD_API HD_MUST_USE hd_noticeboard *hd_noticeboard_new(const void *value, size_t size);

/* Frees the board. No thread may use it any more. hd_noticeboard_drop(NULL) does nothing. Any thread, with or without a runtime. */
HD_API void hd_noticeboard_drop(hd_noticeboard *board);

/* Shows the `size` bytes at `value` from now on: a call of hd_noticeboard_read that begins after this one has returned copies this value or a newer one. Values
 * that are published at the same time are put into some order. What the caller did before happens before what a reader of this value or a newer one does next.
 * No safe point; it does not fail. Any thread, with or without a runtime; not in a signal handler. */
HD_API void hd_noticeboard_publish(hd_noticeboard *board, const void *value);

/* Copies the newest value to the `size` bytes at `value`, all of it from one publish. Returns its number: 1 for the first value, one more for each that was
 * published. The numbers that a thread or a process gets never go down. Writes nothing that others read, unless publishers spoil a hundred tries
 * in a row: then it takes the lock of the publishers for the time of a copy. 0 in a behaviour with HD_WHEN_LOGGED, and nothing is copied; else it does not fail. No
 * safe point. Any thread, with or without a runtime; not in a
 * signal handler. */
HD_API uint64_t hd_noticeboard_read(const hd_noticeboard *board, void *value);

HD_END

/* hd_when(fn, arg, a, HD_READ(b), ...): a behaviour on one cown or more. hd_when_args(fn, &args, sizeof args, drop, a, ...): its argument is
 * copied. hd_when_promise(fn, arg, a, ...) and hd_when_after(promise, fn, arg, a, ...) likewise. */
#ifdef __cplusplus
template <typename... Uses> inline int hd_when(hd_behaviour fn, void *arg, Uses... uses)
{
	hd_cown *const list[] = { uses... };
	return hd_when_n(fn, arg, list, sizeof...(uses));
}

template <typename... Uses>
inline int hd_when_args(hd_behaviour fn, const void *args, size_t size, void (*drop)(void *args), Uses... uses)
{
	hd_cown *const list[] = { uses... };
	return hd_when_args_n(fn, args, size, drop, list, sizeof...(uses));
}

template <typename... Uses> inline hd_promise *hd_when_promise(hd_when_maker fn, void *arg, Uses... uses)
{
	hd_cown *const list[] = { uses... };
	return hd_when_promise_n(fn, arg, list, sizeof...(uses));
}

template <typename... Uses> inline int hd_when_after(hd_promise *promise, hd_behaviour fn, void *arg, Uses... uses)
{
	hd_cown *const list[] = { uses... };
	return hd_when_after_n(promise, fn, arg, list, sizeof...(uses));
}
#else
#define HD__USES(...) (hd_cown *const[]){ __VA_ARGS__ }, sizeof((hd_cown *const[]){ __VA_ARGS__ }) / sizeof(hd_cown *)
#define hd_when(fn, arg, ...) hd_when_n(fn, arg, HD__USES(__VA_ARGS__))
#define hd_when_promise(fn, arg, ...) hd_when_promise_n(fn, arg, HD__USES(__VA_ARGS__))
#define hd_when_after(promise, fn, arg, ...) hd_when_after_n(promise, fn, arg, HD__USES(__VA_ARGS__))
#define hd_when_args(fn, args, size, drop, ...) hd_when_args_n(fn, args, size, drop, HD__USES(__VA_ARGS__))
#endif

#endif
