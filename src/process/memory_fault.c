/* SPDX-License-Identifier: BSD-2-Clause */
/* See memory_fault.h. */
#include "process/memory_fault.h"

#include "core/epoch.h"
#include "core/fault_signal.h"
#include "hca/hca.h"
#include "explain/explain.h"
#include "format/wqe.h"
#include "mkey/key.h"
#include "transport/qp/qp.h"
#include "transport/requester/requester.h"
#include "transport/requester/wqe_parse.h"

/* Stack needed to make and write an explanation, with a reserve. */
#define STACK_BYTES (24u << 10)

/* Returns the first key over plain memory that contains @address, and its device, or NULL. Inside an epoch section. */
static const struct mapping *key_at_address(uintptr_t address, struct hca **hca)
{
	for (size_t i = 0; i < the_registry.count; i++) {
		const struct mkey *key;

		*hca = &the_registry.devices[i];
		for (uint32_t index = 0; (key = id_table_next(&(*hca)->keys, &index)); index++) {
			const struct mapping *map = mkey_mapping(key);

			if (!map->free && map->base && address - (uintptr_t)map->base < map->length)
				return map;
		}
	}
	return NULL;
}

/* Describes the request that @qp executes: the one being sent, the next, or the oldest if its response has arrived. */
static void fault_describe_request(const struct hca_qp *qp, struct explain_subject *subject)
{
	struct requester *requester = (struct requester *)&qp->requester;
	uint16_t index = requester->next;
	uint8_t fm_ce_se;

	if (requester->send_entry != requester->last)
		index = inflight_at(requester, requester->send_entry)->index;
	else if (!wqe_posted(requester, index) && requester->first != requester->last)
		index = inflight_at(requester, requester->first)->index;
	else if (!wqe_posted(requester, index))
		return;
	wqe_skim(requester, index, &subject->opcode, &fm_ce_se);
	subject->call = wqe_opcodes[subject->opcode].name;
	subject->wr_id = qp->wr_id_of ? qp->wr_id_of(qp->cookie, index) : 0;
}

static void memory_fault_explain_one(int signal, uintptr_t address, uint32_t at)
{
	struct explain_subject subject = {.qpn = at & ~EPOCH_RECEIVES, .receive = at & EPOCH_RECEIVES};
	const struct hca_qp *qp = qp_find(subject.qpn);
	struct hca *hca;
	const struct mapping *map = key_at_address(address, &hca);

	if (!map)
		return;
	if (qp)
		subject.qp_state = (uint8_t)qp->state;
	if (subject.receive)
		subject.call = "receive";
	else if (qp)
		fault_describe_request(qp, &subject);
	EXPLAIN(hca, &subject, RULE_MEMORY_FAULT, map->number, map->kind, address, address - (uintptr_t)map->base,
		(uint64_t)signal);
}

/*
 * Explains a fault inside an epoch section: the device faulted at registered memory, in a copy, which holds no lock
 * that an explanation takes. Never repairs a fault.
 */
static bool memory_fault_watch(int signal, const siginfo_t *info, const void *context)
{
	static uint32_t busy;
	const struct epoch_slot *slot = epoch_this_thread;

	if (!slot || !slot->depth || !fault_signal_has_stack(context, STACK_BYTES) ||
	    __atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		return false;
	memory_fault_explain_one(signal, (uintptr_t)info->si_addr, slot->qpn);
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	return false;
}

void memory_fault_explain(void)
{
	fault_signal_watch(memory_fault_watch);
}
