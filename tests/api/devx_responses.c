/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests asynchronous queries: mlx5dv_devx_create_cmd_comp(3), mlx5dv_devx_obj_query_async(3), mlx5dv_devx_get_async_cmd_comp(3).
 * Behaviour that the man pages leave open follows the kernel's mlx5 driver.
 */
#include "kernel_has.h"
#include "support/devx.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

enum { QUERY_QP = 0x50b, QUERY_BYTES = 272, GUARD = 0xa5 };

/* Output of mlx5dv_devx_get_async_cmd_comp(). */
union response {
	struct mlx5dv_devx_async_cmd_hdr header;
	uint8_t bytes[8 + QUERY_BYTES + 8];
};

static bool waits(const struct mlx5dv_devx_cmd_comp *completion)
{
	struct pollfd fd = {.fd = completion->fd, .events = POLLIN};

	return poll(&fd, 1, 0) == 1 && fd.revents == POLLIN;
}

/* Without O_NONBLOCK a missing response would hang the test. */
static struct mlx5dv_devx_cmd_comp *open_completion(void)
{
	struct mlx5dv_devx_cmd_comp *completion = mlx5dv_devx_create_cmd_comp(client.context);

	assert_non_null(completion);
	assert_int_equal(fcntl(completion->fd, F_SETFL, O_NONBLOCK), 0);
	assert_true(fcntl(completion->fd, F_GETFD) & FD_CLOEXEC);
	assert_false(waits(completion));
	return completion;
}

static int take(struct mlx5dv_devx_cmd_comp *completion, union response *response, size_t bytes)
{
	memset(response, GUARD, sizeof(*response));
	errno = 0;
	return mlx5dv_devx_get_async_cmd_comp(completion, &response->header, bytes);
}

static void expect_none(struct mlx5dv_devx_cmd_comp *completion)
{
	union response response;

	assert_false(waits(completion));
	expect_error(take(completion, &response, sizeof(response)), EAGAIN);
	assert_int_equal(errno, EAGAIN);
}

static int ask(const struct own *own, struct command *command, size_t out_bytes, uint64_t wr_id,
	       struct mlx5dv_devx_cmd_comp *completion)
{
	put32(command->in, 8, own->qpn);
	errno = 0;
	return mlx5dv_devx_obj_query_async(own->qp, command->in, 16, out_bytes, wr_id, completion);
}

/* The response equals the output of mlx5dv_devx_obj_query(3) at the time of the query. */
TEST(same_as_query)
{
	struct mlx5dv_devx_cmd_comp *completion = open_completion();
	struct command query = command_of(QUERY_QP);
	uint8_t before[QUERY_BYTES], after[QUERY_BYTES];
	union response response;
	struct own own;

	own_open(&own, &client, 0);
	expect_none(completion);
	expect_error(ask(&own, &query, QUERY_BYTES, 0x1122334455667788, completion), 0);
	expect_error(mlx5dv_devx_obj_query(own.qp, query.in, 16, before, sizeof(before)), 0);
	own_to_init(&own);
	expect_error(ask(&own, &query, QUERY_BYTES, 2, completion), 0);
	expect_error(mlx5dv_devx_obj_query(own.qp, query.in, 16, after, sizeof(after)), 0);
	assert_memory_not_equal(before, after, sizeof(before));
	assert_true(waits(completion));
	expect_error(take(completion, &response, sizeof(response)), 0);
	assert_int_equal(response.header.wr_id, 0x1122334455667788);
	assert_memory_equal(response.header.out_data, before, sizeof(before));
	assert_int_equal(response.bytes[8 + QUERY_BYTES], GUARD);
	expect_error(take(completion, &response, 8 + QUERY_BYTES), 0);
	assert_int_equal(response.header.wr_id, 2);
	assert_memory_equal(response.header.out_data, after, sizeof(after));
	expect_none(completion);
	own_close(&own);
	mlx5dv_devx_destroy_cmd_comp(completion);
}

