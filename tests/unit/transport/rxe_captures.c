/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of Linux rxe (tests/data/rxe) byte by byte: their ICRC is accepted, they are parsed, a responder executes the
 * requests, and a requester accepts the answers. Only the numbers of this connection are inserted: queue pair, key and
 * address.
 */
#include "test_case.h"

#include "../support/udp_fixture.h"
#include "../support/hostile_fixture.h"
#include "../support/captured.h"

static const char *const files[] = {
	"rxe-6.1-rejects-rep-for-ece",
	"rxe-6.12-atomic-write",
	"rxe-6.12-flush-bad-icrc",
	"rxe-7.3-as-requester",
	"rxe-7.3-as-responder-naks",
	"rxe-7.3-cm-active",
	"rxe-7.3-cm-passive",
	"rxe-7.3-ipv4",
	"rxe-7.3-ipv6",
};

#define FILES (sizeof(files) / sizeof(files[0]))

enum {
	RC_WRITE_ONLY_IMM = 0x0b,
	RC_ATOMIC_WRITE = 0x1d,
	UD_SEND = 0x64,
	MTU = 1024,
	TARGETS = HALF, /* 16 KiB: addresses of requests keep their lower 14 bits */
	TARGET_MASK = 0x3fff,
	PLACES = HALF + 0x4000, /* memory of receives */
	PLACE_BYTES = 2048,
};

static struct captured captured;

/* ---- frames ------------------------------------------------------------------------------------------------------ */

/*
 * Returns true for a train of softhca (UDP GSO), captured before the kernel splits it: longer than a packet with the
 * path MTU can be.
 */
static bool is_train(const struct captured_frame *frame)
{
	return !frame->from_rxe && frame->length > FRAME_BTH + 16 + MTU;
}

static bool has_bad_icrc(const struct captured_frame *frame)
{
	return strstr(frame->file, "bad-icrc") || is_train(frame);
}

static void check_icrc(const struct captured_frame *frame)
{
	struct packet_path path = {.source = frame->source, .destination = frame->destination};
	struct ipv4_unseen unseen = {.identification = 0};
	uint8_t spoiled[CAPTURED_FILE_BYTES];
	uint32_t icrc = model_icrc(&frame->source, &frame->destination, frame->source_port, 4791, frame->identification,
				   false, frame->bth, frame->length);
	bool right = !memcmp(&icrc, frame->bth + frame->length, sizeof(icrc));

	if (right == has_bad_icrc(frame))
		fail_msg("%s, frame %u: the ICRC is %s", frame->file, frame->number, right ? "right" : "wrong");
	if (roce_icrc_fits(&path, frame->source_port, 4791, &unseen, frame->bth, frame->length) != right)
		fail_msg("%s, frame %u: the ICRC is judged otherwise", frame->file, frame->number);
	if (!right)
		return;
	assert_int_equal(unseen.identification, frame->identification);
	assert_int_equal(unseen.solved, frame->identification != 0);
	assert_false(unseen.may_fragment);
	memcpy(spoiled, frame->bth, frame->length + 4);
	spoiled[FRAME_PSN] ^= 1;
	assert_false(roce_icrc_fits(&path, frame->source_port, 4791, &unseen, spoiled, frame->length));
}

/* Checks ICRCs of every frame with a bitwise model, and with the receiver, which does not see the identification. */
TEST(icrcs)
{
	unsigned int solved = 0;

	for (size_t i = 0; i < FILES; i++) {
		captured_read(&captured, files[i]);
		for (unsigned int k = 0; k < captured.count; k++) {
			check_icrc(&captured.frame[k]);
			solved += captured.frame[k].identification && !has_bad_icrc(&captured.frame[k]);
		}
	}
	/* All frames of rxe over IPv4, since rxe never uses identification 0. */
	assert_int_equal(solved, 65);
}

