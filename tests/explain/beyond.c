/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules of beyond.def, broken from inside: packets that only a link could bring are handed to a QP as a link would
 * do it, and memory runs out where it is asked for.
 */
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <arpa/inet.h>

#include "abi/entry_points.h"
#include "beyond_host.h"
#include "beyond_shm.h"
#include "beyond_udp.h"
#include "explain/explain.h"
#include "device/device.h"
#include "core/epoch.h"
#include "core/limits.h"
#include "transport/qp.h"
#include "filter/faults.h"
#include "filter/filter.h"
#include "link/host/table.h"
#include "wire/link.h"
#include "wire/roce.h"
#include "mkey/stream.h"
#include "transport/answer.h"
#include "softhca.h"
#include "link/udp/udp.h"
#include "transport/run.h"
#include "verbs/objects.h"
#include "verbs/ops.h"

enum { CLIENT, SERVER, FIRST_PSN = 0x100, WR_ID = 7, BYTES = 16, MTU = 1024 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_cq *cq;
static struct ibv_qp *qp[2];
static uint8_t memory[4096] __attribute__((aligned(4096)));

/* ---- memory that runs out --------------------------------------------------------------------------------------- */

static bool no_memory;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	return no_memory ? NULL : __real_calloc(count, size);
}

/* ---- threads that run out --------------------------------------------------------------------------------------- */

static bool no_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *argument)
{
	return no_threads ? EAGAIN : __real_pthread_create(thread, attr, body, argument);
}

/* ---- a cipher that fails ---------------------------------------------------------------------------------------- */

int __wrap_cipher_transform(struct dek *dek, const struct cipher_units *units, void *to, const void *from,
			    size_t bytes);
int __wrap_cipher_transform(struct dek *dek, const struct cipher_units *units, void *to, const void *from, size_t bytes)
{
	(void)dek, (void)units, (void)to, (void)from, (void)bytes;
	return -EIO;
}

/* ---- two QPs ---------------------------------------------------------------------------------------------------- */

static void modify(int i, struct ibv_qp_attr attr, int mask)
{
	assert_int_equal(softhca_ibv_modify_qp(qp[i], &attr, mask), 0);
}

static void to_rts(int i)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp[!i]->qp_num,
		.rq_psn = FIRST_PSN,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 0}},
	};

	assert_int_equal(softhca_ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid), 0);
	modify(i, attr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	/* A timeout of 0 waits for ever. */
	modify(i, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = FIRST_PSN, .retry_cnt = 7, .rnr_retry = 7},
	       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

/* The client is in RTS, the server in INIT: nothing that the client sends is answered. */
static int open_pair(void **state)
{
	struct ibv_device **list = softhca_ibv_get_device_list(NULL);

	(void)state;
	context = softhca_ibv_open_device(list[0]);
	softhca_ibv_free_device_list(list);
	pd = softhca_ibv_alloc_pd(context);
	mr = softhca_ibv_reg_mr(pd, memory, sizeof(memory),
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	cq = softhca_ibv_create_cq(context, 15, NULL, NULL, 0);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = cq,
			.recv_cq = cq,
			.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
			.qp_type = IBV_QPT_RC,
		};

		qp[i] = softhca_ibv_create_qp(pd, &attr);
		assert_non_null(qp[i]);
		modify(i,
		       (struct ibv_qp_attr){
			       .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE},
		       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	}
	to_rts(CLIENT);
	return 0;
}

static int close_pair(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(softhca_ibv_destroy_qp(qp[i]), 0);
	assert_int_equal(softhca_ibv_destroy_cq(cq), 0);
	assert_int_equal(softhca_ibv_dereg_mr(mr), 0);
	assert_int_equal(softhca_ibv_dealloc_pd(pd), 0);
	assert_int_equal(softhca_ibv_close_device(context), 0);
	return 0;
}

/* A request of the client that nobody answers. */
static void post(enum ibv_wr_opcode opcode, uint32_t rkey)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = BYTES, .lkey = mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = WR_ID,
		.sg_list = &sge,
		.num_sge = opcode != IBV_WR_LOCAL_INV,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = rkey,
	};
	struct ibv_send_wr *bad;

	assert_int_equal(softhca_ibv_post_send(qp[CLIENT], &wr, &bad), 0);
}

