/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The udp link: RoCEv2 packets (wire/roce.h) in UDP datagrams, to and from other hosts.
 *
 * Each process sends by itself. One process of each host (network namespace) receives: it has the port, and forwards
 * packets for QPs of other processes (link/shm/shm.h). The other processes of its user share its socket, and one of
 * them receives when that process ends or is stopped. See parts.h for the implementation.
 */
#ifndef SOFTHCA_LINK_UDP_UDP_H
#define SOFTHCA_LINK_UDP_UDP_H

#include "wire/link.h"

/**
 * Makes this process receive what other hosts send to its QPs: takes the port, or finds the process that has it and
 * takes over when that process ends. Starts the device thread. Cheap after the first call. Any thread; may be called
 * under a QP's lock.
 */
void udp_begin(struct hca *hca);

/* Use udp_holding(). */
extern uint32_t udp_held_flow;

/** Returns nonzero if an acknowledgement waits for the program's reply. Any thread. */
static inline uint32_t udp_holding(void)
{
	/* Not only acquire: the timer (held.c) stores that it is not armed, then loads this. */
	return __atomic_load_n(&udp_held_flow, __ATOMIC_SEQ_CST);
}

/** Sends the held acknowledgement if it has waited for @age_ns. Any thread; may be called under a QP's lock. */
void udp_held_release(uint64_t age_ns);

/** Sends the held acknowledgement before other packets that must not overtake it. As udp_held_release(). */
static inline void udp_let_go(void)
{
	if (__builtin_expect(udp_holding() != 0, 0))
		udp_held_release(0);
}

/**
 * Around a fork: holds the lock of the port, so that the child, which closes the inherited descriptors, finds all of
 * them recorded.
 */
void udp_before_fork(void);
void udp_after_fork(bool child);

/** Returns the link to QPs of other hosts. */
const struct link *link_udp(void);

#endif
