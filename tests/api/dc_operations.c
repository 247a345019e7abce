/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests requests of a DCI through the ABI (mlx5dv_wr_post(3), QP SPECIFIC SETTERS): every operation of RC, its setters in either
 * order, in both directions, to several targets, from several initiators, with data compared; and the example of the man page.
 */
#include "support/dc.h"
#include "support/mkey.h"
#include "support/program.h"

enum { WR_ID = 0xdc01, RECV_ID = 0xdc02, IMM = 0x01020304, KEY = 0x5ca1ab1e, HERE_AT = 4096, THERE_AT = 16384 };

/* A DCI on each side, and a DCT on each side. */
static struct dci from_client, from_server;
static struct dct at_client, at_server;

static int dc_open(void **state)
{
	struct dci_options options = dci_defaults();

	program_open(state);
	options.dv_send_ops = DV_KEY_OPS | MLX5DV_QP_EX_WITH_RAW_WQE | MLX5DV_QP_EX_WITH_MEMCPY;
	dci_open(&from_client, &client, &server, &options);
	dci_open(&from_server, &server, &client, &options);
	dct_open(&at_client, &client, UINT64_MAX - 1);
	dct_open(&at_server, &server, KEY);
	return 0;
}

static int dc_close(void **state)
{
	dci_close(&from_client);
	dci_close(&from_server);
	dct_close(&at_client);
	dct_close(&at_server);
	return program_close(state);
}

/* ---- every operation ------------------------------------------------------------------------------------------- */

enum operation { SEND, SEND_IMM, SEND_INV, WRITE, WRITE_IMM, READ, SWAP, ADD, ATOMIC_WRITE, OPERATIONS };

struct transfer {
	struct dci *from;
	struct dct *to;
	enum operation operation;
	bool inlined, address_first;
	uint16_t stream;
	uint32_t bytes;
	uint32_t invalidate;
};

static bool takes_receive(enum operation operation)
{
	return operation <= SEND_INV || operation == WRITE_IMM;
}

