/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the communication manager of host B. Host A has a connection with it. Host C sends messages: valid ones of all kinds,
 * with fields changed, with the right ids or those of A's connection, repeated, or returned to their sender. B's program reacts
 * at random while time passes. An input is struct head and a list of struct step; make-seeds.py writes the same.
 *
 * Invariants, for anything that C sends from its own address:
 *
 * - the connection with A is unharmed: neither end gets an event, it ends normally, and another one can be made;
 * - an id gets no event twice, none after its end, and none after it was destroyed;
 * - B sends only to its peers, and no manager sends or is called while it holds its lock;
 * - nothing is left when all ids are destroyed, in any state, including after the process has left or forked.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "cm/manager.h"
#include "process/commands.h"
#include "world.h"

enum { A, B, C, HOSTS };
enum {
	MOST_ENDS = 48,
	MOST_QUEUED = 256,
	MOST_STEPS = 96,
	EXCHANGES = 6,
	MOST_ALARMS = 4096,
	LISTENERS = 2,
	SPARE = 8
};

#define MS UINT64_C(1000000)
#define SERVICE UINT64_C(0x01061c06)
#define LATE_SERVICE UINT64_C(0x01061c07)
#define SIDR_SERVICE UINT64_C(0x01111c06)
#define GUID(host) (UINT64_C(0xa0a1a2a3a4a5a600) + (host))
#define QPN(host, number) (0x1000u * ((host) + 1) + (number))

struct head {
	uint8_t grace, retries, response_timeout, ending;
};

/* Values of head.ending. */
enum { END_DESTROY, END_LEAVE, END_FORK, ENDINGS };

struct step {
	uint8_t op, kind, aid, which;
	uint8_t field[2]; /* of the message, as numbered in the table; 0xff: none */
	uint8_t byte, to; /* for OP_RAW */
	uint8_t value[2][4];
};

enum op {
	OP_MESSAGE, /* C sends a message */
	OP_RAW,     /* as OP_MESSAGE, with a byte of the MAD overwritten */
	OP_AGAIN,   /* C repeats its last message of exchange `which` */
	OP_BACK,    /* C returns B's last message of exchange `which` */
	OP_TIME,    /* value[0] milliseconds */
	OP_PROGRAM, /* B's program does `kind` to its id `which` */
	OP_CONNECT, /* B's program requests a connection or a service from C */
	OP_ENDED,   /* B is informed that C has gone, or refuses */
	OP_VERDICT, /* answer of listeners from now on */
	OP_LISTEN,  /* listen at LATE_SERVICE */
	OPS,
};

enum {
	AID_IDS = 1 << 0,     /* use the ids of the exchange; otherwise 0 */
	AID_HONEST = 1 << 1,  /* use those of A's connection */
	AID_SPOOFED = 1 << 2, /* send from A's address: the invariants for A do not apply then */
	AID_LATE = 1 << 3,    /* LATE_SERVICE */
	AID_QPN = 1 << 4,     /* a queue pair for each exchange; otherwise one for all */
};

enum action { ACCEPT, REJECT, READY, ESTABLISH, DISCONNECT, ANSWER, DESTROY, QUERY, ACTIONS };

/* An id as held by the program of B or A. */
struct end {
	struct cm_id *id; /* NULL: destroyed */
	bool over, honest;
	uint32_t told[CM_EVENT_SIDR_RESPONSE + 1];
};

/* C's state of a connection, real or invented. */
struct exchange {
	uint32_t comm_id, peer_id, peer_qpn;
	uint8_t sent[CM_MAD_BYTES], came[CM_MAD_BYTES];
	bool has_sent, has_come;
};

struct queued {
	struct packet_path path;
	uint8_t mad[CM_MAD_BYTES];
};

struct host {
	struct cm *cm;
	uint64_t wakes_at_ns;
	bool inside; /* in a handler */
};

