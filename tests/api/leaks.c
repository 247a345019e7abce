/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocation failures and leaks. For each call that creates something, the first allocation fails, then the second,
 * until none does. The call fails with ENOMEM (or the error of the system call) and frees everything it took, and the
 * device keeps working. A call that succeeds frees everything when its object is destroyed.
 */
#include "support/descriptors.h"
#include "support/program.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "failing_allocations.h"

/* ---- the loop ----------------------------------------------------------------------------------------------- */

struct state {
	long blocks, mappings;
	int descriptors;
};

static struct state now(void)
{
	return (struct state){books.blocks, books.mappings, count_descriptors()};
}

static bool state_is_kept(struct state before)
{
	struct state after = now();

	return after.blocks == before.blocks && after.mappings == before.mappings &&
	       after.descriptors == before.descriptors;
}

static void expect_state_kept(struct place place, struct state before)
{
	struct state after = now();

	if (after.blocks != before.blocks)
		fail_at(place, "%ld blocks of memory are left", after.blocks - before.blocks);
	if (after.mappings != before.mappings)
		fail_at(place, "%ld mappings are left", after.mappings - before.mappings);
	if (after.descriptors != before.descriptors)
		fail_at(place, "%d descriptors are left", after.descriptors - before.descriptors);
}

/* Posts a request on a pair that is unrelated to the calls under test. */
static void expect_device_works(struct place place)
{
	struct ibv_sge sge = side_sge(&client, 0, 64);
	struct ibv_send_wr wr = rdma_wr(1, IBV_WR_RDMA_WRITE, &sge, side_address(&server, 0), server.mr->rkey);

	post_send_(place, &pair.client, &wr);
	expect_completion_(place, &pair.client, 1, IBV_WC_RDMA_WRITE);
	memcpy(server.expected, client.expected, 64);
}

/* An object to create and destroy. make() sets errno if it returns NULL; the second function must succeed. */
struct kind {
	void *(*make)(void);
	int (*unmake)(void *object);
};

enum { MOST_ALLOCATIONS = 200, ATTEMPTS = 50, ATTEMPT_US = 20000 };

static void *make_failing(const struct kind *kind, unsigned int which)
{
	void *object;

	books.left = which;
	books.fired = 0;
	books.armed = true;
	watched = true;
	errno = 0;
	object = kind->make();
	watched = false;
	books.armed = false;
	return object;
}

/*
 * While another thread of the library is in a section, what was unpublished meanwhile is freed by a later call
 * (core/epoch.h): lets calls follow until nothing is left. What has leaked remains.
 */
static void let_later_calls_free(struct place place, const struct kind *kind, struct state before)
{
	for (int i = 0; i < ATTEMPTS && !state_is_kept(before); i++) {
		void *object;

		usleep(ATTEMPT_US);
		object = kind->make();
		if (!object)
			fail_at(place, "the call fails: %s", strerror(errno));
		expect_error_(place, "unmake()", kind->unmake(object), 0);
	}
}

/*
 * Returns the number of allocations. A call may succeed despite a failure; destroying the object then checks that it is
 * valid.
 */
static unsigned int fail_one_after_the_other_(struct place place, const struct kind *kind)
{
	unsigned int which, refused = 0;
	struct state before;
	void *object = kind->make(); /* one-time allocations, kept from now on */

	if (!object)
		fail_at(place, "the call fails: %s", strerror(errno));
	expect_error_(place, "unmake()", kind->unmake(object), 0);
	for (which = 1; which <= MOST_ALLOCATIONS; which++) {
		int error;

		before = now();
		object = make_failing(kind, which);
		error = errno;
		if (!object && !books.fired)
			fail_at(place, "it fails without a cause: %s", strerror(error));
		if (!object && error != books.fired)
			fail_at(place, "allocation %u fails with \"%s\", the call says \"%s\"", which,
				strerror(books.fired), strerror(error));
		refused += !object;
		if (object)
			expect_error_(place, "unmake()", kind->unmake(object), 0);
		note("allocation %u", which);
		let_later_calls_free(place, kind, before);
		expect_state_kept(place, before);
		expect_device_works(place);
		note_clear();
		if (!books.fired)
			break;
	}
	if (which > MOST_ALLOCATIONS)
		fail_at(place, "there is no end of allocations");
	if (which > 1 && !refused)
		fail_at(place, "no failure of %u made the call fail", which - 1);
	return which - 1;
}

