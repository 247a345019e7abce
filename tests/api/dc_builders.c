/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_wr_post(3), DCI QPs: "The available builders and setters for DCI QP are the same as RC QP". Each case runs on an RC QP
 * and on a DCI and expects the same completions and the same bytes. Local operations carry no DC address: ibv_wr_post(3) lists no
 * setter for them. tests/api/dc_operations.c covers the operations that are sent.
 */
#include "support/crypto_keys.h"
#include "support/dc.h"
#include "support/event.h"
#include "support/signed_key.h"

#include "../unit/support/xts_model.h"

enum {
	LAST_ID = 0xdc0f,
	KEY = 0x5ca1ab1e,
	BLOCKS = 4,
	UNIT = 512,
	RAW = BLOCKS * UNIT,
	STREAM = RAW + BLOCKS * 8, /* at most */
	HERE_AT = 1024,
	THERE_AT = 16384,
	INLINE = 380, /* a layout and two BSFs */
	ALL_DV_OPS = DV_KEY_OPS | MLX5DV_QP_EX_WITH_RAW_WQE | MLX5DV_QP_EX_WITH_MEMCPY,
};

DOMAIN_CRC(crc32c, CRC32C, 512, 0xffffffff);
DOMAIN_DIF(t10dif, CRC, 512, 0, 0x1234, 0xfffffffe, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP);

/* A QP of the client that reaches the server: an RC QP, or a DCI. */
struct initiator {
	const char *name;
	struct endpoint *end;
	struct dci *dci; /* NULL: RC */
};

static struct dct target;
static struct dci dci;
static struct initiator initiators[2];
static struct layout layout;
static uint8_t data[RAW];

static int builders_open(void **state)
{
	struct pair_options rc = signed_options();
	struct dci_options options = dci_defaults();

	program_open(state);
	rc.max_inline_data = options.max_inline_data = INLINE;
	rc.dv_send_ops = options.dv_send_ops = ALL_DV_OPS;
	pair_replace(&pair, &rc);
	dct_open(&target, &server, KEY);
	dci_open(&dci, &client, &server, &options);
	initiators[0] = (struct initiator){"an RC QP", &pair.client, NULL};
	initiators[1] = (struct initiator){"a DCI", &dci.end, &dci};
	for (int i = 0; i < RAW; i++)
		data[i] = (uint8_t)(i * 7 + i / 512);
	return 0;
}

static int builders_close(void **state)
{
	dci_close(&dci);
	dct_close(&target);
	return program_close(state);
}

/* Replaces the QPs by ones with @flags of enum mlx5dv_qp_create_flags. */
static void recreate(uint32_t flags)
{
	struct pair_options rc = pair.options;
	struct dci_options options = dci.options;

	rc.dv_create_flags = options.dv_create_flags = flags;
	pair_replace(&pair, &rc);
	dci_close(&dci);
	dci_open(&dci, &client, &server, &options);
}

static void begin_note(const struct initiator *by, const char *what)
{
	note("%s on %s", what, by->name);
	side_stir(&client);
	side_stir(&server);
}

/* Adds a WRITE of @source to the server's memory to the open batch. */
static void build_write(const struct initiator *by, uint64_t wr_id, struct ibv_sge source)
{
	by->end->ex->wr_id = wr_id;
	by->end->ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(by->end->ex, server.mr->rkey, side_address(&server, THERE_AT));
	ibv_wr_set_sge(by->end->ex, source.lkey, source.addr, source.length);
	if (by->dci)
		dci_address(by->dci, &target, 0);
}

/* WRITEs @bytes of @mkey to the server's memory, and expects @wire there. */
static void write_key(const struct initiator *by, const struct mlx5dv_mkey *mkey, const uint8_t *wire, size_t bytes)
{
	ibv_wr_start(by->end->ex);
	build_write(by, 1, (struct ibv_sge){.addr = 0, .length = (uint32_t)bytes, .lkey = mkey->lkey});
	expect_error(ibv_wr_complete(by->end->ex), 0);
	expect_completion(by->end, 1, IBV_WC_RDMA_WRITE);
	expect_idle(by->end);
	memcpy(server.expected + THERE_AT, wire, bytes);
	side_compare(&server);
	side_compare(&client);
}

/* Writes the memory of a key of the client. */
static void store(const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		client.memory[layout.at[i]] = client.expected[layout.at[i]] = bytes[i];
}

