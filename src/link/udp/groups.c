/* SPDX-License-Identifier: BSD-2-Clause */
/* See groups.h. */
#include "link/udp/groups.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/descriptor.h"
#include "core/epoch.h"
#include "progress/progress.h"
#include "link/host/host.h"
#include "link/udp/parts.h"

/* Values chosen for speed. */
enum {
	/* ns between two checks for permission to bind a group's socket next to the port */
	UDP_GROUP_NAP_NS = 1000000,
	/* maximum number of such checks */
	UDP_GROUP_NAPS = 500,
};

struct group {
	struct group *next; /* atomic */
	union ibv_gid gid;
	uint32_t members;
	struct watched_fd socket;
};

struct udp_groups {
	pthread_mutex_t lock;
	struct group *first; /* atomic */
};

struct udp_groups *udp_groups_new(void)
{
	struct udp_groups *groups = calloc(1, sizeof(*groups));

	if (groups)
		pthread_mutex_init(&groups->lock, NULL);
	return groups;
}

static struct group *group_load(struct group **place)
{
	return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}

/* ---- sockets ---------------------------------------------------------------------------------------------------- */

static int group_bind(int fd, const union ibv_gid *group, uint16_t port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htobe16(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htobe16(port)};

	memcpy(&v4.sin_addr, group->raw + 12, sizeof(v4.sin_addr));
	memcpy(&v6.sin6_addr, group, sizeof(v6.sin6_addr));
	return gid_is_ipv4(group) ? udp_port_bind_group(fd, (const struct sockaddr *)&v4, sizeof(v4))
				  : udp_port_bind_group(fd, (const struct sockaddr *)&v6, sizeof(v6));
}

/* Retries for a while, because a new process may not have received the port's socket from its owner yet. */
static int group_bind_soon(int fd, const union ibv_gid *group, uint16_t port)
{
	const struct timespec nap = {.tv_nsec = UDP_GROUP_NAP_NS};
	int error = group_bind(fd, group, port);

	for (int i = 0; error == -EAGAIN && i < UDP_GROUP_NAPS; i++) {
		nanosleep(&nap, NULL);
		error = group_bind(fd, group, port);
	}
	return error == -EAGAIN ? -EADDRINUSE : error;
}

static int group_join_interface(int fd, const union ibv_gid *group, uint32_t ifindex)
{
	struct ip_mreqn v4 = {.imr_ifindex = (int)ifindex};
	struct ipv6_mreq v6 = {.ipv6mr_interface = ifindex};
	int error;

	if (gid_is_ipv4(group)) {
		memcpy(&v4.imr_multiaddr, group->raw + 12, sizeof(v4.imr_multiaddr));
		error = setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &v4, sizeof(v4));
	} else {
		memcpy(&v6.ipv6mr_multiaddr, group, sizeof(v6.ipv6mr_multiaddr));
		error = setsockopt(fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &v6, sizeof(v6));
	}
	return error && errno != EADDRINUSE ? -errno : 0;
}

/* The table has several entries per interface. Returns an error only if no interface succeeds. */
static int group_join_interfaces(int fd, const struct hca *hca, const union ibv_gid *group)
{
	int error = -ENODEV, result;
	bool joined = false;

	for (size_t i = 0; i < hca->gid_count; i++) {
		if (i && hca->gids[i].ifindex == hca->gids[i - 1].ifindex)
			continue;
		result = group_join_interface(fd, group, hca->gids[i].ifindex);
		joined |= !result;
		error = result ? result : error;
	}
	return joined ? 0 : error;
}

static int group_open(const struct hca *hca, const union ibv_gid *group)
{
	int fd = udp_group_open(!gid_is_ipv4(group)), error;

	if (fd < 0)
		return fd;
	error = group_bind_soon(fd, group, (uint16_t)hca->settings.roce_port);
	if (!error)
		error = group_join_interfaces(fd, hca, group);
	if (error)
		descriptor_close(fd);
	return error ? error : fd;
}

/* ---- joining ---------------------------------------------------------------------------------------------------- */

