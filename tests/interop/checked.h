/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Program of two processes that checks all bytes and statuses. The requester runs the cases and controls the responder over
 * TCP. The program uses verbs only and runs unmodified on softhca, on the kernel's soft-RoCE and on adapters.
 *
 * One thread per process; no locks. All objects live until the process ends, except the queue pair, its windows and the second
 * region, which open_qp() replaces.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	REGION = 2 << 20,  /* bytes of the memory of each process */
	WINDOWS = 4,       /* most windows of a queue pair */
	OUTSTANDING = 64,  /* room of each queue */
	READS = 16,        /* outstanding READs and atomics */
	GRH = 40,          /* bytes before the payload of a datagram */
	WAIT_SECONDS = 40, /* time limit of a completion */
	QKEY = 0x11111111,
	IMMEDIATE = 0x00c0ffee, /* immediate data of all requests */
};

/* Address of a queue pair and of its memory. */
struct address {
	uint32_t qpn, psn, mtu, unused;
	uint64_t memory;
	uint32_t rkey, unused_too;
	union ibv_gid gid;
};

/* Options of the queue pairs of both processes. */
struct options {
	uint32_t type;   /* enum ibv_qp_type */
	uint32_t access; /* rights that the responder's queue pair gives */
	uint32_t retries, rnr_retries;
	uint32_t atomic_write; /* create it with ibv_wr_atomic_write() */
	uint32_t wrong_qpn;    /* the requester sends to a queue pair that does not exist */
};

/* State of one process. */
struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr, *second; /* over the same memory */
	struct ibv_qp *qp;
	struct ibv_ah *handle; /* of the peer of a UD queue pair */
	struct ibv_mw *windows[WINDOWS];
	int window_count;
	uint8_t *memory;
	int gid_index;
	int peer; /* TCP socket */
	struct options options;
	struct address own, other;
};

/* Statuses of requests that do not complete in time, or that ibv_post_send() refuses. */
#define NO_COMPLETION (UINT32_MAX)
#define NOT_POSTED (UINT32_MAX - 1)

/* Commands of the requester to the responder. */
enum request { OPEN, FILL, COMPARE, CHECK, WORD, RECEIVE, WAIT, BIND, INVALIDATE, REGISTER, DEREGISTER, END };

struct message {
	uint32_t request, unused;
	uint64_t values[5];
	struct options options;
	struct address address;
};

/* Fields of a completion. */
struct outcome {
	uint32_t status, opcode, bytes, flags, data; /* immediate data in network order, or the invalidated key */
};

/* Prints a message and ends the process with status 1. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Opens the device called @name. The result is never freed. */
struct end *open_end(const char *name, int gid_index);

/* Replaces the queue pair of @end by a new one in state INIT, and fills in @end->own. */
void open_qp(struct end *end, const struct options *options);

/* Moves the queue pair of @end to RTS, to the peer in @end->other. */
void connect_qp(struct end *end);

/* Fills the memory of @end with the pattern @seed, LOCAL or REMOTE. */
void fill(struct end *end, uint64_t seed);

/*
 * Compares [@offset, @offset + @bytes) of the memory of @end with pattern @seed from byte @source. Returns -1 if they are equal,
 * otherwise the offset of the first difference.
 */
int64_t compare(const struct end *end, uint64_t offset, uint64_t bytes, uint64_t seed, uint64_t source);

/* As compare(); also compares the rest of the memory with pattern @around. */
int64_t check(const struct end *end, uint64_t offset, uint64_t bytes, uint64_t seed, uint64_t source, uint64_t around);

/* Posts a receive of [@offset, @offset + @bytes) of the memory; its key is invalid if @broken. */
void receive(struct end *end, uint64_t offset, uint32_t bytes, bool broken);

/* Waits for the next completion. */
struct outcome await_completion(struct end *end);

/* Makes a window of type 2 over [@offset, @offset + @bytes) with the rights @access; returns its key. */
uint32_t bind_window(struct end *end, uint64_t offset, uint64_t bytes, unsigned access);

/* Invalidates @key by a work request. */
void invalidate(struct end *end, uint32_t key);

/* Answers the requester until it ends the session. */
void serve(struct end *end);

/* Sends a command to the responder and returns the first value of the response; ask_outcome() sends WAIT. */
uint64_t ask(struct end *end, enum request request, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e);
struct outcome ask_outcome(struct end *end);

/* Connects new queue pairs of both processes and fills their memories with the patterns LOCAL and REMOTE. */
void join(struct end *end, const struct options *options);

/* Fills in a signalled request of one @piece of the requester's memory. @remote is an offset in the responder's memory. */
void prepare(struct end *end, struct ibv_send_wr *request, struct ibv_sge *piece, enum ibv_wr_opcode opcode,
	     uint64_t local, uint32_t bytes, uint64_t remote, uint32_t key);

/* Posts a list of requests. Returns false if that fails with EINVAL. */
bool post_list(struct end *end, struct ibv_send_wr *request);

/* Prepares one request and posts it. Returns false if that fails with EINVAL. */
bool post(struct end *end, enum ibv_wr_opcode opcode, uint64_t local, uint32_t bytes, uint64_t remote, uint32_t key);

enum { LOCAL = 1, REMOTE = 2 };

/* Groups of cases of the requester. Each case prints a line. */
void run_data(struct end *end, const char *known);
void run_atomic_write(struct end *end);
void run_unreliable(struct end *end);
void run_errors(struct end *end, const char *known);

/* Returns true if @known, "NAME=OUTCOME,…", has this outcome for the case @name. */
bool is_known(const char *known, const char *name, const char *outcome);

/* Returns the name of a status without its prefix. */
const char *status_name(uint32_t status);

/* Prints the result of a case and counts it. Prints the formatted text only if @right is false. Returns @right. */
bool report(bool right, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
