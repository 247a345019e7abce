/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_bind_addr(3), rdma_listen(3), rdma_resolve_addr(3). */
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/rdmacm_entry_points.h"
#include "cm/hello.h"
#include "core/cancellation.h"
#include "core/settings.h"
#include "core/timer.h"
#include "hca/commands.h"
#include "explain/explain.h"
#include "rdmacm/channel.h"
#include "rdmacm/devices.h"
#include "rdmacm/id.h"
#include "rdmacm/sockaddr.h"

/* Default of net.rdma_ucm.max_backlog. */
enum { MOST_BACKLOG = 1024 };

/* For how long a source address that was chosen is used again. */
enum { SOURCE_AGAIN_NS = 10000000 };

static bool address_is_of_host(const struct sockaddr *address)
{
	struct ifaddrs *list, *entry;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (entry = list; entry && !found; entry = entry->ifa_next)
		found = entry->ifa_addr && address_equal(entry->ifa_addr, address);
	freeifaddrs(list);
	return found;
}

/* Returns 0 and sets the device in *@path (NULL for a wild address), or a negative errno. */
static int id_check_address(struct user_cm_id *id, const struct sockaddr *address, const char *call,
			    struct resolved_path *path)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;
	union ibv_gid gid;

	path->device = NULL;
	if (!address_size(address))
		return -REFUSE(hca_of_id(id), call, EINVAL, RULE_RDMACM_FAMILY, address->sa_family);
	if (id->base.ps == RDMA_PS_IPOIB)
		return -REFUSE(hca_of_id(id), call, EINVAL, RULE_RDMACM_IPOIB, 0);
	if (address_is_loopback(address))
		path->device = device_of_loopback(address, &path->sgid_index);
	if (path->device)
		path->sgid = hca_gids(path->device->hca, &(size_t){0})[path->sgid_index].gid;
	if (address_is_wild(address))
		return 0;
	gid = address_gid(address);
	if (address->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) && !in6->sin6_scope_id)
		return -REFUSE(hca_of_id(id), call, EINVAL, RULE_RDMACM_NO_SCOPE, be64toh(gid.global.subnet_prefix),
			       be64toh(gid.global.interface_id));
	path->device = address->sa_family == AF_IB ? NULL : device_of_address(address, &path->sgid_index);
	path->sgid = gid;
	if (path->device)
		return 0;
	if (address->sa_family == AF_IB || address_is_of_host(address))
		return -REFUSE(hca_of_id(id), call, ENODEV, RULE_RDMACM_NO_DEVICE, be64toh(gid.global.subnet_prefix),
			       be64toh(gid.global.interface_id));
	return -REFUSE(hca_of_id(id), call, EADDRNOTAVAIL, RULE_RDMACM_NOT_OF_HOST, be64toh(gid.global.subnet_prefix),
		       be64toh(gid.global.interface_id));
}

/* The default is net.ipv6.bindv6only. */
static bool id_own_family_only(const struct user_cm_id *id, sa_family_t family)
{
	int only = 0;
	FILE *file;

	if (id->family_only_set)
		return id->own_family_only;
	if (family != AF_INET6)
		return true;
	file = fopen("/proc/sys/net/ipv6/bindv6only", "re");
	if (file) {
		if (fscanf(file, "%d", &only) != 1)
			only = 0;
		fclose(file);
	}
	return only;
}

static int id_port_refused(const struct user_cm_id *id, const char *call, int error)
{
	return -REFUSE(hca_of_id(id), call, -error, RULE_RDMACM_PORT_IN_USE, id->port.number, id->base.ps,
		       (uint64_t)port_owner(&id->port));
}

/* Moves an ID from IDLE to BOUND. @destination: that of rdma_resolve_addr(3), or NULL. */
static int id_bind(struct user_cm_id *id, const struct sockaddr *address, const struct sockaddr *destination,
		   const char *call)
{
	struct sockaddr_storage source;
	struct resolved_path path;
	int error = id_check_address(id, address, call, &path);

	if (error)
		return error;
	address_copy(&source, address);
	id->port.reuse_address = id->reuse_address;
	id->port.own_family_only = id->own_family_only = id_own_family_only(id, address->sa_family);
	error = port_bind(&id->port, (uint16_t)id->base.ps, (struct sockaddr *)&source, destination);
	if (error == -EACCES)
		return -REFUSE(hca_of_id(id), call, EACCES, RULE_RDMACM_PORT_PRIVILEGED, id->port.number);
	if (error)
		return id_port_refused(id, call, error);
	id->path.source = source;
	id->base.route.addr.src_storage = source;
	if (path.device)
		id_bind_device(id, &path);
	id_change(id, ID_IDLE, ID_BOUND);
	return 0;
}

