/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends that sleep on events of their own rings, see armed.h. */
#include "support/armed.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum {
	MESSAGE_BYTES = 64,
	RECEIVE_OFFSET = 4096, /* in the memory of the side; requests are before it */
	ARM_SOLICITED = 1 << 24,
	CQ_UPDATE = 8,
	SOLICITED = 2,
	LOST_AFTER_MS = 10000,
	MISSING_AFTER_S = 60,
	TIMEOUT = 18, /* about a second: a loaded machine must not end the connection */
};

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition);                  \
			_exit(1);                                                                                      \
		}                                                                                                      \
	} while (0)

uint32_t armed_random(struct armed_end *end, uint32_t limit)
{
	end->random ^= end->random << 13;
	end->random ^= end->random >> 7;
	end->random ^= end->random << 17;
	return (uint32_t)(end->random >> 32) % limit;
}

/* ---- objects ---------------------------------------------------------------------------------------------------- */

static void open_command_cq(struct armed_end *end, struct own *own, struct armed_cq *cq)
{
	struct command command;

	/*
	 * The CQ of own_open_cq() reports overruns. Runs CREATE_CQ again, with `oi` if the program does not publish its
	 * consumer index.
	 */
	own_open_cq(own, &end->side);
	CHECK(!mlx5dv_devx_obj_destroy(own->cq));
	command = cq_command(own);
	put32(command.in, 16, (uint32_t)!end->options.record << 17);
	own->cq = create(end->side.context, &command, 272);
	CHECK(own->cq);
	own->cqn = created_number(&command);
	*cq = (struct armed_cq){
		.ring = own->memory + OWN_RING,
		.count = OWN_CQES,
		.record = own->memory + OWN_CQ_RECORD,
		.doorbell = (volatile uint64_t *)((char *)own->uar->base_addr + 0x20),
		.number = own->cqn,
	};
	CHECK(!subscribe(end->events, own->cq, COMPLETION, (uint64_t)(cq - end->cq)));
}

/* Opens a CQ with ibv_create_cq(3); the CQ of @own stays unused. */
static void open_verbs_cq(struct armed_end *end, struct own *own, struct armed_cq *cq)
{
	struct mlx5dv_cq out = {0};
	struct mlx5dv_obj object = {.cq = {.out = &out}};
	struct ibv_cq_init_attr_ex attr = {
		.cqe = OWN_CQES - 1,
		.cq_context = cq,
		.channel = end->channel,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = end->options.record ? 0 : IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};

	own_open_cq(own, &end->side);
	object.cq.in = ibv_cq_ex_to_cq(ibv_create_cq_ex(end->side.context, &attr));
	CHECK(object.cq.in);
	CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ));
	CHECK(out.cqe_size == 64);
	own->cqn = out.cqn;
	*cq = (struct armed_cq){
		.ring = out.buf,
		.count = out.cqe_cnt,
		.record = (uint8_t *)out.dbrec,
		.doorbell = (volatile uint64_t *)((char *)out.cq_uar + 0x20),
		.number = out.cqn,
		.verbs = object.cq.in,
	};
}

static void open_cqs(struct armed_end *end)
{
	bool verbs = end->options.rings == ARMED_VERBS;

	if (verbs) {
		end->channel = ibv_create_comp_channel(end->side.context);
		CHECK(end->channel);
		CHECK(!fcntl(end->channel->fd, F_SETFL, O_NONBLOCK));
	} else {
		end->events = mlx5dv_devx_create_event_channel(end->side.context,
							       MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA);
		CHECK(end->events);
		CHECK(!fcntl(end->events->fd, F_SETFL, O_NONBLOCK));
	}
	(verbs ? open_verbs_cq : open_command_cq)(end, &end->requests, &end->cq[ARMED_REQUESTS]);
	(verbs ? open_verbs_cq : open_command_cq)(end, &end->receives, &end->cq[ARMED_RECEIVES]);
}

static void post_receive_slot(struct armed_end *end)
{
	uint32_t slot = end->requests.receives % OWN_RECEIVES;

	own_receive(&end->requests, side_address(&end->side, RECEIVE_OFFSET + slot * MESSAGE_BYTES), MESSAGE_BYTES);
}

