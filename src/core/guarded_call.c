/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls in restartable sequences. */
#include "core/guarded_call.h"

#include <errno.h>
#include <stddef.h>

/* Only glibc, from 2.35 on, registers a sequence area for each thread. */
#if (defined(__x86_64__) || defined(__aarch64__)) && __has_include(<sys/rseq.h>)
#include <sys/rseq.h>

static struct rseq *rseq_area(void)
{
	char *thread;

#ifdef __x86_64__
	__asm__("movq %%fs:0, %0" : "=r"(thread));
#else
	__asm__("mrs %0, tpidr_el0" : "=r"(thread));
#endif
	return (struct rseq *)(void *)(thread + __rseq_offset);
}

bool guarded_call_works(void)
{
	/* Registration failed: size 0. No support by the kernel: negative processor number. */
	return __rseq_size && (int32_t)__atomic_load_n(&rseq_area()->cpu_id, __ATOMIC_RELAXED) >= 0;
}

#ifdef __x86_64__
/* RSEQ_SIG: the kernel requires it before an abort handler; as an instruction it traps. */
#define SIGNATURE "0x53053053"

__attribute__((noinline)) long guarded_call(const uint64_t *word, uint64_t expected, long number,
					    const long arguments[5])
{
	__typeof__(&rseq_area()->rseq_cs) section = &rseq_area()->rseq_cs;
	long result = number;

	__asm__ volatile(".pushsection .data.rel.ro.softhca_rseq, \"aw\"\n\t"
			 ".balign 32\n"
			 "9:\n\t"
			 ".long 0, 0\n\t"
			 ".quad 1f, 2f - 1f, 3f\n\t"
			 ".popsection\n\t"
			 /* Not in register variables: calls inserted by sanitizers would not preserve them. */
			 "movq %[fourth], %%r10\n\t"
			 "movq %[fifth], %%r8\n\t"
			 "leaq 9b(%%rip), %%rcx\n\t"
			 "movq %%rcx, %[section]\n"
			 /* Start of the restartable sequence. */
			 "1:\n\t"
			 "cmpq %[expected], %[word]\n\t"
			 "jne 4f\n\t"
			 "syscall\n"
			 /* End of the restartable sequence. */
			 "2:\n\t"
			 "jmp 5f\n\t"
			 ".byte 0x0f, 0xb9, 0x3d\n\t"
			 ".long " SIGNATURE "\n"
			 "3:\n"
			 "4:\n\t"
			 "movq %[again], %[result]\n"
			 "5:\n\t"
			 /* The kernel must not find a pointer here after the library has been unloaded. */
			 "movq $0, %[section]"
			 : [result] "+a"(result), [section] "=m"(*section)
			 : [word] "m"(*word), [expected] "r"(expected), [again] "i"(-EAGAIN), "D"(arguments[0]),
			   "S"(arguments[1]), "d"(arguments[2]), [fourth] "r"(arguments[3]), [fifth] "r"(arguments[4])
			 : "rcx", "r8", "r10", "r11", "memory", "cc");
	return result;
}
#else
/* RSEQ_SIG of aarch64: BRK #0x45e0. */
#define SIGNATURE "0xd428bc00"

__attribute__((noinline)) long guarded_call(const uint64_t *word, uint64_t expected, long number,
					    const long arguments[5])
{
	__typeof__(&rseq_area()->rseq_cs) section = &rseq_area()->rseq_cs;
	long result;

	__asm__ volatile(".pushsection .data.rel.ro.softhca_rseq, \"aw\"\n\t"
			 ".balign 32\n"
			 "9:\n\t"
			 ".long 0, 0\n\t"
			 ".quad 1f, 2f - 1f, 3f\n\t"
			 ".popsection\n\t"
			 "ldp x0, x1, [%[arguments]]\n\t"
			 "ldp x2, x3, [%[arguments], #16]\n\t"
			 "ldr x4, [%[arguments], #32]\n\t"
			 "mov x8, %[number]\n\t"
			 "adrp x9, 9b\n\t"
			 "add x9, x9, :lo12:9b\n\t"
			 "str x9, %[section]\n"
			 /* Start of the restartable sequence. */
			 "1:\n\t"
			 "ldar x9, [%[word]]\n\t"
			 "cmp x9, %[expected]\n\t"
			 "b.ne 4f\n\t"
			 "svc #0\n"
			 /* End of the restartable sequence. */
			 "2:\n\t"
			 "b 5f\n\t"
			 ".inst " SIGNATURE "\n"
			 "3:\n"
			 "4:\n\t"
			 "mov x0, %[again]\n"
			 "5:\n\t"
			 /* As above. */
			 "str xzr, %[section]\n\t"
			 "mov %[result], x0"
			 : [result] "=&r"(result), [section] "=m"(*section)
			 : [word] "r"(word), [expected] "r"(expected), [again] "i"(-EAGAIN), [number] "r"(number),
			   [arguments] "r"(arguments)
			 : "x0", "x1", "x2", "x3", "x4", "x8", "x9", "memory", "cc");
	return result;
}
#endif

#else

bool guarded_call_works(void)
{
	return false;
}

long guarded_call(const uint64_t *word, uint64_t expected, long number, const long arguments[5])
{
	(void)word;
	(void)expected;
	(void)number;
	(void)arguments;
	return -EAGAIN;
}

#endif
