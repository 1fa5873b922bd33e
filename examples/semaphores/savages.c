/* savages.c - the dining savages.
 *
 * A tribe eats from a pot that holds a few servings. Who is hungry takes one; who finds the pot empty wakes the cook and
 * waits until it has been filled. The cook sleeps until it is woken, and fills the pot only when it is empty. Nobody may
 * take from an empty pot, and the cook must not be woken twice for the same emptiness. */
#include "crowd.h"

enum { SAVAGES = 12, HELPINGS = 2, POT = 4, FILLINGS = SAVAGES * HELPINGS / POT };

static struct hd_semaphore mutex = HD_SEMAPHORE(1); /* guards what follows; who waits for the cook keeps it */
static struct hd_semaphore empty, full;
static int servings, eaten, cooked;

static void *savage(void *arg)
{
	for (int i = 0; i < HELPINGS; i++) {
		CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
		if (servings == 0) {
			hd_semaphore_signal(&empty);
			CHECK(hd_semaphore_wait(&full, HD_FOREVER) == 0);
			CHECK(servings == POT);
		}
		int left = servings - 1;
		CHECK(left >= 0);
		hd_checkpoint(); /* without the lock, another would take the same serving */
		servings = left;
		eaten++;
		hd_semaphore_signal(&mutex);
		hd_yield(); /* it eats */
	}
	return arg;
}

static void *cook(void *arg)
{
	for (int i = 0; i < FILLINGS; i++) {
		CHECK(hd_semaphore_wait(&empty, HD_FOREVER) == 0);
		CHECK(servings == 0);
		hd_yield(); /* it cooks */
		servings += POT;
		CHECK(servings == POT);
		cooked += POT;
		hd_semaphore_signal(&full);
	}
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	crowd_start(&crowd, SAVAGES, "savage", savage);
	crowd_start(&crowd, 1, "cook", cook);
	crowd_join(&crowd);
	CHECK(eaten == SAVAGES * HELPINGS);
	CHECK(cooked == eaten);
	CHECK(servings == 0);
	printf("%d servings cooked and eaten, %d at a time\n", eaten, POT);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
