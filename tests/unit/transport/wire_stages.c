/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Block stages over a wire that splits messages (docs/inside/decisions.md, Ciphers): the end of a packet and the end of
 * a message, where a message passes several keys, is aborted, or fails. Each case covers a past bug.
 */
#include "test_case.h"

#include "mkey/bsf.h"
#include "mkey/stage.h"
#include "../support/wire_fixture.h"
#include "../support/xts_model.h"

enum {
	UNIT = 512,
	KEY_BYTES = 2 * UNIT,
	TARGET = HALF + 4096, /* memory of the key with the cipher */
	PLAIN = HALF + 16384, /* other memory of the server */
	SOURCE = 64,          /* of the client */
};

static struct mkey *cipher_key, *layout_key, *signature_key;
static struct dek_attr dek_attr = {.key_bytes = 32};
static uint32_t dek, psv;

static int set_up(void **state)
{
	struct hca_mkey_attr attr = {.max_entries = 4, .bsf_octowords = 4, .cipher = true};

	wire_open(state);
	for (int i = 0; i < 32; i++)
		dek_attr.key[i] = (uint8_t)(i * 11 + 3);
	dek_attr.pd = hca_pd_number(device.pd);
	assert_int_equal(dek_create(device.hca, &dek_attr, &dek), 0);
	assert_int_equal(hca_mkey_create(device.pd, &attr, &cipher_key), 0);
	attr = (struct hca_mkey_attr){.max_entries = 4};
	assert_int_equal(hca_mkey_create(device.pd, &attr, &layout_key), 0);
	attr.bsf_octowords = 4;
	assert_int_equal(hca_mkey_create(device.pd, &attr, &signature_key), 0);
	assert_int_equal(hca_psv_create(device.pd, &psv), 0);
	return 0;
}

static int tear_down(void **state)
{
	assert_int_equal(hca_mkey_destroy(cipher_key), 0);
	assert_int_equal(hca_mkey_destroy(layout_key), 0);
	assert_int_equal(hca_mkey_destroy(signature_key), 0);
	assert_int_equal(hca_psv_destroy(device.hca, psv), 0);
	assert_int_equal(dek_destroy(device.hca, dek), 0);
	return wire_close(state);
}

/* ---- keys ----------------------------------------------------------------------------------------------------- */

static struct mapping *begin_layout(struct mkey *key)
{
	struct mapping *next = mkey_edit(key);

	assert_non_null(next);
	next->form = LAYOUT_LIST;
	next->count = 0;
	next->repeat = 1;
	next->period = 0;
	next->free = false;
	next->rights = RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE | RIGHT_REMOTE_READ | RIGHT_REMOTE_WRITE;
	return next;
}

static void add_entry(struct mapping *map, uint32_t number, uint64_t address, uint64_t bytes)
{
	map->entries[map->count++] =
		(struct layout_entry){.address = address, .bytes = bytes, .before = map->period, .key = number};
	map->length = map->period += bytes;
}

/* Configures @key over KEY_BYTES at TARGET. */
static void configure_with(struct mkey *key, const uint8_t *bsf)
{
	const struct walk_access access = {.hca = device.hca, .pd = hca_pd_number(device.pd)};
	struct mapping *next = begin_layout(key);
	struct refusal why;

	epoch_enter();
	assert_int_equal(bsf_parse(&access, next->number, bsf, 4, next->blocks, &why), 0);
	epoch_leave();
	add_entry(next, mkey_number(device.region), (uintptr_t)device.memory + TARGET, KEY_BYTES);
	next->staged = true;
	mkey_publish(key, next);
}

/* CRC32C of 512 bytes on the wire, none in memory (mlx5-formats 1.11). */
static void configure_signature(void)
{
	const uint8_t bsf[64] = {0x80, 0xff, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x42, 0, (uint8_t)(psv >> 8), (uint8_t)psv};

	configure_with(signature_key, bsf);
}

/* KEY_BYTES at TARGET, plain there and encrypted on the wire in units of 512 bytes, with tweak 0 (mlx5-formats 1.12). */
static void configure(void)
{
	const uint8_t bsf[64] = {0x81, 0, [8] = 1, [34] = (uint8_t)(dek >> 8), [35] = (uint8_t)dek};

	configure_with(cipher_key, bsf);
}

/* ---- messages ------------------------------------------------------------------------------------------------- */

/* Expected content of the memory. */
static uint8_t expected[sizeof(device.memory)];

static void start(void)
{
	const struct ibv_qp_attr options = wire_options();

	wire_connect(&options, NULL, NULL);
	configure();
	memcpy(expected, device.memory, sizeof(expected));
}

