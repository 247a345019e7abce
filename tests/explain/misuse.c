/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 900 to 949: programs with mistakes that do not fail. Each case first runs a correct program, which must not be
 * warned. */
#include "kernel_has.h"
#include "rule_cases.h"

#include <endian.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_clock.h"
#include "support/signed_key.h"
#include "support/window.h"
#include "support/words.h"

/* ---- objects ---------------------------------------------------------------------------------------------------- */

RULE_CASE(LEAKED_OBJECTS, .lint = "on")
{
	struct ibv_context *context = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);

	assert_non_null(pd);
	expect_error(ibv_dealloc_pd(pd), 0);
	expect_error(ibv_close_device(context), 0);
	expect_no_misuse(LEAKED_OBJECTS);

	context = open_device();
	pd = ibv_alloc_pd(context);
	assert_non_null(pd);
	assert_non_null(ibv_alloc_pd(context));
	expect_error(ibv_close_device(context), 0);
	expect_misuse(LEAKED_OBJECTS,
		      "ibv_close_device: 2 objects of kind PD still exist when their context is closed");
}

RULE_CASE(SENDS_ABANDONED, .lint = "on")
{
	uint32_t number;

	write_word(&pair.client, 1);
	expect_completion(&pair.client, 1, IBV_WC_RDMA_WRITE);
	pair_renew(&pair);
	expect_no_misuse(SENDS_ABANDONED);

	write_word(&pair.client, 1);
	write_word(&pair.client, 2);
	number = pair.client.qp->qp_num;
	endpoint_destroy_qp(&pair.client);
	expect_misuse(
		SENDS_ABANDONED,
		"qp 0x%x ibv_destroy_qp: the queue pair is destroyed in state RTS, and no completion was polled after 2 "
		"signalled send requests",
		number);
}

RULE_CASE(REGION_IN_USE, .lint = "on")
{
	struct ibv_mr *mr = side_register(&client, 0, BYTES, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_send_wr wr = request(IBV_WR_SEND, BYTES);
	struct ibv_sge sink = side_sge(&server, 0, BYTES);
	uint32_t lkey = mr->lkey;

	/* A thread that waits for the completion may continue. */
	post_receive(&pair.server, 1, &sink, 1);
	wr.sg_list->lkey = lkey;
	post_send(&pair.client, &wr);
	expect_completion(&pair.client, WR_ID, IBV_WC_SEND);
	side_deregister(&client, mr);
	expect_no_misuse(REGION_IN_USE);

	mr = side_register(&client, 0, BYTES, IBV_ACCESS_LOCAL_WRITE);
	lkey = mr->lkey;
	post_receive(&pair.server, 2, &sink, 1);
	wr.sg_list->lkey = lkey;
	post_send(&pair.client, &wr);
	side_deregister(&client, mr);
	expect_misuse(
		REGION_IN_USE,
		"ibv_dereg_mr: the region with lkey 0x%x is deregistered, and no completion was polled after 1 signalled "
		"send requests that name it",
		lkey);
	expect_completion(&pair.client, WR_ID, IBV_WC_SEND);
	expect_completion(&pair.server, 1, IBV_WC_RECV);
	expect_completion(&pair.server, 2, IBV_WC_RECV);
	memcpy(server.memory, client.memory, BYTES);
	side_accept(&server);
}

RULE_CASE(HOP_LIMIT_ZERO, .lint = "on")
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = server.gid, .sgid_index = client.gid_index, .hop_limit = 1},
	};
	struct ibv_ah *ah = ibv_create_ah(client.pd, &attr);

	assert_non_null(ah);
	expect_error(ibv_destroy_ah(ah), 0);
	expect_no_misuse(HOP_LIMIT_ZERO);
	attr.grh.hop_limit = 0;
	ah = ibv_create_ah(client.pd, &attr);
	assert_non_null(ah);
	expect_misuse(HOP_LIMIT_ZERO,
		      "ibv_create_ah: the address handle to GID 0x%" PRIx64 ":0x%" PRIx64
		      " has hop limit 0; here its packets leave with 64",
		      be64toh(server.gid.global.subnet_prefix), be64toh(server.gid.global.interface_id));
	expect_error(ibv_destroy_ah(ah), 0);
}

/* ---- queues ----------------------------------------------------------------------------------------------------- */

static void write_unsignalled(uint32_t count)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, BYTES);

	wr.wr.rdma.rkey = server.mr->rkey;
	wr.wr.rdma.remote_addr = side_address(&server, 0);
	wr.send_flags = 0;
	for (; count; count--)
		post_send(&pair.client, &wr);
}

