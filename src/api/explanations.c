/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements the explanations of softhca.h. */
#include "softhca.h"

#include <string.h>

#include "explain/explain.h"
#include "explain/names.h"
#include "explain/rules.h"
#include "verbs/object/objects.h"

_Static_assert(SOFTHCA_FIGURES == EXPLAIN_ARGS, "a program sees all figures");

static void explanation_publish(const struct hca *hca, const struct explain_record *record,
				struct softhca_explanation *out)
{
	const struct explain_subject *subject = &record->subject;
	const struct rule_text *rule = rule_text(record->rule);

	*out = (struct softhca_explanation){
		.serial = record->serial,
		.time_ns = record->time_ns,
		.rule = record->rule,
		.qp_num = subject->qpn,
		.name = rule->name,
		.source = rule->source,
		.advice = rule->advice,
		.device = hca_name(hca),
		.call = subject->call,
		.error = subject->error,
		.status = syndrome_status(subject->syndrome),
		.wr_id = subject->wr_id,
		.opcode = subject->opcode,
		.receive = subject->receive,
		.qp_state = subject->qp_state,
		.request = subject->request,
		.figures = rule_figures(record->rule),
	};
	/* For a rule without figures the arguments are undefined. */
	memcpy(out->figure, record->args, out->figures * sizeof(out->figure[0]));
}

static void explanation_recover(const struct softhca_explanation *explanation, struct explain_record *record)
{
	*record = (struct explain_record){
		.rule = explanation->rule,
		.subject = {.call = explanation->call,
			    .qpn = explanation->qp_num,
			    .receive = explanation->receive,
			    .wr_id = explanation->wr_id,
			    .opcode = (uint8_t)explanation->opcode,
			    .request = explanation->request,
			    .syndrome = syndrome_of_status(explanation->status),
			    .error = explanation->error},
	};
	memcpy(record->args, explanation->figure, sizeof(record->args));
}

static size_t explanation_common_bytes(size_t structure_size)
{
	return structure_size < sizeof(struct softhca_explanation) ? structure_size
								   : sizeof(struct softhca_explanation);
}

size_t softhca_read_explanations(struct ibv_context *context, uint32_t qp_num, struct softhca_explanation *out,
				 size_t max, size_t structure_size)
{
	struct hca *hca = hca_of_context(context);
	struct explain_record record = {.serial = 0};
	struct softhca_explanation whole;
	uint8_t *to = (uint8_t *)out;
	size_t count;

	for (count = 0; count < max && explain_previous(hca, qp_num, record.serial, &record); count++) {
		explanation_publish(hca, &record, &whole);
		memset(to, 0, structure_size);
		memcpy(to, &whole, explanation_common_bytes(structure_size));
		to += structure_size;
	}
	return count;
}

size_t softhca_render_explanation(const struct softhca_explanation *explanation, size_t structure_size, char *buffer,
				  size_t size)
{
	struct softhca_explanation whole = {.serial = 0};
	struct explain_record record;

	memcpy(&whole, explanation, explanation_common_bytes(structure_size));
	explanation_recover(&whole, &record);
	return explain_render(whole.device ? whole.device : "", &record, buffer, size);
}
