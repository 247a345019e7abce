/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code shared by the examples: one end of a connection, opened, connected, polled, closed. Nothing here is specific to softhca;
 * an error ends the program with a line that describes it.
 *
 * An end belongs to one thread.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq; /* of sends and receives */
	struct ibv_qp *qp;
	union ibv_gid gid;
	uint8_t gid_index;
	int borrowed; /* the context belongs to the caller */
};

/* Print @format and a line feed to stderr and exit with status 1; the second one appends the text of errno. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);
__attribute__((noreturn, format(printf, 1, 2))) void die_errno(const char *format, ...);

/* Work requests that fit into each queue of an end. */
#define END_QUEUE_DEPTH 64

/**
 * Opens the first device and creates PD, CQ and an RC QP with all rights. @key_builders: also the builders of mlx5dv_wr_post(3)
 * that configure mkeys.
 */
void end_open(struct end *end, int key_builders);
/** As end_open(), on a device that is open and stays open: that of an id of rdma_cm(7). */
void end_open_on(struct end *end, struct ibv_context *context, int key_builders);
void end_close(struct end *end);

/* Data that a peer needs to connect to an end. */
struct end_address {
	uint32_t qp_num;
	union ibv_gid gid;
};

struct end_address end_address(const struct end *end);
/** Brings the QP through INIT and RTR to RTS, open to remote reads and writes. The peer does the same. */
void end_connect_to(struct end *end, const struct end_address *peer);
/** Connects two ends of this process to each other. */
void end_connect(struct end *one, struct end *other);

/** Registers memory of the end, with IBV_ACCESS_* rights. */
struct ibv_mr *end_register(struct end *end, void *memory, size_t length, unsigned int access);

/** Posts one send request, signalled. */
void end_post(struct end *end, struct ibv_send_wr *wr);

/** Waits for the next completion, of any status. */
struct ibv_wc end_wait(struct end *end);
/** As end_wait(); any status except success ends the program with @what in the message. */
struct ibv_wc end_wait_success(struct end *end, const char *what);

#endif
