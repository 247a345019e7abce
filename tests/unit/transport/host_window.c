/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The window that all queue pairs share for a host (transport/qp/host_window.h): a bound for small and large packets,
 * turns for waiting QPs, recovery of lost packets, and losses that do not count as a retry.
 */
#include "test_case.h"

#include <endian.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "../support/device_fixture.h"
#include "kernel_has.h"
#include "transport/qp/host_window.h"
#include "transport/run/run.h"

enum {
	QPS = 8,
	BUFFER = 512 << 10, /* of the receiving socket, as the kernel counts it */
	/* A small packet takes a whole buffer of the kernel, 700 bytes and more, of half of the socket's. */
	MOST_SMALL = BUFFER / 2 / 700,
	MTU = 1024,
	TRIES = 100000,
};

static struct hca_qp qps[QPS];

/* Returns a path to another host for each test. */
static struct packet_path path_to(uint32_t host)
{
	struct packet_path path = {.type = IBV_GID_TYPE_ROCE_V2};

	host = htobe32(host);
	path.destination.raw[10] = path.destination.raw[11] = 0xff;
	memcpy(path.destination.raw + 12, &host, sizeof(host));
	return path;
}

static struct packet packet_along(const struct packet_path *path, uint32_t bytes, uint32_t peer)
{
	struct packet packet = {.message = MESSAGE_WRITE, .destination_qpn = peer, .path = path, .mtu = MTU};

	packet.count = bytes ? (bytes - 1) / MTU + 1 : 1;
	packet.payload.length = bytes;
	return packet;
}

static int set_up(void **state)
{
	(void)state;
	for (int i = 0; i < QPS; i++) {
		memset(&qps[i], 0, sizeof(qps[i]));
		qps[i].hca = device.hca;
		qps[i].sender.resume = qp_resume;
		qps[i].transport = transport_of(IBV_QPT_RC);
		queue_lock_init(&qps[i].lock, LOCK_LEVEL_QP, false);
	}
	host_window_set_most(device.hca->registry->host_windows, BUFFER);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < QPS; i++)
		queue_lock_destroy(&qps[i].lock);
	return 0;
}

/* Removes the QP from the waiting ones. */
static void forget(struct hca_qp *qp)
{
	link_dequeue(&qp->requester.waiter);
	qp->requester.share.waited = false;
}

static uint32_t take_all(struct hca_qp *qp, const struct packet *packet)
{
	uint32_t count = 0;

	while (count < TRIES && host_window_take(qp, packet))
		count++;
	return count;
}

/* Returns the number of QPs that have their turn; each is counted once. */
static uint32_t resumed(struct hca_qp **first)
{
	struct run run;
	uint32_t count = 0;

	epoch_enter();
	run_begin(&run);
	host_window_resume(device.hca->registry->host_windows, &run);
	*first = run.scheduled;
	for (struct hca_qp *qp = run.scheduled; qp; qp = qp->next_scheduled) {
		qp->scheduled = qp->requester_due = false;
		count++;
	}
	epoch_leave();
	return count;
}

static void leave(void)
{
	for (int i = 0; i < QPS; i++) {
		host_window_settle(&qps[i], 0);
		forget(&qps[i]);
	}
}

/* Eight QPs together have no more in flight than one. */
TEST(the_bound_is_that_of_the_host)
{
	struct packet_path path = path_to(0x0a000001), other = path_to(0x0a000002);
	struct packet small = packet_along(&path, 64, 1), elsewhere = packet_along(&other, 64, 1);
	uint32_t one = take_all(&qps[0], &small), count = 0;

	assert_in_range(one, 16, MOST_SMALL);
	host_window_settle(&qps[0], 0);
	forget(&qps[0]);
	for (int i = 0; i < QPS; i++)
		count += take_all(&qps[i], &small);
	assert_int_equal(count, one);
	/* Another host has a separate bound. */
	forget(&qps[1]);
	assert_true(host_window_take(&qps[1], &elsewhere));
	leave();
}

/* The payload in flight fits into half of the buffer, too. */
TEST(large_packets_count_their_bytes)
{
	struct packet_path path = path_to(0x0a000003);
	struct packet large = packet_along(&path, 4 * MTU, 1);

	assert_in_range(take_all(&qps[0], &large), 8, BUFFER / 2 / (4 * MTU));
	leave();
}

/* A READ takes room for its response. */
TEST(responses_count)
{
	struct packet_path path = path_to(0x0a000004);
	struct packet request = packet_along(&path, 0, 1);

	request.message = MESSAGE_READ_REQUEST;
	request.dma_length = 64 * MTU;
	request.count = 64;
	assert_in_range(take_all(&qps[0], &request), 1, BUFFER / 2 / (64 * MTU) + 1);
	leave();
}

/* Returned room goes to the QP that waited longest, before a QP that already has some. */
TEST(turns)
{
	struct packet_path path = path_to(0x0a000005);
	struct packet small = packet_along(&path, 64, 1);
	uint32_t all = take_all(&qps[0], &small);
	struct hca_qp *first;

	forget(&qps[0]);
	for (int i = 1; i < 4; i++)
		assert_false(host_window_take(&qps[i], &small));
	assert_int_equal(resumed(&first), 0);
	host_window_settle(&qps[0], all - 1);
	assert_false(host_window_take(&qps[0], &small));
	assert_int_equal(resumed(&first), 1);
	assert_ptr_equal(first, &qps[1]);
	assert_true(host_window_take(&qps[1], &small));
	/* With nothing in flight, no event would wake the others later. */
	host_window_settle(&qps[1], 0);
	host_window_settle(&qps[0], 0);
	assert_int_equal(resumed(&first), 3);
	leave();
}

