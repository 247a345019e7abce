/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shm link of a device, with a process at the other end that writes and receives as the test requires: arrival,
 * refusals, waiting for room, wake-ups, and payload that stays in the memory of its sender.
 */
#include "test_case.h"

#include "progress/progress.h"
#include "link/shm/peer.h"
#include "link/udp/udp.h"
#include "../support/shm_world.h"

enum {
	WRITE_FIRST = 0x06,
	SEND_ONLY = 0x04,
	READ_RESPONSE_ONLY = 0x10,
	NAK_SEQUENCE_SYNDROME = 0x60,
};

/* ---- records of the other side --------------------------------------------------------------------------------- */

/* Returns the slot of a WRITE of @length bytes to the second half of the memory. */
static struct shm_slot write_slot(uint32_t psn, uint32_t length)
{
	struct shm_slot slot = hostile_bth(WRITE_ONLY, end.qp->number, psn, length);
	uint64_t address = htobe64((uintptr_t)device.memory + SECOND_HALF);
	uint32_t rkey = htobe32(mkey_number(device.region)), bytes = htobe32(length);

	memcpy(slot.bytes + 12, &address, 8);
	memcpy(slot.bytes + 20, &rkey, 4);
	memcpy(slot.bytes + 24, &bytes, 4);
	slot.headers = 28;
	return slot;
}

static void send_write(uint32_t psn, const uint8_t *payload, uint32_t length)
{
	const struct shm_slot slot = write_slot(psn, length);

	hostile_send(&other, &slot, payload, length);
}

/* Receives the next record as the other side; it stays in the ring. */
static void take(struct shm_record *record)
{
	uint32_t field, value;

	WAIT_FOR(shm_ready(&other.in));
	assert_int_equal(shm_take(&other.in, record, &field, &value), 0);
}

static void expect_acknowledge(uint32_t psn, uint8_t syndrome)
{
	struct shm_record record;

	take(&record);
	assert_int_equal(record.headers[0], ACKNOWLEDGE);
	assert_int_equal(roce_destination(record.headers), its_qpn);
	assert_int_equal(record.headers[9] << 16 | record.headers[10] << 8 | record.headers[11], psn);
	assert_int_equal(record.headers[12], syndrome);
	shm_release(&other.in);
}

/* Waits for an explanation by @rule that is newer than @before. */
static bool explained(enum explain_rule rule, uint64_t before)
{
	struct explain_record record = {.serial = 0};

	while (explain_previous(device.hca, 0, record.serial, &record) && record.serial > before)
		if (record.rule == rule)
			return true;
	return false;
}

static uint64_t newest_explanation(void)
{
	struct explain_record record;

	return explain_previous(device.hca, 0, 0, &record) ? record.serial : 0;
}

static uint8_t *target(void)
{
	return device.memory + SECOND_HALF;
}

/* ---- arrival --------------------------------------------------------------------------------------------------- */

TEST(test_write_arrives)
{
	uint8_t bytes[3000];

	memset(bytes, 0xa5, sizeof(bytes));
	send_write(SQ_START_PSN, bytes, 8);
	expect_acknowledge(SQ_START_PSN, NO_CREDITS);
	assert_memory_equal(target(), bytes, 8);
	/* 12 packets of 256 bytes in one record: the PSN wraps around. */
	send_write(0xffffff, bytes, sizeof(bytes));
	expect_acknowledge(10, NO_CREDITS);
	assert_memory_equal(target(), bytes, sizeof(bytes));
}

/* Records that a peer sent before it left still arrive. */
TEST(test_rest_arrives)
{
	uint8_t bytes[64];

	memset(bytes, 0x5a, sizeof(bytes));
	for (uint32_t i = 0; i < 200; i++)
		send_write((SQ_START_PSN + i) & 0xffffff, bytes, 8 + i % 50);
	bytes[0] = 1;
	send_write((SQ_START_PSN + 200) & 0xffffff, bytes, 8);
	shutdown(other.socket, SHUT_WR);
	WAIT_FOR(hostile_is_cut_off(&other));
	WAIT_FOR(__atomic_load_n(target(), __ATOMIC_ACQUIRE) == 1);
}

