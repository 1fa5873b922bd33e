/* future.c - a program whose heddle has a description of a version that no command knows yet. */
#include <stdio.h>
#include <unistd.h>

#include "rt/inside.h"

struct hd__inside future = { .magic = HD__INSIDE_MAGIC, .version = 99, .sched = 1 };

__asm__(".pushsection .note.heddle, \"a\", %note\n\t"
	".balign 4\n\t"
	".long 7, 16, 1\n\t"
	".asciz \"heddle\"\n\t"
	".balign 4\n\t"
	".long 99, 0\n\t"
	".8byte future - .\n\t"
	".popsection");

int main(void)
{
	future.self = (uintptr_t)&future;
	printf("ready\n");
	fflush(stdout);
	pause();
	return 0;
}
