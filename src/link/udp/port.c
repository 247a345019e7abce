/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides which process of the host has the RoCE port, see DESIGN.md, "Receiving". A process that gets the socket of
 * the port over a connection closes it if it has it already. Everything except the first attempt happens on the device
 * thread.
 */
#include <errno.h>
#include <endian.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/descriptor.h"
#include "core/limits.h"
#include "core/tunables.h"
#include "progress/progress.h"
#include "observe/counters.h"
#include "link/host/hello.h"
#include "link/host/table.h"
#include "link/udp/parts.h"

/* Values chosen for speed. */
enum {
	/* ns between the first attempts to get the RoCE port */
	UDP_PORT_SOON_NS = 5000000,
	/* ns between later attempts */
	UDP_PORT_LATER_NS = 1000000000,
	/* attempts within which a process that shares the port has passed it on */
	UDP_PORT_TRIES_GIVEN = 8,
	/* ns within which a running process passes it on */
	UDP_PORT_GIVEN_NS = 1000000000,
};

#define LOOK_NS (LIMIT_UDP_SILENCE_MS * UINT64_C(1000000))
#define ENDED (EPOLLRDHUP | EPOLLHUP | EPOLLERR)

/* A process that is connected to this one to notice its end. */
struct client {
	struct watched_fd socket;
	struct client *next;
	pid_t pid; /* 0: not known */
};

static struct {
	pthread_mutex_t lock;
	uint32_t begun; /* atomic; generation of the process that has called udp_begin() */
	struct hca *hca;
	struct watched_fd name;   /* fd: the listening socket; -1: another process has the name */
	struct watched_fd owner;  /* fd: the connection to the process that has the name; -1: none */
	struct ucred owner_is;    /* that process */
	struct ucred stranger;    /* process of another user that has the plain name; pid 0: none, or not known */
	struct host_name reserve; /* name at which this process listens, if it is a reserve name */
	uint64_t connected_ns;    /* time of the connection to the owner */
	struct udp_share share;   /* the port's socket, bound or to be bound, and its page if it is bound */
	struct udp_turn *page;    /* mapped; NULL: none */
	bool ipv6;                /* the socket to be bound is for both families */
	bool bound;
	bool has_port;
	bool took_over;
	bool in_place; /* receives as a substitute for the owner */
	struct timer look;
	struct udp_look looked;
	struct timer retry;
	uint32_t tries;
	enum explain_rule explained; /* rule of the last explanation, so that it is not repeated */
	struct client *clients;
} port = {.lock = PTHREAD_MUTEX_INITIALIZER, .name.fd = -1, .owner.fd = -1, .share = {-1, -1}};

static void port_contend(void);

static uint16_t port_number(void)
{
	return (uint16_t)port.hca->settings.roce_port;
}

static void port_retry_in(uint64_t ns)
{
	timer_arm(&port.hca->timers, &port.retry, clock_now_ns() + ns);
}

static void port_retry(void)
{
	port_retry_in(port.tries++ < TUNABLE_UDP_PORT_TRIES_SOON ? UDP_PORT_SOON_NS : UDP_PORT_LATER_NS);
}

static void port_close_fd(int *fd)
{
	descriptor_close(*fd);
	*fd = -1;
}

/* ---- explanations: once, until something else is the case ------------------------------------------------------ */

static void port_explain_once(enum explain_rule rule, const uint64_t *figures, size_t count)
{
	const struct explain_subject subject = {0};

	if (port.explained != rule)
		explain_make(port.hca, &subject, rule, figures, count);
	port.explained = rule;
}

static void port_explain_taken(void)
{
	uint64_t name[2];
	struct udp_owner owner;
	bool seen = udp_find_owner(port_number(), &owner);

	/* A process of this user that has a reserve name owns the port, and forwards packets to this one. */
	if (udp_name_is_reserved(port_number(), &port.reserve))
		return;
	if (port.stranger.uid != (uid_t)-1 && (!seen || owner.pid == port.stranger.pid)) {
		port_explain_once(RULE_UDP_PORT_OTHER_USER,
				  FIGURES(port_number(), (uint64_t)port.stranger.pid, port.stranger.uid, geteuid()));
	} else if (seen) {
		memcpy(name, owner.name, sizeof(name));
		port_explain_once(RULE_UDP_PORT_TAKEN, FIGURES(port_number(), (uint64_t)owner.pid, name[0], name[1]));
	} else if (port.tries >= TUNABLE_UDP_PORT_TRIES_SOON) {
		/* At first the port may belong to an ending process, which has no descriptors any more. */
		port_explain_once(RULE_UDP_PORT_TAKEN_UNSEEN, FIGURES(port_number()));
	}
}

