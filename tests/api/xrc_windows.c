/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows and keys in XRC: ibv_bind_mw(3) supports XRC_SEND QPs. A window of type 1 is accessible through any QP of its
 * protection domain, which in XRC is that of the SRQ; one of type 2 only through the QP that bound it, and requests
 * never arrive through an XRC_SEND QP. A SEND can invalidate an mkey that permits it.
 */
#include "support/mkey.h"
#include "support/xrc_world.h"

enum {
	REQUEST = 0x51,
	BIND = 0xb14d,
	RECEIVE = 0xa1,
	LOCAL = 1000,
	START = 8192,
	LENGTH = 4096,
};

#define SERVER (&world.target[XRC_SERVER])
#define NEIGHBOUR (&world.target[XRC_NEIGHBOUR])

static struct ibv_cq *cq;
static struct ibv_qp *binder; /* the server's, XRC_SEND; not connected */

static void binder_connect(void)
{
	xrc_connect(binder, SERVER, 1, &world.client, 7);
}

static int open_world(void **state)
{
	xrc_world_open(state);
	cq = ibv_create_cq(SERVER->context, 15, NULL, NULL, 0);
	assert_non_null(cq);
	binder = xrc_create_send(SERVER, cq);
	assert_non_null(binder);
	binder_connect();
	return 0;
}

static int close_world(void **state)
{
	xrc_idle(cq);
	expect_error(ibv_destroy_qp(binder), 0);
	expect_error(ibv_destroy_cq(cq), 0);
	return xrc_world_close(state);
}

/* Runs WRITE, READ and FETCH_ADD from the client to @rkey through the SRQ of @target. */
#define expect_access(rkey, address, target, status) expect_access_(HERE, rkey, address, target, status)
static void expect_access_(struct place place, uint32_t rkey, uint64_t address, int target, enum ibv_wc_status status)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
	size_t at = address - side_address(SERVER, 0);

	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct ibv_sge sge = side_sge(&world.client, LOCAL, 8);
		struct ibv_send_wr wr = xrc_rdma_wr(REQUEST, opcodes[i], target, &sge, 0);
		uint64_t word;

		note("opcode %d, key %#x", opcodes[i], rkey);
		side_stir(&world.client);
		side_stir(SERVER);
		if (opcodes[i] == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			wr.wr.atomic.remote_addr = address;
			wr.wr.atomic.rkey = rkey;
			wr.wr.atomic.compare_add = 3;
		} else {
			wr.wr.rdma.remote_addr = address;
			wr.wr.rdma.rkey = rkey;
		}
		xrc_post_(place, world.send, &wr);
		xrc_completion_(place, world.cq, REQUEST, world.send->qp_num, status);
		if (status != IBV_WC_SUCCESS) {
			xrc_world_connect();
		} else if (opcodes[i] == IBV_WR_RDMA_WRITE) {
			memcpy(SERVER->expected + at, world.client.expected + LOCAL, 8);
		} else {
			memcpy(world.client.expected + LOCAL, SERVER->expected + at, 8);
			memcpy(&word, SERVER->expected + at, 8);
			word += opcodes[i] == IBV_WR_ATOMIC_FETCH_AND_ADD ? 3 : 0;
			memcpy(SERVER->expected + at, &word, 8);
		}
		side_compare_(place, &world.client);
		side_compare_(place, SERVER);
	}
	note_clear();
}

static struct ibv_mw_bind_info all_of(size_t start, size_t length)
{
	return (struct ibv_mw_bind_info){
		.mr = SERVER->mr,
		.addr = side_address(SERVER, start),
		.length = length,
		.mw_access_flags = SIDE_REMOTE,
	};
}

/* ---- type 1 ---------------------------------------------------------------------------------------------------- */

