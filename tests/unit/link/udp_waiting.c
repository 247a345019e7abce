/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of the udp link that wait for others, to leave in one train: several messages of a requester, messages of a stream,
 * and acknowledgements (link/udp/DESIGN.md). The clock stands still while they wait.
 */
#include "kernel_has.h"
#include "test_case.h"

#include "progress/pollers.h"
#include "progress/progress.h"
#include "../support/udp_sender.h"

/* ---- time ---------------------------------------------------------------------------------------------------------- */

static uint64_t frozen_ns; /* atomic; 0: time passes */
static struct {
	struct timers *timers;
	struct timer *timer;
} kept; /* armed meanwhile */

uint64_t __real_clock_now_ns(void);
uint64_t __wrap_clock_now_ns(void);
uint64_t __wrap_clock_now_ns(void)
{
	uint64_t frozen = __atomic_load_n(&frozen_ns, __ATOMIC_SEQ_CST);

	return frozen ? frozen : __real_clock_now_ns();
}

static bool is_main_thread(void)
{
	return gettid() == getpid();
}

int __real_timer_arm(struct timers *timers, struct timer *timer, uint64_t deadline_ns);
int __wrap_timer_arm(struct timers *timers, struct timer *timer, uint64_t deadline_ns);
int __wrap_timer_arm(struct timers *timers, struct timer *timer, uint64_t deadline_ns)
{
	if (!is_main_thread() || !frozen_ns)
		return __real_timer_arm(timers, timer, deadline_ns);
	kept.timers = timers;
	kept.timer = timer;
	return 0;
}

/* Stops the clock, so that later events are simultaneous even on a busy machine. */
static void freeze(void)
{
	if (!frozen_ns)
		__atomic_store_n(&frozen_ns, __real_clock_now_ns(), __ATOMIC_SEQ_CST);
}

static void thaw(void)
{
	__atomic_store_n(&frozen_ns, 0, __ATOMIC_SEQ_CST);
	if (kept.timer)
		assert_int_equal(__real_timer_arm(kept.timers, kept.timer, __real_clock_now_ns()), 0);
	kept.timer = NULL;
}

/* ---- several messages -------------------------------------------------------------------------------------------- */

TEST(messages_leave_together)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");
	struct run run;

	run_begin(&run);
	calls = trains = 0;
	for (uint32_t i = 0; i < 5; i++)
		send_with_more(&run, &path, i, 8);
	assert_false(stranger_waits(v4, 20));
	flush(&run);
	assert_int_equal(calls, 1);
	assert_int_equal(trains, 1);
	for (uint32_t i = 0; i < 5; i++)
		expect_packet(v4, i, 0x0a, payload, 8, (uint16_t)i);
	/* At most 64 packets, as within a message. */
	for (uint32_t i = 0; i < 66; i++)
		send_with_more(&run, &path, i, 8);
	for (uint32_t i = 0; i < 64; i++)
		expect_packet(v4, i, 0x0a, payload, 8, (uint16_t)i);
	assert_false(stranger_waits(v4, 20));
	flush(&run);
	for (uint32_t i = 64; i < 66; i++)
		expect_packet(v4, i, 0x0a, payload, 8, (uint16_t)(i - 64));
	/* The last one. */
	send_with_more(&run, &path, 0, 8);
	send_write(&path, 8, MTU);
	assert_int_equal(calls, 1);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	expect_packet(v4, 0, 0x0a, payload, 8, 1);
	/* Then nothing is left to flush. */
	flush(&run);
	assert_false(stranger_waits(v4, 20));
}

