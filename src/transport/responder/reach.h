/* SPDX-License-Identifier: BSD-2-Clause */
/* Grants a peer direct access to memory, until grants are revoked (hca/grants.h). */
#ifndef SOFTHCA_TRANSPORT_RESPONDER_REACH_H
#define SOFTHCA_TRANSPORT_RESPONDER_REACH_H

#include <stdbool.h>

struct packet;
struct run;
struct run_reach;

/** delivery.reach; the lock of the QP is held. */
bool transport_reach(struct run *run, const struct packet *packet, struct run_reach *reach);

#endif
