/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes what the machine supports, see probes.h. */
#include "tool/probes.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/mounts.h"

int system_setting(const char *path)
{
	FILE *file = fopen(path, "re");
	int value = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%d", &value) != 1)
		value = -1;
	fclose(file);
	return value;
}

/* Returns 0 or an errno value. */
static int in_child(int (*attempt)(void *argument), void *argument)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(attempt(argument));
	if (pid < 0)
		return errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

#define PROBE_VALUE UINT64_C(0x736f6674686361)

/* The writer must not be an ancestor, for which Yama makes an exception. */
static int child_writes_to_parent(void *argument)
{
	uint64_t value = PROBE_VALUE;
	const struct iovec part = {&value, sizeof(value)};
	char path[32];
	ssize_t moved;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)getppid());
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno;
	moved = pwritev(fd, &part, 1, (off_t)(uintptr_t)argument);
	if (moved == sizeof(value))
		return 0;
	return moved < 0 ? errno : EIO;
}

int probe_memory_of_others(void)
{
	volatile uint64_t value = 0;
	int error = in_child(child_writes_to_parent, (void *)&value);

	return error || value == PROBE_VALUE ? error : EIO;
}

static int mount_something(void *argument)
{
	int error = mounts_begin();

	(void)argument;
	/* As `softhca run` begins. */
	if (!error)
		error = mounts_cover("/dev");
	return -error;
}

int probe_mount_namespace(void)
{
	return in_child(mount_something, NULL);
}

int probe_abstract_sockets(void)
{
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), client = -1, error;
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	socklen_t size, credentials_size = sizeof(struct ucred);
	struct ucred credentials;

	size = (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 +
	       (socklen_t)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "softhca/doctor/%d", (int)getpid());
	error = listener < 0 || bind(listener, (struct sockaddr *)&name, size) || listen(listener, 1) ? errno : 0;
	if (!error) {
		client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		error = client < 0 || connect(client, (struct sockaddr *)&name, size) ||
					getsockopt(client, SOL_SOCKET, SO_PEERCRED, &credentials, &credentials_size)
				? errno
				: 0;
	}
	if (client >= 0)
		close(client);
	if (listener >= 0)
		close(listener);
	return error;
}

int probe_shared_memory(void)
{
	int file = memfd_create("softhca-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING), error = 0;
	void *memory;

	if (file < 0)
		return errno;
	if (ftruncate(file, 4096) || fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK)) {
		error = errno;
	} else {
		memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		error = memory == MAP_FAILED ? errno : 0;
		if (!error)
			munmap(memory, 4096);
	}
	close(file);
	return error;
}

const char *probe_trains(int fd)
{
	const int bytes = 1024, on = 1;
	bool sends = !setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &bytes, sizeof(bytes));
	bool receives = !setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));

	if (sends && receives)
		return "GSO and GRO";
	return sends ? "GSO, no GRO" : receives ? "GRO, no GSO" : "neither GSO nor GRO";
}