static void expect_all_memory(void)
{
	for (size_t i = 0; i < sizeof(expected); i++)
		if (device.memory[i] != expected[i])
			fail_msg("byte %#zx is %02x, not %02x", i, device.memory[i], expected[i]);
}

/* Expects the first @bytes of the key to be the decrypted @bytes at @from; they end at a unit or stand alone. */
static void expect_deciphered(uint32_t from, uint32_t bytes)
{
	uint8_t tweak[16] = {0};

	for (uint32_t at = 0; at < bytes; at += UNIT, model_increment(tweak))
		model_unit(dek_attr.key, 32, false, tweak, expected + TARGET + at, device.memory + from + at,
			   bytes - at < UNIT ? bytes - at : UNIT);
}

static struct mlx5_wqe_data_seg segment(const struct mkey *key, uint64_t address, uint32_t bytes)
{
	return (struct mlx5_wqe_data_seg){htobe32(bytes), htobe32(mkey_number(key)), htobe64(address)};
}

/* Posts a WRITE of memory of the client, or a READ into @sink. */
static void put_rdma_of(struct raw_qp *end, uint8_t opcode, const struct mlx5_wqe_data_seg *local, int count,
			const struct mkey *remote, uint64_t address)
{
	struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		struct mlx5_wqe_raddr_seg remote;
		struct mlx5_wqe_data_seg local[2];
	} wqe = {
		.ctrl = ctrl_segment(end, opcode, 2 + (uint32_t)count),
		.remote = {.raddr = htobe64(address), .rkey = htobe32(mkey_number(remote))},
	};

	memcpy(wqe.local, local, (size_t)count * sizeof(*local));
	put_wqe(end, &wqe, 2 + (uint32_t)count, 1);
	ring(end);
}

static void write_from(uint32_t bytes, const struct mkey *remote, uint64_t address)
{
	const struct mlx5_wqe_data_seg local = data_segment(&device, SOURCE, bytes);

	put_rdma_of(&client, MLX5_OPCODE_RDMA_WRITE, &local, 1, remote, address);
}

/* Makes a layout key of the server: @bytes of the wire of the key with the cipher, then plain memory. */
static void lay_out(uint32_t bytes)
{
	struct mapping *next = begin_layout(layout_key);

	add_entry(next, mkey_number(cipher_key), 0, bytes);
	add_entry(next, mkey_number(device.region), (uintptr_t)device.memory + PLAIN, 4096);
	mkey_publish(layout_key, next);
}

/*
 * The part that passes a key may end where a message may: after 256 of 512 bytes. The message continues elsewhere, in
 * the same packet.
 */
TEST(message_continues_after_the_key)
{
	static const uint32_t parts[] = {16, 256, 272, 496, 512, 768, 1024};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		for (int nested = 0; nested < 2; nested++) {
			const uint32_t part = parts[i], rest = 700;

			start();
			lay_out(part);
			expect_deciphered(SOURCE, part);
			memcpy(expected + PLAIN, device.memory + SOURCE + part, rest);
			if (nested) {
				write_from(part + rest, layout_key, 0);
			} else {
				const struct mlx5_wqe_data_seg sink[2] = {
					segment(cipher_key, 0, part),
					segment(device.region, (uintptr_t)device.memory + PLAIN, rest)};

				put_rdma_of(&server, MLX5_OPCODE_RDMA_READ, sink, 2, device.region,
					    (uintptr_t)device.memory + SOURCE);
			}
			wire_settle();
			expect_cqe(nested ? &client_cq : &server_cq, 0, 0);
			expect_no_more();
			expect_all_memory();
		}
}

