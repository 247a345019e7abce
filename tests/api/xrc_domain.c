/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_open_xrcd(3), ibv_close_xrcd, ibv_open_qp(3): which descriptors refer to the same domain, which contexts may open
 * and create objects in it, and that an XRC_RECV QP belongs to all its openers. xrc_traffic.c tests the traffic.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "support/event.h"
#include "support/xrc.h"

static struct side one, other;
static struct ibv_cq *cq;
static int fd;

static int open_sides(void **state)
{
	(void)state;
	note_clear();
	side_open(&one, "one", SIDE_BYTES, 0x80);
	side_open(&other, "other", SIDE_BYTES, 0);
	cq = ibv_create_cq(one.context, 7, NULL, NULL, 0);
	assert_non_null(cq);
	fd = xrc_file();
	return 0;
}

static int close_sides(void **state)
{
	(void)state;
	close(fd);
	expect_error(ibv_destroy_cq(cq), 0);
	side_close(&one);
	side_close(&other);
	return 0;
}

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	expect_error(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	expect_error(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

/* ---- which domain a descriptor names --------------------------------------------------------------------------- */

/* Returns true if both belong to one domain: a QP of one can be opened in the other. */
static bool same_domain(struct ibv_xrcd *first, struct ibv_xrcd *second)
{
	struct ibv_qp *qp = xrc_create_recv(first), *opened;

	assert_non_null(qp);
	opened = xrc_open_qp(second, qp->qp_num);
	if (opened)
		expect_error(ibv_destroy_qp(opened), 0);
	else
		assert_int_equal(errno, EINVAL);
	expect_error(ibv_destroy_qp(qp), 0);
	return opened;
}

/* Domains are identified by inode: another descriptor, path or context is the same, another file is not. */
TEST(the_file_names_the_domain)
{
	int again = xrc_same_file(fd), duplicate = dup(fd), another = xrc_file();
	struct ibv_xrcd *xrcd = expect_xrcd(one.context, fd, O_CREAT);
	struct ibv_xrcd *same[] = {
		expect_xrcd(one.context, fd, O_CREAT),       expect_xrcd(one.context, again, 0),
		expect_xrcd(other.context, fd, 0),           expect_xrcd(other.context, duplicate, O_CREAT),
		expect_xrcd(other.context, again, O_RDONLY),
	};
	struct ibv_xrcd *different = expect_xrcd(one.context, another, O_CREAT);

	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		note("opening %zu", i);
		assert_true(same_domain(xrcd, same[i]));
		assert_true(same_domain(same[i], xrcd));
	}
	assert_false(same_domain(xrcd, different));
	assert_false(same_domain(different, xrcd));
	/* The last of them keeps the domain. */
	expect_error(ibv_close_xrcd(xrcd), 0);
	for (size_t i = 0; i + 1 < ARRAY_SIZE(same); i++)
		expect_error(ibv_close_xrcd(same[i]), 0);
	xrcd = expect_xrcd(one.context, fd, 0);
	assert_true(same_domain(xrcd, same[ARRAY_SIZE(same) - 1]));
	expect_error(ibv_close_xrcd(same[ARRAY_SIZE(same) - 1]), 0);
	expect_error(ibv_close_xrcd(xrcd), 0);
	expect_error(ibv_close_xrcd(different), 0);
	close(again);
	close(duplicate);
	close(another);
}

/* Inode numbers are per file system: the root directory has 1 in many. */
TEST(inodes_of_two_file_systems)
{
	int file[] = {open("/proc", O_RDONLY | O_CLOEXEC), open("/sys", O_RDONLY | O_CLOEXEC)};
	struct ibv_xrcd *xrcd[2];
	struct stat status[2];

	if (fstat(file[0], &status[0]) || fstat(file[1], &status[1]) || status[0].st_ino != status[1].st_ino)
		skip();
	for (int i = 0; i < 2; i++)
		xrcd[i] = expect_xrcd(one.context, file[i], O_CREAT | O_EXCL);
	assert_false(same_domain(xrcd[0], xrcd[1]));
	for (int i = 0; i < 2; i++) {
		expect_error(ibv_close_xrcd(xrcd[i]), 0);
		close(file[i]);
	}
}

/* ibv_open_xrcd(3): O_CREAT creates a domain if there is none, O_EXCL fails if there is one. */
TEST(flags_of_opening)
{
	struct ibv_xrcd *xrcd, *exclusive;

	for (int round = 0; round < 2; round++) {
		expect_null(xrc_open(one.context, fd, 0), EAGAIN);
		expect_null(xrc_open(one.context, fd, O_EXCL), EAGAIN);
		xrcd = expect_xrcd(one.context, fd, round ? O_CREAT : O_CREAT | O_EXCL);
		expect_null(xrc_open(one.context, fd, O_CREAT | O_EXCL), EINVAL);
		expect_null(xrc_open(other.context, fd, O_CREAT | O_EXCL), EINVAL);
		expect_null(xrc_open(other.context, fd, O_EXCL), EINVAL);
		expect_error(ibv_close_xrcd(xrcd), 0);
	}
	exclusive = expect_xrcd(one.context, fd, O_CREAT | O_EXCL);
	expect_error(ibv_close_xrcd(exclusive), 0);
}

TEST(no_descriptor)
{
	int closed = xrc_file();

	close(closed);
	expect_null(xrc_open(one.context, closed, O_CREAT), EBADF);
	expect_null(xrc_open(one.context, -2, O_CREAT), EBADF);
	expect_null(xrc_open(one.context, INT32_MIN, O_CREAT), EBADF);
}

/* ibv_open_xrcd(3): fd -1 creates a private domain. */
TEST(a_domain_without_a_file)
{
	struct ibv_xrcd *first = expect_xrcd(one.context, -1, O_CREAT), *second = expect_xrcd(one.context, -1, O_CREAT);
	struct ibv_xrcd *named = expect_xrcd(one.context, fd, O_CREAT | O_EXCL);

	assert_true(same_domain(first, first));
	assert_false(same_domain(first, second));
	assert_false(same_domain(first, named));
	assert_false(same_domain(named, first));
	expect_error(ibv_close_xrcd(first), 0);
	expect_error(ibv_close_xrcd(second), 0);
	expect_error(ibv_close_xrcd(named), 0);
}

/* The descriptor may be closed and the file unlinked: no later file is mistaken for it. */
TEST(the_file_may_go)
{
	char name[] = "/tmp/softhca-xrc-XXXXXX";
	int file = mkstemp(name), next;
	struct ibv_xrcd *xrcd, *second;

	assert_true(file >= 0);
	xrcd = expect_xrcd(one.context, file, O_CREAT);
	close(file);
	file = open(name, O_RDONLY);
	second = expect_xrcd(other.context, file, 0);
	assert_true(same_domain(xrcd, second));
	expect_error(ibv_close_xrcd(second), 0);
	close(file);
	expect_error(unlink(name), 0);
	/* File systems often reuse an inode number at once. */
	for (int i = 0; i < 20; i++) {
		next = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
		assert_true(next >= 0);
		expect_null(xrc_open(other.context, next, 0), EAGAIN);
		close(next);
		expect_error(unlink(name), 0);
	}
	expect_error(ibv_close_xrcd(xrcd), 0);
}

TEST(masks_of_opening)
{
	struct ibv_xrcd_init_attr attr = {.fd = -1, .oflags = O_CREAT};

	for (uint32_t mask = 0; mask < 16; mask++) {
		attr.comp_mask = mask;
		note("comp_mask %#x", mask);
		if (mask != 3)
			expect_null(ibv_open_xrcd(one.context, &attr), mask & ~3u ? EOPNOTSUPP : EINVAL);
	}
}

TEST(closing_a_domain_in_use)
{
	struct ibv_xrcd *xrcd = expect_xrcd(one.context, fd, O_CREAT), *second = expect_xrcd(other.context, fd, 0);
	struct xrc_srq srq = xrc_srq_open(&one, xrcd, 3);
	struct ibv_qp *qp = xrc_create_recv(xrcd), *opened;

	expect_error(ibv_close_xrcd(xrcd), EBUSY);
	xrc_srq_close(&srq);
	expect_error(ibv_close_xrcd(xrcd), EBUSY);
	opened = xrc_open_qp(second, qp->qp_num);
	assert_non_null(opened);
	expect_error(ibv_close_xrcd(second), EBUSY);
	/* The creator of the QP may destroy its handle. */
	expect_error(ibv_destroy_qp(qp), 0);
	expect_error(ibv_close_xrcd(xrcd), 0);
	expect_error(ibv_close_xrcd(second), EBUSY);
	assert_int_equal(state_of(opened), IBV_QPS_RESET);
	expect_error(ibv_destroy_qp(opened), 0);
	expect_error(ibv_close_xrcd(second), 0);
}

/* ---- SRQs ------------------------------------------------------------------------------------------------------ */

TEST(creation_of_srqs)
{
	struct ibv_xrcd *xrcd = expect_xrcd(one.context, fd, O_CREAT), *foreign = expect_xrcd(other.context, fd, 0);
	struct ibv_cq *foreign_cq = ibv_create_cq(other.context, 7, NULL, NULL, 0);
	const struct {
		uint32_t without; /* bits of comp_mask */
		struct ibv_xrcd *xrcd;
		struct ibv_cq *cq;
		struct ibv_pd *pd;
		int error;
	} rows[] = {
		{0, xrcd, cq, one.pd, 0},
		{IBV_SRQ_INIT_ATTR_XRCD, xrcd, cq, one.pd, EINVAL},
		{0, NULL, cq, one.pd, EINVAL},
		{0, foreign, cq, one.pd, ENOENT},
		{IBV_SRQ_INIT_ATTR_CQ, xrcd, cq, one.pd, EINVAL},
		{0, xrcd, NULL, one.pd, EINVAL},
		{0, xrcd, foreign_cq, one.pd, ENOENT},
		{IBV_SRQ_INIT_ATTR_PD, xrcd, cq, one.pd, EINVAL},
		{0, xrcd, cq, other.pd, ENOENT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibv_srq_init_attr_ex attr = {
			.srq_context = &one,
			.attr = {.max_wr = 10, .max_sge = 2},
			.comp_mask = 0xf & ~rows[i].without,
			.srq_type = IBV_SRQT_XRC,
			.pd = rows[i].pd,
			.xrcd = rows[i].xrcd,
			.cq = rows[i].cq,
		};
		struct ibv_srq *srq;

		note("row %zu", i);
		errno = 0;
		srq = ibv_create_srq_ex(one.context, &attr);
		assert_int_equal(!srq, !!rows[i].error);
		if (!srq) {
			assert_int_equal(errno, rows[i].error);
			continue;
		}
		assert_int_equal(attr.attr.max_wr, 15);
		assert_true(attr.attr.max_sge >= 2);
		assert_ptr_equal(srq->srq_context, &one);
		expect_error(ibv_destroy_cq(cq), EBUSY);
		expect_error(ibv_dealloc_pd(one.pd), EBUSY);
		expect_error(ibv_destroy_srq(srq), 0);
	}
	expect_error(ibv_destroy_cq(foreign_cq), 0);
	expect_error(ibv_close_xrcd(foreign), 0);
	expect_error(ibv_close_xrcd(xrcd), 0);
}

/* Numbers are per device, not per context; a QP cannot use an XRC SRQ. */
TEST(srqs_and_queue_pairs)
{
	struct ibv_xrcd *xrcd = expect_xrcd(one.context, fd, O_CREAT), *shared = expect_xrcd(other.context, fd, 0);
	struct xrc_srq first = xrc_srq_open(&one, xrcd, 3), second = xrc_srq_open(&other, shared, 3);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = first.srq,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	assert_int_not_equal(first.number, second.number);
	assert_true(first.number < 1 << 24 && second.number < 1 << 24);
	expect_null(ibv_create_qp(one.pd, &attr), EINVAL);
	xrc_srq_close(&first);
	xrc_srq_close(&second);
	expect_error(ibv_close_xrcd(shared), 0);
	expect_error(ibv_close_xrcd(xrcd), 0);
}

/* ---- QPs ------------------------------------------------------------------------------------------------------- */

/* An XRC_RECV QP needs a domain only; it has no queues. */
TEST(creation_of_receiving_qps)
{
	struct ibv_xrcd *xrcd = expect_xrcd(one.context, fd, O_CREAT), *foreign = expect_xrcd(other.context, fd, 0);
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = &one,
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
		.cap = {.max_send_wr = 5,
			.max_recv_wr = 5,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 10},
	};
	struct ibv_recv_wr receive = {0}, *bad_receive;
	struct ibv_send_wr send = {0}, *bad_send;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr qp_attr;
	struct ibv_qp *qp = ibv_create_qp_ex(one.context, &attr);

	assert_non_null(qp);
	assert_int_equal(qp->state, IBV_QPS_RESET);
	assert_int_equal(qp->qp_type, IBV_QPT_XRC_RECV);
	assert_ptr_equal(qp->qp_context, &one);
	assert_int_equal(attr.cap.max_send_wr | attr.cap.max_recv_wr | attr.cap.max_send_sge | attr.cap.max_recv_sge |
				 attr.cap.max_inline_data,
			 0);
	/* libmlx5: any WR exceeds a queue of size zero */
	expect_error(ibv_post_send(qp, &send, &bad_send), ENOMEM);
	assert_ptr_equal(bad_send, &send);
	expect_error(ibv_post_recv(qp, &receive, &bad_receive), ENOMEM);
	assert_ptr_equal(bad_receive, &receive);
	assert_null(ibv_qp_to_qp_ex(qp));
	memset(&init, 0xa5, sizeof(init));
	expect_error(ibv_query_qp(qp, &qp_attr, 0, &init), 0);
	assert_int_equal(init.qp_type, IBV_QPT_XRC_RECV);
	assert_ptr_equal(init.qp_context, &one);
	assert_null(init.srq);
	assert_null(init.send_cq);
	assert_null(init.recv_cq);
	expect_error(ibv_destroy_qp(qp), 0);

	attr.comp_mask = 0;
	expect_null(ibv_create_qp_ex(one.context, &attr), EINVAL);
	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	attr.xrcd = NULL;
	expect_null(ibv_create_qp_ex(one.context, &attr), EINVAL);
	attr.xrcd = foreign;
	expect_null(ibv_create_qp_ex(one.context, &attr), ENOENT);
	attr.xrcd = xrcd;
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	expect_null(ibv_create_qp_ex(one.context, &attr), EOPNOTSUPP);
	expect_error(ibv_close_xrcd(foreign), 0);
	expect_error(ibv_close_xrcd(xrcd), 0);
}

/* An XRC_SEND QP needs a PD and a send CQ, and ignores receive attributes (ibv_create_qp_ex(3)). */
TEST(creation_of_sending_qps)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.cap = {.max_send_wr = 5, .max_send_sge = 2, .max_recv_wr = 7, .max_recv_sge = 3},
		.qp_type = IBV_QPT_XRC_SEND,
	};
	struct ibv_recv_wr receive = {0}, *bad;
	struct ibv_qp *qp = ibv_create_qp(one.pd, &attr);

	assert_non_null(qp);
	assert_true(attr.cap.max_send_wr >= 5 && attr.cap.max_send_sge >= 2);
	assert_int_equal(attr.cap.max_recv_wr | attr.cap.max_recv_sge, 0);
	expect_error(ibv_post_recv(qp, &receive, &bad), ENOMEM);
	expect_error(ibv_destroy_qp(qp), 0);
	attr.send_cq = NULL;
	expect_null(ibv_create_qp(one.pd, &attr), EINVAL);
}

