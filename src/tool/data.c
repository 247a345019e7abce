/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca data: tables and packets of a capture as JSON, for src/tool/python and other scripts. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "observe/timeline_file.h"
#include "explain/rules.h"
#include "format/opcode.h"
#include "format/wqe.h"
#include "tool/decoder.h"
#include "tool/input.h"
#include "tool/json.h"
#include "tool/tool.h"
#include "wire/packet.h"

/* libibverbs has no status above it. */
enum { MOST_STATUS = 64 };

/* ---- softhca data rules ----------------------------------------------------------------------------------------- */

static const enum explain_rule all_rules[] = {
#define RULE(number, ...) number,
#include "explain/rules.def"
#undef RULE
};

void rule_print_json(int number)
{
	const struct rule_text *rule = rule_text((enum explain_rule)number);

	printf("{\"number\":%d", number);
	json_put_member(stdout, ",", "name", rule->name);
	json_put_member(stdout, ",", "text", rule->text);
	json_put_member(stdout, ",", "source", rule->source);
	json_put_member(stdout, ",", "advice", rule->advice);
	putchar('}');
}

void rules_print_json(void)
{
	const char *separator = "[\n";

	for (size_t i = 0; i < sizeof(all_rules) / sizeof(all_rules[0]); i++, separator = ",\n") {
		fputs(separator, stdout);
		rule_print_json((int)all_rules[i]);
	}
	puts("\n]");
}

/* ---- softhca data timeline -------------------------------------------------------------------------------------- */

struct named_number {
	const char *name;
	uint64_t number;
};

#define NAMED(name, number)                                                                                            \
	{                                                                                                              \
		name, number                                                                                           \
	}

/* Constants in timeline files (observe/timeline_file.h). */
static const struct named_number numbers[] = {
	NAMED("version", TIMELINE_VERSION),
	NAMED("head_bytes", TIMELINE_HEAD_BYTES),
	NAMED("chunk_records", TIMELINE_CHUNK_RECORDS),
	NAMED("most_polls", TIMELINE_MOST_POLLS),
	NAMED("clock_ticks", TIMELINE_CLOCK_TICKS),
	NAMED("place_first", PLACE_FIRST),
	NAMED("place_last", PLACE_LAST),
	NAMED("psn_mask", PSN_MASK),
	NAMED("aeth_kind_mask", AETH_KIND_MASK),
	NAMED("aeth_code_mask", AETH_CODE_MASK),
	NAMED("aeth_ack", AETH_ACK),
	NAMED("aeth_rnr_nak", AETH_RNR_NAK),
	NAMED("aeth_nak", AETH_NAK),
	NAMED("nak_sequence", NAK_SEQUENCE),
	NAMED("nak_invalid_request", NAK_INVALID_REQUEST),
	NAMED("nak_remote_access", NAK_REMOTE_ACCESS),
	NAMED("nak_remote_operation", NAK_REMOTE_OPERATION),
	NAMED("qpt_uc", IBV_QPT_UC),
	NAMED("qpt_ud", IBV_QPT_UD),
	NAMED("wc_bind_mw", IBV_WC_BIND_MW),
	NAMED("wc_local_inv", IBV_WC_LOCAL_INV),
	NAMED("cqe_req", MLX5_CQE_REQ),
	NAMED("cqe_req_err", MLX5_CQE_REQ_ERR),
	NAMED("cqe_resp_wr_imm", MLX5_CQE_RESP_WR_IMM),
	NAMED("cqe_resp_send", MLX5_CQE_RESP_SEND),
	NAMED("cqe_resp_send_imm", MLX5_CQE_RESP_SEND_IMM),
	NAMED("cqe_resp_send_inv", MLX5_CQE_RESP_SEND_INV),
	NAMED("cqe_resp_err", MLX5_CQE_RESP_ERR),
};

/* Names by number, from 0: [NAME, "text in traces"]. */
struct name_row {
	const char *table, *name, *text;
};

static const struct name_row name_rows[] = {
#define TIMELINE_KIND(NAME, name, ...) {"kinds", #NAME, name},
#include "format/timeline_kinds.def"
#define REQUESTER_STATE(NAME, name) {"requester_states", #NAME, name},
#include "format/requester_states.def"
#define REQUESTER_ACTIVITY(NAME, name) {"requester_activities", #NAME, name},
#include "format/requester_states.def"
#define RESPONDER_STATE(NAME, name) {"responder_states", #NAME, name},
#include "format/responder_states.def"
#define RESPONDER_ACTIVITY(NAME, name) {"responder_activities", #NAME, name},
#include "format/responder_states.def"
};

static void print_name_rows(void)
{
	const char *table = "";

	for (size_t i = 0; i < sizeof(name_rows) / sizeof(name_rows[0]); i++) {
		const struct name_row *row = &name_rows[i];
		bool begins = strcmp(table, row->table) != 0;

		if (begins)
			printf("%s,\n\"%s\":[", *table ? "]" : "", row->table);
		table = row->table;
		printf("%s[\"%s\",\"%s\"]", begins ? "" : ",", row->name, row->text);
	}
	putchar(']');
}