static void deliver_packet(const struct packet *packet)
{
	const struct hca_qp *device;
	struct run run;

	epoch_enter();
	run_begin(&run);
	*run_slot(&run) = *packet;
	device = qp_find(packet->destination_qpn);
	if (!packet->link && device)
		run_slot(&run)->link = device->link;
	run_slot(&run)->count = 1;
	run_slot(&run)->mtu = 1024;
	run_commit(&run);
	run_drain(&run, NULL);
	run_finish(&run);
	epoch_leave();
}

/* What a link does with a packet for one of the QPs. */
static void deliver(int to, struct packet packet)
{
	packet.transport = IBV_QPT_RC;
	packet.source_qpn = qp[!to]->qp_num;
	packet.destination_qpn = qp[to]->qp_num;
	deliver_packet(&packet);
}

/* The next completion has @status and the number of @rule. */
static void expect_completion(enum ibv_wc_status status, enum explain_rule rule)
{
	struct ibv_wc wc = {.vendor_err = 0};

	assert_int_equal(softhca_ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.vendor_err, rule);
}

/* The newest explanation about the QP (NULL: of all) is of @rule; its line begins like @format. */
static void __attribute__((format(printf, 3, 4)))
expect_line(const struct ibv_qp *about, enum explain_rule rule, const char *format, ...)
{
	struct softhca_explanation newest;
	char expected[512], line[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(expected, sizeof(expected), format, arguments);
	va_end(arguments);
	assert_int_equal(softhca_explanations(context, about ? about->qp_num : 0, &newest, 1), 1);
	assert_int_equal(newest.rule, rule);
	softhca_explanation_text(&newest, line, sizeof(line));
	if (strncmp(line, expected, strlen(expected)))
		fail_msg("the line is\n    %s\n  not\n    %s", line, expected);
}

/* ---- packets ---------------------------------------------------------------------------------------------------- */

/* An empty WRITE for the server, over @link from @from to @to. */
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

/* The server's peer is at ::ffff:192.0.2.9 then, on another host. */
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

/* A datagram for a QP whose peer is in this process. */
static void case_PACKET_LINK(void **state)
{
	(void)state;
	to_rts(SERVER);
	deliver_from(link_udp(), "::ffff:192.0.2.9", "::ffff:192.0.2.1");
	expect_line(qp[SERVER], RULE_PACKET_LINK,
		    "mlx5_0 qp 0x%x: RDMA WRITE for queue pair 0x%x came over udp, and its peer is reached over local: "
		    "dropped. [67 PACKET_LINK; ",
		    qp[SERVER]->qp_num, qp[SERVER]->qp_num);
}

static void case_PACKET_SOURCE(void **state)
{
	(void)state;
	far_server();
	deliver_from(link_udp(), "::ffff:192.0.2.8", "::ffff:192.0.2.1");
	expect_line(qp[SERVER], RULE_PACKET_SOURCE,
		    "mlx5_0 qp 0x%x: RDMA WRITE for queue pair 0x%x came from 0x0:0xffffc0000208, and its peer is at "
		    "0x0:0xffffc0000209: dropped. [68 PACKET_SOURCE; ",
		    qp[SERVER]->qp_num, qp[SERVER]->qp_num);
}

static void case_PACKET_TARGET(void **state)
{
	(void)state;
	far_server();
	deliver_from(link_udp(), "::ffff:192.0.2.9", "::ffff:192.0.2.2");
	expect_line(qp[SERVER], RULE_PACKET_TARGET,
		    "mlx5_0 qp 0x%x: RDMA WRITE for queue pair 0x%x came to 0x0:0xffffc0000202, and its own address is "
		    "0x0:0xffffc0000201: dropped. [69 PACKET_TARGET; ",
		    qp[SERVER]->qp_num, qp[SERVER]->qp_num);
}

static void case_PACKET_ORDER(void **state)
{
	(void)state;
	to_rts(SERVER);
	deliver(SERVER, (struct packet){.message = MESSAGE_WRITE, .place = PLACE_LAST, .psn = FIRST_PSN});
	expect_line(
		qp[SERVER], RULE_PACKET_ORDER,
		"mlx5_0 qp 0x%x: RDMA WRITE with sequence number 0x100 does not continue what came before (message under "
		"way: 0). [83 PACKET_ORDER; ",
		qp[SERVER]->qp_num);
	assert_int_equal(hca_qp_state(to_user_qp(qp[SERVER])->device), IBV_QPS_ERR);
}

/* A packet in the middle of a message that is not full. */
static void case_PACKET_LENGTH(void **state)
{
	struct packet first = {.message = MESSAGE_WRITE, .place = PLACE_FIRST, .psn = FIRST_PSN};

	(void)state;
	to_rts(SERVER);
	stream_begin(&first.payload, NULL, 0);
	stream_add_memory(&first.payload, memory, BYTES);
	deliver(SERVER, first);
	expect_line(
		qp[SERVER], RULE_PACKET_LENGTH,
		"mlx5_0 qp 0x%x: RDMA WRITE with 16 bytes in 1 packets of at most 1024; sequence number 0x100. [241 "
		"PACKET_LENGTH; ",
		qp[SERVER]->qp_num);
	assert_int_equal(hca_qp_state(to_user_qp(qp[SERVER])->device), IBV_QPS_ERR);
}

static void case_WRITE_LENGTH(void **state)
{
	(void)state;
	to_rts(SERVER);
	deliver(SERVER, (struct packet){.message = MESSAGE_WRITE,
					.place = PLACE_ONLY,
					.psn = FIRST_PSN,
					.remote_address = (uintptr_t)memory,
					.rkey = mr->rkey,
					.dma_length = 100});
	expect_line(qp[SERVER], RULE_WRITE_LENGTH,
		    "mlx5_0 qp 0x%x: an RDMA WRITE announced 100 bytes and brought 0. [88 WRITE_LENGTH; ",
		    qp[SERVER]->qp_num);
}

/* A refusal from where its explanation cannot come along. */
static void refuse(enum nak_code code)
{
	post(IBV_WR_SEND, 0);
	deliver(CLIENT, (struct packet){.message = MESSAGE_ACKNOWLEDGE,
					.place = PLACE_ONLY,
					.psn = FIRST_PSN,
					.syndrome = (uint8_t)(AETH_NAK | code)});
}

static void case_NAK_INVALID_REQUEST(void **state)
{
	(void)state;
	refuse(NAK_INVALID_REQUEST);
	expect_completion(IBV_WC_REM_INV_REQ_ERR, RULE_NAK_INVALID_REQUEST);
	expect_line(
		qp[CLIENT], RULE_NAK_INVALID_REQUEST,
		"mlx5_0 qp 0x%x SEND wr_id 7 → REM_INV_REQ_ERR: queue pair 0x%x, of another process, refused packet 0x100 "
		"as an invalid request. [91 NAK_INVALID_REQUEST; ",
		qp[CLIENT]->qp_num, qp[SERVER]->qp_num);
}

static void case_NAK_REMOTE_ACCESS(void **state)
{
	(void)state;
	refuse(NAK_REMOTE_ACCESS);
	expect_completion(IBV_WC_REM_ACCESS_ERR, RULE_NAK_REMOTE_ACCESS);
	expect_line(
		qp[CLIENT], RULE_NAK_REMOTE_ACCESS,
		"mlx5_0 qp 0x%x SEND wr_id 7 → REM_ACCESS_ERR: queue pair 0x%x, of another process, refused packet 0x100: "
		"remote access error. [92 NAK_REMOTE_ACCESS; ",
		qp[CLIENT]->qp_num, qp[SERVER]->qp_num);
}

static void case_NAK_REMOTE_OPERATION(void **state)
{
	(void)state;
	refuse(NAK_REMOTE_OPERATION);
	expect_completion(IBV_WC_REM_OP_ERR, RULE_NAK_REMOTE_OPERATION);
	expect_line(
		qp[CLIENT], RULE_NAK_REMOTE_OPERATION,
		"mlx5_0 qp 0x%x SEND wr_id 7 → REM_OP_ERR: queue pair 0x%x, of another process, refused packet 0x100: "
		"remote operational error. [93 NAK_REMOTE_OPERATION; ",
		qp[CLIENT]->qp_num, qp[SERVER]->qp_num);
}

/* The device's thread is there from the first wait on, so this comes before any. */
static void case_RNR_NO_THREAD(void **state)
{
	(void)state;
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
		"mlx5_0 qp 0x%x SEND wr_id 7 → RNR_RETRY_EXC_ERR: no thread could be started that would wait 10240 us until "
		"queue pair 0x%x has a receive. [143 RNR_NO_THREAD; ",
		qp[CLIENT]->qp_num, qp[SERVER]->qp_num);
}

