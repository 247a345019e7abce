/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of the udp link (link/udp/udp.h). Each case runs in its own process and network. */
#include "own_network.h"
#include "test_case.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "beyond.h"
#include "kernel_has.h"
#include "core/epoch.h"
#include "core/tunables.h"
#include "explain/explain.h"
#include "hca/hca.h"
#include "lint/state.h"
#include "process/commands.h"
#include "wire/roce.h"
#include "link/udp/udp.h"
#include "link/udp/groups.h"
#include "transport/run/run.h"

enum { UNABLE = 77, PORT = 4791, QPN = 0x4011, PEER = 0x5022, OTHER_USER = 65533 };

static struct hca *hca;

/* ---- sendmsg: the kernel that refuses ------------------------------------------------------------------------------ */

static int refuse_trains, refuse_all;

ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	/* A train is longer than any single packet. */
	int refusal = message->msg_iov->iov_len > 4200 ? refuse_trains : 0;

	if (!refuse_all && !refusal)
		return __real_sendmsg(fd, message, flags);
	errno = refuse_all ? refuse_all : refusal;
	return -1;
}

/* ---- a process in its own network ----------------------------------------------------------------------------- */

static void __attribute__((noreturn)) give_up(const char *what)
{
	printf("# %s\n", what);
	fflush(stdout);
	_exit(1);
}

/* Waits for the explanation by @rule that begins with the format, after the name of the device. */
static void __attribute__((format(printf, 2, 3))) expect(enum explain_rule rule, const char *format, ...)
{
	char expected[600], line[1200] = "nothing was explained";
	struct explain_record record;
	va_list args;

	va_start(args, format);
	vsnprintf(expected, sizeof(expected), format, args);
	va_end(args);
	for (int i = 0; i < 500; i++) {
		for (uint64_t before = 0; explain_previous(hca, 0, before, &record); before = record.serial) {
			explain_render("mlx5_0", &record, line, sizeof(line));
			if (record.rule == rule && strstr(line, expected))
				return;
		}
		usleep(10000);
	}
	give_up(line);
}

static void set_mtu(int mtu)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_mtu = mtu};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (ioctl(fd, SIOCSIFMTU, &lo))
		give_up("lo cannot be changed");
	close(fd);
}

static void in_a_child(void (*body)(void))
{
	pid_t pid;
	int status;

	/* The device starts its thread there. */
	if (!kernel_has_threads_after_fork())
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!own_network())
			_exit(UNABLE);
		hca = hca_device(0);
		hca->settings.link = LINK_UDP;
		hca->link = NULL;
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == UNABLE)
		skip();
	assert_int_equal(status, 0);
}

/* ---- the port ------------------------------------------------------------------------------------------------------ */

static int take_port(void)
{
	const struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (bind(fd, (const struct sockaddr *)&name, sizeof(name)))
		give_up("the port cannot be bound");
	return fd;
}

static void port_taken(void)
{
	take_port();
	prctl(PR_SET_NAME, "a name of 15 ch");
	udp_begin(hca);
	expect(RULE_UDP_PORT_TAKEN,
	       "UDP port 4791, on which packets from other hosts arrive, is in use by process %d (a name of 15 ch)",
	       (int)getpid());
}

/* A descriptor in transit between two processes belongs to neither. */
static void port_taken_unseen(void)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec vector = {.iov_base = control, .iov_len = 1};
	struct msghdr message = {
		.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int ends[2], fd = take_port();

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(int));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || __real_sendmsg(ends[0], &message, 0) != 1)
		give_up("the descriptor cannot be sent");
	close(fd);
	udp_begin(hca);
	expect(RULE_UDP_PORT_TAKEN_UNSEEN,
	       "UDP port 4791, on which packets from other hosts arrive, is in use by a program");
}

static void port_refused(void)
{
	hca->settings.roce_port = 1;
	if (setuid(OTHER_USER))
		_exit(UNABLE);
	udp_begin(hca);
	expect(RULE_UDP_PORT_REFUSED, "UDP port 1, on which packets from other hosts arrive, cannot be opened: EACCES");
}

static void port_of_another_user(void)
{
	int ends[2][2];
	pid_t owner;
	char begun;

	if (geteuid() || pipe(ends[0]) || pipe(ends[1]))
		_exit(UNABLE);
	owner = fork();
	if (!owner) {
		close(ends[1][1]);
		udp_begin(hca);
		if (write(ends[0][1], "", 1) != 1)
			_exit(1);
		/* Waits until this process has ended; it must not kill the child then. */
		_exit((int)read(ends[1][0], &begun, 1));
	}
	if (read(ends[0][0], &begun, 1) != 1 || setuid(OTHER_USER))
		give_up("no other process");
	udp_begin(hca);
	expect(RULE_UDP_PORT_OTHER_USER,
	       "UDP port 4791 of this host belongs to process %d of user 0, which passes nothing on to user %d: no packets arrive from other hosts",
	       (int)owner, OTHER_USER);
}

