/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that pass descriptors over a UNIX socket (SCM_RIGHTS, unix(7)). Any thread; no locks. The sender keeps its
 * descriptors. The caller closes received ones, which have FD_CLOEXEC set.
 */
#ifndef SOFTHCA_CORE_DESCRIPTOR_MESSAGE_H
#define SOFTHCA_CORE_DESCRIPTOR_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define DESCRIPTOR_MESSAGE_MOST 4u

/**
 * Sends @length bytes, at least one, and @count descriptors, 1..DESCRIPTOR_MESSAGE_MOST, as one message. @flags: as for
 * sendmsg(2); MSG_NOSIGNAL is added. Returns 0 or a negative errno; -EMSGSIZE if only a part of the bytes was sent.
 */
int descriptor_message_send(int socket, const void *bytes, size_t length, const int *descriptors, unsigned int count,
			    int flags);

struct descriptor_message {
	ssize_t length; /* result of recvmsg(2), or a negative errno */
	unsigned int count;
	bool truncated; /* more than @room were sent; the kernel has closed the others */
};

/**
 * Receives up to @size bytes and @room descriptors, 1..DESCRIPTOR_MESSAGE_MOST. Entries of @descriptors that receive
 * nothing become -1. @flags: as for recvmsg(2); MSG_CMSG_CLOEXEC is added.
 */
struct descriptor_message descriptor_message_receive(int socket, void *bytes, size_t size, int *descriptors,
						     unsigned int room, int flags);

#endif
