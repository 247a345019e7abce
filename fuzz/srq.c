/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes shared receive queues in two ways, chosen by the first byte.
 *
 * The device's side: a ring with any contents, including links, and any doorbell record. Receives come from within the ring,
 * and only as often as announced.
 *
 * The driver's side: receives are posted, taken by the device, completed in any order, while the SRQ grows, against a model
 * without rings: a queue of wr_ids. Rings come from malloc, so that AddressSanitizer detects accesses beyond them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/entry_points.h"
#include "hca/hca.h"
#include "verbs/object/ops.h"
#include "verbs/queue/srq.h"
#include "world.h"

static struct ibv_context *context;
static struct ibv_pd *domain; /* a parent domain with an allocator */

/* ---- input ---------------------------------------------------------------------------------------------------- */

static const uint8_t *input, *input_end;

static uint8_t next_byte(void)
{
	return input < input_end ? *input++ : 0;
}

static uint32_t next_word(void)
{
	uint32_t low = next_byte();

	return low | (uint32_t)next_byte() << 8;
}

/* ---- the device's side ---------------------------------------------------------------------------------------- */

struct raw {
	struct hca_srq *srq;
	uint8_t *ring;
	uint32_t entries, shift;
	uint32_t dbrec;
	uint16_t taken;
};

static void *exact(size_t size)
{
	void *memory = aligned_alloc(16, size);

	WORLD_CHECK(memory);
	return memory;
}

static uint8_t *random_ring(size_t size)
{
	uint8_t *ring = exact(size);

	for (size_t i = 0; i < size; i++)
		ring[i] = next_byte();
	return ring;
}

/* Returns room for a receive as in a QP with an SRQ: RECEIVE_SEGMENTS, followed by the heap's red zone. */
static struct receive_wqe *receive_room(void)
{
	return exact(sizeof(struct receive_wqe) + RECEIVE_SEGMENTS * sizeof(struct mlx5_wqe_data_seg));
}

static void raw_take(struct raw *raw)
{
	uint16_t claimed = (uint16_t)(be32toh(raw->dbrec) - raw->taken);
	struct receive_wqe *wqe = receive_room();
	uint64_t bytes = 0;
	bool taken = srq_take(raw->srq, wqe);

	WORLD_CHECK(taken == (claimed != 0));
	if (taken) {
		raw->taken++;
		WORLD_CHECK(wqe->counter < raw->entries);
		WORLD_CHECK(wqe->count <= (1u << raw->shift) / 16 - 1);
		for (uint32_t i = 0; i < wqe->count; i++)
			bytes += be32toh(wqe->segment[i].byte_count);
		WORLD_CHECK(bytes == wqe->bytes);
	}
	free(wqe);
}

/* The fuzzer chooses what a driver would copy; the device relies only on @first. */
static void raw_fill(void *argument, uint32_t next_index, uint32_t posted, uint32_t *first)
{
	struct raw *raw = argument;

	WORLD_CHECK(next_index < raw->entries);
	*first = 0;
	raw->dbrec = htobe32(posted & 0xffff);
	raw->taken = 0;
}

static void raw_resize(struct raw *raw)
{
	uint32_t entries = 1u << next_byte() % 7;
	uint8_t *ring = random_ring((size_t)entries << raw->shift);
	uint32_t posted = (uint16_t)(be32toh(raw->dbrec) - raw->taken);
	int error = hca_srq_resize(raw->srq, ring, entries, raw_fill, raw);

	WORLD_CHECK(error == (posted >= entries ? -EINVAL : 0));
	free(error ? ring : raw->ring);
	if (error)
		return;
	raw->ring = ring;
	raw->entries = entries;
}

static uint32_t limit_events(void)
{
	uint32_t count = 0;
	void *object;
	int type;

	while (!event_queue_take(&world.async, &type, &object)) {
		WORLD_CHECK(type == IBV_EVENT_SRQ_LIMIT_REACHED);
		count++;
	}
	return count;
}

static void fuzz_device(void)
{
	struct raw raw = {.entries = 1u << next_byte() % 7, .shift = 5 + next_byte() % 5};
	struct hca_srq_attr attr = {
		.entry_count = raw.entries, .entry_shift = raw.shift, .dbrec = &raw.dbrec, .cookie = &raw};

	raw.ring = attr.buffer = random_ring((size_t)raw.entries << raw.shift);
	WORLD_CHECK(!hca_srq_create(world.pd, &attr, &raw.srq));
	while (input < input_end) {
		uint32_t armed = hca_srq_limit(raw.srq), posted;

		switch (next_byte() % 5) {
		case 0:
			raw.dbrec = htobe32((be32toh(raw.dbrec) + next_byte()) & 0xffff);
			break;
		case 1:
			/* The upper half is ignored. */
			raw.dbrec = htobe32(next_word() | (uint32_t)next_byte() << 24);
			break;
		case 2:
			raw_resize(&raw);
			break;
		case 3:
			hca_srq_set_limit(raw.srq, armed = next_byte());
			posted = (uint16_t)(be32toh(raw.dbrec) - raw.taken);
			WORLD_CHECK(limit_events() == (armed && posted < armed));
			break;
		default:
			raw_take(&raw);
			posted = (uint16_t)(be32toh(raw.dbrec) - raw.taken);
			WORLD_CHECK(limit_events() <= (armed && posted < armed));
		}
	}
	WORLD_CHECK(!hca_srq_destroy(raw.srq));
	free(raw.ring);
}

/* ---- the driver's side ---------------------------------------------------------------------------------------- */

#define MOST_RECEIVES 4096

struct model {
	uint64_t posted[MOST_RECEIVES]; /* wr_ids in order of posting: first to last are posted, not taken */
	uint32_t first, last;
	struct {
		uint16_t index;
		uint64_t wr_id;
	} taken[MOST_RECEIVES];
	uint32_t taken_count;
	uint64_t next_wr_id;
};

