/* registers.h - what a kernel thread, or a process that does not run, has in the registers that a backtrace needs. One file for each kind of machine has the
 * functions. */
#ifndef REGISTERS_H
#define REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGISTERS_MAX 32

struct registers {
	uint64_t value[REGISTERS_MAX]; /* by their numbers in DWARF */
	uint32_t known;		       /* a bit for each */
	uint64_t sp, pc;
};

/* Of a process that does not run: what its context says (src/arch). */
struct registers registers_of_context(uint64_t sp, uint64_t fp, uint64_t pc);

/* Of a thread: what the kernel says, in a core file or to ptrace(2). False: it is not what this kind of machine has. */
bool registers_of_thread(struct registers *r, const void *kernel, size_t size);

/* The number of the frame pointer. */
extern const unsigned registers_frame_pointer;

#endif
