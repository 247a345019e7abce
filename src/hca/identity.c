/* SPDX-License-Identifier: BSD-2-Clause */
/* Identity of a device. */
#include "hca/identity.h"

#include <stdio.h>
#include <string.h>

__be64 identity_guid(const struct hca_gid *first, size_t index)
{
	const uint8_t *mac = first->mac;
	const uint8_t bytes[8] = {mac[0] | 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], (uint8_t)(mac[5] + index)};
	__be64 guid;

	memcpy(&guid, bytes, sizeof(guid));
	return guid;
}

void identity_firmware(char *out, size_t size)
{
	unsigned int major = 0, minor = 0, patch = 0;

	sscanf(SOFTHCA_VERSION, "%u.%u.%u", &major, &minor, &patch);
	snprintf(out, size, "22.%u.%04u", 100 * major + minor, patch);
}
