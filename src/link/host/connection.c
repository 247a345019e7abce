/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes, finds and ends connections, see host.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/descriptor.h"
#include "core/epoch.h"
#include "core/limits.h"
#include "core/tunables.h"
#include "explain/explain.h"
#include "explain/limit.h"
#include "hca/hca.h"
#include "observe/counters.h"
#include "link/host/hello.h"
#include "link/host/table.h"
#include "wire/mad.h"

const struct host_carrier *host_carrier;

/* Messages read at a time. They only wake the process, so it need not read all of them. */
#define MOST_WAKES 16
/* Retries when the process that is being connected to ends. */
#define MOST_ENDS 4
/* For how long a process that was found alive counts as alive: looking for each message takes two system calls. */
#define PEER_ALIVE_NS 100000

/* ---- looking up ------------------------------------------------------------------------------------------------- */

struct host_peer *host_peers(void)
{
	return __atomic_load_n(&host_table.peers, __ATOMIC_ACQUIRE);
}

struct host_peer *host_peer_known(uint32_t qpn)
{
	uint32_t slot = host_slot_of(qpn);

	return slot < HOST_SLOTS ? __atomic_load_n(&host_table.peer[slot], __ATOMIC_ACQUIRE) : NULL;
}

bool host_peer_was_known(uint32_t qpn)
{
	uint32_t slot = host_slot_of(qpn);

	return slot < HOST_SLOTS && __atomic_load_n(&host_table.was_known[slot], __ATOMIC_RELAXED);
}

