/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of fields (format/fields.def) against the executor's own decoding: the structures of mlx5dv.h, and the
 * parsers of WQEs, BSFs and packets. Tested with random bytes, to reveal misplaced bits.
 */
#include "test_case.h"

#include "block/dek.h"
#include "../support/device_fixture.h"
#include "format/fields.h"
#include "format/qp_types.h"
#include "mkey/bsf.h"
#include "mkey/commands.h"
#include "mkey/psv.h"
#include "mkey/umr.h"
#include "mkey/signature_report.h"
#include "queue/cq_write.h"
#include "transport/requester/wqe_parse.h"
#include "wire/roce.h"
#include "test_random.h"

enum { ROUNDS = 2000 };

static void randomize(uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)(random64() >> 32);
}

static const struct field *find(enum part part, const char *name)
{
	for (const struct field *field = fields; field->name; field++)
		if (field->part == part && !strcmp(field->name, name))
			return field;
	fail_msg("%s has no field %s", part_infos[part].name, name);
	return NULL;
}

static uint64_t get(const uint8_t *bytes, enum part part, const char *name)
{
	return part_field_get(bytes, find(part, name));
}

static void put(uint8_t *bytes, enum part part, const char *name, uint64_t number)
{
	part_field_put(bytes, find(part, name), number);
}

/* ---- the table itself ------------------------------------------------------------------------------------------- */

TEST(test_fields_lie_apart)
{
	for (unsigned int part = 0; part < PART_COUNT; part++) {
		uint8_t taken[PART_MOST_BYTES * 8] = {0};
		unsigned int count = 0;

		assert_true(part_infos[part].bytes <= PART_MOST_BYTES);
		for (const struct field *field = fields; field->name; field++) {
			unsigned int from = field->byte * 8u + field->bit,
				     bits = field->width ? field->width : field->length * 8u;

			if (field->part != part)
				continue;
			assert_true(++count <= PART_MOST_FIELDS);
			assert_true(bits && from + bits <= part_infos[part].bytes * 8u);
			/* Names that the text output generates itself. */
			assert_string_not_equal(field->name, "reserved");
			if (part_infos[part].tail)
				assert_string_not_equal(field->name, "data");
			assert_ptr_equal(find(part, field->name), field);
			for (unsigned int i = 0; i < bits; i++)
				assert_int_equal(taken[from + i]++, 0);
		}
	}
}

TEST(test_parts_have_names_of_their_own)
{
	for (unsigned int one = 0; one < PART_COUNT; one++)
		for (unsigned int other = 0; other < one; other++)
			assert_string_not_equal(part_infos[one].name, part_infos[other].name);
}

TEST(test_names_of_values_are_distinguished)
{
	uint64_t number;

	for (const struct field_value *value = field_values; value->name; value++) {
		assert_true(field_value_number(value->form, value->name, &number));
		assert_int_equal(number, value->number);
		assert_null(strpbrk(value->name, " |#="));
		if (!value->mask)
			assert_string_equal(field_value_name(value->form, value->number), value->name);
	}
}

TEST(test_put_changes_its_bits_only)
{
	for (const struct field *field = fields; field->name; field++) {
		uint8_t before[PART_MOST_BYTES], after[PART_MOST_BYTES];
		uint64_t number = random64();

		if (!field->width)
			continue;
		randomize(before, sizeof(before));
		memcpy(after, before, sizeof(after));
		part_field_put(after, field, number);
		assert_int_equal(part_field_get(after, field), number & field_most(field));
		part_field_put(after, field, part_field_get(before, field));
		assert_memory_equal(after, before, sizeof(after));
	}
}

/* ---- structures ------------------------------------------------------------------------------------------------- */

/* Structures of mlx5dv.h for the parts of WQEs and CQEs. */
union structures {
	uint8_t bytes[PART_MOST_BYTES];
	struct mlx5_wqe_ctrl_seg ctrl;
	struct mlx5_wqe_raddr_seg raddr;
	struct mlx5_wqe_atomic_seg atomic;
	struct mlx5_wqe_data_seg data;
	struct mlx5_wqe_av av;
	struct mlx5_wqe_eth_seg eth;
	struct mlx5_wqe_tm_seg tm;
	struct mlx5_wqe_umr_ctrl_seg umr;
	struct mlx5_wqe_mkey_context_seg mkey;
	struct mlx5_wqe_umr_klm_seg klm;
	struct mlx5_wqe_umr_repeat_block_seg repeat;
	struct mlx5_wqe_umr_repeat_ent_seg entry;
	struct mlx5_cqe64 cqe;
	struct mlx5_err_cqe error;
};

