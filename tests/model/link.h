/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What carries the packets of the device under test: a link it comes with (link_own.c), which SOFTHCA_LINK may name, or one
 * that cuts messages into packets and loses some of them (link_wire.c, a program of its own).
 */
#ifndef SOFTHCA_TESTS_MODEL_LINK_H
#define SOFTHCA_TESTS_MODEL_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

/** Called once, before devices are opened. */
void link_open(uint64_t seed);
/** Moves on what is on its way. False: nothing is. */
bool link_progress(void);
/** The same; if nothing is on its way, lets time pass. False: nothing will ever happen, or it will by itself. */
bool link_wait(void);
/** Bytes of a message that travel together, and the path MTU to be set for that. */
uint64_t link_packet_bytes(void);
enum ibv_mtu link_mtu(void);
/** What was sent arrives by itself, some time later; link_progress() and link_wait() have no say in it. */
bool link_in_real_time(void);
/** Messages are in flight together: a request may have been carried out by the peer before an earlier one fails. */
bool link_pipelines(void);

#endif
