/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Retries of a requester, their number and content: acknowledgement timeout, RNR, rests of READs, limits of data in
 * flight (ibv_modify_qp(3); IBTA 9.7.5 and 9.7.6).
 */
#include "test_case.h"

#include "format/opcode.h"
#include "transport/requester/requester.h"
#include "../support/wire_fixture.h"

enum { HERE = 0, THERE = HALF, NOTES = 1000 };

/* All packets sent: data of a filter that records them, and loses selected ones. */
struct notes {
	struct {
		uint8_t opcode, syndrome;
		uint32_t psn, dma_length;
		uint64_t remote_address, time_ns;
	} packet[NOTES];
	uint64_t count;
	bool (*loses)(const struct wire_packet *packet, uint64_t number);
};

static struct notes notes;

static enum wire_verdict note(void *argument, uint64_t number, const struct wire_packet *packet)
{
	struct notes *all = argument;

	all->count = number;
	if (number > NOTES)
		return WIRE_DROP; /* endless loop */
	all->packet[number - 1].opcode = packet->opcode;
	all->packet[number - 1].syndrome = packet->syndrome;
	all->packet[number - 1].psn = packet->psn;
	all->packet[number - 1].dma_length = packet->dma_length;
	all->packet[number - 1].remote_address = packet->remote_address;
	all->packet[number - 1].time_ns = clock_now_ns();
	return all->loses && all->loses(packet, number) ? WIRE_DROP : WIRE_PASS;
}

static void start(const struct ibv_qp_attr *options, bool (*loses)(const struct wire_packet *packet, uint64_t number))
{
	notes = (struct notes){.loses = loses};
	wire_connect(options, note, &notes);
}

static uint64_t count_of(uint8_t message)
{
	uint64_t count = 0;

	assert_true(notes.count <= NOTES);
	for (uint64_t i = 0; i < notes.count; i++)
		count += packet_opcodes[notes.packet[i].opcode].message == message;
	return count;
}

static bool loses_all(const struct wire_packet *packet, uint64_t number)
{
	(void)packet;
	(void)number;
	return true;
}

/* ---- acknowledgement timeout ----------------------------------------------------------------------------------- */

/*
 * ibv_modify_qp(3), timeout: 4.096 us * 2^timeout; retry_cnt: retries before the connection fails. IBTA 9.7.6.1.3 allows
 * up to four times as long, which the third and later timeouts use.
 */
TEST(no_answer)
{
	for (uint8_t retries = 0; retries <= 7; retries++) {
		for (uint8_t timeout = 1; timeout <= 31; timeout += 5) {
			struct ibv_qp_attr options = wire_options();

			options.timeout = timeout;
			options.retry_cnt = retries;
			start(&options, loses_all);
			put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 8, 0, 0);
			put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 8, 0, 0);
			ring(&client);
			wire_settle();
			expect_cqe(&client_cq, 0, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
			expect_cqe(&client_cq, 1, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
			assert_int_equal(hca_qp_state(client.qp), IBV_QPS_ERR);
			/* Both are sent each time. */
			assert_int_equal(notes.count, 2 * (retries + 1));
			for (uint64_t i = 2; i < notes.count; i += 2)
				assert_int_equal(notes.packet[i].time_ns - notes.packet[i - 2].time_ns,
						 UINT64_C(4096) << timeout
								<< (i < 4   ? 0
								    : i < 6 ? 1
									    : 2));
		}
	}
}

/* timeout 0: no timeout. */
TEST(endless_patience)
{
	struct ibv_qp_attr options = wire_options();

	options.timeout = 0;
	start(&options, loses_all);
	put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 8, 0, 0);
	ring(&client);
	wire_settle();
	assert_int_equal(wire_clock_left(), UINT64_MAX);
	assert_int_equal(notes.count, 1);
	expect_no_more();
}

static bool loses_first_three(const struct wire_packet *packet, uint64_t number)
{
	(void)packet;
	return number <= 3;
}