#define SAME(PART, name, expected) assert_int_equal(get(u.bytes, PART_##PART, #name), (uint64_t)(expected))

static void compare_wqe(union structures u)
{
	SAME(CTRL, opmod, be32toh(u.ctrl.opmod_idx_opcode) >> 24);
	SAME(CTRL, wqe_index, be32toh(u.ctrl.opmod_idx_opcode) >> 8 & 0xffff);
	SAME(CTRL, opcode, be32toh(u.ctrl.opmod_idx_opcode) & 0xff);
	SAME(CTRL, qpn, be32toh(u.ctrl.qpn_ds) >> 8);
	SAME(CTRL, ds, be32toh(u.ctrl.qpn_ds) & 0x3f);
	SAME(CTRL, signature, u.ctrl.signature);
	SAME(CTRL, stream, be16toh(u.ctrl.dci_stream_channel_id));
	SAME(CTRL, fence, WQE_FENCE(u.ctrl.fm_ce_se));
	SAME(CTRL, completion, WQE_COMPLETION(u.ctrl.fm_ce_se));
	SAME(CTRL, solicited, !!(u.ctrl.fm_ce_se & MLX5_WQE_CTRL_SOLICITED));
	SAME(CTRL, imm, be32toh(u.ctrl.imm));
	SAME(RADDR, remote_address, be64toh(u.raddr.raddr));
	SAME(RADDR, rkey, be32toh(u.raddr.rkey));
	SAME(ATOMIC, swap_add, be64toh(u.atomic.swap_add));
	SAME(ATOMIC, compare, be64toh(u.atomic.compare));
	SAME(DATA, byte_count, be32toh(u.data.byte_count));
	SAME(DATA, lkey, be32toh(u.data.lkey));
	SAME(DATA, address, be64toh(u.data.addr));
	SAME(INLINE, is_inline, !!(be32toh(u.data.byte_count) & MLX5_INLINE_SEG));
	SAME(INLINE, byte_count, be32toh(u.data.byte_count) & ~MLX5_INLINE_SEG);
	SAME(ETH, cs_flags, u.eth.cs_flags);
	SAME(ETH, mss, be16toh(u.eth.mss));
	SAME(ETH, header_bytes, be16toh(u.eth.inline_hdr_sz));
	SAME(TAG_MATCHING, opcode, u.tm.opcode >> 4);
	SAME(TAG_MATCHING, flags, u.tm.flags);
	SAME(TAG_MATCHING, index, be16toh(u.tm.index));
	SAME(TAG_MATCHING, sw_cnt, be16toh(u.tm.sw_cnt));
	SAME(TAG_MATCHING, append_tag, be64toh(u.tm.append_tag));
	SAME(TAG_MATCHING, append_mask, be64toh(u.tm.append_mask));
}

static void compare_address(union structures u)
{
	SAME(ADDRESS_UD, qkey, be32toh(u.av.key.qkey.qkey));
	SAME(ADDRESS_UD, extended, !!(be32toh(u.av.dqp_dct) & MLX5_EXTENDED_UD_AV));
	SAME(ADDRESS_UD, qpn, be32toh(u.av.dqp_dct) & 0xffffff);
	SAME(ADDRESS_UD, static_rate, u.av.stat_rate_sl >> 4);
	SAME(ADDRESS_UD, service_level, u.av.stat_rate_sl & 0xf);
	SAME(ADDRESS_UD, path_bits, u.av.fl_mlid);
	SAME(ADDRESS_UD, lid_or_udp_port, be16toh(u.av.rlid));
	SAME(ADDRESS_DC, dc_key, be64toh(u.av.key.dc_key));
	SAME(ADDRESS_DC, extended, !!(be32toh(u.av.dqp_dct) & MLX5_EXTENDED_UD_AV));
	SAME(ADDRESS_DC, dctn, be32toh(u.av.dqp_dct) & 0xffffff);
	SAME(ADDRESS_DC, static_rate, u.av.stat_rate_sl >> 4);
	SAME(ADDRESS_DC, service_level, u.av.stat_rate_sl & 0xf);
	SAME(ADDRESS_DC, path_bits, u.av.fl_mlid);
	SAME(ADDRESS_DC, lid_or_udp_port, be16toh(u.av.rlid));
	/* After the first 16 bytes. */
	assert_int_equal(find(PART_ADDRESS_GRH, "mac")->byte + 16u, offsetof(struct mlx5_wqe_av, rmac));
	assert_int_equal(find(PART_ADDRESS_GRH, "gid")->byte + 16u, offsetof(struct mlx5_wqe_av, rgid));
	assert_int_equal(get(u.bytes + 16, PART_ADDRESS_GRH, "traffic_class"), u.av.tclass);
	assert_int_equal(get(u.bytes + 16, PART_ADDRESS_GRH, "hop_limit"), u.av.hop_limit);
	assert_int_equal(get(u.bytes + 16, PART_ADDRESS_GRH, "grh"), be32toh(u.av.grh_gid_fl) >> 30 & 1);
	assert_int_equal(get(u.bytes + 16, PART_ADDRESS_GRH, "sgid_index"), be32toh(u.av.grh_gid_fl) >> 20 & 0xff);
	assert_int_equal(get(u.bytes + 16, PART_ADDRESS_GRH, "flow_label"), be32toh(u.av.grh_gid_fl) & 0xfffff);
}

