/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a key of each kind of region lets through: addresses of ibv_reg_mr_iova(3) and zero-based regions,
 * null regions, device memory, on-demand regions, regions that were changed by ibv_rereg_mr(3) or are gone.
 * Two RC QPs, WRITE and READ.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "mlx5dv_pair.h"

#define PAGE 4096
#define LW IBV_ACCESS_LOCAL_WRITE
#define RW IBV_ACCESS_REMOTE_WRITE
#define RR IBV_ACCESS_REMOTE_READ
#define ALL (LW | RW | RR | IBV_ACCESS_REMOTE_ATOMIC)

static struct pair pair;
static char *here, *there;   /* four pages each, one unmapped page behind */
static struct ibv_mr *plain; /* all of here */

static char *map_pages(void)
{
	char *pages = mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(munmap(pages + 4 * PAGE, PAGE), 0);
	return pages;
}

static int setup(void **state)
{
	(void)state;
	pair_open(&pair, 0, 0);
	here = map_pages();
	there = map_pages();
	plain = ibv_reg_mr(pair.pd, here, 4 * PAGE, ALL);
	assert_non_null(plain);
	for (int i = 0; i < 4 * PAGE; i++)
		here[i] = (char)(i * 7 + 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(ibv_dereg_mr(plain), 0);
	munmap(here, 4 * PAGE);
	munmap(there, 4 * PAGE);
	pair_close(&pair);
	return 0;
}

/* Both QPs back from the error state, with nothing left in their CQ. */
static void recover(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_modify_qp(pair.qp[i], &attr, IBV_QP_STATE), 0);
	for (int i = 0; i < 2; i++)
		pair_to_init(&pair, i);
	for (int i = 0; i < 2; i++)
		pair_to_rts(&pair, i);
}

/* One request of QP 0 over a single SGE; its status. */
static enum ibv_wc_status request(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t length, uint32_t lkey,
				  uint64_t remote, uint32_t rkey)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};
	struct ibv_send_wr wr = {.wr_id = 1,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = remote;
	wr.wr.rdma.rkey = rkey;
	assert_int_equal(ibv_post_send(pair.qp[0], &wr, &bad), 0);
	wc = pair_poll(&pair);
	if (wc.status != IBV_WC_SUCCESS)
		recover();
	return wc.status;
}

/* WRITE of the first @length bytes of `here` to (@remote, @rkey). */
static enum ibv_wc_status write_to(uint64_t remote, uint32_t length, uint32_t rkey)
{
	return request(IBV_WR_RDMA_WRITE, (uintptr_t)here, length, plain->lkey, remote, rkey);
}

/* READ of what a test wants from the second page of `here` into (@addr, @lkey). */
static enum ibv_wc_status read_into(uint64_t addr, uint32_t length, uint32_t lkey)
{
	return request(IBV_WR_RDMA_READ, addr, length, lkey, (uintptr_t)here + PAGE, plain->rkey);
}

