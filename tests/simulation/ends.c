/* SPDX-License-Identifier: BSD-2-Clause */
/* The two ends and their parts, see ends.h; ends_post.c posts. */
#include "ends.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mkey/bsf.h"
#include "block/dek.h"
#include "core/epoch.h"
#include "process/commands.h"
#include "mkey/walk.h"

enum {
	ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	QKEY = 0x11111111,
	DC_KEY = 0x5eed,
};

struct hca *ends_hca;
struct end ends[ENDS];

static struct hca_context *context;
static struct event_queue async;
static struct hca_xrcd *xrcd;
static char cookie;

void must(bool condition, const char *file, int line, const char *text)
{
	if (condition)
		return;
	printf("%s:%d: not so: %s\n", file, line, text);
	exit(1);
}

/* ---- permanent parts -------------------------------------------------------------------------------------------- */

static void make_keys(struct end *end)
{
	const struct hca_mr_attr region = {
		.addr = end->memory, .start = (uintptr_t)end->memory, .length = MEMORY, .access = ACCESS};
	struct hca_mkey_attr attr = {.max_entries = 4, .remote_invalidate = true};
	struct dek_attr dek = {.key_bytes = 32, .pd = hca_pd_number(end->pd)};

	for (int i = 0; i < 32; i++)
		dek.key[i] = (uint8_t)(i * 11 + 3);
	MUST(!hca_mr_register(end->pd, &region, &end->region));
	MUST(!dek_create(ends_hca, &dek, &end->dek));
	for (int i = 0; i < INVALIDATED; i++)
		MUST(!hca_mkey_create(end->pd, &attr, &end->invalidated[i]));
	for (int i = 0; i < PASSING; i++)
		MUST(!hca_mkey_create(end->pd, &attr, &end->passing[i]));
	attr = (struct hca_mkey_attr){.max_entries = 4, .bsf_octowords = 4};
	for (int remote = 0; remote < 2; remote++) {
		attr.cipher = false;
		MUST(!hca_psv_create(end->pd, &end->psv[remote]));
		MUST(!hca_mkey_create(end->pd, &attr, &end->staged[remote][KEYS_SIGNATURE]));
		attr.cipher = true;
		MUST(!hca_mkey_create(end->pd, &attr, &end->staged[remote][KEYS_CIPHER]));
	}
}

void ends_open(void)
{
	static _Alignas(4096) uint8_t memory[ENDS][MEMORY];

	setenv("SOFTHCA_GIDS", "loopback", 1);
	setenv("SOFTHCA_LINK", "local", 1);
	setenv("SOFTHCA_SEED", "1", 1);
	ends_hca = hca_device(0);
	MUST(ends_hca && !event_queue_init(&async));
	MUST(!fcntl(async.fd, F_SETFL, O_NONBLOCK));
	MUST(!hca_open(ends_hca, &async, &context));
	MUST(!hca_xrcd_open(context, -1, O_CREAT, &xrcd));
	for (int e = 0; e < ENDS; e++) {
		ends[e].memory = memory[e];
		MUST(!hca_pd_alloc(context, &ends[e].pd));
		make_keys(&ends[e]);
	}
}

/* ---- keys ------------------------------------------------------------------------------------------------------- */

static struct mapping *begin_layout(struct mkey *key, const struct end *end, uint32_t at, uint32_t bytes)
{
	struct mapping *next = mkey_edit(key);

	MUST(next);
	next->form = LAYOUT_LIST;
	next->repeat = 1;
	next->free = false;
	next->rights = RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE | RIGHT_REMOTE_READ | RIGHT_REMOTE_WRITE | RIGHT_ATOMIC;
	next->count = 1;
	next->length = next->period = bytes;
	next->entries[0] = (struct layout_entry){
		.address = (uintptr_t)end->memory + at, .bytes = bytes, .key = mkey_number(end->region)};
	return next;
}

static void configure(struct mkey *key, const struct end *end, uint32_t at, const uint8_t *bsf)
{
	const struct walk_access access = {.hca = ends_hca, .pd = hca_pd_number(end->pd)};
	struct mapping *next = begin_layout(key, end, at, STAGED_BYTES);
	struct refusal why;

	epoch_enter();
	MUST(!bsf_parse(&access, next->number, bsf, 4, next->blocks, &why));
	epoch_leave();
	next->staged = true;
	mkey_publish(key, next);
}

static void configure_keys(const struct end *end, bool remote)
{
	uint32_t psv = end->psv[remote], at = area_of(remote) + STAGED;
	/* CRC32C of 512 bytes on the wire, none in memory (mlx5-formats 1.11). */
	const uint8_t signature[64] = {0x80,        0xff, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x42, 0, (uint8_t)(psv >> 8),
				       (uint8_t)psv};
	/* Plain in memory, encrypted on the wire in units of UNIT bytes (1.12). */
	const uint8_t cipher[64] = {0x81, 0, [8] = 2, [34] = (uint8_t)(end->dek >> 8), [35] = (uint8_t)end->dek};

	configure(end->staged[remote][KEYS_SIGNATURE], end, at, signature);
	configure(end->staged[remote][KEYS_CIPHER], end, at + STAGED_BYTES, cipher);
}

