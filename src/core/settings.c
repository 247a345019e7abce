/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses and prints the settings of settings.def. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/settings.h"

enum setting_kind { KIND_CHOICE, KIND_NUMBER, KIND_POWER, KIND_TEXT };

struct setting_row {
	struct setting_info info;
	enum setting_kind kind;
	size_t offset, size;             /* offset and size of the field in struct settings */
	uint64_t min, max;               /* of numbers */
	const char *range;               /* of texts */
	bool (*check)(const char *text); /* or NULL: any nonempty text is valid */
};

struct choice_row {
	enum setting setting;
	unsigned int value;
	const char *text;
};

static bool setting_is_device_name(const char *text)
{
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr("_-", *text))
			return false;
	return true;
}

/* Default of settings that are powers of two; stored as 0. */
#define AUTO "auto"

#define ROW(NAME, row_kind, row_field, default_text, doc_text)                                                         \
	.info = {.name = #NAME, .variable = "SOFTHCA_" #NAME, .fallback = default_text, .doc = doc_text},              \
	.kind = KIND_##row_kind, .offset = offsetof(struct settings, row_field),                                       \
	.size = sizeof(((struct settings *)NULL)->row_field)

static const struct setting_row rows[] = {
#define SETTING_CHOICE(NAME, field, DEFAULT, text, used_by, doc)                                                       \
	[SETTING_##NAME] = {ROW(NAME, CHOICE, field, text, doc)},
#define SETTING_NUMBER(NAME, field, type, default_, lowest, highest, used_by, doc)                                     \
	[SETTING_##NAME] = {ROW(NAME, NUMBER, field, #default_, doc), .min = lowest, .max = highest},
#define SETTING_POWER(NAME, field, type, lowest, highest, used_by, doc)                                                \
	[SETTING_##NAME] = {ROW(NAME, POWER, field, AUTO, doc), .min = lowest, .max = highest},
#define SETTING_TEXT(NAME, field, length, default_, values, is_good, used_by, doc)                                     \
	[SETTING_##NAME] = {ROW(NAME, TEXT, field, default_, doc), .range = values, .check = is_good},
#include "core/settings.def"
};

static const struct choice_row choices[] = {
#define CHOICE(NAME, WORD, text, doc) {SETTING_##NAME, NAME##_##WORD, text},
#include "core/settings.def"
};

#define CHOICES (sizeof(choices) / sizeof(choices[0]))

static const char *const alone[SETTING_COUNT] = {
#define OPTION_ALONE(NAME, value) [SETTING_##NAME] = (value),
#include "core/settings.def"
};

static const char *const variables[] = {
#define VARIABLE(NAME, ...) #NAME,
#include "core/settings.def"
};

const struct setting_info *setting_info(enum setting setting)
{
	return &rows[setting].info;
}

const char *setting_alone(enum setting setting)
{
	return alone[setting];
}

static void range_append(char *out, size_t size, int *length, const char *format, ...)
{
	size_t used = (size_t)*length < size ? (size_t)*length : size;
	va_list args;

	va_start(args, format);
	*length += vsnprintf(out + used, size - used, format, args);
	va_end(args);
}

int setting_range(enum setting setting, char *out, size_t size)
{
	const struct setting_row *row = &rows[setting];
	const char *separator = "";
	int length = 0;

	if (size)
		*out = '\0';
	switch (row->kind) {
	case KIND_CHOICE:
		for (size_t i = 0; i < CHOICES; i++) {
			if (choices[i].setting != setting)
				continue;
			range_append(out, size, &length, "%s%s", separator, choices[i].text);
			separator = ", ";
		}
		break;
	case KIND_NUMBER:
		range_append(out, size, &length, "%" PRIu64 " to %" PRIu64, row->min, row->max);
		break;
	case KIND_POWER:
		range_append(out, size, &length, AUTO " or a power of two, %" PRIu64 " to %" PRIu64, row->min,
			     row->max);
		break;
	case KIND_TEXT:
		range_append(out, size, &length, "%s", row->range);
		break;
	}
	return length;
}

static void setting_store_number(struct settings *settings, const struct setting_row *row, uint64_t value)
{
	char *field = (char *)settings + row->offset;

	if (row->size == sizeof(uint64_t))
		memcpy(field, &value, sizeof(value));
	else
		memcpy(field, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
}

static uint64_t setting_load_number(const struct settings *settings, const struct setting_row *row)
{
	const char *field = (const char *)settings + row->offset;
	uint64_t value = 0;
	uint32_t narrow;

	if (row->size == sizeof(value)) {
		memcpy(&value, field, sizeof(value));
		return value;
	}
	memcpy(&narrow, field, sizeof(narrow));
	return narrow;
}

static int setting_parse_choice(struct settings *settings, enum setting setting, const char *text)
{
	for (size_t i = 0; i < CHOICES; i++) {
		if (choices[i].setting == setting && strcmp(choices[i].text, text) == 0) {
			setting_store_number(settings, &rows[setting], choices[i].value);
			return 0;
		}
	}
	return -EINVAL;
}

/* Accepts nothing before or after the number: strtoull(3) alone would accept "-1" and " 1". */
static int setting_parse_number(struct settings *settings, const struct setting_row *row, const char *text)
{
	int base = strncmp(text, "0x", 2) == 0 ? 16 : 10;
	const char *digits = base == 16 ? text + 2 : text;
	unsigned long long value;
	char *end;

	if (row->kind == KIND_POWER && strcmp(text, AUTO) == 0) {
		setting_store_number(settings, row, 0);
		return 0;
	}
	if (!isxdigit((unsigned char)*digits))
		return -EINVAL;
	errno = 0;
	value = strtoull(digits, &end, base);
	if (errno || end == digits || *end || value < row->min || value > row->max)
		return -EINVAL;
	if (row->kind == KIND_POWER && (value & (value - 1)))
		return -EINVAL;
	setting_store_number(settings, row, value);
	return 0;
}

static int setting_parse_text(struct settings *settings, const struct setting_row *row, const char *text)
{
	size_t length = strlen(text);

	if (length == 0 || length >= row->size || (row->check && !row->check(text)))
		return -EINVAL;
	memcpy((char *)settings + row->offset, text, length + 1);
	return 0;
}

/* Copies @text as one line of printable ASCII, because the environment may contain any bytes. */
static void make_printable(const char *text, char *out, size_t size)
{
	size_t i;

	for (i = 0; text[i] && i + 1 < size; i++)
		out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	out[i] = '\0';
}

int setting_parse(struct settings *settings, enum setting setting, const char *text, enum setting_origin origin,
		  char *error, size_t error_size)
{
	const struct setting_row *row = &rows[setting];
	char range[128], value[64];
	int result = -EINVAL;

	switch (row->kind) {
	case KIND_CHOICE:
		result = setting_parse_choice(settings, setting, text);
		break;
	case KIND_NUMBER:
	case KIND_POWER:
		result = setting_parse_number(settings, row, text);
		break;
	case KIND_TEXT:
		result = setting_parse_text(settings, row, text);
		break;
	}
	if (result) {
		setting_range(setting, range, sizeof(range));
		make_printable(text, value, sizeof(value));
		snprintf(error, error_size, "%s: bad value \"%s\" (expected: %s)", row->info.variable, value, range);
		return result;
	}
	settings->origin[setting] = origin;
	return 0;
}

void settings_default(struct settings *settings)
{
	*settings = (struct settings){
#define SETTING_CHOICE(NAME, field, DEFAULT, ...) .field = NAME##_##DEFAULT,
#define SETTING_NUMBER(NAME, field, type, default_, ...) .field = (default_),
#define SETTING_POWER(NAME, field, ...) .field = 0,
#define SETTING_TEXT(NAME, field, size, default_, ...) .field = default_,
#include "core/settings.def"
	};
}

static bool name_is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	while (list) {
		if (strncmp(list, name, length) == 0 && (list[length] == ',' || list[length] == '\0'))
			return true;
		list = strchr(list, ',');
		list = list ? list + 1 : NULL;
	}
	return false;
}

/* Uses secure_getenv(3): the caller of a set-user-id program must not choose files that the program writes. */
static const char *environment_get(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : NULL;
}

int setting_from_environment(struct settings *settings, enum setting setting, char *error, size_t error_size)
{
	const struct setting_info *info = setting_info(setting);
	const char *text = environment_get(info->variable);
	bool option;

	if (!text)
		return 0;
	option = name_is_listed(environment_get(SETTINGS_FROM_OPTIONS), info->name);
	return setting_parse(settings, setting, text, option ? ORIGIN_OPTION : ORIGIN_ENVIRONMENT, error, error_size);
}

int setting_format(const struct settings *settings, enum setting setting, char *out, size_t size)
{
	const struct setting_row *row = &rows[setting];

	if (row->kind == KIND_TEXT)
		return snprintf(out, size, "%s", (const char *)settings + row->offset);
	if (row->kind == KIND_POWER && !setting_load_number(settings, row))
		return snprintf(out, size, AUTO);
	if (row->kind != KIND_CHOICE)
		return snprintf(out, size, "%" PRIu64, setting_load_number(settings, row));
	for (size_t i = 0; i < CHOICES; i++)
		if (choices[i].setting == setting && choices[i].value == setting_load_number(settings, row))
			return snprintf(out, size, "%s", choices[i].text);
	return snprintf(out, size, "?");
}

const char *setting_origin_name(enum setting_origin origin)
{
	static const char *const names[] = {
		[ORIGIN_DEFAULT] = "default",
		[ORIGIN_ENVIRONMENT] = "environment",
		[ORIGIN_OPTION] = "option",
	};

	return names[origin];
}

const char *variable_get(enum variable variable)
{
	return environment_get(variables[variable]);
}

int setting_path(const char *text, char *path, size_t size)
{
	size_t length = 0;

	for (; *text && length < size; text++) {
		if (text[0] == '%' && text[1] == 'p') {
			length += (size_t)snprintf(path + length, size - length, "%d", (int)getpid());
			text++;
		} else {
			path[length++] = *text;
		}
	}
	if (length >= size)
		return -ENAMETOOLONG;
	path[length] = '\0';
	return 0;
}
