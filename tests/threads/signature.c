/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signature errors among threads: one reads from a key with wrong fields, two query the errors, one of which also
 * reconfigures the key, two more create and destroy keys with signatures. Every error belongs to the one key and is
 * reported completely, to one of the querying threads.
 */
#include "fixture.h"

enum { ROUNDS = 3000, BLOCK = 512, BYTES = 2 * (BLOCK + 4), CHURNERS = 2, CHURN_KEYS = 16, THREADS = 2 + CHURNERS };

static struct ibv_context *context;
static struct ibv_pd *pd;
static uint8_t memory[BYTES], sink[2 * BLOCK];
static struct ibv_mr *memory_mr, *sink_mr;
static struct mlx5dv_mkey *mkey;
static struct ibv_qp *reader, *owner;
static struct ibv_cq *reader_cq, *owner_cq;
static int stop; /* atomic */

static bool running(void)
{
	return !__atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

static struct mlx5dv_mkey *create_key(void)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
		.max_entries = 4,
	};
	struct mlx5dv_mkey *key = mlx5dv_create_mkey(&attr);

	CHECK(key);
	return key;
}

/* Configures everything the first time; later calls use the builder alone. */
static void configure(bool all)
{
	struct mlx5dv_sig_crc crc = {MLX5DV_SIG_CRC_TYPE_CRC32C, 0};
	struct mlx5dv_sig_block_domain domain = {.sig_type = MLX5DV_SIG_TYPE_CRC, .sig.crc = &crc};
	struct mlx5dv_sig_block_attr signature = {.mem = &domain, .check_mask = MLX5DV_SIG_MASK_CRC32C};
	struct ibv_sge sge = {(uintptr_t)memory, BYTES, memory_mr->lkey};
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(owner);
	struct mlx5dv_qp_ex *dv = mlx5dv_qp_ex_from_ibv_qp_ex(ex);
	struct mlx5dv_mkey_conf_attr attr = {0};

	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	mlx5dv_wr_mkey_configure(dv, mkey, all ? 3 : 0, &attr);
	if (all) {
		mlx5dv_wr_set_mkey_access_flags(dv, IBV_ACCESS_REMOTE_READ);
		mlx5dv_wr_set_mkey_layout_list(dv, 1, &sge);
		mlx5dv_wr_set_mkey_sig_block(dv, &signature);
	}
	CHECK(!ibv_wr_complete(ex));
	CHECK(wait_completion(owner_cq).status == IBV_WC_SUCCESS);
}

static void *read_always(void *argument)
{
	struct ibv_sge sge = {(uintptr_t)sink, sizeof(sink), sink_mr->lkey};
	struct ibv_send_wr *bad, wr = rdma_wr(0, IBV_WR_RDMA_READ, &sge, 0, mkey->rkey);

	(void)argument;
	while (running()) {
		CHECK(!ibv_post_send(reader, &wr, &bad));
		CHECK(wait_completion(reader_cq).status == IBV_WC_SUCCESS);
	}
	return NULL;
}

static void *churn(void *argument)
{
	struct mlx5dv_mkey *keys[CHURN_KEYS];
	struct mlx5dv_mkey_err err;

	(void)argument;
	while (running()) {
		for (int i = 0; i < CHURN_KEYS; i++)
			keys[i] = create_key();
		for (int i = 0; i < CHURN_KEYS; i++) {
			CHECK(!mlx5dv_mkey_check(keys[i], &err));
			CHECK(err.err_type == MLX5DV_MKEY_NO_ERR);
			CHECK(!mlx5dv_destroy_mkey(keys[i]));
		}
	}
	return NULL;
}

/* Returns true if the key had an error. */
static bool take_error(void)
{
	struct mlx5dv_mkey_err err;

	CHECK(!mlx5dv_mkey_check(mkey, &err));
	if (err.err_type == MLX5DV_MKEY_NO_ERR)
		return false;
	CHECK(err.err_type == MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
	/* The previous error may be taken in the middle of a READ. */
	CHECK(err.err.sig.offset == 0 || err.err.sig.offset == BLOCK);
	CHECK(err.err.sig.expected_value == 0x01010101 && err.err.sig.actual_value != 0x01010101);
	return true;
}

/* Waits for the next error of the key, which must occur, because the key is read continuously. */
static void wait_error(void)
{
	time_t end = time(NULL) + 20;

	while (!take_error())
		CHECK(time(NULL) < end);
}

static void *take_always(void *argument)
{
	(void)argument;
	while (running())
		take_error();
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	context = open_first_device();
	pd = ibv_alloc_pd(context);
	memset(memory, 1, sizeof(memory));
	memory_mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	sink_mr = ibv_reg_mr(pd, sink, sizeof(sink), IBV_ACCESS_LOCAL_WRITE);
	reader_cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	owner_cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	reader = make_qp(pd, IBV_QPT_RC, reader_cq, reader_cq, NULL);
	owner = make_qp(pd, IBV_QPT_RC, owner_cq, owner_cq, NULL);
	connect_pair(reader, owner);
	mkey = create_key();
	configure(true);

	CHECK(!pthread_create(&threads[0], NULL, read_always, NULL));
	CHECK(!pthread_create(&threads[1], NULL, take_always, NULL));
	for (int i = 2; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, churn, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		wait_error();
		configure(false);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));

	CHECK(!ibv_destroy_qp(reader) && !ibv_destroy_qp(owner));
	CHECK(!ibv_destroy_cq(reader_cq) && !ibv_destroy_cq(owner_cq));
	CHECK(!mlx5dv_destroy_mkey(mkey));
	CHECK(!ibv_dereg_mr(memory_mr) && !ibv_dereg_mr(sink_mr));
	CHECK(!ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(context));
	return 0;
}
