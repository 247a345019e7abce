/* SPDX-License-Identifier: BSD-2-Clause */
/* Two hosts in simulated time, see cm_world.h. */
#include "cm_world.h"

#include "test_case.h"

#define MS UINT64_C(1000000)

struct world world;
char client[] = "client", server[] = "server", listener[] = "listener";

static struct host *host_of(void *context)
{
	return context;
}

/* ---- callbacks of the managers ------------------------------------------------------------------------------------- */

static void send_mad(void *context, const struct packet_path *path, const uint8_t mad[CM_MAD_BYTES])
{
	struct sent *sent = &world.sent[world.sent_count++];

	assert_true(world.sent_count <= MOST_SENT);
	memset(sent, 0, sizeof(*sent));
	sent->from = (int)(host_of(context) - world.hosts);
	sent->path = *path;
	memcpy(sent->mad, mad, CM_MAD_BYTES);
	assert_int_equal(cm_unpack(mad, &sent->message), CM_WELL_FORMED);
	assert_memory_equal(&path->source, &world.hosts[sent->from].gid, sizeof(path->source));
}

static void wake_at(void *context, uint64_t deadline_ns)
{
	host_of(context)->wakes_at_ns = deadline_ns;
}

static uint64_t now_ns(void *context)
{
	(void)context;
	return world.now_ns;
}

static uint64_t draw(void *context)
{
	(void)context;
	world.random ^= world.random << 13;
	world.random ^= world.random >> 7;
	return world.random ^= world.random << 17;
}

static int claim_slot(void *context)
{
	world.slots_claimed++;
	if (world.no_slot)
		return -ENOSPC;
	return host_of(context) == &world.hosts[A] ? SLOT_A : SLOT_B;
}

static struct told *note(void *owner, const struct cm_event *event)
{
	struct told *told = &world.told[world.told_count++];

	assert_true(world.told_count <= MOST_EVENTS);
	memset(told, 0, sizeof(*told));
	told->owner = owner;
	told->kind = event->kind;
	told->status = event->status;
	told->has_message = event->message;
	if (event->message)
		told->message = *event->message;
	return told;
}

static enum cm_verdict decide(void *owner, struct cm_id *child, const struct cm_event *event, void **child_owner,
			      uint16_t *reason)
{
	struct host *host = &world.hosts[B];

	if (owner == host->not_mine)
		return CM_NOT_MINE;
	note(owner, event)->child = child;
	*child_owner = server;
	if (host->reason)
		*reason = host->reason;
	return host->verdict;
}

static void tell(void *owner, const struct cm_event *event)
{
	note(owner, event);
}

static const struct cm_functions functions = {.send = send_mad,
					      .wake_at = wake_at,
					      .now_ns = now_ns,
					      .random = draw,
					      .claim_slot = claim_slot,
					      .request = decide,
					      .event = tell};

/* ---- the world ------------------------------------------------------------------------------------------------------- */

