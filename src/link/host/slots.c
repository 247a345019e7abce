/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots of QP numbers and their names, see host.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/descriptor.h"
#include "core/limits.h"
#include "core/tunables.h"
#include "explain/explain.h"
#include "hca/hca.h"
#include "link/host/table.h"

/* Values chosen for speed. */
enum {
	/*
	 * reserve names that a process takes and releases if another process of the user chose the same slot at the same
	 * time
	 */
	HOST_RESERVE_TRIES = 16,
};

/* The first slot and the last belong to no process, see host_claim_slot(). */
#define FIRST_SLOT 1
#define PLAIN_SLOTS (HOST_FIRST_RESERVE - FIRST_SLOT)
#define MOST_OWN (LIMIT_MAX_QP >> HOST_SLOT_BITS)

struct host_table host_table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* 1: version of the protocol */
#define PREFIX "softhca/1/slot/"

struct host_name host_slot_name(uint32_t number)
{
	return host_name(PREFIX "%u", number);
}

static enum host_slot_state slot_state(uint32_t slot)
{
	return __atomic_load_n(&host_table.state[slot], __ATOMIC_ACQUIRE);
}

bool host_owns(uint32_t qpn)
{
	return host_slot_of(qpn) < HOST_SLOTS && slot_state(host_slot_of(qpn)) == SLOT_OWN;
}

/*
 * Returns the slot to try first (DESIGN.md). It does not depend on the device's seed, because processes with the same
 * seed would all try the same slot.
 */
static uint32_t slot_first_choice(void)
{
	return (uint32_t)((uint64_t)((uint32_t)getpid() * 0x9e3779b1u) * PLAIN_SLOTS >> 32);
}

