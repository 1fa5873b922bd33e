/* narrow_window.c - messages are numbered; the receiver keeps those that are not far behind the newest, and takes the others for
 * copies from long ago.
 *
 * Wrong:      six messages are under way at a time, and the window is four wide.
 * Schedule:   the first message is overtaken by the last four.
 * Shows:      assert: a message was dropped.
 * Fix:        a window as wide as there are messages under way. */
#include "planted.h"

enum { MESSAGES = 6 };
#ifdef FIXED
enum { WINDOW = MESSAGES };
#else
enum { WINDOW = 4 };
#endif

static struct hd_semaphore mutex = LOCK;
static int newest, received;

static void *deliver(void *arg)
{
	int number = number_of(arg);

	lock(&mutex);
	if (number > newest)
		newest = number;
	if (newest - number < WINDOW)
		received++;
	unlock(&mutex);
	return NULL;
}

PLANTED_MAIN
{
	hd_pid pids[MESSAGES];

	for (int i = 0; i < MESSAGES; i++)
		pids[i] = start(deliver, (void *)(intptr_t)i);
	for (int i = 0; i < MESSAGES; i++)
		finish(pids[i]);
	MUST(received == MESSAGES);
}
