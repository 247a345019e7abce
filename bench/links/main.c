/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of softhca-bench-pair, see pair.h. */
#include "pair.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "affinity.h"

static const struct {
	const char *name;
	void (*run)(const struct options *options);
} tests[] = {
	{"send-latency", test_send_latency},
	{"write-latency", test_write_latency},
	{"write-bandwidth", test_write_bandwidth},
	{"connect", test_connect},
	{"idle", test_idle},
};

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"connect", required_argument, NULL, 'a'},
		{"port", required_argument, NULL, 'p'},
		{"cpu", required_argument, NULL, 'c'},
		{"size", required_argument, NULL, 's'},
		{"outstanding", required_argument, NULL, 'o'},
		{"mtu", required_argument, NULL, 'm'},
		{"seconds", required_argument, NULL, 't'},
		{"count", required_argument, NULL, 'n'},
		{"events", no_argument, NULL, 'e'},
		{"passive", no_argument, NULL, 'q'},
		{NULL, 0, NULL, 0},
	};
	struct options options = {
		.port = "18600", .cpu = -1, .size = 8, .outstanding = 16, .mtu = 4096, .seconds = 0.2, .count = 1000};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (option) {
		case 'a':
			options.address = optarg;
			break;
		case 'p':
			options.port = optarg;
			break;
		case 'c':
			options.cpu = atoi(optarg);
			break;
		case 's':
			options.size = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'o':
			options.outstanding = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'm':
			options.mtu = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 't':
			options.seconds = atof(optarg);
			break;
		case 'n':
			options.count = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'e':
			options.events = true;
			break;
		case 'q':
			options.passive = true;
			break;
		default:
			return 2;
		}
	}
	if (options.outstanding < 1 || options.outstanding > DEPTH)
		die("--outstanding: 1 to %d", DEPTH);
	if (options.cpu >= 0)
		stay_on(options.cpu);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (optind + 1 == argc && strcmp(argv[optind], tests[i].name) == 0) {
			tests[i].run(&options);
			return 0;
		}
	}
	die("which test? send-latency, write-latency, write-bandwidth, connect or idle");
}
