/* SPDX-License-Identifier: BSD-2-Clause */
/* The warnings about misuse find the memory of each opcode that has data segments (lint/segments.c). */
#include "test_case.h"

#include "../support/umr_fixture.h"
#include "lint/state.h"

/* Classes without data segments. DUMP, and atomics with masks (0x14 and 0x15), exist in raw WQEs only. */
static const char without[] = " NOP UMR SET_PSV DUMP LATER REFUSED ";

static const struct {
	uint8_t code;
	const char *name, *class;
} opcodes[] = {
#define WQE_OPCODE(code, name, class, message, transports) {code, #name, " " #class " "},
#include "format/wqe_opcodes.def"
};

TEST(each_opcode)
{
	struct fixture *fixture = fixture_new();
	struct lint_send send;

	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		bool masked = opcodes[i].code == 0x14 || opcodes[i].code == 0x15;

		memset(fixture->ring, 0, 64);
		fixture->ring[3] = opcodes[i].code;
		fixture->ring[7] = 4;
		lint_send_read(&fixture->qp, 0, &send);
		if (!send.pieces != (masked || strstr(without, opcodes[i].class)))
			fail_msg("%s: %u pieces", opcodes[i].name, send.pieces);
	}
	fixture_free(fixture);
}

int main(void)
{
	return run_cases();
}
