/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the responder of a DCT has beside that of RC: many initiators, each with a connection of its own.
 *
 * Every packet of a request says by whom it is sent (source GID and QP number; the same ones behind another link are somebody
 * else's), in which of the sender's connections,
 * and with which sequence number that connection began; and it brings the access key. From the first packet of an
 * initiator on, which need not be the first that was sent, the DCT keeps for it what the responder of an RC QP keeps: the
 * sequence number expected, the message under way, the receive that it took, answers for duplicates. Nothing is kept of
 * packets with another key.
 *
 * Numbers of connections only grow, over all QPs that ever have one number on one host. So a packet of a later connection
 * begins anew, and one of an earlier is a ghost. A connection whose request was refused stays refused, and answers its
 * repetition alike, until the initiator begins another; the DCT itself serves on.
 *
 * The table is bounded. An initiator that goes to another target says so, and its place can be had; otherwise that of one
 * that has been silent for long (LIMIT_DCT_INITIATOR_SECONDS). If there is none, a new initiator is told to come later.
 *
 * A struct dct belongs to its QP, whose lock covers it.
 */
#ifndef SOFTHCA_TRANSPORT_RESPONDER_DCT_H
#define SOFTHCA_TRANSPORT_RESPONDER_DCT_H

#include "transport/qp/qp.h"

struct dct_initiator {
	struct dct_initiator *next_in_bucket, *next;
	const struct link *link; /* over which it is heard, and answered */
	union ibv_gid gid;
	uint32_t qpn;
	uint64_t connection;
	uint32_t era; /* of the table when it was last heard */
	bool left;    /* its connection is over */
	bool refused; /* its connection has ended with a NAK: of refusal_psn, `nak` and why */
	uint8_t nak;  /* enum nak_code */
	uint32_t refusal_psn;
	struct refusal why;
	struct walk_access access; /* the DCT's, with the progress of this responder */
	struct responder_resource resource[LIMIT_MAX_RD_ATOMIC];
	struct responder responder; /* last: its receive has RECEIVE_SEGMENTS segments */
};

#define DCT_BUCKETS 256

struct dct {
	uint64_t access_key;
	struct dct_initiator *bucket[DCT_BUCKETS];
	struct dct_initiator *all;
	uint32_t count;
	/* Time in steps: whoever was not heard in the present era nor in the one before has been silent for a whole one. */
	uint32_t era;
	uint64_t era_began_ns;
};

/** A new one, or NULL without memory. */
struct dct *dct_new(uint64_t access_key);
void dct_free(struct dct *dct);

/** The initiator that sent @packet, over the link that it came by, or NULL. */
struct dct_initiator *dct_find(const struct dct *dct, const struct packet *packet);
/**
 * A place for a new initiator: a new one, or that of one that left or fell silent, as it left it (the caller ends what it
 * had under way). NULL: none can be had, or no memory.
 */
struct dct_initiator *dct_place(struct dct *dct);
/** Gives @place, of dct_place(), to the initiator that sent @packet. Its connection is to begin. */
void dct_assign(struct dct *dct, struct dct_initiator *place, const struct packet *packet);

#endif
