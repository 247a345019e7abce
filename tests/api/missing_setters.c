/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_wr_post(3): every builder with a required setter missing, on every type of QP, alone and next to a complete
 * request. Profile man: "If a failure is detected ... then ibv_wr_complete() will return failure and the entire posting
 * will be aborted". Profile connectx: mlx5-formats 4.2, "Missing setter".
 */
#include <fcntl.h>

#include "support/dc.h"
#include "support/mkey.h"
#include "support/program.h"
#include "support/xrc.h"

enum { LACKS = 0x1acc, WHOLE = 0x0401, HERE_AT = 4096, THERE_AT = 16384, KEY = 77, DATA = 1, ADDRESS = 2, SETTERS = 4 };

enum operation { SEND, SEND_IMM, SEND_INV, WRITE, WRITE_IMM, READ, SWAP, ADD, ATOMIC_WRITE, CONFIGURE, OPERATIONS };

#define ON(operation) (1u << (operation))
#define ON_UD (ON(SEND) | ON(SEND_IMM))
#define ON_UC (ON_UD | ON(SEND_INV) | ON(WRITE) | ON(WRITE_IMM))
#define ON_XRC (ON_UC | ON(READ) | ON(SWAP) | ON(ADD))
#define ON_RC (ON_XRC | ON(ATOMIC_WRITE) | ON(CONFIGURE))

/* A connected QP of the client. */
struct requester {
	const char *name;
	struct endpoint end;
	unsigned int operations;
	void (*set_address)(void); /* NULL if no address is needed */
};

static struct requester requester;
static struct mlx5dv_mkey *mkey;

/* Returns the setters that @operation needs. */
static unsigned int needed(enum operation operation)
{
	if (operation == CONFIGURE)
		return SETTERS;
	return (operation == ATOMIC_WRITE ? 0 : DATA) | (requester.set_address ? ADDRESS : 0);
}

static void build(enum operation operation)
{
	struct mlx5dv_mkey_conf_attr attr = {0};
	uint64_t there = side_address(&server, THERE_AT);
	struct ibv_qp_ex *ex = requester.end.ex;
	uint32_t rkey = server.mr->rkey;

	switch (operation) {
	case SEND:
		ibv_wr_send(ex);
		break;
	case SEND_IMM:
		ibv_wr_send_imm(ex, 1);
		break;
	case SEND_INV:
		ibv_wr_send_inv(ex, 1);
		break;
	case WRITE:
		ibv_wr_rdma_write(ex, rkey, there);
		break;
	case WRITE_IMM:
		ibv_wr_rdma_write_imm(ex, rkey, there, 1);
		break;
	case READ:
		ibv_wr_rdma_read(ex, rkey, there);
		break;
	case SWAP:
		ibv_wr_atomic_cmp_swp(ex, rkey, there, 1, 2);
		break;
	case ADD:
		ibv_wr_atomic_fetch_add(ex, rkey, there, 1);
		break;
	case ATOMIC_WRITE:
		ibv_wr_atomic_write(ex, rkey, there, client.memory);
		break;
	case CONFIGURE:
		ex->wr_flags |= IBV_SEND_INLINE;
		mlx5dv_wr_mkey_configure(requester.end.dv, mkey, 1, &attr);
		break;
	case OPERATIONS:
		break;
	}
}

static void add(enum operation operation, uint64_t wr_id, unsigned int setters)
{
	requester.end.ex->wr_id = wr_id;
	requester.end.ex->wr_flags = IBV_SEND_SIGNALED;
	build(operation);
	if (setters & DATA)
		ibv_wr_set_sge(requester.end.ex, client.mr->lkey, side_address(&client, HERE_AT), 8);
	if (setters & ADDRESS)
		requester.set_address();
}

/* Adds a request with all its setters: a WRITE, or a SEND on UD. */
static void add_whole(void)
{
	enum operation operation = requester.operations & ON(WRITE) ? WRITE : SEND;

	add(operation, WHOLE, needed(operation));
}

static void expect_whole(void)
{
	bool writes = requester.operations & ON(WRITE);

	expect_completion(&requester.end, WHOLE, writes ? IBV_WC_RDMA_WRITE : IBV_WC_SEND);
	expect_idle(&requester.end);
	if (writes)
		memcpy(server.expected + THERE_AT, client.expected + HERE_AT, 8);
}