/* Takes the place of the receiving process. */
static int take_name(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "softhca/1/port/%d", PORT);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&name,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) ||
	    listen(fd, 1))
		give_up("the name is taken");
	return fd;
}

static void port_kept(void)
{
	take_name();
	udp_begin(hca);
	expect(RULE_UDP_PORT_KEPT,
	       "process %d receives for this host, and has not shared UDP port 4791 with this process", (int)getpid());
}

static void port_not_given(void)
{
	int name = take_name(), connection;

	udp_begin(hca);
	connection = accept(name, NULL, NULL);
	if (write(connection, "something", 9) != 9)
		give_up("no listener");
	expect(RULE_UDP_PORT_NOT_GIVEN,
	       "process %d passes a descriptor that is not the socket of UDP port 4791: refused", (int)getpid());
}

/* Returns true if this process has a socket that is bound to the port. */
static bool shares_port(void)
{
	for (int fd = 0; fd < 64; fd++) {
		struct sockaddr_in6 name = {0};
		socklen_t length = sizeof(name);

		if (!getsockname(fd, (struct sockaddr *)&name, &length) && name.sin6_family == AF_INET6 &&
		    name.sin6_port == htons(PORT))
			return true;
	}
	return false;
}

static void port_silent(void)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int ends[2], stranger = socket(AF_INET, SOCK_DGRAM, 0);
	pid_t owner;
	char begun;

	if (pipe(ends))
		_exit(UNABLE);
	owner = fork();
	if (!owner) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		udp_begin(hca);
		if (write(ends[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	if (read(ends[0], &begun, 1) != 1)
		give_up("no other process");
	udp_begin(hca);
	for (int i = 0; i < 5000 && !shares_port(); i++)
		usleep(1000);
	kill(owner, SIGSTOP);
	waitpid(owner, NULL, WUNTRACED);
	if (sendto(stranger, "", 1, 0, (const struct sockaddr *)&to, sizeof(to)) != 1)
		give_up("nothing can be sent");
	expect(RULE_UDP_PORT_SILENT,
	       "no process took packets of other hosts from UDP port 4791 for 250 ms, although process %d receives for this host: this process receives in its place until that one continues",
	       (int)owner);
}

/* ---- sending ------------------------------------------------------------------------------------------------------- */

static union ibv_gid gid_of(const char *text)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (inet_pton(AF_INET, text, gid.raw + 12) != 1)
		inet_pton(AF_INET6, text, gid.raw);
	return gid;
}

static void send_write(const char *source, const char *destination, uint32_t bytes)
{
	static uint8_t payload[65536];
	const struct packet_path path = {
		.source = gid_of(source), .destination = gid_of(destination), .type = IBV_GID_TYPE_ROCE_V2};
	struct packet *packet;
	struct run run;

	epoch_enter();
	run_begin(&run);
	packet = run_slot(&run);
	memset(packet, 0, offsetof(struct packet, own_path));
	packet->transport = IBV_QPT_RC;
	packet->message = MESSAGE_WRITE;
	packet->place = PLACE_ONLY;
	packet->destination_qpn = PEER;
	packet->source_qpn = QPN;
	packet->mtu = 4096;
	packet->count = (bytes + 4095) / 4096;
	packet->path = &path;
	stream_begin(&packet->payload, NULL, 0);
	stream_add_memory(&packet->payload, payload, bytes);
	link_udp()->send(hca, &run);
	epoch_leave();
}

static void not_sent(void)
{
	send_write("127.0.0.1", "10.11.12.13", 8);
	expect(RULE_UDP_NOT_SENT,
	       "mlx5_0 qp 0x4011: packets for queue pair 0x5022 at 0x0:0xffff0a0b0c0d cannot be sent: ENETUNREACH");
}

static void too_long(void)
{
	set_mtu(1500);
	send_write("127.0.0.1", "127.0.0.1", 4096);
	expect(RULE_UDP_TOO_LONG,
	       "mlx5_0 qp 0x4011: packets for queue pair 0x5022 have 4128 bytes with their headers, more than the interface takes: they are sent in fragments");
}

/* What ibv_modify_qp(3) reports to the warnings about misuse, of a queue pair whose peer is on another host. */
static void path_mtu_too_large(void)
{
	struct user_qp *client = to_user_qp(qp[CLIENT]);
	struct lint_qp state = {.qp = client};
	struct ibv_qp_attr attr = {.path_mtu = IBV_MTU_1024, .ah_attr = {.grh = {.dgid = gid_of("10.11.12.13")}}};

	set_mtu(1500);
	strcpy(hca->gids[0].netdev, "lo");
	lint_wanted = misuse_bit(RULE_PATH_MTU_TOO_LARGE);
	client->lint = &state;
	lint_qp_modified(client, &attr, IBV_QP_AV | IBV_QP_PATH_MTU);
	attr.path_mtu = IBV_MTU_4096;
	lint_qp_modified(client, &attr, IBV_QP_PATH_MTU);
	if (state.warned)
		give_up("a right path MTU is warned of");
	lint_qp_modified(client, &attr, IBV_QP_AV | IBV_QP_PATH_MTU);
	expect(RULE_PATH_MTU_TOO_LARGE,
	       "mlx5_0 qp 0x%x ibv_modify_qp: path_mtu is 4096 bytes, and a packet to another host has at most 1024 "
	       "bytes of data on the interface of GID index 0",
	       client->base.qp_num);
}

static void no_room(void)
{
	refuse_all = EAGAIN;
	send_write("127.0.0.1", "127.0.0.1", 4096);
	expect(RULE_UDP_NO_ROOM,
	       "mlx5_0 qp 0x4011: packets for queue pair 0x5022 were discarded: the socket had no room for 20 ms");
}

static void families(void)
{
	send_write("127.0.0.1", "fd00::1", 8);
	expect(RULE_UDP_FAMILIES, "the address 0xfd00000000000000:0x1 cannot be reached from the source GID "
				  "0x0:0xffff7f000001: one is IPv4, the other IPv6");
}

static void no_trains(void)
{
	refuse_trains = EIO;
	send_write("127.0.0.1", "127.0.0.1", 16384);
	expect(RULE_UDP_NO_TRAINS,
	       "mlx5_0 qp 0x4011: the kernel does not split datagrams into packets (EIO): each packet is sent");
}

/* ---- receiving ----------------------------------------------------------------------------------------------------- */

/* Sends a datagram for queue pair @qpn from the test's own socket. */
static void send_frame(int fd, uint32_t qpn)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct packet_path path = {.source = gid_of("127.0.0.1"), .destination = gid_of("127.0.0.1")};
	uint8_t frame[24] = {0x64, 0, 0xff, 0xff, 0, (uint8_t)(qpn >> 16), (uint8_t)(qpn >> 8), (uint8_t)qpn};
	struct sockaddr_in name;
	socklen_t length = sizeof(name);
	uint32_t icrc;

	if (getsockname(fd, (struct sockaddr *)&name, &length))
		give_up("no name");
	icrc = roce_icrc(&path, ntohs(name.sin_port), PORT, 0, frame, 20);
	memcpy(frame + 20, &icrc, sizeof(icrc));
	if (sendto(fd, frame, sizeof(frame), 0, (const struct sockaddr *)&to, sizeof(to)) != sizeof(frame))
		give_up("not sent");
}

