/* SPDX-License-Identifier: BSD-2-Clause */
/* See docs/use/faults.md: one function per rule of the grammar. */
#include <errno.h>
#include <stdio.h>

#include "filter/faults_token.h"
#include "format/cm_message.h"

/* ---- conditions ------------------------------------------------------------------------------------------------ */

/* Clauses that a rule already contains. */
struct said {
	bool on, of, of_qp, to_qp, at, from, length;
};

static bool parse_once(struct parser *parser, bool *said)
{
	if (*said)
		return parser_complain(parser, &parser->token, "this was already given");
	*said = true;
	return true;
}

static bool parse_transport(struct parser *parser, struct fault_rule *rule)
{
	static const char *const names[FAULT_TRANSPORTS] = {
		[FAULT_RC] = "rc", [FAULT_UC] = "uc", [FAULT_UD] = "ud", [FAULT_XRC] = "xrc", [FAULT_DC] = "dc"};

	for (int i = 0; i < FAULT_TRANSPORTS; i++)
		if (parser_take(parser, names[i])) {
			rule->transports |= (uint16_t)(1u << i);
			return true;
		}
	return parser_expected(parser, "rc, uc, ud, xrc or dc");
}

#define KIND(name) (1u << FAULT_##name)

_Static_assert(FAULT_KINDS <= 32, "kinds are bits of a word");

#define CM_MESSAGE(NAME, ...) | KIND(CM_##NAME)
enum {
	CM_KINDS = 0
#include "format/cm_messages.def"
};

/* "cm" matches all CM messages, "cm rep" one, "cm sidr req" one with two words. */
static bool parse_cm(struct parser *parser, struct fault_rule *rule)
{
	static const struct {
		const char *name, *more;
		uint32_t kind;
	} messages[] = {
		{"req", NULL, KIND(CM_REQ)},   {"mra", NULL, KIND(CM_MRA)},        {"rej", NULL, KIND(CM_REJ)},
		{"rep", NULL, KIND(CM_REP)},   {"rtu", NULL, KIND(CM_RTU)},        {"dreq", NULL, KIND(CM_DREQ)},
		{"drep", NULL, KIND(CM_DREP)}, {"sidr", "req", KIND(CM_SIDR_REQ)}, {"sidr", "rep", KIND(CM_SIDR_REP)},
	};
	_Static_assert(sizeof(messages) / sizeof(messages[0]) == CM_MESSAGE_KINDS - 1, "each message has its words");
	bool sidr = parser_take(parser, "sidr");

	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		const char *word = messages[i].more;

		if (sidr != (word != NULL) || !parser_take(parser, word ? word : messages[i].name))
			continue;
		rule->kinds |= messages[i].kind;
		return true;
	}
	if (sidr)
		return parser_expected(parser, "\"req\" or \"rep\"");
	rule->kinds |= CM_KINDS;
	return true;
}

static bool parse_kind(struct parser *parser, struct fault_rule *rule)
{
	enum {
		REQUESTS = KIND(SEND) | CM_KINDS | KIND(WRITE) | KIND(READ) | KIND(ATOMIC) | KIND(DISCONNECT),
		RESPONSES = KIND(READ_RESPONSE) | KIND(ATOMIC_RESPONSE) | KIND(ACK) | KIND(NAK) | KIND(RNR_NAK),
	};
	static const struct {
		const char *name, *more; /* second word */
		uint32_t kinds, kinds_with_more;
	} kinds[] = {
		{"send", NULL, KIND(SEND) | CM_KINDS, 0},
		{"write", NULL, KIND(WRITE), 0},
		{"read", "response", KIND(READ), KIND(READ_RESPONSE)},
		{"atomic", "response", KIND(ATOMIC), KIND(ATOMIC_RESPONSE)},
		{"ack", NULL, KIND(ACK), 0},
		{"nak", NULL, KIND(NAK), 0},
		{"rnr", "nak", 0, KIND(RNR_NAK)},
		{"cnp", NULL, KIND(CNP), 0},
		{"request", NULL, REQUESTS, 0},
		{"response", NULL, RESPONSES, 0},
	};

	if (parser_take(parser, "cm"))
		return parse_cm(parser, rule);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		uint32_t found;

		if (!parser_take(parser, kinds[i].name))
			continue;
		found = kinds[i].more && parser_take(parser, kinds[i].more) ? kinds[i].kinds_with_more : kinds[i].kinds;
		if (!found)
			return parser_expected(parser, "\"nak\"");
		rule->kinds |= found;
		return true;
	}
	return parser_expected(parser,
			       "qp, send, write, read, read response, atomic, atomic response, ack, nak, rnr nak, cnp, "
			       "cm, request or response");
}

static bool parse_each(struct parser *parser, struct fault_rule *rule,
		       bool (*parse)(struct parser *parser, struct fault_rule *rule))
{
	do {
		if (!parse(parser, rule))
			return false;
	} while (parser_take(parser, ","));
	return true;
}

