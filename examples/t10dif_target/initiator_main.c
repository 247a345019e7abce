/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator of a block target, with T10-DIF from end to end: the adapters add, check and strip the tuples.
 *
 *	softhca run -- t10dif_target ADDRESS PORT &
 *	softhca run -- t10dif_initiator ADDRESS PORT FILE [COPY]
 *
 * The initiator writes FILE to the target in blocks of 4 KiB. Its memory has no tuples; its adapter adds them when the
 * target reads the blocks. The target's adapter checks them and writes blocks and tuples to the disk, which here is
 * memory with sectors of 4104 bytes. On the way back both adapters check, and the initiator's removes the tuples. Then
 * the same is done without tuples, to compare the rates. The data read back is written to COPY.
 *
 * Finally bits are flipped on the disk, and mlx5dv_mkey_check(3) finds the errors in the data read.
 *
 * The two are processes, on one host or on two. The initiator finds the target by address and port, with rdma_cm(7), as
 * in NVMe over Fabrics.
 *
 *	protocol.h                    messages between both
 *	meet.c                        connection setup
 *	protection.h, .c              keys with T10-DIF: start here
 *	initiator.h, .c               commands, and the initiator's keys
 *	target.c                      the disk, and the target's keys
 *	initiator_main.c              main program of the initiator
 *	both.sh                       runs both, on one host or in two network namespaces
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "initiator.h"

enum { ROUNDS = 5, WRITE = 0, READ = 1 };

/* Blocks in memory; the last one of a file is padded with zeros. */
struct blocks {
	struct ibv_mr *mr;
	uint8_t *bytes;
	size_t size;
};

static uint32_t blocks_of(size_t size)
{
	return (uint32_t)((size + BLOCK - 1) / BLOCK);
}

static size_t file_size(const char *path)
{
	struct stat status;

	if (stat(path, &status))
		die_errno("%s", path);
	if (status.st_size < 1 || status.st_size > 1 << 30)
		die("%s: want 1 byte to 1 GiB", path);
	return (size_t)status.st_size;
}

static struct blocks blocks_new(struct end *end, size_t size)
{
	size_t room = (size_t)blocks_of(size) * BLOCK;
	struct blocks blocks = {.size = size};

	blocks.bytes = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (blocks.bytes == MAP_FAILED)
		die_errno("initiator: %zu bytes of memory", room);
	/* No remote rights: the target only accesses the blocks of a command, by the key sent with it. */
	blocks.mr = end_register(end, blocks.bytes, room, IBV_ACCESS_LOCAL_WRITE);
	return blocks;
}

static void blocks_free(struct blocks *blocks)
{
	size_t room = blocks->mr->length;

	ibv_dereg_mr(blocks->mr);
	munmap(blocks->bytes, room);
}

static void load(struct blocks *blocks, const char *path)
{
	int file = open(path, O_RDONLY);

	if (file < 0)
		die_errno("%s", path);
	for (size_t have = 0; have < blocks->size;) {
		ssize_t got = read(file, blocks->bytes + have, blocks->size - have);

		if (got <= 0)
			die_errno("%s", path);
		have += (size_t)got;
	}
	close(file);
}

static void store(const struct blocks *blocks, const char *path)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	if (file < 0)
		die_errno("%s", path);
	for (size_t done = 0; done < blocks->size;) {
		ssize_t put = write(file, blocks->bytes + done, blocks->size - done);

		if (put < 0)
			die_errno("%s", path);
		done += (size_t)put;
	}
	if (close(file))
		die_errno("%s", path);
}

/* ---- without damage ------------------------------------------------------------------------------------------- */

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Moves all blocks; errors are not allowed. Returns the seconds that it took. */
static double move_all(struct initiator *initiator, enum opcode opcode, int tuples, const struct blocks *blocks)
{
	struct job job = {.opcode = opcode, .tuples = tuples, .mr = blocks->mr, .blocks = blocks_of(blocks->size)};
	double begin = now();
	struct outcome outcome = initiator_move(initiator, &job);

	if (outcome.refused || outcome.wrong_data)
		die("initiator: %u commands refused (status %d), %u with wrong data", outcome.refused, outcome.status,
		    outcome.wrong_data);
	return now() - begin;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare);
	return values[ROUNDS / 2];
}

