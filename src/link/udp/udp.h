/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The udp link: RoCEv2 packets (wire/roce.h) in UDP datagrams, to and from other hosts.
 *
 * Sending is each process's own business. Receiving is that of one process of the host (of its network namespace): it has
 * the port, and hands on what is for QPs of others (link/shm/shm.h). The others of its user have the same socket, and one of them
 * receives when that process ends or is stopped. See parts.h for how it is made.
 */
#ifndef SOFTHCA_LINK_UDP_UDP_H
#define SOFTHCA_LINK_UDP_UDP_H

#include "wire/link.h"

/**
 * From now on this process receives what other hosts send to its QPs: takes the port, or finds out who has it, and takes
 * over when that process ends. Starts the device thread. Cheap when it has begun. Any thread; may be called under a QP's
 * lock.
 */
void udp_begin(struct hca *hca);

/* Use udp_holding(). */
extern uint32_t udp_held_flow;

/** Not 0: an acknowledgement waits for what the program sends in answer. Any thread. */
static inline uint32_t udp_holding(void)
{
	return __atomic_load_n(&udp_held_flow, __ATOMIC_ACQUIRE);
}

/** Sends it if it has waited for @age_ns. Any thread; may be called under a QP's lock. */
void udp_held_release(uint64_t age_ns);

/** Something else leaves, which is not to overtake it. As udp_held_release(). */
static inline void udp_let_go(void)
{
	if (__builtin_expect(udp_holding() != 0, 0))
		udp_held_release(0);
}

/** Around a fork: holds the lock of the port, so that the child, which closes what it inherited, knows every descriptor. */
void udp_before_fork(void);
void udp_after_fork(bool child);

/** QPs of other hosts. */
const struct link *link_udp(void);

#endif
