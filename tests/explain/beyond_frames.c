/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames that are not valid packets. */
#include "test_case.h"

#include "filter/faults.h"
#include "filter/filter.h"
#include "wire/roce.h"
#include "verbs/object/objects.h"
#include "beyond.h"

/* Delivers an invalid frame as a link does: a SEND of 8 bytes for queue pair 0x4711, with @byte set to @value. */
static void expect_frame(size_t length, size_t byte, uint8_t value, enum explain_rule rule, const char *line)
{
	uint8_t frame[64] = {0x04, 0x40, 0xff, 0xff, 0, 0, 0x47, 0x11};
	struct explain_subject subject = {.qpn = 0x4711};
	static struct packet packet;
	struct refusal why;

	frame[byte] = value;
	assert_int_equal(roce_parse(&packet, frame, length, &why), -EPROTO);
	explain_make(hca_device(0), &subject, why.rule, why.args, EXPLAIN_ARGS);
	expect_line(NULL, rule, "mlx5_0 qp 0x4711: %s", line);
}

BEYOND_CASE(FRAME_SHORT)
{
	expect_frame(19, 0, 0x0c, RULE_FRAME_SHORT,
		     "a frame has 19 bytes from BTH on, but the headers alone take 28: dropped. [183 ");
}

BEYOND_CASE(FRAME_VERSION)
{
	expect_frame(20, 1, 0x03, RULE_FRAME_VERSION,
		     "a frame for queue pair 0x4711 has transport version 3: dropped. [184 ");
}

BEYOND_CASE(FRAME_P_KEY)
{
	expect_frame(
		20, 3, 0xfe, RULE_FRAME_P_KEY,
		"a frame for queue pair 0x4711 has P_Key 0xfffe, which is not in the partition 0xffff of this port: "
		"dropped. [185 ");
}

BEYOND_CASE(FRAME_OPCODE)
{
	expect_frame(20, 0, 0x41, RULE_FRAME_OPCODE,
		     "a frame for queue pair 0x4711 has opcode 0x41, which does not exist: dropped. [186 ");
}

BEYOND_CASE(FRAME_SYNDROME)
{
	uint8_t frame[16] = {0x11, 0x40, 0xff, 0xff, 0, 0, 0x47, 0x11, [12] = 0x41};
	static struct packet packet;
	struct refusal why;

	assert_int_equal(roce_parse(&packet, frame, sizeof(frame), &why), -EPROTO);
	explain_make(hca_device(0), &(struct explain_subject){.qpn = 0x4711}, why.rule, why.args, EXPLAIN_ARGS);
	expect_line(
		NULL, RULE_FRAME_SYNDROME,
		"mlx5_0 qp 0x4711: acknowledgement for queue pair 0x4711 has syndrome 0x41, which is reserved or invalid for a response with data: dropped. [187 ");
}

BEYOND_CASE(FRAME_PAD)
{
	expect_frame(
		18, 1, 0x60, RULE_FRAME_PAD,
		"SEND for queue pair 0x4711 carries 6 bytes after its headers and declares 2 of them as padding: dropped. [188 ");
}

BEYOND_CASE(FRAME_LENGTH)
{
	expect_frame(
		32, 0, 0x0c, RULE_FRAME_LENGTH,
		"RDMA READ request for queue pair 0x4711 carries 4 bytes after its headers, but has no payload: dropped. [189 ");
}

BEYOND_CASE(FRAME_MASKS)
{
	expect_frame(
		52, 0, 0xd3, RULE_FRAME_MASKS,
		"masked compare-and-swap for queue pair 0x4711 carries 12 bytes of masks; two masks have 8 or 16: dropped. [190 ");
}

/* A fault damages the frame of a SEND after its headers. */
BEYOND_CASE(FRAME_ICRC)
{
	static struct fault_script script;
	struct fault_error where;

	assert_int_equal(fault_script_parse(&script, "corrupt frame 100%; seed 1", &where), 0);
	/* Queue pairs are connected when faults are already set. */
	close_pair(state);
	assert_int_equal(filters_set_faults(hca_device(0), &script), 0);
	open_pair(state);
	post(IBV_WR_SEND, 0);
	assert_int_equal(filters_set_faults(hca_device(0), NULL), 0);
	expect_line(
		qp[SERVER], RULE_FRAME_ICRC,
		"mlx5_0 qp 0x%x: a frame for queue pair 0x%x of 32 bytes from BTH on has a wrong ICRC: dropped. [191 ",
		qp[SERVER]->qp_num, qp[SERVER]->qp_num);
}
