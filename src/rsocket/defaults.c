/* SPDX-License-Identifier: BSD-2-Clause */
/* Initial settings of rsockets, from files of the administrator (rsocket(7), NOTES). */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rsocket/objects.h"
#include "rsocket/options.h"

#define DIRECTORY "/etc/rdma/rsocket/"

/* As in the real library (rdma-cm 5). */
static const struct {
	const char *file;
	size_t offset;
	uint32_t value, least, most;
} defaults[] = {
#define DEFAULT(file, member, ...)                                                                                     \
	{                                                                                                              \
		DIRECTORY file, offsetof(struct rsocket_settings, member), __VA_ARGS__                                 \
	}
	DEFAULT("sqsize_default", send_entries, 384, LEAST_ENTRIES, MOST_ENTRIES),
	DEFAULT("rqsize_default", receive_entries, 384, LEAST_ENTRIES, MOST_ENTRIES),
	DEFAULT("inline_default", inline_bytes, 64, 0, MOST_INLINE),
	DEFAULT("mem_default", receive_bytes, 128 << 10, LEAST_BYTES, MOST_BYTES),
	DEFAULT("wmem_default", send_bytes, 128 << 10, LEAST_BYTES, MOST_BYTES),
	DEFAULT("iomap_size", iomap_entries, 0, 0, MOST_MAPPINGS),
	DEFAULT("polling_time", polling_us, 10, 0, 1000000),
	DEFAULT("wake_up_interval", wake_up_ms, 5000, 1, 1000000),
};

uint32_t clamp_setting(uint64_t value, uint32_t least, uint32_t most)
{
	return value < least ? least : value > most ? most : (uint32_t)value;
}

/* Returns the integer in @file, or @value. */
static uint32_t setting_read(const char *file, uint32_t value)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	char text[24];
	ssize_t length;
	char *end;
	long long number;

	if (fd < 0)
		return value;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return value;
	text[length] = '\0';
	number = strtoll(text, &end, 0);
	return end == text || number < 0 ? value : clamp_setting((uint64_t)number, 0, UINT32_MAX);
}

void rsocket_defaults(struct rsocket_settings *settings)
{
	size_t index;

	*settings = (struct rsocket_settings){0};
	for (index = 0; index < sizeof(defaults) / sizeof(defaults[0]); index++) {
		uint32_t value = setting_read(defaults[index].file, defaults[index].value);

		*(uint32_t *)((char *)settings + defaults[index].offset) =
			clamp_setting(value, defaults[index].least, defaults[index].most);
	}
	settings->iomap_entries = stream_unscale(stream_scale(settings->iomap_entries));
}
