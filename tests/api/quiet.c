/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs without a mistake print nothing (docs/inside/decisions.md, Quiet runs), and mistakes are still reported: the
 * tests check the lines that SOFTHCA_EXPLAIN wrote during each case. The cases are taken from programs: ucx_perftest
 * and rping end their connections themselves, Gloo sends before the peer is ready, Open MPI searches for the largest
 * max_inline_data, UCX and DPDK request unsupported features.
 */
#include "own_network.h"
#include "support/completion.h"
#include "run_again.h"
#include "support/program.h"

#include <endian.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

enum { TIMEOUT_MS_4 = 10, TIMEOUT_MS_67 = 14, NEVER_USED = 0xfffffd, TOO_MUCH_INLINE = 4000, UNKNOWN_GROUP = 0x7e };

static char path[] = "/tmp/softhca-quiet-XXXXXX";
static int file;

/* Returns the lines since the last call. */
static char *lines(void)
{
	static char text[1 << 16];
	ssize_t length = read(file, text, sizeof(text) - 1);

	assert_true(length >= 0);
	text[length] = '\0';
	return text;
}

static void expect_quiet(void)
{
	assert_string_equal(lines(), "");
}

/* Expects one line, from the rule with the tag "[NUMBER NAME". */
static void expect_line(const char *tag)
{
	char *text = lines(), *end = strchr(text, '\n');

	if (strstr(text, tag) && end && !end[1])
		return;
	/* Reports of failures show one line. */
	for (; end; end = strchr(end, '\n'))
		*end = '|';
	fail_msg("not one line with %s: %s", tag, text);
}

static void modify(struct endpoint *endpoint, struct ibv_qp_attr attr, int mask)
{
	expect_error(ibv_modify_qp(endpoint->qp, &attr, mask), 0);
}

static void create_pair(uint8_t timeout, uint8_t retry_cnt)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	options.timeout = timeout;
	options.retry_cnt = retry_cnt;
	pair_close(&pair);
	pair_create(&pair, &client, &server, &options);
	lines();
}

static void ready(struct endpoint *endpoint)
{
	endpoint_to_init(endpoint);
	endpoint_to_rtr(endpoint);
	endpoint_to_rts(endpoint);
}

static void post_send_of(uint64_t wr_id)
{
	struct ibv_send_wr wr = send_wr(wr_id, IBV_WR_SEND, NULL);

	post_send(&pair.client, &wr);
}

/* Receives and sends are flushed, and packets that the other end still sends are dropped. */
TEST(ending_a_connection)
{
	create_pair(TIMEOUT_MS_67, 7);
	ready(&pair.client);
	endpoint_to_init(&pair.server);
	post_receive(&pair.client, 1, NULL, 0);
	post_send_of(2);
	modify(&pair.client, (struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE);
	expect_status(&pair.client, 2, IBV_WC_WR_FLUSH_ERR);
	expect_status(&pair.client, 1, IBV_WC_WR_FLUSH_ERR);
	endpoint_to_rtr(&pair.server);
	expect_quiet();
}

/* A peer still connected to a queue pair that is in ERR or destroyed sends a request: it fails at the peer only. */
TEST(requests_after_the_end)
{
	for (int destroyed = 0; destroyed < 2; destroyed++) {
		create_pair(TIMEOUT_MS_4, 1);
		ready(&pair.server);
		ready(&pair.client);
		if (destroyed)
			endpoint_destroy_qp(&pair.server);
		else
			modify(&pair.server, (struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE);
		post_send_of(1);
		expect_status(&pair.client, 1, IBV_WC_RETRY_EXC_ERR);
		expect_line("[95 RETRY_EXHAUSTED");
	}
}

/* RC retries succeed. */
TEST(a_peer_that_is_late)
{
	create_pair(TIMEOUT_MS_67, 7);
	ready(&pair.client);
	endpoint_to_init(&pair.server);
	post_receive(&pair.server, 1, NULL, 0);
	post_send_of(2);
	endpoint_to_rtr(&pair.server);
	expect_completion(&pair.client, 2, IBV_WC_SEND);
	expect_completion(&pair.server, 1, IBV_WC_RECV);
	expect_quiet();
}

/* The requester runs out of retries. */
TEST(a_peer_that_is_never_ready)
{
	const char *text;

	create_pair(TIMEOUT_MS_4, 1);
	ready(&pair.client);
	endpoint_to_init(&pair.server);
	post_send_of(1);
	expect_status(&pair.client, 1, IBV_WC_RETRY_EXC_ERR);
	text = lines();
	assert_non_null(strstr(text, "[95 RETRY_EXHAUSTED"));
	assert_non_null(strstr(text, "[81 PACKET_STATE"));
	assert_null(strstr(strstr(text, "[81 PACKET_STATE") + 1, "[81 PACKET_STATE"));
}

/* The queue pair is destroyed before it became ready. */
TEST(a_peer_that_ends_unready)
{
	create_pair(TIMEOUT_MS_67, 7);
	ready(&pair.client);
	endpoint_to_init(&pair.server);
	post_send_of(1);
	expect_quiet();
	endpoint_destroy_qp(&pair.server);
	expect_line("[81 PACKET_STATE");
}

/* Datagrams are not retransmitted: their loss is reported at once. */
TEST(a_datagram_that_is_early)
{
	struct pair_options options = pair_defaults(IBV_QPT_UD);
	struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND, NULL), *bad;

	pair_close(&pair);
	pair_open(&pair, &client, &server, &options);
	modify(&pair.server, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE);
	endpoint_to_init(&pair.server);
	lines();
	post_send(&pair.client, &wr);
	expect_completion(&pair.client, 1, IBV_WC_SEND);
	expect_line("[81 PACKET_STATE");
	wr.wr.ud.remote_qpn = NEVER_USED;
	expect_error(ibv_post_send(pair.client.qp, &wr, &bad), 0);
	expect_completion(&pair.client, 1, IBV_WC_SEND);
	expect_line("[80 PACKET_NO_QP");
}

static struct ibv_qp *create_with_inline(uint32_t bytes)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = pair.client.cq,
		.recv_cq = pair.client.cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = bytes},
	};

	return ibv_create_qp(client.pd, &attr);
}

