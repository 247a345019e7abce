/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call in every state of an id. The allowed combinations of rdma-cm 2.1 and 2.6 are listed here a second time; all others
 * fail with EINVAL.
 */
#include "support.h"

enum state { IDLE, BOUND, RESOLVED, ROUTED, LISTENING, REQUESTED, CONNECTED, ACCEPTED, REJECTED, DISCONNECTED, STATES };

static const char *const names[STATES] = {"idle",      "bound",     "resolved", "routed",   "listening",
					  "requested", "connected", "accepted", "rejected", "disconnected"};

static struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .qp_num = 7};

/* An id in a state, and the objects needed to reach it. */
struct subject {
	struct ends ends;
	struct rdma_cm_id *id;
};

static void make(struct subject *subject, enum state state)
{
	struct ends *ends = &subject->ends;
	struct rdma_cm_event *event;

	begin(ends, RDMA_PS_TCP);
	subject->id = NULL;
	switch (state) {
	case IDLE:
	case BOUND:
	case RESOLVED:
	case ROUTED:
		subject->id = new_id(ends->client_channel, RDMA_PS_TCP);
		if (state == BOUND)
			assert_success(rdma_bind_addr(subject->id, loopback(0)));
		if (state == RESOLVED)
			resolve_address(subject->id, port_of(ends->listener));
		if (state == ROUTED)
			resolve(subject->id, port_of(ends->listener));
		return;
	case LISTENING:
		subject->id = ends->listener;
		return;
	case REQUESTED:
		assert_success(rdma_connect(ends->client, &param));
		event = next_event(ends->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
		ends->server = subject->id = event->id;
		assert_success(rdma_ack_cm_event(event));
		return;
	case REJECTED:
		assert_success(rdma_connect(ends->client, &param));
		event = next_event(ends->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
		ends->server = event->id;
		assert_success(rdma_ack_cm_event(event));
		assert_success(rdma_reject(ends->server, NULL, 0));
		expect_event(ends->client_channel, RDMA_CM_EVENT_REJECTED);
		subject->id = ends->client;
		return;
	case CONNECTED:
	case ACCEPTED:
		establish(ends);
		subject->id = state == CONNECTED ? ends->client : ends->server;
		return;
	case DISCONNECTED:
		establish(ends);
		assert_success(rdma_disconnect(ends->client));
		expect_event(ends->server_channel, RDMA_CM_EVENT_DISCONNECTED);
		assert_success(rdma_disconnect(ends->server));
		expect_event(ends->client_channel, RDMA_CM_EVENT_DISCONNECTED);
		subject->id = ends->client;
		return;
	default:
		fail();
	}
}

static void drop(struct subject *subject)
{
	if (subject->id != subject->ends.client && subject->id != subject->ends.server &&
	    subject->id != subject->ends.listener)
		assert_success(rdma_destroy_id(subject->id));
	end(&subject->ends);
}

static int bind_address(struct rdma_cm_id *id)
{
	return rdma_bind_addr(id, loopback(0));
}

static int resolve_again(struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, NULL, loopback(1), TIMEOUT_MS);
}

static int resolve_route(struct rdma_cm_id *id)
{
	return rdma_resolve_route(id, TIMEOUT_MS);
}

static int listen_(struct rdma_cm_id *id)
{
	return rdma_listen(id, 1);
}

static int connect_(struct rdma_cm_id *id)
{
	return rdma_connect(id, &param);
}

static int accept_(struct rdma_cm_id *id)
{
	return rdma_accept(id, &param);
}

static int reject(struct rdma_cm_id *id)
{
	return rdma_reject(id, NULL, 0);
}

static int notify(struct rdma_cm_id *id)
{
	return rdma_notify(id, IBV_EVENT_COMM_EST);
}

static int join(struct rdma_cm_id *id)
{
	return rdma_join_multicast(id, loopback(0), NULL);
}

static int set_own_family_only(struct rdma_cm_id *id)
{
	int on = 1;

	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on));
}

