/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections between other processes of this host and other hosts, if this process has the RoCE port and forwards the
 * messages of remote connection managers. If such a process ends abruptly (SIGKILL), this one sends its peers a DREQ on
 * its behalf, as a kernel does for a program that has ended.
 *
 * The records come from the network, so their number is bounded (LIMIT_CM_HANDED); a forged message only causes a DREQ
 * to its own sender. If the process with the port ends, its records are lost, and the peers notice when their requests
 * time out.
 *
 * Has its own lock, under which nothing is sent. Any thread may call.
 */
#ifndef SOFTHCA_CM_HOST_HANDED_H
#define SOFTHCA_CM_HOST_HANDED_H

#include <stdbool.h>
#include <stdint.h>

struct packet_path;

/**
 * Records that datagram @mad, which came along @path, was forwarded to @process (serial number of its connection,
 * link/host/host.h).
 */
void handed_note(const struct packet_path *path, const uint8_t *mad, uint32_t process);

/** Ends the connections of @process, which has ended. The caller holds no lock of the device. */
void handed_process_ended(uint32_t process);

/** Handlers around fork(): the child starts without records. */
void handed_before_fork(void);
void handed_after_fork(bool child);

#endif
