/* SPDX-License-Identifier: BSD-2-Clause */
/* Bound ports, see ports.h. */
#include "rdmacm/ports.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/random.h>
#include <unistd.h>

#include "cm_host/services.h"
#include "core/timer.h"
#include "rdmacm/port_names.h"
#include "rdmacm/sockaddr.h"

enum {
	PRIVILEGED_PORTS = 1024,
	/* lists by number; a power of 2, so that the ports of a range are spread evenly */
	PORT_LISTS = 1024,
	/* random numbers read at a time */
	RANDOM_NUMBERS = 64,
};

/* Global because port spaces belong to the host, as those of sockets. */
static struct {
	pthread_mutex_t lock;
	struct bound_port *list[PORT_LISTS];
	uint16_t last_given; /* chosen for port 0; not chosen again at once */
	uint32_t random[RANDOM_NUMBERS];
	uint32_t random_left; /* how many of them are unused */
} ports = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct bound_port **port_list(uint16_t number)
{
	return &ports.list[number % PORT_LISTS];
}

static const struct sockaddr *port_source(const struct bound_port *port)
{
	return (const struct sockaddr *)&port->source;
}

static const struct sockaddr *port_destination(const struct bound_port *port)
{
	return (const struct sockaddr *)&port->destination;
}

/* Returns a negative errno if two IDs may not share a port, or 0. @reuse: apply REUSEADDR (rdma-cm 2.4). */
static int ports_collide(const struct bound_port *port, const struct bound_port *other, bool reuse)
{
	const struct sockaddr *source = port_source(port), *of_other = port_source(other);

	if (reuse && port->reuse_address && other->reuse_address)
		return 0;
	if (port->own_family_only && other->own_family_only && source->sa_family != of_other->sa_family)
		return 0;
	if (address_is_wild(source) || address_is_wild(of_other))
		return -EADDRNOTAVAIL;
	return address_equal(source, of_other) ? -EADDRINUSE : 0;
}

/*
 * Returns true if a port chosen for port 0 may be shared because the IDs have different destinations: peers never
 * connect to it, so it need not identify one ID. The caller holds the lock.
 */
static bool port_leads_elsewhere(const struct bound_port *port, const struct bound_port *other)
{
	const struct sockaddr *to = port_destination(port), *of_other = port_destination(other);

	if (other->listening || address_is_wild(to) || address_is_wild(of_other))
		return false;
	return address_port(to) != address_port(of_other) || !address_equal(to, of_other);
}

/* Checks @port against all others. The caller holds the lock. */
static int port_check(const struct bound_port *port, bool reuse, bool shares)
{
	const struct bound_port *other;
	int error = 0;

	for (other = *port_list(port->number); other && !error; other = other->next)
		if (other != port && other->space == port->space && other->number == port->number &&
		    !(shares && port_leads_elsewhere(port, other)))
			error = ports_collide(port, other, reuse);
	return error;
}

static void port_enter(struct bound_port *port)
{
	struct bound_port **list = port_list(port->number);

	port->next = *list;
	port->link = list;
	if (port->next)
		port->next->link = &port->next;
	*list = port;
}

static void port_leave_list(struct bound_port *port)
{
	if (!port->link)
		return;
	*port->link = port->next;
	if (port->next)
		port->next->link = port->link;
	port->next = NULL;
	port->link = NULL;
}

/* Returns true if the process has the name of the port. The caller holds the lock. */
static bool port_has_name(const struct bound_port *port)
{
	const struct bound_port *other;

	for (other = *port_list(port->number); other; other = other->next)
		if (other->space == port->space && other->number == port->number && other->named)
			return true;
	return false;
}

/*
 * Claims the name of the port. An ID that only connects needs none (port_names.h); IDs that share a port share its
 * name. The caller holds the lock.
 */
static int port_take_name(struct bound_port *port)
{
	int error = 0;

	if (!port_has_name(port))
		error = port_name_claim(port->space, port->number, address_is_wild(port_source(port)));
	port->named = !error;
	return error;
}

/* Other programs cannot predict the next number. The caller holds the lock. */
static unsigned int random_below(unsigned int count)
{
	if (!ports.random_left) {
		if (getrandom(ports.random, sizeof(ports.random), GRND_NONBLOCK) != sizeof(ports.random))
			return (uint32_t)clock_now_ns() % count;
		ports.random_left = RANDOM_NUMBERS;
	}
	return ports.random[--ports.random_left] % count;
}