TEST(opening_refused)
{
	struct ibv_xrcd *xrcd = expect_xrcd(one.context, fd, O_CREAT), *shared = expect_xrcd(other.context, fd, 0);
	struct ibv_xrcd *different = expect_xrcd(one.context, -1, O_CREAT);
	struct ibv_qp *qp = xrc_create_recv(xrcd), *send = xrc_create_send(&one, cq);
	const struct {
		uint32_t comp_mask, number;
		struct ibv_xrcd *xrcd;
		enum ibv_qp_type type;
		int error;
	} rows[] = {
		{0x3, qp->qp_num, shared, IBV_QPT_XRC_RECV, EINVAL},
		{0x9, qp->qp_num, shared, IBV_QPT_XRC_RECV, EINVAL},
		{0xa, qp->qp_num, shared, IBV_QPT_XRC_RECV, EINVAL},
		{0x1b, qp->qp_num, shared, IBV_QPT_XRC_RECV, EOPNOTSUPP},
		{0xb, qp->qp_num, NULL, IBV_QPT_XRC_RECV, EINVAL},
		{0xb, qp->qp_num, xrcd, IBV_QPT_XRC_RECV, ENOENT}, /* of the context "one" */
		{0xb, qp->qp_num, shared, IBV_QPT_XRC_SEND, EINVAL},
		{0xb, send->qp_num, shared, IBV_QPT_XRC_SEND, EINVAL},
		{0xb, send->qp_num, shared, IBV_QPT_XRC_RECV, EINVAL},
		{0xb, qp->qp_num + (1 << 24), shared, IBV_QPT_XRC_RECV, EINVAL},
		{0xb, 0xffffff, shared, IBV_QPT_XRC_RECV, EINVAL},
		{0xb, 0, shared, IBV_QPT_XRC_RECV, EINVAL},
	};
	uint32_t gone;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibv_qp_open_attr attr = {
			.comp_mask = rows[i].comp_mask,
			.qp_num = rows[i].number,
			.xrcd = rows[i].xrcd,
			.qp_type = rows[i].type,
		};

		note("row %zu", i);
		expect_null(ibv_open_qp(other.context, &attr), rows[i].error);
	}
	expect_null(xrc_open_qp(different, qp->qp_num), EINVAL);
	gone = qp->qp_num;
	expect_error(ibv_destroy_qp(send), 0);
	expect_error(ibv_destroy_qp(qp), 0);
	expect_null(xrc_open_qp(shared, gone), EINVAL);
	expect_error(ibv_close_xrcd(shared), 0);
	expect_error(ibv_close_xrcd(xrcd), 0);
	expect_error(ibv_close_xrcd(different), 0);
}

