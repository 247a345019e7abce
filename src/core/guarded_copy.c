/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies that survive a fault. */
#include "core/guarded_copy.h"

#include <stdint.h>
#include <ucontext.h>

bool softhca_guarded_copy(void *to, const void *from, size_t size);
extern const char softhca_guarded_copy_faulted[];

/*
 * Not in C, because all instructions that may fault must lie between two known addresses, and a fault must leave no
 * state behind: the function has no frame and changes only registers that belong to the caller.
 */
#if defined(__x86_64__)

__asm__(".pushsection .text.softhca_guarded_copy, \"ax\", @progbits\n\t"
	".hidden softhca_guarded_copy\n\t"
	".globl softhca_guarded_copy\n\t"
	".type softhca_guarded_copy, @function\n"
	"softhca_guarded_copy:\n\t"
	".cfi_startproc\n"
	"1:\n\t"
	"subq $8, %rdx\n\t"
	"jb 2f\n\t"
	"movq (%rsi), %rax\n\t"
	"movq %rax, (%rdi)\n\t"
	"addq $8, %rsi\n\t"
	"addq $8, %rdi\n\t"
	"jmp 1b\n"
	"2:\n\t" /* rdx: the rest minus 8, with the low three bits of the rest */
	"testb $4, %dl\n\t"
	"jz 3f\n\t"
	"movl (%rsi), %eax\n\t"
	"movl %eax, (%rdi)\n\t"
	"addq $4, %rsi\n\t"
	"addq $4, %rdi\n"
	"3:\n\t"
	"testb $2, %dl\n\t"
	"jz 4f\n\t"
	"movzwl (%rsi), %eax\n\t"
	"movw %ax, (%rdi)\n\t"
	"addq $2, %rsi\n\t"
	"addq $2, %rdi\n"
	"4:\n\t"
	"testb $1, %dl\n\t"
	"jz 5f\n\t"
	"movzbl (%rsi), %eax\n\t"
	"movb %al, (%rdi)\n"
	"5:\n\t"
	"movl $1, %eax\n\t"
	"ret\n\t"
	".hidden softhca_guarded_copy_faulted\n\t"
	".globl softhca_guarded_copy_faulted\n"
	"softhca_guarded_copy_faulted:\n\t"
	"xorl %eax, %eax\n\t"
	"ret\n\t"
	".cfi_endproc\n\t"
	".size softhca_guarded_copy, . - softhca_guarded_copy\n\t"
	".popsection");

#elif defined(__aarch64__)

/* Barriers give the order that x86-64 has: each word before the next, and all of them between the caller's accesses. */
__asm__(".pushsection .text.softhca_guarded_copy, \"ax\", @progbits\n\t"
	".balign 4\n\t"
	".hidden softhca_guarded_copy\n\t"
	".globl softhca_guarded_copy\n\t"
	".type softhca_guarded_copy, @function\n"
	"softhca_guarded_copy:\n\t"
	".cfi_startproc\n"
	"1:\n\t"
	"dmb ish\n\t"
	"subs x2, x2, #8\n\t"
	"b.lo 2f\n\t"
	"ldr x3, [x1], #8\n\t"
	"str x3, [x0], #8\n\t"
	"b 1b\n"
	"2:\n\t" /* x2: the rest minus 8, with the low three bits of the rest */
	"tbz w2, #2, 3f\n\t"
	"ldr w3, [x1], #4\n\t"
	"str w3, [x0], #4\n\t"
	"dmb ish\n"
	"3:\n\t"
	"tbz w2, #1, 4f\n\t"
	"ldrh w3, [x1], #2\n\t"
	"strh w3, [x0], #2\n\t"
	"dmb ish\n"
	"4:\n\t"
	"tbz w2, #0, 5f\n\t"
	"ldrb w3, [x1]\n\t"
	"strb w3, [x0]\n\t"
	"dmb ish\n"
	"5:\n\t"
	"mov w0, #1\n\t"
	"ret\n\t"
	".hidden softhca_guarded_copy_faulted\n\t"
	".globl softhca_guarded_copy_faulted\n"
	"softhca_guarded_copy_faulted:\n\t"
	"mov w0, #0\n\t"
	"ret\n\t"
	".cfi_endproc\n\t"
	".size softhca_guarded_copy, . - softhca_guarded_copy\n\t"
	".popsection");

#endif

#if defined(__x86_64__) || defined(__aarch64__)

bool guarded_copy_works(void)
{
	return true;
}

bool guarded_copy(void *to, const void *from, size_t size)
{
	return softhca_guarded_copy(to, from, size);
}

bool guarded_copy_end(void *context)
{
	mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
	uintptr_t begin = (uintptr_t)softhca_guarded_copy, end = (uintptr_t)softhca_guarded_copy_faulted;
#ifdef __x86_64__
	greg_t *instruction = &machine->gregs[REG_RIP];
#else
	__typeof__(machine->pc) *instruction = &machine->pc;
#endif

	if ((uintptr_t)*instruction - begin >= end - begin)
		return false;
	*instruction = (__typeof__(*instruction))end;
	return true;
}

#else

bool guarded_copy_works(void)
{
	return false;
}

bool guarded_copy(void *to, const void *from, size_t size)
{
	(void)to;
	(void)from;
	return !size;
}

bool guarded_copy_end(void *context)
{
	(void)context;
	return false;
}

#endif
