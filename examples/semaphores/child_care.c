/* child_care.c - one adult for every three children.
 *
 * In a nursery there must at all times be an adult for every three children. A child waits at the door until there are
 * adults enough; an adult who wants to go home waits until the others are enough for the children who are there. An adult
 * who waits to go still counts, and still takes children in. Whoever comes or goes looks whether somebody who waits can go
 * on now. The head of the nursery stays until all children have gone home, else the last of them might find nobody. */
#include "crowd.h"

enum { CHILDREN = 9, DAYS = 2, ADULTS = 4, SHIFTS = 2, RATIO = 3 };

static struct hd_semaphore mutex = HD_SEMAPHORE(1); /* guards what follows */
static int children, adults, children_waiting, adults_waiting, days, shifts;
static struct hd_semaphore come_in, go_home, closing_time;

static struct hd_semaphore roll = HD_SEMAPHORE(1); /* guards the next line, for the inspector only */
static int children_seen, adults_seen;

/* Counts those who are in the rooms. An adult is there before it is counted on, and after; a child is not. */
static void call_the_roll(int more_children, int more_adults)
{
	CHECK(hd_semaphore_wait(&roll, HD_FOREVER) == 0);
	children_seen += more_children;
	adults_seen += more_adults;
	CHECK(children_seen <= adults_seen * RATIO);
	hd_semaphore_signal(&roll);
}

/* Somebody came, went or waits: whoever can go on now does. */
static void look_round(void)
{
	for (; children_waiting > 0 && children < adults * RATIO; children_waiting--) {
		children++;
		hd_semaphore_signal(&come_in);
	}
	for (; adults_waiting > 0 && children <= (adults - 1) * RATIO; adults_waiting--) {
		adults--;
		hd_semaphore_signal(&go_home);
	}
	CHECK(children <= adults * RATIO);
}

/* Adds n to what mutex guards; somebody may go on because of it. */
static void change(int *what, int n)
{
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	*what += n;
	look_round();
	hd_semaphore_signal(&mutex);
}

static void *child(void *arg)
{
	for (int i = 0; i < DAYS; i++) {
		change(&children_waiting, 1);
		CHECK(hd_semaphore_wait(&come_in, HD_FOREVER) == 0);
		call_the_roll(1, 0);
		hd_yield();
		call_the_roll(-1, 0);
		change(&children, -1);
		change(&days, 1);
	}
	return arg;
}

/* Until there is a signal, or NULL for as long as it likes. */
static void work(struct hd_semaphore *until)
{
	call_the_roll(0, 1);
	change(&adults, 1);
	if (until != NULL)
		CHECK(hd_semaphore_wait(until, HD_FOREVER) == 0);
	change(&adults_waiting, 1);
	CHECK(hd_semaphore_wait(&go_home, HD_FOREVER) == 0);
	call_the_roll(0, -1);
	change(&shifts, 1);
}

static void *adult(void *arg)
{
	for (int i = 0; i < SHIFTS; i++)
		work(NULL);
	return arg;
}

static void *head(void *arg)
{
	work(&closing_time);
	return arg;
}

static void *first(void *arg)
{
	struct crowd family = { 0 }, staff = { 0 };

	crowd_start(&staff, 1, "head", head);
	crowd_start(&staff, ADULTS, "adult", adult);
	crowd_start(&family, CHILDREN, "child", child);
	crowd_join(&family);
	hd_semaphore_signal(&closing_time);
	crowd_join(&staff);
	CHECK(children + adults + children_waiting + adults_waiting == 0);
	CHECK(children_seen + adults_seen == 0);
	CHECK(days == CHILDREN * DAYS);
	CHECK(shifts == ADULTS * SHIFTS + 1);
	printf("%d days of children, %d shifts of adults\n", days, shifts);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
