/* water.c - building H2O.
 *
 * Each atom is a process. Two of hydrogen and one of oxygen make a molecule: an atom waits until its two partners are there,
 * and all three must have bonded before an atom of the next molecule does. There are two places for hydrogen and one for
 * oxygen. An atom takes a place, waits until all places are taken, and bonds; the last of three to bond clears the places
 * for the next molecule. If each atom cleared its own, a fast newcomer could be taken for one of the three. */
#include "crowd.h"
#include "many.h"

enum { MOLECULES = 6, ATOMS = 3 };

static struct hd_semaphore hydrogen_places = HD_SEMAPHORE(2), oxygen_places = HD_SEMAPHORE(1), complete;
static struct hd_semaphore mutex = HD_SEMAPHORE(1); /* guards what follows */
static int present, bonded_hydrogen, bonded_oxygen, molecules;

static void find_partners(void)
{
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	if (++present == ATOMS) {
		present = 0;
		signal_many(&complete, ATOMS);
	}
	hd_semaphore_signal(&mutex);
	CHECK(hd_semaphore_wait(&complete, HD_FOREVER) == 0);
}

static void bond(int *kind)
{
	CHECK(hd_semaphore_wait(&mutex, HD_FOREVER) == 0);
	CHECK(present == 0); /* nobody for the next molecule yet */
	++*kind;
	hd_checkpoint();
	CHECK(bonded_hydrogen <= 2);
	CHECK(bonded_oxygen <= 1);
	if (bonded_hydrogen + bonded_oxygen == ATOMS) {
		bonded_hydrogen = bonded_oxygen = 0;
		molecules++;
		signal_many(&hydrogen_places, 2);
		hd_semaphore_signal(&oxygen_places);
	}
	hd_semaphore_signal(&mutex);
}

static void *hydrogen(void *arg)
{
	CHECK(hd_semaphore_wait(&hydrogen_places, HD_FOREVER) == 0);
	find_partners();
	bond(&bonded_hydrogen);
	return arg;
}

static void *oxygen(void *arg)
{
	CHECK(hd_semaphore_wait(&oxygen_places, HD_FOREVER) == 0);
	find_partners();
	bond(&bonded_oxygen);
	return arg;
}

static void *first(void *arg)
{
	struct crowd crowd = { 0 };

	crowd_start(&crowd, MOLECULES, "oxygen", oxygen);
	crowd_start(&crowd, MOLECULES * 2, "hydrogen", hydrogen);
	crowd_join(&crowd);
	CHECK(molecules == MOLECULES);
	CHECK(present + bonded_hydrogen + bonded_oxygen == 0);
	printf("%d atoms made %d molecules of water\n", MOLECULES * ATOMS, molecules);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL);
}
