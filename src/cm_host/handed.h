/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that other processes of this host have with other hosts, as far as this process knows of them: it has the RoCE port,
 * and hands on to them what the connection manager of the other host says. When such a process ends without a word (SIGKILL),
 * its peers are told by a DREQ in its place, as a kernel tells the peers of a program that has ended.
 *
 * What is kept comes from the network, so there is a bound (LIMIT_CM_HANDED); a lie costs its author a DREQ at its own address.
 * If the process with the port ends, what it knew is gone: the peers of its host find out when their requests time out.
 *
 * A lock of its own, under which nothing is sent. Any thread.
 */
#ifndef SOFTHCA_CM_HOST_HANDED_H
#define SOFTHCA_CM_HOST_HANDED_H

#include <stdbool.h>
#include <stdint.h>

struct packet_path;

/** The datagram @mad, that came along @path, was handed on to @process (the serial number of its connection, link/host/host.h). */
void handed_note(const struct packet_path *path, const uint8_t *mad, uint32_t process);

/** @process has ended. Not under a lock of the device. */
void handed_process_ended(uint32_t process);

/** Around fork(): the child has handed nothing on. */
void handed_before_fork(void);
void handed_after_fork(bool child);

#endif