/* Nor will the acknowledgement ever be missed. This comes before any wait as well. */
static void case_TIMER_NO_THREAD(void **state)
{
	(void)state;
	((struct user_qp *)qp[CLIENT])->device->attr.timeout = 14;
	no_threads = true;
	post(IBV_WR_SEND, 0);
	no_threads = false;
	expect_completion(IBV_WC_RETRY_EXC_ERR, RULE_TIMER_NO_THREAD);
	expect_line(qp[CLIENT], RULE_TIMER_NO_THREAD,
		    "mlx5_0 qp 0x%x SEND wr_id 7 → RETRY_EXC_ERR: no thread could be started that would wait for the "
		    "acknowledgement (timeout 14). [242 TIMER_NO_THREAD; ",
		    qp[CLIENT]->qp_num);
}

/* A SEND is acknowledged, not answered with data. */
static void case_BAD_RESPONSE(void **state)
{
	(void)state;
	post(IBV_WR_SEND, 0);
	deliver(CLIENT, (struct packet){.message = MESSAGE_READ_RESPONSE, .place = PLACE_ONLY, .psn = FIRST_PSN});
	expect_completion(IBV_WC_BAD_RESP_ERR, RULE_BAD_RESPONSE);
	expect_line(
		qp[CLIENT], RULE_BAD_RESPONSE,
		"mlx5_0 qp 0x%x SEND wr_id 7 → BAD_RESP_ERR: RDMA READ response 0x100 brought 0 bytes after 0 of 16. [96 "
		"BAD_RESPONSE; ",
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

static void case_PEER_SILENT(void **state)
{
	static const struct link silent = {
		.name = "silent", .send = swallow, .mark = no_mark, .pending = always_pending};
	struct hca_qp *device = to_user_qp(qp[CLIENT])->device;
	uint32_t before = device->hca->settings.peer_silence;
	struct ibv_wc wc = {.vendor_err = 0};

	(void)state;
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
		"mlx5_0 qp 0x%x SEND wr_id 7 → RETRY_EXC_ERR: process 0 (0: not known), which has queue pair 0x%x, lives, "
		"and did not look after what was sent to it for 1 s. [97 PEER_SILENT; ",
		qp[CLIENT]->qp_num, qp[SERVER]->qp_num);
}

/* As many READs before it wait to be answered as can. */
static void case_RESPONSES_DUE(void **state)
{
	struct hca_qp *device = to_user_qp(qp[SERVER])->device;
	struct answers *answers = calloc(1, sizeof(*answers));

	(void)state;
	to_rts(SERVER);
	device->attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
	answers->last = LIMIT_MAX_RD_ATOMIC;
	device->responder.answers = answers;
	deliver(SERVER, (struct packet){.message = MESSAGE_READ_REQUEST, .place = PLACE_ONLY, .psn = FIRST_PSN});
	expect_line(
		qp[SERVER], RULE_RESPONSES_DUE,
		"mlx5_0 qp 0x%x: RDMA READ request 0x100 for queue pair 0x%x comes while 16 READs and atomics before it wait to "
		"be answered, which is as many as can. [98 RESPONSES_DUE; ",
		qp[SERVER]->qp_num, qp[SERVER]->qp_num);
	assert_int_equal(hca_qp_state(device), IBV_QPS_ERR);
}

/* The second packet of a response, whose place a program has meanwhile moved to the end of the address space. */
static void case_SEGMENT_WRAPS(void **state)
{
	struct mlx5_wqe_data_seg segment = {
		.byte_count = htobe32(4096), .lkey = htobe32(mr->lkey), .addr = htobe64(UINT64_MAX - 99)};
	struct hca_qp *device = to_user_qp(qp[CLIENT])->device;
	struct stream *stream = calloc(1, sizeof(*stream));
	struct refusal why;

	(void)state;
	stream_begin(stream, &device->access, RIGHT_LOCAL_WRITE);
	assert_int_equal(stream_add_segments(stream, &segment, 1, 1024, 1024, &why), -EACCES);
	free(stream);
	explain_make(device->hca, &(struct explain_subject){.qpn = device->number}, why.rule, why.args, EXPLAIN_ARGS);
	expect_line(
		qp[CLIENT], RULE_SEGMENT_WRAPS,
		"mlx5_0 qp 0x%x: the part of a message that a packet brings goes to byte 1024 of a range of key 0x%x at "
		"0xffffffffffffff9c, which is beyond the address space. [13 SEGMENT_WRAPS; ",
		qp[CLIENT]->qp_num, mr->lkey);
}

/* ---- DC --------------------------------------------------------------------------------------------------------- */

/* Numbers of DCIs of elsewhere: nobody here has them. */
enum { INITIATOR = 0x800000, DC_KEY = 0xdc };

static struct ibv_srq *srq;

/* A DCT with one receive takes the server's place. */
static void become_dct(void)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = DC_KEY},
	};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .ah_attr = {.port_num = 1}};
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 2 * MTU, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = WR_ID, .sg_list = &sge, .num_sge = 1}, *bad;

	rtr.ah_attr.is_global = 1;
	attr.srq = srq = softhca_ibv_create_srq(pd, &srq_attr);
	assert_non_null(srq);
	assert_int_equal(srq->context->ops.post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(softhca_ibv_destroy_qp(qp[SERVER]), 0);
	qp[SERVER] = softhca_mlx5dv_create_qp(context, &attr, &dv);
	assert_non_null(qp[SERVER]);
	modify(SERVER, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1},
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	modify(SERVER, rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER);
}

