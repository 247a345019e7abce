/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports that another process of the host owns (rdma_bind_addr(3); rdma-cm 2.4): the error shows whether one of both is bound to
 * any address, and the explanation names the process.
 */
#include "support.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "softhca.h"

static struct sockaddr_in own; /* an address of an interface; AF_UNSPEC: none exists */

/* A process that owns a port until it is killed. */
struct owner {
	pid_t pid;
	uint16_t port;
};

static struct sockaddr *at(struct sockaddr_in *address, uint16_t port)
{
	address->sin_port = htons(port);
	return (struct sockaddr *)address;
}

static void find_own(void)
{
	struct ifaddrs *list, *entry;

	if (getifaddrs(&list))
		return;
	for (entry = list; entry; entry = entry->ifa_next)
		if (entry->ifa_addr && entry->ifa_addr->sa_family == AF_INET && entry->ifa_flags & IFF_UP &&
		    !(entry->ifa_flags & IFF_LOOPBACK) && own.sin_family == AF_UNSPEC)
			memcpy(&own, entry->ifa_addr, sizeof(own));
	freeifaddrs(list);
}

/* Runs in the child; never returns. */
static void own_port(struct sockaddr *address, int ready)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	uint16_t port = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	channel = rdma_create_event_channel();
	if (channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) && !rdma_bind_addr(id, address) &&
	    !rdma_listen(id, 1))
		port = port_of(id);
	if (write(ready, &port, sizeof(port)) != sizeof(port))
		_exit(1);
	for (;;)
		pause();
}

/* Forks a port owner. Called before this process opens a device, since the child could not use its objects. */
static struct owner new_owner(struct sockaddr *address)
{
	struct owner owner;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	owner.pid = fork();
	assert_true(owner.pid >= 0);
	if (!owner.pid)
		own_port(address, ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], &owner.port, sizeof(owner.port)), sizeof(owner.port));
	close(ends[0]);
	assert_int_not_equal(owner.port, 0);
	return owner;
}

static void end_owner(const struct owner *owner)
{
	assert_int_equal(kill(owner->pid, SIGKILL), 0);
	assert_int_equal(waitpid(owner->pid, NULL, 0), owner->pid);
}

/* Checks that the newest explanation is of rule 826, RDMACM_PORT_IN_USE, and names @owner. */
static void assert_explained(const struct owner *owner)
{
	struct softhca_explanation newest;
	struct ibv_context **devices = rdma_get_devices(NULL);

	assert_non_null(devices);
	assert_int_equal(softhca_explanations(devices[0], 0, &newest, 1), 1);
	rdma_free_devices(devices);
	assert_int_equal(newest.rule, 826);
	assert_int_equal(newest.figure[0], owner->port);
	assert_int_equal(newest.figure[2], owner->pid);
}

static void try_to_bind(const struct owner *owner, struct sockaddr *address, int expected)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);

	assert_errno(rdma_bind_addr(id, address), expected);
	assert_explained(owner);
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

TEST(test_owner_at_any_address)
{
	struct owner owner = new_owner(any_address(0));

	try_to_bind(&owner, any_address(owner.port), EADDRNOTAVAIL);
	/* Loopback addresses count as any address. */
	try_to_bind(&owner, loopback(owner.port), EADDRNOTAVAIL);
	if (own.sin_family)
		try_to_bind(&owner, at(&own, owner.port), EADDRNOTAVAIL);
	end_owner(&owner);
}

TEST(test_owner_at_an_address)
{
	struct owner owner;

	if (!own.sin_family)
		skip();
	owner = new_owner(at(&own, 0));
	try_to_bind(&owner, at(&own, owner.port), EADDRINUSE);
	try_to_bind(&owner, any_address(owner.port), EADDRNOTAVAIL);
	end_owner(&owner);
}

/* The record of the port ends with its process. */
TEST(test_port_of_a_process_that_has_ended)
{
	struct owner owner = new_owner(any_address(0));
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;

	end_owner(&owner);
	channel = new_channel();
	id = new_id(channel, RDMA_PS_TCP);
	assert_success(rdma_bind_addr(id, loopback(owner.port)));
	assert_success(rdma_destroy_id(id));
	/* A port that was released is free too. */
	id = new_id(channel, RDMA_PS_TCP);
	assert_success(rdma_bind_addr(id, loopback(owner.port)));
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	find_own();
	return run_cases();
}
