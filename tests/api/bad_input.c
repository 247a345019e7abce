/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests mistakes between calls: lists of requests with a bad one among them, objects of another context, sizes beyond every
 * limit, and objects destroyed in the wrong order. Each is refused with the errno of its man page or of mlx5-formats 4.1 and 4.2,
 * has no effect, and all existing objects keep working.
 *
 * Attributes of ibv_modify_qp(3) are tested in qp_attributes.c, posting in each state in posting_limits.c.
 */
#include "kernel_has.h"
#include "support/event.h"
#include "support/program.h"

enum { SENDS = 100, RECEIVES = 200, LIST = 5 };

static void expect_all_works(struct place place)
{
	struct view here = view_memory(&client, 0, 3000), there = view_memory(&server, 5000, 3000);

	expect_write_(place, &pair, IBV_WR_RDMA_WRITE, here, there, IBV_WC_SUCCESS);
	expect_read_(place, &pair, here, there, IBV_WC_SUCCESS);
	expect_send_(place, &pair, IBV_WR_SEND, here, there, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_send_(place, &pair, IBV_WR_SEND, there, here, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_no_event_(place, &client);
	expect_no_event_(place, &server);
}

/* ---- lists with a bad request ------------------------------------------------------------------------------- */

/* Fills @list with valid requests: WRITEs of 8 bytes to different places. */
static void make_sends(struct ibv_send_wr *list, struct ibv_sge *sges)
{
	for (size_t i = 0; i < LIST; i++) {
		sges[i] = side_sge(&client, 8 * i, 8);
		list[i] = (struct ibv_send_wr){
			.wr_id = SENDS + i,
			.next = i + 1 < LIST ? &list[i + 1] : NULL,
			.sg_list = &sges[i],
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {side_address(&server, 1000 * i), server.mr->rkey},
		};
	}
}

/* Posts @list and checks that requests before number @bad are executed, and that it and the rest are not. */
static void expect_posted_up_to(struct ibv_send_wr *list, size_t bad, int error)
{
	struct ibv_send_wr *bad_wr = NULL;

	expect_error(ibv_post_send(pair.client.qp, list, &bad_wr), error);
	assert_ptr_equal(bad_wr, &list[bad]);
	for (size_t i = 0; i < bad; i++) {
		expect_completion(&pair.client, SENDS + i, IBV_WC_RDMA_WRITE);
		memcpy(server.expected + 1000 * i, client.expected + 8 * i, 8);
	}
	expect_idle(&pair.client);
	side_compare(&server);
	expect_state(&pair.client, IBV_QPS_RTS);
}

TEST(lists_of_sends)
{
	struct ibv_send_wr list[LIST];
	struct ibv_sge sges[LIST], many[PAIR_SGES + 1], long_sge;
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	options.max_inline_data = 32;
	pair_replace(&pair, &options);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = side_sge(&client, 0, 8);
	for (size_t bad = 0; bad < LIST; bad++) {
		note("bad request %zu", bad);
		make_sends(list, sges);
		list[bad].opcode = (enum ibv_wr_opcode)77;
		expect_posted_up_to(list, bad, EINVAL);

		make_sends(list, sges);
		list[bad].sg_list = many;
		list[bad].num_sge = PAIR_SGES + 1;
		expect_posted_up_to(list, bad, ENOMEM);

		make_sends(list, sges);
		long_sge = side_sge(&client, 0, pair.client.cap.max_inline_data + 1);
		list[bad].sg_list = &long_sge;
		list[bad].send_flags |= IBV_SEND_INLINE;
		expect_posted_up_to(list, bad, ENOMEM);
	}
	/* The inline limit applies to the sum of the pieces, computed in more than 32 bits. */
	make_sends(list, sges);
	many[0].length = pair.client.cap.max_inline_data;
	many[1].length = UINT32_MAX;
	list[1].sg_list = many;
	list[1].num_sge = 2;
	list[1].send_flags |= IBV_SEND_INLINE;
	expect_posted_up_to(list, 1, ENOMEM);
	expect_all_works(HERE);
}

/* Builders: a batch with one bad request is not posted at all (ibv_wr_post(3)). */
TEST(batches)
{
	struct ibv_sge many[PAIR_SGES + 1];
	static uint8_t data[4096];
	struct ibv_qp_ex *ex = pair.client.ex;

	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = side_sge(&client, 0, 8);
	for (int bad = 0; bad < 3; bad++) {
		ibv_wr_start(ex);
		for (int i = 0; i < 3; i++) {
			ex->wr_id = SENDS;
			ex->wr_flags = IBV_SEND_SIGNALED;
			ibv_wr_rdma_write(ex, server.mr->rkey, side_address(&server, 0));
			if (i != bad)
				ibv_wr_set_sge(ex, client.mr->lkey, side_address(&client, 0), 8);
			else if (bad == 1)
				ibv_wr_set_sge_list(ex, PAIR_SGES + 1, many);
			else
				ibv_wr_set_inline_data(ex, data, sizeof(data));
		}
		expect_error(ibv_wr_complete(ex), ENOMEM);
		expect_idle(&pair.client);
		side_compare(&server);
	}
	expect_nothing_posted(&pair.client);
	expect_all_works(HERE);
}

static void make_receives(struct ibv_recv_wr *list, struct ibv_sge *sges)
{
	for (size_t i = 0; i < LIST; i++) {
		sges[i] = side_sge(&server, 1000 * i, 8);
		list[i] = (struct ibv_recv_wr){
			.wr_id = RECEIVES + i,
			.next = i + 1 < LIST ? &list[i + 1] : NULL,
			.sg_list = &sges[i],
			.num_sge = 1,
		};
	}
}

/* Checks that exactly @posted receives are posted: that many messages are received, and the next finds no receive. */
static void expect_receives(size_t posted)
{
	struct ibv_sge source = side_sge(&client, 0, 8);
	struct ibv_send_wr wr = send_wr(SENDS, IBV_WR_SEND, &source);

	for (size_t i = 0; i < posted; i++) {
		post_send(&pair.client, &wr);
		expect_completion(&pair.client, SENDS, IBV_WC_SEND);
		expect_completion(&pair.server, RECEIVES + i, IBV_WC_RECV);
		memcpy(server.expected + 1000 * i, client.expected, 8);
	}
	post_send(&pair.client, &wr);
	expect_status(&pair.client, SENDS, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_idle(&pair.server);
	side_compare(&server);
	pair_renew(&pair);
}

TEST(lists_of_receives)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct ibv_sge sges[LIST], many[PAIR_SGES + 1], too_long[] = {{0, 1u << 31, 0}};
	struct ibv_recv_wr list[LIST], *bad_wr;

	options.rnr_retry = 0;
	pair_replace(&pair, &options);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = side_sge(&server, 0, 8);
	for (size_t bad = 0; bad < LIST; bad++)
		for (int kind = 0; kind < 2; kind++) {
			note("bad request %zu, kind %d", bad, kind);
			make_receives(list, sges);
			list[bad].sg_list = kind ? too_long : many;
			list[bad].num_sge = kind ? 1 : PAIR_SGES + 1;
			bad_wr = NULL;
			expect_error(ibv_post_recv(pair.server.qp, list, &bad_wr), EINVAL);
			assert_ptr_equal(bad_wr, &list[bad]);
			expect_receives(bad);
		}
	expect_all_works(HERE);
}

TEST(lists_of_shared_receives)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 15, .max_sge = 3}};
	struct ibv_srq *srq = ibv_create_srq(server.pd, &attr);
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct ibv_recv_wr list[LIST], *bad_wr;
	struct ibv_sge sges[LIST], many[8];

	assert_non_null(srq);
	options.srq = srq;
	options.rnr_retry = 0;
	pair_replace(&pair, &options);
	assert_true(attr.attr.max_sge < ARRAY_SIZE(many));
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = side_sge(&server, 0, 8);
	for (size_t bad = 0; bad < LIST; bad++) {
		note("bad request %zu", bad);
		make_receives(list, sges);
		list[bad].sg_list = many;
		list[bad].num_sge = (int)attr.attr.max_sge + 1;
		bad_wr = NULL;
		expect_error(ibv_post_srq_recv(srq, list, &bad_wr), EINVAL);
		assert_ptr_equal(bad_wr, &list[bad]);
		expect_receives(bad);
	}
	/* A QP on an SRQ does not have a receive queue. */
	make_receives(list, sges);
	expect_error(ibv_post_recv(pair.server.qp, list, &bad_wr), ENOMEM);
	assert_ptr_equal(bad_wr, list);
	options.srq = NULL;
	pair_replace(&pair, &options);
	expect_error(ibv_destroy_srq(srq), 0);
	expect_all_works(HERE);
}

