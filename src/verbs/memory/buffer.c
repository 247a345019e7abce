/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers are pages of the program, which owns them: a dma-buf contains no device memory. A buffer refers to its PD
 * without a reference. Any thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/memory/mr.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"

struct buffer {
	struct ibv_pd *pd;
	uint8_t *memory;
	size_t bytes;
};

/*
 * struct ibv_mr_init_attr of rdma-core 65, which older headers do not declare. comp_mask names the members in the
 * program's structure.
 */
struct mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask; /* enum field */
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah;
	struct buffer *buffer;
};

enum field {
	FIELD_IOVA = 1 << 0,
	FIELD_ADDR = 1 << 1,
	FIELD_FD = 1 << 2,
	FIELD_FD_OFFSET = 1 << 3,
	FIELD_DMAH = 1 << 4,
	FIELD_BUFFER = 1 << 5,
	ALL_FIELDS = 0x3f,
	FIELDS_OF_DMABUF = FIELD_FD | FIELD_FD_OFFSET,
};

void *softhca_ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **out)
{
	struct buffer *buffer;
	void *memory;
	int error;

	if (object_refused("ibv_alloc_buf", NULL, pd))
		return NULL;
	buffer = malloc(sizeof(*buffer));
	if (!buffer)
		return NULL;
	error = posix_memalign(&memory, (size_t)sysconf(_SC_PAGESIZE), size);
	if (error) {
		free(buffer);
		errno = error;
		return NULL;
	}
	*buffer = (struct buffer){.pd = pd, .memory = memory, .bytes = size};
	*out = (struct ibv_buf *)buffer;
	return memory;
}

void softhca_ibv_free_buf(struct ibv_buf *base)
{
	struct buffer *buffer = (struct buffer *)base;

	free(buffer->memory);
	free(buffer);
}

int softhca_ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	(void)buf;
	errno = ENODATA; /* ibv_alloc_buf(3): ENODATA "If buf is not backed by a DMA-buf" */
	return -1;
}

/* Returns 0 or an errno value. */
static int buffer_check(struct ibv_pd *pd, const char *call, const struct buffer *buffer, const void *addr,
			size_t length)
{
	uintptr_t offset = (uintptr_t)addr - (uintptr_t)buffer->memory;

	if (buffer->pd != pd)
		return REFUSE(hca_of_context(pd->context), call, EINVAL, RULE_BUF_DOMAIN, (uintptr_t)buffer->memory);
	if ((uintptr_t)addr < (uintptr_t)buffer->memory || offset > buffer->bytes || length > buffer->bytes - offset)
		return REFUSE(hca_of_context(pd->context), call, EINVAL, RULE_BUF_RANGE, (uintptr_t)addr, length,
			      (uintptr_t)buffer->memory, buffer->bytes);
	return 0;
}

static int mr_ex_check_fields(struct ibv_pd *pd, uint64_t fields)
{
	bool has_address = fields & FIELD_ADDR, has_descriptor = fields & FIELDS_OF_DMABUF;

	if (fields & ~(uint64_t)ALL_FIELDS || has_address == has_descriptor ||
	    (fields & FIELDS_OF_DMABUF) == FIELD_FD_OFFSET || (fields & FIELD_BUFFER && !has_address))
		return REFUSE(hca_of_context(pd->context), "ibv_reg_mr_ex", EINVAL, RULE_MR_FIELDS, fields);
	return 0;
}

struct ibv_mr *softhca_ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *base)
{
	const struct mr_init_attr *attr = (const struct mr_init_attr *)base;
	uint64_t fields = attr->comp_mask;
	int error;

	if (object_refused("ibv_reg_mr_ex", NULL, pd))
		return NULL;
	error = mr_ex_check_fields(pd, fields);
	/* The device supports neither dma-bufs nor handles of ibv_alloc_dmah(3). */
	if (!error && fields & (FIELDS_OF_DMABUF | FIELD_DMAH))
		error = softhca_not_supported("ibv_reg_mr_ex");
	if (!error && fields & FIELD_BUFFER)
		error = buffer_check(pd, "ibv_reg_mr_ex", attr->buffer, attr->addr, attr->length);
	if (error) {
		errno = error;
		return NULL;
	}
	return mr_register(pd, "ibv_reg_mr_ex", attr->addr, attr->length,
			   fields & FIELD_IOVA ? attr->iova : (uintptr_t)attr->addr, (unsigned int)attr->access);
}

struct ibv_mr *softhca_ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access)
{
	int error;

	if (object_refused("ibv_reg_buf_mr", NULL, pd))
		return NULL;
	error = buffer_check(pd, "ibv_reg_buf_mr", (const struct buffer *)buf, addr, length);
	if (error) {
		errno = error;
		return NULL;
	}
	return mr_register(pd, "ibv_reg_buf_mr", addr, length, (uintptr_t)addr, (unsigned int)access);
}