/* An ordinary QP again, for the end of the test. */
static void end_dct(void)
{
	struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};

	assert_int_equal(softhca_ibv_destroy_qp(qp[SERVER]), 0);
	assert_int_equal(softhca_ibv_destroy_srq(srq), 0);
	qp[SERVER] = softhca_ibv_create_qp(pd, &attr);
	assert_non_null(qp[SERVER]);
}

/* What a link does with the first packet of a connection, or with a later one. */
static void deliver_dc(uint32_t initiator, uint64_t connection, struct packet packet)
{
	const struct packet_path path = {.hop_limit = 1};

	packet.transport = QP_TYPE_DCI;
	packet.source_qpn = initiator;
	packet.destination_qpn = qp[SERVER]->qp_num;
	packet.dc_key = DC_KEY;
	packet.dc_connection = connection;
	packet.dc_first_psn = FIRST_PSN;
	packet.path = &path;
	deliver_packet(&packet);
}

static const struct packet read_request = {.message = MESSAGE_READ_REQUEST, .place = PLACE_ONLY, .psn = FIRST_PSN};

static void case_DCT_FULL(void **state)
{
	(void)state;
	become_dct();
	for (uint32_t i = 0; i <= LIMIT_DCT_INITIATORS; i++)
		deliver_dc(INITIATOR + i, 1, read_request);
	expect_line(
		qp[SERVER], RULE_DCT_FULL,
		"mlx5_0 qp 0x%x: RDMA READ request of queue pair 0x%x has to wait: DCT 0x%x serves %u initiators, and not one "
		"of them has left. [132 DCT_FULL; ",
		qp[SERVER]->qp_num, INITIATOR + LIMIT_DCT_INITIATORS, qp[SERVER]->qp_num, LIMIT_DCT_INITIATORS);
	end_dct();
}

