/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests keys made by command, CREATE_MKEY: lists of other keys (KLM), entries of a fixed size (KSM), memory of a umem (MTT);
 * their initial state, and changes by UMRs in rings made by command. The keys belong to the server's context, the client issues
 * the requests.
 */
#include "kernel_has.h"
#include "support/devx.h"

enum { LIST = 2, FIXED_ENTRIES = 3, MEMORY = 1 };

/* Access rights and other bits of the word at byte 16 of the context. */
enum {
	LOCAL_READ = 1 << 10,
	LOCAL_WRITE = 1 << 11,
	REMOTE_READ = 1 << 12,
	REMOTE_WRITE = 1 << 13,
	ATOMIC = 1 << 14,
	UMR = 1 << 15,
	FREE = 1 << 30,
	ALL_RIGHTS = LOCAL_READ | LOCAL_WRITE | REMOTE_READ | REMOTE_WRITE | ATOMIC,
};

enum { TAG = 0x42, PAGE = 4096, BYTES = 64, ENTRIES_AT = 272, ENTRY_BYTES = 16 };

/* syndromes of error CQEs: IBV_WC_* have other numbers (mlx5-formats 3.4) */
enum { LOCAL_PROTECTION_ERROR = 0x04, BIND_ERROR = 0x06, REMOTE_ACCESS_ERROR = 0x13, REMOTE_OPERATION_ERROR = 0x14 };

struct key {
	struct mlx5dv_devx_obj *object;
	uint32_t number;
};

static struct own requester, responder;

static void connect_both(void)
{
	own_open(&requester, &client, 0);
	own_open(&responder, &server, 0);
	own_connect(&requester, &responder);
	own_connect(&responder, &requester);
}