static struct {
	uint64_t now_ns, random;
	struct host hosts[C];
	union ibv_gid gids[HOSTS];
	struct end ends[MOST_ENDS];
	uint32_t end_count;
	struct exchange exchanges[EXCHANGES];
	uint32_t next_exchange;
	struct queued queue[MOST_QUEUED];
	uint32_t first, count;
	enum cm_verdict verdict;
	struct end *late, *client, *server;
	bool spoofed, quiet;
} run;

/* ---- what managers call ---------------------------------------------------------------------------------------------- */

static struct end *new_end(void)
{
	WORLD_CHECK(run.end_count < MOST_ENDS);
	return &run.ends[run.end_count++];
}

static bool is(const union ibv_gid *gid, int host)
{
	return !memcmp(gid, &run.gids[host], sizeof(*gid));
}

static void send_mad(void *context, const struct packet_path *path, const uint8_t mad[CM_MAD_BYTES])
{
	struct host *host = context;
	int own = (int)(host - run.hosts);
	struct queued *queued;

	WORLD_CHECK(!host->inside);
	WORLD_CHECK(is(&path->source, own));
	WORLD_CHECK(cm_mad_kind(mad) != CM_NO_MESSAGE);
	WORLD_CHECK(own == A || is(&path->destination, A) || is(&path->destination, C));
	WORLD_CHECK(!run.quiet || run.spoofed || is(&path->destination, C));
	WORLD_CHECK(run.count < MOST_QUEUED);
	queued = &run.queue[(run.first + run.count++) % MOST_QUEUED];
	queued->path = *path;
	memcpy(queued->mad, mad, CM_MAD_BYTES);
}

static void wake_at(void *context, uint64_t deadline_ns)
{
	((struct host *)context)->wakes_at_ns = deadline_ns;
}

static uint64_t now_ns(void *context)
{
	(void)context;
	return run.now_ns;
}

static uint64_t draw(void *context)
{
	(void)context;
	run.random ^= run.random << 13;
	run.random ^= run.random >> 7;
	return run.random ^= run.random << 17;
}

static int claim_slot(void *context)
{
	return (int)((struct host *)context - run.hosts) + 1;
}

static enum cm_verdict decide(void *owner, struct cm_id *child, const struct cm_event *event, void **child_owner,
			      uint16_t *reason)
{
	const struct end *listener = owner;
	struct end *end;

	WORLD_CHECK(listener && listener->id && event->kind == CM_EVENT_REQUEST && event->message && event->path);
	if (run.verdict != CM_TAKE) {
		*reason = (uint16_t)draw(NULL);
		return run.verdict;
	}
	/* The last ones are reserved for the end of the run. */
	if (run.quiet && run.end_count > MOST_ENDS - SPARE)
		return CM_DROP;
	end = new_end();
	end->id = child;
	end->honest = is(&event->path->source, A);
	*child_owner = end;
	return CM_TAKE;
}

static void tell(void *owner, const struct cm_event *event)
{
	struct end *end = owner;

	WORLD_CHECK(end && end->id);
	WORLD_CHECK(event->kind <= CM_EVENT_SIDR_RESPONSE && event->kind != CM_EVENT_REQUEST);
	WORLD_CHECK(!run.quiet || run.spoofed || !end->honest);
	WORLD_CHECK(++end->told[event->kind] == 1);
	WORLD_CHECK(!end->over || event->kind == CM_EVENT_TIMEWAIT_EXIT);
	WORLD_CHECK(!end->told[CM_EVENT_TIMEWAIT_EXIT] || event->kind == CM_EVENT_TIMEWAIT_EXIT);
	switch (event->kind) {
	case CM_EVENT_REJECTED:
	case CM_EVENT_UNREACHABLE:
	case CM_EVENT_DISCONNECTED:
	case CM_EVENT_SIDR_RESPONSE:
		end->over = true;
		break;
	case CM_EVENT_TIMEWAIT_EXIT:
		WORLD_CHECK(end->over);
		break;
	default:
		WORLD_CHECK(event->message || event->kind == CM_EVENT_ESTABLISHED);
		break;
	}
}

