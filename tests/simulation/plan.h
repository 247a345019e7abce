/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a seed stands for: two ends, the requests that each posts and when, the receives of the other, the attributes of
 * the connection, the link between them and its weather. And what must come of it: the memory of both ends and their
 * completions, by a model that carries out one request after the other and knows nothing of packets.
 *
 * So that one result is right whatever the timing, each request has memory of its own at both ends; what follows from
 * another is behind a fence (ibv_post_send(3), IBV_SEND_FENCE) or in the order of the connection.
 */
#ifndef SOFTHCA_TESTS_SIMULATION_PLAN_H
#define SOFTHCA_TESTS_SIMULATION_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

enum {
	ENDS = 2,
	MOST_REQUESTS = 40,
	MOST_RECEIVES = 4 * MOST_REQUESTS,
	TARGETS = 2, /* receive queues of an end: one; of XRC two SRQs; of DC those of two DCTs */
	MOST_PIECES = 3,
	COUNTERS = 4,            /* of 8 bytes, at the beginning of an area: what atomics change */
	INVALIDATED = 6,         /* keys of an end that its peer can invalidate */
	PASSING = 6,             /* keys of an end that end as soon as the request which names them has completed */
	AREA = 3 << 18,          /* bytes for what one direction touches at one end */
	MEMORY = 2 * AREA,       /* of an end: what its own requests touch, then what its peer's do */
	STAGED = 4096,           /* offset in an area of the memory behind the keys with a signature, then a cipher */
	STAGED_BYTES = 64 << 10, /* of each of the two */
	PLAIN = STAGED + 2 * STAGED_BYTES, /* offset of the rest of an area */
	SLACK = 8192,                      /* memory behind what is used, watched as well */
	GRH_BYTES = 40,
	BLOCK = 512, /* of the signature… */
	FIELD = 4,   /* …and its bytes on the wire */
	UNIT = 520,  /* of the cipher: no multiple of 16, so that its last bytes depend on where it ends */
};

/* The key that a request names at each end. */
enum keys { KEYS_PLAIN, KEYS_SIGNATURE, KEYS_CIPHER, KEYS_KINDS };

struct range {
	uint32_t offset, length; /* in the memory of an end */
};

struct request {
	uint64_t at_ns; /* when it is posted, from the beginning of the run */
	uint8_t opcode, opmod;
	uint8_t fence; /* bits of fm_ce_se */
	bool signalled, solicited;
	uint8_t target;
	uint8_t keys; /* enum keys; other than KEYS_PLAIN of data with one piece */
	uint8_t pieces;
	struct range local[MOST_PIECES];
	uint32_t length;     /* of memory; of the pieces together */
	uint32_t remote;     /* offset in the peer's memory; of a SEND that of its receive */
	uint32_t imm;        /* in host order */
	uint8_t invalidates; /* SEND_INVAL: number of the key */
	uint8_t passing;     /* number of the passing key that it names at the peer, from 1; 0: none */
	uint8_t operand_bytes;
	uint64_t swap_add, compare, swap_mask, compare_mask;
};

struct receive {
	uint64_t at_ns;
	uint8_t keys; /* enum keys */
	struct range buffer;
};

/* A completion of a receive. */
struct received {
	uint8_t opcode; /* MLX5_CQE_RESP_*, or MLX5_CQE_RESP_ERR */
	uint8_t syndrome;
	uint32_t bytes, imm;
	uint32_t number; /* of the receive, in the order of posting */
};

struct direction {
	uint32_t requests, receives[TARGETS];
	struct request request[MOST_REQUESTS];
	struct receive receive[TARGETS][MOST_RECEIVES];
	/* What must be received, if nothing is lost for good. */
	uint32_t received[TARGETS];
	struct received expected[TARGETS][MOST_RECEIVES];
	/* Bytes in use, from the beginning of the areas; and of what is behind the keys of each kind, the same at both ends. */
	uint32_t local_used, remote_used, staged_used[KEYS_KINDS];
};

struct weather {
	/* Percent of the packets. */
	unsigned int drop, twice, late;
	unsigned int joined; /* arrive together with those that go on, if they are there */
	uint64_t latency_ns, jitter_ns, lateness_ns;
	/* Percent of the calls that find no room, and for how long there is none. */
	unsigned int busy;
	uint64_t busy_ns;
	/* From this packet on none arrives; 0: never. */
	uint64_t dead_after;
};

struct plan {
	uint64_t seed;
	enum ibv_qp_type type;
	bool srq; /* RC: receives come from one */
	/*
	 * Losses may use up the retries, or max_rd_atomic is more than the peer grants: then a run ends early. Otherwise the link has mercy
	 * before that.
	 */
	bool mortal;
	struct ibv_qp_attr attr;
	uint32_t psn[ENDS];
	bool immediate;
	uint32_t most, window;
	struct weather weather;
	struct direction direction[ENDS]; /* of the requests of an end */
	bool invalidated[ENDS][INVALIDATED];
	uint8_t expected[ENDS][MEMORY];
};

/** Draws the plan of @seed. */
void plan_draw(struct plan *plan, uint64_t seed);
/** Fills in what must come of it. */
void plan_carry_out(struct plan *plan);
/** What the memory of @end is before the run. */
const uint8_t *plan_memory(int end);
/** One line about it. */
void plan_print(const struct plan *plan);

bool plan_is_reliable(const struct plan *plan);
bool opcode_is_atomic(uint8_t opcode);
bool opcode_is_masked(uint8_t opcode);
bool opcode_is_rdma(uint8_t opcode);
bool opcode_takes_receive(uint8_t opcode);
bool opcode_is_send(uint8_t opcode);

/** Bytes of the request on the wire: those of memory, with a signature field behind each block if its key says so. */
uint32_t request_wire_bytes(const struct request *request);

/** Where an area begins: of what the requests of an end touch there, or those of its peer. */
static inline uint32_t area_of(bool remote)
{
	return remote ? AREA : 0;
}

#endif
