/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which process of the host has the RoCE port, see udp.h.
 *
 * Who has it listens on the abstract UNIX socket "softhca/1/port/NUMBER". All others connect to that, and so learn of its
 * end at once: the connection hangs up. Then they race for the name, and who wins binds the port. The name decides, and not
 * the port, so that nobody takes the port of a process that still ends; and who has the name but not the port, because a
 * program of another kind has it, tries again alone.
 *
 * Everything but the first try happens on the device thread.
 */
#include <errno.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/un.h>
#include <unistd.h>

#include "hca/cancellation.h"
#include "hca/progress.h"
#include "link/counters.h"
#include "link/udp_parts.h"

#define SOON_NS UINT64_C(5000000)
#define LATER_NS UINT64_C(1000000000)
/* A process that ends closes its sockets within that many tries. */
#define TRIES_SOON 40
#define BACKLOG 1024

/* A process that wants to know when this one ends. */
struct client {
	struct watched_fd socket;
	struct client *next;
};

static struct {
	pthread_mutex_t lock;
	uint32_t begun; /* atomic; generation of the process in which it has begun */
	struct hca *hca;
	struct watched_fd name;  /* fd: the socket that listens; -1: another process has the name */
	struct watched_fd owner; /* fd: the connection to that one; -1: none */
	uint64_t connected_ns;   /* since when */
	int udp;                 /* the port's socket, bound or to be; -1: none */
	bool ipv6;               /* of `udp`: both families */
	bool has_port;
	bool took_over;
	struct timer retry;
	uint32_t tries;
	enum explain_rule explained; /* what was said last: it is not said again */
	struct client *clients;
} port = {.lock = PTHREAD_MUTEX_INITIALIZER, .name.fd = -1, .owner.fd = -1, .udp = -1};

static void contend(void);

static uint16_t number(void)
{
	return (uint16_t)port.hca->settings.roce_port;
}

static void retry_in(uint64_t ns)
{
	timer_arm(&port.hca->timers, &port.retry, clock_now_ns() + ns);
}

