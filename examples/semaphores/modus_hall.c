/* modus_hall.c - a path in the snow, where the majority rules.
 *
 * Between two houses there is a path one person wide. Heathens and prudes use it, and will not make way for each other. So
 * one kind has the path, and the others wait beside it. As soon as more wait than are on the path, the path is theirs:
 * nobody else of the first kind may step on it, and when the last one has left it, all who wait go. While they are fewer
 * they wait; but those on the path leave it one by one, and are outnumbered or gone in the end. */
#include <stdatomic.h>
#include "crowd.h"

enum { HEATHEN, PRUDE, KINDS };
enum { EACH = 7, WALKS = 2 };

static struct hd_semaphore mutex = HD_SEMAPHORE(1); /* guards what follows */
static int on_path[KINDS], waiting[KINDS], walks;
static bool outvoted[KINDS]; /* more of the others have waited since this kind has the path */

static struct hd_semaphore go[KINDS];
static _Atomic int walking[KINDS];

/* Once it is false for a kind that is on the path, it stays false until they all have left it: fewer walk, more wait. */
static bool may_go(int kind)
{
	return on_path[!kind] == 0 && waiting[!kind] <= on_path[kind];
}

static void take_a_vote(int kind)
{
	if (on_path[kind] > 0 && waiting[!kind] > on_path[kind])
		outvoted[kind] = true;
}

static void step_on(int kind)
{
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	bool at_once = may_go(kind);
	if (at_once) {
		CHECK(!outvoted[kind]);
		on_path[kind]++;
	} else {
		waiting[kind]++;
	}
	take_a_vote(!kind);
	hd_semaphore_signal(&mutex);
	if (!at_once)
		CHECK(hd_semaphore_wait(&go[kind], HD_FOREVER) == 0);
}

static void step_off(int kind)
{
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	CHECK(on_path[!kind] == 0);
	walks++;
	--on_path[kind];
	take_a_vote(kind);
	if (on_path[kind] == 0) {
		outvoted[kind] = false;
		for (; waiting[!kind] > 0; waiting[!kind]--) {
			on_path[!kind]++;
			hd_semaphore_signal(&go[!kind]);
		}
		take_a_vote(!kind);
		CHECK(on_path[!kind] > 0 || waiting[kind] == 0); /* nobody waits beside a free path */
	}
	hd_semaphore_signal(&mutex);
}

static void walk(int kind)
{
	step_on(kind);
	walking[kind]++;
	CHECK(walking[!kind] == 0);
	hd_yield();
	CHECK(walking[!kind] == 0);
	walking[kind]--;
	step_off(kind);
}

static void *heathen(void *arg)
{
	for (int i = 0; i < WALKS; i++)
		walk(HEATHEN);
	return arg;
}

static void *prude(void *arg)
{
	for (int i = 0; i < WALKS; i++)
		walk(PRUDE);
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	crowd_start(&crowd, EACH, "heathen", heathen);
	crowd_start(&crowd, EACH, "prude", prude);
	crowd_join(&crowd);
	CHECK(walks == EACH * WALKS * KINDS);
	CHECK(waiting[HEATHEN] + waiting[PRUDE] == 0);
	printf("%d walks, and nobody met in the snow\n", walks);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
