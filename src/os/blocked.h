/* os/blocked.h - which system call a kernel thread of the program is blocked in. */
#ifndef OS_BLOCKED_H
#define OS_BLOCKED_H

#include <stdbool.h>
#include <stdint.h>

struct hd__blocked_in {
	char call
		[32]; /* the name of the system call; its number, for one that seldom blocks; "" for none: it waits for a page, perhaps */
	char *sp, *pc;	  /* of the program's code that has made it */
	int64_t cpu_time; /* that the thread has used: as long as it has used no more, it has not gone on */
};

/* Whether the thread with this number sleeps in the kernel now: it would not go on if it had a CPU. False also where the kernel does not tell. */
bool hd__os_thread_sleeps(int number);

/* Whether the thread with this id sleeps in the kernel now. False also if it executes, or would if it had a CPU, and where the kernel does not tell. */
bool hd__os_is_blocked(int id, struct hd__blocked_in *where);

#endif
