/* SPDX-License-Identifier: BSD-2-Clause */
/* SIG_ERR completions: decodes the CQE and records the error in its key. See verbs/queue/cqe.h. */
#include "verbs/queue/cqe.h"

#include <string.h>

#include "core/settings.h"
#include "explain/explain.h"
#include "verbs/memory/signature.h"

enum { MKEY_TAG_BITS = 8 };

/* In a SIG_ERR CQE, mlx5-formats 3.5. */
enum {
	CQE_EXPECTED = 16,
	CQE_ACTUAL = 20,
	CQE_EXPECTED_REF_TAG = 24,
	CQE_ACTUAL_REF_TAG = 28,
	CQE_SYNDROME = 32,
	CQE_TYPE = 34,
	CQE_DOMAIN = 35,
	CQE_MKEY = 36,
	CQE_OFFSET = 40,

	LOW_BITS = 7, /* width mask of type and domain */
};

static uint32_t cqe_be32(const struct mlx5_cqe64 *cqe, size_t offset)
{
	__be32 value;

	memcpy(&value, (const char *)cqe + offset, sizeof(value));
	return be32toh(value);
}

static struct key_error cqe_key_error(const struct mlx5_cqe64 *cqe)
{
	const uint8_t *bytes = (const uint8_t *)cqe;

	return (struct key_error){
		.syndrome = (uint16_t)(bytes[CQE_SYNDROME] << 8 | bytes[CQE_SYNDROME + 1]),
		.type = bytes[CQE_TYPE] & LOW_BITS,
		.domain = bytes[CQE_DOMAIN] & LOW_BITS,
		.expected = (uint64_t)cqe_be32(cqe, CQE_EXPECTED) << 32 | cqe_be32(cqe, CQE_EXPECTED_REF_TAG),
		.actual = (uint64_t)cqe_be32(cqe, CQE_ACTUAL) << 32 | cqe_be32(cqe, CQE_ACTUAL_REF_TAG),
		.offset = (uint64_t)cqe_be32(cqe, CQE_OFFSET) << 32 | cqe_be32(cqe, CQE_OFFSET + 4),
	};
}

int cqe_note_signature_error(struct user_cq *cq, const struct mlx5_cqe64 *cqe)
{
	struct hca *hca = hca_of_context(cq->base.context);
	uint32_t index = cqe_be32(cqe, CQE_MKEY) >> MKEY_TAG_BITS;
	struct key_error error = cqe_key_error(cqe);

	/* In profile man only a program that owns the ring sees this CQE; mlx5dv_mkey_check(3) queries the device. */
	if (hca_settings(hca)->profile == PROFILE_MAN ||
	    signature_record_error(to_user_context(cq->base.context), index, &error))
		return CQE_ABSORBED;
	EXPLAIN(hca, (&(const struct explain_subject){.call = "ibv_poll_cq", .qpn = cqe_qpn(cqe)}),
		RULE_SIGNATURE_ERROR_OF_NO_KEY, index);
	return CQ_POLL_ERROR;
}
