/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages cut into packets of 256 bytes, some of which are lost, doubled or overtaken. See link.h. */
#include "link.h"

#include <stdio.h>
#include <stdlib.h>

#include "../unit/wire_link.h"

void link_open(uint64_t seed)
{
	static struct wire_dice dice;

	/* Nothing makes up for what an unreliable transport loses: there, the model would not know what to expect. */
	dice = (struct wire_dice){
		.state = seed, .drop = 2, .twice = 2, .delay = 2, .transports = 1u << IBV_QPT_RC};
	/* Every fourth seed has a perfect wire: differences then are those of cutting alone. */
	if (seed % 4 == 0)
		dice.transports = 0;
	wire_attach(hca_device(0), wire_dice, &dice);
}

bool link_progress(void)
{
	return wire_deliver();
}

uint64_t link_packet_bytes(void)
{
	return 256;
}

enum ibv_mtu link_mtu(void)
{
	return IBV_MTU_256;
}

bool link_pipelines(void)
{
	return true;
}
