/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program with its own driver: it accesses QP, CQ, SRQ, AH, PD and DM through mlx5dv_init_obj(3), and then works in
 * memory only: WQEs and receives in rings, doorbell records and registers, CQEs and their indices. The latency and CPU
 * time of a doorbell are measured too: limits apply to the best tenth of many attempts, in one of several rounds,
 * because the machine may be busy.
 */
#include <endian.h>
#include <poll.h>

#include "test_clock.h"
#include "support/program.h"
#include "support/rings.h"

enum { BYTES = 256, SRQ_ENTRIES = 16, ROUNDS = 8, MAX_TRIES = 256 };

/* ---- receives: the linked list of an SRQ (mlx5-formats 2.2) ---------------------------------------------------- */

struct own_srq {
	struct ibv_srq *srq;
	struct mlx5dv_srq out;
	uint32_t head, tail;
	uint16_t posted;
};

static struct mlx5_wqe_srq_next_seg *srq_entry(const struct own_srq *own, uint32_t index)
{
	return (void *)((uint8_t *)own->out.buf + (size_t)index * own->out.stride);
}

/* Posts a receive. In RC, receives of one sender complete in the order of posting: the next one is the oldest. */
static uint32_t srq_post(struct own_srq *own, uint64_t address, uint32_t length, uint32_t lkey)
{
	uint32_t index = own->head;
	struct mlx5_wqe_srq_next_seg *entry = srq_entry(own, index);
	struct mlx5_wqe_data_seg *data = (void *)(entry + 1);

	assert_int_not_equal(index, own->tail);
	own->head = be16toh(entry->next_wqe_index);
	mlx5dv_set_data_seg(data, length, lkey, address);
	if (own->out.stride > 2 * RING_UNIT)
		mlx5dv_set_data_seg(data + 1, 0, MLX5_INVALID_LKEY, 0);
	own->posted++;
	__atomic_store_n(own->out.dbrec, htobe32(own->posted), __ATOMIC_RELEASE);
	return index;
}

/* Frees the entry: it is linked after the last free one. */
static void srq_free(struct own_srq *own, uint32_t index)
{
	srq_entry(own, own->tail)->next_wqe_index = htobe16((uint16_t)index);
	own->tail = index;
}

static void open_with_srq(struct own_srq *own)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = SRQ_ENTRIES - 1, .max_sge = 2}};
	struct pair_options options = pair.options;
	struct mlx5dv_obj object;

	*own = (struct own_srq){.out = {.comp_mask = MLX5DV_SRQ_MASK_SRQN}};
	own->srq = ibv_create_srq(server.pd, &attr);
	assert_non_null(own->srq);
	options.srq = own->srq;
	pair_replace(&pair, &options);
	object = (struct mlx5dv_obj){.srq = {.in = own->srq, .out = &own->out}};
	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_SRQ), 0);
	assert_int_equal(own->out.comp_mask, MLX5DV_SRQ_MASK_SRQN);
	own->head = own->out.head;
	own->tail = own->out.tail;
}

static void close_srq(struct own_srq *own)
{
	struct pair_options options = pair.options;

	options.srq = NULL;
	pair_replace(&pair, &options);
	expect_error(ibv_destroy_srq(own->srq), 0);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static const enum ring_style styles[] = {RING_DOORBELL, RING_BLUEFLAME};

static void put_remote(struct mlx5_wqe_raddr_seg *segment, const struct view *target, uint32_t rkey)
{
	segment->raddr = htobe64(target->address);
	segment->rkey = htobe32(rkey);
	segment->reserved = 0;
}

/* Writes a WRITE or READ: @local here, @remote at the peer, through @rkey. Returns the index of its first block. */
static uint32_t put_rdma(struct rings *rings, uint8_t opcode, const struct view *local, const struct view *remote,
			 enum ring_style style)
{
	struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		struct mlx5_wqe_raddr_seg remote;
		struct mlx5_wqe_data_seg data;
	} wqe;
	uint32_t index = rings->producer;

	rings_put_control(rings, (uint8_t *)&wqe, opcode, 3);
	put_remote(&wqe.remote, remote, remote->key);
	mlx5dv_set_data_seg(&wqe.data, (uint32_t)local->length, local->key, local->address);
	rings_put(rings, &wqe, 3);
	rings_ring(rings, 1, style);
	return index;
}

