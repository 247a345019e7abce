/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the whole receiver of the udp link: an input is a list of datagrams, each with the other results of recvmsg(2), some
 * of them trains. The rest is the library's own code: addresses, ICRC and identifications, parsing, joining, transfer to
 * another process through a ring, which is emptied as by that process, the queue pairs, and queue pair 1, whose connection
 * manager only records datagrams (fuzz/cm.c covers the rest).
 *
 * Checks that nothing is read after the end of a datagram, that each poll terminates, that memory without remote rights does
 * not change, and that the connection manager gets only datagrams of its class.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

#include "transport/gsi/gsi.h"
#include "transport/run/run.h"
#include "core/epoch.h"
#include "core/tunables.h"
#include "progress/progress.h"
#include "filter/faults.h"
#include "filter/filter.h"
#include "link/host/table.h"
#include "wire/link.h"
#include "wire/roce.h"
#include "link/shm/peer.h"
#include "link/udp/parts.h"
#include "world.h"

enum {
	DATAGRAMS = 128,
	OTHER_SLOT = 5, /* slot of the process that receives packets addressed to it */
	OTHER_QPN = OTHER_SLOT << HOST_SLOT_BITS | 7,
	MANAGER_BYTES = ROCE_BTH_BYTES + 8 + MAD_BYTES + ROCE_ICRC_BYTES,
	/* Bits of head.aid: fields that a fuzzer can hardly guess are corrected. */
	AID_QPN = 1 << 0,     /* of head.pair */
	AID_PSN = 1 << 1,     /* the number that the queue pair expects, and those after it */
	AID_TARGET = 1 << 2,  /* RETH names writable memory */
	AID_ICRC = 1 << 3,    /* for head.identification */
	AID_COUNT = 1 << 4,   /* identifications increase from packet to packet */
	AID_OTHER = 1 << 5,   /* for the other process */
	AID_PEER = 1 << 6,    /* from the address of the queue pair's peer */
	AID_MANAGER = 1 << 7, /* for queue pair 1, as a valid datagram */
	/* Bits of head.manner. */
	MANNER_IPV6 = 1 << 0,
	MANNER_MAPPED = 1 << 1,  /* IPv4 as an IPv6 socket shows it */
	MANNER_INNER = 1 << 2,   /* from this host through loopback */
	MANNER_NOWHERE = 1 << 3, /* without destination address */
	MANNER_SHORT = 1 << 4,   /* a traffic class of one byte */
	MANNER_FILTERS = 1 << 5, /* with faults; until the end of the input */
};

struct head {
	uint8_t aid, manner, pair, traffic_class;
	uint8_t segment[2], length[2], identification[2]; /* little-endian */
	uint8_t port, reserved;
};

static struct {
	const uint8_t *data;
	size_t size;
	struct poller *poller, *manager_poller;
	struct shm_ring *rings[2];
	struct host_peer host;
	struct shm_peer peer, other_end;
	struct filters *filters;
} this_run;

/* ---- what the receiver calls --------------------------------------------------------------------------------------- */

int __wrap_progress_add(struct poller *poller);
int __wrap_progress_add(struct poller *poller)
{
	/* The receiver's record comes first; queue pair 1 has one when a request waits for its listener. */
	if (this_run.poller)
		this_run.manager_poller = poller;
	else
		this_run.poller = poller;
	return 0;
}

/* No thread sleeps here. */
void __wrap_progress_watch(struct watched_fd *watched, uint32_t events);
void __wrap_progress_watch(struct watched_fd *watched, uint32_t events)
{
	(void)watched;
	(void)events;
}

void __wrap_progress_wake(void);
void __wrap_progress_wake(void)
{
}

/* Sent packets are discarded. */
static enum link_result swallow(struct hca *hca, struct run *run)
{
	(void)hca;
	(void)run;
	return LINK_SENT;
}

const struct link *__wrap_link_udp(void);
const struct link *__wrap_link_udp(void)
{
	static const struct link udp = {.name = "udp",
					.routed = true,
					.shared = true,
					.most = TUNABLE_UDP_RUN_BYTES,
					.window = TUNABLE_UDP_WINDOW_BYTES,
					.send = swallow};

	return &udp;
}

