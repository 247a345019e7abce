/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pthread_cancel(3): a thread that is cancelled inside the library must not leave a lock held, or a requester running. Many
 * system calls are cancellation points (pthreads(7)), so whoever makes one does so WITHOUT_CANCELLATION. Posting and polling
 * that meet none do not pay for it.
 *
 * The points that remain are those of ibv_get_cq_event(3), ibv_get_async_event(3), mlx5dv_devx_get_event(3),
 * mlx5dv_devx_get_async_cmd_comp(3) and rdma_get_cm_event(3), which block in read(2) (the first perhaps of another descriptor, progress/substitute_poller.h), and those of rsockets, which block in poll(2): no lock is held there.
 * Asynchronous cancellation (pthread_setcanceltype(3)) is as forbidden here as in nearly all other functions.
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

/** Declares that the calling thread is not cancelled until the end of the block. Nests. */
#define WITHOUT_CANCELLATION                                                                                           \
	const int cancellation_before __attribute__((cleanup(cancellation_restore), unused)) = cancellation_disable()

/** Declares the same, in a call that is a cancellation point: a thread that is to be cancelled already is so here. */
#define CANCELLATION_POINT                                                                                             \
	pthread_testcancel();                                                                                          \
	WITHOUT_CANCELLATION

#endif
