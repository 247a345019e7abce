/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRCs by ISA-L: on x86 CRC32C for CPUs without 64-byte vectors, because its mix of CRC32 instructions and
 * multiplications is faster than guard_clmul.c; on other CPUs all that ISA-L has.
 */
#include "block/guard_kernels.h"

#include <isa-l/crc.h>
#include <string.h>

/* Copied pieces stay in the L1 cache until their CRC has been computed. */
enum { PIECE = 2048 };

static uint64_t isal_update(enum guard_type type, uint64_t running, const uint8_t *from, size_t bytes)
{
	switch (type) {
	case GUARD_T10_CRC:
		return (uint64_t)crc16_t10dif((uint16_t)(running >> 48), from, bytes) << 48;
	case GUARD_CRC32:
		/* crc32_ieee() complements the register before and after. */
		return (uint64_t)~crc32_ieee(~(uint32_t)(running >> 32), from, bytes) << 32;
	default:
		return crc32_iscsi((unsigned char *)from, (int)bytes, (unsigned int)running);
	}
}

static uint64_t isal_copy(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from, size_t bytes)
{
	while (bytes) {
		size_t piece = bytes < PIECE ? bytes : PIECE;

		if (to)
			to = (uint8_t *)memcpy(to, from, piece) + piece;
		running = isal_update(type, running, from, piece);
		from += piece;
		bytes -= piece;
	}
	return running;
}

const struct guard_kernel guard_kernel_isal = {
	.name = "isa-l",
#ifdef __x86_64__
	.needs = CPU_SSE4_2 | CPU_PCLMUL,
	.types = 1u << GUARD_CRC32C,
#else
	.needs = CPU_ANY, /* ISA-L chooses by itself */
	.types = 1u << GUARD_T10_CRC | 1u << GUARD_CRC32 | 1u << GUARD_CRC32C,
#endif
	.copy = isal_copy,
};
