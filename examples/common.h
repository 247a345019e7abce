/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the examples share: one end of a connection, opened, connected, polled, closed. Nothing in here is special to
 * softhca; whatever goes wrong ends the program with a line that says so.
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
	int borrowed; /* the context is somebody else's */
};

/* Prints @format and a line feed to stderr and exits with status 1; a second one adds what errno says. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);
__attribute__((noreturn, format(printf, 1, 2))) void die_errno(const char *format, ...);

/* Work requests that each queue of an end takes. */
#define END_QUEUE_DEPTH 64

/**
 * Opens the first device and creates PD, CQ and an RC QP that can do everything. @key_builders: also the builders of
 * mlx5dv_wr_post(3) that configure mkeys.
 */
void end_open(struct end *end, int key_builders);
/** The same on a device that is open and stays so: that of an id of rdma_cm(7). */
void end_open_on(struct end *end, struct ibv_context *context, int key_builders);
void end_close(struct end *end);

/* What a peer has to know of an end to connect to it. */
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

/** Waits for the next completion, whatever its status. */
struct ibv_wc end_wait(struct end *end);
/** The same; any status but success ends the program. @what: said then. */
struct ibv_wc end_wait_success(struct end *end, const char *what);

#endif
