/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tokens of a fault script (docs/use/faults.md): words, numbers, marks, and breaks between statements. A parser sees one
 * token at a time; whoever finds that it cannot be says what would have been right, and everybody returns false.
 */
#ifndef SOFTHCA_FILTER_FAULTS_TOKEN_H
#define SOFTHCA_FILTER_FAULTS_TOKEN_H

#include "filter/faults.h"

enum token_kind { TOKEN_END, TOKEN_BREAK, TOKEN_WORD, TOKEN_NUMBER, TOKEN_MARK };

struct token {
	enum token_kind kind;
	const char *text; /* in the script */
	size_t length;
	uint32_t line, column;
	uint64_t value;    /* of a number: its integral part… */
	uint64_t fraction; /* …and 10^-9 behind the point */
	bool decimal;      /* it has a point */
	bool huge;         /* it is beyond 64 bits */
};

struct parser {
	const char *at;
	const char *line_start;
	uint32_t line;
	struct token token;   /* the one that is next */
	const char *consumed; /* end of the one before */
	struct fault_script *script;
	struct fault_error *error;
};

/** Moves on to the next token. */
void parser_next(struct parser *parser);

/** True if @text is next. */
bool parser_next_is(const struct parser *parser, const char *text);
/** The same, and takes it. */
bool parser_take(struct parser *parser, const char *text);
/** True at the end of a statement. */
bool parser_at_end(const struct parser *parser);

/** Takes a whole number from @least to @most; @what it is, for the error. */
bool parser_number(struct parser *parser, uint64_t least, uint64_t most, const char *what, uint64_t *out);

/** The error is @text, at @token. Returns false, for the caller to return; so do the next two. */
bool parser_complain(struct parser *parser, const struct token *token, const char *text);
/** @what was expected, and not @token. */
bool parser_expected_at(struct parser *parser, const struct token *token, const char *what);
/** @what was expected, and not what is next. */
bool parser_expected(struct parser *parser, const char *what);

#endif
