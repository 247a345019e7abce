/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the process that has a UDP port: /proc/net/udp, or /proc/net/unix for its name, gives an inode, and
 * /proc/PID/fd the process.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "link/host/listing.h"
#include "link/udp/parts.h"

#define ADDRESS_DIGITS 32

/* "  12: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 31337 …" (proc(5)) */
static bool udp_line_parse(const char *line, char address[static ADDRESS_DIGITS + 1], unsigned int *port,
			   uint64_t *inode)
{
	return sscanf(line, " %*u: %32[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %*u %*u %" SCNu64, address, port, inode) == 3;
}

/*
 * Returns true for 224.0.0.0/4 and ff00::/8. Addresses are printed as words in the byte order of this host: the first
 * byte is the last of the first word.
 */
static bool address_is_group(const char *address)
{
	return strlen(address) == 8 ? toupper((unsigned char)address[6]) == 'E'
				    : strncasecmp(address + 6, "FF", 2) == 0;
}

/* Returns the inode of a socket at @port that conflicts with one for all addresses, or 0. */
static uint64_t listing_find_inode(const char *path, uint16_t port)
{
	FILE *file = fopen(path, "re");
	uint64_t inode, found = 0;
	unsigned int number;
	char line[512], address[ADDRESS_DIGITS + 1];

	if (!file)
		return 0;
	while (!found && fgets(line, sizeof(line), file))
		if (udp_line_parse(line, address, &number, &inode) && number == port && !address_is_group(address))
			found = inode;
	fclose(file);
	return found;
}

static bool process_has_open(const char *pid, const char *target)
{
	char path[64], link[64];
	const struct dirent *entry;
	bool found = false;
	ssize_t length;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
	directory = opendir(path);
	if (!directory)
		return false;
	while (!found && (entry = readdir(directory))) {
		length = readlinkat(dirfd(directory), entry->d_name, link, sizeof(link) - 1);
		if (length <= 0)
			continue;
		link[length] = '\0';
		found = !strcmp(link, target);
	}
	closedir(directory);
	return found;
}

static void owner_read_name(struct udp_owner *owner)
{
	char path[64];
	ssize_t length;
	int fd;

	memset(owner->name, 0, sizeof(owner->name));
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)owner->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	length = read(fd, owner->name, sizeof(owner->name) - 1);
	close(fd);
	if (length > 0)
		owner->name[strcspn(owner->name, "\n")] = '\0';
	/* The process chooses the name, and it is printed on terminals. */
	for (char *at = owner->name; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

bool udp_find_process(uint64_t inode, struct udp_owner *owner)
{
	const struct dirent *entry;
	char target[64];
	DIR *processes = inode ? opendir("/proc") : NULL;
	bool found = false;

	if (!processes)
		return false;
	snprintf(target, sizeof(target), "socket:[%" PRIu64 "]", inode);
	while (!found && (entry = readdir(processes))) {
		if (!isdigit((unsigned char)entry->d_name[0]) || !process_has_open(entry->d_name, target))
			continue;
		owner->pid = (pid_t)strtol(entry->d_name, NULL, 10);
		owner_read_name(owner);
		found = true;
	}
	closedir(processes);
	return found;
}

static uint64_t port_find_inode(uint16_t port)
{
	uint64_t inode = listing_find_inode("/proc/net/udp", port);

	return inode ? inode : listing_find_inode("/proc/net/udp6", port);
}

bool udp_port_is_bound(uint16_t port)
{
	return port_find_inode(port);
}

bool udp_find_owner(uint16_t port, struct udp_owner *owner)
{
	return udp_find_process(port_find_inode(port), owner);
}

struct receiver_search {
	const char *plain, *socket; /* plain name, and the port's socket as shown in /proc */
	struct udp_owner *owner;
	bool found;
};

static bool search_check_name(void *argument, const struct host_listed *listed)
{
	struct receiver_search *search = argument;
	size_t length = strlen(search->plain);
	char pid[24];

	/* Accept the plain name and reserve names derived from it. */
	if ((listed->name[length] && listed->name[length] != '/') || !udp_find_process(listed->inode, search->owner))
		return true;
	snprintf(pid, sizeof(pid), "%d", (int)search->owner->pid);
	search->found = process_has_open(pid, search->socket);
	return !search->found;
}

bool udp_find_receiver(uint16_t port, struct udp_owner *owner)
{
	char plain[32], target[64];
	struct receiver_search search = {.plain = plain, .socket = target, .owner = owner};

	snprintf(plain, sizeof(plain), "softhca/1/port/%u", port);
	snprintf(target, sizeof(target), "socket:[%" PRIu64 "]", port_find_inode(port));
	host_names_list(plain, search_check_name, &search);
	return search.found;
}
