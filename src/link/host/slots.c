/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots of QP numbers and their names, see host.h. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "device/device.h"
#include "link/host/table.h"

/* Not the first, nor the last, see host_claim_slot(). */
#define FIRST_SLOT 1
#define CLAIMED_SLOTS (HOST_SLOTS - 2)
#define MOST_OWN (LIMIT_MAX_QP >> HOST_SLOT_BITS)

struct host_table host_table = {.lock = PTHREAD_MUTEX_INITIALIZER};

socklen_t host_slot_address(uint32_t number, struct sockaddr_un *address)
{
	int length;

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* An abstract name begins with a NUL and ends where the length says (unix(7)). The 1 is of the protocol. */
	length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "softhca/1/slot/%u", number);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static enum host_slot_state state_of(uint32_t slot)
{
	return __atomic_load_n(&host_table.state[slot], __ATOMIC_ACQUIRE);
}

bool host_owns(uint32_t qpn)
{
	return host_slot_of(qpn) < HOST_SLOTS && state_of(host_slot_of(qpn)) == SLOT_OWN;
}

/*
 * Where a process begins to look. Spread by its id: two that start together do not want the same slot, and one that starts
 * after another has died does not get its numbers at once, for which packets may still be on their way. (Not by the seed of
 * the device: processes with one seed would all begin at the same place.)
 */
static uint32_t first_choice(void)
{
	return (uint32_t)((uint64_t)((uint32_t)getpid() * 0x9e3779b1u) * CLAIMED_SLOTS >> 32);
}

int host_bind(const struct sockaddr_un *address, socklen_t length)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (const struct sockaddr *)address, length))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/* Returns a listening socket, -EADDRINUSE if somebody else has the slot, or another negative errno. */
static int listen_at(uint32_t number)
{
	struct sockaddr_un address;
	socklen_t length = host_slot_address(number, &address);
	int fd = host_bind(&address, length);
	int error;

	if (fd < 0 || !listen(fd, SOMAXCONN))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/* The lock is held. */
static void own(struct own_slot *slot, uint32_t number, int listening)
{
	slot->number = number;
	slot->door.listening.fd = listening;
	slot->next = host_table.own;
	host_table.own = slot;
	host_table.own_count++;
	__atomic_store_n(&host_table.state[number], SLOT_OWN, __ATOMIC_RELEASE);
	/* A process that cannot accept here can elsewhere, or is told by the next host_accept(). */
	if (host_table.accepts && listening >= 0)
		host_door_watch(&slot->door);
}

static void explain_no_socket(uint32_t number, int error)
{
	EXPLAIN(first_device(), (&(const struct explain_subject){0}), RULE_HOST_NO_SOCKET, number << HOST_SLOT_BITS,
		((number + 1) << HOST_SLOT_BITS) - 1, (uint64_t)error);
}

/* The lock is held. Returns -ENOSPC if all are taken. */
static int claim(struct own_slot *slot)
{
	uint32_t choice = first_choice();

	for (uint32_t i = 0; i < CLAIMED_SLOTS; i++) {
		uint32_t number = FIRST_SLOT + (choice + i) % CLAIMED_SLOTS;
		int listening;

		if (state_of(number) != SLOT_FOREIGN)
			continue;
		listening = listen_at(number);
		if (listening == -EADDRINUSE)
			continue;
		own(slot, number, listening < 0 ? -1 : listening);
		if (listening < 0)
			explain_no_socket(number, -listening);
		return 0;
	}
	return -ENOSPC;
}

/* The lock is held. */
static int claim_another(struct own_slot **claimed)
{
	struct own_slot *slot = calloc(1, sizeof(*slot));
	int error = -ENOSPC;

	if (!slot)
		return -ENOMEM;
	if (host_table.own_count < MOST_OWN)
		error = claim(slot);
	if (error)
		free(slot);
	else
		*claimed = slot;
	return error;
}

/* The oldest. */
static struct own_slot *first_slot(void)
{
	struct own_slot *slot = host_table.own;

	while (slot && slot->next)
		slot = slot->next;
	return slot;
}

int host_claim_slot(uint32_t *first)
{
	WITHOUT_CANCELLATION;
	struct own_slot *slot;
	int error = 0;

	pthread_mutex_lock(&host_table.lock);
	host_follow_user();
	slot = first_slot();
	if (!slot || !slot->spare)
		error = claim_another(&slot);
	if (!error) {
		slot->spare = false;
		*first = slot->number << HOST_SLOT_BITS;
	}
	pthread_mutex_unlock(&host_table.lock);
	return error;
}

int host_process_slot(uint32_t *number)
{
	WITHOUT_CANCELLATION;
	struct own_slot *slot;
	int error = 0;

	pthread_mutex_lock(&host_table.lock);
	slot = first_slot();
	if (!slot) {
		error = claim_another(&slot);
		if (!error)
			slot->spare = true;
	}
	if (!error)
		*number = slot->number;
	pthread_mutex_unlock(&host_table.lock);
	return error;
}