void armed_open(struct armed_end *end, const struct armed_options *options)
{
	struct command command;

	*end = (struct armed_end){.options = *options, .random = options->seed | 1};
	side_open(&end->side, "end", SIDE_BYTES, 0);
	open_cqs(end);
	command = qp_command(&end->requests, 0);
	put32(command.in, 180, end->receives.cqn);
	end->requests.qp = create(end->side.context, &command, 272);
	CHECK(end->requests.qp);
	end->requests.qpn = created_number(&command);
}

struct armed_address armed_address(const struct armed_end *end)
{
	return (struct armed_address){end->side.gid, end->requests.qpn};
}

void armed_connect(struct armed_end *end, const struct armed_address *peer)
{
	struct side side = {.gid = peer->gid};
	struct own other = {.side = &side, .qpn = peer->qpn};

	own_to_init(&end->requests);
	for (int i = 0; i < OWN_RECEIVES; i++)
		post_receive_slot(end);
	own_to_rtr(&end->requests, &side, other.qpn);
	own_to_rts_with(&end->requests, TIMEOUT);
}

void armed_close(struct armed_end *end)
{
	CHECK(!mlx5dv_devx_obj_destroy(end->requests.qp));
	end->requests.qp = NULL;
	for (int i = 0; i < ARMED_CQS; i++) {
		if (!end->cq[i].verbs)
			continue;
		ibv_ack_cq_events(end->cq[i].verbs, (unsigned int)end->cq[i].events);
		CHECK(!ibv_destroy_cq(end->cq[i].verbs));
	}
	own_close(&end->requests);
	own_close(&end->receives);
	if (end->channel)
		CHECK(!ibv_destroy_comp_channel(end->channel));
	if (end->events)
		mlx5dv_devx_destroy_event_channel(end->events);
	memcpy(end->side.expected, end->side.memory, end->side.bytes);
	side_close(&end->side);
}

/* ---- rings ------------------------------------------------------------------------------------------------------ */

/* The request is signalled in one of two cases, and always solicits an event. */
void armed_send(struct armed_end *end)
{
	size_t offset = end->sent % OWN_BLOCKS * MESSAGE_BYTES;
	uint8_t wqe[32] = {0};

	memcpy(end->side.memory + offset, &end->sent, sizeof(end->sent));
	end->sent++;
	put32(wqe, 8, SOLICITED | (armed_random(end, 2) ? CQ_UPDATE : 0));
	put_data(wqe, 16, MESSAGE_BYTES, end->side.mr->lkey, side_address(&end->side, offset));
	own_post(&end->requests, MLX5_OPCODE_SEND, wqe, sizeof(wqe));
}

static const struct mlx5_cqe64 *next_cqe(const struct armed_cq *cq)
{
	const uint8_t *cqe = cq->ring + (size_t)(cq->consumed % cq->count) * 64;
	uint8_t op_own = __atomic_load_n(cqe + 63, __ATOMIC_ACQUIRE);

	return op_own >> 4 != 0xf && (op_own & 1) == (cq->consumed / cq->count & 1) ? (const void *)cqe : NULL;
}

static void handle_receive(struct armed_end *end, const struct mlx5_cqe64 *cqe)
{
	size_t slot = be16toh(cqe->wqe_counter) % OWN_RECEIVES;
	uint32_t message;

	CHECK(cqe->op_own >> 4 == MLX5_CQE_RESP_SEND);
	memcpy(&message, end->side.memory + RECEIVE_OFFSET + slot * MESSAGE_BYTES, sizeof(message));
	CHECK(message == end->received);
	end->received++;
	post_receive_slot(end);
}

