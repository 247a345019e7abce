/* SPDX-License-Identifier: BSD-2-Clause */
/* The world of the fuzzers, see world.h. */
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "block/bsf.h"
#include "hca/device.h"

#define PAGE 4096u
#define PAGES 16
#define ALL_ACCESS                                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |        \
	 IBV_ACCESS_MW_BIND)
#define UNTOUCHED 0xc5
#define CONTENTS 0x3a
#define DEVICE_BYTES PAGE

struct world world;

void world_abort(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: %s does not hold\n", file, line, condition);
	abort();
}

/* Regions over memory of the arena; the rest of their pages must never change. */
static const struct region {
	enum world_key key;
	uint32_t page, pages;    /* mapped */
	uint32_t offset, length; /* registered, from WORLD_BASE */
	unsigned int access;
	bool foreign, zero_based;
	enum mr_kind kind;
} regions[] = {
	{WORLD_FULL, 1, 2, 0x1040, 0x1f80, ALL_ACCESS, false, false, MR_MEMORY},
	{WORLD_ZERO_BASED, 4, 1, 0x4100, 0xe00, ALL_ACCESS, false, true, MR_MEMORY},
	{WORLD_READ_ONLY, 6, 1, 0x6000, PAGE, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND, false, false, MR_MEMORY},
	{WORLD_LOCAL, 8, 1, 0x8000, PAGE, IBV_ACCESS_LOCAL_WRITE, false, false, MR_MEMORY},
	{WORLD_FOREIGN, 10, 1, 0xa000, PAGE, ALL_ACCESS, true, false, MR_MEMORY},
	{WORLD_ON_DEMAND, 12, 1, 0xc000, 2 * PAGE, ALL_ACCESS, false, false, MR_ON_DEMAND},
};

#define REGIONS (sizeof(regions) / sizeof(regions[0]))

static uint8_t *at(uint64_t offset)
{
	return (uint8_t *)(uintptr_t)(WORLD_BASE + offset);
}

static bool may_change(const struct region *region)
{
	return !region->foreign && region->access & IBV_ACCESS_LOCAL_WRITE;
}

static uint32_t mapped_length(const struct region *region)
{
	uint32_t end = (region->page + region->pages) * PAGE, wanted = region->offset + region->length;

	return (wanted < end ? wanted : end) - region->offset;
}