void host_wake(struct host_peer *peer)
{
	WITHOUT_CANCELLATION;

	/* If the socket buffer is full, it already has messages that wake the other side. */
	if (descriptor_check(peer->socket.fd))
		send(peer->socket.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool host_open_memory(struct host_peer *peer)
{
	WITHOUT_CANCELLATION;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/mem", (unsigned int)peer->pid);
	pthread_mutex_lock(&host_table.lock);
	if (peer->process_memory < 0)
		peer->process_memory = descriptor_keep(open(path, O_RDWR | O_CLOEXEC));
	pthread_mutex_unlock(&host_table.lock);
	return peer->process_memory >= 0;
}

/* ---- ending ----------------------------------------------------------------------------------------------------- */

static void host_peer_free(struct host_peer *peer)
{
	struct host_requested *requested;

	while ((requested = peer->requested)) {
		peer->requested = requested->next;
		free(requested);
	}
	munmap(peer->memory, host_carrier->memory_size());
	descriptor_close(peer->process_memory);
	descriptor_close(peer->socket.fd);
	free(peer);
}

/* The lock is held. */
static void host_peer_remove(struct host_peer *peer)
{
	struct host_peer **place = &host_table.peers;

	while (*place != peer)
		place = &(*place)->next;
	__atomic_store_n(place, peer->next, __ATOMIC_RELEASE);
	for (uint32_t slot = 0; slot < HOST_SLOTS; slot++)
		if (host_table.peer[slot] == peer)
			__atomic_store_n(&host_table.peer[slot], NULL, __ATOMIC_RELEASE);
}

/*
 * If the other side closed @peer without having accepted it, for example because it had no free descriptor at the moment, its
 * process may live: requests in flight are sent again and try a new connection. The lock is held.
 */
static void peer_forget_unaccepted(const struct host_peer *peer)
{
	if (!peer->created || host_carrier->was_accepted(peer))
		return;
	for (uint32_t slot = 0; slot < HOST_SLOTS; slot++)
		if (host_table.peer[slot] == peer)
			__atomic_store_n(&host_table.was_known[slot], 0, __ATOMIC_RELAXED);
}

/* Reports the end of @peer to the connection manager. New requests no longer find it. */
static void peer_report_end(const struct host_peer *peer)
{
	if (!management)
		return;
	management->process_ended(peer->serial);
	for (const struct host_requested *requested = peer->requested; requested; requested = requested->next)
		management->service_ended(requested->service);
}

static void peer_hang_up(struct host_peer *peer)
{
	counter_add(first_device(), COUNTER_HOST_HANGUPS, 1);
	pthread_mutex_lock(&host_table.lock);
	peer_forget_unaccepted(peer);
	host_peer_remove(peer);
	/* The other side must see the end, even if a child is forked before the close. */
	if (descriptor_is_ours(peer->socket.fd))
		shutdown(peer->socket.fd, SHUT_RDWR);
	pthread_mutex_unlock(&host_table.lock);
	progress_unwatch(&peer->socket);
	__atomic_store_n(&peer->gone, 1, __ATOMIC_RELEASE);
	host_carrier->gone(peer);
	peer_report_end(peer);
	epoch_synchronize();
	host_carrier->end(peer);
	host_peer_free(peer);
}

/* Consumes wake-up messages. The thread polls after this (progress.h). */
static void socket_take_wakes(struct watched_fd *socket)
{
	ssize_t length = 1;
	char ignored;

	if (!descriptor_check(socket->fd))
		return;
	for (int i = 0; i < MOST_WAKES && length > 0; i++) {
		length = recv(socket->fd, &ignored, sizeof(ignored), MSG_DONTWAIT);
		if (length > 0)
			counter_add(first_device(), COUNTER_SHM_WAKEUPS_RECEIVED, 1);
	}
	/* Length 0: the other side has ended, or has sent an empty message, which softhca never sends. */
	if (length == 0 || (length < 0 && errno == ECONNRESET))
		shutdown(socket->fd, SHUT_RDWR);
}

/* Implements watched_fd.ready. */
static void socket_ended(struct watched_fd *socket, uint32_t events)
{
	(void)events;
	peer_hang_up((struct host_peer *)((char *)socket - offsetof(struct host_peer, socket)));
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

static int host_peer_begin(struct host_peer *peer, int memory)
{
	int error = host_carrier->begin(peer);

	if (error)
		return error;
	if (peer->created)
		error = host_hello_send(peer->socket.fd, memory);
	if (!error)
		error = progress_watch(&peer->socket, EPOLLRDHUP);
	if (!error) {
		error = progress_watch_arrivals(&peer->socket, EPOLLIN);
		if (error)
			progress_unwatch(&peer->socket);
	}
	if (error)
		host_carrier->end(peer);
	return error;
}

/* Returns NULL with errno on failure. */
static struct host_peer *host_peer_map(int socket, pid_t pid, bool created, int memory)
{
	struct host_peer *peer = calloc(1, sizeof(*peer));
	int error;

	if (!peer)
		return NULL;
	peer->pid = pid;
	peer->serial = ++host_table.serial ? host_table.serial : ++host_table.serial;
	peer->created = created;
	peer->process_memory = -1;
	peer->socket = (struct watched_fd){.fd = socket, .ready = socket_ended, .drain = socket_take_wakes};
	peer->memory = mmap(NULL, host_carrier->memory_size(), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (peer->memory != MAP_FAILED)
		return peer;
	error = errno;
	free(peer);
	errno = error;
	return NULL;
}

struct host_peer *host_peer_add(int socket, pid_t pid, bool created, int memory)
{
	struct host_peer *peer = host_peer_map(socket, pid, created, memory);
	int error = peer ? host_peer_begin(peer, memory) : -errno;

	close(memory);
	if (!peer) {
		descriptor_close(socket);
		errno = -error;
		return NULL;
	}
	if (error) {
		host_peer_free(peer);
		errno = -error;
		return NULL;
	}
	peer->next = host_table.peers;
	__atomic_store_n(&host_table.peers, peer, __ATOMIC_RELEASE);
	counter_add(first_device(), COUNTER_HOST_CONNECTIONS, 1);
	/*
	 * No thread was woken if the device thread read the first message before the peer existed, or another thread
	 * accepted the connection first.
	 */
	progress_wake();
	return peer;
}

/*
 * Explains a failed connection, limited because every packet from another host for that process tries again
 * (shm_forward()).
 */
static struct host_peer *qpn_explain_failure(uint32_t qpn, pid_t pid, int error)
{
	EXPLAIN_LIMITED(first_device(), (&(const struct explain_subject){0}), LIMIT_EXPLAINED_DROPS,
			RULE_HOST_NO_CONNECTION, qpn, (uint64_t)pid, (uint64_t)error);
	errno = error;
	return NULL;
}

/* The socket shows the end of the other process before the device thread hangs up. */
static bool host_peer_has_ended(const struct host_peer *peer)
{
	struct pollfd state = {.fd = peer->socket.fd, .events = POLLRDHUP};

	return !descriptor_check(state.fd) || poll(&state, 1, 0) != 0;
}

bool host_peer_lives(struct host_peer *peer)
{
	uint64_t now_ns = clock_now_ns();

	if (now_ns - __atomic_load_n(&peer->lived_ns, __ATOMIC_RELAXED) < PEER_ALIVE_NS)
		return true;
	if (host_peer_has_ended(peer))
		return false;
	__atomic_store_n(&peer->lived_ns, now_ns, __ATOMIC_RELAXED);
	return true;
}

/*
 * Returns the existing connection to process @pid, or NULL. If the ID was reused, the connection to its former owner
 * has already ended.
 */
static struct host_peer *process_find_peer(pid_t pid)
{
	for (struct host_peer *peer = pid ? host_table.peers : NULL; peer; peer = peer->next)
		if (peer->pid == pid && !host_peer_has_ended(peer))
			return peer;
	return NULL;
}

bool host_has_all_connections(pid_t pid)
{
	uint32_t count = 0;

	/*
	 * A process may have any number of connections to itself. Those in an invisible PID namespace cannot be told
	 * apart.
	 */
	if (!pid || pid == getpid())
		return false;
	for (struct host_peer *peer = host_table.peers; peer; peer = peer->next)
		count += peer->pid == pid && !host_peer_has_ended(peer);
	return count >= LIMIT_PROCESS_CONNECTIONS;
}

static struct host_peer *peer_none(void)
{
	errno = ENOENT;
	return NULL;
}

static struct host_peer *peer_failed(int error)
{
	errno = error;
	return NULL;
}

/* Returns an existing peer with the process at the other end of @fd, or a new one. */
static struct host_peer *socket_find_peer(int fd, pid_t *pid)
{
	struct host_peer *peer;
	int memory;

	if (!host_same_user(fd, pid)) {
		close(fd);
		return peer_none();
	}
	peer = process_find_peer(*pid);
	if (peer) {
		close(fd);
		return peer;
	}
	fd = descriptor_keep(fd);
	if (fd < 0)
		return peer_failed(errno);
	memory = host_memory_create();
	if (memory < 0) {
		descriptor_close(fd);
		return peer_failed(-memory);
	}
	return host_peer_add(fd, *pid, true, memory);
}

struct host_peer *host_connect_to(int (*connect)(uint64_t number), uint64_t number, pid_t *pid)
{
	struct host_peer *peer;
	int tries = 0, fd;

	/*
	 * A process that ends resets connections that it has not accepted. Then the name is free, or another process
	 * has it.
	 */
	do {
		*pid = 0;
		fd = connect(number);
		if (fd == -ECONNREFUSED)
			return peer_none();
		peer = fd < 0 ? peer_failed(-fd) : socket_find_peer(fd, pid);
	} while (!peer && (errno == ECONNRESET || errno == EPIPE) && ++tries < MOST_ENDS);
	return peer;
}

/* Returns NULL with errno as host_peer_of(). The lock is held. */
static struct host_peer *qpn_connect(uint32_t qpn)
{
	pid_t pid;
	struct host_peer *peer = host_connect_to(host_slot_connect, host_slot_of(qpn), &pid);

	return peer || errno == ENOENT ? peer : qpn_explain_failure(qpn, pid, errno);
}

struct host_peer *host_peer_of(uint32_t qpn)
{
	WITHOUT_CANCELLATION;
	struct host_peer *peer = host_peer_known(qpn);
	uint32_t slot = host_slot_of(qpn);

	if (peer)
		return peer;
	if (slot == 0 || slot >= HOST_SLOTS)
		return peer_none();
	/* The peer may connect back to reply. */
	host_accept();
	pthread_mutex_lock(&host_table.lock);
	peer = host_peer_known(qpn);
	if (!peer) {
		/* The peer may just have connected to this process. */
		host_take_connections();
		peer = qpn_connect(qpn);
		if (peer) {
			__atomic_store_n(&host_table.was_known[slot], 1, __ATOMIC_RELAXED);
			__atomic_store_n(&host_table.peer[slot], peer, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&host_table.lock);
	return peer;
}

bool host_connection_leads_to(uint32_t connection, uint32_t qpn, pid_t *process)
{
	const struct host_peer *from = host_peers(), *to;

	while (from && from->serial != connection)
		from = host_next(from);
	*process = from ? from->pid : 0;
	to = from ? host_peer_of(qpn) : NULL;
	return to && (to == from || to->pid == from->pid);
}

struct host_peer *host_living_peer_of(uint32_t qpn)
{
	struct host_peer *peer = host_peer_known(qpn);
	struct host_peer **place;

	if (peer && !host_peer_lives(peer)) {
		place = &host_table.peer[host_slot_of(qpn)];
		pthread_mutex_lock(&host_table.lock);
		if (*place == peer)
			__atomic_store_n(place, NULL, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&host_table.lock);
	}
	return host_peer_of(qpn);
}

/* ---- fork ------------------------------------------------------------------------------------------------------- */

void host_before_fork(void)
{
	pthread_mutex_lock(&host_table.lock);
}

static void slots_leave(void)
{
	struct own_slot *slot;

	while ((slot = host_table.own)) {
		host_table.own = slot->next;
		host_table.state[slot->number] = SLOT_FORMER;
		descriptor_close(slot->door.listening.fd);
		free(slot);
	}
	host_table.own_count = 0;
	host_table.accepts = 0;
}

static void peers_leave(void)
{
	struct host_peer *peer;

	while ((peer = host_table.peers)) {
		host_table.peers = peer->next;
		host_carrier->end(peer);
		host_peer_free(peer);
	}
	memset(host_table.peer, 0, sizeof(host_table.peer));
	memset(host_table.was_known, 0, sizeof(host_table.was_known));
}

void host_after_fork(bool child)
{
	if (child) {
		slots_leave();
		host_leave_services();
		peers_leave();
		host_forget_strangers();
	}
	pthread_mutex_unlock(&host_table.lock);
}
