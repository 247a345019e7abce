/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys with block signatures, see signed_key.h. */
#include "support/signed_key.h"

#include <endian.h>

#include "../../signature/guard.h"

enum {
	SERVER_MEMORY = 1024, /* where the pieces of a cut layout begin */
	PIECE_GAP = 37,

	REQUEST = 0x7a51,
	RECEIVE = 0x4ec2,
	IMMEDIATE = 0x1badcafe,
};

struct pair_options signed_options(void)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	options.max_inline_data = 252;
	return options;
}

struct mlx5dv_mkey *side_create_signed_mkey(struct side *side, uint16_t entries)
{
	return side_create_mkey_with(
		side, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE, entries);
}

/* ---- domains ---------------------------------------------------------------------------------------------------- */

uint32_t domain_block(const struct mlx5dv_sig_block_domain *domain)
{
	static const uint32_t bytes[] = {512, 520, 4048, 4096, 4160};

	return bytes[domain->block_size];
}

static bool is_dif(const struct mlx5dv_sig_block_domain *domain)
{
	return domain->sig_type == MLX5DV_SIG_TYPE_T10DIF;
}

static enum guard guard_of(const struct mlx5dv_sig_block_domain *domain)
{
	static const enum guard crcs[] = {GUARD_CRC32, GUARD_CRC32C, GUARD_CRC64};

	if (is_dif(domain))
		return domain->sig.dif->bg_type == MLX5DV_SIG_T10DIF_CSUM ? GUARD_T10_CSUM : GUARD_T10_CRC;
	return crcs[domain->sig.crc->type];
}

uint32_t domain_field(const struct mlx5dv_sig_block_domain *domain)
{
	if (!domain)
		return 0;
	return is_dif(domain) ? 8 : (uint32_t)guard_bytes(guard_of(domain));
}

uint32_t domain_make_field(const struct mlx5dv_sig_block_domain *domain, const uint8_t *data, uint32_t number,
			   uint8_t field[8])
{
	const struct mlx5dv_sig_t10dif *dif = domain->sig.dif;
	uint16_t app;
	uint32_t ref;

	if (!is_dif(domain)) {
		guard_compute(guard_of(domain), domain->sig.crc->seed != 0, data, domain_block(domain), field);
		return domain_field(domain);
	}
	guard_compute(guard_of(domain), dif->bg != 0, data, domain_block(domain), field);
	app = htobe16(dif->app_tag);
	ref = htobe32(dif->ref_tag + (dif->flags & MLX5DV_SIG_T10DIF_FLAG_REF_REMAP ? number : 0));
	memcpy(field + 2, &app, sizeof(app));
	memcpy(field + 4, &ref, sizeof(ref));
	return 8;
}

size_t domain_stream_bytes(const struct mlx5dv_sig_block_domain *domain, size_t raw)
{
	return domain ? raw + raw / domain_block(domain) * domain_field(domain) : raw;
}

size_t domain_make_stream(const struct mlx5dv_sig_block_domain *domain, const uint8_t *data, size_t raw,
			  uint8_t *stream)
{
	uint32_t block = domain ? domain_block(domain) : (uint32_t)raw, number = 0;
	size_t written = 0;

	for (size_t at = 0; at < raw; at += block) {
		size_t piece = raw - at < block ? raw - at : block;

		memcpy(stream + written, data + at, piece);
		written += piece;
		if (domain && piece == block)
			written += domain_make_field(domain, data + at, number++, stream + written);
	}
	return written;
}

/* ---- keys ------------------------------------------------------------------------------------------------------- */

void cut_layout(struct layout *layout, struct ibv_sge pieces[3], size_t bytes)
{
	/*
	 * An odd first piece and a last one of a few bytes: both ends of the fields lie in other pieces than their
	 * blocks.
	 */
	size_t first = bytes / 3 | 1, last = bytes < 16 ? 1 : 7;

	pieces[0] = side_sge(&server, SERVER_MEMORY, (uint32_t)first);
	pieces[1] = side_sge(&server, SERVER_MEMORY + first + PIECE_GAP, (uint32_t)(bytes - first - last));
	pieces[2] = side_sge(&server, SERVER_MEMORY - PIECE_GAP, (uint32_t)last);
	layout_of_list(layout, &server, 3, pieces);
}

