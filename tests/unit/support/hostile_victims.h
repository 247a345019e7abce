/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Live responders of UC, UD, XRC and DC, and hand-made packets for them (frame_bytes.h), which are parsed, committed
 * and drained like those of a link. Replies are captured on a wire (wire_link.h).
 *
 * A victim has receives, and a window of memory that its peer may access. After each step all of the memory is compared
 * with its expected contents.
 */
#ifndef SOFTHCA_TESTS_HOSTILE_VICTIMS_H
#define SOFTHCA_TESTS_HOSTILE_VICTIMS_H

#include "test_case.h"

#include <fcntl.h>

#include "device_fixture.h"
#include "frame_bytes.h"
#include "transport/control/commands.h"
#include "wire/roce.h"
#include "transport/responder/dct.h"
#include "transport/run/run.h"
#include "wire_link.h"

enum {
	MTU = 256,
	WINDOW = 8192, /* offset of the range of the key */
	WINDOW_BYTES = 4096,
	RECEIVES = 16384,
	RECEIVE_BYTES = 1024,
	RECEIVE_COUNT = 4,
	GRH = 40,
	CQES = 64,
	SRQ_ENTRIES = 8,
	SRQ_SHIFT = 5, /* the link, and one segment */
	PEER = 0x77,   /* a QP that does not exist: replies to it end on the wire */
	QKEY = 0x11111111,
	DC_KEY = 0x5eed,
	ANY_PSN = 5, /* datagrams have no order */
};

static const struct victim {
	const char *name;
	enum ibv_qp_type type;
	uint8_t opcodes; /* its SEND first; the rest in RC's order (IBTA table 38, docs/inside/wire.md) */
	uint8_t atomics; /* opcode of its compare-and-swap; 0: neither atomics nor READs */
	bool reliable;
} victims[] = {
	{"UC", IBV_QPT_UC, 0x20, 0, false},
	{"UD", IBV_QPT_UD, 0x60, 0, false},
	{"XRC", IBV_QPT_XRC_RECV, 0xa0, 0xb3, true},
	{"DCT", QP_TYPE_DCT, 0xc0, 0xd8, true},
};

#define VICTIMS (sizeof(victims) / sizeof(victims[0]))

static const struct victim *victim;
static struct hca_qp *target;
static struct raw_cq cq;
static struct raw_qp end; /* for UC and UD */
static struct {
	struct hca_srq *srq;
	struct hca_xrcd *xrcd; /* for XRC */
	uint8_t ring[SRQ_ENTRIES << SRQ_SHIFT];
	uint32_t dbrec, qp_dbrec[2];
} shared; /* for XRC and DC */
static struct mkey *window;
static uint64_t dc_connection;
static uint32_t dc_first_psn;
static uint8_t expected[sizeof(device.memory)];
static struct frame_bytes frame;

/* ---- creation --------------------------------------------------------------------------------------------------- */

static inline void srq_make(struct hca_xrcd *xrcd)
{
	struct hca_srq_attr attr = {
		.buffer = shared.ring,
		.entry_count = SRQ_ENTRIES,
		.entry_shift = SRQ_SHIFT,
		.dbrec = &shared.dbrec,
		.xrcd = xrcd,
		.cq = xrcd ? cq.cq : NULL,
	};

	memset(shared.ring, 0, sizeof(shared.ring));
	for (uint16_t i = 0; i < SRQ_ENTRIES; i++) {
		const struct mlx5_wqe_srq_next_seg link = {.next_wqe_index = htobe16((i + 1) % SRQ_ENTRIES)};
		const struct mlx5_wqe_data_seg data =
			data_segment(&device, RECEIVES + (i % RECEIVE_COUNT) * RECEIVE_BYTES, RECEIVE_BYTES);

		memcpy(shared.ring + (i << SRQ_SHIFT), &link, sizeof(link));
		memcpy(shared.ring + (i << SRQ_SHIFT) + 16, &data, sizeof(data));
	}
	shared.dbrec = 0;
	assert_int_equal(hca_srq_create(device.pd, &attr, &shared.srq), 0);
	__atomic_store_n(&shared.dbrec, htobe32(RECEIVE_COUNT), __ATOMIC_RELEASE);
}

static inline void move(enum ibv_qp_state state, struct ibv_qp_attr attr, int mask)
{
	attr.qp_state = state;
	assert_int_equal(hca_qp_modify(target, &attr, mask | IBV_QP_STATE), 0);
}

static inline struct ibv_qp_attr attributes(void)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = ALL_ACCESS & ~IBV_ACCESS_MW_BIND,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = PEER,
		.rq_psn = SQ_START_PSN,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};
	size_t gids;

	attr.ah_attr.grh.dgid = hca_gids(device.hca, &gids)[0].gid;
	return attr;
}

