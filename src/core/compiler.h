/* SPDX-License-Identifier: BSD-2-Clause */
/* Hints for the compiler about common and rare cases, and for the processor about loops that wait. */
#ifndef SOFTHCA_CORE_COMPILER_H
#define SOFTHCA_CORE_COMPILER_H

#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

/*
 * Attribute of a `static inline` function that is compiled into each of its callers. If a caller passes constants, such
 * as the properties of a transport, tests of these disappear, so one source serves the common case and all others.
 */
#define SPECIALISED __attribute__((always_inline))

/* Attribute of a function for refusals and other rare cases, which is never inlined into its callers. */
#define RARE __attribute__((cold, noinline))

/*
 * Copies *@value to *@place and evaluates to @place. Out-of-line callees get the copy, so the address of @value never
 * escapes and it can stay in registers.
 */
#define SPILL(place, value) (*(place) = *(value), (place))

/*
 * Evaluates to @pointer and hides from the compiler how it was computed. The compiler then keeps this pointer in a
 * register, instead of its operands.
 */
#define OPAQUE(pointer)                                                                                                \
	({                                                                                                             \
		__typeof__(pointer) opaque_pointer = (pointer);                                                        \
		__asm__("" : "+r"(opaque_pointer));                                                                    \
		opaque_pointer;                                                                                        \
	})

/** Pauses between two iterations of a loop that waits, which leaves the core to its other hardware thread. */
static inline void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
