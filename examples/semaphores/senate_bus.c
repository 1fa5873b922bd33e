/* senate_bus.c - riders wait for a bus.
 *
 * When a bus comes, those who are at the stop get in, at most five of them, and the bus goes as soon as they are in; when
 * nobody is there it goes at once. Who comes to the stop while a bus stands there has to wait for the next one. So the bus
 * keeps the stop's lock while it stands. The first few buses come whenever they like; the last ones come when everybody has
 * been seen at the stop, so that nobody is left behind. */
#include "crowd.h"
#include "many.h"

enum { RIDERS = 17, SEATS = 5, EARLY_BUSES = 3 };

static struct hd_semaphore stop = HD_SEMAPHORE(1); /* guards what follows; a bus keeps it while it stands there */
static int waiting, buses, rode;
static bool boarding;
static struct hd_semaphore get_in, aboard, at_stop;

static struct hd_semaphore door = HD_SEMAPHORE(1); /* guards the next line */
static int passengers;

static void *rider(void *arg)
{
	CHECK(hd_semaphore_wait(&stop, HD_FOREVER) == 0);
	CHECK(!boarding);
	int bus = buses;
	waiting++;
	hd_semaphore_signal(&stop);
	hd_semaphore_signal(&at_stop);

	CHECK(hd_semaphore_wait(&get_in, HD_FOREVER) == 0);
	CHECK(boarding);
	CHECK(buses > bus); /* not one that stood there when I came */
	CHECK(hd_semaphore_wait(&door, HD_FOREVER) == 0);
	CHECK(++passengers <= SEATS);
	hd_semaphore_signal(&door);
	hd_semaphore_signal(&aboard);
	return arg;
}

static void bus_comes(void)
{
	CHECK(hd_semaphore_wait(&stop, HD_FOREVER) == 0);
	int n = waiting < SEATS ? waiting : SEATS;
	boarding = true;
	buses++;
	signal_many(&get_in, n);
	wait_many(&aboard, n);
	CHECK(passengers == n);
	waiting -= n;
	rode += n;
	passengers = 0;
	boarding = false;
	hd_semaphore_signal(&stop);
}

static void *drive(void *arg)
{
	for (int i = 0; i < EARLY_BUSES; i++) {
		bus_comes();
		hd_yield();
	}
	wait_many(&at_stop, RIDERS);
	while (rode < RIDERS)
		bus_comes();
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	crowd_start(&crowd, RIDERS, "rider", rider);
	crowd_start(&crowd, 1, "bus", drive);
	crowd_join(&crowd);
	CHECK(rode == RIDERS);
	CHECK(waiting == 0);
	CHECK(buses <= EARLY_BUSES + (RIDERS + SEATS - 1) / SEATS);
	printf("%d riders were taken, at most %d at a time\n", rode, SEATS);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
