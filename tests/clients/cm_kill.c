/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kills either end of an rdma_cm connection by SIGKILL, in each of its states and at random moments. This process, the
 * survivor, listens; in each round a victim connects to it, or it connects to a victim, and the victim is killed when it has
 * reached the round's stage, or after a random time.
 *
 *	cm_kill [--netns PATH] [--rounds N] [--seed N]        PATH: network namespace of the victims
 *
 * After that, within the times of rdma_cm (rdma-cm facts 3.5 and 6.5), the survivor on the same host immediately gets an event
 * without a call: DISCONNECTED for an established connection, REJECTED for a pending one, CONNECT_ERROR for one that could no
 * longer be confirmed. On another host the process with the RoCE port sends DREQs for the dead one; a request, like a DREQ,
 * ends when its retransmissions are used up, or when that process reports that the id has no owner. Over udp within a host
 * (SOFTHCA_LINK) the behaviour is that of another host. The port of a victim that listened can be bound again at once. A
 * connection with a bystander gets no event, and at the end the survivor holds no more than after the first rounds.
 */
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>

#include "peers.h"

/* Addresses of the hosts made by place.py. */
#define SURVIVOR_ADDRESS "10.77.0.1"
#define OTHER_ADDRESS "10.77.0.2"

enum { SURVIVOR_PORT = 7471, VICTIM_PORT = 7472, MOST_LINKS = 4096, WARM_UP = 40 };

/* Limit for detecting a death on the same host: it takes milliseconds, but the machine may be busy. Shorter than a repeat
 * (4.6 s). */
#define NEAR_SECONDS 3.0
/* Limit on another host: four sends, 130 ms apart, see below; plus a margin for a busy machine. */
#define FAR_SECONDS 10.0

/* Stages at which a victim reports and stops. CLIENT_: the victim connects; SERVER_: it listens. */
#define STAGES(STAGE)                                                                                                  \
	STAGE(CLIENT_SENT, "client: REQ sent, REP not read")                                                           \
	STAGE(CLIENT_UNANSWERED, "client: REQ sent, accepted when it is dead")                                         \
	STAGE(CLIENT_ESTABLISHED, "client: established")                                                               \
	STAGE(CLIENT_DREQ, "client: DREQ sent")                                                                        \
	STAGE(CLIENT_RELEASED, "client: DREQ came, not answered")                                                      \
	STAGE(CLIENT_ANY, "client: any moment")                                                                        \
	STAGE(SERVER_LISTENING, "server: listening, connected to when it is dead")                                     \
	STAGE(SERVER_REQUEST, "server: REQ not read")                                                                  \
	STAGE(SERVER_UNACCEPTED, "server: REQ read, not answered")                                                     \
	STAGE(SERVER_ACCEPTED, "server: REP sent, RTU not read")                                                       \
	STAGE(SERVER_ESTABLISHED, "server: established")                                                               \
	STAGE(SERVER_DREQ, "server: DREQ sent")                                                                        \
	STAGE(SERVER_RELEASED, "server: DREQ came, not answered")                                                      \
	STAGE(SERVER_REJECTS, "server: rejects, and ends by its own hand")                                             \
	STAGE(SERVER_ANY, "server: any moment")

#define FAREWELL "no, and good-bye"

#define STAGE(name, text) name,
enum stage { STAGES(STAGE) STAGE_COUNT };
#undef STAGE
#define STAGE(name, text) text,
static const char *const stage_texts[] = {STAGES(STAGE)};
#undef STAGE

static bool is_server(enum stage stage)
{
	return stage >= SERVER_LISTENING;
}

/* ---- both sides ---------------------------------------------------------------------------------------------------- */

static struct rdma_event_channel *channel;

static struct sockaddr_in address_of(const char *address, uint16_t port)
{
	struct sockaddr_in out = {.sin_family = AF_INET, .sin_port = htons(port)};

	inet_pton(AF_INET, address, &out.sin_addr);
	return out;
}

static struct rdma_cm_id *new_id(void *context)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, context, RDMA_PS_TCP))
		die("rdma_create_id: %s", strerror(errno));
	return id;
}

static struct rdma_cm_id *new_listener(const char *address, uint16_t port)
{
	struct sockaddr_in at = address_of(address, port);
	struct rdma_cm_id *id = new_id(NULL);

	if (rdma_bind_addr(id, (struct sockaddr *)&at) || rdma_listen(id, 64))
		die("port %u of %s: %s", port, address, strerror(errno));
	return id;
}

