/* SPDX-License-Identifier: BSD-2-Clause */
/* rsetsockopt(), rgetsockopt(), rfcntl(). Options other than those of rsocket(7) are ENOTSUP. */
#include "rsocket/options.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/sa.h>

#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "rdmacm/devices.h"
#include "rsocket/table.h"

#define ENTRY(level, name) ((uint64_t)(level) << 32 | (uint32_t)(name))

/* Sets an option of the ID (rdma_set_option(3)) or of the UDP socket. */
static int option_set_on_id(struct rsocket *rs, int name, int value)
{
	if (rs->datagram)
		return name == RDMA_OPTION_ID_REUSEADDR
			       ? setsockopt(rs->fd, SOL_SOCKET, SO_REUSEADDR, &value, sizeof(value))
			       : setsockopt(rs->fd, IPPROTO_IPV6, IPV6_V6ONLY, &value, sizeof(value));
	return softhca_rdma_set_option(rs->stream.id, RDMA_OPTION_ID, name, &value, sizeof(value));
}

static bool rsocket_has_memory(const struct rsocket *rs)
{
	return rs->stream.state != STREAM_IDLE && rs->stream.state != STREAM_BOUND &&
	       rs->stream.state != STREAM_LISTENING;
}

static int option_set_route(struct rsocket *rs, const void *value, socklen_t length)
{
	struct stream *stream = &rs->stream;
	void *copy;

	if (rs->datagram || !length || length % sizeof(*stream->paths))
		return -EINVAL;
	copy = malloc(length);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, value, length);
	free(stream->paths);
	stream->paths = copy;
	stream->path_count = (uint32_t)(length / sizeof(*stream->paths));
	return 0;
}

/* Sets a size at any time, for later connections only (socket(7)). */
static int option_set_buffer(struct rsocket *rs, uint32_t *setting, uint64_t value)
{
	if (!rsocket_has_memory(rs))
		*setting = clamp_setting(value, LEAST_BYTES, MOST_BYTES);
	return 0;
}

/* Sets a size of the connection's memory, which cannot change once there is one. */
static int option_set_size(struct rsocket *rs, uint32_t *setting, uint64_t value, uint32_t least, uint32_t most)
{
	if (rsocket_has_memory(rs))
		return -refuse_ignorable(hca_of_id(NULL), "rsetsockopt", EINVAL, RULE_RSOCKET_OPTION_STATE,
					 FIGURES((uint64_t)rs->fd));
	*setting = clamp_setting(value, least, most);
	return 0;
}

static int option_set_flag(bool *flag, int value)
{
	*flag = value;
	return 0;
}

static int option_set_integer(struct rsocket *rs, uint64_t entry, int value)
{
	struct rsocket_settings *settings = &rs->settings;
	uint64_t positive = value < 0 ? 0 : (uint64_t)value;

	switch (entry) {
	case ENTRY(SOL_SOCKET, SO_REUSEADDR):
		if (option_set_on_id(rs, RDMA_OPTION_ID_REUSEADDR, value))
			return -errno;
		return option_set_flag(&settings->reuse_address, value);
	case ENTRY(IPPROTO_IPV6, IPV6_V6ONLY):
		if (option_set_on_id(rs, RDMA_OPTION_ID_AFONLY, value))
			return -errno;
		return option_set_flag(&settings->own_family_only, value);
	/* Like Linux's setsockopt(2). */
	case ENTRY(SOL_SOCKET, SO_RCVBUF):
		return option_set_buffer(rs, &settings->receive_bytes, positive * 2);
	case ENTRY(SOL_SOCKET, SO_SNDBUF):
		return option_set_buffer(rs, &settings->send_bytes, positive * 2);
	case ENTRY(SOL_SOCKET, SO_KEEPALIVE):
		return option_set_flag(&settings->keep_alive, value);
	case ENTRY(SOL_SOCKET, SO_OOBINLINE):
		return option_set_flag(&settings->inline_urgent, value);
	case ENTRY(IPPROTO_TCP, TCP_NODELAY):
		return option_set_flag(&settings->no_delay, value);
	case ENTRY(IPPROTO_TCP, TCP_MAXSEG):
	case ENTRY(IPPROTO_TCP, TCP_KEEPIDLE):
	case ENTRY(IPPROTO_TCP, TCP_KEEPINTVL):
	case ENTRY(IPPROTO_TCP, TCP_KEEPCNT):
		return 0;
	case ENTRY(SOL_RDMA, RDMA_SQSIZE):
		return option_set_size(rs, &settings->send_entries, positive, LEAST_ENTRIES, MOST_ENTRIES);
	case ENTRY(SOL_RDMA, RDMA_RQSIZE):
		return option_set_size(rs, &settings->receive_entries, positive, LEAST_ENTRIES, MOST_ENTRIES);
	case ENTRY(SOL_RDMA, RDMA_INLINE):
		return option_set_size(rs, &settings->inline_bytes, positive, 0, MOST_INLINE);
	case ENTRY(SOL_RDMA, RDMA_IOMAPSIZE):
		positive = positive < MOST_MAPPINGS ? positive : MOST_MAPPINGS;
		/* The peer gets only eight bits. */
		return option_set_size(rs, &settings->iomap_entries, stream_unscale(stream_scale((uint32_t)positive)),
				       0, MOST_MAPPINGS);
	default:
		return -REFUSE(hca_of_id(NULL), "rsetsockopt", ENOTSUP, RULE_RSOCKET_OPTION, entry >> 32,
			       (uint32_t)entry);
	}
}

