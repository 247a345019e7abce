/* SPDX-License-Identifier: BSD-2-Clause */
/* replay 'LINE'…: runs cases, as a difference prints them (case.h), one after the other on a new device. */
#include <stdio.h>

#include "batch.h"

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: replay 'LINE'...\n");
		return 2;
	}
	return replay_lines(argc - 1, argv + 1);
}
