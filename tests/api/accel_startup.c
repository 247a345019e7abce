/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the start-up of SPDK's accel module and of its lib/mlx5, call by call in their order: devices by rdma_get_devices(3), the
 * capabilities that select a device, a PD, three pools of keys and one of PSVs, a CQ, a queue pair with its states, a region,
 * DEKs of all four sizes; then the release of all of them. Expected values are those that SPDK requires and those that it set.
 */
#include <rdma/rdma_cma.h>

#include "support/accel.h"

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct accel_caps caps;
static struct accel_cq cq;
static struct accel_queue queue;

/* ---- choice of a device ----------------------------------------------------------------------------------------- */

static struct ibv_context *first_device(void)
{
	int count = 0;
	struct ibv_context **list = rdma_get_devices(&count), *first;
	struct ibv_device_attr attr;

	assert_non_null(list);
	assert_true(count > 0);
	first = list[0];
	expect_error(ibv_query_device(first, &attr), 0);
	assert_int_equal(attr.vendor_id, 0x2c9);
	rdma_free_devices(list);
	return first;
}

/* Checks that RoCE is enabled. The module queries this on Ethernet and skips the device otherwise. */
static void expect_roce_on(void)
{
	struct command command = command_of(0x754);
	struct ibv_port_attr port;

	expect_error(ibv_query_port(context, 1, &port), 0);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	expect_error(mlx5dv_devx_general_cmd(context, command.in, 16, command.out, 272), 0);
	assert_int_equal(get32(command.out, 16) & 1, 1);
}

/* Opens the device. The context and its PD survive another query of the device list, which SPDK makes each time it needs a PD. */
static void open_device_as_the_module(void)
{
	context = first_device();
	caps = accel_query_caps(context);
	expect_roce_on();
	assert_ptr_equal(first_device(), context);
	pd = ibv_alloc_pd(context);
	assert_non_null(pd);
}

/* Checks that the device has all offloads of the module. */
TEST(device_is_chosen)
{
	const char *order = getenv("SOFTHCA_CRYPTO_TWEAK");
	bool big_endian = order && !strcmp(order, "be");

	open_device_as_the_module();
	assert_true(caps.crc32c);
	assert_true(caps.crypto);
	assert_false(caps.wrapped_only);
	/* Without the big-endian tweak, SPDK puts one block into each request. */
	assert_int_equal(caps.multi_block_be, big_endian);
	assert_int_equal(caps.single_block_le, !big_endian);
	expect_error(ibv_dealloc_pd(pd), 0);
}

/* ---- pools ------------------------------------------------------------------------------------------------------ */

TEST(pools_are_created)
{
	static const enum accel_key_kind kinds[] = {ACCEL_KEY_PLAIN, ACCEL_KEY_CRYPTO, ACCEL_KEY_SIGNATURE};
	static struct accel_key keys[ARRAY_SIZE(kinds)][ACCEL_POOL];
	static struct accel_object psvs[ACCEL_POOL];

	open_device_as_the_module();
	for (size_t pool = 0; pool < ARRAY_SIZE(kinds); pool++)
		for (size_t i = 0; i < ACCEL_POOL; i++)
			keys[pool][i] = accel_create_key(pd, kinds[pool], &caps);
	for (size_t i = 0; i < ACCEL_POOL; i++)
		psvs[i] = accel_create_psv(pd);
	expect_error(ibv_dealloc_pd(pd), EBUSY);
	for (size_t i = 0; i < ACCEL_POOL; i++)
		accel_destroy(&psvs[i]);
	for (size_t pool = 0; pool < ARRAY_SIZE(kinds); pool++)
		for (size_t i = 0; i < ACCEL_POOL; i++)
			accel_destroy_key(&keys[pool][i]);
	expect_error(ibv_dealloc_pd(pd), 0);
}

/* ---- queue pair ------------------------------------------------------------------------------------------------- */

static void open_queue(void)
{
	open_device_as_the_module();
	accel_cq_open(&cq, context, ACCEL_WRS);
	accel_queue_open(&queue, &cq, pd);
}

static void close_queue(void)
{
	accel_queue_close(&queue);
	accel_cq_close(&cq);
	expect_error(ibv_dealloc_pd(pd), 0);
}

/* The queue pair is in RTS with the attributes of SPDK's commands. */
TEST(queue_pair_has_its_attributes)
{
	struct ibv_qp_init_attr init = {0};
	struct ibv_qp_attr attr = {0};

	open_queue();
	expect_error(ibv_query_qp(queue.verbs, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.path_mtu, IBV_MTU_4096);
	assert_int_equal(attr.dest_qp_num, queue.verbs->qp_num);
	assert_int_equal(attr.rq_psn, 0x4242);
	assert_int_equal(attr.sq_psn, 0x4242);
	assert_int_equal(attr.max_rd_atomic, 16);
	assert_int_equal(attr.max_dest_rd_atomic, 16);
	assert_int_equal(attr.min_rnr_timer, 12);
	assert_int_equal(attr.timeout, 14);
	assert_int_equal(attr.retry_cnt, 7);
	assert_int_equal(attr.rnr_retry, 7);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.qp_access_flags & SIDE_REMOTE, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
	assert_int_equal(init.cap.max_send_sge, ACCEL_SGES);
	close_queue();
}

/*
 * SPDK allows ACCEL_WRS requests at a time and fails a task if its WQEs do not fit. The ring holds that many: half of them UMRs
 * with a BSF and half of them READs, all with ACCEL_SGES pieces.
 */
TEST(ring_holds_all_requests)
{
	uint32_t umr = (128 + ACCEL_SGES * 16 + 64) / 64, read = (32 + ACCEL_SGES * 16 + 63) / 64;

	open_queue();
	assert_true(queue.ring.sq.wqe_cnt >= ACCEL_WRS / 2 * (umr + read));
	close_queue();
}

/* Runs spdk_mlx5_qp_set_error_state() on a queue pair that was never used. */
TEST(error_state_is_set)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	open_queue();
	expect_error(ibv_modify_qp(queue.verbs, &attr, IBV_QP_STATE), 0);
	assert_int_equal(accel_queue_state(&queue), IBV_QPS_ERR);
	close_queue();
}

/* ---- regions and DEKs ------------------------------------------------------------------------------------------- */

/* The memory map registers with relaxed ordering, and the module also uses the lkey as an rkey. */
TEST(regions_have_one_key)
{
	static uint8_t memory[4 << 20];
	struct ibv_mr *mr;

	open_device_as_the_module();
	mr = ibv_reg_mr(pd, memory, sizeof(memory),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_RELAXED_ORDERING);
	assert_non_null(mr);
	assert_int_equal(mr->lkey, mr->rkey);
	expect_error(ibv_dereg_mr(mr), 0);
	expect_error(ibv_dealloc_pd(pd), 0);
}

TEST(deks_are_created)
{
	static const uint8_t bytes[64] = "two keys of thirty-two bytes each, which have to be different ";
	static const uint8_t tag[8] = "keytag 8";

	open_device_as_the_module();
	for (unsigned int key_bytes = 32; key_bytes <= 64; key_bytes += 32) {
		for (int tagged = 0; tagged < 2; tagged++) {
			struct accel_object dek = accel_create_dek(pd, bytes, key_bytes, tagged ? tag : NULL);

			accel_destroy(&dek);
		}
	}
	expect_error(ibv_dealloc_pd(pd), 0);
}

int main(void)
{
	return run_cases();
}
