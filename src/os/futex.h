/* os/futex.h - sleeping in the kernel on a word. */
#ifndef OS_FUTEX_H
#define OS_FUTEX_H

#include <heddle/base.h>

/* Sleeps while *word is `value`, at the longest until a time on the monotonic clock. Returns for any reason or none: callers
 * look at the word and the clock again. */
void hd__os_futex_wait(uint32_t *word, uint32_t value, hd_time until);

/* Wakes one sleeper. The word may be gone already: nothing is read. Safe in signal handlers. */
void hd__os_futex_wake(uint32_t *word);

#endif