void world_begin(const struct cm_config *with)
{
	world = (struct world){.now_ns = 12345 * MS + 678, .random = 88172645463325252u};
	for (int i = 0; i < HOSTS; i++) {
		struct cm_config config = *with;
		struct host *host = &world.hosts[i];

		config.functions = &functions;
		config.context = host;
		config.ca_guid = i == A ? GUID_A : GUID_B;
		config.ack_delay = config.ack_delay ? config.ack_delay : 16;
		config.response_timeout = config.response_timeout ? config.response_timeout : 20;
		config.retries = config.retries ? config.retries : 15;
		config.packet_lifetime = config.packet_lifetime ? config.packet_lifetime : 16;
		/* ::ffff:192.0.2.1, .2 */
		memcpy(host->gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2", 15);
		host->gid.raw[15] = (uint8_t)(i + 1);
		host->wakes_at_ns = UINT64_MAX;
		host->cm = cm_create(&config);
		assert_non_null(host->cm);
	}
}

int world_open(void **state)
{
	(void)state;
	world_begin(&(const struct cm_config){.grace_ms = 0});
	return 0;
}

int world_close(void **state)
{
	(void)state;
	nothing_sent();
	nothing_told();
	for (int i = 0; i < HOSTS; i++)
		cm_free(world.hosts[i].cm);
	return 0;
}

const struct sent *take_sent(enum cm_message_kind kind)
{
	static struct sent taken;

	if (!world.sent_count)
		fail_msg("no %s was sent", cm_message_name(kind));
	taken = world.sent[0];
	memmove(world.sent, world.sent + 1, --world.sent_count * sizeof(world.sent[0]));
	if (taken.message.kind != kind)
		fail_msg("%s was sent, not %s", cm_message_name(taken.message.kind), cm_message_name(kind));
	return &taken;
}

void world_deliver(const struct sent *sent)
{
	struct sent copy = *sent;

	for (int i = 0; i < HOSTS; i++)
		if (!memcmp(&world.hosts[i].gid, &copy.path.destination, sizeof(union ibv_gid)))
			cm_receive(world.hosts[i].cm, &copy.path, copy.mad, false);
}

void pass(enum cm_message_kind kind)
{
	world_deliver(take_sent(kind));
}

void pass_twice(enum cm_message_kind kind)
{
	struct sent copy = *take_sent(kind);

	world_deliver(&copy);
	world_deliver(&copy);
}

void inject(int from, const struct cm_message *message)
{
	struct sent sent = {.from = from, .path = path_from(from)};

	cm_pack(message, sent.mad);
	world_deliver(&sent);
}

void nothing_sent(void)
{
	if (world.sent_count)
		fail_msg("%s was sent", cm_message_name(world.sent[0].message.kind));
}

const struct told *take_event(void *owner, enum cm_event_kind kind, int status)
{
	static struct told taken;

	if (!world.told_count)
		fail_msg("event %d was not told", kind);
	taken = world.told[0];
	memmove(world.told, world.told + 1, --world.told_count * sizeof(world.told[0]));
	assert_int_equal(taken.kind, kind);
	assert_int_equal(taken.status, status);
	assert_ptr_equal(taken.owner, owner);
	return &taken;
}

void nothing_told(void)
{
	if (world.told_count)
		fail_msg("event %d was told", world.told[0].kind);
}

void pass_ms(uint64_t ms)
{
	uint64_t until = world.now_ns + ms * MS;

	for (;;) {
		struct host *next = &world.hosts[A];

		if (world.hosts[B].wakes_at_ns < next->wakes_at_ns)
			next = &world.hosts[B];
		if (next->wakes_at_ns > until)
			break;
		if (next->wakes_at_ns > world.now_ns)
			world.now_ns = next->wakes_at_ns;
		next->wakes_at_ns = UINT64_MAX;
		cm_run_timers(next->cm);
	}
	world.now_ns = until;
}

const struct sent *sent_after_ms(uint64_t ms, enum cm_message_kind kind)
{
	pass_ms(ms - 1);
	nothing_sent();
	pass_ms(1);
	/* A timer may be late by a tick of the wheel, 1.024 us (core/timer_wheel.h). */
	world.now_ns += 2000;
	pass_ms(0);
	return take_sent(kind);
}

/* ---- ids ------------------------------------------------------------------------------------------------------------- */

struct packet_path path_from(int from)
{
	return (struct packet_path){.source = world.hosts[from].gid,
				    .destination = world.hosts[!from].gid,
				    .type = IBV_GID_TYPE_ROCE_V2,
				    .hop_limit = 64};
}

struct cm_request a_request(int from)
{
	return (struct cm_request){.path = path_from(from),
				   .service_id = SERVICE,
				   .qp_type = IBV_QPT_RC,
				   .qpn = QPN_A,
				   .path_mtu = IBV_MTU_1024,
				   .responder_resources = 4,
				   .initiator_depth = 5,
				   .retry_count = 7,
				   .rnr_retry_count = 6};
}

struct cm_reply a_reply(int from)
{
	return (struct cm_reply){
		.qpn = from == B ? QPN_B : QPN_A, .responder_resources = 3, .initiator_depth = 2, .rnr_retry_count = 1};
}

struct cm_id *make(int host, void *owner)
{
	struct cm_id *id;

	assert_int_equal(cm_id_create(world.hosts[host].cm, owner, &id), 0);
	return id;
}

struct cm_id *make_listener(void)
{
	struct cm_id *id = make(B, listener);

	assert_int_equal(cm_listen(id, SERVICE), 0);
	return id;
}

struct connection requested(void)
{
	struct connection c = {.listener = make_listener(), .client = make(A, client)};
	struct cm_request request = a_request(A);

	assert_int_equal(cm_send_req(c.client, &request), 0);
	return c;
}

struct connection received(void)
{
	struct connection c = requested();

	pass(CM_REQ);
	c.server = take_event(listener, CM_EVENT_REQUEST, 0)->child;
	return c;
}

struct connection replied(void)
{
	struct connection c = received();
	struct cm_reply reply = a_reply(B);

	assert_int_equal(cm_send_rep(c.server, &reply), 0);
	return c;
}

struct connection answered(void)
{
	struct connection c = replied();

	pass(CM_REP);
	take_event(client, CM_EVENT_RESPONSE, 0);
	return c;
}

struct connection established(void)
{
	struct connection c = answered();

	assert_int_equal(cm_send_rtu(c.client, (struct cm_private){.data = NULL}), 0);
	pass(CM_RTU);
	take_event(server, CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(cm_id_state(c.client), CM_STATE_ESTABLISHED);
	assert_int_equal(cm_id_state(c.server), CM_STATE_ESTABLISHED);
	return c;
}

void forget(struct connection *c)
{
	struct cm_id *ids[] = {c->client, c->server, c->listener};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (ids[i])
			cm_id_destroy(ids[i]);
	world.sent_count = 0;
}
