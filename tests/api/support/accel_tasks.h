/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tasks of SPDK's accel module as WQEs: one task is several requests of at most ACCEL_SGES pieces, and its last WQE is the signalled one.
 * None rings the doorbell.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_ACCEL_TASKS_H
#define SOFTHCA_TESTS_API_SUPPORT_ACCEL_TASKS_H

#include "support/accel.h"

/* A list of pieces that is consumed from the front. */
struct accel_list {
	const struct ibv_sge *sges;
	size_t count;
	uint32_t offset; /* bytes consumed of the first piece */
};

/** Takes @bytes from @list as at most ACCEL_SGES pieces; returns their number. */
size_t accel_take(struct accel_list *list, uint32_t bytes, struct ibv_sge *pieces);
uint32_t accel_bytes(const struct ibv_sge *sges, size_t count);

/** Cuts @bytes of @side at @offset into @count pieces of nearly one size. */
void accel_cut(const struct side *side, size_t offset, uint32_t bytes, size_t count, struct ibv_sge *sges);

/** A copy: one WRITE for each piece of the destination, with its lkey as the rkey. */
void accel_copy(struct accel_queue *queue, uint64_t task, const struct ibv_sge *from, size_t from_count,
		const struct ibv_sge *to, size_t to_count);

/**
 * CRC-32C of @from with a copy to @to, which may be @from itself. If the pieces need more than one request, @to has as many pieces as
 * @from, of the same sizes. Uses ceil(@from_count / ACCEL_SGES) of @keys. @crc: place of the result. @ones: initial register.
 */
void accel_crc(struct accel_queue *queue, uint64_t task, const struct accel_key *keys, uint32_t psv, bool ones,
	       const struct ibv_sge *from, size_t from_count, const struct ibv_sge *to, size_t to_count,
	       struct ibv_sge crc);

/**
 * Encrypts or decrypts @bytes of @from into @to, @each bytes per request. First come the UMRs of all requests, then the READs, of which
 * the first has a small fence. Uses one of @keys for each request.
 */
void accel_crypt(struct accel_queue *queue, uint64_t task, const struct accel_key *keys,
		 const struct accel_cipher *cipher, struct accel_list from, struct accel_list to, uint32_t bytes,
		 uint32_t each);

#endif
