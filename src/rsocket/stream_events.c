/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of the communication manager (rdma_cm(7)) for a stream. See stream.h. */
#include <errno.h>

#include "abi/rdmacm_entry_points.h"
#include "explain/explain.h"
#include "rdmacm/devices.h"
#include "rsocket/objects.h"
#include "rsocket/wait.h"

void stream_refuse(struct rsocket *rs, int error)
{
	if (rs->stream.state != STREAM_CONNECTING)
		return;
	rs->stream.state = STREAM_REFUSED;
	rs->error = error;
}

static void stream_resolved(struct rsocket *rs)
{
	struct stream *stream = &rs->stream;
	int result;

	if (stream->paths)
		result = softhca_rdma_set_option(stream->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, stream->paths,
						 stream->path_count * sizeof(*stream->paths));
	else
		result = softhca_rdma_resolve_route(stream->id, STREAM_RESOLVE_MS);
	if (result)
		stream_refuse(rs, errno);
}

static void stream_routed(struct rsocket *rs)
{
	uint8_t description[STREAM_PRIVATE_DATA];
	struct rdma_conn_param param = {
		.private_data = description,
		.private_data_len = sizeof(description),
		.flow_control = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	int error = stream_open(rs);

	if (!error) {
		stream_describe(rs, description);
		if (softhca_rdma_connect(rs->stream.id, &param))
			error = -errno;
	}
	if (error)
		stream_refuse(rs, -error);
}

static void stream_established(struct rsocket *rs, const struct rdma_conn_param *param)
{
	struct stream *stream = &rs->stream;

	if (stream->state == STREAM_ACCEPTING) {
		stream->state = STREAM_CONNECTED;
		stream_grant(rs);
	}
	if (stream->state != STREAM_CONNECTING)
		return;
	if (stream_apply_description(rs, param->private_data, param->private_data_len)) {
		(void)REFUSE(hca_of_id(NULL), "rconnect", EPROTO, RULE_RSOCKET_DESCRIPTION, param->private_data_len);
		softhca_rdma_disconnect(stream->id);
		stream_refuse(rs, EPROTO);
		return;
	}
	stream->state = STREAM_CONNECTED;
	stream->readable = true;
	stream->writable = true;
	stream_grant(rs);
}

/* Ends a stream whose peer has gone. All its data has arrived, because the peer waited for the acknowledgements. */
static void stream_ended(struct rsocket *rs)
{
	struct stream *stream = &rs->stream;

	if (stream->state == STREAM_CONNECTING) {
		stream_refuse(rs, ECONNRESET);
		return;
	}
	if (stream->state != STREAM_CONNECTED && stream->state != STREAM_ACCEPTING)
		return;
	if (stream->cq)
		stream_advance(rs);
	if (stream->state == STREAM_CONNECTED || stream->state == STREAM_ACCEPTING) {
		stream->state = STREAM_DISCONNECTED;
		stream->readable = false;
		stream->writable = false;
	}
}

/* Returns the errno value of @event, or @otherwise. */
static int event_errno(const struct rdma_cm_event *event, int otherwise)
{
	return event->status < 0 ? -event->status : otherwise;
}

static void stream_handle_event(struct rsocket *rs, const struct rdma_cm_event *event, int error)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		stream_resolved(rs);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		stream_routed(rs);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		stream_established(rs, &event->param.conn);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		stream_refuse(rs, event_errno(event, EHOSTUNREACH));
		break;
	case RDMA_CM_EVENT_REJECTED:
		stream_refuse(rs, ECONNREFUSED);
		stream_ended(rs);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		stream_refuse(rs, event_errno(event, ETIMEDOUT));
		stream_ended(rs);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		stream_refuse(rs, error);
		stream_ended(rs);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		stream_ended(rs);
		break;
	default:
		break;
	}
}

void stream_take_events(struct rsocket *rs)
{
	struct rdma_cm_event *event;
	bool any = false;

	while (!rs->stream.request && !softhca_rdma_get_cm_event(rs->stream.channel, &event)) {
		int error = errno;

		any |= event->event != (enum rdma_cm_event_type)RDMA_CM_EVENT_USER_;
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			rs->stream.request = event;
			break;
		}
		stream_handle_event(rs, event, error);
		softhca_rdma_ack_cm_event(event);
	}
	/* Other threads sleep until the channel is readable, but this call has emptied it. */
	if (any)
		rsocket_wake(rs);
}
