/* SPDX-License-Identifier: BSD-2-Clause */
/* Retransmission of packets that were lost, or that the peer cannot take yet. */
#include <string.h>

#include "observe/counters.h"
#include "transport/qp/early.h"
#include "transport/qp/origin.h"
#include "transport/requester/requester.h"
#include "wire/routes.h"

#define RNR_RETRY_FOREVER 7

void requester_go_back(struct hca_qp *qp, uint32_t position, uint32_t offset)
{
	struct requester *requester = &qp->requester;
	const struct inflight *entry = inflight_at(requester, position);

	requester->send_entry = position;
	requester->send_offset = entry->responds ? entry->arrived >> qp->mtu_shift : offset;
}

void requester_narrow_window(struct hca_qp *qp)
{
	uint32_t least = 8u << qp->mtu_shift;

	host_window_lost(qp);
	qp->requester.window /= 2;
	if (qp->requester.window < least)
		qp->requester.window = least;
}

bool requester_may_retry(struct hca_qp *qp)
{
	return host_window_excuses(qp) || qp->requester.retries_left--;
}

uint64_t rnr_timer_ns(uint8_t code)
{
	/* IBTA table 45, in units of 10 us. */
	static const uint32_t tens[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
					  48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
					  2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

	return tens[code & 31] * UINT64_C(10000);
}

void requester_retry_later(struct hca_qp *qp, const struct packet *packet)
{
	struct requester *requester = &qp->requester;
	uint8_t code = packet->syndrome & AETH_CODE_MASK;
	uint64_t where[EXPLAIN_ORIGIN];
	uint32_t peer;

	requester_peer(qp, &peer);
	if (qp->attr.rnr_retry != RNR_RETRY_FOREVER) {
		if (!requester->rnr_retries_left) {
			struct refusal why;

			origin_of_peer(qp, where);
			why = (struct refusal){RULE_RNR_EXHAUSTED,
					       {peer, qp->attr.rnr_retry, rnr_timer_ns(code) / 1000, where[0], where[1],
						where[2]}};
			requester_fail_front(qp, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR, &why);
			return;
		}
		requester->rnr_retries_left--;
	}
	requester_stop_timer(qp);
	if (timer_arm(&qp->hca->timers, &requester->timer, clock_now_ns() + rnr_timer_ns(code))) {
		struct refusal why = {RULE_RNR_NO_THREAD, {rnr_timer_ns(code) / 1000, peer}};

		requester_fail_front(qp, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR, &why);
		return;
	}
	requester->rnr_wait = true;
	requester->timer_armed = true;
}

/* Explains why queue pair @number, if in this process, did not answer. */
static void explain_peer(uint32_t number)
{
	struct hca_qp *peer = qp_find(number);

	if (peer)
		early_given_up(peer);
}

void requester_give_up(struct hca_qp *qp)
{
	uint32_t peer;
	const struct link *link = requester_peer(qp, &peer);
	const char *name = link ? link->name : "none";
	struct refusal why;
	uint64_t chars = 0, where[EXPLAIN_ORIGIN];

	memcpy(&chars, name, strnlen(name, sizeof(chars)));
	origin_of_peer(qp, where);
	if (requester_peer_has_ended(qp))
		why = (struct refusal){RULE_PEER_ENDED, {peer}};
	else
		why = (struct refusal){RULE_RETRY_EXHAUSTED,
				       {peer, qp->attr.retry_cnt, qp->attr.timeout, chars, where[0], where[1],
					where[2]}};
	counter_add(qp->hca, COUNTER_RETRIES_EXHAUSTED, 1);
	explain_peer(peer);
	requester_fail_front(qp, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR, &why);
}