/* Only the last packet of a train may be shorter, and none longer. */
TEST(messages_of_other_lengths)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");
	struct run run;

	run_begin(&run);
	send_with_more(&run, &path, 0, 80);
	send_with_more(&run, &path, 1, 8);
	expect_packet(v4, 0, 0x0a, payload, 80, 0);
	expect_packet(v4, 1, 0x0a, payload, 8, 1);
	send_with_more(&run, &path, 2, 8);
	send_with_more(&run, &path, 3, 80);
	expect_packet(v4, 2, 0x0a, payload, 8, 0);
	assert_false(stranger_waits(v4, 20));
	flush(&run);
	expect_packet(v4, 3, 0x0a, payload, 80, 0);
	/* A message of several packets: its last ones are shorter than its first one, which has a longer header. */
	send_with_more(&run, &path, 0, 8);
	send_with_more(&run, &path, 0, 3 * MTU);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	expect_packet(v4, 0, 0x06, payload, MTU, 0);
	expect_packet(v4, 1, 0x07, payload + MTU, MTU, 1);
	assert_false(stranger_waits(v4, 20));
	flush(&run);
	expect_packet(v4, 2, 0x08, payload + 2 * MTU, MTU, 0);
	assert_false(stranger_waits(v4, 20));
}

/* Whatever leaves by the same socket takes the packets kept there along, or leaves after them. */
TEST(nothing_overtakes_a_message)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1"),
			   other = path_between("127.0.0.1", "127.0.0.2");
	uint8_t frame[16] = {0x04, 0x40, 0xff, 0xff, 0, 0, 0x50, 0x22, 0, 0, 0, 1};
	struct run run;

	path.udp_source_port = other.udp_source_port = 0xc5a1;
	run_begin(&run);
	send_with_more(&run, &path, 0, 8);
	send_write(&other, 8, MTU);
	assert_int_equal(calls, 2);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	flush(&run);
	send_with_more(&run, &path, 7, 8);
	epoch_enter();
	link_udp()->send_frame(hca_device(0), &path, frame, sizeof(frame));
	epoch_leave();
	expect_packet(v4, 7, 0x0a, payload, 8, 0);
	assert_int_equal(receive(v4).length, sizeof(frame));
	flush(&run);
	/* A kernel that refuses trains gets packet after packet. */
	refuse_trains = EIO;
	for (uint32_t i = 0; i < 3; i++)
		send_with_more(&run, &path, i, 8);
	flush(&run);
	for (uint32_t i = 0; i < 3; i++)
		expect_packet(v4, i, 0x0a, payload, 8, 0);
	refuse_trains = 0;
	send_with_more(&run, &path, 3, 8);
	expect_packet(v4, 3, 0x0a, payload, 8, 0);
	assert_null(run.flushes);
}

/* Packets of one socket have the fields of their own paths, and none leaves before an earlier one that goes another way. */
TEST(ways_of_one_socket)
{
	struct packet_path paths[4];
	struct run run;

	if (v6 < 0 || !kernel_has_flow_labels())
		skip();
	for (size_t i = 0; i < 4; i++) {
		paths[i] = path_between("::1", "::1");
		paths[i].udp_source_port = 0xc5a2;
	}
	paths[1].traffic_class = 0xb8;
	paths[2].hop_limit = 7;
	paths[3].flow_label = 0x54321;
	run_begin(&run);
	for (uint32_t i = 0; i < 4; i++) {
		send_with_more(&run, &paths[0], i, 8);
		send_with_more(&run, &paths[i], i + 1, 8);
		flush(&run);
		for (uint32_t k = 0; k < 2; k++) {
			const struct packet_path *path = &paths[k ? i : 0];
			struct datagram datagram = expect_packet(v6, i + k, 0x0a, payload, 8, 0);

			assert_int_equal(datagram.traffic_class, path->traffic_class);
			assert_int_equal(datagram.hop_limit, path->hop_limit ? path->hop_limit : 64);
			/* Without one, the kernel derives a label from the flow. */
			assert_int_equal(datagram.flow_label == paths[3].flow_label, path == &paths[3]);
		}
	}
}

/* ---- messages that wait for others ------------------------------------------------------------------------------- */

