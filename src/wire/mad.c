/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the addressee of a management datagram. Offsets of fields: IBTA tables 99 and following, after the header. */
#include "wire/mad.h"

#include <endian.h>
#include <string.h>

#define ATTRIBUTE 16
#define LOCAL_ID (MAD_HEADER_BYTES + 0) /* in a SIDR_REP: request id, chosen by the recipient */
#define REMOTE_ID (MAD_HEADER_BYTES + 4)
#define SERVICE (MAD_HEADER_BYTES + 8) /* in both REQ and SIDR_REQ */
#define REJECT_REASON (MAD_HEADER_BYTES + 10)
#define REJECTED_FOR_TIME 4

const struct management *management;

static uint16_t mad_get16(const uint8_t *from)
{
	uint16_t value;

	memcpy(&value, from, sizeof(value));
	return be16toh(value);
}

static uint32_t mad_get32(const uint8_t *from)
{
	uint32_t value;

	memcpy(&value, from, sizeof(value));
	return be32toh(value);
}

static uint64_t mad_get64(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, sizeof(value));
	return be64toh(value);
}

uint32_t mad_word(const uint8_t mad[MAD_BYTES])
{
	return mad_get32(mad);
}

static struct mad_address mad_address_of_id(uint32_t id)
{
	return (struct mad_address){.addressee = MAD_FOR_ID, .qpn = id >> MAD_COUNTER_BITS << HOST_SLOT_BITS};
}

struct mad_address mad_address(const uint8_t mad[MAD_BYTES])
{
	switch (mad_get16(mad + ATTRIBUTE)) {
	case MAD_REQ:
	case MAD_SIDR_REQ:
		return (struct mad_address){.addressee = MAD_FOR_SERVICE, .service = mad_get64(mad + SERVICE)};
	case MAD_SIDR_REP:
		return mad_address_of_id(mad_get32(mad + LOCAL_ID));
	case MAD_REJ:
		if (!mad_get32(mad + REMOTE_ID) && mad_get16(mad + REJECT_REASON) == REJECTED_FOR_TIME)
			return (struct mad_address){.addressee = MAD_FOR_ALL};
		return mad_address_of_id(mad_get32(mad + REMOTE_ID));
	default:
		return mad_address_of_id(mad_get32(mad + REMOTE_ID));
	}
}
