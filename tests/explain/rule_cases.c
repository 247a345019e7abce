/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared functions of the cases, see rule_cases.h. */
#include "rule_cases.h"

#include <stdio.h>

/* ---- explanations ----------------------------------------------------------------------------------------------- */

static const char *source_of(uint32_t rule, const char **advice)
{
	switch (rule) {
#define RULE(number, name, text, source, advice_text)                                                                  \
	case number:                                                                                                   \
		*advice = advice_text;                                                                                 \
		return source;
#include "explain/rules.def"
#undef RULE
	}
	fail_at(HERE, "rule %u does not exist", rule);
}

static const char *name_of(uint32_t rule)
{
	switch (rule) {
#define RULE(number, name, text, source, advice)                                                                       \
	case number:                                                                                                   \
		return #name;
#include "explain/rules.def"
#undef RULE
	}
	return "?";
}

static void compare(struct place place, const struct softhca_explanation *explanation, uint32_t rule, const char *line)
{
	const char *advice, *source = source_of(rule, &advice);
	char expected[2048], text[2048];
	size_t length;

	if (explanation->rule != rule) {
		softhca_explanation_text(explanation, text, sizeof(text));
		fail_at(place, "rule %u, not %u: %s", explanation->rule, rule, text);
	}
	if (strcmp(explanation->name, name_of(rule)) || strcmp(explanation->source, source) ||
	    strcmp(explanation->advice, advice))
		fail_at(place, "rule %u: name, source or advice are %s; %s; %s", rule, explanation->name,
			explanation->source, explanation->advice);
	snprintf(expected, sizeof(expected), "%s%s. [%u %s; %s] %s", ibv_get_device_name(client.context->device), line,
		 rule, name_of(rule), source, advice);
	length = softhca_explanation_text(explanation, text, sizeof(text));
	if (length != strlen(text) || strcmp(text, expected)) {
		print_error("    %s\n  is not\n    %s\n", text, expected);
		fail_at(place, "rule %u: the line is another", rule);
	}
	rule_was_expected(rule);
}

void expect_explanation_(struct place place, const struct softhca_explanation *explanation, uint32_t rule,
			 const char *format, ...)
{
	char line[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	compare(place, explanation, rule, line);
}

void expect_refusal_(struct place place, uint32_t rule, const char *format, ...)
{
	struct softhca_explanation newest;
	char line[1024] = " ";
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line + 1, sizeof(line) - 1, format, arguments);
	va_end(arguments);
	if (softhca_explanations(client.context, 0, &newest, 1) != 1)
		fail_at(place, "there is no explanation");
	if (newest.status || newest.receive)
		fail_at(place, "the explanation is about a completion");
	compare(place, &newest, rule, line);
}

void expect_about_qp_(struct place place, uint32_t rule, uint32_t qp_num, const char *format, ...)
{
	struct softhca_explanation newest;
	char line[1024];
	va_list arguments;
	int length = snprintf(line, sizeof(line), " qp 0x%x", qp_num);

	va_start(arguments, format);
	vsnprintf(line + length, sizeof(line) - (size_t)length, format, arguments);
	va_end(arguments);
	if (softhca_explanations(client.context, qp_num, &newest, 1) != 1)
		fail_at(place, "there is no explanation about QP 0x%x", qp_num);
	compare(place, &newest, rule, line);
}

/* Finds the newest explanation about @qp_num that is of @rule. */
static bool find(uint32_t qp_num, uint32_t rule, struct softhca_explanation *out)
{
	enum { SOME = 512 };
	static struct softhca_explanation all[SOME];
	size_t count = softhca_explanations(client.context, qp_num, all, SOME);

	for (size_t i = 0; i < count; i++) {
		if (all[i].rule != rule)
			continue;
		*out = all[i];
		return true;
	}
	return false;
}

uint64_t serial_of(uint32_t qp_num, uint32_t rule)
{
	struct softhca_explanation found;

	if (!find(qp_num, rule, &found))
		fail_at(HERE, "no explanation of rule %u about QP 0x%x", rule, qp_num);
	return found.serial;
}

