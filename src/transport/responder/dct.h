/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder of a DCT as far as it differs from RC's: many initiators, each with a connection.
 *
 * Every packet of a request names its sender (source GID and QP number; over another link the same values mean another
 * sender), the sender's connection with its first sequence number, and the access key. From the first packet that
 * arrives from an initiator, which need not be the first sent, the DCT keeps the state of an RC responder. Packets with
 * a wrong key leave no state.
 *
 * Connection numbers only grow, also across QPs that get the same number on a host. So packets of earlier connections
 * are dropped. After a NAK the connection stays refused, with the same answer to repetitions, until the initiator
 * begins another.
 *
 * The table is bounded. An initiator's place is reused after it has disconnected or, if there are none of these, after
 * it was silent for LIMIT_DCT_INITIATOR_SECONDS. Otherwise a new initiator gets an RNR NAK.
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
	bool left;    /* its connection has ended */
	bool refused; /* its connection ended with the NAK of refusal_psn, `nak` and why */
	uint8_t nak;  /* enum nak_code */
	uint32_t refusal_psn;
	struct refusal why;
	struct walk_access access; /* access to keys as that of the DCT, with this responder's progress */
	struct responder_resource resource[LIMIT_MAX_RD_ATOMIC];
	struct responder responder; /* last: has RECEIVE_SEGMENTS segments */
};

#define DCT_BUCKETS 256

struct dct {
	uint64_t access_key;
	struct dct_initiator *bucket[DCT_BUCKETS];
	struct dct_initiator *all;
	uint32_t count;
	/*
	 * Coarse time: an initiator that sent nothing in this era and the previous one was silent for at least an era.
	 */
	uint32_t era;
	uint64_t era_began_ns;
};

/** Returns NULL without memory. */
struct dct *dct_new(uint64_t access_key);
void dct_free(struct dct *dct);

/** Returns the initiator that sent @packet over its link, or NULL. */
struct dct_initiator *dct_find(const struct dct *dct, const struct packet *packet);
/**
 * Returns a place for an initiator: a new one, or that of an initiator that left or fell silent, with its old state
 * (the caller ends its connection). NULL: no place or no memory.
 */
struct dct_initiator *dct_place(struct dct *dct);
/** Assigns @place to the sender of @packet. The caller begins its connection. */
void dct_assign(struct dct *dct, struct dct_initiator *place, const struct packet *packet);

#endif
