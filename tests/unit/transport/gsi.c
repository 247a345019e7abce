/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams of the connection manager, within a process, between processes of a host, and from strangers; and the ports
 * on which processes listen. Between hosts: gsi_hosts.c.
 */
#include "own_network.h"
#include "test_case.h"

#include "../support/gsi_agents.h"
#include "core/epoch.h"
#include "kernel_has.h"
#include "link/host/host.h"
#include "transport/run/run.h"
#include "wire/link.h"

#define HOME "127.0.0.1"

static const char *const links[] = {"local", "auto", "shm", "udp"};

/* ---- recipient of a datagram: IBTA 12.6 ------------------------------------------------------------------------ */

TEST(addresses)
{
	static const uint16_t answers[] = {MAD_MRA, MAD_REP, MAD_RTU, MAD_DREQ, MAD_DREP, MAD_LAP, MAD_APR};
	uint8_t mad[MAD_BYTES];
	struct mad_address address;

	/* The numbers of tables 99 and following. */
	assert_int_equal(MAD_REQ, 0x10);
	assert_int_equal(MAD_DREP, 0x16);
	assert_int_equal(MAD_SIDR_REP, 0x18);
	assert_int_equal(MAD_APR, 0x1a);
	mad_request(mad, 0x10, TCP, PORT);
	assert_int_equal(mad_word(mad), 0x01070203);
	address = mad_address(mad);
	assert_int_equal(address.addressee, MAD_FOR_SERVICE);
	assert_int_equal(address.service, UINT64_C(0x01060000) + PORT);
	mad_request(mad, 0x17, UDP_SPACE, 5);
	address = mad_address(mad);
	assert_int_equal(address.addressee, MAD_FOR_SERVICE);
	assert_int_equal(address.service, UINT64_C(0x01110005));
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		mad_answer(mad, answers[i], 0x11111111, 37u << 18 | 0x3ffff);
		address = mad_address(mad);
		assert_int_equal(address.addressee, MAD_FOR_ID);
		assert_int_equal(address.qpn, 37 * 1024);
	}
	/* SIDR_REP: the first field is the id of the requester. */
	mad_answer(mad, 0x18, 38u << 18, 0x11111111);
	assert_int_equal(mad_address(mad).qpn, 38 * 1024);
	/* REJ: the reason is in bytes 10 and 11; 4 is "timeout". */
	mad_answer(mad, 0x12, 1, 39u << 18);
	mad_put16(mad + 24 + 10, 4);
	assert_int_equal(mad_address(mad).addressee, MAD_FOR_ID);
	mad_answer(mad, 0x12, 1, 0);
	mad_put16(mad + 24 + 10, 4);
	assert_int_equal(mad_address(mad).addressee, MAD_FOR_ALL);
	mad_put16(mad + 24 + 10, 28);
	assert_int_equal(mad_address(mad).addressee, MAD_FOR_ID);
	/* Annex A11: service ids of the form 0x0000 0000 01pp PPPP. */
	assert_true(mad_service_has_name(0x01060000));
	assert_true(mad_service_has_name(0x013fffff));
	assert_false(mad_service_has_name(0x02060000));
	assert_false(mad_service_has_name(UINT64_C(0x1000000001060000)));
	assert_false(mad_service_has_name(0));
}

/* ---- within a process ------------------------------------------------------------------------------------------ */