static void compare_umr(union structures u)
{
	uint32_t high;

	memcpy(&high, u.umr.rsvd1, sizeof(high));
	SAME(UMR, inline, !!(u.umr.flags & UMR_INLINE));
	SAME(UMR, must_be_live, !!(u.umr.flags & UMR_MUST_BE_LIVE));
	SAME(UMR, must_be_free, !!(u.umr.flags & UMR_MUST_BE_FREE));
	SAME(UMR, translation_offset_on, !!(u.umr.flags & UMR_TRANSLATION_OFFSET));
	SAME(UMR, check_qpn, !!(u.umr.flags & UMR_CHECK_QPN));
	SAME(UMR, klm_octowords, be16toh(u.umr.klm_octowords));
	SAME(UMR, bsf_octowords, be16toh(u.umr.bsf_octowords));
	SAME(UMR, mkey_mask, be64toh(u.umr.mkey_mask));
	SAME(UMR, translation_offset_high, be32toh(high));
	SAME(MKEY, free, !!(u.mkey.free & MLX5_WQE_MKEY_CONTEXT_FREE));
	SAME(MKEY, umr_en, u.mkey.access_flags >> 7);
	SAME(MKEY, atomic, !!(u.mkey.access_flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC));
	SAME(MKEY, remote_write, !!(u.mkey.access_flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE));
	SAME(MKEY, remote_read, !!(u.mkey.access_flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ));
	SAME(MKEY, local_write, !!(u.mkey.access_flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE));
	SAME(MKEY, local_read, !!(u.mkey.access_flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_READ));
	SAME(MKEY, access_mode, u.mkey.access_flags & 3);
	SAME(MKEY, qpn, be32toh(u.mkey.qpn_mkey) >> 8);
	SAME(MKEY, tag, be32toh(u.mkey.qpn_mkey) & 0xff);
	SAME(MKEY, length64, be32toh(u.mkey.flags_pd) >> 31);
	SAME(MKEY, bsf_en, be32toh(u.mkey.flags_pd) >> 30 & 1);
	SAME(MKEY, sync_umr, be32toh(u.mkey.flags_pd) >> 29 & 1);
	SAME(MKEY, sigerr_count, be32toh(u.mkey.flags_pd) >> 26 & 1);
	SAME(MKEY, en_rinval, be32toh(u.mkey.flags_pd) >> 24 & 1);
	SAME(MKEY, pd, be32toh(u.mkey.flags_pd) & 0xffffff);
	SAME(MKEY, start_address, be64toh(u.mkey.start_addr));
	SAME(MKEY, length, be64toh(u.mkey.len));
	SAME(MKEY, bsf_octowords, be32toh(u.mkey.bsf_octword_size));
	SAME(MKEY, translation_octowords, be32toh(u.mkey.translations_octword_size));
	SAME(MKEY, log_page_size, u.mkey.log_page_size & 0x1f);
	SAME(MKEY, crypto_en, be32toh(u.mkey.reserved) >> 27 & 3);
	SAME(KLM, byte_count, be32toh(u.klm.byte_count));
	SAME(KLM, mkey, be32toh(u.klm.mkey));
	SAME(KLM, address, be64toh(u.klm.address));
	SAME(REPEAT, byte_count, be32toh(u.repeat.byte_count));
	SAME(REPEAT, op, be32toh(u.repeat.op));
	SAME(REPEAT, repeat_count, be32toh(u.repeat.repeat_count));
	SAME(REPEAT, entries, be16toh(u.repeat.num_ent));
	SAME(REPEAT_ENTRY, stride, be16toh(u.entry.stride));
	SAME(REPEAT_ENTRY, byte_count, be16toh(u.entry.byte_count));
	SAME(REPEAT_ENTRY, mkey, be32toh(u.entry.memkey));
	SAME(REPEAT_ENTRY, address, be64toh(u.entry.va));
}

