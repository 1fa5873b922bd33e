/* sched/poller.c - the poller that knows no events: a futex. */
#include "sched/poller.h"

#include "os/futex.h"

static void futex_wait(struct hd__poller *poller, uint32_t *word, uint32_t value, hd_time until)
{
	(void)poller;
	hd__os_futex_wait(word, value, until);
}

static void futex_wake(struct hd__poller *poller, uint32_t *word)
{
	(void)poller;
	hd__os_futex_wake(word);
}

struct hd__poller hd__futex_poller = { futex_wait, futex_wake };
