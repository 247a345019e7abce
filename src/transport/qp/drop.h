/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that are dropped, or refused without an end for the QP: the one place where these are explained. A network, or
 * another process, can send them at any rate, so they pass the gate of explain/limit.h. Those which this process sent itself
 * are its own doing, and each is explained. Any thread, any lock.
 */
#ifndef SOFTHCA_TRANSPORT_QP_DROP_H
#define SOFTHCA_TRANSPORT_QP_DROP_H

#include "explain/explain.h"

struct hca;
struct packet;
struct refusal;

/** Explains to @hca, with @subject, why @packet is dropped. Returns the serial number of the record; 0: it was left out. */
uint64_t packet_explain_drop(struct hca *hca, const struct packet *packet, const struct explain_subject *subject,
			     const struct refusal *why);

#endif
