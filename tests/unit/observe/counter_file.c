/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of counters: separate rows, reading by other processes, forked children, and refusal of the file. */
#include "test_case.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "observe/counter_file.h"
#include "observe/counters.h"

enum { DEVICES = 3 };

/* Finds the descriptors of such files, in numeric order; returns their number. */
static int find_files(int files[4])
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;
	char target[64];
	int count = 0;

	assert_non_null(directory);
	while ((entry = readdir(directory))) {
		ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);

		if (length <= 0)
			continue;
		target[length] = '\0';
		if (strstr(target, "memfd:" COUNTER_FILE_NAME) && count < 4)
			files[count++] = atoi(entry->d_name);
	}
	closedir(directory);
	return count;
}

static void read_head(int fd, struct counter_file_head *head)
{
	assert_int_equal(pread(fd, head, sizeof(*head), 0), sizeof(*head));
	assert_memory_equal(head->magic, COUNTER_FILE_MAGIC, sizeof(head->magic));
	assert_int_equal(head->version, COUNTER_FILE_VERSION);
	assert_int_equal(head->counters, COUNTER_COUNT);
	assert_int_equal(head->devices, DEVICES);
}

static uint32_t read_rows(int fd)
{
	struct counter_file_head head;

	read_head(fd, &head);
	return head.rows;
}

static uint64_t read_counter(int fd, uint32_t row, uint32_t at)
{
	struct counter_file_head head;
	uint64_t value;

	read_head(fd, &head);
	assert_true(row < head.rows);
	assert_int_equal(pread(fd, &value, sizeof(value), head.first_row + (off_t)row * head.row_bytes + at * 8), 8);
	return value;
}

TEST(test_no_file)
{
	const struct rlimit small = {4096, RLIM_INFINITY};
	struct rlimit before;
	int files[4];

	assert_null(counter_file_row(NULL));
	counter_file_after_fork(NULL);
	/* If the file size limit is too small: no signal, and no file is left. */
	getrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_null(counter_file_make(DEVICES));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(find_files(files), 0);
}

/* Runs in the child; the exit status names the failed check. */
static int check_child(struct counter_file *file, uint64_t *first, int parents)
{
	struct stat old, new;
	int files[4];
	uint64_t *more;

	if (fstat(parents, &old))
		return 1;
	counter_file_after_fork(file);
	if (find_files(files) != 1 || fstat(files[0], &new) || old.st_ino == new.st_ino)
		return 2;
	if (*first)
		return 3;
	*first = 77;
	more = counter_file_row(file);
	if (!more || more == first || read_counter(files[0], 0, 0) != 77)
		return 4;
	return 0;
}

TEST(test_file)
{
	static struct counter_file *file; /* never freed, as that of the registry */
	uint64_t *rows[COUNTER_FILE_ROWS];
	int files[4], status;
	pid_t child;

	file = counter_file_make(DEVICES);
	assert_non_null(file);
	assert_int_equal(find_files(files), 1);
	assert_int_equal(read_rows(files[0]), 0);
	rows[0] = counter_file_row(file);
	rows[0][0] = 5;
	rows[0][DEVICES * COUNTER_COUNT - 1] = 6;
	assert_int_equal(read_counter(files[0], 0, 0), 5);
	assert_int_equal(read_counter(files[0], 0, DEVICES * COUNTER_COUNT - 1), 6);

	child = fork();
	if (!child)
		_exit(check_child(file, rows[0], files[0]));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(read_counter(files[0], 0, 0), 5);

	for (uint32_t i = 1; i < COUNTER_FILE_ROWS; i++) {
		rows[i] = counter_file_row(file);
		assert_non_null(rows[i]);
		assert_true((uint8_t *)rows[i] - (uint8_t *)rows[i - 1] >= (ptrdiff_t)(DEVICES * COUNTER_COUNT * 8));
		/* No two rows share a cache line. */
		assert_int_equal((uintptr_t)rows[i] % 128, 0);
		rows[i][0] = i;
	}
	for (int i = 0; i < 10; i++)
		assert_null(counter_file_row(file));
	assert_int_equal(read_rows(files[0]), COUNTER_FILE_ROWS);
	assert_int_equal(read_counter(files[0], COUNTER_FILE_ROWS - 1, 0), COUNTER_FILE_ROWS - 1);
}

/* The program may close the descriptor and open another file with the same number, which must stay open in a child. */
TEST(test_descriptor_of_the_program)
{
	int files[4], status, count = find_files(files);
	static struct counter_file *file;
	pid_t child;

	for (int i = 0; i < count; i++)
		close(files[i]);
	file = counter_file_make(DEVICES);
	assert_int_equal(find_files(files), 1);
	assert_int_equal(dup2(STDOUT_FILENO, files[0]), files[0]);
	child = fork();
	if (!child) {
		counter_file_after_fork(file);
		_exit(fcntl(files[0], F_GETFD) < 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 0);
	close(files[0]);
}
