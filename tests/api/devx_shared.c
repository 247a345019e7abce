/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests shared receives made by command: CREATE_RMP, as a linked list and cyclic, used by an RC queue pair and by a DC target
 * made by command. Also tests a DC initiator made by command.
 */
#include "support/dc.h"
#include "support/rmp.h"

enum { BYTES = SHARED_BYTES, MESSAGES = 2 * ENTRIES + 5 };

static const uint64_t access_key = 0x0123456789abcdef;

static void expect_received(struct own *own, uint32_t message)
{
	struct mlx5_cqe64 cqe = own_next_cqe(own);

	assert_int_equal(cqe.op_own >> 4, MLX5_CQE_RESP_SEND);
	assert_int_equal(be16toh(cqe.wqe_counter), message % ENTRIES);
	assert_int_equal(be32toh(cqe.byte_cnt), BYTES);
	assert_int_equal(be32toh(cqe.sop_drop_qpn) & 0xffffff, own->qpn);
}

static void receive_by(uint32_t type)
{
	struct own one, other;
	struct shared shared;

	own_open(&one, &client, 0);
	own_open_cq(&other, &server);
	shared_open(&shared, &server, type);
	shared_join(&shared, &other);
	own_connect(&one, &other);
	own_connect(&other, &one);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		size_t at = (size_t)i * BYTES;

		shared_receive(&shared, side_address(&server, at));
		own_request(&one, MLX5_OPCODE_SEND, 0, 0, side_address(&client, at), BYTES, 0);
		assert_int_equal(own_next_cqe(&one).op_own >> 4, MLX5_CQE_REQ);
		expect_received(&other, i);
		memcpy(server.expected + at, client.memory + at, BYTES);
	}
	side_compare(&server);
	/* The RMP is in use. */
	assert_int_not_equal(mlx5dv_devx_obj_destroy(shared.rmp), 0);
	own_close(&other);
	own_close(&one);
	shared_close(&shared);
}

TEST(linked_list)
{
	receive_by(LIST);
}

TEST(cyclic)
{
	receive_by(CYCLIC);
}

static struct mlx5dv_devx_obj *create_dct(struct own *own, const struct shared *shared)
{
	struct command command = command_of(0x710);
	struct mlx5dv_devx_obj *dct;

	put32(command.in, 24, own->cqn);
	put32(command.in, 28, 7u << 17);
	put32(command.in, 32, 12u << 8);
	put32(command.in, 36, shared->number);
	put32(command.in, 40, own->pdn);
	put32(command.in, 48, (uint32_t)(access_key >> 32));
	put32(command.in, 52, (uint32_t)access_key);
	put32(command.in, 56, 3u << 24 | 1u << 16);
	put32(command.in, 60, (uint32_t)own->side->gid_index << 16 | 64);
	dct = create(own->side->context, &command, 128);
	assert_non_null(dct);
	own->qpn = created_number(&command);
	return dct;
}

/* A verbs DCI writes and sends to the target; a wrong access key is refused. */
TEST(target_of_dc)
{
	const struct dci_options options = dci_defaults();
	struct mlx5dv_devx_obj *object;
	struct shared shared;
	struct ibv_qp number = {0};
	struct dct target = {.end.qp = &number, .key = access_key};
	struct own own;
	struct dci dci;

	own_open_cq(&own, &server);
	shared_open(&shared, &server, LIST);
	object = create_dct(&own, &shared);
	number.qp_num = own.qpn;
	dci_open(&dci, &client, &server, &options);
	dci_write(&dci, &target, 0, 1, side_sge(&client, 0, BYTES), server.mr->rkey, side_address(&server, 0));
	expect_completion(&dci.end, 1, IBV_WC_RDMA_WRITE);
	memcpy(server.expected, client.memory, BYTES);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		size_t at = 4096 + (size_t)i * BYTES;

		shared_receive(&shared, side_address(&server, at));
		dci_send(&dci, &target, 0, 2 + i, side_sge(&client, at, BYTES));
		expect_completion(&dci.end, 2 + i, IBV_WC_SEND);
		expect_received(&own, i);
		memcpy(server.expected + at, client.memory + at, BYTES);
	}
	target.key ^= 1;
	dci_write(&dci, &target, 0, 99, side_sge(&client, 8192, BYTES), server.mr->rkey, side_address(&server, 8192));
	expect_status(&dci.end, 99, IBV_WC_REM_ACCESS_ERR);
	side_compare(&server);
	dci_close(&dci);
	assert_int_equal(mlx5dv_devx_obj_destroy(object), 0);
	own_close(&own);
	shared_close(&shared);
}

/* Posts a WRITE to @target, with an address vector, into the send ring of @own, which has no receive ring before it. */
static void write_to_target(struct own *own, struct ibv_ah *ah, const struct dct *target, size_t at)
{
	uint8_t *wqe = own->memory + OWN_QUEUES + own->requests % OWN_BLOCKS * 64;
	uint64_t remote = side_address(&server, at), local = side_address(&client, at);
	struct mlx5dv_ah out = {0};
	struct mlx5dv_obj object = {.ah = {.in = ah, .out = &out}};

	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_AH), 0);
	memset(wqe, 0, 128);
	put32(wqe, 0, (own->requests & 0xffff) << 8 | MLX5_OPCODE_RDMA_WRITE);
	put32(wqe, 4, own->qpn << 8 | 6);
	put32(wqe, 8, 8);
	memcpy(wqe + 16, out.av, 48);
	put32(wqe, 16, (uint32_t)(target->key >> 32));
	put32(wqe, 20, (uint32_t)target->key);
	put32(wqe, 24, 1u << 31 | target->end.qp->qp_num);
	put32(wqe, 64, (uint32_t)(remote >> 32));
	put32(wqe, 68, (uint32_t)remote);
	put32(wqe, 72, server.mr->rkey);
	put32(wqe, 80, BYTES);
	put32(wqe, 84, client.mr->lkey);
	put32(wqe, 88, (uint32_t)(local >> 32));
	put32(wqe, 92, (uint32_t)local);
	own_ring(own, 2);
}

TEST(initiator_of_dc)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = server.gid, .sgid_index = client.gid_index, .hop_limit = 64},
	};
	struct ibv_ah *ah = ibv_create_ah(client.pd, &attr);
	struct own own;
	struct dct target;

	assert_non_null(ah);
	dct_open(&target, &server, access_key);
	own_open(&own, &client, 5);
	own_to_init(&own);
	own_to_rtr(&own, &server, 0);
	own_to_rts(&own);
	/* Posts until the ring of requests has wrapped. */
	for (uint32_t i = 0; i < OWN_BLOCKS; i++) {
		size_t at = (size_t)i * BYTES;

		write_to_target(&own, ah, &target, at);
		assert_int_equal(own_next_cqe(&own).op_own >> 4, MLX5_CQE_REQ);
		memcpy(server.expected + at, client.memory + at, BYTES);
	}
	side_compare(&server);
	own_close(&own);
	dct_close(&target);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}