TEST(test_frames)
{
	struct shm_slot slot = write_slot(SQ_START_PSN, 5);
	const struct packet_path path = {.source.raw = {1, 2, 3},
					 .destination.raw = {4, 5},
					 .hop_limit = 9,
					 .traffic_class = 7,
					 .flow_label = 3};
	struct shm_record record;
	struct shm_path line;
	uint8_t frame[36];

	/* Forwarded by the process that has the port to the process of the QP. */
	memcpy(frame, slot.bytes, 28);
	memcpy(frame + 28, "hello\0\0\0", 8);
	shm_carrier.forward(its_qpn, &path, frame, sizeof(frame));
	take(&record);
	assert_int_equal(record.slot.flags, SHM_FLAG_PATH | SHM_FLAG_FRAME);
	assert_int_equal(record.slot.headers, 28);
	assert_int_equal(record.slot.length, 5);
	assert_memory_equal(record.headers, frame, 28);
	assert_memory_equal(record.payload, "hello", 5);
	memcpy(&line, record.path, sizeof(line));
	assert_memory_equal(line.source, path.source.raw, 16);
	assert_memory_equal(line.destination, path.destination.raw, 16);
	assert_int_equal(line.hop_limit, 9);
	assert_int_equal(line.traffic_class, 7);
	assert_int_equal(line.flow_label, 3);
	shm_release(&other.in);
}

/*
 * Frames that a process does not accept are lost, as on a wire, and counted; so are frames without a destination, and
 * invalid ones.
 */
TEST(test_frames_are_lost)
{
	struct shm_slot slot = write_slot(SQ_START_PSN, 8);
	uint64_t forwarded = counted(COUNTER_SHM_FORWARDED), lost = counted(COUNTER_SHM_FORWARD_LOST);
	const struct packet_path path = {.hop_limit = 9};
	uint8_t frame[36] = {0};

	memcpy(frame, slot.bytes, 28);
	for (uint32_t i = 0; i < SHM_SLOTS + 3; i++)
		shm_carrier.forward(its_qpn, &path, frame, sizeof(frame));
	assert_int_equal(counted(COUNTER_SHM_FORWARDED), forwarded + SHM_SLOTS);
	assert_int_equal(counted(COUNTER_SHM_FORWARD_LOST), lost + 3);
	/* No process has numbers below 1024. */
	shm_carrier.forward(5, &path, frame, sizeof(frame));
	frame[0] = 0xff;
	shm_carrier.forward(its_qpn, &path, frame, sizeof(frame));
	assert_int_equal(counted(COUNTER_SHM_FORWARD_LOST), lost + 5);
	for (uint32_t i = 0; i < SHM_SLOTS; i++) {
		struct shm_record record;

		take(&record);
		shm_release(&other.in);
	}
}

/* Writes the path to the place of the next record. */
static void put_path(const struct shm_slot *slot, const struct packet_path *path)
{
	struct shm_path line = {.type = IBV_GID_TYPE_ROCE_V2};
	struct shm_cursor to = shm_tail(&other.out);

	memcpy(line.source, path->source.raw, 16);
	memcpy(line.destination, path->destination.raw, 16);
	memcpy(other.out.ring->data + (size_t)shm_step(&to, shm_record_lines(slot)) * SHM_LINE, &line, sizeof(line));
}

/*
 * The frame came over UDP. A QP with a peer reached over UDP accepts it; for a QP with a peer at the other end of
 * the ring it comes from a stranger.
 */
