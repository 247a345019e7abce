/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings: values that the user chose by SOFTHCA_* variables or options of `softhca run` (settings.def). Any thread
 * may read a filled struct settings. Only setting_from_environment() reads the environment.
 */
#ifndef SOFTHCA_CORE_SETTINGS_H
#define SOFTHCA_CORE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* enum setting_PROFILE { PROFILE_MAN, PROFILE_CONNECTX }; likewise for each choice. */
#define SETTING_CHOICE(NAME, ...)                                                                                      \
	enum setting_##NAME                                                                                            \
	{
#define CHOICE(NAME, WORD, ...) NAME##_##WORD,
#define SETTING_CHOICE_END(NAME)                                                                                       \
	}                                                                                                              \
	;
#include "core/settings.def"

/* SETTING_PROFILE, … */
enum setting {
#define SETTING_CHOICE(NAME, ...) SETTING_##NAME,
#define SETTING_NUMBER(NAME, ...) SETTING_##NAME,
#define SETTING_POWER(NAME, ...) SETTING_##NAME,
#define SETTING_TEXT(NAME, ...) SETTING_##NAME,
#include "core/settings.def"
	SETTING_COUNT
};

/* VARIABLE_MLX5_CQE_SIZE, …: variables of the real libraries. */
enum variable {
#define VARIABLE(NAME, ...) VARIABLE_##NAME,
#include "core/settings.def"
	VARIABLE_COUNT
};

enum setting_origin {
	ORIGIN_DEFAULT,
	ORIGIN_ENVIRONMENT,
	ORIGIN_OPTION, /* of `softhca run` */
};

struct settings {
#define SETTING_CHOICE(NAME, field, ...) enum setting_##NAME field;
#define SETTING_NUMBER(NAME, field, type, ...) type field;
#define SETTING_POWER(NAME, field, type, ...) type field;
#define SETTING_TEXT(NAME, field, size, ...) char field[size];
#include "core/settings.def"
	enum setting_origin origin[SETTING_COUNT];
};

/* A row of the table as text. */
struct setting_info {
	const char *name;     /* "DEVICE_NAME" */
	const char *variable; /* "SOFTHCA_DEVICE_NAME" */
	const char *fallback; /* default, as text */
	const char *doc;
};

/** Constant. */
const struct setting_info *setting_info(enum setting setting);

/** Returns the value of an option that is given without one; NULL: it requires a value. Constant. */
const char *setting_alone(enum setting setting);

/** Writes the range of @setting ("man, connectx" or "1 to 16") to @out. Returns the length, as snprintf. */
int setting_range(enum setting setting, char *out, size_t size);

void settings_default(struct settings *settings);

/**
 * Parses @text and stores it with its @origin. On a bad value leaves @settings unchanged, writes a line to @error,
 * without a newline, and returns -EINVAL.
 */
int setting_parse(struct settings *settings, enum setting setting, const char *text, enum setting_origin origin,
		  char *error, size_t error_size);

/**
 * Reads @setting from its environment variable if that is set and not empty, and the program is not set-user-id.
 * Returns as setting_parse(): after -EINVAL the previous value stays.
 */
int setting_from_environment(struct settings *settings, enum setting setting, char *error, size_t error_size);

/** Writes the value of @setting as text that setting_parse() accepts. Returns the length, as snprintf. */
int setting_format(const struct settings *settings, enum setting setting, char *out, size_t size);

/**
 * Writes the path @text to @path, with each %p replaced by the number of this process. Returns 0 or -ENAMETOOLONG. Any
 * thread may call.
 */
int setting_path(const char *text, char *path, size_t size);

/** Returns "default", "environment" or "option". */
const char *setting_origin_name(enum setting_origin origin);

/**
 * Returns the value of a variable of the real libraries; NULL if unset, empty, or in a set-user-id program. The string
 * belongs to the environment.
 */
const char *variable_get(enum variable variable);

/* `softhca run` passes options as SOFTHCA_* variables, and lists their names here, separated by commas. */
#define SETTINGS_FROM_OPTIONS "SOFTHCA_RUN_OPTIONS"

#endif