/* Fields of every CQE, in each of its three forms. */
#define SAME_END(PART)                                                                                                 \
	do {                                                                                                           \
		SAME(PART, qpn, be32toh(u.cqe.sop_drop_qpn) & 0xffffff);                                               \
		SAME(PART, signature, u.cqe.signature);                                                                \
		SAME(PART, opcode, mlx5dv_get_cqe_opcode(&u.cqe));                                                     \
		SAME(PART, format, u.cqe.op_own >> 2 & 3);                                                             \
		SAME(PART, solicited, !!mlx5dv_get_cqe_se(&u.cqe));                                                    \
		SAME(PART, owner, mlx5dv_get_cqe_owner(&u.cqe));                                                       \
	} while (0)

static void compare_cqe(union structures u)
{
	SAME(CQE, wqe_id, be16toh(u.cqe.wqe_id));
	SAME(CQE, path_bits, u.cqe.ml_path);
	SAME(CQE, slid, be16toh(u.cqe.slid));
	SAME(CQE, grh, be32toh(u.cqe.flags_rqpn) >> 28 & 3);
	SAME(CQE, service_level, be32toh(u.cqe.flags_rqpn) >> 24 & 0xf);
	SAME(CQE, remote_qpn, be32toh(u.cqe.flags_rqpn) & 0xffffff);
	SAME(CQE, hds_ip_ext, u.cqe.hds_ip_ext);
	SAME(CQE, l4_hdr_type, u.cqe.l4_hdr_type_etc);
	SAME(CQE, vlan, be16toh(u.cqe.vlan_info));
	SAME(CQE, user_index, be32toh(u.cqe.srqn_uidx) & 0xffffff);
	SAME(CQE, imm_or_rkey, be32toh(u.cqe.imm_inval_pkey));
	SAME(CQE, app, u.cqe.app);
	SAME(CQE, app_op, u.cqe.app_op);
	SAME(CQE, app_info, be16toh(u.cqe.app_info));
	SAME(CQE, byte_count, be32toh(u.cqe.byte_cnt));
	SAME(CQE, timestamp, be64toh(u.cqe.timestamp));
	SAME(CQE, send_opcode, be32toh(u.cqe.sop_drop_qpn) >> 24);
	SAME(CQE, wqe_counter, be16toh(u.cqe.wqe_counter));
	SAME(CQE_INLINE, user_index, be32toh(u.cqe.srqn_uidx) & 0xffffff);
	SAME(CQE_INLINE, imm_or_rkey, be32toh(u.cqe.imm_inval_pkey));
	SAME(CQE_INLINE, app, u.cqe.app);
	SAME(CQE_INLINE, app_op, u.cqe.app_op);
	SAME(CQE_INLINE, app_info, be16toh(u.cqe.app_info));
	SAME(CQE_INLINE, byte_count, be32toh(u.cqe.byte_cnt));
	SAME(CQE_INLINE, timestamp, be64toh(u.cqe.timestamp));
	SAME(CQE_INLINE, send_opcode, be32toh(u.cqe.sop_drop_qpn) >> 24);
	SAME(CQE_INLINE, wqe_counter, be16toh(u.cqe.wqe_counter));
	SAME(CQE_ERROR, user_index, be32toh(u.error.srqn) & 0xffffff);
	SAME(CQE_ERROR, vendor_syndrome, u.error.vendor_err_synd);
	SAME(CQE_ERROR, syndrome, u.error.syndrome);
	SAME(CQE_ERROR, send_opcode, be32toh(u.error.s_wqe_opcode_qpn) >> 24);
	SAME(CQE_ERROR, wqe_counter, be16toh(u.error.wqe_counter));
	SAME_END(CQE);
	SAME_END(CQE_INLINE);
	SAME_END(CQE_ERROR);
	SAME_END(CQE_SIGNATURE);
}

TEST(test_structures_of_mlx5dv)
{
	union structures u;

	for (int round = 0; round < ROUNDS; round++) {
		randomize(u.bytes, sizeof(u));
		compare_wqe(u);
		compare_address(u);
		compare_umr(u);
		compare_cqe(u);
	}
}

