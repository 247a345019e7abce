/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream: its state, the rings of both directions, and what is known of the peer's (rdma-cm 5, "Stream protocol").
 *
 * Each end has a ring for what it receives and a list of two targets, the halves of the peer's ring, into which it sends.
 * The peer writes data into the current target by RDMA WRITE with immediate data, whose number of bytes the immediate tells,
 * and the description of a half that it has emptied into the list, slot by slot in turn. Immediates consume receives without
 * memory, so each end counts the messages that the other has posted receives for.
 *
 * All that arrives is hostile until it is checked: numbers of bytes against what was granted, announced targets against the
 * slots of the list. Addresses and keys of the peer's are only ever used as remote ones, which its adapter checks.
 *
 * All under the lock of the rsocket.
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
	STREAM_ACCEPTING,    /* a child that was accepted, whose peer has not confirmed yet */
	STREAM_CONNECTED,    /* one direction or both may be shut down */
	STREAM_REFUSED,      /* rconnect() has failed */
	STREAM_DISCONNECTED, /* in order, by either end */
	STREAM_BROKEN,       /* by an error */
};

/* A piece of memory of the peer's, as it lies in lists: 16 bytes, in the reader's byte order. */
struct stream_target {
	uint64_t address;
	uint32_t key;
	uint32_t length;
};

/* A mapped buffer, 24 bytes behind the targets. */
struct stream_mapping {
	uint64_t offset;
	struct stream_target target;
};

enum {
	STREAM_RESOLVE_MS = 2000, /* time-out of resolving the address and the route */
	STREAM_TARGETS = 2,
	STREAM_CONTROL_ENTRIES = 4,   /* of the send queue, for control messages, so that data never keeps them back */
	STREAM_LOW_WATER = 2048,      /* bytes of the send ring that have to be free before anything is sent */
	STREAM_FIRST_WRITE = 2048,    /* each write of a call is twice as large as the one before, */
	STREAM_LARGEST_WRITE = 65536, /* up to this */
};

/* The immediate data: three bits of operation, 29 of data. */
enum stream_operation {
	STREAM_OP_DATA = 0,
	STREAM_OP_CREDIT = 4, /* lower 16 bits: the highest sequence number that the peer may use */
	STREAM_OP_MAPPING = 6,
	STREAM_OP_CONTROL = 7,
};

enum stream_control {
	STREAM_DISCONNECT = 0,
	STREAM_KEEPALIVE = 1,
	STREAM_SHUTDOWN = 2, /* of sending */
};

#define STREAM_DATA_BITS 29
#define STREAM_DATA_MASK ((1u << STREAM_DATA_BITS) - 1)

static inline uint32_t stream_immediate(enum stream_operation operation, uint32_t data)
{
	return (uint32_t)operation << STREAM_DATA_BITS | data;
}

/* What a work request was for, in its id with the bytes of the send ring it has taken. */
enum stream_request {
	STREAM_REQUEST_RECEIVE,
	STREAM_REQUEST_DATA, /* data, a mapping, a direct write */
	STREAM_REQUEST_CONTROL,
	STREAM_REQUEST_DISCONNECT,
};

/* A buffer of the program's that riomap() registered. */
struct stream_buffer {
	struct stream_buffer *next;
	struct ibv_mr *mr;
	uint64_t offset;
	int index;    /* in the peer's table; -1 of one that the peer does not see */
	bool pending; /* the peer has not been told yet */
};

struct stream {
	enum stream_state state;
	bool readable, writable;     /* of CONNECTED: directions that are not shut down */
	bool end_sent, end_received; /* "shutdown of sending", by this end and by the peer */
	bool shut_by_program;        /* the own direction: writing is EPIPE and not ECONNRESET */
	bool reset;                  /* no order in the end: the first rrecv() says so */

	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	bool armed;            /* a notification is under way, or waits in `completions` */
	uint32_t events_taken; /* of the CQ, to be acknowledged before it goes */

	/* As they were when the connection was made. */
	uint32_t send_entries, receive_entries, inline_bytes, send_bytes, receive_bytes, iomap_entries;

	/* sending */
	uint8_t *send_ring; /* send_bytes, and behind them room for control messages that are not inline */
	struct ibv_mr *send_mr;
	uint32_t send_offset, send_free, control_slot;
	uint32_t entries_free, control_free;
	uint16_t sequence, sequence_limit;
	struct stream_target target; /* what is left of the current one */
	uint32_t next_target;        /* slot of the list that is used after it */
	uint32_t announced;          /* slots that the peer has filled and that were not taken yet */

	/* the peer's list */
	uint64_t peer_list;
	uint32_t peer_list_key, peer_slots, peer_slot;
	uint64_t peer_map;
	uint32_t peer_map_entries;
	bool swap; /* it reads with the other byte order */

