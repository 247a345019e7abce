/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ping-pong: a message goes to a peer and comes back, by SEND and receive over a reliable connection.
 *
 *	softhca run -- ping_pong [ROUNDS]
 *
 * Both ends are in this process, each with its own context, as in two programs. Lessons: a receive must be posted before the
 * message comes (otherwise the sender has to retry later), and a buffer belongs to the adapter from posting until its
 * completion was polled.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common.h"

enum { BYTES = 64, SENT = 1, RECEIVED = 2 };

struct player {
	struct end end;
	struct ibv_mr *mr;
	char out[BYTES], in[BYTES];
};

static void open_player(struct player *player)
{
	end_open(&player->end, 0);
	/* One registration for both buffers; the adapter writes to `in`, which requires the local write right. */
	player->mr = end_register(&player->end, player->out, sizeof(player->out) + sizeof(player->in),
				  IBV_ACCESS_LOCAL_WRITE);
}

static void close_player(struct player *player)
{
	ibv_dereg_mr(player->mr);
	end_close(&player->end);
}

static struct ibv_sge entry(const struct player *player, const char *buffer)
{
	return (struct ibv_sge){.addr = (uintptr_t)buffer, .length = BYTES, .lkey = player->mr->lkey};
}

static void await(struct player *player)
{
	struct ibv_sge sge = entry(player, player->in);
	struct ibv_recv_wr wr = {.wr_id = RECEIVED, .sg_list = &sge, .num_sge = 1}, *bad;

	if (ibv_post_recv(player->end.qp, &wr, &bad))
		die("ibv_post_recv fails");
}

static void send_out(struct player *player)
{
	struct ibv_sge sge = entry(player, player->out);
	struct ibv_send_wr wr = {.wr_id = SENT, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

	end_post(&player->end, &wr);
}

/* Expects the next completion of @player to be that of @wr_id. */
static void expect(struct player *player, uint64_t wr_id, const char *what)
{
	struct ibv_wc wc = end_wait_success(&player->end, what);

	if (wc.wr_id != wr_id)
		die("%s: the completion of wr_id %lu came, not of %lu", what, (unsigned long)wc.wr_id,
		    (unsigned long)wr_id);
}

static void play(struct player *one, struct player *other, long round)
{
	await(one);
	await(other);
	snprintf(one->out, BYTES, "ping %ld", round);
	send_out(one);
	expect(one, SENT, "sending the ping");
	expect(other, RECEIVED, "receiving the ping");

	snprintf(other->out, BYTES, "pong to %.50s", other->in);
	send_out(other);
	expect(other, SENT, "sending the pong");
	expect(one, RECEIVED, "receiving the pong");
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 100000;
	static struct player one, other;
	char last[BYTES];
	double begin;

	if (argc > 2 || rounds < 1)
		die("usage: ping_pong [ROUNDS]");
	open_player(&one);
	open_player(&other);
	end_connect(&one.end, &other.end);

	begin = now();
	for (long round = 1; round <= rounds; round++)
		play(&one, &other, round);
	printf("%ld rounds, %.2f us each; the last message: \"%s\"\n", rounds, (now() - begin) / (double)rounds * 1e6,
	       one.in);

	snprintf(last, sizeof(last), "pong to ping %ld", rounds);
	if (strcmp(one.in, last) != 0)
		die("it should be: \"%s\"", last);
	close_player(&one);
	close_player(&other);
	return 0;
}