static bool parse_qpn(struct parser *parser, uint32_t *out)
{
	uint64_t number = 0;

	if (!parser_number(parser, 0, 0xffffff, "the number of a QP, 0 to 0xffffff", &number))
		return false;
	*out = (uint32_t)number;
	return true;
}

static bool parse_of(struct parser *parser, struct fault_rule *rule, struct said *said)
{
	if (parser_next_is(parser, "qp")) {
		rule->of_qp = true;
		return parse_once(parser, &said->of_qp) && parser_take(parser, "qp") &&
		       parse_qpn(parser, &rule->sender);
	}
	return parse_once(parser, &said->of) && parse_each(parser, rule, parse_kind);
}

static bool parse_first(struct parser *parser, struct fault_rule *rule)
{
	if (!parser_take(parser, "packet"))
		return parser_expected(parser, "\"packet\"");
	return parser_number(parser, 1, UINT64_MAX / 64, "the number of a packet, from 1", &rule->first);
}

static bool parse_length(struct parser *parser, struct fault_rule *rule)
{
	if (!parser_number(parser, 1, UINT64_MAX / 64, "how many packets, from 1", &rule->count))
		return false;
	if (!parser_take(parser, "packets") && !parser_take(parser, "packet"))
		return parser_expected(parser, "\"packets\"");
	return true;
}

static bool parse_condition(struct parser *parser, struct fault_rule *rule, struct said *said, bool *found)
{
	*found = true;
	if (parser_next_is(parser, "on"))
		return parse_once(parser, &said->on) && parser_take(parser, "on") &&
		       parse_each(parser, rule, parse_transport);
	if (parser_take(parser, "of"))
		return parse_of(parser, rule, said);
	if (parser_take(parser, "to")) {
		if (!parser_next_is(parser, "qp"))
			return parser_expected(parser, "\"qp\"");
		rule->to_qp = true;
		return parse_once(parser, &said->to_qp) && parser_take(parser, "qp") &&
		       parse_qpn(parser, &rule->destination);
	}
	if (parser_next_is(parser, "at") || parser_next_is(parser, "from")) {
		if (said->at || said->from)
			return parser_complain(parser, &parser->token, "this was already given");
		*(parser_next_is(parser, "at") ? &said->at : &said->from) = true;
		parser_next(parser);
		return parse_first(parser, rule);
	}
	if (parser_next_is(parser, "for"))
		return parse_once(parser, &said->length) && parser_take(parser, "for") && parse_length(parser, rule);
	*found = false;
	return true;
}

/* ---- actions --------------------------------------------------------------------------------------------------- */

/* Parses a percentage (up to six decimals), a count, or nothing, which means all. */
static bool parse_amount(struct parser *parser, struct fault_rule *rule, struct said *said)
{
	struct token number = parser->token;

	if (number.kind != TOKEN_NUMBER)
		return true;
	parser_next(parser);
	if (parser_take(parser, "%")) {
		if (number.value > 100 || (number.value == 100 && number.fraction))
			return parser_expected_at(parser, &number, "a share of 0% to 100%");
		rule->share = (uint32_t)(number.value * (FAULT_ALWAYS / 100) +
					 number.fraction / (1000000000 / (FAULT_ALWAYS / 100)));
		return true;
	}
	if (number.decimal)
		return parser_expected(parser, "\"%\"");
	if (!number.value || number.huge)
		return parser_expected_at(parser, &number, "a share (1%) or how many packets, from 1");
	if (said->length)
		return parser_complain(parser, &number, "\"for\" already gives the number of packets");
	rule->count = number.value;
	said->length = true;
	return true;
}

static bool parse_time(struct parser *parser, uint64_t *out)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	struct token number = parser->token;

	if (number.kind != TOKEN_NUMBER)
		return parser_expected(parser, "a time, such as 50us");
	parser_next(parser);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!parser_take(parser, units[i].name))
			continue;
		if (number.value > UINT64_C(3600000000000) / units[i].ns)
			return parser_expected_at(parser, &number, "a time of at most one hour");
		*out = number.value * units[i].ns + number.fraction / (1000000000 / units[i].ns);
		return true;
	}
	return parser_expected(parser, "ns, us, ms or s");
}

static bool parse_delay(struct parser *parser, struct fault_rule *rule, struct said *said)
{
	struct token longest;

	if (!parse_time(parser, &rule->least_ns))
		return false;
	rule->most_ns = rule->least_ns;
	if (parser_take(parser, "..")) {
		longest = parser->token;
		if (!parse_time(parser, &rule->most_ns))
			return false;
		if (rule->most_ns < rule->least_ns)
			return parser_expected_at(parser, &longest, "a time not shorter than the first");
	}
	return parse_amount(parser, rule, said);
}

static bool parse_reorder(struct parser *parser, struct fault_rule *rule, struct said *said)
{
	uint64_t by = 1;

	if (!parse_amount(parser, rule, said))
		return false;
	if (parser_take(parser, "by") && !parser_number(parser, 1, 1000, "how many packets overtake, 1 to 1000", &by))
		return false;
	rule->by = (uint32_t)by;
	return true;
}

