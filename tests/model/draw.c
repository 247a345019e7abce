/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws requests, see draw.h. */
#include "draw.h"

#include <errno.h>
#include <string.h>

#include "link.h"

int draw_existing(struct world *world, int first, int count)
{
	int found[KEYS], n = 0;

	for (int i = first; i < first + count; i++)
		if (world->model.keys.key[i].kind != MODEL_ABSENT)
			found[n++] = i;
	return n ? found[choose_below(&world->choose, (uint64_t)n)] : -1;
}

/* Windows are for the peer: verbs does not give them an lkey. */
static bool suits(const struct key *key, int domain, unsigned int wanted)
{
	bool window = key->kind == MODEL_WINDOW_1 || key->kind == MODEL_WINDOW_2;

	return key->kind != MODEL_ABSENT && key->live && key->domain == domain && (key->rights & wanted) == wanted &&
	       key->length && !(window && wanted & (LOCAL_READ | LOCAL_WRITE));
}

int draw_key(struct world *world, int domain, unsigned int wanted, bool careful)
{
	const struct keys *keys = &world->model.keys;
	int found[KEYS], n = 0, first = chance(&world->choose, 40) ? FIRST_LAYOUT : 0;

	/* Often restricted to keys that refer to others, if there are any. */
	for (int i = first; i < KEYS; i++) {
		if (suits(&keys->key[i], domain, wanted))
			found[n++] = i;
		else if (!careful && i < FIRST_WINDOW && keys->key[i].kind != MODEL_ABSENT &&
			 chance(&world->choose, 10))
			found[n++] = i;
	}
	for (int i = 0; !n && i < first; i++)
		if (suits(&keys->key[i], domain, wanted))
			return i;
	return n ? found[choose_below(&world->choose, (uint64_t)n)] : -1;
}

/* Returns the number of a key, or now and then a nearly correct one. */
static uint32_t draw_number(struct world *world, int slot, bool careful)
{
	static const uint32_t strange[] = {0, 0x100, 0xffffffff, 0x7fffff00, 1};

	if (slot < 0 || (!careful && chance(&world->choose, 3)))
		return CHOOSE_OF(&world->choose, strange);
	if (!careful && chance(&world->choose, 3))
		return world->model.keys.key[slot].number ^ (1u << choose_below(&world->choose, 8));
	return world->model.keys.key[slot].number;
}

static uint64_t draw_length(struct world *world)
{
	static const uint32_t lengths[] = {0,    1,    2,    3,    4,    7,    8,    9,    15,  16,   17,
					   31,   32,   63,   64,   65,   100,  127,  128,  129, 255,  256,
					   257,  300,  511,  512,  513,  600,  767,  768,  769, 1000, 1023,
					   1024, 1025, 1500, 2047, 2048, 2049, 3000, 4096, 5000};

	return CHOOSE_OF(&world->choose, lengths);
}

void draw_range(struct world *world, uint64_t start, uint64_t length, bool careful, uint64_t *address, uint32_t *bytes)
{
	struct choose *c = &world->choose;
	uint64_t wanted = draw_length(world), style = choose_below(c, careful ? 80 : 100);

	if (wanted > length)
		wanted = length;
	*bytes = (uint32_t)wanted;
	if (style < 60)
		*address = start + choose_below(c, length - wanted + 1);
	else if (style < 70)
		*address = start;
	else if (style < 80)
		*address = start + (length - wanted);
	else if (style < 86)
		*address = start - 1; /* one byte too early */
	else if (style < 92)
		*address = start + (length - wanted) + 1; /* one byte too late */
	else if (style < 95)
		*address = UINT64_MAX - choose_below(c, 4);
	else if (style < 98)
		*address = choose_bits(c);
	else {
		*address = start + (length - wanted);
		*bytes += 1 + (uint32_t)choose_below(c, 3000);
	}
}

/* Draws a range of unlimited zeros, which need no copying byte by byte. */
static bool draw_huge(struct world *world, int slot, struct span *span)
{
	static const uint32_t huge[] = {1u << 20, 1u << 30, (1u << 30) + 1, 0x7fffffff};

	if (link_pipelines() || slot < 0 || world->model.keys.key[slot].kind != MODEL_NULL ||
	    !chance(&world->choose, 10))
		return false;
	span->address = chance(&world->choose, 50) ? choose_bits(&world->choose) >> 1 : 0;
	span->length = CHOOSE_OF(&world->choose, huge);
	return true;
}