RULE_CASE(QUEUE_UNSIGNALED, .lint = "on")
{
	uint32_t room = pair.client.cap.max_send_wr;

	write_unsignalled(room - 1);
	write_word(&pair.client, 1);
	expect_completion(&pair.client, 1, IBV_WC_RDMA_WRITE);
	expect_no_misuse(QUEUE_UNSIGNALED);

	write_unsignalled(room);
	expect_misuse(
		QUEUE_UNSIGNALED,
		"qp 0x%x ibv_post_send: the last %u send requests, as many as the send queue holds, are all unsignalled",
		pair.client.qp->qp_num, room);
	side_accept(&server);
}

RULE_CASE(CQ_TOO_SMALL, .lint = "on")
{
	struct pair_options options = pair.options;
	struct ibv_sge sink = side_sge(&server, 0, BYTES);

	options.cqe = 15;
	pair_replace(&pair, &options);
	for (int i = 0; i < pair.server.cq->cqe; i++)
		post_receive(&pair.server, i, &sink, 1);
	expect_no_misuse(CQ_TOO_SMALL);

	post_receive(&pair.server, 99, &sink, 1);
	expect_misuse(CQ_TOO_SMALL,
		      "ibv_post_recv: the posted requests can generate %d completions, but CQ 0x%x holds only %d",
		      pair.server.cq->cqe + 1, pair.server.cq->handle, pair.server.cq->cqe);
}

/* ---- shared receive queues -------------------------------------------------------------------------------------- */

enum { SRQ_RECEIVES = 4, SRQ_LIMIT = 2 };

static struct ibv_srq *srq;

