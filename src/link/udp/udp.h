/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The udp link: RoCEv2 packets (wire/roce.h) in UDP datagrams, to and from other hosts. Each process sends by itself;
 * one process receives for all processes of its user and forwards packets (DESIGN.md). See parts.h for the
 * implementation.
 */
#ifndef SOFTHCA_LINK_UDP_UDP_H
#define SOFTHCA_LINK_UDP_UDP_H

#include "wire/link.h"

/**
 * Makes this process receive what other hosts send to its QPs: takes the port, or finds the process that has it and
 * takes over when that process ends. Starts the device thread. Cheap after the first call. Any thread, also under a
 * QP's lock.
 */
void udp_begin(struct hca *hca);

/* Use udp_holding(). */
extern uint32_t udp_held_flow;

/** Returns nonzero if packets wait for others that leave with them (held.c). Any thread. */
static inline uint32_t udp_holding(void)
{
	/* Not only acquire: the timer (held.c) stores that it is not armed, then loads this. */
	return __atomic_load_n(&udp_held_flow, __ATOMIC_SEQ_CST);
}

/** Sends the held acknowledgement if it has waited for @age_ns. Any thread, also under a QP's lock. */
void udp_held_release(uint64_t age_ns);

/** As udp_held_release(), for requests that wait for others. */
void udp_kept_release(uint64_t age_ns);

/** Sends all packets that wait, before others that must not overtake them. As udp_held_release(). */
static inline void udp_let_go(void)
{
	if (__builtin_expect(udp_holding() != 0, 0)) {
		udp_held_release(0);
		udp_kept_release(0);
	}
}

/** Holds the lock of the port around a fork, so that all descriptors, which the child closes, are recorded. */
void udp_before_fork(void);
void udp_after_fork(bool child);

/** Returns the link to QPs of other hosts. */
const struct link *link_udp(void);

#endif
