/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca decode: prints bytes as named fields. */
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

static unsigned int name_index(const char *name, const char *const *names, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count && strcmp(name, names[i]) != 0; i++)
		;
	return i;
}

static struct input arguments_join(int count, char **arguments)
{
	struct input text = {NULL, 0};
	FILE *out = open_memstream((char **)&text.bytes, &text.length);

	for (int i = 0; out && i < count; i++)
		fprintf(out, "%s ", arguments[i]);
	if (!out || fclose(out))
		tool_fail(EXIT_FAILURE, "out of memory");
	return text;
}

/* Frees @text. */
static struct input input_of_hex(struct input text, int status, const char *name)
{
	struct input bytes;
	char error[256];
	bool good = input_from_hex(&text, &bytes, error, sizeof(error));

	free(text.bytes);
	if (!good)
		tool_fail(status, "%s: %s", name, error);
	return bytes;
}

/* The comment may have several lines and terminal control characters. */
static void comment_print(FILE *out, char *comment)
{
	for (char *line = strtok(comment, "\n"); line; line = strtok(NULL, "\n")) {
		for (char *at = line; *at; at++)
			if (iscntrl((unsigned char)*at))
				*at = '?';
		fprintf(out, "# %s\n", line);
	}
}

/* Returns @begin, which is freed, and the rest of @file, which holds hexadecimal digits or bytes. */
static struct input input_of_rest(FILE *file, const char *name, struct input begin)
{
	struct input input = input_read(file, name);

	if (input.length > INPUT_MOST_BYTES - begin.length)
		tool_fail(EXIT_FAILURE, "%s has more than %u bytes", name, INPUT_MOST_BYTES);
	memmove(input.bytes + begin.length, input.bytes, input.length);
	memcpy(input.bytes, begin.bytes, begin.length);
	input.length += begin.length;
	free(begin.bytes);
	return input_is_text(&input) ? input_of_hex(input, EXIT_FAILURE, name) : input;
}

/* Returns packet @number and closes @capture. *@begin: its first header. Writes its comment to @out. */
static struct input input_of_packet(struct capture *capture, const char *name, unsigned long number,
				    enum packet_begin *begin, FILE *out)
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
	comment_print(out, packet.comment);
	bytes = (struct input){malloc(packet.length + 1), packet.length};
	if (!bytes.bytes)
		tool_fail(EXIT_FAILURE, "out of memory");
	memcpy(bytes.bytes, packet.bytes, packet.length);
	capture_end(capture);
	return bytes;
}

/* Returns the bytes of a file; for a capture, as input_of_packet(). */
static struct input input_of_file(const char *name, enum what what, unsigned long number, enum packet_begin *begin,
				  FILE *out)
{
	FILE *file = input_open(name);
	struct input bytes;
	struct capture *capture = capture_begin(file, &bytes);

	if (!capture)
		return input_of_rest(file, name, bytes);
	if (what != PACKET) {
		capture_end(capture);
		tool_fail(EXIT_WRONG_USE, "decode %s: %s is a capture of packets", what_names[what], name);
	}
	return input_of_packet(capture, name, number, begin, out);
}

static unsigned long packet_number_of(const char *text)
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

static void bytes_decode(struct decoder *decoder, enum what what, enum packet_begin begin, const char *own[])
{
	const char *transport = own[OPTION_DECODE_TRANSPORT], *cqe_size = own[OPTION_DECODE_CQE_SIZE];

	switch (what) {
	case WQE:
		decode_wqes(decoder, transport ? name_index(transport, transport_names, 5) : DECODE_RC);
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

static bool is_file_name(const char *text)
{
	if (!strcmp(text, "-") || strpbrk(text, "/.") || !access(text, F_OK))
		return true;
	/* A word with other letters is probably the name of a missing file. */
	return !strpbrk(text, " \t\n,:") && text[strspn(text, "0123456789abcdefABCDEFxX")];
}

int command_decode(int argc, char **argv)
{
	const char *own[OWN_OPTION_COUNT] = {0};
	int count = own_options_parse(COMMAND_DECODE, argc, argv, own);
	unsigned long number = packet_number_of(own[OPTION_DECODE_NUMBER]);
	unsigned int what = count ? name_index(argv[1], what_names, WHAT_COUNT) : WHAT_COUNT;
	enum packet_begin begin = BEGIN_ANY;
	struct decoder decoder;
	struct input input;
	size_t length;
	char *text = NULL;
	FILE *out;

	if (what == WHAT_COUNT)
		tool_fail(EXIT_WRONG_USE, "decode: say what it is: wqe, cqe, mkey, bsf or packet");
	if (count < 2)
		tool_fail(EXIT_WRONG_USE, "decode %s: no bytes given (hexadecimal digits, a file, or -)", argv[1]);
	out = own[OPTION_DECODE_JSON] ? open_memstream(&text, &length) : stdout;
	if (!out)
		tool_fail(EXIT_FAILURE, "out of memory");
	if (count == 2 && is_file_name(argv[2]))
		input = input_of_file(argv[2], what, number, &begin, out);
	else
		input = input_of_hex(arguments_join(count - 1, argv + 2), EXIT_WRONG_USE, argv[1]);
	decoder_begin(&decoder, input.bytes, input.length, out);
	bytes_decode(&decoder, what, begin, own);
	free(input.bytes);
	if (own[OPTION_DECODE_JSON]) {
		if (fclose(out))
			tool_fail(EXIT_FAILURE, "out of memory");
		decoded_print_json(stdout, text, decoder.fault);
		free(text);
	}
	if (!*decoder.fault)
		return EXIT_SUCCESS;
	fflush(stdout);
	fprintf(stderr, "softhca: %s\n", decoder.fault);
	return EXIT_FAILURE;
}
