/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path for what fast_path.h does not handle: memory that is not contiguous (keys with layouts or signatures,
 * several segments), or a less common opcode.
 */
#ifndef SOFTHCA_TRANSPORT_FAST_PATH_KEYS_H
#define SOFTHCA_TRANSPORT_FAST_PATH_KEYS_H

struct hca_qp;

/**
 * Executes and completes the next posted WQE of @qp. Returns the bytes copied, or -1 to fall back, with nothing
 * changed. The lock of @qp is held.
 */
int fast_path_through_keys(struct hca_qp *qp);

#endif
