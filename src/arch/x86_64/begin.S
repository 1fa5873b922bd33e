/* arch/x86_64/begin.S - the first instructions of a process: its argument and its function are on its stack.
 *
 * The function is jumped to with a return address of 0, where every backtrace ends. A call that never returns would leave the
 * processor's predictor of returns out of step, for the returns that the next process makes. The two words are not
 * popped: the next process's go to the same place while this one is still leaving. */
	.text
	.globl	hd__arch_begin
	.hidden	hd__arch_begin
	.type	hd__arch_begin, @function
hd__arch_begin:
	.cfi_startproc
	.cfi_undefined	rip
	endbr64
	movq	(%rsp), %rdi
	movq	8(%rsp), %rax
	pushq	$0
	jmpq	*%rax
	.cfi_endproc
	.size	hd__arch_begin, .-hd__arch_begin

/* Calls the function whose address is on the stack above its argument, as if the code at the address two words further up had called it,
 * with the stack pointer above that address: see hd__arch_make_call. */
	.globl	hd__arch_call
	.hidden	hd__arch_call
	.type	hd__arch_call, @function
hd__arch_call:
	.cfi_startproc
	.cfi_def_cfa	rsp, 32
	endbr64
	movq	(%rsp), %rdi
	call	*8(%rsp)
	ud2
	.cfi_endproc
	.size	hd__arch_call, .-hd__arch_call
	.section .note.GNU-stack,"",@progbits
