/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC over a wire (IBTA annex A14): an XRC_SEND QP, an XRC_RECV QP, and two SRQs of its domain, each with a separate CQ
 * and protection domain. Messages are split, lost, duplicated and overtaken; SRQs and QPs are destroyed while a message
 * is in flight; a foreign sender breaks the rules.
 */
#include "test_case.h"

#include <fcntl.h>

#include "../support/wire_fixture.h"
#include "../support/mishap.h"

#include "transport/control/commands.h"

enum {
	IMMEDIATE = 0x1a2b3c4d,
	SRQ_ENTRIES = 16,
	SRQ_SHIFT = 5, /* the link, and one segment */
	SRQ_BYTES = 2048,
};

struct raw_srq {
	struct hca_srq *srq;
	struct raw_cq cq;
	struct hca_pd *pd;
	struct mkey *region; /* over the device's memory, in that domain */
	uint8_t ring[SRQ_ENTRIES << SRQ_SHIFT];
	uint32_t dbrec;
	uint16_t posted;
	uint16_t completed; /* receives complete in the order of posting here */
};

static struct hca_xrcd *xrcd, *other_xrcd;
static struct raw_srq srqs[2];
static struct hca_qp *recv_qp;
static uint32_t user_index_of[2] = {0x101, 0x202};
static char cookie;
static uint8_t expected[sizeof(device.memory)];

/* ---- queues ---------------------------------------------------------------------------------------------------- */

static void srq_make(struct raw_srq *srq, struct hca_xrcd *domain, uint32_t user_index)
{
	struct hca_mr_attr region = {
		.addr = device.memory,
		.start = (uintptr_t)device.memory,
		.length = sizeof(device.memory),
		.access = ALL_ACCESS,
	};
	struct hca_srq_attr attr = {
		.buffer = srq->ring,
		.entry_count = SRQ_ENTRIES,
		.entry_shift = SRQ_SHIFT,
		.dbrec = &srq->dbrec,
		.xrcd = domain,
		.user_index = user_index,
	};

	memset(srq, 0, sizeof(*srq));
	assert_int_equal(hca_pd_alloc(device.context, &srq->pd), 0);
	assert_int_equal(hca_mr_register(srq->pd, &region, &srq->region), 0);
	raw_cq_make(&device, &srq->cq, CQES);
	attr.cq = srq->cq.cq;
	for (uint16_t i = 0; i < SRQ_ENTRIES; i++) {
		const struct mlx5_wqe_srq_next_seg link = {.next_wqe_index = htobe16((i + 1) % SRQ_ENTRIES)};

		memcpy(srq->ring + (i << SRQ_SHIFT), &link, sizeof(link));
	}
	assert_int_equal(hca_srq_create(srq->pd, &attr, &srq->srq), 0);
}

static void srq_destroy(struct raw_srq *srq)
{
	if (srq->srq)
		assert_int_equal(hca_srq_destroy(srq->srq), 0);
	srq->srq = NULL;
}

static void srq_unmake(struct raw_srq *srq)
{
	srq_destroy(srq);
	raw_cq_destroy(&srq->cq);
	assert_int_equal(hca_mr_deregister(srq->region), 0);
	assert_int_equal(hca_pd_dealloc(srq->pd), 0);
}

static void srq_post(struct raw_srq *srq, uint32_t offset)
{
	const struct mlx5_wqe_data_seg data = {
		.byte_count = htobe32(SRQ_BYTES),
		.lkey = htobe32(mkey_number(srq->region)),
		.addr = htobe64((uintptr_t)device.memory + offset),
	};

	memcpy(srq->ring + ((srq->posted % SRQ_ENTRIES) << SRQ_SHIFT) + 16, &data, sizeof(data));
	srq->posted++;
	__atomic_store_n(&srq->dbrec, htobe32(srq->posted), __ATOMIC_RELEASE);
}

