/* bathroom.c - one bathroom for women and men.
 *
 * There are two cabins, and women and men must not be in the bathroom at the same time. Neither may keep the others out for
 * ever by coming and coming, so everybody queues at one door: who cannot go in yet stays in the door, and whoever comes
 * later is behind. The first of a kind takes the bathroom for its kind, the last one gives it back; cabins are counted by a
 * semaphore. */
#include <stdatomic.h>
#include "crowd.h"
#include "group.h"

enum { WOMAN, MAN, KINDS };
enum { EACH = 6, VISITS = 2, CABINS = 2 };

static struct hd_semaphore door = HD_SEMAPHORE(1), bathroom = HD_SEMAPHORE(1), cabins = HD_SEMAPHORE(CABINS);
static struct group kinds[KINDS] = { GROUP, GROUP };
static _Atomic int came, went_in; /* to the door, through the door */
static _Atomic int inside[KINDS], visits;

static void visit(int kind)
{
	CHECK(hd_semaphore_wait(&door, HD_FOREVER) == 0);
	int mine = came++;
	group_enter(&kinds[kind], &bathroom);
	CHECK(went_in++ == mine); /* nobody was overtaken */
	hd_semaphore_signal(&door);

	CHECK(hd_semaphore_wait(&cabins, HD_FOREVER) == 0);
	CHECK(++inside[kind] <= CABINS);
	CHECK(inside[!kind] == 0);
	hd_yield();
	CHECK(inside[!kind] == 0);
	inside[kind]--;
	visits++;
	hd_semaphore_signal(&cabins);
	group_leave(&kinds[kind], &bathroom);
}

static void *woman(void *arg)
{
	for (int i = 0; i < VISITS; i++)
		visit(WOMAN);
	return arg;
}

static void *man(void *arg)
{
	for (int i = 0; i < VISITS; i++)
		visit(MAN);
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	crowd_start(&crowd, EACH, "woman", woman);
	crowd_start(&crowd, EACH, "man", man);
	crowd_join(&crowd);
	CHECK(visits == EACH * VISITS * KINDS);
	CHECK(inside[WOMAN] + inside[MAN] == 0);
	printf("%d visits, never women and men at once\n", visits);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
