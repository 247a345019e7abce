/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rpoll() and rselect() of rsocket(7). There are no rsockets: every descriptor that these are given is an ordinary one,
 * such as the descriptor of an event channel, which rping(1) waits for in this way. All other calls answer EOPNOTSUPP
 * (abi/rdmacm.def).
 */
#include "abi/rdmacm_entry_points.h"

int softhca_rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return poll(fds, nfds, timeout);
}

int softhca_rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	return select(nfds, readfds, writefds, exceptfds, timeout);
}
