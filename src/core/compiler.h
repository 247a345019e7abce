/* SPDX-License-Identifier: BSD-2-Clause */
/* Hints for the compiler and the processor, and fences. */
#ifndef SOFTHCA_CORE_COMPILER_H
#define SOFTHCA_CORE_COMPILER_H

#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

/*
 * For a `static inline` function: compiles it into each caller. Tests of constant arguments disappear, so one source
 * serves the common case and all others. AddressSanitizer instruments each copy, which takes long to compile, so its
 * builds leave the choice to the compiler (meson.build).
 */
#ifdef SOFTHCA_SPECIALISE_NOTHING
#define SPECIALISED
#else
#define SPECIALISED __attribute__((always_inline))
#endif

/* For refusals and other rare cases: never inlined. */
#define RARE __attribute__((cold, noinline))

/*
 * Copies *@value to *@place, yields @place: out-of-line callees get the copy, so the address of @value never escapes
 * and it can stay in registers.
 */
#define SPILL(place, value) (*(place) = *(value), (place))

/* Yields @pointer and hides how it was computed, so the compiler keeps it in a register instead of its operands. */
#define OPAQUE(pointer)                                                                                                \
	({                                                                                                             \
		__typeof__(pointer) opaque_pointer = (pointer);                                                        \
		__asm__("" : "+r"(opaque_pointer));                                                                    \
		opaque_pointer;                                                                                        \
	})

/** Pauses a loop that waits: leaves the core to its other hardware thread. */
static inline void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/*
 * Fences for processors that reorder more than x86-64. There the first two constrain only the compiler, and the third
 * is part of the exchange before it. ThreadSanitizer does not model fences, and gcc warns about them (-Wtsan).
 */
#if defined(__x86_64__) || defined(__SANITIZE_THREAD__)
#define PROCESSOR_FENCE(order) __atomic_signal_fence(__ATOMIC_SEQ_CST)
#else
#define PROCESSOR_FENCE(order) __atomic_thread_fence(order)
#endif

/** Orders all earlier accesses before all later stores. */
static inline void order_before_stores(void)
{
	PROCESSOR_FENCE(__ATOMIC_RELEASE);
}

/** Orders all earlier loads before all later accesses. */
static inline void order_after_loads(void)
{
	PROCESSOR_FENCE(__ATOMIC_ACQUIRE);
}

/**
 * Completes an __ATOMIC_SEQ_CST exchange or addition to a full barrier: on aarch64 a later load that is not
 * sequentially consistent may be performed before the store of the exchange.
 */
static inline void order_after_exchange(void)
{
#ifndef __x86_64__
	PROCESSOR_FENCE(__ATOMIC_SEQ_CST);
#endif
}

#endif