/* ---- sizes beyond the limits -------------------------------------------------------------------------------- */

TEST(queue_pairs_beyond_the_limits)
{
	const struct ibv_qp_cap good = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC}, before;
	struct ibv_device_attr device;
	static const uint32_t beyond[] = {1, 1000, INT32_MAX, (uint32_t)INT32_MAX + 1, UINT32_MAX};

	expect_error(ibv_query_device(client.context, &device), 0);
	init.send_cq = init.recv_cq = pair.client.cq;
	for (size_t i = 0; i < ARRAY_SIZE(beyond); i++)
		for (int field = 0; field < 5; field++) {
			uint64_t limits[] = {(uint32_t)device.max_qp_wr, (uint32_t)device.max_qp_wr,
					     (uint32_t)device.max_sge + 64, (uint32_t)device.max_sge + 64, 1024};
			uint64_t value = limits[field] + beyond[i];
			uint32_t *fields[] = {&init.cap.max_send_wr, &init.cap.max_recv_wr, &init.cap.max_send_sge,
					      &init.cap.max_recv_sge, &init.cap.max_inline_data};

			note("field %d, %lu", field, value);
			init.cap = good;
			*fields[field] = (uint32_t)(value > UINT32_MAX ? UINT32_MAX : value);
			before = init;
			expect_null(ibv_create_qp(client.pd, &init), EINVAL);
			assert_memory_equal(&init, &before, sizeof(init)); /* a refused call returns no sizes */
		}
	/* Each capability is within its limit, but together they exceed the ring. */
	init.cap = (struct ibv_qp_cap){(uint32_t)device.max_qp_wr, (uint32_t)device.max_qp_wr, (uint32_t)device.max_sge,
				       (uint32_t)device.max_sge, 512};
	expect_null(ibv_create_qp(client.pd, &init), EINVAL);
	expect_all_works(HERE);
}

