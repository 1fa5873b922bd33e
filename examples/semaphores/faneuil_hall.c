/* faneuil_hall.c - immigrants become citizens, before a judge and spectators.
 *
 * Immigrants go into the hall, check in and take a seat; spectators come to watch. When the judge has come in nobody else
 * may enter, and no immigrant may leave; spectators may. As soon as all immigrants who are in have checked in, the judge
 * confirms them, and they get their certificates. When the judge has gone they may leave, and the doors are open again. The
 * judge comes several times, the last time when all immigrants have come. */
#include <stdatomic.h>
#include "crowd.h"
#include "many.h"

enum { IMMIGRANTS = 8, SPECTATORS = 4, HEARINGS = 3 };

static struct hd_semaphore entrance = HD_SEMAPHORE(1), way_out = HD_SEMAPHORE(1); /* the judge has both while in the hall */
static struct hd_semaphore mutex = HD_SEMAPHORE(1);				  /* guards what follows */
static int entered, checked_in, confirmed, citizens, watched;
static bool judge_waits;

static struct hd_semaphore all_checked_in, certificate, has_come;
static _Atomic bool judge_in;

static void enter(int *count)
{
	CHECK(hd_semaphore_wait(&entrance, HD_FOREVER) == 0);
	CHECK(!judge_in);
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	++*count;
	hd_semaphore_signal(&mutex);
	hd_semaphore_signal(&entrance);
}

static void tell_waiting_judge(void)
{
	if (judge_waits && checked_in == entered) {
		judge_waits = false;
		hd_semaphore_signal(&all_checked_in);
	}
}

static void *immigrant(void *arg)
{
	enter(&entered);
	hd_semaphore_signal(&has_come);
	hd_yield();
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	CHECK(++checked_in <= entered);
	tell_waiting_judge();
	hd_semaphore_signal(&mutex);
	CHECK(hd_semaphore_wait(&certificate, HD_FOREVER) == 0);

	CHECK(hd_semaphore_wait(&way_out, HD_FOREVER) == 0);
	CHECK(!judge_in);
	CHECK(++citizens <= confirmed);
	hd_semaphore_signal(&way_out);
	return arg;
}

static void *spectator(void *arg)
{
	enter(&watched);
	hd_yield(); /* it watches, and leaves when it likes */
	return arg;
}

static void confirm_all(void)
{
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	judge_waits = true;
	tell_waiting_judge();
	hd_semaphore_signal(&mutex);
	CHECK(hd_semaphore_wait(&all_checked_in, HD_FOREVER) == 0);

	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	CHECK(checked_in == entered);
	for (; entered > 0; entered--, confirmed++)
		hd_semaphore_signal(&certificate);
	checked_in = 0;
	hd_semaphore_signal(&mutex);
}

static void *judge(void *arg)
{
	for (int hearing = 1; hearing <= HEARINGS; hearing++) {
		if (hearing == HEARINGS)
			wait_many(&has_come, IMMIGRANTS);
		CHECK(hd_semaphore_wait(&entrance, HD_FOREVER) == 0);
		CHECK(hd_semaphore_wait(&way_out, HD_FOREVER) == 0);
		judge_in = true;
		confirm_all();
		hd_yield();
		judge_in = false;
		hd_semaphore_signal(&way_out);
		hd_semaphore_signal(&entrance);
	}
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	crowd_start(&crowd, IMMIGRANTS, "immigrant", immigrant);
	crowd_start(&crowd, SPECTATORS, "spectator", spectator);
	crowd_start(&crowd, 1, "judge", judge);
	crowd_join(&crowd);
	CHECK(confirmed == IMMIGRANTS);
	CHECK(citizens == IMMIGRANTS);
	CHECK(watched == SPECTATORS);
	printf("%d immigrants are citizens now\n", citizens);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