static void refill(int count)
{
	struct ibv_sge sink = side_sge(&server, 0, BYTES);
	struct ibv_recv_wr wr = {.sg_list = &sink, .num_sge = 1}, *bad;

	for (; count; count--)
		expect_error(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

static void arm(void)
{
	struct ibv_srq_attr attr = {.srq_limit = SRQ_LIMIT};

	expect_error(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
}

/* Leaves SRQ_LIMIT - 1 receives. */
static void use_up(void)
{
	struct ibv_send_wr wr = request(IBV_WR_SEND, BYTES);

	for (int i = SRQ_LIMIT - 1; i < SRQ_RECEIVES; i++) {
		post_send(&pair.client, &wr);
		expect_completion(&pair.client, WR_ID, IBV_WC_SEND);
		expect_completion(&pair.server, 0, IBV_WC_RECV);
	}
}

static void take_limit_event(void)
{
	struct ibv_async_event event;

	expect_error(ibv_get_async_event(server.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	ibv_ack_async_event(&event);
}

RULE_CASE(SRQ_NOT_ARMED, .lint = "on")
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct pair_options options = pair.options;
	uint32_t handle;

	srq = ibv_create_srq(server.pd, &attr);
	assert_non_null(srq);
	handle = srq->handle;
	options.srq = srq;
	pair_replace(&pair, &options);
	for (int i = 0; i < 2; i++) {
		refill(i ? SRQ_RECEIVES - (SRQ_LIMIT - 1) : SRQ_RECEIVES);
		arm();
		use_up();
		take_limit_event();
	}
	expect_no_misuse(SRQ_NOT_ARMED);

	refill(SRQ_RECEIVES - (SRQ_LIMIT - 1));
	use_up();
	refill(1);
	expect_misuse(
		SRQ_NOT_ARMED,
		"ibv_post_srq_recv: SRQ 0x%x fell below its limit of %d receives again, and was not armed since the last event was taken",
		handle, SRQ_LIMIT);
	options.srq = NULL;
	pair_replace(&pair, &options);
	expect_error(ibv_destroy_srq(srq), 0);
	memcpy(server.memory, client.memory, BYTES);
	side_accept(&server);
}

/* ---- memory and keys -------------------------------------------------------------------------------------------- */

static void write_from(const struct ibv_mr *mr, uint64_t address, unsigned int flags)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, BYTES);

	wr.wr.rdma.rkey = server.mr->rkey;
	wr.wr.rdma.remote_addr = side_address(&server, 0);
	wr.sg_list->addr = address;
	wr.sg_list->lkey = mr->lkey;
	wr.send_flags = flags;
	post_send(&pair.client, &wr);
}

/* A READ into the buffer before a fenced WRITE from it, and one after it: IBTA 10.8.3.3. */
static void changed_by_the_device(void)
{
	uint64_t address = side_address(&client, 8 * BYTES);
	struct ibv_send_wr read = request(IBV_WR_RDMA_READ, BYTES);

	for (int first = 0; first < 2; first++) {
		memset(server.memory, 0x70 + first, BYTES);
		memset(server.memory + 2 * BYTES, 0x60 + first, BYTES);
		read.sg_list->addr = address;
		read.sg_list->lkey = client.mr->lkey;
		read.wr.rdma.rkey = server.mr->rkey;
		read.wr.rdma.remote_addr = side_address(&server, 2 * BYTES);
		read.send_flags = first ? 0 : IBV_SEND_SIGNALED;
		if (first)
			post_send(&pair.client, &read);
		write_from(client.mr, address, first ? IBV_SEND_FENCE | IBV_SEND_SIGNALED : 0);
		if (!first)
			post_send(&pair.client, &read);
		expect_completion(&pair.client, WR_ID, first ? IBV_WC_RDMA_WRITE : IBV_WC_RDMA_READ);
	}
}

RULE_CASE(BUFFER_CHANGED, .lint = "on")
{
	if (!kernel_has_memory_copies())
		skip();
	uint64_t address = side_address(&client, 4 * BYTES);
	struct ibv_sge sink, source = side_sge(&server, 2 * BYTES, BYTES);
	struct ibv_send_wr answer = {
		.wr_id = 3, .sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

	/* After the completion of a later request, too. */
	write_from(client.mr, address, 0);
	write_from(client.mr, address, IBV_SEND_SIGNALED);
	expect_completion(&pair.client, WR_ID, IBV_WC_RDMA_WRITE);
	client.memory[4 * BYTES]++;
	write_from(client.mr, address, IBV_SEND_SIGNALED);
	client.memory[5 * BYTES]++;
	expect_completion(&pair.client, WR_ID, IBV_WC_RDMA_WRITE);
	/* A response may land in the request's buffer: the device writes it after it has read the request. */
	sink = side_sge(&client, 0, BYTES);
	post_receive(&pair.client, 2, &sink, 1);
	write_from(client.mr, side_address(&client, 0), IBV_SEND_SIGNALED);
	post_send(&pair.server, &answer);
	expect_completion(&pair.server, 3, IBV_WC_SEND);
	expect_completion(&pair.client, WR_ID, IBV_WC_RDMA_WRITE);
	expect_completion(&pair.client, 2, IBV_WC_RECV);
	expect_no_misuse(BUFFER_CHANGED);
	changed_by_the_device();
	expect_no_misuse(BUFFER_CHANGED);

	write_from(client.mr, address, IBV_SEND_SIGNALED);
	client.memory[5 * BYTES - 1]++;
	expect_completion(&pair.client, WR_ID, IBV_WC_RDMA_WRITE);
	expect_misuse(BUFFER_CHANGED,
		      "qp 0x%x ibv_poll_cq wr_id %d: [0x%" PRIx64
		      ", +%d) of lkey 0x%x changed between posting the request that reads it and its completion",
		      pair.client.qp->qp_num, WR_ID, address, BYTES, client.mr->lkey);
	side_accept(&client);
	side_accept(&server);
}

RULE_CASE(BUFFER_FREED, .lint = "on")
{
	if (!kernel_has_memory_copies())
		skip();
	enum { PAGE = 4096 };
	uint8_t *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	assert_ptr_not_equal(memory, MAP_FAILED);
	mr = ibv_reg_mr(client.pd, memory, PAGE, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	write_from(mr, (uintptr_t)memory, IBV_SEND_SIGNALED);
	expect_completion(&pair.client, WR_ID, IBV_WC_RDMA_WRITE);
	expect_no_misuse(BUFFER_FREED);

	write_from(mr, (uintptr_t)memory, IBV_SEND_SIGNALED);
	expect_error(munmap(memory, PAGE), 0);
	expect_completion(&pair.client, WR_ID, IBV_WC_RDMA_WRITE);
	expect_misuse(BUFFER_FREED,
		      "qp 0x%x ibv_poll_cq wr_id %d: [0x%" PRIxPTR
		      ", +%d) of lkey 0x%x was unmapped between posting the request that reads it and its completion",
		      pair.client.qp->qp_num, WR_ID, (uintptr_t)memory, BYTES, mr->lkey);
	expect_error(ibv_dereg_mr(mr), 0);
	side_accept(&server);
}

/* ---- read too early --------------------------------------------------------------------------------------------- */

enum { PAGE = 4096, BUFFER_PAGES = 4 };

static uint8_t *buffer;
static struct ibv_mr *buffer_mr;

static struct ibv_sge in_buffer(size_t offset, uint32_t length)
{
	return (struct ibv_sge){(uintptr_t)buffer + offset, length, buffer_mr->lkey};
}

static uint8_t read_byte(size_t offset)
{
	return *(volatile uint8_t *)(buffer + offset);
}

static void open_buffer(void)
{
	buffer = mmap(NULL, BUFFER_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(buffer, MAP_FAILED);
	buffer_mr =
		ibv_reg_mr(server.pd, buffer, BUFFER_PAGES * PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(buffer_mr);
}

static void close_buffer(void)
{
	expect_error(ibv_dereg_mr(buffer_mr), 0);
	expect_error(munmap(buffer, BUFFER_PAGES * PAGE), 0);
}

/* Sends from the client and polls its completion and that of the receive @wr_id. */
static void send_bytes(uint32_t length)
{
	struct ibv_send_wr wr = request(IBV_WR_SEND, length);

	post_send(&pair.client, &wr);
	expect_completion(&pair.client, WR_ID, IBV_WC_SEND);
}

static void receive_bytes(uint64_t wr_id, uint32_t length)
{
	send_bytes(length);
	expect_completion(&pair.server, wr_id, IBV_WC_RECV);
}

static void expect_byte(size_t offset, const uint8_t *value)
{
	assert_int_equal(read_byte(offset), *value);
}

/* Accesses that are allowed in and around the buffers of receives. */
static void read_in_time(void)
{
	struct ibv_sge whole = in_buffer(0, 2 * PAGE), same = whole, part = in_buffer(100, PAGE);
	struct ibv_mr *again;

	post_receive(&pair.server, 1, &whole, 1);
	/* After the buffer; the program writes inside it. */
	read_byte(2 * PAGE);
	buffer[0] = 1;
	receive_bytes(1, 2 * PAGE);
	expect_byte(0, client.memory);
	expect_byte(2 * PAGE - 1, client.memory + 2 * PAGE - 1);

	/* The buffer is only a part of the page. */
	post_receive(&pair.server, 1, &part, 1);
	read_byte(0);
	receive_bytes(1, PAGE);

	/* Several receives share a buffer, as in the ping-pong programs. */
	for (int i = 0; i < 3; i++)
		post_receive(&pair.server, i, &same, 1);
	for (int i = 0; i < 3; i++) {
		receive_bytes(i, PAGE);
		expect_byte(1, client.memory + 1);
		if (i == 1)
			post_receive(&pair.server, 3, &same, 1);
	}
	receive_bytes(3, PAGE);

	/* Registered twice. */
	again = ibv_reg_mr(server.pd, buffer, PAGE, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(again);
	post_receive(&pair.server, 1, &whole, 1);
	read_byte(0);
	expect_error(ibv_dereg_mr(again), 0);
	receive_bytes(1, PAGE);
}

/* Writes of the device, and requests that end without a completion, are not reads. */
static void used_otherwise(void)
{
	struct ibv_sge whole = in_buffer(0, 2 * PAGE);
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, PAGE), answer = request(IBV_WR_SEND, PAGE);
	struct ibv_sge source = in_buffer(PAGE, PAGE), sink = side_sge(&client, 0, PAGE);
	struct ibv_recv_wr refused = {.num_sge = 1000}, *bad;

	/* A refused list is not examined. */
	expect_error(ibv_post_recv(pair.server.qp, &refused, &bad), EINVAL);
	post_receive(&pair.server, 1, &whole, 1);
	wr.wr.rdma.rkey = buffer_mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)buffer;
	post_send(&pair.client, &wr);
	expect_completion(&pair.client, WR_ID, IBV_WC_RDMA_WRITE);
	expect_byte(0, client.memory);
	/* Sent from the same buffer. */
	post_receive(&pair.client, 2, &sink, 1);
	*answer.sg_list = source;
	post_send(&pair.server, &answer);
	expect_completion(&pair.server, WR_ID, IBV_WC_SEND);
	expect_completion(&pair.client, 2, IBV_WC_RECV);
	pair_renew(&pair);
	read_byte(PAGE);
	memcpy(client.memory, buffer + PAGE, PAGE);
	side_accept(&client);
}

RULE_CASE(RECEIVE_READ_EARLY, .lint = "on")
{
	if (!kernel_has_kinds_of_faults())
		skip();
	struct ibv_sge sink;

	open_buffer();
	used_otherwise();
	read_in_time();
	expect_no_misuse(RECEIVE_READ_EARLY);
	/* Memory that is registered twice is no longer watched. */
	close_buffer();

	open_buffer();
	sink = in_buffer(100, 2 * PAGE);
	/* Before and after the message arrives: one warning for each queue pair. */
	for (int there = 0; there < 2; there++) {
		pair_renew(&pair);
		post_receive(&pair.server, 7, &sink, 1);
		if (there)
			send_bytes(2 * PAGE);
		read_byte(PAGE + 5);
		if (there)
			expect_byte(PAGE + 6, client.memory + PAGE + 6 - 100);
		else
			send_bytes(2 * PAGE);
		expect_completion(&pair.server, 7, IBV_WC_RECV);
		expect_misuse(RECEIVE_READ_EARLY,
			      "qp 0x%x ibv_post_recv wr_id 7: the buffer of the receive was read at 0x%" PRIxPTR
			      " before its completion was polled",
			      pair.server.qp->qp_num, (uintptr_t)buffer + PAGE + 5);
	}
	close_buffer();
}

struct reader {
	bool polls; /* atomic */
	uint8_t seen;
};

/* Polls the last byte of the buffer, and takes it for the others, too. */
static void *take_last_for_all(void *argument)
{
	struct reader *reader = argument;
	double deadline = seconds_now() + 10;

	__atomic_store_n(&reader->polls, true, __ATOMIC_RELEASE);
	while (!read_byte(BUFFER_PAGES * PAGE - 1) && seconds_now() < deadline)
		;
	reader->seen = read_byte(PAGE + 3);
	return NULL;
}

RULE_CASE(WRITE_READ_EARLY, .lint = "on,write-read-early")
{
	if (!kernel_has_kinds_of_faults())
		skip();
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, BUFFER_PAGES * PAGE);
	struct reader reader = {.seen = 0xff};
	pthread_t thread;

	open_buffer();
	client.memory[BUFFER_PAGES * PAGE - 1] = client.memory[PAGE + 3] = 1;
	side_accept(&client);
	wr.wr.rdma.rkey = buffer_mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)buffer;
	/* The program reads before the completion of a later request. */
	post_send(&pair.client, &wr);
	expect_completion(&pair.client, WR_ID, IBV_WC_RDMA_WRITE);
	assert_memory_equal(buffer, client.memory, BUFFER_PAGES * PAGE);
	expect_no_misuse(WRITE_READ_EARLY);

	/* On a busy machine the thread may not be scheduled during that time. */
	for (int tries = 0; reader.seen && tries < 100; tries++) {
		memset(buffer, 0, BUFFER_PAGES * PAGE);
		reader.polls = false;
		expect_error(pthread_create(&thread, NULL, take_last_for_all, &reader), 0);
		while (!__atomic_load_n(&reader.polls, __ATOMIC_ACQUIRE))
			sched_yield();
		post_send(&pair.client, &wr);
		expect_error(pthread_join(thread, NULL), 0);
		expect_completion(&pair.client, WR_ID, IBV_WC_RDMA_WRITE);
		assert_memory_equal(buffer, client.memory, BUFFER_PAGES * PAGE);
	}
	expect_misuse(WRITE_READ_EARLY,
		      "qp 0x%x RDMA WRITE: 0x%" PRIxPTR " was read when the last bytes of the WRITE to [0x%" PRIxPTR
		      ", +%d) had arrived, and the others had not",
		      pair.server.qp->qp_num, (uintptr_t)buffer + PAGE + 3, (uintptr_t)buffer, BUFFER_PAGES * PAGE - 8);
	assert_int_equal(reader.seen, 0);
	close_buffer();
}

static void post_bind(struct ibv_mw *mw)
{
	struct ibv_mw_bind bind = {
		.wr_id = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = server.mr,
			      .addr = side_address(&server, 0),
			      .length = BYTES,
			      .mw_access_flags = IBV_ACCESS_REMOTE_WRITE},
	};

	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
}

/* Sends the rkey of @mw from @endpoint to its peer, inline or not. */
static void send_rkey(struct endpoint *endpoint, const struct ibv_mw *mw, unsigned int flags)
{
	struct side *side = endpoint->side;
	struct ibv_sge source = side_sge(side, 64, 2 * sizeof(uint32_t)), sink;
	struct ibv_send_wr wr = {
		.sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED | flags};

	sink = side_sge(endpoint->peer->side, 128, 2 * sizeof(uint32_t));
	((__be32 *)(side->memory + 64))[1] = htobe32(mw->rkey);
	post_receive(endpoint->peer, 2, &sink, 1);
	post_send(endpoint, &wr);
	expect_completion(endpoint->peer, 2, IBV_WC_RECV);
}

RULE_CASE(WINDOW_KEY_EARLY, .lint = "on")
{
	if (!kernel_has_memory_copies())
		skip();
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	static struct pair other;

	options.max_inline_data = 64;
	pair_open(&other, &client, &server, &options);
	/* Allowed at once on the queue pair of the bind, elsewhere only after the bind completed. */
	post_bind(mw);
	send_rkey(&pair.server, mw, 0);
	expect_completion(&pair.server, 1, IBV_WC_BIND_MW);
	expect_completion(&pair.server, 0, IBV_WC_SEND);
	send_rkey(&other.server, mw, 0);
	expect_completion(&other.server, 0, IBV_WC_SEND);
	expect_no_misuse(WINDOW_KEY_EARLY);

	for (int i = 0; i < 2; i++) {
		if (i)
			pair_renew(&other);
		post_bind(mw);
		send_rkey(&other.server, mw, i ? IBV_SEND_INLINE : 0);
		expect_misuse(
			WINDOW_KEY_EARLY,
			"qp 0x%x ibv_post_send: the request carries rkey 0x%x to another queue pair before the completion of its bind on queue pair 0x%x was polled",
			other.server.qp->qp_num, mw->rkey, pair.server.qp->qp_num);
		expect_completion(&pair.server, 1, IBV_WC_BIND_MW);
		expect_completion(&other.server, 0, IBV_WC_SEND);
	}
	pair_close(&other);
	side_accept(&client);
	side_accept(&server);
}

/* A copy by the device, and a request that sends a part of it. */
/* Posts a copy to byte 256 of the client's memory and a SEND of the copied bytes. */
static void copy_and_send(bool fenced)
{
	struct ibv_sge sink = side_sge(&server, 0, BYTES);
	uint64_t from = side_address(&client, 0), to = side_address(&client, 256);

	post_receive(&pair.server, 2, &sink, 1);
	ibv_wr_start(pair.client.ex);
	pair.client.ex->wr_id = 1;
	pair.client.ex->wr_flags = 0;
	mlx5dv_wr_memcpy(pair.client.dv, client.mr->lkey, to, client.mr->lkey, from, BYTES);
	pair.client.ex->wr_id = WR_ID;
	pair.client.ex->wr_flags = IBV_SEND_SIGNALED | (fenced ? IBV_SEND_FENCE : 0);
	ibv_wr_send(pair.client.ex);
	ibv_wr_set_sge(pair.client.ex, client.mr->lkey, to + 4, BYTES);
	expect_error(ibv_wr_complete(pair.client.ex), 0);
	expect_completion(&pair.client, WR_ID, IBV_WC_SEND);
	expect_completion(&pair.server, 2, IBV_WC_RECV);
}

/* Posts a READ to byte 256 of the client's memory and a WRITE of its result by a WQE with this fence mode (mlx5-formats
 * 1.3). */
static void read_and_write_in_mode(uint32_t mode)
{
	struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		struct mlx5_wqe_raddr_seg remote;
		struct mlx5_wqe_data_seg data;
	} wqe = {0};
	uint64_t to = side_address(&client, 256);

	mlx5dv_set_ctrl_seg(&wqe.ctrl, 0, MLX5_OPCODE_RDMA_WRITE, 0, pair.client.qp->qp_num,
			    (uint8_t)(MLX5_WQE_CTRL_CQ_UPDATE | mode << 5), sizeof(wqe) / 16, 0, 0);
	wqe.remote.raddr = htobe64(side_address(&server, 0));
	wqe.remote.rkey = htobe32(server.mr->rkey);
	mlx5dv_set_data_seg(&wqe.data, BYTES, client.mr->lkey, to);
	ibv_wr_start(pair.client.ex);
	pair.client.ex->wr_id = 1;
	pair.client.ex->wr_flags = 0;
	ibv_wr_rdma_read(pair.client.ex, server.mr->rkey, side_address(&server, 4096));
	ibv_wr_set_sge(pair.client.ex, client.mr->lkey, to, BYTES);
	pair.client.ex->wr_id = WR_ID;
	mlx5dv_wr_raw_wqe(pair.client.dv, &wqe);
	expect_error(ibv_wr_complete(pair.client.ex), 0);
	expect_completion(&pair.client, WR_ID, IBV_WC_DRIVER2);
}

RULE_CASE(TARGET_UNFENCED, .lint = "on")
{
	struct pair_options options = signed_options();
	uint64_t to = side_address(&client, 256);

	options.dv_send_ops |= MLX5DV_QP_EX_WITH_MEMCPY | MLX5DV_QP_EX_WITH_RAW_WQE;
	pair_replace(&pair, &options);
	copy_and_send(true);
	expect_no_misuse(TARGET_UNFENCED);
	for (uint32_t mode = 2; mode <= 4; mode++)
		read_and_write_in_mode(mode);
	expect_no_misuse(TARGET_UNFENCED);
	read_and_write_in_mode(1);
	expect_misuse(
		TARGET_UNFENCED,
		"qp 0x%x ibv_wr_complete wr_id %d: the request reads [0x%" PRIx64
		", +%d) of lkey 0x%x without a fence, while RDMA_READ with wr_id 1, which writes there, has not completed",
		pair.client.qp->qp_num, WR_ID, to, BYTES, client.mr->lkey);
	pair_renew(&pair);
	copy_and_send(false);
	expect_misuse(
		TARGET_UNFENCED,
		"qp 0x%x ibv_wr_complete wr_id %d: the request reads [0x%" PRIx64
		", +%d) of lkey 0x%x without a fence, while MMO with wr_id 1, which writes there, has not completed",
		pair.client.qp->qp_num, WR_ID, to + 4, BYTES, client.mr->lkey);
	side_accept(&client);
	side_accept(&server);
}

/* ---- READs ------------------------------------------------------------------------------------------------------ */

/* Posts as many READs as the peer grants, then one more, then another that waits for the others. */
RULE_CASE(READS_NOT_GRANTED, .lint = "on")
{
	enum { GRANTED = 2 };
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	for (int conforms = 1; conforms >= 0; conforms--) {
		options.max_dest_rd_atomic = GRANTED;
		options.max_rd_atomic = conforms ? GRANTED : GRANTED + 1;
		pair_replace(&pair, &options);
		for (uint64_t wr_id = 1; wr_id <= GRANTED + 1; wr_id++) {
			struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, 8);

			if (!conforms && wr_id == GRANTED + 1)
				expect_no_misuse(READS_NOT_GRANTED);
			wr.wr_id = wr_id;
			wr.wr.rdma.rkey = server.mr->rkey;
			wr.wr.rdma.remote_addr = side_address(&server, 0);
			post_send(&pair.client, &wr);
		}
		for (uint64_t wr_id = 1; wr_id <= GRANTED + 1; wr_id++)
			expect_completion(&pair.client, wr_id, IBV_WC_RDMA_READ);
		if (conforms)
			expect_no_misuse(READS_NOT_GRANTED);
	}
	expect_misuse(
		READS_NOT_GRANTED,
		"qp 0x%x ibv_post_send: 3 READs and atomics are posted and not completed; queue pair 0x%x, which executes them, has max_dest_rd_atomic 2, and max_rd_atomic is 3 here",
		pair.client.qp->qp_num, pair.server.qp->qp_num);
	side_accept(&client);
	side_accept(&server);
}