static void begin_to_connect(struct rdma_cm_id *id, const char *address, uint16_t port)
{
	struct sockaddr_in to = address_of(address, port);

	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000))
		die("rdma_resolve_addr: %s", strerror(errno));
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};

	if (rdma_create_qp(id, NULL, &attr))
		die("rdma_create_qp: %s", strerror(errno));
}

/* Private data of a request: its sender, the number of the round for a victim. */
enum { SURVIVOR_ASKS = -1, BYSTANDER_ASKS = -2 };

static void ask(struct rdma_cm_id *id, int32_t asker)
{
	struct rdma_conn_param param = {
		.private_data = &asker, .private_data_len = sizeof(asker), .retry_count = 7, .rnr_retry_count = 7};

	make_qp(id);
	if (rdma_connect(id, &param))
		die("rdma_connect: %s", strerror(errno));
}

static int accept_it(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};

	make_qp(id);
	return rdma_accept(id, &param);
}

static void forget(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (rdma_destroy_id(id))
		die("rdma_destroy_id: %s", strerror(errno));
}

static bool is_readable(int fd, int milliseconds)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	return poll(&wait, 1, milliseconds) > 0;
}

/* ---- the victim, and the bystander ------------------------------------------------------------------------------- */

static struct rdma_cm_event *read_event(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event: %s", strerror(errno));
	if (event->event != type)
		die("%s, status %d, in place of %s", rdma_event_str(event->event), event->status, rdma_event_str(type));
	return event;
}

static struct rdma_cm_id *expect(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = read_event(type);
	struct rdma_cm_id *id = event->id;

	rdma_ack_cm_event(event);
	return id;
}

static _Noreturn void stop_here(void)
{
	send_all(PROCESS_SOCKET, "!", 1);
	for (;;)
		pause();
}

static struct rdma_cm_id *connect_as(int32_t asker)
{
	struct rdma_cm_id *id = new_id(NULL);

	begin_to_connect(id, SURVIVOR_ADDRESS, SURVIVOR_PORT);
	expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, 2000))
		die("rdma_resolve_route: %s", strerror(errno));
	expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	ask(id, asker);
	return id;
}

static void client_victim(enum stage stage, int32_t round)
{
	struct rdma_cm_id *id = connect_as(round);

	if (stage == CLIENT_SENT || stage == CLIENT_UNANSWERED)
		stop_here();
	expect(RDMA_CM_EVENT_ESTABLISHED);
	if (stage == CLIENT_ESTABLISHED)
		stop_here();
	if (stage == CLIENT_RELEASED) {
		/* The survivor's DREQ has arrived. */
		is_readable(channel->fd, -1);
		stop_here();
	}
	rdma_disconnect(id);
	if (stage == CLIENT_DREQ)
		stop_here();
	expect(RDMA_CM_EVENT_DISCONNECTED);
	forget(id);
}

/* The survivor connects to it; a request that failed because the victim was slow is repeated. */
static void server_victim(enum stage stage)
{
	struct rdma_cm_id *id;

	if (stage == SERVER_REQUEST) {
		is_readable(channel->fd, -1);
		stop_here();
	}
	id = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	if (stage == SERVER_UNACCEPTED)
		stop_here();
	if (stage == SERVER_REJECTS) {
		/* Messages of completed calls are delivered even if the process ends immediately. */
		if (rdma_reject(id, FAREWELL, sizeof(FAREWELL)))
			die("rdma_reject: %s", strerror(errno));
		kill(getpid(), SIGKILL);
	}
	if (accept_it(id))
		die("rdma_accept: %s", strerror(errno));
	if (stage == SERVER_ACCEPTED)
		stop_here();
	expect(RDMA_CM_EVENT_ESTABLISHED);
	if (stage == SERVER_ESTABLISHED)
		stop_here();
	if (stage == SERVER_DREQ) {
		rdma_disconnect(id);
		stop_here();
	}
	is_readable(channel->fd, -1);
	if (stage == SERVER_RELEASED)
		stop_here();
	expect(RDMA_CM_EVENT_DISCONNECTED);
	rdma_disconnect(id);
	forget(id);
}

static int victim(char **argv)
{
	enum stage stage = (enum stage)atoi(argv[2]);

	role_name = "victim";
	channel = rdma_create_event_channel();
	if (is_server(stage)) {
		new_listener(argv[3], VICTIM_PORT);
		send_all(PROCESS_SOCKET, "r", 1);
		if (stage == SERVER_LISTENING)
			stop_here();
	}
	for (;;) {
		if (is_server(stage))
			server_victim(stage);
		else
			client_victim(stage, atoi(argv[4]));
	}
}

