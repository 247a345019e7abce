/* SPDX-License-Identifier: BSD-2-Clause */
/* See cpu.h. */
#include "block/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#define DETECTED (UINT32_C(1) << 31)

#if defined(__x86_64__)
/* __builtin_cpu_supports() of gcc 12 and clang 14 does not know VAES; the registers are those of AVX-512. */
static bool has_vaes(void)
{
	unsigned int a, b, c, d;

	return __builtin_cpu_supports("avx512f") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & bit_VAES;
}

static uint32_t features_detect(void)
{
	uint32_t features = has_vaes() ? CPU_VAES : 0;

#define DETECT(NAME, name) features |= __builtin_cpu_supports(name) ? CPU_##NAME : 0;
	DETECT(SSE4_1, "sse4.1")
	DETECT(SSE4_2, "sse4.2")
	DETECT(PCLMUL, "pclmul")
	DETECT(AES, "aes")
	DETECT(AVX2, "avx2")
	DETECT(AVX512F, "avx512f")
	DETECT(AVX512BW, "avx512bw")
	DETECT(AVX512VL, "avx512vl")
	DETECT(AVX512DQ, "avx512dq")
	DETECT(AVX512VBMI, "avx512vbmi")
	DETECT(VPCLMULQDQ, "vpclmulqdq")
	DETECT(GFNI, "gfni")
#undef DETECT
	return features;
}
#elif defined(__aarch64__)
static uint32_t features_detect(void)
{
	return getauxval(AT_HWCAP) & HWCAP_PMULL ? CPU_PMULL : 0;
}
#else
static uint32_t features_detect(void)
{
	return 0;
}
#endif

uint32_t cpu_features(void)
{
	static uint32_t known; /* atomic; CPUID takes long in a virtual machine */
	uint32_t features = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (!features) {
		features = features_detect() | DETECTED;
		__atomic_store_n(&known, features, __ATOMIC_RELAXED);
	}
	return features & ~DETECTED;
}
