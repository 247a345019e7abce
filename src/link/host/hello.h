/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first message of a connection: the connecting process sends its protocol version and passes the memory (host.h).
 * Any thread; nothing blocks.
 */
#ifndef SOFTHCA_LINK_HOST_HELLO_H
#define SOFTHCA_LINK_HOST_HELLO_H

#include <stdint.h>
#include <sys/types.h>

/* Increase on any change to the layout of the memory or to the meaning of a field. */
#define HOST_VERSION 9

struct host_hello {
	uint8_t magic[8]; /* HOST_MAGIC */
	uint32_t version;
	uint32_t reserved; /* 0 */
	uint64_t memory;   /* bytes */
};

#define HOST_MAGIC "softhca" /* with its NUL */

/** Returns a memfd of @bytes, sealed so that it cannot shrink or grow, or a negative errno. */
int host_memory_make(uint64_t bytes);
/** As host_memory_make(), with host_carrier->memory_size() bytes. */
int host_memory_create(void);
/** Returns 0 if @fd, which process @pid passed, is as host_memory_make() makes it; otherwise -EPROTO, explained. */
int host_memory_check(int fd, uint64_t bytes, pid_t pid);

/** Sends the hello with @memory. Returns 0 or a negative errno. */
int host_hello_send(int socket, int memory);

/**
 * Receives the hello of process @pid. Returns 0 and the checked @memory, which the caller closes; -EAGAIN if nothing
 * has arrived; -ECONNRESET if the other side has gone; or -EPROTO, explained, if it is invalid.
 */
int host_hello_receive(int socket, pid_t pid, int *memory);

#endif
