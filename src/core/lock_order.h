/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Check of the order of queue locks (core/locks.def) at run time, in builds with sanitizers (SOFTHCA_CHECK_LOCK_ORDER).
 * Not checked are elided locks, and those that the program holds between two calls, as from ibv_wr_start(3) to
 * ibv_wr_complete(3), because it decides how these nest.
 */
#ifndef SOFTHCA_CORE_LOCK_ORDER_H
#define SOFTHCA_CORE_LOCK_ORDER_H

struct queue_lock;

#ifdef SOFTHCA_CHECK_LOCK_ORDER

/** Ends the process with a line on stderr if this thread may not wait for @lock. */
void lock_order_waits(const struct queue_lock *lock);
void lock_order_taken(const struct queue_lock *lock);
/**
 * Records that this thread releases @lock, or that the program holds it from now on. No effect if this thread did not
 * take it.
 */
void lock_order_left(const struct queue_lock *lock);

#else

#define lock_order_waits(lock) ((void)(lock))
#define lock_order_taken(lock) ((void)(lock))
#define lock_order_left(lock) ((void)(lock))

#endif

#endif
