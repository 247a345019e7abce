/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_alloc_buf(3), ibv_free_buf(3), ibv_reg_buf_mr(3), ibv_export_buf_dmabuf_fd(3), ibv_reg_mr_ex(3), as their manual pages of
 * rdma-core 65 describe them.
 */
#include "test_case.h"
#include "verbs_connect.h"

#include "abi/undeclared.h"

enum { BYTES = 3 * 4096 + 100, ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

/* struct ibv_mr_init_attr and its mask, member by member as verbs.h of rdma-core 65 declares them. */
enum { IOVA = 1 << 0, ADDR = 1 << 1, FD = 1 << 2, FD_OFFSET = 1 << 3, DMAH = 1 << 4, BUF = 1 << 5 };
struct init_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah;
	struct ibv_buf *buf;
};

static struct ibv_context *context;
static struct ibv_pd *pd, *other_pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static uint8_t *memory;
static struct ibv_buf *buf;

static void connect_to_itself(void)
{
	assert_int_equal(verbs_connect(qp, qp->qp_num, .qp_access_flags = ACCESS, .ah_attr.grh.sgid_index = 1,
				       .max_dest_rd_atomic = 1, .min_rnr_timer = 12, .timeout = 14, .max_rd_atomic = 1),
			 0);
}

static int setup(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	(void)state;
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	other_pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	assert_non_null(qp);
	connect_to_itself();
	memory = ibv_alloc_buf(pd, BYTES, &buf);
	return memory ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	ibv_free_buf(buf);
	return ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_dealloc_pd(other_pd) || ibv_dealloc_pd(pd) ||
	       ibv_close_device(context);
}

/* Writes 50 bytes from the region's start to @address by its rkey. */
static enum ibv_wc_status write_to(const struct ibv_mr *mr, const void *from, uint64_t address)
{
	struct ibv_sge sge = {.addr = (uintptr_t)from, .length = 50, .lkey = mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = address, .rkey = mr->rkey},
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	while (!ibv_poll_cq(cq, 1, &wc))
		;
	return wc.status;
}

TEST(buffer_of_whole_pages)
{
	int fd;

	assert_int_equal((uintptr_t)memory % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
	memset(memory, 1, BYTES);
	errno = 0;
	fd = ibv_export_buf_dmabuf_fd(buf);
	assert_int_equal(fd, -1);
	assert_int_equal(errno, ENODATA);
}

TEST(part_of_a_buffer)
{
	struct ibv_mr *mr = ibv_reg_buf_mr(pd, buf, memory + 100, BYTES - 100, ACCESS);

	assert_non_null(mr);
	assert_ptr_equal(mr->addr, memory + 100);
	assert_int_equal(mr->length, BYTES - 100);
	assert_ptr_equal(mr->pd, pd);
	memset(memory + 100, 7, 50);
	assert_int_equal(write_to(mr, memory + 100, (uintptr_t)memory + 5000), IBV_WC_SUCCESS);
	assert_memory_equal(memory + 5000, memory + 100, 50);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

TEST(refused_buffers)
{
	const struct {
		struct ibv_pd *pd;
		uint8_t *addr;
		size_t length;
	} wrong[] = {
		{other_pd, memory, 1},   {pd, memory - 1, 1},        {pd, memory, BYTES + 1},
		{pd, memory + BYTES, 1}, {pd, memory + 1, SIZE_MAX},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		errno = 0;
		assert_null(ibv_reg_buf_mr(wrong[i].pd, buf, wrong[i].addr, wrong[i].length, ACCESS));
		assert_int_equal(errno, EINVAL);
	}
}

static struct ibv_mr *register_by(struct init_attr attr)
{
	errno = 0;
	return ibv_reg_mr_ex(pd, (struct ibv_mr_init_attr *)&attr);
}

TEST(each_combination_of_fields)
{
	for (uint64_t fields = 0; fields < 128; fields++) {
		struct ibv_mr *mr = register_by((struct init_attr){.length = 4096,
								   .access = ACCESS,
								   .comp_mask = fields,
								   .addr = memory,
								   .iova = 0x1000,
								   .fd = -1,
								   .buf = buf});
		bool address = fields & ADDR, descriptor = fields & FD;

		if (mr) {
			/*
			 * Only addr is required, with iova and buf optional: neither dma-bufs nor DMA handles are
			 * supported.
			 */
			assert_int_equal(fields & ~(uint64_t)(IOVA | BUF), ADDR);
			assert_ptr_equal(mr->addr, memory);
			assert_int_equal(ibv_dereg_mr(mr), 0);
		} else if (fields >= 64 || address == descriptor || (address && fields & FD_OFFSET) ||
			   (fields & BUF && !address)) {
			assert_int_equal(errno, EINVAL);
		} else {
			assert_true(fields & (FD | DMAH));
			assert_int_equal(errno, EOPNOTSUPP);
		}
	}
}

TEST(region_with_another_address)
{
	struct ibv_mr *mr = register_by((struct init_attr){
		.length = 8192, .access = ACCESS, .comp_mask = ADDR | IOVA, .addr = memory, .iova = 0x7000});

	assert_non_null(mr);
	memset(memory, 9, 50);
	assert_int_equal(write_to(mr, (void *)0x7000, 0x7000 + 600), IBV_WC_SUCCESS);
	assert_memory_equal(memory + 600, memory, 50);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

int main(void)
{
	return run_cases(.group_setup = setup, .group_teardown = teardown);
}