static int open_stranger(void)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	udp_begin(hca);
	if (bind(fd, (const struct sockaddr *)&any, sizeof(any)))
		give_up("no port");
	return fd;
}

static void frame_of_group(void)
{
	send_frame(open_stranger(), 0xffffff);
	expect(RULE_FRAME_GROUP, "mlx5_0 qp 0xffffff: a frame for queue pair 0xffffff came to a multicast address");
}

/* A program owns the port and does not allow sharing. */
static void no_group(void)
{
	const union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 7}};

	take_port();
	udp_join(hca, &group);
	expect(RULE_UDP_NO_GROUP, "mlx5_0: datagrams that other processes and hosts send to multicast group "
				  "0x0:0xffffef000007 do not arrive: EADDRINUSE");
}

#define CASE(rule, body)                                                                                               \
	BEYOND_CASE(rule)                                                                                              \
	{                                                                                                              \
		in_a_child(body);                                                                                      \
	}
CASE(UDP_PORT_TAKEN, port_taken)
CASE(UDP_PORT_TAKEN_UNSEEN, port_taken_unseen)
CASE(UDP_PORT_REFUSED, port_refused)
CASE(UDP_PORT_OTHER_USER, port_of_another_user)
CASE(UDP_PORT_SILENT, port_silent)
CASE(UDP_PORT_NOT_GIVEN, port_not_given)
CASE(UDP_PORT_KEPT, port_kept)
CASE(UDP_NOT_SENT, not_sent)
CASE(UDP_TOO_LONG, too_long)
CASE(PATH_MTU_TOO_LARGE, path_mtu_too_large)
CASE(UDP_NO_ROOM, no_room)
CASE(UDP_FAMILIES, families)
CASE(UDP_NO_TRAINS, no_trains)
CASE(FRAME_GROUP, frame_of_group)
CASE(UDP_NO_GROUP, no_group)