/* Headers, parsed and written again, equal the bytes of the frame, except for MigReq, which rxe leaves clear. */
TEST(headers)
{
	for (size_t i = 0; i < FILES; i++) {
		captured_read(&captured, files[i]);
		for (unsigned int k = 0; k < captured.count; k++) {
			const struct captured_frame *from = &captured.frame[k];
			uint8_t written[ROCE_MOST_HEADERS], expected[ROCE_MOST_HEADERS];
			static struct packet packet;
			struct refusal why;
			uint32_t length;

			if (is_train(from))
				continue;
			if (roce_parse(&packet, from->bth, from->length, &why))
				fail_msg("%s, frame %u: refused by rule %d", from->file, from->number, why.rule);
			length = roce_headers_write(written, &packet, 0, packet.place, (uint32_t)packet.payload.length);
			assert_in_range(length, ROCE_BTH_BYTES, ROCE_MOST_HEADERS);
			memcpy(expected, from->bth, length);
			expected[FRAME_FLAGS] |= 0x40;
			if (memcmp(written, expected, length))
				fail_msg("%s, frame %u: other headers", from->file, from->number);
			assert_int_equal(length + packet.payload.length + roce_pad((uint32_t)packet.payload.length),
					 from->length);
		}
	}
}

/* ---- requests of rxe --------------------------------------------------------------------------------------------- */

static uint64_t target_of(uint64_t address)
{
	return TARGETS + (address & TARGET_MASK);
}

static void put_at(uint32_t at, uint64_t value, uint32_t bytes)
{
	struct frame_bytes field = {0};

	frame_put(&field, value, bytes);
	memcpy(frame.byte + at, field.byte, bytes);
}

/* Starts a connection with the path MTU of the captures and a responder that expects @psn. */
static void begin_at(uint32_t psn)
{
	const struct wire_manner manner = {.immediate = false, .most = 4096};
	struct ibv_qp_attr options = wire_options();

	options.timeout = 0;
	options.path_mtu = IBV_MTU_1024;
	wire_connect(&options, NULL, NULL);
	wire_behave(&manner);
	renew_invalidated();
	for (uint32_t i = 0; i < RQ_ENTRIES; i++)
		post_receive(&device, &server, PLACES + i * PLACE_BYTES, PLACE_BYTES);
	server.qp->responder.expected_psn = psn;
	memcpy(hostile_expected, device.memory, sizeof(hostile_expected));
}

/* The message in progress. */
static struct {
	uint64_t at;    /* offset in the memory of the next bytes */
	uint32_t place; /* the receive of the next SEND */
	uint32_t sent;  /* bytes of this SEND */
} message;

static bool has_reth(uint8_t opcode)
{
	return opcode == RC_WRITE_FIRST || opcode == RC_WRITE_ONLY || opcode == RC_READ_REQUEST;
}

static bool is_atomic(uint8_t opcode)
{
	return opcode == RC_FETCH_ADD || opcode == RC_COMPARE_SWAP;
}

static bool is_send(uint8_t opcode)
{
	return opcode <= RC_SEND_ONLY || opcode == RC_SEND_ONLY_INVALIDATE;
}

static void build_from(const struct captured_frame *from)
{
	uint8_t opcode = captured_opcode(from);

	memcpy(frame.byte, from->bth, from->length);
	frame.length = from->length;
	put_at(FRAME_DESTINATION, server.qp->number, 3);
	if (has_reth(opcode) || is_atomic(opcode)) {
		uint64_t address = (uint64_t)captured_big(from->bth + FRAME_BTH, 4) << 32 |
				   captured_big(from->bth + FRAME_BTH + 4, 4);

		put_at(FRAME_BTH, (uintptr_t)device.memory + target_of(address), 8);
		put_at(FRAME_BTH + 8, mkey_number(device.region), 4);
		message.at = target_of(address);
	}
	if (opcode == RC_SEND_ONLY_INVALIDATE)
		put_at(FRAME_BTH, mkey_number(invalidated), 4);
}

static void expect_read(const char *what, uint32_t psn, uint32_t length)
{
	uint32_t packets = length ? (length + MTU - 1) / MTU : 1;

	for (uint32_t i = 0; i < packets; i++) {
		struct wire_packet *answer = wire_take();
		uint8_t opcode = packets == 1      ? RC_READ_RESPONSE_ONLY
				 : i == 0          ? RC_READ_RESPONSE_FIRST
				 : i < packets - 1 ? RC_READ_RESPONSE_MIDDLE
						   : RC_READ_RESPONSE_LAST;

		if (!answer)
			fail_msg("%s: %u of %u responses", what, i, packets);
		assert_int_equal(answer->opcode, opcode);
		assert_int_equal(answer->psn, psn_add(psn, i));
		assert_int_equal(answer->length, i < packets - 1 ? MTU : length - i * MTU);
		assert_memory_equal(answer->payload, device.memory + message.at + i * MTU, answer->length);
		free(answer);
	}
	expect_silence(what);
}

