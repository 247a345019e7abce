/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Check of the order of queue locks (core/locks.def) at run time: a thread that waits for a lock holds none of its
 * level or of a later one. Enabled in builds with sanitizers (SOFTHCA_CHECK_LOCK_ORDER); elsewhere these are no-ops.
 *
 * Each thread records the locks that it has taken and not released. A lock that the program holds between two of its
 * calls, as from ibv_wr_start(3) to ibv_wr_complete(3), is not checked, because the program decides how it nests these.
 * An elided lock is not checked either.
 */
#ifndef SOFTHCA_CORE_LOCK_ORDER_H
#define SOFTHCA_CORE_LOCK_ORDER_H

struct queue_lock;

#ifdef SOFTHCA_CHECK_LOCK_ORDER

/** Checks that this thread may wait for @lock. Ends the process with a line on stderr if it may not. */
void lock_order_waits(const struct queue_lock *lock);
/** Records that this thread has taken @lock. */
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