static int bystander(void)
{
	struct rdma_cm_id *id;
	char word;

	role_name = "bystander";
	channel = rdma_create_event_channel();
	id = connect_as(BYSTANDER_ASKS);
	expect(RDMA_CM_EVENT_ESTABLISHED);
	send_all(PROCESS_SOCKET, "!", 1);
	/* Makes no call of the library until it ends. */
	receive_all(PROCESS_SOCKET, &word, 1);
	if (is_readable(channel->fd, 0))
		die("an event has come");
	rdma_disconnect(id);
	expect(RDMA_CM_EVENT_DISCONNECTED);
	forget(id);
	send_all(PROCESS_SOCKET, "!", 1);
	return 0;
}

/* ---- the survivor ------------------------------------------------------------------------------------------------- */

/* One of the survivor's connections. */
struct link {
	struct rdma_cm_id *id;         /* NULL: destroyed */
	bool established, over, waits; /* waits: a request that is not accepted yet */
	bool failed;                   /* CONNECT_ERROR has come; events caused by the peer's end follow it */
	bool late;                     /* the request of a victim of an earlier round, already dead */
};

static struct {
	struct link links[MOST_LINKS], of_bystander;
	uint32_t count;
	enum stage stage;
	bool far, killed;
	int32_t round;
	const char *victims_address;
	double killed_at, slowest;
	unsigned int disconnected, rejected, unreachable, refused;
} survivor;

static struct link *new_link(struct rdma_cm_id *id)
{
	struct link *link = &survivor.links[survivor.count++];

	if (survivor.count >= MOST_LINKS)
		die("too many connections");
	*link = (struct link){.id = id};
	return link;
}

/* Returns true if its peer has been killed. */
static bool is_killed(const struct link *link)
{
	return survivor.killed || link->late;
}

static void connect_to_victim(void)
{
	struct link *link = new_link(NULL);

	link->id = new_id(link);
	begin_to_connect(link->id, survivor.victims_address, VICTIM_PORT);
}

static void accept_link(struct link *link)
{
	link->waits = false;
	if (!accept_it(link->id))
		return;
	/* The peer's end was already detected. */
	if (errno != EINVAL || !is_killed(link))
		die("rdma_accept: %s", strerror(errno));
	survivor.refused++;
	link->over = true;
}

static void hear_request(const struct rdma_cm_event *event)
{
	struct link *link;
	int32_t asker;

	memcpy(&asker, event->param.conn.private_data, sizeof(asker));
	link = asker == BYSTANDER_ASKS ? &survivor.of_bystander : new_link(NULL);
	*link = (struct link){.id = event->id, .waits = true, .late = asker >= 0 && asker != survivor.round};
	event->id->context = link;
	if (link == &survivor.of_bystander || survivor.stage != CLIENT_UNANSWERED || is_killed(link))
		accept_link(link);
}

static void hear_end(struct link *link, const struct rdma_cm_event *event)
{
	bool gone = is_killed(link) && !survivor.far;

	switch (event->event) {
	case RDMA_CM_EVENT_DISCONNECTED:
		/*
		 * A request to a process of another host that is gone: abandoned. Or the DREQ of the dead process
		 * comes before its RTU, which may have been lost (IBTA 12.9.8, REP sent).
		 */
		if (!link->established && !(survivor.far && is_killed(link)))
			die("DISCONNECTED of what was not connected");
		if (event->status && !(survivor.far && event->status == -ETIMEDOUT))
			die("DISCONNECTED with status %d", event->status);
		survivor.disconnected++;
		rdma_disconnect(link->id);
		break;
	case RDMA_CM_EVENT_REJECTED:
		/* Without a listener, or if the consumer rejects: the same as for a process that has ended. */
		if (survivor.stage == SERVER_REJECTS && !link->late) {
			/* With its own private data; otherwise the private data of a REJ that no process sent is zero. */
			if (event->status != 28 || event->param.conn.private_data_len < sizeof(FAREWELL) ||
			    memcmp(event->param.conn.private_data, FAREWELL, sizeof(FAREWELL)) != 0)
				die("REJECTED with status %d, and not by the victim's word", event->status);
		} else if (!is_killed(link) || link->established || (event->status != 8 && event->status != 28))
			die("REJECTED with status %d (killed %d, established %d)", event->status, is_killed(link),
			    link->established);
		survivor.rejected++;
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		/* Its REP has come, and no process is left to receive the RTU. */
		if (!gone || link->established || event->status != -1)
			die("CONNECT_ERROR with status %d", event->status);
		link->failed = true;
		survivor.rejected++;
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		if (gone || link->established || event->status != -ETIMEDOUT)
			die("UNREACHABLE with status %d", event->status);
		survivor.unreachable++;
		break;
	default:
		die("%s, status %d", rdma_event_str(event->event), event->status);
	}
	link->over = true;
	if (survivor.killed && seconds_now() - survivor.killed_at > survivor.slowest)
		survivor.slowest = seconds_now() - survivor.killed_at;
}

