/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exported symbols of libibverbs.so.1 and libmlx5.so.1 that the headers of some release do not declare: symbols for
 * rdma-core's own programs (librdmacm, ibv_devinfo, providers, pyverbs), symbols of later and of earlier releases.
 * Their contracts are given here.
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

/** Returns the string for an opcode (rdma-core 49); "unknown" for an unknown value. */
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);

struct verbs_context;
/** Logs a message of a provider at @level, from 1 (errors) to 4 (debugging): see VERBS_LOG_LEVEL and VERBS_LOG_FILE. */
__attribute__((format(printf, 3, 4))) void __verbs_log(struct verbs_context *context, uint32_t level,
						       const char *format, ...);

/**
 * Returns the bandwidth of a port in units of 100 Mb/s through @port_speed (ibv_query_port_speed(3), rdma-core 62).
 * Returns 0 or an errno value.
 */
int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed);

struct ibv_buf;
/**
 * Allocates @size bytes of whole pages (ibv_alloc_buf(3), rdma-core 64). Returns the memory, or NULL with errno set.
 */
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
void ibv_free_buf(struct ibv_buf *buf);
/**
 * Registers a part of the buffer, which was allocated from @pd. Returns NULL with errno set on failure: EINVAL, or as
 * ibv_reg_mr(3).
 */
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access);
/** Returns -1 with errno ENODATA: no buffer is backed by a dma-buf. */
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);

struct ibv_mr_init_attr;
/** ibv_reg_mr_ex(3), rdma-core 59. Returns NULL with errno set on failure: EINVAL, EOPNOTSUPP, or as ibv_reg_mr(3). */
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *mr_init_attr);

/* A function of the header up to rdma-core 62, a macro since then: programs linked before use this symbol. */
struct ibv_flow *(mlx5dv_create_flow)(struct mlx5dv_flow_matcher *matcher,
				      struct mlx5dv_flow_match_parameters *match_value, size_t num_actions,
				      struct mlx5dv_flow_action_attr actions_attr[]);

struct mlx5dv_export_sizes;
/** Returns the sizes of exported forms of objects (rdma-core 63). @sizes_len: size of *@sizes in the program. */
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
 * Reads @dir/@file into @buf as a string, without the final newline. Returns its length, or -1 with errno set; also -1
 * if @buf is too small for the terminating zero.
 */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* Exclude a range from forked children, and include it again. Ranges nest by count. Return 0 or an errno value. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

/* Returns the type of GID @index through @type; an empty entry counts as RoCE v1. Returns 0, or -1 with errno set. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       enum ibv_gid_type_sysfs *type);

/* Called by the constructor of a provider library, before main; the number is that of its private node. */
void verbs_register_driver_34(const struct verbs_device_ops *ops);
void verbs_register_driver_57(const struct verbs_device_ops *ops);
void verbs_register_driver_59(const struct verbs_device_ops *ops);
void verbs_register_driver_64(const struct verbs_device_ops *ops);
void verbs_register_driver_65(const struct verbs_device_ops *ops);
/* Returns the number of attributes of a command and those linked to it, from which a provider sizes an array. */
unsigned int __ioctl_final_num_attrs(unsigned int num_attrs, struct ibv_command_buffer *link);

#endif
