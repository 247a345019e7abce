/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys with a cipher over a wire that splits messages into packets: data units that begin in one packet and end in
 * another, messages that end inside a unit, each packet in turn lost, duplicated or overtaken. Expected bytes come from
 * xts_model.h.
 */
#include "test_case.h"

#include "block/cipher.h"
#include "../support/wire_fixture.h"
#include "../support/xts_model.h"
#include "../support/mishap.h"

enum {
	KEY_BYTES = 32,
	PIECES = 3,
	UMR_BLOCKS = 4,
	PLAIN = 64, /* memory of the client for the bytes of the wire */
};

static struct mkey *key;
static uint32_t dek;
static struct dek_attr dek_attr = {.key_bytes = KEY_BYTES};

/* A key over three pieces of the server's half, configured anew for each message. */
struct setup {
	uint32_t selector, unit; /* mlx5-formats 1.11: block-size selector, and its bytes */
	uint8_t order;           /* 1.12 */
	uint32_t length;         /* of the key */
};

static uint32_t piece_start(int piece)
{
	static const uint32_t starts[PIECES] = {HALF + 20001, HALF + 100, HALF + 9003};

	return starts[piece];
}

static uint32_t piece_bytes(const struct setup *setup, int piece)
{
	uint32_t first = setup->length / 3 + 1, second = setup->length / 4;

	return piece == 0 ? first : piece == 1 ? second : setup->length - first - second;
}

/* Returns the offset of byte @at of the key in the device's memory. */
static uint32_t place_in_memory(const struct setup *setup, uint32_t at)
{
	for (int i = 0; i < PIECES - 1; i++) {
		if (at < piece_bytes(setup, i))
			return piece_start(i) + at;
		at -= piece_bytes(setup, i);
	}
	return piece_start(PIECES - 1) + at;
}

static int set_up(void **state)
{
	struct hca_mkey_attr attr = {.max_entries = 4, .bsf_octowords = 4, .cipher = true};

	wire_open(state);
	for (int i = 0; i < KEY_BYTES; i++)
		dek_attr.key[i] = (uint8_t)(i * 11 + 3);
	dek_attr.pd = hca_pd_number(device.pd);
	assert_int_equal(dek_create(device.hca, &dek_attr, &dek), 0);
	assert_int_equal(hca_mkey_create(device.pd, &attr, &key), 0);
	return 0;
}

static int tear_down(void **state)
{
	assert_int_equal(hca_mkey_destroy(key), 0);
	assert_int_equal(dek_destroy(device.hca, dek), 0);
	return wire_close(state);
}

