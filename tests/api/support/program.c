/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening, closing, and running a case with another setting, see program.h. */
#include "support/program.h"

#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

#include "run_again.h"

struct side client, server;
struct pair pair;

static size_t memory_bytes = SIDE_BYTES;

void program_memory(size_t bytes)
{
	memory_bytes = bytes;
}

struct view client_memory(size_t length)
{
	return view_memory(&client, 3000, length);
}

int program_open(void **state)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	(void)state;
	note_clear();
	side_open(&client, "client", memory_bytes, 0x80);
	side_open(&server, "server", memory_bytes, 0);
	pair_open(&pair, &client, &server, &options);
	return 0;
}

int program_close(void **state)
{
	(void)state;
	pair_close(&pair);
	side_close(&client);
	side_close(&server);
	return 0;
}

/* Builds the child's environment: ours, with @settings ("NAME=value") replacing variables of the same names. */
static char **environment_with(char *const *settings, size_t count)
{
	extern char **environ;
	size_t given = 0, kept = 0;
	char **result;

	while (environ[given])
		given++;
	result = calloc(given + count + 1, sizeof(*result));
	assert_non_null(result);
	for (size_t i = 0; i < given; i++) {
		bool replaced = false;

		for (size_t k = 0; k < count; k++)
			replaced |= !strncmp(environ[i], settings[k], strcspn(settings[k], "=") + 1);
		if (!replaced)
			result[kept++] = environ[i];
	}
	memcpy(result + kept, settings, count * sizeof(*settings));
	return result;
}

static int run_again(char *setting, char *case_setting)
{
	/* The result of the child is its exit status; its output is for readers and must not be counted as cases. */
	char *const settings[] = {setting, case_setting, "CMOCKA_MESSAGE_OUTPUT=STDOUT"};
	char **environment = environment_with(settings, ARRAY_SIZE(settings));
	char *command[4];
	int status = -1;
	pid_t child;

	run_again_command(command, NULL);
	expect_error(posix_spawn(&child, command[0], NULL, NULL, command, environment), 0);
	free(environment);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

bool in_setting(const char *variable, const char *value, const char *fallback, const char *test_case)
{
	const char *current = getenv(variable);
	char setting[4096], case_setting[128];
	int status;

	if (!strcmp(current && *current ? current : fallback, value))
		return true;
	snprintf(setting, sizeof(setting), "%s=%s", variable, value);
	snprintf(case_setting, sizeof(case_setting), "SOFTHCA_TEST_CASE=%s", test_case);
	status = run_again(setting, case_setting);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_at(HERE, "with %s it fails: wait status %#x", setting, (unsigned int)status);
	return false;
}

bool in_profile(const char *profile, const char *test_case)
{
	return in_setting("SOFTHCA_PROFILE", profile, "man", test_case);
}
