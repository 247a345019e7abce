/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three communication managers with programs that act randomly at random times: connect, accept late or never, reject,
 * disconnect (both at once, too), destroy ids in any state, resolve service ids. These must hold whatever the network
 * does:
 *
 * - an id gets no event twice, none after its end, and none after it was destroyed;
 * - two connected ends agree on QPs, sequence numbers, and their identity;
 * - when nothing is in flight, an end with an existing peer is connected if the peer is, or one of them got an error;
 * - when all ids are destroyed, the managers hold nothing.
 *
 *	simulation_cm [--seconds N | --runs N] [--seed N]       with a seed alone: one run
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cm_net.h"

enum { MOST_ENDS = 400, CONNECTIONS = 12, SERVICES = 2, NOBODY = -1 };

/* An id, from the view of a program. */
struct end {
	struct cm_id *id; /* NULL: destroyed */
	uint32_t host;
	int32_t peer; /* end, according to its messages; NOBODY: unknown */
	bool active, sidr, listens;
	uint32_t told[CM_EVENT_SIDR_RESPONSE + 1];
	bool over;       /* got, or did, an action that only TIMEWAIT_EXIT may follow */
	bool failed;     /* failed, or rejected: its peer may not know */
	uint32_t qpn;    /* own number */
	uint32_t vendor; /* of the ECE in its REQ; 0: none */
};

static struct end ends[MOST_ENDS];
static uint32_t end_count, services_of;
static struct {
	uint64_t established, rejected, unreachable, disconnected, resolved;
} statistics;

static struct cm_private name_of(uint32_t end)
{
	static uint32_t names[MOST_ENDS];

	names[end] = end;
	return (struct cm_private){&names[end], sizeof(names[end])};
}

static uint32_t named(const uint8_t *private_data)
{
	uint32_t end;

	memcpy(&end, private_data, sizeof(end));
	MUST(end < end_count);
	return end;
}

static uint32_t number_of(const struct end *end)
{
	return (uint32_t)(end - ends);
}

static struct end *new_end(uint32_t host)
{
	static const uint32_t vendors[] = {0, 0x15b3, 0xabcdef};
	struct end *end = &ends[end_count++];

	MUST(end_count < MOST_ENDS);
	*end = (struct end){.host = host, .peer = NOBODY, .qpn = 0x1000 + end_count, .vendor = vendors[net_below(3)]};
	return end;
}

static uint64_t service(void)
{
	return net_below(4) ? 0x1060000 + net_below(services_of) : 0x1110000;
}

/* ---- actions of programs -------------------------------------------------------------------------------------------------- */

static void destroy(uint32_t number)
{
	struct end *end = &ends[number];

	if (!end->id)
		return;
	cm_id_destroy(end->id);
	end->id = NULL;
}

static void accept_it(uint32_t number)
{
	struct end *end = &ends[number];
	struct cm_reply reply = {.qpn = end->qpn, .private_data = name_of(number)};
	struct cm_sidr_reply sidr_reply = {.qpn = end->qpn, .qkey = 1, .private_data = name_of(number)};

	if (!end->id)
		return;
	if (end->sidr)
		cm_send_sidr_rep(end->id, &sidr_reply);
	else
		cm_send_rep(end->id, &reply);
}

static void reject_it(uint32_t number)
{
	struct end *end = &ends[number];

	if (!end->id)
		return;
	if (end->sidr)
		cm_send_sidr_rep(end->id, &(const struct cm_sidr_reply){.status = CM_SIDR_REJECTED});
	else if (!cm_send_rej(end->id, CM_REJECT_CONSUMER, (struct cm_private){0}, (struct cm_private){0}))
		end->over = end->failed = true;
}

static void disconnect(uint32_t number)
{
	if (ends[number].id)
		cm_send_dreq(ends[number].id, (struct cm_private){0});
}

static void answer_disconnect(uint32_t number)
{
	if (ends[number].id)
		cm_send_drep(ends[number].id, (struct cm_private){0});
}

