/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams (rdma-cm 5, "Datagram"). The descriptor is a UDP socket. The first datagrams to an address use it, after a
 * header with the sender's QP number. When the receiver has replied with its own, datagrams are UD messages, after a
 * header with the address of the sender's socket.
 *
 * The real library creates address handles without GRH, which adapters on Ethernet refuse; these have one
 * (docs/inside/decisions.md).
 *
 * All input is hostile until it is checked. The lock of the rsocket covers everything.
 */
#ifndef SOFTHCA_RSOCKET_DATAGRAM_H
#define SOFTHCA_RSOCKET_DATAGRAM_H

#include <poll.h>
#include <sys/uio.h>

#include "rsocket/objects.h"

enum {
	DATAGRAM_HEADER_V4 = 8, /* of a UD message */
	DATAGRAM_HEADER_V6 = 24,
	DATAGRAM_GRH = 40,
	DATAGRAM_LARGEST_MTU = 4096,
	DATAGRAM_MOST_PEERS = 4096, /* peers with stored QPs */
	DATAGRAM_MOST_EARLY = 64,   /* UDP datagrams that wait to be read */
};

/* Bit of wr_id. */
#define DATAGRAM_IS_SEND (1ull << 32)

/* A remote address and its QP. */
struct datagram_peer {
	struct datagram_peer *next;
	struct sockaddr_storage address;
	struct sockaddr_storage own; /* source address, without port; AF_INET for IPv4 even on an AF_INET6 socket */
	struct ibv_ah *ah;           /* NULL: its QP is unknown */
	uint32_t qp_number;
};

/* A datagram that waits to be read: in a receive slot or, if it came by UDP, after this structure. */
struct datagram_arrived {
	struct datagram_arrived *next;
	struct sockaddr_storage from;
	uint32_t slot; /* UINT32_MAX: came by UDP */
	uint32_t offset, bytes;
	uint8_t early[];
};

struct datagram {
	int wake_fd;
	struct shared_device *device; /* NULL: no QP yet */
	int sgid_index;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	bool armed;
	uint32_t events_taken;
	uint32_t mtu;
	uint16_t port; /* that of the socket */

	uint8_t *memory; /* receive slots, then send slots */
	struct ibv_mr *mr;
	uint32_t receive_slots, send_slots, slot_bytes;
	uint32_t next_send, sends_free;

	struct datagram_peer *peers, *connected;
	uint32_t peer_count;
	struct datagram_arrived *first, **last;
	uint32_t early_count;
};

/** Send slots follow receive slots. */
static inline uint8_t *datagram_slot(const struct datagram *datagram, uint32_t slot)
{
	return datagram->memory + (size_t)slot * datagram->slot_bytes;
}

/* ---- rsocket/datagram.c ---- */

/** Opens the UDP socket. Returns 0 or a negative errno. */
int datagram_open(struct rsocket *rs);
void datagram_close(struct rsocket *rs);
/** Closes only the descriptors, in a forked child. */
void datagram_forget(struct rsocket *rs);
int datagram_bind(struct rsocket *rs, const struct sockaddr *address, socklen_t length);
int datagram_connect(struct rsocket *rs, const struct sockaddr *address, socklen_t length);

/** Creates the QP unless it exists, and binds the socket. Returns 0 or a negative errno. */
int datagram_make_qp(struct rsocket *rs);

/** Returns 0 or a negative errno. */
int datagram_post_receive(struct rsocket *rs, uint32_t slot);

/* See rsocket/wait.h. */
uint32_t datagram_descriptors(struct rsocket *rs, struct pollfd *descriptors);
void datagram_woken(struct rsocket *rs);
void datagram_notified(struct rsocket *rs);
bool datagram_arm(struct rsocket *rs);

/* ---- rsocket/datagram_peers.c ---- */

/**
 * Returns the peer at @address; a new one may replace another. It is valid until the next sleep. NULL without memory.
 */
struct datagram_peer *datagram_peer_at(struct rsocket *rs, const struct sockaddr *address);
void datagram_free_peers(struct rsocket *rs);
/**
 * Maps an IPv4 address for an AF_INET6 socket (ipv6(7)). Returns false if sockets of the family cannot have *@address.
 */
bool datagram_map(const struct rsocket *rs, struct sockaddr_storage *address);
/** Sends by UDP, after a header. Returns the number of bytes or a negative errno. */
ssize_t datagram_send_early(struct rsocket *rs, const struct datagram_peer *peer, const void *bytes, size_t count);
/** Takes all datagrams and replies from the UDP socket. */
void datagram_take_early(struct rsocket *rs);

/* ---- rsocket/datagram_arrivals.c ---- */

/** Handles completions and the UDP socket. */
void datagram_advance(struct rsocket *rs);

/* ---- rsocket/datagram_transfer.c ---- */

short datagram_ready(struct rsocket *rs);
ssize_t datagram_send(struct rsocket *rs, const struct iovec *list, size_t count, const struct sockaddr *address,
		      socklen_t length, const struct wait_limits *limits);
ssize_t datagram_receive(struct rsocket *rs, const struct iovec *list, size_t count, int *flags,
			 struct sockaddr *address, socklen_t *length, const struct wait_limits *limits);

#endif
