/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests programs that close descriptors which they did not open, as daemons do, and then open files: the kernel reuses the
 * numbers for the files. The library neither writes to such a file, nor reads from it, nor closes it. Descriptors that the
 * program does not know have high numbers, out of reach of such a program, and are closed by execve(2).
 */
#include "test_case.h"
#include "verbs_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { FILES = 12, BYTES = 64, DEADLINE_SECONDS = 20, OF_A_DAEMON = 1023, FEW = 64, FIRST = 3 };

static struct ibv_comp_channel *channel;
static struct ibv_mr *mr;
static struct ibv_qp *qp[2];
static char memory[2][BYTES];

/* Posts a WRITE with an event and waits for its completion. Returns its status. */
static enum ibv_wc_status write_once(void)
{
	CHECK(!ibv_req_notify_cq(cq, 0));
	verbs_post_write(qp[0], memory[0], BYTES, mr, (uintptr_t)memory[1], mr->rkey);
	return verbs_next_status();
}

/* Opens a session that uses all descriptors that a link needs: a channel, two connected QPs, a message. */
static void open_session(void)
{
	verbs_open();
	CHECK(!ibv_destroy_cq(cq));
	channel = ibv_create_comp_channel(context);
	cq = ibv_create_cq(context, 64, NULL, channel, 0);
	CHECK(channel && cq);
	mr = verbs_target(memory, sizeof(memory));
	for (int i = 0; i < 2; i++)
		qp[i] = verbs_qp(IBV_QPT_RC);
	for (int i = 0; i < 2; i++)
		CHECK(!verbs_connect(qp[i], qp[!i]->qp_num, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
				     .max_dest_rd_atomic = 1, .min_rnr_timer = 12, .timeout = 10, .retry_cnt = 2));
	CHECK(write_once() == IBV_WC_SUCCESS);
}

static void close_session(void)
{
	CHECK(!ibv_destroy_qp(qp[0]) && !ibv_destroy_qp(qp[1]));
	CHECK(!ibv_destroy_cq(cq));
	CHECK(!ibv_destroy_comp_channel(channel));
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(context));
}

static void limit_descriptors(rlim_t most)
{
	struct rlimit limit;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	CHECK(most <= limit.rlim_max);
	limit.rlim_cur = most;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
}

/* ---- numbers of descriptors -------------------------------------------------------------------------------------- */

static bool is_known(int fd)
{
	return fd < FIRST || fd == context->cmd_fd || fd == context->async_fd || fd == channel->fd;
}

/* Checks that no unknown descriptor has a number below @lowest, and that each is closed by execve(2). Returns their number. */
static int check_numbers(int lowest)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;
	int unknown = 0;

	CHECK(directory);
	while ((entry = readdir(directory))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || fd == dirfd(directory) || is_known(fd))
			continue;
		unknown++;
		CHECK(fd >= lowest);
		CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
	closedir(directory);
	return unknown;
}

/* Closes descriptors inherited from the program that started the test; they do not belong to the library. */
static void close_inherited(void)
{
	CHECK(!syscall(SYS_close_range, FIRST, ~0U, 0));
}

static void numbers_with_limit(rlim_t limit, int lowest)
{
	close_inherited();
	limit_descriptors(limit);
	open_session();
	CHECK(check_numbers(lowest) > 0);
	CHECK(context->cmd_fd < FIRST + FILES && channel->fd < FIRST + FILES);
	close_session();
}

static void numbers_are_high(void)
{
	numbers_with_limit(4096, 1024);
}

static void numbers_with_the_usual_limit(void)
{
	numbers_with_limit(1024, 512);
}

static void numbers_with_few_descriptors(void)
{
	numbers_with_limit(FEW, FEW / 2);
}

/* ---- programs that close them ------------------------------------------------------------------------------------ */

static int file[FILES], end_of_socket[FILES][2];

static void open_files(int count)
{
	for (int i = 0; i < count; i++) {
		file[i] = open("/tmp", O_TMPFILE | O_RDWR, 0600);
		CHECK(file[i] >= 0);
		CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, end_of_socket[i]));
	}
}

/* Checks that the files are open and empty, and that nothing was written to the sockets. */
static void check_files(int count)
{
	char byte;

	for (int i = 0; i < count; i++) {
		CHECK(lseek(file[i], 0, SEEK_END) == 0);
		for (int end = 0; end < 2; end++)
			CHECK(recv(end_of_socket[i][end], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	}
}

/*
 * Posts a WRITE and closes the session. @all: the link has no descriptor left, so a message that needs one fails; any other
 * message arrives.
 */
static void use_after_closing(int count, bool all)
{
	const char *link = getenv("SOFTHCA_LINK");
	bool needs_link = link && strcmp(link, "local") != 0 && strcmp(link, "auto") != 0;
	const struct timespec moment = {.tv_nsec = 100000000};
	enum ibv_wc_status status;

	open_files(count);
	status = write_once();
	CHECK(status == IBV_WC_SUCCESS || (all && needs_link && status == IBV_WC_RETRY_EXC_ERR));
	/* Lets the library's threads run. */
	nanosleep(&moment, NULL);
	check_files(count);
	close_session();
	check_files(count);
}

static void closed_by_a_daemon(void)
{
	limit_descriptors(4096);
	open_session();
	for (int fd = FIRST; fd <= OF_A_DAEMON; fd++)
		close(fd);
	use_after_closing(FILES, false);
}

static void all_closed_by_a_daemon(void)
{
	limit_descriptors(OF_A_DAEMON + 1);
	open_session();
	for (int fd = FIRST; fd <= OF_A_DAEMON; fd++)
		close(fd);
	use_after_closing(FILES, true);
}

static void all_closed_by_close_range(void)
{
	open_session();
	CHECK(!syscall(SYS_close_range, FIRST, ~0U, 0));
	use_after_closing(FILES, true);
}

/* A file of the program has taken each number that the library had. */
static void all_closed_and_used_up(void)
{
	close_inherited();
	limit_descriptors(FEW);
	open_session();
	CHECK(!syscall(SYS_close_range, FIRST, ~0U, 0));
	open_files(FILES);
	/* Fills the descriptor table up to its limit. */
	while (dup(end_of_socket[0][0]) >= 0)
		;
	write_once();
	check_files(FILES);
	close_session();
	check_files(FILES);
}

/* Runs @run in a child process that has not opened the device before. */
static void in_child(void (*run)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		alarm(2 * DEADLINE_SECONDS);
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define CHILD_CASE(function)                                                                                           \
	TEST(function##_case)                                                                                          \
	{                                                                                                              \
		in_child(function);                                                                                    \
	}

CHILD_CASE(numbers_are_high)
CHILD_CASE(numbers_with_the_usual_limit)
CHILD_CASE(numbers_with_few_descriptors)
CHILD_CASE(closed_by_a_daemon)
CHILD_CASE(all_closed_by_a_daemon)
CHILD_CASE(all_closed_by_close_range)
CHILD_CASE(all_closed_and_used_up)

int main(void)
{
	return run_cases();
}
