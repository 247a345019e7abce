/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link for packets of the device under test: one of its own links (link_own.c), which SOFTHCA_LINK may name, or one
 * that splits messages into packets and loses some of them (link_wire.c, a separate program).
 */
#ifndef SOFTHCA_TESTS_MODEL_LINK_H
#define SOFTHCA_TESTS_MODEL_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

/** Opens the link; called once, before devices are opened. */
void link_open(uint64_t seed);
/** Delivers packets in flight. Returns false if there are none. */
bool link_progress(void);
/**
 * As link_progress(); without packets in flight, lets time pass. Returns false if nothing will ever happen, or only
 * independently.
 */
bool link_wait(void);
/** Returns the bytes of a message that travel together, and the path MTU to be set for that. */
uint64_t link_packet_bytes(void);
enum ibv_mtu link_mtu(void);
/** Returns true if packets arrive independently, some time later, without link_progress() and link_wait(). */
bool link_in_real_time(void);
/** Returns true if messages are in flight together: the peer may have executed a request before an earlier one fails. */
bool link_pipelines(void);

#endif
