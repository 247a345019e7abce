/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing without waiting, see output.h. */
#include "explain/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/cancellation.h"

int output_open(const char *path)
{
	WITHOUT_CANCELLATION;
	const int flags = O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	int fd = open(path, O_WRONLY | O_CREAT | flags, 0644);

	/* Without a reader, opens a FIFO (fifo(7)) such that it keeps the data for a later one. */
	if (fd < 0 && errno == ENXIO)
		fd = open(path, O_RDWR | flags);
	return fd < 0 ? -errno : fd;
}

/* Signals that a failed write(2) sends to the calling thread. */
static void failure_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGPIPE);
	sigaddset(set, SIGXFSZ);
}

struct guard {
	sigset_t mask, pending;
	int error;
};

static void signals_block(struct guard *guard)
{
	sigset_t blocked;

	guard->error = errno;
	if (sigpending(&guard->pending))
		sigemptyset(&guard->pending);
	failure_signals(&blocked);
	/* A terminal accepts output of a thread that blocks this signal (termios(3), TOSTOP). */
	sigaddset(&blocked, SIGTTOU);
	pthread_sigmask(SIG_BLOCK, &blocked, &guard->mask);
}

/* Consumes the write's signal, unless one was pending before, which is the program's. */
static void signal_consume(const struct guard *guard, int signal)
{
	const struct timespec now = {0};
	sigset_t set;

	if (sigismember(&guard->pending, signal))
		return;
	sigemptyset(&set);
	sigaddset(&set, signal);
	while (sigtimedwait(&set, NULL, &now) < 0 && errno == EINTR)
		;
}

static void signals_restore(const struct guard *guard, ssize_t result)
{
	if (result == -EPIPE)
		signal_consume(guard, SIGPIPE);
	if (result == -EFBIG)
		signal_consume(guard, SIGXFSZ);
	pthread_sigmask(SIG_SETMASK, &guard->mask, NULL);
	errno = guard->error;
}

static ssize_t write_to(int fd, const char *text, size_t length)
{
	ssize_t done = write(fd, text, length);

	return done < 0 ? -errno : done;
}

static ssize_t send_to(int fd, const char *text, size_t length)
{
	ssize_t done = send(fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL);

	return done < 0 ? -errno : done;
}

/*
 * Writes to pipes and terminals through a separate open file description, which may have O_NONBLOCK. Closes it at once,
 * because a pipe's reader waits for all writers, and the program may replace the file of the descriptor. Without /proc,
 * or if the terminal belongs to another user, poll(2) shows whether there is room for at most PIPE_BUF bytes, which
 * another writer may fill in between.
 */
static ssize_t write_reopened(int fd, const char *text, size_t length)
{
	struct pollfd room = {.fd = fd, .events = POLLOUT};
	char path[32];
	ssize_t done;
	int own;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (own >= 0) {
		done = write_to(own, text, length);
		close(own);
		return done;
	}
	if (poll(&room, 1, 0) <= 0 || !(room.revents & (POLLOUT | POLLERR)))
		return -EAGAIN;
	return write_to(fd, text, length > PIPE_BUF ? PIPE_BUF : length);
}

static ssize_t write_by_kind(int fd, const char *text, size_t length)
{
	struct stat status;
	int flags;

	if (fstat(fd, &status))
		return -errno;
	if (S_ISSOCK(status.st_mode))
		return send_to(fd, text, length);
	if (S_ISREG(status.st_mode))
		return write_to(fd, text, length);
	flags = fcntl(fd, F_GETFL);
	if (flags >= 0 && flags & O_NONBLOCK)
		return write_to(fd, text, length);
	return write_reopened(fd, text, length);
}

int output_write(int fd, const char *text, size_t length)
{
	WITHOUT_CANCELLATION;
	struct guard guard;
	ssize_t done;

	signals_block(&guard);
	done = write_by_kind(fd, text, length);
	signals_restore(&guard, done);
	return (int)done;
}
