/* SPDX-License-Identifier: BSD-2-Clause */
/* Half the time of a round trip, by SEND or by WRITE. */
#include "pair.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SIGNAL_EVERY 16

struct ping_pong {
	struct pair pair;
	uint64_t sent;
	uint64_t unsignalled, signals; /* requests since the last signalled one; signalled and not yet polled */
	uint64_t received;             /* completions polled ahead of their use */
};

typedef void turn_fn(struct ping_pong *game, uint64_t number);

/* As in programs optimized for latency: only an occasional completion. */
static bool wants_signal(struct ping_pong *game)
{
	game->signals -= take(game->pair.send_cq);
	if (++game->unsignalled < SIGNAL_EVERY)
		return false;
	game->unsignalled = 0;
	game->signals++;
	return true;
}

/* ---- SEND ----------------------------------------------------------------------------------------------------- */

static void sleep_for_event(struct pair *pair)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(pair->channel, &cq, &context))
		die("ibv_get_cq_event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
}

static void await_receive(struct ping_pong *game)
{
	struct pair *pair = &game->pair;
	bool armed = false;

	while (!game->received) {
		game->received = take(pair->receive_cq);
		if (game->received || !pair->channel)
			continue;
		if (armed)
			sleep_for_event(pair);
		else if (ibv_req_notify_cq(pair->receive_cq, 0))
			die("ibv_req_notify_cq");
		armed = !armed;
	}
	game->received--;
	post_receive(pair);
}

static void send_turn(struct ping_pong *game, uint64_t number)
{
	(void)number;
	post_send(&game->pair, game->pair.options->size, wants_signal(game));
}

static void send_wait(struct ping_pong *game, uint64_t number)
{
	(void)number;
	await_receive(game);
}

/* ---- WRITE ---------------------------------------------------------------------------------------------------- */

/* The last 8 bytes hold the number of the turn; they are stored last. */
static void write_turn(struct ping_pong *game, uint64_t number)
{
	struct pair *pair = &game->pair;

	/* Small ones are copied when they are posted; for others the answer proves that the previous one has arrived. */
	memcpy(pair->source + pair->options->size - 8, &number, 8);
	post_write(pair, pair->options->size, 0, wants_signal(game));
}

static void write_wait(struct ping_pong *game, uint64_t number)
{
	struct pair *pair = &game->pair;
	const volatile uint64_t *last = (const volatile uint64_t *)(void *)(pair->target + pair->options->size - 8);

	while (*last != number)
		if (!pair->options->passive)
			game->signals -= take(pair->send_cq);
}

/* ---- the game ------------------------------------------------------------------------------------------------- */

static void play(struct ping_pong *game, uint64_t count, turn_fn *turn, turn_fn *await)
{
	for (uint64_t i = 0; i < count; i++) {
		game->sent++;
		if (!game->pair.is_client)
			await(game, game->sent);
		turn(game, game->sent);
		if (game->pair.is_client)
			await(game, game->sent);
	}
}

/* The client announces the count, which gives about the intended duration. */
static void test(const struct options *options, turn_fn *turn, turn_fn *await)
{
	static struct ping_pong game;
	uint64_t count = 500;
	double begin, took;

	if (options->size < 8 || options->size % 8)
		die("--size: a multiple of 8");
	pair_open(&game.pair, options);
	/* Two runs to warm up and to estimate the speed, one to measure. */
	for (int i = 0; i < 3; i++) {
		if (game.pair.is_client)
			tcp_send(&game.pair, &count, sizeof(count));
		else
			tcp_receive(&game.pair, &count, sizeof(count));
		tcp_meet(&game.pair);
		begin = now();
		play(&game, count, turn, await);
		took = now() - begin;
		if (i < 2) {
			uint64_t wanted =
				(uint64_t)((i ? options->seconds : options->seconds / 10) * (double)count / took);

			count = wanted < 100 ? 100 : wanted;
		}
	}
	if (game.pair.is_client)
		printf("half_round_trip_us %.4f\n", took * 1e6 / (double)count / 2);
	tcp_meet(&game.pair);
}

void test_send_latency(const struct options *options)
{
	test(options, send_turn, send_wait);
}

void test_write_latency(const struct options *options)
{
	test(options, write_turn, write_wait);
}