/* Writes a SEND of 40 bytes in the WQE, then the rest by key, then 8 more in the WQE: 7 units. */
static uint32_t put_send(struct rings *rings, const struct view *source, enum ring_style style)
{
	const uint8_t *from = source->side->memory + source->start;
	uint32_t index = rings->producer, head = 40, tail = 8;
	uint8_t wqe[7 * RING_UNIT] = {0};
	uint32_t word;

	rings_put_control(rings, wqe, MLX5_OPCODE_SEND, 7);
	word = htobe32(MLX5_INLINE_SEG | head);
	memcpy(wqe + 16, &word, 4);
	memcpy(wqe + 20, from, head);
	mlx5dv_set_data_seg((void *)(wqe + 64), (uint32_t)source->length - head - tail, source->key,
			    source->address + head);
	word = htobe32(MLX5_INLINE_SEG | tail);
	memcpy(wqe + 80, &word, 4);
	memcpy(wqe + 84, from + source->length - tail, tail);
	rings_put(rings, wqe, 7);
	rings_ring(rings, 2, style);
	return index;
}

/* Writes a UMR that gives @mkey all rights and the @count pieces of @sge (mlx5-formats 1.8). */
static uint32_t put_umr(struct rings *rings, const struct mlx5dv_mkey *mkey, uint32_t count, const struct ibv_sge *sge,
			enum ring_style style)
{
	struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		struct mlx5_wqe_umr_ctrl_seg umr;
		struct mlx5_wqe_mkey_context_seg context;
		struct mlx5_wqe_umr_klm_seg entry[4];
	} wqe = {0};
	uint32_t index = rings->producer;
	uint64_t length = 0;

	rings_put_control(rings, (uint8_t *)&wqe, MLX5_OPCODE_UMR, sizeof(wqe) / RING_UNIT);
	wqe.ctrl.imm = htobe32(mkey->lkey);
	wqe.umr.flags = 0x80;
	wqe.umr.klm_octowords = htobe16(4);
	wqe.umr.mkey_mask = htobe64(1 | 1 << 13 | 1 << 18 | 1 << 19 | 1 << 20 | 1 << 21 | 1 << 29);
	for (uint32_t i = 0; i < count; i++) {
		wqe.entry[i].byte_count = htobe32(sge[i].length);
		wqe.entry[i].mkey = htobe32(sge[i].lkey);
		wqe.entry[i].address = htobe64(sge[i].addr);
		length += sge[i].length;
	}
	wqe.context.access_flags = 0x7c;
	wqe.context.qpn_mkey = htobe32(0xffffff00 | (mkey->lkey & 0xff));
	wqe.context.len = htobe64(length);
	rings_put(rings, &wqe, sizeof(wqe) / RING_UNIT);
	rings_ring(rings, sizeof(wqe) / RING_BLOCK, style);
	return index;
}

static struct view piece_of(struct side *side, uint32_t number, uint32_t key)
{
	return view_with_key(side, key, number % 100 * BYTES, BYTES);
}

