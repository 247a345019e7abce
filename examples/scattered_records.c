/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scattered records: a table that lies in memory by columns arrives at the peer by rows, in one RDMA WRITE.
 *
 *	softhca run -- scattered_records [--out-of-range] FILE
 *
 * The file is used as a table of three columns, one after the other: all values of the first column (40 bytes each),
 * then all of the second (16), then all of the third (8). An interleaved mkey lays the three columns out as rows:
 *
 *	memory      A0 A1 A2 … An  B0 B1 B2 … Bn  C0 C1 C2 … Cn
 *	the mkey    A0 B0 C0  A1 B1 C1  A2 B2 C2  …  An Bn Cn
 *
 * Reading the mkey from offset 0 yields rows, also for the adapter when it gathers the data of a WRITE: the program
 * copies no bytes. Each end computes a checksum over the rows, the sender from the columns, the receiver from the
 * received data.
 *
 * --out-of-range lays out one row more than the columns have. The adapter finds that before it sends anything.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common.h"

enum { COLUMNS = 3, ROW = 64 };

static const uint32_t width[COLUMNS] = {40, 16, 8};

struct table {
	uint8_t *memory;
	uint32_t rows;
	uint8_t *column[COLUMNS];
};

/* FNV-1a, 64 bits: a checksum that depends on the order of the bytes. */
static uint64_t checksum(uint64_t sum, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		sum = (sum ^ bytes[i]) * 0x100000001b3;
	return sum;
}

static const uint64_t checksum_begin = 0xcbf29ce484222325;

static uint64_t checksum_of_columns(const struct table *table)
{
	uint64_t sum = checksum_begin;

	for (uint32_t row = 0; row < table->rows; row++)
		for (int c = 0; c < COLUMNS; c++)
			sum = checksum(sum, table->column[c] + (size_t)row * width[c], width[c]);
	return sum;
}

static void *allocate(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die_errno("no memory for %zu bytes", bytes);
	return memory;
}

/* Reads the file and pads the last row with zeros. */
static void read_table(struct table *table, const char *path)
{
	int file = open(path, O_RDONLY);
	size_t bytes, have = 0;
	struct stat status;

	if (file < 0 || fstat(file, &status))
		die_errno("%s", path);
	bytes = (size_t)status.st_size;
	if (!bytes || bytes > 1 << 30)
		die("%s: want 1 byte to 1 GiB, the most that one message carries", path);
	table->rows = (uint32_t)((bytes + ROW - 1) / ROW);
	table->memory = allocate((size_t)table->rows * ROW);
	while (have < bytes) {
		ssize_t got = read(file, table->memory + have, bytes - have);

		if (got <= 0)
			die_errno("%s", path);
		have += (size_t)got;
	}
	close(file);
	table->column[0] = table->memory;
	for (int c = 1; c < COLUMNS; c++)
		table->column[c] = table->column[c - 1] + (size_t)table->rows * width[c - 1];
}

/* Creates an indirect key: it has no memory of its own; its layout refers to other keys. */
static struct mlx5dv_mkey *create_mkey(struct end *end)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = end->pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
		.max_entries = COLUMNS + 1, /* an interleaved layout has a header, which takes an entry */
	};
	struct mlx5dv_mkey *mkey = mlx5dv_create_mkey(&attr);

	if (!mkey)
		die_errno("mlx5dv_create_mkey");
	return mkey;
}

