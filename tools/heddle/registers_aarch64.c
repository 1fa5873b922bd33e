/* registers_aarch64.c - the registers of 64-bit ARM, as DWARF numbers them. */
#include "registers.h"

#include <string.h>
#include <sys/user.h>

enum { X29 = 29, SP = 31 };

const unsigned registers_frame_pointer = X29;

struct registers registers_of_context(uint64_t sp, uint64_t fp, uint64_t pc)
{
	struct registers r = { .known = 1u << X29 | 1u << SP, .sp = sp, .pc = pc };

	r.value[X29] = fp;
	r.value[SP] = sp;
	return r;
}

bool registers_of_thread(struct registers *r, const void *kernel, size_t size)
{
	struct user_regs_struct u;

	if (size < sizeof u)
		return false;
	memcpy(&u, kernel, sizeof u);
	*r = (struct registers){ .known = UINT32_MAX, .sp = u.sp, .pc = u.pc };
	for (unsigned i = 0; i < SP; i++)
		r->value[i] = u.regs[i];
	r->value[SP] = u.sp;
	return true;
}
