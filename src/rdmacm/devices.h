/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contexts that the library opens, one per device, for all IDs and rdma_get_devices(3), with a default protection
 * domain for QPs. They stay open until the process ends, because programs use them after rdma_free_devices(3) and after
 * their last ID (rdma-cm 2.4).
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
	struct ibv_xrcd *xrcd; /* made at first use, under the lock of devices; or NULL */
	struct hca *hca;
	uint8_t most_responder_resources, most_initiator_depth;
};

/** Opens all devices, once. Returns their number or a negative errno. Any thread. */
int devices_open(void);

struct shared_device *device_at(size_t index);

/** Forgets devices that the parent was opening. */
void shared_devices_after_fork(void);

/**
 * Returns the device with @address as a RoCE v2 GID, at entry *@index of its table, or NULL. Any thread, after
 * devices_open().
 */
struct shared_device *device_of_address(const struct sockaddr *address, int *index);

/** Returns a device and the entry of its first IP address (of @family unless AF_UNSPEC), for requests to this host. */
struct shared_device *device_of_host(int family, int *index);

/**
 * Returns the device of the loopback @address, and its entry. NULL if the host has other interfaces, because then no
 * device has this address.
 */
struct shared_device *device_of_loopback(const struct sockaddr *address, int *index);

/** Returns an XRC domain without a file, or NULL with errno. */
struct ibv_xrcd *device_xrcd(struct shared_device *device);

/** Returns the device for explanations; @id may be NULL. */
struct hca *hca_of_id(const struct user_cm_id *id);

#endif