/* ---- signatures ------------------------------------------------------------------------------------------------- */

static const struct mlx5dv_sig_crc crc = {.type = MLX5DV_SIG_CRC_TYPE_CRC32};
static const struct mlx5dv_sig_block_domain domain = {
	.sig_type = MLX5DV_SIG_TYPE_CRC, .sig = {.crc = &crc}, .block_size = MLX5DV_BLOCK_SIZE_512};

/* Configures @mkey in a chain that is still open; @check_mask: of a signature @in memory, unless NULL. */
static void configure_by(struct mlx5dv_mkey *mkey, uint32_t access, const struct mlx5dv_sig_block_domain *in,
			 uint8_t check_mask, uint32_t flags)
{
	struct mlx5dv_mkey_conf_attr conf = {.conf_flags = flags};
	struct mlx5dv_sig_block_attr attr = {.mem = in, .check_mask = check_mask};
	struct ibv_sge sge = side_sge(&client, 0, 1024);

	batch_start(&pair.client, 1, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(pair.client.dv, mkey, in ? 3 : 2, &conf);
	mlx5dv_wr_set_mkey_access_flags(pair.client.dv, access);
	mlx5dv_wr_set_mkey_layout_list(pair.client.dv, 1, &sge);
	if (in)
		mlx5dv_wr_set_mkey_sig_block(pair.client.dv, &attr);
}

static void configure(struct mlx5dv_mkey *mkey, bool sign, uint8_t check_mask, uint32_t flags)
{
	configure_by(mkey, IBV_ACCESS_LOCAL_WRITE, sign ? &domain : NULL, check_mask, flags);
}

static void configured(void)
{
	expect_error(ibv_wr_complete(pair.client.ex), 0);
	expect_completion(&pair.client, 1, IBV_WC_DRIVER1);
}

static void signed_pair(void)
{
	struct pair_options options = signed_options();

	pair_replace(&pair, &options);
}

RULE_CASE(KEY_AFTER_ABORT, .lint = "on")
{
	struct mlx5dv_mkey *mkey;

	signed_pair();
	mkey = side_create_signed_mkey(&client, 4);
	configure(mkey, true, 0, 0);
	ibv_wr_abort(pair.client.ex);
	configure(mkey, true, 0, 0);
	configured();
	configure(mkey, false, 0, 0);
	configured();
	configure(mkey, true, 0, 0);
	ibv_wr_abort(pair.client.ex);
	configure(mkey, false, 0, MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR);
	configured();
	configure(mkey, false, 0, 0);
	configured();
	expect_no_misuse(KEY_AFTER_ABORT);

	configure(mkey, true, 0, 0);
	ibv_wr_abort(pair.client.ex);
	configure(mkey, false, 0, 0);
	configured();
	expect_misuse(KEY_AFTER_ABORT,
		      "qp 0x%x mlx5dv_wr_mkey_configure: mkey 0x%x is configured without a signature and without "
		      "MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR, after one was set in a chain that was aborted or refused",
		      pair.client.qp->qp_num, mkey->lkey);
}

static struct mlx5dv_mkey *own_mkey(uint8_t check_mask)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = client.pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
		.max_entries = 4,
	};
	struct mlx5dv_mkey *mkey = mlx5dv_create_mkey(&attr);

	assert_non_null(mkey);
	configure(mkey, true, check_mask, 0);
	configured();
	return mkey;
}