/* Bisection, as Open MPI does it, which ends with a size that is rejected. */
TEST(a_search_for_a_limit)
{
	uint32_t least = 0, most = TOO_MUCH_INLINE, refused = 0;

	create_pair(TIMEOUT_MS_67, 7);
	while (most - least > 1) {
		uint32_t bytes = (least + most) / 2;
		struct ibv_qp *qp = create_with_inline(bytes);

		refused += !qp;
		*(qp ? &least : &most) = bytes;
		if (qp)
			expect_error(ibv_destroy_qp(qp), 0);
	}
	assert_in_range(refused, 1, 12);
	expect_quiet();
}

/* A program that ends after an error made a mistake: the line is written when it exits or aborts by assert(3). */
TEST(a_limit_that_was_missed)
{
	static void (*const ends[])(void) = {abort, NULL};
	int status;

	for (size_t i = 0; i < 2; i++) {
		char *command[4];
		pid_t child;

		run_again_command(command, ends[i] ? "abort" : "exit");
		child = fork();
		assert_true(child >= 0);
		if (!child) {
			alarm(20);
			signal(SIGABRT, SIG_DFL);
			setenv("SOFTHCA_EXPLAIN", path, 1);
			execv(command[0], command);
			_exit(100);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(ends[i] ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT
				    : WIFEXITED(status) && WEXITSTATUS(status) == 1);
		expect_line("[518 QP_MAX_INLINE");
	}
}

/* The program of the child: a queue pair that asks for too much, without the support of the cases. */
static int miss_a_limit(bool by_abort)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list ? ibv_open_device(list[0]) : NULL;
	struct ibv_cq *cq = context ? ibv_create_cq(context, 8, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = TOO_MUCH_INLINE},
	};

	if (!cq || ibv_create_qp(ibv_alloc_pd(context), &attr))
		return 3;
	if (by_abort)
		abort();
	return 1;
}

TEST(questions)
{
	uint32_t in[4] = {htobe32(0x100u << 16), htobe32(UNKNOWN_GROUP << 1)}, out[4 + 1024];

	create_pair(TIMEOUT_MS_67, 7);
	expect_null(ibv_reg_dmabuf_mr(client.pd, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE), EOPNOTSUPP);
	assert_int_equal(mlx5dv_set_context_attr(client.context, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, NULL), EOPNOTSUPP);
	assert_int_not_equal(mlx5dv_devx_general_cmd(client.context, in, sizeof(in), out, sizeof(out)), 0);
	expect_quiet();
	/* Not a probe: the program passes a buffer of another device. */
	expect_null(ibv_reg_dmabuf_mr(client.pd, 0, 4096, 0, file, IBV_ACCESS_LOCAL_WRITE), EOPNOTSUPP);
	expect_line("[700 CALL_NOT_IMPLEMENTED");
}

/* The call succeeds, as with a kernel, which destroys the objects; --lint finds leaks. */
TEST(closing_with_objects_left)
{
	struct ibv_context *context = ibv_open_device(client.context->device);

	assert_non_null(context);
	assert_non_null(ibv_create_cq(context, 8, NULL, NULL, 0));
	lines();
	expect_error(ibv_close_device(context), 0);
	expect_quiet();
}

/* fio destroys its CQ before its QP and ignores the error. A later mistake prints that error, too. */
TEST(ignoring_a_refused_destruction)
{
	struct ibv_port_attr port;
	const char *text;

	lines();
	expect_error(ibv_destroy_cq(pair.client.cq), EBUSY);
	expect_quiet();
	expect_error(ibv_query_port(client.context, 9, &port), EINVAL);
	text = lines();
	assert_non_null(strstr(text, "[424 CQ_IN_USE; "));
	assert_non_null(strstr(text, "[300 PORT_NUMBER; "));
}

int main(int argc, char **argv)
{
	int failed;

	if (argc > 1)
		return miss_a_limit(!strcmp(argv[1], "abort"));
	/* Packets of other tests would cause lines. */
	if (!own_network())
		print_message("# no network of its own\n");
	file = mkstemp(path);
	if (file < 0 || setenv("SOFTHCA_EXPLAIN", path, 1))
		return 1;
	failed = run_program();
	unlink(path);
	return failed;
}