static void expect_agreement(const struct end *a, const struct end *b)
{
	struct cm_parameters one, other;

	cm_id_query(a->id, &one);
	cm_id_query(b->id, &other);
	MUST(one.local_qpn == a->qpn && one.remote_qpn == b->qpn);
	MUST(one.local_comm_id == other.remote_comm_id && one.remote_comm_id == other.local_comm_id);
	MUST(one.rq_psn == other.sq_psn && one.sq_psn == other.rq_psn);
	MUST(!memcmp(&one.path.source, &other.path.destination, sizeof(union ibv_gid)));
	MUST(one.remote_ca_guid == b->host + 1);
}

/* Runs after the handler of the event, which may not query the manager. */
static void check_agreement(uint32_t number)
{
	const struct end *end = &ends[number];

	if (end->id && !end->over && ends[end->peer].id && !ends[end->peer].over)
		expect_agreement(end, &ends[end->peer]);
}

static void live_on(uint32_t number)
{
	switch (net_below(6)) {
	case 0:
		net_later(60000, destroy, number);
		break;
	case 1:
	case 2:
	case 3:
		/* Soon, so that both ends may do it at once. */
		net_later(net_below(2) ? 50 : 60000, disconnect, number);
		break;
	default:
		break;
	}
}

static void get_ready(uint32_t number)
{
	struct end *end = &ends[number];

	if (!end->id || cm_send_rtu(end->id, name_of(number)))
		return;
	MUST(end->active && end->peer != NOBODY);
	net_later(0, check_agreement, number_of(end));
	live_on(number);
}

static void connect_it(uint32_t number)
{
	struct end *end = &ends[number];
	uint32_t to = net_below(HOSTS);
	struct cm_request request = {
		.service_id = service(),
		.qp_type = IBV_QPT_RC,
		.qpn = end->qpn,
		.path_mtu = IBV_MTU_1024,
		.ece_vendor = end->vendor,
		.private_data = name_of(number),
		.path = {.source = net.hosts[end->host].gid, .destination = net.hosts[to].gid, .hop_limit = 64},
	};
	struct cm_sidr_request sidr_request = {
		.path = request.path, .service_id = request.service_id, .private_data = request.private_data};

	end->active = true;
	end->sidr = request.service_id >> 16 == 0x111;
	MUST(!cm_id_create(net.hosts[end->host].cm, end, &end->id));
	MUST(!(end->sidr ? cm_send_sidr_req(end->id, &sidr_request) : cm_send_req(end->id, &request)));
	if (!net_below(8))
		net_later(20000, destroy, number);
}

/* ---- events of programs --------------------------------------------------------------------------------------------------- */

static enum cm_verdict hear(void *owner, struct cm_id *child, const struct cm_event *event, void **child_owner,
			    uint16_t *reason)
{
	static void (*const answers[])(uint32_t) = {accept_it, accept_it, accept_it, accept_it,
						    reject_it, destroy,   NULL};
	struct end *listener = owner, *end;
	const struct cm_message *message = event->message;

	(void)reason;
	MUST(listener->id && listener->listens);
	switch (net_below(12)) {
	case 0:
		return CM_DROP;
	case 1:
		return CM_REJECT;
	case 2:
		return CM_NOT_MINE;
	default:
		break;
	}
	end = new_end(listener->host);
	end->id = child;
	end->sidr = message->kind == CM_SIDR_REQ;
	end->peer = (int32_t)named(end->sidr ? message->sidr_req.private_data : message->req.private_data);
	*child_owner = end;
	{
		void (*answer)(uint32_t) = answers[net_below(sizeof(answers) / sizeof(answers[0]))];

		if (answer)
			net_later(net_below(3) ? 100 : 30000, answer, number_of(end));
	}
	if (!net_below(10))
		net_later(20000, destroy, number_of(end));
	return CM_TAKE;
}

