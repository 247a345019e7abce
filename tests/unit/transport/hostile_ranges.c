/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hand-made packets for a live RC QP that name memory: any key, address, length; and unsolicited answers. IBTA volume 1,
 * 9.7.4.1.5 and table 60: a remote access error, and no byte outside the key changes.
 */
#include "test_case.h"

#include "../../model/choose.h"
#include "../support/hostile_fixture.h"

enum { FILL = 0xd1, SHORT = 99 };

/* ---- keys ------------------------------------------------------------------------------------------------------- */

/* 9.7.4.1.5, table 60: a missing key, range or right: remote access error. */
TEST(ranges)
{
	const struct {
		int64_t at;
		uint32_t bytes;
	} outside[] = {
		{-1, 1},
		{-1, SHORT},
		{-SHORT, SHORT},
		{WINDOW_BYTES, 1},
		{WINDOW_BYTES - SHORT + 1, SHORT},
		{WINDOW_BYTES, SHORT},
		{INT64_MAX, SHORT},
		{INT64_MIN, SHORT},
	};

	for (int reads = 0; reads < 2; reads++) {
		for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
			uint32_t psn;

			hostile_begin();
			psn = expected_psn();
			begin_next(reads ? RC_READ_REQUEST : RC_WRITE_ONLY);
			frame_reth(&frame, window_address() + (uint64_t)outside[i].at, mkey_number(window),
				   outside[i].bytes);
			frame_payload(&frame, FILL, reads ? 0 : outside[i].bytes);
			assert_true(feed());
			expect_refused("outside of the key", NAK_REMOTE_ACCESS, psn);
		}
	}
}

/* The first packet of a WRITE that exceeds the range writes nothing, though the packet itself would fit (C9-88). */
TEST(whole_range_of_a_write)
{
	static const uint32_t lengths[] = {WINDOW_BYTES + 1, 1u << 20, 1u << 30, UINT32_MAX};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct wire_packet *answer;

		hostile_begin();
		begin_next(RC_WRITE_FIRST);
		frame_reth(&frame, window_address(), mkey_number(window), lengths[i]);
		frame_payload(&frame, FILL, HOSTILE_MTU);
		assert_true(feed());
		answer = wire_take();
		assert_non_null(answer);
		/* More than 2^31 bytes is not a valid length (9.7.4.1.6); then the request is invalid. */
		assert_true(answer->syndrome == (AETH_NAK | NAK_REMOTE_ACCESS) ||
			    (lengths[i] > 1u << 31 && answer->syndrome == (AETH_NAK | NAK_INVALID_REQUEST)));
		free(answer);
		memory_is_right("a long WRITE");
		expect_state("a long WRITE", IBV_QPS_ERR);
	}
}

/* Any address, key and length, often nearly right: only accesses within the window are allowed. */
TEST(any_range)
{
	struct choose c = choose_for(11, 0);
	uint32_t allowed = 0;

	hostile_begin();
	for (int i = 0; i < 20000; i++) {
		bool reads = chance(&c, 50), good_key = chance(&c, 80);
		uint64_t at = chance(&c, 60)   ? choose_below(&c, WINDOW_BYTES)
			      : chance(&c, 50) ? WINDOW_BYTES - choose_below(&c, 20)
					       : choose_bits(&c);
		uint32_t bytes = (uint32_t)choose_below(&c, HOSTILE_MTU + 1);
		uint32_t key = good_key ? mkey_number(window) : mkey_number(window) ^ 1u << choose_below(&c, 32);
		bool inside = good_key && at <= WINDOW_BYTES && bytes <= WINDOW_BYTES - at;
		uint32_t psn = expected_psn();
		struct wire_packet *answer;

		if (mkey_find(device.hca, key) && !good_key)
			continue;
		begin_next(reads ? RC_READ_REQUEST : RC_WRITE_ONLY);
		frame_reth(&frame, window_address() + at, key, bytes);
		frame_payload(&frame, (uint8_t)i, reads ? 0 : bytes);
		if (inside && !reads)
			memset(hostile_expected + WINDOW + at, (uint8_t)i, bytes);
		assert_true(feed());
		answer = wire_take();
		assert_non_null(answer);
		/* A request of zero bytes touches no key (C9-88). */
		if (inside || !bytes) {
			allowed++;
			assert_int_equal(answer->opcode, reads ? RC_READ_RESPONSE_ONLY : RC_ACKNOWLEDGE);
			assert_int_equal(answer->syndrome, ACKNOWLEDGED);
			if (reads && bytes)
				assert_memory_equal(answer->payload, device.memory + WINDOW + at, bytes);
		} else {
			assert_int_equal(answer->opcode, RC_ACKNOWLEDGE);
			assert_int_equal(answer->syndrome, AETH_NAK | NAK_REMOTE_ACCESS);
		}
		assert_int_equal(answer->psn, psn);
		free(answer);
		memory_is_right("any range");
		if (hca_qp_state(server.qp) != IBV_QPS_RTS)
			hostile_begin();
	}
	assert_true(allowed > 5000);
}

