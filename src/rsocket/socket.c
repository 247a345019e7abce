/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket(), rbind(), rgetsockname(), rgetpeername(): rsockets and their names. */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <netinet/in.h>
#include <string.h>

#include "abi/entry_points.h"
#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "rdmacm/devices.h"
#include "rdmacm/sockaddr.h"
#include "rsocket/datagram.h"
#include "rsocket/names.h"
#include "rsocket/table.h"

static int rsocket_make_stream(struct rsocket *rs)
{
	struct stream *stream = &rs->stream;

	stream->channel = softhca_rdma_create_event_channel();
	if (!stream->channel)
		return -errno;
	rs->fd = stream->channel->fd;
	if (softhca_rdma_create_id(stream->channel, &stream->id, rs, RDMA_PS_TCP))
		return -errno;
	return fcntl(rs->fd, F_SETFL, O_NONBLOCK) ? -errno : 0;
}

static int rsocket_make(int domain, int type)
{
	struct rsocket_settings settings;
	struct rsocket *rs;
	int error;

	rsocket_defaults(&settings);
	rs = rsocket_new(domain, &settings);
	if (!rs)
		return -ENOMEM;
	error = type == SOCK_STREAM ? rsocket_make_stream(rs) : datagram_open(rs);
	if (!error)
		error = table_enter(rs);
	if (!error)
		return rs->fd;
	rsocket_free(rs);
	return error;
}

static int object_is_preload(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	return info->dlpi_name && strstr(info->dlpi_name, "librspreload");
}

/*
 * Does not print the refusal to librspreload, which tries each socket(2) of the program and falls back to a kernel
 * socket.
 */
static int kind_refuse(int domain, int type, int protocol)
{
	const struct explain_subject subject = {
		.call = "rsocket", .error = ENOTSUP, .expected = dl_iterate_phdr(object_is_preload, NULL)};

	EXPLAIN(hca_of_id(NULL), &subject, RULE_RSOCKET_KIND, (uint64_t)domain, (uint64_t)type, (uint64_t)protocol);
	return ENOTSUP;
}

int softhca_rsocket(int domain, int type, int protocol)
{
	WITHOUT_CANCELLATION;
	int fd;

	if ((domain != AF_INET && domain != AF_INET6) || (type != SOCK_STREAM && type != SOCK_DGRAM) ||
	    (protocol && protocol != (type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP))) {
		errno = kind_refuse(domain, type, protocol);
		return -1;
	}
	fd = rsocket_make(domain, type);
	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}

static int stream_bind(struct rsocket *rs, const struct sockaddr *address, socklen_t length)
{
	struct stream *stream = &rs->stream;

	if (stream->state != STREAM_IDLE)
		return -REFUSE(hca_of_id(NULL), "rbind", EINVAL, RULE_RSOCKET_STATE, (uint64_t)rs->fd);
	if (softhca_rdma_bind_addr(stream->id, (struct sockaddr *)address))
		return -errno;
	(void)length;
	stream->state = STREAM_BOUND;
	return 0;
}

int softhca_rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	WITHOUT_CANCELLATION;
	struct rsocket *rs = rsocket_begin(socket, "rbind");

	if (!rs)
		return -1;
	if (!addr || addrlen < sizeof(addr->sa_family) || !address_size(addr) || addrlen < address_size(addr))
		return (int)rsocket_end(rs, -REFUSE(hca_of_id(NULL), "rbind", EINVAL, RULE_RSOCKET_ADDRESS, addrlen,
						    addr && addrlen >= sizeof(addr->sa_family) ? addr->sa_family : 0));
	return (int)rsocket_end(rs, rs->datagram ? datagram_bind(rs, addr, addrlen) : stream_bind(rs, addr, addrlen));
}

void name_copy_out(const struct sockaddr *name, struct sockaddr *address, socklen_t *length)
{
	socklen_t size = address_size(name);

	if (!address || !length)
		return;
	memcpy(address, name, *length < size ? *length : size);
	*length = size;
}

/* As getsockname(2), returns the unspecified address before the socket has a name. */
static int rsocket_own_name(const struct rsocket *rs, struct sockaddr *address, socklen_t *length)
{
	struct sockaddr_storage none = {.ss_family = (sa_family_t)rs->family};
	const struct sockaddr *name;

	if (rs->datagram)
		return getsockname(rs->fd, address, length) ? -errno : 0;
	name = rdma_get_local_addr(rs->stream.id);
	name_copy_out(name->sa_family ? name : (struct sockaddr *)&none, address, length);
	return 0;
}

static int rsocket_peer_name(const struct rsocket *rs, struct sockaddr *address, socklen_t *length)
{
	if (rs->datagram)
		return getpeername(rs->fd, address, length) ? -errno : 0;
	if (rs->stream.state < STREAM_ACCEPTING || rs->stream.state == STREAM_REFUSED)
		return -ENOTCONN;
	name_copy_out(rdma_get_peer_addr(rs->stream.id), address, length);
	return 0;
}

int softhca_rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *rs = rsocket_begin(socket, "rgetsockname");

	return rs ? (int)rsocket_end(rs, rsocket_own_name(rs, addr, addrlen)) : -1;
}

int softhca_rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsocket *rs = rsocket_begin(socket, "rgetpeername");

	return rs ? (int)rsocket_end(rs, rsocket_peer_name(rs, addr, addrlen)) : -1;
}
