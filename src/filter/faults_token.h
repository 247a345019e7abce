/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tokens of a fault script (docs/use/faults.md): words, numbers, marks, and breaks between statements. The function
 * that detects an error reports what it expected, and its callers return false.
 */
#ifndef SOFTHCA_FILTER_FAULTS_TOKEN_H
#define SOFTHCA_FILTER_FAULTS_TOKEN_H

#include "filter/faults.h"

enum token_kind { TOKEN_END, TOKEN_BREAK, TOKEN_WORD, TOKEN_NUMBER, TOKEN_MARK };

struct token {
	enum token_kind kind;
	const char *text; /* points into the script */
	size_t length;
	uint32_t line, column;
	uint64_t value;    /* integral part of a number */
	uint64_t fraction; /* and its fraction, in units of 10^-9 */
	bool decimal;      /* has a decimal point */
	bool huge;         /* exceeds 64 bits */
};

struct parser {
	const char *at;
	const char *line_start;
	uint32_t line;
	struct token token;   /* next token */
	const char *consumed; /* end of the previous token */
	struct fault_script *script;
	struct fault_error *error;
};

void parser_next(struct parser *parser);

bool parser_next_is(const struct parser *parser, const char *text);
/** Consumes @text if it is next; returns true if it was. */
bool parser_take(struct parser *parser, const char *text);
/** Returns true at the end of a statement. */
bool parser_at_end(const struct parser *parser);

/** Consumes a whole number from @least to @most (@what in the error). */
bool parser_number(struct parser *parser, uint64_t least, uint64_t most, const char *what, uint64_t *out);

/** Sets the error to @text, at @token. Returns false, as do the next two. */
bool parser_complain(struct parser *parser, const struct token *token, const char *text);
/** Reports that @what was expected instead of @token. */
bool parser_expected_at(struct parser *parser, const struct token *token, const char *what);
/** As above, for the next token. */
bool parser_expected(struct parser *parser, const char *what);

#endif