static uint64_t word_at(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

static void build(const struct transfer *transfer, uint32_t rkey, uint64_t there)
{
	struct ibv_qp_ex *ex = transfer->from->end.ex;
	const struct side *peer = transfer->to->end.side;

	switch (transfer->operation) {
	case SEND:
		ibv_wr_send(ex);
		break;
	case SEND_IMM:
		ibv_wr_send_imm(ex, htobe32(IMM));
		break;
	case SEND_INV:
		ibv_wr_send_inv(ex, transfer->invalidate);
		break;
	case WRITE:
		ibv_wr_rdma_write(ex, rkey, there);
		break;
	case WRITE_IMM:
		ibv_wr_rdma_write_imm(ex, rkey, there, htobe32(IMM));
		break;
	case READ:
		ibv_wr_rdma_read(ex, rkey, there);
		break;
	case SWAP:
		ibv_wr_atomic_cmp_swp(ex, rkey, there, word_at(peer->memory + THERE_AT), 77);
		break;
	case ADD:
		ibv_wr_atomic_fetch_add(ex, rkey, there, 77);
		break;
	case ATOMIC_WRITE:
		ibv_wr_atomic_write(ex, rkey, there, transfer->from->end.side->memory + HERE_AT);
		break;
	case OPERATIONS:
		break;
	}
}

/* Updates the expected memory by a plain loop. */
static void model(const struct transfer *transfer)
{
	uint8_t *here = transfer->from->end.side->expected + HERE_AT,
		*there = transfer->to->end.side->expected + THERE_AT;
	uint64_t before = word_at(there), after = transfer->operation == ADD ? before + 77 : 77;

	switch (transfer->operation) {
	case READ:
		for (uint32_t i = 0; i < transfer->bytes; i++)
			here[i] = there[i];
		break;
	case SWAP:
	case ADD:
		memcpy(here, &before, sizeof(before));
		memcpy(there, &after, sizeof(after));
		break;
	default:
		for (uint32_t i = 0; i < transfer->bytes; i++)
			there[i] = here[i];
	}
}

static void expect_received(const struct transfer *transfer)
{
	static const int opcodes[] = {[SEND] = IBV_WC_RECV,
				      [SEND_IMM] = IBV_WC_RECV,
				      [SEND_INV] = IBV_WC_RECV,
				      [WRITE_IMM] = IBV_WC_RECV_RDMA_WITH_IMM};
	struct ibv_wc wc = expect_completion(&transfer->to->end, RECV_ID, opcodes[transfer->operation]);

	assert_int_equal(wc.byte_len, transfer->bytes);
	assert_int_equal(wc.src_qp, transfer->from->end.qp->qp_num);
	assert_int_equal(wc.wc_flags, transfer->operation == SEND       ? 0
				      : transfer->operation == SEND_INV ? IBV_WC_WITH_INV
									: IBV_WC_WITH_IMM);
	if (wc.wc_flags & IBV_WC_WITH_IMM)
		assert_int_equal(be32toh(wc.imm_data), IMM);
}

static void run(const struct transfer *transfer)
{
	static const int opcodes[] = {
		[SEND] = IBV_WC_SEND,        [SEND_IMM] = IBV_WC_SEND,        [SEND_INV] = IBV_WC_SEND,
		[WRITE] = IBV_WC_RDMA_WRITE, [WRITE_IMM] = IBV_WC_RDMA_WRITE, [READ] = IBV_WC_RDMA_READ,
		[SWAP] = IBV_WC_COMP_SWAP,   [ADD] = IBV_WC_FETCH_ADD,        [ATOMIC_WRITE] = IBV_WC_ATOMIC_WRITE};
	struct side *here = transfer->from->end.side, *there = transfer->to->end.side;
	struct ibv_sge source = side_sge(here, HERE_AT, transfer->bytes),
		       sink = side_sge(there, THERE_AT, transfer->bytes ? transfer->bytes : 1);
	struct ibv_qp_ex *ex = transfer->from->end.ex;

	note("operation %d, inlined %d, address first %d, stream %d, %u bytes from the %s", transfer->operation,
	     transfer->inlined, transfer->address_first, transfer->stream, transfer->bytes, here->name);
	side_stir(here);
	side_stir(there);
	if (takes_receive(transfer->operation))
		dct_receive(transfer->to, RECV_ID, &sink, 1);
	ibv_wr_start(ex);
	ex->wr_id = WR_ID;
	ex->wr_flags = IBV_SEND_SIGNALED;
	build(transfer, there->mr->rkey, side_address(there, THERE_AT));
	if (transfer->address_first)
		dci_address(transfer->from, transfer->to, transfer->stream);
	if (transfer->operation == ATOMIC_WRITE)
		;
	else if (transfer->inlined)
		ibv_wr_set_inline_data(ex, here->memory + HERE_AT, transfer->bytes);
	else
		ibv_wr_set_sge(ex, source.lkey, source.addr, source.length);
	if (!transfer->address_first)
		dci_address(transfer->from, transfer->to, transfer->stream);
	expect_error(ibv_wr_complete(ex), 0);
	model(transfer);
	expect_completion(&transfer->from->end, WR_ID, opcodes[transfer->operation]);
	if (takes_receive(transfer->operation))
		expect_received(transfer);
	expect_idle(&transfer->from->end);
	expect_idle(&transfer->to->end);
	side_compare(here);
	side_compare(there);
}

static bool has_data_of_8(enum operation operation)
{
	return operation == SWAP || operation == ADD || operation == ATOMIC_WRITE;
}

TEST(every_operation)
{
	static const uint32_t lengths[] = {0, 1, 60, 1024, 5000};

	for (int operation = SEND; operation < OPERATIONS; operation++) {
		for (int form = 0; form < 16; form++) {
			for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
				struct transfer transfer = {
					.from = form & 1 ? &from_server : &from_client,
					.to = form & 1 ? &at_client : &at_server,
					.operation = (enum operation)operation,
					.inlined = form & 2,
					.address_first = form & 4,
					.stream = form & 8 ? 3 : 0, /* ignored without streams */
					.bytes = has_data_of_8((enum operation)operation) ? 8 : lengths[i],
				};
				bool can_be_inlined = operation != READ && operation != SWAP && operation != ADD;

				if (operation == SEND_INV ||
				    (transfer.inlined && (!can_be_inlined || transfer.bytes > DC_INLINE)))
					continue;
				run(&transfer);
			}
		}
	}
}