static void to_itself(const char *link)
{
	struct agent one = start_agent(link);
	uint32_t slot = (uint32_t)ask(&one, SLOT, 0);
	uint8_t mad[MAD_BYTES];

	assert_int_equal(ask(&one, SLOT, 0), slot);
	assert_int_equal(tell_port(&one, CLAIM, TCP, PORT), 0);
	assert_int_equal(tell_port(&one, LISTEN, TCP, PORT), 0);
	mad_request(mad, 0x10, TCP, PORT);
	/* Never delivered within the call that sends. */
	assert_int_equal(tell_send(&one, SEND_SOON, HOME, HOME, mad), 0);
	expect_received(&one, HOME, HOME, mad);
	mad_answer(mad, 0x13, slot << 18 | 1, slot << 18 | 2);
	assert_int_equal(tell_send(&one, SEND_SOON, HOME, HOME, mad), 0);
	expect_received(&one, HOME, HOME, mad);
	/* A REJ without a recipient. */
	mad_answer(mad, 0x12, slot << 18 | 1, 0);
	mad_put16(mad + 24 + 10, 4);
	tell_send(&one, SEND, HOME, HOME, mad);
	expect_received(&one, HOME, HOME, mad);
	expect_nothing(&one);
	end_agent(&one, 0);
}

TEST(within_a_process)
{
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		to_itself(links[i]);
}

/* Datagrams arrive in the order of sending. */
TEST(many_in_order)
{
	struct agent one = start_agent("local");
	uint8_t mad[MAD_BYTES];

	for (uint32_t i = 0; i < 40; i++) {
		mad_answer(mad, 0x13, i, 1u << 18);
		tell_send(&one, SEND, HOME, HOME, mad);
	}
	for (uint32_t i = 0; i < 40; i++) {
		mad_answer(mad, 0x13, i, 1u << 18);
		expect_received(&one, HOME, HOME, mad);
	}
	end_agent(&one, 0);
}

/* ---- between processes ----------------------------------------------------------------------------------------- */

static void talk(const char *link)
{
	struct agent passive = start_agent(link), active = start_agent(link);
	uint32_t of_passive = (uint32_t)ask(&passive, SLOT, 0), of_active = (uint32_t)ask(&active, SLOT, 0);
	uint8_t mad[MAD_BYTES];

	assert_int_not_equal(of_passive, of_active);
	assert_int_equal(tell_port(&passive, CLAIM, TCP, PORT), 0);
	assert_int_equal(tell_port(&passive, LISTEN, TCP, PORT), 0);
	mad_request(mad, 0x10, TCP, PORT);
	tell_send(&active, SEND, HOME, HOME, mad);
	expect_received(&passive, HOME, HOME, mad);
	mad_answer(mad, 0x13, of_passive << 18 | 7, of_active << 18 | 9);
	tell_send(&passive, SEND, HOME, HOME, mad);
	expect_received(&active, HOME, HOME, mad);
	mad_answer(mad, 0x14, of_active << 18 | 9, of_passive << 18 | 7);
	tell_send(&active, SEND, HOME, HOME, mad);
	expect_received(&passive, HOME, HOME, mad);
	mad_request(mad, 0x17, TCP, PORT);
	tell_send(&active, SEND, HOME, HOME, mad);
	expect_received(&passive, HOME, HOME, mad);
	mad_answer(mad, 0x18, of_active << 18 | 10, 0);
	tell_send(&passive, SEND, HOME, HOME, mad);
	expect_received(&active, HOME, HOME, mad);
	/* A REJ without a recipient id, which goes to all processes. */
	mad_answer(mad, 0x12, of_active << 18 | 9, 0);
	mad_put16(mad + 24 + 10, 4);
	tell_send(&active, SEND, HOME, HOME, mad);
	expect_received(&passive, HOME, HOME, mad);
	expect_nothing(&passive);
	end_agent(&active, 0);
	end_agent(&passive, 0);
}

TEST(between_processes)
{
	talk("auto");
	talk("shm");
	talk("udp");
}

/* A third process has the RoCE port. */
TEST(through_a_third)
{
	struct agent owner = start_agent("udp");

	assert_int_equal(tell_port(&owner, CLAIM, TCP, 1), 0);
	assert_int_equal(tell_port(&owner, LISTEN, TCP, 1), 0);
	talk("udp");
	assert_true(ask(&owner, COUNTER, COUNTER_CM_MADS_HANDED_ON) >= 5);
	/* That REJ, which went to all processes. */
	assert_int_equal(next_event(&owner, SOON_MS).kind, RECEIVED);
	end_agent(&owner, 0);
}