static void send_qp_make(void)
{
	struct hca_qp_attr attr = {
		.type = IBV_QPT_XRC_SEND,
		.pd = device.pd,
		.send_cq = client_cq.cq,
		.sq_wqebb_count = BLOCKS,
		.dbrec = client.dbrec,
	};

	memset(&client, 0, sizeof(client));
	client.cq = &client_cq;
	client.blocks = BLOCKS;
	client.sq = attr.sq_buffer = aligned_alloc(64, BLOCKS * 64);
	memset(client.sq, 0, BLOCKS * 64);
	assert_int_equal(hca_qp_create(device.context, &attr, &client.qp), 0);
}

static void recv_qp_make(void)
{
	struct hca_qp_attr attr = {.type = IBV_QPT_XRC_RECV, .xrcd = xrcd, .cookie = &cookie};

	assert_int_equal(hca_qp_create(device.context, &attr, &recv_qp), 0);
}

static int open_all(void **state)
{
	(void)state;
	device_open(&device);
	wire_attach(device.hca, NULL, NULL);
	raw_cq_make(&device, &client_cq, CQES);
	assert_int_equal(hca_xrcd_open(device.context, -1, O_CREAT, &xrcd), 0);
	assert_int_equal(hca_xrcd_open(device.context, -1, O_CREAT, &other_xrcd), 0);
	for (int i = 0; i < 2; i++)
		srq_make(&srqs[i], xrcd, user_index_of[i]);
	send_qp_make();
	recv_qp_make();
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	raw_qp_destroy(&client);
	if (recv_qp)
		hca_qp_close(recv_qp, &cookie);
	for (int i = 0; i < 2; i++)
		srq_unmake(&srqs[i]);
	assert_int_equal(hca_xrcd_close(xrcd), 0);
	assert_int_equal(hca_xrcd_close(other_xrcd), 0);
	raw_cq_destroy(&client_cq);
	wire_detach(device.hca);
	device_close(&device);
	return 0;
}

static void move(struct hca_qp *qp, enum ibv_qp_state state, struct ibv_qp_attr attr, int mask)
{
	attr.qp_state = state;
	assert_int_equal(hca_qp_modify(qp, &attr, mask | IBV_QP_STATE), 0);
}

