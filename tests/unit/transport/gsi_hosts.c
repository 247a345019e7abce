/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams of the connection manager between hosts, which are network namespaces joined by a veth pair: A, which runs
 * the test, and B.
 */
#include "test_case.h"

#include <fcntl.h>

#include "../support/gsi_agents.h"

/* Addresses for documentation (RFC 5737, RFC 3849). */
#define A4 "192.0.2.1"
#define B4 "192.0.2.2"
#define A6 "2001:db8::1"
#define B6 "2001:db8::2"

static int host_b = -1;

static void converse(const struct agent *active, const struct agent *passive, const char *a, const char *b)
{
	uint32_t of_passive = (uint32_t)ask(passive, SLOT, 0), of_active = (uint32_t)ask(active, SLOT, 0);
	uint8_t mad[MAD_BYTES];

	mad_request(mad, 0x10, TCP, PORT);
	tell_send(active, SEND, a, b, mad);
	expect_received(passive, a, b, mad);
	mad_answer(mad, 0x13, of_passive << 18 | 7, of_active << 18 | 9);
	tell_send(passive, SEND, b, a, mad);
	expect_received(active, b, a, mad);
	mad_answer(mad, 0x14, of_active << 18 | 9, of_passive << 18 | 7);
	tell_send(active, SEND, a, b, mad);
	expect_received(passive, a, b, mad);
	mad_answer(mad, 0x15, of_passive << 18 | 7, of_active << 18 | 9);
	tell_send(passive, SEND, b, a, mad);
	expect_received(active, b, a, mad);
	/* The peer gave up before it received an id. */
	mad_answer(mad, 0x12, of_active << 18 | 9, 0);
	mad_put16(mad + 24 + 10, 4);
	tell_send(active, SEND, a, b, mad);
	expect_received(passive, a, b, mad);
	expect_nothing(passive);
	expect_nothing(active);
}

static void listen_at(const struct agent *agent, uint16_t port)
{
	assert_int_equal(tell_port(agent, CLAIM, TCP, port), 0);
	assert_int_equal(tell_port(agent, LISTEN, TCP, port), 0);
}

TEST(of_two_hosts)
{
	struct agent active = start_agent(NULL), passive = start_agent_on(host_b, NULL);

	listen_at(&passive, PORT);
	converse(&active, &passive, A4, B4);
	converse(&active, &passive, A6, B6);
	end_agent(&active, 0);
	end_agent(&passive, 0);
}

/* On both hosts another process has the port, and knows no peer yet. */
TEST(handed_on)
{
	struct agent on_a = start_agent(NULL), on_b = start_agent_on(host_b, NULL);
	struct agent active, passive;

	listen_at(&on_a, 1);
	listen_at(&on_b, 1);
	active = start_agent(NULL);
	passive = start_agent_on(host_b, NULL);
	listen_at(&passive, PORT);
	converse(&active, &passive, A4, B4);
	assert_true(ask(&on_b, COUNTER, COUNTER_CM_MADS_HANDED_ON) >= 2);
	assert_true(ask(&on_a, COUNTER, COUNTER_CM_MADS_HANDED_ON) >= 2);
	end_agent(&active, 0);
	end_agent(&passive, 0);
	end_agent(&on_a, 0);
	end_agent(&on_b, 0);
}

/* The process with the port waits a while for a listener, then its own manager rejects the request. */
TEST(no_listener_there)
{
	struct agent active = start_agent(NULL), on_b = start_agent_on(host_b, NULL), late;
	uint8_t mad[MAD_BYTES];

	listen_at(&on_b, 1);
	late = start_agent_on(host_b, NULL);
	assert_int_equal(tell_port(&late, CLAIM, TCP, PORT), 0);
	mad_request(mad, 0x10, TCP, PORT + 1);
	tell_send(&active, SEND, A4, B4, mad);
	expect_received(&on_b, A4, B4, mad);
	mad_request(mad, 0x10, TCP, PORT);
	tell_send(&active, SEND, A4, B4, mad);
	usleep(10000);
	assert_int_equal(tell_port(&late, LISTEN, TCP, PORT), 0);
	expect_received(&late, A4, B4, mad);
	expect_nothing(&on_b);
	/* A DREQ for an unknown id is answered, too (IBTA 12.9.8.3.1). */
	mad_answer(mad, 0x15, 1, 16000u << 18);
	tell_send(&active, SEND, A4, B4, mad);
	expect_received(&on_b, A4, B4, mad);
	end_agent(&active, 0);
	end_agent(&on_b, 0);
	end_agent(&late, 0);
}