TEST(xrc_send_qp_binds)
{
	struct ibv_mw *mw = side_alloc_mw(SERVER, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.wr_id = BIND, .send_flags = IBV_SEND_SIGNALED, .bind_info = all_of(START, LENGTH)};
	uint64_t address = side_address(SERVER, START);
	uint32_t bound;

	expect_error(ibv_bind_mw(binder, mw, &bind), 0);
	assert_int_equal(xrc_completion(cq, BIND, binder->qp_num, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);
	bound = mw->rkey;
	expect_access(bound, address, XRC_SERVER, IBV_WC_SUCCESS);
	expect_access(bound, address + LENGTH - 8, XRC_SERVER, IBV_WC_SUCCESS);
	expect_access(bound, address + LENGTH, XRC_SERVER, IBV_WC_REM_ACCESS_ERR);
	expect_access(bound, address, XRC_NEIGHBOUR, IBV_WC_REM_ACCESS_ERR);
	/* Bind again, to another range. */
	bind.bind_info = all_of(START + LENGTH, LENGTH);
	expect_error(ibv_bind_mw(binder, mw, &bind), 0);
	xrc_completion(cq, BIND, binder->qp_num, IBV_WC_SUCCESS);
	expect_access(bound, address, XRC_SERVER, IBV_WC_REM_ACCESS_ERR);
	expect_access(mw->rkey, address + LENGTH, XRC_SERVER, IBV_WC_SUCCESS);
	/* Bind to zero bytes. */
	bound = mw->rkey;
	bind.bind_info = (struct ibv_mw_bind_info){0};
	expect_error(ibv_bind_mw(binder, mw, &bind), 0);
	xrc_completion(cq, BIND, binder->qp_num, IBV_WC_SUCCESS);
	expect_access(bound, address + LENGTH, XRC_SERVER, IBV_WC_REM_ACCESS_ERR);
	expect_access(mw->rkey, address + LENGTH, XRC_SERVER, IBV_WC_REM_ACCESS_ERR);
}

/* The bind fails, and the QP that posted it enters ERR. */
TEST(bind_beyond_the_region)
{
	struct ibv_mw *mw = side_alloc_mw(SERVER, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.wr_id = BIND, .send_flags = IBV_SEND_SIGNALED};
	uint32_t before = mw->rkey;

	bind.bind_info = all_of(SIDE_BYTES - 10, 11);
	expect_error(ibv_bind_mw(binder, mw, &bind), 0);
	xrc_completion(cq, BIND, binder->qp_num, IBV_WC_MW_BIND_ERR);
	xrc_expect_state(binder, IBV_QPS_ERR);
	mw->rkey = before; /* ibv_bind_mw(3), NOTES */
	binder_connect();
	bind.bind_info = all_of(SIDE_BYTES - 16, 16);
	expect_error(ibv_bind_mw(binder, mw, &bind), 0);
	xrc_completion(cq, BIND, binder->qp_num, IBV_WC_SUCCESS);
	expect_access(mw->rkey, side_address(SERVER, SIDE_BYTES - 16), XRC_SERVER, IBV_WC_SUCCESS);
}

TEST(qps_that_do_not_bind)
{
	struct ibv_mw *mw = side_alloc_mw(SERVER, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.wr_id = BIND, .bind_info = all_of(START, LENGTH)};
	uint32_t before = mw->rkey;

	expect_error(ibv_bind_mw(world.recv, mw, &bind), EINVAL); /* "either UC, RC or XRC_SEND" */
	assert_int_equal(mw->rkey, before);
}

/* ---- type 2 ---------------------------------------------------------------------------------------------------- */

static void bind_type_2(struct ibv_mw *mw, uint32_t rkey, bool build)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(binder);
	struct ibv_send_wr wr = {
		.wr_id = BIND,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.mw = mw, .rkey = rkey, .bind_info = all_of(START, LENGTH)},
	};

	if (build) {
		ibv_wr_start(qp);
		qp->wr_id = BIND;
		qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_bind_mw(qp, mw, rkey, &wr.bind_mw.bind_info);
		expect_error(ibv_wr_complete(qp), 0);
	} else {
		xrc_post(binder, &wr);
	}
	assert_int_equal(xrc_completion(cq, BIND, binder->qp_num, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);
}

static void invalidate(uint32_t rkey, bool build)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(binder);
	struct ibv_send_wr wr = {
		.wr_id = BIND,
		.opcode = IBV_WR_LOCAL_INV,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = rkey,
	};

	if (build) {
		ibv_wr_start(qp);
		qp->wr_id = BIND;
		qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_local_inv(qp, rkey);
		expect_error(ibv_wr_complete(qp), 0);
	} else {
		xrc_post(binder, &wr);
	}
	assert_int_equal(xrc_completion(cq, BIND, binder->qp_num, IBV_WC_SUCCESS).opcode, IBV_WC_LOCAL_INV);
}

