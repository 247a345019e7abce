/* SPDX-License-Identifier: BSD-2-Clause */
/* See names.h. */
#include "link/host/names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/timer.h"
#include "link/host/table.h"

struct host_name host_name(const char *format, ...)
{
	struct host_name name = {.address.sun_family = AF_UNIX};
	va_list args;
	int length;

	va_start(args, format);
	/* An abstract name begins with a NUL and its length is explicit (unix(7)). */
	length = vsnprintf(name.address.sun_path + 1, sizeof(name.address.sun_path) - 1, format, args);
	va_end(args);
	name.length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	return name;
}

uint64_t host_random(void)
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = (clock_now_ns() ^ (uint64_t)getpid()) * UINT64_C(0x9e3779b97f4a7c15);
	return number;
}

struct host_name host_name_reserve(const char *plain)
{
	return host_name("%s/%016" PRIx64, plain, host_random());
}

int host_bind(const struct host_name *name, int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (const struct sockaddr *)&name->address, name->length))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

int host_connect(const struct host_name *name, int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error;

	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)&name->address, name->length))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/* ---- reserve names ------------------------------------------------------------------------------------------------ */

struct search {
	const struct host_name *except;
	int type;
	int result; /* socket, or the newest error */
};

static bool search_connect_own(void *argument, const struct host_listed *listed)
{
	struct host_name name = host_name("%s", listed->name);
	struct search *search = argument;
	struct ucred other;
	int fd;

	if (search->except && search->except->length == name.length &&
	    !memcmp(&search->except->address, &name.address, name.length))
		return true;
	fd = host_connect(&name, search->type);
	if (fd < 0) {
		/* -ECONNREFUSED: the process has just ended. Any other error may pass. */
		if (fd != -ECONNREFUSED)
			search->result = fd;
		return true;
	}
	if (host_is_own_user(fd, &other)) {
		search->result = fd;
		return false;
	}
	close(fd);
	return true;
}

int host_reserve_connect(const char *plain, int type, const struct host_name *except)
{
	struct search search = {.except = except, .type = type, .result = -ENOENT};
	char prefix[sizeof(((struct host_listed *)0)->name)];
	int error;

	snprintf(prefix, sizeof(prefix), "%s/", plain);
	error = host_names_list(prefix, search_connect_own, &search);
	return error ? error : search.result;
}
