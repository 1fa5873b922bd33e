/* arch/aarch64/begin.S - the first instructions of a process: its argument and its function are on its stack. As on x86-64 (see
 * there for why), the function is jumped to with a return address of 0, and the two words stay. */
	.text
	.globl	hd__arch_begin
	.hidden	hd__arch_begin
	.type	hd__arch_begin, %function
hd__arch_begin:
	.cfi_startproc
	.cfi_undefined	x30
	hint	#36		/* bti j */
	ldp	x0, x16, [sp]
	mov	x30, xzr
	br	x16
	.cfi_endproc
	.size	hd__arch_begin, .-hd__arch_begin
	.section .note.GNU-stack,"",%progbits
