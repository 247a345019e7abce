/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 20 to 35 and 150 to 153: WQEs. Cases that a builder cannot make are changed in the ring before the device reads it. */
#include "rule_cases.h"

/* Offsets in a WQE (mlx5-formats 1.2, 1.5). */
enum { OPMOD = 0, OPCODE = 3, QPN_DS = 4, DATA = 16, READ_LENGTH = 32, COPY_SOURCE = 32, COPY_TARGET = 48 };

/* Posts a SEND of BYTES that waits in the stopped ring. */
static struct raw send_waits(void)
{
	struct raw raw = raw_begin(&pair.client);
	struct ibv_send_wr wr = request(IBV_WR_SEND, BYTES);

	post_send(&pair.client, &wr);
	return raw;
}

RULE_CASE(WQE_DOORBELL)
{
	struct raw raw = send_waits();
	uint32_t producer = be32toh(*raw.doorbell);

	*raw.doorbell = htobe32((producer + raw.blocks) & 0xffff);
	raw_run(&raw);
	expect_failure(&pair.client, WR_ID, LOC_QP_OP_ERR, WQE_DOORBELL, "SEND",
		       "the doorbell record announces %u blocks; the send ring has %u", raw.blocks + 1, raw.blocks);
}

RULE_CASE(WQE_DS)
{
	struct raw raw = send_waits();

	raw_put32(&raw, QPN_DS, pair.client.qp->qp_num << 8 | 9);
	raw_run(&raw);
	expect_failure(&pair.client, WR_ID, LOC_QP_OP_ERR, WQE_DS, "SEND",
		       "the WQE says it has 9 segments of 16 bytes, 3 blocks; 1 blocks are posted");
}

RULE_CASE(WQE_QPN)
{
	struct raw raw = send_waits();

	raw_put32(&raw, QPN_DS, 0x123456 << 8 | 2);
	raw_run(&raw);
	expect_failure(&pair.client, WR_ID, LOC_QP_OP_ERR, WQE_QPN, "SEND",
		       "the WQE names queue pair 0x123456, but it is in the ring of queue pair 0x%x",
		       pair.client.qp->qp_num);
}

RULE_CASE(WQE_OPCODE_UNKNOWN)
{
	struct raw raw = send_waits();

	raw_put8(&raw, OPCODE, 0x77);
	raw_run(&raw);
	expect_failure(&pair.client, WR_ID, LOC_QP_OP_ERR, WQE_OPCODE_UNKNOWN, "unknown opcode",
		       "0x77 is not an opcode of a send WQE (block 0)");
}

RULE_CASE(WQE_OPCODE_UNSUPPORTED)
{
	struct raw raw = send_waits();

	raw_put8(&raw, OPCODE, 0x2d);
	raw_run(&raw);
	expect_failure(&pair.client, WR_ID, LOC_QP_OP_ERR, WQE_OPCODE_UNSUPPORTED, "ACCESS_ASO",
		       "this device does not execute opcode ACCESS_ASO (block 0)");
}

RULE_CASE(WQE_OPCODE_TRANSPORT)
{
	struct pair_options options = pair_defaults(IBV_QPT_UC);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, BYTES);

	pair_replace(&pair, &options);
	post_send(&pair.client, &wr);
	expect_failure(&pair.client, WR_ID, LOC_QP_OP_ERR, WQE_OPCODE_TRANSPORT, "RDMA_READ",
		       "opcode RDMA_READ does not exist on a queue pair of type UC");
	expect_state(&pair.client, IBV_QPS_SQE);
}

RULE_CASE(WQE_SHORT)
{
	struct raw raw = raw_begin(&pair.client);

	write_to(server.mr->rkey, side_address(&server, 0));
	raw_put32(&raw, QPN_DS, pair.client.qp->qp_num << 8 | 1);
	raw_run(&raw);
	expect_failure(&pair.client, WR_ID, LOC_QP_OP_ERR, WQE_SHORT, "RDMA_WRITE",
		       "the RDMA_WRITE WQE has 16 bytes; its segments take 32");
}

