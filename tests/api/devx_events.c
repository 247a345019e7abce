/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests events of objects made by command: mlx5dv_devx_create_event_channel(3), mlx5dv_devx_subscribe_devx_event(3),
 * mlx5dv_devx_get_event(3). Behaviour that the man pages leave open follows the kernel's mlx5 driver.
 */
#include "kernel_has.h"
#include "support/devx_event.h"

#include <sys/eventfd.h>
#include <sys/wait.h>

#include "failing_allocations.h"

enum { BYTES = 64 };

/* ---- a QP with an SRQ, which raises LAST_WQE_REACHED ------------------------------------------------------------ */

static struct ibv_srq *srq;

static void sharing_open(struct own *own)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct mlx5dv_srq out = {.comp_mask = MLX5DV_SRQ_MASK_SRQN};
	struct mlx5dv_obj object = {.srq = {.out = &out}};
	struct command command;

	if (!srq)
		srq = ibv_create_srq(client.pd, &attr);
	assert_non_null(srq);
	object.srq.in = srq;
	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_SRQ), 0);
	own_open_cq(own, &client);
	command = qp_command(own, 0);
	put32(command.in, 32, 6u << 11);
	put32(command.in, 196, 1u << 24 | out.srqn);
	own->qp = create(client.context, &command, 272);
	assert_non_null(own->qp);
	own->qpn = created_number(&command);
}

static void sharing_close(void)
{
	assert_int_equal(ibv_destroy_srq(srq), 0);
	srq = NULL;
}

/* Moves the queue pair to RTR, through RESET if it was in the error state. */
static void prepare_last_wqe(const struct own *own)
{
	struct command command = command_of(0x50a);

	assert_int_equal(own_modify(own, &command, 16), 0);
	own_to_init(own);
	own_to_rtr(own, &server, 0x123);
}

static void enter_error(const struct own *own)
{
	struct command command = command_of(0x507);

	assert_int_equal(own_modify(own, &command, 16), 0);
}

static void raise_last_wqe(const struct own *own)
{
	prepare_last_wqe(own);
	enter_error(own);
}

/* ---- cases ------------------------------------------------------------------------------------------------------ */

TEST(channels)
{
	struct mlx5dv_devx_event_channel *one = open_channel(0), *other = open_channel(0);

	assert_int_not_equal(one->fd, other->fd);
	expect_none(one);
	assert_true(fcntl(one->fd, F_GETFD) & FD_CLOEXEC);
	mlx5dv_devx_destroy_event_channel(one);
	mlx5dv_devx_destroy_event_channel(other);
	/* The channel no longer exists. */
	expect_error(subscribe(one, NULL, PORT_CHANGE, 0), EBADF);
	expect_null(mlx5dv_devx_create_event_channel(client.context, (enum mlx5dv_devx_create_event_channel_flags)2),
		    EINVAL);
}

TEST(wrong_subscriptions)
{
	struct mlx5dv_devx_event_channel *channel = open_channel(0);
	uint16_t types[17] = {COMM_EST, CQ_ERROR};
	struct own own, foreign;

	for (size_t i = 2; i < 17; i++)
		types[i] = LAST_WQE;
	own_open(&own, &client, 0);
	own_open_cq(&foreign, &server);
	/* events_sz: bytes of an array of one to sixteen two-byte numbers. */
	expect_error(mlx5dv_devx_subscribe_devx_event(channel, own.qp, 0, types, 1), EINVAL);
	expect_error(mlx5dv_devx_subscribe_devx_event(channel, own.qp, 3, types, 1), EINVAL);
	expect_error(mlx5dv_devx_subscribe_devx_event(channel, own.qp, 34, types, 1), EINVAL);
	expect_error(mlx5dv_devx_subscribe_devx_event(channel, own.qp, 32, types, 1), 0);
	/*
	 * Events without an object on an object, and vice versa; events that this device does not raise; events that do not
	 * exist.
	 */
	expect_error(subscribe(channel, own.qp, PORT_CHANGE, 1), EINVAL);
	expect_error(subscribe(channel, NULL, LAST_WQE, 1), EINVAL);
	expect_error(subscribe(channel, NULL, PORT_CHANGE, 1), 0);
	expect_error(subscribe(channel, own.qp, 0x01, 1), EINVAL);
	expect_error(subscribe(channel, own.qp, 0x13 + 0x100, 1), EINVAL);
	expect_error(subscribe(channel, own.qp, 0xffff, 1), EINVAL);
	/* An object of another context. */
	expect_error(subscribe(channel, foreign.cq, CQ_ERROR, 1), ENOENT);
	/* One invalid event makes the whole list fail. */
	types[1] = 0x01;
	expect_error(mlx5dv_devx_subscribe_devx_event(channel, own.cq, 4, types, 1), EINVAL);
	expect_none(channel);
	own_close(&foreign);
	own_close(&own);
	mlx5dv_devx_destroy_event_channel(channel);
}

