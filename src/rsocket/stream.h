/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream (rdma-cm 5, "Stream protocol").
 *
 * Each end has a ring for received data, and a list of two targets, the halves of the peer's ring into which it may
 * write. It writes data into the current target by RDMA WRITE, with the number of bytes as immediate data. When an end
 * has emptied a half of its ring, it describes that half in the next slot of the peer's list. Immediates consume
 * receives without memory, so each end counts the messages for which the other has posted receives.
 *
 * All input is hostile until it is checked: byte counts against grants, announced targets against the slots of the
 * list. Addresses and keys of the peer are used only as remote ones, which its adapter checks.
 *
 * The lock of the rsocket covers everything.
 */
#ifndef SOFTHCA_RSOCKET_STREAM_H
#define SOFTHCA_RSOCKET_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

struct wait_limits;
struct rsocket;

enum stream_state {
	STREAM_IDLE,
	STREAM_BOUND,
	STREAM_LISTENING,
	STREAM_CONNECTING,   /* rconnect() has begun */
	STREAM_ACCEPTING,    /* an accepted child, not confirmed by its peer */
	STREAM_CONNECTED,    /* one or both directions may be shut down */
	STREAM_REFUSED,      /* rconnect() has failed */
	STREAM_DISCONNECTED, /* ended in an orderly way, by either end */
	STREAM_BROKEN,       /* by an error */
};

/* The peer's memory, as in lists: 16 bytes, in the reader's byte order. */
struct stream_target {
	uint64_t address;
	uint32_t key;
	uint32_t length;
};

/* A mapped buffer, 24 bytes, stored after the targets. */
struct stream_mapping {
	uint64_t offset;
	struct stream_target target;
};

enum {
	STREAM_RESOLVE_MS = 2000, /* timeout for resolving the address and the route */
	STREAM_TARGETS = 2,
	STREAM_CONTROL_ENTRIES = 4,   /* send queue entries for control messages, which data must not delay */
	STREAM_LOW_WATER = 2048,      /* bytes of the send ring needed before data is sent */
	STREAM_FIRST_WRITE = 2048,    /* bytes; each write of a call is twice as large as the previous one, … */
	STREAM_LARGEST_WRITE = 65536, /* … up to this */
};

/* In the immediate data: three bits of operation, 29 bits of data. */
enum stream_operation {
	STREAM_OP_DATA = 0,
	STREAM_OP_CREDIT = 4, /* lower 16 bits: highest sequence number granted */
	STREAM_OP_MAPPING = 6,
	STREAM_OP_CONTROL = 7,
};

enum stream_control {
	STREAM_DISCONNECT = 0,
	STREAM_KEEPALIVE = 1,
	STREAM_SHUTDOWN = 2, /* the sender sends no more data */
};

#define STREAM_DATA_BITS 29
#define STREAM_DATA_MASK ((1u << STREAM_DATA_BITS) - 1)

static inline uint32_t stream_immediate(enum stream_operation operation, uint32_t data)
{
	return (uint32_t)operation << STREAM_DATA_BITS | data;
}

/* Part of the ID of a work request, with the bytes of the send ring that it uses. */
enum stream_request {
	STREAM_REQUEST_RECEIVE,
	STREAM_REQUEST_DATA, /* data, a mapping, a direct write */
	STREAM_REQUEST_CONTROL,
	STREAM_REQUEST_DISCONNECT,
};

/* Registered by riomap(). */
struct stream_buffer {
	struct stream_buffer *next;
	struct ibv_mr *mr;
	uint64_t offset;
	int index;    /* in the peer's table; -1: not visible to the peer */
	bool pending; /* not announced to the peer yet */
};

struct stream {
	enum stream_state state;
	bool readable, writable;     /* for CONNECTED: directions that are not shut down */
	bool end_sent, end_received; /* this end and the peer have sent STREAM_SHUTDOWN */
	bool shut_by_program; /* this end's direction was shut down by the program: writing fails with EPIPE, not ECONNRESET */
	bool reset;           /* ended by an error, which the first rrecv() reports */

	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	bool armed;            /* a notification was requested, or waits in `completions` */
	uint32_t events_taken; /* events of the CQ, to be acknowledged before it is destroyed */

	/* When the connection was made: */
	uint32_t send_entries, receive_entries, inline_bytes, send_bytes, receive_bytes, iomap_entries;

	/* sending: */
	uint8_t *send_ring; /* send_bytes, and room for control messages that cannot be inline */
	struct ibv_mr *send_mr;
	uint32_t send_offset, send_free, control_slot;
	uint32_t entries_free, control_free;
	uint16_t sequence, sequence_limit;
	struct stream_target target; /* rest of the current one */
	uint32_t next_target;        /* slot to be used next */
	uint32_t announced;          /* slots filled by the peer */