TEST(other_objects_beyond_the_limits)
{
	struct ibv_device_attr_ex device;
	struct ibv_alloc_dm_attr dm = {0};
	struct mlx5dv_mkey_init_attr mkey = {
		.pd = client.pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = UINT16_MAX};
	struct ibv_srq_init_attr srq = {0}, before;

	expect_error(ibv_query_device_ex(client.context, NULL, &device), 0);
	expect_null(ibv_create_cq(client.context, device.orig_attr.max_cqe + 1, NULL, NULL, 0), EINVAL);
	expect_null(ibv_create_cq(client.context, INT32_MAX, NULL, NULL, 0), EINVAL);
	expect_null(ibv_create_cq(client.context, -1, NULL, NULL, 0), EINVAL);
	expect_null(ibv_create_cq(client.context, 1, NULL, NULL, client.context->num_comp_vectors), EINVAL);
	expect_null(ibv_create_cq(client.context, 1, NULL, NULL, -1), EINVAL);
	for (int i = 0; i < 2; i++) {
		srq.attr.max_wr = i ? 1 : (uint32_t)device.orig_attr.max_srq_wr + 1;
		srq.attr.max_sge = i ? (uint32_t)device.orig_attr.max_srq_sge + 1 : 1;
		before = srq;
		expect_null(ibv_create_srq(client.pd, &srq), EINVAL);
		assert_memory_equal(&srq, &before, sizeof(srq));
	}
	/* Memory that wraps around, is unmapped, or is not writable. */
	expect_null(ibv_reg_mr(client.pd, client.memory, SIZE_MAX, 0), EINVAL);
	expect_null(ibv_reg_mr(client.pd, (void *)(UINTPTR_MAX - 100), 200, 0), EINVAL);
	if (kernel_has_page_checks())
		expect_null(ibv_reg_mr(client.pd, (void *)4096, 4096, 0), EFAULT);
	expect_null(ibv_reg_mr(client.pd, client.memory, 4096, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	expect_null(ibv_reg_mr(client.pd, client.memory, 4096, 1 << 19), EINVAL);
	dm.length = device.max_dm_size + 1;
	expect_null(ibv_alloc_dm(client.context, &dm), EINVAL);
	expect_null(mlx5dv_create_mkey(&mkey), EINVAL);
	assert_int_equal(mkey.max_entries, UINT16_MAX);
	expect_null(ibv_alloc_mw(client.pd, (enum ibv_mw_type)0), EINVAL);
	expect_null(ibv_alloc_mw(client.pd, (enum ibv_mw_type)3), EINVAL);
	expect_all_works(HERE);
}

/* ---- objects of another context, or none -------------------------------------------------------------------- */

TEST(foreign_objects)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_srq *foreign_srq = ibv_create_srq(server.pd, &srq_attr);
	struct ibv_qp_init_attr_ex good = {
		.send_cq = pair.client.cq,
		.recv_cq = pair.client.cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		/* With IBV_QP_INIT_ATTR_PD alone verbs.h calls ibv_create_qp(), which takes the context from the PD. */
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = client.pd,
	};
	struct ibv_qp_init_attr_ex bad;
	struct ibv_srq_init_attr_ex srq_ex = {.attr = {.max_wr = 1, .max_sge = 1},
					      .comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ};
	struct ibv_parent_domain_init_attr domain = {0};
	struct ibv_alloc_dm_attr dm_attr = {.length = 64};
	struct ibv_dm *foreign_dm = ibv_alloc_dm(server.context, &dm_attr);
	struct ibv_comp_channel *foreign_channel = ibv_create_comp_channel(server.context);
	struct ibv_mw *mw = side_alloc_mw(&client, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.bind_info = {.mr = server.mr, .addr = side_address(&server, 0), .length = 8}};
	struct ibv_qp *qp;

	assert_non_null(foreign_srq);
	assert_non_null(foreign_dm);
	assert_non_null(foreign_channel);
#define REFUSE_QP(member, value, error)                                                                                \
	do {                                                                                                           \
		bad = good;                                                                                            \
		bad.member = (value);                                                                                  \
		note(#member " = " #value);                                                                            \
		expect_null(ibv_create_qp_ex(client.context, &bad), error);                                            \
	} while (0)
	REFUSE_QP(send_cq, NULL, EINVAL);
	REFUSE_QP(recv_cq, NULL, EINVAL);
	REFUSE_QP(send_cq, pair.server.cq, ENOENT);
	REFUSE_QP(recv_cq, pair.server.cq, ENOENT);
	REFUSE_QP(pd, NULL, EINVAL);
	REFUSE_QP(pd, server.pd, ENOENT);
	REFUSE_QP(comp_mask, 0, EINVAL);
	REFUSE_QP(comp_mask, 1u << 31, EINVAL);
	REFUSE_QP(srq, foreign_srq, ENOENT);
	REFUSE_QP(qp_type, (enum ibv_qp_type)0, EINVAL);
	REFUSE_QP(qp_type, (enum ibv_qp_type)77, EINVAL);
#undef REFUSE_QP
	/* ibv_create_qp(3): an SRQ is for RC and UD. */
	bad = good;
	bad.qp_type = IBV_QPT_UC;
	bad.srq = foreign_srq;
	expect_null(ibv_create_qp_ex(client.context, &bad), EINVAL);
	expect_null(ibv_create_srq_ex(client.context, &srq_ex), EINVAL);
	/* The kernel looks up only descriptors of the context. */
	expect_null(ibv_create_cq(client.context, 1, NULL, foreign_channel, 0), EBADF);
	expect_null(ibv_alloc_parent_domain(client.context, &domain), EINVAL);
	expect_null(ibv_reg_dm_mr(client.pd, foreign_dm, 0, 64, IBV_ACCESS_ZERO_BASED), ENOENT);
	expect_error(ibv_rereg_mr(client.mr, IBV_REREG_MR_CHANGE_PD, server.pd, NULL, 0, 0), IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, ENOENT);
	/* verbs.h, ibv_bind_mw(). */
	expect_error(ibv_bind_mw(pair.client.qp, mw, &bind), EPERM);
	bind.bind_info.mr = NULL;
	expect_error(ibv_bind_mw(pair.client.qp, mw, &bind), EINVAL);
	/* The good attributes, from which the bad ones were derived, work. */
	qp = ibv_create_qp_ex(client.context, &good);
	assert_non_null(qp);
	expect_error(ibv_destroy_qp(qp), 0);
	expect_error(ibv_destroy_srq(foreign_srq), 0);
	expect_error(ibv_free_dm(foreign_dm), 0);
	expect_error(ibv_destroy_comp_channel(foreign_channel), 0);
	expect_all_works(HERE);
}

/* ---- objects destroyed in the wrong order ------------------------------------------------------------------- */

/* Creates every dependency between objects at once; objects in use cannot be destroyed and remain usable. */
TEST(wrong_order)
{
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_td *td = ibv_alloc_td(server.context, &td_attr);
	struct ibv_parent_domain_init_attr domain_attr = {.pd = server.pd, .td = td};
	struct ibv_pd *domain = ibv_alloc_parent_domain(server.context, &domain_attr);
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 15, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(domain, &srq_attr);
	struct ibv_alloc_dm_attr dm_attr = {.length = 64};
	struct ibv_dm *dm = ibv_alloc_dm(server.context, &dm_attr);
	struct ibv_mr *dm_mr = ibv_reg_dm_mr(server.pd, dm, 0, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.wr_id = 1,
				   .send_flags = IBV_SEND_SIGNALED,
				   .bind_info = {.mr = server.mr,
						 .addr = side_address(&server, 0),
						 .length = 4096,
						 .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct ibv_sge sge = side_sge(&server, 0, 8);
	struct ibv_recv_wr wr = {.wr_id = RECEIVES, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_send_wr send = {.wr_id = SENDS, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

	assert_non_null(domain);
	assert_non_null(srq);
	assert_non_null(dm_mr);
	options.srq = srq;
	options.channel = true;
	pair_replace(&pair, &options);
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	expect_completion(&pair.server, 1, IBV_WC_BIND_MW);
	for (int round = 0; round < 3; round++) {
		expect_error(ibv_dealloc_pd(server.pd), EBUSY);
		expect_error(ibv_dealloc_pd(domain), EBUSY);
		expect_error(ibv_dealloc_td(td), EBUSY);
		expect_error(ibv_destroy_cq(pair.server.cq), EBUSY);
		expect_error(ibv_destroy_srq(srq), EBUSY);
		expect_error(ibv_destroy_comp_channel(pair.server.channel), EBUSY);
		expect_error(ibv_free_dm(dm), EBUSY);
		expect_error(ibv_dereg_mr(server.mr), EBUSY); /* ibv_dereg_mr(3): a window is bound to it */
		/* All objects still work. */
		expect_error(ibv_post_srq_recv(srq, &wr, &bad), 0);
		post_send(&pair.client, &send);
		expect_completion(&pair.client, SENDS, IBV_WC_SEND);
		expect_completion(&pair.server, RECEIVES, IBV_WC_RECV);
		expect_write(&pair, view_memory(&client, 0, 100), view_with_key(&server, mw->rkey, 0, 100),
			     IBV_WC_SUCCESS);
		expect_read(&pair, view_memory(&client, 0, 100), view_memory(&server, 0, 100), IBV_WC_SUCCESS);
	}
	/* In top-down order every call succeeds. */
	options.srq = NULL;
	pair_replace(&pair, &options);
	expect_error(ibv_destroy_srq(srq), 0);
	expect_error(ibv_dealloc_pd(domain), 0);
	expect_error(ibv_dealloc_td(td), 0);
	expect_error(ibv_dereg_mr(dm_mr), 0);
	expect_error(ibv_free_dm(dm), 0);
}
