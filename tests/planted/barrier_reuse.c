/* barrier_reuse.c - a barrier that is used again and again: the last who arrives gives everybody a ticket for the turnstile.
 *
 * Wrong:      there is one turnstile. Who is quick comes round again and takes a ticket that was meant for somebody slow.
 * Schedule:   A arrives, and before it waits, B arrives, takes its ticket, arrives for round 2 and takes A's.
 * Shows:      assert: B is through before A has arrived for round 2 (A then waits for good).
 * Fix:        two turnstiles, used in turn. */
#include "planted.h"

enum { PARTIES = 2, ROUNDS = 3 };

#ifdef FIXED
enum { TURNSTILES = 2 };
#else
enum { TURNSTILES = 1 };
#endif

static struct hd_semaphore mutex = LOCK, turnstiles[TURNSTILES];
static int waiting; /* guarded by mutex */
static _Atomic int arrived[ROUNDS];

static void barrier(int round)
{
	struct hd_semaphore *turnstile = &turnstiles[round % TURNSTILES];

	lock(&mutex);
	if (++waiting == PARTIES)
		for (; waiting > 0; waiting--)
			hd_semaphore_signal(turnstile);
	unlock(&mutex);
	MUST(hd_semaphore_wait(turnstile, HD_FOREVER) == 0);
}

static void *go_round(void *arg)
{
	for (int round = 0; round < ROUNDS; round++) {
		arrived[round]++;
		barrier(round);
		MUST(arrived[round] == PARTIES);
	}
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(go_round, go_round);
}