/* Only for B's manager: A receives no requests. */
static enum cm_verdict request(void *owner, struct cm_id *child, const struct cm_event *event, void **child_owner,
			       uint16_t *reason)
{
	enum cm_verdict verdict;

	run.hosts[B].inside = true;
	verdict = decide(owner, child, event, child_owner, reason);
	run.hosts[B].inside = false;
	return verdict;
}

static const struct cm_functions functions = {.send = send_mad,
					      .wake_at = wake_at,
					      .now_ns = now_ns,
					      .random = draw,
					      .claim_slot = claim_slot,
					      .request = request,
					      .event = tell};

/* ---- what C learns ----------------------------------------------------------------------------------------------------- */

static struct exchange *exchange_of(uint32_t comm_id)
{
	for (int i = 0; i < EXCHANGES; i++)
		if (run.exchanges[i].comm_id == comm_id)
			return &run.exchanges[i];
	return NULL;
}

static void learn(const uint8_t *mad)
{
	struct exchange *exchange = NULL;
	struct cm_message message;

	cm_unpack(mad, &message);
	switch (message.kind) {
	case CM_REQ:
		exchange = &run.exchanges[run.next_exchange++ % EXCHANGES];
		exchange->peer_id = message.req.local_comm_id;
		exchange->peer_qpn = message.req.local_qpn;
		break;
	case CM_SIDR_REQ:
		exchange = &run.exchanges[run.next_exchange++ % EXCHANGES];
		exchange->peer_id = message.sidr_req.request_id;
		break;
	case CM_REP:
		exchange = exchange_of(message.rep.remote_comm_id);
		if (exchange) {
			exchange->peer_id = message.rep.local_comm_id;
			exchange->peer_qpn = message.rep.local_qpn;
		}
		break;
	case CM_SIDR_REP:
		exchange = exchange_of(message.sidr_rep.request_id);
		break;
	default:
		/* The ids of all other messages are at the same place. */
		exchange = exchange_of(message.mra.remote_comm_id);
		if (exchange && message.mra.local_comm_id)
			exchange->peer_id = message.mra.local_comm_id;
		break;
	}
	if (!exchange)
		return;
	memcpy(exchange->came, mad, CM_MAD_BYTES);
	exchange->has_come = true;
}

/* Delivers until no message is in flight. */
static void settle(void)
{
	while (run.count) {
		struct queued queued = run.queue[run.first];

		run.first = (run.first + 1) % MOST_QUEUED;
		run.count--;
		if (is(&queued.path.destination, C))
			learn(queued.mad);
		else
			cm_receive(run.hosts[is(&queued.path.destination, A) ? A : B].cm, &queued.path, queued.mad,
				   false);
	}
}

static void pass_ms(uint64_t ms)
{
	uint64_t until_ns = run.now_ns + ms * MS;

	for (uint32_t alarms = 0;; alarms++) {
		struct host *host = run.hosts[A].wakes_at_ns < run.hosts[B].wakes_at_ns ? &run.hosts[A] : &run.hosts[B];

		if (host->wakes_at_ns > until_ns)
			break;
		WORLD_CHECK(alarms < MOST_ALARMS);
		if (host->wakes_at_ns > run.now_ns)
			run.now_ns = host->wakes_at_ns;
		host->wakes_at_ns = UINT64_MAX;
		cm_run_timers(host->cm);
		settle();
	}
	run.now_ns = until_ns;
}

/* ---- what C sends ------------------------------------------------------------------------------------------------------ */

static struct packet_path path_to(int from, int to)
{
	return (struct packet_path){
		.source = run.gids[from], .destination = run.gids[to], .type = IBV_GID_TYPE_ROCE_V2, .hop_limit = 64};
}

