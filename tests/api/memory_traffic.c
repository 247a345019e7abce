/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access through the key of each kind of region: addresses of ibv_reg_mr_iova(3), zero-based regions, null regions,
 * device memory, on-demand regions, regions that were changed by ibv_rereg_mr(3) or deregistered. The server owns the
 * regions: the client writes to them and reads from them, the server reads into them.
 */
#include "support/program.h"

#include <sys/mman.h>

#include "kernel_has.h"

#define PAGE 4096
#define LW IBV_ACCESS_LOCAL_WRITE
#define RW IBV_ACCESS_REMOTE_WRITE
#define RR IBV_ACCESS_REMOTE_READ
#define ALL (LW | RW | RR | IBV_ACCESS_REMOTE_ATOMIC)

enum {
	WR_ID = 0x7af,
	RESULT = 3 * PAGE, /* where data arrives in the client's memory */
};

static uint8_t *there; /* four pages for the regions, and an inaccessible page after them */

static int set_up(void **state)
{
	int error = program_open(state);

	there = mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return error || there == MAP_FAILED || mprotect(there + 4 * PAGE, PAGE, PROT_NONE);
}

static int tear_down(void **state)
{
	munmap(there, 5 * PAGE);
	return program_close(state);
}

static struct ibv_mr *region(struct ibv_mr *mr)
{
	assert_non_null(mr);
	return mr;
}

/* Posts one request of @endpoint over a single SGE and returns its status. Creates a new pair after an error. */
static enum ibv_wc_status request(struct endpoint *endpoint, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t length,
				  uint32_t lkey, uint64_t remote, uint32_t rkey)
{
	struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};
	struct ibv_send_wr wr = rdma_wr(WR_ID, opcode, &sge, remote, rkey);
	struct ibv_wc wc;

	post_send(endpoint, &wr);
	wc = next_completion(endpoint);
	assert_int_equal(wc.wr_id, WR_ID);
	if (wc.status != IBV_WC_SUCCESS)
		pair_renew(&pair);
	return wc.status;
}

/* Writes the first @length bytes of the client's memory to (@remote, @rkey) of the server. */
static enum ibv_wc_status write_to(uint64_t remote, uint32_t length, uint32_t rkey)
{
	return request(&pair.client, IBV_WR_RDMA_WRITE, side_address(&client, 0), length, client.mr->lkey, remote,
		       rkey);
}

/* Reads the first @length bytes of the region's memory into the client's, by @rkey. */
static enum ibv_wc_status read_there(uint32_t length, uint32_t rkey)
{
	enum ibv_wc_status status = request(&pair.client, IBV_WR_RDMA_READ, side_address(&client, RESULT), length,
					    client.mr->lkey, (uintptr_t)there, rkey);

	if (status == IBV_WC_SUCCESS)
		memcpy(client.expected + RESULT, there, length);
	return status;
}

/* Reads the second page of the client's memory, or part of it, into (@addr, @lkey) of the server. */
static enum ibv_wc_status read_into(uint64_t addr, uint32_t length, uint32_t lkey)
{
	return request(&pair.server, IBV_WR_RDMA_READ, addr, length, lkey, side_address(&client, PAGE),
		       client.mr->rkey);
}

/* Writes (@addr, @lkey) of the server to the client. */
static enum ibv_wc_status write_out_of(uint64_t addr, uint32_t length, uint32_t lkey)
{
	return request(&pair.server, IBV_WR_RDMA_WRITE, addr, length, lkey, side_address(&client, RESULT),
		       client.mr->rkey);
}