static uint32_t vendor_of(const struct cm_rep *rep)
{
	return (uint32_t)rep->vendor_id_high << 16 | (uint32_t)rep->vendor_id_middle << 8 | rep->vendor_id_low;
}

static void hear_response(struct end *end, const struct cm_message *message)
{
	static void (*const answers[])(uint32_t) = {get_ready, get_ready, get_ready, get_ready,
						    reject_it, destroy,   NULL};
	void (*answer)(uint32_t) = answers[net_below(sizeof(answers) / sizeof(answers[0]))];

	MUST(end->active && !end->sidr);
	end->peer = (int32_t)named(message->rep.private_data);
	/* The reply is for this end only. */
	MUST(ends[end->peer].peer == (int32_t)number_of(end));
	/* An active end of librdmacm fails if the reply names another vendor than its request. */
	MUST(vendor_of(&message->rep) == end->vendor);
	if (answer)
		net_later(net_below(3) ? 100 : 30000, answer, number_of(end));
}

static void hear_established(struct end *end, const struct cm_message *message)
{
	MUST(!end->active && !end->sidr && end->peer != NOBODY);
	MUST((int32_t)named(message->rtu.private_data) == end->peer);
	net_later(0, check_agreement, number_of(end));
	statistics.established++;
	live_on(number_of(end));
}

static void hear_disconnected(struct end *end)
{
	end->over = true;
	statistics.disconnected++;
	switch (net_below(3)) {
	case 0:
		net_later(5000, answer_disconnect, number_of(end));
		break;
	case 1:
		net_later(5000, destroy, number_of(end));
		break;
	default:
		break;
	}
}

static void tell(void *owner, const struct cm_event *event)
{
	struct end *end = owner;

	MUST(end && end->id && !end->listens);
	MUST(++end->told[event->kind] == 1);
	MUST(!end->over || event->kind == CM_EVENT_TIMEWAIT_EXIT);
	MUST(!end->told[CM_EVENT_TIMEWAIT_EXIT] || event->kind == CM_EVENT_TIMEWAIT_EXIT);
	switch (event->kind) {
	case CM_EVENT_RESPONSE:
		hear_response(end, event->message);
		break;
	case CM_EVENT_ESTABLISHED:
		hear_established(end, event->message);
		break;
	case CM_EVENT_REJECTED:
		/* Also for a connection that is being released: otherwise nothing would end it. */
		MUST(!end->sidr && event->message);
		end->over = end->failed = true;
		statistics.rejected++;
		break;
	case CM_EVENT_UNREACHABLE:
		MUST(event->status == -ETIMEDOUT);
		end->over = end->failed = true;
		statistics.unreachable++;
		break;
	case CM_EVENT_DISCONNECTED:
		end->failed |= event->status != 0;
		hear_disconnected(end);
		break;
	case CM_EVENT_TIMEWAIT_EXIT:
		MUST(end->over);
		break;
	case CM_EVENT_SIDR_RESPONSE:
		MUST(end->sidr && end->active);
		end->over = true;
		statistics.resolved += !event->status;
		break;
	case CM_EVENT_REQUEST:
		MUST(false);
		break;
	}
}

/* Marks the handler, so that the network detects whether a manager sends while it holds its lock. */
static enum cm_verdict hear_marked(void *owner, struct cm_id *child, const struct cm_event *event, void **child_owner,
				   uint16_t *reason)
{
	struct host *host = &net.hosts[((struct end *)owner)->host];
	enum cm_verdict verdict;

	host->in_handler = true;
	verdict = hear(owner, child, event, child_owner, reason);
	host->in_handler = false;
	return verdict;
}

static const struct cm_functions functions = {.request = hear_marked, .event = tell};

/* ---- a run ---------------------------------------------------------------------------------------------------------------- */

static void listen_on(uint32_t number)
{
	struct end *end = &ends[number];

	end->listens = true;
	MUST(!cm_id_create(net.hosts[end->host].cm, end, &end->id));
	MUST(!cm_listen(end->id, service()));
	if (!net_below(4))
		net_later(MS_OF_ACTIONS, destroy, number);
}