static void prepare_memory(int number, const struct plan *plan)
{
	struct end *end = &ends[number];
	const uint8_t *before = plan_memory(number);

	memcpy(end->memory, before, plan->direction[number].local_used + SLACK);
	memcpy(end->memory + AREA, before + AREA, plan->direction[!number].remote_used + SLACK);
	for (int e = 0; e < ENDS; e++) {
		const struct direction *direction = &plan->direction[e];

		if (direction->staged_used[KEYS_SIGNATURE] || direction->staged_used[KEYS_CIPHER])
			configure_keys(end, e != number);
	}
	for (int i = 0; i < INVALIDATED; i++)
		mkey_publish(end->invalidated[i], begin_layout(end->invalidated[i], end, 0, 64));
	for (int i = 0; i < PASSING; i++)
		mkey_publish(end->passing[i], begin_layout(end->passing[i], end, 0, MEMORY));
}

void end_pass(int number, const struct request *request)
{
	struct mkey *key = request->passing ? ends[!number].passing[request->passing - 1] : NULL;
	struct mapping *next = key ? mkey_edit(key) : NULL;

	if (!key)
		return;
	MUST(next);
	next->free = true;
	mkey_publish(key, next);
}

/* ---- queues of a run -------------------------------------------------------------------------------------------- */

static void *ring_of(size_t bytes)
{
	void *ring = aligned_alloc(64, bytes);

	MUST(ring);
	return memset(ring, 0, bytes);
}

static void make_cq(struct ring_cq *cq)
{
	struct hca_cq_attr attr = {.cqe_count = CQES, .cqe_size = 64, .dbrec = cq->dbrec};

	cq->consumer = cq->dbrec[0] = cq->dbrec[1] = 0;
	cq->ring = attr.buffer = ring_of(CQES * 64);
	for (uint32_t i = 0; i < CQES; i++)
		cq->ring[64 * i + 63] = MLX5_CQE_INVALID << 4;
	MUST(!hca_cq_create(context, &attr, &cq->cq));
}

static void destroy_cq(struct ring_cq *cq)
{
	MUST(!hca_cq_destroy(cq->cq));
	free(cq->ring);
}

static void make_srq(struct end *end, struct queue *queue, bool xrc)
{
	struct hca_srq_attr attr = {
		.buffer = queue->ring,
		.entry_count = RQ_ENTRIES,
		.entry_shift = SRQ_SHIFT,
		.dbrec = &queue->srq_dbrec,
		.xrcd = xrc ? xrcd : NULL,
		.cq = xrc ? queue->cq.cq : NULL,
	};

	for (uint16_t i = 0; i < RQ_ENTRIES; i++) {
		const struct mlx5_wqe_srq_next_seg link = {.next_wqe_index = htobe16((i + 1) % RQ_ENTRIES)};

		memcpy(queue->ring + (i << SRQ_SHIFT), &link, sizeof(link));
	}
	MUST(!hca_srq_create(end->pd, &attr, &queue->srq));
}

static void make_queues(struct end *end, const struct plan *plan)
{
	make_cq(&end->send_cq);
	for (int i = 0; i < TARGETS; i++) {
		struct queue *queue = &end->queue[i];

		make_cq(&queue->cq);
		queue->ring = ring_of(RQ_ENTRIES << SRQ_SHIFT);
		queue->srq_dbrec = queue->posted = 0;
		queue->srq = NULL;
		if (plan->srq || plan->type == IBV_QPT_XRC_SEND || plan->type == QP_TYPE_DCI)
			make_srq(end, queue, plan->type == IBV_QPT_XRC_SEND);
	}
	end->sq = ring_of(SQ_BLOCKS * 64);
	end->dbrec[0] = end->dbrec[1] = end->posted = 0;
}

static void make_sender(struct end *end, const struct plan *plan)
{
	bool receives = plan->type != IBV_QPT_XRC_SEND && plan->type != QP_TYPE_DCI;
	struct hca_qp_attr attr = {
		.type = plan->type,
		.pd = end->pd,
		.send_cq = end->send_cq.cq,
		.recv_cq = receives                    ? end->queue[0].cq.cq
			   : plan->type == QP_TYPE_DCI ? end->send_cq.cq
						       : NULL,
		.srq = receives ? end->queue[0].srq : NULL,
		.sq_buffer = end->sq,
		.sq_wqebb_count = SQ_BLOCKS,
		.dbrec = end->dbrec,
	};

	if (receives && !attr.srq) {
		attr.rq_buffer = end->queue[0].ring;
		attr.rq_count = RQ_ENTRIES;
		attr.rq_shift = RQ_SHIFT;
	}
	MUST(!hca_qp_create(context, &attr, &end->qp));
}

