/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses within a host, 127.83.0.0/16, for GIDs that are not the address of an interface; see link/udp/DESIGN.md,
 * "GIDs that are not addresses". Pure functions; any thread.
 */
#ifndef SOFTHCA_LINK_HOST_INNER_H
#define SOFTHCA_LINK_HOST_INNER_H

#include <stdbool.h>

struct hca;
struct packet_path;

/** Returns true unless both GIDs of @path are addresses that the kernel has. */
bool inner_path_is_needed(const struct packet_path *path);

/**
 * Replaces the GIDs of @path by inner addresses, if both are in @hca's table and inner_path_is_needed().
 */
void inner_path_make(const struct hca *hca, struct packet_path *path);

/** Replaces inner addresses by the GIDs and the type of entries of @hca's table, if both ends have one. */
void inner_path_resolve(const struct hca *hca, struct packet_path *path);

#endif
