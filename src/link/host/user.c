/* SPDX-License-Identifier: BSD-2-Clause */
/* The user whose process is at the other end of a connection; see table.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/limits.h"
#include "explain/explain.h"
#include "explain/limit.h"
#include "device/device.h"
#include "device/counters.h"
#include "link/host/table.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static bool read_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "re");
	bool read = file && fgets(line, size, file);

	if (file)
		fclose(file);
	return read;
}

/* The number that stands for users who have none in a user namespace. */
static unsigned int overflow_user(void)
{
	static unsigned int known; /* atomic; 0: not read yet */
	unsigned int nobody = __atomic_load_n(&known, __ATOMIC_RELAXED);
	char line[64];

	if (nobody)
		return nobody;
	if (!read_line("/proc/sys/kernel/overflowuid", line, sizeof(line)) || sscanf(line, "%u", &nobody) != 1 ||
	    !nobody)
		nobody = 65534;
	__atomic_store_n(&known, nobody, __ATOMIC_RELAXED);
	return nobody;
}

/*
 * All users that a user namespace does not know look like one to those inside, nobody (user_namespaces(7)). So that number
 * names a user only where every user is known.
 */
static bool may_be_anybody(uid_t user)
{
	unsigned int inside = 1, outside = 1, count = 0;
	char line[64];

	if (user != overflow_user())
		return false;
	if (read_line("/proc/self/uid_map", line, sizeof(line)))
		sscanf(line, "%u %u %u", &inside, &outside, &count);
	return inside != 0 || outside != 0 || count != UINT32_MAX;
}

/*
 * kill(2) compares users as the kernel knows them, whatever a namespace shows of them: a process that may send a signal to the
 * one at the other end is of its user, if not privileged. Not by number, since that may be another process's by now (Linux 6.5).
 */
static bool may_signal(int socket)
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

bool host_is_own_user(int socket, struct ucred *other)
{
	socklen_t length = sizeof(*other);
	uid_t own = geteuid();

	*other = (struct ucred){.uid = (uid_t)-1};
	getsockopt(socket, SOL_SOCKET, SO_PEERCRED, other, &length);
	return other->uid == own && (!may_be_anybody(own) || may_signal(socket));
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
