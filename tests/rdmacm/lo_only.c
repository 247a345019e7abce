/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network namespace with lo as its only interface, as in a container without a network: a server binds to an
 * address of lo, gets a device on which it can create queue pairs, and serves a client. lo has 127.0.0.1, ::1 and
 * one more address, as docker and SPDK's scripts set it up.
 */
#include "own_network.h"
#include "support.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sys/ioctl.h>

#define MORE "10.88.0.1"

static struct sockaddr *ipv4(const char *text, uint16_t port)
{
	static struct sockaddr_in address;

	address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	assert_int_equal(inet_pton(AF_INET, text, &address.sin_addr), 1);
	return (struct sockaddr *)&address;
}

static struct sockaddr *ipv6_loopback(uint16_t port)
{
	static struct sockaddr_in6 address;

	address = (struct sockaddr_in6){
		.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	return (struct sockaddr *)&address;
}

/* Runs a server at @text, and a client that connects to it and sends a message. */
static void serve(const char *text)
{
	struct ends ends = {.client_channel = new_channel(), .server_channel = new_channel()};
	static char memory[2][16];
	struct ibv_mr *regions[2];
	struct ibv_wc wc;

	ends.listener = new_id(ends.server_channel, RDMA_PS_TCP);
	assert_success(rdma_bind_addr(ends.listener, ipv4(text, 0)));
	assert_non_null(ends.listener->verbs);
	assert_non_null(ends.listener->pd);
	assert_int_equal(ends.listener->port_num, 1);
	assert_success(rdma_listen(ends.listener, 1));
	ends.client = new_id(ends.client_channel, RDMA_PS_TCP);
	assert_success(rdma_resolve_addr(ends.client, NULL, ipv4(text, port_of(ends.listener)), TIMEOUT_MS));
	expect_event(ends.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_success(rdma_resolve_route(ends.client, TIMEOUT_MS));
	expect_event(ends.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	new_qp(ends.client);
	establish(&ends);
	assert_ptr_equal(ends.server->verbs, ends.listener->verbs);
	regions[0] = rdma_reg_msgs(ends.client, memory[0], sizeof(memory[0]));
	regions[1] = rdma_reg_msgs(ends.server, memory[1], sizeof(memory[1]));
	strcpy(memory[0], text);
	assert_success(rdma_post_recv(ends.server, NULL, memory[1], sizeof(memory[1]), regions[1]));
	assert_success(rdma_post_send(ends.client, NULL, memory[0], sizeof(memory[0]), regions[0], 0));
	assert_int_equal(rdma_get_recv_comp(ends.server, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_string_equal(memory[1], text);
	assert_success(rdma_dereg_mr(regions[0]));
	assert_success(rdma_dereg_mr(regions[1]));
	end(&ends);
}

TEST(test_first_address)
{
	serve("127.0.0.1");
}

TEST(test_other_address)
{
	serve(MORE);
}

/* All of 127.0.0.0/8 belongs to the host although interfaces do not list it (RFC 1122, 3.2.1.3). */
TEST(test_unlisted_address)
{
	serve("127.1.2.3");
}

TEST(test_ipv6)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);

	assert_success(rdma_bind_addr(id, ipv6_loopback(0)));
	assert_non_null(id->verbs);
	assert_success(rdma_listen(id, 1));
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* An id at any address has no device, in this namespace as in others. */
TEST(test_any_address)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);

	assert_success(rdma_bind_addr(id, any_address(0)));
	assert_null(id->verbs);
	assert_success(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

static void set_address(const char *name, const char *text)
{
	struct ifreq request = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	strcpy(request.ifr_name, name);
	memcpy(&request.ifr_addr, ipv4(text, 0), sizeof(struct sockaddr_in));
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &request), 0);
	close(fd);
}

static int add_address(void **state)
{
	(void)state;
	set_address("lo:1", MORE);
	return 0;
}

int main(void)
{
	if (!own_network()) {
		puts("1..0 # SKIP no network of its own");
		return 77;
	}
	return run_cases(.group_setup = add_address);
}
