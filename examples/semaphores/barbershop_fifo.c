/* barbershop_fifo.c - a barbershop with a sofa, where everybody is served in order.
 *
 * Three barbers have a chair each. Customers who come in sit on a sofa, and when that is full they stand; who finds the
 * whole shop full goes away. The chairs are for those who have been on the sofa longest, the sofa for those who have stood
 * longest, so that hair is cut in the order of arrival. Afterwards one pays. There is one till, so that only one barber at a
 * time can take money, and no customer leaves without a receipt. */
#include <stdatomic.h>
#include "crowd.h"
#include "many.h"

enum { CUSTOMERS = 14, BARBERS = 3, SOFA = 3, SHOP = 8, PRICE = 20 };

static struct {
	struct hd_semaphore chair, seated, cut, payment, receipt;
	int arrival; /* guarded by mutex */
	bool paid;
} of[CUSTOMERS];

static struct hd_semaphore mutex = HD_SEMAPHORE(1); /* guards what follows */
static struct line {
	int who[CUSTOMERS], head, tail;
} sofa, standing;
static int inside, entered, called, turned_away;

static struct hd_semaphore on_sofa;		   /* one signal for each of them */
static struct hd_semaphore till = HD_SEMAPHORE(1); /* guards the next line */
static int money, at_till;
static _Atomic int in_chairs;
static bool closed; /* set when there are no customers left */

static void sit_down(int who)
{
	CHECK(sofa.tail - sofa.head < SOFA);
	sofa.who[sofa.tail++] = who;
	hd_semaphore_signal(&on_sofa);
}

/* False if the shop is full. */
static bool come_in(int me)
{
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	bool room = inside < SHOP;
	hd_checkpoint();
	if (!room) {
		turned_away++;
	} else {
		CHECK(++inside <= SHOP);
		of[me].arrival = entered++;
		if (sofa.tail - sofa.head < SOFA)
			sit_down(me);
		else
			standing.who[standing.tail++] = me;
	}
	hd_semaphore_signal(&mutex);
	return room;
}

static void *customer(void *arg)
{
	int me = number_of(arg);

	if (!come_in(me))
		return arg;
	CHECK(hd_semaphore_wait(&of[me].chair, HD_FOREVER) == 0);
	CHECK(++in_chairs <= BARBERS);
	hd_semaphore_signal(&of[me].seated);
	CHECK(hd_semaphore_wait(&of[me].cut, HD_FOREVER) == 0);
	in_chairs--;
	of[me].paid = true;
	hd_semaphore_signal(&of[me].payment);
	CHECK(hd_semaphore_wait(&of[me].receipt, HD_FOREVER) == 0);

	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	inside--;
	hd_semaphore_signal(&mutex);
	return arg;
}

static int next_customer(void)
{
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	int who = sofa.who[sofa.head++];
	CHECK(of[who].arrival == called++);
	if (standing.head < standing.tail)
		sit_down(standing.who[standing.head++]);
	hd_semaphore_signal(&mutex);
	return who;
}

static void *barber(void *arg)
{
	for (;;) {
		CHECK(hd_semaphore_wait(&on_sofa, HD_FOREVER) == 0);
		if (closed)
			return arg;
		int who = next_customer();
		hd_semaphore_signal(&of[who].chair);
		CHECK(hd_semaphore_wait(&of[who].seated, HD_FOREVER) == 0);
		CHECK(in_chairs > 0);
		hd_semaphore_signal(&of[who].cut);
		CHECK(hd_semaphore_wait(&of[who].payment, HD_FOREVER) == 0);

		CHECK(hd_semaphore_wait(&till, HD_FOREVER) == 0);
		CHECK(++at_till == 1);
		CHECK(of[who].paid);
		hd_yield();
		CHECK(--at_till == 0);
		money += PRICE;
		hd_semaphore_signal(&till);
		hd_semaphore_signal(&of[who].receipt);
	}
}

static void *first(void *arg)
{
	struct crowd shop = { 0 }, crowd = { 0 };

	crowd_start(&shop, BARBERS, "barber", barber);
	crowd_start(&crowd, CUSTOMERS, "customer", customer);
	crowd_join(&crowd);
	closed = true;
	signal_many(&on_sofa, BARBERS);
	crowd_join(&shop);
	CHECK(inside == 0);
	CHECK(called == entered);
	CHECK(entered + turned_away == CUSTOMERS);
	CHECK(money == called * PRICE);
	printf("all %d customers were served in order and paid, or found the shop full\n", CUSTOMERS);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
