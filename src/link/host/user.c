/* SPDX-License-Identifier: BSD-2-Clause */
/* Determines the user of the process at the other end of a connection; see DESIGN.md, "Same user only". */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/limits.h"
#include "explain/explain.h"
#include "explain/limit.h"
#include "hca/hca.h"
#include "observe/counters.h"
#include "link/host/table.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static bool proc_read_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "re");
	bool read = file && fgets(line, size, file);

	if (file)
		fclose(file);
	return read;
}

/* Returns the number of all unmapped users in a user namespace (overflowuid). */
static unsigned int user_overflow(void)
{
	static unsigned int known; /* atomic; 0: not read yet */
	unsigned int user = __atomic_load_n(&known, __ATOMIC_RELAXED);
	char line[64];

	if (user)
		return user;
	if (!proc_read_line("/proc/sys/kernel/overflowuid", line, sizeof(line)) || sscanf(line, "%u", &user) != 1 ||
	    !user)
		user = 65534;
	__atomic_store_n(&known, user, __ATOMIC_RELAXED);
	return user;
}

/*
 * Returns true if @user is the overflow number, which represents all users that the user namespace does not map
 * (user_namespaces(7)), unless it maps all.
 */
static bool user_may_be_anybody(uid_t user)
{
	unsigned int inside = 1, outside = 1, count = 0;
	char line[64];

	if (user != user_overflow())
		return false;
	if (proc_read_line("/proc/self/uid_map", line, sizeof(line)))
		sscanf(line, "%u %u %u", &inside, &outside, &count);
	return inside != 0 || outside != 0 || count != UINT32_MAX;
}

/*
 * Returns true if this process may send a signal to the one at the other end of @socket. kill(2) compares the kernel's
 * user IDs, so both belong to the same user, unless this process is privileged. Uses a pidfd (Linux 6.5), because the
 * process ID may be reused.
 */
static bool maker_may_be_signalled(int socket)
{
	int process = -1;
	socklen_t length = sizeof(process);
	bool may;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &process, &length) || process < 0)
		return false;
	may = !syscall(SYS_pidfd_send_signal, process, 0, NULL, 0);
	close(process);
	return may;
}

/* Returns true if /proc belongs to the PID namespace of this process. */
static bool proc_shows_own_ids(void)
{
	char self[16];
	ssize_t length = readlinkat(AT_FDCWD, "/proc/self", self, sizeof(self) - 1);

	if (length <= 0)
		return false;
	self[length] = '\0';
	return strtol(self, NULL, 10) == getpid();
}

/* Returns true if the process that made @socket has ended, so that its ID may be reused. Linux 6.5; false before. */
static bool maker_has_ended(int socket)
{
	struct pollfd process = {.fd = -1, .events = POLLIN};
	socklen_t length = sizeof(process.fd);
	bool ended;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &process.fd, &length))
		return errno == ESRCH;
	ended = poll(&process, 1, 0) != 0;
	close(process.fd);
	return ended;
}

/* Sets *@user to the present effective user of process @pid, which made @socket. Returns false if unknown. */
static bool maker_present_user(int socket, pid_t pid, uid_t *user)
{
	struct stat process;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (pid <= 0 || !proc_shows_own_ids() || stat(path, &process) || maker_has_ended(socket))
		return false;
	*user = process.st_uid;
	return true;
}

bool host_is_own_user(int socket, struct ucred *other)
{
	socklen_t length = sizeof(*other);
	uid_t own = geteuid(), maker;

	*other = (struct ucred){.uid = (uid_t)-1};
	getsockopt(socket, SOL_SOCKET, SO_PEERCRED, other, &length);
	maker = other->uid;
	if (maker != own && maker != 0)
		return false;
	if (!maker_present_user(socket, other->pid, &other->uid) && maker != own)
		return false;
	return other->uid == own && (!user_may_be_anybody(own) || maker_may_be_signalled(socket));
}

bool host_same_user(int socket, pid_t *pid)
{
	struct ucred other;
	bool same = host_is_own_user(socket, &other);

	*pid = other.pid;
	if (same)
		return true;
	counter_add(first_device(), COUNTER_HOST_REFUSED, 1);
	EXPLAIN_LIMITED(first_device(), (&(const struct explain_subject){0}), LIMIT_EXPLAINED_DROPS,
			RULE_HOST_OTHER_USER, (uint64_t)other.pid, other.uid, geteuid());
	return false;
}
