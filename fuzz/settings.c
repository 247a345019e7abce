/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the parser of settings: a value from the environment is either accepted, and printed as it was given, or refused, with
 * nothing changed and one printable line.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/settings.h"

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                  \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

#define LONGEST 8192

/* Entries of the environment, changed in place: setenv(3) would keep every value forever. */
static char variables[SETTING_COUNT][LONGEST], options[LONGEST];

static void put(char *entry, const char *name, const char *value)
{
	snprintf(entry, LONGEST, "%s=%s", name, value);
}

static void check_refusal(const char *error, const struct setting_info *info)
{
	CHECK(strstr(error, info->variable));
	for (; *error; error++)
		CHECK(*error >= ' ' && *error <= '~');
}

/* Checks that an accepted value, printed and parsed again, is the same. */
static void check_round_trip(const struct settings *settings, enum setting setting)
{
	struct settings again = *settings;
	char text[LONGEST], error[256], little[4];
	int length = setting_format(settings, setting, text, sizeof(text));

	CHECK(length > 0 && (size_t)length < sizeof(text) && strlen(text) == (size_t)length);
	CHECK(setting_format(settings, setting, little, sizeof(little)) == length && strlen(little) < sizeof(little));
	CHECK(!setting_parse(&again, setting, text, settings->origin[setting], error, sizeof(error)));
	CHECK(setting_format(&again, setting, text, sizeof(text)) == length);
	if (setting_info(setting)->variable != setting_info(SETTING_EXPLAIN)->variable)
		CHECK(!memcmp(&again, settings, sizeof(again)));
}

static void check_others(const struct settings *settings, const struct settings *before, enum setting changed)
{
	char now[LONGEST], then[LONGEST];

	for (int i = 0; i < SETTING_COUNT; i++) {
		if (i == (int)changed)
			continue;
		setting_format(settings, i, now, sizeof(now));
		setting_format(before, i, then, sizeof(then));
		CHECK(!strcmp(now, then) && settings->origin[i] == before->origin[i]);
	}
}

/* Checks that a message fits into a buffer of any size. */
static void check_room(struct settings *settings, enum setting setting, const char *text, size_t room)
{
	char *error = malloc(room ? room : 1);

	CHECK(error);
	if (setting_parse(settings, setting, text, ORIGIN_OPTION, error, room) && room)
		CHECK(strlen(error) < room);
	free(error);
}

static void check_parse(enum setting setting, const char *text)
{
	struct settings settings, before;
	char error[512] = "";
	int result;

	/* Padding too, since structures are compared as bytes. */
	memset(&settings, 0, sizeof(settings));
	settings_default(&settings);
	memcpy(&before, &settings, sizeof(before));
	result = setting_parse(&settings, setting, text, ORIGIN_OPTION, error, sizeof(error));
	CHECK(result == 0 || result == -EINVAL);
	if (result) {
		check_refusal(error, setting_info(setting));
		CHECK(!memcmp(&before, &settings, sizeof(before)));
	} else {
		CHECK(settings.origin[setting] == ORIGIN_OPTION);
		check_others(&settings, &before, setting);
		check_round_trip(&settings, setting);
	}
	check_room(&settings, setting, text, strlen(text) % 70);
}

/* Checks the same through the environment, with the list of options that `softhca run` passes on. */
static void check_environment(enum setting setting, const char *text, const char *list)
{
	struct settings settings, parsed;
	char error[512];
	int result;

	settings_default(&settings);
	parsed = settings;
	put(variables[setting], setting_info(setting)->variable, text);
	put(options, SETTINGS_FROM_OPTIONS, list);
	result = setting_from_environment(&settings, setting, error, sizeof(error));
	CHECK(result == (*text ? setting_parse(&parsed, setting, text, ORIGIN_DEFAULT, error, sizeof(error)) : 0));
	CHECK(settings.origin[setting] == ORIGIN_DEFAULT ? result || !*text : !result && *text);
	put(variables[setting], setting_info(setting)->variable, "");
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	for (int i = 0; i < SETTING_COUNT; i++) {
		put(variables[i], setting_info(i)->variable, "");
		CHECK(!putenv(variables[i]));
	}
	put(options, SETTINGS_FROM_OPTIONS, "");
	CHECK(!putenv(options));
	return 0;
}

/* The first byte chooses the setting; the rest is its text up to a NUL, then the list of options. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[LONGEST / 2] = "", list[LONGEST / 2] = "";
	size_t length;

	if (!size || size > sizeof(text) - 1)
		return 0;
	memcpy(text, data + 1, size - 1);
	length = strlen(text);
	if (length + 2 < size)
		memcpy(list, data + length + 2, size - length - 2);
	check_parse(data[0] % SETTING_COUNT, text);
	check_environment(data[0] % SETTING_COUNT, text, list);
	return 0;
}
