/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca decode: bytes by the names of their fields. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/decoder.h"
#include "tool/input.h"
#include "tool/tool.h"

enum what { WQE, CQE, MKEY, BSF, PACKET, WHAT_COUNT };

static const char *const what_names[WHAT_COUNT] = {"wqe", "cqe", "mkey", "bsf", "packet"};
static const char *const transport_names[] = {"rc", "uc", "ud", "xrc", "dc"}; /* enum decode_transport */

static unsigned int find_name(const char *name, const char *const *names, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count && strcmp(name, names[i]) != 0; i++)
		;
	return i;
}

/* All arguments, with a blank between them. */
static struct input joined(int count, char **arguments)
{
	struct input text = {NULL, 0};
	FILE *out = open_memstream((char **)&text.bytes, &text.length);

	for (int i = 0; out && i < count; i++)
		fprintf(out, "%s ", arguments[i]);
	if (!out || fclose(out))
		tool_fail(EXIT_FAILURE, "out of memory");
	return text;
}

/* Takes @text, and frees it. */
static struct input from_hex(struct input text, int status, const char *name)
{
	struct input bytes;
	char error[256];
	bool good = input_from_hex(&text, &bytes, error, sizeof(error));

	free(text.bytes);
	if (!good)
		tool_fail(status, "%s: %s", name, error);
	return bytes;
}

/* The comment of a packet is what somebody wrote: several lines, or bytes that a terminal obeys. */
static void print_comment(char *comment)
{
	for (char *line = strtok(comment, "\n"); line; line = strtok(NULL, "\n")) {
		for (char *at = line; *at; at++)
			if (iscntrl((unsigned char)*at))
				*at = '?';
		printf("# %s\n", line);
	}
}

/* All of @file behind its @begin, which it frees: hexadecimal digits, or the bytes. */
static struct input all_of(FILE *file, const char *name, struct input begin)
{
	struct input input = input_read(file, name);

	if (input.length > INPUT_MOST_BYTES - begin.length)
		tool_fail(EXIT_FAILURE, "%s has more than %u bytes", name, INPUT_MOST_BYTES);
	memmove(input.bytes + begin.length, input.bytes, input.length);
	memcpy(input.bytes, begin.bytes, begin.length);
	input.length += begin.length;
	free(begin.bytes);
	return input_is_text(&input) ? from_hex(input, EXIT_FAILURE, name) : input;
}

/* Packet @number of @capture, which is ended; @begin: the header that it begins with. */
static struct input from_capture(struct capture *capture, const char *name, unsigned long number,
				 enum packet_begin *begin)
{
	enum capture_result result = CAPTURE_PACKET;
	struct capture_packet packet;
	struct input bytes;

	for (unsigned long i = 0; i < number && result == CAPTURE_PACKET; i++)
		result = capture_next(capture, &packet);
	if (result == CAPTURE_END)
		tool_fail(EXIT_FAILURE, "%s has no packet %lu", name, number);
	if (result == CAPTURE_BROKEN)
		tool_fail(EXIT_FAILURE, "%s: the capture is damaged before packet %lu", name, number);
	*begin = packet_begin_of(packet.link_type);
	if (*begin == BEGIN_ANY)
		tool_fail(
			EXIT_FAILURE,
			"%s: packet %lu is of link type %u; known are Ethernet (1), IP (101, 228, 229) and Linux cooked "
			"(113, 276)",
			name, number, packet.link_type);
	print_comment(packet.comment);
	bytes = (struct input){malloc(packet.length + 1), packet.length};
	if (!bytes.bytes)
		tool_fail(EXIT_FAILURE, "out of memory");
	memcpy(bytes.bytes, packet.bytes, packet.length);
	capture_end(capture);
	return bytes;
}

/* The bytes of a file, or of packet @number if it is a capture; @begin: the header that it begins with. */
static struct input from_file(const char *name, enum what what, unsigned long number, enum packet_begin *begin)
{
	FILE *file = input_open(name);
	struct input bytes;
	struct capture *capture = capture_begin(file, &bytes);

	if (!capture)
		return all_of(file, name, bytes);
	if (what != PACKET) {
		capture_end(capture);
		tool_fail(EXIT_WRONG_USE, "decode %s: %s is a capture of packets", what_names[what], name);
	}
	return from_capture(capture, name, number, begin);
}

static unsigned long packet_number(const char *text)
{
	char *end;
	unsigned long number;

	if (!text)
		return 1;
	errno = 0;
	number = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || !number)
		tool_fail(EXIT_WRONG_USE, "--number: packets are counted from 1");
	return number;
}

static void decode(struct decoder *decoder, enum what what, enum packet_begin begin, const char *own[])
{
	const char *transport = own[OPTION_DECODE_TRANSPORT], *cqe_size = own[OPTION_DECODE_CQE_SIZE];

	switch (what) {
	case WQE:
		decode_wqes(decoder, transport ? find_name(transport, transport_names, 5) : DECODE_RC);
		break;
	case CQE:
		decode_cqes(decoder, cqe_size && !strcmp(cqe_size, "128") ? 128 : 64);
		break;
	case MKEY:
		decode_mkey(decoder);
		break;
	case BSF:
		decode_bsf(decoder);
		decoder_rest(decoder, decoder->end);
		break;
	default:
		decode_packet(decoder, begin);
	}
}

static bool names_file(const char *text)
{
	if (!strcmp(text, "-") || strpbrk(text, "/.") || !access(text, F_OK))
		return true;
	/* A single word of other letters than digits: a file that is not there. */
	return !strpbrk(text, " \t\n,:") && text[strspn(text, "0123456789abcdefABCDEFxX")];
}

int command_decode(int argc, char **argv)
{
	const char *own[OWN_OPTION_COUNT] = {0};
	int count = own_options_parse(COMMAND_DECODE, argc, argv, own);
	unsigned long number = packet_number(own[OPTION_DECODE_NUMBER]);
	unsigned int what = count ? find_name(argv[1], what_names, WHAT_COUNT) : WHAT_COUNT;
	enum packet_begin begin = BEGIN_ANY;
	struct decoder decoder;
	struct input input;

	if (what == WHAT_COUNT)
		tool_fail(EXIT_WRONG_USE, "decode: say what it is: wqe, cqe, mkey, bsf or packet");
	if (count < 2)
		tool_fail(EXIT_WRONG_USE, "decode %s: no bytes given (hexadecimal digits, a file, or -)", argv[1]);
	if (count == 2 && names_file(argv[2]))
		input = from_file(argv[2], what, number, &begin);
	else
		input = from_hex(joined(count - 1, argv + 2), EXIT_WRONG_USE, argv[1]);
	decoder_begin(&decoder, input.bytes, input.length, stdout);
	decode(&decoder, what, begin, own);
	free(input.bytes);
	if (!*decoder.fault)
		return EXIT_SUCCESS;
	fflush(stdout);
	fprintf(stderr, "softhca: %s\n", decoder.fault);
	return EXIT_FAILURE;
}
