/* philosophers.c - three philosophers, three forks.
 *
 * Wrong:      everybody takes the left fork first.
 * Schedule:   everybody has a left fork and waits for the right one.
 * Shows:      deadlock.
 * Fix:        one of them begins with the right one. */
#include "planted.h"

enum { SEATS = 3 };

static struct hd_semaphore forks[SEATS] = { LOCK, LOCK, LOCK };
static _Atomic int meals;

static void *dine(void *arg)
{
	int left = number_of(arg), right = (left + 1) % SEATS;

#ifdef FIXED
	if (left == SEATS - 1) {
		left = right;
		right = SEATS - 1;
	}
#endif
	lock(&forks[left]);
	lock(&forks[right]);
	meals++;
	unlock(&forks[right]);
	unlock(&forks[left]);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(dine, dine, dine);
	MUST(meals == SEATS);
}