static void addresses_are_those_of_the_region(void **state)
{
	static const uint64_t starts[] = {0, 1, 0x1000, 0xdeadbeef12345678, UINT64_MAX - 99};

	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct ibv_mr *mr = ibv_reg_mr_iova(pair.pd, there + 8, 100, starts[i], ALL);

		assert_non_null(mr);
		memset(there, 0, PAGE);
		assert_int_equal(write_to(starts[i], 100, mr->rkey), IBV_WC_SUCCESS);
		assert_memory_equal(there + 8, here, 100);
		assert_int_equal(there[7] | there[108], 0);
		memset(there, 0, PAGE);
		assert_int_equal(write_to(starts[i] + 99, 1, mr->rkey), IBV_WC_SUCCESS);
		assert_int_equal(there[107], here[0]);
		assert_int_equal(read_into(starts[i] + 50, 50, mr->lkey), IBV_WC_SUCCESS);
		assert_memory_equal(there + 58, here + PAGE, 50);
		memset(there, 0, PAGE);
		/* One byte in front, one behind, and the address in memory. */
		assert_int_equal(write_to(starts[i] - 1, 2, mr->rkey), IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(write_to(starts[i] + 99, 2, mr->rkey), IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(write_to(starts[i] + 100, 1, mr->rkey), IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(write_to((uintptr_t)there + 8, 1, mr->rkey), IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(read_into(starts[i] + 99, 2, mr->lkey), IBV_WC_LOC_PROT_ERR);
		for (int k = 0; k < PAGE; k++)
			assert_int_equal(there[k], 0);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
}

static void zero_based_region(void **state)
{
	struct ibv_mr *mr = ibv_reg_mr(pair.pd, there + 24, 64, ALL | IBV_ACCESS_ZERO_BASED);

	(void)state;
	assert_non_null(mr);
	assert_ptr_equal(mr->addr, there + 24);
	assert_int_equal(write_to(60, 4, mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(there + 84, here, 4);
	assert_int_equal(write_to((uintptr_t)there + 24, 4, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void rights_of_a_region(void **state)
{
	struct ibv_mr *mr;

	(void)state;
	mr = ibv_reg_mr(pair.pd, there, PAGE, LW | RR);
	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(request(IBV_WR_RDMA_READ, (uintptr_t)here, 4, plain->lkey, (uintptr_t)there,
				 mr->rkey),
			 IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr(pair.pd, there, PAGE, LW | RW);
	assert_int_equal(request(IBV_WR_RDMA_READ, (uintptr_t)here, 4, plain->lkey, (uintptr_t)there,
				 mr->rkey),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr(pair.pd, there, PAGE, 0);
	assert_int_equal(read_into((uintptr_t)there, 4, mr->lkey), IBV_WC_LOC_PROT_ERR);
	/* "Local read access is always enabled" */
	assert_int_equal(request(IBV_WR_RDMA_WRITE, (uintptr_t)there, 4, mr->lkey, (uintptr_t)here,
				 plain->rkey),
			 IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void region_that_is_gone(void **state)
{
	struct ibv_mr *mr = ibv_reg_mr(pair.pd, there, PAGE, ALL);
	uint32_t key = mr->lkey;

	(void)state;
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(write_to((uintptr_t)there, 4, key), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(read_into((uintptr_t)there, 4, key), IBV_WC_LOC_PROT_ERR);
}

/*
 * ibv_alloc_null_mr(3): "discards all data written to it, and always returns 0 on read"; "only the lkey is
 * valid".
 */
static void null_region(void **state)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(pair.pd);

	(void)state;
	memset(there, 0x5a, PAGE);
	assert_int_equal(request(IBV_WR_RDMA_WRITE, 0x123456, PAGE, mr->lkey, (uintptr_t)here, plain->rkey),
			 IBV_WC_SUCCESS);
	for (int i = 0; i < PAGE; i++)
		assert_int_equal(here[i], 0);
	assert_int_equal(read_into(0, PAGE, mr->lkey), IBV_WC_SUCCESS);
	assert_int_equal(read_into(UINT64_MAX - PAGE, PAGE, mr->lkey), IBV_WC_SUCCESS);
	assert_int_equal(write_to(0, 8, mr->lkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void device_memory(void **state)
{
	struct ibv_alloc_dm_attr attr = {.length = 256};
	struct ibv_dm *dm = ibv_alloc_dm(pair.context, &attr);
	struct ibv_mr *mr = ibv_reg_dm_mr(pair.pd, dm, 64, 128, ALL | IBV_ACCESS_ZERO_BASED);
	char bytes[256];

	(void)state;
	assert_non_null(mr);
	assert_int_equal(write_to(0, 128, mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_memcpy_from_dm(bytes, dm, 0, 256), 0);
	assert_memory_equal(bytes + 64, here, 128);
	for (int i = 0; i < 64; i++)
		assert_int_equal(bytes[i] | bytes[192 + i], 0);
	assert_int_equal(write_to(1, 128, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(read_into(3, 5, mr->lkey), IBV_WC_SUCCESS); /* no alignment on the wire */
	assert_int_equal(ibv_memcpy_from_dm(bytes, dm, 64, 12), 0);
	assert_memory_equal(bytes + 3, here + PAGE, 5);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void implicit_on_demand_region(void **state)
{
	struct ibv_mr *mr = ibv_reg_mr(pair.pd, NULL, SIZE_MAX, ALL | IBV_ACCESS_ON_DEMAND);
	char on_stack[64];

	(void)state;
	assert_non_null(mr);
	assert_int_equal(write_to((uintptr_t)on_stack, sizeof(on_stack), mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(on_stack, here, sizeof(on_stack));
	assert_int_equal(read_into((uintptr_t)there + 5, 5, mr->lkey), IBV_WC_SUCCESS);
	assert_memory_equal(there + 5, here + PAGE, 5);
	/* Where nothing is mapped. */
	assert_int_equal(read_into((uintptr_t)there + 4 * PAGE - 1, 2, mr->lkey), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(write_to((uintptr_t)there + 4 * PAGE, 1, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(write_to(8, 1, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* Pages may come and go; they are looked for at each access. */
static void explicit_on_demand_region(void **state)
{
	struct ibv_mr *mr = ibv_reg_mr(pair.pd, there, 5 * PAGE, ALL | IBV_ACCESS_ON_DEMAND);

	(void)state;
	assert_non_null(mr);
	assert_int_equal(write_to((uintptr_t)there + 4 * PAGE - 2, 2, mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(write_to((uintptr_t)there + 4 * PAGE - 2, 3, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mprotect(there, PAGE, PROT_READ), 0);
	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mprotect(there, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(there, here, 4);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void changed_translation(void **state)
{
	struct ibv_mr *mr = ibv_reg_mr(pair.pd, there, PAGE, ALL);

	(void)state;
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, there + 2 * PAGE, PAGE, 0),
			 0);
	assert_int_equal(write_to((uintptr_t)there + 2 * PAGE, 16, mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(there + 2 * PAGE, here, 16);
	assert_int_equal(write_to((uintptr_t)there, 16, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	/* The memory it was over may go. */
	assert_int_equal(munmap(there, PAGE), 0);
	assert_int_equal(write_to((uintptr_t)there + 2 * PAGE, 16, mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void changed_domain_and_access(void **state)
{
	struct ibv_pd *domain = ibv_alloc_pd(pair.context);
	struct ibv_mr *mr = ibv_reg_mr(pair.pd, there, PAGE, LW);

	(void)state;
	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LW | RW), 0);
	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, domain, NULL, 0, 0), 0);
	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(read_into((uintptr_t)there, 4, mr->lkey), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pair.pd, NULL, 0, 0), 0);
	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_SUCCESS);
	/* A change that is refused leaves the region as it was. */
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL,
				      there + 4 * PAGE, PAGE, LW),
			 IBV_REREG_MR_ERR_CMD);
	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

/* A parent domain is the domain it was made over. */
static void keys_of_a_parent_domain(void **state)
{
	struct ibv_parent_domain_init_attr attr = {.pd = pair.pd};
	struct ibv_pd *domain = ibv_alloc_parent_domain(pair.context, &attr);
	struct ibv_mr *mr = ibv_reg_mr(domain, there, PAGE, ALL);

	(void)state;
	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(read_into((uintptr_t)there, 4, mr->lkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(addresses_are_those_of_the_region),
		TEST(zero_based_region),
		TEST(rights_of_a_region),
		TEST(region_that_is_gone),
		TEST(null_region),
		TEST(device_memory),
		TEST(implicit_on_demand_region),
		TEST(explicit_on_demand_region),
		TEST(changed_translation),
		TEST(changed_domain_and_access),
		TEST(keys_of_a_parent_domain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