/* The next answer restores the used retries. */
TEST(retries_begin_anew)
{
	struct ibv_qp_attr options = wire_options();

	options.retry_cnt = 3;
	start(&options, loses_first_three);
	for (uint16_t i = 0; i < 5; i++) {
		notes.count = 0;
		wire_detach(device.hca);
		wire_attach(device.hca, note, &notes); /* counts from 1 again */
		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 8, 0, 0);
		ring(&client);
		wire_settle();
		expect_cqe(&client_cq, i, 0);
		assert_int_equal(notes.count, 3 + 1 + 1);
	}
	expect_no_more();
}

/* Each time the rest of the message is sent, its first packet arrives. */
static bool loses_all_but_one_more(const struct wire_packet *packet, uint64_t number)
{
	static int32_t last;
	int32_t place = psn_distance(packet->psn, SQ_START_PSN);
	bool begins_anew = number == 1 || place <= last;

	if (packet_opcodes[packet->opcode].message != MESSAGE_WRITE)
		return false;
	last = place;
	return !begins_anew;
}

/* IBTA 9.7.6.1.3: each packet that arrives for the first time is progress, though its message is incomplete. */
TEST(long_message_in_bad_weather)
{
	struct ibv_qp_attr options = wire_options();

	/* The arrival of a packet is known when its repetition has been answered. */
	options.retry_cnt = 2;
	start(&options, loses_all_but_one_more);
	put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 20 * 256, 0, 0);
	ring(&client);
	wire_settle();
	expect_cqe(&client_cq, 0, 0);
	assert_memory_equal(device.memory + THERE, device.memory + HERE, 20 * 256);
	expect_no_more();
}

/* ---- receiver not ready ---------------------------------------------------------------------------------------- */

/* ibv_modify_qp(3), rnr_retry: number of retries, each after min_rnr_timer of the other side. */
TEST(never_ready)
{
	for (uint8_t retries = 0; retries < 7; retries++) {
		for (uint8_t code = 0; code < 32; code += 3) {
			struct ibv_qp_attr options = wire_options();

			options.rnr_retry = retries;
			options.min_rnr_timer = code;
			options.timeout = 20; /* does not matter */
			start(&options, NULL);
			put_request(&client, MLX5_OPCODE_SEND, HERE, 0, 8, 0, 0);
			ring(&client);
			wire_settle();
			expect_cqe(&client_cq, 0, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
			assert_int_equal(hca_qp_state(client.qp), IBV_QPS_ERR);
			/* The other side made no error. */
			assert_int_equal(hca_qp_state(server.qp), IBV_QPS_RTS);
			assert_int_equal(notes.count, 2 * (retries + 1));
			for (uint64_t i = 1; i < notes.count; i += 2) {
				assert_int_equal(notes.packet[i].syndrome, AETH_RNR_NAK | code);
				assert_int_equal(notes.packet[i].psn, notes.packet[0].psn);
			}
			for (uint64_t i = 2; i < notes.count; i += 2)
				assert_int_equal(notes.packet[i].time_ns - notes.packet[i - 1].time_ns,
						 rnr_timer_ns(code));
		}
	}
}

/* rnr_retry 7: unlimited. A receive lets the sender continue; its ordinary retries are unchanged. */
TEST(ready_at_last)
{
	static const uint8_t opcodes[] = {MLX5_OPCODE_SEND, MLX5_OPCODE_RDMA_WRITE_IMM};
	static const uint32_t lengths[] = {8, 5 * 256};

	for (int i = 0; i < 4; i++) {
		struct ibv_qp_attr options = wire_options();
		uint32_t length = lengths[i / 2];

		options.retry_cnt = 1;
		start(&options, NULL);
		put_request(&client, opcodes[i % 2], HERE, THERE + 4096, length, 0, 0);
		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE + 8192, 8, 0, 0);
		ring(&client);
		/* Many more times than any counter can hold. */
		for (int times = 0; times < 20; times++) {
			wire_deliver_all();
			expect_no_more();
			assert_true(wire_clock_next());
		}
		post_receive(&device, &server, THERE, 2048);
		wire_settle();
		expect_cqe(&client_cq, 0, 0);
		expect_cqe(&client_cq, 1, 0);
		expect_receive(0, length);
		assert_memory_equal(device.memory + THERE + (i % 2 ? 4096 : 0), device.memory + HERE, length);
		assert_memory_equal(device.memory + THERE + 8192, device.memory + HERE, 8);
		expect_no_more();
	}
}