static void post(struct ibv_srq *srq, struct model *model)
{
	struct user_srq *user = to_user_srq(srq);
	struct ibv_sge sge[40] = {{.addr = WORLD_BASE, .length = next_byte(), .lkey = WORLD_KEY(WORLD_FULL)}};
	uint32_t used = model->last - model->first + model->taken_count;
	struct ibv_recv_wr wr[2] = {
		{.wr_id = model->next_wr_id, .next = &wr[1], .sg_list = sge, .num_sge = next_byte() % 40},
		{.wr_id = model->next_wr_id + 1, .sg_list = sge, .num_sge = 1}};
	struct ibv_recv_wr *bad = NULL;
	uint32_t good = (uint32_t)wr[0].num_sge > user->max_sge || used >= user->max_wr ? 0
			: used + 1 >= user->max_wr                                      ? 1
											: 2;
	int expected = good == 2 ? 0 : (uint32_t)wr[0].num_sge > user->max_sge ? EINVAL : ENOMEM;

	if (model->last + 2 > MOST_RECEIVES)
		return;
	WORLD_CHECK(softhca_ibv_post_srq_recv(srq, wr, &bad) == expected);
	WORLD_CHECK(!expected || bad == &wr[good]);
	for (uint32_t i = 0; i < good; i++)
		model->posted[model->last++] = model->next_wr_id + i;
	model->next_wr_id += good;
}

/* Takes receives in posting order, as the device does. */
static void take(struct ibv_srq *srq, struct model *model)
{
	struct user_srq *user = to_user_srq(srq);
	struct receive_wqe *wqe = receive_room();
	bool taken = srq_take(user->device, wqe);

	WORLD_CHECK(taken == (model->first != model->last));
	if (taken) {
		WORLD_CHECK(wqe->counter < user->entry_count);
		WORLD_CHECK(user->wr_id[wqe->counter] == model->posted[model->first]);
		model->taken[model->taken_count].index = wqe->counter;
		model->taken[model->taken_count++].wr_id = model->posted[model->first++];
	}
	free(wqe);
}

static void complete(struct ibv_srq *srq, struct model *model)
{
	struct user_srq *user = to_user_srq(srq);
	uint32_t which = next_byte();
	uint64_t wr_id;

	if (!model->taken_count) {
		WORLD_CHECK(user_srq_complete(user, (uint16_t)(user->entry_count + which), &wr_id) == -EINVAL);
		return;
	}
	which %= model->taken_count;
	WORLD_CHECK(!user_srq_complete(user, model->taken[which].index, &wr_id));
	WORLD_CHECK(wr_id == model->taken[which].wr_id);
	model->taken[which] = model->taken[--model->taken_count];
}

static void modify(struct ibv_srq *srq, const struct model *model)
{
	struct ibv_srq_attr attr = {.max_wr = next_byte() % 80, .srq_limit = next_byte()}, now;
	int mask = next_byte() & (IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);
	int error = softhca_ibv_modify_srq(srq, &attr, mask);

	WORLD_CHECK(!softhca_ibv_query_srq(srq, &now));
	WORLD_CHECK(!error || error == EINVAL);
	if (mask & IBV_SRQ_MAX_WR && attr.max_wr < model->last - model->first + model->taken_count)
		WORLD_CHECK(error == EINVAL);
	if (!error && mask & IBV_SRQ_MAX_WR)
		WORLD_CHECK(now.max_wr >= attr.max_wr);
}

static void fuzz_driver(void)
{
	static struct model model;
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1 + next_byte() % 20, .max_sge = next_byte() % 32}};
	struct ibv_srq *srq = softhca_ibv_create_srq(domain, &attr);

	WORLD_CHECK(srq);
	memset(&model, 0, sizeof(model));
	while (input < input_end) {
		switch (next_byte() % 8) {
		case 0:
		case 1:
		case 2:
			post(srq, &model);
			break;
		case 3:
		case 4:
			take(srq, &model);
			break;
		case 5:
		case 6:
			complete(srq, &model);
			break;
		default:
			modify(srq, &model);
		}
	}
	while (model.first != model.last)
		take(srq, &model);
	while (model.taken_count)
		complete(srq, &model);
	WORLD_CHECK(!to_user_srq(srq)->used);
	WORLD_CHECK(!softhca_ibv_destroy_srq(srq));
}

/* ---- entry ---------------------------------------------------------------------------------------------------- */

static void *allocate_exactly(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment, uint64_t type)
{
	void *memory;

	(void)pd;
	(void)pd_context;
	(void)type;
	WORLD_CHECK(!posix_memalign(&memory, alignment, size));
	return memset(memory, 0, size);
}

static void free_exactly(struct ibv_pd *pd, void *pd_context, void *memory, uint64_t type)
{
	(void)pd;
	(void)pd_context;
	(void)type;
	free(memory);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct ibv_parent_domain_init_attr attr = {
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS, .alloc = allocate_exactly, .free = free_exactly};
	struct ibv_device **list;

	(void)argc;
	(void)argv;
	world_make();
	list = softhca_ibv_get_device_list(NULL);
	WORLD_CHECK(list && list[0]);
	context = softhca_ibv_open_device(list[0]);
	softhca_ibv_free_device_list(list);
	WORLD_CHECK(context);
	attr.pd = softhca_ibv_alloc_pd(context);
	WORLD_CHECK(attr.pd);
	domain = ibv_alloc_parent_domain(context, &attr);
	WORLD_CHECK(domain);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input = data;
	input_end = data + size;
	if (next_byte() & 1)
		fuzz_driver();
	else
		fuzz_device();
	return 0;
}
