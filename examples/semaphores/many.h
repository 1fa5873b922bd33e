/* many.h - many signals at once: to let several go, or to wait for several. */
#ifndef SEMAPHORES_MANY_H
#define SEMAPHORES_MANY_H

#include <heddle.h>

static inline void signal_many(struct hd_semaphore *s, int n)
{
	while (n-- > 0)
		hd_semaphore_signal(s);
}

/* Takes them one by one: n signals may come from n others, in any order. */
static inline void wait_many(struct hd_semaphore *s, int n)
{
	while (n-- > 0)
		CHECK(hd_semaphore_wait(s, HD_FOREVER) == 0);
}

#endif