#define fail_one_after_the_other(...) fail_one_after_the_other_(HERE, &(const struct kind){__VA_ARGS__})

/* ---- the first use in a process ----------------------------------------------------------------------------- */

enum { FIRED = 10, NOT_FIRED = 11, WRONG = 12 };

/* Lists devices and opens one while allocation @which fails. */
static int use_first(unsigned int which)
{
	struct ibv_device **list;
	struct ibv_context *context = NULL;

	books.left = which;
	books.armed = true;
	watched = true;
	errno = 0;
	list = ibv_get_device_list(NULL);
	if (list && list[0])
		context = ibv_open_device(list[0]);
	watched = false;
	if (!context && (!books.fired || errno != books.fired))
		return WRONG;
	/* The next attempt finds everything it needs. */
	books.armed = false;
	if (list)
		ibv_free_device_list(list);
	list = ibv_get_device_list(NULL);
	if (!list || !list[0])
		return WRONG;
	if (!context)
		context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!context || ibv_close_device(context))
		return WRONG;
	return books.fired ? FIRED : NOT_FIRED;
}

/* Before all other cases. Creates the registry, each time in a child process that has made no other call. */
TEST_WITH(first_use, NULL, NULL)
{
	unsigned int which;
	int status = 0;

	for (which = 1; which <= MOST_ALLOCATIONS; which++) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child)
			_exit(use_first(which));
		assert_int_equal(waitpid(child, &status, 0), child);
		if (!WIFEXITED(status) || (WEXITSTATUS(status) != FIRED && WEXITSTATUS(status) != NOT_FIRED))
			fail_at(HERE, "allocation %u fails: wait status %#x", which, (unsigned int)status);
		if (WEXITSTATUS(status) == NOT_FIRED)
			break;
	}
	assert_true(which > 1 && which <= MOST_ALLOCATIONS);
}

/* ---- devices and contexts ----------------------------------------------------------------------------------- */

static void *make_list(void)
{
	return ibv_get_device_list(NULL);
}

static int unmake_list(void *list)
{
	ibv_free_device_list(list);
	return 0;
}

static void *open_device_plainly(void)
{
	return ibv_open_device(client.context->device);
}

static void *open_device_for_mlx5(void)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};

	return mlx5dv_open_device(client.context->device, &attr);
}

/* Which side closes the descriptor after a failure is unspecified: a real driver does once it has started. */
static void *import_device(void)
{
	int fd = dup(client.context->cmd_fd), error;
	struct ibv_context *context = ibv_import_device(fd);

	error = errno;
	if (!context && fcntl(fd, F_GETFD) >= 0)
		close(fd);
	errno = error;
	return context;
}

static int unmake_context(void *context)
{
	return ibv_close_device(context);
}

TEST(contexts)
{
	assert_true(fail_one_after_the_other(make_list, unmake_list) > 0);
	assert_true(fail_one_after_the_other(open_device_plainly, unmake_context) > 0);
	assert_true(fail_one_after_the_other(open_device_for_mlx5, unmake_context) > 0);
	assert_true(fail_one_after_the_other(import_device, unmake_context) > 0);
}

static void *make_channel(void)
{
	return ibv_create_comp_channel(client.context);
}

static int unmake_channel(void *channel)
{
	return ibv_destroy_comp_channel(channel);
}

/* ---- domains ------------------------------------------------------------------------------------------------ */

static void *make_pd(void)
{
	return ibv_alloc_pd(client.context);
}

static int unmake_pd(void *pd)
{
	return ibv_dealloc_pd(pd);
}

static void *make_td(void)
{
	struct ibv_td_init_attr attr = {0};

	return ibv_alloc_td(client.context, &attr);
}

static int unmake_td(void *td)
{
	return ibv_dealloc_td(td);
}

static void *make_parent_domain(void)
{
	struct ibv_parent_domain_init_attr attr = {.pd = client.pd};

	return ibv_alloc_parent_domain(client.context, &attr);
}