static void try_without(enum operation operation, unsigned int missing, bool connectx)
{
	/* Alone, before a complete request, and after one. */
	for (int place = 0; place < 3; place++) {
		note("operation %d on %s without setters %#x, place %d", operation, requester.name, missing, place);
		side_stir(&client);
		ibv_wr_start(requester.end.ex);
		if (place == 2)
			add_whole();
		add(operation, LACKS, needed(operation) & ~missing);
		if (place == 1)
			add_whole();
		expect_error(ibv_wr_complete(requester.end.ex), connectx ? 0 : EINVAL);
		if (connectx && place)
			expect_whole();
		expect_idle(&requester.end);

		/* No part of it remains. */
		ibv_wr_start(requester.end.ex);
		add_whole();
		expect_error(ibv_wr_complete(requester.end.ex), 0);
		expect_whole();
	}
}

static void try_all(bool connectx)
{
	mkey = side_create_mkey(&client, 4, NULL);
	for (int operation = SEND; operation < OPERATIONS; operation++) {
		unsigned int all = needed(operation);

		for (unsigned int missing = 1; requester.operations & ON(operation) && missing <= all; missing++)
			if ((missing & all) == missing)
				try_without(operation, missing, connectx);
	}
	/* Unreliable messages may still be in flight. */
	if (requester.operations & ON(READ))
		side_compare(&server);
	memcpy(server.expected, server.memory, server.bytes);
}

/* ---- QPs -------------------------------------------------------------------------------------------------------- */

static void of_pair(const char *name, enum ibv_qp_type type, unsigned int operations)
{
	struct pair_options options = pair_defaults(type);

	pair_replace(&pair, &options);
	requester = (struct requester){.name = name, .end = pair.client, .operations = operations};
}

static void rc(bool connectx)
{
	of_pair("RC", IBV_QPT_RC, ON_RC);
	try_all(connectx);
}

static void uc(bool connectx)
{
	of_pair("UC", IBV_QPT_UC, ON_UC);
	try_all(connectx);
}

static void address_of_ud(void)
{
	ibv_wr_set_ud_addr(pair.client.ex, pair.client.ah, pair.server.qp->qp_num, PAIR_QKEY);
}

static void ud(bool connectx)
{
	of_pair("UD", IBV_QPT_UD, ON_UD);
	requester.set_address = address_of_ud;
	try_all(connectx);
}

static struct xrc_srq srq;

static void address_of_xrc(void)
{
	ibv_wr_set_xrc_srqn(requester.end.ex, srq.number);
}

static void xrc(bool connectx)
{
	struct ibv_xrcd *xrcd = expect_xrcd(server.context, -1, O_CREAT);
	struct ibv_qp *receiver = xrc_create_recv(xrcd);

	srq = xrc_srq_open(&server, xrcd, 1);
	requester = (struct requester){"XRC_SEND", {.side = &client}, ON_XRC, address_of_xrc};
	requester.end.cq = ibv_create_cq(client.context, 255, NULL, NULL, 0);
	requester.end.qp = xrc_create_send(&client, requester.end.cq);
	assert_non_null(requester.end.qp);
	requester.end.ex = ibv_qp_to_qp_ex(requester.end.qp);
	assert_non_null(requester.end.ex);
	xrc_connect(receiver, &server, requester.end.qp->qp_num, &client, 7);
	xrc_connect(requester.end.qp, &client, receiver->qp_num, &server, 7);
	try_all(connectx);
	expect_error(ibv_destroy_qp(requester.end.qp), 0);
	expect_error(ibv_destroy_qp(receiver), 0);
	expect_error(ibv_destroy_cq(requester.end.cq), 0);
	xrc_srq_close(&srq);
	expect_error(ibv_close_xrcd(xrcd), 0);
}

static struct dci dci;
static struct dct dct;

static void address_of_dci(void)
{
	dci_address(&dci, &dct, 0);
}

static void dc(bool connectx)
{
	struct dci_options options = dci_defaults();

	options.dv_send_ops = DV_KEY_OPS;
	dct_open(&dct, &server, KEY);
	dci_open(&dci, &client, &server, &options);
	requester = (struct requester){"DCI", dci.end, ON_RC, address_of_dci};
	try_all(connectx);
	dci_close(&dci);
	dct_close(&dct);
}

static void every_type(bool connectx)
{
	rc(connectx);
	uc(connectx);
	ud(connectx);
	xrc(connectx);
	dc(connectx);
}

TEST(refused_in_man)
{
	if (in_profile("man", __func__))
		every_type(false);
}

TEST(left_out_in_connectx)
{
	if (in_profile("connectx", __func__))
		every_type(true);
}