/* Each delivered message restores all RNR retries. */
TEST(rnr_retries_begin_anew)
{
	struct ibv_qp_attr options = wire_options();

	options.rnr_retry = 2;
	start(&options, NULL);
	for (uint16_t i = 0; i < 5; i++) {
		put_request(&client, MLX5_OPCODE_SEND, HERE, 0, 8, 0, 0);
		ring(&client);
		wire_deliver_all();
		assert_true(wire_clock_next());
		wire_deliver_all();
		expect_no_more();
		post_receive(&device, &server, THERE, 8);
		wire_settle();
		expect_cqe(&client_cq, i, 0);
		expect_receive(i, 8);
	}
	assert_int_equal(count_of(MESSAGE_SEND), 5 * 3);
	expect_no_more();
}

static bool loses_second_answer(const struct wire_packet *packet, uint64_t number)
{
	return number == 4 && packet_opcodes[packet->opcode].message == MESSAGE_ACKNOWLEDGE;
}

/* An RNR NAK is lost: the timeout replaces it, and counts as a timeout. */
TEST(lost_rnr_nak)
{
	struct ibv_qp_attr options = wire_options();

	options.rnr_retry = 2;
	options.retry_cnt = 1;
	start(&options, loses_second_answer);
	put_request(&client, MLX5_OPCODE_SEND, HERE, 0, 8, 0, 0);
	ring(&client);
	wire_settle();
	expect_cqe(&client_cq, 0, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
	/* Three that count, and the lost one. */
	assert_int_equal(count_of(MESSAGE_SEND), 4);
}

/* ---- READ ------------------------------------------------------------------------------------------------------ */

static uint64_t lost_response;

static bool loses_that_response(const struct wire_packet *packet, uint64_t number)
{
	(void)packet;
	return number == 1 + lost_response;
}

/* Arrived data is not requested again (a retransmission may start at any packet). */
TEST(rest_of_a_read)
{
	const uint32_t length = 5 * 256 - 100;

	for (lost_response = 1; lost_response <= 5; lost_response++) {
		struct ibv_qp_attr options = wire_options();
		uint64_t again = 1 + 5; /* request, five responses, request */
		uint32_t arrived = (uint32_t)(lost_response - 1) * 256;

		start(&options, loses_that_response);
		put_request(&client, MLX5_OPCODE_RDMA_READ, HERE, THERE, length, 0, 0);
		ring(&client);
		wire_settle();
		expect_cqe(&client_cq, 0, 0);
		assert_memory_equal(device.memory + HERE, device.memory + THERE, length);
		assert_int_equal(count_of(MESSAGE_READ_REQUEST), 2);
		assert_int_equal(packet_opcodes[notes.packet[again].opcode].message, MESSAGE_READ_REQUEST);
		assert_int_equal(notes.packet[again].psn, psn_add(SQ_START_PSN, (uint32_t)lost_response - 1));
		assert_int_equal(notes.packet[again].dma_length, length - arrived);
		assert_int_equal(notes.packet[again].remote_address, (uintptr_t)device.memory + THERE + arrived);
		assert_int_equal(notes.count, again + 1 + (5 - (lost_response - 1)));
		expect_no_more();
	}
}

/* The first request, and the first packet of two READ responses. */
static bool loses_two_beginnings(const struct wire_packet *packet, uint64_t number)
{
	static int responses;

	if (number == 1)
		responses = 0;
	return number == 1 || (packet_opcodes[packet->opcode].message == MESSAGE_READ_RESPONSE &&
			       packet_opcodes[packet->opcode].place == PLACE_FIRST && responses++ < 2);
}

/*
 * A gap is requested again at once, which uses a retry. If the same packet is lost again, the timeout requests it. IBTA 9.7.6.1.3
 * allows up to four times its value; here it is at most twice that, since the peer was not silent and no timeout has passed.
 */
TEST(gap_after_a_gap)
{
	struct ibv_qp_attr options = wire_options();
	const struct wire_manner between_hosts = {.most = 4096, .window = 8192};
	uint64_t asked_ns = 0;

	start(&options, loses_two_beginnings);
	wire_behave(&between_hosts);
	put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 8, 0, 0);
	ring(&client);
	/* The timer runs before the peer's first sign. */
	put_request(&client, MLX5_OPCODE_RDMA_READ, HERE, THERE, 5 * 256, 0, 0);
	ring(&client);
	wire_settle();
	expect_cqe(&client_cq, 0, 0);
	expect_cqe(&client_cq, 1, 0);
	assert_memory_equal(device.memory + HERE, device.memory + THERE, 5 * 256);
	/* After the sequence error, the gap, and the timeout. */
	assert_int_equal(count_of(MESSAGE_READ_REQUEST), 1 + 3);
	for (uint64_t i = 0; i < notes.count; i++)
		if (packet_opcodes[notes.packet[i].opcode].message == MESSAGE_READ_REQUEST)
			asked_ns = notes.packet[i].time_ns - notes.packet[0].time_ns;
	assert_true(asked_ns > 0);
	assert_true(asked_ns <= 2 * (UINT64_C(4096) << options.timeout));
	expect_no_more();
}