/* Output shorter than the command's is truncated, longer output is filled with zeros. */
TEST(lengths)
{
	struct mlx5dv_devx_cmd_comp *completion = open_completion();
	struct command query = command_of(QUERY_QP);
	uint8_t all[QUERY_BYTES], *large = malloc(8 + 4096);
	union response response;
	struct own own;

	own_open(&own, &client, 0);
	put32(query.in, 8, own.qpn);
	expect_error(mlx5dv_devx_obj_query(own.qp, query.in, 16, all, sizeof(all)), 0);
	expect_error(ask(&own, &query, 48, 1, completion), 0);
	expect_error(take(completion, &response, sizeof(response)), 0);
	assert_memory_equal(response.header.out_data, all, 48);
	assert_int_equal(response.bytes[8 + 48], GUARD);
	expect_error(ask(&own, &query, 4096, 1, completion), 0);
	memset(large, GUARD, 8 + 4096);
	expect_error(mlx5dv_devx_get_async_cmd_comp(completion, (struct mlx5dv_devx_async_cmd_hdr *)large, 8 + 4096),
		     0);
	assert_memory_equal(large + 8, all, QUERY_BYTES);
	for (size_t i = 8 + QUERY_BYTES; i < 8 + 4096; i++)
		assert_int_equal(large[i], 0);
	free(large);
	/* The buffer is too small: the response stays pending. */
	expect_error(ask(&own, &query, QUERY_BYTES, 7, completion), 0);
	expect_error(take(completion, &response, 8 + QUERY_BYTES - 1), ENOSPC);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(response.bytes[0], GUARD);
	expect_error(take(completion, &response, 0), ENOSPC);
	assert_true(waits(completion));
	expect_error(take(completion, &response, 8 + QUERY_BYTES), 0);
	assert_int_equal(response.header.wr_id, 7);
	/* The buffer is invalid: the response is lost. */
	if (kernel_has_memory_copies()) {
		expect_error(ask(&own, &query, QUERY_BYTES, 8, completion), 0);
		expect_error(mlx5dv_devx_get_async_cmd_comp(completion, (struct mlx5dv_devx_async_cmd_hdr *)8, 4096),
			     EFAULT);
		expect_none(completion);
	}
	own_close(&own);
	mlx5dv_devx_destroy_cmd_comp(completion);
}

/* Queries by QUERY_MKEY with pg_access, which this device does not support: the refusal is in the response. */
static void expect_refused_response(struct mlx5dv_devx_cmd_comp *completion)
{
	struct command command = command_of(0x200), query = command_of(0x201);
	struct mlx5dv_devx_obj *key;
	union response response;

	put32(command.in, 16, 1u << 15 | 2u << 8);
	put32(command.in, 20, 0xffffff00);
	put32(command.in, 28, pd_number(client.pd));
	put32(command.in, 68, 4);
	key = create(client.context, &command, 272);
	assert_non_null(key);
	put32(query.in, 8, created_number(&command));
	put32(query.in, 12, 1u << 31);
	expect_error(mlx5dv_devx_obj_query_async(key, query.in, 16, 16, 9, completion), 0);
	expect_error(take(completion, &response, 24), 0);
	assert_int_equal(response.header.wr_id, 9);
	assert_int_equal(response.header.out_data[0], 3);
	assert_int_equal(get32(response.header.out_data, 4), 954);
	expect_none(completion);
	assert_int_equal(mlx5dv_devx_obj_destroy(key), 0);
}

