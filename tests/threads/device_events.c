/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of objects made by command (mlx5dv_devx_get_event(3)): threads raise them, others take them from one channel,
 * and one creates and destroys another channel meanwhile. No event is lost or duplicated.
 */
#include "fixture.h"

enum { RAISERS = 2, TAKERS = 2, EVENTS = 400, CHANNELS = 200, UMEM = 4096, LAST_WQE = 0x13 };

struct raiser {
	void *memory;
	struct mlx5dv_devx_umem *umem;
	struct mlx5dv_devx_obj *qp;
	uint32_t number;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct mlx5dv_devx_uar *uar;
static struct mlx5dv_devx_event_channel *channel;
static struct raiser raisers[RAISERS];
static uint32_t taken[RAISERS]; /* atomic */

/* Words of a command. */
struct command {
	__be32 in[68], out[4];
};

static void modify(const struct raiser *raiser, struct command *command, uint32_t opcode)
{
	command->in[0] = htobe32(opcode << 16);
	command->in[2] = htobe32(raiser->number);
	CHECK(!mlx5dv_devx_obj_modify(raiser->qp, command->in, sizeof(command->in), command->out,
				      sizeof(command->out)));
}

static void raiser_open(struct raiser *raiser)
{
	struct mlx5dv_srq srq_out = {.comp_mask = MLX5DV_SRQ_MASK_SRQN};
	struct mlx5dv_cq cq_out = {0};
	struct mlx5dv_pd pd_out = {0};
	struct mlx5dv_obj object = {.cq = {.in = cq, .out = &cq_out},
				    .srq = {.in = srq, .out = &srq_out},
				    .pd = {.in = pd, .out = &pd_out}};
	struct command command = {0};

	CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ | MLX5DV_OBJ_SRQ | MLX5DV_OBJ_PD));
	raiser->memory = aligned_alloc(UMEM, UMEM);
	CHECK(raiser->memory);
	memset(raiser->memory, 0, UMEM);
	raiser->umem = mlx5dv_devx_umem_reg(context, raiser->memory, UMEM, 1);
	CHECK(raiser->umem);
	command.in[0] = htobe32(0x500u << 16);
	command.in[6] = htobe32(0x1800);
	command.in[7] = htobe32(pd_out.pdn);
	command.in[8] = htobe32(3u << 11);
	command.in[9] = htobe32(uar->page_id);
	command.in[37] = command.in[45] = htobe32(cq_out.cqn);
	command.in[47] = htobe32(2048);
	command.in[49] = htobe32(1u << 24 | srq_out.srqn);
	command.in[63] = command.in[66] = htobe32(raiser->umem->umem_id);
	raiser->qp = mlx5dv_devx_obj_create(context, command.in, sizeof(command.in), command.out, sizeof(command.out));
	CHECK(raiser->qp);
	raiser->number = be32toh(command.out[2]) & 0xffffff;
}

static void *raise_events(void *argument)
{
	const struct raiser *raiser = argument;

	for (int i = 0; i < EVENTS; i++) {
		struct command reset = {0}, init = {0}, ready = {0}, error = {0};

		modify(raiser, &reset, 0x50a);
		init.in[21] = ready.in[21] = htobe32(1u << 16);
		modify(raiser, &init, 0x502);
		ready.in[8] = htobe32(3u << 29 | 30u << 24);
		ready.in[11] = htobe32(raiser->number);
		ready.in[12] = htobe32(1u << 31);
		modify(raiser, &ready, 0x503);
		modify(raiser, &error, 0x507);
	}
	return NULL;
}

static void *take_events(void *unused)
{
	uint64_t event[9];

	while (mlx5dv_devx_get_event(channel, (struct mlx5dv_devx_async_event_hdr *)event, sizeof(event)) ==
	       sizeof(event)) {
		if (event[0] == UINT64_MAX)
			break;
		CHECK(event[0] < RAISERS);
		__atomic_add_fetch(&taken[event[0]], 1, __ATOMIC_RELAXED);
	}
	return unused;
}

static void subscribe(struct mlx5dv_devx_event_channel *to, struct mlx5dv_devx_obj *object, uint64_t cookie)
{
	uint16_t type = LAST_WQE;

	CHECK(!mlx5dv_devx_subscribe_devx_event(to, object, sizeof(type), &type, cookie));
}

/* Ends the takers with an event of an object that exists for this purpose. */
static void end_takers(void)
{
	struct raiser last;

	for (int i = 0; i < TAKERS; i++) {
		struct command init = {0}, ready = {0}, error = {0};

		raiser_open(&last);
		subscribe(channel, last.qp, UINT64_MAX);
		init.in[21] = ready.in[21] = htobe32(1u << 16);
		modify(&last, &init, 0x502);
		ready.in[8] = htobe32(3u << 29 | 30u << 24);
		ready.in[11] = htobe32(last.number);
		ready.in[12] = htobe32(1u << 31);
		modify(&last, &ready, 0x503);
		modify(&last, &error, 0x507);
		CHECK(!mlx5dv_devx_obj_destroy(last.qp) && !mlx5dv_devx_umem_dereg(last.umem));
		free(last.memory);
	}
}

int main(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	pthread_t raising[RAISERS], taking[TAKERS];

	context = open_first_device();
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 15, NULL, NULL, 0);
	srq = ibv_create_srq(pd, &attr);
	uar = mlx5dv_devx_alloc_uar(context, 0);
	channel = mlx5dv_devx_create_event_channel(context, 0);
	CHECK(cq && srq && uar && channel);
	for (int i = 0; i < RAISERS; i++) {
		raiser_open(&raisers[i]);
		subscribe(channel, raisers[i].qp, (uint64_t)i);
		CHECK(!pthread_create(&raising[i], NULL, raise_events, &raisers[i]));
	}
	for (int i = 0; i < TAKERS; i++)
		CHECK(!pthread_create(&taking[i], NULL, take_events, NULL));
	for (int i = 0; i < CHANNELS; i++) {
		struct mlx5dv_devx_event_channel *other = mlx5dv_devx_create_event_channel(context, 0);

		CHECK(other);
		for (int j = 0; j < RAISERS; j++)
			subscribe(other, raisers[j].qp, 0);
		mlx5dv_devx_destroy_event_channel(other);
	}
	for (int i = 0; i < RAISERS; i++)
		CHECK(!pthread_join(raising[i], NULL));
	end_takers();
	for (int i = 0; i < TAKERS; i++)
		CHECK(!pthread_join(taking[i], NULL));
	for (int i = 0; i < RAISERS; i++) {
		CHECK(taken[i] == EVENTS);
		CHECK(!mlx5dv_devx_obj_destroy(raisers[i].qp) && !mlx5dv_devx_umem_dereg(raisers[i].umem));
		free(raisers[i].memory);
	}
	mlx5dv_devx_destroy_event_channel(channel);
	mlx5dv_devx_free_uar(uar);
	CHECK(!ibv_destroy_srq(srq) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) && !ibv_close_device(context));
	return 0;
}