static void draw_any_span(struct world *world, struct span *span, int domain, unsigned int wanted, bool careful)
{
	int slot = draw_key(world, domain, wanted, careful);
	const struct key *key = &world->model.keys.key[slot < 0 ? 0 : slot];

	span->key = draw_number(world, slot, careful);
	if (slot < 0)
		draw_range(world, choose_bits(&world->choose), 1000, careful, &span->address, &span->length);
	else if (!draw_huge(world, slot, span))
		draw_range(world, key->start, key->length, careful, &span->address, &span->length);
}

/*
 * Draws a span; @careful: one that is not refused, if a few attempts find one. Excludes type 2 windows, which any QP may
 * use.
 */
static void draw_span(struct world *world, struct span *span, int domain, unsigned int wanted, bool careful)
{
	struct accessor accessor = {domain, ANY_QP};

	for (int tries = 0; tries < 6; tries++) {
		draw_any_span(world, span, domain, wanted, careful);
		if (!careful ||
		    keys_allow(&world->model.keys, span->key, span->address, span->length, wanted, accessor))
			break;
	}
}

uint32_t draw_spans(struct world *world, struct span *span, int domain, unsigned int wanted, bool careful)
{
	static const uint32_t counts[] = {0, 1, 1, 1, 1, 1, 2, 2, 3, 4};
	uint32_t count = CHOOSE_OF(&world->choose, counts);

	if (!careful && chance(&world->choose, 2))
		count = MAX_SGE + 1;
	for (uint32_t i = 0; i < count; i++)
		draw_span(world, &span[i], domain, wanted, careful);
	return count;
}

/* ---- data ------------------------------------------------------------------------------------------------------ */

static unsigned int draw_opcode(struct world *world, enum ibv_qp_type type)
{
	static const unsigned int rc[] = {IBV_WR_SEND,
					  IBV_WR_SEND,
					  IBV_WR_SEND_WITH_IMM,
					  IBV_WR_SEND_WITH_INV,
					  IBV_WR_RDMA_WRITE,
					  IBV_WR_RDMA_WRITE,
					  IBV_WR_RDMA_WRITE,
					  IBV_WR_RDMA_WRITE_WITH_IMM,
					  IBV_WR_RDMA_READ,
					  IBV_WR_RDMA_READ,
					  IBV_WR_RDMA_READ,
					  IBV_WR_ATOMIC_CMP_AND_SWP,
					  IBV_WR_ATOMIC_FETCH_AND_ADD};
	static const unsigned int uc[] = {IBV_WR_SEND,       IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV,
					  IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE,    IBV_WR_RDMA_WRITE_WITH_IMM};
	/* SEND with invalidate on UC has no packet opcode: only the device's own link carries it. */
	static const unsigned int ud[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM};
	unsigned int opcode;

	if (type == IBV_QPT_UD)
		return CHOOSE_OF(&world->choose, ud);
	opcode = type == IBV_QPT_UC ? CHOOSE_OF(&world->choose, uc) : CHOOSE_OF(&world->choose, rc);
	return type == IBV_QPT_UC && opcode == IBV_WR_SEND_WITH_INV && link_pipelines() ? IBV_WR_SEND : opcode;
}

/* Draws the remote side of an RDMA of @bytes: moves the range so that it fits if possible. */
static void draw_any_target(struct world *world, struct request *request, int domain, unsigned int wanted,
			    uint64_t bytes, bool careful)
{
	int slot = draw_key(world, domain, wanted, careful);
	const struct key *key = &world->model.keys.key[slot < 0 ? 0 : slot];
	uint32_t ignored;

	request->rkey = draw_number(world, slot, careful);
	draw_range(world, key->start, key->length, careful, &request->remote_address, &ignored);
	if (!chance(&world->choose, careful ? 100 : 80) || slot < 0 || key->length < bytes)
		return;
	if (request->remote_address - key->start > key->length - bytes)
		request->remote_address = key->start + choose_below(&world->choose, key->length - bytes + 1);
}