static uint32_t number(const uint8_t value[4])
{
	uint32_t out;

	memcpy(&out, value, sizeof(out));
	return le32toh(out);
}

/* The sender named by a message. */
struct claim {
	uint32_t own_id, peer_id, own_qpn, peer_qpn;
	uint64_t guid;
};

static struct claim claim_of(const struct step *step)
{
	const struct exchange *exchange = &run.exchanges[step->which % EXCHANGES];
	struct claim claim = {.own_qpn = QPN(C, step->aid & AID_QPN ? step->which % EXCHANGES : 0),
			      .peer_qpn = exchange->peer_qpn,
			      .guid = GUID(C)};
	struct cm_parameters known;

	if (step->aid & AID_IDS) {
		claim.own_id = exchange->comm_id;
		claim.peer_id = exchange->peer_id;
	}
	if (step->aid & AID_HONEST && run.server->id) {
		cm_id_query(run.server->id, &known);
		claim = (struct claim){known.remote_comm_id, known.local_comm_id, known.remote_qpn, known.local_qpn,
				       known.remote_ca_guid};
	}
	return claim;
}

static void compose_req(struct cm_req *req, const struct step *step, const struct claim *claim)
{
	int from = step->aid & AID_SPOOFED ? A : C;

	*req = (struct cm_req){.local_comm_id = claim->own_id,
			       .service_id = step->aid & AID_LATE ? LATE_SERVICE : SERVICE,
			       .local_ca_guid = claim->guid,
			       .local_qpn = claim->own_qpn,
			       .remote_response_timeout = 20,
			       .local_response_timeout = 20,
			       .retry_count = 7,
			       .pkey = 0xffff,
			       .path_mtu = IBV_MTU_1024,
			       .max_cm_retries = 15,
			       .primary_hop_limit = 64,
			       .primary_ack_timeout = 18};
	memcpy(req->primary_local_gid, &run.gids[from], sizeof(run.gids[from]));
	memcpy(req->primary_remote_gid, &run.gids[B], sizeof(run.gids[B]));
}

static void compose(struct cm_message *message, const struct step *step)
{
	const struct claim claim = claim_of(step);
	uint64_t guid = htobe64(claim.guid);

	*message = (struct cm_message){.kind = 1 + step->kind % (CM_MESSAGE_KINDS - 1), .transaction_id = step->which};
	switch (message->kind) {
	case CM_REQ:
		compose_req(&message->req, step, &claim);
		break;
	case CM_REP:
		message->rep = (struct cm_rep){.local_comm_id = claim.own_id,
					       .remote_comm_id = claim.peer_id,
					       .local_qpn = claim.own_qpn,
					       .target_ack_delay = 16,
					       .local_ca_guid = claim.guid};
		break;
	case CM_REJ:
		message->rej = (struct cm_rej){.local_comm_id = claim.own_id,
					       .remote_comm_id = claim.peer_id,
					       .message_rejected = step->to & 3,
					       .info_length = sizeof(guid),
					       .reason = step->byte};
		memcpy(message->rej.info, &guid, sizeof(guid));
		break;
	case CM_DREQ:
		message->dreq = (struct cm_dreq){claim.own_id, claim.peer_id, claim.peer_qpn, {0}};
		break;
	case CM_SIDR_REQ:
		message->sidr_req =
			(struct cm_sidr_req){.request_id = claim.own_id,
					     .pkey = 0xffff,
					     .service_id = step->aid & AID_LATE ? LATE_SERVICE : SIDR_SERVICE};
		break;
	case CM_SIDR_REP:
		message->sidr_rep = (struct cm_sidr_rep){.request_id = claim.peer_id, .qpn = claim.own_qpn};
		break;
	default:
		/* MRA, RTU, DREP: ids come first. */
		message->mra.local_comm_id = claim.own_id;
		message->mra.remote_comm_id = claim.peer_id;
		break;
	}
	if (message->kind == CM_MRA) {
		message->mra.message_acknowledged = step->to & 3;
		message->mra.service_timeout = step->byte & 31;
	}
}