static int64_t counted_drops(const struct agent *agent)
{
	return ask(agent, COUNTER, COUNTER_CM_MADS_DROPPED);
}

/* Faults identify queue pair 1 by its number (docs/use/faults.md), whatever the link. */
TEST(faults)
{
	uint8_t mad[MAD_BYTES];

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		struct agent active, passive = start_agent(links[i]);
		struct agent *receiver = i ? &passive : &active;

		setenv("SOFTHCA_FAULTS", "of qp 1 at packet 1 drop; of qp 1 at packet 2 duplicate", 1);
		active = start_agent(links[i]);
		unsetenv("SOFTHCA_FAULTS");
		ask(&active, SLOT, 0);
		assert_int_equal(tell_port(receiver, CLAIM, TCP, PORT), 0);
		assert_int_equal(tell_port(receiver, LISTEN, TCP, PORT), 0);
		mad_request(mad, 0x10, TCP, PORT);
		tell_send(&active, SEND, HOME, HOME, mad);
		expect_nothing(receiver);
		mad[8] ^= 1;
		tell_send(&active, SEND, HOME, HOME, mad);
		expect_received(receiver, HOME, HOME, mad);
		expect_received(receiver, HOME, HOME, mad);
		mad[8] ^= 2;
		tell_send(&active, SEND, HOME, HOME, mad);
		expect_received(receiver, HOME, HOME, mad);
		expect_nothing(receiver);
		end_agent(&active, 0);
		end_agent(&passive, 0);
	}
}

/* The last datagrams of a process that ends are delivered. */
TEST(said_at_the_end)
{
	struct order_message message = {
		.order = SEND_AND_LEAVE,
		.path = {.source = gid_of_text(HOME), .destination = gid_of_text(HOME), .type = IBV_GID_TYPE_ROCE_V2}};

	mad_request(message.mad, 0x10, TCP, PORT);
	for (size_t i = 1; i < sizeof(links) / sizeof(links[0]); i++) {
		struct agent active = start_agent(links[i]), passive = start_agent(links[i]);

		ask(&active, SLOT, 0);
		assert_int_equal(tell_port(&passive, CLAIM, TCP, PORT), 0);
		assert_int_equal(tell_port(&passive, LISTEN, TCP, PORT), 0);
		assert_int_equal(send(active.orders, &message, sizeof(message), 0), sizeof(message));
		expect_received(&passive, HOME, HOME, message.mad);
		end_agent(&active, 0);
		end_agent(&passive, 0);
	}
}

/* ---- no recipient ---------------------------------------------------------------------------------------------- */

TEST(no_listener)
{
	uint8_t mad[MAD_BYTES];

	for (size_t i = 0; i < 3; i++) {
		struct agent one = start_agent(links[i]), other = start_agent(links[i]);

		/* A claimed port does not listen yet. */
		assert_int_equal(tell_port(&other, CLAIM, TCP, PORT), 0);
		mad_request(mad, 0x10, TCP, PORT);
		tell_send(&one, SEND, HOME, HOME, mad);
		expect_lost(&one, mad, MAD_NO_RECIPIENT);
		mad_request(mad, 0x17, UDP_SPACE, PORT);
		tell_send(&one, SEND, HOME, HOME, mad);
		expect_lost(&one, mad, MAD_NO_RECIPIENT);
		/* A service without a name. */
		mad_put32(mad + 24 + 8, 5);
		tell_send(&one, SEND, HOME, HOME, mad);
		expect_lost(&one, mad, MAD_NO_RECIPIENT);
		/* An id without an owner: slot 16000 is unlikely to be used. */
		if (i) {
			mad_answer(mad, 0x15, 1, 16000u << 18);
			tell_send(&one, SEND, HOME, HOME, mad);
			expect_lost(&one, mad, MAD_NO_RECIPIENT);
		}
		expect_nothing(&one);
		expect_nothing(&other);
		end_agent(&one, 0);
		end_agent(&other, 0);
	}
}

