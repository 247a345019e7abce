/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects created and destroyed during transfers: one thread writes through an rkey and an mkey while another
 * deregisters and registers the region and configures and invalidates the mkey; a third creates and destroys QPs to
 * which a fourth sends datagrams. Requests succeed or fail; the data of successful ones is in the region that was
 * registered then, and no other memory is written.
 */
#include <sys/mman.h>

#include "fixture.h"

enum { ROUNDS = 400, REGION = 16384, PIECE = 512 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static int stop; /* atomic */

static bool running(void)
{
	return !__atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

/* ---- keys ----------------------------------------------------------------------------------------------------- */

static uint8_t source[REGION];
static struct ibv_mr *source_mr;
static struct mlx5dv_mkey *mkey;
static uint32_t target_rkey;    /* atomic */
static uint64_t target_address; /* atomic */
static struct ibv_qp *writer, *written;
static struct ibv_cq *writer_cq;

static int write_once(uint32_t lkey, uint64_t local, uint32_t rkey, uint64_t remote)
{
	struct ibv_sge sge = {local, PIECE, lkey};
	struct ibv_send_wr *bad, wr = rdma_wr(0, IBV_WR_RDMA_WRITE, &sge, remote, rkey);

	CHECK(!ibv_post_send(writer, &wr, &bad));
	return wait_completion(writer_cq).status;
}

static void *write_always(void *argument)
{
	uint64_t done = 0, refused = 0;

	(void)argument;
	while (running()) {
		uint32_t rkey = __atomic_load_n(&target_rkey, __ATOMIC_ACQUIRE);
		uint64_t remote = __atomic_load_n(&target_address, __ATOMIC_ACQUIRE);
		int status = (done + refused) % 2 ? write_once(source_mr->lkey, (uintptr_t)source, rkey, remote)
						  : write_once(mkey->lkey, 0, rkey, remote);

		CHECK(status == IBV_WC_SUCCESS || status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_LOC_PROT_ERR);
		if (status == IBV_WC_SUCCESS) {
			done++;
			continue;
		}
		refused++;
		to_reset(writer);
		to_reset(written);
		connect_pair(writer, written);
	}
	CHECK(done);
	return NULL;
}

/* Configures the mkey from a QP of this thread. */
static void configure(struct ibv_qp *qp, struct ibv_cq *cq, uint32_t entries)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct mlx5dv_qp_ex *dv = mlx5dv_qp_ex_from_ibv_qp_ex(ex);
	struct mlx5dv_mkey_conf_attr attr = {0};
	struct ibv_sge sge[4];

	for (uint32_t i = 0; i < entries; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)source + i * PIECE, PIECE, source_mr->lkey};
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	mlx5dv_wr_mkey_configure(dv, mkey, 2, &attr);
	mlx5dv_wr_set_mkey_access_flags(dv, IBV_ACCESS_LOCAL_WRITE);
	mlx5dv_wr_set_mkey_layout_list(dv, (uint16_t)entries, sge);
	CHECK(!ibv_wr_complete(ex));
	CHECK(wait_completion(cq).status == IBV_WC_SUCCESS);
}

static void invalidate(struct ibv_qp *qp, struct ibv_cq *cq)
{
	struct ibv_send_wr *bad,
		wr = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = mkey->rkey};

	CHECK(!ibv_post_send(qp, &wr, &bad));
	CHECK(wait_completion(cq).status == IBV_WC_SUCCESS);
}