/* A QP that waits can be destroyed. */
TEST(a_waiting_qp_can_leave)
{
	struct packet_path path = path_to(0x0a000006);
	struct packet small = packet_along(&path, 64, 1);
	uint32_t all = take_all(&qps[0], &small);
	struct hca_qp *first;

	forget(&qps[0]);
	assert_false(host_window_take(&qps[1], &small));
	assert_false(host_window_take(&qps[2], &small));
	forget(&qps[1]);
	host_window_settle(&qps[0], all / 2);
	assert_int_equal(resumed(&first), 1);
	assert_ptr_equal(first, &qps[2]);
	leave();
}

/* Lost packets return no room: waiting QPs get it after a while. */
TEST(lost_packets_are_forgotten)
{
	const struct timespec tick = {.tv_nsec = 1000000};
	struct packet_path path = path_to(0x0a000007);
	struct packet small = packet_along(&path, 64, 1);
	uint32_t all = take_all(&qps[0], &small);
	uint64_t end_ns = clock_now_ns() + UINT64_C(20000000000);

	forget(&qps[0]);
	assert_false(host_window_take(&qps[1], &small));
	/* The timer schedules it; a QP in this state has nothing to send. */
	while (link_waits(&qps[1].requester.waiter)) {
		assert_true(clock_now_ns() < end_ns);
		nanosleep(&tick, NULL);
	}
	assert_int_equal(take_all(&qps[1], &small), all);
	/* A late return of lost packets does not count for packets in flight now. */
	host_window_settle(&qps[0], 0);
	forget(&qps[1]);
	assert_false(host_window_take(&qps[1], &small));
	leave();
}

/* Losses make the window smaller, once for simultaneous ones, and never zero; arrivals enlarge it again. */
TEST(losses_narrow_it)
{
	const struct timespec apart = {.tv_nsec = 11000000};
	struct packet_path path = path_to(0x0a000008);
	struct packet small = packet_along(&path, 64, 1);
	uint32_t all = take_all(&qps[0], &small), half;

	host_window_settle(&qps[0], 0);
	forget(&qps[0]);
	for (int i = 0; i < 3; i++)
		host_window_lost(&qps[0]);
	half = take_all(&qps[0], &small);
	assert_in_range(half, all / 2 - 2, all / 2 + 2);
	forget(&qps[0]);
	host_window_settle(&qps[0], 0);
	for (int i = 0; i < 20; i++) {
		nanosleep(&apart, NULL);
		host_window_lost(&qps[0]);
	}
	assert_in_range(take_all(&qps[0], &small), 4, half - 1);
	forget(&qps[0]);
	host_window_settle(&qps[0], 0);
	for (int i = 0; i < 1000; i++) {
		assert_true(host_window_take(&qps[0], &small));
		host_window_settle(&qps[0], 0);
	}
	assert_int_equal(take_all(&qps[0], &small), all);
	leave();
}

/* A loss is excused only while other QPs lose packets, too, and the process still answers. */
TEST(excuses)
{
	const uint32_t process = 7 << 10, other_process = 8 << 10;
	struct packet_path path = path_to(0x0a000009);
	struct packet to = packet_along(&path, 64, process), away = packet_along(&path, 64, other_process);

	/* It has not sent. */
	assert_false(host_window_excuses(&qps[0]));
	for (int i = 0; i < 3; i++) {
		assert_true(host_window_take(&qps[i], i < 2 ? &to : &away));
		host_window_watch(&qps[i]);
	}
	/* No other QP lost a packet. */
	host_window_received(&qps[1]);
	assert_false(host_window_excuses(&qps[0]));
	host_window_received(&qps[1]);
	assert_false(host_window_excuses(&qps[0]));
	/* That QP has lost packets together with the first one, and the process still answers. */
	assert_true(host_window_excuses(&qps[1]));
	host_window_received(&qps[1]);
	assert_true(host_window_excuses(&qps[0]));
	/* No packet arrived since then. */
	host_window_excuses(&qps[1]);
	assert_false(host_window_excuses(&qps[0]));
	/* The other process lost nothing and has no excuse, whatever this one does. */
	host_window_received(&qps[0]);
	assert_false(host_window_excuses(&qps[2]));
	leave();
}

/* The child has sent nothing, has no waiting QP, and does not block on the way there. */
TEST(fork_while_a_thread_waits)
{
	struct packet_path path = path_to(0x0a00000a);
	struct packet small = packet_along(&path, 64, 1);
	uint32_t all = take_all(&qps[0], &small);
	pid_t child, ended = 0;
	int status, tries;

	assert_true(link_waits(&qps[0].requester.waiter));
	if (!kernel_has_threads_after_fork()) {
		leave();
		skip();
	}
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(!link_waits(&qps[0].requester.waiter) && take_all(&qps[1], &small) == all ? 0 : 1);
	for (tries = 0; tries < 2000 && !(ended = waitpid(child, &status, WNOHANG)); tries++)
		nanosleep(&(const struct timespec){.tv_nsec = 10000000}, NULL);
	if (!ended) {
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
	}
	assert_int_equal(status, 0);
	leave();
}

int main(void)
{
	device_open(&device);
	return run_cases(.setup = set_up, .teardown = tear_down);
}
