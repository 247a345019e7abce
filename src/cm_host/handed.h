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
 * The registry of a process (hca/hca.h) has one struct handed. Its lock covers the records; nothing is sent under it. Any thread
 * may call.
 */
#ifndef SOFTHCA_CM_HOST_HANDED_H
#define SOFTHCA_CM_HOST_HANDED_H

#include <stdint.h>

struct handed;
struct hca;
struct packet_path;

/** Makes an empty table, which sends from @first. Returns NULL without memory. */
struct handed *handed_new(struct hca *first);
void handed_free(struct handed *handed);

/**
 * Records that datagram @mad, which came along @path, was forwarded to @process (serial number of its connection,
 * link/host/host.h).
 */
void handed_note(struct handed *handed, const struct packet_path *path, const uint8_t *mad, uint32_t process);

/** Ends the connections of @process, which has ended. The caller holds no lock of the device. */
void handed_process_ended(struct handed *handed, uint32_t process);

/** For process/fork.c. */
void handed_lock(struct handed *handed);
void handed_unlock(struct handed *handed);
/** Empties the table in a forked child, which starts without records. The lock is held. */
void handed_forget(struct handed *handed);

#endif
