/* philosophers.c - the dining philosophers.
 *
 * Philosophers sit round a table, with a fork between any two of them. To eat, one needs both forks beside its plate, so
 * neighbours cannot eat at the same time. If everybody comes and takes the left fork, everybody waits for the right one, for
 * ever. Here one chair too few is put out: among those who sit there is always one with nobody at the right, and it can eat.
 * */
#include <stdatomic.h>
#include "crowd.h"

enum { PHILOSOPHERS = 5, MEALS = 5 };

static struct hd_semaphore chairs = HD_SEMAPHORE(PHILOSOPHERS - 1);
static struct hd_semaphore forks[PHILOSOPHERS]; /* fork i is at the left of plate i */
static _Atomic int sitting;
static _Atomic bool eating[PHILOSOPHERS];
static _Atomic int meals[PHILOSOPHERS];

static void eat(int who)
{
	int left = (who + PHILOSOPHERS - 1) % PHILOSOPHERS, right = (who + 1) % PHILOSOPHERS;

	eating[who] = true;
	CHECK(!eating[left]);
	CHECK(!eating[right]);
	hd_yield();
	CHECK(!eating[left]);
	CHECK(!eating[right]);
	eating[who] = false;
	meals[who]++;
}

static void *philosopher(void *arg)
{
	int who = number_of(arg), next = (who + 1) % PHILOSOPHERS;

	for (int i = 0; i < MEALS; i++) {
		CHECK(hd_semaphore_wait(&chairs, HD_FOREVER) == 0);
		CHECK(++sitting < PHILOSOPHERS);
		CHECK(hd_semaphore_wait(&forks[who], HD_FOREVER) == 0);
		hd_yield(); /* the moment in which all could have one fork */
		CHECK(hd_semaphore_wait(&forks[next], HD_FOREVER) == 0);
		eat(who);
		hd_semaphore_signal(&forks[next]);
		hd_semaphore_signal(&forks[who]);
		sitting--;
		hd_semaphore_signal(&chairs);
	}
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	for (int i = 0; i < PHILOSOPHERS; i++)
		hd_semaphore_init(&forks[i], 1);
	crowd_start(&crowd, PHILOSOPHERS, "philosopher", philosopher);
	crowd_join(&crowd);
	for (int i = 0; i < PHILOSOPHERS; i++) {
		CHECK(meals[i] == MEALS);
		CHECK(hd_semaphore_try_wait(&forks[i]) == 0);
	}
	printf("%d philosophers have eaten %d times each\n", PHILOSOPHERS, MEALS);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