int configure_signed(struct mlx5dv_mkey *mkey, uint16_t count, const struct ibv_sge *sge,
		     const struct mlx5dv_sig_block_attr *attr)
{
	configure_start(&pair.server, mkey, 3);
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
	mlx5dv_wr_set_mkey_layout_list(pair.server.dv, count, sge);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, attr);
	return ibv_wr_complete(pair.server.ex);
}

void lay_signed_(struct place place, struct mlx5dv_mkey *mkey, struct layout *layout, size_t bytes,
		 const struct mlx5dv_sig_block_attr *attr)
{
	struct ibv_sge pieces[3];

	cut_layout(layout, pieces, bytes);
	expect_error_(place, "ibv_wr_complete()", configure_signed(mkey, 3, pieces, attr), 0);
	expect_completion_(place, &pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	expect_idle_(place, &pair.server);
}

void key_expect(const struct layout *layout, size_t offset, const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		server.expected[layout->at[offset + i]] = bytes[i];
}

void key_store(const struct layout *layout, size_t offset, const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		server.memory[layout->at[offset + i]] = bytes[i];
	key_expect(layout, offset, bytes, count);
}

void plain_expect(size_t offset, const uint8_t *bytes, size_t count)
{
	memcpy(client.expected + offset, bytes, count);
}

void plain_store(size_t offset, const uint8_t *bytes, size_t count)
{
	memcpy(client.memory + offset, bytes, count);
	plain_expect(offset, bytes, count);
}

/* ---- transfers -------------------------------------------------------------------------------------------------- */

struct request {
	bool by_client;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode done, received; /* `received`: opcode at the peer, if the message consumes a receive */
	bool receives;
};

static const struct request requests[KEY_OPERATIONS] = {
	[OUT_SEND] = {false, IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, true},
	[OUT_SEND_IMM] = {false, IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, true},
	[OUT_WRITE] = {false, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0, false},
	[OUT_WRITE_IMM] = {false, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM, true},
	[OUT_REMOTE_READ] = {true, IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 0, false},
	[IN_RECV] = {true, IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, true},
	[IN_RECV_IMM] = {true, IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, true},
	[IN_READ] = {false, IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 0, false},
	[IN_REMOTE_WRITE] = {true, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0, false},
	[IN_REMOTE_WRITE_IMM] = {true, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM, true},
};

void transfer_signed_(struct place place, enum key_operation operation, uint32_t key, uint64_t offset, size_t plain,
		      uint32_t bytes)
{
	const struct request *request = &requests[operation];
	struct endpoint *poster = request->by_client ? &pair.client : &pair.server;
	struct ibv_sge key_sge = {.addr = offset, .length = bytes, .lkey = key};
	struct ibv_sge plain_sge = side_sge(&client, plain, bytes);
	struct ibv_sge *own = request->by_client ? &plain_sge : &key_sge;
	struct ibv_sge *other = request->by_client ? &key_sge : &plain_sge;
	struct ibv_send_wr wr = {
		.wr_id = REQUEST,
		.sg_list = own,
		.num_sge = 1,
		.opcode = request->opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(IMMEDIATE),
	};

	if (request->opcode != IBV_WR_SEND && request->opcode != IBV_WR_SEND_WITH_IMM) {
		wr.wr.rdma.remote_addr = other->addr;
		wr.wr.rdma.rkey = other->lkey;
	}
	if (request->receives)
		post_receive_(place, poster->peer, RECEIVE, other, 1);
	post_send_(place, poster, &wr);
	expect_completion_(place, poster, REQUEST, request->done);
	if (request->receives) {
		struct ibv_wc wc = expect_completion_(place, poster->peer, RECEIVE, request->received);

		if (wc.byte_len != bytes)
			fail_at(place, "received %u bytes, not %u", wc.byte_len, bytes);
	}
	/* Profile connectx finds errors on polling. */
	expect_idle_(place, &pair.client);
	expect_idle_(place, &pair.server);
}

void expect_signed_transfer_(struct place place, enum key_operation operation, struct mlx5dv_mkey *mkey,
			     const struct layout *layout, const struct mlx5dv_sig_block_domain *mem,
			     const struct mlx5dv_sig_block_domain *wire, size_t raw)
{
	static uint8_t data[SIGNED_LARGEST], in_memory[SIGNED_LARGEST], on_wire[SIGNED_LARGEST];
	size_t memory_bytes = domain_stream_bytes(mem, raw), wire_bytes = domain_stream_bytes(wire, raw);

	side_compare_(place, &client);
	side_compare_(place, &server);
	side_stir(&client);
	side_stir(&server);
	if (memory_bytes > layout->length || wire_bytes > SIGNED_LARGEST || memory_bytes > SIGNED_LARGEST)
		fail_at(place, "%zu bytes of data are too many for the test", raw);
	for (size_t i = 0; i < raw; i++)
		data[i] = server.memory[layout->at[i]] ^ (uint8_t)(i / 7);
	domain_make_stream(mem, data, raw, in_memory);
	domain_make_stream(wire, data, raw, on_wire);
	if (goes_out(operation))
		key_store(layout, 0, in_memory, memory_bytes);
	else
		plain_store(SIGNED_PLAIN, on_wire, wire_bytes);
	transfer_signed_(place, operation, mkey->lkey, 0, SIGNED_PLAIN, (uint32_t)wire_bytes);
	if (goes_out(operation))
		plain_expect(SIGNED_PLAIN, on_wire, wire_bytes);
	else
		key_expect(layout, 0, in_memory, memory_bytes);
	side_compare_(place, &client);
	side_compare_(place, &server);
	expect_key_good_(place, mkey);
}

/* ---- errors ----------------------------------------------------------------------------------------------------- */

bool profile_is_connectx(void)
{
	const char *profile = getenv("SOFTHCA_PROFILE");

	return profile && !strcmp(profile, "connectx");
}

void expect_key_good_(struct place place, struct mlx5dv_mkey *mkey)
{
	struct mlx5dv_mkey_err err;

	memset(&err, 0xa5, sizeof(err));
	expect_error_(place, "mlx5dv_mkey_check()", mlx5dv_mkey_check(mkey, &err), 0);
	if (err.err_type != MLX5DV_MKEY_NO_ERR)
		fail_at(place, "the key has an error of type %d: actual %#lx, expected %#lx, offset %lu", err.err_type,
			err.err.sig.actual_value, err.err.sig.expected_value, err.err.sig.offset);
}

void expect_key_bad_(struct place place, struct mlx5dv_mkey *mkey, enum mlx5dv_mkey_err_type type,
		     const struct mlx5dv_sig_block_domain *domain, uint64_t number, uint64_t offset, uint64_t found,
		     uint64_t computed)
{
	bool connectx = profile_is_connectx();
	uint32_t extended = domain_block(domain) + domain_field(domain);
	uint64_t last = (number + 1) * extended - 1, at = connectx ? last : offset;
	uint64_t actual = connectx ? found : computed, expected = connectx ? computed : found;
	struct mlx5dv_mkey_err err;

	memset(&err, 0xa5, sizeof(err));
	expect_error_(place, "mlx5dv_mkey_check()", mlx5dv_mkey_check(mkey, &err), 0);
	if (err.err_type != type || err.err.sig.actual_value != actual || err.err.sig.expected_value != expected ||
	    err.err.sig.offset != at)
		fail_at(place, "error of type %d, actual %#lx, expected %#lx, offset %lu; not type %d, %#lx, %#lx, %lu",
			err.err_type, err.err.sig.actual_value, err.err.sig.expected_value, err.err.sig.offset, type,
			actual, expected, at);
	expect_key_good_(place, mkey);
}
