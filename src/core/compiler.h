/* SPDX-License-Identifier: BSD-2-Clause */
/* What the compiler is told about the common case, and the processor about a loop that waits. */
#ifndef SOFTHCA_CORE_COMPILER_H
#define SOFTHCA_CORE_COMPILER_H

#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

/*
 * A function that is compiled into each of its callers. Where a caller passes constants (such as the properties of a
 * transport), the tests of these fall away; so one source serves the common case and all others.
 */
#define SPECIALISED static inline __attribute__((always_inline))

/* A refusal, or whatever else is rare: it is not compiled into its callers. */
#define RARE __attribute__((cold, noinline))

/*
 * A copy of *@value in *@place, for a function that is not compiled into its caller: so *@value itself has no address that others
 * know, and stays in registers.
 */
#define SPILL(place, value) (*(place) = *(value), (place))

/*
 * @pointer, from something of which the compiler cannot know that it was computed: it keeps this one in a register, and not what it was
 * computed from beside it.
 */
#define OPAQUE(pointer)                                                                                                \
	({                                                                                                             \
		__typeof__(pointer) opaque_pointer = (pointer);                                                        \
		__asm__("" : "+r"(opaque_pointer));                                                                    \
		opaque_pointer;                                                                                        \
	})

/** Between two looks of a loop that waits: the processor's other thread goes on meanwhile. */
static inline void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

#endif
