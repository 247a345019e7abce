/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a send WQE in host order (mlx5-formats 1). The program can write the ring: assume nothing about them. */
#ifndef SOFTHCA_FORMAT_WQE_H
#define SOFTHCA_FORMAT_WQE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/mlx5dv.h>

#include "format/opcode.h"
#include "format/wqe_codes.h"

enum wqe_class {
	WQE_CLASS_UNKNOWN,
	WQE_CLASS_NOP,
	WQE_CLASS_UMR,
	WQE_CLASS_SEND,
	WQE_CLASS_WRITE,
	WQE_CLASS_READ,
	WQE_CLASS_ATOMIC,
	WQE_CLASS_ATOMIC_WRITE,
	WQE_CLASS_SET_PSV,
	WQE_CLASS_MMO,
	WQE_CLASS_DUMP,
	WQE_CLASS_LATER,
	WQE_CLASS_REFUSED,
};

/** Returns true if requests of @class need a responder resource of the peer. */
static inline bool wqe_class_is_answered(uint8_t class)
{
	return class == WQE_CLASS_READ || class == WQE_CLASS_ATOMIC || class == WQE_CLASS_ATOMIC_WRITE;
}

enum wqe_transport {
	WQE_RC = 1 << 0,
	WQE_UC = 1 << 1,
	WQE_UD = 1 << 2,
	WQE_XRC = 1 << 3,
	WQE_DC = 1 << 4,
};

struct wqe_opcode {
	const char *name;   /* NULL: no such opcode */
	uint8_t class;      /* enum wqe_class */
	uint8_t message;    /* enum message */
	uint8_t transports; /* enum wqe_transport */
};

extern const struct wqe_opcode wqe_opcodes[256];

/* fm_ce_se (mlx5-formats 1.3). */
#define WQE_FENCE(fm_ce_se) ((fm_ce_se) >> 5)
#define WQE_COMPLETION(fm_ce_se) ((fm_ce_se) >> 2 & 3)
enum wqe_completion { WQE_CQE_ON_ERROR, WQE_CQE_ON_FIRST_ERROR, WQE_CQE_ALWAYS, WQE_CQE_AND_EVENT };
/* Modes that wait for outstanding READs and atomics: fence (2), strong (3), small fence + fence (4). */
#define WQE_FENCE_WAITS(mode) ((mode) >= 2)

/* Parsed up to the data segments. */
struct wqe {
	const uint8_t *bytes; /* contiguous: in the ring, or a copy of a WQE that wraps around */
	uint32_t size;        /* a multiple of 16, at least 16 */
	uint16_t index;       /* index of the first block, as in CQEs */
	uint8_t opcode, opmod, fm_ce_se;
	uint16_t stream; /* stream of a DCI */
	__be32 imm;
	uint32_t blocks; /* number of 64-byte blocks */
	uint32_t data;   /* offset of the first data segment */
	/* raddr segment */
	uint64_t remote_address;
	uint32_t rkey;
	/* atomic segment; masks and width as in struct packet */
	uint64_t swap_add, compare, swap_mask, compare_mask;
	uint8_t operand_bytes;
	/* datagram segment */
	struct mlx5_wqe_av av;
	/* XRC segment */
	uint32_t xrc_srqn;
};

static inline bool wqe_is_masked_atomic(const struct wqe *wqe)
{
	return wqe->opcode == MLX5_OPCODE_ATOMIC_MASKED_CS || wqe->opcode == MLX5_OPCODE_ATOMIC_MASKED_FA;
}

#endif
