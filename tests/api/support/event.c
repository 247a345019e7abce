/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events, see event.h. */
#include "support/event.h"

#include <poll.h>

enum { DEADLINE_MS = 10000 };

static bool event_comes(const struct side *side, int timeout_ms)
{
	struct pollfd fd = {.fd = side->context->async_fd, .events = POLLIN};

	return poll(&fd, 1, timeout_ms) == 1;
}

bool event_waits(const struct side *side)
{
	return event_comes(side, 0);
}

struct ibv_async_event next_event_(struct place place, const struct side *side)
{
	struct ibv_async_event event;

	if (!event_comes(side, DEADLINE_MS))
		fail_at(place, "the %s waits for an event", side->name);
	expect_error_(place, "ibv_get_async_event()", ibv_get_async_event(side->context, &event), 0);
	ibv_ack_async_event(&event);
	return event;
}

void expect_event_(struct place place, const struct side *side, enum ibv_event_type type, const void *object)
{
	struct ibv_async_event event;

	if (!event_comes(side, DEADLINE_MS))
		fail_at(place, "the %s waits for the event \"%s\"", side->name, ibv_event_type_str(type));
	event = next_event_(place, side);
	if (event.event_type != type)
		fail_at(place, "the %s gets the event \"%s\", not \"%s\"", side->name,
			ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	/* The union holds a pointer for each kind of object. */
	if ((const void *)event.element.qp != object)
		fail_at(place, "the %s's event \"%s\" is about another object", side->name, ibv_event_type_str(type));
}

void expect_no_event_(struct place place, const struct side *side)
{
	if (event_waits(side))
		fail_at(place, "the %s gets the event \"%s\"", side->name,
			ibv_event_type_str(next_event_(place, side).event_type));
}