/* ---- mlx5dv_wr_mkey_configure(3): every setter ------------------------------------------------------------------ */

struct combination {
	const struct mlx5dv_sig_block_domain *mem, *wire;
	bool interleaved, encrypted;
	bool split; /* one configuration per setter */
};

static struct mlx5dv_dek *make_dek(void)
{
	struct mlx5dv_dek_init_attr attr = {.pd = client.pd, .comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN};
	struct mlx5dv_dek *dek;

	plain_key(attr.key, 32);
	dek = mlx5dv_dek_create(client.context, &attr);
	assert_non_null(dek);
	return dek;
}

/* Sets a layout of @bytes of the client's memory. The caller begins the configuration. */
static void set_layout(const struct initiator *by, bool interleaved, uint32_t bytes)
{
	enum { REPEAT = 16 };
	struct mlx5dv_mr_interleaved strips[3] = {
		side_interleaved(&client, 20000, 60, 5),
		side_interleaved(&client, 30000, 60, 1),
		side_interleaved(&client, 40001, bytes / REPEAT - 120, 9),
	};
	struct ibv_sge pieces[3] = {
		side_sge(&client, HERE_AT, bytes / 3 | 1),
		side_sge(&client, 8001, 17),
		side_sge(&client, 10000, bytes - 17 - (bytes / 3 | 1)),
	};

	if (interleaved) {
		layout_of_interleaved(&layout, &client, REPEAT, 3, strips);
		mlx5dv_wr_set_mkey_layout_interleaved(by->end->dv, REPEAT, 3, strips);
	} else {
		layout_of_list(&layout, &client, 3, pieces);
		mlx5dv_wr_set_mkey_layout_list(by->end->dv, 3, pieces);
	}
	assert_int_equal(layout.length, bytes);
}

/* If each setter has its own configuration, ends the present one and begins the next. */
static void next_setter(const struct initiator *by, const struct combination *set, struct mlx5dv_mkey *mkey)
{
	if (!set->split)
		return;
	configure_complete(by->end);
	expect_idle(by->end);
	configure_start(by->end, mkey, 1);
}

static void configure(const struct initiator *by, const struct combination *set, struct mlx5dv_mkey *mkey,
		      const struct mlx5dv_crypto_attr *crypto)
{
	struct mlx5dv_sig_block_attr signature = {.mem = set->mem, .wire = set->wire, .check_mask = 0xff};
	bool has_signature = set->mem || set->wire;

	configure_start(by->end, mkey, set->split ? 1 : (uint8_t)(2 + has_signature + set->encrypted));
	mlx5dv_wr_set_mkey_access_flags(by->end->dv, KEY_ACCESS);
	next_setter(by, set, mkey);
	set_layout(by, set->interleaved, (uint32_t)domain_stream_bytes(set->mem, RAW));
	if (has_signature) {
		next_setter(by, set, mkey);
		mlx5dv_wr_set_mkey_sig_block(by->end->dv, &signature);
	}
	if (set->encrypted) {
		next_setter(by, set, mkey);
		mlx5dv_wr_set_mkey_crypto(by->end->dv, crypto);
	}
	configure_complete(by->end);
	expect_idle(by->end);
}

static void try_combination(const struct initiator *by, const struct combination *set,
			    const struct mlx5dv_crypto_attr *crypto)
{
	uint32_t cipher = set->encrypted ? MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO : 0;
	struct mlx5dv_mkey *mkey = side_create_mkey_with(
		&client, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE | cipher,
		5);
	uint8_t memory[STREAM], wire[STREAM], plain[STREAM], key[72], tweak[16];
	size_t bytes = domain_make_stream(set->wire, data, RAW, plain);

	begin_note(by, "a configuration");
	note("%s: memory %d, wire %d, interleaved %d, encrypted %d, split %d", by->name, set->mem != NULL,
	     set->wire != NULL, set->interleaved, set->encrypted, set->split);
	configure(by, set, mkey, crypto);
	store(memory, domain_make_stream(set->mem, data, RAW, memory));
	memcpy(wire, plain, bytes);
	if (set->encrypted) {
		plain_key(key, 32);
		memcpy(tweak, crypto->initial_tweak, sizeof(tweak));
		for (size_t at = 0; at < bytes; at += UNIT, model_increment(tweak))
			model_unit(key, 32, true, tweak, wire + at, plain + at, bytes - at < UNIT ? bytes - at : UNIT);
	}
	write_key(by, mkey, wire, bytes);
	if (set->mem || set->wire)
		expect_key_good(mkey);
	for (size_t i = 0; i < SIDE_OBJECTS; i++)
		if (client.mkeys[i] == mkey)
			client.mkeys[i] = NULL;
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}