static void close_both(void)
{
	own_close(&responder);
	own_close(&requester);
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

static struct command key_command(uint32_t mode, uint32_t bits, uint64_t start, uint64_t length)
{
	struct command command = command_of(0x200);

	put32(command.in, 16, bits | mode << 8);
	put32(command.in, 20, 0xffffffu << 8 | TAG);
	put32(command.in, 28, pd_number(server.pd));
	put64(command.in, 32, start);
	put64(command.in, 40, length);
	put32(command.in, 68, 8);
	return command;
}

static void put_entry(struct command *command, uint32_t index, uint32_t bytes, uint32_t key, uint64_t address)
{
	size_t at = ENTRIES_AT + (size_t)index * ENTRY_BYTES;

	put32(command->in, at, bytes);
	put32(command->in, at + 4, key);
	put64(command->in, at + 8, address);
	put32(command->in, 96, index + 1);
}

static struct key create_key(struct command *command)
{
	uint32_t given = get32(command->in, 96);
	struct key key = {.object = create(server.context, command, ENTRIES_AT + (size_t)given * ENTRY_BYTES)};

	assert_non_null(key.object);
	assert_int_equal(get32(command->out, 4), 0);
	assert_int_equal(get32(command->out, 8) >> 24, 0);
	key.number = created_number(command) << 8 | (get32(command->in, 20) & 0xff);
	return key;
}

static void destroy_key(const struct key *key)
{
	expect_error(mlx5dv_devx_obj_destroy(key->object), 0);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static void expect_done(struct own *own)
{
	struct mlx5_cqe64 cqe = own_next_cqe(own);

	assert_int_equal(cqe.op_own >> 4, MLX5_CQE_REQ);
}

/* Expects an error CQE. The QP is then in the error state: the case ends, or makes another one. */
static void expect_refused(struct own *own, uint8_t syndrome)
{
	struct mlx5_cqe64 cqe = own_next_cqe(own);

	assert_int_equal(cqe.op_own >> 4, MLX5_CQE_REQ_ERR);
	assert_int_equal(((const struct mlx5_err_cqe *)&cqe)->syndrome, syndrome);
}

static void write_to(uint64_t remote, uint32_t key, size_t from, uint32_t bytes)
{
	own_request(&requester, MLX5_OPCODE_RDMA_WRITE, remote, key, side_address(&client, from), bytes, 0);
}

/* Expects the key to refuse a request, on separate queue pairs. */
static void expect_access_refused(uint8_t opcode, uint64_t remote, uint32_t key, uint32_t bytes)
{
	connect_both();
	own_request(&requester, opcode, remote, key, side_address(&client, 0), bytes, 0);
	expect_refused(&requester, REMOTE_ACCESS_ERROR);
	close_both();
}

static void expect_written(size_t from, size_t to, size_t bytes)
{
	memcpy(server.expected + to, client.memory + from, bytes);
	assert_memory_equal(server.memory + to, client.memory + from, bytes);
}

/* Posts a UMR of the responder with @mask and @context in the WQE. */
static void post_umr(uint32_t number, uint8_t flags, uint64_t mask, const struct mlx5_wqe_mkey_context_seg *context,
		     const struct mlx5_wqe_umr_klm_seg *entries, uint32_t count)
{
	struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		struct mlx5_wqe_umr_ctrl_seg umr;
		struct mlx5_wqe_mkey_context_seg context;
		struct mlx5_wqe_umr_klm_seg entries[4];
	} wqe = {
		.ctrl = {.fm_ce_se = 8, .imm = htobe32(number)},
		.umr = {.flags = flags | 0x80, .klm_octowords = htobe16(count ? 4 : 0), .mkey_mask = htobe64(mask)},
		.context = *context,
	};

	if (count)
		memcpy(wqe.entries, entries, count * sizeof(*entries));
	own_post(&responder, 0x25, &wqe, count ? sizeof(wqe) : offsetof(__typeof__(wqe), entries));
}

/* ---- keys as created -------------------------------------------------------------------------------------------- */

TEST(list)
{
	uint64_t start = 0x7000000000000123;
	struct command command = key_command(LIST, ALL_RIGHTS, start, 3 * BYTES);
	struct key key;

	put_entry(&command, 0, 2 * BYTES, server.mr->lkey, side_address(&server, PAGE + 3));
	put_entry(&command, 1, BYTES, server.mr->lkey, side_address(&server, 0));
	key = create_key(&command);
	connect_both();
	write_to(start, key.number, 0, 3 * BYTES);
	expect_done(&requester);
	expect_written(0, PAGE + 3, 2 * BYTES);
	expect_written(2 * (size_t)BYTES, 0, BYTES);
	/* A READ, across the boundary of two entries. */
	own_request(&requester, MLX5_OPCODE_RDMA_READ, start + BYTES, key.number, side_address(&client, PAGE),
		    2 * BYTES, 0);
	expect_done(&requester);
	memcpy(client.expected + PAGE, server.memory + PAGE + 3 + BYTES, BYTES);
	memcpy(client.expected + PAGE + BYTES, server.memory, BYTES);
	side_compare(&client);
	close_both();
	/* Accesses outside its range, with another tag, or after its destruction fail. */
	expect_access_refused(MLX5_OPCODE_RDMA_WRITE, start - 1, key.number, BYTES);
	expect_access_refused(MLX5_OPCODE_RDMA_WRITE, start + 1, key.number, 3 * BYTES);
	expect_access_refused(MLX5_OPCODE_RDMA_WRITE, start, key.number ^ 1, BYTES);
	destroy_key(&key);
	expect_access_refused(MLX5_OPCODE_RDMA_WRITE, start, key.number, BYTES);
}

/* Tests lengths above and below the sum of the entries. */
TEST(lengths)
{
	struct command command = key_command(LIST, ALL_RIGHTS, 0, 2 * BYTES);
	struct key key;

	put_entry(&command, 0, BYTES, server.mr->lkey, side_address(&server, 0));
	key = create_key(&command);
	expect_access_refused(MLX5_OPCODE_RDMA_WRITE, 0, key.number, BYTES + 1);
	destroy_key(&key);
	put32(command.in, 44, BYTES / 2);
	key = create_key(&command);
	expect_access_refused(MLX5_OPCODE_RDMA_WRITE, 0, key.number, BYTES / 2 + 1);
	destroy_key(&key);
	/* No entries, or only invalid ones. */
	put32(command.in, 96, 0);
	key = create_key(&command);
	expect_access_refused(MLX5_OPCODE_RDMA_WRITE, 0, key.number, 1);
	destroy_key(&key);
	memset(command.in + ENTRIES_AT, 0, 8 * ENTRY_BYTES);
	put32(command.in, 96, 8);
	key = create_key(&command);
	expect_access_refused(MLX5_OPCODE_RDMA_WRITE, 0, key.number, 1);
	destroy_key(&key);
	/* Entries beyond the region that they name, and of a key that does not exist. */
	put_entry(&command, 0, BYTES, server.mr->lkey, side_address(&server, SIDE_BYTES - BYTES / 2));
	put32(command.in, 44, BYTES);
	key = create_key(&command);
	expect_access_refused(MLX5_OPCODE_RDMA_WRITE, 0, key.number, BYTES);
	destroy_key(&key);
	put_entry(&command, 0, BYTES, 0xffffff00, side_address(&server, 0));
	key = create_key(&command);
	expect_access_refused(MLX5_OPCODE_RDMA_WRITE, 0, key.number, BYTES);
	destroy_key(&key);
}

/*
 * Maps pages in another order; an entry's index determines its address, and byte counts are ignored. The first byte of the key is
 * inside a page.
 */
TEST(fixed_entries)
{
	static const uint32_t pages[] = {2, 0, 3, 1};
	uint64_t start = 0x123456789;
	struct command command = key_command(FIXED_ENTRIES, ALL_RIGHTS, start, 4 * PAGE);
	struct key key;

	put32(command.in, 72, 12);
	for (uint32_t i = 0; i < 4; i++)
		put_entry(&command, i, i, server.mr->lkey, side_address(&server, (size_t)pages[i] * PAGE));
	key = create_key(&command);
	connect_both();
	write_to(start, key.number, 0, 4 * PAGE);
	expect_done(&requester);
	for (size_t i = 0; i < 4; i++)
		expect_written(i * PAGE, (size_t)pages[i] * PAGE, PAGE);
	/* From the middle of one page to the middle of the next. */
	write_to(start + PAGE / 2, key.number, 5 * PAGE, PAGE);
	expect_done(&requester);
	expect_written(5 * PAGE, 2 * PAGE + PAGE / 2, PAGE / 2);
	expect_written(5 * PAGE + PAGE / 2, 0, PAGE / 2);
	side_compare(&server);
	close_both();
	destroy_key(&key);
	/* An entry that names no key is a hole; the other entries stay usable. */
	put32(command.in, ENTRIES_AT + ENTRY_BYTES + 4, 0);
	key = create_key(&command);
	connect_both();
	write_to(start + 2 * PAGE, key.number, PAGE, 2 * PAGE);
	expect_done(&requester);
	expect_written(PAGE, 3 * PAGE, PAGE);
	expect_written(2 * PAGE, PAGE, PAGE);
	write_to(start + PAGE, key.number, 0, 1);
	expect_refused(&requester, REMOTE_ACCESS_ERROR);
	close_both();
	destroy_key(&key);
}

/*
 * Makes keys as UCX does for atomics: one entry of 2 GiB covers a region at an address shifted by a few bytes, so that the same
 * counter has a second address.
 */
TEST(atomics)
{
	uint64_t counter = 0x1122334455667788, shifted = side_address(&server, 0) + 24, before;
	struct command command = key_command(FIXED_ENTRIES, ALL_RIGHTS, shifted, SIDE_BYTES);
	struct key key;

	put32(command.in, 72, 31);
	put_entry(&command, 0, 0, server.mr->lkey, side_address(&server, 0));
	key = create_key(&command);
	connect_both();
	memcpy(server.memory + 128, &counter, sizeof(counter));
	own_atomic(&requester, MLX5_OPCODE_ATOMIC_FA, shifted + 128, key.number, side_address(&client, 0), 5, 0);
	expect_done(&requester);
	memcpy(&before, client.memory, sizeof(before));
	assert_int_equal(before, counter);
	own_atomic(&requester, MLX5_OPCODE_ATOMIC_CS, shifted + 128, key.number, side_address(&client, 8), 99,
		   counter + 5);
	expect_done(&requester);
	memcpy(&before, client.memory + 8, sizeof(before));
	assert_int_equal(before, counter + 5);
	counter = 99;
	assert_memory_equal(server.memory + 128, &counter, sizeof(counter));
	memcpy(server.expected + 128, &counter, sizeof(counter));
	memcpy(client.expected, client.memory, 16);
	/* The last eight bytes of the region, and the eight after it. */
	own_atomic(&requester, MLX5_OPCODE_ATOMIC_FA, shifted + SIDE_BYTES - 8, key.number, side_address(&client, 0), 0,
		   0);
	expect_done(&requester);
	memcpy(client.expected, server.memory + SIDE_BYTES - 8, 8);
	own_atomic(&requester, MLX5_OPCODE_ATOMIC_FA, shifted + SIDE_BYTES, key.number, side_address(&client, 0), 0, 0);
	expect_refused(&requester, REMOTE_ACCESS_ERROR);
	close_both();
	destroy_key(&key);
}

/* Each access right has its own bit; the memory of the entries has its own rights, too. */
TEST(rights)
{
	static const struct {
		uint32_t without;
		uint8_t opcode;
	} needs[] = {
		{REMOTE_WRITE, MLX5_OPCODE_RDMA_WRITE},
		{REMOTE_READ, MLX5_OPCODE_RDMA_READ},
	};
	struct command command;
	struct key key;

	for (size_t i = 0; i < 2; i++) {
		command = key_command(LIST, ALL_RIGHTS & ~needs[i].without, 0, BYTES);
		put_entry(&command, 0, BYTES, server.mr->lkey, side_address(&server, 0));
		key = create_key(&command);
		expect_access_refused(needs[i].opcode, 0, key.number, BYTES);
		destroy_key(&key);
	}
	command = key_command(LIST, ALL_RIGHTS & ~ATOMIC, 0, BYTES);
	put_entry(&command, 0, BYTES, server.mr->lkey, side_address(&server, 0));
	key = create_key(&command);
	connect_both();
	own_atomic(&requester, MLX5_OPCODE_ATOMIC_FA, 0, key.number, side_address(&client, 0), 1, 0);
	expect_refused(&requester, REMOTE_ACCESS_ERROR);
	close_both();
	destroy_key(&key);
	/* Local rights: the poster gathers from the key. */
	command = key_command(LIST, ALL_RIGHTS & ~LOCAL_READ, 0, BYTES);
	put_entry(&command, 0, BYTES, server.mr->lkey, side_address(&server, 0));
	key = create_key(&command);
	connect_both();
	own_request_of(&responder, key.number, MLX5_OPCODE_RDMA_WRITE, side_address(&client, 0), client.mr->rkey, 0,
		       BYTES, 0);
	expect_refused(&responder, LOCAL_PROTECTION_ERROR);
	close_both();
	destroy_key(&key);
}

/* A key restricted to one queue pair. */
TEST(of_one_qp)
{
	struct command command = key_command(LIST, ALL_RIGHTS, 0, BYTES);
	struct key key;

	connect_both();
	put_entry(&command, 0, BYTES, server.mr->lkey, side_address(&server, 0));
	put32(command.in, 20, responder.qpn << 8 | TAG);
	key = create_key(&command);
	write_to(0, key.number, 0, BYTES);
	expect_done(&requester);
	expect_written(0, 0, BYTES);
	destroy_key(&key);
	put32(command.in, 20, (responder.qpn ^ 1) << 8 | TAG);
	key = create_key(&command);
	write_to(0, key.number, 0, BYTES);
	expect_refused(&requester, REMOTE_ACCESS_ERROR);
	close_both();
	destroy_key(&key);
}

/* ---- memory of a umem ------------------------------------------------------------------------------------------- */

TEST(memory)
{
	uint64_t start = 0x5000 + ((uintptr_t)(server.memory + 2 * PAGE) % PAGE);
	struct mlx5dv_devx_umem *umem =
		mlx5dv_devx_umem_reg(server.context, server.memory, SIDE_BYTES, IBV_ACCESS_LOCAL_WRITE);
	struct command command = key_command(MEMORY, ALL_RIGHTS, start, 2 * PAGE), right;
	struct key key;

	assert_non_null(umem);
	put32(command.in, 100, umem->umem_id);
	put64(command.in, 104, 2 * PAGE);
	right = command;
	key = create_key(&command);
	expect_error(mlx5dv_devx_umem_dereg(umem), EBUSY);
	connect_both();
	write_to(start, key.number, 0, 2 * PAGE);
	expect_done(&requester);
	expect_written(0, 2 * PAGE, 2 * PAGE);
	side_compare(&server);
	own_atomic(&requester, MLX5_OPCODE_ATOMIC_FA, start, key.number, side_address(&client, 0), 1, 0);
	expect_done(&requester);
	memcpy(client.expected, server.expected + 2 * PAGE, 8);
	++*(uint64_t *)(void *)(server.expected + 2 * PAGE);
	side_compare(&server);
	close_both();
	expect_access_refused(MLX5_OPCODE_RDMA_WRITE, start + 2 * PAGE - 1, key.number, 2);
	destroy_key(&key);
	refuse_each(server.context, &right, ENTRIES_AT,
		    (const struct wrong[]){
			    {16, ALL_RIGHTS | UMR | MEMORY << 8, 3, 954},
			    {28, 1u << 30 | pd_number(server.pd), 3, 954}, /* bsf_en */
			    {36, (uint32_t)start + 8, 3, 954},             /* other offset in its page */
			    {44, SIDE_BYTES, 3, 956},
			    {40, 0xffffffff, 3, 956},
			    {104, 0xffffffff, 3, 956},
			    {100, 0, 5, 955},
		    },
		    7);
	expect_error(mlx5dv_devx_umem_dereg(umem), 0);
}

/* Writes to read-only memory fail. */
TEST(memory_that_is_not_there)
{
	uint8_t *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct command command = key_command(MEMORY, ALL_RIGHTS, 0, PAGE);
	struct mlx5dv_devx_umem *umem;
	struct key key;

	assert_true(page != MAP_FAILED);
	if (!kernel_has_page_checks())
		skip();
	umem = mlx5dv_devx_umem_reg(server.context, page, PAGE, 0);
	assert_non_null(umem);
	put32(command.in, 100, umem->umem_id);
	refuse_each(server.context, &command, ENTRIES_AT,
		    (const struct wrong[]){
			    {16, LOCAL_READ | LOCAL_WRITE | MEMORY << 8, 3, 960},
			    {16, LOCAL_READ | REMOTE_WRITE | MEMORY << 8, 3, 960},
			    {16, LOCAL_READ | ATOMIC | MEMORY << 8, 3, 960},
		    },
		    3);
	put32(command.in, 16, LOCAL_READ | REMOTE_READ | MEMORY << 8);
	key = create_key(&command);
	destroy_key(&key);
	munmap(page, PAGE);
	refuse_each(server.context, &command, ENTRIES_AT, (const struct wrong[]){{96, 0, 3, 960}}, 1);
	expect_error(mlx5dv_devx_umem_dereg(umem), 0);
}

/* ---- UMRs ------------------------------------------------------------------------------------------------------- */

#define SET_LIVE (MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE)

/*
 * Uses keys as SPDK does: created free, with rights; a UMR of only length and entries makes the key live, another one frees it.
 */
TEST(configured)
{
	struct command command = key_command(LIST, ALL_RIGHTS | UMR | FREE, 0, 0);
	struct mlx5_wqe_mkey_context_seg live = {.len = htobe64(2 * BYTES)};
	struct mlx5_wqe_mkey_context_seg freed = {.free = MLX5_WQE_MKEY_CONTEXT_FREE};
	struct mlx5_wqe_umr_klm_seg entries[2] = {
		{htobe32(BYTES), htobe32(server.mr->lkey), htobe64(side_address(&server, PAGE))},
		{htobe32(BYTES), htobe32(server.mr->lkey), htobe64(side_address(&server, 0))},
	};
	struct key key;

	put32(command.in, 68, 128);
	key = create_key(&command);
	expect_access_refused(MLX5_OPCODE_RDMA_WRITE, 0, key.number, 1);
	connect_both();
	for (size_t round = 0; round < 3; round++) {
		post_umr(key.number, 0, SET_LIVE, &live, entries, 2);
		expect_done(&responder);
		write_to(0, key.number, round * PAGE, 2 * BYTES);
		expect_done(&requester);
		expect_written(round * PAGE, PAGE, BYTES);
		expect_written(round * PAGE + BYTES, 0, BYTES);
		/* The rights remain those of the command, however often it is freed. */
		post_umr(key.number, 0, MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE, &freed, NULL, 0);
		expect_done(&responder);
	}
	write_to(0, key.number, 0, 1);
	expect_refused(&requester, REMOTE_ACCESS_ERROR);
	close_both();
	/* A UMR must name a live key with its tag. */
	connect_both();
	post_umr(key.number, 0, SET_LIVE, &live, entries, 2);
	expect_done(&responder);
	post_umr(key.number ^ 1, 0, SET_LIVE, &live, entries, 2);
	expect_refused(&responder, BIND_ERROR);
	close_both();
	destroy_key(&key);
}

/* Configures entries of a fixed size by a UMR: the size is that of the key. */
TEST(fixed_entries_configured)
{
	struct command command = key_command(FIXED_ENTRIES, ALL_RIGHTS | UMR | FREE, 0, 0);
	struct mlx5_wqe_mkey_context_seg live = {.len = htobe64(2 * PAGE)};
	struct mlx5_wqe_umr_klm_seg entries[2] = {
		{0, htobe32(server.mr->lkey), htobe64(side_address(&server, 3 * PAGE))},
		{htobe32(1), htobe32(server.mr->lkey), htobe64(side_address(&server, PAGE))},
	};
	struct key key;

	put32(command.in, 72, 12);
	key = create_key(&command);
	connect_both();
	post_umr(key.number, 0, SET_LIVE, &live, entries, 2);
	expect_done(&responder);
	write_to(0, key.number, 0, 2 * PAGE);
	expect_done(&requester);
	expect_written(0, 3 * PAGE, PAGE);
	expect_written(PAGE, PAGE, PAGE);
	side_compare(&server);
	close_both();
	destroy_key(&key);
}

/*
 * klm_octowords of a UMR is a multiple of 4 (mlx5-formats 1.8). Adapters accept such a UMR for a key created with fewer
 * translation octowords.
 */
TEST(few_octowords)
{
	struct mlx5_wqe_mkey_context_seg live = {.len = htobe64(BYTES)};
	struct mlx5_wqe_umr_klm_seg entry = {htobe32(BYTES), htobe32(server.mr->lkey),
					     htobe64(side_address(&server, PAGE))};

	connect_both();
	for (uint32_t octowords = 1; octowords < 4; octowords++) {
		struct command command = key_command(LIST, ALL_RIGHTS | UMR | FREE, 0, 0);
		struct key key;

		put32(command.in, 68, octowords);
		key = create_key(&command);
		post_umr(key.number, 0, SET_LIVE, &live, &entry, 1);
		expect_done(&responder);
		write_to(0, key.number, octowords * PAGE, BYTES);
		expect_done(&requester);
		expect_written(octowords * PAGE, PAGE, BYTES);
		destroy_key(&key);
	}
	close_both();
}

/* A UMR fails on a key without umr_en, with more entries than there is room for, or of another domain. */
TEST(not_configured)
{
	struct mlx5_wqe_mkey_context_seg live = {.len = htobe64(BYTES)};
	struct mlx5_wqe_umr_klm_seg entries[2] = {
		{htobe32(BYTES), htobe32(server.mr->lkey), htobe64(side_address(&server, 0))}};
	struct command command;
	struct key key;

	command = key_command(LIST, ALL_RIGHTS, 0, 0);
	key = create_key(&command);
	connect_both();
	post_umr(key.number, 0, SET_LIVE, &live, entries, 1);
	expect_refused(&responder, BIND_ERROR);
	close_both();
	destroy_key(&key);
	command = key_command(LIST, ALL_RIGHTS | UMR, 0, 0);
	put32(command.in, 68, 0);
	key = create_key(&command);
	connect_both();
	post_umr(key.number, 0, SET_LIVE, &live, entries, 1);
	expect_refused(&responder, BIND_ERROR);
	close_both();
	destroy_key(&key);
	{
		struct command domain = command_of(0x800);
		struct mlx5dv_devx_obj *pd = create(server.context, &domain, 16);

		assert_non_null(pd);
		command = key_command(LIST, ALL_RIGHTS | UMR, 0, 0);
		put32(command.in, 28, created_number(&domain));
		key = create_key(&command);
		expect_error(mlx5dv_devx_obj_destroy(pd), EREMOTEIO);
		connect_both();
		post_umr(key.number, 0, SET_LIVE, &live, entries, 1);
		expect_refused(&responder, BIND_ERROR);
		close_both();
		destroy_key(&key);
		expect_error(mlx5dv_devx_obj_destroy(pd), 0);
	}
}

/* Returns the responder's CQE of a SEND that invalidates @key. The sender always succeeds (IBTA 9.9.6.3, class J). */
static struct mlx5_cqe64 send_with_invalidate(const struct key *key)
{
	connect_both();
	own_receive(&responder, side_address(&server, PAGE), BYTES);
	own_request(&requester, MLX5_OPCODE_SEND_INVAL, 0, 0, side_address(&client, 0), BYTES, key->number);
	expect_done(&requester);
	return own_next_cqe(&responder);
}

/* SEND with invalidate works only on a key that permits it. */
TEST(invalidated_from_afar)
{
	struct command command = key_command(LIST, ALL_RIGHTS, 0, BYTES);
	struct mlx5_cqe64 cqe;
	struct key key;

	put_entry(&command, 0, BYTES, server.mr->lkey, side_address(&server, 0));
	put32(command.in, 28, 1u << 24 | pd_number(server.pd));
	key = create_key(&command);
	cqe = send_with_invalidate(&key);
	assert_int_equal(cqe.op_own >> 4, MLX5_CQE_RESP_SEND_INV);
	assert_int_equal(be32toh(cqe.imm_inval_pkey), key.number);
	expect_written(0, PAGE, BYTES);
	write_to(0, key.number, 0, BYTES);
	expect_refused(&requester, REMOTE_ACCESS_ERROR);
	close_both();
	destroy_key(&key);
	put32(command.in, 28, pd_number(server.pd));
	key = create_key(&command);
	assert_int_equal(send_with_invalidate(&key).op_own >> 4, MLX5_CQE_RESP_ERR);
	close_both();
	destroy_key(&key);
}

/* ---- refused commands ------------------------------------------------------------------------------------------- */

TEST(wrong_keys)
{
	uint32_t pdn = pd_number(server.pd), bits = ALL_RIGHTS | UMR;
	struct command command = key_command(LIST, bits, 0, BYTES), fixed;

	put_entry(&command, 0, BYTES, server.mr->lkey, side_address(&server, 0));
	refuse_each(server.context, &command, ENTRIES_AT + ENTRY_BYTES,
		    (const struct wrong[]){
			    {16, bits, 3, 954}, /* access modes: physical memory, and others unsupported here */
			    {16, bits | 1u << 26 | MEMORY << 8, 3, 954},
			    {16, bits | 7u << 26 | LIST << 8, 3, 954},
			    {28, 1u << 31 | pdn, 3, 954}, /* length64 */
			    {28, 0xfffff0, 5, 955},
			    {68, 0x8001, 3, 954}, /* entries: more than a key may have; more than fit here */
			    {68, 0xffffffff, 3, 954},
			    {68, 0, 3, 954},
			    {96, 9, 3, 954},
			    {96, 0xffffffff, 3, 954},
			    {96, 2, 0x50, 950}, /* and more than the command has */
			    {96, 8, 0x50, 950},
			    {76, 1u << 27, 3, 954}, /* encryption without room for its setup; unknown encryption */
			    {76, 2u << 27, 3, 954},
		    },
		    14);
	expect_short(server.context, &command, ENTRIES_AT - 1);
	expect_short(server.context, &command, ENTRIES_AT + ENTRY_BYTES - 1);
	put32(command.in, 28, 1u << 30 | pdn);
	refuse_each(server.context, &command, ENTRIES_AT + ENTRY_BYTES,
		    (const struct wrong[]){
			    {48, 9, 3, 954}, /* octowords of block setups */
			    {48, 0x100, 3, 954},
			    {48, 0xffffffff, 3, 954},
		    },
		    3);
	put32(command.in, 48, 3);
	refuse_each(server.context, &command, ENTRIES_AT + ENTRY_BYTES, (const struct wrong[]){{76, 1u << 27, 3, 954}},
		    1);
	fixed = key_command(FIXED_ENTRIES, bits, 0, BYTES);
	refuse_each(server.context, &fixed, ENTRIES_AT, (const struct wrong[]){{72, 0, 3, 954}}, 1);
}

/* Creates a key of the maximum number of entries from memory that ends with them, or one byte earlier. */
TEST(entries_to_the_last_byte)
{
	enum { COUNT = 1 << 15, BEFORE = 2 * PAGE };
	size_t bytes = ENTRIES_AT + (size_t)COUNT * ENTRY_BYTES;
	size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
	uint8_t *map = mmap(NULL, pages + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *in = map + pages - bytes, out[16] = {0};
	struct command command = key_command(LIST, ALL_RIGHTS, 0, COUNT);
	struct mlx5dv_devx_obj *object;
	struct key key;

	assert_true(map != MAP_FAILED);
	assert_int_equal(mprotect(map + pages, PAGE, PROT_NONE), 0);
	put32(command.in, 68, COUNT);
	put32(command.in, 96, COUNT);
	memcpy(in, command.in, ENTRIES_AT);
	for (uint32_t i = 0; i < COUNT; i++) {
		uint8_t *entry = in + ENTRIES_AT + (size_t)i * ENTRY_BYTES;

		put32(entry, 0, 1);
		put32(entry, 4, server.mr->lkey);
		put64(entry, 8, side_address(&server, i % 2 ? PAGE + i / 2 : i / 2));
	}
	object = mlx5dv_devx_obj_create(server.context, in, bytes, out, 16);
	assert_non_null(object);
	key = (struct key){object, (get32(out, 8) & 0xffffff) << 8 | TAG};
	connect_both();
	write_to(COUNT - 2 * BYTES, key.number, 0, 2 * BYTES);
	expect_done(&requester);
	for (size_t i = 0; i < 2 * BYTES; i++) {
		size_t entry = COUNT - 2 * BYTES + i;

		server.expected[entry % 2 ? PAGE + entry / 2 : entry / 2] = client.memory[i];
	}
	side_compare(&server);
	close_both();
	destroy_key(&key);
	/* The end of the last entry is unmapped. */
	memmove(in + 1, in, bytes - 1);
	if (kernel_has_memory_copies())
		expect_null(mlx5dv_devx_obj_create(server.context, in + 1, bytes, out, 16), EFAULT);
	munmap(map, pages + PAGE);
}
