/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests with processes of their own share: starting a process that runs another role of the same program, here or
 * in another network namespace, talking to it over a socket, and RC queue pairs to it.
 *
 * Whatever goes wrong that a test does not expect ends the process with a line on stderr and status 1. One thread.
 */
#ifndef SOFTHCA_TESTS_CLIENTS_PEERS_H
#define SOFTHCA_TESTS_CLIENTS_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <infiniband/verbs.h>

/* Prefix of what die() says: who speaks. */
extern const char *role_name;
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

double seconds_now(void);

/* ---- processes ------------------------------------------------------------------------------------------------ */

struct process {
	pid_t pid;
	int socket;
};

/**
 * Starts this program again with @arguments (NULL at the end; the first is the role), and the socket to it as descriptor
 * 3. @netns: path of a network namespace, or NULL for this one. It dies with the process that started it.
 */
struct process process_start(const char *netns, const char *const *arguments);
/** In the process that was started. */
#define PROCESS_SOCKET 3

/** kill -9; returns when it is gone. Closes the socket. */
void process_kill(const struct process *process);

/** All of @length bytes. False: the other end has gone. */
bool send_all(int socket, const void *bytes, size_t length);
bool receive_all(int socket, void *bytes, size_t length);

/* What a process holds that can be of a connection: descriptors, and mappings of files that are shared. */
struct held {
	unsigned int descriptors, mappings;
};

struct held held_now(void);
/** Ends the process if within @seconds it does not hold as little as @before: what a dead peer had here is freed late. */
void expect_no_more_held(const struct held *before, double seconds);

/* ---- queue pairs ---------------------------------------------------------------------------------------------- */

struct device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	union ibv_gid gid; /* of RoCE v2, over IPv4 if there is one */
	uint8_t gid_index;
};

void device_open(struct device *device);
void device_close(struct device *device);
struct ibv_cq *cq_new(struct device *device, int entries);
/** Memory with all remote rights; @bytes of pages, all zero. */
struct ibv_mr *memory_new(struct device *device, size_t bytes);
void memory_free(struct ibv_mr *mr);

#define QP_DEPTH 64

/** An RC QP in INIT, with all remote rights, QP_DEPTH places in either queue, one SGE. */
struct ibv_qp *qp_new(struct device *device, struct ibv_cq *send_cq, struct ibv_cq *receive_cq);

/* How fast a QP gives up: local ACK timeout 4.096 us * 2^timeout, up to four times as long in effect (IBTA 9.9.2.1). */
struct patience {
	uint8_t timeout, retries;
	bool rnr_once; /* gives up after one RNR NAK more; otherwise never */
};

/** To RTS. PSNs: @psn is this side's first, @peer_psn the other's. */
void qp_connect(struct device *device, struct ibv_qp *qp, const union ibv_gid *gid, uint32_t peer, uint32_t psn,
		uint32_t peer_psn, struct patience patience);

/* ---- numbers -------------------------------------------------------------------------------------------------- */

/** splitmix64: the next of the sequence in @state. */
uint64_t draw(uint64_t *state);
/** From 0 to @bound - 1. */
uint32_t draw_below(uint64_t *state, uint32_t bound);

#endif
