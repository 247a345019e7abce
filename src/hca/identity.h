/* SPDX-License-Identifier: BSD-2-Clause */
/* Identity of a device, the same in every process of a host. Pure functions; any thread may call. */
#ifndef SOFTHCA_HCA_IDENTITY_H
#define SOFTHCA_HCA_IDENTITY_H

#include <stddef.h>

#include "hca/gid.h"

/**
 * Returns the GUID of device @index of this host: locally administered, made from the first interface's hardware
 * address. @first: the GID table.
 */
__be64 identity_guid(const struct hca_gid *first, size_t index);

/** Writes the firmware version: 22 (ConnectX-6 Dx), and softhca's version as minor numbers. */
void identity_firmware(char *out, size_t size);

#endif
