/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The unmodified device. Within this process a message is passed in one piece, by a call; the links that SOFTHCA_LINK
 * can name transport it: shared memory whole, sockets in packets, several of which may arrive as one. The packets are
 * therefore as large as messages are here; otherwise the part of a refused message that is written would be
 * undetermined. See link.h.
 */
#include "link.h"

#include <stdlib.h>
#include <string.h>

static bool is_link(const char *name)
{
	const char *link = getenv("SOFTHCA_LINK");

	return link && !strcmp(link, name);
}

void link_open(uint64_t seed)
{
	(void)seed;
}

bool link_progress(void)
{
	return false;
}

bool link_wait(void)
{
	return false;
}

uint64_t link_packet_bytes(void)
{
	return is_link("udp") ? 4096 : UINT64_MAX;
}

enum ibv_mtu link_mtu(void)
{
	return is_link("udp") ? IBV_MTU_4096 : IBV_MTU_1024;
}

bool link_in_real_time(void)
{
	return is_link("udp") || is_link("shm");
}

bool link_pipelines(void)
{
	return link_in_real_time();
}