static int init_attributes(struct rdma_cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;

	return rdma_init_qp_attr(id, &attr, &mask);
}

static int to_init(struct rdma_cm_id *id)
{
	return init_attributes(id, IBV_QPS_INIT);
}

static int to_rtr(struct rdma_cm_id *id)
{
	return init_attributes(id, IBV_QPS_RTR);
}

static int to_rts(struct rdma_cm_id *id)
{
	return init_attributes(id, IBV_QPS_RTS);
}

static int to_err(struct rdma_cm_id *id)
{
	return init_attributes(id, IBV_QPS_ERR);
}

#define IN(state) (1u << (state))

static const struct {
	const char *name;
	int (*call)(struct rdma_cm_id *id);
	unsigned int allowed; /* states in which it returns 0 */
	unsigned int skipped; /* states in which the outcome also depends on other conditions */
} calls[] = {
	{"rdma_bind_addr", bind_address, IN(IDLE), 0},
	{"rdma_listen", listen_, IN(IDLE) | IN(BOUND), 0},
	{"rdma_resolve_addr", resolve_again, IN(IDLE) | IN(BOUND), 0},
	{"rdma_resolve_route", resolve_route, IN(RESOLVED), 0},
	{"rdma_connect", connect_, IN(ROUTED), 0},
	{"rdma_accept", accept_, IN(REQUESTED), 0},
	/* A connection can be rejected until it is established, even after a REP was sent. */
	{"rdma_reject", reject, IN(REQUESTED), 0},
	{"rdma_establish", rdma_establish, 0, 0},
	/* EISCONN if it is connected already: test_limits of connections.c. */
	{"rdma_notify", notify, 0, IN(CONNECTED) | IN(ACCEPTED)},
	{"rdma_disconnect", rdma_disconnect, IN(CONNECTED) | IN(ACCEPTED) | IN(REJECTED) | IN(DISCONNECTED), 0},
	/* The id is not for datagrams, which is also EINVAL. */
	{"rdma_join_multicast", join, 0, 0},
	{"rdma_set_option", set_own_family_only, IN(IDLE) | IN(BOUND), 0},
	/* For ids with a device, which 127.0.0.1 provides if it is the only address. */
	{"rdma_init_qp_attr to INIT", to_init,
	 IN(BOUND) | IN(RESOLVED) | IN(ROUTED) | IN(REQUESTED) | IN(CONNECTED) | IN(ACCEPTED),
	 IN(REJECTED) | IN(DISCONNECTED)},
	{"rdma_init_qp_attr to RTR", to_rtr, IN(REQUESTED) | IN(CONNECTED) | IN(ACCEPTED), 0},
	{"rdma_init_qp_attr to RTS", to_rts, IN(REQUESTED) | IN(CONNECTED) | IN(ACCEPTED), 0},
	{"rdma_init_qp_attr to ERR", to_err, 0, 0},
};

static void try(enum state state, unsigned int index)
{
	struct subject subject;
	int result, error;
	bool allowed = calls[index].allowed & IN(state);

	if (calls[index].skipped & IN(state))
		return;
	make(&subject, state);
	errno = 0;
	result = calls[index].call(subject.id);
	error = errno;
	if (allowed ? result != 0 : result != -1 || error != EINVAL)
		fail_msg("%s of an id that is %s: %d, errno %d; it is %s", calls[index].name, names[state], result,
			 error, allowed ? "in order" : "EINVAL");
	drop(&subject);
}

TEST(test_calls_in_states)
{
	for (unsigned int index = 0; index < sizeof(calls) / sizeof(calls[0]); index++)
		for (enum state each = IDLE; each < STATES; each++)
			try(each, index);
}

/* Any id can be destroyed quickly. */
TEST(test_destroy)
{
	for (enum state each = IDLE; each < STATES; each++) {
		struct subject subject;

		make(&subject, each);
		drop(&subject);
	}
}
