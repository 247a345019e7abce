/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbols of libibverbs.so.1 and libmlx5.so.1 that the headers of some release do not declare, with their contracts:
 * for rdma-core's own programs (librdmacm, ibv_devinfo, providers, pyverbs), of later and of earlier releases.
 */
#ifndef SOFTHCA_ABI_UNDECLARED_H
#define SOFTHCA_ABI_UNDECLARED_H

#include <stddef.h>
#include <stdint.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

/* GID type in sysfs, which does not distinguish InfiniBand and RoCE v1. */
enum ibv_gid_type_sysfs {
	IBV_GID_TYPE_SYSFS_IB_ROCE_V1 = 0,
	IBV_GID_TYPE_SYSFS_ROCE_V2 = 1,
};

/** "unknown" for an unknown value (rdma-core 49). */
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);

struct verbs_context;
/** @level: 1 (errors) to 4 (debugging); VERBS_LOG_LEVEL and VERBS_LOG_FILE. */
__attribute__((format(printf, 3, 4))) void __verbs_log(struct verbs_context *context, uint32_t level,
						       const char *format, ...);

/** @port_speed: units of 100 Mb/s (ibv_query_port_speed(3), rdma-core 62). Returns 0 or an errno value. */
int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed);

struct ibv_buf;
/** Allocates whole pages (ibv_alloc_buf(3), rdma-core 64). NULL with errno set on failure. */
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
void ibv_free_buf(struct ibv_buf *buf);
/**
 * [@addr, +@length) is a part of @buf, which was allocated from @pd. NULL with errno set on failure: EINVAL, or as
 * ibv_reg_mr(3).
 */
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access);
/** Returns -1 with errno ENODATA: no buffer is backed by a dma-buf. */
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);

struct ibv_mr_init_attr;
/** ibv_reg_mr_ex(3), rdma-core 59. NULL with errno set on failure: EINVAL, EOPNOTSUPP, or as ibv_reg_mr(3). */
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *mr_init_attr);

/* A function up to rdma-core 62, a macro since then: programs linked before use this symbol. */
struct ibv_flow *(mlx5dv_create_flow)(struct mlx5dv_flow_matcher *matcher,
				      struct mlx5dv_flow_match_parameters *match_value, size_t num_actions,
				      struct mlx5dv_flow_action_attr actions_attr[]);

struct mlx5dv_export_sizes;
/** @sizes_len: size of *@sizes in the program (rdma-core 63). */
void _mlx5dv_get_export_sizes(struct mlx5dv_export_sizes *sizes, size_t sizes_len);

struct verbs_device_ops;
struct ibv_command_buffer;

/* Convert kernel structures to verbs structures and back. Fields that the source lacks stay unchanged. */
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

/*
 * Returns the mount point of sysfs without trailing slashes: SYSFS_PATH, unless the program has raised privileges, or
 * /sys.
 */
const char *ibv_get_sysfs_path(void);
/*
 * Reads @dir/@file as a string, without the final newline. Returns its length, or -1 with errno set; also -1 if @buf is
 * too small for the terminating zero.
 */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* Exclude a range from forked children, and include it again. Ranges nest by count. Return 0 or an errno value. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

/* An empty entry counts as RoCE v1. Returns 0, or -1 with errno set. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       enum ibv_gid_type_sysfs *type);

/* Called by the constructor of a provider library, before main; the number is that of its private node. */
void verbs_register_driver_34(const struct verbs_device_ops *ops);
void verbs_register_driver_57(const struct verbs_device_ops *ops);
void verbs_register_driver_59(const struct verbs_device_ops *ops);
void verbs_register_driver_64(const struct verbs_device_ops *ops);
void verbs_register_driver_65(const struct verbs_device_ops *ops);
/* Returns the number of attributes of a command and those linked to it; a provider allocates as many. */
unsigned int __ioctl_final_num_attrs(unsigned int num_attrs, struct ibv_command_buffer *link);

#endif