/* ---- the connection manager --------------------------------------------------------------------------------------- */

static void manager_receive(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES], bool waited)
{
	uint8_t copy[MAD_BYTES];

	(void)waited;
	memcpy(copy, mad, sizeof(copy));
	WORLD_CHECK(hca == world.hca && mad_word(copy) == MAD_CM_WORD);
	WORLD_CHECK(path->type == IBV_GID_TYPE_ROCE_V2);
}

/* This process sent none. */
static void manager_lost(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES],
			 enum mad_loss why)
{
	(void)hca;
	(void)path;
	(void)mad;
	(void)why;
	WORLD_CHECK(false);
}

static void manager_process_ended(uint32_t process)
{
	(void)process;
}

static void manager_service_ended(uint64_t service)
{
	(void)service;
}

static const struct management manager = {.receive = manager_receive,
					  .lost = manager_lost,
					  .process_ended = manager_process_ended,
					  .service_ended = manager_service_ended};

/* ---- datagrams ------------------------------------------------------------------------------------------------------- */

static uint16_t word(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static void put32(uint8_t *to, uint32_t value)
{
	value = htobe32(value);
	memcpy(to, &value, sizeof(value));
}

static union ibv_gid address_of(const struct head *head, bool source)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff, 192, 0, 2, source ? 9 : 1}};

	if (head->manner & MANNER_IPV6)
		memset(gid.raw + 10, 0x11, 2);
	else if (head->manner & MANNER_INNER)
		memcpy(gid.raw + 12, (const uint8_t[]){127, 83, 0, source ? 1 : 2}, 4);
	return gid;
}

static uint16_t port_of(const struct head *head)
{
	return (uint16_t)(0xc000 | head->port);
}

static void put_icrc(const struct head *head, uint16_t identification, uint8_t *bytes, uint32_t length)
{
	struct packet_path path = {.source = address_of(head, true), .destination = address_of(head, false)};
	uint32_t icrc =
		roce_icrc(&path, port_of(head), (uint16_t)world.hca->settings.roce_port, identification, bytes, length);

	memcpy(bytes + length, &icrc, sizeof(icrc));
}

static struct hca_qp *qp_of(const struct head *head)
{
	return world.pair[head->pair % WORLD_PAIRS].end[head->pair / WORLD_PAIRS & 1].qp;
}

/* A queue pair accepts packets only from its peer. In one input the peer may move. */
static void move_peer(const struct head *head)
{
	struct hca_qp *qp = qp_of(head);

	qp->path.source = address_of(head, false);
	qp->path.destination = address_of(head, true);
}

/* Corrects packet @number of the datagram. */
static void put_right(const struct head *head, uint32_t number, uint8_t *bytes, uint32_t length)
{
	const struct hca_qp *qp = qp_of(head);
	uint16_t identification = word(head->identification);

	if (length < ROCE_BTH_BYTES + ROCE_ICRC_BYTES)
		return;
	if (head->aid & AID_QPN)
		put32(bytes + 4, (uint32_t)bytes[4] << 24 | qp->number);
	if (head->aid & AID_OTHER)
		put32(bytes + 4, (uint32_t)bytes[4] << 24 | OTHER_QPN);
	if (head->aid & AID_MANAGER && length >= MANAGER_BYTES) {
		put32(bytes + 4, (uint32_t)bytes[4] << 24 | GSI_QPN);
		put32(bytes + 12, GSI_QKEY);
		put32(bytes + 20, MAD_CM_WORD);
	}
	if (head->aid & AID_PSN && !(head->aid & AID_MANAGER))
		put32(bytes + 8, (uint32_t)bytes[8] << 24 | psn_add(qp->responder.expected_psn, number));
	if (head->aid & AID_TARGET && packet_opcodes[bytes[0]].headers & HEADER_RETH && length >= 32) {
		put32(bytes + 12, 0);
		put32(bytes + 16, (uint32_t)WORLD_BASE + 0x1040);
		put32(bytes + 20, WORLD_KEY(WORLD_FULL));
	}
	if (head->aid & AID_ICRC)
		put_icrc(head, (uint16_t)(identification + (head->aid & AID_COUNT ? number : 0)), bytes,
			 length - ROCE_ICRC_BYTES);
}

