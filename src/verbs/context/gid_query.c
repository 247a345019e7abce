/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries are written up to the size of the program's structure (entry_size), which may be older or newer than this
 * library's.
 */
#include <errno.h>
#include <string.h>

#include "abi/entry_points.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/object/objects.h"

/* Truncates or zero-pads the entry to @size bytes. */
static void gid_query_put(const struct hca_gid *gids, uint32_t index, void *out, size_t size)
{
	const struct ibv_gid_entry entry = {
		.gid = gids[index].gid,
		.gid_index = index,
		.port_num = 1,
		.gid_type = gids[index].type,
		.ndev_ifindex = gids[index].ifindex,
	};

	memset(out, 0, size);
	memcpy(out, &entry, size < sizeof(entry) ? size : sizeof(entry));
}

/* Checks the arguments as the kernel does. Returns an errno value; ENODATA for an empty index. */
static int gid_query_check(struct hca *hca, const char *call, uint32_t port, uint32_t index, uint32_t flags)
{
	size_t count;

	hca_gids(hca, &count);
	if (flags)
		return REFUSE(hca, call, EINVAL, RULE_QUERY_FLAGS, flags);
	if (port < 1 || port > LIMIT_PORTS)
		return REFUSE(hca, call, EINVAL, RULE_PORT_NUMBER, port, LIMIT_PORTS);
	if (index >= LIMIT_GID_TABLE)
		return REFUSE(hca, call, EINVAL, RULE_GID_INDEX, (int32_t)index, LIMIT_GID_TABLE);
	return index < count ? 0 : ENODATA;
}

int softhca__ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
			      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct hca *hca = hca_of_context(context);
	int error = gid_query_check(hca, "ibv_query_gid_ex", port_num, gid_index, flags);
	size_t count;

	if (!error)
		gid_query_put(hca_gids(hca, &count), gid_index, entry, entry_size);
	return error;
}

/* An empty entry is the zero GID: programs detect the end of the table by it. */
int softhca_ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	struct hca *hca = hca_of_context(context);
	int error = gid_query_check(hca, "ibv_query_gid", port_num, (uint32_t)index, 0);
	size_t count;

	if (error && error != ENODATA) {
		errno = error;
		return -1;
	}
	if (error)
		memset(gid, 0, sizeof(*gid));
	else
		*gid = hca_gids(hca, &count)[index].gid;
	return 0;
}

ssize_t softhca__ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
				     uint32_t flags, size_t entry_size)
{
	struct hca *hca = hca_of_context(context);
	size_t index, count;
	const struct hca_gid *gids = hca_gids(hca, &count);

	if (flags)
		return -REFUSE(hca, "ibv_query_gid_table", EINVAL, RULE_QUERY_FLAGS, flags);
	if (max_entries < count)
		return -REFUSE(hca, "ibv_query_gid_table", EINVAL, RULE_GID_TABLE_ROOM, max_entries, count);
	for (index = 0; index < count; index++)
		gid_query_put(gids, (uint32_t)index, (char *)entries + index * entry_size, entry_size);
	return (ssize_t)count;
}
