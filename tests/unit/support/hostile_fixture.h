/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A live QP and hand-made packets for it (frame_bytes.h), which are parsed, committed and drained like those of a link.
 * Replies of the QP are captured on a wire (wire_link.h) and delivered nowhere.
 *
 * The victim has receives, and a window of memory that its peer may access, with canaries around it. After each step
 * all of the memory is compared with its expected contents.
 */
#ifndef SOFTHCA_TESTS_HOSTILE_FIXTURE_H
#define SOFTHCA_TESTS_HOSTILE_FIXTURE_H

#include "test_case.h"

#include "frame_bytes.h"
#include "wire/roce.h"
#include "transport/run/run.h"
#include "wire_fixture.h"

enum {
	WINDOW = HALF + 8192, /* offset of the range of the key */
	WINDOW_BYTES = 4096,
	RECEIVES = HALF + 16384,
	RECEIVE_BYTES = 1024,
	RECEIVE_COUNT = 4,
	HOSTILE_MTU = 256,
	RC_SEND_FIRST = 0x00,
	RC_SEND_MIDDLE = 0x01,
	RC_SEND_LAST = 0x02,
	RC_SEND_ONLY = 0x04,
	RC_SEND_LAST_INVALIDATE = 0x16,
	RC_SEND_ONLY_INVALIDATE = 0x17,
	RC_WRITE_FIRST = 0x06,
	RC_WRITE_MIDDLE = 0x07,
	RC_WRITE_LAST = 0x08,
	RC_WRITE_ONLY = 0x0a,
	RC_READ_REQUEST = 0x0c,
	RC_READ_RESPONSE_FIRST = 0x0d,
	RC_READ_RESPONSE_MIDDLE = 0x0e,
	RC_READ_RESPONSE_LAST = 0x0f,
	RC_READ_RESPONSE_ONLY = 0x10,
	RC_ACKNOWLEDGE = 0x11,
	RC_ATOMIC_ACKNOWLEDGE = 0x12,
	RC_COMPARE_SWAP = 0x13,
	RC_FETCH_ADD = 0x14,
};

static struct mkey *window;
static struct mkey *invalidated; /* another key, which the peer can invalidate */
static uint8_t hostile_expected[sizeof(device.memory)];
static struct frame_bytes frame;

static inline uint64_t window_address(void)
{
	return (uintptr_t)device.memory + WINDOW;
}