/* The masks of group 0x14 match the events that can be subscribed to. */
TEST(promised)
{
	struct mlx5dv_devx_event_channel *channel = open_channel(0);
	struct command command = command_of(0x100);
	uint8_t out[4112];
	struct own own;

	assert_int_equal(mlx5dv_devx_general_cmd(client.context, command.in, 16, out, sizeof(out)), 0);
	assert_int_equal(get32(out, 16 + 16) >> 15 & 1, 1); /* event_cap */
	put32(command.in, 4, 0x14 << 1);
	assert_int_equal(mlx5dv_devx_general_cmd(client.context, command.in, 16, out, sizeof(out)), 0);
	own_open(&own, &client, 0);
	/* Four 64-bit words, the first one for events 0 to 63. A kernel checks no mask for completions. */
	for (uint32_t type = 1; type < 256; type++) {
		size_t at = type / 64 * 8 + (type % 64 < 32 ? 4 : 0);
		bool of_objects = get32(out, 16 + at) >> type % 32 & 1, of_none = get32(out, 48 + at) >> type % 32 & 1;

		expect_error(subscribe(channel, own.qp, (uint16_t)type, 0), of_objects ? 0 : EINVAL);
		expect_error(subscribe(channel, NULL, (uint16_t)type, 0), of_none ? 0 : EINVAL);
	}
	own_close(&own);
	mlx5dv_devx_destroy_event_channel(channel);
}

/* Subscribers receive events in the order in which they occurred, each with its data. */
TEST(order)
{
	struct mlx5dv_devx_event_channel *channel = open_channel(0), *other = open_channel(0);
	const uint16_t types[] = {COMM_EST, LAST_WQE};
	struct own one, two;

	sharing_open(&one);
	sharing_open(&two);
	assert_int_equal(mlx5dv_devx_subscribe_devx_event(channel, one.qp, 4, (uint16_t *)types, 0x1122334455667788),
			 0);
	assert_int_equal(subscribe(channel, two.qp, LAST_WQE, 2), 0);
	assert_int_equal(subscribe(other, two.qp, LAST_WQE, 3), 0);
	assert_int_equal(subscribe(other, one.qp, COMM_EST, 4), 0);
	raise_last_wqe(&one);
	raise_last_wqe(&one);
	raise_last_wqe(&two);
	raise_last_wqe(&one);
	expect_queue_event(channel, 0x1122334455667788, LAST_WQE, one.qpn);
	expect_queue_event(channel, 0x1122334455667788, LAST_WQE, one.qpn);
	expect_queue_event(channel, 2, LAST_WQE, two.qpn);
	expect_queue_event(channel, 0x1122334455667788, LAST_WQE, one.qpn);
	expect_none(channel);
	expect_queue_event(other, 3, LAST_WQE, two.qpn);
	expect_none(other);
	/* ibv_get_async_event(3) does not return them. */
	{
		struct pollfd fd = {.fd = client.context->async_fd, .events = POLLIN};

		assert_int_equal(poll(&fd, 1, 0), 0);
	}
	/* Subscribing twice yields two events. */
	assert_int_equal(subscribe(other, two.qp, LAST_WQE, 5), 0);
	raise_last_wqe(&two);
	take(other, 5, LAST_WQE);
	take(other, 3, LAST_WQE);
	expect_none(other);
	mlx5dv_devx_destroy_event_channel(other);
	own_close(&one);
	own_close(&two);
	sharing_close();
	mlx5dv_devx_destroy_event_channel(channel);
}