/* Expects a fetch-and-add of 1; an unaligned one is invalid (IBTA C9-94). */
static void expect_atomic(const char *what, uint32_t psn)
{
	struct wire_packet *answer;
	uint64_t original;

	if (message.at % 8) {
		expect_refused(what, NAK_INVALID_REQUEST, psn);
		return;
	}
	memcpy(&original, hostile_expected + message.at, 8);
	answer = wire_take();
	assert_non_null(answer);
	assert_int_equal(answer->opcode, RC_ATOMIC_ACKNOWLEDGE);
	assert_int_equal(answer->psn, psn);
	assert_int_equal(answer->original, original);
	free(answer);
	original++;
	memcpy(hostile_expected + message.at, &original, 8);
}

static void expect_received(const struct captured_frame *from, uint32_t headers_length)
{
	uint8_t opcode = captured_opcode(from);
	uint32_t bytes = from->length - headers_length - (from->bth[1] >> 4 & 3);

	memcpy(hostile_expected + PLACES + message.place * PLACE_BYTES + message.sent, from->bth + headers_length,
	       bytes);
	message.sent += bytes;
	if (opcode == RC_SEND_FIRST || opcode == RC_SEND_MIDDLE)
		return;
	assert_int_equal(expect_receive((uint16_t)message.place, message.sent),
			 opcode == RC_SEND_ONLY_INVALIDATE ? MLX5_CQE_RESP_SEND_INV : MLX5_CQE_RESP_SEND);
	message.place++;
	message.sent = 0;
}

static void expect_executed(const struct captured_frame *from)
{
	uint8_t opcode = captured_opcode(from);
	uint32_t psn = captured_psn(from), start;
	char what[80];

	snprintf(what, sizeof(what), "%s, frame %u", from->file, from->number);
	if (opcode == RC_READ_REQUEST) {
		expect_read(what, psn, captured_big(from->bth + FRAME_BTH + 12, 4));
	} else if (is_atomic(opcode)) {
		expect_atomic(what, psn);
	} else {
		start = FRAME_BTH + (has_reth(opcode) ? 16 : opcode == RC_SEND_ONLY_INVALIDATE ? 4 : 0);
		if (is_send(opcode)) {
			expect_received(from, start);
		} else {
			memcpy(hostile_expected + message.at, from->bth + start, from->length - start);
			message.at += from->length - start;
		}
		if (from->bth[FRAME_ACKNOWLEDGE] & 0x80)
			expect_acknowledge(what, ACKNOWLEDGED, psn);
		expect_silence(what);
	}
	memory_is_right(what);
}

/* Returns true if @from, a request of rxe, is the first of its queue pair in the file. */
static bool begins(const struct captured_frame *from)
{
	for (const struct captured_frame *before = captured.frame; before < from; before++)
		if (before->from_rxe && captured_opcode(before) < RC_READ_RESPONSE_FIRST &&
		    captured_qpn(before) == captured_qpn(from))
			return false;
	return true;
}

static bool is_request(const struct captured_frame *from)
{
	uint8_t opcode = captured_opcode(from);

	return from->from_rxe && (has_reth(opcode) || is_atomic(opcode) || is_send(opcode) ||
				  opcode == RC_WRITE_MIDDLE || opcode == RC_WRITE_LAST);
}

/* Executes the requests of each connection in order. */
TEST(requests)
{
	unsigned int executed = 0;

	for (size_t i = 0; i < FILES; i++) {
		captured_read(&captured, files[i]);
		for (unsigned int k = 0; k < captured.count; k++) {
			const struct captured_frame *from = &captured.frame[k];

			if (!is_request(from))
				continue;
			if (begins(from)) {
				begin_at(captured_psn(from));
				message.place = message.sent = 0;
			}
			build_from(from);
			assert_true(feed());
			expect_executed(from);
			executed++;
		}
	}
	assert_int_equal(executed, 34);
}