/* Over udp, the manager of the process with the port answers for the host. */
TEST(no_listener_over_udp)
{
	struct agent one = start_agent("udp");
	uint8_t mad[MAD_BYTES];

	mad_request(mad, 0x10, TCP, PORT);
	tell_send(&one, SEND, HOME, HOME, mad);
	expect_received(&one, HOME, HOME, mad);
	/* A DREQ for an unknown id is answered as well. */
	mad_answer(mad, 0x15, 1, 16000u << 18);
	tell_send(&one, SEND, HOME, HOME, mad);
	expect_received(&one, HOME, HOME, mad);
	end_agent(&one, 0);
}

TEST(no_way)
{
	struct agent one = start_agent("shm");
	uint8_t mad[MAD_BYTES];

	mad_request(mad, 0x10, TCP, PORT);
	tell_send(&one, SEND, HOME, "10.9.8.7", mad);
	expect_lost(&one, mad, MAD_UNREACHABLE);
	end_agent(&one, 0);
}

/*
 * The listener appears a moment later than the request: docs/reference/limits.md, CM_GRACE_MS. The margin is for a
 * loaded machine.
 */
TEST(a_late_listener)
{
	uint8_t mad[MAD_BYTES];

	setenv("SOFTHCA_CM_GRACE_MS", "4000", 1);
	for (size_t i = 1; i < 4; i++) {
		struct agent active = start_agent(links[i]), passive = start_agent(links[i]);

		mad_request(mad, 0x10, TCP, PORT);
		ask(&active, SLOT, 0);
		assert_int_equal(tell_port(&passive, CLAIM, TCP, PORT), 0);
		tell_send(&active, SEND, HOME, HOME, mad);
		usleep(5000);
		assert_int_equal(tell_port(&passive, LISTEN, TCP, PORT), 0);
		expect_received(&passive, HOME, HOME, mad);
		expect_nothing(&active);
		end_agent(&active, 0);
		end_agent(&passive, 0);
	}
	unsetenv("SOFTHCA_CM_GRACE_MS");
}

/* ---- ports ----------------------------------------------------------------------------------------------------- */

TEST(ports_of_a_host)
{
	struct agent one = start_agent("auto"), other = start_agent("auto"), alone = start_agent("local");

	assert_int_equal(tell_port(&one, CLAIM, TCP, PORT), 0);
	assert_int_equal(tell_port(&one, CLAIM, TCP, PORT), -EADDRINUSE);
	assert_int_equal(tell_port(&other, CLAIM, TCP, PORT), -EADDRINUSE);
	assert_int_equal(tell_port(&other, CLAIM, UDP_SPACE, PORT), 0);
	assert_int_equal(tell_port(&alone, CLAIM, TCP, PORT), 0);
	assert_int_equal(tell_port(&alone, CLAIM, TCP, PORT), -EADDRINUSE);
	assert_int_equal(tell_port(&other, OWNER, TCP, PORT), 0);
	assert_int_equal(tell_port(&other, LISTEN, TCP, PORT), -ENOENT);
	assert_int_equal(tell_port(&one, LISTEN, TCP, PORT), 0);
	assert_int_equal(tell_port(&one, LISTEN, TCP, PORT), 0);
	assert_int_equal(tell_port(&other, OWNER, TCP, PORT), one.pid);
	tell_port(&one, RELEASE, TCP, PORT);
	tell_port(&one, RELEASE, TCP, PORT);
	assert_int_equal(tell_port(&other, CLAIM, TCP, PORT), 0);
	assert_int_equal(tell_port(&other, LISTEN, TCP, PORT), 0);
	/* Any kind of exit frees the port. */
	end_agent(&other, SIGKILL);
	assert_int_equal(tell_port(&one, CLAIM, TCP, PORT), 0);
	end_agent(&one, 0);
	end_agent(&alone, 0);
}

