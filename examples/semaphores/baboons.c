/* baboons.c - baboons cross a canyon on a rope.
 *
 * The rope carries at most three baboons, and those on it must all go the same way: two who meet in the middle would fight
 * and fall. Once one has begun it gets to the other side. A stream of baboons from one side must not keep the other side
 * waiting for ever: when somebody waits over there, at most four more set out before it is their turn. Whoever leaves the
 * rope decides who may go next. */
#include <stdatomic.h>
#include "crowd.h"

enum { EAST, WEST, SIDES };
enum { EACH = 7, TRIPS = 2, ROPE = 3, IN_A_ROW = 4 };

static struct hd_semaphore mutex = HD_SEMAPHORE(1); /* guards what follows */
static int side, on_rope;			    /* all on the rope are from this side */
static int in_a_row;				    /* have set out from it while others waited at the other */
static int waiting[SIDES], crossed;

static struct hd_semaphore go[SIDES];
static _Atomic int crossing[SIDES];

static bool may_go(int from)
{
	if (on_rope > 0 && (from != side || on_rope == ROPE))
		return false;
	return waiting[!from] == 0 || from != side || in_a_row < IN_A_ROW;
}

static void set_out(int from)
{
	if (from != side || waiting[!from] == 0)
		in_a_row = 0;
	if (waiting[!from] > 0)
		in_a_row++;
	side = from;
	on_rope++;
	CHECK(on_rope <= ROPE);
	CHECK(in_a_row <= IN_A_ROW);
}

static void let_others_go(int from)
{
	while (waiting[from] > 0 && may_go(from)) {
		waiting[from]--;
		set_out(from);
		hd_semaphore_signal(&go[from]);
	}
}

static void cross(int from)
{
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	bool at_once = may_go(from);
	if (at_once)
		set_out(from);
	else
		waiting[from]++;
	hd_semaphore_signal(&mutex);
	if (!at_once)
		CHECK(hd_semaphore_wait(&go[from], HD_FOREVER) == 0);

	CHECK(++crossing[from] <= ROPE);
	CHECK(crossing[!from] == 0);
	hd_yield();
	CHECK(crossing[!from] == 0);
	crossing[from]--;

	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	on_rope--;
	crossed++;
	let_others_go(from);
	let_others_go(!from);
	hd_semaphore_signal(&mutex);
}

static void *baboon(void *arg)
{
	for (int i = 0; i < TRIPS; i++)
		cross((number_of(arg) + i) % SIDES); /* there, and back */
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	crowd_start(&crowd, EACH * SIDES, "baboon", baboon);
	crowd_join(&crowd);
	CHECK(crossed == EACH * SIDES * TRIPS);
	CHECK(on_rope + waiting[EAST] + waiting[WEST] == 0);
	printf("baboons crossed %d times, and none fell\n", crossed);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
