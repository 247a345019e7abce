/* SPDX-License-Identifier: BSD-2-Clause */
/* Test failures with a message, see check.h. */
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>

static char noted[160];

/* Skips the cases that tests/api/meson.build excludes because they cannot pass on a link: a pattern of their names. */
static void __attribute__((constructor)) leave_out(void)
{
	const char *pattern = getenv("SOFTHCA_TEST_SKIP");

	if (pattern)
		cmocka_set_skip_filter(pattern);
}

void note(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(noted, sizeof(noted), format, arguments);
	va_end(arguments);
}

void note_clear(void)
{
	noted[0] = '\0';
}

void fail_at(struct place place, const char *format, ...)
{
	char message[320];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	print_error("%s%s%s\n", message, noted[0] ? "\n    at: " : "", noted);
	_fail(place.file, place.line);
	abort(); /* _fail() does not return, but its declaration does not say so */
}

void expect_error_(struct place place, const char *call, int value, int error)
{
	if (value != error)
		fail_at(place, "%s is %d (%s), not %d (%s)", call, value, strerror(value), error, strerror(error));
}

void expect_null_(struct place place, const char *call, const void *object, int error)
{
	int got = errno;

	if (object)
		fail_at(place, "%s is not refused", call);
	if (got != error)
		fail_at(place, "%s sets errno to %d (%s), not %d (%s)", call, got, strerror(got), error,
			strerror(error));
}
