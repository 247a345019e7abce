/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end of a stream, made by hand of rdma_cm(7) and verbs: it says and reads what the protocol has (rdma-cm 5), byte by
 * byte, and nothing of the library's own code for it.
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
	int listener, socket;                                    /* the library's ends */
};

/* Numbers in the byte order of the network. */
uint64_t read_be(const uint8_t *bytes, size_t count);
void write_be(uint8_t *bytes, size_t count, uint64_t value);

/** A QP with receives, and peer->own: a ring of which the first half is granted, two slots, 64 credits. Resolved to a listener. */
void peer_make(struct peer *peer, int listener);
/** Connects, so that peer->socket is what raccept() gave and peer->theirs what it says. */
void peer_connect(struct peer *peer, int listener);
void peer_end(struct peer *peer);

/** Posts a write of @bytes of peer->out, with @immediate, to their memory. Completes in the background. */
void peer_write(struct peer *peer, uint32_t bytes, uint64_t address, uint32_t key, uint32_t immediate);

/** The next message that arrives: its immediate data in host order, and its length. */
uint32_t peer_next(struct peer *peer, uint32_t *bytes);
/** True if none arrives for a while. */
bool peer_hears_nothing(struct peer *peer);

#endif