/* Appends a control message. */
static void put_control(struct msghdr *message, size_t *used, int level, int type, const void *data, size_t size)
{
	struct cmsghdr header = {.cmsg_level = level, .cmsg_type = type, .cmsg_len = CMSG_LEN(size)};
	uint8_t *at = (uint8_t *)message->msg_control + *used;

	WORLD_CHECK(*used + CMSG_SPACE(size) <= message->msg_controllen);
	memset(at, 0, CMSG_SPACE(size));
	memcpy(at, &header, sizeof(header));
	memcpy(at + CMSG_LEN(0), data, size);
	*used += CMSG_SPACE(size);
}

static void put_addresses(struct msghdr *message, size_t *used, const struct head *head)
{
	const union ibv_gid source = address_of(head, true), destination = address_of(head, false);
	bool six = head->manner & (MANNER_IPV6 | MANNER_MAPPED);
	struct sockaddr_in6 from6 = {.sin6_family = AF_INET6, .sin6_port = htobe16(port_of(head))};
	struct sockaddr_in from4 = {.sin_family = AF_INET, .sin_port = htobe16(port_of(head))};
	struct in6_pktinfo info6 = {.ipi6_ifindex = 1};
	struct in_pktinfo info4 = {.ipi_ifindex = 1};

	memcpy(&from6.sin6_addr, &source, sizeof(from6.sin6_addr));
	memcpy(&from4.sin_addr, source.raw + 12, sizeof(from4.sin_addr));
	memcpy(&info6.ipi6_addr, &destination, sizeof(info6.ipi6_addr));
	memcpy(&info4.ipi_addr, destination.raw + 12, sizeof(info4.ipi_addr));
	message->msg_namelen = six ? sizeof(from6) : sizeof(from4);
	memcpy(message->msg_name, six ? (void *)&from6 : (void *)&from4, message->msg_namelen);
	if (head->manner & MANNER_NOWHERE)
		return;
	if (six)
		put_control(message, used, IPPROTO_IPV6, IPV6_PKTINFO, &info6, sizeof(info6));
	else
		put_control(message, used, IPPROTO_IP, IP_PKTINFO, &info4, sizeof(info4));
}

static void put_controls(struct msghdr *message, const struct head *head)
{
	uint32_t flow = htobe32((uint32_t)head->traffic_class << 20 | 0x12345);
	int segment = word(head->segment), traffic_class = head->traffic_class, hops = 64;
	size_t used = 0;

	put_addresses(message, &used, head);
	if (head->manner & MANNER_IPV6) {
		put_control(message, &used, IPPROTO_IPV6, IPV6_FLOWINFO, &flow, sizeof(flow));
		put_control(message, &used, IPPROTO_IPV6, IPV6_HOPLIMIT, &hops, sizeof(hops));
	} else {
		put_control(message, &used, IPPROTO_IP, IP_TOS, &traffic_class,
			    head->manner & MANNER_SHORT ? 1 : sizeof(traffic_class));
		put_control(message, &used, IPPROTO_IP, IP_TTL, &hops, sizeof(hops));
	}
	if (segment)
		put_control(message, &used, IPPROTO_UDP, UDP_GRO, &segment, sizeof(segment));
	message->msg_controllen = used;
}