/* One QP under two handles, each with the context of its opener. */
TEST(opened_qp_is_the_same)
{
	struct ibv_xrcd *xrcd = expect_xrcd(one.context, fd, O_CREAT), *shared = expect_xrcd(other.context, fd, 0);
	struct ibv_qp *qp = xrc_create_recv(xrcd);
	struct ibv_qp_open_attr attr = {
		.comp_mask = 0xf,
		.qp_num = qp->qp_num,
		.xrcd = shared,
		.qp_context = &other,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp *opened = ibv_open_qp(other.context, &attr), *again;

	assert_non_null(opened);
	assert_int_equal(opened->qp_num, qp->qp_num);
	assert_int_equal(opened->qp_type, IBV_QPT_XRC_RECV);
	assert_ptr_equal(opened->context, other.context);
	assert_ptr_equal(opened->qp_context, &other);
	xrc_connect(qp, &one, 5, &one, 7);
	assert_int_equal(state_of(opened), IBV_QPS_RTS);
	to_state(opened, IBV_QPS_ERR);
	assert_int_equal(state_of(qp), IBV_QPS_ERR);
	again = xrc_open_qp(xrcd, qp->qp_num);
	assert_non_null(again);
	/* Every opener gets the last-WQE event, with its own handle of the QP. */
	expect_error(ibv_destroy_qp(qp), 0);
	assert_int_equal(state_of(opened), IBV_QPS_ERR);
	expect_event(&other, IBV_EVENT_QP_LAST_WQE_REACHED, opened);
	expect_no_event(&one);
	to_state(again, IBV_QPS_RESET);
	assert_int_equal(state_of(opened), IBV_QPS_RESET);
	expect_error(ibv_destroy_qp(opened), 0);
	expect_error(ibv_destroy_qp(again), 0);
	expect_error(ibv_close_xrcd(shared), 0);
	expect_error(ibv_close_xrcd(xrcd), 0);
}

TEST(events_reach_all_openers)
{
	struct ibv_xrcd *xrcd = expect_xrcd(one.context, fd, O_CREAT), *shared = expect_xrcd(other.context, fd, 0);
	struct ibv_qp *qp = xrc_create_recv(xrcd), *opened = xrc_open_qp(shared, qp->qp_num);
	struct ibv_async_event event;

	xrc_connect(qp, &one, 5, &one, 7);
	to_state(qp, IBV_QPS_ERR);
	expect_event(&one, IBV_EVENT_QP_LAST_WQE_REACHED, qp);
	/* The event of the other handle is taken and acknowledged later: only its own destruction would wait. */
	expect_error(ibv_get_async_event(other.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, opened);
	expect_error(ibv_destroy_qp(qp), 0);
	ibv_ack_async_event(&event);
	expect_error(ibv_destroy_qp(opened), 0);
	expect_error(ibv_close_xrcd(shared), 0);
	expect_error(ibv_close_xrcd(xrcd), 0);
}

/* Any opener can modify it; attributes of the missing half are ignored. */
TEST(attributes_of_the_missing_half)
{
	struct ibv_xrcd *xrcd = expect_xrcd(one.context, fd, O_CREAT);
	struct ibv_qp *recv = xrc_create_recv(xrcd), *send = xrc_create_send(&one, cq);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.timeout = 14,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = one.gid, .sgid_index = one.gid_index, .hop_limit = 1}},
	};
	int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int responder = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	int rts = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT;
	int requester = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

	expect_error(ibv_modify_qp(recv, &attr, init), 0);
	expect_error(ibv_modify_qp(send, &attr, init), 0);
	attr.qp_state = IBV_QPS_RTR;
	expect_error(ibv_modify_qp(recv, &attr, rtr), EINVAL);
	expect_error(ibv_modify_qp(recv, &attr, rtr | responder), 0);
	expect_error(ibv_modify_qp(send, &attr, rtr | responder), 0);
	attr.qp_state = IBV_QPS_RTS;
	expect_error(ibv_modify_qp(recv, &attr, rts | requester), 0);
	expect_error(ibv_modify_qp(send, &attr, rts), EINVAL);
	expect_error(ibv_modify_qp(send, &attr, rts | requester), 0);
	expect_error(ibv_destroy_qp(recv), 0);
	expect_error(ibv_destroy_qp(send), 0);
	expect_error(ibv_close_xrcd(xrcd), 0);
}

int main(void)
{
	return run_cases(.setup = open_sides, .teardown = close_sides);
}
