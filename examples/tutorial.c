/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program of docs/use/tutorial.md: blocks go to a disk with T10-DIF and come back without it, checked on the way.
 *
 *	softhca run -- tutorial [break]
 *
 * `break` changes one byte on the disk in between. The READ still succeeds, but the key has recorded that a block is wrong.
 */
#include <stdio.h>
#include <string.h>

#include "common.h"

enum {
	BLOCKS = 4,
	DATA = 512,
	SECTOR = DATA + 8, /* a block and its tuple: guard, application tag, reference tag */
	FIRST_LBA = 100,
};

static uint8_t memory[BLOCKS * DATA], disk[BLOCKS * SECTOR];

/* A key without memory of its own, which can have a block signature. */
static struct mlx5dv_mkey *create_key(struct end *end)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = end->pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
		.max_entries = 1,
	};
	struct mlx5dv_mkey *key = mlx5dv_create_mkey(&attr);

	if (!key)
		die_errno("mlx5dv_create_mkey");
	return key;
}

/* Tuples on the wire but not in memory: they are added to outgoing data; incoming data is checked and they are removed. */
static void set_signature(struct mlx5dv_qp_ex *builder)
{
	const struct mlx5dv_sig_t10dif tuple = {
		.bg_type = MLX5DV_SIG_T10DIF_CRC,
		.app_tag = 0x5a5a,
		.ref_tag = FIRST_LBA,
		.flags = MLX5DV_SIG_T10DIF_FLAG_REF_REMAP, /* one more with each block */
	};
	const struct mlx5dv_sig_block_domain wire = {
		.sig_type = MLX5DV_SIG_TYPE_T10DIF,
		.sig.dif = &tuple,
		.block_size = MLX5DV_BLOCK_SIZE_512,
	};
	const struct mlx5dv_sig_block_attr attr = {
		.mem = NULL,
		.wire = &wire,
		.check_mask =
			MLX5DV_SIG_MASK_T10DIF_GUARD | MLX5DV_SIG_MASK_T10DIF_APPTAG | MLX5DV_SIG_MASK_T10DIF_REFTAG,
	};

	mlx5dv_wr_set_mkey_sig_block(builder, &attr);
}

static void configure_key(struct end *end, struct mlx5dv_mkey *key, const struct ibv_mr *mr)
{
	struct ibv_sge layout = {.addr = (uintptr_t)mr->addr, .length = sizeof(memory), .lkey = mr->lkey};
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(end->qp);
	struct mlx5dv_qp_ex *builder = mlx5dv_qp_ex_from_ibv_qp_ex(qp);
	struct mlx5dv_mkey_conf_attr attr = {0};
	int error;

	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE; /* the layout is inside the request */
	mlx5dv_wr_mkey_configure(builder, key, 3, &attr);   /* by the three setters that follow */
	mlx5dv_wr_set_mkey_access_flags(builder, IBV_ACCESS_LOCAL_WRITE);
	mlx5dv_wr_set_mkey_layout_list(builder, 1, &layout);
	set_signature(builder);
	error = ibv_wr_complete(qp);
	if (error)
		die("configuring the key: %s", strerror(error));
	end_wait_success(end, "configuring the key");
}

static void transfer(struct end *end, enum ibv_wr_opcode opcode, const struct mlx5dv_mkey *key, const struct ibv_mr *to)
{
	/* Through the key, addresses are offsets, and lengths those of the wire. */
	struct ibv_sge sge = {.addr = 0, .length = sizeof(disk), .lkey = key->lkey};
	struct ibv_send_wr wr = {
		.wr_id = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.wr.rdma = {.remote_addr = (uintptr_t)to->addr, .rkey = to->rkey},
	};

	end_post(end, &wr);
	end_wait_success(end, opcode == IBV_WR_RDMA_WRITE ? "the WRITE" : "the READ");
}

/* A successful transfer does not mean that the data is right: the key has to be checked. Returns true if a block is wrong. */
static int check(struct mlx5dv_mkey *key)
{
	struct mlx5dv_mkey_err error;

	if (mlx5dv_mkey_check(key, &error))
		die("mlx5dv_mkey_check fails");
	if (error.err_type == MLX5DV_MKEY_NO_ERR) {
		puts("mkey_check: no error");
		return 0;
	}
	printf("mkey_check: %s at offset %lu: actual 0x%lx, expected 0x%lx\n",
	       error.err_type == MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD ? "BAD_GUARD" : "a bad tag",
	       (unsigned long)error.err.sig.offset, (unsigned long)error.err.sig.actual_value,
	       (unsigned long)error.err.sig.expected_value);
	return 1;
}

int main(int argc, char **argv)
{
	int breaks = argc > 1 && strcmp(argv[1], "break") == 0;
	struct end host = {0}, target = {0};
	struct ibv_mr *memory_mr, *disk_mr;
	struct mlx5dv_mkey *key;

	end_open(&host, 1); /* 1: its queue pair can configure keys */
	end_open(&target, 0);
	end_connect(&host, &target);
	memory_mr = end_register(&host, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	disk_mr = end_register(&target, disk, sizeof(disk),
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	key = create_key(&host);
	configure_key(&host, key, memory_mr);

	memset(memory, 'x', sizeof(memory));
	transfer(&host, IBV_WR_RDMA_WRITE, key, disk_mr);
	printf("written: %zu bytes of memory, %zu on the disk\n", sizeof(memory), sizeof(disk));

	if (breaks)
		disk[2 * SECTOR + 7] ^= 1; /* one bit of the third block */
	transfer(&host, IBV_WR_RDMA_READ, key, disk_mr);
	puts("read: success");
	if (check(key) != breaks)
		die("that is wrong");

	mlx5dv_destroy_mkey(key);
	ibv_dereg_mr(memory_mr);
	ibv_dereg_mr(disk_mr);
	end_close(&host);
	end_close(&target);
	return 0;
}
