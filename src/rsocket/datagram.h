/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams. */
#ifndef SOFTHCA_RSOCKET_DATAGRAM_H
#define SOFTHCA_RSOCKET_DATAGRAM_H

#include <errno.h>
#include <poll.h>
#include <sys/uio.h>

#include "rsocket/objects.h"

static inline int datagram_open(struct rsocket *rs)
{
	(void)rs;
	return -EOPNOTSUPP;
}
static inline void datagram_close(struct rsocket *rs)
{
	(void)rs;
}
static inline void datagram_forget(struct rsocket *rs)
{
	(void)rs;
}
static inline uint32_t datagram_descriptors(struct rsocket *rs, struct pollfd *descriptors)
{
	(void)rs;
	(void)descriptors;
	return 0;
}
static inline bool datagram_wake(struct rsocket *rs)
{
	(void)rs;
	return false;
}
static inline void datagram_woken(struct rsocket *rs)
{
	(void)rs;
}
static inline void datagram_notified(struct rsocket *rs)
{
	(void)rs;
}
static inline void datagram_advance(struct rsocket *rs)
{
	(void)rs;
}
static inline bool datagram_arm(struct rsocket *rs)
{
	(void)rs;
	return false;
}
static inline int datagram_connect(struct rsocket *rs, const struct sockaddr *a, socklen_t l)
{
	(void)rs;
	(void)a;
	(void)l;
	return -EOPNOTSUPP;
}
static inline int datagram_bind(struct rsocket *rs, const struct sockaddr *a, socklen_t l)
{
	(void)rs;
	(void)a;
	(void)l;
	return -EOPNOTSUPP;
}
static inline ssize_t datagram_send(struct rsocket *rs, const struct iovec *list, size_t count, int flags,
				    const struct sockaddr *a, socklen_t l)
{
	(void)rs;
	(void)list;
	(void)count;
	(void)flags;
	(void)a;
	(void)l;
	return -EOPNOTSUPP;
}
static inline ssize_t datagram_receive(struct rsocket *rs, const struct iovec *list, size_t count, int *flags,
				       struct sockaddr *a, socklen_t *l)
{
	(void)rs;
	(void)list;
	(void)count;
	(void)flags;
	(void)a;
	(void)l;
	return -EOPNOTSUPP;
}
static inline short datagram_ready(struct rsocket *rs)
{
	(void)rs;
	return 0;
}

#endif
