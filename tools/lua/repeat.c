/* repeat.c - what makes a Lua program that is explored do the same in every OS process: Lua draws the order of pairs from addresses and the time.
 *
 * Callers:    main, before all else; Lua, for the time. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/personality.h>
#include <time.h>
#include <unistd.h>

#include "process.h"

#define EXPLORED "HEDDLE_SIM" /* the variable in which `heddle explore` says what to do */
#define BEGINNING 1000000000  /* of the time, when it is explored: 2001 */

static bool explored; /* written before hd_run */

/* Begins anew without random addresses, where that is allowed; if not, an exploration may say that runs cannot be repeated. */
void be_repeatable(char **argv)
{
	int now = personality(0xffffffff);

	explored = getenv(EXPLORED) != NULL;
	if (!explored || now < 0 || (now & ADDR_NO_RANDOMIZE))
		return;
	if (personality((unsigned long)now | ADDR_NO_RANDOMIZE) >= 0)
		execv("/proc/self/exe", argv);
}

/* In place of the C library's, for Lua (os.time, and the seed of a state): explored, it is virtual, too. */
time_t time(time_t *also)
{
	struct timespec now;

	if (explored)
		now.tv_sec = BEGINNING + hd_now() / 1000000000;
	else
		clock_gettime(CLOCK_REALTIME, &now);
	if (also != NULL)
		*also = now.tv_sec;
	return now.tv_sec;
}
