/* SPDX-License-Identifier: BSD-2-Clause */
/* Services of the connection manager and their names, see host.h. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/descriptor.h"
#include "core/limits.h"
#include "hca/hca.h"
#include "explain/explain.h"
#include "explain/limit.h"
#include "link/host/table.h"
#include "wire/mad.h"

/* A service is port space << 16 | port (IBTA annex A11). */
static uint32_t service_space(uint64_t service)
{
	return (uint32_t)(service >> 16);
}

static uint32_t service_port(uint64_t service)
{
	return (uint32_t)service & 0xffff;
}

static struct host_name service_name(uint64_t service)
{
	return host_name("softhca/1/cm/%04x/%u", service_space(service), service_port(service));
}

/* The second name of a service, to which no process connects, marks it as bound to all addresses. */
static int service_bind_mark(uint64_t service)
{
	struct host_name name = host_name("softhca/1/cm/%04x/%u/any", service_space(service), service_port(service));

	return host_bind(&name, SOCK_SEQPACKET);
}

/* The lock is held. */
static struct own_service *own_service_find(uint64_t service)
{
	struct own_service *own = host_table.services;

	while (own && (own->service != service || own->ending))
		own = own->next;
	return own;
}

/* ---- of this process -------------------------------------------------------------------------------------------- */

static int own_service_claim(struct own_service *own, uint64_t service, bool alone)
{
	struct host_name name = service_name(service);
	int fd = -1;

	if (own_service_find(service))
		return -EADDRINUSE;
	if (!alone)
		fd = host_bind(&name, SOCK_SEQPACKET);
	if (!alone && fd < 0)
		return fd;
	fd = descriptor_keep(fd);
	if (!alone && fd < 0)
		return -EMFILE;
	*own = (struct own_service){
		.door.listening.fd = fd, .next = host_table.services, .service = service, .mark = -1};
	host_table.services = own;
	return 0;
}

int host_service_claim(uint64_t service, bool alone)
{
	WITHOUT_CANCELLATION;
	struct own_service *own = malloc(sizeof(*own));
	int error;

	if (!own)
		return -ENOMEM;
	pthread_mutex_lock(&host_table.lock);
	error = own_service_claim(own, service, alone);
	pthread_mutex_unlock(&host_table.lock);
	if (error)
		free(own);
	return error;
}

void host_service_mark(uint64_t service)
{
	WITHOUT_CANCELLATION;
	struct own_service *own;

	pthread_mutex_lock(&host_table.lock);
	own = own_service_find(service);
	if (own && own->door.listening.fd >= 0 && own->mark < 0)
		own->mark = descriptor_keep(service_bind_mark(service));
	pthread_mutex_unlock(&host_table.lock);
}

bool host_service_is_marked(uint64_t service)
{
	WITHOUT_CANCELLATION;
	int fd;

	pthread_mutex_lock(&host_table.lock);
	fd = service_bind_mark(service);
	if (fd >= 0)
		close(fd);
	pthread_mutex_unlock(&host_table.lock);
	return fd == -EADDRINUSE;
}

static int own_service_listen(struct own_service *own)
{
	int error;

	if (!own)
		return -ENOENT;
	if (own->listens)
		return 0;
	if (own->door.listening.fd >= 0) {
		if (listen(own->door.listening.fd, SOMAXCONN))
			return -errno;
		error = host_door_watch(&own->door);
		if (error)
			return error;
	}
	own->listens = true;
	return 0;
}

int host_service_listen(uint64_t service)
{
	WITHOUT_CANCELLATION;
	int error;

	pthread_mutex_lock(&host_table.lock);
	host_follow_user();
	error = own_service_listen(own_service_find(service));
	pthread_mutex_unlock(&host_table.lock);
	return error;
}

static void own_service_close(const struct own_service *own)
{
	descriptor_close(own->door.listening.fd);
	descriptor_close(own->mark);
}

/* The lock is held. */
static void own_service_remove(const struct own_service *own)
{
	struct own_service **place = &host_table.services;

	while (*place != own)
		place = &(*place)->next;
	*place = own->next;
}

void host_service_release(uint64_t service)
{
	WITHOUT_CANCELLATION;
	struct own_service *own;

	pthread_mutex_lock(&host_table.lock);
	own = own_service_find(service);
	if (!own) {
		pthread_mutex_unlock(&host_table.lock);
		return;
	}
	own->ending = true;
	/* Before another process can have the name. */
	for (struct host_peer *peer = host_table.peers; peer; peer = peer->next)
		host_carrier->service_released(peer);
	/*
	 * From here on no process can connect, not even this one, which no longer finds the service in its list.
	 * Processes that have connected may already have sent messages.
	 */
	if (own->listens && own->door.listening.fd >= 0) {
		shutdown(own->door.listening.fd, SHUT_RDWR);
		host_door_take(&own->door);
	}
	pthread_mutex_unlock(&host_table.lock);
	/* This waits for door_ready(), which takes the lock. */
	if (own->door.watched)
		progress_unwatch(&own->door.listening);
	pthread_mutex_lock(&host_table.lock);
	own_service_remove(own);
	own_service_close(own);
	pthread_mutex_unlock(&host_table.lock);
	free(own);
}