static int option_set(struct rsocket *rs, int level, int name, const void *value, socklen_t length)
{
	int integer;

	if (!value)
		return -EFAULT;
	if (level == SOL_RDMA && name == RDMA_ROUTE)
		return rsocket_has_memory(rs) ? -EINVAL : option_set_route(rs, value, length);
	if (level == SOL_SOCKET && name == SO_LINGER) {
		if (length < sizeof(rs->settings.linger))
			return -EINVAL;
		memcpy(&rs->settings.linger, value, sizeof(rs->settings.linger));
		return 0;
	}
	if (length < sizeof(integer))
		return -EINVAL;
	memcpy(&integer, value, sizeof(integer));
	return option_set_integer(rs, ENTRY(level, name), integer);
}

int softhca_rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	WITHOUT_CANCELLATION;
	struct rsocket *rs = rsocket_begin(socket, "rsetsockopt");

	return rs ? (int)rsocket_end(rs, option_set(rs, level, optname, optval, optlen)) : -1;
}

static int option_max_segment(const struct rsocket *rs)
{
	const struct rdma_cm_id *id = rs->stream.id;

	/* The MTU is an enum: 1 means 256 bytes. The default is a common value. */
	return id && id->route.num_paths ? 128 << id->route.path_rec->mtu : 2048;
}

static int option_get_integer(struct rsocket *rs, uint64_t entry, int *value)
{
	const struct rsocket_settings *settings = &rs->settings;

	switch (entry) {
	case ENTRY(SOL_SOCKET, SO_ERROR):
		*value = rs->error;
		rs->error = 0;
		return 0;
	case ENTRY(SOL_SOCKET, SO_REUSEADDR):
		*value = settings->reuse_address;
		return 0;
	case ENTRY(IPPROTO_IPV6, IPV6_V6ONLY):
		*value = settings->own_family_only;
		return 0;
	case ENTRY(SOL_SOCKET, SO_RCVBUF):
		*value = (int)settings->receive_bytes;
		return 0;
	case ENTRY(SOL_SOCKET, SO_SNDBUF):
		*value = (int)settings->send_bytes;
		return 0;
	case ENTRY(SOL_SOCKET, SO_KEEPALIVE):
		*value = settings->keep_alive;
		return 0;
	case ENTRY(SOL_SOCKET, SO_OOBINLINE):
		*value = settings->inline_urgent;
		return 0;
	case ENTRY(IPPROTO_TCP, TCP_NODELAY):
		*value = settings->no_delay;
		return 0;
	case ENTRY(IPPROTO_TCP, TCP_MAXSEG):
		*value = option_max_segment(rs);
		return 0;
	case ENTRY(SOL_RDMA, RDMA_SQSIZE):
		*value = (int)settings->send_entries;
		return 0;
	case ENTRY(SOL_RDMA, RDMA_RQSIZE):
		*value = (int)settings->receive_entries;
		return 0;
	case ENTRY(SOL_RDMA, RDMA_INLINE):
		*value = (int)(rs->stream.cq ? rs->stream.inline_bytes : settings->inline_bytes);
		return 0;
	case ENTRY(SOL_RDMA, RDMA_IOMAPSIZE):
		*value = (int)settings->iomap_entries;
		return 0;
	default:
		return -REFUSE(hca_of_id(NULL), "rgetsockopt", ENOTSUP, RULE_RSOCKET_OPTION, entry >> 32,
			       (uint32_t)entry);
	}
}

