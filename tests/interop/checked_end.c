/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of one process: memory, queue pair, windows. */
#include "checked.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static const unsigned ALL =
	IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; devices && devices[i] && !context; i++) {
		if (!name || !strcmp(ibv_get_device_name(devices[i]), name))
			context = ibv_open_device(devices[i]);
	}
	if (!context)
		fail("device %s cannot be opened: %m", name ? name : "(any)");
	ibv_free_device_list(devices);
	return context;
}

struct end *open_end(const char *name, int gid_index)
{
	struct end *end = calloc(1, sizeof *end);
	struct ibv_port_attr port;

	if (!end)
		abort();
	end->context = open_device(name);
	end->gid_index = gid_index;
	end->pd = ibv_alloc_pd(end->context);
	end->cq = ibv_create_cq(end->context, 4 * OUTSTANDING, NULL, NULL, 0);
	end->memory = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!end->pd || !end->cq || end->memory == MAP_FAILED)
		fail("no protection domain, completion queue or memory: %m");
	end->mr = ibv_reg_mr(end->pd, end->memory, REGION, ALL | IBV_ACCESS_MW_BIND);
	if (!end->mr)
		fail("ibv_reg_mr: %m");
	if (ibv_query_port(end->context, 1, &port) || ibv_query_gid(end->context, 1, gid_index, &end->own.gid))
		fail("port 1 or its GID %d cannot be queried: %m", gid_index);
	end->own.mtu = port.active_mtu;
	end->own.memory = (uintptr_t)end->memory;
	end->own.rkey = end->mr->rkey;
	return end;
}

static void close_qp(struct end *end)
{
	struct ibv_wc completion;

	for (int i = 0; i < end->window_count; i++)
		ibv_dealloc_mw(end->windows[i]);
	end->window_count = 0;
	if (end->second)
		ibv_dereg_mr(end->second);
	end->second = NULL;
	if (end->handle)
		ibv_destroy_ah(end->handle);
	end->handle = NULL;
	if (end->qp && ibv_destroy_qp(end->qp))
		fail("ibv_destroy_qp: %m");
	end->qp = NULL;
	while (ibv_poll_cq(end->cq, 1, &completion) > 0) {
	}
}

void open_qp(struct end *end, const struct options *options)
{
	struct ibv_qp_cap room = {.max_send_wr = OUTSTANDING,
				  .max_recv_wr = OUTSTANDING,
				  .max_send_sge = 1,
				  .max_recv_sge = 1,
				  .max_inline_data = 64};
	struct ibv_qp_init_attr_ex create = {.send_cq = end->cq,
					     .recv_cq = end->cq,
					     .cap = room,
					     .qp_type = options->type,
					     .pd = end->pd,
					     .sq_sig_all = 1};
	struct ibv_qp_attr attributes = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY, .qp_access_flags = options->access};

	close_qp(end);
	end->options = *options;
	create.comp_mask = IBV_QP_INIT_ATTR_PD;
	if (options->atomic_write) {
		create.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		create.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_RDMA_READ;
	}
	end->qp = ibv_create_qp_ex(end->context, &create);
	if (!end->qp)
		fail("ibv_create_qp_ex: %m");
	errno = ibv_modify_qp(end->qp, &attributes,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      (options->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	if (errno)
		fail("ibv_modify_qp to INIT: %m");
	end->own.qpn = end->qp->qp_num;
	end->own.psn = 0xfffff8; /* sequences of packets pass 2^24 */
}

void connect_qp(struct end *end)
{
	bool reliable = end->options.type == IBV_QPT_RC;
	struct ibv_ah_attr route = {.is_global = 1,
				    .port_num = 1,
				    .grh = {.dgid = end->other.gid, .sgid_index = end->gid_index, .hop_limit = 64}};
	uint32_t mtu = end->own.mtu < end->other.mtu ? end->own.mtu : end->other.mtu;
	struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RTR,
					 .path_mtu = mtu,
					 .dest_qp_num = end->other.qpn,
					 .rq_psn = end->other.psn,
					 .max_dest_rd_atomic = READS,
					 .min_rnr_timer = 12,
					 .ah_attr = route};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (reliable)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	errno = ibv_modify_qp(end->qp, &attributes, end->options.type == IBV_QPT_UD ? IBV_QP_STATE : mask);
	if (errno)
		fail("ibv_modify_qp to RTR: %m");
	attributes = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
					  .sq_psn = end->own.psn,
					  .timeout = 16, /* 268 ms, because emulated and loaded processors are slow */
					  .retry_cnt = end->options.retries,
					  .rnr_retry = end->options.rnr_retries,
					  .max_rd_atomic = READS};
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (reliable)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	errno = ibv_modify_qp(end->qp, &attributes, mask);
	if (errno)
		fail("ibv_modify_qp to RTS: %m");
	if (end->options.type == IBV_QPT_UD) {
		end->handle = ibv_create_ah(end->pd, &route);
		if (!end->handle)
			fail("ibv_create_ah: %m");
	}
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* Patterns by number, computed once because memcmp() is much faster on an emulated processor. */
static uint8_t *patterns[REMOTE + 1];

