/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca encode: converts the output of softhca decode back to bytes. */
#include <stdio.h>
#include <stdlib.h>

#include "tool/encoder.h"
#include "tool/input.h"
#include "tool/tool.h"

#define BYTES_OF_A_LINE 32

static void hex_print(const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		printf("%02x%s", bytes[i], i + 1 == length || i % BYTES_OF_A_LINE == BYTES_OF_A_LINE - 1 ? "\n" : "");
}

int command_encode(int argc, char **argv)
{
	const char *own[OWN_OPTION_COUNT] = {0};
	int count = own_options_parse(COMMAND_ENCODE, argc, argv, own), length;
	const char *name = count ? argv[1] : "-";
	struct input text;
	static uint8_t bytes[ENCODER_MOST_BYTES];
	char error[256];

	if (count > 1)
		tool_fail(EXIT_WRONG_USE, "encode: unexpected argument \"%s\"", argv[2]);
	text = input_read(input_open(name), name);
	length = encode_text((const char *)text.bytes, text.length, bytes, error, sizeof(error));
	free(text.bytes);
	if (length < 0)
		tool_fail(EXIT_FAILURE, "%s: %s", name, error);
	if (own[OPTION_ENCODE_BINARY])
		fwrite(bytes, 1, (size_t)length, stdout);
	else
		hex_print(bytes, (size_t)length);
	return EXIT_SUCCESS;
}
