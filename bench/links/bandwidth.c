/* SPDX-License-Identifier: BSD-2-Clause */
/* WRITEs in one direction, several of them in flight. */
#include "pair.h"

#include <stdio.h>
#include <string.h>

/* Offset after the data, for the last WRITE of a measurement. */
static uint64_t flag_offset(const struct options *options)
{
	return (options->size + 4095u) & ~UINT64_C(4095);
}

static double write_all(struct pair *pair, uint64_t count)
{
	const struct options *options = pair->options;
	uint64_t posted = 0, done = 0;
	double begin = now();

	while (done < count) {
		while (posted < count && posted - done < options->outstanding) {
			post_write(pair, options->size, 0, true);
			posted++;
		}
		done += take(pair->send_cq);
	}
	return now() - begin;
}

/* Activity of the server's program meanwhile: polling for completions that never come, or none. */
static void be_written_to(struct pair *pair, uint64_t number)
{
	const volatile uint64_t *flag = (const volatile uint64_t *)(void *)(pair->target + flag_offset(pair->options));

	while (!pair->options->passive && *flag != number)
		take(pair->receive_cq);
}

static void check_arrival(struct pair *pair)
{
	for (uint32_t i = 0; i < pair->options->size; i++)
		if (pair->target[i] != (uint8_t)(i * 7 + 1))
			die("byte %u did not arrive", i);
}

void test_write_bandwidth(const struct options *options)
{
	static struct pair pair;
	uint64_t count = options->outstanding;

	pair_open(&pair, options);
	for (uint32_t i = 0; i < options->size; i++)
		pair.source[i] = (uint8_t)(i * 7 + 1);
	for (uint64_t number = 1; number <= 4; number++) {
		tcp_meet(&pair);
		if (pair.is_client) {
			double took = write_all(&pair, count);
			uint64_t wanted = (uint64_t)((number < 3 ? options->seconds / 10 : options->seconds) *
						     (double)count / took);

			if (number == 4) {
				printf("bytes_per_second %.0f\n", (double)options->size * (double)count / took);
				printf("messages_per_second %.0f\n", (double)count / took);
			}
			count = wanted < 2 * options->outstanding ? 2 * options->outstanding : wanted;
			memcpy(pair.source, &number, sizeof(number));
			post_write(&pair, sizeof(number), flag_offset(options), true);
			while (!take(pair.send_cq))
				;
			for (uint32_t i = 0; i < sizeof(number); i++)
				pair.source[i] = (uint8_t)(i * 7 + 1);
		} else {
			be_written_to(&pair, number);
		}
		tcp_meet(&pair);
	}
	if (!pair.is_client)
		check_arrival(&pair);
	tcp_meet(&pair);
}
