/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens of fault scripts, see faults_token.h. */
#include "filter/faults_token.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void skip_blanks(struct parser *parser)
{
	for (;;) {
		while (*parser->at == ' ' || *parser->at == '\t' || *parser->at == '\r')
			parser->at++;
		if (*parser->at != '#')
			return;
		while (*parser->at && *parser->at != '\n')
			parser->at++;
	}
}

static void token_read_number(struct token *token, const char **at)
{
	const char *text = *at;
	uint64_t place = 100000000;
	bool hexadecimal = text[0] == '0' && text[1] == 'x' && isxdigit((unsigned char)text[2]);
	uint64_t base = hexadecimal ? 16 : 10;

	text += hexadecimal ? 2 : 0;
	for (; hexadecimal ? isxdigit((unsigned char)*text) : isdigit((unsigned char)*text); text++) {
		uint64_t digit = (uint64_t)(isdigit((unsigned char)*text) ? *text - '0' : (*text | 0x20) - 'a' + 10);

		token->huge |= __builtin_mul_overflow(token->value, base, &token->value);
		token->huge |= __builtin_add_overflow(token->value, digit, &token->value);
	}
	if (!hexadecimal && text[0] == '.' && isdigit((unsigned char)text[1])) {
		token->decimal = true;
		for (text++; isdigit((unsigned char)*text); text++, place /= 10)
			token->fraction += place * (uint64_t)(*text - '0');
	}
	if (token->huge)
		token->value = UINT64_MAX;
	*at = text;
}

void parser_next(struct parser *parser)
{
	struct token *token = &parser->token;
	const char *start;

	parser->consumed = token->text ? token->text + token->length : parser->at;
	skip_blanks(parser);
	start = parser->at;
	*token = (struct token){
		.text = start, .line = parser->line, .column = (uint32_t)(start - parser->line_start) + 1};
	if (!*start) {
		token->kind = TOKEN_END;
	} else if (*start == ';' || *start == '\n') {
		token->kind = TOKEN_BREAK;
		parser->at++;
		if (*start == '\n') {
			parser->line++;
			parser->line_start = parser->at;
		}
	} else if (isdigit((unsigned char)*start)) {
		token->kind = TOKEN_NUMBER;
		token_read_number(token, &parser->at);
	} else if (isalpha((unsigned char)*start)) {
		token->kind = TOKEN_WORD;
		while (isalpha((unsigned char)*parser->at))
			parser->at++;
	} else if (start[0] == '.' && start[1] == '.') {
		token->kind = TOKEN_MARK;
		parser->at += 2;
	} else {
		token->kind = TOKEN_MARK;
		parser->at++;
	}
	token->length = (size_t)(parser->at - start);
}

static void token_describe(const struct token *token, char *out, size_t size)
{
	unsigned char first = (unsigned char)*token->text;
	int length = token->length < 24 ? (int)token->length : 24;

	if (token->kind == TOKEN_END)
		snprintf(out, size, "the end of the script");
	else if (token->kind == TOKEN_BREAK)
		snprintf(out, size, "%s", first == ';' ? "\";\"" : "the end of the line");
	else if (!isprint(first))
		snprintf(out, size, "byte 0x%02x", first);
	else
		snprintf(out, size, "\"%.*s%s\"", length, token->text, token->length > 24 ? "..." : "");
}

bool parser_complain(struct parser *parser, const struct token *token, const char *text)
{
	struct fault_error *error = parser->error;

	error->line = token->line;
	error->column = token->column;
	snprintf(error->text, sizeof(error->text), "%s", text);
	return false;
}

bool parser_expected_at(struct parser *parser, const struct token *token, const char *what)
{
	char found[64], text[sizeof(parser->error->text)];

	token_describe(token, found, sizeof(found));
	snprintf(text, sizeof(text), "expected %s, not %s", what, found);
	return parser_complain(parser, token, text);
}

bool parser_expected(struct parser *parser, const char *what)
{
	return parser_expected_at(parser, &parser->token, what);
}

static bool token_is(const struct token *token, const char *text)
{
	return token->length == strlen(text) && !memcmp(token->text, text, token->length);
}

bool parser_next_is(const struct parser *parser, const char *text)
{
	return token_is(&parser->token, text);
}

bool parser_take(struct parser *parser, const char *text)
{
	if (!parser_next_is(parser, text))
		return false;
	parser_next(parser);
	return true;
}

bool parser_at_end(const struct parser *parser)
{
	return parser->token.kind == TOKEN_END || parser->token.kind == TOKEN_BREAK;
}

bool parser_number(struct parser *parser, uint64_t least, uint64_t most, const char *what, uint64_t *out)
{
	const struct token *token = &parser->token;

	if (token->kind != TOKEN_NUMBER || token->decimal || token->huge || token->value < least || token->value > most)
		return parser_expected(parser, what);
	*out = token->value;
	parser_next(parser);
	return true;
}
