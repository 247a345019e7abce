/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exported symbols of libibverbs.so.1 and libmlx5.so.1 that the headers of some release do not declare: those that programs of
 * rdma-core itself use (librdmacm, ibv_devinfo, providers, pyverbs), those of later releases, those of earlier ones. Their bodies obey the contracts given here.
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

/* Type of a GID in the words of sysfs, which knows no difference between InfiniBand and RoCE v1. */
enum ibv_gid_type_sysfs {
	IBV_GID_TYPE_SYSFS_IB_ROCE_V1 = 0,
	IBV_GID_TYPE_SYSFS_ROCE_V2 = 1,
};

/** The word for an opcode, since rdma-core 49; "unknown" for a value that is none. */
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);

struct verbs_context;
/** Logs a message of a provider at @level, 1 (errors) to 4 (debugging): see VERBS_LOG_LEVEL and VERBS_LOG_FILE. */
__attribute__((format(printf, 3, 4))) void __verbs_log(struct verbs_context *context, uint32_t level,
						       const char *format, ...);

/** Bandwidth of a port in units of 100 Mb/s, since rdma-core 62 (ibv_query_port_speed(3)). Returns 0 or an errno value. */
int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed);

struct ibv_buf;
/** Allocates @size bytes of whole pages (ibv_alloc_buf(3), since rdma-core 64). Returns the memory, or NULL with errno set. */
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
void ibv_free_buf(struct ibv_buf *buf);
/** Registers a part of the buffer, which was allocated from @pd. Returns NULL with errno set on failure: EINVAL, or as ibv_reg_mr(3). */
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length, int access);
/** Returns -1 with errno ENODATA: no buffer is backed by a dma-buf. */
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);

struct ibv_mr_init_attr;
/** ibv_reg_mr_ex(3), since rdma-core 59. Returns NULL with errno set on failure: EINVAL, EOPNOTSUPP, or as ibv_reg_mr(3). */
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *mr_init_attr);

/* A function of the header until rdma-core 62, then a macro that calls another one: programs linked before refer to this. */
struct ibv_flow *(mlx5dv_create_flow)(struct mlx5dv_flow_matcher *matcher,
				      struct mlx5dv_flow_match_parameters *match_value, size_t num_actions,
				      struct mlx5dv_flow_action_attr actions_attr[]);

struct mlx5dv_export_sizes;
/** How large the exported forms of objects are, since rdma-core 63; @sizes_len is the size of *@sizes. */
void _mlx5dv_get_export_sizes(struct mlx5dv_export_sizes *sizes, size_t sizes_len);

struct verbs_device_ops;
struct ibv_command_buffer;

/* Kernel structures to verbs structures and back; fields that the source lacks stay as they are. */
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

/*
 * Where sysfs is mounted: SYSFS_PATH, unless the program has raised privileges, or /sys. Without final
 * slashes.
 */
const char *ibv_get_sysfs_path(void);
/*
 * Reads @dir/@file into @buf as a string, without the final newline. Returns its length, or -1 with errno
 * set; also -1 when no room is left for the terminating zero.
 */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* Keeps a range out of forked children, or lets it in again. Ranges nest by count. 0 or errno value. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

/* Type of GID @index; an empty entry counts as RoCE v1. 0, or -1 with errno set. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       enum ibv_gid_type_sysfs *type);

/* What the constructor of a provider library calls, before main; the number is that of its private node. */
void verbs_register_driver_34(const struct verbs_device_ops *ops);
void verbs_register_driver_57(const struct verbs_device_ops *ops);
void verbs_register_driver_59(const struct verbs_device_ops *ops);
void verbs_register_driver_64(const struct verbs_device_ops *ops);
void verbs_register_driver_65(const struct verbs_device_ops *ops);
/* Number of attributes of a command and of those linked to it, from which a provider sizes an array. */
unsigned int __ioctl_final_num_attrs(unsigned int num_attrs, struct ibv_command_buffer *link);

#endif
