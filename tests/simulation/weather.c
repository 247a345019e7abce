/* SPDX-License-Identifier: BSD-2-Clause */
/* The link with weather, see weather.h. */
#include "weather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../model/choose.h"
#include "core/epoch.h"
#include "judge.h"
#include "wire/link.h"
#include "transport/run/run.h"

struct flight {
	struct flight *next;
	uint64_t at_ns;
	struct wire_packet *packet;
};

enum { MOST_JOINED = 16 };

static struct {
	struct choose c;
	struct weather weather;
	struct flight *first; /* by time of arrival */
	uint64_t newest_ns;   /* arrival of the last packet that was not late */
	uint64_t room_ns;     /* when there is room again; UINT64_MAX: there is room */
	bool mercy;
} sky;

struct weather_log weather_log;
bool weather_traced;

static void trace(const char *what, const struct wire_packet *packet)
{
	if (weather_traced)
		printf("%12.3f us  %-8s %-24s %06x to %x%s, %u bytes, syndrome %02x, for %u bytes\n",
		       (double)clock_now_ns() * 1e-3, what, packet_opcodes[packet->opcode].name, packet->psn,
		       packet->destination_qpn, packet->acknowledge ? ", acknowledge" : "", packet->length,
		       packet->syndrome, packet->dma_length);
}

static bool busy(void *argument)
{
	(void)argument;
	if (sky.room_ns == UINT64_MAX && chance(&sky.c, sky.weather.busy))
		sky.room_ns = clock_now_ns() + 1 + choose_below(&sky.c, sky.weather.busy_ns);
	weather_log.busy += sky.room_ns != UINT64_MAX;
	return sky.room_ns != UINT64_MAX;
}

void weather_begin(struct hca *hca, const struct plan *plan, bool fair)
{
	const struct wire_manner manner = {
		.immediate = plan->immediate, .most = plan->most, .window = plan->window, .busy = busy};

	memset(&sky, 0, sizeof(sky));
	memset(&weather_log, 0, offsetof(struct weather_log, arrival));
	judge_depth_begin(plan);
	sky.c = choose_for(plan->seed, 1);
	sky.room_ns = UINT64_MAX;
	sky.weather = fair ? (struct weather){.latency_ns = 1000} : plan->weather;
	wire_attach(hca, NULL, NULL);
	if (!fair)
		wire_behave(&manner);
}

void weather_end(struct hca *hca)
{
	struct flight *flight;

	while ((flight = sky.first)) {
		sky.first = flight->next;
		free(flight->packet);
		free(flight);
	}
	wire_detach(hca);
}

static void send_off(struct wire_packet *packet, uint64_t at_ns)
{
	struct flight *flight = malloc(sizeof(*flight)), **place = &sky.first;

	if (!flight)
		abort();
	while (*place && (*place)->at_ns <= at_ns)
		place = &(*place)->next;
	*flight = (struct flight){*place, at_ns, packet};
	*place = flight;
}

static struct wire_packet *copy_of(const struct wire_packet *packet)
{
	struct wire_packet *copy = malloc(sizeof(*copy));

	if (!copy)
		abort();
	return memcpy(copy, packet, sizeof(*copy));
}

/* Draws an arrival after all packets sent before. */
static uint64_t draw_arrival(void)
{
	uint64_t at_ns = clock_now_ns() + sky.weather.latency_ns + choose_below(&sky.c, sky.weather.jitter_ns + 1);

	if (at_ns < sky.newest_ns)
		at_ns = sky.newest_ns;
	return sky.newest_ns = at_ns;
}

static bool is_lost(void)
{
	if (sky.weather.dead_after && weather_log.sent > sky.weather.dead_after)
		return true;
	return !sky.mercy && chance(&sky.c, sky.weather.drop);
}

static void meet_weather(struct wire_packet *packet)
{
	uint64_t at_ns = draw_arrival();

	weather_log.sent++;
	trace("sent", packet);
	judge_depth_sent(packet);
	if (is_lost()) {
		trace("lost", packet);
		weather_log.lost++;
		free(packet);
		return;
	}
	if (!sky.mercy && chance(&sky.c, sky.weather.twice)) {
		weather_log.doubled++;
		send_off(copy_of(packet), at_ns + (chance(&sky.c, 50) ? 0 : choose_below(&sky.c, 50000)));
	}
	if (!sky.mercy && chance(&sky.c, sky.weather.late)) {
		weather_log.late++;
		at_ns += choose_below(&sky.c, sky.weather.lateness_ns);
	}
	send_off(packet, at_ns);
}

void weather_collect(bool mercy)
{
	struct wire_packet *packet;

	sky.mercy = mercy;
	while ((packet = wire_take()))
		meet_weather(packet);
}

uint64_t weather_next_ns(void)
{
	uint64_t packet_ns = sky.first ? sky.first->at_ns : UINT64_MAX;

	return packet_ns < sky.room_ns ? packet_ns : sky.room_ns;
}

static void resume(void)
{
	struct run run;

	sky.room_ns = UINT64_MAX;
	epoch_enter();
	run_begin(&run);
	link_resume(&link_common_queue, UINT32_MAX, &run);
	run_finish(&run);
	epoch_leave();
}

static struct wire_packet *take_first(void)
{
	struct flight *flight = sky.first;
	struct wire_packet *packet = flight->packet;

	sky.first = flight->next;
	free(flight);
	if (weather_log.arrivals < MOST_ARRIVALS)
		weather_log.arrival[weather_log.arrivals++] =
			(struct arrival){packet->destination_qpn, packet->psn, packet->opcode};
	trace("arrives", packet);
	judge_depth_arrived(packet);
	return packet;
}

/* Delivers one packet, or all packets of a message that have arrived by now. */
static void arrive(void)
{
	struct wire_packet *packets[MOST_JOINED];
	uint32_t most = chance(&sky.c, sky.weather.joined) ? MOST_JOINED : 1, count = 0;

	do
		packets[count++] = take_first();
	while (count < most && sky.first && sky.first->at_ns <= clock_now_ns() &&
	       wire_goes_on(packets[count - 1], sky.first->packet));
	weather_log.joined += count - 1;
	wire_receive_run((const struct wire_packet *const *)packets, count);
	while (count--)
		free(packets[count]);
}

void weather_happen(void)
{
	if (sky.room_ns <= clock_now_ns())
		resume();
	else
		arrive();
}
