/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements the counters and faults of softhca.h. */
#include "softhca.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observe/counters.h"
#include "filter/faults.h"
#include "filter/filter.h"
#include "process/report.h"
#include "verbs/object/objects.h"

size_t softhca_read_counters(struct ibv_context *context, struct softhca_counter *out, size_t max,
			     size_t structure_size)
{
	const struct hca *hca = hca_of_context(context);
	size_t common = structure_size < sizeof(*out) ? structure_size : sizeof(*out);
	uint8_t *to = (uint8_t *)out;
	size_t count;

	for (count = 0; count < max && count < COUNTER_COUNT; count++, to += structure_size) {
		const struct counter_info *info = counter_info(count);
		const struct softhca_counter whole = {info->name, info->doc, counter_read(hca, count)};

		memset(to, 0, structure_size);
		memcpy(to, &whole, common);
	}
	return count;
}

uint64_t softhca_counter(struct ibv_context *context, const char *name)
{
	for (size_t i = 0; i < COUNTER_COUNT; i++)
		if (!strcmp(counter_info(i)->name, name))
			return counter_read(hca_of_context(context), i);
	return UINT64_MAX;
}

/*
 * Reads a fault script. Returns 0 or a negative errno. *@script is NULL if the faults are to be removed; otherwise
 * the caller frees it.
 */
static int read_script(const char *text, struct fault_script **script, struct fault_error *where, char *error,
		       size_t size)
{
	char none[1];
	int result;

	*script = NULL;
	if (!text || !strcmp(text, "off"))
		return 0;
	*where = (struct fault_error){.line = 0};
	*script = malloc(sizeof(**script));
	result = *script ? fault_script_read(*script, text, where, error ? error : none, error ? size : 0) : -ENOMEM;
	if (result) {
		free(*script);
		*script = NULL;
	}
	return result;
}

int softhca_set_faults(struct ibv_context *context, const char *text, char *error, size_t size)
{
	struct hca *hca = hca_of_context(context);
	struct fault_script *script;
	struct fault_error where;
	int result = read_script(text, &script, &where, error, size);

	if (result == -EINVAL)
		return REFUSE(hca, "softhca_set_faults", EINVAL, RULE_FAULT_SCRIPT, where.line, where.column);
	if (result)
		return REFUSE(hca, "softhca_set_faults", -result, RULE_FAULT_FILE, (uint64_t)-result);
	result = filters_set_faults(hca, script);
	free(script);
	if (!result)
		report_at_exit();
	return -result;
}

int softhca_check_faults(const char *text, char *error, size_t size)
{
	struct fault_script *script;
	struct fault_error where;
	int result = read_script(text, &script, &where, error, size);

	free(script);
	return -result;
}

struct text {
	char *buffer;
	size_t size, length;
};

static void put_line(void *argument, const char *line)
{
	struct text *text = argument;
	size_t used = text->length < text->size ? text->length : text->size;

	text->length +=
		(size_t)snprintf(used < text->size ? text->buffer + used : NULL, text->size - used, "%s\n", line);
}

size_t softhca_fault_summary(struct ibv_context *context, char *buffer, size_t size)
{
	struct text text = {buffer, size, 0};

	if (size)
		*buffer = '\0';
	filters_fault_summary(hca_of_context(context), put_line, &text);
	return text.length;
}
