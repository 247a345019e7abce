/* SPDX-License-Identifier: BSD-2-Clause */
/* The setting LINT, see misuse.h. */
#include "explain/misuse.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
	uint32_t number;
	const char *name;
} rules[] = {
#define RULE(number, name, ...) {number, #name},
#include "explain/rules_misuse.def"
#undef RULE
};

#define RULES (sizeof(rules) / sizeof(rules[0]))

#define RULE(number, ...)                                                                                              \
	_Static_assert((number) >= MISUSE_FIRST && (number) < MISUSE_FIRST + MISUSE_RULES,                             \
		       "misuse_bit() has one for it");
#include "explain/rules_misuse.def"
#undef RULE

static char letter_fold(char letter)
{
	return letter == '-' ? '_' : (char)toupper((unsigned char)letter);
}

static bool word_is(const char *word, size_t length, const char *name)
{
	for (size_t i = 0; i < length; i++)
		if (!name[i] || letter_fold(word[i]) != letter_fold(name[i]))
			return false;
	return !name[length];
}

/* `on` excludes WRITE_READ_EARLY, which warns of a practice that is common although no rule permits it. */
static uint64_t all_bits(void)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < RULES; i++)
		bits |= misuse_bit(rules[i].number);
	return bits & ~misuse_bit(RULE_WRITE_READ_EARLY);
}

/* Returns 0 for an unknown word. */
static uint64_t bit_named(const char *word, size_t length)
{
	for (size_t i = 0; i < RULES; i++)
		if (word_is(word, length, rules[i].name))
			return misuse_bit(rules[i].number);
	return 0;
}

/* The environment may contain any bytes, so the message is reduced to a line of printable ASCII. */
static int word_refuse(const char *word, size_t length, char *error, size_t size)
{
	char printable[48];
	size_t i;

	for (i = 0; i < length && i + 1 < sizeof(printable); i++)
		printable[i] = word[i] >= ' ' && word[i] <= '~' ? word[i] : '?';
	printable[i] = '\0';
	snprintf(error, size, "\"%s\" is not a warning (names are in docs/use/lint.md, or: on, off, -name)", printable);
	return -EINVAL;
}

int misuse_parse(const char *text, uint64_t *wanted, char *error, size_t size)
{
	uint64_t bits = *text == '-' ? all_bits() : 0;

	for (;; text++) {
		size_t length = strcspn(text, ",");
		bool without = *text == '-';
		uint64_t bit = bit_named(text + without, length - without);

		if (word_is(text, length, "on"))
			bits = all_bits();
		else if (word_is(text, length, "off"))
			bits = 0;
		else if (!bit)
			return word_refuse(text, length, error, size);
		else if (without)
			bits &= ~bit;
		else
			bits |= bit;
		text += length;
		if (!*text)
			break;
	}
	*wanted = bits;
	return 0;
}
