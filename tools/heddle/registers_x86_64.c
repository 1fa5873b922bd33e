/* registers_x86_64.c - the registers of x86-64, as DWARF numbers them. */
#include "registers.h"

#include <string.h>
#include <sys/user.h>

enum { RBP = 6, RSP = 7, RETURN = 16, NUMBERED = 17 };

const unsigned registers_frame_pointer = RBP;

struct registers registers_of_context(uint64_t sp, uint64_t fp, uint64_t pc)
{
	struct registers r = { .known = 1u << RBP | 1u << RSP | 1u << RETURN, .sp = sp, .pc = pc };

	r.value[RBP] = fp;
	r.value[RSP] = sp;
	r.value[RETURN] = pc;
	return r;
}

bool registers_of_thread(struct registers *r, const void *kernel, size_t size)
{
	struct user_regs_struct u;

	if (size < sizeof u)
		return false;
	memcpy(&u, kernel, sizeof u);
	*r = (struct registers){ .value = { u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp, u.r8, u.r9, u.r10, u.r11,
					    u.r12, u.r13, u.r14, u.r15, u.rip },
				 .known = (1u << NUMBERED) - 1,
				 .sp = u.rsp,
				 .pc = u.rip };
	return true;
}
