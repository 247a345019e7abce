/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the IPv4 headers of senders have shown. A receiver of UDP does not see the identification, which the ICRC covers;
 * to solve for it leaves 15 bits of check (wire/roce.h). Senders count it up as a rule, so that what a sender has shown
 * gives most of these bits back: of one whose packets have been near each other for a while, only near ones are taken.
 *
 * A sender that counts in leaps (Linux adds a random number after a silence) loses a packet where it leaps, and is held to
 * its count again after twice as many packets in a row: of n packets no more than log2(n) are lost.
 *
 * The table has a fixed size. A flow has one place in it, and takes it from whoever was there: whoever fills it with flows of
 * his own makes the receiver check 15 bits of the others', as of any sender that it meets for the first time.
 *
 * One thread at a time: that of the poller.
 */
#ifndef SOFTHCA_LINK_UDP_FLOWS_H
#define SOFTHCA_LINK_UDP_FLOWS_H

#include "wire/roce.h"
#include "link/udp/parts.h"

/**
 * A packet of the flow of @arrival fits with @unseen. Notes it. Returns false if it shall be dropped: the flow had @row
 * packets in a row, the last with identification @last, and this one is not near.
 */
bool udp_flow_continues(const struct udp_arrival *arrival, const struct ipv4_unseen *unseen, uint16_t *last,
			uint32_t *row);

/** @packets packets of the flow of @arrival have been as expected, the last one with identification @identification. */
void udp_flow_note(const struct udp_arrival *arrival, uint16_t identification, uint32_t packets);

#endif
