/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets that send, by source port, see parts.h. */
#include <endian.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "link/udp/parts.h"
#include "progress/progress.h"

/* Values chosen for speed. */
enum {
	/* sockets for sending, one for each source port */
	UDP_SOCKETS = 64,
	/* bytes requested for a sending socket: data queued there delays all later data */
	UDP_SEND_BUFFER_BYTES = 1 << 20,
	/* bytes requested for the socket that reports hosts without the RoCE port */
	UDP_ERROR_BUFFER_BYTES = 1 << 16,
};

#define HOP_LIMIT 64
/* Source port of the connection manager's datagrams: any port that flows use too (wire.md). */
#define MANAGER_PORT 0xc001

struct udp_sockets {
	pthread_mutex_t lock;
	uint64_t clock; /* for `used` */
	bool made;      /* the sockets are initialised; most processes need none */
	struct udp_socket socket[UDP_SOCKETS];
	struct udp_socket manager[2];  /* those of the connection manager, by family; not shared with any flow */
	struct watched_fd refusals[2]; /* reports that arrive at them, see unreachable.c */
};

/* ---- options --------------------------------------------------------------------------------------------------- */

/* Discards datagrams sent to the source port of a connection, which would only fill memory. */
static void sender_receive_nothing(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = {.len = 1, .filter = &drop};

	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
	udp_set_option(fd, SOL_SOCKET, SO_RCVBUF, 0);
}

/*
 * With IP_PMTUDISC_DO, which sets "do not fragment", an unconnected socket sends identification 0, which the ICRC
 * covers. Hop limit and traffic class are passed with a datagram if they differ from these defaults.
 */
static int sender_set_options(int fd, bool ipv6, bool fragments)
{
	int error;

	error = ipv6 ? udp_set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
				      fragments ? IPV6_PMTUDISC_DONT : IPV6_PMTUDISC_DO)
		     : udp_set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, fragments ? IP_PMTUDISC_DONT : IP_PMTUDISC_DO);
	if (!error)
		error = ipv6 ? udp_set_option(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, HOP_LIMIT)
			     : udp_set_option(fd, IPPROTO_IP, IP_TTL, HOP_LIMIT);
	if (!error && ipv6)
		error = udp_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	udp_set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, UDP_SEND_BUFFER_BYTES);
	/* Other processes may have flows with the same port. */
	if (!error)
		error = udp_set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	return error;
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

static int sender_bind(int fd, bool ipv6, uint16_t port)
{
	const struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htobe16(port)};
	const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htobe16(port)};

	return bind(fd, ipv6 ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4,
		    ipv6 ? sizeof(v6) : sizeof(v4));
}

static uint16_t sender_port(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} name = {0};
	socklen_t length = sizeof(name);

	if (getsockname(fd, &name.any, &length))
		return 0;
	return be16toh(name.any.sa_family == AF_INET6 ? name.v6.sin6_port : name.v4.sin_port);
}