/* mlx5dv_devx_get_event(3): buffer size. A kernel checks it once an event is pending, and then keeps the event. */
TEST(small_buffers)
{
	struct mlx5dv_devx_event_channel *channel = open_channel(0);
	union event event;
	struct own own;

	sharing_open(&own);
	assert_int_equal(subscribe(channel, own.qp, LAST_WQE, 7), 0);
	errno = 0;
	assert_int_equal(mlx5dv_devx_get_event(channel, &event.header, 0), -1);
	assert_int_equal(errno, EAGAIN);
	raise_last_wqe(&own);
	for (size_t bytes = 0; bytes < EVENT_BYTES; bytes += EVENT_BYTES - 1) {
		errno = 0;
		assert_int_equal(mlx5dv_devx_get_event(channel, &event.header, bytes), -1);
		assert_int_equal(errno, EINVAL);
	}
	expect_queue_event(channel, 7, LAST_WQE, own.qpn);
	/* An invalid buffer: the event is lost. */
	if (kernel_has_memory_copies()) {
		raise_last_wqe(&own);
		errno = 0;
		assert_int_equal(mlx5dv_devx_get_event(channel, NULL, EVENT_BYTES), -1);
		assert_int_equal(errno, EFAULT);
		expect_none(channel);
	}
	own_close(&own);
	sharing_close();
	mlx5dv_devx_destroy_event_channel(channel);
}

/* Tests a CQ that overruns, and the queue pair that loses its completions. */
TEST(overrun)
{
	struct mlx5dv_devx_event_channel *channel = open_channel(0);
	union event event;
	struct own own;

	own_open(&own, &client, 0);
	own_connect(&own, &own);
	assert_int_equal(subscribe(channel, own.cq, CQ_ERROR, 21), 0);
	assert_int_equal(subscribe(channel, own.qp, WQ_CATAS, 22), 0);
	for (uint32_t i = 0; i < OWN_CQES + 1; i++) {
		double deadline = seconds_now() + 20;

		own_request(&own, MLX5_OPCODE_RDMA_WRITE, side_address(&client, 1024), client.mr->rkey,
			    side_address(&client, 0), BYTES, 0);
		/* The ring of requests has no more room than that of CQEs, which are not consumed. */
		while (i < OWN_CQES && *(volatile uint8_t *)&own.memory[OWN_RING + i * 64 + 63] >> 4 == 0xf)
			assert_true(seconds_now() < deadline);
	}
	event = take(channel, 21, CQ_ERROR);
	assert_int_equal(get32(event.header.out_data, 32), own.cqn);
	assert_int_equal(event.header.out_data[43], 1);
	expect_queue_event(channel, 22, WQ_CATAS, own.qpn);
	expect_none(channel);
	memcpy(client.expected + 1024, client.memory, BYTES);
	own_close(&own);
	mlx5dv_devx_destroy_event_channel(channel);
}

static void loop(struct own *own)
{
	own_request(own, MLX5_OPCODE_RDMA_WRITE, side_address(&client, 1024), client.mr->rkey, side_address(&client, 0),
		    BYTES, 0);
}

/* Writes the record, then the register: sequence number and consumer index. */
static void arm(struct own *own, uint32_t sequence)
{
	uint32_t word = (sequence & 3) << 28 | (own->consumed & 0xffffff);

	put32(own->memory + OWN_CQ_RECORD, 4, word);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)((char *)own->uar->base_addr + 0x20) = htobe64((uint64_t)word << 32 | own->cqn);
}

