/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws requests on keys; and computes the result of posting a request. See draw.h. */
#include <errno.h>

#include "draw.h"

static unsigned int draw_remote_access(struct world *world)
{
	static const unsigned int all =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	return chance(&world->choose, 60) ? all : (unsigned int)choose_bits(&world->choose) & all;
}

static uint32_t layout_limit(const struct world *world, int qp, bool interleaved)
{
	/* mlx5-formats 4.1: entries use the room of inline data; an interleaved layout has a header. */
	return (world->qp[qp].max_inline + 4) / 16 - interleaved;
}

static void draw_list_entry(struct world *world, struct configure *configure, uint16_t i, const struct key *key,
			    bool careful)
{
	uint64_t address;
	uint32_t bytes;

	draw_range(world, key->start, key->length, careful, &address, &bytes);
	configure->entries[i].address = address;
	configure->entries[i].bytes = bytes;
	if (key->kind == MODEL_NULL && chance(&world->choose, 20))
		configure->entries[i].bytes = (uint32_t)choose_bits(&world->choose);
}

/* Draws a record of an interleaved layout; careful: all its repetitions lie in the key. */
static void draw_record(struct world *world, struct configure *configure, uint16_t i, const struct key *key,
			bool careful)
{
	static const uint32_t sizes[] = {0, 1, 3, 8, 16, 20, 64, 100, 512, 600};
	static const uint32_t skips[] = {0, 0, 1, 4, 8, 12, 64, 500};
	struct choose *c = &world->choose;
	uint32_t bytes = CHOOSE_OF(c, sizes), skip = CHOOSE_OF(c, skips);
	uint64_t extent;

	/* The largest value of 16 bits, and the first beyond it: EINVAL. */
	if (chance(c, 2))
		skip = 65535 - bytes + (uint32_t)choose_below(c, 2);
	if (!careful && chance(c, 3))
		bytes += 65536;
	extent = configure->repeat ? (configure->repeat - 1) * (uint64_t)(uint16_t)(bytes + skip) + bytes : 0;
	configure->entries[i].bytes = bytes;
	configure->entries[i].skip = skip;
	if (extent <= key->length && (careful || chance(c, 80)))
		configure->entries[i].address = key->start + choose_below(c, key->length - extent + 1);
	else if (extent <= key->length)
		configure->entries[i].address = key->start + (key->length - extent) + 1;
	else
		configure->entries[i].address = key->start;
}

static void draw_entries(struct world *world, int qp, struct configure *configure, uint32_t limit)
{
	int domain = world->model.qp[qp].domain;

	for (uint16_t i = 0; i < configure->count && i < limit + 1; i++) {
		bool careful = chance(&world->choose, 90);
		int slot = chance(&world->choose, 85) ? draw_key(world, domain, LOCAL_READ | LOCAL_WRITE, careful)
						      : draw_key(world, domain, LOCAL_READ, false);
		const struct key *key = &world->model.keys.key[slot < 0 ? 0 : slot];

		configure->entries[i].key = slot < 0 ? 0x12345600 : key->number;
		if (configure->interleaved)
			draw_record(world, configure, i, key, careful);
		else
			draw_list_entry(world, configure, i, key, careful);
	}
}

void draw_configure(struct world *world, int qp, int slot, struct configure *configure)
{
	static const uint32_t repeats[] = {0, 1, 2, 3, 5, 8, 20, 40};
	struct choose *c = &world->choose;
	bool interleaved = chance(c, 50);
	uint32_t limit = layout_limit(world, qp, interleaved);

	*configure = (struct configure){
		.slot = slot,
		.set_access = chance(c, 85),
		.set_layout = chance(c, 90),
		.interleaved = interleaved,
		.access = draw_remote_access(world),
		.repeat = CHOOSE_OF(c, repeats),
	};
	configure->by_mr_call = configure->set_access && configure->set_layout && chance(c, 30);
	if (!configure->set_layout)
		return;
	if (limit > ENTRIES - 1)
		limit = ENTRIES - 1;
	configure->count = (uint16_t)(chance(c, 3) ? limit + 1 : choose_below(c, limit + 1));
	draw_entries(world, qp, configure, limit);
}

/* Returns the number with the next tag: ibv_inc_rkey(3). */
static uint32_t next_tag(uint32_t number)
{
	return (number & 0xffffff00) | ((number + 1) & 0xff);
}