static bool parse_corrupt(struct parser *parser, struct fault_rule *rule, struct said *said)
{
	if (parser_take(parser, "payload"))
		rule->action = FAULT_CORRUPT_PAYLOAD;
	else if (parser_take(parser, "frame"))
		rule->action = FAULT_CORRUPT_FRAME;
	else
		return parser_expected(parser, "\"payload\" or \"frame\"");
	return parse_amount(parser, rule, said);
}

static bool parse_nothing(struct parser *parser, struct fault_rule *rule, struct said *said)
{
	(void)parser;
	(void)rule;
	(void)said;
	return true;
}

static const struct action {
	const char *name;
	enum fault_action action;
	bool (*parse)(struct parser *parser, struct fault_rule *rule, struct said *said);
} actions[] = {
	{"drop", FAULT_DROP, parse_amount},        {"duplicate", FAULT_DUPLICATE, parse_amount},
	{"reorder", FAULT_REORDER, parse_reorder}, {"corrupt", FAULT_CORRUPT_FRAME, parse_corrupt},
	{"delay", FAULT_DELAY, parse_delay},       {"rnr", FAULT_RNR, parse_amount},
	{"kill", FAULT_KILL, parse_nothing},
};

static void rule_limit(struct fault_rule *rule)
{
	uint16_t transports = (1u << FAULT_TRANSPORTS) - 1;
	uint32_t kinds = (1u << FAULT_KINDS) - 1;

	/* Only a reliable responder sends an RNR NAK; the masks of an atomic are not payload. */
	if (rule->action == FAULT_RNR) {
		transports = 1u << FAULT_RC | 1u << FAULT_XRC | 1u << FAULT_DC;
		kinds = KIND(SEND) | KIND(WRITE);
	}
	if (rule->action == FAULT_CORRUPT_PAYLOAD)
		kinds = KIND(SEND) | CM_KINDS | KIND(WRITE) | KIND(READ_RESPONSE);
	rule->transports = rule->transports ? rule->transports & transports : transports;
	rule->kinds = rule->kinds ? rule->kinds & kinds : kinds;
}

static bool parse_action(struct parser *parser, struct fault_rule *rule, struct said *said)
{
	struct token name = parser->token;

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (!parser_take(parser, actions[i].name))
			continue;
		rule->action = actions[i].action;
		if (!actions[i].parse(parser, rule, said))
			return false;
		rule_limit(rule);
		if (!rule->transports || !rule->kinds)
			return parser_expected_at(parser, &name, "an action that can happen to these packets");
		return true;
	}
	return parser_expected(parser,
			       "seed, a condition (on, of, to, at, from, for) or an action (drop, duplicate, reorder, "
			       "corrupt, delay, rnr, kill)");
}

/* ---- statements ------------------------------------------------------------------------------------------------ */

static bool parse_rule(struct parser *parser, struct fault_rule *rule)
{
	const char *start = parser->token.text;
	struct said said = {.on = false};
	bool found;

	*rule = (struct fault_rule){.first = 1, .count = UINT64_MAX, .share = FAULT_ALWAYS};
	do {
		if (!parse_condition(parser, rule, &said, &found))
			return false;
	} while (found);
	if (!parse_action(parser, rule, &said))
		return false;
	if (said.at && !said.length)
		rule->count = 1;
	snprintf(rule->text, sizeof(rule->text), "%.*s", (int)(parser->consumed - start), start);
	return true;
}

static bool parse_seed(struct parser *parser)
{
	struct fault_script *script = parser->script;

	if (!parse_once(parser, &script->seeded))
		return false;
	parser_next(parser);
	return parser_number(parser, 0, UINT64_MAX, "a number of at most 64 bits", &script->seed);
}

_Static_assert(FAULT_RULES == 64, "a message says so");

static bool parse_statement(struct parser *parser)
{
	struct fault_script *script = parser->script;

	if (parser_next_is(parser, "seed")) {
		if (!parse_seed(parser))
			return false;
	} else {
		if (script->count == FAULT_RULES)
			return parser_complain(parser, &parser->token, "a script has at most 64 rules");
		if (!parse_rule(parser, &script->rule[script->count]))
			return false;
		script->count++;
	}
	return parser_at_end(parser) || parser_expected(parser, "\";\" or the end of the line");
}

int fault_script_parse(struct fault_script *script, const char *text, struct fault_error *error)
{
	struct parser parser = {.at = text, .line_start = text, .line = 1, .script = script, .error = error};

	*script = (struct fault_script){.count = 0};
	*error = (struct fault_error){.line = 0};
	parser_next(&parser);
	for (;;) {
		while (parser.token.kind == TOKEN_BREAK)
			parser_next(&parser);
		if (parser.token.kind == TOKEN_END)
			return 0;
		if (!parse_statement(&parser))
			return -EINVAL;
	}
}
