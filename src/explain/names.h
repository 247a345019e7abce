/* SPDX-License-Identifier: BSD-2-Clause */
/* Names for explanations. Constant data; any thread. */
#ifndef SOFTHCA_EXPLAIN_NAMES_H
#define SOFTHCA_EXPLAIN_NAMES_H

#include <stdint.h>
#include <infiniband/verbs.h>

struct bit_name {
	uint64_t bit;
	const char *name;
};

/* A NULL name ends a list. */
extern const struct bit_name access_names[]; /* enum ibv_access_flags */
extern const struct bit_name rights_names[]; /* enum key_rights */
extern const struct bit_name attr_names[];   /* enum ibv_qp_attr_mask */

/** "RESET", "INIT", … */
const char *qp_state_name(unsigned int state);
/** "RC", "UC", … */
const char *qp_type_name(unsigned int type);
/** "memory region", …: enum key_kind. */
const char *key_kind_name(unsigned int kind);
/** "T10-DIF CRC", …: enum guard_type. */
const char *guard_name(unsigned int type);
/** "REM_ACCESS_ERR", …: mlx5-formats 3.4. */
const char *syndrome_name(uint8_t syndrome);
/** IBV_WC_SUCCESS for 0. */
enum ibv_wc_status syndrome_status(uint8_t syndrome);
/** 0 for IBV_WC_SUCCESS and statuses without a syndrome. */
uint8_t syndrome_of_status(uint32_t status);

#endif