static void hear(struct rdma_cm_event *event)
{
	struct link *link = event->id->context;

	if (link && link->over && event->event != RDMA_CM_EVENT_TIMEWAIT_EXIT &&
	    !(link->failed && event->event == RDMA_CM_EVENT_REJECTED))
		die("%s after the end", rdma_event_str(event->event));
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		hear_request(event);
		break;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(event->id, 2000))
			die("rdma_resolve_route: %s", strerror(errno));
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ask(event->id, SURVIVOR_ASKS);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		link->established = true;
		if (survivor.stage == SERVER_ANY || survivor.stage == SERVER_RELEASED ||
		    survivor.stage == CLIENT_RELEASED)
			if (link != &survivor.of_bystander)
				rdma_disconnect(event->id);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		hear_end(link, event);
		break;
	}
	/* Repeated until it is killed. */
	if (survivor.stage == SERVER_ANY && event->event == RDMA_CM_EVENT_DISCONNECTED && !survivor.killed &&
	    link != &survivor.of_bystander)
		connect_to_victim();
}

static bool hear_next(int milliseconds)
{
	struct rdma_cm_event *event;

	if (!is_readable(channel->fd, milliseconds))
		return false;
	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event: %s", strerror(errno));
	hear(event);
	rdma_ack_cm_event(event);
	return true;
}

/* Continues until the victim has reached its stage. Returns false on timeout. */
static bool await_stage(const struct process *process, double until)
{
	char word;

	while (!is_readable(process->socket, 0)) {
		hear_next(1);
		if (seconds_now() > until)
			return false;
	}
	return receive_all(process->socket, &word, 1) && word == '!';
}

static bool all_over(void)
{
	for (uint32_t i = 0; i < survivor.count; i++)
		if (!survivor.links[i].over)
			return false;
	return true;
}

static _Noreturn void die_of_silence(double limit)
{
	for (uint32_t i = 0; i < survivor.count; i++)
		if (!survivor.links[i].over)
			fprintf(stderr, "connection %u of %u: %s, %s\n", i + 1, survivor.count,
				survivor.links[i].waits ? "not accepted" : "accepted or asked for",
				survivor.links[i].established ? "established" : "not established");
	die("after %.1f s nothing is heard of a victim's end", limit);
}

static void expect_ends(void)
{
	double limit = survivor.far ? FAR_SECONDS : NEAR_SECONDS;

	/* Messages in transit when it died come first. */
	while (hear_next(0))
		;
	for (uint32_t i = 0; i < survivor.count; i++) {
		struct link *link = &survivor.links[i];

		if (link->waits)
			accept_link(link);
		else if (survivor.far && link->established && !link->over)
			rdma_disconnect(link->id);
	}
	while (!all_over()) {
		hear_next(20);
		/* Established by a message in transit. */
		for (uint32_t i = 0; survivor.far && i < survivor.count; i++)
			if (survivor.links[i].established && !survivor.links[i].over)
				rdma_disconnect(survivor.links[i].id);
		if (seconds_now() - survivor.killed_at > limit)
			die_of_silence(limit);
	}
}

/* Another process on its host binds the port; on other hosts the next victim does it. */
static void expect_free_port(void)
{
	if (is_server(survivor.stage) && !survivor.far)
		forget(new_listener(SURVIVOR_ADDRESS, VICTIM_PORT));
}

static void forget_links(void)
{
	for (uint32_t i = 0; i < survivor.count; i++)
		forget(survivor.links[i].id);
	survivor.count = 0;
}

static void round_of(const char *netns, enum stage stage, uint64_t *random)
{
	char number[16], round[16];
	const char *arguments[] = {"victim", number, survivor.victims_address, round, NULL};
	struct process process;
	bool any = stage == CLIENT_ANY || stage == SERVER_ANY;
	char word;

	survivor.stage = stage;
	survivor.killed = false;
	snprintf(number, sizeof(number), "%d", (int)stage);
	snprintf(round, sizeof(round), "%d", (int)survivor.round);
	process = process_start(netns, arguments);
	if (is_server(stage)) {
		if (!receive_all(process.socket, &word, 1))
			die("the victim has ended");
		if (stage != SERVER_LISTENING)
			connect_to_victim();
	}
	if (stage == SERVER_REJECTS) {
		double begin = seconds_now();

		while (!all_over() && seconds_now() - begin < FAR_SECONDS)
			hear_next(20);
	} else if (any) {
		double until = seconds_now() + 1e-6 * draw_below(random, is_server(stage) ? 20000 : 50000);

		while (seconds_now() < until)
			hear_next(0);
	} else if (!await_stage(&process, seconds_now() + FAR_SECONDS)) {
		die("the victim does not come to its stage");
	}
	process_kill(&process);
	survivor.killed = true;
	survivor.killed_at = seconds_now();
	expect_free_port();
	if (stage == SERVER_LISTENING)
		connect_to_victim();
	expect_ends();
	forget_links();
}