TEST(setters_of_a_configuration)
{
	const struct mlx5dv_sig_block_domain *const domains[][2] = {
		{NULL, NULL}, {&crc32c, NULL}, {NULL, &t10dif}, {&crc32c, &t10dif}};
	struct mlx5dv_crypto_attr crypto = {
		.encrypt_on_tx = true,
		.signature_crypto_order = MLX5DV_SIGNATURE_CRYPTO_ORDER_SIGNATURE_BEFORE_CRYPTO_ON_TX,
		.data_unit_size = MLX5DV_BLOCK_SIZE_512,
		.initial_tweak = {1, 2, 3},
		.dek = make_dek(),
	};

	for (int form = 0; form < 16; form++)
		for (size_t d = 0; d < ARRAY_SIZE(domains); d++) {
			const struct combination set = {
				.mem = domains[d][0],
				.wire = domains[d][1],
				.interleaved = form & 1,
				.encrypted = form & 2,
				.split = form & 4,
			};

			try_combination(&initiators[form >> 3], &set, &crypto);
		}
	expect_error(mlx5dv_dek_destroy(crypto.dek), 0);
}

/* ---- signature errors ------------------------------------------------------------------------------------------- */

/* Stores data with a block @bad that does not match its signature, WRITEs the key, and expects the error. */
static void expect_error_of_block(const struct initiator *by, struct mlx5dv_mkey *mkey, int bad)
{
	uint8_t memory[STREAM];
	uint32_t field = 0;

	begin_note(by, "a signature error");
	domain_make_stream(&crc32c, data, RAW, memory);
	memory[bad * 516 + 512] ^= 0x80;
	store(memory, BLOCKS * 516);
	for (int i = 0; i < 4; i++)
		field = field << 8 | memory[bad * 516 + 512 + i];
	write_key(by, mkey, data, RAW);
	expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD, &crc32c, bad, bad * 512, field, field ^ 0x80000000);
}

/*
 * mlx5dv_mkey_check(3): an error is reported, a configuration lets the key report the next one, and RESET_SIG_ATTR ends the
 * checks.
 */