static uint32_t fields_of(enum cm_message_kind kind, const struct cm_field **first)
{
	const struct cm_field *field = cm_fields;
	uint32_t count = 0;

	while (field->message != kind)
		field++;
	*first = field;
	while (field->name && field->message == kind) {
		field++;
		count++;
	}
	return count;
}

static void change_field(struct cm_message *message, uint8_t which, const uint8_t value[4])
{
	const struct cm_field *fields, *field;
	uint32_t count = fields_of(message->kind, &fields);
	uint64_t wide = (uint64_t)number(value) << 32 | number(value);

	if (which == 0xff)
		return;
	field = &fields[which % count];
	if (field->width)
		memcpy((uint8_t *)&message->req + field->offset, &wide, field->size);
	else
		((uint8_t *)&message->req)[field->offset + value[0] % field->size] = value[1];
}

static void deliver(const struct step *step, const uint8_t *mad)
{
	struct packet_path path = path_to(step->aid & AID_SPOOFED ? A : C, B);
	/* Buffer of the exact size, so that reads beyond it are detected. */
	static uint8_t *bytes;

	if (!bytes)
		bytes = world_exact(CM_MAD_BYTES);
	memcpy(bytes, mad, CM_MAD_BYTES);
	run.spoofed |= step->aid & AID_SPOOFED;
	cm_receive(run.hosts[B].cm, &path, bytes, false);
}

static void attack(const struct step *step)
{
	struct exchange *exchange = &run.exchanges[step->which % EXCHANGES];
	struct cm_message message;
	uint8_t mad[CM_MAD_BYTES];

	if (step->op % OPS == OP_BACK) {
		if (exchange->has_come)
			deliver(step, exchange->came);
		return;
	}
	if (step->op % OPS == OP_AGAIN) {
		if (exchange->has_sent)
			deliver(step, exchange->sent);
		return;
	}
	compose(&message, step);
	for (int i = 0; i < 2; i++)
		change_field(&message, step->field[i], step->value[i]);
	cm_pack(&message, mad);
	if (step->op % OPS == OP_RAW)
		mad[step->byte] = step->to;
	memcpy(exchange->sent, mad, CM_MAD_BYTES);
	exchange->has_sent = true;
	deliver(step, mad);
}

/* ---- actions of B's program --------------------------------------------------------------------------------------------- */

static struct cm_private words(const struct step *step)
{
	return (struct cm_private){step->value, sizeof(step->value)};
}

static void accept_end(struct end *end, const struct step *step)
{
	struct cm_reply reply = {.qpn = QPN(B, step->which), .private_data = words(step)};
	struct cm_sidr_reply sidr_reply = {.qpn = QPN(B, step->which), .qkey = 1, .private_data = words(step)};

	if (cm_id_state(end->id) == CM_STATE_SIDR_REQ_RCVD)
		cm_send_sidr_rep(end->id, &sidr_reply);
	else
		cm_send_rep(end->id, &reply);
}

static void do_action(struct end *end, const struct step *step)
{
	const struct cm_private nothing = {.data = NULL};
	struct cm_parameters known;

	switch (step->kind % ACTIONS) {
	case ACCEPT:
		accept_end(end, step);
		break;
	case REJECT:
		if (!cm_send_rej(end->id, step->byte, words(step), nothing))
			end->over = true;
		break;
	case READY:
		cm_send_rtu(end->id, words(step));
		break;
	case ESTABLISH:
		cm_establish(end->id);
		break;
	case DISCONNECT:
		cm_send_dreq(end->id, words(step));
		break;
	case ANSWER:
		cm_send_drep(end->id, words(step));
		break;
	case DESTROY:
		cm_id_destroy(end->id);
		end->id = NULL;
		break;
	default:
		cm_id_query(end->id, &known);
		WORLD_CHECK(known.state < CM_STATES);
		break;
	}
}