static void case_DC_ABORTED(void **state)
{
	struct packet first = {.message = MESSAGE_SEND, .place = PLACE_FIRST, .psn = FIRST_PSN};

	(void)state;
	become_dct();
	stream_begin(&first.payload, NULL, 0);
	stream_add_memory(&first.payload, memory + 2 * MTU, MTU);
	deliver_dc(INITIATOR, 1, first);
	deliver_dc(INITIATOR, 1, (struct packet){.message = MESSAGE_DISCONNECT, .psn = FIRST_PSN + 1});
	expect_completion(IBV_WC_REM_ABORT_ERR, RULE_DC_ABORTED);
	expect_line(
		qp[SERVER], RULE_DC_ABORTED,
		"mlx5_0 qp 0x%x receive → REM_ABORT_ERR: queue pair 0x%x gave up its message to DCT 0x%x after 1024 "
		"bytes. [133 DC_ABORTED; ",
		qp[SERVER]->qp_num, INITIATOR, qp[SERVER]->qp_num);
	end_dct();
}

static void case_DC_CONNECTION_OVER(void **state)
{
	(void)state;
	become_dct();
	deliver_dc(INITIATOR, 2, read_request);
	deliver_dc(INITIATOR, 1, read_request);
	expect_line(
		qp[SERVER], RULE_DC_CONNECTION_OVER,
		"mlx5_0 qp 0x%x: RDMA READ request 0x100 of queue pair 0x%x for DCT 0x%x belongs to a connection that is over: "
		"dropped. [135 DC_CONNECTION_OVER; ",
		qp[SERVER]->qp_num, INITIATOR, qp[SERVER]->qp_num);
	end_dct();
}

/* ---- XRC -------------------------------------------------------------------------------------------------------- */

