/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrival of datagrams as UD messages. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/devices.h"
#include "rdmacm/sockaddr.h"
#include "rsocket/datagram.h"

enum { COMPLETIONS = 16 };

/* Returns the length of the header, or 0 if the bytes are not a header. */
static uint32_t header_read(const uint8_t *bytes, uint32_t count, struct sockaddr_storage *from)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)from;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)from;

	memset(from, 0, sizeof(*from));
	if (count >= DATAGRAM_HEADER_V4 && bytes[0] == 4 && bytes[1] == DATAGRAM_HEADER_V4) {
		v4->sin_family = AF_INET;
		memcpy(&v4->sin_port, bytes + 2, 2);
		memcpy(&v4->sin_addr, bytes + 4, 4);
		return DATAGRAM_HEADER_V4;
	}
	if (count >= DATAGRAM_HEADER_V6 && bytes[0] == 6 && bytes[1] == DATAGRAM_HEADER_V6) {
		v6->sin6_family = AF_INET6;
		memcpy(&v6->sin6_port, bytes + 2, 2);
		memcpy(&v6->sin6_flowinfo, bytes + 4, 4);
		memcpy(&v6->sin6_addr, bytes + 8, 16);
		return DATAGRAM_HEADER_V6;
	}
	return 0;
}

/*
 * Compares @from, the address in the header of a UD datagram, with the source in its GRH (IBTA A17.4.5.1: the last 20
 * bytes of the GRH are the IPv4 header). For a loopback address, any address of this host will do.
 */
static bool grh_is_from(const uint8_t *grh, const struct sockaddr *from)
{
	struct sockaddr_storage source;
	union ibv_gid gid = {0};
	int index;

	if (grh[20] >> 4 == 4 && !(grh[0] >> 4)) {
		gid.raw[10] = gid.raw[11] = 0xff;
		memcpy(gid.raw + 12, grh + 32, 4);
	} else {
		memcpy(gid.raw, grh + 8, sizeof(gid));
	}
	address_from_gid(&source, &gid, 0);
	return address_equal((struct sockaddr *)&source, from) ||
	       (address_is_loopback(from) && device_of_address((struct sockaddr *)&source, &index));
}

static void datagram_arrived_at(struct rsocket *rs, uint32_t slot, uint32_t bytes)
{
	struct datagram *datagram = rs->datagram;
	struct datagram_arrived *arrived = calloc(1, sizeof(*arrived));
	uint32_t header = arrived && bytes >= DATAGRAM_GRH && bytes <= datagram->slot_bytes
				  ? header_read(datagram_slot(datagram, slot) + DATAGRAM_GRH, bytes - DATAGRAM_GRH,
						&arrived->from)
				  : 0;

	if (!header || !grh_is_from(datagram_slot(datagram, slot), (struct sockaddr *)&arrived->from) ||
	    !datagram_map(rs, &arrived->from)) {
		free(arrived);
		datagram_post_receive(rs, slot);
		return;
	}
	arrived->slot = slot;
	arrived->offset = DATAGRAM_GRH + header;
	arrived->bytes = bytes - arrived->offset;
	*datagram->last = arrived;
	datagram->last = &arrived->next;
}

/* Polls at most a full CQ, because each dropped datagram makes room for another one. */
void datagram_advance(struct rsocket *rs)
{
	struct datagram *datagram = rs->datagram;
	uint32_t left = datagram->send_slots + datagram->receive_slots + COMPLETIONS;
	struct ibv_wc completions[COMPLETIONS];
	int count, index;

	datagram_take_early(rs);
	if (!datagram->cq)
		return;
	while (left >= COMPLETIONS && (count = ibv_poll_cq(datagram->cq, COMPLETIONS, completions)) > 0) {
		left -= (uint32_t)count;
		for (index = 0; index < count; index++) {
			const struct ibv_wc *wc = &completions[index];

			if (wc->wr_id & DATAGRAM_IS_SEND)
				datagram->sends_free++;
			else if (wc->status == IBV_WC_SUCCESS)
				datagram_arrived_at(rs, (uint32_t)wc->wr_id, wc->byte_len);
		}
	}
}