/* 9.7.4.1.6 and table 60: an unaligned atomic is an invalid request; outside the key, an access error. */
TEST(atomics)
{
	for (int64_t at = -16; at < WINDOW_BYTES + 16; at = at == 32 ? WINDOW_BYTES - 16 : at + 1) {
		for (uint8_t opcode = RC_COMPARE_SWAP; opcode <= RC_FETCH_ADD; opcode++) {
			bool inside = at >= 0 && at <= WINDOW_BYTES - 8;
			struct wire_packet *answer;

			hostile_begin();
			begin_next(opcode);
			frame_atomic_eth(&frame, window_address() + (uint64_t)at, mkey_number(window), 0, 0);
			assert_true(feed());
			answer = wire_take();
			assert_non_null(answer);
			if (at % 8)
				assert_int_equal(answer->syndrome, AETH_NAK | NAK_INVALID_REQUEST);
			else if (!inside)
				assert_int_equal(answer->syndrome, AETH_NAK | NAK_REMOTE_ACCESS);
			else
				assert_int_equal(answer->opcode, RC_ATOMIC_ACKNOWLEDGE);
			free(answer);
			/* Adding 0, or swapping 0 for 0. */
			memory_is_right("atomic");
		}
	}
}

/*
 * Invalidation of missing keys, or of keys without that right for the peer (mlx5-formats 6, point 51): no part of the
 * SEND is placed.
 */
TEST(invalidations)
{
	uint32_t keys[] = {mkey_number(invalidated) ^ 1, mkey_number(window), 0, UINT32_MAX,
			   mkey_number(device.region)};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		uint32_t psn;

		hostile_begin();
		psn = expected_psn();
		begin_next(RC_SEND_ONLY_INVALIDATE);
		frame_put(&frame, keys[i], 4);
		frame_payload(&frame, FILL, SHORT);
		assert_true(feed());
		/* IBTA 9.9.6.3, class J: an error of the receiver, without a NAK. */
		expect_acknowledge("invalidation", ACKNOWLEDGED, psn);
		expect_state("invalidation", IBV_QPS_ERR);
		assert_false(mkey_mapping(invalidated)->free);
	}
}

/* ---- unsolicited answers ---------------------------------------------------------------------------------------- */

/* 9.7.5.1.2: a responder without requests of its own ignores all answers. */
TEST(answers_to_nothing)
{
	for (uint8_t opcode = RC_READ_RESPONSE_FIRST; opcode <= RC_ATOMIC_ACKNOWLEDGE; opcode++) {
		for (uint32_t syndrome = 0; syndrome < 256; syndrome++) {
			for (uint32_t ahead = 0; ahead < 1u << 24; ahead = ahead ? ahead * 64 : 1) {
				hostile_begin();
				frame_begin(&frame, opcode, server.qp->number, psn_add(SQ_START_PSN, PSN_MASK + ahead));
				if (opcode != RC_READ_RESPONSE_MIDDLE)
					frame_aeth(&frame, (uint8_t)syndrome, 1);
				if (opcode == RC_ATOMIC_ACKNOWLEDGE)
					frame_put(&frame, UINT64_MAX, 8);
				if (opcode < RC_ACKNOWLEDGE)
					frame_payload(&frame, FILL, HOSTILE_MTU);
				feed();
				expect_ignored("an answer to nothing");
			}
		}
	}
}

int main(void)
{
	return run_cases(.setup = hostile_open, .teardown = hostile_close);
}