/* A page that may be written lies between two that do not exist. */
static void make_arena(void)
{
	void *arena = mmap(at(0), PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	WORLD_CHECK(arena == at(0));
	for (size_t i = 0; i < REGIONS; i++) {
		uint8_t *first = at(regions[i].page * PAGE);
		size_t bytes = regions[i].pages * PAGE;

		WORLD_CHECK(!mprotect(first, bytes, PROT_READ | PROT_WRITE));
		memset(first, UNTOUCHED, bytes);
		if (regions[i].key == WORLD_READ_ONLY)
			WORLD_CHECK(!mprotect(first, bytes, PROT_READ));
	}
}

static struct hca_mr_attr attr_of(const struct region *region)
{
	return (struct hca_mr_attr){
		.kind = region->kind,
		.addr = at(region->offset),
		.start = region->zero_based ? 0 : WORLD_BASE + region->offset,
		.length = region->length,
		.access = region->access,
	};
}

static void make_regions(void)
{
	for (size_t i = 0; i < REGIONS; i++) {
		const struct hca_mr_attr attr = attr_of(&regions[i]);

		WORLD_CHECK(!hca_mr_register(regions[i].foreign ? world.foreign_pd : world.pd, &attr,
					     &world.key[regions[i].key]));
	}
}

static void register_full(const struct hca_mr_attr *attr)
{
	WORLD_CHECK(!hca_mr_reregister(world.key[WORLD_FULL],
				       IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, world.pd, attr));
}

void world_narrow(void)
{
	struct hca_mr_attr attr = attr_of(&regions[0]);

	attr.length /= 2;
	attr.access = IBV_ACCESS_LOCAL_WRITE;
	register_full(&attr);
	world.narrowed = true;
}

static void make_other_keys(void)
{
	struct hca_mr_attr attr = {.kind = MR_NULL, .length = UINT64_MAX, .access = ALL_ACCESS};
	struct hca_mkey_attr mkey = {.max_entries = 4};

	WORLD_CHECK(!hca_mr_register(world.pd, &attr, &world.key[WORLD_NULL]));
	WORLD_CHECK(!hca_dm_alloc(world.context, DEVICE_BYTES, 6, &world.device_memory));
	attr = (struct hca_mr_attr){
		.kind = MR_DEVICE_MEMORY, .addr = world.device_memory, .length = DEVICE_BYTES, .access = ALL_ACCESS};
	WORLD_CHECK(!hca_mr_register(world.pd, &attr, &world.key[WORLD_DEVICE]));
	WORLD_CHECK(!hca_mr_register(world.pd, &attr, &world.key[WORLD_GONE]));
	WORLD_CHECK(!hca_mr_deregister(world.key[WORLD_GONE]));
	world.key[WORLD_GONE] = NULL;
	WORLD_CHECK(!hca_mkey_create(world.pd, &mkey, &world.key[WORLD_MKEY_4]));
	mkey.max_entries = 8;
	WORLD_CHECK(!hca_mkey_create(world.pd, &mkey, &world.key[WORLD_MKEY_8]));
	mkey = (struct hca_mkey_attr){
		.max_entries = 64, .bsf_octowords = 4, .remote_invalidate = true, .update_tag = true};
	WORLD_CHECK(!hca_mkey_create(world.pd, &mkey, &world.key[WORLD_MKEY_64]));
	WORLD_CHECK(!hca_mkey_create(world.foreign_pd, &mkey, &world.key[WORLD_MKEY_FOREIGN]));
	WORLD_CHECK(!hca_mw_alloc(world.pd, IBV_MW_TYPE_1, &world.key[WORLD_WINDOW_1]));
	WORLD_CHECK(!hca_mw_alloc(world.pd, IBV_MW_TYPE_2, &world.key[WORLD_WINDOW_2]));
	WORLD_CHECK(!hca_mw_alloc(world.pd, IBV_MW_TYPE_2, &world.key[WORLD_WINDOW_2_ALSO]));
	mkey = (struct hca_mkey_attr){.max_entries = 8, .bsf_octowords = 4};
	WORLD_CHECK(!hca_mkey_create(world.pd, &mkey, &world.key[WORLD_MKEY_SIGNATURE]));
	mkey = (struct hca_mkey_attr){.max_entries = 8, .bsf_octowords = 8, .cipher = true};
	WORLD_CHECK(!hca_mkey_create(world.pd, &mkey, &world.key[WORLD_MKEY_CIPHER]));
	for (uint32_t i = 0; i < WORLD_KEYS; i++)
		WORLD_CHECK(!world.key[i] || mkey_number(world.key[i]) == WORLD_KEY(i));
}

/* What block setups refer to. */
static void make_psvs_and_deks(void)
{
	struct dek_attr attr = {.key_bytes = 32};
	uint32_t number;

	for (uint32_t i = 0; i < WORLD_PSVS; i++) {
		WORLD_CHECK(!hca_psv_create(i == WORLD_PSVS - 1 ? world.foreign_pd : world.pd, &number));
		WORLD_CHECK(number == WORLD_PSV + i);
	}
	for (uint8_t i = 0; i < sizeof(attr.key); i++)
		attr.key[i] = i;
	memset(attr.keytag, WORLD_KEYTAG, sizeof(attr.keytag));
	for (uint32_t i = 0; i < WORLD_DEKS; i++) {
		attr.pd = (i == 2 ? world.foreign_pd : world.pd)->number;
		attr.has_keytag = i == 1;
		WORLD_CHECK(!dek_create(world.hca, &attr, &number) && number == WORLD_DEK + i);
	}
}

/* Exactly as large as the device was told: AddressSanitizer sees the byte behind. */
static void *exact(size_t size)
{
	void *memory = aligned_alloc(64, size);

	WORLD_CHECK(memory);
	memset(memory, 0, size);
	return memory;
}

static void make_cq(struct world_cq *cq, uint32_t count, uint32_t size)
{
	struct hca_cq_attr attr = {.cqe_count = count, .cqe_size = size, .dbrec = cq->dbrec, .cookie = cq};

	cq->count = count;
	cq->size = size;
	cq->buffer = attr.buffer = exact((size_t)count * size);
	WORLD_CHECK(!hca_cq_create(world.context, &attr, &cq->cq));
}

static void make_srq(void)
{
	struct hca_srq_attr attr = {.entry_count = WORLD_SRQ_ENTRIES,
				    .entry_shift = WORLD_SRQ_SHIFT,
				    .dbrec = &world.srq_dbrec,
				    .cookie = &world.srq};

	world.srq_ring = attr.buffer = exact((size_t)WORLD_SRQ_ENTRIES << WORLD_SRQ_SHIFT);
	WORLD_CHECK(!hca_srq_create(world.pd, &attr, &world.srq));
}

static void make_qp(struct world_qp *end, enum ibv_qp_type type, struct world_cq *send_cq, struct world_cq *recv_cq,
		    struct hca_srq *srq)
{
	struct hca_qp_attr attr = {
		.type = type,
		.pd = world.pd,
		.send_cq = send_cq->cq,
		.recv_cq = recv_cq->cq,
		.srq = srq,
		.sq_wqebb_count = WORLD_SQ_BLOCKS,
		.rq_count = srq ? 0 : WORLD_RQ_ENTRIES,
		.rq_shift = WORLD_RQ_SHIFT,
		.dbrec = end->dbrec,
		.cookie = end,
		.stop_at_signature_error = send_cq->count == 4,
	};

	end->sq = attr.sq_buffer = exact((size_t)WORLD_SQ_BLOCKS * 64);
	end->rq = attr.rq_buffer = srq ? NULL : exact((size_t)WORLD_RQ_ENTRIES << WORLD_RQ_SHIFT);
	end->send_cq = send_cq;
	end->recv_cq = recv_cq;
	end->srq = srq;
	WORLD_CHECK(!hca_qp_create(world.context, &attr, &end->qp));
	/* The low bits of the number, so that each CQE shows whether both are from one QP. */
	end->qp->user_index = end->qp->number & 0xff;
}

static void make_qps(void)
{
	static const enum ibv_qp_type types[] = {[WORLD_RC] = IBV_QPT_RC,
						 [WORLD_UC] = IBV_QPT_UC,
						 [WORLD_UD] = IBV_QPT_UD,
						 [WORLD_RC_SMALL] = IBV_QPT_RC};

	make_cq(&world.cq[0], 256, 64);
	make_cq(&world.cq[1], 256, 64);
	make_cq(&world.cq[2], 4, 128);
	make_cq(&world.cq[3], 4, 128);
	make_srq();
	for (int i = 0; i < WORLD_PAIRS; i++) {
		bool small = i == WORLD_RC_SMALL;

		for (int j = 0; j < 2; j++)
			make_qp(&world.pair[i].end[j], types[i], &world.cq[small ? 2 : 0], &world.cq[small ? 3 : 1],
				small && j ? world.srq : NULL);
	}
}

void world_make(void)
{
	const struct hca_gid *gids;
	size_t count;

	/* A program's environment must not change what an input does. */
	for (int i = 0; i < SETTING_COUNT; i++)
		unsetenv(setting_info(i)->variable);
	setenv("SOFTHCA_SEED", "1", 1);
	setenv("SOFTHCA_GIDS", "loopback", 1);
	world.hca = hca_device(0);
	WORLD_CHECK(world.hca);
	gids = hca_gids(world.hca, &count);
	WORLD_CHECK(count);
	world.gid = gids[0].gid;
	WORLD_CHECK(!event_queue_init(&world.async));
	WORLD_CHECK(!fcntl(world.async.fd, F_SETFL, O_NONBLOCK));
	WORLD_CHECK(!hca_open(world.hca, &world.async, &world.context));
	WORLD_CHECK(!hca_pd_alloc(world.context, &world.pd));
	WORLD_CHECK(!hca_pd_alloc(world.context, &world.foreign_pd));
	make_arena();
	make_regions();
	make_other_keys();
	make_psvs_and_deks();
	make_qps();
	world_reset();
}

void world_reset_key(enum world_key number)
{
	struct mkey *key = world.key[number];
	struct mapping *next;

	if (number < WORLD_MKEY_4)
		return;
	next = mkey_edit(key);
	WORLD_CHECK(next);
	next->number = WORLD_KEY(number);
	next->free = true;
	next->rights = RIGHT_LOCAL_READ;
	next->qpn = KEY_QPN_ANY;
	next->qp_serial = 0;
	next->start = 0;
	next->length = 0;
	next->form = LAYOUT_NONE;
	next->count = 0;
	next->repeat = 0;
	next->period = 0;
	if (next->blocks)
		block_setup_clear(next->blocks);
	next->staged = next->needs_cipher;
	mkey_publish(key, next);
	block_progress_release(&key->progress);
	key->progress = (struct block_progress){0};
	key->signature_error = false;
}

static void reset_cq(struct world_cq *world_cq)
{
	struct hca_cq *cq = world_cq->cq;

	memset(world_cq->buffer, 0, (size_t)world_cq->count * world_cq->size);
	for (uint32_t i = 1; i <= world_cq->count; i++)
		world_cq->buffer[(size_t)i * world_cq->size - 1] = MLX5_CQE_INVALID << 4;
	world_cq->consumer = 0;
	world_cq->dbrec[0] = world_cq->dbrec[1] = 0;
	cq->producer_index = 0;
	cq->overrun = false;
	cq->armed = false;
	cq->fired = false;
}

void world_reset(void)
{
	for (size_t i = 0; i < REGIONS; i++)
		if (may_change(&regions[i]))
			memset(at(regions[i].offset), CONTENTS, mapped_length(&regions[i]));
	memset(world.device_memory, CONTENTS, DEVICE_BYTES);
	for (int i = WORLD_MKEY_4; i < WORLD_KEYS; i++)
		world_reset_key(i);
	for (size_t i = 0; i < sizeof(world.cq) / sizeof(world.cq[0]); i++)
		reset_cq(&world.cq[i]);
	world.srq_dbrec = 0;
	world.srq->consumed = 0;
	world.srq->next = 0;
	world.srq->limit = 0;
	if (world.narrowed) {
		const struct hca_mr_attr attr = attr_of(&regions[0]);

		register_full(&attr);
		world.narrowed = false;
	}
}

static void modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	WORLD_CHECK(!hca_qp_modify(qp, attr, mask | IBV_QP_STATE));
}

