/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that only a link could deliver, passed to a QP as a link would. */
#include "test_case.h"

#include <arpa/inet.h>

#include "transport/responder/answer.h"
#include "link/host/host.h"
#include "link/shm/shm.h"
#include "link/udp/udp.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"
#include "beyond.h"

/* Delivers an empty WRITE to the server, over @link from @from to @to. */
static void deliver_from(const struct link *link, const char *from, const char *to)
{
	struct packet_path path = {.type = IBV_GID_TYPE_ROCE_V2};

	assert_int_equal(inet_pton(AF_INET6, from, &path.source), 1);
	assert_int_equal(inet_pton(AF_INET6, to, &path.destination), 1);
	deliver(SERVER,
		(struct packet){
			.message = MESSAGE_WRITE, .place = PLACE_ONLY, .psn = FIRST_PSN, .link = link, .path = &path});
	assert_int_equal(to_user_qp(qp[SERVER])->device->responder.expected_psn, FIRST_PSN);
}

/* Makes the server's peer ::ffff:192.0.2.9, on another host. */
static void far_server(void)
{
	struct hca_qp *device = to_user_qp(qp[SERVER])->device;

	to_rts(SERVER);
	queue_lock(&device->lock);
	device->link = link_udp();
	device->path = (struct packet_path){.type = IBV_GID_TYPE_ROCE_V2};
	assert_int_equal(inet_pton(AF_INET6, "::ffff:192.0.2.1", &device->path.source), 1);
	assert_int_equal(inet_pton(AF_INET6, "::ffff:192.0.2.9", &device->path.destination), 1);
	queue_unlock(&device->lock);
}

/* A datagram for a QP with its peer in this process. */
BEYOND_CASE(PACKET_LINK)
{
	to_rts(SERVER);
	deliver_from(link_udp(), "::ffff:192.0.2.9", "::ffff:192.0.2.1");
	expect_line(
		qp[SERVER], RULE_PACKET_LINK,
		"mlx5_0 qp 0x%x: RDMA WRITE for queue pair 0x%x came over udp, but its peer is reached over local: dropped. [67 PACKET_LINK; ",
		qp[SERVER]->qp_num, qp[SERVER]->qp_num);
}

/* A connection that has ended, to a process other than the peer's. */
BEYOND_CASE(PACKET_PROCESS)
{
	struct hca_qp *device = to_user_qp(qp[SERVER])->device;

	to_rts(SERVER);
	queue_lock(&device->lock);
	device->link = link_shm();
	device->connection = UINT32_MAX;
	queue_unlock(&device->lock);
	deliver_from(link_shm(), "::ffff:192.0.2.9", "::ffff:192.0.2.1");
	expect_line(
		qp[SERVER], RULE_PACKET_PROCESS,
		"mlx5_0 qp 0x%x: RDMA WRITE for queue pair 0x%x came from a process that is not known, and its peer, "
		"queue pair 0x%x, belongs to another process: dropped. [103 PACKET_PROCESS; ",
		qp[SERVER]->qp_num, qp[SERVER]->qp_num, device->attr.dest_qp_num);
}

BEYOND_CASE(PACKET_SOURCE)
{
	far_server();
	deliver_from(link_udp(), "::ffff:192.0.2.8", "::ffff:192.0.2.1");
	expect_line(
		qp[SERVER], RULE_PACKET_SOURCE,
		"mlx5_0 qp 0x%x: RDMA WRITE for queue pair 0x%x came from 0x0:0xffffc0000208, but its peer is at 0x0:0xffffc0000209: dropped. [68 PACKET_SOURCE; ",
		qp[SERVER]->qp_num, qp[SERVER]->qp_num);
}

BEYOND_CASE(PACKET_TARGET)
{
	far_server();
	deliver_from(link_udp(), "::ffff:192.0.2.9", "::ffff:192.0.2.2");
	expect_line(
		qp[SERVER], RULE_PACKET_TARGET,
		"mlx5_0 qp 0x%x: RDMA WRITE for queue pair 0x%x was sent to 0x0:0xffffc0000202, but the queue pair has address 0x0:0xffffc0000201: dropped. [69 PACKET_TARGET; ",
		qp[SERVER]->qp_num, qp[SERVER]->qp_num);
}

BEYOND_CASE(PACKET_ORDER)
{
	to_rts(SERVER);
	deliver(SERVER, (struct packet){.message = MESSAGE_WRITE, .place = PLACE_LAST, .psn = FIRST_PSN});
	expect_line(
		qp[SERVER], RULE_PACKET_ORDER,
		"mlx5_0 qp 0x%x: RDMA WRITE with sequence number 0x100 does not continue the packets before it (message in progress: 0). [83 PACKET_ORDER; ",
		qp[SERVER]->qp_num);
	assert_int_equal(hca_qp_state(to_user_qp(qp[SERVER])->device), IBV_QPS_ERR);
}

