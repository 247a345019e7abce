/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Management datagrams of the connection manager (IBTA 13.4 and 12.6): format and addressee. The connection manager, an
 * upper layer, fills in struct management. Its functions are called on any thread that runs the transport, without a
 * lock of the device, possibly in the middle of a call of the device. So a lock that they take must not be held during
 * calls of the device, except sending (transport/gsi/gsi.h), which only queues.
 *
 * A communication id identifies its process by a slot in its upper bits, like a QP number (link/host/host.h).
 */
#ifndef SOFTHCA_WIRE_MAD_H
#define SOFTHCA_WIRE_MAD_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/routes.h"

struct hca;
struct packet_path;

#define MAD_BYTES 256
#define MAD_HEADER_BYTES 24
/* IBTA 3.9.2: the general service interface, and its Q_Key (10.2.4, C9-49: privileged). */
#define GSI_QPN 1u
#define GSI_QKEY 0x80010000u

/* Bits of a communication id below the slot. */
#define MAD_COUNTER_BITS 18

/* IBTA 12.6.4 and following, with the names used there. */
enum mad_attribute {
	MAD_REQ = 0x0010,
	MAD_MRA,
	MAD_REJ,
	MAD_REP,
	MAD_RTU,
	MAD_DREQ,
	MAD_DREP,
	MAD_SIDR_REQ,
	MAD_SIDR_REP,
	MAD_LAP,
	MAD_APR,
};

enum mad_addressee {
	MAD_FOR_SERVICE, /* the process that listens at a service id: REQ, SIDR_REQ */
	MAD_FOR_ID,      /* the process that owns a communication id */
	MAD_FOR_ALL,     /* all processes: a REJ after a timeout, if the sender never learned the id of its peer */
};

struct mad_address {
	enum mad_addressee addressee;
	uint64_t service;
	uint32_t qpn; /* MAD_FOR_ID: first QP number of the slot */
};

/**
 * First four bytes of a datagram of the connection manager, in host order: base version 1, class 7, class version 2,
 * method Send (IBTA 13.4.3, 12.6.1).
 */
#define MAD_CM_WORD 0x01070203u
uint32_t mad_word(const uint8_t mad[MAD_BYTES]);

/** Returns the addressee of @mad. Pure; any thread. */
struct mad_address mad_address(const uint8_t mad[MAD_BYTES]);

/**
 * Returns true for services of the RDMA IP CM service (IBTA annex A11: port space << 16 | port, with port space
 * 0x01xx), which have a name on a host.
 */
static inline bool mad_service_has_name(uint64_t service)
{
	return service >> 24 == 1;
}

enum mad_loss {
	MAD_NO_RECIPIENT, /* no process of this host listens at the service, or owns the communication id */
	MAD_UNREACHABLE,  /* no link leads there, or the other host has no socket with the RoCE port */
};

struct management {
	/**
	 * Called when @mad arrived along @path, from its sender to an address of this host. @waited: a request that has
	 * waited for a listener in vain. Inside an epoch section.
	 */
	void (*receive)(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES], bool waited);
	/**
	 * Called when @mad of this process cannot be delivered. @path: as it was sent. If another host refused it,
	 * @path has only the destination, and only REQ and SIDR_REQ are reported; the report may be forged, so the
	 * callee compares @mad.
	 */
	void (*lost)(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES], enum mad_loss why);
	/**
	 * Called when a process of this host has ended and all its datagrams, which came along paths with @process
	 * (struct packet_path), have been received. Its slots and services may already have another owner. Device
	 * thread, outside epoch sections.
	 */
	void (*process_ended)(uint32_t process);
	/** As process_ended(), for a process that listened at @service when this one sent there. */
	void (*service_ended)(uint64_t service);
};

/* Set before the first device exists (process/devices.c). NULL: these datagrams have no recipient. */
extern const struct management *management;

#endif