TEST(test_frames_are_of_another_link)
{
	struct shm_slot slot = write_slot(SQ_START_PSN, 5);
	struct packet_path path = end.qp->path;
	uint64_t before = newest_explanation(), strangers = counted(COUNTER_DROPPED_STRANGER);

	slot.flags = SHM_FLAG_PATH | SHM_FLAG_FRAME;
	slot.bytes[8] = 0; /* no acknowledgement, which would be sent over UDP */
	memset(target(), 0, 5);
	put_path(&slot, &path);
	hostile_send(&other, &slot, "HELLO", 5);
	WAIT_FOR(explained(RULE_PACKET_LINK, before));
	assert_int_equal(counted(COUNTER_DROPPED_STRANGER), strangers + 1);
	assert_memory_equal(target(), "\0\0\0\0\0", 5);
	queue_lock(&end.qp->lock);
	end.qp->link = link_udp();
	queue_unlock(&end.qp->lock);
	/* The reverse: a record that did not come over UDP. */
	before = newest_explanation();
	send_write(SQ_START_PSN, (const uint8_t *)"HELLO", 5);
	WAIT_FOR(explained(RULE_PACKET_LINK, before));
	path.source.raw[15] ^= 1;
	before = newest_explanation();
	put_path(&slot, &path);
	hostile_send(&other, &slot, "HELLO", 5);
	WAIT_FOR(explained(RULE_PACKET_SOURCE, before));
	path.source.raw[15] ^= 1;
	path.destination.raw[0] ^= 1;
	before = newest_explanation();
	put_path(&slot, &path);
	hostile_send(&other, &slot, "HELLO", 5);
	WAIT_FOR(explained(RULE_PACKET_TARGET, before));
	assert_int_equal(counted(COUNTER_DROPPED_STRANGER), strangers + 4);
	assert_memory_equal(target(), "\0\0\0\0\0", 5);
	path.destination.raw[0] ^= 1;
	put_path(&slot, &path);
	hostile_send(&other, &slot, "hello", 5);
	WAIT_FOR(!memcmp(target(), "hello", 5));
}

/* Each drop is counted, but few are explained: a flood causes a line only now and then. */
TEST(test_flood_of_strangers)
{
	enum { FLOOD = 20 * LIMIT_EXPLAINED_DROPS };
	struct shm_slot slot = write_slot(SQ_START_PSN, 5);
	uint64_t strangers = counted(COUNTER_DROPPED_STRANGER), left_out = counted(COUNTER_EXPLANATIONS_LEFT_OUT);
	uint64_t begun = test_now_ms(), before = newest_explanation();

	slot.flags = SHM_FLAG_PATH | SHM_FLAG_FRAME;
	for (uint32_t i = 0; i < FLOOD; i++) {
		put_path(&slot, &end.qp->path);
		hostile_send(&other, &slot, "HELLO", 5);
		WAIT_FOR(counted(COUNTER_DROPPED_STRANGER) == strangers + i + 1);
	}
	WAIT_FOR(newest_explanation() - before + counted(COUNTER_EXPLANATIONS_LEFT_OUT) - left_out == FLOOD);
	assert_in_range(newest_explanation() - before, 0, ((test_now_ms() - begun) / 1000 + 2) * LIMIT_EXPLAINED_DROPS);
}

/* ---- refused --------------------------------------------------------------------------------------------------- */

/* A record that breaks the format ends the connection; later records are ignored. */
TEST(test_bad_record_ends_the_connection)
{
	uint64_t before = newest_explanation();
	struct shm_slot slot = write_slot(SQ_START_PSN, 8);

	slot.flags = 0x80;
	target()[0] = 0;
	hostile_send(&other, &slot, "12345678", 8);
	send_write(SQ_START_PSN, (const uint8_t *)"12345678", 8);
	WAIT_FOR(explained(RULE_SHM_RECORD, before));
	WAIT_FOR(hostile_is_cut_off(&other));
	assert_int_equal(target()[0], 0);
}