/* The call fails where a kernel refuses; a refusal by the device is in the response. */
TEST(refusals)
{
	struct mlx5dv_devx_cmd_comp *completion = open_completion();
	struct command query = command_of(QUERY_QP), other = command_of(0x502);
	struct ibv_context *context = open_device();
	struct mlx5dv_devx_cmd_comp *foreign = mlx5dv_devx_create_cmd_comp(context);
	struct own own, second;

	own_open(&own, &client, 0);
	own_open(&second, &client, 0);
	expect_error(ask(&own, &other, QUERY_BYTES, 1, completion), EINVAL);
	assert_int_equal(errno, EINVAL);
	expect_error(ask(&own, &query, 15, 1, completion), EINVAL);
	put32(query.in, 8, second.qpn);
	expect_error(mlx5dv_devx_obj_query_async(own.qp, query.in, 16, QUERY_BYTES, 1, completion), EINVAL);
	if (kernel_has_memory_copies())
		expect_error(mlx5dv_devx_obj_query_async(own.qp, (void *)8, 16, QUERY_BYTES, 1, completion), EFAULT);
	expect_error(ask(&own, &query, QUERY_BYTES, 1, foreign), EBADF);
	expect_none(completion);
	expect_refused_response(completion);
	mlx5dv_devx_destroy_cmd_comp(foreign);
	expect_error(ibv_close_device(context), 0);
	own_close(&second);
	own_close(&own);
	mlx5dv_devx_destroy_cmd_comp(completion);
}

/* At most a megabyte of output can be pending. Reading responses makes room. */
TEST(room)
{
	struct mlx5dv_devx_cmd_comp *completion = open_completion();
	struct command query = command_of(QUERY_QP);
	size_t bytes = 64 << 10;
	uint8_t *large = malloc(8 + bytes);
	struct own own;

	own_open(&own, &client, 0);
	for (int i = 0; i < 16; i++)
		expect_error(ask(&own, &query, bytes, (uint64_t)i, completion), 0);
	expect_error(ask(&own, &query, 16, 16, completion), EAGAIN);
	expect_error(ask(&own, &query, SIZE_MAX - 4, 16, completion), EAGAIN);
	for (int i = 0; i < 16; i++) {
		struct mlx5dv_devx_async_cmd_hdr *header = (struct mlx5dv_devx_async_cmd_hdr *)large;

		expect_error(mlx5dv_devx_get_async_cmd_comp(completion, header, 8 + bytes), 0);
		assert_int_equal(header->wr_id, i);
	}
	expect_none(completion);
	expect_error(ask(&own, &query, 1 << 20, 16, completion), 0);
	expect_error(ask(&own, &query, 16, 17, completion), EAGAIN);
	/* Destroying a completion drops its pending responses. */
	own_close(&own);
	mlx5dv_devx_destroy_cmd_comp(completion);
	free(large);
}

static void *take_blocking(void *completion)
{
	union response response;
	int error = mlx5dv_devx_get_async_cmd_comp(completion, &response.header, sizeof(response));

	return (void *)(intptr_t)(error || response.header.wr_id != 3);
}

TEST(blocking)
{
	struct mlx5dv_devx_cmd_comp *completion = mlx5dv_devx_create_cmd_comp(client.context);
	struct command query = command_of(QUERY_QP);
	struct timespec nap = {.tv_nsec = 20000000};
	pthread_t thread;
	struct own own;
	void *wrong;

	own_open(&own, &client, 0);
	assert_int_equal(pthread_create(&thread, NULL, take_blocking, completion), 0);
	nanosleep(&nap, NULL);
	expect_error(ask(&own, &query, QUERY_BYTES, 3, completion), 0);
	assert_int_equal(pthread_join(thread, &wrong), 0);
	assert_null(wrong);
	own_close(&own);
	mlx5dv_devx_destroy_cmd_comp(completion);
}

/* Responses survive their object; closing a context destroys its completions. */
TEST(ends)
{
	struct mlx5dv_devx_cmd_comp *completion = open_completion(), *left;
	struct ibv_context *context = open_device();
	struct command query = command_of(QUERY_QP);
	union response response;
	struct own own;
	int fd;

	own_open(&own, &client, 0);
	expect_error(ask(&own, &query, QUERY_BYTES, 5, completion), 0);
	own_close(&own);
	expect_error(take(completion, &response, sizeof(response)), 0);
	assert_int_equal(response.header.wr_id, 5);
	mlx5dv_devx_destroy_cmd_comp(completion);
	expect_error(take(completion, &response, sizeof(response)), EBADF);
	left = mlx5dv_devx_create_cmd_comp(context);
	fd = left->fd;
	expect_error(ibv_close_device(context), 0);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	expect_error(take(left, &response, sizeof(response)), EBADF);
}
