/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides which of the processes that share the port's socket receives. */
#include <poll.h>
#include <sys/mman.h>

#include "link/udp/parts.h"

struct udp_turn *udp_turn_map(int page)
{
	struct udp_turn *turn = mmap(NULL, UDP_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);

	return turn == MAP_FAILED ? NULL : turn;
}

void udp_turn_unmap(struct udp_turn *turn)
{
	if (turn)
		munmap(turn, UDP_PAGE_BYTES);
}

bool udp_turn_take_over(struct udp_turn *page, int socket, struct udp_look *before, uint32_t *turn)
{
	struct pollfd readable = {.fd = socket, .events = POLLIN};
	/*
	 * Read before the socket: if a packet that is waiting now is taken later, the beat will differ from this one.
	 */
	struct udp_look now = {
		.turn = __atomic_load_n(&page->turn, __ATOMIC_SEQ_CST),
		.beats = __atomic_load_n(&page->beats, __ATOMIC_SEQ_CST),
	};
	bool silent;

	now.waited = poll(&readable, 1, 0) == 1 && (readable.revents & POLLIN);
	silent = before->waited && now.waited && before->turn == now.turn && before->beats == now.beats;
	*before = now;
	*turn = now.turn + 1;
	return silent &&
	       __atomic_compare_exchange_n(&page->turn, &now.turn, *turn, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
