/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests faults within one process (softhca.h, docs/use/faults.md): reliable queue pairs deliver every byte and every completion
 * once, unreliable ones lose messages, signatures detect corruption in transit; invalid scripts are refused, and injected faults
 * are counted.
 */
#include "softhca.h"
#include "test_clock.h"
#include "support/signed_key.h"
#include "support/transfer.h"

#define IN_ENVIRONMENT "drop 1%; seed 3"

static void set_faults(const char *text)
{
	char error[512] = "";

	if (softhca_set_faults(client.context, text, error, sizeof(error)))
		fail_at(HERE, "%s: %s", text, error);
}

static void open_pair(enum ibv_qp_type type)
{
	struct pair_options options = pair_defaults(type);

	options.timeout = 13; /* 34 ms: a busy machine does not cause a timeout */
	options.retry_cnt = 7;
	options.rnr_retry = 7;
	options.min_rnr_timer = 1;
	pair_replace(&pair, &options);
}

static void traffic(int rounds)
{
	static const size_t lengths[] = {0, 1, 4096, 4097, 20000};

	for (int i = 0; i < rounds; i++) {
		size_t length = lengths[i % ARRAY_SIZE(lengths)];
		struct view here = view_memory(&client, 100 + (size_t)i, length);
		struct view there = view_memory(&server, 30000 + (size_t)i, length);
		struct view word = view_memory(&server, 512, 8), result = view_memory(&client, 40000, 8);

		expect_write(&pair, here, there, IBV_WC_SUCCESS);
		expect_write_imm(&pair, here, there, IBV_WC_SUCCESS);
		expect_read(&pair, here, there, IBV_WC_SUCCESS);
		expect_send(&pair, here, there, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
		expect_fetch_add(&pair, result, word, IBV_WC_SUCCESS);
		expect_compare_swap(&pair, result, word, i % 2, IBV_WC_SUCCESS);
		expect_idle(&pair.client);
		expect_idle(&pair.server);
	}
}

/* Returns the first number after @rule in the summary, as in "drop 1%: 3 of 250". */
static unsigned long applied(const char *rule)
{
	char summary[4096];
	const char *found;

	assert_in_range(softhca_fault_summary(client.context, summary, sizeof(summary)), 1, sizeof(summary) - 1);
	found = strstr(summary, rule);
	if (!found)
		fail_at(HERE, "no \"%s\" in: %s", rule, summary);
	return strtoul(found + strlen(rule) + 2, NULL, 10);
}

/* Runs as the first case: only the environment has set faults so far. */
TEST(the_environment_asks)
{
	char summary[512], *line;

	open_pair(IBV_QPT_RC);
	traffic(40);
	softhca_fault_summary(client.context, summary, sizeof(summary));
	line = strchr(summary, '\n');
	assert_memory_equal(line - strlen("seed 3"), "seed 3", strlen("seed 3"));
	assert_in_range(applied("drop 1%"), 1, 100);
	assert_int_equal(softhca_counter(client.context, "fault_dropped"), applied("drop 1%"));
}

TEST(reliable_in_spite_of_all)
{
	set_faults("drop 2%; duplicate 2%; reorder 2% by 2; corrupt frame 1%; delay 1us..50us 10%; rnr 20%; seed 11");
	open_pair(IBV_QPT_RC);
	traffic(40);
	assert_in_range(applied("drop 2%"), 1, 200);
	assert_in_range(applied("duplicate 2%"), 1, 200);
	assert_in_range(applied("reorder 2% by 2"), 1, 200);
	assert_in_range(applied("corrupt frame 1%"), 1, 200);
	assert_in_range(applied("delay 1us..50us 10%"), 1, 1000);
	assert_in_range(applied("rnr 20%"), 1, 200);
}

/* All requests are in flight at once; each completes once, in order. */
TEST(many_at_once)
{
	enum { COUNT = 50, BYTES = 600 };

	set_faults("drop 3%; duplicate 3%; reorder 3% by 3; seed 5");
	open_pair(IBV_QPT_RC);
	for (int round = 0; round < 20; round++) {
		side_stir(&client);
		side_stir(&server);
		for (int i = 0; i < COUNT; i++) {
			struct ibv_sge sge = side_sge(&client, (size_t)i * BYTES, BYTES);
			struct ibv_send_wr wr = rdma_wr((uint64_t)i, IBV_WR_RDMA_WRITE, &sge,
							side_address(&server, (size_t)i * BYTES), server.mr->rkey);

			post_send(&pair.client, &wr);
			memcpy(server.expected + SIDE_GUARD + i * BYTES, client.memory + i * BYTES, BYTES);
		}
		for (int i = 0; i < COUNT; i++)
			expect_completion(&pair.client, (uint64_t)i, IBV_WC_RDMA_WRITE);
		expect_idle(&pair.client);
		assert_memory_equal(server.memory, client.memory, COUNT * BYTES);
		memcpy(server.expected, server.memory, server.bytes);
	}
}

TEST(a_lost_connection)
{
	struct ibv_sge sge = side_sge(&client, 0, 64);
	struct ibv_send_wr wr = send_wr(0, IBV_WR_SEND, &sge);

	set_faults("from packet 2 drop");
	open_pair(IBV_QPT_RC);
	expect_write(&pair, view_memory(&client, 0, 64), view_memory(&server, 0, 64), IBV_WC_SUCCESS);
	post_send(&pair.client, &wr);
	expect_status(&pair.client, 0, IBV_WC_RETRY_EXC_ERR);
}

/* ---- signatures -------------------------------------------------------------------------------------------------- */

enum { BLOCKS = 8, RAW = BLOCKS * 512, STREAM = BLOCKS * 516 };

DOMAIN_CRC(crc32c, CRC32C, 512, 0xffffffff);

/* Corruption before the ICRC is computed arrives, and the guard does not match, whichever bit it was. */
TEST(signatures_detect_corruption)
{
	static const enum key_operation ways[] = {IN_RECV, IN_READ, IN_REMOTE_WRITE};
	struct pair_options options = signed_options();
	static uint8_t data[RAW], stream[STREAM];
	struct mlx5dv_mkey *mkey;
	struct layout layout;

	pair_replace(&pair, &options);
	mkey = side_create_signed_mkey(&server, 3);
	for (int i = 0; i < RAW; i++)
		data[i] = (uint8_t)(i * 5 + i / 512);
	domain_make_stream(&crc32c, data, RAW, stream);
	for (int i = 0; i < 60; i++) {
		struct mlx5dv_sig_block_attr attr = {.wire = &crc32c, .check_mask = 0xff};
		bool spoilt = i % 2;
		struct mlx5dv_mkey_err error;
		char text[64];

		lay_signed(mkey, &layout, domain_stream_bytes(NULL, RAW), &attr);
		snprintf(text, sizeof(text), "%s 1; seed %d", spoilt ? "corrupt payload" : "duplicate", i);
		set_faults(text);
		side_stir(&client);
		side_stir(&server);
		plain_store(SIGNED_PLAIN, stream, STREAM);
		transfer_signed(ways[i / 2 % 3], mkey->lkey, 0, SIGNED_PLAIN, STREAM);
		assert_int_equal(mlx5dv_mkey_check(mkey, &error), 0);
		assert_int_equal(error.err_type, spoilt ? MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD : MLX5DV_MKEY_NO_ERR);
		memcpy(client.expected, client.memory, client.bytes);
		memcpy(server.expected, server.memory, server.bytes);
	}
}

/* ---- unreliable queue pairs -------------------------------------------------------------------------------------- */

static uint32_t count_arrivals(void)
{
	uint32_t arrived = 0;
	struct ibv_wc wc;

	while (ibv_poll_cq(pair.server.cq, 1, &wc)) {
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		arrived++;
	}
	return arrived;
}

/*
 * Sends @count messages of 64 bytes, each after the fate of the previous one is known: over links other than the local one that
 * takes a while, and a message without a receive would be lost, too. Every one completes here. Returns the number that arrived.
 */
static uint32_t lossy_sends(uint32_t count)
{
	uint64_t dropped = softhca_counter(client.context, "fault_dropped");
	uint32_t arrived = 0, receives = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct ibv_sge to = side_sge(&server, 0, 256), from = side_sge(&client, 0, 64);
		struct ibv_send_wr wr = send_wr(i, IBV_WR_SEND, &from);

		if (pair.options.type == IBV_QPT_UD) {
			wr.wr.ud.ah = pair.client.ah;
			wr.wr.ud.remote_qpn = pair.server.qp->qp_num;
			wr.wr.ud.remote_qkey = PAIR_QKEY;
		}
		while (receives - arrived < PAIR_WRS)
			post_receive(&pair.server, receives++, &to, 1);
		post_send(&pair.client, &wr);
		expect_completion(&pair.client, i, IBV_WC_SEND);
		for (double until = seconds_now() + 10; seconds_now() < until;) {
			arrived += count_arrivals();
			if (arrived + softhca_counter(client.context, "fault_dropped") - dropped == i + 1)
				break;
		}
	}
	memcpy(server.expected, server.memory, server.bytes);
	return arrived;
}