/* Sends requests numbered from *@number to @passive, which listens. */
static void listen_and_hear(const struct agent *active, const struct agent *passive, uint8_t *number)
{
	uint8_t mad[MAD_BYTES];

	assert_int_equal(tell_port(passive, CLAIM, TCP, PORT), 0);
	assert_int_equal(tell_port(passive, LISTEN, TCP, PORT), 0);
	mad_request(mad, 0x10, TCP, PORT);
	/* From the third request on, the process that sends knows whose port it is. */
	for (int i = 0; i < 4; i++) {
		struct event event;

		mad[8] = ++*number;
		tell_send(active, SEND, HOME, HOME, mad);
		/* Ends of processes, and over udp a repeated datagram (link/udp/DESIGN.md). */
		do
			event = next_event(passive, SOON_MS);
		while (event.kind == PROCESS_ENDED || (event.kind == RECEIVED && event.mad[8] < *number));
		assert_int_equal(event.kind, RECEIVED);
		assert_memory_equal(event.mad, mad, MAD_BYTES);
	}
}

/* Requests go to the process that has the port now, however many went to another one before. */
TEST(port_that_moves)
{
	for (size_t i = 1; i < 4; i++) {
		struct agent active = start_agent(links[i]), one = start_agent(links[i]), other = start_agent(links[i]);
		uint8_t number = 0;

		ask(&active, SLOT, 0);
		listen_and_hear(&active, &one, &number);
		tell_port(&one, RELEASE, TCP, PORT);
		listen_and_hear(&active, &other, &number);
		tell_port(&other, RELEASE, TCP, PORT);
		listen_and_hear(&active, &one, &number);
		tell_port(&one, RELEASE, TCP, PORT);
		listen_and_hear(&active, &one, &number);
		end_agent(&one, SIGKILL);
		listen_and_hear(&active, &other, &number);
		end_agent(&active, 0);
		end_agent(&other, 0);
	}
}

/* A child does not inherit ports of its parent, nor does it keep one in use. */
TEST(ports_and_fork)
{
	struct agent one, other;
	uint8_t mad[MAD_BYTES];

	if (!kernel_has_threads_after_fork())
		skip();
	one = start_agent("auto");
	other = start_agent("auto");
	assert_int_equal(tell_port(&one, CLAIM, TCP, PORT), 0);
	assert_int_equal(tell_port(&one, LISTEN, TCP, PORT), 0);
	assert_int_equal(tell_port(&one, FORK_CLAIM, TCP, PORT), -EADDRINUSE);
	assert_int_equal(tell_port(&one, FORK_CLAIM, TCP, PORT + 1), 0);
	mad_request(mad, 0x10, TCP, PORT);
	tell_send(&other, SEND, HOME, HOME, mad);
	expect_received(&one, HOME, HOME, mad);
	/* The port of the child is not one of the parent. */
	mad_request(mad, 0x10, TCP, PORT + 1);
	tell_send(&other, SEND, HOME, HOME, mad);
	expect_nothing(&one);
	tell_port(&one, RELEASE, TCP, PORT);
	assert_int_equal(tell_port(&other, CLAIM, TCP, PORT), 0);
	assert_int_equal(tell_port(&other, CLAIM, TCP, PORT + 1), -EADDRINUSE);
	end_agent(&one, 0);
	end_agent(&other, 0);
}

