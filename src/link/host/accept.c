/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accepts connections (host.h) on the device thread, or on a thread that is about to connect, under the lock of the
 * host table.
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/descriptor.h"
#include "core/limits.h"
#include "core/tunables.h"
#include "explain/explain.h"
#include "explain/limit.h"
#include "hca/hca.h"
#include "link/host/hello.h"
#include "link/host/table.h"

/* Limit of connections without a hello, which softhca sends at once. */
#define MOST_STRANGERS 16
/* Connections accepted at a time, so that other processes cannot keep the thread here. */
#define MOST_AT_ONCE 64

struct stranger {
	struct watched_fd socket;
	bool present;
	pid_t pid;
	uint64_t arrival;
};

static struct {
	struct stranger at[MOST_STRANGERS];
	uint64_t arrivals;
	int reserve; /* a descriptor to close when none is left; 0 or -1: none */
} strangers;

/*
 * Handles the hello on @socket and takes the socket, also if the hello is invalid. Returns false if none has arrived
 * yet.
 */
static bool stranger_greet(int socket, pid_t pid)
{
	int memory;
	int error = host_hello_receive(socket, pid, &memory);

	if (error == -EAGAIN)
		return false;
	if (!error && host_has_all_connections(pid)) {
		EXPLAIN_LIMITED(first_device(), (&(const struct explain_subject){0}), LIMIT_EXPLAINED_DROPS,
				RULE_HOST_CONNECTIONS, (uint64_t)pid, LIMIT_PROCESS_CONNECTIONS);
		close(memory);
		error = -EUSERS;
	}
	if (error)
		descriptor_close(socket);
	else if (!host_peer_add(socket, pid, false, memory))
		EXPLAIN_LIMITED(first_device(), (&(const struct explain_subject){0}), LIMIT_EXPLAINED_DROPS,
				RULE_HOST_NOT_ACCEPTED, (uint64_t)pid, (uint64_t)errno);
	return true;
}

static bool socket_is_ready(int socket)
{
	return poll(&(struct pollfd){.fd = socket, .events = POLLIN | POLLRDHUP}, 1, 0) == 1;
}

static void stranger_ready(struct watched_fd *socket, uint32_t events)
{
	struct stranger *stranger = (struct stranger *)((char *)socket - offsetof(struct stranger, socket));

	(void)events;
	pthread_mutex_lock(&host_table.lock);
	if (stranger->present && socket_is_ready(socket->fd)) {
		/* First, because a peer will watch the same descriptor. */
		progress_unwatch(socket);
		stranger->present = false;
		if (!stranger_greet(socket->fd, stranger->pid))
			descriptor_close(socket->fd);
	}
	pthread_mutex_unlock(&host_table.lock);
}

static struct stranger *stranger_oldest(void)
{
	struct stranger *oldest = &strangers.at[0];

	for (struct stranger *other = oldest + 1; other < strangers.at + MOST_STRANGERS; other++)
		if (other->arrival < oldest->arrival)
			oldest = other;
	return oldest;
}

static struct stranger *stranger_free_place(void)
{
	for (struct stranger *stranger = strangers.at; stranger < strangers.at + MOST_STRANGERS; stranger++)
		if (!stranger->present)
			return stranger;
	return NULL;
}

/* Keeps a connection until its hello arrives. If there are too many, shuts down the oldest, and closes this one too. */
static void stranger_keep(int socket, pid_t pid)
{
	struct stranger *stranger = stranger_free_place();

	if (!stranger) {
		EXPLAIN_LIMITED(first_device(), (&(const struct explain_subject){0}), LIMIT_EXPLAINED_DROPS,
				RULE_HOST_STRANGERS, MOST_STRANGERS, (uint64_t)stranger_oldest()->pid);
		/* The device thread detects the end and cleans up. */
		shutdown(stranger_oldest()->socket.fd, SHUT_RDWR);
		descriptor_close(socket);
		return;
	}
	*stranger = (struct stranger){
		.socket = {.fd = socket, .ready = stranger_ready},
		.present = true,
		.pid = pid,
		.arrival = ++strangers.arrivals,
	};
	if (progress_watch(&stranger->socket, EPOLLIN | EPOLLRDHUP)) {
		stranger->present = false;
		descriptor_close(socket);
	}
}