/* SEND with invalidate makes the key that it names unusable; a key that forbids this stays valid. */
TEST(send_with_invalidate)
{
	static struct layout layout;
	struct mlx5dv_mkey_init_attr attr = {
		.pd = server.pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE,
		.max_entries = 4,
	};
	struct mlx5dv_mkey *mkey = mlx5dv_create_mkey(&attr);
	struct ibv_sge sge = side_sge(&server, THERE_AT, 100);
	struct transfer transfer = {.from = &from_client, .to = &at_server, .operation = SEND_INV, .bytes = 30};

	assert_non_null(mkey);
	lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 1, &sge);
	transfer.invalidate = mkey->rkey;
	run(&transfer);
	dci_write(&from_client, &at_server, 0, WR_ID, side_sge(&client, HERE_AT, 8), mkey->rkey, 0);
	expect_status(&from_client.end, WR_ID, IBV_WC_REM_ACCESS_ERR);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}

/* ---- the example of the man page ------------------------------------------------------------------------------- */

/* mlx5dv_wr_post(3), EXAMPLE, with the QP brought to RTS in between. */
TEST(example)
{
	struct ibv_qp_init_attr_ex attr_ex = {
		.send_cq = from_client.end.cq,
		.recv_cq = from_client.end.cq,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = client.pd,
	};
	struct mlx5dv_qp_init_attr attr_dv = {0};
	struct dci mine = {.end.side = &client, .options = dci_defaults()};
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct mlx5dv_qp_ex *mqpx;
	int ret;

	/* create DC QP type and specify the required send opcodes */
	attr_ex.qp_type = IBV_QPT_DRIVER;
	attr_ex.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr_ex.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE;

	attr_dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_DC;
	attr_dv.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI;

	qp = mlx5dv_create_qp(client.context, &attr_ex, &attr_dv);
	assert_non_null(qp);
	qpx = ibv_qp_to_qp_ex(qp);
	mqpx = mlx5dv_qp_ex_from_ibv_qp_ex(qpx);
	mine.end.qp = qp;
	dci_connect(&mine);

	ibv_wr_start(qpx);

	/* Use ibv_qp_ex object to set WR generic attributes */
	qpx->wr_id = WR_ID;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qpx, server.mr->rkey, side_address(&server, THERE_AT));
	ibv_wr_set_sge(qpx, client.mr->lkey, side_address(&client, HERE_AT), 1000);

	/* Use mlx5 DC setter using mlx5dv_qp_ex object */
	mlx5dv_wr_set_dc_addr(mqpx, from_client.ah, at_server.end.qp->qp_num, at_server.key);

	ret = ibv_wr_complete(qpx);
	expect_error(ret, 0);
	mine.end.cq = from_client.end.cq;
	expect_completion(&mine.end, WR_ID, IBV_WC_RDMA_WRITE);
	for (int i = 0; i < 1000; i++)
		server.expected[THERE_AT + i] = client.expected[HERE_AT + i];
	side_compare(&server);
	expect_error(ibv_destroy_qp(qp), 0);
}