RULE_CASE(SIGNATURE_UNCHECKED, .lint = "on")
{
	struct mlx5dv_mkey_err error;
	struct mlx5dv_mkey *mkey;
	uint32_t lkey;

	signed_pair();
	/* First without checks, then with. */
	mkey = own_mkey(0);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
	mkey = own_mkey(0xff);
	expect_error(mlx5dv_mkey_check(mkey, &error), 0);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
	expect_no_misuse(SIGNATURE_UNCHECKED);

	mkey = own_mkey(0xff);
	lkey = mkey->lkey;
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
	expect_misuse(
		SIGNATURE_UNCHECKED,
		"mlx5dv_destroy_mkey: mkey 0x%x had signatures to check and is destroyed without a call of mlx5dv_mkey_check()",
		lkey);
}

/* ---- the process, the profile ----------------------------------------------------------------------------------- */

static void fork_and_wait(void)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

RULE_CASE(FORK_UNPREPARED, .lint = "on")
{
	/* Equivalent to the call, according to the manual page. */
	setenv("IBV_FORK_SAFE", "1", 1);
	fork_and_wait();
	expect_no_misuse(FORK_UNPREPARED);

	unsetenv("IBV_FORK_SAFE");
	fork_and_wait();
	expect_misuse(FORK_UNPREPARED,
		      "fork: the process forks with regions registered, and ibv_fork_init() was not called");
}