static void socket_introduce(int socket)
{
	pid_t pid;

	if (!host_same_user(socket, &pid))
		descriptor_close(socket);
	else if (!stranger_greet(socket, pid))
		stranger_keep(socket, pid);
}

/*
 * Opens a spare descriptor, or returns -1. It must not be a duplicate of a listening socket, because the name would
 * stay in use after the socket is closed.
 */
static int descriptor_open_spare(void)
{
	return descriptor_keep(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

/*
 * Returns a descriptor or -1. If no descriptor is free, the connection would stay pending and keep the device thread
 * awake, so the reserve is closed to accept and close the connection. If even that fails, because the program has
 * lowered its limit below that number, accepting is retried later.
 */
static int door_accept(const struct host_door *door)
{
	const struct timespec nap = {.tv_nsec = TUNABLE_DESCRIPTOR_NAP_NS};
	int fd;

	if (!descriptor_check(door->listening.fd))
		return -1;
	fd = descriptor_keep(accept4(door->listening.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
	if (fd >= 0 || (errno != EMFILE && errno != ENFILE))
		return fd;
	if (strangers.reserve > 0)
		descriptor_close(strangers.reserve);
	fd = accept4(door->listening.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		close(fd);
	else
		nanosleep(&nap, NULL);
	strangers.reserve = descriptor_open_spare();
	return -1;
}

void host_door_take(const struct host_door *door)
{
	int fd;

	if (door->listening.fd < 0)
		return;
	for (int i = 0; i < MOST_AT_ONCE && (fd = door_accept(door)) >= 0; i++)
		socket_introduce(fd);
}

/* Updates SO_PEERCRED, which shows the user of the newest listen(2). */
static void door_listen_again(const struct host_door *door)
{
	if (door->listening.fd >= 0)
		listen(door->listening.fd, SOMAXCONN);
}

void host_follow_user(void)
{
	uid_t user = geteuid();

	if (user == host_table.user)
		return;
	host_table.user = user;
	for (const struct own_slot *slot = host_table.own; slot; slot = slot->next)
		door_listen_again(&slot->door);
	for (const struct own_service *service = host_table.services; service; service = service->next)
		if (service->listens)
			door_listen_again(&service->door);
}

void host_take_connections(void)
{
	host_follow_user();
	for (const struct own_slot *slot = host_table.own; slot; slot = slot->next)
		host_door_take(&slot->door);
	for (const struct own_service *service = host_table.services; service; service = service->next)
		if (service->listens)
			host_door_take(&service->door);
}

static void door_ready(struct watched_fd *listening, uint32_t events)
{
	(void)events;
	pthread_mutex_lock(&host_table.lock);
	host_follow_user();
	host_door_take((const struct host_door *)listening);
	pthread_mutex_unlock(&host_table.lock);
}

int host_door_watch(struct host_door *door)
{
	int error;

	if (door->listening.fd < 0 || door->watched)
		return 0;
	door->listening.ready = door_ready;
	error = progress_watch(&door->listening, EPOLLIN);
	door->watched = !error;
	if (strangers.reserve <= 0)
		strangers.reserve = descriptor_open_spare();
	return error;
}

static void slots_accept(void)
{
	int error = 0;

	for (struct own_slot *slot = host_table.own; slot && !error; slot = slot->next)
		error = host_door_watch(&slot->door);
	/* Tried again with each packet to a process that is not connected. */
	if (error)
		EXPLAIN_LIMITED(first_device(), (&(const struct explain_subject){0}), LIMIT_EXPLAINED_DROPS,
				RULE_HOST_NO_THREAD, (uint64_t)-error);
	else
		__atomic_store_n(&host_table.accepts, 1, __ATOMIC_RELEASE);
}

void host_accept(void)
{
	WITHOUT_CANCELLATION;

	if (__atomic_load_n(&host_table.accepts, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&host_table.lock);
	if (host_table.own && !host_table.accepts)
		slots_accept();
	pthread_mutex_unlock(&host_table.lock);
}

void host_forget_strangers(void)
{
	for (struct stranger *stranger = strangers.at; stranger < strangers.at + MOST_STRANGERS; stranger++) {
		if (stranger->present)
			descriptor_close(stranger->socket.fd);
		stranger->present = false;
	}
	if (strangers.reserve > 0)
		descriptor_close(strangers.reserve);
	strangers.reserve = 0;
}
