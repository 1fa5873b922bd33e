/* cond_suspend.c - a condition variable for one waiter, who sleeps with hd_suspend and is woken with hd_resume.
 *
 * Wrong:      a resume that comes before the suspend is not kept: it answers -EALREADY, and the suspend sleeps all the same.
 * Schedule:   the reader has left its name and unlocked; the writer reads the name and resumes it; then it suspends itself.
 * Shows:      deadlock.
 * Fix:        sleep on a semaphore: a signal that comes early is kept. */
#include "planted.h"

static struct hd_semaphore mailbox = LOCK;
static int letters;    /* guarded by mailbox */
static hd_pid sleeper; /* who waits for one; 0 is nobody. Guarded by mailbox */
#ifdef FIXED
static struct hd_semaphore bed;
#define PARK() MUST(hd_semaphore_wait(&bed, HD_FOREVER) == 0)
#define UNPARK(pid) hd_semaphore_signal(&bed)
#else
#define PARK() MUST(hd_suspend(hd_self(), HD_FOREVER) == 0)
#define UNPARK(pid) hd_resume(pid)
#endif

static void *read_letter(void *arg)
{
	lock(&mailbox);
	while (letters == 0) {
		sleeper = hd_self();
		unlock(&mailbox);
		PARK();
		lock(&mailbox);
	}
	letters--;
	unlock(&mailbox);
	return arg;
}

static void *write_letter(void *arg)
{
	lock(&mailbox);
	letters++;
	if (sleeper != 0)
		UNPARK(sleeper);
	sleeper = 0;
	unlock(&mailbox);
	return arg;
}

PLANTED_MAIN
{
	TOGETHER(read_letter, write_letter);
}
