/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * __verbs_log(), the logging call of rdma-core's providers and programs: its output under VERBS_LOG_LEVEL and
 * VERBS_LOG_FILE. Expected: libibverbs, init.c, as distributions build it. Each case runs in its own process, since
 * libibverbs reads the variables once.
 */
#include "test_case.h"

#include <sys/wait.h>

#include "abi/undeclared.h"

enum { ERROR = 1, WARNING = 2, INFORMATION = 3, DEBUGGING = 4 };

static char path[] = "/tmp/softhca-log-XXXXXX";

static void log_all(void)
{
	int count;

	__verbs_log(NULL, ERROR, "before the list\n");
	ibv_free_device_list(ibv_get_device_list(&count));
	errno = ENOTTY;
	__verbs_log(NULL, ERROR, "error %d of %s\n", 7, "one");
	__verbs_log(NULL, WARNING, "warning\n");
	__verbs_log(NULL, INFORMATION, "information\n");
	__verbs_log(NULL, DEBUGGING, "debugging\n");
	if (errno != ENOTTY)
		_exit(2);
}

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/*
 * Returns the contents of @file after a child with these variables has logged. If @file_variable is NULL, the child's
 * stderr and stdout go to @file.
 */
static const char *logged(const char *level, const char *file_variable)
{
	static char text[256];
	size_t bytes;
	FILE *file;
	int status;
	pid_t child = fork();

	if (!child) {
		set("VERBS_LOG_LEVEL", level);
		set("VERBS_LOG_FILE", file_variable);
		if (!file_variable && (!freopen(path, "a", stderr) || !freopen(path, "a", stdout)))
			_exit(3);
		log_all();
		exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	file = fopen(path, "r");
	assert_non_null(file);
	bytes = fread(text, 1, sizeof(text) - 1, file);
	text[bytes] = '\0';
	fclose(file);
	return text;
}

TEST(test_levels)
{
	assert_string_equal(logged(NULL, path), "");
	assert_string_equal(logged("0", path), "");
	assert_string_equal(logged("4", NULL), "");
	assert_string_equal(logged("4", "/nonexistent/file"), "");
	assert_string_equal(logged("1", path), "error 7 of one\n");
	/* Output is appended; hexadecimal as strtol(3) reads it. */
	assert_string_equal(logged("0x3", path), "error 7 of one\n"
						 "error 7 of one\nwarning\ninformation\n");
}

int main(void)
{
	int fd = mkstemp(path), failed;

	if (fd < 0)
		return 1;
	close(fd);
	failed = run_cases();
	unlink(path);
	return failed;
}