/* Each time it is requested, one packet more of the response arrives. */
static bool loses_all_but_one_response(const struct wire_packet *packet, uint64_t number)
{
	static uint64_t responses;

	(void)number;
	if (packet_opcodes[packet->opcode].message != MESSAGE_READ_RESPONSE) {
		responses = 0;
		return false;
	}
	return responses++ > 0;
}

/* A long READ progresses, a packet with each attempt: its retries are not used up. */
TEST(long_read_in_bad_weather)
{
	struct ibv_qp_attr options = wire_options();

	options.retry_cnt = 1;
	start(&options, loses_all_but_one_response);
	put_request(&client, MLX5_OPCODE_RDMA_READ, HERE, THERE, 16 * 256, 0, 0);
	ring(&client);
	wire_settle();
	expect_cqe(&client_cq, 0, 0);
	assert_memory_equal(device.memory + HERE, device.memory + THERE, 16 * 256);
	expect_no_more();
}

/* ibv_modify_qp(3), max_rd_atomic: limits READs and atomics in flight; other requests continue. */
TEST(reads_under_way)
{
	for (uint8_t most = 1; most <= 5; most++) {
		struct ibv_qp_attr options = wire_options();
		uint64_t answered = 0;

		options.max_rd_atomic = options.max_dest_rd_atomic = most;
		start(&options, NULL);
		for (int i = 0; i < 8; i++)
			put_request(&client, i % 2 ? MLX5_OPCODE_RDMA_READ : MLX5_OPCODE_ATOMIC_FA,
				    HERE + 8u * (uint32_t)i, THERE, 8, 0, 0);
		ring(&client);
		/* Each answer lets one more be sent. */
		do {
			uint64_t asked = count_of(MESSAGE_READ_REQUEST) + count_of(MESSAGE_FETCH_ADD);

			answered = count_of(MESSAGE_READ_RESPONSE) + count_of(MESSAGE_ATOMIC_ACKNOWLEDGE);
			assert_true(asked - answered <= most);
			if (!answered)
				assert_int_equal(asked, most);
		} while (wire_deliver());
		assert_int_equal(answered, 8);
		for (uint16_t i = 0; i < 8; i++)
			expect_cqe(&client_cq, i, 0);
		expect_no_more();
	}
}

/* mlx5-formats 1.3: a fence sends nothing before the answers of READs and atomics; a small one does not wait for them. */
TEST(fences)
{
	static const struct {
		uint8_t fence;
		bool waits;
	} modes[] = {{0x00, false}, {0x20, false}, {0x40, true}, {0x60, true}, {0x80, true}};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct ibv_qp_attr options = wire_options();

		start(&options, NULL);
		put_request(&client, MLX5_OPCODE_RDMA_READ, HERE, THERE, 600, 0, 0);
		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE + 4096, 600, 0, modes[i].fence);
		ring(&client);
		assert_int_equal(count_of(MESSAGE_WRITE), modes[i].waits ? 0 : 3);
		wire_settle();
		expect_cqe(&client_cq, 0, 0);
		expect_cqe(&client_cq, 1, 0);
		/* The WRITE sends the data of the READ. */
		if (modes[i].waits)
			assert_memory_equal(device.memory + THERE + 4096, device.memory + THERE, 600);
	}
}