/* ---- answers of rxe ---------------------------------------------------------------------------------------------- */

/* Posts a request with sequence number @psn, of the kind of @request, or a SEND if there is none. */
static void post_like(const struct captured_frame *request, uint32_t psn)
{
	uint8_t opcode = request ? captured_opcode(request) : RC_SEND_ONLY;
	uint32_t length = has_reth(opcode) ? captured_big(request->bth + FRAME_BTH + 12, 4) : 8;

	begin_at(0);
	server.qp->requester.psn = server.qp->requester.newest = psn;
	server.qp->requester.acknowledged = psn_add(psn, PSN_MASK);
	put_request(&server,
		    opcode == RC_READ_REQUEST ? MLX5_OPCODE_RDMA_READ
		    : has_reth(opcode)        ? MLX5_OPCODE_RDMA_WRITE
		    : is_atomic(opcode)       ? MLX5_OPCODE_ATOMIC_FA
					      : MLX5_OPCODE_SEND,
		    0, 8192, length, 0, 0);
	ring(&server);
	for (struct wire_packet *sent = wire_take(); sent; sent = wire_take())
		free(sent);
}

/* Returns the request of softhca that rxe answers, the last one of its flow. */
static const struct captured_frame *request_of(const struct captured_frame *answer)
{
	const struct captured_frame *found = NULL;

	for (const struct captured_frame *from = captured.frame; from < answer; from++)
		if (!from->from_rxe && from->source_port == answer->source_port &&
		    captured_psn(from) == captured_psn(answer))
			found = from;
	return found;
}

static void expect_end(const char *what, uint8_t syndrome)
{
	const struct mlx5_err_cqe *cqe = raw_cq_poll(&server_cq);
	uint8_t got;

	if (!cqe)
		fail_msg("%s: no completion", what);
	got = cqe->op_own >> 4 == MLX5_CQE_REQ_ERR ? cqe->syndrome : 0;
	if (got != syndrome)
		fail_msg("%s: syndrome %02x, not %02x", what, got, syndrome);
}

/* An RNR NAK with code 12 (IBTA table 45: 0.64 ms): the request is sent again after that time. */
static void expect_repetition(const char *what, uint32_t psn)
{
	struct wire_packet *again;

	assert_null(raw_cq_poll(&server_cq));
	expect_silence(what);
	assert_int_equal(wire_clock_left(), 640000);
	assert_true(wire_clock_next());
	again = wire_take();
	assert_non_null(again);
	assert_int_equal(again->psn, psn);
	free(again);
}

static void expect_taken(const struct captured_frame *answer)
{
	static const uint8_t ends[] = {0, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR,
				       MLX5_CQE_SYNDROME_REMOTE_OP_ERR};
	uint8_t syndrome = answer->bth[FRAME_BTH];
	char what[80];

	snprintf(what, sizeof(what), "%s, frame %u, syndrome %02x", answer->file, answer->number, syndrome);
	switch (syndrome) {
	case 0x1f:
		expect_end(what, 0);
		break;
	case 0x2c:
		expect_repetition(what, captured_psn(answer));
		break;
	case 0x61:
	case 0x62:
	case 0x63:
		expect_end(what, ends[syndrome & 3]);
		break;
	default:
		fail_msg("%s: no such answer is expected", what);
	}
}

TEST(answers)
{
	unsigned int taken = 0;

	for (size_t i = 0; i < FILES; i++) {
		captured_read(&captured, files[i]);
		for (unsigned int k = 0; k < captured.count; k++) {
			const struct captured_frame *answer = &captured.frame[k];

			if (!answer->from_rxe || captured_opcode(answer) != RC_ACKNOWLEDGE)
				continue;
			post_like(request_of(answer), captured_psn(answer));
			build_from(answer);
			assert_true(feed());
			expect_taken(answer);
			taken++;
		}
	}
	assert_int_equal(taken, 30);
}

int main(void)
{
	return run_cases(.group_setup = hostile_open, .group_teardown = hostile_close);
}
