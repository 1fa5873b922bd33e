/* os/futex.c - sleeping in the kernel on a word. */
#define _GNU_SOURCE
#include "os/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"

void hd__os_futex_wait(uint32_t *word, uint32_t value, hd_time until)
{
	int saved = errno;
	hd_time end = hd__os_kernel_time(until);
	struct timespec t = { end / HD_SEC(1), end % HD_SEC(1) };

	/* the bitset form takes an absolute time; one before the kernel's own beginning it refuses, which is as good as past */
	syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, until == HD_FOREVER ? NULL : &t, NULL,
		FUTEX_BITSET_MATCH_ANY);
	errno = saved;
}

void hd__os_futex_wake(uint32_t *word)
{
	int saved = errno;
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved;
}