/* Expects a final state: no packet is in flight, and no timer runs. */
static void expect_quiet(const struct end *end)
{
	enum cm_state state = cm_id_state(end->id);
	const struct end *peer = end->peer == NOBODY ? NULL : &ends[end->peer];
	struct cm_parameters known;

	switch (state) {
	case CM_STATE_IDLE:
	case CM_STATE_LISTEN:
	case CM_STATE_MRA_REQ_SENT:
	case CM_STATE_MRA_REP_SENT:
	case CM_STATE_SIDR_REQ_RCVD:
	case CM_STATE_DREQ_RCVD:
		return;
	default:
		MUST(state == CM_STATE_ESTABLISHED);
		break;
	}
	/* The peer may be gone, and its message lost. */
	cm_id_query(end->id, &known);
	if (!peer || !peer->id || end->failed || peer->failed || net_lost_for(known.local_comm_id))
		return;
	MUST(cm_id_state(peer->id) == CM_STATE_ESTABLISHED);
	expect_agreement(end, peer);
}

static void begin(uint64_t seed)
{
	uint32_t listeners;

	net_begin(seed, &functions);
	end_count = 0;
	services_of = SERVICES;
	net.weather = (struct weather){.loss = net_below(3) ? net_below(300) : 0,
				       .twice = net_below(2) ? net_below(300) : 0,
				       .delay_ms = net_below(2) ? 1 : net_below(net_below(2) ? 100 : 12000)};
	listeners = 1 + net_below(2 * HOSTS);
	for (uint32_t i = 0; i < listeners; i++)
		net_later(net_below(4) ? 0 : MS_OF_ACTIONS / 2, listen_on, number_of(new_end(net_below(HOSTS))));
	for (uint32_t i = 0; i < CONNECTIONS; i++)
		net_later(MS_OF_ACTIONS, connect_it, number_of(new_end(net_below(HOSTS))));
}

static void play(uint64_t seed)
{
	begin(seed);
	net_run_until(net.now_ns + MS_OF_ACTIONS * MS);
	net.weather.loss = net.weather.twice = 0;
	/* A requested delay is up to 16 times 66 s. */
	MUST(net_run_until(net.now_ns + 4000000 * MS));
	for (uint32_t i = 0; i < end_count; i++)
		if (ends[i].id)
			expect_quiet(&ends[i]);
	for (uint32_t i = 0; i < end_count; i++)
		destroy(i);
	MUST(net_run_until(net.now_ns + 4000000 * MS));
	for (uint32_t i = 0; i < end_count; i++)
		destroy(i);
	net_run_until(net.now_ns + 1000 * MS);
	net_end();
}

static uint64_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, runs = 0, limit = 5, begun = seconds(), count = 0;

	for (int i = 1; i + 1 < argc; i += 2) {
		uint64_t value = strtoull(argv[i + 1], NULL, 0);

		if (!strcmp(argv[i], "--seed")) {
			seed = value;
			runs = 1;
		} else if (!strcmp(argv[i], "--runs")) {
			runs = value;
		} else if (!strcmp(argv[i], "--seconds")) {
			limit = value;
		}
	}
	while (runs ? count < runs : seconds() - begun < limit || count < 200) {
		play(seed++);
		count++;
	}
	printf("%" PRIu64 " runs: %" PRIu64 " connections, %" PRIu64 " rejected, %" PRIu64 " unreachable, %" PRIu64
	       " disconnected, %" PRIu64 " resolved\n",
	       count, statistics.established, statistics.rejected, statistics.unreachable, statistics.disconnected,
	       statistics.resolved);
	/* Otherwise the runs have tested nothing. */
	return count > 100 && !(statistics.established && statistics.rejected && statistics.unreachable &&
				statistics.disconnected && statistics.resolved);
}