/* A packet in the middle of a message that is shorter than the MTU. */
BEYOND_CASE(PACKET_LENGTH)
{
	struct packet first = {.message = MESSAGE_WRITE, .place = PLACE_FIRST, .psn = FIRST_PSN};

	to_rts(SERVER);
	stream_begin(&first.payload, NULL, 0);
	stream_add_memory(&first.payload, memory, BYTES);
	deliver(SERVER, first);
	expect_line(
		qp[SERVER], RULE_PACKET_LENGTH,
		"mlx5_0 qp 0x%x: RDMA WRITE with sequence number 0x100 has 16 bytes in 1 packets of at most 1024. [241 PACKET_LENGTH; ",
		qp[SERVER]->qp_num);
	assert_int_equal(hca_qp_state(to_user_qp(qp[SERVER])->device), IBV_QPS_ERR);
}

BEYOND_CASE(WRITE_LENGTH)
{
	to_rts(SERVER);
	deliver(SERVER, (struct packet){.message = MESSAGE_WRITE,
					.place = PLACE_ONLY,
					.psn = FIRST_PSN,
					.remote_address = (uintptr_t)memory,
					.rkey = mr->rkey,
					.dma_length = 100});
	expect_line(qp[SERVER], RULE_WRITE_LENGTH,
		    "mlx5_0 qp 0x%x: an RDMA WRITE announced 100 bytes and carried 0. [88 WRITE_LENGTH; ",
		    qp[SERVER]->qp_num);
}

BEYOND_CASE(OPCODE_UNSUPPORTED)
{
	to_rts(SERVER);
	deliver(SERVER,
		(struct packet){.message = MESSAGE_UNSUPPORTED, .opcode = 0x1c, .place = PLACE_ONLY, .psn = FIRST_PSN});
	expect_line(qp[SERVER], RULE_OPCODE_UNSUPPORTED,
		    "mlx5_0 qp 0x%x: the request with sequence number 0x100 for queue pair 0x%x has opcode 0x1c, which "
		    "this device does not support. [70 OPCODE_UNSUPPORTED; ",
		    qp[SERVER]->qp_num, qp[SERVER]->qp_num);
	assert_int_equal(hca_qp_state(to_user_qp(qp[SERVER])->device), IBV_QPS_ERR);
}

BEYOND_CASE(ATOMIC_WRITE_PACKET)
{
	to_rts(SERVER);
	deliver(SERVER, (struct packet){.message = MESSAGE_ATOMIC_WRITE,
					.place = PLACE_ONLY,
					.psn = FIRST_PSN,
					.remote_address = (uintptr_t)memory,
					.rkey = mr->rkey,
					.dma_length = 8});
	expect_line(qp[SERVER], RULE_ATOMIC_WRITE_PACKET,
		    "mlx5_0 qp 0x%x: the ATOMIC WRITE with sequence number 0x100 announced 8 bytes and brought 0; both "
		    "must be 8. [71 ATOMIC_WRITE_PACKET; ",
		    qp[SERVER]->qp_num);
}

/* Delivers a NAK from a peer that cannot transfer its explanation. */
static void refuse(enum nak_code code)
{
	post(IBV_WR_SEND, 0);
	deliver(CLIENT, (struct packet){.message = MESSAGE_ACKNOWLEDGE,
					.place = PLACE_ONLY,
					.psn = FIRST_PSN,
					.syndrome = (uint8_t)(AETH_NAK | code)});
}

BEYOND_CASE(NAK_INVALID_REQUEST)
{
	refuse(NAK_INVALID_REQUEST);
	expect_completion(IBV_WC_REM_INV_REQ_ERR, RULE_NAK_INVALID_REQUEST);
	expect_line(
		qp[CLIENT], RULE_NAK_INVALID_REQUEST,
		"mlx5_0 qp 0x%x SEND wr_id 7 → REM_INV_REQ_ERR: queue pair 0x%x of this process refused packet 0x100 "
		"as an invalid request. [91 NAK_INVALID_REQUEST; ",
		qp[CLIENT]->qp_num, qp[SERVER]->qp_num);
}

BEYOND_CASE(NAK_REMOTE_ACCESS)
{
	refuse(NAK_REMOTE_ACCESS);
	expect_completion(IBV_WC_REM_ACCESS_ERR, RULE_NAK_REMOTE_ACCESS);
	expect_line(
		qp[CLIENT], RULE_NAK_REMOTE_ACCESS,
		"mlx5_0 qp 0x%x SEND wr_id 7 → REM_ACCESS_ERR: queue pair 0x%x of this process refused packet 0x100: "
		"remote access error. [92 NAK_REMOTE_ACCESS; ",
		qp[CLIENT]->qp_num, qp[SERVER]->qp_num);
}

