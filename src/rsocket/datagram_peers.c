/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Destinations of datagrams, and the UDP headers with the QP number of the sender (rdma-cm 5):
 *
 *     0 tag 0x55555555 | 4 IP version | 5 operation: 0 data, 7 reply | 6 length 16 or 28 | 7 zero | 8 QP number be32 | 12 own IP
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/entry_points.h"
#include "rdmacm/devices.h"
#include "rdmacm/sockaddr.h"
#include "rsocket/datagram.h"
#include "rsocket/wait.h"

enum { TAG = 0x55555555, OP_DATA = 0, OP_ANSWER = 7, LENGTH_V4 = 16, LENGTH_V6 = 28 };

struct header {
	uint32_t tag;
	uint8_t version, operation, length, zero;
	uint32_t qp_number;
	uint8_t address[16];
};

_Static_assert(sizeof(struct header) == LENGTH_V6, "rdma-cm 5");

static bool peer_is_at(const struct datagram_peer *peer, const struct sockaddr *address)
{
	const struct sockaddr *own = (const struct sockaddr *)&peer->address;

	return own->sa_family == address->sa_family && address_equal(own, address) &&
	       address_port(own) == address_port(address);
}

bool datagram_map(const struct rsocket *rs, struct sockaddr_storage *address)
{
	union ibv_gid gid = address_gid((struct sockaddr *)address);
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6,
				      .sin6_port = htobe16(address_port((struct sockaddr *)address))};

	if (address->ss_family == AF_INET && rs->family == AF_INET6) {
		memcpy(&mapped.sin6_addr, &gid, sizeof(gid));
		address_copy(address, (struct sockaddr *)&mapped);
	}
	return address->ss_family == rs->family;
}

/* Determines the source address that @peer sees as a GID. The kernel reports it for a connected socket. */
static void peer_query_source(const struct rsocket *rs, struct datagram_peer *peer)
{
	const struct sockaddr *to = (const struct sockaddr *)&peer->address;
	struct sockaddr *own = (struct sockaddr *)&peer->own;
	socklen_t length = sizeof(peer->own);
	int fd;

	peer->own.ss_family = to->sa_family;
	if (!getsockname(rs->fd, own, &length) && !address_is_wild(own))
		return;
	length = sizeof(peer->own);
	if (!getsockname(rs->fd, own, &length) && address_is_loopback(own))
		return;
	fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	length = sizeof(peer->own);
	if (connect(fd, to, address_size(to)) || getsockname(fd, own, &length))
		peer->own.ss_family = to->sa_family;
	close(fd);
}

/* Also converts a mapped address to IPv4, because the peer may not support IPv6 (ipv6(7)). */
static void peer_find_source(const struct rsocket *rs, struct datagram_peer *peer)
{
	union ibv_gid gid;

	peer_query_source(rs, peer);
	gid = address_gid((struct sockaddr *)&peer->own);
	address_from_gid(&peer->own, &gid, 0);
}

static struct datagram_peer *peer_lookup(struct datagram *datagram, const struct sockaddr *address)
{
	struct datagram_peer *peer, **link;

	for (link = &datagram->peers; (peer = *link); link = &peer->next)
		if (peer_is_at(peer, address)) {
			/* Most recently used first. */
			*link = peer->next;
			peer->next = datagram->peers;
			datagram->peers = peer;
			return peer;
		}
	return NULL;
}

static void datagram_peer_free(struct datagram *datagram, struct datagram_peer *peer)
{
	if (peer->ah)
		softhca_ibv_destroy_ah(peer->ah);
	free(peer);
	datagram->peer_count--;
}

/* Removes the least recently used peer, because any sender can create entries. */
static void peers_forget_oldest(struct datagram *datagram)
{
	struct datagram_peer **link, **oldest = NULL, *peer;

	for (link = &datagram->peers; *link; link = &(*link)->next)
		if (*link != datagram->connected)
			oldest = link;
	if (!oldest)
		return;
	peer = *oldest;
	*oldest = peer->next;
	datagram_peer_free(datagram, peer);
}

struct datagram_peer *datagram_peer_at(struct rsocket *rs, const struct sockaddr *address)
{
	struct datagram *datagram = rs->datagram;
	struct datagram_peer *peer = peer_lookup(datagram, address);

	if (peer)
		return peer;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	if (datagram->peer_count == DATAGRAM_MOST_PEERS)
		peers_forget_oldest(datagram);
	address_copy(&peer->address, address);
	peer_find_source(rs, peer);
	peer->next = datagram->peers;
	datagram->peers = peer;
	datagram->peer_count++;
	return peer;
}

void datagram_free_peers(struct rsocket *rs)
{
	struct datagram *datagram = rs->datagram;

	while (datagram->peers) {
		struct datagram_peer *peer = datagram->peers;

		datagram->peers = peer->next;
		datagram_peer_free(datagram, peer);
	}
	datagram->connected = NULL;
}

static void peer_set_qp(struct rsocket *rs, struct datagram_peer *peer, uint32_t number)
{
	struct datagram *datagram = rs->datagram;
	struct ibv_ah_attr attr = {.is_global = 1,
				   .port_num = 1,
				   .grh = {.dgid = address_gid((const struct sockaddr *)&peer->address),
					   .hop_limit = 64}};
	int index;

	peer->qp_number = number;
	if (peer->ah || !datagram->device)
		return;
	/* Continue with UDP: the peer drops datagrams that do not come from the address in their header. */
	if (device_of_address((const struct sockaddr *)&peer->own, &index) != datagram->device &&
	    (!address_is_loopback((const struct sockaddr *)&peer->own) ||
	     device_of_host(peer->own.ss_family, &index) != datagram->device))
		return;
	attr.grh.sgid_index = (uint8_t)index;
	peer->ah = softhca_ibv_create_ah(datagram->device->pd, &attr);
}