/* Returns a listening socket, -EADDRINUSE if @name is taken, or another negative errno. */
static int slot_listen(const struct host_name *name)
{
	int fd = host_bind(name, SOCK_SEQPACKET);
	int error;

	if (fd < 0 || !listen(fd, SOMAXCONN))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/* The lock is held. */
static void slot_own(struct own_slot *slot, uint32_t number, int listening)
{
	slot->number = number;
	slot->door.listening.fd = descriptor_keep(listening);
	slot->next = host_table.own;
	host_table.own = slot;
	host_table.own_count++;
	__atomic_store_n(&host_table.state[number], SLOT_OWN, __ATOMIC_RELEASE);
	/* If this fails, others may still accept; the next host_accept() explains the failure. */
	if (host_table.accepts && listening >= 0)
		host_door_watch(&slot->door);
}

static void slot_explain_no_socket(uint32_t number, int error)
{
	EXPLAIN(first_device(), (&(const struct explain_subject){0}), RULE_HOST_NO_SOCKET, number << HOST_SLOT_BITS,
		((number + 1) << HOST_SLOT_BITS) - 1, (uint64_t)error);
}

/* Records slot @number, and explains it if it has no socket. The lock is held. */
static void slot_own_or_explain(struct own_slot *slot, uint32_t number, int listening)
{
	slot_own(slot, number, listening < 0 ? -1 : listening);
	if (listening < 0)
		slot_explain_no_socket(number, -listening);
}

/* Returns -EADDRINUSE if all plain names that it tries are taken. The lock is held. */
static int slot_claim_plain(struct own_slot *slot)
{
	uint32_t choice = slot_first_choice();

	for (uint32_t i = 0; i < TUNABLE_HOST_SLOT_TRIES; i++) {
		uint32_t number = FIRST_SLOT + (choice + i) % PLAIN_SLOTS;
		struct host_name name = host_slot_name(number);
		int listening;

		if (slot_state(number) != SLOT_FOREIGN)
			continue;
		listening = slot_listen(&name);
		if (listening == -EADDRINUSE)
			continue;
		slot_own_or_explain(slot, number, listening);
		return 0;
	}
	return -EADDRINUSE;
}

/* ---- reserve slots ---------------------------------------------------------------------------------------------- */

/* Connects to a process of this user that has reserve slot @number by a name other than @except, or returns -ENOENT. */
static int reserve_connect(uint32_t number, const struct host_name *except)
{
	char plain[32];

	snprintf(plain, sizeof(plain), PREFIX "%u", number);
	return host_reserve_connect(plain, SOCK_SEQPACKET, except);
}

int host_slot_connect(uint64_t slot)
{
	struct host_name name = host_slot_name((uint32_t)slot);
	int fd;

	if (slot >= HOST_FIRST_RESERVE) {
		fd = reserve_connect((uint32_t)slot, NULL);
		if (fd != -ENOENT)
			return fd;
	}
	/* A process of an older softhca may have a reserve slot by its plain name. */
	return host_connect(&name, SOCK_SEQPACKET);
}

struct listed_slots {
	bool listed[HOST_RESERVE_SLOTS];
};

static bool listed_slot_note(void *argument, const struct host_listed *listed)
{
	struct listed_slots *slots = argument;
	unsigned int number;

	if (sscanf(listed->name, PREFIX "%u", &number) == 1 && number >= HOST_FIRST_RESERVE && number < HOST_SLOTS - 1)
		slots->listed[number - HOST_FIRST_RESERVE] = true;
	return true;
}

/*
 * Returns true if a process of this user has reserve slot @number by another name than @except. A name that refuses
 * connections counts as another user's; otherwise that user could make all slots look taken.
 */
static bool reserve_is_taken(uint32_t number, const struct host_name *except)
{
	int fd = reserve_connect(number, except);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/*
 * Returns a reserve slot that no process of this user has, preferably one that no process has, so that numbers of
 * different users differ as well. Otherwise returns a negative errno; -ENOSPC if there is none.
 */
static int reserve_choose(struct listed_slots *slots)
{
	uint32_t choice = (uint32_t)(host_random() % HOST_RESERVE_SLOTS);
	int error;

	*slots = (struct listed_slots){0};
	error = host_names_list(PREFIX, listed_slot_note, slots);
	if (error)
		return error;
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < HOST_RESERVE_SLOTS; i++) {
			uint32_t index = (choice + i) % HOST_RESERVE_SLOTS, number = HOST_FIRST_RESERVE + index;

			if (slot_state(number) == SLOT_FOREIGN &&
			    (round ? !reserve_is_taken(number, NULL) : !slots->listed[index]))
				return (int)number;
		}
	return -ENOSPC;
}

/* Claims a reserve slot (DESIGN.md). Returns an error if names cannot be listed. The lock is held. */
static int slot_claim_reserve(struct own_slot *slot)
{
	struct listed_slots *slots = malloc(sizeof(*slots));
	int number = -ENOMEM, listening;

	for (uint32_t i = 0; slots && i < HOST_RESERVE_TRIES; i++) {
		struct host_name name;
		char plain[32];

		number = reserve_choose(slots);
		if (number < 0)
			break;
		snprintf(plain, sizeof(plain), PREFIX "%d", number);
		name = host_name_reserve(plain);
		listening = slot_listen(&name);
		if (listening >= 0 && reserve_is_taken((uint32_t)number, &name)) {
			close(listening);
			number = -ENOSPC;
			continue;
		}
		slot_own_or_explain(slot, (uint32_t)number, listening);
		EXPLAIN(first_device(), (&(const struct explain_subject){0}), RULE_HOST_NAMES_TAKEN,
			TUNABLE_HOST_SLOT_TRIES, (uint64_t)number << HOST_SLOT_BITS,
			(((uint64_t)number + 1) << HOST_SLOT_BITS) - 1);
		break;
	}
	free(slots);
	return number < 0 ? number : 0;
}

/* Returns -ENOSPC if all slots are taken. The lock is held. */
static int slot_claim(struct own_slot *slot)
{
	int error = slot_claim_plain(slot);
	uint32_t choice = slot_first_choice();

	if (error != -EADDRINUSE)
		return error;
	error = slot_claim_reserve(slot);
	/* If names cannot be listed, claims a slot without a name, enough for traffic within this process. */
	for (uint32_t i = 0; error && error != -ENOSPC && i < HOST_RESERVE_SLOTS; i++) {
		uint32_t number = HOST_FIRST_RESERVE + (choice + i) % HOST_RESERVE_SLOTS;

		if (slot_state(number) != SLOT_FOREIGN)
			continue;
		slot_own_or_explain(slot, number, error);
		error = 0;
	}
	return error;
}

/* The lock is held. */
static int slot_claim_another(struct own_slot **claimed)
{
	struct own_slot *slot = calloc(1, sizeof(*slot));
	int error = -ENOSPC;

	if (!slot)
		return -ENOMEM;
	if (host_table.own_count < MOST_OWN)
		error = slot_claim(slot);
	if (error)
		free(slot);
	else
		*claimed = slot;
	return error;
}

static struct own_slot *slot_oldest(void)
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
	slot = slot_oldest();
	if (!slot || !slot->spare)
		error = slot_claim_another(&slot);
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
	slot = slot_oldest();
	if (!slot) {
		error = slot_claim_another(&slot);
		if (!error)
			slot->spare = true;
	}
	if (!error)
		*number = slot->number;
	pthread_mutex_unlock(&host_table.lock);
	return error;
}
