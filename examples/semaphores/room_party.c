/* room_party.c - students have a party, and the dean drops in.
 *
 * Any number of students may be in a room. The dean may enter it for two reasons only: to search it, when it is empty, or to
 * break up a party, when at least four students are in; else the dean waits for one of the two. While the dean is in nobody
 * may come in, but students may leave; having broken up a party, the dean stays until all have left. Who makes the room
 * empty, or the party large enough, calls the dean in. */
#include <stdatomic.h>
#include "crowd.h"

enum { STUDENTS = 12, VISITS = 2, PARTY = 4, ROUNDS = 3 };

static struct hd_semaphore mutex = HD_SEMAPHORE(1); /* guards what follows */
static enum { AWAY, WAITING, SEARCHING, BREAKING_UP } dean_is;
static int students, students_waiting, visits;

static struct hd_semaphore enter, dean_enter, all_gone;
static _Atomic int in_room;
static int searched, broken_up; /* the dean's */

static bool dean_is_in(void)
{
	return dean_is == SEARCHING || dean_is == BREAKING_UP;
}

/* Somebody came, went or waits: whoever can go on now does, and the dean before others. */
static void look_round(void)
{
	for (;;) {
		if (dean_is == WAITING && (students == 0 || students >= PARTY)) {
			dean_is = students == 0 ? SEARCHING : BREAKING_UP;
			hd_semaphore_signal(&dean_enter);
		}
		if (students_waiting == 0 || dean_is_in())
			return;
		students_waiting--;
		students++;
		hd_semaphore_signal(&enter);
	}
}

static void *student(void *arg)
{
	for (int i = 0; i < VISITS; i++) {
		CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
		students_waiting++;
		look_round();
		hd_semaphore_signal(&mutex);
		CHECK(hd_semaphore_wait(&enter, HD_FOREVER) == 0);

		in_room++;
		hd_yield();
		in_room--;

		CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
		students--;
		visits++;
		if (students == 0 && dean_is == BREAKING_UP)
			hd_semaphore_signal(&all_gone);
		look_round();
		hd_semaphore_signal(&mutex);
	}
	return arg;
}

static void dean_moves(int where)
{
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	dean_is = where;
	look_round();
	hd_semaphore_signal(&mutex);
}

static void *dean(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		dean_moves(WAITING);
		CHECK(hd_semaphore_wait(&dean_enter, HD_FOREVER) == 0);
		bool party = dean_is == BREAKING_UP; /* nobody else changes it while the dean is in */
		if (party)
			CHECK(hd_semaphore_wait(&all_gone, HD_FOREVER) == 0);
		for (int look = 0; look < 4; look++) {
			CHECK(in_room == 0);
			hd_yield();
		}
		*(party ? &broken_up : &searched) += 1;
		dean_moves(AWAY);
	}
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	crowd_start(&crowd, STUDENTS, "student", student);
	crowd_start(&crowd, 1, "dean", dean);
	crowd_join(&crowd);
	CHECK(visits == STUDENTS * VISITS);
	CHECK(students + students_waiting + in_room == 0);
	CHECK(searched + broken_up == ROUNDS);
	printf("%d visits of students, %d of the dean\n", visits, searched + broken_up);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
