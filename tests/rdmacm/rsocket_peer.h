/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end of a stream, built from rdma_cm(7) and verbs: it sends and reads the protocol (rdma-cm 5) byte by byte, without
 * the library's own code for it.
 */
#ifndef SOFTHCA_TESTS_RDMACM_RSOCKET_PEER_H
#define SOFTHCA_TESTS_RDMACM_RSOCKET_PEER_H

#include "rsocket_support.h"

enum {
	PEER_RECEIVES = 64,
	PEER_RING = 8192,
	PEER_LIST = 2 * 16 + 2 * 24, /* two targets, two mappings */
	PEER_DESCRIPTION = 40,
};

struct peer {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	uint8_t list[PEER_LIST], ring[PEER_RING], out[PEER_RING];
	struct ibv_mr *list_mr, *ring_mr, *out_mr;
	uint8_t own[PEER_DESCRIPTION], theirs[PEER_DESCRIPTION]; /* private data */
	int listener, socket;                                    /* ends of the library */
};

/* Convert numbers in network byte order. */
uint64_t read_be(const uint8_t *bytes, size_t count);
void write_be(uint8_t *bytes, size_t count, uint64_t value);

/** Makes a QP with receives, and peer->own: a ring with its first half granted, two slots, 64 credits. Resolved to a
 * listener. */
void peer_make(struct peer *peer, int listener);
/** Connects; peer->socket becomes the result of raccept() and peer->theirs its private data. */
void peer_connect(struct peer *peer, int listener);
void peer_end(struct peer *peer);

/** Posts a write of @bytes of peer->out, with @immediate, to the library's memory. Completes in the background. */
void peer_write(struct peer *peer, uint32_t bytes, uint64_t address, uint32_t key, uint32_t immediate);

/** Returns the immediate data, in host order, and the length of the next message that arrives. */
uint32_t peer_next(struct peer *peer, uint32_t *bytes);
/** Returns true if no message arrives for a while. */
bool peer_hears_nothing(struct peer *peer);

#endif