static void to_init(struct hca_qp *qp, const struct world_connection *connection)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = connection->access, .qkey = 0x11111111};

	modify(qp, &attr,
	       IBV_QP_PKEY_INDEX | IBV_QP_PORT | (qp->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static void to_rtr(struct hca_qp *qp, const struct world_connection *connection, uint32_t peer)
{
	int mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = connection->mtu,
		.dest_qp_num = peer,
		.rq_psn = 0xfffffe, /* wraps soon */
		.max_dest_rd_atomic = connection->max_dest_rd_atomic,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = world.gid, .hop_limit = 1}},
	};

	if (connection->unreachable)
		memset(&attr.ah_attr.grh.dgid, 0x5a, sizeof(attr.ah_attr.grh.dgid));
	if (qp->type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	modify(qp, &attr, qp->type == IBV_QPT_UD ? 0 : mask);
}

/* The longest timeouts: those who want a timer to run out call its function. */
static void to_rts(struct hca_qp *qp, const struct world_connection *connection)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = 0xfffffe,
		.timeout = 31,
		.retry_cnt = connection->retry_cnt,
		.rnr_retry = connection->rnr_retry,
		.max_rd_atomic = connection->max_rd_atomic,
	};

	modify(qp, &attr,
	       IBV_QP_SQ_PSN | (qp->type == IBV_QPT_RC
					? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
					: 0));
}