/* ---- late packets ---------------------------------------------------------------------------------------------- */

static struct wire_packet kept[16];
static uint64_t kept_count;

static enum wire_verdict keep(void *argument, uint64_t number, const struct wire_packet *packet)
{
	(void)argument;
	(void)number;
	if (kept_count < 16)
		kept[kept_count++] = *packet;
	return WIRE_PASS;
}

/* A very late packet has no effect: requests are answered again, answers are ignored. */
TEST(late_packets)
{
	static const uint8_t opcodes[] = {MLX5_OPCODE_SEND_IMM, MLX5_OPCODE_RDMA_WRITE, MLX5_OPCODE_RDMA_READ,
					  MLX5_OPCODE_ATOMIC_FA, MLX5_OPCODE_RDMA_WRITE_IMM};
	static uint8_t before[sizeof(device.memory)];
	struct ibv_qp_attr options = wire_options();

	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		kept_count = 0;
		wire_connect(&options, keep, NULL);
		for (int r = 0; r < 4; r++)
			post_receive(&device, &server, THERE + 4096, 2048);
		put_request(&client, opcodes[i], HERE, THERE, opcodes[i] == MLX5_OPCODE_ATOMIC_FA ? 8 : 600, 0, 0);
		/* The request after it has been acknowledged, too. */
		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE + 8192, 8, 0, 0);
		ring(&client);
		wire_settle();
		while (raw_cq_poll(&client_cq) || raw_cq_poll(&server_cq))
			;
		/* A READ returns the present content. */
		memcpy(before, device.memory, sizeof(before));
		for (uint64_t k = 0; k < kept_count; k++) {
			wire_receive(&kept[k]);
			wire_settle();
			expect_no_more();
			assert_memory_equal(device.memory, before, sizeof(before));
		}
		/* The connection still works. */
		put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE + 10000, 300, 0, 0);
		ring(&client);
		wire_settle();
		expect_cqe(&client_cq, 2, 0);
		expect_no_more();
	}
}

/* IBTA 9.7.5.1.2: an answer to a packet that was not sent yet is a ghost of an earlier connection. */
TEST(ghosts)
{
	static const uint8_t opcodes[] = {0x0d, 0x0f, 0x10, 0x11, 0x12}; /* READ responses, acknowledgements */
	static const uint8_t syndromes[] = {AETH_ACK, AETH_RNR_NAK | 1, AETH_NAK | NAK_SEQUENCE,
					    AETH_NAK | NAK_REMOTE_ACCESS};
	struct ibv_qp_attr options = wire_options();

	for (size_t o = 0; o < sizeof(opcodes); o++) {
		for (size_t s = 0; s < sizeof(syndromes); s++) {
			struct wire_packet ghost = {.opcode = opcodes[o],
						    .syndrome = syndromes[s],
						    .destination_qpn = client.qp->number,
						    .length = opcodes[o] < 0x11 ? 256 : 0};

			start(&options, loses_all);
			put_request(&client, MLX5_OPCODE_RDMA_WRITE, HERE, THERE, 600, 0, 0);
			put_request(&client, MLX5_OPCODE_RDMA_READ, HERE, THERE, 600, 0, 0);
			ring(&client);
			/* Six sequence numbers are in use. */
			for (uint32_t ahead = 6; ahead < 1u << 23; ahead *= 2) {
				ghost.psn = psn_add(SQ_START_PSN, ahead);
				wire_receive(&ghost);
			}
			expect_no_more();
			/* They did not affect the true answers. */
			notes.loses = NULL;
			wire_settle();
			expect_cqe(&client_cq, 0, 0);
			expect_cqe(&client_cq, 1, 0);
			expect_no_more();
		}
	}
}

int main(void)
{
	return run_cases(.setup = wire_open, .teardown = wire_close);
}