	/* the peer's list: */
	uint64_t peer_list;
	uint32_t peer_list_key, peer_slots, peer_slot;
	uint64_t peer_map;
	uint32_t peer_map_entries;
	bool swap; /* the peer has the other byte order */

	/* receiving: */
	uint8_t *ring;
	struct ibv_mr *ring_mr;
	uint32_t read_offset, free_offset;
	uint32_t free_bytes; /* read, not yet granted again */
	uint32_t granted;    /* bytes that the peer may still write */
	uint32_t *messages;  /* sizes of unread messages: a ring of receive_entries + 1 */
	uint32_t first_message, end_message;
	uint16_t received, renew_at; /* sequence numbers: of messages read; when to renew credits */

	/* written by the peer: targets, then mappings */
	struct stream_target *list;
	struct ibv_mr *list_mr;

	struct stream_buffer *buffers; /* those of riomap(), in order */

	struct rdma_cm_event *request; /* of a listener, for raccept(); or NULL */
	struct ibv_path_data *paths;   /* RDMA_ROUTE, or NULL */
	uint32_t path_count;
};

/* ---- rsocket/endpoint.c ---- */

/** Creates everything for the ID, which must have a device, and posts the receives. Returns 0 or a negative errno. */
int stream_open(struct rsocket *rs);
/** Frees everything that stream_open() created, the ID and the channel. Informs the peer if necessary. */
void stream_destroy(struct rsocket *rs);
/** Rejects the waiting request. */
void stream_drop_request(struct stream *stream);

/* ---- rsocket/private_data.c ---- */

enum { STREAM_PRIVATE_DATA = 40 };

/** Writes the parameters of this end, STREAM_PRIVATE_DATA bytes. Pure. */
void stream_describe(const struct rsocket *rs, uint8_t *bytes);
/** Applies the peer's parameters. Returns 0, or -EPROTO with nothing changed. */
int stream_apply_description(struct rsocket *rs, const void *bytes, uint32_t length);

/** Encodes a number in eight bits: up to 128 unchanged, larger ones as multiples of 256. Pure. */
uint8_t stream_scale(uint32_t value);
uint32_t stream_unscale(uint8_t scaled);

/* ---- rsocket/completions.c ---- */

/** Handles all completions and grants free room to the peer. */
void stream_advance(struct rsocket *rs);
/** Grants free room and sequence numbers. */
void stream_grant(struct rsocket *rs);
/** Requests a notification, unless one is pending. Returns true if an event may have come meanwhile. */
bool stream_arm(struct rsocket *rs);
/** Takes the notification, if any. */
void stream_notified(struct rsocket *rs);
void stream_break(struct rsocket *rs, int error);

/** One of the reserved entries must be free. */
void stream_post_control(struct rsocket *rs, enum stream_control control);

bool stream_has_data(const struct rsocket *rs);
/** Returns true if the peer has everything, control messages included. */
bool stream_has_sent_all(const struct stream *stream);
/** Returns true if a message can be sent; takes the next target if the current one is used up. */
bool stream_can_send(struct rsocket *rs);

/* ---- rsocket/stream_events.c, rsocket/connect.c ---- */

/** Handles events of the communication manager. */
void stream_take_events(struct rsocket *rs);
/** Ends a connection attempt: REFUSED with @error. */
void stream_refuse(struct rsocket *rs, int error);
/** Return true if raccept() would find a request, or rconnect() has ended. */
bool stream_has_request(struct rsocket *rs);
bool stream_connect_is_done(struct rsocket *rs);
static inline bool stream_is_opening(const struct stream *stream)
{
	return stream->state == STREAM_CONNECTING || stream->state == STREAM_ACCEPTING;
}

/** Waits until the connection is made. Returns 0, or a negative errno without one. */
int stream_wait_connected(struct rsocket *rs, const char *call, const struct wait_limits *limits);

/* ---- rsocket/send.c ---- */

/**
 * Posts the write @request of @bytes from the program's memory @from or, if NULL, from the send ring, where they
 * already are. Uses an entry of the send queue and room of the ring. Returns 0 or a negative errno.
 */
int stream_post_write(struct rsocket *rs, struct ibv_send_wr *request, const void *from, uint32_t bytes);
/** Returns the size of a call's next write; the last one was @before. @most: room in the target. */
uint32_t stream_write_size(const struct stream *stream, uint32_t *before, size_t left, uint32_t most);
/** Sleeps until a message can be sent. Returns 0 or a negative errno. */
int stream_wait_to_send(struct rsocket *rs, const struct wait_limits *limits);

/* ---- rsocket/iomap.c ---- */

/** Announces new buffers to the peer. Returns 0 or a negative errno. */
int stream_send_mappings(struct rsocket *rs, const struct wait_limits *limits);

#endif