/* Describes the path as it is set: every selector is 2, "exactly". */
static void path_describe(const struct ibv_sa_path_rec *path, struct ibv_path_data *data)
{
	const uint8_t exactly = 2 << 6;

	*data = (struct ibv_path_data){.flags =
					       IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL};
	data->path.dgid = path->dgid;
	data->path.sgid = path->sgid;
	data->path.flowlabel_hoplimit = htobe32(be32toh(path->flow_label) << 8 | path->hop_limit);
	data->path.tclass = path->traffic_class;
	data->path.reversible_numpath = 0x80 | 1;
	data->path.pkey = path->pkey;
	data->path.qosclass_sl = htobe16(path->sl);
	data->path.mtu = path->mtu | exactly;
	data->path.rate = path->rate | exactly;
	data->path.packetlifetime = path->packet_life_time | exactly;
	data->path.preference = path->preference;
}

static int option_get_route(const struct rsocket *rs, void *value, socklen_t *length)
{
	const struct stream *stream = &rs->stream;
	struct ibv_path_data path;
	size_t bytes = stream->path_count * sizeof(path);
	const void *from = stream->paths;

	if (!from) {
		if (!stream->id || !stream->id->route.num_paths)
			return -EINVAL;
		path_describe(stream->id->route.path_rec, &path);
		from = &path;
		bytes = sizeof(path);
	}
	if (*length < bytes)
		return -EINVAL;
	memcpy(value, from, bytes);
	*length = (socklen_t)bytes;
	return 0;
}

static int option_get(struct rsocket *rs, int level, int name, void *value, socklen_t *length)
{
	const struct linger *linger = &rs->settings.linger;
	int integer, error;

	if (!value || !length)
		return -EFAULT;
	if (level == SOL_RDMA && name == RDMA_ROUTE)
		return option_get_route(rs, value, length);
	if (level == SOL_SOCKET && name == SO_LINGER) {
		if (*length > sizeof(*linger))
			*length = sizeof(*linger);
		memcpy(value, linger, *length);
		return 0;
	}
	error = option_get_integer(rs, ENTRY(level, name), &integer);
	if (error)
		return error;
	if (*length > sizeof(integer))
		*length = sizeof(integer);
	memcpy(value, &integer, *length);
	return 0;
}

int softhca_rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	WITHOUT_CANCELLATION;
	struct rsocket *rs = rsocket_begin(socket, "rgetsockopt");

	return rs ? (int)rsocket_end(rs, option_get(rs, level, optname, optval, optlen)) : -1;
}

static int descriptor_control(struct rsocket *rs, int command, long argument)
{
	int flags;

	switch (command) {
	case F_GETFL:
		flags = fcntl(rs->fd, F_GETFL);
		return flags < 0 ? -errno : (flags & ~O_NONBLOCK) | (rs->nonblocking ? O_NONBLOCK : 0);
	case F_SETFL:
		rs->nonblocking = argument & O_NONBLOCK;
		return 0;
	case F_GETFD:
		flags = fcntl(rs->fd, F_GETFD);
		return flags < 0 ? -errno : flags;
	case F_SETFD:
		return fcntl(rs->fd, F_SETFD, (int)argument) ? -errno : 0;
	default:
		return -REFUSE(hca_of_id(NULL), "rfcntl", ENOTSUP, RULE_RSOCKET_COMMAND, (uint64_t)command);
	}
}

int softhca_rfcntl(int socket, int cmd, ...)
{
	WITHOUT_CANCELLATION;
	struct rsocket *rs = rsocket_begin(socket, "rfcntl");
	long argument;
	va_list list;

	/* The front-end always passes one (abi/rdmacm.def). */
	va_start(list, cmd);
	argument = va_arg(list, long);
	va_end(list);
	return rs ? (int)rsocket_end(rs, descriptor_control(rs, cmd, argument)) : -1;
}
