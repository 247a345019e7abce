/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that pass descriptors. */
#include "core/descriptor_message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union descriptor_control {
	struct cmsghdr header;
	char space[CMSG_SPACE(DESCRIPTOR_MESSAGE_MOST * sizeof(int))];
};

int descriptor_message_send(int socket, const void *bytes, size_t length, const int *descriptors, unsigned int count,
			    int flags)
{
	struct iovec part = {(void *)bytes, length};
	union descriptor_control control = {0};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.space,
				 .msg_controllen = CMSG_SPACE(count * sizeof(int))};
	ssize_t sent;

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
	sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
	if (sent < 0)
		return -errno;
	return (size_t)sent == length ? 0 : -EMSGSIZE;
}

struct descriptor_message descriptor_message_receive(int socket, void *bytes, size_t size, int *descriptors,
						     unsigned int room, int flags)
{
	struct iovec part = {bytes, size};
	union descriptor_control control;
	/* CMSG_LEN rather than CMSG_SPACE: the kernel would use its padding for one more descriptor. */
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.space,
				 .msg_controllen = CMSG_LEN(room * sizeof(int))};
	struct descriptor_message received = {.length = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC)};
	const struct cmsghdr *header;

	for (unsigned int i = 0; i < room; i++)
		descriptors[i] = -1;
	if (received.length < 0) {
		received.length = -errno;
		return received;
	}
	received.truncated = message.msg_flags & MSG_CTRUNC;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
		received.count = (unsigned int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(descriptors, CMSG_DATA(header), received.count * sizeof(int));
	}
	return received;
}