static void draw_target(struct world *world, int qp, struct request *request, unsigned int wanted, uint64_t bytes,
			bool careful)
{
	int peer = world->model.qp[qp].peer;
	struct accessor accessor = {world->model.qp[peer].domain, peer};

	for (int tries = 0; tries < 6; tries++) {
		draw_any_target(world, request, accessor.domain, wanted, bytes, careful);
		if (!careful ||
		    keys_allow(&world->model.keys, request->rkey, request->remote_address, bytes, wanted, accessor))
			break;
	}
}

static void draw_inline(struct world *world, int qp, struct request *request)
{
	static const uint32_t lengths[] = {0, 1, 8, 12, 13, 28, 44, 60, 61, 64, 100};
	uint32_t most = world->qp[qp].max_inline, used = 0;

	request->is_inline = true;
	request->count = (uint32_t)choose_below(&world->choose, MAX_SGE + 1);
	for (uint32_t i = 0; i < request->count; i++) {
		struct span *span = &request->span[i];

		*span = (struct span){.key = 0xdead0000, .length = CHOOSE_OF(&world->choose, lengths)};
		if (used + span->length > most && !chance(&world->choose, 5))
			span->length = most - (used < most ? used : most);
		for (uint32_t b = 0; b < span->length && used < INLINE_BYTES; b++)
			request->data[used++] = (uint8_t)choose_bits(&world->choose);
	}
}

static bool is_atomic(unsigned int opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Draws operands, sometimes equal to memory, so that the compare succeeds. */
static void draw_atomic(struct world *world, int qp, struct request *request, bool careful)
{
	const struct model_qp *peer = &world->model.qp[world->model.qp[qp].peer];
	struct spot spot;

	draw_span(world, &request->span[0], world->model.qp[qp].domain, LOCAL_WRITE, careful);
	request->count = 1;
	request->span[0].length = 8;
	draw_target(world, qp, request, ATOMIC, 8, careful);
	if (careful || chance(&world->choose, 80))
		request->remote_address &= ~UINT64_C(7);
	request->compare_add = choose_bits(&world->choose);
	request->swap = choose_bits(&world->choose);
	if (chance(&world->choose, 60) &&
	    keys_locate(&world->model.keys, request->rkey, request->remote_address, ATOMIC,
			(struct accessor){peer->domain, world->model.qp[qp].peer}, &spot) &&
	    spot.block != NOWHERE && spot.run >= 8)
		memcpy(&request->compare_add, &world->model.memory.shadow[spot.block][spot.offset], 8);
}

static void draw_invalidated(struct world *world, int qp, struct request *request, bool careful)
{
	int slot = draw_existing(world, FIRST_LAYOUT, LAYOUTS + WINDOWS);
	int peer = world->model.qp[qp].peer;

	for (int i = FIRST_LAYOUT; careful && i < KEYS; i++) {
		const struct key *key = &world->model.keys.key[i];

		if (key->kind != MODEL_ABSENT && key->live && key->domain == world->model.qp[peer].domain &&
		    (key->remote_invalidate || key->qp == peer))
			slot = i;
	}
	request->invalidate = draw_number(world, slot, careful);
}

void draw_transfer(struct world *world, int qp, struct request *request)
{
	const struct model_qp *own = &world->model.qp[qp], *peer = &world->model.qp[own->peer];
	bool careful = chance(&world->choose, 88), reads;

	request->opcode = draw_opcode(world, own->type);
	request->immediate = (uint32_t)choose_bits(&world->choose);
	request->qkey = peer->qkey ^ (!careful && chance(&world->choose, 20));
	reads = request->opcode == IBV_WR_RDMA_READ;
	if (is_atomic(request->opcode)) {
		draw_atomic(world, qp, request, careful);
		return;
	}
	if (!reads && chance(&world->choose, 20))
		draw_inline(world, qp, request);
	else
		request->count =
			draw_spans(world, request->span, own->domain, reads ? LOCAL_WRITE : LOCAL_READ, careful);
	if (own->type == IBV_QPT_UD && spans_length(request->span, request->count) > own->mtu && careful)
		request->count = 0;
	if (request->opcode == IBV_WR_SEND_WITH_INV)
		draw_invalidated(world, qp, request, careful);
	if (reads)
		draw_target(world, qp, request, REMOTE_READ, spans_length(request->span, request->count), careful);
	else if (request->opcode == IBV_WR_RDMA_WRITE || request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		draw_target(world, qp, request, REMOTE_WRITE, spans_length(request->span, request->count), careful);
}