static void print_rates(const char *what, size_t bytes, double *plain, double *with_tuples)
{
	double seconds[] = {median(plain), median(with_tuples)};

	printf("  %s    %6.2f GB/s          %6.2f GB/s    %4.2f\n", what, (double)bytes / 1e9 / seconds[0],
	       (double)bytes / 1e9 / seconds[1], seconds[0] / seconds[1]);
}

/* Times both ways in turn, so that other load on the machine affects both equally; the last round leaves tuples on the
 * disk. */
static void write_and_read(struct initiator *initiator, const struct blocks *file, const struct blocks *back)
{
	double seconds[2][2][ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		for (int tuples = 0; tuples < 2; tuples++) {
			memset(back->bytes, 0, back->size);
			seconds[WRITE][tuples][round] = move_all(initiator, COMMAND_WRITE, tuples, file);
			seconds[READ][tuples][round] = move_all(initiator, COMMAND_READ, tuples, back);
			if (memcmp(back->bytes, file->bytes, file->size) != 0)
				die("what was read back is not what was written");
		}
	}
	printf("%zu bytes, %u blocks, %d commands of %d KiB at a time; read back, and equal\n", file->size,
	       blocks_of(file->size), DEPTH, REQUEST_BLOCKS * BLOCK / 1024);
	printf("           without tuples      with T10-DIF    ratio   (medians of %d)\n", ROUNDS);
	print_rates("write", file->size, seconds[WRITE][0], seconds[WRITE][1]);
	print_rates("read ", file->size, seconds[READ][0], seconds[READ][1]);
}

/* ---- with damage ---------------------------------------------------------------------------------------------- */

/* Flips a bit of @byte of the sector at @lba, reads a command's worth of blocks around it, and flips it back. */
static void read_damaged(struct initiator *initiator, const struct blocks *back, uint32_t lba, uint32_t byte,
			 enum status expected)
{
	uint32_t first = lba - lba % REQUEST_BLOCKS, left = blocks_of(back->size) - first;
	struct job job = {
		.opcode = COMMAND_READ,
		.tuples = 1,
		.mr = back->mr,
		.lba = first,
		.blocks = left < REQUEST_BLOCKS ? left : REQUEST_BLOCKS,
	};
	struct outcome outcome;

	initiator_flip_bit(initiator, lba, byte);
	outcome = initiator_move(initiator, &job);
	initiator_flip_bit(initiator, lba, byte);
	if (outcome.status != expected)
		die("the target answers %d, not %d", outcome.status, expected);
	if (!outcome.wrong_data)
		die("the initiator has not seen that the data is wrong");
}

static void find_damage(struct initiator *initiator, const struct blocks *back)
{
	uint32_t lba = (blocks_of(back->size) - 1) * 2 / 3;

	printf("\nA bit of byte 1234 of sector %u flips on the target's disk:\n", lba);
	read_damaged(initiator, back, lba, 1234, STATUS_GUARD_ERROR);
	/* A guard covers only the data; both sides know the tags: */
	printf("\nA bit of its application tag flips instead:\n");
	read_damaged(initiator, back, lba, BLOCK + 3, STATUS_APPLICATION_TAG_ERROR);
	printf("\nA bit of its reference tag flips instead:\n");
	read_damaged(initiator, back, lba, BLOCK + 7, STATUS_REFERENCE_TAG_ERROR);
}

/* Writes the file at @path, reads it back, has sectors damaged and reads them. */
static void initiator_run(struct meeting *meeting, const char *path, const char *copy)
{
	static struct initiator initiator;
	struct blocks file, back;

	initiator_open(&initiator, meeting);
	file = blocks_new(&initiator.end, file_size(path));
	back = blocks_new(&initiator.end, file.size);
	if (blocks_of(file.size) > initiator.disk_blocks)
		die("the disk is too small");
	load(&file, path);

	write_and_read(&initiator, &file, &back);
	if (copy)
		store(&back, copy);
	find_damage(&initiator, &back);
	/* The disk is undamaged again. */
	move_all(&initiator, COMMAND_READ, 1, &back);

	blocks_free(&file);
	blocks_free(&back);
	initiator_close(&initiator, meeting);
}

int main(int argc, char **argv)
{
	struct meeting meeting = {.listener = NULL};

	if (argc < 4 || argc > 5)
		die("usage: t10dif_initiator ADDRESS PORT FILE [COPY]");
	find_target(&meeting, argv[1], argv[2]);
	initiator_run(&meeting, argv[3], argc > 4 ? argv[4] : NULL);
	meeting_close(&meeting);
	return 0;
}
