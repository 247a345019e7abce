/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explain/output: writes to a blocked descriptor of any type do not wait, the flags that other processes share do not
 * change, and failures raise no signal. alarm(2) ends a test that would wait.
 */
#include "test_case.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>

#include "explain/output.h"

#define LINE "mlx5_0 qp 0x40: a line\n"
#define LINE_LENGTH ((int)sizeof(LINE) - 1)

/* Fills @fd until it accepts no more; returns the number of lines written. */
static int fill(int fd)
{
	int flags = fcntl(fd, F_GETFL), lines = 0, done;

	alarm(20);
	while ((done = output_write(fd, LINE, LINE_LENGTH)) == LINE_LENGTH)
		assert_in_range(++lines, 1, 1000000);
	/* A terminal or a stream may accept part of the last line. */
	if (done >= 0)
		done = output_write(fd, LINE, LINE_LENGTH);
	assert_int_equal(done, -EAGAIN);
	assert_int_equal(fcntl(fd, F_GETFL), flags);
	assert_int_equal(flags & O_NONBLOCK, 0);
	alarm(0);
	return lines;
}

TEST(full_pipe)
{
	char line[LINE_LENGTH], *many = calloc(1, PIPE_BUF);
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_in_range(fill(ends[1]), 1000, 100000);
	/* Reading frees whole pages. */
	assert_int_equal(read(ends[0], many, PIPE_BUF), PIPE_BUF);
	assert_int_equal(output_write(ends[1], LINE, LINE_LENGTH), LINE_LENGTH);
	/* No other descriptor keeps the pipe open: it ends with the program's. */
	close(ends[1]);
	while (read(ends[0], line, sizeof(line)) > 0)
		;
	assert_int_equal(read(ends[0], line, sizeof(line)), 0);
	close(ends[0]);
	free(many);
}

TEST(stopped_terminal)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY), program;
	struct termios raw;
	char line[64];

	assert_true(terminal >= 0);
	assert_int_equal(grantpt(terminal) || unlockpt(terminal), 0);
	program = open(ptsname(terminal), O_RDWR | O_NOCTTY);
	assert_true(program >= 0);
	assert_int_equal(tcgetattr(program, &raw), 0);
	cfmakeraw(&raw);
	assert_int_equal(tcsetattr(program, TCSANOW, &raw), 0);
	assert_int_equal(tcflow(program, TCOOFF), 0);
	fill(program);
	assert_int_equal(tcflow(program, TCOON), 0);
	alarm(20);
	assert_int_equal(output_write(program, LINE, LINE_LENGTH), LINE_LENGTH);
	assert_int_equal(read(terminal, line, sizeof(line)), LINE_LENGTH);
	assert_memory_equal(line, LINE, LINE_LENGTH);
	/* No process reads the terminal either. */
	fill(program);
	close(terminal);
	close(program);
}

TEST(sockets)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
	int ends[2];

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		assert_int_equal(socketpair(AF_UNIX, types[i], 0, ends), 0);
		fill(ends[1]);
		close(ends[0]);
		assert_true(output_write(ends[1], LINE, LINE_LENGTH) < 0);
		close(ends[1]);
	}
}

TEST(fifo_without_reader)
{
	char path[] = "/tmp/softhca-output-XXXXXX", fifo[64], line[64];
	int fd, reader;

	assert_non_null(mkdtemp(path));
	snprintf(fifo, sizeof(fifo), "%s/fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	alarm(20);
	fd = output_open(fifo);
	assert_true(fd >= 0);
	assert_int_equal(output_write(fd, LINE, LINE_LENGTH), LINE_LENGTH);
	reader = open(fifo, O_RDONLY);
	assert_int_equal(read(reader, line, sizeof(line)), LINE_LENGTH);
	alarm(0);
	close(reader);
	close(fd);
	unlink(fifo);
	rmdir(path);
}

TEST(reader_has_gone)
{
	sigset_t pipe_signal, pending;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	/* SIGPIPE would end this program. */
	assert_int_equal(output_write(ends[1], LINE, LINE_LENGTH), -EPIPE);
	/* A SIGPIPE that is pending in the program stays pending. */
	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, NULL);
	assert_int_equal(output_write(ends[1], LINE, LINE_LENGTH), -EPIPE);
	sigpending(&pending);
	assert_int_equal(sigismember(&pending, SIGPIPE), 0);
	raise(SIGPIPE);
	assert_int_equal(output_write(ends[1], LINE, LINE_LENGTH), -EPIPE);
	sigpending(&pending);
	assert_int_equal(sigismember(&pending, SIGPIPE), 1);
	signal(SIGPIPE, SIG_IGN);
	pthread_sigmask(SIG_UNBLOCK, &pipe_signal, NULL);
	signal(SIGPIPE, SIG_DFL);
	close(ends[1]);
}

TEST(files)
{
	char path[] = "/tmp/softhca-output-XXXXXX", text[128] = "";
	struct rlimit before, limit;
	int fd = mkstemp(path), full = open("/dev/full", O_WRONLY);

	assert_true(fd >= 0 && full >= 0);
	/* After earlier output of the program, and before its later output. */
	assert_int_equal(write(fd, "first\n", 6), 6);
	assert_int_equal(output_write(fd, LINE, LINE_LENGTH), LINE_LENGTH);
	assert_int_equal(write(fd, "last\n", 5), 5);
	assert_int_equal(pread(fd, text, sizeof(text) - 1, 0), LINE_LENGTH + 11);
	assert_string_equal(text, "first\n" LINE "last\n");

	/* SIGXFSZ would end this program. */
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = LINE_LENGTH + 11;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(output_write(fd, LINE, LINE_LENGTH), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(output_write(full, LINE, LINE_LENGTH), -ENOSPC);
	close(full);
	close(fd);
	errno = ERANGE;
	assert_int_equal(output_write(fd, LINE, LINE_LENGTH), -EBADF);
	assert_int_equal(errno, ERANGE);
	unlink(path);
}