/* An XRC_RECV QP takes the server's place. */
static void case_XRC_SRQ_CHANGED(void **state)
{
	struct ibv_xrcd_init_attr own = {.comp_mask = 3, .fd = -1};
	struct ibv_xrcd *xrcd = softhca_ibv_open_xrcd(context, &own);
	struct ibv_srq_init_attr_ex srq_attr = {
		.attr = {.max_wr = 1, .max_sge = 1},
		.comp_mask = 0xf,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = cq,
	};
	struct ibv_srq *xrc_srq = softhca_ibv_create_srq_ex(context, &srq_attr);
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = 2, .xrcd = xrcd};
	struct ibv_qp *replaced = qp[SERVER];
	struct packet packet = {
		.transport = IBV_QPT_XRC_SEND, .message = MESSAGE_WRITE, .place = PLACE_FIRST, .psn = FIRST_PSN};
	uint32_t number;

	(void)state;
	assert_int_equal(softhca_ibv_get_srq_num(xrc_srq, &number), 0);
	qp[SERVER] = softhca_ibv_create_qp_ex(context, &attr);
	assert_non_null(qp[SERVER]);
	modify(SERVER,
	       (struct ibv_qp_attr){
		       .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE},
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	to_rts(SERVER);
	packet.source_qpn = qp[CLIENT]->qp_num;
	packet.destination_qpn = qp[SERVER]->qp_num;
	packet.xrc_srqn = number;
	packet.rkey = mr->rkey;
	packet.remote_address = (uintptr_t)memory;
	packet.dma_length = MTU + BYTES;
	stream_begin(&packet.payload, NULL, 0);
	stream_add_memory(&packet.payload, memory + 2 * MTU, MTU);
	deliver_packet(&packet);
	packet.place = PLACE_LAST;
	packet.psn++;
	packet.xrc_srqn++;
	deliver_packet(&packet);
	expect_line(
		qp[SERVER], RULE_XRC_SRQ_CHANGED,
		"mlx5_0 qp 0x%x: RDMA WRITE with sequence number 0x101 names the XRC SRQ 0x%x; its message began with "
		"0x%x. [142 XRC_SRQ_CHANGED; ",
		qp[SERVER]->qp_num, number + 1, number);
	assert_int_equal(softhca_ibv_destroy_qp(qp[SERVER]), 0);
	assert_int_equal(softhca_ibv_destroy_srq(xrc_srq), 0);
	assert_int_equal(softhca_ibv_close_xrcd(xrcd), 0);
	qp[SERVER] = replaced;
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static sem_t inside, leave;

/* A transfer that takes its time: what it may look at is not written to again. */
static void *long_transfer(void *argument)
{
	(void)argument;
	epoch_enter();
	sem_post(&inside);
	sem_wait(&leave);
	epoch_leave();
	return NULL;
}

/* The first change takes the spare mapping of the key; for the second, one more is needed. */
static void case_UMR_NO_MEMORY(void **state)
{
	struct ibv_mw *mw = softhca_ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	pthread_t thread;

	(void)state;
	sem_init(&inside, 0, 0);
	sem_init(&leave, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, long_transfer, NULL), 0);
	sem_wait(&inside);
	post(IBV_WR_LOCAL_INV, mw->rkey);
	expect_completion(IBV_WC_SUCCESS, RULE_NONE);
	no_memory = true;
	post(IBV_WR_LOCAL_INV, mw->rkey);
	no_memory = false;
	sem_post(&leave);
	pthread_join(thread, NULL);
	expect_completion(IBV_WC_MW_BIND_ERR, RULE_UMR_NO_MEMORY);
	expect_line(
		qp[CLIENT], RULE_UMR_NO_MEMORY,
		"mlx5_0 qp 0x%x LOCAL_INV wr_id 7 → MW_BIND_ERR: no memory to configure key 0x%x. [49 UMR_NO_MEMORY; ",
		qp[CLIENT]->qp_num, mw->rkey);
	assert_int_equal(softhca_ibv_dealloc_mw(mw), 0);
}