TEST(domains_and_channels)
{
	assert_true(fail_one_after_the_other(make_pd, unmake_pd) > 0);
	assert_true(fail_one_after_the_other(make_td, unmake_td) > 0);
	assert_true(fail_one_after_the_other(make_parent_domain, unmake_pd) > 0);
	assert_true(fail_one_after_the_other(make_channel, unmake_channel) > 0);
}

/* ---- queues ------------------------------------------------------------------------------------------------- */

static void *make_cq(void)
{
	return ibv_create_cq(client.context, 1000, NULL, NULL, 0);
}

static void *make_cq_ex(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 10, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};

	return ibv_create_cq_ex(client.context, &attr);
}

static void *make_large_cqes(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 100000};
	struct mlx5dv_cq_init_attr dv = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE, .cqe_size = 128};

	return mlx5dv_create_cq(client.context, &attr, &dv);
}

static int unmake_cq(void *cq)
{
	return ibv_destroy_cq(cq);
}

static void *make_srq(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1000, .max_sge = 3}};

	return ibv_create_srq(client.pd, &attr);
}

static int unmake_srq(void *srq)
{
	return ibv_destroy_srq(srq);
}

static void *make_qp_of(enum ibv_qp_type type, uint64_t send_ops, uint64_t dv_send_ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = pair.client.cq,
		.recv_cq = pair.client.cq,
		.cap = {.max_send_wr = 100,
			.max_recv_wr = 100,
			.max_send_sge = 3,
			.max_recv_sge = 3,
			.max_inline_data = 100},
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = client.pd,
		.send_ops_flags = send_ops,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.send_ops_flags = dv_send_ops,
	};

	return dv_send_ops ? mlx5dv_create_qp(client.context, &attr, &dv) : ibv_create_qp_ex(client.context, &attr);
}

static void *make_rc_qp(void)
{
	return make_qp_of(IBV_QPT_RC, IBV_QP_EX_WITH_SEND, DV_KEY_OPS);
}

static void *make_uc_qp(void)
{
	return make_qp_of(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_WRITE, 0);
}

static void *make_ud_qp(void)
{
	return make_qp_of(IBV_QPT_UD, IBV_QP_EX_WITH_SEND, 0);
}

static int unmake_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

TEST(queues)
{
	assert_true(fail_one_after_the_other(make_cq, unmake_cq) > 0);
	assert_true(fail_one_after_the_other(make_cq_ex, unmake_cq) > 0);
	assert_true(fail_one_after_the_other(make_large_cqes, unmake_cq) > 0);
	assert_true(fail_one_after_the_other(make_srq, unmake_srq) > 0);
	assert_true(fail_one_after_the_other(make_rc_qp, unmake_qp) > 0);
	assert_true(fail_one_after_the_other(make_uc_qp, unmake_qp) > 0);
	assert_true(fail_one_after_the_other(make_ud_qp, unmake_qp) > 0);
}

/* ---- keys and addresses ------------------------------------------------------------------------------------- */

static void *make_mr(void)
{
	return ibv_reg_mr(client.pd, client.memory, 8192, SIDE_ACCESS);
}

static void *make_mr_iova(void)
{
	return ibv_reg_mr_iova(client.pd, client.memory, 8192, 0, SIDE_ACCESS);
}

static void *make_mr_on_demand(void)
{
	return ibv_reg_mr(client.pd, client.memory, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
}

static void *make_null_mr(void)
{
	return ibv_alloc_null_mr(client.pd);
}

static struct ibv_dm *dm;

static void *make_dm_mr(void)
{
	return ibv_reg_dm_mr(client.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED);
}

static int unmake_mr(void *mr)
{
	return ibv_dereg_mr(mr);
}

static void *make_dm(void)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};

	return ibv_alloc_dm(client.context, &attr);
}

static int unmake_dm(void *object)
{
	return ibv_free_dm(object);
}

static void *make_mw_1(void)
{
	return ibv_alloc_mw(client.pd, IBV_MW_TYPE_1);
}

static void *make_mw_2(void)
{
	return ibv_alloc_mw(client.pd, IBV_MW_TYPE_2);
}

static int unmake_mw(void *mw)
{
	return ibv_dealloc_mw(mw);
}