static void make_targets(struct end *end, const struct plan *plan)
{
	struct hca_qp_attr attr = {.type = IBV_QPT_XRC_RECV, .xrcd = xrcd, .cookie = &cookie};

	if (plan->type == IBV_QPT_XRC_SEND) {
		MUST(!hca_qp_create(context, &attr, &end->responder[0]));
		return;
	}
	for (int i = 0; i < TARGETS; i++) {
		attr = (struct hca_qp_attr){
			.type = QP_TYPE_DCT,
			.pd = end->pd,
			.send_cq = end->queue[i].cq.cq,
			.recv_cq = end->queue[i].cq.cq,
			.srq = end->queue[i].srq,
			.dbrec = end->dct_dbrec[i],
			.dc_access_key = DC_KEY + (uint64_t)i,
		};
		MUST(!hca_qp_create(context, &attr, &end->responder[i]));
	}
}

/* ---- connecting ------------------------------------------------------------------------------------------------- */

static void move(struct hca_qp *qp, enum ibv_qp_state state, struct ibv_qp_attr attr, int mask)
{
	attr.qp_state = state;
	MUST(!hca_qp_modify(qp, &attr, mask | IBV_QP_STATE));
}

/* Connects with exactly the attributes that ibv_modify_qp(3) requires for each type. */
static void connect_qp(struct hca_qp *qp, const struct plan *plan, int end, uint32_t peer)
{
	enum ibv_qp_type type = qp->type;
	bool ud = type == IBV_QPT_UD, dci = type == QP_TYPE_DCI, dct = type == QP_TYPE_DCT;
	bool requests = type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND || dci;
	bool responds = type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;
	struct ibv_qp_attr attr = plan->attr;
	int to_rtr = 0;
	size_t gids;

	attr.port_num = 1;
	attr.qkey = QKEY;
	attr.qp_access_flags = ACCESS;
	attr.dest_qp_num = peer;
	attr.sq_psn = plan->psn[end];
	attr.rq_psn = plan->psn[!end];
	attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh = {.hop_limit = 3}};
	if (!dct)
		attr.ah_attr.grh.dgid = hca_gids(ends_hca, &gids)[0].gid;
	move(qp, IBV_QPS_INIT, attr,
	     IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		     (ud    ? IBV_QP_QKEY
		      : dci ? 0
			    : IBV_QP_ACCESS_FLAGS));
	if (dci)
		to_rtr = IBV_QP_PATH_MTU;
	else if (dct)
		to_rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER;
	else if (!ud)
		to_rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			 (responds ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
	move(qp, IBV_QPS_RTR, attr, to_rtr);
	if (dct)
		return;
	move(qp, IBV_QPS_RTS, attr,
	     IBV_QP_SQ_PSN |
		     (requests ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0) |
		     (type == IBV_QPT_XRC_RECV ? IBV_QP_TIMEOUT : 0));
}

struct hca_qp *end_responder(int end, int target)
{
	if (ends[end].responder[target])
		return ends[end].responder[target];
	return ends[end].responder[0] ? ends[end].responder[0] : ends[end].qp;
}

void ends_begin(const struct plan *plan)
{
	bool one_way = plan->type == IBV_QPT_XRC_SEND || plan->type == QP_TYPE_DCI;

	for (int e = 0; e < ENDS; e++) {
		ends[e].qp = NULL;
		memset(ends[e].responder, 0, sizeof(ends[e].responder));
		prepare_memory(e, plan);
		make_queues(&ends[e], plan);
		if (one_way && e)
			make_targets(&ends[e], plan);
		else
			make_sender(&ends[e], plan);
	}
	for (int e = 0; e < ENDS; e++) {
		if (ends[e].qp)
			connect_qp(ends[e].qp, plan, e, end_responder(!e, 0)->number);
		for (int i = 0; i < TARGETS; i++)
			if (ends[e].responder[i])
				connect_qp(ends[e].responder[i], plan, e, ends[!e].qp->number);
	}
}

void ends_finish(void)
{
	for (int e = 0; e < ENDS; e++) {
		struct end *end = &ends[e];

		if (end->qp)
			MUST(!hca_qp_destroy(end->qp));
		for (int i = 0; i < TARGETS; i++) {
			if (end->responder[i] && end->responder[i]->type == IBV_QPT_XRC_RECV)
				hca_qp_close(end->responder[i], &cookie);
			else if (end->responder[i])
				MUST(!hca_qp_destroy(end->responder[i]));
		}
	}
	for (int e = 0; e < ENDS; e++) {
		for (int i = 0; i < TARGETS; i++) {
			if (ends[e].queue[i].srq)
				MUST(!hca_srq_destroy(ends[e].queue[i].srq));
			destroy_cq(&ends[e].queue[i].cq);
			free(ends[e].queue[i].ring);
		}
		destroy_cq(&ends[e].send_cq);
		free(ends[e].sq);
	}
}
