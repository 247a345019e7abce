/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection against RLIMIT_FSIZE (setrlimit(2)): growing a file beyond it, memfd_create(2) files included, raises
 * SIGXFSZ, which ends the program. Between these two calls it fails with EFBIG instead.
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
	bool pending; /* the program's own signal was pending, and stays so */
};

/** Blocks SIGXFSZ in this thread, at which the signal is directed. Preserves errno. */
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

/** Makes growing a file beyond the limit fail with EFBIG until the end of the block. */
#define WITHOUT_SIZE_SIGNAL                                                                                            \
	const struct file_size_guard file_size_before __attribute__((cleanup(file_size_end), unused)) =                \
		file_size_begin()

#endif