static void turn_filters_on(void)
{
	if (world.hca->filters)
		return;
	world.hca->filters = this_run.filters;
	__atomic_store_n(&the_registry.filters, 1, __ATOMIC_RELAXED);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	uint8_t *bytes = message->msg_iov->iov_base;
	struct head head = {0};
	uint32_t length, segment;

	(void)fd;
	(void)flags;
	if (this_run.size < sizeof(head)) {
		errno = EAGAIN;
		return -1;
	}
	memcpy(&head, this_run.data, sizeof(head));
	this_run.data += sizeof(head);
	this_run.size -= sizeof(head);
	length = word(head.length);
	if (length > this_run.size)
		length = (uint32_t)this_run.size;
	if (length > message->msg_iov->iov_len)
		length = (uint32_t)message->msg_iov->iov_len;
	memcpy(bytes, this_run.data, length);
	this_run.data += length;
	this_run.size -= length;
	if (head.aid & AID_PEER)
		move_peer(&head);
	segment = word(head.segment) ? word(head.segment) : length;
	for (uint32_t at = 0, number = 0; at < length; at += segment)
		put_right(&head, number++, bytes + at, length - at < segment ? length - at : segment);
	put_controls(message, &head);
	if (head.manner & MANNER_FILTERS)
		turn_filters_on();
	return length;
}

/* ---- running -------------------------------------------------------------------------------------------------------- */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct fault_script script;
	struct fault_error error;

	(void)argc;
	(void)argv;
	world_make();
	management = &manager;
	for (int i = 0; i < 2; i++)
		this_run.rings[i] = world_exact(sizeof(*this_run.rings[i]));
	WORLD_CHECK(!fault_script_parse(&script, "drop 5%; duplicate 10%; corrupt payload 5%; seed 1", &error));
	WORLD_CHECK(!filters_set_faults(world.hca, &script));
	this_run.filters = world.hca->filters;
	WORLD_CHECK(!udp_receive_begin(world.hca));
	udp_receive_from(0, NULL);
	host_table.state[0] = SLOT_OWN;
	this_run.host = (struct host_peer){.pid = getpid(), .socket.fd = -1, .shm = &this_run.peer};
	host_table.peer[OTHER_SLOT] = &this_run.host;
	return 0;
}

static struct shm_peer end_of(struct shm_ring *in, struct shm_ring *out)
{
	return (struct shm_peer){
		.host = &this_run.host, .out.ring = out, .in.ring = in, .own = &out->state, .other = &in->state};
}

/* Clears only lines that may have been written: a ring is large. */
static void begin(const struct world_connection *connection)
{
	world_reset();
	for (int i = 0; i < 2; i++) {
		memset(&this_run.rings[i]->state, 0, sizeof(this_run.rings[i]->state));
		memset(this_run.rings[i]->slot, 0, sizeof(this_run.rings[i]->slot));
		this_run.rings[i]->head = 0;
	}
	this_run.peer = end_of(this_run.rings[0], this_run.rings[1]);
	this_run.other_end = end_of(this_run.rings[1], this_run.rings[0]);
	shm_await(&this_run.peer);
	shm_await(&this_run.other_end);
	world.hca->filters = NULL;
	the_registry.filters = 0;
	world.hca->link = __wrap_link_udp();
	for (int i = 0; i < WORLD_PAIRS; i++)
		world_connect(&world.pair[i], connection);
}

/* Returns false if no datagram came. */
static bool poll_once(void)
{
	struct run run;
	bool found;

	epoch_enter();
	run_begin(&run);
	found = this_run.poller->poll(this_run.poller, &run);
	if (this_run.manager_poller)
		this_run.manager_poller->poll(this_run.manager_poller, &run);
	/* Frames for the other process have no receiver there. */
	while (shm_poll_peer(&(struct host_peer){.pid = getpid(), .shm = &this_run.other_end}, &run))
		;
	run_finish(&run);
	epoch_leave();
	WORLD_CHECK(!this_run.other_end.broken);
	return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct world_connection connection = {
		.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.mtu = IBV_MTU_1024,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
	};

	begin(&connection);
	this_run.data = data;
	this_run.size = size;
	for (int i = 0; i < DATAGRAMS && poll_once(); i++)
		;
	/* Discards requests that wait for their listener. */
	gsi_flush(the_registry.gsi);
	world_check_memory();
	for (int i = 0; i < WORLD_PAIRS; i++)
		world_disconnect(&world.pair[i]);
	world.hca->link = NULL;
	world_take_events();
	return 0;
}