TEST(errors_are_found)
{
	struct mlx5dv_mkey_conf_attr reset = {.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR};
	const struct combination set = {.mem = &crc32c};
	uint8_t memory[STREAM];

	for (size_t i = 0; i < ARRAY_SIZE(initiators); i++) {
		const struct initiator *by = &initiators[i];
		struct mlx5dv_mkey *mkey = side_create_signed_mkey(&client, 4);

		configure(by, &set, mkey, NULL);
		expect_error_of_block(by, mkey, 1);
		configure_start(by->end, mkey, 0);
		configure_complete(by->end);
		expect_idle(by->end);
		expect_error_of_block(by, mkey, 2);

		begin_note(by, "no signature any more");
		batch_start(by->end, LAST_ID, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
		mlx5dv_wr_mkey_configure(by->end->dv, mkey, 0, &reset);
		expect_error(ibv_wr_complete(by->end->ex), 0);
		expect_completion(by->end, LAST_ID, IBV_WC_DRIVER1);
		domain_make_stream(&crc32c, data, RAW, memory);
		memory[512] ^= 1;
		store(memory, BLOCKS * 516);
		write_key(by, mkey, memory, BLOCKS * 516);
	}
}

/* mlx5dv_create_qp(3), SIG_PIPELINING: the requests after the failed one wait, and can be cancelled. */
TEST(pipelining)
{
	const struct combination set = {.mem = &crc32c};
	struct mlx5dv_mkey_err err;
	uint8_t memory[STREAM];

	recreate(MLX5DV_QP_CREATE_SIG_PIPELINING);
	for (size_t i = 0; i < ARRAY_SIZE(initiators); i++) {
		const struct initiator *by = &initiators[i];
		struct mlx5dv_mkey *mkey = side_create_signed_mkey(&client, 4);
		struct ibv_qp_attr run = {.qp_state = IBV_QPS_RTS};
		struct ibv_async_event event;

		configure(by, &set, mkey, NULL);
		begin_note(by, "a pipeline");
		domain_make_stream(&crc32c, data, RAW, memory);
		memory[0] ^= 1;
		store(memory, BLOCKS * 516);
		ibv_wr_start(by->end->ex);
		build_write(by, 1, (struct ibv_sge){.addr = 0, .length = RAW, .lkey = mkey->lkey});
		build_write(by, 2, side_sge(&client, HERE_AT, 8));
		expect_error(ibv_wr_complete(by->end->ex), 0);
		expect_completion(by->end, 1, IBV_WC_RDMA_WRITE);
		expect_error(ibv_get_async_event(client.context, &event), 0);
		assert_int_equal(event.event_type, IBV_EVENT_SQ_DRAINED);
		assert_ptr_equal(event.element.qp, by->end->qp);
		ibv_ack_async_event(&event);
		expect_idle(by->end);
		data[0] ^= 1;
		memcpy(server.expected + THERE_AT, data, RAW);
		data[0] ^= 1;
		side_compare(&server);
		expect_error(mlx5dv_mkey_check(mkey, &err), 0);
		assert_int_equal(err.err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
		assert_int_equal(mlx5dv_qp_cancel_posted_send_wrs(by->end->dv, 2), 1);
		expect_error(ibv_modify_qp(by->end->qp, &run, IBV_QP_STATE), 0);
		expect_completion(by->end, 2, IBV_WC_RDMA_WRITE);
		side_compare(&server);
	}
}

/* ---- local operations ------------------------------------------------------------------------------------------- */

static struct mlx5dv_mkey *key_of_client;
static struct ibv_mw *window;

static void build_access(struct endpoint *end)
{
	struct mlx5dv_mkey_conf_attr attr = {0};

	mlx5dv_wr_mkey_configure(end->dv, key_of_client, 1, &attr);
	mlx5dv_wr_set_mkey_access_flags(end->dv, KEY_ACCESS);
}

static void build_signature(struct endpoint *end)
{
	struct mlx5dv_sig_block_attr signature = {.mem = &crc32c, .wire = &t10dif, .check_mask = 0xff};
	struct mlx5dv_mkey_conf_attr attr = {0};

	mlx5dv_wr_mkey_configure(end->dv, key_of_client, 1, &attr);
	mlx5dv_wr_set_mkey_sig_block(end->dv, &signature);
}

static void build_list(struct endpoint *end)
{
	struct ibv_sge sge = side_sge(&client, HERE_AT, 516);

	mlx5dv_wr_mr_list(end->dv, key_of_client, KEY_ACCESS, 1, &sge);
}

static void build_interleaved(struct endpoint *end)
{
	struct mlx5dv_mr_interleaved strip = side_interleaved(&client, HERE_AT, 100, 3);

	mlx5dv_wr_mr_interleaved(end->dv, key_of_client, KEY_ACCESS, 2, 1, &strip);
}

static void build_invalidate(struct endpoint *end)
{
	ibv_wr_local_inv(end->ex, key_of_client->rkey);
}

static void build_bind(struct endpoint *end)
{
	struct ibv_mw_bind_info bind = {.mr = client.mr,
					.addr = side_address(&client, HERE_AT),
					.length = 64,
					.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};

	window->rkey = ibv_inc_rkey(window->rkey);
	ibv_wr_bind_mw(end->ex, window, window->rkey, &bind);
}

static void build_invalidate_window(struct endpoint *end)
{
	ibv_wr_local_inv(end->ex, window->rkey);
}

static void build_copy(struct endpoint *end)
{
	mlx5dv_wr_memcpy(end->dv, client.mr->lkey, side_address(&client, HERE_AT), client.mr->lkey,
			 side_address(&client, THERE_AT), 100);
	memcpy(client.expected + HERE_AT, client.expected + THERE_AT, 100);
}

static void build_raw_nop(struct endpoint *end)
{
	struct mlx5_wqe_ctrl_seg wqe;

	mlx5dv_set_ctrl_seg(&wqe, 0, MLX5_OPCODE_NOP, 0, end->qp->qp_num, MLX5_WQE_CTRL_CQ_UPDATE, 1, 0, 0);
	mlx5dv_wr_raw_wqe(end->dv, &wqe);
}

static const struct local {
	const char *name;
	void (*build)(struct endpoint *end);
	enum ibv_wc_opcode opcode;
} locals[] = {
	{"access flags", build_access, IBV_WC_DRIVER1},
	{"a list", build_list, IBV_WC_DRIVER1},
	{"an interleaved layout", build_interleaved, IBV_WC_DRIVER1},
	{"a signature", build_signature, IBV_WC_DRIVER1},
	{"LOCAL_INV of a key", build_invalidate, IBV_WC_LOCAL_INV},
	{"BIND_MW", build_bind, IBV_WC_BIND_MW},
	{"LOCAL_INV of a window", build_invalidate_window, IBV_WC_LOCAL_INV},
	{"a copy", build_copy, IBV_WC_DRIVER3},
	{"a raw NOP", build_raw_nop, IBV_WC_DRIVER2},
};

static void make_local_objects(void)
{
	key_of_client = side_create_signed_mkey(&client, 4);
	window = side_alloc_mw(&client, IBV_MW_TYPE_2);
}

/* Posts each operation as the first request of a QP, then all in one batch, then after a request that was sent. */
TEST(local_operations)
{
	for (size_t i = 0; i < ARRAY_SIZE(initiators); i++) {
		const struct initiator *by = &initiators[i];

		make_local_objects();
		for (size_t k = 0; k < ARRAY_SIZE(locals); k++) {
			begin_note(by, locals[k].name);
			/* A type 2 window belongs to the QP that bound it. */
			if (locals[k].build != build_invalidate_window)
				recreate(0);
			batch_start(by->end, LAST_ID, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
			locals[k].build(by->end);
			expect_error(ibv_wr_complete(by->end->ex), 0);
			expect_completion(by->end, LAST_ID, locals[k].opcode);
			expect_idle(by->end);
			side_compare(&client);
		}
		for (int sent = 0; sent < 2; sent++) {
			begin_note(by, sent ? "a batch after a WRITE" : "a batch");
			ibv_wr_start(by->end->ex);
			if (sent)
				build_write(by, 1, side_sge(&client, 50000, 300));
			for (size_t k = 0; k < ARRAY_SIZE(locals); k++) {
				by->end->ex->wr_id = 100 + k;
				by->end->ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
				locals[k].build(by->end);
			}
			expect_error(ibv_wr_complete(by->end->ex), 0);
			if (sent) {
				expect_completion(by->end, 1, IBV_WC_RDMA_WRITE);
				memcpy(server.expected + THERE_AT, client.expected + 50000, 300);
			}
			for (size_t k = 0; k < ARRAY_SIZE(locals); k++)
				expect_completion(by->end, 100 + k, locals[k].opcode);
			expect_idle(by->end);
			side_compare(&client);
			side_compare(&server);
		}
	}
}

/* An invalidated key yields no data; a WRITE from it puts the QP into error. */
TEST(invalidated_key)
{
	for (size_t i = 0; i < ARRAY_SIZE(initiators); i++) {
		const struct initiator *by = &initiators[i];
		struct mlx5dv_mkey *mkey = side_create_mkey(&client, 4, NULL);
		struct ibv_sge piece = side_sge(&client, HERE_AT, 64);

		begin_note(by, "LOCAL_INV");
		lay_list(by->end, BY_MR_CALL, mkey, &layout, 1, &piece);
		ibv_wr_start(by->end->ex);
		by->end->ex->wr_id = 1;
		by->end->ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_local_inv(by->end->ex, mkey->rkey);
		build_write(by, 2, (struct ibv_sge){.addr = 0, .length = 64, .lkey = mkey->lkey});
		expect_error(ibv_wr_complete(by->end->ex), 0);
		expect_completion(by->end, 1, IBV_WC_LOCAL_INV);
		expect_status(by->end, 2, IBV_WC_LOC_PROT_ERR);
		side_compare(&server);
	}
}

/* Configures, uses and invalidates a key in one batch. */
TEST(whole_batch)
{
	const struct combination set = {.mem = &crc32c, .wire = &t10dif};
	uint8_t memory[STREAM], wire[STREAM];

	for (size_t i = 0; i < ARRAY_SIZE(initiators); i++) {
		const struct initiator *by = &initiators[i];
		struct mlx5dv_mkey *mkey = side_create_signed_mkey(&client, 4);
		struct mlx5dv_sig_block_attr signature = {.mem = set.mem, .wire = set.wire, .check_mask = 0xff};
		size_t bytes = domain_make_stream(set.wire, data, RAW, wire);

		begin_note(by, "a batch");
		configure_start(by->end, mkey, 3);
		mlx5dv_wr_set_mkey_access_flags(by->end->dv, KEY_ACCESS);
		set_layout(by, false, BLOCKS * 516);
		mlx5dv_wr_set_mkey_sig_block(by->end->dv, &signature);
		build_write(by, 2, (struct ibv_sge){.addr = 0, .length = (uint32_t)bytes, .lkey = mkey->lkey});
		by->end->ex->wr_id = 3;
		ibv_wr_local_inv(by->end->ex, mkey->rkey);
		store(memory, domain_make_stream(set.mem, data, RAW, memory));
		expect_error(ibv_wr_complete(by->end->ex), 0);
		expect_completion(by->end, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
		expect_completion(by->end, 2, IBV_WC_RDMA_WRITE);
		expect_completion(by->end, 3, IBV_WC_LOCAL_INV);
		expect_idle(by->end);
		memcpy(server.expected + THERE_AT, wire, bytes);
		side_compare(&server);
		expect_key_good(mkey);
	}
}

/* ---- requests that accept an address ---------------------------------------------------------------------------- */

/* mlx5dv_wr_set_dc_addr attaches a target to the last request; ibv_wr_post(3) lists no setter for local ones. */
TEST(address_of_a_local_operation)
{
	make_local_objects();
	for (size_t k = 0; k < ARRAY_SIZE(locals); k++)
		for (int stream = 0; stream < 2; stream++) {
			begin_note(&initiators[1], locals[k].name);
			batch_start(&dci.end, LAST_ID, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
			locals[k].build(&dci.end);
			dci_address(&dci, &target, (uint16_t)stream);
			expect_error(ibv_wr_complete(dci.end.ex), EINVAL);
			expect_idle(&dci.end);
		}
	side_stir(&client);
	/* The data setter is invalid there, too, on either QP. */
	for (size_t i = 0; i < ARRAY_SIZE(initiators); i++) {
		batch_start(initiators[i].end, LAST_ID, IBV_SEND_SIGNALED);
		build_invalidate(initiators[i].end);
		ibv_wr_set_sge(initiators[i].end->ex, client.mr->lkey, side_address(&client, 0), 8);
		expect_error(ibv_wr_complete(initiators[i].end->ex), EINVAL);
		expect_idle(initiators[i].end);
	}
}

TEST(address_at_the_wrong_time)
{
	struct mlx5dv_mkey_conf_attr attr = {0};

	make_local_objects();
	begin_note(&initiators[1], "before any request");
	batch_start(&dci.end, LAST_ID, IBV_SEND_SIGNALED);
	dci_address(&dci, &target, 0);
	build_write(&initiators[1], LAST_ID, side_sge(&client, 0, 8));
	expect_error(ibv_wr_complete(dci.end.ex), EINVAL);

	begin_note(&initiators[1], "between a configuration and its setter");
	batch_start(&dci.end, LAST_ID, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(dci.end.dv, key_of_client, 1, &attr);
	dci_address(&dci, &target, 0);
	mlx5dv_wr_set_mkey_access_flags(dci.end.dv, KEY_ACCESS);
	expect_error(ibv_wr_complete(dci.end.ex), EINVAL);

	begin_note(&initiators[1], "twice");
	batch_start(&dci.end, LAST_ID, IBV_SEND_SIGNALED);
	build_write(&initiators[1], LAST_ID, side_sge(&client, 0, 8));
	dci_address(&dci, &target, 0);
	expect_error(ibv_wr_complete(dci.end.ex), EINVAL);
	expect_idle(&dci.end);

	/* The DCI is still usable. */
	begin_note(&initiators[1], "in time");
	ibv_wr_start(dci.end.ex);
	build_write(&initiators[1], LAST_ID, side_sge(&client, HERE_AT, 8));
	expect_error(ibv_wr_complete(dci.end.ex), 0);
	expect_completion(&dci.end, LAST_ID, IBV_WC_RDMA_WRITE);
	memcpy(server.expected + THERE_AT, client.expected + HERE_AT, 8);
	side_compare(&server);
}

int main(void)
{
	return run_cases(.setup = builders_open, .teardown = builders_close);
}
