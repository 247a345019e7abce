/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes that take effect while requests execute, with the objects kept: a region is reregistered with other memory or
 * rights (ibv_rereg_mr(3)), and a receiving queue pair gains and loses a right (ibv_modify_qp(3)). Threads post
 * one-packet WRITEs all the time. After the call returns, revoked memory is not written: the test compares or unmaps
 * it.
 */
#include <sys/mman.h>

#include "fixture.h"

enum { WRITERS = 2, ROUNDS = 100, REGION = 4096, PIECE = 1024, LOOK_NS = 50000 };

/* A thread that writes increasing numbers to its piece of the region. */
struct writer {
	pthread_mutex_t lock; /* protects the state of both queue pairs */
	struct ibv_qp *qp, *peer;
	struct ibv_cq *cq;
	uint64_t source[PIECE / 8];
	struct ibv_mr *source_mr;
	uint32_t index;
	uint32_t done, refused; /* atomic */
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *target;
static uint8_t *memory;         /* of the target; used by the changing thread */
static uint64_t target_address; /* atomic */
static uint32_t target_rkey;    /* atomic */
static int stop;                /* atomic */

static struct writer writers[WRITERS];

/* ---- writing -------------------------------------------------------------------------------------------------- */

static int write_once(struct writer *writer, uint64_t number)
{
	struct ibv_sge sge = {(uintptr_t)writer->source, PIECE, writer->source_mr->lkey};
	struct ibv_send_wr *bad,
		wr = rdma_wr(0, IBV_WR_RDMA_WRITE, &sge,
			     __atomic_load_n(&target_address, __ATOMIC_ACQUIRE) + writer->index * PIECE,
			     __atomic_load_n(&target_rkey, __ATOMIC_ACQUIRE));

	for (int i = 0; i < PIECE / 8; i++)
		writer->source[i] = number;
	CHECK(!ibv_post_send(writer->qp, &wr, &bad));
	return wait_completion(writer->cq).status;
}

static void *write_always(void *argument)
{
	struct writer *writer = argument;

	for (uint64_t number = 1; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); number++) {
		int status = write_once(writer, number);

		if (status == IBV_WC_SUCCESS) {
			__atomic_add_fetch(&writer->done, 1, __ATOMIC_RELEASE);
			continue;
		}
		CHECK(status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR);
		__atomic_add_fetch(&writer->refused, 1, __ATOMIC_RELEASE);
		pthread_mutex_lock(&writer->lock);
		to_reset(writer->qp);
		to_reset(writer->peer);
		connect_pair(writer->qp, writer->peer);
		pthread_mutex_unlock(&writer->lock);
	}
	return NULL;
}

/* Waits until each writer has completed a request posted after this call. */
static void let_all_write(void)
{
	for (int i = 0; i < WRITERS; i++) {
		uint32_t begun = __atomic_load_n(&writers[i].done, __ATOMIC_ACQUIRE);

		for (time_t end = time(NULL) + 20; __atomic_load_n(&writers[i].done, __ATOMIC_ACQUIRE) - begun < 2;
		     sched_yield())
			CHECK(time(NULL) < end);
	}
}

/* ---- changing ------------------------------------------------------------------------------------------------- */

static void pause_shortly(void)
{
	nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
}

static void publish(void)
{
	__atomic_store_n(&target_address, (uintptr_t)memory, __ATOMIC_RELEASE);
	__atomic_store_n(&target_rkey, target->rkey, __ATOMIC_RELEASE);
}

static uint8_t *new_memory(void)
{
	uint8_t *new = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(new != MAP_FAILED);
	return new;
}

/*
 * Checks that each piece consists of one number repeated: a packet in progress is fully written before the call
 * returns.
 */
static void expect_numbers(const uint8_t *from)
{
	for (int i = 0; i < WRITERS; i++)
		CHECK(!memcmp(from + i * PIECE, from + i * PIECE + 8, PIECE - 8));
	for (int i = WRITERS * PIECE; i < REGION; i++)
		CHECK(!from[i]);
}