static void expect_difference(const char *call, int rule)
{
	expect_misuse(
		PROFILE_DIFFERS,
		"%s: this call succeeds here, but rule %d refuses it with SOFTHCA_PROFILE=connectx, as drivers of such adapters do",
		call, rule);
}

RULE_CASE(PROFILE_DIFFERS, .lint = "on")
{
	static const struct mlx5dv_sig_crc upper = {.type = MLX5DV_SIG_CRC_TYPE_CRC32, .seed = UINT64_C(1) << 32};
	static const struct mlx5dv_sig_block_domain odd = {
		.sig_type = MLX5DV_SIG_TYPE_CRC, .sig = {.crc = &upper}, .block_size = MLX5DV_BLOCK_SIZE_512};
	struct ibv_mr *mr = ibv_reg_mr_iova(client.pd, client.memory, BYTES, side_address(&client, 0) + 0x100000,
					    IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct mlx5dv_mkey *mkey;

	assert_non_null(mr);
	expect_error(ibv_dereg_mr(mr), 0);
	signed_pair();
	mkey = side_create_signed_mkey(&client, 4);
	configure(mkey, true, 0, 0);
	configured();
	bind_window(mw, WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);
	expect_no_misuse(PROFILE_DIFFERS);

	mr = ibv_reg_mr_iova(client.pd, client.memory, BYTES, side_address(&client, 0) + 16, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	expect_error(ibv_dereg_mr(mr), 0);
	expect_difference("ibv_reg_mr_iova", RULE_MR_PAGE_OFFSET);
	configure_by(mkey, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, NULL, 0, 0);
	configured();
	expect_difference("mlx5dv_wr_set_mkey_access_flags", RULE_MKEY_ACCESS_FLAGS);
	configure_by(mkey, IBV_ACCESS_LOCAL_WRITE, &odd, 0, 0);
	configured();
	expect_difference("mlx5dv_wr_set_mkey_sig_block", RULE_SIG_CRC_SEED);
	bind_window(mw, WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
	expect_difference("ibv_bind_mw", RULE_BIND_ZERO_BASED);
}
