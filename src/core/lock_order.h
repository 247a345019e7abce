/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of queue locks (core/locks.def), checked while programs run: a thread that waits for a lock holds none of its level or of
 * a later one. Builds with sanitizers have it (SOFTHCA_CHECK_LOCK_ORDER); elsewhere these functions are empty.
 *
 * A thread keeps the locks that it took and has not let go, in memory of its own. A lock that the program holds between two
 * of its calls, as from ibv_wr_start(3) to ibv_wr_complete(3), is left out: in which order a program nests these, it decides.
 * So is an elided one.
 */
#ifndef SOFTHCA_CORE_LOCK_ORDER_H
#define SOFTHCA_CORE_LOCK_ORDER_H

struct queue_lock;

#ifdef SOFTHCA_CHECK_LOCK_ORDER

/** This thread is about to wait for @lock. Ends the process, with a line on stderr, if what it holds forbids that. */
void lock_order_waits(const struct queue_lock *lock);
/** This thread has taken @lock. */
void lock_order_taken(const struct queue_lock *lock);
/** It lets @lock go, or the program holds it from now on. No harm if this thread did not take it. */
void lock_order_left(const struct queue_lock *lock);

#else

#define lock_order_waits(lock) ((void)(lock))
#define lock_order_taken(lock) ((void)(lock))
#define lock_order_left(lock) ((void)(lock))

#endif

#endif
