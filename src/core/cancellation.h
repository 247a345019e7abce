/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection against pthread_cancel(3): a thread that is cancelled inside the library must not leave a lock held or a
 * requester running. Many system calls are cancellation points (pthreads(7)), so a function that makes one declares
 * WITHOUT_CANCELLATION. Posting and polling calls that make no such system call skip this cost.
 *
 * The remaining cancellation points are those of ibv_get_cq_event(3), ibv_get_async_event(3), mlx5dv_devx_get_event(3),
 * mlx5dv_devx_get_async_cmd_comp(3) and rdma_get_cm_event(3), which block in read(2) (the first possibly on another
 * descriptor, progress/substitute_poller.h), and those of rsockets, which block in poll(2). No lock is held at any of
 * them. Asynchronous cancellation (pthread_setcanceltype(3)) is not supported, as in nearly all libraries.
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

/** Disables cancellation of the calling thread until the end of the block. Nests. */
#define WITHOUT_CANCELLATION                                                                                           \
	const int cancellation_before __attribute__((cleanup(cancellation_restore), unused)) = cancellation_disable()

/** Disables cancellation likewise, in a call that is a cancellation point: a pending cancellation takes effect here. */
#define CANCELLATION_POINT                                                                                             \
	pthread_testcancel();                                                                                          \
	WITHOUT_CANCELLATION

#endif
