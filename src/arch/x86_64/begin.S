/* arch/x86_64/begin.S - the first instructions of a process: its argument and its function are on its stack. */
	.text
	.globl	hd__arch_begin
	.hidden	hd__arch_begin
	.type	hd__arch_begin, @function
hd__arch_begin:
	.cfi_startproc
	.cfi_undefined	rip
	endbr64
	movq	(%rsp), %rdi	/* not popped: the next process's go to the same place while this one is still leaving */
	movq	8(%rsp), %rax
	callq	*%rax
	ud2
	.cfi_endproc
	.size	hd__arch_begin, .-hd__arch_begin
	.section .note.GNU-stack,"",@progbits
