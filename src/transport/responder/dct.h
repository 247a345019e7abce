/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder of a DCT, as far as it differs from that of RC: many initiators, each with its own connection.
 *
 * Every packet of a request names its sender (source GID and QP number; with another link they denote another
 * sender), the connection of the sender, the first sequence number of that connection, and the access key. From the
 * first packet of an initiator that arrives, which need not be the first that was sent, the DCT keeps the state that
 * the responder of an RC QP keeps: the expected sequence number, the current message, its receive, answers for
 * duplicates. Packets with another key leave no state.
 *
 * Connection numbers only grow, over all QPs that ever have one number on one host. So a packet of a later connection
 * starts that connection, and a packet of an earlier one is dropped. A connection whose request was refused stays refused, and
 * answers repetitions alike, until the initiator begins another one. The DCT itself continues to serve.
 *
 * The table is bounded. An initiator that goes to another target says so, and its place can be reused; otherwise the
 * place of an initiator that has been silent for LIMIT_DCT_INITIATOR_SECONDS. If there is none, a new initiator gets
 * an RNR NAK.
 *
 * A struct dct belongs to its QP, whose lock covers it.
 */
#ifndef SOFTHCA_TRANSPORT_RESPONDER_DCT_H
#define SOFTHCA_TRANSPORT_RESPONDER_DCT_H

#include "transport/qp/qp.h"

struct dct_initiator {
	struct dct_initiator *next_in_bucket, *next;
	const struct link *link; /* link of its packets, and of the answers */
	union ibv_gid gid;
	uint32_t qpn;
	uint64_t connection;
	uint32_t era; /* era of the table when it last sent */
	bool left;    /* its connection is over */
	bool refused; /* its connection has ended with a NAK: of refusal_psn, `nak` and why */
	uint8_t nak;  /* enum nak_code */
	uint32_t refusal_psn;
	struct refusal why;
	struct walk_access access; /* access of the DCT, with the progress of this responder */
	struct responder_resource resource[LIMIT_MAX_RD_ATOMIC];
	struct responder responder; /* last: its receive has RECEIVE_SEGMENTS segments */
};

#define DCT_BUCKETS 256

struct dct {
	uint64_t access_key;
	struct dct_initiator *bucket[DCT_BUCKETS];
	struct dct_initiator *all;
	uint32_t count;
	/*
	 * Coarse time: an initiator that has sent nothing in this era and the one before was silent for a whole era.
	 */
	uint32_t era;
	uint64_t era_began_ns;
};

/** Returns a new one, or NULL without memory. */
struct dct *dct_new(uint64_t access_key);
void dct_free(struct dct *dct);

/** Returns the initiator that sent @packet over the link of @packet, or NULL. */
struct dct_initiator *dct_find(const struct dct *dct, const struct packet *packet);
/**
 * Returns a place for a new initiator: a new one, or that of one that left or fell silent, with its old state (the
 * caller ends its connection). NULL: no place is free, or no memory.
 */
struct dct_initiator *dct_place(struct dct *dct);
/** Assigns @place, from dct_place(), to the initiator that sent @packet. The caller begins its connection. */
void dct_assign(struct dct *dct, struct dct_initiator *place, const struct packet *packet);

#endif
