/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contexts that the library opens: one per device and process, the same in every id and in rdma_get_devices(3),
 * with a protection domain that QPs get if the program brings none. They stay until the process ends, since programs go
 * on using them after rdma_free_devices(3) and after their last id (rdma-cm 2.4).
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

/** Opens them all, once. Returns how many there are, or a negative errno. Any thread. */
int devices_open(void);

/** Device @index. */
struct shared_device *device_at(size_t index);

/** In a forked child: what was being opened is forgotten. */
void shared_devices_after_fork(void);

/**
 * The device whose RoCE v2 GID table has the address, and where: *@index; NULL: none. Any thread, after devices_open().
 */
struct shared_device *device_of_address(const struct sockaddr *address, int *index);

/** The first IP address of a device, of @family if that is not AF_UNSPEC, for what is addressed to the host itself. */
struct shared_device *device_of_host(int family, int *index);

/**
 * Returns the device that serves the loopback @address, and the entry of its GID table through @index; NULL if the host has other
 * interfaces, since no device has such an address then.
 */
struct shared_device *device_of_loopback(const struct sockaddr *address, int *index);

/** The XRC domain without a file, made at first use. NULL with errno. */
struct ibv_xrcd *device_xrcd(struct shared_device *device);

/** The device under which a refusal on @id (NULL: there is none yet) is explained. */
struct hca *hca_of_id(const struct user_cm_id *id);

#endif
