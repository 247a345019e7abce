/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the program protects, or truncates from its file, while it is registered (docs/inside/fidelity.md). On
 * every path to that memory, the explanation gives key, address and signal (rule 123) before the program's signal
 * handler is called. The handler was installed before the first device was opened. Each case runs in its own process,
 * which exits in the handler.
 */
#include "support/signed_key.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "softhca.h"

enum {
	PAGE = 4096,
	BYTES = 16 * PAGE,
	LONG = 12 * PAGE,
	MEMORY_FAULT = 123,
	RIGHT = 7,
	WRONG,
	NO_FAULT,
};

/* Memory of both sides that becomes inaccessible, and the key through which the device accesses it. */
static uint8_t *memory;
static struct ibv_mr *mr;
static uint32_t expected_key;
static int expected_signal;
static int file;

static bool is_right(const struct softhca_explanation *explanation, int signal, uintptr_t address)
{
	char text[1024], key[64], place[64], end[64], no_request[64];

	softhca_explanation_text(explanation, text, sizeof(text));
	snprintf(key, sizeof(key), ": key %#x is a memory region", expected_key);
	snprintf(place, sizeof(place), " at %#lx, byte ", (unsigned long)address);
	snprintf(end, sizeof(end), ": signal %d ends the process", signal);
	snprintf(no_request, sizeof(no_request), " qp %#x: ", explanation->qp_num);
	if (!strstr(text, no_request) && explanation->rule == MEMORY_FAULT && explanation->qp_num &&
	    strstr(text, key) && strstr(text, place) && strstr(text, end))
		return true;
	fprintf(stderr, "# %s\n", text);
	return false;
}

static void handle(int signal, siginfo_t *info, void *context)
{
	uintptr_t address = (uintptr_t)info->si_addr;
	struct softhca_explanation newest;

	(void)context;
	if (signal != expected_signal || address - (uintptr_t)memory >= BYTES ||
	    softhca_explanations(client.context, 0, &newest, 1) != 1 || !is_right(&newest, signal, address))
		_exit(WRONG);
	_exit(RIGHT);
}

/* ---- making the memory inaccessible ----------------------------------------------------------------------------- */

static void protect(int access)
{
	expected_signal = SIGSEGV;
	assert_int_equal(mprotect(memory, BYTES, access), 0);
}

static void close_it(void)
{
	protect(PROT_NONE);
}

static void make_read_only(void)
{
	protect(PROT_READ);
}

static void cut_file(void)
{
	expected_signal = SIGBUS;
	assert_int_equal(ftruncate(file, 0), 0);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static void post(enum ibv_wr_opcode opcode, const void *local, uint32_t lkey, uint32_t length, const void *remote,
		 uint32_t rkey)
{
	struct ibv_sge sge = {.addr = (uintptr_t)local, .length = length, .lkey = lkey};
	struct ibv_send_wr wr = send_wr(0, opcode, &sge);

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)remote;
		wr.wr.rdma.rkey = rkey;
	}
	post_send(&pair.client, &wr);
	next_completion(&pair.client);
}

static void post_to_memory(enum ibv_wr_opcode opcode, uint32_t length)
{
	post(opcode, client.memory, client.mr->lkey, length, memory + PAGE, mr->rkey);
}

static void post_from_memory(enum ibv_wr_opcode opcode, uint32_t length)
{
	post(opcode, memory + PAGE, mr->lkey, length, server.memory, server.mr->rkey);
}

static void receive(uint8_t *into, uint32_t length, uint32_t lkey)
{
	struct ibv_sge sge = {.addr = (uintptr_t)into, .length = length, .lkey = lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(pair.server.qp, &wr, &bad), 0);
}

static void write_into(void)
{
	post_to_memory(IBV_WR_RDMA_WRITE, 64);
}

static void write_long(void)
{
	post_to_memory(IBV_WR_RDMA_WRITE, LONG);
}

static void write_from(void)
{
	post_from_memory(IBV_WR_RDMA_WRITE, 64);
}