static inline void make_xrc(void)
{
	struct hca_qp_attr attr = {.type = IBV_QPT_XRC_RECV, .cookie = &shared};

	assert_int_equal(hca_xrcd_open(device.context, -1, O_CREAT, &shared.xrcd), 0);
	srq_make(shared.xrcd);
	attr.xrcd = shared.xrcd;
	assert_int_equal(hca_qp_create(device.context, &attr, &target), 0);
	move(IBV_QPS_INIT, attributes(), IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	move(IBV_QPS_RTR, attributes(),
	     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		     IBV_QP_MIN_RNR_TIMER);
}

static inline void make_dct(void)
{
	struct hca_qp_attr attr = {.type = QP_TYPE_DCT,
				   .pd = device.pd,
				   .send_cq = cq.cq,
				   .recv_cq = cq.cq,
				   .dbrec = shared.qp_dbrec,
				   .dc_access_key = DC_KEY};

	srq_make(NULL);
	attr.srq = shared.srq;
	assert_int_equal(hca_qp_create(device.context, &attr, &target), 0);
	move(IBV_QPS_INIT, attributes(), IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	move(IBV_QPS_RTR, attributes(), IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER);
	dc_connection = 7;
	dc_first_psn = SQ_START_PSN;
}

static inline void make_plain(void)
{
	const struct ibv_qp_attr options = {.min_rnr_timer = 1};

	raw_qp_make(&device, &end, victim->type, &cq, 16);
	target = end.qp;
	raw_qp_connect(&device, &end, PEER, &options);
	for (uint32_t i = 0; i < RECEIVE_COUNT; i++)
		post_receive(&device, &end, RECEIVES + i * RECEIVE_BYTES, RECEIVE_BYTES);
}

/* Makes a new victim, with known contents of memory. */
static inline void victim_make(void)
{
	const struct wire_manner manner = {.immediate = false, .most = 4096};

	wire_attach(device.hca, NULL, NULL);
	wire_behave(&manner);
	raw_cq_make(&device, &cq, CQES);
	if (victim->type == IBV_QPT_XRC_RECV)
		make_xrc();
	else if (victim->type == QP_TYPE_DCT)
		make_dct();
	else
		make_plain();
	for (size_t i = 0; i < sizeof(device.memory); i++)
		device.memory[i] = (uint8_t)(i * 7 + i / 251);
	memcpy(expected, device.memory, sizeof(expected));
}

static inline void victim_unmake(void)
{
	if (!target)
		return;
	if (victim->type == IBV_QPT_XRC_RECV)
		hca_qp_close(target, &shared);
	else if (victim->type == QP_TYPE_DCT)
		assert_int_equal(hca_qp_destroy(target), 0);
	else
		raw_qp_destroy(&end);
	if (shared.srq)
		assert_int_equal(hca_srq_destroy(shared.srq), 0);
	if (shared.xrcd)
		assert_int_equal(hca_xrcd_close(shared.xrcd), 0);
	raw_cq_destroy(&cq);
	wire_detach(device.hca);
	target = NULL;
	shared.srq = NULL;
	shared.xrcd = NULL;
}

static inline void victim_renew(void)
{
	victim_unmake();
	victim_make();
}

static inline int victims_open(void **state)
{
	struct hca_mr_attr attr = {
		.addr = device.memory + WINDOW,
		.start = (uintptr_t)device.memory + WINDOW,
		.length = WINDOW_BYTES,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			  IBV_ACCESS_REMOTE_ATOMIC,
	};

	(void)state;
	device_open(&device);
	assert_int_equal(hca_mr_register(device.pd, &attr, &window), 0);
	return 0;
}

static inline int victims_close(void **state)
{
	(void)state;
	victim_unmake();
	assert_int_equal(hca_mr_deregister(window), 0);
	device_close(&device);
	return 0;
}

/* ---- packets ---------------------------------------------------------------------------------------------------- */

static inline uint64_t window_address(void)
{
	return (uintptr_t)device.memory + WINDOW;
}

static inline uint32_t expected_psn(void)
{
	if (victim->type == IBV_QPT_UD)
		return ANY_PSN;
	if (victim->type != QP_TYPE_DCT)
		return target->responder.expected_psn;
	if (target->dct->all && target->dct->all->connection == dc_connection)
		return target->dct->all->responder.expected_psn;
	return dc_first_psn;
}

/* Makes the next packet of a DC initiator begin another connection; no-op for other transports. */
static inline void begin_connection(void)
{
	dc_first_psn = expected_psn();
	dc_connection++;
}

/*
 * Starts a frame with the BTH of the packet that the victim expects next, with the equivalent of RC's @opcode, and the
 * headers that the transport adds.
 */
static inline void begin_packet(uint8_t opcode)
{
	bool atomic = opcode == 0x13 || opcode == 0x14;

	frame_begin(&frame, atomic ? (uint8_t)(victim->atomics + opcode - 0x13) : (uint8_t)(victim->opcodes + opcode),
		    target->number, expected_psn());
	switch ((int)victim->type) {
	case IBV_QPT_UD:
		frame_deth(&frame, QKEY, PEER);
		break;
	case IBV_QPT_XRC_RECV:
		frame_put(&frame, shared.srq->number, 4);
		break;
	case QP_TYPE_DCT:
		frame_put(&frame, DC_KEY, 8);
		frame_put(&frame, dc_connection, 8);
		frame_put(&frame, dc_first_psn, 4);
		frame_put(&frame, PEER, 4);
		break;
	default:
		break;
	}
}

/* Delivers @length bytes, in memory of exactly that size. Returns false if they do not parse. */
static inline bool feed_bytes(const uint8_t *bytes, uint32_t length)
{
	uint8_t *exact = malloc(length ? length : 1);
	struct packet *packet;
	struct refusal why;
	struct run run;
	size_t gids;
	int error;

	assert_non_null(exact);
	memcpy(exact, bytes, length);
	epoch_enter();
	run_begin(&run);
	packet = run_slot(&run);
	memset(packet, 0xa5, sizeof(*packet));
	error = roce_parse(packet, exact, length, &why);
	if (!error) {
		packet->link = device.hca->link;
		packet->own_path = (struct packet_path){.source = hca_gids(device.hca, &gids)[0].gid,
							.destination = hca_gids(device.hca, &gids)[0].gid,
							.type = IBV_GID_TYPE_ROCE_V2,
							.hop_limit = 1};
		packet->path = &packet->own_path;
		packet->mtu = (uint16_t)packet->payload.length;
		run_commit(&run);
		run_drain(&run, NULL);
	}
	run_finish(&run);
	epoch_leave();
	free(exact);
	return !error;
}

static inline bool feed(void)
{
	return feed_bytes(frame.byte, frame.length);
}

#endif
