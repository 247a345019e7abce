/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares block signatures with a model (mlx5dv_wr_set_mkey_sig_block(3), mlx5dv_mkey_check(3)): random cases over all
 * combinations of domains, masks, layouts, operations and ways to cut a transfer, and a campaign of flipped bits.
 *
 *	signature [--seed N] [--first N] [--cases N] [--flips N]
 *
 * SIGNATURE_RINGS=verbs|umem: through rings that the test fills and reads itself (rings.h).
 *
 * A seed always gives the same cases. Without --seed, half of them use seed 1, half a new one, which is printed.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "batch.h"

static void usage(void)
{
	fprintf(stderr, "usage: signature [--seed N] [--first N] [--cases N] [--flips N]\n");
	exit(2);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 0);

	if (!*text || *end)
		usage();
	return value;
}

static uint64_t fresh_seed(void)
{
	uint32_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint32_t)time(NULL);
	return seed;
}

static unsigned int run(uint64_t seed, uint64_t first, uint64_t cases, uint64_t flips)
{
	unsigned int differences = 0;

	if (cases)
		differences += run_batches(seed, first, cases, false);
	if (flips)
		differences += run_batches(seed, first, flips, true);
	return differences;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},
		{"first", required_argument, NULL, 'f'},
		{"cases", required_argument, NULL, 'n'},
		{"flips", required_argument, NULL, 'c'},
		{0},
	};
	uint64_t seed = 0, first = 0, cases = 2000, flips = 500;
	unsigned int differences;
	bool one = false;

	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (option) {
		case 's':
			seed = number(optarg);
			one = true;
			break;
		case 'f':
			first = number(optarg);
			break;
		case 'n':
			cases = number(optarg);
			break;
		case 'c':
			flips = number(optarg);
			break;
		default:
			usage();
		}
	}
	if (optind != argc)
		usage();
	if (one)
		return run(seed, first, cases, flips) ? 1 : 0;
	differences = run(1, first, cases / 2, flips / 2);
	differences += run(fresh_seed(), first, cases - cases / 2, flips - flips / 2);
	return differences ? 1 : 0;
}
