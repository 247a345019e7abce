/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contexts that the library opens: one per device and process. All IDs and rdma_get_devices(3) use the same ones.
 * Each has a default protection domain for QPs. They stay open until the process ends, because programs use them after
 * rdma_free_devices(3) and after their last ID (rdma-cm 2.4).
 */
#ifndef SOFTHCA_RDMACM_DEVICES_H
#define SOFTHCA_RDMACM_DEVICES_H

#include <stddef.h>
#include <infiniband/verbs.h>

struct hca;
struct sockaddr;
struct user_cm_id;

struct shared_device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd; /* created at first use, under the lock of devices; or NULL */
	struct hca *hca;
	uint8_t most_responder_resources, most_initiator_depth;
};

/** Opens all devices, once. Returns their number or a negative errno. Any thread. */
int devices_open(void);

/** Returns device @index. */
struct shared_device *device_at(size_t index);

/** In a forked child: forgets devices that the parent was opening. */
void shared_devices_after_fork(void);

/**
 * Returns the device that has @address in its table as a RoCE v2 GID, with the entry in *@index, or NULL. Any thread,
 * after devices_open().
 */
struct shared_device *device_of_address(const struct sockaddr *address, int *index);

/**
 * Returns a device and the entry of its first IP address, of @family unless AF_UNSPEC, for requests addressed to this
 * host.
 */
struct shared_device *device_of_host(int family, int *index);

/**
 * Returns the device that serves the loopback @address, with the entry of its GID table in *@index. Returns NULL if the
 * host has other interfaces, because no device has such an address then.
 */
struct shared_device *device_of_loopback(const struct sockaddr *address, int *index);

/** Returns the XRC domain without a file, created at first use, or NULL with errno. */
struct ibv_xrcd *device_xrcd(struct shared_device *device);

/** Returns the device under which a refusal on @id is explained. @id may be NULL. */
struct hca *hca_of_id(const struct user_cm_id *id);

#endif