/* 12 bytes of inline data fit into a segment of 16 bytes with its header of 4. */
RULE_CASE(WQE_INLINE)
{
	struct raw raw = send_waits();

	raw_put32(&raw, DATA, 0x80000000 | 500);
	raw_run(&raw);
	expect_failure(&pair.client, WR_ID, LOC_QP_OP_ERR, WQE_INLINE, "SEND",
		       "an inline segment of 500 bytes does not fit in the 12 bytes that the WQE has left");
}

RULE_CASE(WQE_INLINE_SINK)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, BYTES);

	wr.send_flags |= IBV_SEND_INLINE;
	wr.wr.rdma.rkey = server.mr->rkey;
	wr.wr.rdma.remote_addr = side_address(&server, 0);
	post_send(&pair.client, &wr);
	expect_failure(&pair.client, WR_ID, LOC_QP_OP_ERR, WQE_INLINE_SINK, "RDMA_READ",
		       "the RDMA_READ WQE has inline data in place of the memory for its response");
}

/* The peer is not ready: the READ is repeated after its timeout, and has become shorter meanwhile. */
RULE_CASE(WQE_CHANGED)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, BYTES);
	struct mlx5dv_qp out = {0};
	struct mlx5dv_obj object;
	struct raw raw;

	pair_close(&pair);
	pair_create(&pair, &client, &server, &options);
	endpoint_to_init(&pair.client);
	endpoint_to_rtr(&pair.client);
	endpoint_to_rts(&pair.client);
	post_send(&pair.client, &wr);
	object = (struct mlx5dv_obj){.qp = {.in = pair.client.qp, .out = &out}};
	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), 0);
	raw = (struct raw){.wqe = out.sq.buf};
	assert_int_equal(raw_get32(&raw, READ_LENGTH), BYTES);
	raw_put32(&raw, READ_LENGTH, BYTES / 2);
	expect_failure(&pair.client, WR_ID, LOC_QP_OP_ERR, WQE_CHANGED, "RDMA_READ",
		       "the WQE is RDMA_READ with 8 bytes; when it was first sent it was RDMA_READ with 16 bytes");
}

/* The active MTU is 4096 unless the setting MTU says otherwise. */
RULE_CASE(MESSAGE_TOO_LONG)
{
	struct pair_options options = pair_defaults(IBV_QPT_UD);
	struct ibv_send_wr wr = request(IBV_WR_SEND, 4097);

	pair_replace(&pair, &options);
	post_send(&pair.client, &wr);
	expect_failure(&pair.client, WR_ID, LOC_LEN_ERR, MESSAGE_TOO_LONG, "SEND",
		       "the message has 4097 bytes; a queue pair of type UD sends at most 4096");
}

/* The library makes each SGE of an atomic 8 bytes long (mlx5-formats 1.5). */
RULE_CASE(ATOMIC_LENGTH)
{
	struct ibv_send_wr wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	struct ibv_sge sges[2] = {side_sge(&client, 0, 8), side_sge(&client, 8, 8)};

	wr.sg_list = sges;
	wr.num_sge = 2;
	wr.wr.atomic.rkey = server.mr->rkey;
	wr.wr.atomic.remote_addr = side_address(&server, 0);
	post_send(&pair.client, &wr);
	expect_failure(&pair.client, WR_ID, LOC_LEN_ERR, ATOMIC_LENGTH, "ATOMIC_FA",
		       "the result of the atomic has 8 bytes, and the data segments of the WQE have 16");
}

/* Opcode 0x13 in a WQE written by the program: ibv_post_send(3) and ibv_wr_atomic_write(3) check the length. */
RULE_CASE(ATOMIC_WRITE_DATA)
{
	struct raw raw = raw_begin(&pair.client);

	write_to(server.mr->rkey, side_address(&server, 0));
	raw_put8(&raw, OPCODE, 0x13);
	raw_run(&raw);
	expect_failure(&pair.client, WR_ID, LOC_LEN_ERR, ATOMIC_WRITE_DATA, "ATOMIC_WRITE",
		       "an ATOMIC WRITE has 16 bytes of data, not 8");
}

/* Posts a fetch-and-add that waits: control, address, operands, data, 16 bytes each. */
static struct raw atomic_waits(void)
{
	struct raw raw = raw_begin(&pair.client);
	struct ibv_send_wr wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 8);

	wr.wr.atomic.rkey = server.mr->rkey;
	wr.wr.atomic.remote_addr = side_address(&server, 0);
	post_send(&pair.client, &wr);
	return raw;
}