static void expect_completion_event(struct mlx5dv_devx_event_channel *channel, const struct own *own)
{
	union event event = take(channel, 31, COMPLETION);

	assert_int_equal(get32(event.header.out_data, 56), own->cqn);
}

/* A CQ armed by its record and the register raises one event each time, and no others. */
TEST(completions)
{
	struct mlx5dv_devx_event_channel *channel = open_channel(0);
	struct own own;

	own_open(&own, &client, 0);
	own_connect(&own, &own);
	/* There is no subscriber yet. */
	arm(&own, 0);
	loop(&own);
	own_next_cqe(&own);
	expect_error(subscribe(channel, own.cq, COMPLETION, 31), 0);
	expect_none(channel);
	/* The first arm value may be all zeros, like an unarmed CQ; it counts as armed. */
	loop(&own);
	expect_completion_event(channel, &own);
	own_next_cqe(&own);
	for (uint32_t sequence = 1; sequence < 10; sequence++) {
		/* Not armed. */
		loop(&own);
		own_next_cqe(&own);
		expect_none(channel);
		arm(&own, sequence);
		loop(&own);
		loop(&own);
		expect_completion_event(channel, &own);
		own_next_cqe(&own);
		own_next_cqe(&own);
		expect_none(channel);
	}
	/* A completion pending when the CQ is armed raises an event. */
	loop(&own);
	while (!own_has_cqe(&own))
		;
	arm(&own, 10);
	expect_completion_event(channel, &own);
	/* The record is unmapped while the device polls it: no fault. */
	own_unmap(&own, 4096);
	own_close(&own);
	memcpy(client.expected + 1024, client.memory, BYTES);
	mlx5dv_devx_destroy_event_channel(channel);
}

static void expect_cookie(struct mlx5dv_devx_event_channel *channel, uint64_t cookie)
{
	union event event;

	assert_true(waits(channel));
	memset(&event, 0xa5, sizeof(event));
	assert_int_equal(mlx5dv_devx_get_event(channel, &event.header, sizeof(event)), 8);
	assert_int_equal(event.header.cookie, cookie);
	assert_int_equal(event.header.out_data[0], 0xa5);
}

/* mlx5dv_devx_get_event(3), NOTES: without data, events of a subscription are combined until they are read. */
TEST(omitted_data)
{
	struct mlx5dv_devx_event_channel *channel = open_channel(MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA);
	union event event;
	struct own one, two;

	sharing_open(&one);
	sharing_open(&two);
	assert_int_equal(subscribe(channel, one.qp, LAST_WQE, 1), 0);
	assert_int_equal(subscribe(channel, one.qp, LAST_WQE, 2), 0);
	assert_int_equal(subscribe(channel, two.qp, LAST_WQE, 3), 0);
	raise_last_wqe(&two);
	raise_last_wqe(&two);
	raise_last_wqe(&one);
	raise_last_wqe(&two);
	errno = 0;
	assert_int_equal(mlx5dv_devx_get_event(channel, &event.header, 7), -1);
	assert_int_equal(errno, EINVAL);
	expect_cookie(channel, 3);
	expect_cookie(channel, 2);
	raise_last_wqe(&two);
	expect_cookie(channel, 1);
	/* Pending events of a destroyed object are delivered, and no further ones. */
	own_close(&two);
	expect_cookie(channel, 3);
	expect_none(channel);
	raise_last_wqe(&one);
	mlx5dv_devx_destroy_event_channel(channel);
	raise_last_wqe(&one);
	own_close(&one);
	sharing_close();
}

