/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a connection that sleeps on events of CQs and drives their rings itself: it reads CQEs from memory and
 * arms the CQs by their doorbell records and the register at 0x20, as UCX does. Request and receive queues have a CQ
 * each, which share one channel of events.
 *
 * Each end belongs to one thread. A failed check ends the process.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_ARMED_H
#define SOFTHCA_TESTS_API_SUPPORT_ARMED_H

#include "support/devx_event.h"

enum armed_rings {
	ARMED_COMMANDS, /* CREATE_CQ with ring and record in a umem; mlx5dv_devx_get_event(3) */
	ARMED_VERBS,    /* ibv_create_cq(3) and mlx5dv_init_obj(3); ibv_get_cq_event(3) */
};

struct armed_options {
	enum armed_rings rings;
	/* The consumer index is written to the record. UCX leaves 0 there, because its CQs ignore overruns. */
	bool record;
	uint64_t seed;
};

enum { ARMED_REQUESTS, ARMED_RECEIVES, ARMED_CQS };

struct armed_cq {
	const uint8_t *ring;
	uint32_t count; /* entries */
	uint8_t *record;
	volatile uint64_t *doorbell;
	uint32_t number;
	uint32_t consumed, sequence;
	bool armed;        /* since the last event */
	uint32_t armed_at; /* `consumed` when it was first armed with this sequence number */
	struct ibv_cq *verbs;
	uint64_t events, empty; /* `empty`: events without a CQE at or after `armed_at` */
};

struct armed_end {
	struct armed_options options;
	struct side side;
	struct own requests, receives; /* the queue pair is that of `requests` */
	struct armed_cq cq[ARMED_CQS];
	struct mlx5dv_devx_event_channel *events;
	struct ibv_comp_channel *channel;
	uint64_t random;
	uint32_t sent, received; /* messages */
	bool ready;              /* armed by armed_arm() */
	uint64_t waits, lost;    /* sleeps; sleeps without an event although a CQE was there */
	double longest;          /* longest sleep, in seconds */
};

/** Address of an end, for its peer. */
struct armed_address {
	union ibv_gid gid;
	uint32_t qpn;
};

/** Opens the first device and creates all objects. */
void armed_open(struct armed_end *end, const struct armed_options *options);
struct armed_address armed_address(const struct armed_end *end);
void armed_connect(struct armed_end *end, const struct armed_address *peer);
void armed_close(struct armed_end *end);

/** Arms the CQs before the next messages are sent: armed_receive() then begins with a sleep. */
void armed_arm(struct armed_end *end);
/** Sends the next message; its content is its number. */
void armed_send(struct armed_end *end);
/** Waits until @count more messages have arrived, and checks them. Sleeps on the channel whenever the rings are empty. */
void armed_receive(struct armed_end *end, uint32_t count);
/** A pseudo-random number below @limit. */
uint32_t armed_random(struct armed_end *end, uint32_t limit);

#endif