/* Sends WRITE @number of a requester that has nothing else to send now, but whose messages are in flight. */
static void send_in_stream(const struct packet_path *path, uint32_t number, uint32_t bytes)
{
	struct run run;

	run_begin(&run);
	run.streams = true;
	send_with_more(&run, path, number, bytes);
	if (run.flushes)
		link_udp()->flush(&run);
}

static void expect_stream(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		expect_packet(v4, i, 0x0a, payload, 8, (uint16_t)i);
	assert_false(stranger_waits(v4, 20));
	assert_int_equal(udp_holding(), 0);
}

/* They wait until the program polls without finding anything, or sleeps, or the process ends, or for a millisecond. */
TEST(a_stream_waits)
{
	static const enum { POLLS, SLEEPS, ENDS, PAUSES, ALL } cases[] = {POLLS, SLEEPS, ENDS, PAUSES};
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");

	for (uint32_t i = 0; i < ALL; i++) {
		freeze();
		/* Otherwise the device thread may poll first. */
		assert_true(progress_begin_polling_soon());
		path.udp_source_port = (uint16_t)(0xc700 + i);
		calls = 0;
		for (uint32_t k = 0; k < 5; k++)
			send_in_stream(&path, k, 8);
		assert_false(stranger_waits(v4, 20));
		assert_int_not_equal(udp_holding(), 0);
		if (cases[i] == PAUSES)
			thaw();
		else if (cases[i] == ENDS)
			udp_let_go();
		if (cases[i] >= ENDS)
			expect_stream(5);
		progress_end_polling();
		if (cases[i] == POLLS)
			assert_false(progress_poll());
		else if (cases[i] == SLEEPS)
			progress_before_sleep();
		if (cases[i] < ENDS)
			expect_stream(5);
		thaw();
		assert_int_equal(calls, 1);
	}
}

/* A program that spins on memory does not poll: after a stream has waited in vain, fewer and fewer do. */
TEST(a_stream_in_vain)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");

	path.udp_source_port = 0xc708;
	for (uint32_t skip = 0; skip <= 8; skip = skip ? 2 * skip : 2) {
		freeze();
		assert_true(progress_begin_polling_soon());
		for (uint32_t i = 0; i < skip; i++) {
			send_in_stream(&path, 0, 8);
			expect_packet(v4, 0, 0x0a, payload, 8, 0);
		}
		send_in_stream(&path, 0, 8);
		assert_false(stranger_waits(v4, 20));
		/* The timer expires. */
		thaw();
		expect_stream(1);
		progress_end_polling();
	}
}

TEST(a_stream_leaves)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1"), other;
	struct datagram datagram;
	struct run run;

	freeze();
	assert_true(progress_begin_polling_soon());
	path.udp_source_port = 0xc711;
	/* A full train. */
	for (uint32_t i = 0; i < 64; i++)
		send_in_stream(&path, i, 8);
	expect_stream(64);
	/* A shorter message ends it, a longer one begins another. */
	send_in_stream(&path, 0, 80);
	send_in_stream(&path, 1, 8);
	expect_packet(v4, 0, 0x0a, payload, 80, 0);
	expect_packet(v4, 1, 0x0a, payload, 8, 1);
	assert_int_equal(udp_holding(), 0);
	send_in_stream(&path, 0, 8);
	send_in_stream(&path, 1, 80);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	assert_false(stranger_waits(v4, 20));
	/* One that does not wait takes the others along. */
	send_write(&path, 80, MTU);
	expect_packet(v4, 1, 0x0a, payload, 80, 0);
	expect_packet(v4, 0, 0x0a, payload, 80, 1);
	assert_int_equal(udp_holding(), 0);
	/* Nor if its requester cannot go on before they are answered. */
	send_in_stream(&path, 0, 8);
	run_begin(&run);
	run.streams = true;
	send_with_more(&run, &path, 1, 8);
	assert_int_not_equal(udp_holding(), 0);
	run.streams = false;
	link_udp()->flush(&run);
	expect_stream(2);
	/* Messages of another flow, of which some wait then. */
	other = path;
	other.udp_source_port = 0xc712;
	for (uint32_t i = 0; i < 4; i++) {
		send_in_stream(i % 2 ? &other : &path, i, 8);
		if (!i)
			continue;
		datagram = expect_packet(v4, i - 1, 0x0a, payload, 8, 0);
		assert_int_equal(datagram.source_port, i % 2 ? 0xc711 : 0xc712);
	}
	assert_false(stranger_waits(v4, 20));
	/* Another address. */
	other = path_between("127.0.0.1", "127.0.0.2");
	other.udp_source_port = 0xc712;
	send_in_stream(&other, 5, 8);
	expect_packet(v4, 3, 0x0a, payload, 8, 0);
	udp_let_go();
	expect_packet(v4, 5, 0x0a, payload, 8, 0);
	progress_end_polling();
	thaw();
	assert_false(stranger_waits(v4, 20));
}