TEST(addresses_are_those_of_the_region)
{
	static const uint64_t starts[] = {0, 1, 0x1000, 0xdeadbeef12345678, UINT64_MAX - 99};

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		struct ibv_mr *mr = ibv_reg_mr_iova(server.pd, there + 8, 100, starts[i], ALL);

		assert_non_null(mr);
		memset(there, 0, PAGE);
		assert_int_equal(write_to(starts[i], 100, mr->rkey), IBV_WC_SUCCESS);
		assert_memory_equal(there + 8, client.memory, 100);
		assert_int_equal(there[7] | there[108], 0);
		memset(there, 0, PAGE);
		assert_int_equal(write_to(starts[i] + 99, 1, mr->rkey), IBV_WC_SUCCESS);
		assert_int_equal(there[107], client.memory[0]);
		assert_int_equal(read_into(starts[i] + 50, 50, mr->lkey), IBV_WC_SUCCESS);
		assert_memory_equal(there + 58, client.memory + PAGE, 50);
		memset(there, 0, PAGE);
		/* One byte before, one byte after, and the address in memory. */
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

TEST(zero_based_region)
{
	struct ibv_mr *mr = ibv_reg_mr(server.pd, there + 24, 64, ALL | IBV_ACCESS_ZERO_BASED);

	assert_non_null(mr);
	assert_ptr_equal(mr->addr, there + 24);
	assert_int_equal(write_to(60, 4, mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(there + 84, client.memory, 4);
	assert_int_equal(write_to((uintptr_t)there + 24, 4, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

TEST(rights_of_a_region)
{
	struct ibv_mr *mr;

	mr = region(ibv_reg_mr(server.pd, there, PAGE, LW | RR));
	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(read_there(4, mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = region(ibv_reg_mr(server.pd, there, PAGE, LW | RW));
	assert_int_equal(read_there(4, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = region(ibv_reg_mr(server.pd, there, PAGE, 0));
	assert_int_equal(read_into((uintptr_t)there, 4, mr->lkey), IBV_WC_LOC_PROT_ERR);
	/* "Local read access is always enabled" */
	memcpy(there, "four", 4);
	assert_int_equal(write_out_of((uintptr_t)there, 4, mr->lkey), IBV_WC_SUCCESS);
	memcpy(client.expected + RESULT, there, 4);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

TEST(region_that_is_gone)
{
	struct ibv_mr *mr = region(ibv_reg_mr(server.pd, there, PAGE, ALL));
	uint32_t key = mr->lkey;

	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(write_to((uintptr_t)there, 4, key), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(read_into((uintptr_t)there, 4, key), IBV_WC_LOC_PROT_ERR);
}

/*
 * ibv_alloc_null_mr(3): "discards all data written to it, and always returns 0 on read"; "only the lkey is
 * valid".
 */
TEST(null_region)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(server.pd);

	assert_int_equal(write_out_of(0x123456, PAGE, mr->lkey), IBV_WC_SUCCESS);
	memset(client.expected + RESULT, 0, PAGE);
	side_compare(&client);
	assert_int_equal(read_into(0, PAGE, mr->lkey), IBV_WC_SUCCESS);
	assert_int_equal(read_into(UINT64_MAX - PAGE, PAGE, mr->lkey), IBV_WC_SUCCESS);
	assert_int_equal(write_to(0, 8, mr->lkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

TEST(device_memory)
{
	struct ibv_alloc_dm_attr attr = {.length = 256};
	struct ibv_dm *dm = ibv_alloc_dm(server.context, &attr);
	struct ibv_mr *mr = ibv_reg_dm_mr(server.pd, dm, 64, 128, ALL | IBV_ACCESS_ZERO_BASED);
	char bytes[256];

	assert_non_null(mr);
	assert_int_equal(write_to(0, 128, mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_memcpy_from_dm(bytes, dm, 0, 256), 0);
	assert_memory_equal(bytes + 64, client.memory, 128);
	for (int i = 0; i < 64; i++)
		assert_int_equal(bytes[i] | bytes[192 + i], 0);
	assert_int_equal(write_to(1, 128, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(read_into(3, 5, mr->lkey), IBV_WC_SUCCESS); /* no alignment on the wire */
	assert_int_equal(ibv_memcpy_from_dm(bytes, dm, 64, 12), 0);
	assert_memory_equal(bytes + 3, client.memory + PAGE, 5);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

TEST(implicit_on_demand_region)
{
	struct ibv_mr *mr;
	char on_stack[64];

	if (!kernel_has_page_checks())
		skip();
	mr = region(ibv_reg_mr(server.pd, NULL, SIZE_MAX, ALL | IBV_ACCESS_ON_DEMAND));
	assert_int_equal(write_to((uintptr_t)on_stack, sizeof(on_stack), mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(on_stack, client.memory, sizeof(on_stack));
	assert_int_equal(read_into((uintptr_t)there + 5, 5, mr->lkey), IBV_WC_SUCCESS);
	assert_memory_equal(there + 5, client.memory + PAGE, 5);
	/* An address where no memory is mapped. */
	assert_int_equal(read_into((uintptr_t)there + 4 * PAGE - 1, 2, mr->lkey), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(write_to((uintptr_t)there + 4 * PAGE, 1, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(write_to(8, 1, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* Pages may be unmapped and mapped again; they are looked up at each access. */
TEST(explicit_on_demand_region)
{
	struct ibv_mr *mr;

	if (!kernel_has_page_checks())
		skip();
	mr = region(ibv_reg_mr(server.pd, there, 5 * PAGE, ALL | IBV_ACCESS_ON_DEMAND));
	assert_int_equal(write_to((uintptr_t)there + 4 * PAGE - 2, 2, mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(write_to((uintptr_t)there + 4 * PAGE - 2, 3, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mprotect(there, PAGE, PROT_READ), 0);
	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mprotect(there, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(there, client.memory, 4);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

TEST(changed_translation)
{
	struct ibv_mr *mr = region(ibv_reg_mr(server.pd, there, PAGE, ALL));

	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, there + 2 * PAGE, PAGE, 0), 0);
	assert_int_equal(write_to((uintptr_t)there + 2 * PAGE, 16, mr->rkey), IBV_WC_SUCCESS);
	assert_memory_equal(there + 2 * PAGE, client.memory, 16);
	assert_int_equal(write_to((uintptr_t)there, 16, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	/* The memory of the region may be unmapped. Its address range stays reserved until all of it is unmapped. */
	assert_ptr_equal(mmap(there, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), there);
	assert_int_equal(write_to((uintptr_t)there + 2 * PAGE, 16, mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

TEST(changed_domain_and_access)
{
	struct ibv_pd *domain = ibv_alloc_pd(server.context);
	struct ibv_mr *mr = region(ibv_reg_mr(server.pd, there, PAGE, LW));

	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LW | RW), 0);
	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, domain, NULL, 0, 0), 0);
	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(read_into((uintptr_t)there, 4, mr->lkey), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, server.pd, NULL, 0, 0), 0);
	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_SUCCESS);
	/* A change that fails leaves the region as it was. */
	if (kernel_has_page_checks())
		assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL,
					      there + 4 * PAGE, PAGE, LW),
				 IBV_REREG_MR_ERR_CMD);
	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

/* A parent domain is equivalent to the PD it was created from. */
TEST(keys_of_a_parent_domain)
{
	struct ibv_parent_domain_init_attr attr = {.pd = server.pd};
	struct ibv_pd *domain = ibv_alloc_parent_domain(server.context, &attr);
	struct ibv_mr *mr = ibv_reg_mr(domain, there, PAGE, ALL);

	assert_int_equal(write_to((uintptr_t)there, 4, mr->rkey), IBV_WC_SUCCESS);
	assert_int_equal(read_into((uintptr_t)there, 4, mr->lkey), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

int main(void)
{
	return run_cases(.setup = set_up, .teardown = tear_down);
}
