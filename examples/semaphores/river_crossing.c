/* river_crossing.c - hackers and serfs share a boat.
 *
 * A boat crosses a river with exactly four people, some of them hackers, the others serfs of a big company. Nobody may sit
 * in it as the only one of a kind among three of the other: four of a kind are fine, and so are two and two. When four who
 * suit each other are at the bank they board, and one of them, who boards last, rows. Nobody boards for the next crossing
 * before. There is an even number of each kind, so that whoever is left can always cross. */
#include <stdatomic.h>
#include "crowd.h"
#include "many.h"

enum { HACKER, SERF, KINDS };
enum { EACH = 8, BOAT = 4 };

static struct hd_semaphore bank = HD_SEMAPHORE(1); /* guards what follows; who is to row keeps it until the boat has gone */
static int waiting[KINDS], crossings, crossed;
static struct hd_semaphore board[KINDS], aboard;
static _Atomic int in_boat[KINDS];

/* Calls n people of a kind into the boat. */
static void call(int kind, int n)
{
	waiting[kind] -= n;
	signal_many(&board[kind], n);
}

/* The caller has just come to the bank. Whether the boat can go; then all but the caller, who is to row, have been called. */
static bool four_are_here(int kind)
{
	int other = !kind;

	if (waiting[kind] == BOAT - 1) {
		call(kind, BOAT - 1);
		return true;
	}
	if (waiting[kind] >= 1 && waiting[other] >= 2) {
		call(kind, 1);
		call(other, 2);
		return true;
	}
	return false;
}

static void row(void)
{
	wait_many(&aboard, BOAT - 1);
	CHECK(in_boat[HACKER] + in_boat[SERF] == BOAT);
	CHECK(in_boat[HACKER] % 2 == 0);
	hd_yield();
	CHECK(in_boat[HACKER] + in_boat[SERF] == BOAT);
	in_boat[HACKER] = in_boat[SERF] = 0;
	crossings++;
	crossed += BOAT;
}

static void cross(int kind)
{
	CHECK(hd_semaphore_wait(&bank, HD_FOREVER) == 0);
	if (four_are_here(kind)) {
		in_boat[kind]++;
		row();
		hd_semaphore_signal(&bank);
	} else {
		waiting[kind]++;
		hd_semaphore_signal(&bank);
		CHECK(hd_semaphore_wait(&board[kind], HD_FOREVER) == 0);
		in_boat[kind]++;
		hd_semaphore_signal(&aboard);
	}
}

static void *hacker(void *arg)
{
	cross(HACKER);
	return arg;
}

static void *serf(void *arg)
{
	cross(SERF);
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	crowd_start(&crowd, EACH, "hacker", hacker);
	crowd_start(&crowd, EACH, "serf", serf);
	crowd_join(&crowd);
	CHECK(waiting[HACKER] + waiting[SERF] == 0);
	CHECK(crossed == EACH * KINDS);
	printf("%d people crossed in %d boats\n", crossed, crossings);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