/* Registers a target between guards that must not change. Returns after the region was unmapped. */
static void one_life(uint8_t fill)
{
	uint8_t *memory = mmap(NULL, 3 * REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	CHECK(memory != MAP_FAILED);
	memset(memory, fill, 3 * REGION);
	mr = ibv_reg_mr(pd, memory + REGION, REGION, ACCESS);
	CHECK(mr);
	__atomic_store_n(&target_address, (uintptr_t)memory + REGION, __ATOMIC_RELEASE);
	__atomic_store_n(&target_rkey, mr->rkey, __ATOMIC_RELEASE);
	nanosleep(&(struct timespec){0, 100000}, NULL);
	CHECK(!ibv_dereg_mr(mr));
	for (int i = 0; i < REGION; i++)
		CHECK(memory[i] == fill && memory[2 * REGION + i] == fill);
	/* A transfer that continued after the deregistration would crash here. */
	CHECK(!munmap(memory, 3 * REGION));
}

static void *change_keys(void *argument)
{
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_qp *a = make_qp(pd, IBV_QPT_RC, cq, cq, NULL), *b = make_qp(pd, IBV_QPT_RC, cq, cq, NULL);

	(void)argument;
	connect_pair(a, b);
	for (int i = 0; i < ROUNDS; i++) {
		configure(a, cq, 1 + (uint32_t)i % 4);
		one_life((uint8_t)(i | 0x80));
		configure(a, cq, 4);
		if (i % 8 == 0)
			invalidate(a, cq);
	}
	CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_cq(cq));
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- queue pairs ---------------------------------------------------------------------------------------------- */

static uint32_t datagram_qpn; /* atomic */

static void *flood(void *argument)
{
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_qp *qp = make_qp(pd, IBV_QPT_UD, cq, cq, NULL);
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_ah *ah;

	(void)argument;
	CHECK(!ibv_query_gid(context, 1, 0, &attr.grh.dgid));
	ah = ibv_create_ah(pd, &attr);
	CHECK(cq && ah);
	to_init(qp);
	to_rts(qp, 0);
	while (running()) {
		struct ibv_sge sge = {(uintptr_t)source, 64, source_mr->lkey};
		struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					       .num_sge = 1,
					       .opcode = IBV_WR_SEND,
					       .send_flags = IBV_SEND_SIGNALED,
					       .wr.ud = {ah, __atomic_load_n(&datagram_qpn, __ATOMIC_ACQUIRE), 0x1234}};

		CHECK(!ibv_post_send(qp, &wr, &bad));
		CHECK(wait_completion(cq).status == IBV_WC_SUCCESS);
	}
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_ah(ah) && !ibv_destroy_cq(cq));
	return NULL;
}

static void *come_and_go(void *argument)
{
	static uint8_t buffer[40 + 64];
	struct ibv_mr *mr = ibv_reg_mr(pd, buffer, sizeof(buffer), ACCESS);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	uint64_t received = 0;

	(void)argument;
	CHECK(mr && cq);
	while (running()) {
		struct ibv_qp *qp = make_qp(pd, IBV_QPT_UD, cq, cq, NULL);
		struct ibv_sge sge = {(uintptr_t)buffer, sizeof(buffer), mr->lkey};
		struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
		struct ibv_wc wc;

		to_init(qp);
		CHECK(!ibv_post_recv(qp, &wr, &bad));
		to_rts(qp, 0);
		__atomic_store_n(&datagram_qpn, qp->qp_num, __ATOMIC_RELEASE);
		for (int i = 0; i < 50; i++) {
			if (ibv_poll_cq(cq, 1, &wc) == 1) {
				CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == sizeof(buffer));
				received++;
				break;
			}
			sched_yield();
		}
		CHECK(!ibv_destroy_qp(qp));
	}
	CHECK(received);
	CHECK(!ibv_destroy_cq(cq) && !ibv_dereg_mr(mr));
	return NULL;
}

int main(void)
{
	void *(*const bodies[])(void *) = {write_always, change_keys, flood, come_and_go};
	struct mlx5dv_mkey_init_attr attr = {.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = 4};
	pthread_t threads[4];

	context = open_first_device();
	attr.pd = pd = ibv_alloc_pd(context);
	source_mr = ibv_reg_mr(pd, source, sizeof(source), ACCESS);
	mkey = mlx5dv_create_mkey(&attr);
	writer_cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	CHECK(pd && source_mr && mkey && writer_cq);
	writer = make_qp(pd, IBV_QPT_RC, writer_cq, writer_cq, NULL);
	written = make_qp(pd, IBV_QPT_RC, writer_cq, writer_cq, NULL);
	connect_pair(writer, written);
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, bodies[i], NULL));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(!ibv_destroy_qp(writer) && !ibv_destroy_qp(written) && !ibv_destroy_cq(writer_cq));
	CHECK(!mlx5dv_destroy_mkey(mkey) && !ibv_dereg_mr(source_mr) && !ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(context));
	return 0;
}