/* ---- the port -------------------------------------------------------------------------------------------------- */

static int udp_port_bind(void)
{
	const struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htobe16(port_number())};
	const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htobe16(port_number())};
	const struct sockaddr *name = port.ipv6 ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4;

	return bind(port.share.socket, name, port.ipv6 ? sizeof(v6) : sizeof(v4)) ? -errno : 0;
}

/*
 * Binds the port even beside sockets of groups, which requires consent. Consent would also allow another socket for the
 * port itself, so it is given only where there are groups and no such socket.
 */
static int port_bind_beside_groups(void)
{
	int error = udp_port_bind();

	if (error != -EADDRINUSE || !port.tries || udp_port_is_bound(port_number()))
		return error;
	udp_set_consent(port.share.socket, true);
	error = udp_port_bind();
	udp_set_consent(port.share.socket, false);
	return error;
}

int udp_port_bind_group(int fd, const struct sockaddr *name, socklen_t length)
{
	int error;

	pthread_mutex_lock(&port.lock);
	if (port.bound)
		udp_set_consent(port.share.socket, true);
	error = bind(fd, name, length) ? -errno : 0;
	if (port.bound)
		udp_set_consent(port.share.socket, false);
	else if (error == -EADDRINUSE)
		error = -EAGAIN;
	pthread_mutex_unlock(&port.lock);
	return error;
}

bool udp_port_has_backlog(void)
{
	struct pollfd socket = {.events = POLLIN};
	bool waits;

	if (pthread_mutex_trylock(&port.lock))
		return false;
	/* poll(2) skips a negative descriptor. */
	socket.fd = port.share.socket;
	waits = poll(&socket, 1, 0) == 1 && socket.revents & POLLIN;
	pthread_mutex_unlock(&port.lock);
	return waits;
}

/* Makes the page that shows the process that reads. Without it the socket is not shared. */
static void port_make_page(void)
{
	port.share.page = descriptor_keep(host_memory_make(UDP_PAGE_BYTES));
	if (port.share.page >= 0)
		port.page = udp_turn_map(port.share.page);
}

static void port_give_share(int connection)
{
	if (port.bound && port.page && descriptor_check(connection))
		udp_handover_send(connection, &port.share);
}

/* This process has the name. */
static void port_take(void)
{
	int error = port.bound ? 0 : port_bind_beside_groups();

	if (!error) {
		if (!port.bound)
			port_make_page();
		port.bound = port.has_port = true;
		port.in_place = false;
		port.explained = RULE_NONE;
		if (port.took_over)
			counter_add(port.hca, COUNTER_UDP_TAKEOVERS, 1);
		/* After a takeover the other processes may not be connected yet. */
		udp_receive_carefully(port.took_over || port.clients);
		udp_receive_from(port.share.socket, port.page);
		for (const struct client *client = port.clients; client; client = client->next)
			port_give_share(client->socket.fd);
		return;
	}
	/* The first attempt may run under a QP's lock, where reading all of /proc would take too long. */
	if (error != -EADDRINUSE)
		port_explain_once(RULE_UDP_PORT_REFUSED, FIGURES(port_number(), (uint64_t)-error));
	else if (port.tries >= UDP_PORT_TRIES_GIVEN)
		port_explain_taken();
	port_retry();
}

/* Takes the socket and page passed by process @pid, unless this process has them already. */
static void port_take_share(int connection, pid_t pid)
{
	struct udp_share share;
	struct udp_turn *page;

	if (port.share.socket < 0 || udp_handover_receive(connection, pid, port.share.socket, port_number(), &share))
		return;
	page = port.bound ? NULL : udp_turn_map(share.page);
	if (!page) {
		udp_share_close(&share);
		return;
	}
	udp_share_close(&port.share);
	port.share = share;
	port.page = page;
	port.bound = true;
	port.explained = RULE_NONE;
	udp_receiver_adopt(share.socket);
	if (port.name.fd >= 0)
		port_take();
}

static void port_explain_kept(void)
{
	port_explain_once(RULE_UDP_PORT_KEPT, FIGURES(port_number(), (uint64_t)port.owner_is.pid));
}

/* ---- receiving as a substitute for a stopped owner --------------------------------------------------------------- */