void world_connect(struct world_pair_of_qps *pair, const struct world_connection *connection)
{
	const struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	for (int i = 0; i < 2; i++)
		modify(pair->end[i].qp, &reset, 0);
	for (int i = 0; i < 2; i++) {
		struct hca_qp *qp = pair->end[i].qp;
		uint32_t peer = pair->end[connection->to_itself ? i : 1 - i].qp->number;

		qp->requester.next = connection->sq_start;
		qp->rq.consumed = connection->rq_start;
		to_init(qp, connection);
		to_rtr(qp, connection, peer);
		if (i == 0 || !connection->peer_in_rtr)
			to_rts(qp, connection);
	}
}

static void check_untouched(const uint8_t *bytes, const uint8_t *end)
{
	static const uint8_t untouched[PAGE] = {[0 ... PAGE - 1] = UNTOUCHED};

	WORLD_CHECK(!memcmp(bytes, untouched, (size_t)(end - bytes)));
}

void world_check_memory(void)
{
	for (size_t i = 0; i < REGIONS; i++) {
		const struct region *region = &regions[i];
		uint8_t *first = at(region->page * PAGE), *end = at((region->page + region->pages) * PAGE);

		if (!may_change(region)) {
			check_untouched(first, end);
			continue;
		}
		check_untouched(first, at(region->offset));
		check_untouched(at(region->offset + mapped_length(region)), end);
	}
}

static bool is_of_the_world(const void *object)
{
	if (object == &world.srq)
		return true;
	for (size_t i = 0; i < sizeof(world.cq) / sizeof(world.cq[0]); i++)
		if (object == &world.cq[i])
			return true;
	for (int i = 0; i < WORLD_PAIRS; i++)
		if (object == &world.pair[i].end[0] || object == &world.pair[i].end[1])
			return true;
	return false;
}

void world_take_events(void)
{
	void *object;
	int type, error;

	while (!(error = event_queue_take(&world.async, &type, &object)))
		WORLD_CHECK(is_of_the_world(object));
	WORLD_CHECK(error == -EAGAIN);
}