/* ---- the executor ----------------------------------------------------------------------------------------------- */

/* Parses a WQE of @opcode with random segments, for a QP of @type. */
static struct wqe take(int type, uint8_t opcode, uint8_t opmod, uint8_t bytes[16 * 12])
{
	struct hca_qp *qp = calloc(1, sizeof(*qp));
	struct wqe wqe = {.bytes = bytes, .size = 16 * 12, .opcode = opcode, .opmod = opmod, .data = 16};
	struct refusal why;

	assert_non_null(qp);
	randomize(bytes, wqe.size);
	qp->type = (enum ibv_qp_type)type;
	assert_int_equal(wqe_take_all_segments(qp, &wqe, &why), 0);
	free(qp);
	return wqe;
}

TEST(test_segments_of_the_executor)
{
	uint8_t bytes[16 * 12];
	struct wqe wqe;

	for (int round = 0; round < ROUNDS; round++) {
		wqe = take(IBV_QPT_XRC_SEND, MLX5_OPCODE_RDMA_WRITE, 0, bytes);
		assert_int_equal(get(bytes + 16, PART_XRC, "srqn"), wqe.xrc_srqn);
		assert_int_equal(get(bytes + 32, PART_RADDR, "remote_address"), wqe.remote_address);
		assert_int_equal(get(bytes + 32, PART_RADDR, "rkey"), wqe.rkey);
		wqe = take(IBV_QPT_RC, MLX5_OPCODE_ATOMIC_CS, 0, bytes);
		assert_int_equal(get(bytes + 32, PART_ATOMIC, "swap_add"), wqe.swap_add);
		assert_int_equal(get(bytes + 32, PART_ATOMIC, "compare"), wqe.compare);
		wqe = take(IBV_QPT_RC, MLX5_OPCODE_ATOMIC_MASKED_CS, 0, bytes);
		assert_int_equal(wqe.data, 32u + part_infos[PART_MASKED_ATOMIC].bytes);
		assert_int_equal(get(bytes + 32, PART_MASKED_ATOMIC, "swap_add"), wqe.swap_add);
		assert_int_equal(get(bytes + 32, PART_MASKED_ATOMIC, "compare"), wqe.compare);
		assert_int_equal(get(bytes + 32, PART_MASKED_ATOMIC, "swap_mask"), wqe.swap_mask);
		assert_int_equal(get(bytes + 32, PART_MASKED_ATOMIC, "compare_mask"), wqe.compare_mask);
		wqe = take(IBV_QPT_RC, MLX5_OPCODE_ATOMIC_MASKED_CS, 8, bytes);
		assert_int_equal(wqe.data, 32u + part_infos[PART_MASKED_SWAP_4].bytes);
		assert_int_equal(get(bytes + 32, PART_MASKED_SWAP_4, "swap"), wqe.swap_add);
		assert_int_equal(get(bytes + 32, PART_MASKED_SWAP_4, "compare"), wqe.compare);
		assert_int_equal(get(bytes + 32, PART_MASKED_SWAP_4, "swap_mask"), wqe.swap_mask);
		assert_int_equal(get(bytes + 32, PART_MASKED_SWAP_4, "compare_mask"), wqe.compare_mask);
		wqe = take(IBV_QPT_RC, MLX5_OPCODE_ATOMIC_MASKED_FA, 8, bytes);
		assert_int_equal(wqe.data, 32u + part_infos[PART_MASKED_ADD_4].bytes);
		assert_int_equal(get(bytes + 32, PART_MASKED_ADD_4, "add"), wqe.swap_add);
		assert_int_equal(get(bytes + 32, PART_MASKED_ADD_4, "boundary"), wqe.swap_mask);
		wqe = take(IBV_QPT_RC, MLX5_OPCODE_ATOMIC_MASKED_FA, 9, bytes);
		assert_int_equal(wqe.data, 32u + part_infos[PART_MASKED_ADD_8].bytes);
		assert_int_equal(get(bytes + 32, PART_MASKED_ADD_8, "add"), wqe.swap_add);
		assert_int_equal(get(bytes + 32, PART_MASKED_ADD_8, "boundary"), wqe.swap_mask);
	}
}

