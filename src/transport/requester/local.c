/* SPDX-License-Identifier: BSD-2-Clause */
/* Local operations, which send no packets and are not repeated. */
#include <errno.h>

#include "core/epoch.h"
#include "core/thread_memory.h"
#include "mkey/umr.h"
#include "transport/qp/record.h"
#include "transport/requester/mmo.h"
#include "transport/requester/requester.h"
#include "transport/requester/wqe_parse.h"

/* As requester_push(), for an operation without packets. */
static struct inflight *push_local(struct requester *requester, const struct wqe *wqe)
{
	struct inflight *entry = requester_push(requester, wqe);

	requester->send_entry = requester->last;
	return entry;
}

/* IBTA 10.6.5: an invalidation completes after the last use of the revoked key, such as a READ being answered. */
static void let_transfers_end(struct hca_qp *qp, uint64_t stamp)
{
	if (epoch_passed(stamp))
		return;
	qp->requester.delivering = true;
	queue_unlock(&qp->lock);
	epoch_wait(stamp);
	queue_lock(&qp->lock);
	qp->requester.delivering = false;
}

/* Completes the executed @entry. The lock may have been released meanwhile. */
static enum progress end_local(struct hca_qp *qp, struct inflight *entry)
{
	/* A reset removes the entry. */
	if (qp->requester.state == REQUESTER_IDLE)
		return PROGRESS_NONE;
	entry->done = true;
	if (timeline_is_on())
		record_local(qp, entry->index, entry->opcode);
	requester_complete_front(qp);
	return PROGRESS_MADE;
}

/* Copies without the lock. A thread that flushes meanwhile leaves the rest to this one. */
static void copy_unlocked(struct hca_qp *qp, struct stream *sink, struct stream *source)
{
	qp->requester.delivering = true;
	queue_unlock(&qp->lock);
	stream_copy(sink, source, source->length);
	queue_lock(&qp->lock);
	qp->requester.delivering = false;
}

static enum progress start_copy(struct hca_qp *qp, const struct wqe *wqe)
{
	THREAD_VARIABLE(struct stream, source);
	THREAD_VARIABLE(struct stream, sink);
	struct walk_access access = qp->send_access;
	struct inflight *entry;
	struct refusal why;
	int syndrome;

	/* Separate from READ responses, which may arrive meanwhile under the lock. */
	access.progress = &qp->requester.copied;
	syndrome = mmo_prepare(wqe, &access, sink, source, &why);
	if (syndrome)
		return requester_fail_start(qp, wqe, (uint8_t)syndrome, &why);
	entry = push_local(&qp->requester, wqe);
	entry->bytes = (uint32_t)source->length;
	copy_unlocked(qp, sink, source);
	return end_local(qp, entry);
}

/* mlx5-formats 1.4: a DUMP discards its segments, so only the right to read is checked. */
static enum progress start_dump(struct hca_qp *qp, const struct wqe *wqe)
{
	THREAD_VARIABLE(struct stream, source);
	struct refusal why;
	int syndrome = wqe_gather_segments(wqe, &qp->send_access, source, &why);

	if (syndrome)
		return requester_fail_start(qp, wqe, (uint8_t)syndrome, &why);
	return end_local(qp, push_local(&qp->requester, wqe));
}

/* Changes keys. Refuses a class that no function executes, which must not succeed. */
static int change_keys(const struct hca_qp *qp, const struct wqe *wqe, uint64_t *revoked, struct refusal *why)
{
	switch (wqe_opcodes[wqe->opcode].class) {
	case WQE_CLASS_UMR:
		return umr_execute(&qp->send_access, wqe->bytes, wqe->size, revoked, why);
	case WQE_CLASS_SET_PSV:
		return set_psv_execute(&qp->send_access, wqe->bytes, wqe->size, why);
	case WQE_CLASS_NOP:
		return 0;
	default:
		return REFUSAL(why, EINVAL, RULE_WQE_OPCODE_UNSUPPORTED, wqe->opcode, wqe->index);
	}
}

static enum progress start_key_change(struct hca_qp *qp, const struct wqe *wqe)
{
	struct inflight *entry;
	uint64_t revoked = 0;
	struct refusal why;

	if (change_keys(qp, wqe, &revoked, &why))
		return requester_fail_start(qp, wqe, MLX5_CQE_SYNDROME_MW_BIND_ERR, &why);
	entry = push_local(&qp->requester, wqe);
	if (revoked)
		let_transfers_end(qp, revoked);
	return end_local(qp, entry);
}

enum progress requester_start_local(struct hca_qp *qp, const struct wqe *wqe)
{
	switch (wqe_opcodes[wqe->opcode].class) {
	case WQE_CLASS_MMO:
		return start_copy(qp, wqe);
	case WQE_CLASS_DUMP:
		return start_dump(qp, wqe);
	default:
		return start_key_change(qp, wqe);
	}
}