	/* receiving */
	uint8_t *ring;
	struct ibv_mr *ring_mr;
	uint32_t read_offset, free_offset;
	uint32_t free_bytes; /* read, and not granted to the peer again */
	uint32_t granted;    /* what the peer may still write */
	uint32_t *messages;  /* bytes of each that arrived and was not read: a ring of receive_entries + 1 */
	uint32_t first_message, end_message;
	uint16_t received, renew_at; /* sequence numbers: of messages read; from which on credits are renewed */

	/* what the peer writes: targets, then mappings */
	struct stream_target *list;
	struct ibv_mr *list_mr;

	struct stream_buffer *buffers; /* riomap(), in order */

	struct rdma_cm_event *request; /* of a listener: one that waits for raccept(); or NULL */
	struct ibv_path_data *paths;   /* RDMA_ROUTE, or NULL */
	uint32_t path_count;
};

/* ---- rsocket/endpoint.c ---- */

/** Makes CQ, QP, rings and lists for the id, which has a device, and posts the receives. 0 or a negative errno. */
int stream_open(struct rsocket *rs);
/** Frees them, the id and the channel. The peer is told by the communication manager, if it was not yet. */
void stream_destroy(struct rsocket *rs);
/** Rejects the request that waits. */
void stream_drop_request(struct stream *stream);

/* ---- rsocket/private_data.c ---- */

enum { STREAM_PRIVATE_DATA = 40 };

/** Writes what the peer has to know, STREAM_PRIVATE_DATA bytes. Pure. */
void stream_describe(const struct rsocket *rs, uint8_t *bytes);
/** Takes what the peer says. -EPROTO, and nothing changed: @bytes, of which there are @length, say nothing that makes sense. */
int stream_apply_description(struct rsocket *rs, const void *bytes, uint32_t length);

/** A number by its eight bits in private data: up to 128 as it is, larger ones as multiples of 256. Pure. */
uint8_t stream_scale(uint32_t value);
uint32_t stream_unscale(uint8_t scaled);

/* ---- rsocket/completions.c ---- */

/** Handles all completions and posts receives again. Afterwards gives the peer what became free. */
void stream_advance(struct rsocket *rs);
/** Gives the peer what became free. */
void stream_grant(struct rsocket *rs);
/** Asks for a notification of the next completion, unless one is under way. True: something may have come meanwhile. */
bool stream_arm(struct rsocket *rs);
/** Takes the notification, if there is one. */
void stream_notified(struct rsocket *rs);
/** The connection is of no use any more, for @error. */
void stream_break(struct rsocket *rs, int error);

/** Posts a control message; one of its entries must be free. */
void stream_post_control(struct rsocket *rs, enum stream_control control);

bool stream_has_data(const struct rsocket *rs);
/** Whether the peer has all that was sent, control messages included. */
bool stream_has_sent_all(const struct stream *stream);
/** Whether a message can be sent now: takes the next target if the current one is used up. */
bool stream_can_send(struct rsocket *rs);

/* ---- rsocket/stream_events.c, rsocket/connect.c ---- */

/** Handles what the communication manager reports, which may connect or end the stream, or be a request. */
void stream_take_events(struct rsocket *rs);
/** Ends what rconnect() began: REFUSED with @error. */
void stream_refuse(struct rsocket *rs, int error);
/** Whether raccept() finds something; whether what rconnect() began has ended. */
bool stream_has_request(struct rsocket *rs);
bool stream_connect_is_done(struct rsocket *rs);
/** True while a connection is under way. */
static inline bool stream_is_opening(const struct stream *stream)
{
	return stream->state == STREAM_CONNECTING || stream->state == STREAM_ACCEPTING;
}

/** 0, or why there is no connection to send or receive over: waits for one that is under way. */
int stream_wait_connected(struct rsocket *rs, const char *call, const struct wait_limits *limits);

/* ---- rsocket/send.c ---- */

/**
 * Writes @request of @bytes from the program's memory or from the send ring: fills in its list. @from has at least so many
 * bytes; NULL: they are in the ring already. Takes an entry of the send queue and room of the ring. 0 or a negative errno.
 */
int stream_post_write(struct rsocket *rs, struct ibv_send_wr *request, const void *from, uint32_t bytes);
/** How many bytes the next write of a call has, which has written @before, of those @left. @most: what the target takes. */
uint32_t stream_write_size(const struct stream *stream, uint32_t *before, size_t left, uint32_t most);
/** Sleeps until something can be sent. 0 or a negative errno: why nothing can be sent any more. */
int stream_wait_to_send(struct rsocket *rs, const struct wait_limits *limits);

/* ---- rsocket/iomap.c ---- */

/** Tells the peer of the buffers that it does not know yet. 0 or a negative errno. */
int stream_send_mappings(struct rsocket *rs, const struct wait_limits *limits);

#endif