BEYOND_CASE(NAK_REMOTE_OPERATION)
{
	refuse(NAK_REMOTE_OPERATION);
	expect_completion(IBV_WC_REM_OP_ERR, RULE_NAK_REMOTE_OPERATION);
	expect_line(qp[CLIENT], RULE_NAK_REMOTE_OPERATION,
		    "mlx5_0 qp 0x%x SEND wr_id 7 → REM_OP_ERR: queue pair 0x%x of this process refused packet 0x100: "
		    "remote operational error. [93 NAK_REMOTE_OPERATION; ",
		    qp[CLIENT]->qp_num, qp[SERVER]->qp_num);
}

/* The device thread starts with the first wait, so this runs before any wait. */
BEYOND_CASE(RNR_NO_THREAD)
{
	post(IBV_WR_SEND, 0);
	no_threads = true;
	/* Code 20 of IBTA table 45: 10.24 ms. */
	deliver(CLIENT, (struct packet){.message = MESSAGE_ACKNOWLEDGE,
					.place = PLACE_ONLY,
					.psn = FIRST_PSN,
					.syndrome = AETH_RNR_NAK | 20});
	no_threads = false;
	expect_completion(IBV_WC_RNR_RETRY_EXC_ERR, RULE_RNR_NO_THREAD);
	expect_line(
		qp[CLIENT], RULE_RNR_NO_THREAD,
		"mlx5_0 qp 0x%x SEND wr_id 7 → RNR_RETRY_EXC_ERR: no thread could be started to wait 10240 us until queue pair 0x%x has a receive. [143 RNR_NO_THREAD; ",
		qp[CLIENT]->qp_num, qp[SERVER]->qp_num);
}

/* The timer for the missing acknowledgement never expires either. This runs before any wait as well. */
BEYOND_CASE(TIMER_NO_THREAD)
{
	to_user_qp(qp[CLIENT])->device->attr.timeout = 14;
	no_threads = true;
	post(IBV_WR_SEND, 0);
	no_threads = false;
	expect_completion(IBV_WC_RETRY_EXC_ERR, RULE_TIMER_NO_THREAD);
	expect_line(
		qp[CLIENT], RULE_TIMER_NO_THREAD,
		"mlx5_0 qp 0x%x SEND wr_id 7 → RETRY_EXC_ERR: no thread could be started to wait for the acknowledgement (timeout 14). [242 TIMER_NO_THREAD; ",
		qp[CLIENT]->qp_num);
}

/* A SEND is acknowledged; data is not a valid response. */
BEYOND_CASE(BAD_RESPONSE)
{
	post(IBV_WR_SEND, 0);
	deliver(CLIENT, (struct packet){.message = MESSAGE_READ_RESPONSE, .place = PLACE_ONLY, .psn = FIRST_PSN});
	expect_completion(IBV_WC_BAD_RESP_ERR, RULE_BAD_RESPONSE);
	expect_line(
		qp[CLIENT], RULE_BAD_RESPONSE,
		"mlx5_0 qp 0x%x SEND wr_id 7 → BAD_RESP_ERR: RDMA READ response 0x100 carried 0 bytes after 0 of 16. [96 BAD_RESPONSE; ",
		qp[CLIENT]->qp_num);
}

/* ---- a peer that does not run ----------------------------------------------------------------------------------- */

static enum link_result swallow(struct hca *hca, struct run *run)
{
	(void)hca, (void)run;
	return LINK_SENT;
}

static uint64_t no_mark(uint32_t qpn)
{
	(void)qpn;
	return 0;
}

static bool always_pending(uint32_t qpn, uint64_t mark, uint64_t *progress)
{
	(void)qpn, (void)mark;
	*progress = 0;
	return true;
}

BEYOND_CASE(PEER_SILENT)
{
	static const struct link silent = {
		.name = "silent", .send = swallow, .mark = no_mark, .pending = always_pending};
	struct hca_qp *device = to_user_qp(qp[CLIENT])->device;
	uint32_t before = device->hca->settings.peer_silence;
	struct ibv_wc wc = {.vendor_err = 0};

	device->hca->settings.peer_silence = 1;
	device->link = &silent;
	device->attr.timeout = 8;
	device->attr.retry_cnt = 0;
	post(IBV_WR_SEND, 0);
	while (!softhca_ibv_poll_cq(cq, 1, &wc))
		sched_yield();
	device->hca->settings.peer_silence = before;
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(wc.vendor_err, RULE_PEER_SILENT);
	expect_line(
		qp[CLIENT], RULE_PEER_SILENT,
		"mlx5_0 qp 0x%x SEND wr_id 7 → RETRY_EXC_ERR: a process that is not known, which has queue pair 0x%x, is "
		"alive, but has not handled incoming packets for 1 s. [97 PEER_SILENT; ",
		qp[CLIENT]->qp_num, qp[SERVER]->qp_num);
}