static void compare(void)
{
	side_compare(&client);
	side_compare(&server);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

/*
 * Rings of 64 WRs, wrapped many times; both ways to write the register; pauses during which the device stops polling.
 */
TEST(writes_and_reads)
{
	struct rings rings = rings_open(&pair.client);

	side_stir(&client);
	side_stir(&server);
	for (uint32_t i = 0; i < 1500; i++) {
		struct view here = piece_of(&client, i * 7, client.mr->lkey);
		struct view there = piece_of(&server, i * 3, server.mr->rkey);
		bool reads = i % 3 == 2;
		uint32_t index;

		note("request %u", i);
		if (i % 300 == 150)
			sleep_ms(15);
		index = put_rdma(&rings, reads ? MLX5_OPCODE_RDMA_READ : MLX5_OPCODE_RDMA_WRITE, &here, &there,
				 styles[i % 2]);
		rings_expect(&rings, index, reads ? MLX5_OPCODE_RDMA_READ : MLX5_OPCODE_RDMA_WRITE);
		model_copy(reads ? &there : &here, reads ? &here : &there);
		if (i % 50 == 0)
			compare();
	}
	compare();
	expect_state(&pair.client, IBV_QPS_RTS);
}

/* One doorbell for several WQEs. */
TEST(many_at_once)
{
	struct rings rings = rings_open(&pair.client);

	side_stir(&client);
	side_stir(&server);
	for (uint32_t lap = 0; lap < 50; lap++) {
		uint32_t first = rings.producer;

		note("lap %u", lap);
		for (uint32_t i = 0; i < 20; i++) {
			struct view here = piece_of(&client, lap + i, client.mr->lkey);
			struct view there = piece_of(&server, lap * 20 + i, server.mr->rkey);
			struct {
				struct mlx5_wqe_ctrl_seg ctrl;
				struct mlx5_wqe_raddr_seg remote;
				struct mlx5_wqe_data_seg data;
			} wqe;

			rings_put_control(&rings, (uint8_t *)&wqe, MLX5_OPCODE_RDMA_WRITE, 3);
			wqe.ctrl.fm_ce_se = i == 19 ? MLX5_WQE_CTRL_CQ_UPDATE : 0;
			put_remote(&wqe.remote, &there, there.key);
			mlx5dv_set_data_seg(&wqe.data, BYTES, here.key, here.address);
			rings_put(&rings, &wqe, 3);
			rings.producer++;
			model_copy(&here, &there);
		}
		rings.producer -= 1;
		rings_ring(&rings, 1, RING_DOORBELL);
		rings_expect(&rings, first + 19, MLX5_OPCODE_RDMA_WRITE);
		assert_false(rings_has_cqe(&rings));
		side_compare(&server);
	}
}

/*
 * SENDs of inline and other data into an SRQ with a list that the program maintains; the program handles the server's
 * receives and CQEs itself.
 */
TEST(sends_to_an_own_srq)
{
	struct rings rings, receiver;
	struct own_srq own;
	uint32_t free_later[4], waiting = 0;

	open_with_srq(&own);
	rings = rings_open(&pair.client);
	receiver = rings_open(&pair.server);
	side_stir(&client);
	side_stir(&server);
	for (uint32_t i = 0; i < 700; i++) {
		struct view source = piece_of(&client, i * 5, client.mr->lkey);
		struct view sink = piece_of(&server, i * 11, server.mr->lkey);
		uint32_t index, entry = srq_post(&own, sink.address, BYTES, sink.key);
		struct mlx5_cqe64 cqe;

		note("message %u", i);
		index = put_send(&rings, &source, styles[i % 2]);
		cqe = rings_next_cqe(&receiver);
		assert_int_equal(cqe.op_own >> 4, MLX5_CQE_RESP_SEND);
		assert_int_equal(be32toh(cqe.byte_cnt), BYTES);
		assert_int_equal(be16toh(cqe.wqe_counter), entry);
		rings_expect(&rings, index, MLX5_OPCODE_SEND);
		model_copy(&source, &sink);
		/* Freed in a different order. */
		free_later[waiting++] = entry;
		if (waiting == 4)
			while (waiting)
				srq_free(&own, free_later[--waiting]);
		if (i % 50 == 0)
			compare();
	}
	compare();
	close_srq(&own);
}

/* The program configures a key itself, then writes through it, repeatedly. */
TEST(keys)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	static struct layout layout;
	struct rings configures = rings_open(&pair.server), writes = rings_open(&pair.client);

	side_stir(&client);
	side_stir(&server);
	for (uint32_t i = 0; i < 200; i++) {
		struct ibv_sge sge[4];
		struct view through, source;
		uint32_t count = 1 + i % 4, index;

		note("layout %u", i);
		for (uint32_t k = 0; k < count; k++)
			sge[k] = side_sge(&server, (i * 37 + k * 4096) % 60000, 1 + (i * 13 + k * 101) % 500);
		layout_of_list(&layout, &server, (uint16_t)count, sge);
		index = put_umr(&configures, mkey, count, sge, styles[i % 2]);
		rings_expect(&configures, index, MLX5_OPCODE_UMR);
		through = view_key(&server, mkey, &layout);
		source = view_with_key(&client, client.mr->lkey, i * 100, through.length);
		index = put_rdma(&writes, MLX5_OPCODE_RDMA_WRITE, &source, &through, RING_DOORBELL);
		rings_expect(&writes, index, MLX5_OPCODE_RDMA_WRITE);
		model_copy(&source, &through);
		side_compare(&server);
	}
}

