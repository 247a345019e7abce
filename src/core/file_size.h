/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RLIMIT_FSIZE (setrlimit(2)): what makes a file longer than that, memfd_create(2)'s too, raises SIGXFSZ, which ends a
 * program that does not know of any file. A call between these two fails with EFBIG instead.
 */
#ifndef SOFTHCA_CORE_FILE_SIZE_H
#define SOFTHCA_CORE_FILE_SIZE_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct file_size_guard {
	sigset_t before;
	bool pending; /* the program's own, which stays */
};

/** The signal is for this thread alone, so that holding it back here is enough. Keeps errno. */
static inline struct file_size_guard file_size_begin(void)
{
	struct file_size_guard guard;
	sigset_t signal, pending;

	sigemptyset(&signal);
	sigaddset(&signal, SIGXFSZ);
	if (sigpending(&pending))
		sigemptyset(&pending);
	guard.pending = sigismember(&pending, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &signal, &guard.before);
	return guard;
}

static inline void file_size_end(const struct file_size_guard *guard)
{
	const struct timespec now = {0};
	int error = errno;
	sigset_t signal;

	sigemptyset(&signal);
	sigaddset(&signal, SIGXFSZ);
	if (error == EFBIG && !guard->pending)
		sigtimedwait(&signal, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
	errno = error;
}

/** Declares that until the end of the block a file that would be too long is EFBIG. */
#define WITHOUT_SIZE_SIGNAL                                                                                            \
	const struct file_size_guard file_size_before __attribute__((cleanup(file_size_end), unused)) =                \
		file_size_begin()

#endif
