/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of other processes for which this process, which has the RoCE port, forwards messages. If such a process
 * is killed, this one sends its peers a DREQ, as a kernel does for a program that has ended.
 *
 * The records come from the network, so their number is bounded (LIMIT_CM_HANDED); a forged message only causes a DREQ
 * to its own sender. If the process with the port ends, the peers' requests time out.
 *
 * The registry (hca/hca.h) owns the one struct handed. Its lock covers the records; nothing is sent under it. Any
 * thread.
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
 * Records that datagram @mad from @path was forwarded to @process (serial number of its connection, link/host/host.h).
 */
void handed_note(struct handed *handed, const struct packet_path *path, const uint8_t *mad, uint32_t process);

/** Ends the connections of @process, which has ended. No lock of the device is held. */
void handed_process_ended(struct handed *handed, uint32_t process);

/** For process/fork.c. */
void handed_lock(struct handed *handed);
void handed_unlock(struct handed *handed);
/** Empties the table in a forked child. The lock is held. */
void handed_forget(struct handed *handed);

#endif