/* Returns a descriptor or a negative errno. */
static int sender_open(bool ipv6, uint16_t port, bool fragments)
{
	int fd = descriptor_keep(socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
	    error;

	if (fd < 0)
		return -errno;
	error = sender_set_options(fd, ipv6, fragments);
	sender_receive_nothing(fd);
	/*
	 * If a program has that port exclusively, use any other, because receivers do not check it. The socket for
	 * fragments must have the port of the first one.
	 */
	if (!error && sender_bind(fd, ipv6, port) && (fragments || sender_bind(fd, ipv6, 0)))
		error = -errno;
	if (error)
		descriptor_close(fd);
	return error ? error : fd;
}

static void sender_close(struct udp_socket *socket)
{
	descriptor_close(socket->fd);
	descriptor_close(socket->fragmenting);
	socket->fd = socket->fragmenting = -1;
}

int udp_socket_fragmenting(struct udp_socket *socket)
{
	if (socket->fragmenting >= 0)
		return socket->fragmenting;
	/* Locked, so that a forked child finds the descriptor recorded. */
	pthread_mutex_lock(&socket->table->lock);
	socket->fragmenting = sender_open(socket->ipv6, socket->port, true);
	pthread_mutex_unlock(&socket->table->lock);
	return socket->fragmenting;
}

/* The lock is held. */
static int sender_fill(struct udp_socket *socket, bool ipv6, uint16_t port)
{
	int fd;

	if (!socket->buffer && !(socket->buffer = malloc(UDP_BUFFER_BYTES)))
		return -ENOMEM;
	fd = sender_open(ipv6, port, false);
	if (fd < 0)
		return fd;
	socket->fd = fd;
	socket->checked_ns = 0;
	socket->ipv6 = ipv6;
	socket->wanted = port;
	socket->port = sender_port(fd);
	socket->no_trains = false;
	socket->no_labels = false;
	socket->way_hca = NULL;
	socket->answers = (struct udp_answers){0};
	socket->stream = (struct udp_stream){0};
	return 0;
}

static void sender_init(struct udp_sockets *table, struct udp_socket *socket)
{
	socket->table = table;
	socket->fd = socket->fragmenting = -1;
	socket->users = 0;
	socket->held.length = 0;
	socket->kept.count = 0;
	pthread_mutex_init(&socket->lock, NULL);
}

static void senders_init(struct udp_sockets *table)
{
	for (int i = 0; i < UDP_SOCKETS; i++)
		sender_init(table, &table->socket[i]);
	for (int i = 0; i < 2; i++)
		sender_init(table, &table->manager[i]);
	table->made = true;
}

struct udp_sockets *udp_sockets_new(void)
{
	struct udp_sockets *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	pthread_mutex_init(&table->lock, NULL);
	return table;
}

/* Returns an existing socket of the family, always the same for a port, or NULL. */
static struct udp_socket *sender_share(struct udp_sockets *table, bool ipv6, uint16_t port)
{
	for (uint32_t i = 0; i < UDP_SOCKETS; i++) {
		struct udp_socket *socket = &table->socket[(port + i) % UDP_SOCKETS];

		if (socket->fd >= 0 && socket->ipv6 == ipv6)
			return socket;
	}
	return NULL;
}

/* Returns the socket for @port, or the one to be opened for it: unused, or least recently requested. */
static struct udp_socket *sender_find(struct udp_sockets *table, bool ipv6, uint16_t port)
{
	struct udp_socket *found = NULL;

	for (struct udp_socket *socket = table->socket; socket < table->socket + UDP_SOCKETS; socket++) {
		if (socket->fd >= 0 && socket->wanted == port && socket->ipv6 == ipv6)
			return socket;
		if (socket->users)
			continue;
		if (!found || (found->fd >= 0 && (socket->fd < 0 || socket->used < found->used)))
			found = socket;
	}
	return found;
}

/* Finds or opens a socket and counts its user. The lock is held. */
static int sender_acquire(struct udp_sockets *table, bool ipv6, uint16_t port, bool exactly, struct udp_socket **socket)
{
	struct udp_socket *shared;
	int error;

	if (!table->made)
		senders_init(table);
	*socket = sender_find(table, ipv6, port);
	if (!*socket || ((*socket)->fd >= 0 && ((*socket)->wanted != port || (*socket)->ipv6 != ipv6))) {
		/* All sockets are open, and none is bound to the port. */
		shared = exactly ? NULL : sender_share(table, ipv6, port);
		if (shared)
			*socket = shared;
		else if (!*socket)
			return -EMFILE; /* more threads are sending than there are sockets */
		else
			sender_close(*socket);
	}
	if ((*socket)->fd < 0) {
		error = sender_fill(*socket, ipv6, port);
		if (error)
			return error;
	}
	(*socket)->users++;
	(*socket)->used = ++table->clock;
	return 0;
}

struct udp_socket *udp_socket_get(struct udp_sockets *table, bool ipv6, uint16_t port, bool exactly)
{
	struct udp_socket *socket;
	int error;

	pthread_mutex_lock(&table->lock);
	error = sender_acquire(table, ipv6, port, exactly, &socket);
	pthread_mutex_unlock(&table->lock);
	if (error) {
		errno = -error;
		return NULL;
	}
	pthread_mutex_lock(&socket->lock);
	return socket;
}

/* The lock is held. */
static int manager_socket_open(struct udp_sockets *table, bool ipv6)
{
	struct udp_socket *socket = &table->manager[ipv6];
	int error = sender_fill(socket, ipv6, MANAGER_PORT);

	if (error)
		return error;
	/* The receive buffer holds the error reports. */
	udp_set_option(socket->fd, SOL_SOCKET, SO_RCVBUF, UDP_ERROR_BUFFER_BYTES);
	udp_unreachable_watch(&table->refusals[ipv6], socket->fd, ipv6);
	return 0;
}

struct udp_socket *udp_socket_of_manager(struct udp_sockets *table, bool ipv6)
{
	struct udp_socket *socket = &table->manager[ipv6];
	int error = 0;

	pthread_mutex_lock(&table->lock);
	if (!table->made)
		senders_init(table);
	if (socket->fd < 0)
		error = manager_socket_open(table, ipv6);
	if (!error)
		socket->users++;
	pthread_mutex_unlock(&table->lock);
	if (error) {
		errno = -error;
		return NULL;
	}
	pthread_mutex_lock(&socket->lock);
	return socket;
}

void udp_socket_forget(struct udp_socket *socket, uint32_t users)
{
	pthread_mutex_lock(&socket->table->lock);
	socket->users -= users;
	pthread_mutex_unlock(&socket->table->lock);
}

void udp_sockets_lock(struct udp_sockets *table)
{
	pthread_mutex_lock(&table->lock);
}

void udp_sockets_unlock(struct udp_sockets *table)
{
	pthread_mutex_unlock(&table->lock);
}

void udp_sockets_forget(struct udp_sockets *table)
{
	if (!table->made)
		return;
	for (int i = 0; i < UDP_SOCKETS; i++)
		sender_close(&table->socket[i]);
	for (int i = 0; i < 2; i++)
		sender_close(&table->manager[i]);
	senders_init(table);
}