static void owner_look(void)
{
	uint32_t turn;

	if (port.in_place && !udp_receive_has_turn()) {
		udp_receive_stop();
		port.in_place = false;
		port.looked = (struct udp_look){0};
	}
	if (port.in_place || !udp_turn_take_over(port.page, port.share.socket, &port.looked, &turn))
		return;
	port.in_place = true;
	counter_add(port.hca, COUNTER_UDP_TAKEOVERS, 1);
	udp_explain(port.hca, 0, RULE_UDP_PORT_SILENT,
		    FIGURES(port_number(), LIMIT_UDP_SILENCE_MS, (uint64_t)port.owner_is.pid));
	udp_receive_in_place(port.share.socket, port.page, turn);
}

static void owner_timer_expired(struct timer *timer)
{
	(void)timer;
	pthread_mutex_lock(&port.lock);
	if (!port.has_port) {
		if (port.page)
			owner_look();
		else if (port.owner.fd >= 0 && clock_now_ns() - port.connected_ns > UDP_PORT_GIVEN_NS)
			port_explain_kept();
		timer_arm(&port.hca->timers, &port.look, clock_now_ns() + LOOK_NS);
	}
	pthread_mutex_unlock(&port.lock);
}

void udp_port_turn_lost(void)
{
	timer_arm(&port.hca->timers, &port.look, clock_now_ns());
}

/* ---- the name -------------------------------------------------------------------------------------------------- */

static void client_gone(struct client *client)
{
	struct client **at = &port.clients;

	progress_unwatch(&client->socket);
	pthread_mutex_lock(&port.lock);
	while (*at != client)
		at = &(*at)->next;
	*at = client->next;
	if (!port.clients)
		udp_receive_carefully(false);
	pthread_mutex_unlock(&port.lock);
	descriptor_close(client->socket.fd);
	free(client);
}

/*
 * Handles the first message from process @pid, valid or not, and ignores later ones. Called before the end of the
 * connection is handled, which may have been reported at the same time.
 */
static void share_arrived(struct watched_fd *watched, pid_t pid)
{
	pthread_mutex_lock(&port.lock);
	progress_rewatch(watched, EPOLLRDHUP);
	port_take_share(watched->fd, pid);
	pthread_mutex_unlock(&port.lock);
}

static void client_ready(struct watched_fd *watched, uint32_t events)
{
	struct client *client = (struct client *)((char *)watched - offsetof(struct client, socket));

	if (events & EPOLLIN)
		share_arrived(watched, client->pid);
	if (events & ENDED)
		client_gone(client);
}

/* Refuses processes of other users, so that they cannot fill the table of descriptors; they retry. The lock is held. */
static void client_add(int fd)
{
	struct client *client;
	struct ucred peer;

	client = host_is_own_user(fd, &peer) ? malloc(sizeof(*client)) : NULL;
	if (!client) {
		descriptor_close(fd);
		return;
	}
	*client = (struct client){.socket = {.fd = fd, .ready = client_ready}, .next = port.clients, .pid = peer.pid};
	port.clients = client;
	if (!progress_watch(&client->socket, EPOLLIN | EPOLLRDHUP)) {
		udp_receive_carefully(true);
		if (port.has_port)
			port_give_share(fd);
		return;
	}
	port.clients = client->next;
	descriptor_close(fd);
	free(client);
}

static void clients_arrived(struct watched_fd *watched, uint32_t events)
{
	int fd;

	(void)events;
	pthread_mutex_lock(&port.lock);
	while (descriptor_check(watched->fd) &&
	       (fd = descriptor_keep(accept4(watched->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK))) >= 0)
		client_add(fd);
	/* Without a free descriptor, the client has to wait; it must not keep this thread awake. */
	if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		progress_rewatch(watched, 0);
		port_retry_in(UDP_PORT_LATER_NS);
	}
	pthread_mutex_unlock(&port.lock);
}

static void owner_gone(struct watched_fd *watched)
{
	progress_unwatch(watched);
	pthread_mutex_lock(&port.lock);
	port_close_fd(&port.owner.fd);
	/* A process that repeatedly accepts and closes connections must not keep this thread busy. */
	if (clock_now_ns() - port.connected_ns > UDP_PORT_SOON_NS) {
		port.tries = 0;
		port_contend();
	} else {
		port_retry();
	}
	pthread_mutex_unlock(&port.lock);
}

static void owner_ready(struct watched_fd *watched, uint32_t events)
{
	if (events & EPOLLIN)
		share_arrived(watched, port.owner_is.pid);
	if (events & ENDED)
		owner_gone(watched);
}