static inline int hostile_open(void **state)
{
	struct hca_mr_attr attr = {
		.addr = device.memory + WINDOW,
		.start = (uintptr_t)device.memory + WINDOW,
		.length = WINDOW_BYTES,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			  IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct hca_mkey_attr other = {.max_entries = 4, .remote_invalidate = true};

	wire_open(state);
	assert_int_equal(hca_mr_register(device.pd, &attr, &window), 0);
	assert_int_equal(hca_mkey_create(device.pd, &other, &invalidated), 0);
	return 0;
}

static inline int hostile_close(void **state)
{
	assert_int_equal(hca_mkey_destroy(invalidated), 0);
	assert_int_equal(hca_mr_deregister(window), 0);
	return wire_close(state);
}

static inline void renew_invalidated(void)
{
	struct mapping *next = mkey_edit(invalidated);

	next->form = LAYOUT_LIST;
	next->count = next->repeat = 1;
	next->free = false;
	next->length = next->period = 64;
	next->entries[0] = (struct layout_entry){
		.address = (uintptr_t)device.memory, .bytes = 64, .key = mkey_number(device.region)};
	mkey_publish(invalidated, next);
}

/* Makes a new connection of the victim (the server), over a link that delivers at any time. */
static inline void hostile_begin(void)
{
	const struct wire_manner manner = {.immediate = false, .most = 4096};
	struct ibv_qp_attr options = wire_options();

	options.timeout = 0; /* it never retransmits on its own */
	wire_connect(&options, NULL, NULL);
	wire_behave(&manner);
	renew_invalidated();
	for (uint32_t i = 0; i < RECEIVE_COUNT; i++)
		post_receive(&device, &server, RECEIVES + i * RECEIVE_BYTES, RECEIVE_BYTES);
	memcpy(hostile_expected, device.memory, sizeof(hostile_expected));
}

/* Delivers @length bytes, in memory of exactly that size. Returns false if they do not parse. */
static inline bool feed_bytes(const uint8_t *bytes, uint32_t length)
{
	uint8_t *exact = malloc(length ? length : 1);
	struct packet *packet;
	struct refusal why = {RULE_NONE, {0}};
	struct run run;
	size_t gids;
	int error;

	assert_non_null(exact);
	memcpy(exact, bytes, length);
	epoch_enter();
	run_begin(&run);
	packet = run_slot(&run);
	memset(packet, 0xa5, sizeof(*packet));
	error = roce_parse(packet, exact, length, &why);
	if (error) {
		assert_int_equal(error, -EPROTO);
		assert_int_not_equal(why.rule, RULE_NONE);
	} else {
		packet->link = device.hca->link;
		packet->own_path = server.qp->path;
		packet->own_path.source = hca_gids(device.hca, &gids)[0].gid;
		packet->own_path.destination = packet->own_path.source;
		packet->path = &packet->own_path;
		packet->mtu = (uint16_t)packet->payload.length;
		run_commit(&run);
		run_drain(&run, NULL);
	}
	run_finish(&run);
	epoch_leave();
	free(exact);
	return !error;
}

static inline bool feed(void)
{
	return feed_bytes(frame.byte, frame.length);
}

static inline uint32_t expected_psn(void)
{
	return server.qp->responder.expected_psn;
}

/* Starts a frame with the BTH of the packet that the victim expects next. */
static inline void begin_next(uint8_t opcode)
{
	frame_begin(&frame, opcode, server.qp->number, expected_psn());
}

/* ---- replies ---------------------------------------------------------------------------------------------------- */

static inline void expect_silence(const char *what)
{
	struct wire_packet *answer = wire_take();

	if (answer)
		fail_msg("%s: it answered with %s of %06x, syndrome %02x", what, packet_opcodes[answer->opcode].name,
			 answer->psn, answer->syndrome);
}

/* Expects one acknowledgement, or NAK, of @psn. */
static inline void expect_acknowledge(const char *what, uint8_t syndrome, uint32_t psn)
{
	struct wire_packet *answer = wire_take();

	if (!answer)
		fail_msg("%s: silence instead of syndrome %02x", what, syndrome);
	if (answer->opcode != RC_ACKNOWLEDGE || answer->syndrome != syndrome || answer->psn != (psn & 0xffffff) ||
	    answer->destination_qpn != client.qp->number)
		fail_msg("%s: %s of %06x for %x, syndrome %02x, instead of %06x, %02x", what,
			 packet_opcodes[answer->opcode].name, answer->psn, answer->destination_qpn, answer->syndrome,
			 psn & 0xffffff, syndrome);
	free(answer);
	expect_silence(what);
}

static inline void expect_state(const char *what, enum ibv_qp_state state)
{
	if (hca_qp_state(server.qp) != state)
		fail_msg("%s: the QP is in state %d", what, hca_qp_state(server.qp));
}

static inline void memory_is_right(const char *what)
{
	if (!memcmp(device.memory, hostile_expected, sizeof(hostile_expected)))
		return;
	for (size_t i = 0; i < sizeof(hostile_expected); i++)
		if (device.memory[i] != hostile_expected[i])
			fail_msg("%s: byte %#zx is %02x, not %02x", what, i, device.memory[i], hostile_expected[i]);
}

/* Expects no effect, and that the next valid packet still succeeds. */
static inline void expect_ignored(const char *what)
{
	expect_silence(what);
	memory_is_right(what);
	expect_state(what, IBV_QPS_RTS);
	assert_null(raw_cq_poll(&server_cq));
	begin_next(RC_WRITE_ONLY);
	frame_reth(&frame, window_address(), mkey_number(window), 5);
	frame_payload(&frame, 0x77, 5);
	memset(hostile_expected + WINDOW, 0x77, 5);
	assert_true(feed());
	expect_acknowledge(what, ACKNOWLEDGED, psn_add(expected_psn(), PSN_MASK));
	memory_is_right(what);
}

/* Expects a fatal refusal: NAK of @psn, the QP in error, nothing written. */
static inline void expect_refused(const char *what, enum nak_code code, uint32_t psn)
{
	expect_acknowledge(what, (uint8_t)(AETH_NAK | code), psn);
	memory_is_right(what);
	expect_state(what, IBV_QPS_ERR);
}

#endif