int softhca_rdma_bind_addr(struct rdma_cm_id *base, struct sockaddr *addr)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_bind_addr");
	int error;

	if (!id)
		return -1;
	error = id_check(id, ID_CALL_BIND_ADDR);
	if (!error)
		error = id_bind(id, addr, NULL, "rdma_bind_addr");
	return id_end(id, error);
}

static int backlog_limit(void)
{
	int most = MOST_BACKLOG;
	FILE *file = fopen("/proc/sys/net/rdma_ucm/max_backlog", "re");

	if (file) {
		if (fscanf(file, "%d", &most) != 1 || most <= 0)
			most = MOST_BACKLOG;
		fclose(file);
	}
	return most;
}

static int id_listen(struct user_cm_id *id, int backlog)
{
	struct sockaddr_storage any;
	enum id_state before;
	int error = id_check(id, ID_CALL_LISTEN);

	if (!error && id_state(id) == ID_IDLE) {
		address_any(&any, AF_INET, 0);
		error = id_bind(id, (struct sockaddr *)&any, NULL, "rdma_listen");
	}
	if (error)
		return error;
	error = port_listen(&id->port);
	if (error)
		return id_port_refused(id, "rdma_listen", error);
	id->reuse_address = false;
	id->backlog = (uint32_t)(backlog <= 0 || backlog > backlog_limit() ? backlog_limit() : backlog);
	before = id_state(id);
	error = id_make_cm(id);
	if (error)
		return error;
	/* Requests may arrive before cm_listen() returns. */
	id_change(id, before, ID_LISTEN);
	error = cm_listen(id->cm, cm_service_id((uint16_t)id->base.ps, id->port.number));
	if (error)
		id_change(id, ID_LISTEN, before);
	return error;
}

int softhca_rdma_listen(struct rdma_cm_id *base, int backlog)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_listen");

	return id ? id_end(id, id_listen(id, backlog)) : -1;
}

/* A question to the host's routes and its answer. */
struct source_choice {
	struct sockaddr_storage source, destination; /* ports are always the same */
	struct sockaddr_storage chosen;
	uint64_t until_ns; /* CLOCK_MONOTONIC; until when the answer is used again */
};

/*
 * The last answer, or NULL while a thread uses it; atomic. Not one for each thread, because the room for variables of
 * threads in a library that a program loads late is small (dlopen(3)); without a lock, because of fork(2).
 */
static struct source_choice *latest_source;

/* Asks the host's routes for choice->chosen. Returns 0 or a negative errno. */
static int source_ask(struct source_choice *choice)
{
	struct sockaddr *source = (struct sockaddr *)&choice->source, *to = (struct sockaddr *)&choice->destination;
	int fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(choice->chosen);
	int error = 0;

	if (fd < 0)
		return -errno;
	if ((!address_is_wild(source) && bind(fd, source, address_size(source))) || connect(fd, to, address_size(to)) ||
	    getsockname(fd, (struct sockaddr *)&choice->chosen, &size))
		error = -errno;
	close(fd);
	return error;
}

/* Sets choice->chosen and returns true if the last answer was to the same question, a moment ago. */
static bool source_was_chosen(struct source_choice *choice)
{
	struct source_choice *latest = __atomic_exchange_n(&latest_source, NULL, __ATOMIC_ACQUIRE);
	bool same = latest && clock_now_ns() < latest->until_ns &&
		    !memcmp(choice, latest, offsetof(struct source_choice, chosen));

	if (same)
		choice->chosen = latest->chosen;
	free(__atomic_exchange_n(&latest_source, latest, __ATOMIC_ACQ_REL));
	return same;
}

static void source_note_chosen(const struct source_choice *choice)
{
	struct source_choice *latest = malloc(sizeof(*latest));

	if (!latest)
		return;
	*latest = *choice;
	latest->until_ns = clock_now_ns() + SOURCE_AGAIN_NS;
	free(__atomic_exchange_n(&latest_source, latest, __ATOMIC_ACQ_REL));
}

/*
 * Sets @chosen to the address from which packets to @destination come. The last answer is used again for
 * SOURCE_AGAIN_NS, because a program that makes thousands of connections asks for the same one. Returns 0 or a negative
 * errno.
 */
static int source_to_destination(const struct sockaddr *source, const struct sockaddr *destination,
				 struct sockaddr_storage *chosen)
{
	struct source_choice choice = {.until_ns = 0};
	int error = 0;

	address_copy(&choice.source, source);
	address_copy(&choice.destination, destination);
	address_set_port((struct sockaddr *)&choice.source, 0);
	/* connect(2) to port 0 succeeds for UDP, but a real port is clearer. */
	address_set_port((struct sockaddr *)&choice.destination, 4791);
	if (!source_was_chosen(&choice)) {
		error = source_ask(&choice);
		if (!error)
			source_note_chosen(&choice);
	}
	*chosen = choice.chosen;
	return error;
}