/* Returns the place of @gid in the list, or the end of the list. The lock is held. */
static struct group **group_find(struct udp_groups *groups, const union ibv_gid *gid)
{
	struct group **place = &groups->first;

	while (*place && memcmp(&(*place)->gid, gid, sizeof(*gid)) != 0)
		place = &(*place)->next;
	return place;
}

/* The lock is held. */
static int group_add(const struct hca *hca, const union ibv_gid *gid, struct group **place)
{
	struct group *group = malloc(sizeof(*group));
	int error;

	if (!group)
		return -ENOMEM;
	*group = (struct group){.gid = *gid, .members = 1, .socket.fd = group_open(hca, gid)};
	error = group->socket.fd < 0 ? group->socket.fd : progress_watch_arrivals(&group->socket, EPOLLIN);
	if (error) {
		if (group->socket.fd >= 0)
			descriptor_close(group->socket.fd);
		free(group);
		return error;
	}
	__atomic_store_n(place, group, __ATOMIC_RELEASE);
	return 0;
}

void udp_join(struct hca *hca, const union ibv_gid *gid)
{
	WITHOUT_CANCELLATION;
	struct udp_groups *groups = hca->registry->udp_groups;
	struct group **place;
	int error = 0;

	udp_begin(hca);
	pthread_mutex_lock(&groups->lock);
	place = group_find(groups, gid);
	if (*place)
		(*place)->members++;
	else
		error = group_add(hca, gid, place);
	pthread_mutex_unlock(&groups->lock);
	if (error)
		EXPLAIN(hca, (&(const struct explain_subject){0}), RULE_UDP_NO_GROUP,
			be64toh(gid->global.subnet_prefix), be64toh(gid->global.interface_id), (uint64_t)-error);
}

void udp_leave(struct hca *hca, const union ibv_gid *gid)
{
	WITHOUT_CANCELLATION;
	struct udp_groups *groups = hca->registry->udp_groups;
	struct group **place, *group;

	pthread_mutex_lock(&groups->lock);
	place = group_find(groups, gid);
	group = *place;
	/* The group is missing if joining failed. */
	if (group && --group->members == 0) {
		__atomic_store_n(place, group->next, __ATOMIC_RELEASE);
		progress_unwatch(&group->socket);
		epoch_synchronize();
		/* Locked, so that a forked child finds every descriptor recorded. */
		descriptor_close(group->socket.fd);
		free(group);
	}
	pthread_mutex_unlock(&groups->lock);
}

/* ---- sending and receiving -------------------------------------------------------------------------------------- */

bool udp_reaches_group(const struct packet_path *path)
{
	const uint8_t *source = path->source.raw;
	bool link_local = source[0] == 0xfe && (source[1] & 0xc0) == 0x80;

	return path->type == IBV_GID_TYPE_ROCE_V2 && !link_local &&
	       gid_is_ipv4(&path->source) == gid_is_ipv4(&path->destination);
}

bool udp_groups_poll(struct udp_groups *groups, bool (*poll)(int fd))
{
	bool found = false;

	for (struct group *group = group_load(&groups->first); group; group = group_load(&group->next))
		found |= poll(group->socket.fd);
	return found;
}

bool udp_is_own_datagram(const struct hca *hca, const struct packet *packet)
{
	return host_owns(packet->source_qpn) &&
	       gid_find(hca->gids, hca->gid_count, &packet->path->source, IBV_GID_TYPE_ROCE_V2) >= 0;
}

/* ---- fork ------------------------------------------------------------------------------------------------------- */

void udp_groups_lock(struct udp_groups *groups)
{
	pthread_mutex_lock(&groups->lock);
}

void udp_groups_unlock(struct udp_groups *groups)
{
	pthread_mutex_unlock(&groups->lock);
}

void udp_groups_forget(struct udp_groups *groups)
{
	struct group *group;

	while ((group = groups->first)) {
		groups->first = group->next;
		descriptor_close(group->socket.fd);
		free(group);
	}
}
