/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder of a DCT, where it differs from that of RC: many initiators, each with its own connection.
 *
 * Every packet of a request names its sender (source GID and QP number; over another link, the same values mean another
 * sender), the connection of the sender, the first sequence number of that connection, and the access key. From the
 * first packet of an initiator that arrives, which need not be the first that was sent, the DCT keeps the same state as
 * the responder of an RC QP: the expected sequence number, the current message, its receive, answers for duplicates.
 * Packets with a wrong key leave no state.
 *
 * Connection numbers only grow, also across QPs that get the same number on a host one after the other. So a packet of
 * a later connection starts that connection, and a packet of an earlier one is dropped. After the NAK of a request, its
 * connection stays refused, and repetitions get the same answer, until the initiator begins another connection. The DCT
 * itself continues to serve.
 *
 * The table is bounded. The place of an initiator can be reused after it has disconnected to go to another target, or,
 * if there are none of these, after it has been silent for LIMIT_DCT_INITIATOR_SECONDS. If no place can be reused, a
 * new initiator gets an RNR NAK.
 *
 * A struct dct belongs to its QP; the lock of the QP covers it.
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
	bool refused; /* its connection has ended with a NAK, described by refusal_psn, `nak` and why */
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
	 * Coarse time: an initiator that has sent nothing in this era and in the previous one has been silent for at
	 * least a whole era.
	 */
	uint32_t era;
	uint64_t era_began_ns;
};

/** Returns a new struct dct, or NULL without memory. */
struct dct *dct_new(uint64_t access_key);
void dct_free(struct dct *dct);

/** Returns the initiator that sent @packet over the link of @packet, or NULL. */
struct dct_initiator *dct_find(const struct dct *dct, const struct packet *packet);
/**
 * Returns a place for a new initiator: a new one, or that of an initiator that left or fell silent, with its old state
 * (the caller ends its connection). Returns NULL if no place is free or there is not enough memory.
 */
struct dct_initiator *dct_place(struct dct *dct);
/** Assigns @place, from dct_place(), to the initiator that sent @packet. The caller begins its connection. */
void dct_assign(struct dct *dct, struct dct_initiator *place, const struct packet *packet);

#endif