/* The process with the port makes no connections itself, but answers for its host. */
TEST(no_manager_there)
{
	struct agent active = start_agent(NULL), on_b = start_agent_on(host_b, NULL);
	uint8_t mad[MAD_BYTES];
	struct event event;

	/* This process takes the port. */
	listen_at(&on_b, 1);
	ask(&on_b, NO_MANAGER, 0);
	mad_request(mad, 0x10, TCP, PORT);
	tell_send(&active, SEND, A4, B4, mad);
	event = next_event(&active, 2000);
	assert_int_equal(event.kind, RECEIVED);
	/* A REJ (IBTA 12.6.7) with reason 8, "invalid service id", at byte 10. */
	assert_int_equal(mad_get16(event.mad + 16), 0x12);
	assert_int_equal(mad_get16(event.mad + 24 + 10), 8);
	mad_answer(mad, 0x15, 7u << 18, 16000u << 18);
	tell_send(&active, SEND, A4, B4, mad);
	event = next_event(&active, 2000);
	assert_int_equal(event.kind, RECEIVED);
	assert_int_equal(mad_get16(event.mad + 16), 0x16);
	expect_nothing(&active);
	end_agent(&active, 0);
	end_agent(&on_b, 0);
}

static uint32_t word_at(const uint8_t *mad, int at)
{
	return (uint32_t)mad_get16(mad + 24 + at) << 16 | mad_get16(mad + 24 + at + 2);
}

/* Expects a DREQ (IBTA 12.6.10): local and remote communication id, and the queue pair of the recipient. */
static void expect_dreq(const struct agent *agent, uint32_t local, uint32_t remote, uint32_t qpn)
{
	struct event event = next_event(agent, 5000);

	assert_int_equal(event.kind, RECEIVED);
	assert_int_equal(mad_get16(event.mad + 16), 0x15);
	assert_int_equal(word_at(event.mad, 0), local);
	assert_int_equal(word_at(event.mad, 4), remote);
	assert_int_equal(word_at(event.mad, 8) >> 8, qpn);
	expect_nothing(agent);
}

/*
 * The process with the port notifies the peers of a killed process: for accepted and for initiated connections, but not
 * for one that has already ended.
 */
TEST(killed_there)
{
	struct agent peer = start_agent(NULL), on_b = start_agent_on(host_b, NULL), victim;
	uint32_t of_peer, of_victim;
	uint8_t mad[MAD_BYTES];

	listen_at(&on_b, 1);
	ask(&on_b, NO_MANAGER, 0);
	of_peer = (uint32_t)ask(&peer, SLOT, 0) << 18;
	for (int accepts = 0; accepts < 2; accepts++) {
		victim = start_agent_on(host_b, NULL);
		listen_at(&victim, PORT);
		of_victim = (uint32_t)ask(&victim, SLOT, 0) << 18;
		/* Two connections, of which the first ends. */
		for (uint32_t i = 1; i <= 2; i++) {
			if (accepts) {
				mad_request(mad, 0x10, TCP, PORT);
				mad_put16(mad + 24, (uint16_t)((of_peer | i) >> 16));
				mad_put16(mad + 26, (uint16_t)i);
				mad_put32(mad + 24 + 32, (0x70 + i) << 8);
				tell_send(&peer, SEND, A4, B4, mad);
				expect_received(&victim, A4, B4, mad);
				mad_answer(mad, 0x14, of_peer | i, of_victim | i);
			} else {
				mad_answer(mad, 0x13, of_peer | i, of_victim | i);
				mad_put32(mad + 24 + 12, (0x70 + i) << 8);
			}
			tell_send(&peer, SEND, A4, B4, mad);
			expect_received(&victim, A4, B4, mad);
		}
		mad_answer(mad, 0x16, of_peer | 1, of_victim | 1);
		tell_send(&peer, SEND, A4, B4, mad);
		expect_received(&victim, A4, B4, mad);
		kill(victim.pid, SIGKILL);
		expect_dreq(&peer, of_victim | 2, of_peer | 2, 0x72);
	}
	end_agent(&peer, 0);
	end_agent(&on_b, 0);
}

