/* os/preempt.h - having a kernel thread of heddle's stop the program's code that it executes, and call a function in its place.
 *
 * By a signal. If the thread is in the program's own code, the handler has that code call the function, as if it had called it by itself, between any
 * two instructions. If it is anywhere else, in the C library or another one, in heddle, in the kernel, nothing happens: such code may have locks. The
 * simulated runtime has none of this. */
#ifndef OS_PREEMPT_H
#define OS_PREEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/thread.h"

struct hd__preemption {
	int signal;
	const char *objects; /* more code that may be stopped: file names of shared libraries, with colons between; or NULL */
	/* In the handler, on the thread: whether its code may be stopped now, with this stack pointer, if `size` bytes below it are used. */
	bool (*may)(uintptr_t sp, size_t size);
	/* What is called then, on the stack of that code; all that it had in registers is put back afterwards. */
	void (*call)(void);
};

/* From now on hd__os_preempt works. False: it cannot work here. Called once, before any other. */
bool hd__os_preempt_begin(const struct hd__preemption *how);

/* The calling thread can be stopped, by others that know `thread`; unless it blocks the signal: then `thread` has a number, but no id. A signal that waited would be
 * taken for the program's when the runtime is over. */
void hd__os_preempt_hear(struct hd__thread *thread, int signal);

/* The thread should stop what it does, if it may. */
void hd__os_preempt(struct hd__thread *thread);

/* Whether it is done with this signal. */
bool hd__os_is_preempt(int signal);

/* The signal is the program's again; nothing if it is already. Also in a forked child. */
void hd__os_preempt_end(void);

#endif