/* Soon at first, later if it lasts. */
static void retry(void)
{
	retry_in(port.tries++ < TRIES_SOON ? SOON_NS : LATER_NS);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- explanations: once, until something else is the case ------------------------------------------------------ */

#define EXPLAIN_ONCE(name, ...)                                                                                        \
	do {                                                                                                           \
		if (port.explained != RULE_##name)                                                                     \
			EXPLAIN(port.hca, (&(const struct explain_subject){0}), RULE_##name, __VA_ARGS__);             \
		port.explained = RULE_##name;                                                                          \
	} while (0)

static void explain_taken(void)
{
	uint64_t name[2];
	struct udp_owner owner;

	if (udp_find_owner(number(), &owner)) {
		memcpy(name, owner.name, sizeof(name));
		EXPLAIN_ONCE(UDP_PORT_TAKEN, number(), (uint64_t)owner.pid, name[0], name[1]);
	} else if (port.tries >= TRIES_SOON) {
		/* Before that it may be a process that ends: it has no descriptors any more, but the port. */
		EXPLAIN_ONCE(UDP_PORT_TAKEN_UNSEEN, number());
	}
}

/* ---- the port -------------------------------------------------------------------------------------------------- */

static int bind_port(void)
{
	const struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htobe16(number())};
	const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htobe16(number())};
	const struct sockaddr *name = port.ipv6 ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4;

	return bind(port.udp, name, port.ipv6 ? sizeof(v6) : sizeof(v4)) ? -errno : 0;
}

/* The name is this process's. */
static void take_port(void)
{
	int error = bind_port();

	if (!error) {
		port.has_port = true;
		port.explained = RULE_NONE;
		if (port.took_over)
			counter_add(port.hca, COUNTER_UDP_TAKEOVERS, 1);
		udp_receive_from(port.udp);
		return;
	}
	/* The first try may be under a QP's lock, where nobody shall read all of /proc. */
	if (error != -EADDRINUSE)
		EXPLAIN_ONCE(UDP_PORT_REFUSED, number(), (uint64_t)-error);
	else if (port.tries)
		explain_taken();
	retry();
}

/* ---- the name -------------------------------------------------------------------------------------------------- */

static socklen_t make_name(struct sockaddr_un *name)
{
	int length;

	*name = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* Abstract: the first byte is 0, the name is as long as the address says (unix(7)). */
	length = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "softhca/1/port/%u", number());
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static bool other_user(int fd, struct ucred *peer)
{
	socklen_t length = sizeof(*peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &length) || peer->uid != geteuid();
}

static void client_gone(struct watched_fd *watched, uint32_t events)
{
	struct client *client = (struct client *)((char *)watched - offsetof(struct client, socket));
	struct client **at = &port.clients;

	(void)events;
	progress_unwatch(watched);
	pthread_mutex_lock(&port.lock);
	while (*at != client)
		at = &(*at)->next;
	*at = client->next;
	pthread_mutex_unlock(&port.lock);
	close(client->socket.fd);
	free(client);
}

/* Others get nothing here, and are not to fill the table of descriptors; they come back now and then. The lock is held. */
static void keep_client(int fd)
{
	struct client *client;
	struct ucred peer;

	client = other_user(fd, &peer) ? NULL : malloc(sizeof(*client));
	if (!client) {
		close(fd);
		return;
	}
	client->socket = (struct watched_fd){.fd = fd, .ready = client_gone};
	client->next = port.clients;
	port.clients = client;
	if (!progress_watch(&client->socket, EPOLLRDHUP))
		return;
	port.clients = client->next;
	close(fd);
	free(client);
}

static void client_came(struct watched_fd *watched, uint32_t events)
{
	int fd;

	(void)events;
	pthread_mutex_lock(&port.lock);
	while ((fd = accept4(watched->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		keep_client(fd);
	/* No descriptor is left: it waits, and must not keep this thread awake. */
	if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		progress_rewatch(watched, 0);
		retry_in(LATER_NS);
	}
	pthread_mutex_unlock(&port.lock);
}

static void owner_gone(struct watched_fd *watched, uint32_t events)
{
	(void)events;
	progress_unwatch(watched);
	pthread_mutex_lock(&port.lock);
	close_fd(&port.owner.fd);
	/* One that takes connections and ends them is no reason to do nothing else. */
	if (clock_now_ns() - port.connected_ns > SOON_NS) {
		port.tries = 0;
		contend();
	} else {
		retry();
	}
	pthread_mutex_unlock(&port.lock);
}

/* @fd is connected to the process that has the name. */
static void follow(int fd)
{
	struct ucred peer = {0};

	port.took_over = true;
	port.connected_ns = clock_now_ns();
	port.owner = (struct watched_fd){.fd = fd, .ready = owner_gone};
	if (other_user(fd, &peer))
		EXPLAIN_ONCE(UDP_PORT_OTHER_USER, number(), (uint64_t)peer.pid, peer.uid, geteuid());
	if (!progress_watch(&port.owner, EPOLLRDHUP))
		return;
	close_fd(&port.owner.fd);
	retry();
}

/* Makes the name this process's, or follows the one that has it. */
static void contend_for_name(void)
{
	struct sockaddr_un name;
	socklen_t length = make_name(&name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && !bind(fd, (struct sockaddr *)&name, length) && !listen(fd, BACKLOG)) {
		port.name = (struct watched_fd){.fd = fd, .ready = client_came};
		progress_watch(&port.name, EPOLLIN);
	} else if (fd >= 0 && !connect(fd, (struct sockaddr *)&name, length)) {
		follow(fd);
	} else {
		/* It is bound and does not listen yet, or it has just gone. */
		close_fd(&fd);
		retry();
	}
}

static void contend(void)
{
	/* Before the name's socket: a process that ends closes its descriptors in order, and the name shall go last. */
	if (port.udp < 0)
		port.udp = udp_receiver_open(&port.ipv6);
	if (port.udp < 0) {
		EXPLAIN_ONCE(UDP_PORT_REFUSED, number(), (uint64_t)-port.udp);
		port.udp = -1;
		retry();
		return;
	}
	if (port.name.fd < 0 && port.owner.fd < 0)
		contend_for_name();
	if (port.name.fd >= 0 && !port.has_port)
		take_port();
}

static void try_again(struct timer *timer)
{
	(void)timer;
	pthread_mutex_lock(&port.lock);
	if (port.name.fd >= 0)
		progress_rewatch(&port.name, EPOLLIN);
	contend();
	pthread_mutex_unlock(&port.lock);
}

/* ---- beginning and fork ---------------------------------------------------------------------------------------- */

/* Nobody is waited for long, but much is opened and closed. */
static void begin_once(struct hca *hca, uint32_t generation)
{
	WITHOUT_CANCELLATION;
	int error = 0;

	pthread_mutex_lock(&port.lock);
	if (port.begun != generation) {
		port.hca = &the_registry.devices[0];
		timer_init(&port.retry, try_again);
		error = udp_receive_begin(port.hca);
		if (!error) {
			contend();
			__atomic_store_n(&port.begun, generation, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&port.lock);
	if (error)
		UDP_EXPLAIN(hca, 0, RULE_UDP_PORT_REFUSED, hca->settings.roce_port, (uint64_t)-error);
}

void udp_begin(struct hca *hca)
{
	uint32_t generation = progress_generation();

	if (__builtin_expect(__atomic_load_n(&port.begun, __ATOMIC_ACQUIRE) != generation, 0))
		begin_once(hca, generation);
}

/* The port is the parent's. */
static void leave_port(void)
{
	struct client *client;

	udp_receive_after_fork();
	while ((client = port.clients)) {
		port.clients = client->next;
		close(client->socket.fd);
		free(client);
	}
	close_fd(&port.udp);
	close_fd(&port.name.fd);
	close_fd(&port.owner.fd);
	port.has_port = false;
	port.took_over = false;
	port.tries = 0;
	port.explained = RULE_NONE;
	port.begun = 0;
}

void udp_before_fork(void)
{
	pthread_mutex_lock(&port.lock);
}

void udp_after_fork(bool child)
{
	if (child)
		leave_port();
	pthread_mutex_unlock(&port.lock);
}