static size_t header_make(const struct rsocket *rs, const struct datagram_peer *peer, uint8_t operation,
			  struct header *header)
{
	const struct datagram *datagram = rs->datagram;
	bool v4 = peer->own.ss_family == AF_INET;

	*header = (struct header){.tag = htobe32(TAG),
				  .version = v4 ? 4 : 6,
				  .operation = operation,
				  .length = v4 ? LENGTH_V4 : LENGTH_V6,
				  .qp_number = htobe32(datagram->qp ? datagram->qp->qp_num : 0)};
	if (v4)
		memcpy(header->address, &((const struct sockaddr_in *)&peer->own)->sin_addr, 4);
	else
		memcpy(header->address, &((const struct sockaddr_in6 *)&peer->own)->sin6_addr, 16);
	return header->length;
}

ssize_t datagram_send_early(struct rsocket *rs, const struct datagram_peer *peer, const void *bytes, size_t count)
{
	struct header header;
	struct iovec pieces[2] = {{.iov_base = &header}, {.iov_base = (void *)bytes, .iov_len = count}};
	struct msghdr message = {.msg_name = (void *)&peer->address,
				 .msg_namelen = address_size((const struct sockaddr *)&peer->address),
				 .msg_iov = pieces,
				 .msg_iovlen = 2};
	ssize_t sent;

	pieces[0].iov_len = header_make(rs, peer, OP_DATA, &header);
	do
		sent = sendmsg(rs->fd, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent - (ssize_t)pieces[0].iov_len;
}

static void peer_answer(struct rsocket *rs, const struct datagram_peer *peer)
{
	const struct sockaddr *to = (const struct sockaddr *)&peer->address;
	struct header header;
	size_t length = header_make(rs, peer, OP_ANSWER, &header);

	/* The next datagram requests a lost reply again. */
	if (sendto(rs->fd, &header, length, MSG_NOSIGNAL | MSG_DONTWAIT, to, address_size(to)) < 0)
		return;
}

static void datagram_discard(struct rsocket *rs)
{
	uint8_t byte;

	if (recv(rs->fd, &byte, sizeof(byte), MSG_DONTWAIT) < 0)
		return;
}

/*
 * Takes the next datagram of the socket: @count bytes after @header bytes. Wakes threads that sleep on the descriptor,
 * because they could find the socket empty.
 */
static void datagram_queue_early(struct rsocket *rs, const struct sockaddr *from, size_t header, size_t count)
{
	struct datagram *datagram = rs->datagram;
	/* A full list drops the datagram, like a full socket. */
	struct datagram_arrived *arrived =
		datagram->early_count == DATAGRAM_MOST_EARLY ? NULL : calloc(1, sizeof(*arrived) + header + count);

	if (!arrived) {
		datagram_discard(rs);
		return;
	}
	if (recv(rs->fd, arrived->early, header + count, MSG_DONTWAIT) != (ssize_t)(header + count)) {
		free(arrived);
		return;
	}
	address_copy(&arrived->from, from);
	arrived->slot = UINT32_MAX;
	arrived->offset = (uint32_t)header;
	arrived->bytes = (uint32_t)count;
	*datagram->last = arrived;
	datagram->last = &arrived->next;
	datagram->early_count++;
	rsocket_wake(rs);
}

static bool header_is_valid(const struct header *header, size_t bytes)
{
	return bytes >= LENGTH_V4 && header->tag == htobe32(TAG) && bytes >= header->length &&
	       ((header->version == 4 && header->length == LENGTH_V4) ||
		(header->version == 6 && header->length == LENGTH_V6)) &&
	       (header->operation == OP_DATA || header->operation == OP_ANSWER);
}

void datagram_take_early(struct rsocket *rs)
{
	struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
	int count;

	for (count = 0; count < DATAGRAM_MOST_EARLY; count++) {
		struct header header = {0};
		socklen_t length = sizeof(from);
		struct datagram_peer *peer;
		/* Copies at most a header, and returns the datagram's length. */
		ssize_t got = recvfrom(rs->fd, &header, sizeof(header), MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC,
				       (struct sockaddr *)&from, &length);

		if (got < 0)
			return;
		if (!header_is_valid(&header, (size_t)got)) {
			datagram_discard(rs);
			continue;
		}
		/* The address comes from the network, not from the header. Unsolicited replies are ignored. */
		peer = header.operation == OP_DATA ? datagram_peer_at(rs, (struct sockaddr *)&from)
						   : peer_lookup(rs->datagram, (struct sockaddr *)&from);
		if (peer && header.qp_number)
			peer_set_qp(rs, peer, be32toh(header.qp_number) & 0xffffff);
		if (header.operation != OP_DATA) {
			datagram_discard(rs);
			continue;
		}
		datagram_queue_early(rs, (struct sockaddr *)&from, header.length, (size_t)got - header.length);
		if (peer && rs->datagram->qp)
			peer_answer(rs, peer);
	}
}
