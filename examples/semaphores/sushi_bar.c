/* sushi_bar.c - a sushi bar with five seats.
 *
 * Who comes while there is a free seat sits down at once. But when all five seats are taken, those five are a party: who
 * comes now waits until all of them have left, even when a seat gets free before. The last of the party lets in those who
 * wait, up to five of them, and sees to it that they have their seats before anybody who has just come can take one. */
#include <stdatomic.h>
#include "crowd.h"

enum { CUSTOMERS = 13, VISITS = 2, SEATS = 5 };

static struct hd_semaphore mutex = HD_SEMAPHORE(1); /* guards what follows */
static int seated, waiting, visits;
static bool party;
static int sitting = 1; /* the first, the second...: a new one begins when the bar is empty */

static struct hd_semaphore seat;
static _Atomic int eating, eating_in[CUSTOMERS * VISITS + 2]; /* in all, and by sitting */

static void take_seat(void)
{
	CHECK(!party);
	CHECK(++seated <= SEATS);
	if (seated == SEATS)
		party = true;
}

static void arrive(void)
{
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	bool wait = party;
	if (wait)
		waiting++;
	else
		take_seat();
	hd_semaphore_signal(&mutex);
	if (wait)
		CHECK(hd_semaphore_wait(&seat, HD_FOREVER) == 0);
}

static void leave(void)
{
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	visits++;
	if (--seated == 0) {
		party = false;
		sitting++;
		for (; waiting > 0 && !party; waiting--) {
			take_seat();
			hd_semaphore_signal(&seat);
		}
	}
	CHECK(party || waiting == 0);
	hd_semaphore_signal(&mutex);
}

static void *customer(void *arg)
{
	for (int i = 0; i < VISITS; i++) {
		arrive();
		int mine = sitting; /* it ends only when I have left */
		CHECK(++eating <= SEATS);
		eating_in[mine]++;
		hd_yield();
		CHECK(eating_in[mine - 1] == 0);
		CHECK(eating_in[mine + 1] == 0);
		eating_in[mine]--;
		eating--;
		leave();
	}
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	crowd_start(&crowd, CUSTOMERS, "customer", customer);
	crowd_join(&crowd);
	CHECK(visits == CUSTOMERS * VISITS);
	CHECK(seated + waiting + eating == 0);
	printf("%d visits to %d seats\n", visits, SEATS);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
