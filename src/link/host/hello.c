/* SPDX-License-Identifier: BSD-2-Clause */
/* See hello.h. */
#include "link/host/hello.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/descriptor_message.h"
#include "core/file_size.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "explain/limit.h"
#include "hca/hca.h"
#include "link/host/host.h"

/* Seals that prevent either side from moving the end of the file, beyond which access raises SIGBUS. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* One more than a hello carries, to detect excess descriptors. */
#define MOST_DESCRIPTORS 2

/* Returns -EPROTO. */
static int hello_refuse(enum explain_rule rule, const uint64_t *figures, size_t count)
{
	const struct explain_subject subject = {0};

	explain_limited(first_device(), &subject, LIMIT_EXPLAINED_DROPS, rule, figures, count);
	return -EPROTO;
}

int host_memory_make(uint64_t bytes)
{
	WITHOUT_SIZE_SIGNAL;
	int fd = memfd_create("softhca", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int error;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, (off_t)bytes) && !fcntl(fd, F_ADD_SEALS, SEALS))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

int host_memory_create(void)
{
	return host_memory_make(host_carrier->memory_size());
}

int host_hello_send(int socket, int memory)
{
	struct host_hello hello = {.magic = HOST_MAGIC, .version = HOST_VERSION, .memory = host_carrier->memory_size()};

	return descriptor_message_send(socket, &hello, sizeof(hello), &memory, 1, MSG_DONTWAIT);
}

struct received {
	struct descriptor_message message; /* its length includes bytes that did not fit */
	struct host_hello hello;
	int descriptor[MOST_DESCRIPTORS];
};

static int hello_receive(int socket, struct received *received)
{
	received->message =
		descriptor_message_receive(socket, &received->hello, sizeof(received->hello), received->descriptor,
					   MOST_DESCRIPTORS, MSG_DONTWAIT | MSG_TRUNC);
	if (received->message.length < 0)
		return received->message.length == -EAGAIN || received->message.length == -EINTR ? -EAGAIN
												 : -ECONNRESET;
	return 0;
}

int host_memory_check(int fd, uint64_t bytes, pid_t pid)
{
	/* First, because this call cannot block in any file system. */
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs system;
	struct stat file;

	if (seals < 0 || (seals & SEALS) != SEALS || fstatfs(fd, &system) || fstat(fd, &file))
		return hello_refuse(RULE_HOST_HELLO_SEALS,
				    FIGURES((uint64_t)pid, seals < 0 ? 0 : (uint64_t)seals, SEALS));
	/* Only files in memory have seals. A file of huge pages could fail when it is touched. */
	if (system.f_type != TMPFS_MAGIC || (uint64_t)file.st_size != bytes)
		return hello_refuse(RULE_HOST_HELLO_MEMORY, FIGURES((uint64_t)pid, (uint64_t)file.st_size, bytes));
	return 0;
}

static int hello_check(const struct received *received, pid_t pid)
{
	const struct descriptor_message *message = &received->message;
	const struct host_hello *hello = &received->hello;

	if (message->length == sizeof(*hello) && !message->count && message->truncated)
		return hello_refuse(RULE_HOST_NOT_ACCEPTED, FIGURES((uint64_t)pid, EMFILE));
	if (message->length != sizeof(*hello) || message->count != 1 || message->truncated)
		return hello_refuse(RULE_HOST_HELLO_SHAPE,
				    FIGURES((uint64_t)pid, (uint64_t)message->length, message->count, sizeof(*hello)));
	if (memcmp(hello->magic, HOST_MAGIC, sizeof(hello->magic)) != 0 || hello->version != HOST_VERSION ||
	    hello->memory != host_carrier->memory_size())
		return hello_refuse(RULE_HOST_HELLO_VERSION, FIGURES((uint64_t)pid, hello->version, hello->memory,
								     HOST_VERSION, host_carrier->memory_size()));
	return host_memory_check(received->descriptor[0], host_carrier->memory_size(), pid);
}

int host_hello_receive(int socket, pid_t pid, int *memory)
{
	struct received received;
	int error = hello_receive(socket, &received);

	if (error)
		return error;
	/* An empty message counts as the end of the connection. */
	error = received.message.length ? hello_check(&received, pid) : -ECONNRESET;
	if (!error) {
		*memory = received.descriptor[0];
		return 0;
	}
	for (uint32_t i = 0; i < received.message.count; i++)
		close(received.descriptor[i]);
	return error;
}