/* Sets the key's layout by a request in the send queue. */
static void lay_out(struct end *end, struct mlx5dv_mkey *mkey, const struct table *table, struct ibv_mr *const *mr,
		    uint32_t rows)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(end->qp);
	struct mlx5dv_qp_ex *builder = mlx5dv_qp_ex_from_ibv_qp_ex(qp);
	struct mlx5dv_mkey_conf_attr attr = {0};
	struct mlx5dv_mr_interleaved columns[COLUMNS];
	int error;

	for (int c = 0; c < COLUMNS; c++)
		columns[c] = (struct mlx5dv_mr_interleaved){
			.addr = (uintptr_t)table->column[c],
			.bytes_count = width[c],
			.bytes_skip = 0, /* the next value follows directly */
			.lkey = mr[c]->lkey,
		};
	ibv_wr_start(qp);
	/* The layout is inside the request, hence INLINE. */
	qp->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	mlx5dv_wr_mkey_configure(builder, mkey, 2, &attr);
	mlx5dv_wr_set_mkey_access_flags(builder, IBV_ACCESS_LOCAL_WRITE);
	mlx5dv_wr_set_mkey_layout_interleaved(builder, rows, COLUMNS, columns);
	error = ibv_wr_complete(qp);
	if (error)
		die("configuring the mkey: %s", strerror(error));
	end_wait_success(end, "configuring the mkey");
}

/* Posts one WRITE of all rows. The address of an mkey's first byte is 0. */
static struct ibv_wc write_rows(struct end *end, const struct mlx5dv_mkey *mkey, uint32_t rows,
				const struct ibv_mr *target)
{
	struct ibv_sge sge = {.addr = 0, .length = rows * ROW, .lkey = mkey->lkey};
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = (uintptr_t)target->addr, .rkey = target->rkey},
	};

	end_post(end, &wr);
	return end_wait(end);
}

static void compare(const struct table *table, const struct ibv_mr *target, const char *path)
{
	uint64_t sent = checksum_of_columns(table);
	uint64_t arrived = checksum(checksum_begin, target->addr, (size_t)table->rows * ROW);

	printf("%s: %u rows of %d bytes in one WRITE\n", path, table->rows, ROW);
	printf("checksum of the columns, row by row  %016lx\n", (unsigned long)sent);
	printf("checksum of the rows that arrived    %016lx\n", (unsigned long)arrived);
	if (sent != arrived)
		die("they differ");
}

static void expect_refusal(struct ibv_wc wc, const struct ibv_mr *target)
{
	const uint8_t *byte = target->addr, *end = byte + target->length;

	printf("the WRITE of one row too many: %s (vendor_err %u)\n", ibv_wc_status_str(wc.status), wc.vendor_err);
	if (wc.status != IBV_WC_LOC_PROT_ERR)
		die("it should have been a local protection error");
	while (byte < end)
		if (*byte++)
			die("a byte has arrived");
	puts("no byte has arrived");
}

int main(int argc, char **argv)
{
	int out_of_range = argc > 1 && strcmp(argv[1], "--out-of-range") == 0;
	struct end sender = {0}, receiver = {0};
	struct ibv_mr *mr[COLUMNS], *target;
	struct mlx5dv_mkey *mkey;
	struct table table;
	uint32_t rows;
	struct ibv_wc wc;

	if (argc != 2 + out_of_range)
		die("usage: scattered_records [--out-of-range] FILE");
	read_table(&table, argv[1 + out_of_range]);
	rows = table.rows + (uint32_t)out_of_range;
	end_open(&sender, 1);
	end_open(&receiver, 0);
	end_connect(&sender, &receiver);
	for (int c = 0; c < COLUMNS; c++)
		mr[c] = end_register(&sender, table.column[c], (size_t)table.rows * width[c], 0);
	target = end_register(&receiver, allocate((size_t)rows * ROW), (size_t)rows * ROW,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	mkey = create_mkey(&sender);
	lay_out(&sender, mkey, &table, mr, rows);
	wc = write_rows(&sender, mkey, rows, target);
	if (out_of_range)
		expect_refusal(wc, target);
	else if (wc.status != IBV_WC_SUCCESS)
		die("the WRITE: %s (vendor_err %u)", ibv_wc_status_str(wc.status), wc.vendor_err);
	else
		compare(&table, target, argv[1]);

	mlx5dv_destroy_mkey(mkey);
	for (int c = 0; c < COLUMNS; c++)
		ibv_dereg_mr(mr[c]);
	ibv_dereg_mr(target);
	end_close(&sender);
	end_close(&receiver);
	return 0;
}