RULE_CASE(ATOMIC_OPERANDS)
{
	struct raw raw = atomic_waits();

	raw_put8(&raw, OPMOD, 11);
	raw_put8(&raw, OPCODE, 0x15);
	raw_run(&raw);
	expect_failure(&pair.client, WR_ID, LOC_QP_OP_ERR, ATOMIC_OPERANDS, "ATOMIC_MASKED_FA",
		       "the ATOMIC_MASKED_FA WQE has opmod 0xb, which selects no operand width of this device");
}

static struct raw copy_waits(uint8_t opmod, uint32_t source, uint32_t target)
{
	struct raw raw = atomic_waits();

	raw_put8(&raw, OPMOD, opmod);
	raw_put8(&raw, OPCODE, 0x2f);
	raw_put32(&raw, COPY_SOURCE, source);
	raw_put32(&raw, COPY_TARGET, target);
	return raw;
}

RULE_CASE(MMO_OPERATION)
{
	struct raw raw = copy_waits(2, 8, 8);

	raw_run(&raw);
	expect_failure(&pair.client, WR_ID, LOC_QP_OP_ERR, MMO_OPERATION, "MMO",
		       "the MMO WQE has opmod 0x2: this device only copies (opmod 1)");
}

RULE_CASE(MMO_INLINE)
{
	struct raw raw = copy_waits(1, 8, 0x80000008);

	raw_run(&raw);
	expect_failure(&pair.client, WR_ID, LOC_QP_OP_ERR, MMO_INLINE, "MMO",
		       "source and destination of a copy have byte counts 0x8 and 0x80000008: bit 31 would mean "
		       "inline data");
}

RULE_CASE(MMO_LENGTHS)
{
	struct raw raw = copy_waits(1, 0, 8);

	raw_run(&raw);
	expect_failure(&pair.client, WR_ID, LOC_LEN_ERR, MMO_LENGTHS, "MMO",
		       "the source of a copy has 2147483648 bytes, its destination 8");
}

RULE_CASE(DATAGRAM_ADDRESS)
{
	struct pair_options options = pair_defaults(IBV_QPT_UD);
	struct ibv_gid_entry entries[64];
	struct ibv_send_wr wr = request(IBV_WR_SEND, BYTES);
	struct mlx5dv_ah out = {0};
	struct mlx5dv_obj object;

	pair_replace(&pair, &options);
	object = (struct mlx5dv_obj){.ah = {.in = pair.client.ah, .out = &out}};
	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_AH), 0);
	out.av->grh_gid_fl = htobe32(200 << 20);
	post_send(&pair.client, &wr);
	expect_failure(&pair.client, WR_ID, LOC_QP_OP_ERR, DATAGRAM_ADDRESS, "SEND",
		       "the address of the datagram has source GID index 200; the GID table has %zd entries",
		       ibv_query_gid_table(client.context, entries, ARRAY_SIZE(entries), 0));
}

RULE_CASE(FLUSHED)
{
	struct raw raw = send_waits();
	struct ibv_send_wr wr = request(IBV_WR_SEND, BYTES);

	wr.wr_id = 5;
	post_send(&pair.client, &wr);
	raw_put8(&raw, OPCODE, 0x77);
	raw_run(&raw);
	expect_status(&pair.client, WR_ID, IBV_WC_LOC_QP_OP_ERR);
	expect_failure(&pair.client, 5, WR_FLUSH_ERR, FLUSHED, "SEND",
		       "flushed: the send queue stopped at the failure in record %" PRIu64,
		       serial_of(pair.client.qp->qp_num, RULE_WQE_OPCODE_UNKNOWN));
}

RULE_CASE(FLUSHED_RECEIVE)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	post_receive(&pair.client, 6, NULL, 0);
	expect_error(ibv_modify_qp(pair.client.qp, &attr, IBV_QP_STATE), 0);
	expect_receive_failure(&pair.client, 6, WR_FLUSH_ERR, FLUSHED_RECEIVE,
			       "receive flushed: the queue pair has been in the error state since record %" PRIu64,
			       serial_of(pair.client.qp->qp_num, RULE_MODIFIED_TO_ERROR));
}
