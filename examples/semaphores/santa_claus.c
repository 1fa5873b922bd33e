/* santa_claus.c - Santa Claus sleeps, and wakes for two reasons.
 *
 * Nine reindeer come back from their holidays, one by one; the last one wakes Santa, who harnesses all nine, flies, and
 * sends them off again. Elves have questions, but Santa is only woken by three of them together; whoever comes while three
 * are with him waits until these three have gone. If both reindeer and elves wait when he wakes, reindeer go first: it is
 * Christmas. */
#include <stdatomic.h>
#include "crowd.h"
#include "many.h"

enum { REINDEER = 9, ELVES = 9, THREE = 3, YEARS = 2, WAKES = YEARS + ELVES / THREE };

static struct hd_semaphore mutex = HD_SEMAPHORE(1); /* guards the next line */
static int back, asking;
static struct hd_semaphore wake_up, harness, harnessed, holidays;
static struct hd_semaphore elves_door = HD_SEMAPHORE(1), question, answered;

static _Atomic int in_harness, with_santa;
static int flights, answers; /* Santa's */

static void *reindeer(void *arg)
{
	for (int year = 0; year < YEARS; year++) {
		CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
		if (++back == REINDEER)
			hd_semaphore_signal(&wake_up);
		hd_semaphore_signal(&mutex);
		CHECK(hd_semaphore_wait(&harness, HD_FOREVER) == 0);
		CHECK(with_santa == 0);
		in_harness++;
		hd_semaphore_signal(&harnessed);
		CHECK(hd_semaphore_wait(&holidays, HD_FOREVER) == 0);
	}
	return arg;
}

static void *elf(void *arg)
{
	CHECK(hd_semaphore_wait(&elves_door, HD_FOREVER) == 0);
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	CHECK(asking < THREE);
	if (++asking == THREE)
		hd_semaphore_signal(&wake_up); /* and the door stays shut */
	else
		hd_semaphore_signal(&elves_door);
	hd_semaphore_signal(&mutex);

	CHECK(hd_semaphore_wait(&question, HD_FOREVER) == 0);
	CHECK(++with_santa <= THREE);
	CHECK(in_harness == 0);
	hd_semaphore_signal(&answered);

	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	if (--asking == 0)
		hd_semaphore_signal(&elves_door);
	hd_semaphore_signal(&mutex);
	return arg;
}

static void fly(void)
{
	signal_many(&harness, REINDEER);
	wait_many(&harnessed, REINDEER);
	CHECK(in_harness == REINDEER);
	hd_yield();
	in_harness = 0;
	flights++;
	signal_many(&holidays, REINDEER);
}

static void answer(void)
{
	signal_many(&question, THREE);
	wait_many(&answered, THREE);
	CHECK(with_santa == THREE);
	with_santa = 0;
	answers += THREE;
}

static void *santa(void *arg)
{
	for (int i = 0; i < WAKES; i++) {
		CHECK(hd_semaphore_wait(&wake_up, HD_FOREVER) == 0);
		CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
		bool christmas = back == REINDEER;
		CHECK(christmas || asking == THREE);
		if (christmas)
			back = 0;
		hd_semaphore_signal(&mutex);
		christmas ? fly() : answer();
	}
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	crowd_start(&crowd, 1, "santa", santa);
	crowd_start(&crowd, ELVES, "elf", elf);
	crowd_start(&crowd, REINDEER, "reindeer", reindeer);
	crowd_join(&crowd);
	CHECK(flights == YEARS);
	CHECK(answers == ELVES);
	printf("santa flew %d times and answered %d elves\n", flights, answers);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