TEST(unreliable_ones_lose)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		set_faults("drop 50%; seed 2");
		open_pair(types[i]);
		/* Expected value, plus or minus four standard deviations. */
		assert_in_range(lossy_sends(400), 160, 240);
		set_faults("of send drop 3");
		open_pair(types[i]);
		assert_int_equal(lossy_sends(20), 17);
	}
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

TEST(wrong_scripts)
{
	struct softhca_explanation last;
	char error[256], summary[256], before[256];

	set_faults("drop 0%; seed 9");
	softhca_fault_summary(client.context, before, sizeof(before));
	assert_int_equal(softhca_set_faults(client.context, "drop 1%;\n drip 2%", error, sizeof(error)), EINVAL);
	assert_memory_equal(error, "line 2, column 2: expected seed, ", 33);
	assert_int_equal(softhca_explanations(client.context, 0, &last, 1), 1);
	assert_string_equal(last.name, "FAULT_SCRIPT");
	assert_int_equal(last.figure[0], 2);
	assert_int_equal(last.figure[1], 2);
	assert_int_equal(softhca_set_faults(client.context, "/", error, sizeof(error)), EISDIR);
	assert_int_equal(softhca_explanations(client.context, 0, &last, 1), 1);
	assert_string_equal(last.name, "FAULT_FILE");
	assert_int_equal(softhca_set_faults(client.context, "drip", NULL, 0), EINVAL);
	assert_int_equal(softhca_check_faults("drip", error, 8), EINVAL);
	assert_string_equal(error, "line 1,");
	assert_int_equal(softhca_check_faults("drop", NULL, 0), 0);
	/* The faults are unchanged. */
	softhca_fault_summary(client.context, summary, sizeof(summary));
	assert_string_equal(summary, before);
	/* Returns the length of the whole text, however small the buffer. */
	assert_int_equal(softhca_fault_summary(client.context, NULL, 0), strlen(before));
	assert_int_equal(softhca_fault_summary(client.context, summary, 5), strlen(before));
	assert_string_equal(summary, "faul");
	set_faults("off");
	assert_int_equal(softhca_fault_summary(client.context, summary, sizeof(summary)), 0);
	assert_string_equal(summary, "");
}

