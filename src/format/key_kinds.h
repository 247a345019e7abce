/* SPDX-License-Identifier: BSD-2-Clause */
/* Kinds and rights of keys, and guards; explain/names.h names them. */
#ifndef SOFTHCA_FORMAT_KEY_KINDS_H
#define SOFTHCA_FORMAT_KEY_KINDS_H

#include <infiniband/mlx5dv.h>

enum key_kind {
	KEY_MEMORY,
	KEY_ON_DEMAND,
	KEY_IMPLICIT,
	KEY_DEVICE_MEMORY,
	KEY_NULL,
	KEY_INDIRECT,
	KEY_WINDOW_1,
	KEY_WINDOW_2,
	KEY_KIND_COUNT,
};

/* Bits of the mkey context (mlx5-formats 1.8). */
enum key_rights {
	RIGHT_LOCAL_READ = MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_READ,
	RIGHT_LOCAL_WRITE = MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE,
	RIGHT_REMOTE_READ = MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ,
	RIGHT_REMOTE_WRITE = MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE,
	RIGHT_ATOMIC = MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC,
};

/* Guards of block signatures (mlx5-formats 5.1). */
enum guard_type {
	GUARD_NONE,
	GUARD_T10_CRC,     /* 16 bits, stored big-endian */
	GUARD_IP_CHECKSUM, /* 16 bits, stored big-endian */
	GUARD_CRC32,       /* 32 bits, not reflected, stored big-endian */
	GUARD_CRC32C,      /* 32 bits, reflected, stored little-endian */
	GUARD_CRC64_XP10,  /* 64 bits, reflected, stored little-endian */
	GUARD_TYPE_COUNT,
};

#endif