static void expect_invalidation_refused(uint32_t rkey)
{
	struct ibv_send_wr wr = xrc_wr(REQUEST, IBV_WR_SEND_WITH_INV, XRC_SERVER, NULL, 0);

	wr.invalidate_rkey = rkey;
	xrc_post_receive(&world.srq[XRC_SERVER], RECEIVE, NULL, 0);
	xrc_post(world.send, &wr);
	xrc_sent(REQUEST, IBV_WC_SUCCESS); /* IBTA 9.9.6.3, class J */
	assert_int_not_equal(xrc_received(XRC_SERVER, RECEIVE, IBV_WC_LOC_ACCESS_ERR).vendor_err, 0);
	xrc_world_connect();
}

TEST(type_2_is_unreachable)
{
	struct ibv_mw *mw = side_alloc_mw(SERVER, IBV_MW_TYPE_2);
	uint64_t address = side_address(SERVER, START);
	uint32_t rkey = mw->rkey;

	for (int build = 0; build < 2; build++) {
		rkey = ibv_inc_rkey(rkey);
		bind_type_2(mw, rkey, build);
		expect_access(rkey, address, XRC_SERVER, IBV_WC_REM_ACCESS_ERR);
		expect_access(rkey, address, XRC_NEIGHBOUR, IBV_WC_REM_ACCESS_ERR);
		expect_invalidation_refused(rkey);
		invalidate(rkey, build);
		expect_access(rkey, address, XRC_SERVER, IBV_WC_REM_ACCESS_ERR);
	}
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

/* The server configures the key on its own RC QP. */
TEST(key_is_invalidated_by_a_send)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	static struct layout layout;
	struct ibv_sge sge[] = {side_sge(SERVER, START, 100), side_sge(SERVER, START + 1000, 100)};
	struct mlx5dv_mkey *key = side_create_mkey_with(
		SERVER, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE, 4);
	struct mlx5dv_mkey *other = side_create_mkey_with(SERVER, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, 4);
	struct ibv_send_wr wr = xrc_wr(REQUEST, IBV_WR_SEND_WITH_INV, XRC_SERVER, NULL, 0);
	struct ibv_sge local = side_sge(&world.client, LOCAL, 8);
	struct pair own;
	struct ibv_wc wc;

	pair_open(&own, SERVER, SERVER, &options);
	lay_list(&own.client, BY_CONFIGURE, key, &layout, 2, sge);
	lay_list(&own.client, BY_CONFIGURE, other, &layout, 2, sge);
	expect_invalidation_refused(other->rkey);
	wr.invalidate_rkey = key->rkey;
	/* Not with the neighbour's SRQ, which has another protection domain. */
	wr.qp_type.xrc.remote_srqn = world.srq[XRC_NEIGHBOUR].number;
	xrc_post_receive(&world.srq[XRC_NEIGHBOUR], RECEIVE, NULL, 0);
	xrc_post(world.send, &wr);
	xrc_sent(REQUEST, IBV_WC_SUCCESS);
	xrc_received(XRC_NEIGHBOUR, RECEIVE, IBV_WC_LOC_ACCESS_ERR);
	xrc_world_connect();
	wr.qp_type.xrc.remote_srqn = world.srq[XRC_SERVER].number;
	xrc_post_receive(&world.srq[XRC_SERVER], RECEIVE, NULL, 0);
	xrc_post(world.send, &wr);
	xrc_sent(REQUEST, IBV_WC_SUCCESS);
	wc = xrc_received(XRC_SERVER, RECEIVE, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, key->rkey);
	wr = xrc_rdma_wr(REQUEST, IBV_WR_RDMA_READ, XRC_SERVER, &local, 0);
	wr.wr.rdma.remote_addr = 0;
	wr.wr.rdma.rkey = other->rkey;
	xrc_post(world.send, &wr);
	xrc_sent(REQUEST, IBV_WC_SUCCESS);
	memcpy(world.client.expected + LOCAL, SERVER->expected + START, 8);
	wr.wr.rdma.rkey = key->rkey;
	xrc_post(world.send, &wr);
	xrc_sent(REQUEST, IBV_WC_REM_ACCESS_ERR);
	pair_close(&own);
}

int main(void)
{
	return run_cases(.setup = open_world, .teardown = close_world);
}
