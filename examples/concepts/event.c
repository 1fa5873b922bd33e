/* event.c - a gate that is open or closed, and a turnstile that lets one in each time. */
#include <heddle.h>
#include <stdio.h>

static struct hd_event gate, turnstile = HD_EVENT(HD_EVENT_AUTO);
static struct hd_semaphore inside;

static void *visitor(void *name)
{
	if (hd_event_wait(&gate, HD_FOREVER) == 0)
		printf("%s is through the gate\n", (const char *)name);
	if (hd_event_wait(&turnstile, HD_FOREVER) == 0)
		printf("%s is in\n", (const char *)name);
	hd_semaphore_signal(&inside);
	return NULL;
}

static void *first(void *arg)
{
	int visitors = 0;

	visitors += hd_detach(hd_spawn(visitor, (void *)"ann")) == 0;
	visitors += hd_detach(hd_spawn(visitor, (void *)"bob")) == 0;
	hd_yield(); /* both wait now */
	printf("the gate opens\n");
	hd_event_set(&gate); /* for all who wait, and all who come */
	hd_yield();
	for (int err = 0; err == 0 && visitors > 0; visitors--) {
		printf("the turnstile turns\n");
		hd_event_set(&turnstile); /* for one */
		err = hd_semaphore_wait(&inside, HD_FOREVER);
	}
	printf("the gate is %s, the turnstile is %s\n", hd_event_is_set(&gate) ? "open" : "closed",
	       hd_event_is_set(&turnstile) ? "open" : "closed");
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