/* A key over one data unit of the memory. What should be its bytes on the wire is zeros. */
static void case_CIPHER_FAILED(void **state)
{
	struct block_setup setup = {.cipher = {.enabled = true, .unit = 512}};
	struct mapping *map = calloc(1, sizeof(*map) + sizeof(map->entries[0]));
	struct walk_access access = to_user_qp(qp[CLIENT])->device->send_access;
	static const uint8_t zeros[512];
	uint8_t wire[512], scratch[STAGE_SCRATCH];
	struct block_stage stage;
	struct refusal why;

	(void)state;
	assert_non_null(map);
	map->number = 0x1200;
	map->kind = KEY_INDIRECT;
	map->length = sizeof(wire);
	map->form = LAYOUT_LIST;
	map->count = 1;
	map->period = sizeof(wire);
	map->entries[0] = (struct layout_entry){(uintptr_t)memory, sizeof(wire), 0, 0, mr->lkey, 0};
	map->blocks = &setup;
	memset(memory, 1, sizeof(wire));
	epoch_enter();
	assert_int_equal(stage_begin(&stage, &access, RIGHT_LOCAL_READ, map, 0, sizeof(wire), 0, &why), 0);
	stage_transmit(&stage, wire, sizeof(wire), scratch);
	epoch_leave();
	assert_memory_equal(wire, zeros, sizeof(wire));
	expect_line(
		qp[CLIENT], RULE_CIPHER_FAILED,
		"mlx5_0 qp 0x%x: the cipher of key 0x1200 failed at data unit 0, 512 bytes; zeros took their place. "
		"[179 CIPHER_FAILED; ",
		qp[CLIENT]->qp_num);
	free(map);
}

static void case_MR_NO_ROOM(void **state)
{
	struct ibv_mr *refused;

	(void)state;
	no_memory = true;
	errno = 0;
	refused = softhca_ibv_reg_mr(pd, memory, 64, 0);
	no_memory = false;
	assert_null(refused);
	assert_int_equal(errno, ENOMEM);
	expect_line(NULL, RULE_MR_NO_ROOM,
		    "mlx5_0 ibv_reg_mr → ENOMEM: there is no memory for another key, or all 16777216 keys exist. [340 "
		    "MR_NO_ROOM; ");
}

/* Each number was handed out: none is used twice while its domain exists, and one that came back is. */
static void case_PD_NO_ROOM(void **state)
{
	enum { MOST = 64 }; /* domains that earlier cases gave back */
	struct id_table *numbers = &hca_device(0)->pds;
	uint32_t fresh = numbers->fresh, number, count = 0;
	struct ibv_pd *domains[MOST];

	(void)state;
	numbers->fresh = numbers->limit - 1;
	while (count < MOST && (domains[count] = softhca_ibv_alloc_pd(pd->context)))
		count++;
	assert_in_range(count, 1, MOST - 1);
	assert_int_equal(errno, ENOMEM);
	expect_line(NULL, RULE_PD_NO_ROOM,
		    "mlx5_0 ibv_alloc_pd → ENOMEM: there is no memory for another protection domain, or all 8388608 "
		    "exist. [319 PD_NO_ROOM; ");
	number = hca_pd_number(to_user_pd(domains[0])->device);
	assert_int_equal(softhca_ibv_dealloc_pd(domains[0]), 0);
	domains[0] = softhca_ibv_alloc_pd(pd->context);
	assert_non_null(domains[0]);
	assert_int_equal(hca_pd_number(to_user_pd(domains[0])->device), number);
	while (count--)
		assert_int_equal(softhca_ibv_dealloc_pd(domains[count]), 0);
	numbers->fresh = fresh;
}

/* The other processes of the host have the ranges that this one has not, and all of its own numbers are in use. */
static void case_QP_NO_ROOM(void **state)
{
	enum { MOST = 64 };
	struct id_table *numbers = &registry()->qps;
	uint32_t fresh = numbers->fresh, own_count = host_table.own_count, count = 0;
	struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UC, .cap = {.max_send_wr = 1}};
	struct ibv_qp *more[MOST];

	(void)state;
	numbers->fresh = numbers->limit;
	host_table.own_count = LIMIT_MAX_QP >> HOST_SLOT_BITS;
	while (count < MOST && (more[count] = softhca_ibv_create_qp(pd, &attr)))
		count++;
	assert_in_range(count, 0, MOST - 1);
	assert_int_equal(errno, ENOMEM);
	expect_line(
		NULL, RULE_QP_NO_ROOM,
		"mlx5_0 ibv_create_qp → ENOMEM: there is no memory for another queue pair, this process has 262144, or "
		"the processes of this host together have all numbers. [528 QP_NO_ROOM; ");
	numbers->fresh = fresh;
	host_table.own_count = own_count;
	while (count--)
		assert_int_equal(softhca_ibv_destroy_qp(more[count]), 0);
}

/* ---- frames ----------------------------------------------------------------------------------------------------- */