TEST(counters)
{
	struct softhca_counter all[128];
	struct {
		struct softhca_counter known;
		uint64_t later;
	} longer[128];
	size_t count = softhca_counters(client.context, all, 128);

	assert_in_range(count, 40, 127);
	for (size_t i = 0; i < count; i++) {
		assert_non_null(all[i].name);
		assert_in_range(strlen(all[i].doc), 5, 200);
		assert_true(softhca_counter(client.context, all[i].name) >= all[i].value);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(all[i].name, all[j].name);
	}
	assert_true(softhca_counter(client.context, "fault_dropped") > 0);
	assert_true(softhca_counter(client.context, "no_such") == UINT64_MAX);
	assert_int_equal(softhca_counters(client.context, all, 3), 3);
	/* Structures of a header of another version. */
	memset(longer, 0xff, sizeof(longer));
	assert_int_equal(softhca_read_counters(client.context, &longer[0].known, 128, sizeof(longer[0])), count);
	assert_string_equal(longer[1].known.name, all[1].name);
	assert_int_equal(longer[1].later, 0);
	assert_int_equal(softhca_read_counters(client.context, (struct softhca_counter *)longer, 2, sizeof(char *)), 2);
	assert_string_equal(((const char **)longer)[1], all[1].name);
}

int main(void)
{
	setenv("SOFTHCA_FAULTS", IN_ENVIRONMENT, 1);
	return run_program();
}