/* For invalid headers only their packet is dropped. */
TEST(test_bad_packets_are_dropped)
{
	struct shm_slot slot = write_slot(SQ_START_PSN, 8);
	uint64_t before, bad = counted(COUNTER_SHM_MALFORMED);

#define DROPPED(rule, send)                                                                                            \
	do {                                                                                                           \
		before = newest_explanation();                                                                         \
		send;                                                                                                  \
		WAIT_FOR(explained(RULE_##rule, before));                                                              \
		bad++;                                                                                                 \
		assert_int_equal(counted(COUNTER_SHM_MALFORMED), bad);                                                 \
	} while (0)
	/* A BTH alone, of an opcode with more headers. */
	slot = write_slot(SQ_START_PSN, 0);
	slot.headers = 12;
	DROPPED(FRAME_SHORT, hostile_send(&other, &slot, NULL, 0));
	slot.headers = 32;
	DROPPED(SHM_PACKET, hostile_send(&other, &slot, NULL, 0));
	slot = write_slot(SQ_START_PSN, 7);
	slot.bytes[1] = 0x40;
	DROPPED(SHM_PACKET, hostile_send(&other, &slot, "1234567", 7));
	slot = hostile_bth(0xd3, end.qp->number, SQ_START_PSN, 12);
	slot.headers = 40;
	DROPPED(FRAME_MASKS, hostile_send(&other, &slot, "123456789012", 12));
	slot = hostile_bth(0xd3, end.qp->number, SQ_START_PSN, 5000);
	slot.headers = 40;
	DROPPED(SHM_PACKET, hostile_send(&other, &slot, NULL, 0));
	/* A frame that the process with the port forwarded: an error of the host that sent it. */
	slot = write_slot(SQ_START_PSN, 7);
	slot.bytes[1] = 0x40;
	slot.flags = SHM_FLAG_PATH | SHM_FLAG_FRAME;
	put_path(&slot, &end.qp->path);
	DROPPED(FRAME_HANDED_ON, hostile_send(&other, &slot, "1234567", 7));
#undef DROPPED
	send_write(SQ_START_PSN, (const uint8_t *)"12345678", 8);
	expect_acknowledge(SQ_START_PSN, NO_CREDITS);
	assert_memory_equal(target(), "12345678", 8);
}

/* ---- partial repetitions ---------------------------------------------------------------------------------------- */

static uint8_t distant[20000];

static void fill_distant(void)
{
	for (size_t i = 0; i < sizeof(distant); i++)
		distant[i] = (uint8_t)(i * 7 + i / 251);
}

/* Sends the first @packets of a WRITE of @distant, and then all of it in one run, of which only the new packets count. */
static void repeat_some(uint32_t psn, uint32_t packets)
{
	const struct shm_slot whole = write_slot(psn, sizeof(distant));
	struct shm_slot part = whole;

	memset(target(), 0, sizeof(distant));
	part.bytes[0] = WRITE_FIRST;
	part.bytes[1] = 0x40;
	part.bytes[8] = 0;
	part.length = packets * 256;
	hostile_send(&other, &part, distant, part.length);
	hostile_send(&other, &whole, distant, sizeof(distant));
	expect_acknowledge((psn + (sizeof(distant) - 1) / 256) & 0xffffff, NO_CREDITS);
	assert_memory_equal(target(), distant, sizeof(distant));
}

TEST(test_half_is_repeated)
{
	const uint32_t each = (sizeof(distant) + 255) / 256;
	uint64_t before = counted(COUNTER_DUPLICATE_REQUESTS);
	uint32_t psn = SQ_START_PSN;

	fill_distant();
	for (uint32_t packets = 1; packets < 20; packets++, psn = (psn + each) & 0xffffff)
		repeat_some(psn, packets);
	assert_int_equal(counted(COUNTER_DUPLICATE_REQUESTS) - before, 19);
}

/* ---- sending --------------------------------------------------------------------------------------------------- */

static void expect_send(uint32_t length)
{
	struct shm_record record;

	take(&record);
	assert_int_equal(record.headers[0], SEND_ONLY);
	assert_int_equal(record.slot.length, length);
	assert_memory_equal(record.payload, device.memory, length);
}

/* Requests without room wait until there is some, and all arrive in order. */
TEST(test_waits_for_room)
{
	enum { COUNT = 40, BYTES = 32 << 10 };
	uint64_t full = counted(COUNTER_SHM_RING_FULL);
	uint32_t first = SHM_DATA_BYTES / BYTES;

	for (int i = 0; i < COUNT; i++)
		put_send(&device, &end, 0, BYTES);
	ring(&end);
	assert_true(counted(COUNTER_SHM_RING_FULL) > full);
	assert_int_equal(other.in.ring->state.starved, 1);
	for (uint32_t i = 0; i < first; i++)
		expect_send(BYTES);
	assert_false(shm_ready(&other.in));
	for (uint32_t i = first; i < COUNT; i++) {
		/* As the link does: wakes a side that sleeps and waits for room. */
		shm_release(&other.in);
		if (__atomic_load_n(&other.in.ring->state.starved, __ATOMIC_SEQ_CST))
			hostile_wake(&other);
		expect_send(BYTES);
	}
	assert_false(shm_ready(&other.in));
}

/* A QP that waits for room in a ring stops waiting when the other side leaves. */
TEST(test_room_of_a_process_that_leaves)
{
	for (int i = 0; i < 40; i++)
		put_send(&device, &end, 0, 32 << 10);
	ring(&end);
	assert_true(link_waits(&end.qp->requester.waiter));
	shutdown(other.socket, SHUT_WR);
	WAIT_FOR(!link_waits(&end.qp->requester.waiter));
}

enum { LONG_BYTES = 32 << 10, FILLS = SHM_DATA_BYTES / LONG_BYTES };

/* ---- a peer that does not run ---------------------------------------------------------------------------------- */

/* 4.096 us * 2^5 = 131 us, and one repetition: half a millisecond until retries run out, if they are counted. */
static void be_impatient(uint32_t silence_s)
{
	const struct ibv_qp_attr options = {.timeout = 5, .retry_cnt = 1, .rnr_retry = 7, .min_rnr_timer = 1};

	raw_qp_connect(&device, &end, its_qpn, &options);
	device.hca->settings.peer_silence = silence_s;
}

static void wait_ms(uint64_t ms)
{
	for (uint64_t until = test_now_ms() + ms; test_now_ms() < until;)
		sched_yield();
}

/* Marks all that was sent so far as handled by the other side, with or without a reply. */
static void say_handled(void)
{
	__atomic_store_n(&other.in.ring->handled, other.in.at.slot, __ATOMIC_RELEASE);
}

/* Records in the ring of a living process are not lost. */
TEST(test_patience)
{
	uint64_t resent = counted(COUNTER_PACKETS_RESENT), excused = counted(COUNTER_ACK_TIMEOUTS_EXCUSED);
	struct shm_slot answer;

	be_impatient(20);
	put_send(&device, &end, 0, 8);
	ring(&end);
	wait_ms(300);
	assert_int_equal(hca_qp_state(end.qp), IBV_QPS_RTS);
	/* Received, but the reply may still follow. */
	expect_send(8);
	shm_release(&other.in);
	wait_ms(100);
	assert_int_equal(hca_qp_state(end.qp), IBV_QPS_RTS);
	assert_true(counted(COUNTER_ACK_TIMEOUTS_EXCUSED) - excused >= 2);
	/* It has a reply, but no room for it. */
	__atomic_store_n(&other.out.ring->state.starved, 1, __ATOMIC_RELEASE);
	say_handled();
	wait_ms(100);
	assert_int_equal(hca_qp_state(end.qp), IBV_QPS_RTS);
	assert_int_equal(counted(COUNTER_PACKETS_RESENT), resent);
	answer = hostile_bth(ACKNOWLEDGE, end.qp->number, SQ_START_PSN, 0);
	answer.headers = 16;
	hostile_send(&other, &answer, NULL, 0);
	WAIT_FOR(end.qp->requester.first == end.qp->requester.last);
	let_it_finish();
	expect_cqe(&cq, 0, 0);
}

/*
 * Two processes that connect to each other at the same time have two connections, and each sends over its own. A reply
 * that waits for room in the other connection does not count as silence.
 */
TEST(test_answers_over_another_connection)
{
	uint64_t resent = counted(COUNTER_PACKETS_RESENT), timeouts = counted(COUNTER_ACK_TIMEOUTS);
	struct hostile second = other;
	struct shm_slot answer;

	hostile_connect(&other, end.qp->number);
	be_impatient(20);
	put_send(&device, &end, 0, 8);
	ring(&end);
	/* The device sends over either of the two connections. */
	WAIT_FOR(shm_ready(&other.in) || shm_ready(&second.in));
	if (!shm_ready(&other.in)) {
		const struct hostile used = second;

		second = other;
		other = used;
	}
	expect_send(8);
	shm_release(&other.in);
	__atomic_store_n(&second.out.ring->state.starved, 1, __ATOMIC_RELEASE);
	say_handled();
	wait_ms(100);
	assert_int_equal(hca_qp_state(end.qp), IBV_QPS_RTS);
	assert_int_equal(counted(COUNTER_PACKETS_RESENT), resent);
	assert_int_equal(counted(COUNTER_ACK_TIMEOUTS), timeouts);
	answer = hostile_bth(ACKNOWLEDGE, end.qp->number, SQ_START_PSN, 0);
	answer.headers = 16;
	answer.bytes[12] = NO_CREDITS;
	hostile_send(&second, &answer, NULL, 0);
	WAIT_FOR(end.qp->requester.first == end.qp->requester.last);
	let_it_finish();
	expect_cqe(&cq, 0, 0);
	shutdown(second.socket, SHUT_WR);
	WAIT_FOR(hostile_is_cut_off(&second));
	hostile_leave(&second);
}

/* Records that were handled without a reply count as timeouts: for instance, if the QP does not exist there. */
TEST(test_no_answer)
{
	uint64_t timeouts = counted(COUNTER_ACK_TIMEOUTS), begin_ms = test_now_ms();

	be_impatient(20);
	put_send(&device, &end, 0, 8);
	ring(&end);
	while (hca_qp_state(end.qp) == IBV_QPS_RTS && test_now_ms() - begin_ms < 10000) {
		struct shm_record record;
		uint32_t field, value;

		if (shm_ready(&other.in))
			assert_int_equal(shm_take(&other.in, &record, &field, &value), 0);
		shm_release(&other.in);
		say_handled();
		sched_yield();
	}
	assert_true(test_now_ms() - begin_ms < 10000);
	let_it_finish();
	expect_cqe(&cq, 0, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
	assert_int_equal(counted(COUNTER_ACK_TIMEOUTS) - timeouts, 2);
	assert_true(explained(RULE_RETRY_EXHAUSTED, 0));
}

/* The peer is alive but silent for longer than the setting: with a record in its ring, or with a full ring. */
TEST(test_silence)
{
	enum { MOST = 40 };

	for (int full = 0; full < 2; full++) {
		uint64_t before = newest_explanation(), begin_ms = test_now_ms();
		int count = full ? MOST : 1;

		be_impatient(1);
		for (int i = 0; i < count; i++)
			put_send(&device, &end, 0, full ? 32 << 10 : 8);
		ring(&end);
		assert_int_equal(link_waits(&end.qp->requester.waiter), full);
		WAIT_FOR(hca_qp_state(end.qp) == IBV_QPS_ERR);
		assert_true(test_now_ms() - begin_ms >= 1000);
		WAIT_FOR(explained(RULE_PEER_SILENT, before));
		let_it_finish();
		expect_cqe(&cq, 0, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
		for (int i = 1; i < count; i++)
			expect_cqe(&cq, (uint16_t)i, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	}
}

/* A larger timeout and retry_cnt of a program are respected; with timeout 0 there is no timer. */
TEST(test_longer_patience)
{
	struct ibv_qp_attr options = {.timeout = 18, .retry_cnt = 1, .rnr_retry = 7, .min_rnr_timer = 1};
	uint64_t begin_ms;

	be_impatient(1);
	raw_qp_connect(&device, &end, its_qpn, &options);
	begin_ms = test_now_ms();
	put_send(&device, &end, 0, 8);
	ring(&end);
	WAIT_FOR(hca_qp_state(end.qp) == IBV_QPS_ERR);
	assert_true(test_now_ms() - begin_ms >= 2 * (UINT64_C(4096) << 18) / 1000000);
	let_it_finish();
	expect_cqe(&cq, 0, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
	options.timeout = 0;
	raw_qp_connect(&device, &end, its_qpn, &options);
	put_send(&device, &end, 0, 8);
	ring(&end);
	wait_ms(1500);
	assert_int_equal(hca_qp_state(end.qp), IBV_QPS_RTS);
}

/* UC completes and drops: at first after the time in docs/reference/limits.md, then at once. */
TEST(test_unreliable_drops)
{
	const struct ibv_qp_attr options = {.timeout = 0};
	uint64_t dropped = counted(COUNTER_SHM_DROPPED), before = newest_explanation(), begin_ms;
	struct raw_qp uc;

	raw_qp_make(&device, &uc, IBV_QPT_UC, &cq, BLOCKS);
	raw_qp_connect(&device, &uc, its_qpn, &options);
	for (int i = 0; i < FILLS + 4; i++)
		put_send(&device, &uc, 0, LONG_BYTES);
	begin_ms = test_now_ms();
	ring(&uc);
	assert_true(test_now_ms() - begin_ms < 100);
	assert_true(link_waits(&uc.qp->requester.waiter));
	/* The FIFO is empty for a moment after each of them. */
	WAIT_FOR(counted(COUNTER_SHM_DROPPED) - dropped == 4);
	assert_true(test_now_ms() - begin_ms >= LIMIT_UNRELIABLE_WAIT_MS);
	WAIT_FOR(uc.qp->requester.first == uc.qp->requester.last);
	assert_true(explained(RULE_SHM_DROPPED, before));
	put_send(&device, &uc, 0, LONG_BYTES);
	ring(&uc);
	assert_true(uc.qp->requester.first == uc.qp->requester.last);
	assert_int_equal(counted(COUNTER_SHM_DROPPED) - dropped, 5);
	for (int i = 0; i < FILLS + 5; i++)
		expect_cqe(&cq, (uint16_t)i, 0);
	raw_qp_destroy(&uc);
}

TEST(test_wakes_sleepers)
{
	char byte;

	put_send(&device, &end, 0, 8);
	ring(&end);
	expect_send(8);
	assert_int_equal(recv(other.socket, &byte, 1, MSG_DONTWAIT), -1);
	__atomic_store_n(&other.out.ring->state.sleeps, 1, __ATOMIC_SEQ_CST);
	put_send(&device, &end, 0, 8);
	put_send(&device, &end, 0, 8);
	ring(&end);
	assert_int_equal(recv(other.socket, &byte, 1, MSG_DONTWAIT), 1);
	assert_int_equal(other.out.ring->state.sleeps, 0);
	/* One wake-up is enough. */
	assert_int_equal(recv(other.socket, &byte, 1, MSG_DONTWAIT), -1);
	expect_send(8);
	expect_send(8);
}

/* Polls @count times as the program, without finding anything except what the other side sends before. */
static void poll_often(uint32_t count)
{
	while (count--)
		progress_poll();
}

/*
 * A peer that receives nothing although it is marked as polling is woken after a while, and again later. It is not
 * woken while it sends: it is busy then, and a wake-up would take its processor away.
 */
TEST(test_wakes_a_thread_that_stops_polling)
{
	uint64_t begun;
	char byte;

	put_send(&device, &end, 0, 8);
	ring(&end);
	begun = counted(COUNTER_SHM_WAKEUPS_SENT);
	for (uint32_t i = 0; i < 8; i++) {
		uint64_t before = counted(COUNTER_SHM_RUNS_RECEIVED);

		send_write((SQ_START_PSN + i) & 0xffffff, (const uint8_t *)"12345678", 8);
		WAIT_FOR(counted(COUNTER_SHM_RUNS_RECEIVED) > before);
		poll_often(TUNABLE_SHM_NUDGE_PATIENCE / 2);
	}
	assert_int_equal(counted(COUNTER_SHM_WAKEUPS_SENT), begun);
	poll_often(3 * TUNABLE_SHM_NUDGE_PATIENCE);
	assert_in_range(counted(COUNTER_SHM_WAKEUPS_SENT) - begun, 1, 3);
	assert_int_equal(recv(other.socket, &byte, 1, MSG_DONTWAIT), 1);
}

/* A peer that is marked as polling but has not polled when the timer expires. */
TEST(test_wakes_a_thread_that_has_not_polled)
{
	uint64_t excused = counted(COUNTER_ACK_TIMEOUTS_EXCUSED), woken = counted(COUNTER_SHM_WAKEUPS_SENT);
	struct shm_slot answer;
	char byte;

	be_impatient(20);
	put_send(&device, &end, 0, 8);
	ring(&end);
	WAIT_FOR(recv(other.socket, &byte, 1, MSG_DONTWAIT) == 1);
	assert_int_equal(other.out.ring->state.sleeps, 0);
	expect_send(8);
	answer = hostile_bth(ACKNOWLEDGE, end.qp->number, SQ_START_PSN, 0);
	answer.headers = 16;
	hostile_send(&other, &answer, NULL, 0);
	say_handled();
	WAIT_FOR(end.qp->requester.first == end.qp->requester.last);
	let_it_finish();
	expect_cqe(&cq, 0, 0);
	/* Woken at each timeout, not only after many polls. */
	assert_true(counted(COUNTER_ACK_TIMEOUTS_EXCUSED) > excused);
	assert_true(2 * (counted(COUNTER_SHM_WAKEUPS_SENT) - woken) > counted(COUNTER_ACK_TIMEOUTS_EXCUSED) - excused);
}

int main(void)
{
	return run_cases(.setup = shm_world_begin, .teardown = shm_world_end, .group_setup = shm_world_open,
			 .group_teardown = shm_world_close);
}
