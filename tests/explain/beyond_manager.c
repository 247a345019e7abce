/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of datagrams of the connection manager (transport/gsi/gsi.h); the test replaces the manager. */
#include "test_case.h"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "beyond.h"
#include "core/epoch.h"
#include "core/limits.h"
#include "hca/hca.h"
#include "kernel_has.h"
#include "process/commands.h"
#include "cm_host/services.h"
#include "link/host/host.h"
#include "link/shm/shm.h"
#include "link/udp/udp.h"
#include "transport/gsi/gsi.h"
#include "wire/mad.h"

enum { SPACE = 0x0106, PORT = 7471, QPN = 0x5022 };

static void receive(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES], bool waited)
{
	(void)hca;
	(void)path;
	(void)mad;
	(void)waited;
}

static void lose(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES], enum mad_loss why)
{
	(void)why;
	receive(hca, path, mad, false);
}

static void forget(uint32_t process)
{
	(void)process;
}

static void forget_service(uint64_t service)
{
	(void)service;
}

static const struct management manager = {
	.receive = receive, .lost = lose, .process_ended = forget, .service_ended = forget_service};

/* IBTA 13.4.3; 12.6.5; annex A11: a REQ for the port. */
static uint8_t request[MAD_BYTES] = {1, 7, 2, 3, [17] = 0x10, [36] = SPACE >> 8, SPACE & 0xff, PORT >> 8, PORT & 0xff};

/* A packet as a link delivers it, from an address of this host. */
static struct packet packet_of(const struct link *link, const uint8_t *mad, uint32_t length)
{
	struct packet packet = {
		.transport = IBV_QPT_UD,
		.message = MESSAGE_SEND,
		.place = PLACE_ONLY,
		.destination_qpn = 1,
		.source_qpn = QPN,
		.qkey = 0x80010000,
		.count = 1,
		.link = link,
		.own_path = {.source = hca_device(0)->gids[0].gid, .destination = hca_device(0)->gids[0].gid},
	};

	stream_begin(&packet.payload, NULL, 0);
	stream_add_memory(&packet.payload, mad, length);
	return packet;
}

static void give(struct packet packet)
{
	packet.path = &packet.own_path;
	management = &manager;
	epoch_enter();
	gsi_receive(registry()->gsi, &packet);
	epoch_leave();
	management = NULL;
}

BEYOND_CASE(MAD_QKEY)
{
	struct packet packet = packet_of(routes->local(), request, MAD_BYTES);

	packet.qkey = 0x11111111;
	give(packet);
	expect_line(NULL, RULE_MAD_QKEY,
		    "mlx5_0 qp 0x1: a datagram of queue pair 0x5022 for the connection manager has Q_Key 0x11111111 "
		    "and must have 0x80010000: dropped. [214 MAD_QKEY; ");
}

BEYOND_CASE(MAD_LENGTH)
{
	give(packet_of(routes->local(), request, 24));
	expect_line(NULL, RULE_MAD_LENGTH,
		    "mlx5_0 qp 0x1: a datagram of queue pair 0x5022 for the connection manager has 24 bytes and must "
		    "have 256, without immediate data: dropped. [215 MAD_LENGTH; ");
}

BEYOND_CASE(MAD_CLASS)
{
	uint8_t other[MAD_BYTES] = {1, 4, 1, 1};

	give(packet_of(routes->local(), other, MAD_BYTES));
	expect_line(
		NULL, RULE_MAD_CLASS,
		"mlx5_0 qp 0x1: a datagram of queue pair 0x5022 for queue pair 1 begins with 0x1040101; datagrams of the connection manager begin with 0x1070203 (base version, class, class version, method): dropped. [216 MAD_CLASS; ");
}

BEYOND_CASE(MAD_ELSEWHERE)
{
	/* A REP for an id of slot 0, which no process has. */
	uint8_t reply[MAD_BYTES] = {1, 7, 2, 3, [17] = 0x13, [31] = 1};

	give(packet_of(link_shm(), reply, MAD_BYTES));
	expect_line(
		NULL, RULE_MAD_ELSEWHERE,
		"mlx5_0 qp 0x1: a datagram of the connection manager names a communication id of process slot 0, which does not belong to this process: dropped. [217 MAD_ELSEWHERE; ");
}

BEYOND_CASE(MAD_STRANGER)
{
	const struct hca *hca = hca_device(0);

	if (hca->settings.link == LINK_UDP)
		skip();
	give(packet_of(link_udp(), request, MAD_BYTES));
	expect_line(NULL, RULE_MAD_STRANGER,
		    "mlx5_0 qp 0x1: a datagram for the connection manager came from the network and claims to come "
		    "from 0x");
}

/* Runs @body in its own process: the listener is another process, and waiting requests are lost with it. */
static void in_a_child(int (*body)(void))
{
	pid_t pid;
	int status;

	/* The device starts its thread there. */
	if (!kernel_has_threads_after_fork())
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(20);
		_exit(body());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Returns true if a record has this @rule and @text; later ones may be of requests that ended meanwhile. */
static bool is_explained(enum explain_rule rule, const char *text)
{
	struct explain_record record = {0};
	char line[1200];

	while (explain_previous(hca_device(0), 0, record.serial, &record)) {
		explain_render("mlx5_0", &record, line, sizeof(line));
		if (record.rule == rule && !strncmp(line, text, strlen(text)))
			return true;
		printf("# %s\n", line);
	}
	fflush(stdout);
	return false;
}

static int fill_queue(void)
{
	struct hca *hca = hca_device(0);
	const struct packet_path path = {.source = hca->gids[0].gid, .destination = hca->gids[0].gid};

	management = &manager;
	/* No process listens, so each request waits for this time. */
	hca->settings.cm_grace_ms = 60000;
	for (int i = 0; i < 2 * LIMIT_CM_QUEUE; i++)
		gsi_send(hca, &path, request);
	gsi_wake(registry()->gsi);
	return !is_explained(
		RULE_MAD_QUEUE_FULL,
		"mlx5_0: a datagram of the connection manager was lost: 4096 of at most 4096 are waiting, or there is not enough memory or no thread for more. [232 ");
}

BEYOND_CASE(MAD_QUEUE_FULL)
{
	in_a_child(fill_queue);
}

static int connect_without_descriptors(void)
{
	int ends[2], error = 1;
	char expected[200];
	pid_t other;

	if (pipe(ends))
		return 1;
	other = fork();
	if (!other) {
		error = host_service_claim((uint64_t)SPACE << 16 | PORT, false);
		if (!error)
			error = host_service_listen((uint64_t)SPACE << 16 | PORT);
		/* Lives as long as the process that asks. */
		_exit(write(ends[1], &error, sizeof(error)) != sizeof(error) || pause());
	}
	if (read(ends[0], &error, sizeof(error)) != sizeof(error) || error)
		return 1;
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 1024});
	epoch_enter();
	if (host_peer_of_service((uint64_t)SPACE << 16 | PORT) || errno != EMFILE)
		error = 1;
	epoch_leave();
	kill(other, SIGKILL);
	snprintf(
		expected, sizeof(expected),
		"mlx5_0: no connection could be made to a process that is not known, which listens on port 7471 of port "
		"space 0x106: EMFILE. [219 ");
	return error || !is_explained(RULE_SERVICE_NO_CONNECTION, expected);
}

BEYOND_CASE(SERVICE_NO_CONNECTION)
{
	in_a_child(connect_without_descriptors);
}