/* Uses the address vector of an AH in datagram WQEs that the program writes (mlx5-formats 1.6). */
TEST(datagrams)
{
	struct pair_options options = pair_defaults(IBV_QPT_UD);
	struct mlx5dv_ah out = {0};
	struct mlx5dv_obj object;
	struct rings rings, receiver;

	pair_replace(&pair, &options);
	object = (struct mlx5dv_obj){.ah = {.in = pair.client.ah, .out = &out}};
	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_AH), 0);
	rings = rings_open(&pair.client);
	receiver = rings_open(&pair.server);
	side_stir(&client);
	side_stir(&server);
	for (uint32_t i = 0; i < 200; i++) {
		struct view source = piece_of(&client, i, client.mr->lkey);
		struct view sink = piece_of(&server, 1 + i % 99, server.mr->lkey);
		struct {
			struct mlx5_wqe_ctrl_seg ctrl;
			struct mlx5_wqe_av address;
			struct mlx5_wqe_data_seg data;
		} wqe;
		struct mlx5_cqe64 cqe;
		uint32_t index = rings.producer;

		note("datagram %u", i);
		/* The 40 bytes of the header go where only this case compares them. */
		rings_receive(&receiver, sink.address - 40, BYTES + 40, sink.key);
		rings_put_control(&rings, (uint8_t *)&wqe, MLX5_OPCODE_SEND, sizeof(wqe) / RING_UNIT);
		wqe.address = *out.av;
		wqe.address.key.qkey.qkey = htobe32(PAIR_QKEY);
		wqe.address.dqp_dct |= htobe32(MLX5_EXTENDED_UD_AV | pair.server.qp->qp_num);
		mlx5dv_set_data_seg(&wqe.data, BYTES, source.key, source.address);
		rings_put(&rings, &wqe, sizeof(wqe) / RING_UNIT);
		rings_ring(&rings, 2, styles[i % 2]);
		cqe = rings_next_cqe(&receiver);
		assert_int_equal(cqe.op_own >> 4, MLX5_CQE_RESP_SEND);
		assert_int_equal(be32toh(cqe.byte_cnt), BYTES + 40);
		rings_expect(&rings, index, MLX5_OPCODE_SEND);
		model_copy(&source, &sink);
		memcpy(server.expected + sink.start - 40, server.memory + sink.start - 40, 40);
		side_compare(&server);
	}
}

