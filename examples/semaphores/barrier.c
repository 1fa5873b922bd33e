/* barrier.c - a barrier that can be used again and again.
 *
 * Some processes work in phases. Nobody may begin a phase before everybody has finished the one before. One gate is not
 * enough: while the slow ones still walk through it, a fast one comes round and takes the place of a slow one. So there are
 * two gates. Everybody gathers at the first one; once through, everybody gathers at the second, and the last to get there
 * knows that nobody is at the first any more. */
#include <stdatomic.h>
#include "crowd.h"
#include "many.h"

enum { WORKERS = 10, PHASES = 3 };

static struct hd_semaphore mutex = HD_SEMAPHORE(1); /* guards here */
static int here;				    /* how many are between the gates, or about to be */
static struct hd_semaphore first_gate, second_gate;

static _Atomic int done[PHASES + 1]; /* by phase: how many have finished it */

static void gather(void)
{
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	if (++here == WORKERS)
		signal_many(&first_gate, WORKERS);
	hd_semaphore_signal(&mutex);
	CHECK(hd_semaphore_wait(&first_gate, HD_FOREVER) == 0);
}

static void part(void)
{
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	if (--here == 0)
		signal_many(&second_gate, WORKERS);
	hd_semaphore_signal(&mutex);
	CHECK(hd_semaphore_wait(&second_gate, HD_FOREVER) == 0);
}

static void *work(void *arg)
{
	for (int phase = 0; phase < PHASES; phase++) {
		hd_yield(); /* the work itself */
		done[phase]++;
		gather();
		CHECK(done[phase] == WORKERS);
		CHECK(done[phase + 1] == 0);
		part();
	}
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	crowd_start(&crowd, WORKERS, "worker", work);
	crowd_join(&crowd);
	CHECK(here == 0);
	for (int phase = 0; phase < PHASES; phase++)
		CHECK(done[phase] == WORKERS);
	printf("%d workers went through %d phases together\n", WORKERS, PHASES);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