/* Posts a batch of two WRITEs, one with an address and one without; @first: the one without is first. */
static int without_an_address(bool first)
{
	struct ibv_sge source = side_sge(&client, HERE_AT, 8);
	struct ibv_qp_ex *ex = from_client.end.ex;

	ibv_wr_start(ex);
	ex->wr_id = WR_ID;
	ex->wr_flags = IBV_SEND_SIGNALED;
	for (int i = 0; i < 2; i++) {
		ibv_wr_rdma_write(ex, server.mr->rkey, side_address(&server, THERE_AT + 100u * (unsigned int)i));
		ibv_wr_set_sge(ex, source.lkey, source.addr, source.length);
		if (i == first)
			dci_address(&from_client, &at_server, 0);
	}
	return ibv_wr_complete(ex);
}

/* mlx5dv_wr_post(3), "must be called": nothing of the batch is posted. */
TEST(address_is_needed)
{
	if (!in_profile("man", __func__))
		return;
	for (int first = 0; first < 2; first++) {
		expect_error(without_an_address(first), EINVAL);
		expect_idle(&from_client.end);
		side_compare(&server);
	}

	/* Other QPs do not have this setter. */
	ibv_wr_start(pair.client.ex);
	ibv_wr_send(pair.client.ex);
	mlx5dv_wr_set_dc_addr(pair.client.dv, from_client.ah, at_server.end.qp->qp_num, KEY);
	expect_error(ibv_wr_complete(pair.client.ex), EOPNOTSUPP);
	ibv_wr_start(pair.client.ex);
	ibv_wr_send(pair.client.ex);
	mlx5dv_wr_set_dc_addr_stream(pair.client.dv, from_client.ah, at_server.end.qp->qp_num, KEY, 1);
	expect_error(ibv_wr_complete(pair.client.ex), EOPNOTSUPP);
}

/* mlx5-formats 4.2: libmlx5 of an adapter omits that request, and posts the other. */
TEST(left_out_in_connectx)
{
	if (!in_profile("connectx", __func__))
		return;
	for (int first = 0; first < 2; first++) {
		expect_error(without_an_address(first), 0);
		expect_completion(&from_client.end, WR_ID, IBV_WC_RDMA_WRITE);
		expect_idle(&from_client.end);
		memcpy(server.expected + THERE_AT + 100 * first, client.expected + HERE_AT, 8);
		side_compare(&server);
	}
}

/* Each request of a batch is sent to its own address. */
TEST(many_targets)
{
	enum { TARGETS = 5, REQUESTS = 30 };
	struct dct targets[TARGETS];
	struct dci initiators[2];
	struct dci_options options = dci_defaults();

	for (int i = 0; i < TARGETS; i++)
		dct_open(&targets[i], i % 2 ? &server : &client, 100 + (uint64_t)i);
	for (int i = 0; i < 2; i++)
		dci_open(&initiators[i], &client, &server, &options);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_ex *ex = initiators[i].end.ex;

		ibv_wr_start(ex);
		ex->wr_flags = IBV_SEND_SIGNALED;
		for (uint32_t k = 0; k < REQUESTS; k++) {
			const struct dct *target = &targets[(k * 7 + (uint32_t)i) % TARGETS];
			size_t here = HERE_AT + k * 8, there = THERE_AT + (i * REQUESTS + k) * 8;

			ex->wr_id = k;
			ibv_wr_rdma_write(ex, target->end.side->mr->rkey, side_address(target->end.side, there));
			dci_address(&initiators[i], target, 0);
			ibv_wr_set_sge(ex, client.mr->lkey, side_address(&client, here), 8);
			memcpy(target->end.side->expected + there, client.expected + here, 8);
		}
		expect_error(ibv_wr_complete(ex), 0);
		for (uint32_t k = 0; k < REQUESTS; k++)
			expect_completion(&initiators[i].end, k, IBV_WC_RDMA_WRITE);
	}
	side_compare(&client);
	side_compare(&server);
	for (int i = 0; i < TARGETS; i++)
		dct_close(&targets[i]);
	for (int i = 0; i < 2; i++)
		dci_close(&initiators[i]);
}

/* ---- keys, raw requests, copies -------------------------------------------------------------------------------- */

