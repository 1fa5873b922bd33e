/* os/interrupt.h - ending the system call of another kernel thread, by a signal. */
#ifndef OS_INTERRUPT_H
#define OS_INTERRUPT_H

#include "os/thread.h"

/* Whether the calling thread, which has all signals blocked, can be interrupted from now on. A late interrupt is kept until the next
 * time, and then ends no system call. */
void hd__os_interrupt_hear(bool hears);

/* A system call that blocks the thread answers EINTR. Nothing happens to a thread that does not hear, or is not in a system call; and
 * nothing at all if there is no signal to do it with. */
void hd__os_interrupt(struct hd__thread *thread);

/* Whether it is done with this signal. */
bool hd__os_is_interrupt(int signal);

/* In a forked child: no other thread is choosing the signal. */
void hd__os_interrupt_forget(void);

#endif
