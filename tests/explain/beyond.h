/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by most cases of explain/beyond: two connected RC QPs of one context; the test builds their packets by hand. */
#ifndef SOFTHCA_TESTS_EXPLAIN_BEYOND_H
#define SOFTHCA_TESTS_EXPLAIN_BEYOND_H

#include <stdbool.h>
#include <infiniband/verbs.h>

#include "beyond_cases.h"
#include "explain/explain.h"
#include "wire/packet.h"

enum { CLIENT, SERVER, FIRST_PSN = 0x100, WR_ID = 7, BYTES = 16, MTU = 1024 };

/* Objects of the open pair. */
extern struct ibv_context *context;
extern struct ibv_pd *pd;
extern struct ibv_mr *mr; /* over memory */
extern struct ibv_cq *cq;
extern struct ibv_qp *qp[2];
extern uint8_t memory[4096];

/* Make calloc(3) return NULL, and pthread_create(3) return EAGAIN. */
extern bool no_memory, no_threads;

/* Set up and tear down each case. The client is in RTS, the server in INIT, so requests of the client are not answered. */
int open_pair(void **state);
int close_pair(void **state);
void modify(int i, struct ibv_qp_attr attr, int mask);
void to_rts(int i);

/* Posts a request of the client that is not answered. */
void post(enum ibv_wr_opcode opcode, uint32_t rkey);
void deliver_packet(const struct packet *packet);
/* Delivers @packet to one of the QPs as a link does. */
void deliver(int to, struct packet packet);

/* Expects the next completion to have @status and the number of @rule. */
void expect_completion(enum ibv_wc_status status, enum explain_rule rule);
/* Expects the newest explanation about the QP (NULL: about any object) to be of @rule, with a line that begins like
 * @format. */
void __attribute__((format(printf, 3, 4)))
expect_line(const struct ibv_qp *about, enum explain_rule rule, const char *format, ...);

#endif
