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

/* As on x86-64: calls the function whose address is on the stack above its argument, as if the code at the address two words further up had
 * called it. */
	.globl	hd__arch_call
	.hidden	hd__arch_call
	.type	hd__arch_call, %function
hd__arch_call:
	.cfi_startproc
	.cfi_def_cfa	sp, 32
	.cfi_offset	x30, -8
	hint	#36		/* bti j */
	ldp	x0, x16, [sp]
	blr	x16
	brk	#1
	.cfi_endproc
	.size	hd__arch_call, .-hd__arch_call
	.section .note.GNU-stack,"",%progbits
