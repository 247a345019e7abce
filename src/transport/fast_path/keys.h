/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path of messages between two queue pairs of this process that fast_path.h does not handle: the memory of one side is
 * not contiguous (keys with layouts or signatures, several segments), or the opcode is less common. It calls the same steps of
 * requester and responder one after the other, but their streams are in memory of the thread.
 */
#ifndef SOFTHCA_TRANSPORT_FAST_PATH_KEYS_H
#define SOFTHCA_TRANSPORT_FAST_PATH_KEYS_H

struct hca_qp;

/**
 * Executes and completes the next posted WQE of @qp. Returns the bytes copied, or -1 to fall back, in which case
 * nothing has changed. The lock of @qp is held.
 */
int fast_path_through_keys(struct hca_qp *qp);

#endif