/*
 * Resolves a wild destination, which means this host. Real adapters then have no route; here it leads to the device
 * itself, unless the profile is that of an adapter (docs/inside/decisions.md).
 */
static int path_resolve_host(struct user_cm_id *id, const struct sockaddr *destination, struct resolved_path *path)
{
	struct shared_device *device = id->path.device;
	int index = id->path.sgid_index;

	if (!device)
		device = device_of_address(destination, &index);
	if (!device)
		device = device_of_host(destination->sa_family, &index);
	if (!device)
		device = device_of_host(AF_UNSPEC, &index);
	if (!device)
		return -ENODEV;
	path->device = device;
	path->sgid_index = index;
	path->sgid = path->dgid = hca_gids(device->hca, &(size_t){0})[index].gid;
	if (address_is_wild((const struct sockaddr *)&path->source)) {
		uint16_t port = address_port((const struct sockaddr *)&path->source);

		address_copy(&path->source, destination);
		address_set_port((struct sockaddr *)&path->source, port);
	}
	return 0;
}

/* Errors of the addresses go to the event's status, *@status. */
static int path_resolve(struct user_cm_id *id, const struct sockaddr *destination, struct resolved_path *path,
			int *status)
{
	const struct sockaddr *source = (const struct sockaddr *)&path->source;
	struct sockaddr_storage chosen;
	uint16_t port = address_port(source);
	int error;

	*status = 0;
	address_copy(&path->destination, destination);
	if (address_is_wild(destination)) {
		*status = path_resolve_host(id, destination, path);
		return 0;
	}
	if (destination->sa_family == AF_IB) {
		*status = -ENODEV;
		return 0;
	}
	error = source_to_destination(source, destination, &chosen);
	if (error)
		return -REFUSE(hca_of_id(id), "rdma_resolve_addr", -error, RULE_RDMACM_NO_ROUTE,
			       be64toh(address_gid(destination).global.subnet_prefix),
			       be64toh(address_gid(destination).global.interface_id), -error);
	address_set_port((struct sockaddr *)&chosen, port);
	path->source = chosen;
	path->device = device_of_address(source, &path->sgid_index);
	if (!path->device || (id->path.device && id->path.device != path->device)) {
		*status = -REFUSE(hca_of_id(id), "rdma_resolve_addr", ENODEV, RULE_RDMACM_NO_DEVICE,
				  be64toh(address_gid(source).global.subnet_prefix),
				  be64toh(address_gid(source).global.interface_id));
		return 0;
	}
	path->sgid = address_gid(source);
	path->dgid = address_gid(destination);
	return 0;
}

/* Implements user_cm_event.deliver. */
static bool id_deliver_addresses(struct user_cm_event *event)
{
	id_publish_addresses(event->owner);
	return true;
}

static int id_resolve_addr(struct user_cm_id *id, const struct sockaddr *source, const struct sockaddr *destination)
{
	struct sockaddr_storage any;
	struct resolved_path path;
	int error = id_check(id, ID_CALL_RESOLVE_ADDR), status;

	if (error)
		return error;
	if (!address_size(destination))
		return -REFUSE(hca_of_id(id), "rdma_resolve_addr", EINVAL, RULE_RDMACM_FAMILY, destination->sa_family);
	if (id_state(id) == ID_IDLE) {
		/* Some programs pass a source without a family. */
		if (!source || !address_size(source)) {
			address_any(&any, destination->sa_family, 0);
			source = (const struct sockaddr *)&any;
		}
		if (source->sa_family == destination->sa_family)
			error = id_bind(id, source, destination, "rdma_resolve_addr");
	}
	if (error)
		return error;
	path = id->path;
	if (id_state(id) == ID_IDLE || path.source.ss_family != destination->sa_family)
		return -REFUSE(hca_of_id(id), "rdma_resolve_addr", EINVAL, RULE_RDMACM_FAMILIES_DIFFER,
			       source ? source->sa_family : path.source.ss_family, destination->sa_family);
	error = path_resolve(id, destination, &path, &status);
	if (error)
		return error;
	if (status)
		return event_raise(id, RDMA_CM_EVENT_ADDR_ERROR, status, NULL);
	id->path = path;
	id_change(id, ID_BOUND, ID_RESOLVED);
	return event_raise(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, id_deliver_addresses);
}

int softhca_rdma_resolve_addr(struct rdma_cm_id *base, struct sockaddr *src_addr, struct sockaddr *dst_addr,
			      int timeout_ms)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_resolve_addr");

	/* The host's routes are at hand. */
	(void)timeout_ms;
	return id ? id_end_complete(id, id_resolve_addr(id, src_addr, dst_addr)) : -1;
}