static void other_memory(void)
{
	uint8_t *before = memory;

	memory = new_memory();
	CHECK(!ibv_rereg_mr(target, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, REGION, 0));
	publish();
	expect_numbers(before);
	/* A request still accessing it would crash here. */
	CHECK(!munmap(before, REGION));
	let_all_write();
}

static void other_rights(void)
{
	uint8_t seen[REGION];
	uint32_t refused = __atomic_load_n(&writers[0].refused, __ATOMIC_ACQUIRE);

	CHECK(!ibv_rereg_mr(target, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
	memcpy(seen, memory, REGION);
	publish();
	for (time_t end = time(NULL) + 20; __atomic_load_n(&writers[0].refused, __ATOMIC_ACQUIRE) == refused;
	     sched_yield())
		CHECK(time(NULL) < end);
	CHECK(!memcmp(seen, memory, REGION));
	CHECK(!ibv_rereg_mr(target, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS));
	publish();
	let_all_write();
}

static void set_rights(struct ibv_qp *qp, unsigned int flags)
{
	struct ibv_qp_attr attr = {.qp_access_flags = flags};

	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS));
}

/* The right is unchanged until the lock is released: a writer waits for that after its request failed. */
static void other_rights_of_queue_pair(struct writer *writer)
{
	uint8_t seen[PIECE], *piece = memory + writer->index * PIECE;
	uint32_t refused;

	pthread_mutex_lock(&writer->lock);
	refused = __atomic_load_n(&writer->refused, __ATOMIC_ACQUIRE);
	set_rights(writer->peer, IBV_ACCESS_LOCAL_WRITE);
	memcpy(seen, piece, PIECE);
	pause_shortly();
	CHECK(!memcmp(seen, piece, PIECE));
	pthread_mutex_unlock(&writer->lock);
	let_all_write();
	CHECK(__atomic_load_n(&writer->refused, __ATOMIC_ACQUIRE) != refused);
}

static void change_always(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		other_memory();
		other_rights();
		other_rights_of_queue_pair(&writers[i % WRITERS]);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
}

/* ---- the program ---------------------------------------------------------------------------------------------- */

static void open_writer(struct writer *writer, uint32_t index)
{
	writer->index = index;
	pthread_mutex_init(&writer->lock, NULL);
	writer->cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	writer->source_mr = ibv_reg_mr(pd, writer->source, sizeof(writer->source), IBV_ACCESS_LOCAL_WRITE);
	CHECK(writer->cq && writer->source_mr);
	writer->qp = make_qp(pd, IBV_QPT_RC, writer->cq, writer->cq, NULL);
	writer->peer = make_qp(pd, IBV_QPT_RC, writer->cq, writer->cq, NULL);
	connect_pair(writer->qp, writer->peer);
}

static void close_writer(struct writer *writer)
{
	CHECK(!ibv_destroy_qp(writer->qp) && !ibv_destroy_qp(writer->peer));
	CHECK(!ibv_destroy_cq(writer->cq) && !ibv_dereg_mr(writer->source_mr));
}

int main(void)
{
	pthread_t threads[WRITERS];

	context = open_first_device();
	pd = ibv_alloc_pd(context);
	memory = new_memory();
	target = ibv_reg_mr(pd, memory, REGION, ACCESS);
	CHECK(pd && target);
	publish();
	for (uint32_t i = 0; i < WRITERS; i++)
		open_writer(&writers[i], i);
	for (int i = 0; i < WRITERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, write_always, &writers[i]));
	change_always();
	for (int i = 0; i < WRITERS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	for (int i = 0; i < WRITERS; i++)
		close_writer(&writers[i]);
	CHECK(!ibv_dereg_mr(target) && !munmap(memory, REGION) && !ibv_dealloc_pd(pd) && !ibv_close_device(context));
	return 0;
}
