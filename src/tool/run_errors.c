/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca run --error-exitcode, see run_errors.h. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/run_errors.h"
#include "tool/tool.h"

/* From explain/sink.h, which the command does not link. */
#define MARKS_VARIABLE "SOFTHCA_EXPLAIN_MARKS"

static int parse_status(const char *text)
{
	char *end;
	long status = strtol(text, &end, 10);

	if (*text < '1' || *text > '9' || *end || status > 255)
		tool_fail(EXIT_WRONG_USE, "--error-exitcode is a number from 1 to 255, not \"%s\"", text);
	return (int)status;
}

_Noreturn static void marks_fail(const struct run_errors *errors)
{
	tool_fail(EXIT_FAILURE, "--error-exitcode: %s: %m", errors->directory);
}

/* Chooses a name that cannot be guessed. */
static void marks_name(struct run_errors *errors)
{
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		marks_fail(errors);
	snprintf(errors->marks, sizeof(errors->marks), "%s/%016" PRIx64 "%016" PRIx64, errors->directory, random[0],
		 random[1]);
}

/*
 * Makes a file that every process of the program can write to, even with another user, but no other process: the
 * directory can be searched but not listed, and only the program's environment has the name.
 */
static void marks_make(struct run_errors *errors)
{
	int fd;

	strcpy(errors->directory, "/tmp/softhca-marks-XXXXXX");
	if (!mkdtemp(errors->directory))
		marks_fail(errors);
	marks_name(errors);
	fd = open(errors->marks, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || fchmod(fd, 0666) || chmod(errors->directory, 0711))
		marks_fail(errors);
	close(fd);
}

void run_errors_begin(struct run_errors *errors, const char *option)
{
	*errors = (struct run_errors){0};
	if (!option)
		return;
	errors->status = parse_status(option);
	marks_make(errors);
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
	rmdir(errors->directory);
	return status;
}
