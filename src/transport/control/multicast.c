/* SPDX-License-Identifier: BSD-2-Clause */
/* Attaching QPs to multicast groups. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/epoch.h"
#include "core/limits.h"
#include "transport/control/commands.h"
#include "transport/qp/multicast.h"
#include "transport/qp/qp.h"
#include "wire/routes.h"

/* Returns the index of @qpn in @group, or the count of the list. @size: members of the group. */
static uint32_t member_find(const struct multicast_list *list, const union ibv_gid *group, uint32_t qpn, uint32_t *size)
{
	uint32_t found = list->count;

	*size = 0;
	for (uint32_t i = multicast_next(list, group, 0); i < list->count; i = multicast_next(list, group, i + 1)) {
		++*size;
		if (list->member[i].qpn == qpn)
			found = i;
	}
	return found;
}

/* Returns a copy of @list with room for @count members, or NULL. */
static struct multicast_list *list_copy(const struct multicast_list *list, uint32_t count)
{
	struct multicast_list *copy = malloc(sizeof(*copy) + count * sizeof(copy->member[0]));

	if (!copy)
		return NULL;
	copy->count = count;
	memcpy(copy->member, list->member, (count < list->count ? count : list->count) * sizeof(copy->member[0]));
	return copy;
}

static const struct multicast_list none;

static const struct multicast_list *list_current(void)
{
	const struct multicast_list *list = the_registry.multicast;

	return list ? list : &none;
}

/* Publishes @list. Returns the old one, which the caller frees after its last reader has left. */
static const struct multicast_list *list_publish(const struct multicast_list *list)
{
	const struct multicast_list *before = the_registry.multicast;

	__atomic_store_n(&the_registry.multicast, list, __ATOMIC_RELEASE);
	return before;
}

struct change {
	const struct multicast_list *old;
	bool made;
};

static int member_attach(struct hca_qp *qp, const union ibv_gid *group, struct change *change)
{
	const struct multicast_list *list = list_current();
	struct multicast_list *changed;
	uint32_t size;

	if (member_find(list, group, qp->number, &size) < list->count)
		return 0;
	if (size == LIMIT_MAX_MCAST_QP_ATTACH || list->count == LIMIT_MAX_TOTAL_MCAST_QP_ATTACH)
		return -ENOSPC;
	changed = list_copy(list, list->count + 1);
	if (!changed)
		return -ENOMEM;
	changed->member[list->count] = (struct multicast_member){*group, qp->number};
	qp->groups++;
	*change = (struct change){list_publish(changed), true};
	return 0;
}

static int member_detach(struct hca_qp *qp, const union ibv_gid *group, struct change *change)
{
	const struct multicast_list *list = list_current();
	struct multicast_list *changed = NULL;
	uint32_t size, place = member_find(list, group, qp->number, &size);

	if (place == list->count)
		return -EINVAL;
	if (list->count > 1) {
		changed = list_copy(list, list->count - 1);
		if (!changed)
			return -ENOMEM;
		if (place < changed->count)
			changed->member[place] = list->member[list->count - 1];
	}
	qp->groups--;
	*change = (struct change){list_publish(changed), true};
	return 0;
}

static int member_change(struct hca_qp *qp, const union ibv_gid *group, bool attaches, bool *changed)
{
	pthread_mutex_t *lock = &the_registry.devices[0].lock;
	struct change change = {.old = NULL};
	int error;

	pthread_mutex_lock(lock);
	error = attaches ? member_attach(qp, group, &change) : member_detach(qp, group, &change);
	pthread_mutex_unlock(lock);
	*changed = change.made;
	if (!change.old)
		return error;
	epoch_synchronize();
	free((void *)change.old);
	return error;
}

int hca_qp_attach(struct hca_qp *qp, const union ibv_gid *group)
{
	bool changed;
	int error = member_change(qp, group, true, &changed);

	if (changed)
		routes->join(qp->hca, group);
	return error;
}

int hca_qp_detach(struct hca_qp *qp, const union ibv_gid *group)
{
	bool changed;
	int error = member_change(qp, group, false, &changed);

	if (changed)
		routes->leave(qp->hca, group);
	return error;
}
