/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the limit of shared receives, made and armed by command (MODIFY_RMP, lwm), and its event, which is that of
 * ibv_modify_srq(3): it is raised once, when fewer receives than the limit are left.
 */
#include "support/devx_event.h"
#include "support/rmp.h"

#include <sys/eventfd.h>

enum { BYTES = SHARED_BYTES, COOKIE = 77 };

struct world {
	struct own one, other;
	struct shared shared;
	struct mlx5dv_devx_event_channel *channel;
	uint32_t sent;
};

/* Opens both ends at the client; its channel receives the events. */
static void world_open(struct world *world, uint32_t type)
{
	*world = (struct world){0};
	own_open(&world->one, &client, 0);
	own_open_cq(&world->other, &client);
	shared_open(&world->shared, &client, type);
	shared_join(&world->shared, &world->other);
	own_connect(&world->one, &world->other);
	own_connect(&world->other, &world->one);
	world->channel = open_channel(0);
	assert_int_equal(subscribe(world->channel, world->shared.rmp, RQ_LIMIT, COOKIE), 0);
}

static void world_close(struct world *world)
{
	struct pollfd verbs = {.fd = client.context->async_fd, .events = POLLIN};

	expect_none(world->channel);
	/* No event arrives anywhere else. */
	assert_int_equal(poll(&verbs, 1, 0), 0);
	own_close(&world->other);
	own_close(&world->one);
	shared_close(&world->shared);
	mlx5dv_devx_destroy_event_channel(world->channel);
}

static void post(struct world *world, uint32_t count)
{
	while (count--)
		shared_receive(&world->shared, side_address(&client, 4096));
}

static void send(struct world *world, uint32_t count)
{
	for (; count; count--, world->sent++) {
		own_request(&world->one, MLX5_OPCODE_SEND, 0, 0, side_address(&client, 0), BYTES, 0);
		assert_int_equal(own_next_cqe(&world->one).op_own >> 4, MLX5_CQE_REQ);
		assert_int_equal(own_next_cqe(&world->other).op_own >> 4, MLX5_CQE_RESP_SEND);
	}
	memcpy(client.expected + 4096, client.memory, BYTES);
}

static struct command limit_command(const struct world *world, uint32_t limit)
{
	struct command command = command_of(0x90d);

	put32(command.in, 8, 1u << 28 | world->shared.number);
	put32(command.in, 20, 1);
	put32(command.in, 32, 1u << 20);
	put32(command.in, 84, limit);
	return command;
}

static int modify(const struct world *world, struct command *command, size_t in_bytes)
{
	errno = 0;
	return mlx5dv_devx_obj_modify(world->shared.rmp, command->in, in_bytes, command->out, 16);
}

static void arm(const struct world *world, uint32_t limit)
{
	struct command command = limit_command(world, limit);

	assert_int_equal(modify(world, &command, 272), 0);
}

static void expect_limit(struct world *world)
{
	expect_queue_event(world->channel, COOKIE, RQ_LIMIT, world->shared.number);
	expect_none(world->channel);
}

static void falls_below(uint32_t type)
{
	struct world world;

	world_open(&world, type);
	post(&world, 8);
	arm(&world, 4);
	send(&world, 4);
	/* As many receives as the limit: no event. */
	expect_none(world.channel);
	send(&world, 1);
	expect_limit(&world);
	/* The limit is disarmed. */
	send(&world, 1);
	post(&world, 4);
	send(&world, 3);
	expect_none(world.channel);
	/* Three are left; new receives count at once. */
	post(&world, 9);
	arm(&world, 12);
	expect_none(world.channel);
	send(&world, 1);
	expect_limit(&world);
	/* There are already too few receives. */
	arm(&world, 12);
	expect_limit(&world);
	/* The limit is armed, and disarmed. */
	arm(&world, 11);
	arm(&world, 0);
	send(&world, 2);
	expect_none(world.channel);
	/* Receives are posted while the limit is armed. */
	arm(&world, 8);
	post(&world, 2);
	send(&world, 3);
	expect_none(world.channel);
	send(&world, 1);
	expect_limit(&world);
	world_close(&world);
}

TEST(of_a_list)
{
	falls_below(LIST);
}

TEST(of_a_cyclic_ring)
{
	falls_below(CYCLIC);
}

TEST(by_descriptor)
{
	int fd = eventfd(0, EFD_NONBLOCK);
	struct world world;
	uint64_t count;

	assert_true(fd >= 0);
	world_open(&world, LIST);
	assert_int_equal(mlx5dv_devx_subscribe_devx_event_fd(world.channel, fd, world.shared.rmp, RQ_LIMIT), 0);
	post(&world, 2);
	arm(&world, 2);
	assert_int_equal(read(fd, &count, sizeof(count)), -1);
	send(&world, 1);
	expect_limit(&world);
	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	assert_int_equal(count, 1);
	world_close(&world);
	close(fd);
}

/* A refused command arms nothing. */
TEST(refused)
{
	const struct wrong wrong[] = {
		{8, 0u << 28, 9, 968},                   /* rmp_state: in reset */
		{8, 3u << 28, 9, 968},                   /* in error */
		{32, 3u << 20, 3, 954},                  /* into error */
		{32, 0, 3, 954},        {20, 3, 3, 954}, /* changes of other fields */
		{16, 1, 3, 954},        {84, ENTRIES + 1, 3, 954},
	};
	struct command command;
	struct world world;

	world_open(&world, LIST);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		command = limit_command(&world, 4);
		put32(command.in, wrong[i].byte,
		      wrong[i].byte == 8 ? wrong[i].value | world.shared.number : wrong[i].value);
		expect_device_refusal(modify(&world, &command, 272), &command, wrong[i].status, wrong[i].rule);
	}
	command = limit_command(&world, 4);
	expect_device_refusal(modify(&world, &command, 271), &command, 0x50, 950);
	/* The mask selects no field. */
	command = limit_command(&world, 4);
	put32(command.in, 20, 0);
	assert_int_equal(modify(&world, &command, 272), 0);
	/* Another object number, another kind of object. */
	command = limit_command(&world, 4);
	put32(command.in, 8, 1u << 28 | (world.shared.number + 1));
	assert_int_equal(modify(&world, &command, 272), EINVAL);
	command = limit_command(&world, 4);
	put32(command.in, 8, 1u << 28 | world.other.qpn);
	assert_int_equal(mlx5dv_devx_obj_modify(world.other.qp, command.in, 272, command.out, 16), EINVAL);
	world_close(&world);
}