/* Takes all available CQEs. */
static void take_cqes(struct armed_end *end)
{
	for (int i = 0; i < ARMED_CQS; i++) {
		struct armed_cq *cq = &end->cq[i];
		const struct mlx5_cqe64 *cqe;

		while ((cqe = next_cqe(cq))) {
			if (i == ARMED_RECEIVES)
				handle_receive(end, cqe);
			else
				CHECK(cqe->op_own >> 4 == MLX5_CQE_REQ);
			cq->consumed++;
			if (end->options.record)
				put32(cq->record, 0, cq->consumed & 0xffffff);
		}
	}
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

/* Returns the CQ of the next event of the channel, or NULL. */
static struct armed_cq *next_event(struct armed_end *end)
{
	struct mlx5dv_devx_async_event_hdr event;
	struct ibv_cq *cq;
	void *context;

	errno = 0;
	if (end->channel) {
		if (!ibv_get_cq_event(end->channel, &cq, &context))
			return context;
	} else if (mlx5dv_devx_get_event(end->events, &event, sizeof(event)) == sizeof(event.cookie)) {
		return &end->cq[event.cookie];
	}
	CHECK(errno == EAGAIN);
	return NULL;
}

/*
 * Takes the pending events. An event is raised for a CQE at or after the index with which the CQ was armed; the program
 * may have consumed that CQE by now. The zero in the second word of a fresh record in a umem counts as an arming
 * (docs/inside/devx.md), so the event with sequence number 0 may come without a CQE.
 */
static bool take_events(struct armed_end *end)
{
	struct armed_cq *cq;
	bool taken = false;

	while ((cq = next_event(end))) {
		if (cq->sequence && (!cq->armed || (cq->consumed == cq->armed_at && !next_cqe(cq))))
			cq->empty++;
		cq->events++;
		cq->sequence++;
		cq->armed = false;
		taken = true;
	}
	return taken;
}

/* Writes the record, then the register. */
static void arm(struct armed_cq *cq, bool solicited)
{
	uint32_t word = (cq->sequence & 3) << 28 | (solicited ? ARM_SOLICITED : 0) | (cq->consumed & 0xffffff);

	if (!cq->armed)
		cq->armed_at = cq->consumed;
	cq->armed = true;
	__atomic_store_n((uint32_t *)(cq->record + 4), htobe32(word), __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*cq->doorbell = htobe64((uint64_t)word << 32 | cq->number);
}

static void arm_all(struct armed_end *end)
{
	arm(&end->cq[ARMED_REQUESTS], false);
	arm(&end->cq[ARMED_RECEIVES], armed_random(end, 2));
}

/* Reports each CQE that should have woken the program. Returns true if there is one. */
static bool report_lost(const struct armed_end *end)
{
	bool found = false;

	for (int i = 0; i < ARMED_CQS; i++) {
		const struct armed_cq *cq = &end->cq[i];

		if (!next_cqe(cq))
			continue;
		fprintf(stderr,
			"lost: %s CQ, %u CQEs consumed, armed at %u with sequence number %u, %" PRIu64 " events\n",
			i == ARMED_RECEIVES ? "receive" : "request", cq->consumed, cq->armed_at, cq->sequence,
			cq->events);
		found = true;
	}
	return found;
}

static void sleep_until_event(struct armed_end *end)
{
	struct pollfd fd = {.fd = end->channel ? end->channel->fd : end->events->fd, .events = POLLIN};
	double begun = seconds_now(), lasted;

	end->waits++;
	while (poll(&fd, 1, LOST_AFTER_MS) == 0) {
		if (report_lost(end)) {
			end->lost++;
			return;
		}
		CHECK(seconds_now() - begun < MISSING_AFTER_S);
	}
	lasted = seconds_now() - begun;
	if (lasted > end->longest)
		end->longest = lasted;
}

/* Lets the peer and the device overtake this thread in some of the cases. */
static void pause_sometimes(struct armed_end *end)
{
	double until;

	if (armed_random(end, 4))
		return;
	until = seconds_now() + armed_random(end, 40) * 1e-6;
	while (seconds_now() < until)
		;
}

void armed_arm(struct armed_end *end)
{
	do
		take_cqes(end);
	while (take_events(end));
	arm_all(end);
	end->ready = true;
}

/*
 * Draws one of the two orders of programs each time: take the event, take all CQEs, arm (UCX); or take the event, arm, take all CQEs
 * (ibv_get_cq_event(3)). The sequence number of an arming is the number of events taken before it.
 */
void armed_receive(struct armed_end *end, uint32_t count)
{
	uint32_t until = end->received + count;

	if (end->ready)
		sleep_until_event(end);
	end->ready = false;
	for (;;) {
		bool arm_first = !armed_random(end, 4);

		take_cqes(end);
		if (end->received == until)
			return;
		pause_sometimes(end);
		if (take_events(end) && !arm_first)
			continue;
		arm_all(end);
		if (arm_first) {
			take_cqes(end);
			if (end->received == until)
				return;
		}
		pause_sometimes(end);
		sleep_until_event(end);
	}
}
