/* wait/sleep.c - waiting for time alone. */
#include <errno.h>
#include <heddle/runtime.h>
#include <heddle/time.h>

#include "wait/wait.h"

hd_time hd_now(void)
{
	struct hd_worker *w = hd__self();

	if (w == NULL)
		return hd__plain_clock->now(hd__plain_clock);
	if (unlikely(ld_rlx(&w->current->control) & HD__LOGGED))
		return -ENOTSUP;
	hd__pass_by(); /* a loop that waits for a time gives way to others */
	return hd__clock(w->sched);
}

hd_time hd_after(hd_time ns)
{
	hd_time t;
	if (__builtin_add_overflow(hd_now(), ns, &t))
		return HD_FOREVER;
	return t < HD__FIRST_TIME ? 0 : t; /* ns was negative; what came before the beginning would be taken for a duration */
}

int hd_sleep_until(hd_time t)
{
	struct hd_worker *w;
	int err = hd__begin_wait(&w, t);

	if (err == 0)
		err = hd__park_for_time(w, t, HD_WAIT_SLEEP);
	return err == -ETIMEDOUT ? 0 : err;
}

int hd_sleep(hd_time ns)
{
	if (ns < 0)
		return -EINVAL;
	return hd_sleep_until(ns == 0 ? 0 : hd_after(ns));
}