/* ---- acknowledgements -------------------------------------------------------------------------------------------- */

static void send_acknowledgement(const struct packet_path *path, uint32_t psn, uint8_t syndrome)
{
	struct run run;
	struct packet *packet;

	epoch_enter();
	run_begin(&run);
	packet = run_slot(&run);
	memset(packet, 0, offsetof(struct packet, own_path));
	packet->transport = IBV_QPT_RC;
	packet->message = MESSAGE_ACKNOWLEDGE;
	packet->place = PLACE_ONLY;
	packet->destination_qpn = PEER;
	packet->source_qpn = QPN;
	packet->psn = psn;
	packet->mtu = MTU;
	packet->count = 1;
	packet->syndrome = syndrome;
	packet->path = path;
	packet->payload.length = 0;
	assert_int_equal(link_udp()->send(hca_device(0), &run), LINK_SENT);
	epoch_leave();
}

static void expect_acknowledgement(uint32_t psn, uint16_t identification)
{
	struct datagram datagram = receive(v4);
	uint32_t icrc, expected = model_icrc(&datagram.source, &datagram.destination, datagram.source_port,
					     UDP_TEST_PORT, identification, false, buffer, 16);

	assert_int_equal(datagram.length, 20);
	assert_int_equal(buffer[0], 0x11);
	assert_int_equal(be32_at(buffer + 8), psn);
	memcpy(&icrc, buffer + 16, 4);
	assert_int_equal(icrc, expected);
}

/* As a program that answers each message at once. */
static struct packet_path answer_often(uint16_t port)
{
	struct packet_path path = path_between("127.0.0.1", "127.0.0.1");

	freeze();
	path.udp_source_port = port;
	for (uint32_t i = 0; i < 4; i++) {
		send_acknowledgement(&path, i, AETH_NO_CREDITS);
		send_write(&path, 8, MTU);
		expect_acknowledgement(i, 0);
		expect_packet(v4, 0, 0x0a, payload, 8, 0);
	}
	return path;
}

TEST(an_answer_carries_the_acknowledgement)
{
	struct packet_path path = answer_often(0xc601);

	for (uint32_t i = 10; i < 20; i++) {
		send_acknowledgement(&path, i, AETH_NO_CREDITS);
		assert_int_not_equal(udp_holding(), 0);
		assert_false(stranger_waits(v4, 0));
		send_write(&path, 8, MTU);
		assert_int_equal(calls, 1);
		expect_packet(v4, 0, 0x0a, payload, 8, 0);
		expect_acknowledgement(i, 1);
	}
	/* A run of several trains: the acknowledgement is near its beginning. */
	send_acknowledgement(&path, 20, AETH_NO_CREDITS);
	send_write(&path, 64 * MTU, MTU);
	for (uint32_t i = 0; i < 65; i++) {
		receive(v4);
		if (buffer[0] == 0x11)
			assert_in_range(i, 0, 2);
	}
	thaw();
}

