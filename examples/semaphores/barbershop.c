/* barbershop.c - the sleeping barber.
 *
 * A barber cuts the hair of one customer at a time; there are some chairs for others to wait in. The barber sleeps when
 * nobody waits. A customer who finds no chair free goes away again. While the barber cuts, exactly one customer is in the
 * barber's chair, and it stays there until the barber is done. When the last customer has gone, the shop is closed. */
#include "crowd.h"

enum { CUSTOMERS = 12, CHAIRS = 4 };

static struct hd_semaphore mutex = HD_SEMAPHORE(1); /* guards the next line */
static int waiting, turned_away;
static struct hd_semaphore customers, come_here, seated, haircut, gone;
static int in_chair, served, cuts; /* guarded by turn: the barber's, until come_here; the customer's, until seated; and so on */
static bool closed;		   /* set when there are no customers left */

/* False if there is no chair. */
static bool find_chair(void)
{
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	int taken = waiting;
	hd_checkpoint(); /* without the lock, two would find the last chair */
	if (taken == CHAIRS)
		turned_away++;
	else
		waiting = taken + 1;
	CHECK(waiting <= CHAIRS);
	hd_semaphore_signal(&mutex);
	return taken < CHAIRS;
}

static void *customer(void *arg)
{
	if (!find_chair())
		return arg;
	hd_semaphore_signal(&customers);

	CHECK(hd_semaphore_wait(&come_here, HD_FOREVER) == 0);
	CHECK(++in_chair == 1);
	hd_semaphore_signal(&seated);
	CHECK(hd_semaphore_wait(&haircut, HD_FOREVER) == 0);
	CHECK(--in_chair == 0);
	served++;
	hd_semaphore_signal(&gone);
	return arg;
}

static void *barber(void *arg)
{
	for (;;) {
		CHECK(hd_semaphore_wait(&customers, HD_FOREVER) == 0);
		if (closed)
			return arg;
		CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
		waiting--;
		hd_semaphore_signal(&mutex);

		hd_semaphore_signal(&come_here);
		CHECK(hd_semaphore_wait(&seated, HD_FOREVER) == 0);
		CHECK(in_chair == 1);
		hd_yield(); /* it cuts */
		CHECK(in_chair == 1);
		cuts++;
		hd_semaphore_signal(&haircut);
		CHECK(hd_semaphore_wait(&gone, HD_FOREVER) == 0);
		CHECK(served == cuts);
	}
}

static void *first(void *arg)
{
	struct crowd shop = { 0 }, crowd = { 0 };

	crowd_start(&shop, 1, "barber", barber);
	crowd_start(&crowd, CUSTOMERS, "customer", customer);
	crowd_join(&crowd);
	closed = true;
	hd_semaphore_signal(&customers);
	crowd_join(&shop);
	CHECK(waiting == 0);
	CHECK(served + turned_away == CUSTOMERS);
	CHECK(served >= CHAIRS);
	printf("all %d customers were served or found no chair\n", served + turned_away);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