static void act(const struct step *step)
{
	struct end *end = &run.ends[step->which % (run.end_count ? run.end_count : 1)];

	if (!end->id || end->honest || end < run.ends + LISTENERS)
		return;
	if (step->kind % ACTIONS == DESTROY && end == run.late)
		run.late = NULL;
	do_action(end, step);
}

static struct cm_request request_to(int from, int to, uint32_t qpn)
{
	return (struct cm_request){.path = path_to(from, to),
				   .service_id = SERVICE,
				   .qp_type = IBV_QPT_RC,
				   .qpn = qpn,
				   .path_mtu = IBV_MTU_1024};
}

static void ask_c(const struct step *step)
{
	struct cm_request ask = request_to(B, C, QPN(B, step->which));
	struct cm_sidr_request sidr_ask = {.path = ask.path, .service_id = SIDR_SERVICE};
	struct end *end;

	if (run.end_count > MOST_ENDS - SPARE)
		return;
	end = new_end();
	WORLD_CHECK(!cm_id_create(run.hosts[B].cm, end, &end->id));
	if (step->aid & AID_LATE)
		ask.qp_type = IBV_QPT_XRC_SEND;
	WORLD_CHECK(!(step->kind & 1 ? cm_send_sidr_req(end->id, &sidr_ask) : cm_send_req(end->id, &ask)));
}

static enum cm_peer_fate is_c(void *argument, const struct cm_peer *peer)
{
	const enum cm_peer_fate *fate = argument;

	return is(&peer->path->destination, C) ? *fate : CM_PEER_LIVES;
}

static struct end *new_listener(uint64_t service_id)
{
	struct end *end = new_end();

	WORLD_CHECK(!cm_id_create(run.hosts[B].cm, end, &end->id));
	WORLD_CHECK(!cm_listen(end->id, service_id));
	return end;
}

static void take_step(const struct step *step)
{
	switch (step->op % OPS) {
	case OP_TIME:
		pass_ms(number(step->value[0]) & 0x3fffff);
		break;
	case OP_PROGRAM:
		act(step);
		break;
	case OP_CONNECT:
		ask_c(step);
		break;
	case OP_ENDED:
		if (step->kind & 1)
			cm_host_refuses(run.hosts[B].cm, &run.gids[C]);
		else
			cm_peer_ended(run.hosts[B].cm, is_c,
				      &(enum cm_peer_fate){step->kind & 2 ? CM_PEER_REPLACED : CM_PEER_ENDED});
		break;
	case OP_VERDICT:
		run.verdict = (enum cm_verdict)(step->kind & 3);
		break;
	case OP_LISTEN:
		if (!run.late && run.end_count <= MOST_ENDS - SPARE)
			run.late = new_listener(LATE_SERVICE);
		break;
	default:
		attack(step);
		break;
	}
	settle();
}

/* ---- a run ------------------------------------------------------------------------------------------------------------- */