/* Device memory is written and read as ordinary memory. */
TEST(device_memory)
{
	struct ibv_alloc_dm_attr attr = {.length = 4096};
	struct ibv_dm *dm = ibv_alloc_dm(client.context, &attr);
	struct mlx5dv_dm out = {0};
	struct mlx5dv_obj object = {.dm = {.in = dm, .out = &out}};
	struct rings rings = rings_open(&pair.client);
	struct ibv_mr *mr;

	assert_non_null(dm);
	mr = ibv_reg_dm_mr(client.pd, dm, 0, 4096, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_DM), 0);
	assert_int_equal(out.length, 4096);
	side_stir(&server);
	for (uint32_t i = 0; i < 16; i++) {
		struct view here = {.side = &client, .key = mr->lkey, .address = i * BYTES, .length = BYTES};
		struct view there = piece_of(&server, i * 2, server.mr->rkey);
		uint8_t *bytes = (uint8_t *)out.buf + i * BYTES;

		for (uint32_t k = 0; k < BYTES; k++)
			bytes[k] = server.expected[there.start + k] = (uint8_t)(i * 31 + k);
		rings_expect(&rings, put_rdma(&rings, MLX5_OPCODE_RDMA_WRITE, &here, &there, RING_DOORBELL),
			     MLX5_OPCODE_RDMA_WRITE);
		side_compare(&server);
		there = piece_of(&server, i * 2 + 1, server.mr->rkey);
		rings_expect(&rings, put_rdma(&rings, MLX5_OPCODE_RDMA_READ, &here, &there, RING_BLUEFLAME),
			     MLX5_OPCODE_RDMA_READ);
		assert_memory_equal(bytes, server.expected + there.start, BYTES);
	}
	expect_error(ibv_dereg_mr(mr), 0);
	expect_error(ibv_free_dm(dm), 0);
}

static uint32_t number_of(struct ibv_pd *pd)
{
	struct mlx5dv_pd out = {0};
	struct mlx5dv_obj object = {.pd = {.in = pd, .out = &out}};

	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_PD), 0);
	return out.pdn;
}

/* A 24-bit number per domain; a parent domain has the number of the PD it was created from. */
TEST(protection_domains)
{
	struct ibv_pd *other = ibv_alloc_pd(client.context);
	struct ibv_parent_domain_init_attr attr = {.pd = client.pd};
	struct ibv_pd *parent = ibv_alloc_parent_domain(client.context, &attr);

	assert_int_not_equal(number_of(client.pd), number_of(other));
	assert_int_equal(number_of(client.pd), number_of(parent));
	assert_true(number_of(other) && number_of(other) < 1 << 24);
	expect_error(ibv_dealloc_pd(parent), 0);
	expect_error(ibv_dealloc_pd(other), 0);
}

/* The arm word, then the register; the event comes through the completion channel (mlx5-formats 3.6). */
TEST(arming)
{
	struct pair_options options = pair.options;
	struct view here = piece_of(&client, 0, client.mr->lkey), there = piece_of(&server, 0, server.mr->rkey);
	struct rings rings;
	void *context;

	options.channel = true;
	pair_replace(&pair, &options);
	rings = rings_open(&pair.client);
	for (uint32_t sn = 0; sn < 6; sn++) {
		struct pollfd fd = {.fd = pair.client.channel->fd, .events = POLLIN};
		uint32_t word = (sn & 3) << 28 | (rings.consumer & 0xffffff);
		struct ibv_cq *cq;

		note("arming %u", sn);
		if (sn % 2)
			sleep_ms(15);
		__atomic_store_n(&rings.cq.dbrec[1], htobe32(word), __ATOMIC_RELEASE);
		__atomic_store_n((uint64_t *)((uint8_t *)rings.cq.cq_uar + MLX5_CQ_DOORBELL),
				 htobe64((uint64_t)word << 32 | rings.cq.cqn), __ATOMIC_RELEASE);
		/* No request has completed. */
		assert_int_equal(poll(&fd, 1, 5), 0);
		put_rdma(&rings, MLX5_OPCODE_RDMA_WRITE, &here, &there, RING_DOORBELL);
		assert_int_equal(poll(&fd, 1, DEADLINE_SECONDS * 1000), 1);
		expect_error(ibv_get_cq_event(pair.client.channel, &cq, &context), 0);
		assert_ptr_equal(cq, pair.client.cq);
		ibv_ack_cq_events(cq, 1);
		rings_next_cqe(&rings);
	}
	model_copy(&here, &there);
}

