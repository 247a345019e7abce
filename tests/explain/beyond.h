/* SPDX-License-Identifier: BSD-2-Clause */
/* What most cases of explain/beyond share: two RC QPs of one context, connected, whose packets a test makes by hand. */
#ifndef SOFTHCA_TESTS_EXPLAIN_BEYOND_H
#define SOFTHCA_TESTS_EXPLAIN_BEYOND_H

#include <stdbool.h>
#include <infiniband/verbs.h>

#include "beyond_cases.h"
#include "explain/explain.h"
#include "wire/packet.h"

enum { CLIENT, SERVER, FIRST_PSN = 0x100, WR_ID = 7, BYTES = 16, MTU = 1024 };

/* Of the pair that is open. */
extern struct ibv_context *context;
extern struct ibv_pd *pd;
extern struct ibv_mr *mr; /* over memory */
extern struct ibv_cq *cq;
extern struct ibv_qp *qp[2];
extern uint8_t memory[4096];

/* calloc(3) returns NULL; pthread_create(3) EAGAIN. */
extern bool no_memory, no_threads;

/* Setup and teardown of each case. The client is in RTS, the server in INIT: nothing that the client sends is answered. */
int open_pair(void **state);
int close_pair(void **state);
void modify(int i, struct ibv_qp_attr attr, int mask);
void to_rts(int i);

/* A request of the client that nobody answers. */
void post(enum ibv_wr_opcode opcode, uint32_t rkey);
void deliver_packet(const struct packet *packet);
/* What a link does with a packet for one of the QPs. */
void deliver(int to, struct packet packet);

/* The next completion has @status and the number of @rule. */
void expect_completion(enum ibv_wc_status status, enum explain_rule rule);
/* The newest explanation about the QP (NULL: of all) is of @rule; its line begins like @format. */
void __attribute__((format(printf, 3, 4)))
expect_line(const struct ibv_qp *about, enum explain_rule rule, const char *format, ...);

#endif
