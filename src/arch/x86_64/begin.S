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
	.section .note.GNU-stack,"",@progbits
