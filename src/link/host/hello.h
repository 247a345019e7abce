/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first message of a connection between processes: the side that connects says which version it speaks and passes the memory of
 * the connection. See host.h.
 */
#ifndef SOFTHCA_LINK_HOST_HELLO_H
#define SOFTHCA_LINK_HOST_HELLO_H

#include <stdint.h>
#include <sys/types.h>

/* Changes with the layout of the memory, and with the meaning of anything in it. */
#define HOST_VERSION 7

struct host_hello {
	uint8_t magic[8]; /* HOST_MAGIC */
	uint32_t version;
	uint32_t reserved; /* 0 */
	uint64_t memory;   /* bytes */
};

#define HOST_MAGIC "softhca" /* with its NUL */

/** A memfd of @bytes that nobody can cut. Returns the descriptor or a negative errno. Any thread. */
int host_memory_make(uint64_t bytes);
/** The same of shm_memory_size() bytes, for a connection. */
int host_memory_create(void);
/** 0 if @fd, which process @pid passed, is what host_memory_make() makes; else -EPROTO, explained. Any thread. */
int host_memory_check(int fd, uint64_t bytes, pid_t pid);

/** Says hello on @socket, with @memory. Never blocks. Returns 0 or a negative errno. Any thread. */
int host_hello_send(int socket, int memory);

/**
 * Takes the hello of process @pid from @socket. Never blocks. Returns 0 and its @memory, which is as host_memory_create()
 * makes it and is the caller's to close; -EAGAIN: nothing was said yet; -ECONNRESET: the other side has gone; -EPROTO: what
 * it said is wrong, explained. Any thread.
 */
int host_hello_receive(int socket, pid_t pid, int *memory);

#endif
