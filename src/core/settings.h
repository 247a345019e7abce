/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings: values that the user chose by SOFTHCA_* variables or options of `softhca run`. settings.def is the table.
 *
 * A struct settings is plain data: its declarer owns it, nothing needs to be freed, and once filled it may be read from
 * any thread. Only setting_from_environment() reads the environment.
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

/* SETTING_PROFILE, …: the settings by number. */
enum setting {
#define SETTING_CHOICE(NAME, ...) SETTING_##NAME,
#define SETTING_NUMBER(NAME, ...) SETTING_##NAME,
#define SETTING_POWER(NAME, ...) SETTING_##NAME,
#define SETTING_TEXT(NAME, ...) SETTING_##NAME,
#include "core/settings.def"
	SETTING_COUNT
};

/* VARIABLE_MLX5_CQE_SIZE, …: variables of the real libraries by number. */
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

/* One row of the table as text, for help, documents and messages. */
struct setting_info {
	const char *name;     /* "DEVICE_NAME" */
	const char *variable; /* "SOFTHCA_DEVICE_NAME" */
	const char *fallback; /* default, as text */
	const char *doc;
};

/** Returns the row of @setting (< SETTING_COUNT); constant. */
const struct setting_info *setting_info(enum setting setting);

/** Returns the value of the option of @setting when it is given without one; NULL: it requires a value. Constant. */
const char *setting_alone(enum setting setting);

/** Writes the range of @setting ("man, connectx" or "1 to 16") to @out. Returns the length, as snprintf. */
int setting_range(enum setting setting, char *out, size_t size);

/** Fills @settings with the defaults. */
void settings_default(struct settings *settings);

/**
 * Parses @text and stores it with its @origin. On a bad value leaves @settings unchanged, writes one line without a
 * newline to @error that names the variable, the value and the range, and returns -EINVAL.
 */
int setting_parse(struct settings *settings, enum setting setting, const char *text, enum setting_origin origin,
		  char *error, size_t error_size);

/**
 * Reads @setting from its environment variable if that is set (an empty value counts as unset; nothing is read in a
 * set-user-id program). Returns as setting_parse(): on -EINVAL the previous value, usually the default, stays.
 */
int setting_from_environment(struct settings *settings, enum setting setting, char *error, size_t error_size);

/** Writes the value of @setting as text that setting_parse() accepts. Returns the length, as snprintf. */
int setting_format(const struct settings *settings, enum setting setting, char *out, size_t size);

/**
 * Writes the path that the value @text of a setting names to @path: each %p becomes the number of this process. Returns 0 or
 * -ENAMETOOLONG. Any thread may call.
 */
int setting_path(const char *text, char *path, size_t size);

/** Returns the word for an origin: "default", "environment", "option". */
const char *setting_origin_name(enum setting_origin origin);

/**
 * Returns the current value of a variable of the real libraries; NULL if unset, empty, or in a set-user-id program. The
 * string belongs to the environment.
 */
const char *variable_get(enum variable variable);

/*
 * `softhca run` passes options on as SOFTHCA_* variables, and lists their names here, separated by commas, to preserve
 * the origin.
 */
#define SETTINGS_FROM_OPTIONS "SOFTHCA_RUN_OPTIONS"

#endif