/* Queue pairs of slot 1 belong to no process. */
BEYOND_CASE(PEER_ENDED)
{
	static const struct link silent = {.name = "silent", .send = swallow};
	struct hca_qp *device = to_user_qp(qp[CLIENT])->device;
	struct ibv_wc wc = {.vendor_err = 0};

	device->link = &silent;
	device->attr.timeout = 8;
	device->attr.retry_cnt = 0;
	device->attr.dest_qp_num = 1 << HOST_SLOT_BITS;
	device->requester.sees_peer = true;
	post(IBV_WR_SEND, 0);
	while (!softhca_ibv_poll_cq(cq, 1, &wc))
		sched_yield();
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(wc.vendor_err, RULE_PEER_ENDED);
	expect_line(
		qp[CLIENT], RULE_PEER_ENDED,
		"mlx5_0 qp 0x%x SEND wr_id 7 → RETRY_EXC_ERR: the process of queue pair 0x400 has ended. [99 PEER_ENDED; ",
		qp[CLIENT]->qp_num);
}

/* The first responses of max_dest_rd_atomic READs are still outstanding. */
BEYOND_CASE(RESPONSES_DUE)
{
	struct hca_qp *device = to_user_qp(qp[SERVER])->device;
	struct answers *answers = calloc(1, sizeof(*answers));

	to_rts(SERVER);
	device->attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
	answers->pending = (1u << device->responder.resources) - 1;
	device->responder.answers = answers;
	deliver(SERVER, (struct packet){.message = MESSAGE_READ_REQUEST, .place = PLACE_ONLY, .psn = FIRST_PSN});
	expect_line(
		qp[SERVER], RULE_RESPONSES_DUE,
		"mlx5_0 qp 0x%x: RDMA READ request 0x100 for queue pair 0x%x arrived while %u READs and atomics before it were unanswered, as many as its max_dest_rd_atomic allows. [98 RESPONSES_DUE; ",
		qp[SERVER]->qp_num, qp[SERVER]->qp_num, device->attr.max_dest_rd_atomic);
	assert_int_equal(hca_qp_state(device), IBV_QPS_ERR);
}

/* A READ that was answered arrives again, after its key was destroyed. */
BEYOND_CASE(REPETITION_DROPPED)
{
	struct hca_qp *device = to_user_qp(qp[SERVER])->device;

	to_rts(SERVER);
	device->responder.resource[0] = (struct responder_resource){
		.psn = FIRST_PSN - 1, .message = MESSAGE_READ_REQUEST, .count = 1, .answered = 1};
	deliver(SERVER, (struct packet){.message = MESSAGE_READ_REQUEST,
					.place = PLACE_ONLY,
					.psn = FIRST_PSN - 1,
					.dma_length = 8,
					.rkey = 0x77777777});
	expect_line(
		qp[SERVER], RULE_REPETITION_DROPPED,
		"mlx5_0 qp 0x%x: RDMA READ request 0xff for queue pair 0x%x repeats a request that was executed, but its memory cannot be reached any more, by rule %u: dropped. [74 REPETITION_DROPPED; ",
		qp[SERVER]->qp_num, qp[SERVER]->qp_num, RULE_KEY_UNKNOWN);
	assert_int_equal(hca_qp_state(device), IBV_QPS_RTS);
}

/* The second packet of a response, after a program moved its destination to the end of the address space. */
BEYOND_CASE(SEGMENT_WRAPS)
{
	struct mlx5_wqe_data_seg segment = {
		.byte_count = htobe32(4096), .lkey = htobe32(mr->lkey), .addr = htobe64(UINT64_MAX - 99)};
	struct hca_qp *device = to_user_qp(qp[CLIENT])->device;
	struct stream *stream = calloc(1, sizeof(*stream));
	struct refusal why;

	stream_begin(stream, &device->access, RIGHT_LOCAL_WRITE);
	assert_int_equal(stream_add_segments(stream, &segment, 1, 1024, 1024, &why), -EACCES);
	free(stream);
	explain_make(device->hca, &(struct explain_subject){.qpn = device->number}, why.rule, why.args, EXPLAIN_ARGS);
	expect_line(
		qp[CLIENT], RULE_SEGMENT_WRAPS,
		"mlx5_0 qp 0x%x: a packet carries a part of a message for byte 1024 of the range of key 0x%x at 0xffffffffffffff9c, which is beyond the address space. [13 SEGMENT_WRAPS; ",
		qp[CLIENT]->qp_num, mr->lkey);
}
