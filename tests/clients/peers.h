/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code shared by tests with several processes: starting a process that runs another role of the same program, here or in
 * another network namespace, talking to it over a socket, and RC queue pairs to it.
 *
 * An unexpected error ends the process with a line on stderr and status 1. One thread.
 */
#ifndef SOFTHCA_TESTS_CLIENTS_PEERS_H
#define SOFTHCA_TESTS_CLIENTS_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <infiniband/verbs.h>
#include "test_clock.h"

/* Prefix of the messages of die(): the role. */
extern const char *role_name;
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

/* ---- processes ------------------------------------------------------------------------------------------------ */

struct process {
	pid_t pid;
	int socket;
};

/**
 * Starts this program again with @arguments (NULL at the end; the first is the role), and the socket to it as descriptor 3.
 * @netns: path of a network namespace, or NULL for this one. It is killed when the process that started it ends.
 */
struct process process_start(const char *netns, const char *const *arguments);
/** Socket in the process that was started. */
#define PROCESS_SOCKET 3

/** Sends SIGKILL; returns when the process is gone. Closes the socket. */
void process_kill(const struct process *process);

/** Transfer all of @length bytes. Return false if the other end has gone. */
bool send_all(int socket, const void *bytes, size_t length);
bool receive_all(int socket, void *bytes, size_t length);

/* Objects of a process that may belong to a connection: descriptors, and mappings of shared files. */
struct held {
	unsigned int descriptors, mappings;
};

struct held held_now(void);
/** Ends the process unless it holds at most @before within @seconds: resources of a dead peer are freed late. */
void expect_no_more_held(const struct held *before, double seconds);

/* ---- queue pairs ---------------------------------------------------------------------------------------------- */

struct device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	union ibv_gid gid; /* of RoCE v2, over IPv4 if available */
	uint8_t gid_index;
};

void device_open(struct device *device);
void device_close(struct device *device);
struct ibv_cq *cq_new(struct device *device, int entries);
/** Returns memory with all remote rights; @bytes of pages, all zero. */
struct ibv_mr *memory_new(struct device *device, size_t bytes);
void memory_free(struct ibv_mr *mr);

#define QP_DEPTH 64

/** Creates an RC QP in INIT, with all remote rights, QP_DEPTH entries in either queue, one SGE. */
struct ibv_qp *qp_new(struct device *device, struct ibv_cq *send_cq, struct ibv_cq *receive_cq);

/* Limits of a QP's retries: local ACK timeout 4.096 us * 2^timeout, up to four times as long in effect (IBTA 9.9.2.1). */
struct patience {
	uint8_t timeout, retries;
	bool rnr_once; /* fails at the second RNR NAK; otherwise never */
};

/** Moves the QP to RTS. PSNs: @psn is this side's first, @peer_psn the other's. */
void qp_connect(struct device *device, struct ibv_qp *qp, const union ibv_gid *gid, uint32_t peer, uint32_t psn,
		uint32_t peer_psn, struct patience patience);

/* ---- numbers -------------------------------------------------------------------------------------------------- */

/** Returns the next number of the splitmix64 sequence in @state. */
uint64_t draw(uint64_t *state);
/** Returns a number from 0 to @bound - 1. */
uint32_t draw_below(uint64_t *state, uint32_t bound);

#endif
