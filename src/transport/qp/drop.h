/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explains packets that are dropped, or refused without ending the QP. A network, or another process, can send them at
 * any rate, so their explanations are limited (explain/limit.h). Packets that this process sent itself are all
 * explained. Any thread, any lock.
 */
#ifndef SOFTHCA_TRANSPORT_QP_DROP_H
#define SOFTHCA_TRANSPORT_QP_DROP_H

#include "explain/explain.h"

struct hca;
struct packet;

/**
 * Explains to @hca, with @subject, why @packet is dropped. Returns the serial number of the record, or 0 if it was left
 * out.
 */
uint64_t packet_explain_drop(struct hca *hca, const struct packet *packet, const struct explain_subject *subject,
			     enum explain_rule rule, const uint64_t *figures, size_t count);

#endif
