/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Failures of helpers: they are reported at the line of the test that called the helper, with the expected and the
 * actual value. Helpers that check are macros that pass HERE to a function of the same name and an underscore. Nothing
 * in support/ is thread safe; a test program has one thread.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_CHECK_H
#define SOFTHCA_TESTS_API_SUPPORT_CHECK_H

#include "test_case.h"
#include "work_request.h"

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

struct place {
	const char *file;
	int line;
};

#define HERE ((struct place){__FILE__, __LINE__})

/** Fails the running test (longjmp, as all of cmocka) at @place with a message and the note. */
__attribute__((noreturn, format(printf, 2, 3))) void fail_at(struct place place, const char *format, ...);

/**
 * Describes the current step of the test, printed if it fails: "rights 0x6, READ". Valid until the next note or the end
 * of the test.
 */
__attribute__((format(printf, 1, 2))) void note(const char *format, ...);
void note_clear(void);

/** Expects the errno value that a call returns; a failure shows its name. */
#define expect_error(value, error) expect_error_(HERE, #value, value, error)
void expect_error_(struct place place, const char *call, int value, int error);

/** Expects NULL from a call that creates an object, with @error in errno. */
#define expect_null(call, error) expect_null_(HERE, #call, (errno = 0, (const void *)(call)), error)
void expect_null_(struct place place, const char *call, const void *object, int error);

#endif
