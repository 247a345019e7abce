/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbols for provider libraries of other adapters and for rdma-core's own programs (IBVERBS_PRIVATE_34 and later).
 * Providers are accepted but never used: libefa.so.1 registers itself as soon as perftest loads it, before main.
 */
#include <errno.h>

#include "abi/entry_points.h"

/* May run in a constructor before those of this library. */
void softhca_verbs_register_driver_34(const struct verbs_device_ops *ops)
{
	(void)ops;
}

void softhca_verbs_register_driver_57(const struct verbs_device_ops *ops)
{
	(void)ops;
}

void softhca_verbs_register_driver_59(const struct verbs_device_ops *ops)
{
	(void)ops;
}

void softhca_verbs_register_driver_64(const struct verbs_device_ops *ops)
{
	(void)ops;
}

void softhca_verbs_register_driver_65(const struct verbs_device_ops *ops)
{
	(void)ops;
}

/* The usnic provider of old libfabric versions calls it and ignores the result. */
void softhca_ibv_register_driver_1_1(const char *name, void *init_function)
{
	(void)name;
	(void)init_function;
}

/* The caller allocates that many attributes and fills them before it learns that commands are not supported. */
unsigned int softhca___ioctl_final_num_attrs(unsigned int num_attrs, struct ibv_command_buffer *link)
{
	(void)link;
	return num_attrs;
}

/* Private call of ibv_devinfo and pyverbs; ibv_query_gid_ex(3) is the public form. */
int softhca_ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
			       enum ibv_gid_type_sysfs *type)
{
	struct ibv_gid_entry entry = {0};
	int error = softhca__ibv_query_gid_ex(context, port_num, index, &entry, 0, sizeof(entry));

	if (error && error != ENODATA) {
		errno = error;
		return -1;
	}
	/* An empty entry has type 0 and counts as RoCE v1: callers query the type before the GID. */
	*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? IBV_GID_TYPE_SYSFS_ROCE_V2 : IBV_GID_TYPE_SYSFS_IB_ROCE_V1;
	return 0;
}