/* CQEs that the device writes: all fields of random completions. */
TEST(test_cqes_of_the_executor)
{
	const struct hca_cq cq = {.notes = 0};

	for (int round = 0; round < ROUNDS; round++) {
		const struct signature_error error = {
			.expected = random64(),
			.found = random64(),
			.offset = random64(),
			.key = (uint32_t)random64(),
			.syndrome = (uint16_t)random64(),
			.memory = random64() & 1,
		};
		struct completion completion = {
			.opcode = MLX5_CQE_SIG_ERR,
			.signature = &error,
			.send_opcode = (uint8_t)random64(),
			.syndrome = (uint8_t)random64(),
			.vendor_syndrome = (uint8_t)random64(),
			.wqe_counter = (uint16_t)random64(),
			.user_index = random64() & 0xffffff,
			.qpn = random64() & 0xffffff,
			.remote_qpn = random64() & 0xffffff,
			.byte_count = (uint32_t)random64(),
			.immediate = (uint32_t)random64(),
			.sl = random64() & 0xf,
			.grh = random64() & 1,
		};
		union structures u = {.bytes = {0}};

		cq_fill_error(&cq, &u.cqe, &completion);
		SAME(CQE_SIGNATURE, expected_transient, error.expected >> 32);
		SAME(CQE_SIGNATURE, actual_transient, error.found >> 32);
		SAME(CQE_SIGNATURE, expected_ref_tag, (uint32_t)error.expected);
		SAME(CQE_SIGNATURE, actual_ref_tag, (uint32_t)error.found);
		SAME(CQE_SIGNATURE, syndrome, error.syndrome);
		SAME(CQE_SIGNATURE, domain, error.memory);
		SAME(CQE_SIGNATURE, mkey, error.key);
		SAME(CQE_SIGNATURE, offset, error.offset);
		SAME(CQE_SIGNATURE, qpn, completion.qpn);
		memset(&u, 0, sizeof(u));
		completion.opcode = MLX5_CQE_REQ_ERR;
		cq_fill(&u.cqe, &completion);
		SAME(CQE, remote_qpn, completion.remote_qpn);
		SAME(CQE, service_level, completion.sl);
		SAME(CQE, grh, completion.grh);
		SAME(CQE, imm_or_rkey, be32toh(completion.immediate));
		SAME(CQE, byte_count, completion.byte_count);
		cq_fill_error(&cq, &u.cqe, &completion);
		SAME(CQE_ERROR, user_index, completion.user_index);
		SAME(CQE_ERROR, vendor_syndrome, completion.vendor_syndrome);
		SAME(CQE_ERROR, syndrome, completion.syndrome);
		SAME(CQE_ERROR, send_opcode, completion.send_opcode);
		SAME(CQE_ERROR, qpn, completion.qpn);
		SAME(CQE_ERROR, wqe_counter, completion.wqe_counter);
	}
}

#define SAME_HEADER(PART, name, expected) assert_int_equal(get(at, PART_##PART, #name), (uint64_t)(expected))

static void compare_packet(const uint8_t *bytes, const struct packet *packet, uint32_t headers)
{
	const uint8_t *at = bytes;

	SAME_HEADER(BTH, solicited, packet->solicited);
	SAME_HEADER(BTH, acknowledge, packet->acknowledge);
	SAME_HEADER(BTH, pad, roce_pad_of(bytes));
	SAME_HEADER(BTH, destination_qpn, packet->destination_qpn);
	SAME_HEADER(BTH, psn, packet->psn);
	at += part_infos[PART_BTH].bytes;
	if (headers & HEADER_DETH) {
		SAME_HEADER(DETH, qkey, packet->qkey);
		SAME_HEADER(DETH, source_qpn, packet->source_qpn);
		at += part_infos[PART_DETH].bytes;
	}
	if (headers & HEADER_XRCETH) {
		SAME_HEADER(XRCETH, srqn, packet->xrc_srqn);
		at += part_infos[PART_XRCETH].bytes;
	}
	if (headers & HEADER_DCETH) {
		SAME_HEADER(DCETH, dc_key, packet->dc_key);
		SAME_HEADER(DCETH, connection, packet->dc_connection);
		SAME_HEADER(DCETH, first_psn, packet->dc_first_psn);
		SAME_HEADER(DCETH, source_qpn, packet->source_qpn);
		at += part_infos[PART_DCETH].bytes;
	}
	if (headers & HEADER_RETH) {
		SAME_HEADER(RETH, remote_address, packet->remote_address);
		SAME_HEADER(RETH, rkey, packet->rkey);
		SAME_HEADER(RETH, dma_length, packet->dma_length);
		at += part_infos[PART_RETH].bytes;
	}
	if (headers & HEADER_ATOMICETH) {
		SAME_HEADER(ATOMICETH, remote_address, packet->remote_address);
		SAME_HEADER(ATOMICETH, rkey, packet->rkey);
		SAME_HEADER(ATOMICETH, swap_add, packet->swap_add);
		SAME_HEADER(ATOMICETH, compare, packet->compare);
		at += part_infos[PART_ATOMICETH].bytes;
	}
	if (headers & HEADER_AETH) {
		SAME_HEADER(AETH, syndrome, packet->syndrome);
		SAME_HEADER(AETH, msn, packet->msn);
		at += part_infos[PART_AETH].bytes;
	}
	if (headers & HEADER_ATOMICACKETH) {
		SAME_HEADER(ATOMICACKETH, original, packet->original);
		at += part_infos[PART_ATOMICACKETH].bytes;
	}
	if (headers & HEADER_IMMDT) {
		SAME_HEADER(IMMDT, immediate, be32toh(packet->immediate));
		at += part_infos[PART_IMMDT].bytes;
	}
	if (headers & HEADER_IETH) {
		SAME_HEADER(IETH, rkey, packet->invalidate_rkey);
		at += part_infos[PART_IETH].bytes;
	}
	assert_int_equal(at - bytes, ROCE_BTH_BYTES + packet_opcodes[bytes[0]].header_bytes);
}

