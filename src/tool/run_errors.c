/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca run --error-exitcode, see run_errors.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/run_errors.h"
#include "tool/tool.h"

/* The variable of explain/sink.h, which the command does not link. */
#define MARKS_VARIABLE "SOFTHCA_EXPLAIN_MARKS"

static int parse_status(const char *text)
{
	char *end;
	long status = strtol(text, &end, 10);

	if (*text < '1' || *text > '9' || *end || status > 255)
		tool_fail(EXIT_WRONG_USE, "--error-exitcode is a number from 1 to 255, not \"%s\"", text);
	return (int)status;
}

void run_errors_begin(struct run_errors *errors, const char *option)
{
	int fd;

	*errors = (struct run_errors){0};
	if (!option)
		return;
	errors->status = parse_status(option);
	strcpy(errors->marks, "/tmp/softhca-marks-XXXXXX");
	fd = mkstemp(errors->marks);
	if (fd < 0)
		tool_fail(EXIT_FAILURE, "--error-exitcode: %s: %m", errors->marks);
	/* A process of the program may have changed its user. */
	if (fchmod(fd, 0666))
		tool_fail(EXIT_FAILURE, "--error-exitcode: %s: %m", errors->marks);
	close(fd);
	setenv(MARKS_VARIABLE, errors->marks, 1);
}

int run_errors_status(struct run_errors *errors, int status)
{
	struct stat marks;

	if (!errors->status)
		return status;
	/* A signal is more informative. */
	if (WIFEXITED(status) && !stat(errors->marks, &marks) && marks.st_size)
		status = errors->status << 8;
	unlink(errors->marks);
	return status;
}