void draw_bind(struct world *world, int qp, int slot, struct bind *bind)
{
	struct choose *c = &world->choose;
	const struct ibv_mw *window = world->window[slot - FIRST_WINDOW];
	const struct key *region;
	bool careful = chance(c, 80);
	uint32_t bytes;

	*bind = (struct bind){.slot = slot, .region = -1, .new_number = next_tag(window->rkey)};
	if (window->type == IBV_MW_TYPE_2 && chance(c, 20))
		bind->new_number = (window->rkey & 0xffffff00) | (uint32_t)choose_below(c, 256);
	if (chance(c, 10))
		return;
	for (int i = 0; i < REGIONS; i++) {
		region = &world->model.keys.key[i];
		if (region->kind == MODEL_ABSENT ||
		    (careful && (region->domain != world->model.qp[qp].domain || !region->bindable)))
			continue;
		if (bind->region < 0 || chance(c, 40))
			bind->region = i;
	}
	if (bind->region < 0)
		return;
	region = &world->model.keys.key[bind->region];
	draw_range(world, region->start, region->length, careful, &bind->address, &bytes);
	bind->length = bytes;
	bind->access = draw_remote_access(world) | (chance(c, 20) ? IBV_ACCESS_ZERO_BASED : 0);
	if (careful && !(region->rights & LOCAL_WRITE) && chance(c, 70))
		bind->access &= ~(unsigned int)(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	if (!careful && chance(c, 10))
		bind->length = (UINT64_C(1) << 31) + choose_below(c, 2);
}

/* mlx5-formats 1.10: 16 bits for the bytes of an entry, and for the distance to the next. */
static bool too_wide(const struct configure *configure)
{
	for (uint16_t i = 0; configure->interleaved && i < configure->count; i++)
		if ((uint64_t)configure->entries[i].bytes + configure->entries[i].skip > UINT16_MAX)
			return true;
	return false;
}

/* mlx5-formats 4.2 and 4.4. */
int request_error(const struct world *world, int qp, const struct request *request)
{
	const struct configure *configure = &request->configure;

	if (request->opcode == IBV_WR_BIND_MW)
		return request->bind.length > UINT64_C(1) << 31 ? EOPNOTSUPP : 0;
	if (request->opcode == OP_CONFIGURE) {
		if (!configure->set_layout)
			return 0;
		if (configure->count > layout_limit(world, qp, configure->interleaved) ||
		    configure->count > world->model.keys.key[configure->slot].capacity)
			return ENOMEM;
		return !world->model.connectx && too_wide(configure) ? EINVAL : 0;
	}
	if (request->count > MAX_SGE)
		return ENOMEM;
	if (request->is_inline && spans_length(request->span, request->count) > world->qp[qp].max_inline)
		return ENOMEM;
	return 0;
}

static void say_spans(struct world *world, const struct span *span, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		say(world, "%s%#x:%#lx+%u", i ? ", " : " [", span[i].key, span[i].address, span[i].length);
	say(world, count ? "]" : " []");
}

static void say_configure(struct world *world, const struct configure *configure)
{
	say(world, " mkey slot %d", configure->slot);
	if (configure->set_access)
		say(world, " access %#x", configure->access);
	if (!configure->set_layout)
		return;
	if (configure->interleaved)
		say(world, " %u times", configure->repeat);
	for (uint16_t i = 0; i < configure->count; i++) {
		say(world, " {%#x:%#lx+%u", configure->entries[i].key, configure->entries[i].address,
		    configure->entries[i].bytes);
		say(world, configure->interleaved ? " skip %u}" : "}", configure->entries[i].skip);
	}
	say(world, configure->count ? "" : " no entries");
}

static const char *opcode_name(unsigned int opcode)
{
	static const char *const names[] = {
		[IBV_WR_RDMA_WRITE] = "WRITE",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "WRITE_WITH_IMM",
		[IBV_WR_SEND] = "SEND",
		[IBV_WR_SEND_WITH_IMM] = "SEND_WITH_IMM",
		[IBV_WR_RDMA_READ] = "READ",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "CMP_AND_SWP",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "FETCH_AND_ADD",
		[IBV_WR_LOCAL_INV] = "LOCAL_INV",
		[IBV_WR_BIND_MW] = "BIND_MW",
		[IBV_WR_SEND_WITH_INV] = "SEND_WITH_INV",
	};

	return opcode == OP_CONFIGURE ? "CONFIGURE" : names[opcode];
}

void say_request(struct world *world, const struct request *request)
{
	say(world, "\n    wr %lu %s%s%s", request->id, opcode_name(request->opcode),
	    request->signalled ? " signalled" : "", request->fence ? " fenced" : "");
	switch (request->opcode) {
	case OP_CONFIGURE:
		say_configure(world, &request->configure);
		return;
	case IBV_WR_BIND_MW:
		say(world, " window slot %d to region slot %d [%#lx, +%lu) access %#x number %#x", request->bind.slot,
		    request->bind.region, request->bind.address, request->bind.length, request->bind.access,
		    request->bind.new_number);
		return;
	case IBV_WR_LOCAL_INV:
		say(world, " %#x", request->invalidate);
		return;
	case IBV_WR_SEND_WITH_INV:
		say(world, " invalidate %#x", request->invalidate);
		break;
	default:
		if (request->rkey)
			say(world, " rkey %#x at %#lx", request->rkey, request->remote_address);
	}
	say(world, request->is_inline ? " inline" : "");
	say_spans(world, request->span, request->count);
}