TEST(another_user)
{
	struct agent one, other;
	uint8_t mad[MAD_BYTES];

	if (geteuid())
		skip();
	one = start_agent("auto");
	other = start_agent("auto");
	assert_int_equal(ask(&other, SWITCH_USER, 65533), 0);
	assert_int_equal(tell_port(&one, CLAIM, TCP, PORT), 0);
	assert_int_equal(tell_port(&one, LISTEN, TCP, PORT), 0);
	assert_int_equal(tell_port(&other, CLAIM, TCP, PORT), -EADDRINUSE);
	mad_request(mad, 0x10, TCP, PORT);
	tell_send(&other, SEND, HOME, HOME, mad);
	expect_lost(&other, mad, MAD_NO_RECIPIENT);
	assert_int_equal(ask(&other, EXPLAINED, RULE_HOST_OTHER_USER), 1);
	assert_int_equal(ask(&one, EXPLAINED, RULE_HOST_OTHER_USER), 1);
	expect_nothing(&one);
	end_agent(&one, 0);
	end_agent(&other, 0);
}

/* ---- ends ------------------------------------------------------------------------------------------------------ */

TEST(ends_of_processes)
{
	struct agent passive = start_agent("auto"), active = start_agent("auto");
	uint32_t of_passive = (uint32_t)ask(&passive, SLOT, 0), process;
	uint8_t mad[MAD_BYTES];
	struct event event;

	assert_int_equal(tell_port(&passive, CLAIM, TCP, PORT), 0);
	assert_int_equal(tell_port(&passive, LISTEN, TCP, PORT), 0);
	/* Before the answer, only the service is known. */
	mad_request(mad, 0x10, TCP, PORT);
	tell_send(&active, SEND, HOME, HOME, mad);
	expect_received(&passive, HOME, HOME, mad);
	mad_answer(mad, 0x14, 1, of_passive << 18);
	tell_send(&active, SEND, HOME, HOME, mad);
	expect_received(&passive, HOME, HOME, mad);
	mad_answer(mad, 0x13, of_passive << 18, (uint32_t)ask(&active, SLOT, 0) << 18);
	tell_send(&passive, SEND, HOME, HOME, mad);
	event = next_event(&active, SOON_MS);
	assert_int_equal(event.kind, RECEIVED);
	process = event.path.process;
	assert_int_not_equal(process, 0);
	end_agent(&passive, SIGKILL);
	event = next_event(&active, SOON_MS);
	assert_int_equal(event.kind, PROCESS_ENDED);
	assert_int_equal(event.number, process);
	event = next_event(&active, SOON_MS);
	assert_int_equal(event.kind, SERVICE_ENDED);
	assert_int_equal(event.number, UINT64_C(0x01060000) + PORT);
	expect_nothing(&active);
	end_agent(&active, 0);
}

/* Forks an agent with process id @pid, which is free; a returned pid of 0: it could not be assigned. */
static struct agent start_agent_as(pid_t pid)
{
	struct agent agent = {.pid = 0};

	for (int i = 0; i < 20 && agent.pid != pid; i++) {
		FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");

		if (agent.pid)
			end_agent(&agent, SIGKILL);
		if (!last)
			return (struct agent){.pid = 0};
		fprintf(last, "%d", (int)pid - 1);
		fclose(last);
		agent = start_agent("auto");
	}
	if (agent.pid != pid)
		end_agent(&agent, SIGKILL);
	return agent.pid == pid ? agent : (struct agent){.pid = 0};
}

/*
 * A process reuses the slot of one that has ended, and sends before that end is processed. The end affects only the
 * first process, and datagrams to the slot reach the second.
 */