/*
 * Follows the process of this user at the other end of @fd, which has the name. If it does not have the port, it takes
 * the socket that this process passes.
 */
static void owner_follow(int fd, const struct ucred *owner)
{
	port.took_over = true;
	port.connected_ns = clock_now_ns();
	port.owner = (struct watched_fd){.fd = fd, .ready = owner_ready};
	port.owner_is = *owner;
	port_give_share(fd);
	if (!progress_watch(&port.owner, EPOLLIN | EPOLLRDHUP)) {
		timer_arm(&port.hca->timers, &port.look, clock_now_ns() + LOOK_NS);
		return;
	}
	port_close_fd(&port.owner.fd);
	port_retry();
}

/* The first attempt may be under a QP's lock, and reads no list of names. */
static void port_contend_for_name(void)
{
	struct udp_name name = udp_name_contend(port_number(), port.tries);

	port.stranger = name.stranger;
	port.reserve = name.reserve;
	if (name.listening >= 0) {
		port.name = (struct watched_fd){.fd = descriptor_keep(name.listening), .ready = clients_arrived};
		progress_watch(&port.name, EPOLLIN);
	} else if (name.connected >= 0) {
		owner_follow(descriptor_keep(name.connected), &name.owner);
	} else {
		port_retry();
	}
}

static void port_contend(void)
{
	/*
	 * Opened before the name's socket: a process that ends closes its descriptors in order, and the name must be
	 * closed last.
	 */
	if (port.share.socket < 0)
		port.share.socket = udp_receiver_open(&port.ipv6);
	if (port.share.socket < 0) {
		port_explain_once(RULE_UDP_PORT_REFUSED, FIGURES(port_number(), (uint64_t)-port.share.socket));
		port.share.socket = -1;
		port_retry();
		return;
	}
	if (port.name.fd < 0 && port.owner.fd < 0)
		port_contend_for_name();
	if (port.name.fd >= 0 && !port.has_port)
		port_take();
}

static void retry_timer_expired(struct timer *timer)
{
	(void)timer;
	pthread_mutex_lock(&port.lock);
	if (port.name.fd >= 0)
		progress_rewatch(&port.name, EPOLLIN);
	port_contend();
	pthread_mutex_unlock(&port.lock);
}

/* ---- beginning and fork ---------------------------------------------------------------------------------------- */

/* Does not block for long, but opens and closes many descriptors. */
static void port_begin_once(struct hca *hca, uint32_t generation)
{
	WITHOUT_CANCELLATION;
	int error = 0;

	pthread_mutex_lock(&port.lock);
	if (port.begun != generation) {
		port.hca = &the_registry.devices[0];
		timer_init(&port.retry, retry_timer_expired);
		timer_init(&port.look, owner_timer_expired);
		udp_held_begin();
		error = udp_receive_begin(port.hca);
		if (!error) {
			port_contend();
			__atomic_store_n(&port.begun, generation, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&port.lock);
	if (error)
		udp_explain(hca, 0, RULE_UDP_PORT_REFUSED, FIGURES(hca->settings.roce_port, (uint64_t)-error));
}

void udp_begin(struct hca *hca)
{
	uint32_t generation = progress_generation();

	if (__builtin_expect(__atomic_load_n(&port.begun, __ATOMIC_ACQUIRE) != generation, 0))
		port_begin_once(hca, generation);
}

/* Resets everything in a forked child: the port belongs to the parent. */
static void port_leave(void)
{
	struct client *client;

	udp_receive_after_fork();
	udp_held_after_fork();
	while ((client = port.clients)) {
		port.clients = client->next;
		descriptor_close(client->socket.fd);
		free(client);
	}
	udp_share_close(&port.share);
	udp_turn_unmap(port.page);
	port_close_fd(&port.name.fd);
	port_close_fd(&port.owner.fd);
	port.page = NULL;
	port.bound = port.has_port = false;
	port.took_over = port.in_place = false;
	port.looked = (struct udp_look){0};
	port.tries = 0;
	port.explained = RULE_NONE;
	port.begun = 0;
}

/* Finishes the packet in hand, so that the other processes only take what is still in the socket. */
static void __attribute__((destructor)) port_at_exit(void)
{
	if (__atomic_load_n(&port.begun, __ATOMIC_ACQUIRE) != progress_generation())
		return;
	udp_receive_leave();
	udp_let_go();
}

void udp_before_fork(void)
{
	pthread_mutex_lock(&port.lock);
}

void udp_after_fork(bool child)
{
	if (child)
		port_leave();
	pthread_mutex_unlock(&port.lock);
}
