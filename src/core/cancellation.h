/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection against pthread_cancel(3): a thread that is cancelled inside the library must not leave a lock held or a
 * requester running. Many system calls are cancellation points (pthreads(7)), so a function that makes one declares
 * WITHOUT_CANCELLATION. progress/DESIGN.md lists the remaining cancellation points.
 */
#ifndef SOFTHCA_CORE_CANCELLATION_H
#define SOFTHCA_CORE_CANCELLATION_H

#include <pthread.h>

static inline int cancellation_disable(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void cancellation_restore(const int *before)
{
	pthread_setcancelstate(*before, NULL);
}

/** Disables cancellation until the end of the block. Nests. */
#define WITHOUT_CANCELLATION                                                                                           \
	const int cancellation_before __attribute__((cleanup(cancellation_restore), unused)) = cancellation_disable()

/** As WITHOUT_CANCELLATION, in a call that is a cancellation point: a pending cancellation takes effect here. */
#define CANCELLATION_POINT                                                                                             \
	pthread_testcancel();                                                                                          \
	WITHOUT_CANCELLATION

#endif
