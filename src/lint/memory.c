/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checksums of the memory that requests read, at posting and when the completion is polled. process_vm_readv(2) reads
 * it, so unmapped memory causes no fault; where that call is forbidden, no memory is watched.
 */
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lint/state.h"

/* Bytes watched at the beginning and at the end of a longer piece. */
enum { WATCHED_BYTES = 8192, CHUNK = 4096 };

bool lint_memory_read(uint64_t address, void *out, size_t size)
{
	struct iovec local = {out, size}, remote = {(void *)(uintptr_t)address, size};

	/* The memory may belong to a posted receive. */
	if (page_guard_is_on())
		page_guard_open_memory(address, size);
	/* Sanitizers intercept the library's function and treat it as an access. */
	return syscall(SYS_process_vm_readv, getpid(), &local, 1UL, &remote, 1UL, 0UL) == (long)size;
}

static uint64_t sum_mix(uint64_t sum, uint64_t value)
{
	sum = (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return sum ^ sum >> 29;
}

/* Adds the bytes to @sum. Returns 0 if they cannot be read. */
static uint64_t sum_range(uint64_t sum, uint64_t address, uint32_t length)
{
	uint64_t chunk[CHUNK / sizeof(uint64_t)];

	while (length && sum) {
		uint32_t size = length < CHUNK ? length : CHUNK;

		chunk[(size - 1) / sizeof(uint64_t)] = 0;
		if (!lint_memory_read(address, chunk, size))
			return 0;
		for (uint32_t i = 0; i < (size + 7) / sizeof(uint64_t); i++)
			sum = sum_mix(sum, chunk[i]);
		address += size;
		length -= size;
		sum += !sum;
	}
	return sum;
}

static uint64_t sum_of(uint64_t address, uint32_t length)
{
	uint64_t sum;

	if (length <= 2 * WATCHED_BYTES)
		return sum_range(1, address, length);
	sum = sum_range(1, address, WATCHED_BYTES);
	return sum_range(sum, address + length - WATCHED_BYTES, WATCHED_BYTES);
}

/* Returns the address of @piece in the process, or 0 if no region with its key covers it. */
static uint64_t piece_memory(const struct lint_piece *piece)
{
	const struct user_mr *mr = lint_mr_find(piece->lkey);
	uint64_t offset;

	if (!mr || mr->imported || mr->kind == MR_NULL || mr->kind == MR_DEVICE_MEMORY)
		return 0;
	offset = piece->address - mr->start;
	if (offset > mr->base.length || piece->length > mr->base.length - offset)
		return 0;
	/* The device itself changes this memory. */
	if (piece->address < mr->lint_to && piece->address + piece->length > mr->lint_from)
		return 0;
	return (uintptr_t)mr->base.addr + offset;
}

void lint_memory_written(const struct ibv_sge *sge, int count)
{
	for (int i = 0; i < count; i++) {
		struct user_mr *mr = lint_mr_find(sge[i].lkey);

		if (!mr || !sge[i].length)
			continue;
		if (!mr->lint_to || sge[i].addr < mr->lint_from)
			mr->lint_from = sge[i].addr;
		if (sge[i].addr + sge[i].length > mr->lint_to)
			mr->lint_to = sge[i].addr + sge[i].length;
	}
}

static bool reads_memory(uint8_t opcode)
{
	switch (opcode) {
	case MLX5_OPCODE_SEND:
	case MLX5_OPCODE_SEND_IMM:
	case MLX5_OPCODE_SEND_INVAL:
	case MLX5_OPCODE_RDMA_WRITE:
	case MLX5_OPCODE_RDMA_WRITE_IMM:
	case WQE_OPCODE_ATOMIC_WRITE:
		return true;
	default:
		return false;
	}
}

void lint_memory_note(struct lint_send *send)
{
	for (uint32_t i = 0; i < send->pieces; i++) {
		struct lint_piece *piece = &send->piece[i];

		piece->memory = reads_memory(send->opcode) && piece->length ? piece_memory(piece) : 0;
		piece->sum = piece->memory ? sum_of(piece->memory, piece->length) : 0;
	}
}

static void check_piece(struct lint_qp *state, const struct lint_send *send, const struct lint_piece *piece)
{
	uint64_t now = sum_of(piece->memory, piece->length);

	if (!now)
		lint_warn_send(state, send, "ibv_poll_cq", RULE_BUFFER_FREED,
			       FIGURES(piece->address, piece->length, piece->lkey));
	else if (now != piece->sum)
		lint_warn_send(state, send, "ibv_poll_cq", RULE_BUFFER_CHANGED,
			       FIGURES(piece->address, piece->length, piece->lkey));
}

void lint_memory_check(struct lint_qp *state, const struct lint_send *send)
{
	for (uint32_t i = 0; i < send->pieces; i++)
		if (send->piece[i].sum)
			check_piece(state, send, &send->piece[i]);
}
