/* SPDX-License-Identifier: BSD-2-Clause */
/* Suggestions for misspelt words: the Levenshtein distance of two words, and the best of several. */
#include <string.h>

#include "tool/tool.h"

enum {
	MOST_LETTERS = 63,
	MOST_MISTAKES = 2,
};

static uint32_t least_of_three(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t smaller = a < b ? a : b;

	return smaller < c ? smaller : c;
}

/* Returns the Levenshtein distance of words of at most MOST_LETTERS. */
static uint32_t word_distance(const char *a, const char *b)
{
	size_t columns = strlen(b);
	uint32_t row[MOST_LETTERS + 1];

	for (size_t j = 0; j <= columns; j++)
		row[j] = (uint32_t)j;
	for (size_t i = 1; a[i - 1]; i++) {
		uint32_t diagonal = row[0];

		row[0] = (uint32_t)i;
		for (size_t j = 1; j <= columns; j++) {
			uint32_t above = row[j];

			row[j] = least_of_three(row[j - 1] + 1, above + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[columns];
}

bool suggestion_is_better(struct suggestion *suggestion, const char *word)
{
	size_t letters = strlen(suggestion->wanted);
	uint32_t mistakes;

	if (letters > MOST_LETTERS || strlen(word) > MOST_LETTERS)
		return false;
	mistakes = word_distance(suggestion->wanted, word);
	/* Two wrong letters, such as two swapped ones, are too many in a word of two letters. */
	if (mistakes > MOST_MISTAKES || mistakes * 2 > letters + 1)
		return false;
	if (suggestion->found && mistakes >= suggestion->mistakes)
		return false;
	suggestion->found = true;
	suggestion->mistakes = mistakes;
	return true;
}