TEST(slot_of_another)
{
	struct agent active = start_agent("auto"), first = start_agent("auto"), second;
	uint32_t slot = (uint32_t)ask(&first, SLOT, 0), own = (uint32_t)ask(&active, SLOT, 0);
	uint8_t mad[MAD_BYTES];
	struct event from_first, event, end = {.kind = NOTHING}, from_second = {.kind = NOTHING};
	struct order_message message;

	assert_int_equal(tell_port(&first, CLAIM, TCP, PORT), 0);
	assert_int_equal(tell_port(&first, LISTEN, TCP, PORT), 0);
	mad_answer(mad, 0x14, own << 18, slot << 18);
	tell_send(&active, SEND, HOME, HOME, mad);
	expect_received(&first, HOME, HOME, mad);
	mad_answer(mad, 0x13, slot << 18, own << 18);
	tell_send(&first, SEND, HOME, HOME, mad);
	from_first = next_event(&active, SOON_MS);
	assert_int_equal(from_first.kind, RECEIVED);
	kill(active.pid, SIGSTOP);
	end_agent(&first, SIGKILL);
	second = start_agent_as(first.pid);
	if (!second.pid) {
		kill(active.pid, SIGCONT);
		end_agent(&active, 0);
		skip();
	}
	assert_int_equal(ask(&second, SLOT, 0), slot);
	mad_answer(mad, 0x13, slot << 18, own << 18);
	tell_send(&second, SEND, HOME, HOME, mad);
	/* Sent at once, so that it usually arrives before the end is processed. */
	mad_answer(mad, 0x14, own << 18, slot << 18);
	message = send_message(SEND, HOME, HOME, mad);
	tell_begin(&active, &message);
	kill(active.pid, SIGCONT);
	tell_end(&active, NULL);
	expect_received(&second, HOME, HOME, mad);
	for (int i = 0; i < 2; i++) {
		event = next_event(&active, SOON_MS);
		if (event.kind == PROCESS_ENDED)
			end = event;
		else if (event.kind == RECEIVED)
			from_second = event;
	}
	assert_int_equal(end.kind, PROCESS_ENDED);
	assert_int_equal(end.number, from_first.path.process);
	assert_int_equal(from_second.kind, RECEIVED);
	assert_int_not_equal(from_second.path.process, from_first.path.process);
	expect_nothing(&active);
	end_agent(&second, 0);
	end_agent(&active, 0);
}

/* ---- packets that are not datagrams of a connection manager ---------------------------------------------------- */

static struct {
	struct agent agent;
	struct hca *hca;
} victim;

/* Sends a packet as a queue pair of this process would; the test itself is the sending process. */
static void send_packet(struct packet *packet)
{
	struct run run;

	epoch_enter();
	run_begin(&run);
	*run_slot(&run) = *packet;
	run_slot(&run)->path = &run_slot(&run)->own_path;
	link_send(victim.hca, &run);
	run_drain(&run, NULL);
	run_finish(&run);
	epoch_leave();
}

static struct packet good_packet(const struct link *link, const uint8_t *mad, uint32_t length)
{
	static struct packet packet;

	memset(&packet, 0, sizeof(packet));
	packet.transport = IBV_QPT_UD;
	packet.message = MESSAGE_SEND;
	packet.place = PLACE_ONLY;
	packet.destination_qpn = 1;
	packet.source_qpn = 1;
	packet.qkey = 0x80010000;
	packet.count = 1;
	packet.mtu = 4096;
	packet.link = link;
	packet.own_path = (struct packet_path){
		.source = gid_of_text(HOME), .destination = gid_of_text(HOME), .type = IBV_GID_TYPE_ROCE_V2};
	stream_begin(&packet.payload, NULL, 0);
	stream_add_memory(&packet.payload, mad, length);
	return packet;
}

static uint32_t received_here;

static void count_received(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES], bool waited)
{
	(void)waited;
	(void)hca;
	(void)path;
	(void)mad;
	__atomic_add_fetch(&received_here, 1, __ATOMIC_SEQ_CST);
}

static void expect_dropped(const struct link *link, struct packet *packet, enum explain_rule rule)
{
	uint64_t before = counter_read(victim.hca, COUNTER_CM_MADS_DROPPED);
	uint32_t received = received_here;
	struct explain_record record;

	packet->link = link;
	send_packet(packet);
	assert_int_equal(counter_read(victim.hca, COUNTER_CM_MADS_DROPPED), before + 1);
	assert_int_equal(received_here, received);
	assert_true(explain_previous(victim.hca, 0, 0, &record));
	assert_int_equal(record.rule, rule);
}