static const uint8_t *pattern(uint64_t seed)
{
	uint64_t x;

	if (seed > REMOTE)
		fail("there is no pattern %llu", (unsigned long long)seed);
	if (!patterns[seed]) {
		patterns[seed] = malloc(REGION);
		if (!patterns[seed])
			abort();
		for (uint64_t i = 0; i < REGION; i += sizeof x) {
			x = (seed << 32 | i) * 0x9e3779b97f4a7c15u; /* an arbitrary odd constant */
			x ^= x >> 29;
			memcpy(patterns[seed] + i, &x, sizeof x);
		}
	}
	return patterns[seed];
}

void fill(struct end *end, uint64_t seed)
{
	memcpy(end->memory, pattern(seed), REGION);
}

int64_t compare(const struct end *end, uint64_t offset, uint64_t bytes, uint64_t seed, uint64_t source)
{
	const uint8_t *wanted = pattern(seed) + source;

	if (offset > REGION || bytes > REGION - offset || source > REGION || bytes > REGION - source)
		fail("there are no bytes %llu + %llu", (unsigned long long)offset, (unsigned long long)bytes);
	if (!memcmp(end->memory + offset, wanted, bytes))
		return -1;
	for (uint64_t i = 0; i < bytes; i++) {
		if (end->memory[offset + i] != wanted[i])
			return offset + i;
	}
	return -1;
}

int64_t check(const struct end *end, uint64_t offset, uint64_t bytes, uint64_t seed, uint64_t source, uint64_t around)
{
	int64_t wrong = compare(end, 0, offset, around, 0);

	if (wrong == -1)
		wrong = compare(end, offset, bytes, seed, source);
	return wrong == -1 ? compare(end, offset + bytes, REGION - offset - bytes, around, offset + bytes) : wrong;
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

void receive(struct end *end, uint64_t offset, uint32_t bytes, bool broken)
{
	struct ibv_sge piece = {(uintptr_t)end->memory + offset, bytes,
				broken ? end->mr->lkey ^ 0x5500 : end->mr->lkey};
	struct ibv_recv_wr request = {.sg_list = &piece, .num_sge = 1}, *bad;

	errno = ibv_post_recv(end->qp, &request, &bad);
	if (errno)
		fail("ibv_post_recv: %m");
}

struct outcome await_completion(struct end *end)
{
	time_t deadline = time(NULL) + WAIT_SECONDS;
	struct ibv_wc completion;
	int count;

	do
		count = ibv_poll_cq(end->cq, 1, &completion);
	while (!count && time(NULL) < deadline);
	if (count < 0)
		fail("ibv_poll_cq: %m");
	if (!count)
		return (struct outcome){.status = NO_COMPLETION};
	return (struct outcome){completion.status, completion.opcode, completion.byte_len, completion.wc_flags,
				completion.imm_data};
}

static void perform(struct end *end, struct ibv_send_wr *request, const char *name)
{
	struct outcome outcome;
	struct ibv_send_wr *bad;

	errno = ibv_post_send(end->qp, request, &bad);
	if (errno)
		fail("ibv_post_send of %s: %m", name);
	outcome = await_completion(end);
	if (outcome.status)
		fail("%s ends with status %s", name, ibv_wc_status_str(outcome.status));
}

uint32_t bind_window(struct end *end, uint64_t offset, uint64_t bytes, unsigned access)
{
	struct ibv_mw *window = ibv_alloc_mw(end->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr request = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};

	if (!window)
		fail("ibv_alloc_mw: %m");
	if (end->window_count == WINDOWS)
		fail("too many windows");
	end->windows[end->window_count++] = window;
	request.bind_mw.mw = window;
	request.bind_mw.rkey = ibv_inc_rkey(window->rkey);
	request.bind_mw.bind_info = (struct ibv_mw_bind_info){end->mr, (uintptr_t)end->memory + offset, bytes, access};
	perform(end, &request, "BIND_MW");
	return request.bind_mw.rkey;
}

void invalidate(struct end *end, uint32_t key)
{
	struct ibv_send_wr request = {
		.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = key};

	perform(end, &request, "LOCAL_INV");
}
