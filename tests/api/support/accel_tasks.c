/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/accel_tasks.h"

size_t accel_take(struct accel_list *list, uint32_t bytes, struct ibv_sge *pieces)
{
	size_t count = 0;

	while (bytes) {
		const struct ibv_sge *sge = list->sges;
		uint32_t left = sge->length - list->offset, length = left < bytes ? left : bytes;

		assert_true(list->count && count < ACCEL_SGES);
		pieces[count++] =
			(struct ibv_sge){.addr = sge->addr + list->offset, .length = length, .lkey = sge->lkey};
		bytes -= length;
		list->offset += length;
		if (list->offset == sge->length) {
			list->sges++;
			list->count--;
			list->offset = 0;
		}
	}
	return count;
}

uint32_t accel_bytes(const struct ibv_sge *sges, size_t count)
{
	uint32_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += sges[i].length;
	return bytes;
}

void accel_cut(const struct side *side, size_t offset, uint32_t bytes, size_t count, struct ibv_sge *sges)
{
	uint32_t at = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t end = (uint32_t)((uint64_t)bytes * (i + 1) / count);

		sges[i] = side_sge(side, offset + at, end - at);
		at = end;
	}
}

void accel_copy(struct accel_queue *queue, uint64_t task, const struct ibv_sge *from, size_t from_count,
		const struct ibv_sge *to, size_t to_count)
{
	struct accel_list list = {.sges = from, .count = from_count};
	struct ibv_sge pieces[ACCEL_SGES];

	for (size_t i = 0; i < to_count; i++) {
		size_t count = accel_take(&list, to[i].length, pieces);

		assert_true(accel_put_rdma(queue, ACCEL_WRITE, 0, i + 1 == to_count ? task : 0, to[i].lkey, to[i].addr,
					   pieces, count));
	}
}

/* Writes the UMRs of a CRC over @count pieces: the first key begins the signature, the last one ends it. */
static size_t put_signatures(struct accel_queue *queue, const struct accel_key *keys, uint32_t psv, bool ones,
			     const struct ibv_sge *from, size_t count)
{
	size_t requests = (count + ACCEL_SGES - 1) / ACCEL_SGES;

	for (size_t i = 0; i < requests; i++) {
		size_t at = i * ACCEL_SGES, entries = i + 1 < requests ? ACCEL_SGES : count - at;
		struct accel_signature signature = {.psv = psv, .begins = !i, .ends = i + 1 == requests, .ones = ones};

		assert_true(accel_put_signature(queue, &keys[i], from + at, entries, &signature));
	}
	return requests;
}

void accel_crc(struct accel_queue *queue, uint64_t task, const struct accel_key *keys, uint32_t psv, bool ones,
	       const struct ibv_sge *from, size_t from_count, const struct ibv_sge *to, size_t to_count,
	       struct ibv_sge crc)
{
	size_t requests = put_signatures(queue, keys, psv, ones, from, from_count), last = (requests - 1) * ACCEL_SGES;
	bool single = requests == 1 && to_count < ACCEL_SGES;
	unsigned int fence = single ? ACCEL_STRONG_ORDER : ACCEL_SMALL_FENCE;
	uint32_t rkey = keys[requests - 1].number;
	struct ibv_sge pieces[ACCEL_SGES];

	assert_true(requests == 1 || to_count == from_count);
	for (size_t at = 0; at < last; at += ACCEL_SGES, fence = ACCEL_STRONG_ORDER)
		assert_true(accel_put_rdma(queue, ACCEL_READ, fence, 0, keys[at / ACCEL_SGES].number, 0, to + at,
					   ACCEL_SGES));
	memcpy(pieces, to + last, (to_count - last) * sizeof(*to));
	if (to_count - last < ACCEL_SGES) {
		pieces[to_count - last] = crc;
		assert_true(accel_put_rdma(queue, ACCEL_READ, fence, task, rkey, 0, pieces, to_count - last + 1));
		return;
	}
	/* The CRC does not fit in the last READ: one more READ of the same key reads it from after the data. */
	assert_true(accel_put_rdma(queue, ACCEL_READ, fence, 0, rkey, 0, pieces, ACCEL_SGES));
	assert_true(accel_put_rdma(queue, ACCEL_READ, ACCEL_STRONG_ORDER, task, rkey,
				   accel_bytes(from + last, from_count - last), &crc, 1));
}

void accel_crypt(struct accel_queue *queue, uint64_t task, const struct accel_key *keys,
		 const struct accel_cipher *cipher, struct accel_list from, struct accel_list to, uint32_t bytes,
		 uint32_t each)
{
	static const uint32_t unit[] = {0, 512, 520, 4096, 4160};
	struct accel_cipher part = *cipher;
	struct ibv_sge pieces[ACCEL_SGES];
	size_t count;

	for (uint32_t at = 0; at < bytes; at += each) {
		uint32_t length = bytes - at < each ? bytes - at : each;

		count = accel_take(&from, length, pieces);
		assert_true(accel_put_cipher(queue, 0, &keys[at / each], pieces, count, &part));
		part.lba += length / unit[cipher->selector];
	}
	for (uint32_t at = 0; at < bytes; at += each) {
		uint32_t length = bytes - at < each ? bytes - at : each;

		count = accel_take(&to, length, pieces);
		assert_true(accel_put_rdma(queue, ACCEL_READ, at ? 0 : ACCEL_SMALL_FENCE, at + each < bytes ? 0 : task,
					   keys[at / each].number, 0, pieces, count));
	}
}
