/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages split into packets of 256 bytes, some of which are lost, duplicated or overtaken. See link.h. */
#include "link.h"

#include "../unit/support/wire_clock.h"
#include "../unit/support/wire_link.h"
#include "process/commands.h"

void link_open(uint64_t seed)
{
	/* Percent lost, duplicated, overtaken. On a perfect wire, differences come from splitting alone. */
	static const unsigned int weather[][3] = {{0, 0, 0}, {2, 2, 2}, {6, 3, 3}, {1, 1, 10}};
	static struct wire_dice dice;

	/* Losses of an unreliable transport are not repaired: the model could not predict the result. */
	dice = (struct wire_dice){
		.state = seed,
		.drop = weather[seed % 4][0],
		.twice = weather[seed % 4][1],
		.delay = weather[seed % 4][2],
		.transports = 1u << IBV_QPT_RC,
	};
	wire_attach(hca_device(0), wire_dice, &dice);
}

bool link_progress(void)
{
	return wire_deliver();
}

bool link_wait(void)
{
	return wire_deliver() || wire_clock_next();
}

uint64_t link_packet_bytes(void)
{
	return 256;
}

enum ibv_mtu link_mtu(void)
{
	return IBV_MTU_256;
}

bool link_in_real_time(void)
{
	return false;
}

bool link_pipelines(void)
{
	return true;
}
