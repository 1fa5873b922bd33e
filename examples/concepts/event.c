/* event.c - a gate that is open or closed, and a turnstile that lets one visitor in each time. */
#include <heddle.h>
#include <stdio.h>

enum { VISITORS = 3 };

static struct hd_event gate, turnstile = HD_EVENT(HD_EVENT_AUTO);
static struct hd_semaphore through, inside;

static void *visitor(void *arg)
{
	if (hd_event_wait(&gate, HD_FOREVER) == 0)
		hd_semaphore_signal(&through);
	if (hd_event_wait(&turnstile, HD_FOREVER) == 0)
		hd_semaphore_signal(&inside);
	return arg;
}

static void *first(void *arg)
{
	struct hd_group visitors = { 0 };
	int err = 0;

	for (int i = 0; i < VISITORS; i++)
		if (hd_group_spawn(&visitors, visitor, NULL) < 0)
			err = 1;
	hd_event_set(&gate); /* for all visitors that wait, and all that come later */
	for (int i = 0; i < VISITORS && err == 0; i++)
		err = hd_semaphore_wait(&through, HD_FOREVER);
	printf("the gate is open, and all are through\n");
	for (int i = 1; i <= VISITORS && err == 0; i++) {
		hd_event_set(&turnstile); /* for one visitor */
		err = hd_semaphore_wait(&inside, HD_FOREVER);
		printf("the turnstile turned: %d inside\n", i);
	}
	printf("the gate is %s, the turnstile is %s\n", hd_event_is_set(&gate) ? "open" : "closed",
	       hd_event_is_set(&turnstile) ? "open" : "closed");
	if (err != 0)
		hd_group_cancel(&visitors);
	if (hd_group_wait(&visitors, HD_FOREVER) != 0 || err != 0)
		hd_shutdown(1);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
