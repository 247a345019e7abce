/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects initiator and target, see protocol.h: by rdma_cm(7), as NVMe over Fabrics does. The program creates its own
 * queue pair, because rdma_create_qp(3) cannot create one that configures keys. So it also changes the state of the
 * queue pair, with the attributes that rdma_init_qp_attr(3) returns.
 */
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "protocol.h"

enum { TIMEOUT_MS = 2000, TRIES = 100, READS = 16 /* outstanding RDMA READs */ };

/* ---- events ---------------------------------------------------------------------------------------------------- */

static struct rdma_cm_event *next_event(struct meeting *meeting)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(meeting->channel, &event))
		die_errno("rdma_get_cm_event");
	return event;
}

static struct rdma_cm_event *await(struct meeting *meeting, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next_event(meeting);

	if (event->event != type)
		die("%s (status %d) in place of %s", rdma_event_str(event->event), event->status, rdma_event_str(type));
	return event;
}

/* ---- addresses ------------------------------------------------------------------------------------------------- */

static struct rdma_addrinfo *look_up(const char *address, const char *port, int flags)
{
	struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *found;

	if (rdma_getaddrinfo(address, port, &hints, &found))
		die_errno("%s port %s", address, port);
	return found;
}

static struct rdma_cm_id *begin(struct meeting *meeting)
{
	struct rdma_cm_id *id;

	if (!meeting->channel)
		meeting->channel = rdma_create_event_channel();
	if (!meeting->channel)
		die_errno("there is no RDMA device; run this with: softhca run -- PROGRAM");
	if (rdma_create_id(meeting->channel, &id, NULL, RDMA_PS_TCP))
		die_errno("rdma_create_id");
	return id;
}

void await_initiator(struct meeting *meeting, const char *address, const char *port)
{
	struct rdma_addrinfo *found = look_up(address, port, RAI_PASSIVE);
	struct rdma_cm_event *event;

	meeting->listener = begin(meeting);
	if (rdma_bind_addr(meeting->listener, found->ai_src_addr) || rdma_listen(meeting->listener, 1))
		die_errno("waiting at %s port %s", address, port);
	rdma_freeaddrinfo(found);
	printf("target: waiting at port %u\n", be16toh(rdma_get_src_port(meeting->listener)));
	fflush(stdout);
	event = await(meeting, RDMA_CM_EVENT_CONNECT_REQUEST);
	meeting->id = event->id;
	rdma_ack_cm_event(event);
}

static void resolve(struct meeting *meeting, struct sockaddr *address)
{
	meeting->id = begin(meeting);
	if (rdma_resolve_addr(meeting->id, NULL, address, TIMEOUT_MS))
		die_errno("rdma_resolve_addr");
	rdma_ack_cm_event(await(meeting, RDMA_CM_EVENT_ADDR_RESOLVED));
	if (rdma_resolve_route(meeting->id, TIMEOUT_MS))
		die_errno("rdma_resolve_route");
	rdma_ack_cm_event(await(meeting, RDMA_CM_EVENT_ROUTE_RESOLVED));
}

void find_target(struct meeting *meeting, const char *address, const char *port)
{
	struct rdma_addrinfo *found = look_up(address, port, 0);

	resolve(meeting, found->ai_dst_addr);
	rdma_freeaddrinfo(found);
}

/* ---- the queue pair -------------------------------------------------------------------------------------------- */

static void to_state(struct meeting *meeting, struct end *end, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask, error;

	if (rdma_init_qp_attr(meeting->id, &attr, &mask))
		die_errno("rdma_init_qp_attr for state %d", state);
	error = ibv_modify_qp(end->qp, &attr, mask);
	if (error)
		die("ibv_modify_qp to state %d: %s", state, strerror(error));
}

void meeting_open(struct meeting *meeting, struct end *end)
{
	end_open_on(end, meeting->id->verbs, 1);
	to_state(meeting, end, IBV_QPS_INIT);
}

static struct rdma_conn_param parameters(const struct end *end)
{
	return (struct rdma_conn_param){.responder_resources = READS,
					.initiator_depth = READS,
					.retry_count = 7,
					.rnr_retry_count = 7,
					.qp_num = end->qp->qp_num};
}

/* ---- connecting ------------------------------------------------------------------------------------------------ */

void accept_initiator(struct meeting *meeting, struct end *end, uint32_t blocks)
{
	struct disk_size size = {htobe32(blocks)};
	struct rdma_conn_param param = parameters(end);

	to_state(meeting, end, IBV_QPS_RTR);
	to_state(meeting, end, IBV_QPS_RTS);
	param.private_data = &size;
	param.private_data_len = sizeof(size);
	if (rdma_accept(meeting->id, &param))
		die_errno("rdma_accept");
	rdma_ack_cm_event(await(meeting, RDMA_CM_EVENT_ESTABLISHED));
}

/* A rejected id cannot be used again. */
static void try_again(struct meeting *meeting)
{
	struct rdma_cm_id *rejected = meeting->id;

	usleep(50000);
	resolve(meeting, rdma_get_peer_addr(rejected));
	rdma_destroy_id(rejected);
}

uint32_t connect_to_target(struct meeting *meeting, struct end *end)
{
	struct rdma_conn_param param = parameters(end);
	struct rdma_cm_event *event;
	struct disk_size size;

	for (int tries = 1;; tries++) {
		if (rdma_connect(meeting->id, &param))
			die_errno("rdma_connect");
		event = next_event(meeting);
		if (event->event == RDMA_CM_EVENT_CONNECT_RESPONSE)
			break;
		if (event->event != RDMA_CM_EVENT_REJECTED || tries == TRIES)
			die("connecting: %s (status %d)", rdma_event_str(event->event), event->status);
		rdma_ack_cm_event(event);
		try_again(meeting);
	}
	if (event->param.conn.private_data_len < sizeof(size))
		die("the target does not say how large its disk is");
	memcpy(&size, event->param.conn.private_data, sizeof(size));
	rdma_ack_cm_event(event);
	/* Done again, because the rights of the peer are known only now. */
	to_state(meeting, end, IBV_QPS_INIT);
	to_state(meeting, end, IBV_QPS_RTR);
	to_state(meeting, end, IBV_QPS_RTS);
	if (rdma_establish(meeting->id))
		die_errno("rdma_establish");
	return be32toh(size.blocks);
}

void disconnect(struct meeting *meeting)
{
	/* Fails if the peer disconnected first; the event comes in both cases. */
	rdma_disconnect(meeting->id);
	rdma_ack_cm_event(await(meeting, RDMA_CM_EVENT_DISCONNECTED));
}

void meeting_close(struct meeting *meeting)
{
	rdma_destroy_id(meeting->id);
	if (meeting->listener)
		rdma_destroy_id(meeting->listener);
	rdma_destroy_event_channel(meeting->channel);
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

void add_message(struct end *end, uint64_t wr_id, void *message, size_t length)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(end->qp);

	qp->wr_id = wr_id;
	/* Signalled: completions free room in the queue. */
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, message, length);
}