/* ---- latency and CPU time ----------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

/* Returns the microseconds from doorbell to CQE, best tenth of @tries, each after @silence_us. */
static double short_us(struct rings *rings, uint32_t tries, long silence_us)
{
	struct view here = view_with_key(&client, client.mr->lkey, 0, 8),
		    there = view_with_key(&server, server.mr->rkey, 0, 8);
	const struct timespec silence = {.tv_nsec = silence_us * 1000};
	double took[MAX_TRIES];

	for (uint32_t i = 0; i < tries; i++) {
		double start;

		if (silence_us)
			nanosleep(&silence, NULL);
		start = seconds_now();
		put_rdma(rings, MLX5_OPCODE_RDMA_WRITE, &here, &there, RING_DOORBELL);
		rings_next_cqe(rings);
		took[i] = (seconds_now() - start) * 1e6;
	}
	qsort(took, tries, sizeof(took[0]), by_value);
	return took[tries / 10];
}

/* A word that another thread looks at as the device does: it sleeps 20 us between two looks. */
struct looker {
	uint32_t asked, answered; /* atomic */
	bool done;                /* atomic */
};

static void *looker_run(void *argument)
{
	const struct timespec pause = {.tv_nsec = 20000};
	struct looker *looker = argument;

	while (!__atomic_load_n(&looker->done, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&looker->answered, __atomic_load_n(&looker->asked, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* Returns the microseconds until such a thread notices a store, best tenth: what the processors allow beside other programs. */
static double yardstick_us(void)
{
	struct looker looker = {0};
	double took[MAX_TRIES];
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, looker_run, &looker), 0);
	for (uint32_t i = 0; i < MAX_TRIES; i++) {
		double start = seconds_now();

		__atomic_store_n(&looker.asked, i + 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&looker.answered, __ATOMIC_ACQUIRE) != i + 1)
			;
		took[i] = (seconds_now() - start) * 1e6;
	}
	__atomic_store_n(&looker.done, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	qsort(took, MAX_TRIES, sizeof(took[0]), by_value);
	return took[MAX_TRIES / 10];
}

static void expect_noticed(struct rings *rings, uint32_t tries, long silence_us, double limit_us)
{
	double best = 1e9;

	for (int round = 0; round < ROUNDS && best > 50; round++) {
		double took = short_us(rings, tries, silence_us);

		best = took < best ? took : best;
	}
	print_message("          completes %.1f us after ringing, after %ld us without a ring\n", best, silence_us);
	if (best > limit_us) {
		double yardstick = yardstick_us();

		if (best > limit_us + 2 * yardstick)
			fail_at(HERE, "%.1f us; another thread notices a store after %.1f us", best, yardstick);
	}
}

/* A program that polls for its completion and rings again; one that rings occasionally; one that was idle. */
TEST(noticed_soon)
{
	struct rings rings = rings_open(&pair.client);

	expect_noticed(&rings, 250, 0, 50);
	expect_noticed(&rings, 250, 200, 50);
	expect_noticed(&rings, 100, 3000, 50);
	/*
	 * The kernel wakes the device if permitted; otherwise the device checks again after an eighth of the idle time.
	 */
	expect_noticed(&rings, 15, 30000, 8000);
	memcpy(server.expected, server.memory, 8);
}

static double processor_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* 10 ms after the last doorbell the process uses no CPU time, whatever objects it has exported. */
TEST(silence_is_free)
{
	struct rings rings = rings_open(&pair.client), others = rings_open(&pair.server);
	double best = 1;

	short_us(&rings, 10, 0);
	(void)others;
	for (int round = 0; round < 3; round++) {
		double before;

		sleep_ms(30);
		before = processor_seconds();
		sleep_ms(400);
		before = (processor_seconds() - before) / 0.4;
		best = before < best ? before : best;
	}
	print_message("          %.3f %% of a processor\n", best * 100);
	assert_true(best < 0.02);
	memcpy(server.expected, server.memory, 8);
}