/* It never waits for long, nor for a program that no longer answers. */
TEST(an_acknowledgement_without_an_answer)
{
	struct packet_path path = answer_often(0xc602);

	send_acknowledgement(&path, 10, AETH_NO_CREDITS);
	assert_false(stranger_waits(v4, 0));
	thaw();
	expect_acknowledgement(10, 0);
	freeze();
	send_acknowledgement(&path, 11, AETH_NO_CREDITS);
	assert_int_equal(udp_holding(), 0);
	expect_acknowledgement(11, 0);
	thaw();
}

/* All later packets are sent after it, and NAKs do not wait. */
TEST(nothing_overtakes_an_acknowledgement)
{
	struct packet_path path = answer_often(0xc603), other = path;

	other.udp_source_port = 0xc604;
	send_acknowledgement(&path, 10, AETH_NO_CREDITS);
	send_write(&other, 8, MTU);
	expect_acknowledgement(10, 0);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	/* From the same socket to another address. */
	path = answer_often(0xc605);
	other = path_between("127.0.0.1", "127.0.0.2");
	other.udp_source_port = 0xc605;
	send_acknowledgement(&path, 11, AETH_NO_CREDITS);
	send_write(&other, 8, MTU);
	expect_acknowledgement(11, 0);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	/* A train that ends with a shorter packet. */
	path = answer_often(0xc606);
	send_acknowledgement(&path, 12, AETH_NO_CREDITS);
	send_write(&path, 2 * MTU - 8, MTU);
	expect_acknowledgement(12, 0);
	expect_packet(v4, 0, 0x06, payload, MTU, 0);
	expect_packet(v4, 1, 0x08, payload + MTU, MTU - 8, 1);
	path = answer_often(0xc607);
	send_acknowledgement(&path, 13, AETH_NAK);
	assert_int_equal(udp_holding(), 0);
	expect_acknowledgement(13, 0);
	/* A process that ends; a packet of another link. */
	path = answer_often(0xc608);
	send_acknowledgement(&path, 14, AETH_NO_CREDITS);
	assert_int_not_equal(udp_holding(), 0);
	udp_let_go();
	assert_int_equal(udp_holding(), 0);
	expect_acknowledgement(14, 0);
	/* Packets that are kept: the acknowledgement ends their train. */
	struct run run;

	path = answer_often(0xc60a);
	run_begin(&run);
	for (uint32_t i = 0; i < 3; i++)
		send_with_more(&run, &path, i, 8);
	send_acknowledgement(&path, 21, AETH_NO_CREDITS);
	assert_int_equal(udp_holding(), 0);
	for (uint32_t i = 0; i < 3; i++)
		expect_packet(v4, i, 0x0a, payload, 8, (uint16_t)i);
	expect_acknowledgement(21, 3);
	flush(&run);
	/* Messages of a stream: they do not wait with it. */
	path = answer_often(0xc60b);
	send_acknowledgement(&path, 22, AETH_NO_CREDITS);
	assert_int_not_equal(udp_holding(), 0);
	send_in_stream(&path, 0, 8);
	assert_int_equal(udp_holding(), 0);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	expect_acknowledgement(22, 1);
	path = answer_often(0xc60c);
	assert_true(progress_begin_polling_soon());
	send_in_stream(&path, 0, 8);
	send_acknowledgement(&path, 23, AETH_NO_CREDITS);
	expect_packet(v4, 0, 0x0a, payload, 8, 0);
	expect_acknowledgement(23, 1);
	assert_int_equal(udp_holding(), 0);
	progress_end_polling();
	/* A kernel that refuses trains. */
	path = answer_often(0xc609);
	refuse_trains = EIO;
	for (uint32_t i = 15; i < 17; i++) {
		send_acknowledgement(&path, i, AETH_NO_CREDITS);
		assert_int_equal(udp_holding() != 0, i == 15);
		send_write(&path, 8, MTU);
		expect_acknowledgement(i, 0);
		expect_packet(v4, 0, 0x0a, payload, 8, 0);
	}
	refuse_trains = 0;
	thaw();
}

int main(void)
{
	udp_sender_open();
	return run_cases();
}
