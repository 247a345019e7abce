/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Management datagrams of the connection manager (IBTA 13.4 and 12.6), as far as those have to know them who carry them: what
 * one looks like, and whose it is. The connection manager itself, which knows the rest, stands above; it says by struct
 * management what is to become of those that arrive. It may be called on any thread that runs the transport, with no lock of
 * the device held, and in the middle of a call of the device: so it must hold no lock of its own that it takes there while it
 * makes one, but for sending (transport/gsi.h), which only queues.
 *
 * A communication id names its process, as a QP number does: its upper MAD_SLOT_BITS are a slot (link/host/host.h).
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
/* IBTA 3.9.2: the general service interface, and its Q_Key (10.2.4, C9-49: privileged, well-known). */
#define GSI_QPN 1u
#define GSI_QKEY 0x80010000u

/* Bits of a communication id below the slot. */
#define MAD_COUNTER_BITS 18

/* IBTA 12.6.4 and following: what the connection manager says; names as there. */
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

/* Its addressee. */
enum mad_addressee {
	MAD_FOR_SERVICE, /* whoever listens at a service id: REQ, SIDR_REQ */
	MAD_FOR_ID,      /* whoever has a communication id */
	MAD_FOR_ALL, /* a REJ that its sender has given up for time, who was never told an id: one of them knows him */
};

struct mad_address {
	enum mad_addressee addressee;
	uint64_t service;
	uint32_t qpn; /* MAD_FOR_ID: the first QP number of the slot */
};

/**
 * The first four bytes of every datagram of the connection manager, in host order: base version 1, class 7, class version 2,
 * method Send (IBTA 13.4.3, 12.6.1). Others are not for it.
 */
#define MAD_CM_WORD 0x01070203u
uint32_t mad_word(const uint8_t mad[MAD_BYTES]);

/** The addressee of the datagram @mad of the connection manager. Pure; any thread. */
struct mad_address mad_address(const uint8_t mad[MAD_BYTES]);

/**
 * Services that have a name on a host: those of the RDMA IP CM service (IBTA annex A11), port space << 16 | port, port space
 * 0x01xx. False of all others.
 */
static inline bool mad_service_has_name(uint64_t service)
{
	return service >> 24 == 1;
}

/* Why a datagram that was sent does not arrive. */
enum mad_loss {
	MAD_NO_RECIPIENT, /* nobody on this host listens at the service, or has the communication id */
	MAD_UNREACHABLE, /* no link leads there; or the other host said that nobody has the RoCE port: no softhca, nor RDMA */
};

/* What the connection manager does for those that carry its datagrams. */
struct management {
	/**
	 * @mad arrived along @path, which leads from its sender to an address of this host. @waited: a request has waited here for
	 * somebody to listen, in vain. Inside an epoch section.
	 */
	void (*receive)(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES], bool waited);
	/**
	 * @mad of this process does not arrive. @path: as it was sent; of what another host has refused only the destination is
	 * there, and only REQ and SIDR_REQ are reported: who sent it may have been lied to, so @mad is to be compared.
	 */
	void (*lost)(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES], enum mad_loss why);
	/**
	 * The process of this host whose datagrams came along paths with @process (struct packet_path) has ended, and all that it
	 * had sent has been received. Its slots and services may be another's already. The device thread; in no epoch section.
	 */
	void (*process_ended)(uint32_t process);
	/** The same of a process that listened at @service when this one sent there. */
	void (*service_ended)(uint64_t service);
};

/* Set before there is a device (process/devices.c). NULL: datagrams for the connection manager are for nobody. */
extern const struct management *management;

#endif
