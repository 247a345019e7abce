/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks outputs before the program starts, so that no run must be repeated. The libraries must not end a program: they
 * report an output that they cannot open and continue without it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/tool.h"

/* A flag marks directories. */
static const struct {
	enum setting setting;
	bool directory;
} outputs[] = {
	{SETTING_EXPLAIN, false},  {SETTING_CAPTURE, false},  {SETTING_KEYS, true},
	{SETTING_COUNTERS, false}, {SETTING_TIMELINE, false},
};

/* Returns NULL for words that are not files; --explain accepts "all:" before a file. */
static const char *output_name(const char *value)
{
	if (!strncmp(value, "all:", 4))
		value += 4;
	return !strcmp(value, "off") || !strcmp(value, "stderr") || !strcmp(value, "all") ? NULL : value;
}

static bool access_allowed(const char *path, int mode)
{
	return !faccessat(AT_FDCWD, path, mode, AT_EACCESS);
}

/* @path does not exist. Sets errno on failure. */
static bool output_can_be_made(const char *path)
{
	char directory[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t length = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;

	if (!length)
		return access_allowed(".", W_OK | X_OK);
	memcpy(directory, path, length);
	directory[length] = '\0';
	return access_allowed(directory, W_OK | X_OK);
}

/* Returns 0 or an errno value. */
static int output_error(const char *path, bool directory)
{
	struct stat status;

	if (stat(path, &status))
		return errno == ENOENT && output_can_be_made(path) ? 0 : errno;
	if (directory && !S_ISDIR(status.st_mode))
		return ENOTDIR;
	if (!directory && S_ISDIR(status.st_mode))
		return EISDIR;
	return access_allowed(path, directory ? W_OK | X_OK : W_OK) ? 0 : errno;
}

void output_path(const char *option, const char *path, char *out, size_t size)
{
	int error = setting_path(path, out, size);

	if (error)
		tool_fail(EXIT_FAILURE, "--%s: %s: %s", option, path, strerror(-error));
}

void outputs_check(const struct settings *settings)
{
	char value[PATH_MAX], path[PATH_MAX], option[64];

	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		const char *name;
		int error;

		setting_format(settings, outputs[i].setting, value, sizeof(value));
		name = output_name(value);
		if (!name)
			continue;
		option_name(outputs[i].setting, option, sizeof(option));
		output_path(option, name, path, sizeof(path));
		error = output_error(path, outputs[i].directory);
		if (error)
			tool_fail(EXIT_FAILURE, "--%s: %s: %s", option, path, strerror(error));
	}
}