static void malformed(void)
{
	static const struct management here = {.receive = count_received, .lost = on_loss};
	uint8_t mad[2 * MAD_BYTES];
	struct packet packet;

	setenv("SOFTHCA_LINK", "local", 1);
	victim.hca = hca_device(0);
	management = &here;
	mad_request(mad, 0x10, TCP, PORT);
	packet = good_packet(routes->local(), mad, MAD_BYTES);
	send_packet(&packet);
	assert_int_equal(received_here, 1);
	packet = good_packet(routes->local(), mad, MAD_BYTES);
	packet.qkey = 0x80010001;
	expect_dropped(routes->local(), &packet, RULE_MAD_QKEY);
	packet = good_packet(routes->local(), mad, MAD_BYTES);
	packet.transport = IBV_QPT_RC;
	expect_dropped(routes->local(), &packet, RULE_MAD_QKEY);
	packet = good_packet(routes->local(), mad, MAD_BYTES - 1);
	expect_dropped(routes->local(), &packet, RULE_MAD_LENGTH);
	packet = good_packet(routes->local(), mad, MAD_BYTES + 1);
	expect_dropped(routes->local(), &packet, RULE_MAD_LENGTH);
	packet = good_packet(routes->local(), mad, 0);
	expect_dropped(routes->local(), &packet, RULE_MAD_LENGTH);
	packet = good_packet(routes->local(), mad, MAD_BYTES);
	packet.message = MESSAGE_SEND_IMM;
	expect_dropped(routes->local(), &packet, RULE_MAD_LENGTH);
	/* Base version, class, class version, method. */
	for (int i = 0; i < 4; i++) {
		mad_request(mad, 0x10, TCP, PORT);
		mad[i] ^= 1;
		packet = good_packet(routes->local(), mad, MAD_BYTES);
		expect_dropped(routes->local(), &packet, RULE_MAD_CLASS);
	}
}

static void in_a_child(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

TEST(malformed_messages)
{
	in_a_child(malformed);
}

/* Another process of the user that guesses ids sends to the wrong one: through the ring, bypassing its routes. */
static void ids_of_others(void)
{
	uint32_t slot = (uint32_t)ask(&victim.agent, SLOT, 0);
	const struct packet_path path = {
		.source = gid_of_text(HOME), .destination = gid_of_text(HOME), .type = IBV_GID_TYPE_ROCE_V2};
	struct host_peer *peer;
	uint8_t frame[20 + MAD_BYTES] = {0x64, 0x40, 0xff, 0xff, [7] = 1, [12] = 0x80, 1, [19] = 1};

	setenv("SOFTHCA_LINK", "shm", 1);
	victim.hca = hca_device(0);
	management = &test_management;
	tell_port(&victim.agent, CLAIM, TCP, PORT);
	tell_port(&victim.agent, LISTEN, TCP, PORT);
	mad_answer(frame + 20, 0x13, 1, (slot + 1) << 18);
	epoch_enter();
	peer = host_peer_of_service(UINT64_C(0x01060000) + PORT);
	assert_non_null(peer);
	/* Forwarded as by the owner of the port: the other manager then rejects unknown ids. */
	host_carrier->forward_to(peer, &path, frame, sizeof(frame));
	epoch_leave();
	expect_nothing(&victim.agent);
	assert_int_equal(ask(&victim.agent, EXPLAINED, RULE_MAD_STRANGER), 1);
}

TEST(messages_for_others)
{
	victim.agent = start_agent("shm");
	in_a_child(ids_of_others);
	assert_int_equal(counted_drops(&victim.agent), 1);
	end_agent(&victim.agent, 0);
}

/* ---- */

static void enter_network(void)
{
	if (!own_network()) {
		printf("1..0 # SKIP no network of its own: %s\n", strerror(errno));
		exit(77);
	}
	setenv("SOFTHCA_GIDS", "loopback", 1);
}

int main(void)
{
	enter_network();
	alarm(100);
	return run_cases(.teardown = end_all);
}
