/* roller_coaster.c - a roller coaster with several cars.
 *
 * Cars run on one track and cannot pass each other. A car is loaded at the platform, by itself, and goes when it is full;
 * while it is on its way the next one is loaded. Back again, cars are unloaded in the order in which they went, each by
 * itself, and a car takes nobody on before all have left it. The turns to load and to unload go round from car to car. */
#include "crowd.h"
#include "many.h"

enum { CARS = 3, SEATS = 3, RIDES = 2, PASSENGERS = CARS * SEATS * RIDES };

static struct {
	struct hd_semaphore may_load, may_unload; /* its turn */
	struct hd_semaphore get_out, empty;
	int aboard; /* guarded by mutex */
	int ride;   /* the car's own */
} cars[CARS];

static struct hd_semaphore get_in, full;
static int at_platform;				    /* guarded by the turn to load, and by get_in */
static int loaded;				    /* guarded by the turn to load */
static int unloaded, carried;			    /* guarded by the turn to unload */
static struct hd_semaphore mutex = HD_SEMAPHORE(1); /* guards every car's aboard, and done */
static int done;

static void *passenger(void *arg)
{
	CHECK(hd_semaphore_wait(&get_in, HD_FOREVER) == 0);
	int car = at_platform;
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	CHECK(cars[car].aboard < SEATS);
	if (++cars[car].aboard == SEATS)
		hd_semaphore_signal(&full);
	hd_semaphore_signal(&mutex);

	CHECK(hd_semaphore_wait(&cars[car].get_out, HD_FOREVER) == 0);
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	done++;
	if (--cars[car].aboard == 0)
		hd_semaphore_signal(&cars[car].empty);
	hd_semaphore_signal(&mutex);
	return arg;
}

static void load(int me)
{
	CHECK(hd_semaphore_wait(&cars[me].may_load, HD_FOREVER) == 0);
	CHECK(cars[me].aboard == 0);
	at_platform = me;
	signal_many(&get_in, SEATS);
	CHECK(hd_semaphore_wait(&full, HD_FOREVER) == 0);
	CHECK(at_platform == me);
	CHECK(cars[me].aboard == SEATS);
	cars[me].ride = loaded++;
	hd_semaphore_signal(&cars[(me + 1) % CARS].may_load);
}

static void unload(int me)
{
	CHECK(hd_semaphore_wait(&cars[me].may_unload, HD_FOREVER) == 0);
	CHECK(cars[me].ride == unloaded++);
	CHECK(cars[me].aboard == SEATS);
	signal_many(&cars[me].get_out, SEATS);
	CHECK(hd_semaphore_wait(&cars[me].empty, HD_FOREVER) == 0);
	CHECK(cars[me].aboard == 0);
	carried += SEATS;
	hd_semaphore_signal(&cars[(me + 1) % CARS].may_unload);
}

static void *car(void *arg)
{
	int me = number_of(arg);

	for (int i = 0; i < RIDES; i++) {
		load(me);
		for (int slow = me; slow < CARS; slow++)
			hd_yield(); /* on its way; the first ones would be passed if they could be */
		unload(me);
	}
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	hd_semaphore_signal(&cars[0].may_load);
	hd_semaphore_signal(&cars[0].may_unload);
	crowd_start(&crowd, PASSENGERS, "passenger", passenger);
	crowd_start(&crowd, CARS, "car", car);
	crowd_join(&crowd);
	CHECK(loaded == CARS * RIDES);
	CHECK(unloaded == loaded);
	CHECK(carried == PASSENGERS);
	CHECK(done == PASSENGERS);
	printf("%d passengers had their ride in %d cars\n", done, CARS);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
