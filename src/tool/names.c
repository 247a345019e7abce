/* SPDX-License-Identifier: BSD-2-Clause */
/* sock_diag(7) shows the user of each socket to all users (Linux 5.3). */
#include "tool/names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>

#define SHOW_UID 0x40    /* UDIAG_SHOW_UID, Linux 5.3 */
#define ATTRIBUTE_UID 7  /* UNIX_DIAG_UID */
#define CLOSED (1u << 7) /* TCP_CLOSE: possibly bound */
#define LISTENING (1u << 10)

#define SLOT "softhca/1/slot/"
#define ANY "softhca/1/"

struct table {
	struct name_holder *holders;
	size_t most, count;
};

static struct name_holder *holder_of(struct table *table, uid_t user)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->holders[i].user == user)
			return &table->holders[i];
	if (table->count == table->most)
		return NULL;
	table->holders[table->count] = (struct name_holder){.user = user};
	return &table->holders[table->count++];
}

static bool name_begins_with(const char *name, size_t length, const char *prefix)
{
	return length >= strlen(prefix) && !memcmp(name, prefix, strlen(prefix));
}

static void count_socket(struct table *table, const struct nlmsghdr *message)
{
	const uint8_t *at = (const uint8_t *)NLMSG_DATA(message) + NLMSG_ALIGN(sizeof(struct unix_diag_msg));
	const uint8_t *end = (const uint8_t *)message + message->nlmsg_len;
	struct name_holder *holder;
	const char *name = NULL;
	struct nlattr attribute;
	uid_t user = (uid_t)-1;
	size_t length = 0;

	for (; at + sizeof(attribute) <= end; at += NLA_ALIGN(attribute.nla_len)) {
		memcpy(&attribute, at, sizeof(attribute));
		if (attribute.nla_len < sizeof(attribute) || at + attribute.nla_len > end)
			break;
		if (attribute.nla_type == UNIX_DIAG_NAME) {
			name = (const char *)at + sizeof(attribute);
			length = attribute.nla_len - sizeof(attribute);
		} else if (attribute.nla_type == ATTRIBUTE_UID &&
			   attribute.nla_len >= sizeof(attribute) + sizeof(user)) {
			memcpy(&user, at + sizeof(attribute), sizeof(user));
		}
	}
	/* An abstract name begins with a NUL. */
	if (!length || *name || !name_begins_with(name + 1, length - 1, ANY))
		return;
	holder = holder_of(table, user);
	if (holder)
		++*(name_begins_with(name + 1, length - 1, SLOT) ? &holder->slots : &holder->ports);
}

static int dump_request(int fd)
{
	const struct {
		struct nlmsghdr header;
		struct unix_diag_req request;
	} message = {
		.header = {.nlmsg_len = sizeof(message),
			   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.request = {.sdiag_family = AF_UNIX,
			    .udiag_states = CLOSED | LISTENING,
			    .udiag_show = UDIAG_SHOW_NAME | SHOW_UID},
	};

	return send(fd, &message, sizeof(message), 0) == sizeof(message) ? 0 : -errno;
}

/* Receives a part of the list. Returns 1, 0 at the end, or a negative errno. */
static int dump_receive(int fd, struct table *table)
{
	union {
		struct nlmsghdr header;
		char bytes[32768];
	} answer;
	ssize_t received = recv(fd, &answer, sizeof(answer), 0);
	size_t left = received < 0 ? 0 : (size_t)received;

	if (received <= 0)
		return received ? -errno : -EIO;
	for (const struct nlmsghdr *message = &answer.header; NLMSG_OK(message, left);
	     message = NLMSG_NEXT(message, left)) {
		if (message->nlmsg_type == NLMSG_DONE)
			return 0;
		if (message->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)NLMSG_DATA(message))->error;
		if (message->nlmsg_type == SOCK_DIAG_BY_FAMILY)
			count_socket(table, message);
	}
	return 1;
}

static int by_slots(const void *a, const void *b)
{
	const struct name_holder *one = a, *other = b;

	return (one->slots < other->slots) - (one->slots > other->slots);
}

int names_holders(struct name_holder *holders, size_t most)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG), result;
	struct table table = {.holders = holders, .most = most};

	if (fd < 0)
		return -errno;
	result = dump_request(fd);
	if (!result)
		while ((result = dump_receive(fd, &table)) == 1)
			;
	close(fd);
	qsort(holders, table.count, sizeof(*holders), by_slots);
	return result ? result : (int)table.count;
}