static void begin(const struct head *head)
{
	memset(&run, 0, sizeof(run));
	run.now_ns = 1000 * MS;
	run.random = 88172645463325252u;
	for (int i = 0; i < HOSTS; i++) {
		/* ::ffff:192.0.2.1, … */
		memcpy(run.gids[i].raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2", 15);
		run.gids[i].raw[15] = (uint8_t)(i + 1);
	}
	for (uint32_t i = 0; i < EXCHANGES; i++)
		run.exchanges[i].comm_id = 0xc0000000 + i;
	for (int i = A; i < C; i++) {
		const struct cm_config config = {.functions = &functions,
						 .context = &run.hosts[i],
						 .hca = world.hca,
						 .ca_guid = GUID(i),
						 .ack_delay = 16,
						 .response_timeout = i == B ? head->response_timeout & 31 : 20,
						 .retries = i == B ? head->retries & 15 : 15,
						 .packet_lifetime = 16,
						 .grace_ms = head->grace & 1 ? 50 : 0};

		run.hosts[i].wakes_at_ns = UINT64_MAX;
		run.hosts[i].cm = cm_create(&config);
		WORLD_CHECK(run.hosts[i].cm);
	}
}

/* Connects A to B until both are ESTABLISHED. */
static void connect_honestly(uint32_t qpn)
{
	struct cm_request ask = request_to(A, B, QPN(A, qpn));
	struct cm_reply reply = {.qpn = QPN(B, 0x100 + qpn)};
	const struct cm_private nothing = {.data = NULL};

	run.client = new_end();
	run.client->honest = true;
	WORLD_CHECK(!cm_id_create(run.hosts[A].cm, run.client, &run.client->id));
	WORLD_CHECK(!cm_send_req(run.client->id, &ask));
	settle();
	run.server = &run.ends[run.end_count - 1];
	WORLD_CHECK(run.server->honest && run.server != run.client);
	WORLD_CHECK(!cm_send_rep(run.server->id, &reply));
	settle();
	WORLD_CHECK(!cm_send_rtu(run.client->id, nothing));
	settle();
	WORLD_CHECK(cm_id_state(run.client->id) == CM_STATE_ESTABLISHED);
	WORLD_CHECK(cm_id_state(run.server->id) == CM_STATE_ESTABLISHED);
}

static void disconnect_honestly(void)
{
	const struct cm_private nothing = {.data = NULL};

	WORLD_CHECK(!cm_send_dreq(run.client->id, nothing));
	settle();
	WORLD_CHECK(run.server->told[CM_EVENT_DISCONNECTED] == 1);
	WORLD_CHECK(!cm_send_drep(run.server->id, nothing));
	settle();
	WORLD_CHECK(run.client->told[CM_EVENT_DISCONNECTED] == 1);
	WORLD_CHECK(cm_id_state(run.client->id) == CM_STATE_TIMEWAIT);
}

static void expect_unharmed(void)
{
	run.quiet = false;
	run.verdict = CM_TAKE;
	if (run.spoofed)
		return;
	WORLD_CHECK(cm_id_state(run.client->id) == CM_STATE_ESTABLISHED);
	WORLD_CHECK(cm_id_state(run.server->id) == CM_STATE_ESTABLISHED);
	disconnect_honestly();
	connect_honestly(2);
}

static void destroy_all(void)
{
	for (uint32_t i = 0; i < run.end_count; i++) {
		if (run.ends[i].id)
			cm_id_destroy(run.ends[i].id);
		run.ends[i].id = NULL;
		settle();
	}
	/* Longer than a request waits for a listener. */
	pass_ms(1000);
}

static void finish(const struct head *head)
{
	int ending = head->ending % ENDINGS;

	if (ending == END_LEAVE)
		while (cm_leave_next(run.hosts[B].cm))
			;
	else if (ending == END_FORK)
		cm_after_fork(run.hosts[B].cm);
	run.count = ending == END_FORK ? 0 : run.count;
	settle();
	destroy_all();
	for (int i = A; i < C; i++) {
		struct cm *cm = run.hosts[i].cm;

		WORLD_CHECK(!cm->ids && !cm->listeners && !cm->held && !cm->held_count && !cm->table.count);
		cm_free(cm);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	world.hca = hca_device(0);
	WORLD_CHECK(world.hca);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct head head = {0};
	struct step step;

	memcpy(&head, data, size < sizeof(head) ? size : sizeof(head));
	begin(&head);
	new_listener(SERVICE);
	new_listener(SIDR_SERVICE);
	connect_honestly(1);
	run.quiet = true;
	for (size_t at = sizeof(head), i = 0; at + sizeof(step) <= size && i < MOST_STEPS; at += sizeof(step), i++) {
		memcpy(&step, data + at, sizeof(step));
		take_step(&step);
	}
	expect_unharmed();
	finish(&head);
	return 0;
}
