/* SPDX-License-Identifier: BSD-2-Clause */
/* See end.h. */
#include "link/shm/end.h"

#include "core/compiler.h"
#include "link/shm/peer.h"

enum { END_WORDS = sizeof(struct shm_end_attr) / sizeof(uint32_t) };

/* The other side may read or write an entry at any time. */
static void end_copy(uint32_t *to, const uint32_t *from)
{
	for (int i = 0; i < END_WORDS; i++)
		__atomic_store_n(&to[i], __atomic_load_n(&from[i], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

static struct shm_end *end_place(struct shm_ring *ring, uint32_t qpn)
{
	return &ring->end[qpn % SHM_ENDS];
}

void shm_end_show(const struct host_peer *host, const struct shm_end_attr *attr)
{
	struct shm_end *end = end_place(shm_of(host)->out.ring, attr->qpn);
	uint32_t sequence = __atomic_load_n(&end->sequence, __ATOMIC_RELAXED);

	/* Another thread is writing here. The place has room for one queue pair only, so this one is not shown. */
	if (sequence & 1 || !__atomic_compare_exchange_n(&end->sequence, &sequence, sequence + 1, false,
							 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return;
	order_before_stores();
	end_copy(&end->attr.qpn, &attr->qpn);
	__atomic_store_n(&end->sequence, sequence + 2, __ATOMIC_RELEASE);
}

void shm_end_hide(const struct host_peer *host, uint32_t qpn)
{
	const struct shm_end *end = end_place(shm_of(host)->out.ring, qpn);

	if (__atomic_load_n(&end->attr.qpn, __ATOMIC_RELAXED) == qpn)
		shm_end_show(host, &(const struct shm_end_attr){.qpn = qpn});
}

bool shm_end_find(const struct host_peer *host, uint32_t qpn, uint32_t peer, struct shm_end_attr *attr)
{
	const struct shm_end *end = end_place(shm_of(host)->in.ring, qpn);
	uint32_t sequence = __atomic_load_n(&end->sequence, __ATOMIC_ACQUIRE);

	end_copy(&attr->qpn, &end->attr.qpn);
	order_after_loads();
	return !(sequence & 1) && __atomic_load_n(&end->sequence, __ATOMIC_RELAXED) == sequence && attr->qpn == qpn &&
	       attr->peer == peer;
}