/* Either end of a subscription can be destroyed first. */
TEST(ends)
{
	struct mlx5dv_devx_event_channel *channel = open_channel(0), *other = open_channel(0);
	struct own one, two;

	sharing_open(&one);
	sharing_open(&two);
	assert_int_equal(subscribe(channel, one.qp, LAST_WQE, 1), 0);
	assert_int_equal(subscribe(other, one.qp, LAST_WQE, 2), 0);
	assert_int_equal(subscribe(channel, two.qp, LAST_WQE, 3), 0);
	assert_int_equal(subscribe(other, two.qp, LAST_WQE, 4), 0);
	raise_last_wqe(&one);
	raise_last_wqe(&two);
	/* Pending events of a destroyed object are delivered. */
	own_close(&one);
	expect_queue_event(channel, 1, LAST_WQE, one.qpn);
	/* Destroying a channel drops its pending events; the object notifies the others. */
	mlx5dv_devx_destroy_event_channel(other);
	raise_last_wqe(&two);
	expect_queue_event(channel, 3, LAST_WQE, two.qpn);
	expect_queue_event(channel, 3, LAST_WQE, two.qpn);
	expect_none(channel);
	raise_last_wqe(&two);
	mlx5dv_devx_destroy_event_channel(channel);
	raise_last_wqe(&two);
	own_close(&two);
	sharing_close();
}

/* Returns the number that the next descriptor will have. */
static int next_descriptor(void)
{
	int fd = dup(STDOUT_FILENO);

	assert_true(fd >= 0);
	close(fd);
	return fd;
}