/* Chooses a free port. The caller holds the lock. */
static int port_take_free(struct bound_port *port, bool explicit)
{
	unsigned int tried, number;
	uint32_t first, last;
	int error = -EADDRNOTAVAIL;

	hca_port_range(&first, &last);
	number = first + random_below(last - first + 1);
	for (tried = 0; tried <= last - first; tried++, number++) {
		if (number > last)
			number = first;
		if (number == ports.last_given && first != last)
			continue;
		port->number = (uint16_t)number;
		error = port_check(port, true, !explicit);
		if (!error && explicit)
			error = port_take_name(port);
		if (error != -EADDRNOTAVAIL && error != -EADDRINUSE)
			break;
	}
	if (!error)
		ports.last_given = port->number;
	return error;
}

/* ---- fork(2) ----------------------------------------------------------------------------------------------------- */

static void ports_before_fork(void)
{
	pthread_mutex_lock(&ports.lock);
}

static void ports_after_fork_in_parent(void)
{
	pthread_mutex_unlock(&ports.lock);
}

/* They belong to IDs of the parent. */
static void ports_after_fork_in_child(void)
{
	for (uint32_t i = 0; i < PORT_LISTS; i++) {
		while (ports.list[i]) {
			ports.list[i]->named = false;
			port_leave_list(ports.list[i]);
		}
	}
	/* Those that are left are the parent's next ones. */
	ports.random_left = 0;
	pthread_mutex_unlock(&ports.lock);
}

/*
 * A fork must take this lock before those of the device, because claiming a name under it takes the lock of the host's
 * table. It does: handlers registered last are called first (pthread_atfork(3)), and the device exists when a port is
 * bound.
 */
static void ports_handle_fork(void)
{
	pthread_atfork(ports_before_fork, ports_after_fork_in_parent, ports_after_fork_in_child);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

int port_bind(struct bound_port *port, uint16_t space, struct sockaddr *source, const struct sockaddr *destination)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int error;

	pthread_once(&once, ports_handle_fork);
	port->space = space;
	port->number = address_port(source);
	address_copy(&port->source, source);
	if (destination)
		address_copy(&port->destination, destination);
	if (port->number && port->number < PRIVILEGED_PORTS && !process_may_bind_privileged())
		return -EACCES;
	pthread_mutex_lock(&ports.lock);
	if (port->number) {
		error = port_check(port, true, false);
		if (!error)
			error = port_take_name(port);
	} else {
		error = port_take_free(port, !destination);
	}
	if (!error) {
		port_enter(port);
		address_set_port(source, port->number);
		address_set_port((struct sockaddr *)&port->source, port->number);
	}
	pthread_mutex_unlock(&ports.lock);
	return error;
}

void port_set_sharing(struct bound_port *port, bool reuse_address, bool own_family_only)
{
	pthread_mutex_lock(&ports.lock);
	port->reuse_address = reuse_address;
	port->own_family_only = own_family_only;
	pthread_mutex_unlock(&ports.lock);
}

int port_listen(struct bound_port *port)
{
	int error;

	pthread_mutex_lock(&ports.lock);
	error = port_check(port, false, false);
	if (!error && !port->named)
		error = port_take_name(port);
	if (!error)
		error = port_name_listen(port->space, port->number);
	if (!error) {
		port->reuse_address = false;
		port->listening = true;
	}
	pthread_mutex_unlock(&ports.lock);
	return error;
}

pid_t port_owner(const struct bound_port *port)
{
	const struct bound_port *other;

	pthread_mutex_lock(&ports.lock);
	for (other = *port_list(port->number); other; other = other->next)
		if (other != port && other->space == port->space && other->number == port->number)
			break;
	pthread_mutex_unlock(&ports.lock);
	return other ? getpid() : port_name_owner(port->space, port->number);
}

void port_release(struct bound_port *port)
{
	pthread_mutex_lock(&ports.lock);
	if (port->link) {
		port_leave_list(port);
		if (port->named && !port_has_name(port))
			port_name_release(port->space, port->number);
		port->named = false;
	}
	pthread_mutex_unlock(&ports.lock);
}