bool host_service_listens(uint64_t service)
{
	const struct own_service *own;
	bool listens;

	pthread_mutex_lock(&host_table.lock);
	own = own_service_find(service);
	listens = own && own->listens;
	pthread_mutex_unlock(&host_table.lock);
	return listens;
}

void host_leave_services(void)
{
	struct own_service *own;

	while ((own = host_table.services)) {
		host_table.services = own->next;
		own_service_close(own);
		free(own);
	}
}

/* ---- of other processes ----------------------------------------------------------------------------------------- */

pid_t host_service_owner(uint64_t service)
{
	WITHOUT_CANCELLATION;
	struct host_name name = service_name(service);
	struct ucred owner = {.pid = 0};
	int fd;

	pthread_mutex_lock(&host_table.lock);
	fd = host_connect(&name, SOCK_SEQPACKET);
	if (fd >= 0) {
		host_is_own_user(fd, &owner);
		close(fd);
	}
	pthread_mutex_unlock(&host_table.lock);
	return owner.pid;
}

bool host_service_is_vacant(uint64_t service)
{
	WITHOUT_CANCELLATION;
	struct host_name name = service_name(service);
	struct own_service *own;
	bool vacant;
	int fd;

	if (!mad_service_has_name(service))
		return true;
	pthread_mutex_lock(&host_table.lock);
	own = own_service_find(service);
	vacant = own && !own->listens;
	if (!own) {
		fd = host_connect(&name, SOCK_SEQPACKET);
		vacant = fd == -ECONNREFUSED;
		if (fd >= 0)
			close(fd);
	}
	pthread_mutex_unlock(&host_table.lock);
	return vacant;
}

static int service_connect(uint64_t service)
{
	struct host_name name = service_name(service);

	return host_connect(&name, SOCK_SEQPACKET);
}

/* The lock is held. */
static struct host_requested *requested_find(const struct host_peer *peer, uint64_t service)
{
	struct host_requested *requested = peer->requested;

	while (requested && requested->service != service)
		requested = requested->next;
	return requested;
}

/*
 * Records that @service was requested from @peer, to which connecting to it has just led: its end is then reported for
 * the service, because the slot of the peer is unknown until it replies. The lock is held.
 */
static void peer_note_request(struct host_peer *peer, uint64_t service)
{
	struct host_requested *requested = requested_find(peer, service);
	uint32_t released = host_carrier->services_released(peer);

	if (requested) {
		/* The number was read before that, so a release in between would show. */
		requested->certain = requested->released == released;
		requested->released = released;
		return;
	}
	requested = malloc(sizeof(*requested));
	/* Otherwise timeouts detect the end of the peer. */
	if (!requested)
		return;
	*requested = (struct host_requested){.next = peer->requested, .service = service, .released = released};
	peer->requested = requested;
}

/* Returns the peer that certainly has @service, or NULL. Spares some twenty system calls. The lock is held. */
static struct host_peer *service_find_peer(uint64_t service)
{
	for (struct host_peer *peer = host_table.peers; peer; peer = peer->next) {
		const struct host_requested *requested = requested_find(peer, service);

		if (requested && requested->certain && requested->released == host_carrier->services_released(peer) &&
		    host_peer_lives(peer))
			return peer;
	}
	return NULL;
}

/* As host_peer_of_service(), for a service that is not of this process. The lock is held. */
static struct host_peer *service_peer(uint64_t service, pid_t *pid)
{
	struct host_peer *peer = service_find_peer(service);

	if (peer)
		return peer;
	/* The peer may just have connected to this process. */
	host_take_connections();
	peer = host_connect_to(service_connect, service, pid);
	if (peer)
		peer_note_request(peer, service);
	return peer;
}

static struct host_peer *service_explain_failure(uint64_t service, pid_t pid, int error)
{
	EXPLAIN_LIMITED(first_device(), (&(const struct explain_subject){0}), LIMIT_EXPLAINED_DROPS,
			RULE_SERVICE_NO_CONNECTION, service_space(service), service_port(service), (uint64_t)pid,
			(uint64_t)error);
	errno = error;
	return NULL;
}

struct host_peer *host_peer_of_service(uint64_t service)
{
	WITHOUT_CANCELLATION;
	struct host_peer *peer = NULL;
	int error = ENOENT;
	pid_t pid = 0;

	if (!mad_service_has_name(service)) {
		errno = ENOENT;
		return NULL;
	}
	/* The other process replies, perhaps over a connection that it opens. */
	host_accept();
	pthread_mutex_lock(&host_table.lock);
	if (!own_service_find(service)) {
		peer = service_peer(service, &pid);
		error = errno;
	}
	pthread_mutex_unlock(&host_table.lock);
	if (!peer && error != ENOENT)
		return service_explain_failure(service, pid, error);
	errno = error;
	return peer;
}

struct host_peer *host_peer_for(const struct mad_address *address)
{
	return address->addressee == MAD_FOR_SERVICE ? host_peer_of_service(address->service)
						     : host_living_peer_of(address->qpn);
}
