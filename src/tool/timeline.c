/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca timeline: the records of processes, and traces of several hosts, as one trace. */
#include <stdio.h>
#include <stdlib.h>

#include "device/timeline_file.h"
#include "tool/timeline_files.h"
#include "tool/tool.h"

int command_timeline(int argc, char **argv)
{
	int count = own_options_parse(COMMAND_TIMELINE, argc, argv, NULL);

	if (!count)
		tool_fail(EXIT_WRONG_USE,
			  "timeline: no file given (of records, FILE.PID" TIMELINE_SUFFIX ", or a trace)");
	timeline_merge(argv + 1, count, stdout);
	return EXIT_SUCCESS;
}