static void nobody_has_the_port(const char *a, const char *b)
{
	struct agent active = start_agent(NULL), passive;
	union ibv_gid to = gid_of_text(b);
	uint8_t mad[MAD_BYTES];
	struct event event;

	mad_request(mad, 0x10, TCP, PORT);
	for (int i = 0; i < 2; i++) {
		tell_send(&active, SEND, a, b, mad);
		event = next_event(&active, 1000);
		assert_int_equal(event.kind, LOST);
		assert_int_equal(event.why, MAD_UNREACHABLE);
		assert_memory_equal(event.mad, mad, MAD_BYTES);
		assert_memory_equal(&event.path.destination, &to, sizeof(to));
	}
	assert_int_equal(ask(&active, COUNTER, COUNTER_CM_UNREACHABLE), 2);
	/* An answer to an unknown id is ignored. */
	mad_answer(mad, 0x13, 1, 2u << 18);
	tell_send(&active, SEND, a, b, mad);
	expect_nothing(&active);
	/* The next process is not affected. */
	passive = start_agent_on(host_b, NULL);
	listen_at(&passive, PORT);
	mad_request(mad, 0x10, TCP, PORT);
	tell_send(&active, SEND, a, b, mad);
	expect_received(&passive, a, b, mad);
	expect_nothing(&active);
	end_agent(&active, 0);
	end_agent(&passive, 0);
}

TEST(no_rdma_there)
{
	nobody_has_the_port(A4, B4);
	nobody_has_the_port(A6, B6);
}

/* Another user of the host can send to its port as well, from its own addresses. */
TEST(from_the_port_of_the_own_host)
{
	struct agent stranger, passive = start_agent_on(host_b, NULL);
	uint8_t mad[MAD_BYTES];

	listen_at(&passive, PORT);
	stranger = start_agent_on(host_b, "udp");
	mad_request(mad, 0x10, TCP, PORT);
	tell_send(&stranger, SEND, B4, B4, mad);
	assert_int_equal(ask(&passive, EXPLAINED, RULE_MAD_STRANGER), 1);
	expect_nothing(&passive);
	assert_int_equal(ask(&passive, COUNTER, COUNTER_CM_MADS_DROPPED), 1);
	end_agent(&stranger, 0);
	end_agent(&passive, 0);
}

/* ---- two hosts ------------------------------------------------------------------------------------------------- */

static void __attribute__((noreturn)) unable(const char *why)
{
	printf("1..0 # SKIP %s: %s\n", why, strerror(errno));
	exit(77);
}

static void join_hosts(pid_t b)
{
	char command[1024];

	snprintf(command, sizeof(command),
		 "exec 2>&1; set -e; in_b() { nsenter -t %d -n \"$@\"; };"
		 "ip link add a0 type veth peer name b0; ip link set b0 netns %d;"
		 "ip addr add " A4 "/24 dev a0; ip addr add " A6
		 "/64 dev a0 nodad; ip link set lo up; ip link set a0 up;"
		 "in_b ip addr add " B4 "/24 dev b0; in_b ip addr add " B6 "/64 dev b0 nodad;"
		 "in_b ip link set lo up; in_b ip link set b0 up;"
		 "until ip link show a0 | grep -q 'state UP'; do sleep 0.01; done;"
		 "until in_b ip link show b0 | grep -q 'state UP'; do sleep 0.01; done",
		 (int)b, (int)b);
	if (system(command))
		unable("no veth pair");
}

static void make_hosts(void)
{
	char path[64], ready;
	int ends[2];
	pid_t b;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		unable("no network namespace of its own");
	if (pipe(ends))
		unable("no pipe");
	b = fork();
	if (!b) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ready = !unshare(CLONE_NEWNET);
		if (write(ends[1], &ready, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	if (read(ends[0], &ready, 1) != 1 || !ready)
		unable("no second network namespace");
	join_hosts(b);
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)b);
	host_b = open(path, O_RDONLY | O_CLOEXEC);
	kill(b, SIGKILL);
	waitpid(b, NULL, 0);
}

int main(void)
{
	make_hosts();
	alarm(100);
	return run_cases(.teardown = end_all);
}
