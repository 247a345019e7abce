/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UD datagrams: each begins with the address of the sender's socket (rdma-cm 5):
 *
 *     0 IP version | 1 length 8 or 24 | 2 port be16 | 4 IPv4 address, or flow information be32 and IPv6 address
 */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "abi/entry_points.h"
#include "rdmacm/sockaddr.h"
#include "rsocket/datagram.h"
#include "rsocket/names.h"
#include "rsocket/transfer.h"
#include "rsocket/wait.h"

static uint32_t header_write(const struct rsocket *rs, const struct datagram_peer *peer, uint8_t *bytes)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&peer->own;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&peer->own;
	bool is_v6 = peer->own.ss_family == AF_INET6;
	uint16_t port = htobe16(rs->datagram->port);

	bytes[0] = is_v6 ? 6 : 4;
	bytes[1] = is_v6 ? DATAGRAM_HEADER_V6 : DATAGRAM_HEADER_V4;
	memcpy(bytes + 2, &port, 2);
	if (!is_v6) {
		memcpy(bytes + 4, &v4->sin_addr, 4);
		return DATAGRAM_HEADER_V4;
	}
	memcpy(bytes + 4, &v6->sin6_flowinfo, 4);
	memcpy(bytes + 8, &v6->sin6_addr, 16);
	return DATAGRAM_HEADER_V6;
}

static bool datagram_can_send(struct rsocket *rs)
{
	return !rs->datagram->qp || rs->datagram->sends_free;
}

/* A connected socket receives only from its peer (connect(2)). */
static void datagram_drop_strangers(struct rsocket *rs)
{
	struct datagram *datagram = rs->datagram;
	const struct datagram_peer *connected = datagram->connected;
	struct datagram_arrived **link = &datagram->first, *arrived;

	if (!connected)
		return;
	while ((arrived = *link)) {
		const struct sockaddr *from = (const struct sockaddr *)&arrived->from;
		const struct sockaddr *peer = (const struct sockaddr *)&connected->address;

		if (address_equal(from, peer) && address_port(from) == address_port(peer)) {
			link = &arrived->next;
			continue;
		}
		*link = arrived->next;
		if (arrived->slot == UINT32_MAX)
			datagram->early_count--;
		else
			datagram_post_receive(rs, arrived->slot);
		free(arrived);
	}
	datagram->last = link;
}

static bool datagram_has_arrived(struct rsocket *rs)
{
	datagram_drop_strangers(rs);
	return rs->datagram->first;
}

short datagram_ready(struct rsocket *rs)
{
	return (short)((datagram_has_arrived(rs) ? POLLIN : 0) | (datagram_can_send(rs) ? POLLOUT : 0));
}

static ssize_t datagram_send_message(struct rsocket *rs, const struct datagram_peer *peer, struct pieces *pieces,
				     size_t bytes)
{
	struct datagram *datagram = rs->datagram;
	uint32_t slot = datagram->receive_slots + datagram->next_send;
	uint8_t *memory = datagram_slot(datagram, slot);
	uint32_t header = header_write(rs, peer, memory);
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .lkey = datagram->mr->lkey};
	struct ibv_send_wr request = {.wr_id = DATAGRAM_IS_SEND,
				      .sg_list = &sge,
				      .num_sge = 1,
				      .opcode = IBV_WR_SEND,
				      .wr.ud = {.ah = peer->ah,
						.remote_qpn = peer->qp_number,
						.remote_qkey = RDMA_UDP_QKEY}},
			   *bad;
	int error;

	if (bytes > datagram->mtu - header)
		return -EMSGSIZE;
	pieces_copy_out(pieces, memory + header, bytes);
	sge.length = header + (uint32_t)bytes;
	error = ibv_post_send(datagram->qp, &request, &bad);
	if (error)
		return -error;
	datagram->next_send = (datagram->next_send + 1) % datagram->send_slots;
	datagram->sends_free--;
	return (ssize_t)bytes;
}

/* Without @address, returns the peer of a connected socket. NULL: no destination, or no memory. */
static struct datagram_peer *datagram_destination(struct rsocket *rs, const struct sockaddr_storage *address)
{
	return address->ss_family ? datagram_peer_at(rs, (const struct sockaddr *)address) : rs->datagram->connected;
}

ssize_t datagram_send(struct rsocket *rs, const struct iovec *list, size_t count, const struct sockaddr *address,
		      socklen_t length, const struct wait_limits *limits)
{
	struct datagram *datagram = rs->datagram;
	struct pieces pieces = {.list = list, .count = count};
	uint8_t early[DATAGRAM_LARGEST_MTU];
	struct sockaddr_storage to = {.ss_family = AF_UNSPEC};
	struct datagram_peer *peer;
	size_t bytes = pieces_bytes(list, count);
	int error;

	if (address && (length < sizeof(sa_family_t) || !address_size(address) || length < address_size(address)))
		return -EINVAL;
	if (address) {
		address_copy(&to, address);
		if (!datagram_map(rs, &to))
			return -EAFNOSUPPORT;
	}
	rsocket_advance(rs);
	peer = datagram_destination(rs, &to);
	if (!peer)
		return address ? -ENOBUFS : -EDESTADDRREQ;
	/* Sending binds the socket. */
	if (!datagram->device) {
		error = datagram_make_qp(rs);
		if (error)
			return error;
	}
	if (peer->ah) {
		error = rsocket_wait_until(rs, limits, datagram_can_send);
		/* If the thread slept, the entry may belong to another peer now. */
		peer = error ? NULL : datagram_destination(rs, &to);
		if (!peer)
			return error ? error : -ENOBUFS;
	}
	if (!peer->ah) {
		if (bytes > datagram->mtu - DATAGRAM_HEADER_V6)
			return -EMSGSIZE;
		pieces_copy_out(&pieces, early, bytes);
		return datagram_send_early(rs, peer, early, bytes);
	}
	return datagram_send_message(rs, peer, &pieces, bytes);
}

ssize_t datagram_receive(struct rsocket *rs, const struct iovec *list, size_t count, int *flags,
			 struct sockaddr *address, socklen_t *length, const struct wait_limits *limits)
{
	struct datagram *datagram = rs->datagram;
	struct pieces pieces = {.list = list, .count = count};
	size_t room = pieces_bytes(list, count), bytes;
	struct datagram_arrived *arrived;
	int error = rsocket_wait_until(rs, limits, datagram_has_arrived);

	if (error)
		return error;
	arrived = datagram->first;
	bytes = arrived->bytes < room ? arrived->bytes : room;
	pieces_copy_in(&pieces,
		       (arrived->slot == UINT32_MAX ? arrived->early : datagram_slot(datagram, arrived->slot)) +
			       arrived->offset,
		       bytes);
	name_copy_out((struct sockaddr *)&arrived->from, address, length);
	room = arrived->bytes;
	if (!(*flags & MSG_PEEK)) {
		datagram->first = arrived->next;
		if (!datagram->first)
			datagram->last = &datagram->first;
		if (arrived->slot == UINT32_MAX)
			datagram->early_count--;
		else
			datagram_post_receive(rs, arrived->slot);
		free(arrived);
	}
	/* MSG_TRUNC requests the whole length (recv(2)). */
	if (*flags & MSG_TRUNC)
		bytes = room;
	*flags = room > bytes ? MSG_TRUNC : 0;
	return (ssize_t)bytes;
}
