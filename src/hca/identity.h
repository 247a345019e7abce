/* SPDX-License-Identifier: BSD-2-Clause */
/* Identity that a device reports, the same in every process of a host. Pure functions; any thread may call. */
#ifndef SOFTHCA_HCA_IDENTITY_H
#define SOFTHCA_HCA_IDENTITY_H

#include <stddef.h>

#include "hca/gid.h"

/**
 * Returns the GUID of device number @index of this host: locally administered, made from the hardware address of the
 * first interface. @first: beginning of the device's GID table.
 */
__be64 identity_guid(const struct hca_gid *first, size_t index);

/**
 * Writes the firmware version in the form of ConnectX-6 Dx, 22.minor.subminor, with softhca's own version as the minor
 * numbers.
 */
void identity_firmware(char *out, size_t size);

#endif