static void print_messages(void)
{
	for (unsigned int i = 0; i < MESSAGE_COUNT; i++)
		printf("%s{\"text\":\"%s\",\"takes_receive\":%d,\"is_response\":%d,\"is_answered\":%d}",
		       i ? ",\n" : ",\n\"messages\":[", message_name(i),
		       message_has((uint8_t)i, MESSAGE_TAKES_RECEIVE) ||
			       message_has((uint8_t)i, MESSAGE_TAKES_RECEIVE_LAST),
		       message_has((uint8_t)i, MESSAGE_IS_RESPONSE), message_has((uint8_t)i, MESSAGE_IS_ANSWERED));
	printf("],\n\"acknowledge\":%d,\"read_response\":%d", MESSAGE_ACKNOWLEDGE, MESSAGE_READ_RESPONSE);
}

static void print_wqe_opcodes(void)
{
	const char *separator = ",\n\"wqe_opcodes\":{";

	for (unsigned int i = 0; i < 256; i++) {
		if (!wqe_opcodes[i].name)
			continue;
		printf("%s\"%u\":[\"%s\",%u]", separator, i, wqe_opcodes[i].name, wqe_opcodes[i].message);
		separator = ",";
	}
	putchar('}');
}

static void print_timeline(void)
{
	printf("{\"magic\":\"" TIMELINE_MAGIC "\",\"suffix\":\"" TIMELINE_SUFFIX "\"");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		printf(",\n\"%s\":%" PRIu64, numbers[i].name, numbers[i].number);
	/* A reader with other sizes belongs to another version. */
	printf(",\n\"struct_bytes\":[%zu,%zu,%zu,%zu]", sizeof(struct timeline_head), sizeof(struct timeline_qp),
	       sizeof(struct timeline_chunk), sizeof(struct timeline_record));
	print_name_rows();
	print_messages();
	print_wqe_opcodes();
	for (int i = 0; i < MOST_STATUS; i++)
		printf("%s\"%s\"", i ? "," : ",\n\"statuses\":[", ibv_wc_status_str(i));
	puts("]}");
}

/* ---- softhca data packets --------------------------------------------------------------------------------------- */

/* Packets on a page; the others are counted. */
enum { MOST_PACKETS = 300 };

/* As `softhca decode packet`; the caller frees the text. */
static char *packet_fields_text(const struct capture_packet *packet)
{
	struct decoder decoder;
	size_t length;
	char *text;
	FILE *memory = open_memstream(&text, &length);

	if (!memory)
		tool_fail(EXIT_FAILURE, "out of memory");
	decoder_begin(&decoder, packet->bytes, packet->length, memory);
	decode_packet(&decoder, packet_begin_of(packet->link_type));
	/* cppcheck-suppress nullPointerRedundantCheck */
	if (fclose(memory))
		tool_fail(EXIT_FAILURE, "out of memory");
	return text;
}

static void print_packet(const struct capture_packet *packet)
{
	static const char *const ways[] = {"", "in", "out", ""};
	char *fields = packet_fields_text(packet);

	printf("{\"ns\":%" PRIu64 ",\"direction\":\"%s\",\"bytes\":%zu", packet->ns, ways[packet->direction & 3],
	       packet->length);
	json_put_member(stdout, ",", "comment", packet->comment);
	json_put_member(stdout, ",", "fields", fields);
	putchar('}');
	free(fields);
}

/* Prints null unless the file is a capture; stops at damage. */
static void print_packets(const char *name)
{
	const char *separator = "{\"packets\":[\n";
	FILE *file = input_open(name);
	uint64_t count = 0;
	struct input begin;
	struct capture *capture = capture_begin(file, &begin);
	struct capture_packet packet;

	if (!capture) {
		puts("null");
		free(begin.bytes);
		fclose(file);
		return;
	}
	while (capture_next(capture, &packet) == CAPTURE_PACKET) {
		if (count++ >= MOST_PACKETS)
			continue;
		fputs(separator, stdout);
		separator = ",\n";
		print_packet(&packet);
	}
	printf("%s],\"count\":%" PRIu64 "}\n", count ? "\n" : separator, count);
	capture_end(capture);
	fclose(file);
}

int command_data(int argc, char **argv)
{
	int count = own_options_parse(COMMAND_DATA, argc, argv, NULL);

	if (count == 1 && !strcmp(argv[1], "timeline"))
		print_timeline();
	else if (count == 1 && !strcmp(argv[1], "rules"))
		rules_print_json();
	else if (count == 2 && !strcmp(argv[1], "packets"))
		print_packets(argv[2]);
	else
		tool_fail(EXIT_WRONG_USE, "data: say which: timeline, rules, or packets FILE");
	return EXIT_SUCCESS;
}