TEST(test_headers_of_packets)
{
	uint32_t parsed = 0;

	for (uint32_t i = 0; i < 256 * 20; i++) {
		uint8_t bytes[ROCE_MOST_HEADERS];
		struct packet packet = {0};
		struct refusal why;

		randomize(bytes, sizeof(bytes));
		bytes[0] = (uint8_t)i;
		bytes[1] &= 0xf0;
		bytes[2] = bytes[3] = 0xff;
		if (roce_headers_parse(&packet, bytes, sizeof(bytes), &why) < 0)
			continue;
		compare_packet(bytes, &packet, packet_opcodes[i & 0xff].headers);
		parsed++;
	}
	assert_true(parsed > 1000);
}

/* ---- BSFs and PSVs, by their names ------------------------------------------------------------------------------ */

static void parse(const uint8_t bsf[64], struct block_setup *setup)
{
	const struct walk_access access = {.hca = device.hca, .pd = hca_pd_number(device.pd)};
	struct refusal why = {0};

	*setup = (struct block_setup){0};
	if (bsf_parse(&access, 0x100, bsf, 4, setup, &why))
		fail_msg("refused by rule %d", (int)why.rule);
}

TEST_WITH(test_signature_bsf, device_group_open, device_group_close)
{
	uint8_t bsf[64] = {0}, *wire = bsf + 32, *memory = bsf + 48;
	struct block_setup setup;
	uint32_t psv[2];

	assert_int_equal(hca_psv_create(device.pd, &psv[0]), 0);
	assert_int_equal(hca_psv_create(device.pd, &psv[1]), 0);
	put(bsf, PART_BSF, "size_code", 2);
	put(bsf, PART_BSF, "check_mask", 0xff);
	put(bsf, PART_BSF, "memory_block", 2);
	put(bsf, PART_BSF, "wire_block_or_copy_mask", 3);
	put(bsf, PART_BSF, "raw_data_size", 0x12345);
	put(bsf, PART_BSF, "wire_format", 0x43);
	put(bsf, PART_BSF, "wire_psv", psv[1]);
	put(bsf, PART_BSF, "memory_psv", psv[0]);
	put(memory, PART_BSF_T10, "valid", 1);
	put(memory, PART_BSF_T10, "app_tag", 0x1234);
	put(memory, PART_BSF_T10, "ref_tag", 0x56789abc);
	put(memory, PART_BSF_T10, "guard", 2);
	put(memory, PART_BSF_T10, "seed_ones", 1);
	put(memory, PART_BSF_T10, "increment_ref_tag", 1);
	put(memory, PART_BSF_T10, "escape_app", 1);
	parse(bsf, &setup);
	assert_int_equal(setup.signature.limit, 0x12345);
	assert_int_equal(setup.signature.wire.guard, GUARD_CRC32C);
	assert_int_equal(setup.signature.wire.block, 4096);
	assert_int_equal(setup.signature.wire.psv, psv[1]);
	assert_false(setup.signature.wire.ones);
	assert_int_equal(setup.signature.memory.guard, GUARD_IP_CHECKSUM);
	assert_int_equal(setup.signature.memory.block, 520);
	assert_int_equal(setup.signature.memory.psv, psv[0]);
	assert_int_equal(setup.signature.memory.app_tag, 0x1234);
	assert_int_equal(setup.signature.memory.ref_tag, 0x56789abc);
	assert_true(setup.signature.memory.ones && setup.signature.memory.increments);
	assert_true(setup.signature.memory.escape_app && !setup.signature.memory.escape_both);
	block_setup_clear(&setup);

	/* The reverse, with the other escape. */
	put(bsf, PART_BSF, "wire_format", 0);
	put(bsf, PART_BSF, "memory_format", 0x52);
	put(wire, PART_BSF_T10, "valid", 1);
	put(wire, PART_BSF_T10, "guard", 1);
	put(wire, PART_BSF_T10, "escape_app_ref", 1);
	parse(bsf, &setup);
	assert_int_equal(setup.signature.wire.guard, GUARD_T10_CRC);
	assert_true(setup.signature.wire.escape_both && !setup.signature.wire.escape_app);
	assert_int_equal(setup.signature.memory.guard, GUARD_CRC64_XP10);
	assert_true(setup.signature.memory.ones);
	block_setup_clear(&setup);

	/* Same structure: the block size field of the wire is reused for the bytes to copy. */
	put(bsf, PART_BSF, "same_structure", 1);
	put(bsf, PART_BSF, "wire_format", 0x52);
	put(bsf, PART_BSF, "wire_block_or_copy_mask", 0xff);
	parse(bsf, &setup);
	assert_true(setup.signature.same);
	assert_int_equal(setup.signature.wire.block, 520);
	block_setup_clear(&setup);
	assert_int_equal(hca_psv_destroy(device.hca, psv[0]), 0);
	assert_int_equal(hca_psv_destroy(device.hca, psv[1]), 0);
}

