/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws a plan, see plan.h. */
#include "plan.h"

#include <stdio.h>
#include <string.h>
#include <infiniband/mlx5dv.h>

#include "../model/choose.h"
#include "process/commands.h"
#include "opcodes.h"

#define PSN_COUNT (1u << 24)

/* State of drawing a plan. */
struct draw {
	struct choose c;
	struct plan *plan;
	struct direction *direction;
	uint32_t mtu;
	uint64_t now_ns;
	uint32_t invalidated;
	/* READ sinks of this direction, which a later request may send. */
	uint32_t sinks;
	struct range sink[MOST_REQUESTS];
	/* Memory filled by WRITEs, which a later READ may request: the connection keeps this order. */
	uint32_t writes;
	struct range written[MOST_REQUESTS];
};

static bool has_targets(const struct plan *plan)
{
	return plan->type == IBV_QPT_XRC_SEND || plan->type == QP_TYPE_DCI;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* Allocates @bytes of an area, with a gap before them. */
static uint32_t take(struct draw *d, bool remote, uint32_t bytes, uint32_t alignment)
{
	uint32_t *used = remote ? &d->direction->remote_used : &d->direction->local_used;
	uint32_t at = *used + (uint32_t)choose_below(&d->c, 40);

	at = (at + alignment - 1) & -alignment;
	*used = at + bytes;
	return area_of(remote) + at;
}

static uint32_t left(const struct draw *d)
{
	uint32_t local = d->direction->local_used, remote = d->direction->remote_used;

	return AREA - SLACK - (local > remote ? local : remote);
}

static uint32_t draw_length(struct draw *d)
{
	uint64_t longest = d->plan->window ? 4 * (uint64_t)d->plan->window : 64 * d->mtu, length;
	unsigned int kind = (unsigned int)choose_below(&d->c, 100);

	if (kind < 35)
		length = choose_below(&d->c, 65);
	else if (kind < 60)
		length = choose_below(&d->c, 6) * d->mtu + choose_below(&d->c, 3) - 1;
	else if (kind < 85)
		length = choose_below(&d->c, 5 * d->mtu);
	else
		length = choose_below(&d->c, longest + 1);
	if (length == UINT64_MAX)
		length = 0;
	/* All requests must fit. */
	return length <= left(d) / 8 ? (uint32_t)length : (uint32_t)choose_below(&d->c, 64);
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

static uint8_t draw_opcode(struct draw *d)
{
	static const uint8_t reliable[] = {
		MLX5_OPCODE_SEND,       MLX5_OPCODE_SEND,           MLX5_OPCODE_SEND_IMM,  MLX5_OPCODE_SEND_INVAL,
		MLX5_OPCODE_RDMA_WRITE, MLX5_OPCODE_RDMA_WRITE,     MLX5_OPCODE_RDMA_READ, MLX5_OPCODE_RDMA_READ,
		MLX5_OPCODE_RDMA_READ,  MLX5_OPCODE_RDMA_WRITE_IMM, MLX5_OPCODE_ATOMIC_CS, MLX5_OPCODE_ATOMIC_FA,
		OPCODE_MASKED_CS,       OPCODE_MASKED_FA,
	};
	static const uint8_t unreliable[] = {MLX5_OPCODE_SEND, MLX5_OPCODE_SEND_IMM, MLX5_OPCODE_RDMA_WRITE,
					     MLX5_OPCODE_RDMA_WRITE_IMM};
	uint8_t opcode;

	if (d->plan->type == IBV_QPT_UD)
		return unreliable[choose_below(&d->c, 2)];
	if (d->plan->type == IBV_QPT_UC)
		return CHOOSE_OF(&d->c, unreliable);
	opcode = CHOOSE_OF(&d->c, reliable);
	return opcode == MLX5_OPCODE_SEND_INVAL && d->invalidated == INVALIDATED ? MLX5_OPCODE_SEND : opcode;
}

/* Returns a mask with few bits, many bits, all, none, or any. */
static uint64_t draw_mask(struct draw *d)
{
	switch (choose_below(&d->c, 5)) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return choose_bits(&d->c) & choose_bits(&d->c) & choose_bits(&d->c);
	case 3:
		return UINT64_C(0x8080808080808080);
	default:
		return choose_bits(&d->c);
	}
}

/* mlx5-formats 1.5: a masked atomic of 8 bytes is plain, or has opmod 9; of 4 bytes opmod 8. */
static void draw_atomic(struct draw *d, struct request *request)
{
	bool masked = opcode_is_masked(request->opcode);

	if (masked)
		request->opmod = (uint8_t[]){0, 8, 9}[choose_below(&d->c, 3)];
	request->operand_bytes = request->opmod == 8 ? 4 : 8;
	request->length = request->operand_bytes;
	request->pieces = 1;
	request->local[0] = (struct range){take(d, false, request->length, 8), request->length};
	request->remote = area_of(true) + (uint32_t)choose_below(&d->c, COUNTERS) * 8;
	/* Often equal to memory: counters begin with 0, and values are small. */
	request->swap_add = chance(&d->c, 50) ? choose_below(&d->c, 4) : choose_bits(&d->c);
	request->compare = chance(&d->c, 50) ? choose_below(&d->c, 4) : choose_bits(&d->c);
	request->swap_mask = masked ? draw_mask(d) : UINT64_MAX;
	request->compare_mask = masked ? draw_mask(d) : UINT64_MAX;
}

/* Draws a request with a block stage: whole blocks, from the same block at both ends (the tweak counts them). */
static bool draw_staged(struct draw *d, struct request *request)
{
	uint8_t keys = (uint8_t)(1 + choose_below(&d->c, 2));
	uint32_t *used = &d->direction->staged_used[keys];
	uint32_t block = keys == KEYS_CIPHER ? UNIT : BLOCK;
	uint32_t bytes = (1 + (uint32_t)choose_below(&d->c, chance(&d->c, 10) ? 40 : 8)) * block;
	uint32_t at = STAGED + (keys - 1u) * STAGED_BYTES + *used;

	if (*used + bytes > STAGED_BYTES)
		return false;
	*used += bytes;
	request->length = bytes;
	/* A message may end inside a data unit, at a block of AES (docs/inside/decisions.md, Ciphers). */
	if (keys == KEYS_CIPHER && chance(&d->c, 30))
		request->length -= UNIT % 16 + 16 * (1 + (uint32_t)choose_below(&d->c, 31));
	request->keys = keys;
	request->pieces = 1;
	request->local[0] = (struct range){area_of(false) + at, request->length};
	request->remote = area_of(true) + at;
	return true;
}

static void draw_pieces(struct draw *d, struct request *request)
{
	uint32_t rest = request->length;

	request->pieces = (uint8_t)(1 + (chance(&d->c, 20) ? choose_below(&d->c, MOST_PIECES) : 0));
	for (uint8_t i = 0; i < request->pieces; i++) {
		uint32_t bytes = i + 1 < request->pieces ? (uint32_t)choose_below(&d->c, rest + 1) : rest;

		/* A segment of zero bytes means 2 GiB (mlx5-formats 1.4). */
		if (!bytes && i + 1 < request->pieces)
			bytes = rest ? 1 : 0;
		request->local[i] = (struct range){take(d, false, bytes, 1), bytes};
		rest -= bytes;
	}
	while (request->pieces && !request->local[request->pieces - 1].length)
		request->pieces--;
}

/* Draws a request that sends the data of a READ, after a fence. */
static bool draw_sent_on(struct draw *d, struct request *request)
{
	static const uint8_t waiting[] = {0x40, 0x60, 0x80};

	if (!d->sinks || !plan_is_reliable(d->plan) || request->opcode == MLX5_OPCODE_RDMA_READ || chance(&d->c, 80))
		return false;
	request->pieces = 1;
	request->local[0] = d->sink[choose_below(&d->c, d->sinks)];
	request->length = request->local[0].length;
	request->fence = CHOOSE_OF(&d->c, waiting);
	return request->length <= left(d) / 8;
}

static void draw_data(struct draw *d, struct request *request)
{
	bool reads = request->opcode == MLX5_OPCODE_RDMA_READ;

	if (plan_is_reliable(d->plan) && chance(&d->c, 8) && draw_staged(d, request))
		return;
	if (reads && d->writes && chance(&d->c, 30)) {
		const struct range *written = &d->written[choose_below(&d->c, d->writes)];

		request->length = written->length;
		request->remote = written->offset;
		draw_pieces(d, request);
		return;
	}
	if (!draw_sent_on(d, request)) {
		request->length = draw_length(d);
		if (d->plan->type == IBV_QPT_UD)
			request->length %= d->mtu + 1;
		else if (d->plan->type == IBV_QPT_UC)
			request->length %= 3 * d->mtu < 4096 ? 3 * d->mtu : 4096;
		draw_pieces(d, request);
	}
	if (!opcode_is_send(request->opcode))
		request->remote = take(d, true, request->length, 1);
	if (reads && request->pieces == 1)
		d->sink[d->sinks++] = request->local[0];
	if (opcode_is_rdma(request->opcode) && !reads)
		d->written[d->writes++] = (struct range){request->remote, request->length};
}

static void draw_request(struct draw *d, struct request *request)
{
	static const uint8_t fences[] = {0x20, 0x40, 0x60, 0x80};

	if (chance(&d->c, 30))
		d->now_ns += choose_below(&d->c, chance(&d->c, 20) ? 5000000 : 100000);
	*request = (struct request){
		.at_ns = d->now_ns,
		.opcode = draw_opcode(d),
		.fence = chance(&d->c, 10) ? CHOOSE_OF(&d->c, fences) : 0,
		.solicited = chance(&d->c, 20),
		.imm = (uint32_t)choose_bits(&d->c),
	};
	if (has_targets(d->plan))
		request->target = (uint8_t)choose_below(&d->c, TARGETS);
	if (request->opcode == MLX5_OPCODE_SEND_INVAL)
		request->invalidates = (uint8_t)d->invalidated++;
	if (opcode_is_atomic(request->opcode))
		draw_atomic(d, request);
	else
		draw_data(d, request);
}

static void draw_signalling(struct draw *d)
{
	bool all = chance(&d->c, 70);

	/* The ring must not fill with requests without a completion. */
	for (uint32_t i = 0; i < d->direction->requests; i++)
		d->direction->request[i].signalled =
			all || i % 4 == 3 || i + 1 == d->direction->requests || chance(&d->c, 40);
}

/* Draws keys that end with the completion of their request, which is therefore signalled. */
static void draw_passing(struct draw *d)
{
	uint8_t passing = 0;

	for (uint32_t i = 0; i < d->direction->requests && passing < PASSING; i++) {
		struct request *request = &d->direction->request[i];

		if (request->signalled && !request->keys && chance(&d->c, 40) &&
		    (opcode_is_rdma(request->opcode) || opcode_is_atomic(request->opcode)))
			request->passing = ++passing;
	}
}

/* ---- receives -------------------------------------------------------------------------------------------------- */

static struct receive *add_receive(struct draw *d, uint8_t target, uint32_t bytes, uint64_t at_ns)
{
	struct direction *direction = d->direction;
	uint32_t number = direction->receives[target];
	struct receive *receive = &direction->receive[target][number];

	if (number && direction->receive[target][number - 1].at_ns > at_ns)
		at_ns = direction->receive[target][number - 1].at_ns;
	*receive = (struct receive){.at_ns = at_ns, .buffer = {take(d, true, bytes, 1), bytes}};
	direction->receives[target]++;
	return receive;
}

/* Draws receives for the requests in order; some arrive too late for them. */
static void draw_receives(struct draw *d)
{
	struct direction *direction = d->direction;
	uint64_t lateness_ns = chance(&d->c, 50) ? 0 : 4 * rnr_ns(d->plan->attr.min_rnr_timer);

	for (uint32_t i = 0; i < direction->requests; i++) {
		struct request *request = &direction->request[i];
		bool sends = opcode_is_send(request->opcode);
		uint64_t at_ns = lateness_ns ? request->at_ns + choose_below(&d->c, lateness_ns) : 0;
		struct receive *receive;

		if (!opcode_takes_receive(request->opcode))
			continue;
		if (request->keys && sends) {
			receive = add_receive(d, request->target, 0, at_ns);
			receive->keys = request->keys;
			receive->buffer = (struct range){request->remote, request->length};
			continue;
		}
		receive = add_receive(d, request->target,
				      (sends ? request->length : 0) + (uint32_t)choose_below(&d->c, 50), at_ns);
		if (sends)
			request->remote = receive->buffer.offset;
	}
	for (uint8_t target = 0; target < (has_targets(d->plan) ? TARGETS : 1); target++)
		for (uint64_t more = choose_below(&d->c, 4); more; more--)
			add_receive(d, target, (uint32_t)choose_below(&d->c, 200), d->now_ns);
}

/* Draws receives where any message may be lost or arrive twice: a receive must suit all. */
static void draw_any_receives(struct draw *d)
{
	uint32_t count = chance(&d->c, 70) ? 3 * d->direction->requests : d->direction->requests / 2, most = 0;

	for (uint32_t i = 0; i < d->direction->requests; i++)
		if (d->direction->request[i].length > most)
			most = d->direction->request[i].length;
	while (count--)
		add_receive(d, 0, GRH_BYTES + most, 0);
}

/* ---- the connection -------------------------------------------------------------------------------------------- */

static void draw_attributes(struct draw *d)
{
	struct plan *plan = d->plan;
	static const uint8_t depths[] = {1, 1, 2, 3, 4, 16};
	uint8_t depth = CHOOSE_OF(&d->c, depths);

	plan->attr = (struct ibv_qp_attr){
		.path_mtu = (enum ibv_mtu)(IBV_MTU_256 + choose_below(&d->c, 5)),
		.timeout = (uint8_t)(9 + choose_below(&d->c, 6)),
		.retry_cnt = plan->mortal ? (uint8_t)choose_below(&d->c, 3) : 7,
		.rnr_retry = plan->mortal ? (uint8_t)choose_below(&d->c, 7) : 7,
		.min_rnr_timer = (uint8_t)choose_below(&d->c, 32),
		.max_rd_atomic = depth,
		.max_dest_rd_atomic = depth + (chance(&d->c, 30) && depth < 16),
	};
	/* A requester that exceeds its grant. */
	if (plan->mortal && chance(&d->c, 30))
		plan->attr.max_dest_rd_atomic = (uint8_t)(1 + choose_below(&d->c, depth));
	d->mtu = 128u << plan->attr.path_mtu;
	for (int end = 0; end < ENDS; end++)
		plan->psn[end] = chance(&d->c, 60) ? PSN_COUNT - 1 - (uint32_t)choose_below(&d->c, 200)
						   : (uint32_t)choose_below(&d->c, PSN_COUNT);
}

static void draw_link(struct draw *d)
{
	static const uint32_t mosts[] = {0, 4096, 8192, 16384, 65536};
	static const uint32_t windows[] = {0, 4096, 8192, 12288, 32768, 65536, 262144};
	struct plan *plan = d->plan;
	struct weather *weather = &plan->weather;

	plan->immediate = chance(&d->c, 20);
	if (!plan->immediate) {
		plan->most = CHOOSE_OF(&d->c, mosts);
		plan->window = CHOOSE_OF(&d->c, windows);
		weather->busy = chance(&d->c, 50) ? 0 : (unsigned int)choose_below(&d->c, 30);
		weather->busy_ns = 1 + choose_below(&d->c, 50000);
	}
	weather->latency_ns = choose_below(&d->c, 20000);
	weather->jitter_ns = chance(&d->c, 50) ? 0 : choose_below(&d->c, 20000);
	weather->joined = chance(&d->c, 60) ? 0 : (unsigned int)choose_below(&d->c, 101);
	if (chance(&d->c, 10))
		return;
	weather->drop = chance(&d->c, 30) ? 0 : (unsigned int)choose_below(&d->c, plan->mortal ? 50 : 12);
	weather->twice = chance(&d->c, 30) ? 0 : (unsigned int)choose_below(&d->c, 12);
	weather->late = chance(&d->c, 30) ? 0 : (unsigned int)choose_below(&d->c, 12);
	weather->lateness_ns = 1000 + choose_below(&d->c, chance(&d->c, 20) ? 4000000 : 100000);
	if (plan->mortal && chance(&d->c, 50))
		weather->dead_after = 1 + choose_below(&d->c, 150);
}

void plan_draw(struct plan *plan, uint64_t seed)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_RC,       IBV_QPT_RC,  IBV_QPT_RC, IBV_QPT_RC,
						 IBV_QPT_RC, IBV_QPT_XRC_SEND, QP_TYPE_DCI, IBV_QPT_UC, IBV_QPT_UD};
	struct draw d = {.c = choose_for(seed, 0), .plan = plan};
	bool both;

	memset(plan, 0, offsetof(struct plan, expected));
	plan->seed = seed;
	plan->type = CHOOSE_OF(&d.c, types);
	plan->srq = plan->type != IBV_QPT_UD && plan->type != IBV_QPT_UC && chance(&d.c, 30);
	plan->mortal = plan_is_reliable(plan) && chance(&d.c, 15);
	draw_attributes(&d);
	draw_link(&d);
	both = !has_targets(plan) && chance(&d.c, 50);
	for (int from = 0; from < ENDS; from++) {
		d.direction = &plan->direction[from];
		d.now_ns = d.invalidated = d.sinks = d.writes = 0;
		d.direction->local_used = d.direction->remote_used = PLAIN;
		if (from && !both)
			break;
		d.direction->requests = 1 + (uint32_t)choose_below(&d.c, chance(&d.c, 30) ? MOST_REQUESTS : 8);
		for (uint32_t i = 0; i < d.direction->requests; i++)
			draw_request(&d, &d.direction->request[i]);
		draw_signalling(&d);
		if (plan_is_reliable(plan))
			draw_passing(&d);
		if (plan_is_reliable(plan))
			draw_receives(&d);
		else
			draw_any_receives(&d);
	}
}
