/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measurements between two processes. `softhca-bench-pair TEST` is the server, the same with --connect ADDRESS the client,
 * which prints the figures, a line "name value" each, and controls the server by TCP. links.py runs them in turn with
 * alternatives.
 *
 * A process has one thread, on the given CPU. An error ends it with a line on stderr.
 */
#ifndef SOFTHCA_BENCH_LINKS_PAIR_H
#define SOFTHCA_BENCH_LINKS_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#define DEPTH 64 /* work requests of each queue */

struct options {
	const char *address; /* of the server; NULL: this is the server */
	const char *port;
	int cpu;       /* -1: any */
	uint32_t size; /* bytes of a message */
	uint32_t outstanding;
	uint32_t mtu;
	double seconds; /* of a measurement, approximately */
	uint32_t count; /* of queue pairs */
	bool events;    /* sleep for completions instead of polling */
	bool passive;   /* the server makes no call during the WRITEs */
};

struct pair {
	const struct options *options;
	bool is_client;
	int socket;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* of receive_cq, with events */
	struct ibv_cq *send_cq, *receive_cq;
	union ibv_gid gid;
	uint8_t gid_index;
	struct ibv_qp *qp; /* the first */
	/* `source` is sent, the peer writes to `target`: options->size bytes plus a page each. */
	uint8_t *source, *target;
	struct ibv_mr *source_mr, *target_mr;
	/* The peer's `target`. */
	uint64_t remote;
	uint32_t rkey;
	/* Request used by post_send() and post_write(). */
	struct ibv_sge sge;
	struct ibv_send_wr send, write;
};

__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);
double now(void);

/* ---- setting up (pair.c) -------------------------------------------------------------------------------------- */

/** Finds the peer by TCP, opens the device, connects one QP. */
void pair_open(struct pair *pair, const struct options *options);
/** As pair_open(), without a QP: the caller creates them. */
void pair_open_device(struct pair *pair, const struct options *options);
struct ibv_qp *pair_create_qp(struct pair *pair);
void pair_connect_qp(struct pair *pair, struct ibv_qp *qp, const union ibv_gid *gid, uint32_t peer);

void tcp_send(const struct pair *pair, const void *bytes, size_t length);
void tcp_receive(const struct pair *pair, void *bytes, size_t length);
/** Waits until both processes have called it. */
void tcp_meet(const struct pair *pair);

/** Post @length bytes at the start of `source`: as a SEND, inline if small, or as a WRITE to @offset of the peer's target. */
void post_send(struct pair *pair, uint32_t length, bool signalled);
void post_write(struct pair *pair, uint32_t length, uint64_t offset, bool signalled);
void post_receive(struct pair *pair);
/** Polls up to 16 completions of @cq; all must be successful. */
uint32_t take(struct ibv_cq *cq);

/* ---- tests ---------------------------------------------------------------------------------------------------- */

void test_send_latency(const struct options *options);
void test_write_latency(const struct options *options);
void test_write_bandwidth(const struct options *options);
void test_connect(const struct options *options);
void test_idle(const struct options *options);

#endif
