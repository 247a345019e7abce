/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared contexts, see devices.h; rdma_get_devices(3), rdma_free_devices(3). */
#include "rdmacm/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "abi/entry_points.h"
#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "rdmacm/objects.h"
#include "rdmacm/sockaddr.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"

/* Global because rdma_get_devices(3) has no object to own them. */
static struct {
	pthread_mutex_t lock;
	struct shared_device *list;
	int count;
} devices = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int device_open_shared(struct ibv_device *device, struct shared_device *shared)
{
	struct ibv_device_attr attr;

	shared->context = softhca_ibv_open_device(device);
	if (!shared->context)
		return -errno;
	shared->pd = softhca_ibv_alloc_pd(shared->context);
	if (!shared->pd || softhca_ibv_query_device(shared->context, &attr)) {
		int error = errno;

		if (shared->pd)
			softhca_ibv_dealloc_pd(shared->pd);
		softhca_ibv_close_device(shared->context);
		return -error;
	}
	shared->hca = hca_of_context(shared->context);
	/* Eight bits in the message, where 255 means "maximum". */
	shared->most_responder_resources = (uint8_t)(attr.max_qp_rd_atom < 254 ? attr.max_qp_rd_atom : 254);
	shared->most_initiator_depth = (uint8_t)(attr.max_qp_init_rd_atom < 254 ? attr.max_qp_init_rd_atom : 254);
	return 0;
}

/* The caller holds the lock. */
static int devices_open_all(void)
{
	int count, index, error = 0;
	struct ibv_device **list = softhca_ibv_get_device_list(&count);

	if (!list)
		return -errno;
	devices.list = calloc((size_t)count + 1, sizeof(*devices.list));
	for (index = 0; devices.list && index < count && !error; index++)
		error = device_open_shared(list[index], &devices.list[index]);
	softhca_ibv_free_device_list(list);
	if (!devices.list)
		return -ENOMEM;
	if (error) {
		for (index--; index-- > 0;) {
			softhca_ibv_dealloc_pd(devices.list[index].pd);
			softhca_ibv_close_device(devices.list[index].context);
		}
		free(devices.list);
		devices.list = NULL;
		return error;
	}
	devices.count = count;
	return count;
}

int devices_open(void)
{
	WITHOUT_CANCELLATION;
	int count;

	pthread_mutex_lock(&devices.lock);
	count = devices.list ? devices.count : devices_open_all();
	pthread_mutex_unlock(&devices.lock);
	return count;
}

/* A thread of the parent may have been opening the devices. */
void shared_devices_after_fork(void)
{
	pthread_mutex_init(&devices.lock, NULL);
	if (!devices.count)
		devices.list = NULL;
}

struct shared_device *device_at(size_t index)
{
	return &devices.list[index];
}

struct shared_device *device_of_address(const struct sockaddr *address, int *index)
{
	union ibv_gid gid = address_gid(address);
	int device;

	for (device = 0; device < devices.count; device++) {
		size_t count;
		const struct hca_gid *table = hca_gids(devices.list[device].hca, &count);

		*index = gid_find(table, count, &gid, IBV_GID_TYPE_ROCE_V2);
		if (*index >= 0)
			return &devices.list[device];
	}
	return NULL;
}

struct shared_device *device_of_host(int family, int *index)
{
	size_t count, entry;
	int device;

	if (!devices.list)
		return NULL;
	for (device = 0; device < devices.count; device++) {
		const struct hca_gid *table = hca_gids(devices.list[device].hca, &count);

		for (entry = 0; entry < count; entry++) {
			bool fits = family == AF_UNSPEC || (family == AF_INET) == gid_is_ipv4(&table[entry].gid);

			/* Link-local GIDs are derived from the MAC address; interfaces need not have them. */
			if (fits && table[entry].type == IBV_GID_TYPE_ROCE_V2 && table[entry].gid.raw[0] != 0xfe) {
				*index = (int)entry;
				return &devices.list[device];
			}
		}
	}
	return NULL;
}

struct shared_device *device_of_loopback(const struct sockaddr *address, int *index)
{
	struct shared_device *device = device_of_address(address, index);
	size_t count;

	if (!device)
		device = device_of_host(address->sa_family, index);
	if (!device)
		device = device_of_host(AF_UNSPEC, index);
	return device && !strcmp(hca_gids(device->hca, &count)[*index].netdev, "lo") ? device : NULL;
}

struct ibv_xrcd *device_xrcd(struct shared_device *device)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
	struct verbs_context *operations = verbs_get_ctx_op(device->context, open_xrcd);

	pthread_mutex_lock(&devices.lock);
	if (!device->xrcd && operations)
		device->xrcd = operations->open_xrcd(device->context, &attr);
	pthread_mutex_unlock(&devices.lock);
	return device->xrcd;
}

struct hca *hca_of_id(const struct user_cm_id *id)
{
	return id && id->path.device ? id->path.device->hca : hca_device(0);
}

struct ibv_context **softhca_rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = NULL;
	int count = devices_open(), index;

	if (count > 0)
		list = calloc((size_t)count + 1, sizeof(*list));
	for (index = 0; list && index < count; index++)
		list[index] = devices.list[index].context;
	if (num_devices)
		*num_devices = list ? count : 0;
	if (count < 0)
		errno = -count;
	return list;
}

void softhca_rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
