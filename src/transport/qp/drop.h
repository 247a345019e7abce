/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explains packets that are dropped, or refused without ending the QP. Except for packets of this process, explanations
 * are limited (explain/limit.h), as packets may arrive at any rate. Any thread, any lock.
 */
#ifndef SOFTHCA_TRANSPORT_QP_DROP_H
#define SOFTHCA_TRANSPORT_QP_DROP_H

#include "explain/explain.h"

struct hca;
struct packet;

/**
 * Explains to @hca, with @subject, why @packet is dropped. Returns the serial number of the record, or 0 if omitted.
 */
uint64_t packet_explain_drop(struct hca *hca, const struct packet *packet, const struct explain_subject *subject,
			     enum explain_rule rule, const uint64_t *figures, size_t count);

#endif
