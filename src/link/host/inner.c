/* SPDX-License-Identifier: BSD-2-Clause */
/* See inner.h. */
#include "hca/hca.h"
#include "hca/gid.h"
#include "link/host/inner.h"
#include "wire/packet.h"

#define INNER_NETWORK 0x7f530000u
#define INNER_MASK 0xffff0000u

/* Prefers @type if the table has @gid twice. Returns -ENOENT if it does not have it. */
static int gid_index(const struct hca *hca, const union ibv_gid *gid, enum ibv_gid_type type)
{
	int index = gid_find(hca->gids, hca->gid_count, gid, type);

	return index < 0 ? gid_find(hca->gids, hca->gid_count, gid, IBV_GID_TYPE_ROCE_V2) : index;
}

bool inner_path_is_needed(const struct packet_path *path)
{
	return path->type != IBV_GID_TYPE_ROCE_V2 || gid_is_link_local(&path->source) ||
	       gid_is_link_local(&path->destination);
}

static const struct hca_gid *inner_entry(const struct hca *hca, const union ibv_gid *gid)
{
	uint32_t address = gid_is_ipv4(gid) ? gid_ipv4(gid) : 0;
	uint32_t number = address & ~INNER_MASK;

	if ((address & INNER_MASK) != INNER_NETWORK || number == 0 || number > hca->gid_count)
		return NULL;
	return &hca->gids[number - 1];
}

void inner_path_make(const struct hca *hca, struct packet_path *path)
{
	int source, destination;

	if (!inner_path_is_needed(path))
		return;
	source = gid_index(hca, &path->source, path->type);
	destination = gid_index(hca, &path->destination, path->type);
	if (source < 0 || destination < 0)
		return;
	path->source = gid_of_ipv4(INNER_NETWORK + (uint32_t)source + 1);
	path->destination = gid_of_ipv4(INNER_NETWORK + (uint32_t)destination + 1);
}

void inner_path_resolve(const struct hca *hca, struct packet_path *path)
{
	const struct hca_gid *source = inner_entry(hca, &path->source);
	const struct hca_gid *destination = inner_entry(hca, &path->destination);

	if (!source || !destination)
		return;
	path->source = source->gid;
	path->destination = destination->gid;
	path->type = destination->type;
}