static struct process start_bystander(const char *netns)
{
	static const char *const arguments[] = {"bystander", NULL};
	struct process process = process_start(netns, arguments);

	survivor.stage = CLIENT_ESTABLISHED;
	if (!await_stage(&process, seconds_now() + FAR_SECONDS))
		die("the bystander does not connect");
	while (!survivor.of_bystander.established)
		hear_next(20);
	return process;
}

static void end_bystander(const struct process *process)
{
	double begin = seconds_now();

	if (survivor.of_bystander.over)
		die("the bystander's connection has ended");
	send_all(process->socket, "!", 1);
	while (!survivor.of_bystander.over) {
		hear_next(20);
		if (seconds_now() - begin > FAR_SECONDS)
			die("the bystander does not disconnect");
	}
	if (!await_stage(process, seconds_now() + FAR_SECONDS))
		die("the bystander has failed");
	forget(survivor.of_bystander.id);
	process_kill(process);
}

static int survive(const char *netns, bool far, unsigned long rounds, uint64_t seed)
{
	static char name[128];
	struct process process = {.socket = -1};
	struct held held = {0};
	uint64_t random = seed;
	/* On another host, either a process remains to answer for the dead one, or none. */
	unsigned long from = netns ? rounds / 2 : 0;

	survivor.far = far;
	survivor.victims_address = netns ? OTHER_ADDRESS : SURVIVOR_ADDRESS;
	role_name = name;
	snprintf(name, sizeof(name), "survivor");
	channel = rdma_create_event_channel();
	if (!channel)
		die("rdma_create_event_channel: %s", strerror(errno));
	new_listener(SURVIVOR_ADDRESS, SURVIVOR_PORT);
	for (unsigned long i = 0; i < rounds; i++) {
		/* Each stage in turn, random moments more often. */
		enum stage stage = draw_below(&random, 4) ? (enum stage)(i % STAGE_COUNT)
				   : i & 1                ? SERVER_ANY
							  : CLIENT_ANY;

		snprintf(name, sizeof(name), "survivor, seed %lu, round %lu, %s", (unsigned long)seed, i,
			 stage_texts[stage]);
		if (i == from)
			process = start_bystander(netns);
		survivor.round = (int32_t)i;
		round_of(netns, stage, &random);
		if (i + 1 == WARM_UP) {
			usleep(100000);
			held = held_now();
		}
	}
	if (rounds > WARM_UP && from < WARM_UP)
		expect_no_more_held(&held, FAR_SECONDS);
	end_bystander(&process);
	printf("seed %lu, %lu kills: %u connections DISCONNECTED, %u REJECTED, %u UNREACHABLE, %u refused at accept; the last heard "
	       "of %.0f ms after the kill\n",
	       (unsigned long)seed, rounds, survivor.disconnected, survivor.rejected, survivor.unreachable,
	       survivor.refused, survivor.slowest * 1e3);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"netns", required_argument, NULL, 'n'},
		{"rounds", required_argument, NULL, 'r'},
		{"seed", required_argument, NULL, 's'},
		{NULL, 0, NULL, 0},
	};
	const char *netns = NULL, *link = getenv("SOFTHCA_LINK");
	unsigned long rounds = 140;
	uint64_t seed = 1;
	int option;
	bool far;

	if (argc > 1 && strcmp(argv[1], "victim") == 0)
		return victim(argv);
	if (argc > 1 && strcmp(argv[1], "bystander") == 0)
		return bystander();
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'n')
			netns = optarg;
		else if (option == 'r')
			rounds = strtoul(optarg, NULL, 0);
		else if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	/* Another host detects a death by retransmissions: 2 times 1 ms and 128 ms, four times. Within a host they are too
	 * late to help. */
	far = netns || (link && !strcmp(link, "udp"));
	if (far) {
		setenv("SOFTHCA_CM_RESPONSE_TIMEOUT", "15", 1);
		setenv("SOFTHCA_CM_PACKET_LIFETIME", "8", 1);
		setenv("SOFTHCA_CM_RETRIES", "3", 1);
	}
	return survive(netns, far, rounds, seed);
}