/* Changes from RESET to RTS with exactly the attributes that each type requires. */
static void connect_qp(struct hca_qp *qp, uint32_t peer, const struct ibv_qp_attr *options)
{
	bool sends = qp->type == IBV_QPT_XRC_SEND;
	struct ibv_qp_attr attr = *options;
	size_t gids;

	attr.port_num = 1;
	attr.qp_access_flags = ALL_ACCESS & ~IBV_ACCESS_MW_BIND;
	attr.dest_qp_num = peer;
	attr.rq_psn = attr.sq_psn = SQ_START_PSN;
	attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
	attr.ah_attr.grh.dgid = hca_gids(device.hca, &gids)[0].gid;
	move(qp, IBV_QPS_RESET, attr, 0);
	if (sends) {
		client.posted = 0;
		client.dbrec[0] = client.dbrec[1] = 0;
	}
	move(qp, IBV_QPS_INIT, attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	move(qp, IBV_QPS_RTR, attr,
	     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		     (sends ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	move(qp, IBV_QPS_RTS, attr,
	     IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
		     (sends ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0));
}

/* Every request names an SRQ, in each of its packets; responses do not. */
static bool names_srq(const struct wire_packet *packet)
{
	bool response = message_has(packet_opcodes[packet->opcode].message, MESSAGE_IS_RESPONSE);

	return response ? !packet->xrc_srqn
			: packet->xrc_srqn == srqs[0].srq->number || packet->xrc_srqn == srqs[1].srq->number;
}

static enum wire_verdict look(void *argument, uint64_t number, const struct wire_packet *packet)
{
	(void)number;
	if (packet_opcodes[packet->opcode].transport != IBV_QPT_XRC_SEND || !names_srq(packet))
		*(bool *)argument = true;
	return WIRE_PASS;
}

/* Starts with a new connection, an empty wire, no completions, and known contents of memory. */
static void start(const struct ibv_qp_attr *options, wire_filter *filter, void *argument)
{
	struct wire_packet *packet;

	connect_qp(client.qp, recv_qp->number, options);
	connect_qp(recv_qp, client.qp->number, options);
	while ((packet = wire_take()))
		free(packet);
	while (raw_cq_poll(&client_cq))
		;
	for (int i = 0; i < 2; i++) {
		while (raw_cq_poll(&srqs[i].cq))
			;
		/* No receive is left over: each test posts its own. */
		assert_int_equal(srqs[i].posted, srqs[i].completed);
	}
	wire_detach(device.hca);
	wire_attach(device.hca, filter, argument);
	wire_mtu = 128u << options->path_mtu;
	for (size_t i = 0; i < sizeof(device.memory); i++)
		device.memory[i] = (uint8_t)(i * 7 + i / 251 + (i >= HALF));
	memcpy(expected, device.memory, sizeof(expected));
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

static const uint8_t opcodes[] = {MLX5_OPCODE_SEND,           MLX5_OPCODE_SEND_IMM,  MLX5_OPCODE_RDMA_WRITE,
				  MLX5_OPCODE_RDMA_WRITE_IMM, MLX5_OPCODE_RDMA_READ, MLX5_OPCODE_ATOMIC_FA,
				  MLX5_OPCODE_ATOMIC_CS};

#define OPCODES (sizeof(opcodes) / sizeof(opcodes[0]))

static bool is_atomic(uint8_t opcode)
{
	return opcode == MLX5_OPCODE_ATOMIC_FA || opcode == MLX5_OPCODE_ATOMIC_CS;
}

static bool takes_receive(uint8_t opcode)
{
	return opcode == MLX5_OPCODE_SEND || opcode == MLX5_OPCODE_SEND_IMM || opcode == MLX5_OPCODE_RDMA_WRITE_IMM;
}

static uint32_t client_place(uint32_t i)
{
	return i * SRQ_BYTES;
}

static uint32_t server_place(uint32_t i)
{
	return HALF + i * SRQ_BYTES;
}

/* mlx5-formats 1.4: control, XRC, remote address, atomic, data. @rkey: of the range at @remote. */
static void put(uint8_t opcode, uint32_t srqn, uint32_t local, uint32_t remote, uint32_t length, uint32_t rkey)
{
	struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		uint8_t rest[7 * 16];
	} wqe = {.ctrl = ctrl_segment(&client, opcode, 0)};
	const __be32 xrc[4] = {htobe32(srqn), 0xa5a5a5a5, 0xa5a5a5a5, 0xa5a5a5a5};
	struct mlx5_wqe_raddr_seg raddr = {.raddr = htobe64((uintptr_t)device.memory + remote), .rkey = htobe32(rkey)};
	struct mlx5_wqe_atomic_seg atomic = {.swap_add = htobe64(UINT64_C(0x0102030405060708)), .compare = 0};
	struct mlx5_wqe_data_seg data = data_segment(&device, local, length);
	uint32_t segments = 1;

	memcpy(wqe.rest, xrc, 16);
	segments++;
	if (is_atomic(opcode) || opcode == MLX5_OPCODE_RDMA_WRITE || opcode == MLX5_OPCODE_RDMA_WRITE_IMM ||
	    opcode == MLX5_OPCODE_RDMA_READ)
		memcpy(wqe.rest + 16 * (segments++ - 1), &raddr, 16);
	if (is_atomic(opcode))
		memcpy(wqe.rest + 16 * (segments++ - 1), &atomic, 16);
	if (length)
		memcpy(wqe.rest + 16 * (segments++ - 1), &data, 16);
	wqe.ctrl.qpn_ds = htobe32(client.qp->number << 8 | segments);
	wqe.ctrl.imm = htobe32(IMMEDIATE);
	put_wqe(&client, &wqe, segments, segments > 4 ? 2 : 1);
}

static void expect_message(uint8_t opcode, uint32_t i, uint32_t length)
{
	uint8_t *here = expected + client_place(i), *there = expected + server_place(i);
	uint64_t before, after, operand = UINT64_C(0x0102030405060708);

	if (is_atomic(opcode)) {
		memcpy(&before, there, 8);
		after = opcode == MLX5_OPCODE_ATOMIC_FA ? before + operand : before;
		memcpy(there, &after, 8);
		memcpy(here, &before, 8);
	} else if (opcode == MLX5_OPCODE_RDMA_READ) {
		memcpy(here, there, length);
	} else {
		memcpy(there, here, length);
	}
}

/* Posts message @i through the SRQ @which; its domain has the key in the message. */
static void put_message(uint8_t opcode, uint32_t i, int which, uint32_t length)
{
	struct raw_srq *srq = &srqs[which];

	if (is_atomic(opcode))
		length = 8;
	if (takes_receive(opcode))
		srq_post(srq, server_place(i));
	put(opcode, srq->srq->number, client_place(i), server_place(i), length, mkey_number(srq->region));
	expect_message(opcode, i, length);
}

static const struct mlx5_err_cqe *next_receive(struct raw_srq *srq)
{
	const struct mlx5_err_cqe *cqe = raw_cq_poll(&srq->cq);

	assert_non_null(cqe);
	assert_int_equal(be16toh(cqe->wqe_counter), srq->completed % SRQ_ENTRIES);
	assert_int_equal(be32toh(cqe->srqn) & 0xffffff, user_index_of[srq - srqs]);
	assert_int_equal(be32toh(cqe->s_wqe_opcode_qpn) & 0xffffff, recv_qp->number);
	srq->completed++;
	return cqe;
}

static void expect_completions(uint8_t opcode, uint16_t index, int which, uint32_t length)
{
	const struct mlx5_cqe64 *cqe;

	expect_cqe(&client_cq, index, 0);
	if (!takes_receive(opcode))
		return;
	cqe = (const struct mlx5_cqe64 *)next_receive(&srqs[which]);
	assert_int_equal(cqe->op_own >> 4, opcode == MLX5_OPCODE_SEND       ? MLX5_CQE_RESP_SEND
					   : opcode == MLX5_OPCODE_SEND_IMM ? MLX5_CQE_RESP_SEND_IMM
									    : MLX5_CQE_RESP_WR_IMM);
	assert_int_equal(be32toh(cqe->byte_cnt), length);
	if (opcode != MLX5_OPCODE_SEND)
		assert_int_equal(be32toh(cqe->imm_inval_pkey), IMMEDIATE);
}

static void expect_nothing_more(void)
{
	assert_null(raw_cq_poll(&client_cq));
	assert_null(raw_cq_poll(&srqs[0].cq));
	assert_null(raw_cq_poll(&srqs[1].cq));
}

static void compare_memory(void)
{
	for (size_t i = 0; i < sizeof(expected); i++)
		if (device.memory[i] != expected[i])
			fail_msg("byte %#zx is %02x, not %02x", i, device.memory[i], expected[i]);
}

TEST(every_length)
{
	static const uint32_t lengths[] = {0, 1, 8, 255, 256, 257, 511, 512, 2048};
	struct ibv_qp_attr options = wire_options();
	bool astray = false;

	for (size_t o = 0; o < OPCODES; o++)
		for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++)
			for (int which = 0; which < 2; which++) {
				start(&options, look, &astray);
				put_message(opcodes[o], 0, which, lengths[l]);
				ring(&client);
				wire_deliver_all();
				expect_completions(opcodes[o], 0, which, lengths[l]);
				expect_nothing_more();
				compare_memory();
				assert_false(astray);
				assert_true(wire_rests());
			}
}

enum { BATCH = 5 };

/* Posts five messages, each with another opcode, to the SRQs in turn. */
static void batch(size_t first, uint32_t length)
{
	uint16_t index = 0;

	for (uint32_t i = 0; i < BATCH; i++)
		put_message(opcodes[(first + i) % OPCODES], i, i % 2, length);
	ring(&client);
	wire_settle();
	for (uint32_t i = 0; i < BATCH; i++) {
		uint8_t opcode = opcodes[(first + i) % OPCODES];

		expect_completions(opcode, index, i % 2, length);
		/* An atomic has five segments. */
		index += is_atomic(opcode) ? 2 : 1;
	}
	expect_nothing_more();
	compare_memory();
}

TEST(one_mishap)
{
	static const uint32_t lengths[] = {0, 100, 700};
	struct ibv_qp_attr options = wire_options();

	for (int verdict = WIRE_DROP; verdict <= WIRE_DELAY; verdict++)
		for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++)
			for (size_t first = 0; first < OPCODES; first++) {
				struct mishap mishap = {.verdict = (enum wire_verdict)verdict};

				while (mishap_next(&mishap)) {
					start(&options, mishap_filter, &mishap);
					batch(first, lengths[l]);
				}
				assert_true(mishap.number > BATCH);
			}
}

/* IBTA C9-82, with the RNR timer of the XRC_RECV QP: an empty SRQ delays the messages that name it. */
TEST(waits_for_a_receive)
{
	struct ibv_qp_attr options = wire_options();

	start(&options, NULL, NULL);
	srq_post(&srqs[1], server_place(1));
	put(MLX5_OPCODE_SEND, srqs[0].srq->number, client_place(0), 0, 600, 0);
	put(MLX5_OPCODE_SEND, srqs[1].srq->number, client_place(1), 0, 600, 0);
	ring(&client);
	for (int i = 0; i < 3; i++) {
		wire_deliver_all();
		assert_true(wire_clock_next());
	}
	expect_nothing_more();
	srq_post(&srqs[0], server_place(0));
	wire_settle();
	expect_message(MLX5_OPCODE_SEND, 0, 600);
	expect_message(MLX5_OPCODE_SEND, 1, 600);
	expect_completions(MLX5_OPCODE_SEND, 0, 0, 600);
	expect_completions(MLX5_OPCODE_SEND, 1, 1, 600);
	expect_nothing_more();
	compare_memory();
}

/* ---- refusals -------------------------------------------------------------------------------------------------- */

/* Returns the newest explanation about the XRC_RECV QP, except for packets that arrived in ERR. */
static enum explain_rule newest_rule(void)
{
	struct explain_record record = {.serial = 0};

	do
		assert_true(explain_previous(device.hca, recv_qp->number, record.serial, &record));
	while (record.rule == RULE_PACKET_STATE);
	return record.rule;
}

/* Expects the request to end with @syndrome, refused by @rule: both QPs in ERR, no byte transferred, no receive used. */
static void expect_refused(uint8_t syndrome, enum explain_rule rule)
{
	const struct mlx5_err_cqe *cqe;

	wire_settle();
	cqe = raw_cq_poll(&client_cq);
	assert_non_null(cqe);
	assert_int_equal(cqe->op_own >> 4, MLX5_CQE_REQ_ERR);
	assert_int_equal(cqe->syndrome, syndrome);
	assert_int_equal(newest_rule(), rule);
	expect_nothing_more();
	compare_memory();
	assert_int_equal(hca_qp_state(client.qp), IBV_QPS_ERR);
	assert_int_equal(hca_qp_state(recv_qp), IBV_QPS_ERR);
}

TEST(unknown_srq)
{
	struct ibv_qp_attr options = wire_options();

	for (size_t o = 0; o < OPCODES; o++) {
		start(&options, NULL, NULL);
		put(opcodes[o], 0xfffff0, client_place(0), server_place(0), is_atomic(opcodes[o]) ? 8 : 700,
		    mkey_number(srqs[0].region));
		ring(&client);
		expect_refused(MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, RULE_XRC_SRQ_UNKNOWN);
	}
}

TEST(srq_of_another_domain)
{
	struct ibv_qp_attr options = wire_options();
	struct hca_srq_attr basic = {.entry_count = SRQ_ENTRIES, .entry_shift = SRQ_SHIFT};
	static struct raw_srq foreign;
	struct hca_srq *plain;

	srq_make(&foreign, other_xrcd, 3);
	srq_post(&foreign, server_place(0));
	start(&options, NULL, NULL);
	put(MLX5_OPCODE_SEND, foreign.srq->number, client_place(0), 0, 700, 0);
	ring(&client);
	expect_refused(MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, RULE_XRC_SRQ_DOMAIN);
	assert_null(raw_cq_poll(&foreign.cq));

	/* A basic SRQ does not belong to the domain either. */
	basic.buffer = foreign.ring;
	basic.dbrec = &foreign.dbrec;
	assert_int_equal(hca_srq_create(foreign.pd, &basic, &plain), 0);
	start(&options, NULL, NULL);
	put(MLX5_OPCODE_SEND, plain->number, client_place(0), 0, 700, 0);
	ring(&client);
	expect_refused(MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, RULE_XRC_SRQ_DOMAIN);
	assert_int_equal(hca_srq_destroy(plain), 0);
	srq_unmake(&foreign);
}

/* IBTA annex A14: keys belong to the protection domain of the SRQ. */
TEST(key_of_another_srq)
{
	static const uint8_t named[] = {MLX5_OPCODE_RDMA_WRITE, MLX5_OPCODE_RDMA_READ, MLX5_OPCODE_ATOMIC_FA};
	struct ibv_qp_attr options = wire_options();

	for (size_t i = 0; i < sizeof(named); i++) {
		start(&options, NULL, NULL);
		put(named[i], srqs[0].srq->number, client_place(0), server_place(0), 8, mkey_number(srqs[1].region));
		ring(&client);
		expect_refused(MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, RULE_KEY_DOMAIN);
	}
}

/* A foreign sender: the second packet of a message names the other SRQ. The receive used by the message fails. */
TEST(srq_changes_within_a_message)
{
	struct ibv_qp_attr options = wire_options();
	const struct mlx5_err_cqe *cqe;
	struct wire_packet *packet;

	start(&options, NULL, NULL);
	srq_post(&srqs[0], server_place(0));
	put(MLX5_OPCODE_SEND, srqs[0].srq->number, client_place(0), 0, 700, 0);
	ring(&client);
	assert_true(wire_deliver());
	memcpy(expected + server_place(0), expected + client_place(0), 256);
	packet = wire_take();
	packet->xrc_srqn = srqs[1].srq->number;
	wire_receive(packet);
	free(packet);
	cqe = next_receive(&srqs[0]);
	assert_int_equal(cqe->op_own >> 4, MLX5_CQE_RESP_ERR);
	assert_int_equal(cqe->syndrome, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
	assert_int_equal(cqe->vendor_err_synd, RULE_XRC_SRQ_CHANGED);
	expect_refused(MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, RULE_XRC_SRQ_CHANGED);
}

/* A QP has one half: a request to the sending QP, and a response to the receiving QP, are dropped. */
TEST(wrong_half)
{
	struct ibv_qp_attr options = wire_options();
	struct wire_packet *packet;

	start(&options, NULL, NULL);
	put(MLX5_OPCODE_RDMA_WRITE, srqs[0].srq->number, client_place(0), server_place(0), 8,
	    mkey_number(srqs[0].region));
	ring(&client);
	packet = wire_take();
	packet->destination_qpn = client.qp->number;
	wire_receive(packet);
	packet->destination_qpn = recv_qp->number;
	wire_receive(packet);
	free(packet);
	packet = wire_take();
	assert_int_equal(packet_opcodes[packet->opcode].message, MESSAGE_ACKNOWLEDGE);
	packet->destination_qpn = recv_qp->number;
	wire_receive(packet);
	assert_int_equal(newest_rule(), RULE_PACKET_TRANSPORT);
	packet->destination_qpn = client.qp->number;
	wire_receive(packet);
	free(packet);
	assert_null(wire_take());
	expect_message(MLX5_OPCODE_RDMA_WRITE, 0, 8);
	expect_completions(MLX5_OPCODE_RDMA_WRITE, 0, 0, 8);
	expect_nothing_more();
	compare_memory();
}

/* ---- destroyed objects ----------------------------------------------------------------------------------------- */

/* A message in progress loses its SRQ: its rest has no target, and nothing is written any more. */
TEST(srq_goes_within_a_message)
{
	static const uint8_t parts[] = {MLX5_OPCODE_SEND, MLX5_OPCODE_RDMA_WRITE};
	struct ibv_qp_attr options = wire_options();

	for (size_t i = 0; i < sizeof(parts); i++) {
		start(&options, NULL, NULL);
		if (takes_receive(parts[i]))
			srq_post(&srqs[0], server_place(0));
		put(parts[i], srqs[0].srq->number, client_place(0), server_place(0), 700, mkey_number(srqs[0].region));
		ring(&client);
		assert_true(wire_deliver());
		memcpy(expected + server_place(0), expected + client_place(0), 256);
		srq_destroy(&srqs[0]);
		expect_refused(MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, RULE_XRC_SRQ_UNKNOWN);
		srq_unmake(&srqs[0]);
		srq_make(&srqs[0], xrcd, user_index_of[0]);
	}
}

/* Simulates a stage that finds a signature error of a key that QP @recv_qp reads or writes for its peer. */
static void find_signature_error(void)
{
	const struct signature_error error = {.syndrome = 1};

	epoch_enter();
	recv_qp->received_error.report(&recv_qp->received_error, &error);
	epoch_leave();
}

/*
 * The answer to a READ is read when there is room for it. By then the SRQ may be gone, and with it the last reference to
 * its CQ: errors found in the memory then are not reported.
 */
TEST(srq_goes_before_the_answer)
{
	enum setting_PROFILE profile = device.hca->settings.profile;
	struct ibv_qp_attr options = wire_options();

	start(&options, NULL, NULL);
	/* Each CQ is notified. */
	device.hca->settings.profile = PROFILE_CONNECTX;
	put(MLX5_OPCODE_RDMA_READ, srqs[0].srq->number, client_place(0), server_place(0), 700,
	    mkey_number(srqs[0].region));
	ring(&client);
	assert_true(wire_deliver());
	find_signature_error();
	assert_non_null(raw_cq_poll(&srqs[0].cq));
	srq_destroy(&srqs[0]);
	find_signature_error();
	assert_null(raw_cq_poll(&srqs[0].cq));
	device.hca->settings.profile = profile;
	srq_unmake(&srqs[0]);
	find_signature_error();
	srq_make(&srqs[0], xrcd, user_index_of[0]);
}

/* Another SRQ gets the number before the rest of a message arrives: the rest does not belong to it. */
TEST(number_comes_back_within_a_message)
{
	static const uint8_t parts[] = {MLX5_OPCODE_SEND, MLX5_OPCODE_RDMA_WRITE};
	struct ibv_qp_attr options = wire_options();

	for (size_t i = 0; i < sizeof(parts); i++) {
		uint32_t number = srqs[0].srq->number;
		int tries = 0;

		start(&options, NULL, NULL);
		if (takes_receive(parts[i]))
			srq_post(&srqs[0], server_place(0));
		put(parts[i], number, client_place(0), server_place(0), 700, mkey_number(srqs[0].region));
		ring(&client);
		assert_true(wire_deliver());
		memcpy(expected + server_place(0), expected + client_place(0), 256);
		do {
			assert_true(tries++ < 100000);
			srq_unmake(&srqs[0]);
			srq_make(&srqs[0], xrcd, user_index_of[0]);
		} while (srqs[0].srq->number != number);
		expect_refused(MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, RULE_PACKET_ORDER);
	}
}

/* The QP is destroyed: the receive used by its message returns to the SRQ, which stays. */
TEST(qp_goes_within_a_message)
{
	struct ibv_qp_attr options = wire_options(), attr = {.qp_state = IBV_QPS_RESET};
	const struct mlx5_err_cqe *cqe;

	for (int destroy = 0; destroy < 2; destroy++) {
		start(&options, NULL, NULL);
		srq_post(&srqs[1], server_place(0));
		put(MLX5_OPCODE_SEND, srqs[1].srq->number, client_place(0), 0, 700, 0);
		ring(&client);
		assert_true(wire_deliver());
		if (destroy)
			hca_qp_close(recv_qp, &cookie);
		else
			assert_int_equal(hca_qp_modify(recv_qp, &attr, IBV_QP_STATE), 0);
		cqe = raw_cq_poll(&srqs[1].cq);
		assert_non_null(cqe);
		srqs[1].completed++;
		assert_int_equal(cqe->op_own >> 4, MLX5_CQE_RESP_ERR);
		assert_int_equal(cqe->syndrome, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
		assert_int_equal(be32toh(cqe->srqn) & 0xffffff, user_index_of[1]);
		assert_null(raw_cq_poll(&srqs[1].cq));
	}
	recv_qp = NULL;
}

/*
 * A READ is repeated while the message after it is in progress, with another SRQ: it is answered in its own domain, and
 * the message continues in its own.
 */
TEST(repeated_read_within_a_message)
{
	struct ibv_qp_attr options = wire_options();
	struct wire_packet *read;

	start(&options, NULL, NULL);
	srq_post(&srqs[0], server_place(1));
	put(MLX5_OPCODE_RDMA_READ, srqs[1].srq->number, client_place(0), server_place(0), 100,
	    mkey_number(srqs[1].region));
	put(MLX5_OPCODE_SEND, srqs[0].srq->number, client_place(1), 0, 700, 0);
	ring(&client);
	read = wire_take();
	assert_int_equal(packet_opcodes[read->opcode].message, MESSAGE_READ_REQUEST);
	wire_receive(read);
	assert_true(wire_deliver()); /* the first packet of the SEND */
	wire_receive(read);
	free(read);
	wire_settle();
	expect_message(MLX5_OPCODE_RDMA_READ, 0, 100);
	expect_message(MLX5_OPCODE_SEND, 1, 700);
	expect_completions(MLX5_OPCODE_RDMA_READ, 0, 1, 100);
	expect_completions(MLX5_OPCODE_SEND, 1, 0, 700);
	expect_nothing_more();
	compare_memory();
}

/*
 * Repetitions arrive after the SRQ of their request is gone: a SEND is acknowledged again. A READ has no protection
 * domain any more; its repetition is dropped, and the receiving QP, which other SRQs use as well, survives.
 */
TEST(repetition_after_the_srq)
{
	static const uint8_t parts[] = {MLX5_OPCODE_SEND, MLX5_OPCODE_RDMA_READ};
	struct ibv_qp_attr options = wire_options();
	struct wire_packet *packet, *answer;

	for (size_t i = 0; i < sizeof(parts); i++) {
		start(&options, NULL, NULL);
		put_message(parts[i], 0, 0, 100);
		ring(&client);
		packet = wire_take();
		wire_receive(packet);
		free(wire_take()); /* the answer is lost */
		if (takes_receive(parts[i]))
			next_receive(&srqs[0]);
		else
			memcpy(expected, device.memory, sizeof(expected));
		srq_destroy(&srqs[0]);
		wire_receive(packet);
		free(packet);
		if (takes_receive(parts[i])) {
			answer = wire_take();
			assert_int_equal(packet_opcodes[answer->opcode].message, MESSAGE_ACKNOWLEDGE);
			assert_int_equal(answer->syndrome, ACKNOWLEDGED);
			wire_receive(answer);
			free(answer);
			expect_cqe(&client_cq, 0, 0);
			expect_nothing_more();
		} else {
			assert_null(wire_take());
			assert_int_equal(newest_rule(), RULE_REPETITION_DROPPED);
			wire_settle();
			expect_cqe(&client_cq, 0, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
			expect_nothing_more();
			assert_int_equal(hca_qp_state(recv_qp), IBV_QPS_RTS);
		}
		compare_memory();
		srq_unmake(&srqs[0]);
		srq_make(&srqs[0], xrcd, user_index_of[0]);
	}
}

/* A full CQ of an SRQ (IBTA C11-39): the QP that filled it ends. */
TEST(cq_of_the_srq_overruns)
{
	struct ibv_qp_attr options = wire_options();

	srq_unmake(&srqs[0]);
	srq_make(&srqs[0], xrcd, user_index_of[0]);
	start(&options, NULL, NULL);
	for (int i = 0; i < CQES + 1 && hca_qp_state(recv_qp) == IBV_QPS_RTS; i++) {
		srq_post(&srqs[0], server_place(0));
		put(MLX5_OPCODE_SEND, srqs[0].srq->number, client_place(0), 0, 8, 0);
		ring(&client);
		wire_settle();
		raw_cq_poll(&client_cq);
	}
	assert_int_equal(hca_qp_state(recv_qp), IBV_QPS_ERR);
}

int main(void)
{
	return run_cases(.setup = open_all, .teardown = close_all);
}