/* A DCI supports ibv_wr_local_inv(3) and ibv_wr_bind_mw(3), like RC. */
TEST(keys)
{
	static struct layout layout;
	struct mlx5dv_mkey *mkey = side_create_mkey(&client, 4, NULL);
	struct ibv_mw *mw = side_alloc_mw(&client, IBV_MW_TYPE_2);
	struct ibv_sge sge = side_sge(&client, HERE_AT, 64);
	struct ibv_mw_bind_info bind = {.mr = client.mr,
					.addr = side_address(&client, HERE_AT),
					.length = 64,
					.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_qp_ex *ex = from_client.end.ex;
	uint32_t rkey = ibv_inc_rkey(mw->rkey);

	lay_list(&pair.client, BY_CONFIGURE, mkey, &layout, 1, &sge);
	dci_write(&from_client, &at_server, 0, 1, (struct ibv_sge){.addr = 0, .length = 64, .lkey = mkey->lkey},
		  server.mr->rkey, side_address(&server, THERE_AT));
	for (int i = 0; i < 64; i++)
		server.expected[THERE_AT + i] = client.expected[HERE_AT + i];
	expect_completion(&from_client.end, 1, IBV_WC_RDMA_WRITE);
	side_compare(&server);

	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ex->wr_id = 2;
	ibv_wr_local_inv(ex, mkey->rkey);
	ex->wr_id = 3;
	ibv_wr_bind_mw(ex, mw, rkey, &bind);
	expect_error(ibv_wr_complete(ex), 0);
	expect_completion(&from_client.end, 2, IBV_WC_LOCAL_INV);
	expect_completion(&from_client.end, 3, IBV_WC_BIND_MW);
	mw->rkey = rkey;
	/* A type 2 window serves only the QP that bound it, and a DCI receives nothing. */
	dci_write(&from_server, &at_client, 0, 4, side_sge(&server, 0, 8), rkey, side_address(&client, HERE_AT));
	expect_status(&from_server.end, 4, IBV_WC_REM_ACCESS_ERR);
	dci_write(&from_client, &at_server, 0, 5, (struct ibv_sge){.addr = 0, .length = 64, .lkey = mkey->lkey},
		  server.mr->rkey, side_address(&server, THERE_AT));
	expect_status(&from_client.end, 5, IBV_WC_LOC_PROT_ERR);
}

/* Checks the data of a client's key by a WRITE of all of it by the DCI. */
static void expect_key_writes(struct dci *dci, uint64_t wr_id, struct view key)
{
	note("key of %zu bytes", key.length);
	side_stir(&client);
	dci_write(dci, &at_server, 0, wr_id,
		  (struct ibv_sge){.addr = 0, .length = (uint32_t)key.length, .lkey = key.key}, server.mr->rkey,
		  side_address(&server, THERE_AT));
	expect_completion(&dci->end, wr_id, IBV_WC_RDMA_WRITE);
	for (size_t i = 0; i < key.length; i++)
		server.expected[THERE_AT + i] = client.expected[key.map[i]];
	side_compare(&server);
}

/*
 * mlx5dv_wr_post(3): "the available builders and setters for DCI QP are the same as RC QP". By default there is room for four
 * pieces, or three and a header, as with RC. These requests are local, so they have no address.
 */
TEST(builders_of_keys)
{
	static struct layout layout;
	struct mlx5dv_mkey *mkey = side_create_mkey(&client, 5, NULL);
	struct dci_options options = dci_defaults();
	struct dci dci;
	struct ibv_sge list[5] = {side_sge(&client, 9000, 100), side_sge(&client, 500, 60), side_sge(&client, 7000, 1),
				  side_sge(&client, 100, 33), side_sge(&client, 0, 1)};
	struct mlx5dv_mr_interleaved records[] = {side_interleaved(&client, 1000, 16, 16),
						  side_interleaved(&client, 30000, 5, 3),
						  side_interleaved(&client, 10, 33, 1)};

	options.dv_send_ops = DV_KEY_OPS;
	options.max_send_sge = 1;
	options.max_inline_data = 0;
	dci_open(&dci, &client, &server, &options);
	for (enum way way = BY_CONFIGURE; way <= BY_MR_CALL; way++) {
		note("way %d", way);
		expect_key_writes(&dci, 10, lay_list(&dci.end, way, mkey, &layout, 4, list));
		expect_key_writes(&dci, 11, lay_interleaved(&dci.end, way, mkey, &layout, 6, 3, records));
		expect_error(configure_list(&dci.end, way, mkey, 0, 5, list), ENOMEM);
		expect_idle(&dci.end);
	}
	/* One batch of the layout and the request that uses the key. */
	layout_of_list(&layout, &client, 2, list);
	batch_start(&dci.end, 12, IBV_SEND_INLINE);
	mlx5dv_wr_mr_list(dci.end.dv, mkey, 0, 2, list);
	dci.end.ex->wr_id = 13;
	dci.end.ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(dci.end.ex, server.mr->rkey, side_address(&server, THERE_AT));
	ibv_wr_set_sge(dci.end.ex, mkey->lkey, 0, 160);
	dci_address(&dci, &at_server, 0);
	expect_error(ibv_wr_complete(dci.end.ex), 0);
	expect_completion(&dci.end, 13, IBV_WC_RDMA_WRITE);
	for (size_t i = 0; i < 160; i++)
		server.expected[THERE_AT + i] = client.expected[layout.at[i]];
	side_compare(&server);
	dci_close(&dci);
}

/* Each of the five flags alone enables its builder on a DCI, as with RC; without the flag the builder is missing. */
TEST(builders_by_flag)
{
	struct dci_options options = dci_defaults();
	struct mlx5dv_mkey *mkey = side_create_mkey(&client, 4, NULL);
	struct mlx5dv_mkey_conf_attr no_attributes = {0};
	struct dci dci;

	options.dv_send_ops = MLX5DV_QP_EX_WITH_MR_LIST;
	dci_open(&dci, &client, &server, &options);
	batch_start(&dci.end, 1, IBV_SEND_INLINE);
	mlx5dv_wr_mr_list(dci.end.dv, mkey, 0, 0, NULL);
	expect_error(ibv_wr_complete(dci.end.ex), 0);
	batch_start(&dci.end, 1, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(dci.end.dv, mkey, 0, &no_attributes);
	expect_error(ibv_wr_complete(dci.end.ex), EOPNOTSUPP);
	batch_start(&dci.end, 1, IBV_SEND_INLINE);
	mlx5dv_wr_memcpy(dci.end.dv, client.mr->lkey, side_address(&client, 0), client.mr->lkey,
			 side_address(&client, 100), 8);
	expect_error(ibv_wr_complete(dci.end.ex), EOPNOTSUPP);
	dci_close(&dci);
}

/* Posts a WQE by mlx5dv_wr_raw_wqe(), with the DC address in the adapter's format. */
TEST(raw_request)
{
	struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		struct mlx5_wqe_datagram_seg address;
		struct mlx5_wqe_raddr_seg remote;
		struct mlx5_wqe_data_seg data;
	} wqe;
	uint8_t mac[6] = {0};

	memset(&wqe, 0, sizeof(wqe));
	mlx5dv_set_ctrl_seg(&wqe.ctrl, 0, MLX5_OPCODE_RDMA_WRITE, 0, from_client.end.qp->qp_num,
			    MLX5_WQE_CTRL_CQ_UPDATE, sizeof(wqe) / 16, 0, 0);
	mlx5dv_set_dgram_seg(&wqe.address, at_server.key, at_server.end.qp->qp_num, 1, 0, 0, 0, mac, 0, 1,
			     (uint32_t)client.gid_index << 20, server.gid.raw);
	wqe.remote.raddr = htobe64(side_address(&server, THERE_AT));
	wqe.remote.rkey = htobe32(server.mr->rkey);
	mlx5dv_set_data_seg(&wqe.data, 200, client.mr->lkey, side_address(&client, HERE_AT));
	ibv_wr_start(from_client.end.ex);
	from_client.end.ex->wr_id = WR_ID;
	mlx5dv_wr_raw_wqe(from_client.end.dv, &wqe);
	expect_error(ibv_wr_complete(from_client.end.ex), 0);
	expect_completion(&from_client.end, WR_ID, IBV_WC_DRIVER2);
	for (int i = 0; i < 200; i++)
		server.expected[THERE_AT + i] = client.expected[HERE_AT + i];
	side_compare(&server);
}

TEST(copy)
{
	ibv_wr_start(from_client.end.ex);
	from_client.end.ex->wr_id = WR_ID;
	from_client.end.ex->wr_flags = IBV_SEND_SIGNALED;
	mlx5dv_wr_memcpy(from_client.end.dv, client.mr->lkey, side_address(&client, THERE_AT), client.mr->lkey,
			 side_address(&client, HERE_AT), 300);
	expect_error(ibv_wr_complete(from_client.end.ex), 0);
	expect_completion(&from_client.end, WR_ID, MLX5DV_WC_MEMCPY);
	for (int i = 0; i < 300; i++)
		client.expected[THERE_AT + i] = client.expected[HERE_AT + i];
	side_compare(&client);
}

/* ---- receives -------------------------------------------------------------------------------------------------- */

/* Tests srq_limit of ibv_modify_srq(3), and a sender that waits for a receive. */
TEST(shared_receives)
{
	struct ibv_srq_attr limit = {.srq_limit = 1};
	struct ibv_sge sink = side_sge(&server, THERE_AT, 100);
	struct ibv_async_event event;

	dct_receive(&at_server, RECV_ID, &sink, 1);
	expect_error(ibv_modify_srq(at_server.srq, &limit, IBV_SRQ_LIMIT), 0);
	dci_send(&from_client, &at_server, 0, 1, side_sge(&client, HERE_AT, 100));
	dci_send(&from_client, &at_server, 0, 2, side_sge(&client, HERE_AT, 50));
	expect_completion(&from_client.end, 1, IBV_WC_SEND);
	expect_completion(&at_server.end, RECV_ID, IBV_WC_RECV);
	expect_error(ibv_get_async_event(server.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, at_server.srq);
	ibv_ack_async_event(&event);
	expect_idle(&from_client.end);
	dct_receive(&at_server, RECV_ID + 1, &sink, 1);
	expect_completion(&from_client.end, 2, IBV_WC_SEND);
	assert_int_equal(expect_completion(&at_server.end, RECV_ID + 1, IBV_WC_RECV).byte_len, 50);
	for (int i = 0; i < 100; i++)
		server.expected[THERE_AT + i] = client.expected[HERE_AT + i];
	side_compare(&server);
}

/* A message that is too long fails the receive and its sender; the DCT receives the next one. */
TEST(too_long)
{
	struct ibv_sge sink = side_sge(&server, THERE_AT, 100);
	struct dci_options options = dci_defaults();
	struct dci other;

	dci_open(&other, &client, &server, &options);
	dct_receive(&at_server, RECV_ID, &sink, 1);
	dct_receive(&at_server, RECV_ID + 1, &sink, 1);
	dci_send(&from_client, &at_server, 0, WR_ID, side_sge(&client, HERE_AT, 101));
	expect_status(&from_client.end, WR_ID, IBV_WC_REM_INV_REQ_ERR);
	expect_status(&at_server.end, RECV_ID, IBV_WC_LOC_LEN_ERR);
	dci_send(&other, &at_server, 0, WR_ID, side_sge(&client, HERE_AT, 100));
	expect_completion(&other.end, WR_ID, IBV_WC_SEND);
	expect_completion(&at_server.end, RECV_ID + 1, IBV_WC_RECV);
	for (int i = 0; i < 100; i++)
		server.expected[THERE_AT + i] = client.expected[HERE_AT + i];
	dci_close(&other);
}

int main(void)
{
	return run_cases(.setup = dc_open, .teardown = dc_close);
}