TEST_WITH(test_crypto_bsf, device_group_open, device_group_close)
{
	struct dek_attr attr = {.pd = hca_pd_number(device.pd), .key_bytes = 32, .key = {1}, .has_keytag = true};
	const struct field *tweak = find(PART_BSF_CRYPTO, "initial_tweak"), *tag = find(PART_BSF_CRYPTO, "key_tag");
	uint8_t bsf[64] = {0};
	struct block_setup setup;
	uint32_t dek;

	memcpy(attr.keytag, "key tag", 8);
	assert_int_equal(dek_create(device.hca, &attr, &dek), 0);
	put(bsf, PART_BSF_CRYPTO, "size_code", 2);
	put(bsf, PART_BSF_CRYPTO, "type", 1);
	put(bsf, PART_BSF_CRYPTO, "order", 1);
	put(bsf, PART_BSF_CRYPTO, "data_unit", 6);
	put(bsf, PART_BSF_CRYPTO, "dek", dek);
	assert_int_equal(tag->length, 8);
	memcpy(bsf + tag->byte, "key tag", 8);
	assert_int_equal(tweak->length, sizeof(setup.cipher.tweak));
	for (uint8_t i = 0; i < tweak->length; i++)
		bsf[tweak->byte + i] = (uint8_t)(i + 1);
	parse(bsf, &setup);
	/* Orders (four) with bit 0 set encrypt on receive. */
	assert_true(setup.cipher.enabled && !setup.cipher.encrypts_on_tx);
	assert_int_equal(setup.cipher.unit, 4048);
	for (uint8_t i = 0; i < tweak->length; i++)
		assert_int_equal(setup.cipher.tweak[i], i + 1);
	block_setup_clear(&setup);
	assert_int_equal(dek_destroy(device.hca, dek), 0);
}

TEST_WITH(test_psv, device_group_open, device_group_close)
{
	const struct walk_access access = {.hca = device.hca, .pd = hca_pd_number(device.pd)};
	uint8_t wqe[32] = {0};
	struct refusal why = {0};
	uint32_t index;

	assert_int_equal(hca_psv_create(device.pd, &index), 0);
	put(wqe + 16, PART_PSV, "index", index);
	put(wqe + 16, PART_PSV, "transient", UINT64_C(0x123456789abcdef0));
	assert_int_equal(set_psv_execute(&access, wqe, sizeof(wqe), &why), 0);
	assert_int_equal(psv_find(device.hca, index, access.pd)->transient, UINT64_C(0x123456789abcdef0));
	assert_int_equal(hca_psv_destroy(device.hca, index), 0);
}