static void put_bytes(uint8_t *wqe, uint32_t offset, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		wqe[offset + (uint32_t)i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

static const uint8_t initial_tweak[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x21, 0x43};

/* Posts the UMR of mlx5-formats 1.8 with a list and a crypto BSF, on the server; completes without a packet. */
static void configure(const struct setup *setup)
{
	struct mlx5_wqe_ctrl_seg ctrl = ctrl_segment(&server, MLX5_OPCODE_UMR, 16);
	uint8_t wqe[256] = {0};

	ctrl.imm = htobe32(mkey_number(key));
	memcpy(wqe, &ctrl, sizeof(ctrl));
	put_bytes(wqe, 16, 0x80, 1);
	put_bytes(wqe, 20, 4, 2);
	put_bytes(wqe, 22, 4, 2);
	put_bytes(wqe, 24, 1 << 0 | 1 << 12 | 1 << 13 | 0xf << 18 | 1 << 29, 8);
	put_bytes(wqe, 66, 0x7c, 1);
	put_bytes(wqe, 68, 0xffffff00, 4);
	put_bytes(wqe, 76, 0x40000000, 4);
	put_bytes(wqe, 88, setup->length, 8);
	for (int i = 0; i < PIECES; i++) {
		put_bytes(wqe, 128 + 16 * (uint32_t)i, piece_bytes(setup, i), 4);
		put_bytes(wqe, 132 + 16 * (uint32_t)i, mkey_number(device.region), 4);
		put_bytes(wqe, 136 + 16 * (uint32_t)i, (uintptr_t)device.memory + piece_start(i), 8);
	}
	put_bytes(wqe, 192, 0x81, 1);
	put_bytes(wqe, 193, setup->order, 1);
	put_bytes(wqe, 196, 0xffffffff, 4);
	put_bytes(wqe, 200, setup->selector, 1);
	for (uint32_t i = 0; i < 16; i++)
		wqe[208 + i] = initial_tweak[i];
	put_bytes(wqe, 224, dek, 4);
	put_wqe(&server, wqe, 16, UMR_BLOCKS);
	ring(&server);
	expect_cqe(&server_cq, 0, 0);
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

static const struct operation {
	uint8_t opcode;
	bool by_client, out; /* of the key */
} operations[] = {
	{MLX5_OPCODE_RDMA_WRITE, true, false},     {MLX5_OPCODE_RDMA_READ, true, true},
	{MLX5_OPCODE_SEND, true, false},           {MLX5_OPCODE_RDMA_WRITE, false, true},
	{MLX5_OPCODE_RDMA_READ, false, false},     {MLX5_OPCODE_SEND, false, true},
	{MLX5_OPCODE_RDMA_WRITE_IMM, true, false},
};

#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

struct end_of_message {
	uint32_t key;
	uint64_t address;
};

static void post_receive_at(struct raw_qp *end, const struct end_of_message *at, uint32_t bytes)
{
	const struct mlx5_wqe_data_seg data = {htobe32(bytes), htobe32(at->key), htobe64(at->address)};

	memcpy(end->rq + ((end->receives % RQ_ENTRIES) << RQ_SHIFT), &data, sizeof(data));
	end->receives++;
	__atomic_store_n(&end->dbrec[MLX5_RCV_DBR], htobe32(end->receives), __ATOMIC_RELEASE);
	hca_qp_recv_doorbell(end->qp);
}

static void put_message(const struct operation *operation, uint32_t bytes)
{
	const struct end_of_message of_key = {mkey_number(key), 0};
	const struct end_of_message plain = {mkey_number(device.region), (uintptr_t)device.memory + PLAIN};
	const struct end_of_message *own = operation->by_client ? &plain : &of_key;
	const struct end_of_message *other = operation->by_client ? &of_key : &plain;
	struct raw_qp *poster = operation->by_client ? &client : &server;
	bool rdma = operation->opcode != MLX5_OPCODE_SEND;
	struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		uint8_t rest[2 * 16];
	} wqe = {.ctrl = ctrl_segment(poster, operation->opcode, rdma ? 3 : 2)};
	struct mlx5_wqe_raddr_seg raddr = {.raddr = htobe64(other->address), .rkey = htobe32(other->key)};
	struct mlx5_wqe_data_seg data = {htobe32(bytes), htobe32(own->key), htobe64(own->address)};

	if (!rdma || operation->opcode == MLX5_OPCODE_RDMA_WRITE_IMM)
		post_receive_at(operation->by_client ? &server : &client, other, bytes);
	if (rdma)
		memcpy(wqe.rest, &raddr, sizeof(raddr));
	memcpy(wqe.rest + (rdma ? 16 : 0), &data, sizeof(data));
	put_wqe(poster, &wqe, rdma ? 3 : 2, 1);
	ring(poster);
}

/* Expected content of the memory. */
static uint8_t expected[sizeof(device.memory)];

/* Computes the @bytes of the wire from those of the key, or the reverse, depending on the direction of the data. */
static void expect_message(const struct setup *setup, const struct operation *operation, uint32_t bytes)
{
	bool encrypts_on_tx = setup->order == 0 || setup->order == 2;
	static uint8_t from[HALF], to[HALF];
	uint8_t tweak[16];

	memcpy(tweak, initial_tweak, sizeof(tweak));
	for (uint32_t i = 0; i < bytes; i++)
		from[i] = expected[operation->out ? place_in_memory(setup, i) : PLAIN + i];
	for (uint32_t at = 0; at < bytes; at += setup->unit, model_increment(tweak))
		model_unit(dek_attr.key, KEY_BYTES, encrypts_on_tx == operation->out, tweak, to + at, from + at,
			   bytes - at < setup->unit ? bytes - at : setup->unit);
	for (uint32_t i = 0; i < bytes; i++)
		expected[operation->out ? PLAIN + i : place_in_memory(setup, i)] = to[i];
}

/* Transfers a message, with @filter applied to the packets. */
static void message(const struct setup *setup, const struct operation *operation, uint32_t bytes, enum ibv_mtu mtu,
		    wire_filter *filter, void *argument)
{
	struct ibv_qp_attr options = wire_options();

	options.path_mtu = mtu;
	wire_connect(&options, filter, argument);
	memcpy(expected, device.memory, sizeof(expected));
	configure(setup);
	put_message(operation, bytes);
	wire_settle();
	if (hca_qp_state(client.qp) != IBV_QPS_RTS || hca_qp_state(server.qp) != IBV_QPS_RTS)
		fail_msg("operation %#x by the %s, order %u, %u bytes in units of %u: an end is in error",
			 operation->opcode, operation->by_client ? "client" : "server", setup->order, bytes,
			 setup->unit);
	if (operation->by_client)
		expect_cqe(&client_cq, 0, 0);
	else
		expect_cqe(&server_cq, UMR_BLOCKS, 0);
	if (operation->opcode == MLX5_OPCODE_SEND || operation->opcode == MLX5_OPCODE_RDMA_WRITE_IMM)
		expect_cqe(operation->by_client ? &server_cq : &client_cq, 0, 0);
	expect_no_more();
	expect_message(setup, operation, bytes);
	for (size_t i = 0; i < sizeof(expected); i++)
		if (device.memory[i] != expected[i])
			fail_msg(
				"operation %#x by the %s, order %u, %u bytes in units of %u: byte %#zx is %02x, not %02x",
				operation->opcode, operation->by_client ? "client" : "server", setup->order, bytes,
				setup->unit, i, device.memory[i], expected[i]);
}

/* ---- splitting -------------------------------------------------------------------------------------------------- */

TEST(every_unit_cut_by_every_mtu)
{
	static const struct setup units[] = {
		{1, 512, 0, 0}, {2, 520, 0, 0}, {6, 4048, 0, 0}, {3, 4096, 0, 0}, {4, 4160, 0, 0}};

	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		uint32_t unit = units[u].unit;
		/*
		 * Lengths of the key: whole units, and a shorter last one. Lengths of messages: all of it, or whole
		 * blocks of AES.
		 */
		const uint32_t lengths[][2] = {{2 * unit, 2 * unit},
					       {unit + 100, unit + 100},
					       {2 * unit, unit},
					       {2 * unit, 16},
					       {2 * unit, unit + 240},
					       {2 * unit, unit + 304},
					       {2 * unit, unit / 16 * 16 - 16}};

		for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
			struct setup setup = units[u];

			setup.length = lengths[l][0];
			for (setup.order = 0; setup.order < 4; setup.order++)
				for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_1024; mtu++)
					for (size_t o = 0; o < OPERATIONS; o++)
						message(&setup, &operations[o], lengths[l][1], mtu, NULL, NULL);
		}
	}
}

/* ---- mishaps ---------------------------------------------------------------------------------------------------- */

TEST(each_packet_in_turn)
{
	for (int verdict = WIRE_DROP; verdict <= WIRE_DELAY; verdict++) {
		for (uint8_t order = 0; order < 4; order++) {
			for (size_t o = 0; o < OPERATIONS; o++) {
				const struct setup setup = {2, 520, order, 1700};
				struct mishap mishap = {.verdict = verdict};

				while (mishap_next(&mishap)) {
					message(&setup, &operations[o], 1700, IBV_MTU_256, mishap_filter, &mishap);
				}
				assert_true(mishap.number > 7);
			}
		}
	}
}

TEST(bad_weather)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct wire_dice dice = {
			.state = seed, .drop = 8, .twice = 8, .delay = 8, .transports = 1u << IBV_QPT_RC};
		const struct setup setup = {3, 4096, seed % 4, 8192};

		message(&setup, &operations[seed % OPERATIONS], seed % 5 ? 8192 : 4096 + 1024 + 32, IBV_MTU_512,
			wire_dice, &dice);
	}
}

int main(void)
{
	return run_cases(.setup = set_up, .teardown = tear_down);
}
