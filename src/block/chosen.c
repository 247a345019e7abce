/* SPDX-License-Identifier: BSD-2-Clause */
/* See chosen.h. */
#include "block/chosen.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "block/guard_kernels.h"
#include "block/xts.h"

__attribute__((format(printf, 3, 4))) static void text_append(char *text, size_t size, const char *format, ...)
{
	size_t length = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + length, size - length, format, args);
	va_end(args);
}

static void features_name(char *text, size_t size, uint32_t features)
{
	static const char *const names[] = {
#define FEATURE(NAME, name) name,
		CPU_FEATURES(FEATURE)
#undef FEATURE
			"",
	};

	*text = '\0';
	for (unsigned int i = 0; i < CPU_FEATURE_COUNT; i++)
		if (features >> i & 1)
			text_append(text, size, "%s%s", *text ? " " : "", names[i]);
}

/* Returns the features that the fastest kernel of each type and the cipher need. */
static uint32_t features_of_fastest(void)
{
	uint32_t features = XTS_NEEDS;

	for (unsigned int type = GUARD_NONE + 1; type < GUARD_TYPE_COUNT; type++)
		features |= guard_choose(UINT32_MAX, type)->needs;
	return features;
}

void softhca_block_kernels(struct softhca_kernels *kernels)
{
	static const struct {
		enum guard_type type;
		const char *name;
	} types[] = {{GUARD_T10_CRC, "T10-DIF"},
		     {GUARD_CRC32, "CRC32"},
		     {GUARD_CRC32C, "CRC32C"},
		     {GUARD_CRC64_XP10, "CRC64"},
		     {GUARD_IP_CHECKSUM, "checksum"}};
	uint32_t features = cpu_features();

	kernels->chosen[0] = '\0';
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		text_append(kernels->chosen, sizeof(kernels->chosen), "%s by %s, ", types[i].name,
			    guard_choose(features, types[i].type)->name);
	text_append(kernels->chosen, sizeof(kernels->chosen), "AES-XTS by %s",
		    XTS_NEEDS && cpu_has(XTS_NEEDS) ? "vaes" : "OpenSSL");
	features_name(kernels->present, sizeof(kernels->present), features);
	features_name(kernels->missing, sizeof(kernels->missing), features_of_fastest() & ~features);
}