/* Where a message may not end, it cannot continue elsewhere: nothing is lost silently. */
TEST(no_end_inside_a_block_of_aes)
{
	for (uint32_t part = 1; part < UNIT; part += 86) {
		start();
		lay_out(part);
		write_from(part + 700, layout_key, 0);
		wire_settle();
		expect_cqe(&client_cq, 0, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
		assert_int_equal(hca_qp_state(server.qp), IBV_QPS_ERR);
		assert_memory_equal(device.memory + PLAIN, expected + PLAIN, 4096);
	}
}

/* After a READ with a packet that could not be placed, the next copy starts afresh. */
TEST(copy_after_a_failed_read)
{
	const struct mlx5_wqe_data_seg sink[2] = {
		data_segment(&device, PLAIN, 300),
		{htobe32(400), htobe32(0xdead00), 0},
	};
	const struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		struct mlx5_wqe_data_seg opaque, source, destination;
	} copy = {
		.ctrl = {htobe32(1u << 24 | MLX5_OPCODE_MMO), htobe32(server.qp->number << 8 | 4),
			 .fm_ce_se = MLX5_WQE_CTRL_CQ_UPDATE},
		.source = data_segment(&device, SOURCE, 256),
		.destination = segment(cipher_key, 0, 256),
	};

	start();
	put_rdma_of(&server, MLX5_OPCODE_RDMA_READ, sink, 2, device.region, (uintptr_t)device.memory + SOURCE);
	wire_settle();
	expect_cqe(&server_cq, 0, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	start();
	expect_deciphered(SOURCE, 256);
	put_wqe(&server, &copy, 4, 1);
	ring(&server);
	expect_cqe(&server_cq, 0, 0);
	expect_all_memory();
}

static enum wire_verdict drop_the_fourth(void *argument, uint64_t number, const struct wire_packet *packet)
{
	(void)argument;
	(void)packet;
	return number == 4 ? WIRE_DROP : WIRE_PASS;
}

/* A message of UC that loses a packet ends there; the next one does not continue its data unit. */
TEST(message_that_breaks_off)
{
	const struct ibv_qp_attr options = wire_options();

	wire_change_type(IBV_QPT_UC);
	wire_connect(&options, drop_the_fourth, NULL);
	configure();
	memcpy(expected, device.memory, sizeof(expected));
	/* Three packets of 256 bytes arrive: a unit and a half. */
	expect_deciphered(SOURCE, UNIT);
	write_from(KEY_BYTES, cipher_key, 0);
	wire_settle();
	expect_all_memory();
	write_from(256, cipher_key, 768);
	wire_settle();
	expect_all_memory();
}

/*
 * A receive gets a block of the wire in two parts, and between its packets another message passes the key: the first
 * message continues, and its wrong field is detected.
 */
TEST(block_in_two_parts)
{
	const struct mlx5_wqe_data_seg sink[2] = {segment(signature_key, 0, 512), segment(signature_key, 512, 4)};
	const struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		struct mlx5_wqe_data_seg opaque, source, destination;
	} copy = {
		.ctrl = {.opmod_idx_opcode = htobe32(1u << 24 | MLX5_OPCODE_MMO),
			 .qpn_ds = htobe32(server.qp->number << 8 | 4)},
		.source = data_segment(&device, PLAIN, 512),
		.destination = segment(signature_key, 516, 512),
	};
	struct mlx5dv_mkey_err error;

	start();
	configure_signature();
	put_rdma_of(&server, MLX5_OPCODE_RDMA_READ, sink, 2, device.region, (uintptr_t)device.memory + SOURCE);
	/* The request, and two packets of 256 bytes. */
	for (int i = 0; i < 3; i++)
		assert_true(wire_deliver());
	assert_null(raw_cq_poll(&server_cq));
	put_wqe(&server, &copy, 4, 1);
	ring(&server);
	wire_settle();
	expect_cqe(&server_cq, 0, 0);
	expect_no_more();
	hca_mkey_take_error(signature_key, &error);
	assert_int_equal(error.err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
	assert_int_equal(error.err.sig.offset, 0);
	hca_mkey_take_error(signature_key, &error);
	assert_int_equal(error.err_type, MLX5DV_MKEY_NO_ERR);
}

/* CRC32C of 512 bytes in memory, none on the wire (mlx5-formats 1.11). */
static void configure_signature_of_memory(void)
{
	const uint8_t bsf[64] = {0x80,        0xff, 0, 1, 0xff, 0xff, 0xff, 0xff, [12] = 0x42, 0, (uint8_t)(psv >> 8),
				 (uint8_t)psv};

	configure_with(signature_key, bsf);
}

/*
 * The network duplicates a READ after the peer has its data and its message, and the program has queried the error. The
 * second request is answered, but errors found in the memory by then are not reported (mlx5dv_mkey_check(3): an error of
 * "using a MKEY … in a transfer operation").
 */
TEST(a_repeated_read_finds_no_error)
{
	static const struct wire_manner pieces = {.most = 4096, .window = 8192};
	const struct mlx5_wqe_data_seg sink = data_segment(&device, SOURCE, 512);
	struct wire_packet *request;
	struct mlx5dv_mkey_err error;

	start();
	wire_behave(&pieces);
	configure_signature_of_memory();
	put_rdma_of(&client, MLX5_OPCODE_RDMA_READ, &sink, 1, signature_key, 0);
	request = wire_take();
	assert_non_null(request);
	wire_receive(request);
	wire_settle();
	expect_cqe(&client_cq, 0, 0);
	hca_mkey_take_error(signature_key, &error);
	assert_int_equal(error.err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
	wire_receive(request);
	assert_true(wire_deliver()); /* the response */
	wire_settle();
	hca_mkey_take_error(signature_key, &error);
	assert_int_equal(error.err_type, MLX5DV_MKEY_NO_ERR);
	free(request);
	expect_no_more();
}

int main(void)
{
	return run_cases(.setup = set_up, .teardown = tear_down);
}