void expect_failure_(struct place place, struct endpoint *endpoint, uint64_t wr_id, enum ibv_wc_status status,
		     const char *status_name, uint32_t rule, const char *opcode, const char *format, ...)
{
	struct ibv_wc wc = expect_status_(place, endpoint, wr_id, status);
	struct softhca_explanation found;
	char line[1024];
	va_list arguments;
	int length;

	if (wc.vendor_err != rule)
		fail_at(place, "vendor_err is %u, not %u", wc.vendor_err, rule);
	if (!find(wc.qp_num, rule, &found))
		fail_at(place, "no explanation of rule %u about QP 0x%x", rule, wc.qp_num);
	if (found.status != status || found.receive != !opcode || (opcode && found.wr_id != wr_id))
		fail_at(place, "the explanation is about %s wr_id %#lx with status %u",
			found.receive ? "receive" : "send", found.wr_id, found.status);
	if (opcode)
		length = snprintf(line, sizeof(line), " qp 0x%x %s wr_id %" PRIu64 " → %s: ", wc.qp_num, opcode, wr_id,
				  status_name);
	else
		length = snprintf(line, sizeof(line), " qp 0x%x receive → %s: ", wc.qp_num, status_name);
	va_start(arguments, format);
	vsnprintf(line + length, sizeof(line) - (size_t)length, format, arguments);
	va_end(arguments);
	compare(place, &found, rule, line);
}

void expect_misuse_(struct place place, uint32_t rule, const char *format, ...)
{
	struct softhca_explanation found;
	char line[1024] = " ";
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line + 1, sizeof(line) - 1, format, arguments);
	va_end(arguments);
	if (!find(0, rule, &found))
		fail_at(place, "no warning of rule %u", rule);
	if (found.status || found.error)
		fail_at(place, "the warning is about a failure");
	compare(place, &found, rule, line);
}

void expect_no_misuse_(struct place place, uint32_t rule)
{
	struct softhca_explanation found;
	char text[1024];

	if (!find(0, rule, &found))
		return;
	softhca_explanation_text(&found, text, sizeof(text));
	fail_at(place, "there is a warning: %s", text);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

struct ibv_send_wr request(enum ibv_wr_opcode opcode, uint32_t length)
{
	static struct ibv_sge sge;

	sge = side_sge(&client, 0, length);
	return send_wr(WR_ID, opcode, &sge);
}

void write_to(uint32_t rkey, uint64_t address)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, BYTES);

	wr.wr.rdma.rkey = rkey;
	wr.wr.rdma.remote_addr = address;
	post_send(&pair.client, &wr);
}

void lend(struct ibv_mw *mw, struct ibv_mr *mr, uint64_t length, unsigned int access)
{
	struct ibv_send_wr wr = {
		.wr_id = WR_ID,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.mw = mw,
			    .rkey = ibv_inc_rkey(mw->rkey),
			    .bind_info = {.mr = mr,
					  .addr = side_address(&server, 0),
					  .length = length,
					  .mw_access_flags = access}},
	};

	post_send(&pair.server, &wr);
	expect_completion(&pair.server, WR_ID, IBV_WC_BIND_MW);
	mw->rkey = wr.bind_mw.rkey;
}

void side_accept(struct side *side)
{
	memcpy(side->expected, side->memory, side->bytes);
}

/* ---- rings ------------------------------------------------------------------------------------------------------ */

struct raw raw_begin(struct endpoint *endpoint)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};
	struct raw raw = {.endpoint = endpoint};
	struct mlx5dv_qp out = {0};
	struct mlx5dv_obj object = {.qp = {.in = endpoint->qp, .out = &out}};

	expect_error(ibv_modify_qp(endpoint->qp, &attr, IBV_QP_STATE), 0);
	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), 0);
	raw.doorbell = &out.dbrec[MLX5_SND_DBR];
	raw.blocks = out.sq.wqe_cnt;
	raw.wqe = (uint8_t *)out.sq.buf + be32toh(*raw.doorbell) % raw.blocks * 64;
	return raw;
}

void raw_run(const struct raw *raw)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

	expect_error(ibv_modify_qp(raw->endpoint->qp, &attr, IBV_QP_STATE), 0);
}

void raw_put8(const struct raw *raw, uint32_t offset, uint8_t value)
{
	raw->wqe[offset] = value;
}

void raw_put16(const struct raw *raw, uint32_t offset, uint16_t value)
{
	__be16 wire = htobe16(value);

	memcpy(raw->wqe + offset, &wire, sizeof(wire));
}

void raw_put32(const struct raw *raw, uint32_t offset, uint32_t value)
{
	__be32 wire = htobe32(value);

	memcpy(raw->wqe + offset, &wire, sizeof(wire));
}

void raw_put64(const struct raw *raw, uint32_t offset, uint64_t value)
{
	__be64 wire = htobe64(value);

	memcpy(raw->wqe + offset, &wire, sizeof(wire));
}

uint32_t raw_get32(const struct raw *raw, uint32_t offset)
{
	__be32 wire;

	memcpy(&wire, raw->wqe + offset, sizeof(wire));
	return be32toh(wire);
}
