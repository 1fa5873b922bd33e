/* arch/aarch64/begin.S - the first instructions of a process: its argument and its function are on its stack. */
	.text
	.globl	hd__arch_begin
	.hidden	hd__arch_begin
	.type	hd__arch_begin, %function
hd__arch_begin:
	.cfi_startproc
	.cfi_undefined	x30
	hint	#36		/* bti j */
	ldp	x0, x1, [sp]	/* not popped: the next process's go to the same place while this one is still leaving */
	blr	x1
	brk	#1
	.cfi_endproc
	.size	hd__arch_begin, .-hd__arch_begin
	.section .note.GNU-stack,"",%progbits
