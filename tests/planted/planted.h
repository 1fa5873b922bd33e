/* planted.h - what the planted bugs share: a check, a lock, a condition, ways to start processes, and main.
 *
 * Every program is compiled twice: as it is, and with FIXED defined. What no lock guards is _Atomic, with C's default order:
 * the wrong programs are wrong by their schedule, not by a data race (but for lists under the wrong lock). Where it takes a
 * switch between two accesses to memory, hd_checkpoint() stands for the instant between them. All state is static and begins
 * as the loader left it: each run wants an OS process of its own. */
#ifndef PLANTED_H
#define PLANTED_H

#include <errno.h>
#include <heddle.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* Aborts, and says where and why, unless cond holds. */
#define MUST(cond)                                                                                                             \
	do {                                                                                                                   \
		if (!(cond))                                                                                                   \
			planted_failed(__FILE__, __LINE__, #cond);                                                             \
	} while (0)

static inline _Noreturn void planted_failed(const char *file, int line, const char *cond)
{
	fprintf(stderr, "%s:%d: this must hold: %s\n", file, line, cond);
	abort();
}

/* Runs a first process; what main returns. */
static inline int planted_run(hd_entry first)
{
	return hd_run(NULL, first, NULL) == 0 ? 0 : 1;
}

/* PLANTED_MAIN { ... }: main runs the body as the first process. */
#define PLANTED_MAIN                                                                                                           \
	static void planted_body(void);                                                                                        \
	static void *planted_first(void *arg)                                                                                  \
	{                                                                                                                      \
		planted_body();                                                                                                \
		return arg;                                                                                                    \
	}                                                                                                                      \
	int main(void)                                                                                                         \
	{                                                                                                                      \
		return planted_run(planted_first);                                                                             \
	}                                                                                                                      \
	static void planted_body(void)

/* Processes. */

static inline hd_pid start_at(int priority, hd_entry entry, void *arg)
{
	hd_pid pid = hd_spawn_at(priority, entry, arg);

	MUST(pid > 0);
	return pid;
}

static inline hd_pid start(hd_entry entry, void *arg)
{
	return start_at(HD_PRIORITY_USER, entry, arg);
}

static inline void finish(hd_pid pid)
{
	MUST(hd_join(pid, NULL, HD_FOREVER) == 0);
}

/* TOGETHER(a, b, ...) starts a(0), b(1), ... and waits until all have ended. */
#define TOGETHER(...) planted_together((const hd_entry[]){ __VA_ARGS__, NULL })
#define PLANTED_CROWD 5

static inline void planted_together(const hd_entry *entries)
{
	hd_pid pids[PLANTED_CROWD];
	int n = 0;

	for (; entries[n] != NULL; n++) {
		MUST(n < PLANTED_CROWD);
		pids[n] = start(entries[n], (void *)(intptr_t)n);
	}
	for (int i = 0; i < n; i++)
		finish(pids[i]);
}

/* Which of TOGETHER's processes this is. */
static inline int number_of(void *arg)
{
	return (int)(intptr_t)arg;
}

/* A lock is a semaphore with one signal. */
#define LOCK HD_SEMAPHORE(1)

static inline void lock(struct hd_semaphore *s)
{
	MUST(hd_semaphore_wait(s, HD_FOREVER) == 0);
}

static inline void unlock(struct hd_semaphore *s)
{
	MUST(hd_semaphore_signal(s) == 0);
}

/* Where one process waits to be woken; queues of them, first come first served. The caller guards the queue. */
struct seat {
	struct hd_semaphore wake;
	struct seat *next;
};

static inline void seat_push(struct seat **queue, struct seat *s)
{
	while (*queue != NULL)
		queue = &(*queue)->next;
	s->next = NULL;
	*queue = s;
}

static inline struct seat *seat_take(struct seat **queue)
{
	struct seat *s = *queue;

	if (s != NULL)
		*queue = s->next;
	return s;
}

/* False if it was not there. */
static inline bool seat_remove(struct seat **queue, struct seat *s)
{
	while (*queue != NULL && *queue != s)
		queue = &(*queue)->next;
	return seat_take(queue) != NULL;
}

/* A condition, guarded by the mutex that its users hold. It is right: who waits is in the queue before the mutex is free, and a
 * wake-up that comes before the sleep is kept. As with all of its kind, others may come in before who was woken does. */
struct condition {
	struct seat *waiting;
};

static inline void condition_wait(struct condition *c, struct hd_semaphore *mutex)
{
	struct seat me = { .next = NULL };

	seat_push(&c->waiting, &me);
	unlock(mutex);
	MUST(hd_semaphore_wait(&me.wake, HD_FOREVER) == 0);
	lock(mutex);
}

static inline void condition_notify(struct condition *c)
{
	struct seat *s = seat_take(&c->waiting);

	if (s != NULL)
		hd_semaphore_signal(&s->wake);
}

static inline void condition_notify_all(struct condition *c)
{
	while (c->waiting != NULL)
		condition_notify(c);
}

#endif
