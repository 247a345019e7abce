/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of umems and UARs, and names of kinds of objects: see context.h. */
#include "devx/context.h"

#include <stdlib.h>

uint32_t devx_number_new(struct devx_numbers *numbers, void *object)
{
	uint32_t index = 0, count;
	void **more;

	while (index < numbers->count && numbers->entry[index])
		index++;
	if (index == numbers->count) {
		count = numbers->count ? 2 * numbers->count : 8;
		more = realloc(numbers->entry, count * sizeof(*more));
		if (!more)
			return 0;
		for (uint32_t i = numbers->count; i < count; i++)
			more[i] = NULL;
		numbers->entry = more;
		numbers->count = count;
	}
	numbers->entry[index] = object;
	return index + 1;
}

void *devx_number_find(const struct devx_numbers *numbers, uint32_t number)
{
	return number && number <= numbers->count ? numbers->entry[number - 1] : NULL;
}

void devx_number_free(struct devx_numbers *numbers, uint32_t number)
{
	if (devx_number_find(numbers, number))
		numbers->entry[number - 1] = NULL;
}

const char *devx_kind_name(enum devx_kind kind)
{
	static const char *const names[DEVX_KIND_COUNT] = {
		[DEVX_NONE] = "nothing",
		[DEVX_PD] = "PD",
		[DEVX_TRANSPORT_DOMAIN] = "TD",
		[DEVX_CQ] = "CQ",
		[DEVX_QP] = "QP",
		[DEVX_DCT] = "DCT",
		[DEVX_RMP] = "RMP",
		[DEVX_MKEY] = "key",
		[DEVX_PSV] = "PSV",
		[DEVX_GENERAL_OBJECT] = "object",
		[DEVX_DEK] = "DEK",
		[DEVX_LOGIN] = "login",
	};

	return names[kind];
}
