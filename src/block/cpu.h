/* SPDX-License-Identifier: BSD-2-Clause */
/* Instructions of the CPU that guard and cipher kernels need. */
#ifndef SOFTHCA_BLOCK_CPU_H
#define SOFTHCA_BLOCK_CPU_H

#include <stdbool.h>
#include <stdint.h>

/* FEATURE(NAME, name): of this architecture, with gcc's name. */
#if defined(__x86_64__)
#define CPU_FEATURES(FEATURE)                                                                                          \
	FEATURE(SSE4_1, "sse4.1")                                                                                      \
	FEATURE(SSE4_2, "sse4.2")                                                                                      \
	FEATURE(PCLMUL, "pclmul")                                                                                      \
	FEATURE(AES, "aes")                                                                                            \
	FEATURE(AVX2, "avx2")                                                                                          \
	FEATURE(AVX512F, "avx512f")                                                                                    \
	FEATURE(AVX512BW, "avx512bw")                                                                                  \
	FEATURE(AVX512VL, "avx512vl")                                                                                  \
	FEATURE(AVX512DQ, "avx512dq")                                                                                  \
	FEATURE(AVX512VBMI, "avx512vbmi")                                                                              \
	FEATURE(VPCLMULQDQ, "vpclmulqdq")                                                                              \
	FEATURE(GFNI, "gfni")                                                                                          \
	FEATURE(VAES, "vaes")
#elif defined(__aarch64__)
#define CPU_FEATURES(FEATURE) FEATURE(PMULL, "pmull")
#else
#define CPU_FEATURES(FEATURE)
#endif

enum cpu_feature_number {
#define FEATURE(NAME, name) CPU_NUMBER_##NAME,
	CPU_FEATURES(FEATURE)
#undef FEATURE
		CPU_FEATURE_COUNT
};

enum cpu_feature {
	CPU_ANY = 0,
#define FEATURE(NAME, name) CPU_##NAME = 1 << CPU_NUMBER_##NAME,
	CPU_FEATURES(FEATURE)
#undef FEATURE
};

/** Returns bits of enum cpu_feature. Any thread may call. */
uint32_t cpu_features(void);

static inline bool cpu_has(uint32_t needs)
{
	return !(needs & ~cpu_features());
}

#endif
