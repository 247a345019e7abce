/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The name by which processes of a user find the one that has the RoCE port, see parts.h and DESIGN.md. If two
 * processes of a user take reserve names at the same time, each sees the other's, and both try again.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "core/tunables.h"
#include "link/host/names.h"
#include "link/host/table.h"
#include "link/udp/parts.h"

#define BACKLOG 1024
#define PLAIN_BYTES 32

static void port_name_write_plain(uint16_t port, char plain[static PLAIN_BYTES])
{
	snprintf(plain, PLAIN_BYTES, "softhca/1/port/%u", port);
}

static int udp_name_listen(const struct host_name *name)
{
	int fd = host_bind(name, SOCK_STREAM), error;

	if (fd < 0 || !listen(fd, BACKLOG))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

static void port_name_take_reserve(const char *plain, struct udp_name *result)
{
	int fd = host_reserve_connect(plain, SOCK_STREAM, NULL);

	if (fd >= 0 && host_is_own_user(fd, &result->owner)) {
		result->connected = fd;
		return;
	}
	if (fd >= 0)
		close(fd);
	result->reserve = host_name_reserve(plain);
	result->listening = udp_name_listen(&result->reserve);
	if (result->listening < 0)
		return;
	fd = host_reserve_connect(plain, SOCK_STREAM, &result->reserve);
	if (fd < 0)
		return;
	close(fd);
	close(result->listening);
	result->listening = -1;
}

struct udp_name udp_name_contend(uint16_t port, uint32_t tries)
{
	struct udp_name result = {.listening = -1, .connected = -1, .stranger.uid = (uid_t)-1};
	char plain[PLAIN_BYTES];
	struct host_name name;
	bool taken;
	int fd;

	port_name_write_plain(port, plain);
	name = host_name("%s", plain);
	result.listening = udp_name_listen(&name);
	if (result.listening >= 0)
		return result;
	fd = host_connect(&name, SOCK_STREAM);
	if (fd >= 0 && host_is_own_user(fd, &result.owner)) {
		result.connected = fd;
		return result;
	}
	/*
	 * If no socket listens there, the owner of the name is starting or has just ended. If this lasts, the name
	 * counts as taken.
	 */
	taken = fd >= 0 || tries > TUNABLE_UDP_PORT_TRIES_SOON + 1;
	if (fd >= 0) {
		result.stranger = result.owner;
		close(fd);
	}
	if (taken && tries)
		port_name_take_reserve(plain, &result);
	return result;
}

bool udp_name_is_reserved(uint16_t port, const struct host_name *except)
{
	char plain[PLAIN_BYTES];
	int fd;

	port_name_write_plain(port, plain);
	fd = host_reserve_connect(plain, SOCK_STREAM, except);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}