/* What a link does with a frame that is no packet: a SEND of 8 bytes for queue pair 0x4711, but for @byte, which is @value. */
static void expect_frame(size_t length, size_t byte, uint8_t value, enum explain_rule rule, const char *line)
{
	uint8_t frame[64] = {0x04, 0x40, 0xff, 0xff, 0, 0, 0x47, 0x11};
	struct explain_subject subject = {.qpn = 0x4711};
	static struct packet packet;
	struct refusal why;

	frame[byte] = value;
	assert_int_equal(roce_parse(&packet, frame, length, &why), -EPROTO);
	explain_make(hca_device(0), &subject, why.rule, why.args, EXPLAIN_ARGS);
	expect_line(NULL, rule, "mlx5_0 qp 0x4711: %s", line);
}

static void case_FRAME_SHORT(void **state)
{
	(void)state;
	expect_frame(19, 0, 0x0c, RULE_FRAME_SHORT,
		     "a frame of 19 bytes from BTH on, where the headers alone take 28: dropped. [183 ");
}

static void case_FRAME_VERSION(void **state)
{
	(void)state;
	expect_frame(20, 1, 0x03, RULE_FRAME_VERSION,
		     "a frame for queue pair 0x4711 has transport version 3: dropped. [184 ");
}

static void case_FRAME_P_KEY(void **state)
{
	(void)state;
	expect_frame(
		20, 3, 0xfe, RULE_FRAME_P_KEY,
		"a frame for queue pair 0x4711 has P_Key 0xfffe, which is not in the partition 0xffff of this port: "
		"dropped. [185 ");
}

static void case_FRAME_OPCODE(void **state)
{
	(void)state;
	expect_frame(20, 0, 0x41, RULE_FRAME_OPCODE,
		     "a frame for queue pair 0x4711 has opcode 0x41, which does not exist: dropped. [186 ");
}

static void case_FRAME_SYNDROME(void **state)
{
	uint8_t frame[16] = {0x11, 0x40, 0xff, 0xff, 0, 0, 0x47, 0x11, [12] = 0x41};
	static struct packet packet;
	struct refusal why;

	(void)state;
	assert_int_equal(roce_parse(&packet, frame, sizeof(frame), &why), -EPROTO);
	explain_make(hca_device(0), &(struct explain_subject){.qpn = 0x4711}, why.rule, why.args, EXPLAIN_ARGS);
	expect_line(
		NULL, RULE_FRAME_SYNDROME,
		"mlx5_0 qp 0x4711: acknowledgement for queue pair 0x4711 has the syndrome 0x41, which is reserved, or "
		"not for a response with data: dropped. [187 ");
}

static void case_FRAME_PAD(void **state)
{
	(void)state;
	expect_frame(
		18, 1, 0x60, RULE_FRAME_PAD,
		"SEND for queue pair 0x4711 brings 6 bytes behind its headers and says that 2 of them are padding: "
		"dropped. [188 ");
}

static void case_FRAME_LENGTH(void **state)
{
	(void)state;
	expect_frame(32, 0, 0x0c, RULE_FRAME_LENGTH,
		     "RDMA READ request for queue pair 0x4711 brings 4 bytes behind its headers, and has no payload: "
		     "dropped. [189 ");
}

static void case_FRAME_MASKS(void **state)
{
	(void)state;
	expect_frame(52, 0, 0xd3, RULE_FRAME_MASKS,
		     "masked compare-and-swap for queue pair 0x4711 brings 12 bytes of masks; 8 or 16 would be two: "
		     "dropped. [190 ");
}

/* A fault spoils the frame of a SEND, behind its headers. */
static void case_FRAME_ICRC(void **state)
{
	static struct fault_script script;
	struct fault_error where;

	assert_int_equal(fault_script_parse(&script, "corrupt frame 100%; seed 1", &where), 0);
	/* Queue pairs are connected when there are faults already. */
	close_pair(state);
	assert_int_equal(filters_set_faults(hca_device(0), &script), 0);
	open_pair(state);
	post(IBV_WR_SEND, 0);
	assert_int_equal(filters_set_faults(hca_device(0), NULL), 0);
	expect_line(
		qp[SERVER], RULE_FRAME_ICRC,
		"mlx5_0 qp 0x%x: a frame for queue pair 0x%x of 32 bytes from BTH on does not have the ICRC of its bytes: "
		"dropped. [191 ",
		qp[SERVER]->qp_num, qp[SERVER]->qp_num);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define BEYOND(rule, reason) {#rule, case_##rule, open_pair, close_pair, NULL},
#include "beyond.def"
#undef BEYOND
	};

	return cmocka_run_group_tests_name("explain/beyond", tests, NULL, NULL);
}