static void write_long_from(void)
{
	post_from_memory(IBV_WR_RDMA_WRITE, LONG);
}

static void read_from(void)
{
	post_to_memory(IBV_WR_RDMA_READ, 64);
}

static void read_into(void)
{
	post_from_memory(IBV_WR_RDMA_READ, 64);
}

static void read_long_into(void)
{
	post_from_memory(IBV_WR_RDMA_READ, LONG);
}

static void atomic_on(void)
{
	post_to_memory(IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
}

static void send_from(void)
{
	receive(server.memory, 64, server.mr->lkey);
	post_from_memory(IBV_WR_SEND, 64);
}

static void send_into(void)
{
	receive(memory + PAGE, 64, mr->lkey);
	post(IBV_WR_SEND, client.memory, client.mr->lkey, 64, NULL, 0);
}

/* A key with a signature: fields are generated or checked in that memory. */
DOMAIN_CRC(crc32, CRC32, 512, 0xffffffff);

static struct mlx5dv_mkey *signed_key;

static void make_signed_key(void)
{
	const struct mlx5dv_sig_block_attr attr = {.mem = &crc32, .check_mask = 0xff};
	struct ibv_sge sge = {.addr = (uintptr_t)memory + PAGE, .length = 516, .lkey = mr->lkey};
	struct pair_options options = signed_options();

	pair_replace(&pair, &options);
	signed_key = side_create_signed_mkey(&server, 3);
	assert_int_equal(configure_signed(signed_key, 1, &sge, &attr), 0);
	next_completion(&pair.server);
}

static void write_signed(void)
{
	post(IBV_WR_RDMA_WRITE, client.memory, client.mr->lkey, 512, NULL, signed_key->rkey);
}

static void read_signed(void)
{
	post(IBV_WR_RDMA_READ, client.memory, client.mr->lkey, 512, NULL, signed_key->rkey);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static void in_child(void (*prepare)(void), void (*lose)(void), void (*request)(void))
{
	const struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
	void *state = NULL;

	alarm(30);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	if (program_open(&state))
		_exit(WRONG);
	file = memfd_create("memory_gone", MFD_CLOEXEC);
	assert_int_equal(ftruncate(file, BYTES), 0);
	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	assert_true(memory != MAP_FAILED);
	/* Each side has its own PD, so the region is registered in the PD of the side that uses the key. */
	mr = ibv_reg_mr(request == write_from || request == write_long_from || request == read_into ||
					request == read_long_into || request == send_from
				? client.pd
				: server.pd,
			memory, BYTES, IBV_ACCESS_LOCAL_WRITE | SIDE_REMOTE);
	assert_non_null(mr);
	expected_key = mr->lkey;
	if (prepare)
		prepare();
	lose();
	request();
	_exit(NO_FAULT);
}

static void run(void (*prepare)(void), void (*lose)(void), void (*request)(void))
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		in_child(prepare, lose, request);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), RIGHT);
}

#define GONE(request, prepare)                                                                                         \
	TEST(test_##request)                                                                                           \
	{                                                                                                              \
		run(prepare, close_it, request);                                                                       \
		run(prepare, cut_file, request);                                                                       \
	}

GONE(write_into, NULL)
GONE(write_long, NULL)
GONE(write_from, NULL)
GONE(write_long_from, NULL)
GONE(read_from, NULL)
GONE(read_into, NULL)
GONE(read_long_into, NULL)
GONE(atomic_on, NULL)
GONE(send_from, NULL)
GONE(send_into, NULL)
GONE(write_signed, make_signed_key)
GONE(read_signed, make_signed_key)

TEST(test_read_only)
{
	run(NULL, make_read_only, write_into);
	run(NULL, make_read_only, read_into);
	run(NULL, make_read_only, send_into);
	run(NULL, make_read_only, atomic_on);
}

int main(void)
{
	/* Enable explanations. */
	setenv("SOFTHCA_EXPLAIN", "/dev/null", 1);
	return run_cases();
}
