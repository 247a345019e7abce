/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events of a side's context (ibv_get_async_event(3)), with a deadline. */
#ifndef SOFTHCA_TESTS_API_SUPPORT_EVENT_H
#define SOFTHCA_TESTS_API_SUPPORT_EVENT_H

#include "support/side.h"

/** Expects @type as the next event, about @object (a QP, CQ or SRQ), and acknowledges it. */
#define expect_event(side, type, object) expect_event_(HERE, side, type, object)
void expect_event_(struct place place, const struct side *side, enum ibv_event_type type, const void *object);

/** Returns true if an event is pending. */
bool event_waits(const struct side *side);

/** Returns the next event after acknowledging it. */
#define next_event(side) next_event_(HERE, side)
struct ibv_async_event next_event_(struct place place, const struct side *side);

/** Expects no event. */
#define expect_no_event(side) expect_no_event_(HERE, side)
void expect_no_event_(struct place place, const struct side *side);

#endif