/* mlx5dv_devx_subscribe_devx_event_fd(3): the descriptor is signalled, and the channel receives no event. */
TEST(event_descriptors)
{
	int before = next_descriptor();
	struct mlx5dv_devx_event_channel *channel = open_channel(0);
	int fd = eventfd(0, EFD_NONBLOCK), twin = dup(fd), pipes[2];
	uint64_t count = 0;
	struct own own;

	assert_true(fd >= 0 && twin >= 0 && !pipe(pipes));
	sharing_open(&own);
	expect_error(mlx5dv_devx_subscribe_devx_event_fd(channel, -1, own.qp, LAST_WQE), EBADF);
	expect_error(mlx5dv_devx_subscribe_devx_event_fd(channel, pipes[1], own.qp, LAST_WQE), EINVAL);
	expect_error(mlx5dv_devx_subscribe_devx_event_fd(channel, fd, own.qp, PORT_CHANGE), EINVAL);
	expect_error(mlx5dv_devx_subscribe_devx_event_fd(channel, fd, own.qp, LAST_WQE), 0);
	/* The subscription survives when the program closes its descriptor. */
	close(fd);
	raise_last_wqe(&own);
	raise_last_wqe(&own);
	expect_none(channel);
	assert_int_equal(read(twin, &count, sizeof(count)), sizeof(count));
	assert_int_equal(count, 2);
	/* An eventfd at its maximum does not block the device. */
	count = UINT64_MAX - 1;
	assert_int_equal(write(twin, &count, sizeof(count)), sizeof(count));
	assert_int_equal(fcntl(twin, F_SETFL, 0), 0);
	raise_last_wqe(&own);
	assert_int_equal(read(twin, &count, sizeof(count)), sizeof(count));
	assert_int_equal(count, UINT64_MAX - 1);
	mlx5dv_devx_destroy_event_channel(channel);
	raise_last_wqe(&own);
	assert_int_equal(fcntl(twin, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(read(twin, &count, sizeof(count)), -1);
	own_close(&own);
	sharing_close();
	close(twin);
	close(pipes[0]);
	close(pipes[1]);
	/* The library's copies of the descriptor, and of those refused, are closed. */
	assert_int_equal(next_descriptor(), before);
}

/* mlx5dv_devx_get_event(3), NOTES: events may be lost for lack of memory, which is reported. */
TEST(no_memory)
{
	struct mlx5dv_devx_event_channel *channel = open_channel(0);
	union event event;
	struct own own;

	sharing_open(&own);
	assert_int_equal(subscribe(channel, own.qp, LAST_WQE, 1), 0);
	raise_last_wqe(&own);
	prepare_last_wqe(&own);
	watched = true;
	books.armed = true;
	books.left = 1;
	enter_error(&own);
	assert_int_equal(books.fired, ENOMEM);
	watched = false;
	raise_last_wqe(&own);
	take(channel, 1, LAST_WQE);
	assert_true(waits(channel));
	errno = 0;
	assert_int_equal(mlx5dv_devx_get_event(channel, &event.header, sizeof(event)), -1);
	assert_int_equal(errno, EOVERFLOW);
	take(channel, 1, LAST_WQE);
	expect_none(channel);
	own_close(&own);
	sharing_close();
	mlx5dv_devx_destroy_event_channel(channel);
}

/* A child has the objects, and may destroy its copies; those of the parent keep working. */
TEST(fork_child)
{
	struct mlx5dv_devx_event_channel *channel = open_channel(0);
	struct own own;
	int status;
	pid_t child;

	sharing_open(&own);
	assert_int_equal(subscribe(channel, own.qp, LAST_WQE, 1), 0);
	raise_last_wqe(&own);
	child = fork();
	if (!child) {
		struct mlx5dv_devx_event_channel *made = mlx5dv_devx_create_event_channel(client.context, 0);
		bool right = made && !subscribe(made, own.qp, LAST_WQE, 2) && !subscribe(channel, own.cq, CQ_ERROR, 3);

		mlx5dv_devx_destroy_event_channel(made);
		_exit(!right);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	take(channel, 1, LAST_WQE);
	expect_none(channel);
	own_close(&own);
	sharing_close();
	mlx5dv_devx_destroy_event_channel(channel);
}

/* Closing a context destroys its channels. */
TEST(leftovers)
{
	struct ibv_context *context = open_device();
	struct mlx5dv_devx_event_channel *channel = mlx5dv_devx_create_event_channel(context, 0);
	struct command command = command_of(0x800);
	struct mlx5dv_devx_obj *domain = create(context, &command, 16);
	union event event;
	int fd;

	assert_non_null(channel);
	assert_non_null(domain);
	fd = channel->fd;
	assert_int_equal(subscribe(channel, NULL, PORT_CHANGE, 1), 0);
	assert_int_equal(subscribe(channel, domain, CQ_ERROR, 1), 0);
	expect_error(ibv_close_device(context), 0);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	errno = 0;
	assert_int_equal(mlx5dv_devx_get_event(channel, &event.header, sizeof(event)), -1);
	assert_int_equal(errno, EBADF);
}

/* If the thread that polls armed CQs cannot start, subscribing fails without an effect, and works later. */
TEST_FIRST(no_thread)
{
	struct mlx5dv_devx_event_channel *channel = open_channel(0);
	int fd = eventfd(0, EFD_NONBLOCK);
	uint64_t count = 0;
	struct own own;

	own_open_cq(&own, &client);
	for (int i = 0; i < 2; i++) {
		watched = true;
		books.armed = true;
		books.left = 2; /* after the subscription: the descriptor that wakes the thread */
		if (i)
			expect_error(mlx5dv_devx_subscribe_devx_event_fd(channel, fd, own.cq, COMPLETION), EAGAIN);
		else
			expect_error(subscribe(channel, own.cq, COMPLETION, 30), EAGAIN);
		watched = false;
		assert_int_equal(books.fired, EMFILE);
	}
	expect_error(subscribe(channel, own.cq, COMPLETION, 31), 0);
	own_open_qp(&own, 0);
	own_connect(&own, &own);
	/* The CQ counts as armed from the subscription on. */
	loop(&own);
	expect_completion_event(channel, &own);
	expect_none(channel);
	assert_int_equal(read(fd, &count, sizeof(count)), -1);
	own_next_cqe(&own);
	own_close(&own);
	close(fd);
	memcpy(client.expected + 1024, client.memory, BYTES);
	mlx5dv_devx_destroy_event_channel(channel);
}

int main(void)
{
	/* no_thread must run first: any other case may start the thread. */

	return run_program();
}