static void *make_mkey(void)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = client.pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = 100};

	return mlx5dv_create_mkey(&attr);
}

static int unmake_mkey(void *mkey)
{
	return mlx5dv_destroy_mkey(mkey);
}

static void *make_block_mkey(void)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = client.pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE | MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO,
		.max_entries = 100,
	};

	return mlx5dv_create_mkey(&attr);
}

static void *make_dek(void)
{
	struct mlx5dv_dek_init_attr attr = {
		.key_size = MLX5DV_CRYPTO_KEY_SIZE_256,
		.key = "two halves",
		.pd = client.pd,
		.comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN,
	};

	return mlx5dv_dek_create(client.context, &attr);
}

static int unmake_dek(void *dek)
{
	return mlx5dv_dek_destroy(dek);
}

static void *make_ah(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = {.dgid = client.gid, .sgid_index = client.gid_index}};

	return ibv_create_ah(client.pd, &attr);
}

static int unmake_ah(void *ah)
{
	return ibv_destroy_ah(ah);
}

TEST(keys_and_addresses)
{
	assert_true(fail_one_after_the_other(make_mr, unmake_mr) > 0);
	assert_true(fail_one_after_the_other(make_mr_iova, unmake_mr) > 0);
	assert_true(fail_one_after_the_other(make_mr_on_demand, unmake_mr) > 0);
	assert_true(fail_one_after_the_other(make_null_mr, unmake_mr) > 0);
	assert_true(fail_one_after_the_other(make_mw_1, unmake_mw) > 0);
	assert_true(fail_one_after_the_other(make_mw_2, unmake_mw) > 0);
	assert_true(fail_one_after_the_other(make_mkey, unmake_mkey) > 0);
	assert_true(fail_one_after_the_other(make_block_mkey, unmake_mkey) > 0);
	assert_true(fail_one_after_the_other(make_dek, unmake_dek) > 0);
	assert_true(fail_one_after_the_other(make_ah, unmake_ah) > 0);
	assert_true(fail_one_after_the_other(make_dm, unmake_dm) > 0);
	dm = make_dm();
	assert_non_null(dm);
	assert_true(fail_one_after_the_other(make_dm_mr, unmake_mr) > 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* ---- changes ------------------------------------------------------------------------------------------------ */

/* The object to change. Only the change fails, and the object stays as it was. */
static struct ibv_cq *cq;
static struct ibv_srq *srq;

/* The object that stands for "changed". */
static void *changed(int error)
{
	static int done;

	errno = error;
	return error ? NULL : &done;
}

static void *resize_cq(void)
{
	return changed(ibv_resize_cq(cq, 5000));
}

static int resize_cq_back(void *done)
{
	(void)done;
	return ibv_resize_cq(cq, 100);
}

/* Creates an SRQ: the ring of an SRQ never shrinks, so each attempt grows another one. */
static struct ibv_srq *create_srq(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 100, .max_sge = 1}};

	return ibv_create_srq(client.pd, &attr);
}

static void *resize_srq(void)
{
	struct ibv_srq_attr attr = {.max_wr = 1000};

	return changed(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
}

static int replace_srq(void *done)
{
	int error = ibv_destroy_srq(srq);

	(void)done;
	srq = create_srq();
	return error ? error : srq ? 0 : errno;
}

/* Reregisters a region; if that fails, the region is unchanged. */
static void *reregister(void)
{
	struct ibv_mr *mr = client.mr;

	if (ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, SIDE_ACCESS) == IBV_REREG_MR_ERR_CMD)
		return NULL;
	return changed(0);
}

static int leave_registered(void *done)
{
	(void)done;
	return 0;
}

TEST(changes)
{
	struct ibv_srq_attr attr;

	cq = ibv_create_cq(client.context, 100, NULL, NULL, 0);
	srq = create_srq();
	assert_non_null(cq);
	assert_non_null(srq);
	assert_true(fail_one_after_the_other(resize_cq, resize_cq_back) > 0);
	assert_int_equal(cq->cqe, 127);
	assert_true(fail_one_after_the_other(resize_srq, replace_srq) > 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, 127);
	fail_one_after_the_other(reregister, leave_registered);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}
