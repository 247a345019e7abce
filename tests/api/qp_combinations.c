/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_create_qp_ex(3): SRQs and create_flags by type of QP. The table has the results of the kernel's ib_uverbs
 * (mlx5-formats 4.2, "QP attributes that the kernel refuses").
 */
#include <fcntl.h>

#include "support/program.h"
#include "support/xrc.h"

enum srq_kind { NONE, BASIC, XRC, SRQ_KINDS };

static struct ibv_xrcd *xrcd;
static struct ibv_srq *srqs[SRQ_KINDS];
static struct xrc_srq xrc_srq;

static const struct row {
	const char *name;
	enum ibv_qp_type type;
	enum mlx5dv_dc_type dc;
	bool takes[SRQ_KINDS]; /* an SRQ of this kind */
} rows[] = {
	{"RC", IBV_QPT_RC, 0, {true, true, false}},
	{"UD", IBV_QPT_UD, 0, {true, true, false}},
	{"UC", IBV_QPT_UC, 0, {true, false, false}},
	{"XRC_SEND", IBV_QPT_XRC_SEND, 0, {true, false, false}},
	{"XRC_RECV", IBV_QPT_XRC_RECV, 0, {true, false, true}},
	{"DCI", IBV_QPT_DRIVER, MLX5DV_DCTYPE_DCI, {true, true, false}},
	{"DCT", IBV_QPT_DRIVER, MLX5DV_DCTYPE_DCT, {false, true, false}},
};

static int open_objects(void **state)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 3, .max_sge = 1}};

	program_open(state);
	xrcd = expect_xrcd(client.context, -1, O_CREAT);
	xrc_srq = xrc_srq_open(&client, xrcd, 3);
	srqs[XRC] = xrc_srq.srq;
	srqs[BASIC] = ibv_create_srq(client.pd, &attr);
	assert_non_null(srqs[BASIC]);
	return 0;
}

static int close_objects(void **state)
{
	expect_error(ibv_destroy_srq(srqs[BASIC]), 0);
	xrc_srq_close(&xrc_srq);
	expect_error(ibv_close_xrcd(xrcd), 0);
	return program_close(state);
}

/* Creates and destroys a QP; returns 0 or errno. */
static int try_create(const struct row *row, struct ibv_srq *srq, uint32_t flags)
{
	bool receives = row->type != IBV_QPT_XRC_SEND && row->type != IBV_QPT_XRC_RECV && !row->dc;
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = row->type,
		.send_cq = pair.client.cq,
		.recv_cq = pair.client.cq,
		.srq = srq,
		.pd = client.pd,
		.xrcd = xrcd,
		.comp_mask = row->type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
		.cap = {.max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = receives ? 4 : 0, .max_recv_sge = receives},
		.create_flags = flags,
	};
	struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					 .dc_init_attr = {.dc_type = row->dc, .dct_access_key = 1}};
	struct ibv_qp *qp;

	if (flags)
		attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	errno = 0;
	qp = row->dc ? mlx5dv_create_qp(client.context, &attr, &dv) : ibv_create_qp_ex(client.context, &attr);
	if (!qp)
		return errno;
	expect_error(ibv_destroy_qp(qp), 0);
	return 0;
}

TEST(srq_of_each_kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (int kind = NONE; kind < SRQ_KINDS; kind++) {
			note("%s, SRQ of kind %d", rows[i].name, kind);
			expect_error(try_create(&rows[i], srqs[kind], 0), rows[i].takes[kind] ? 0 : EINVAL);
		}
}

/* RAW_PACKET QPs and UD QPs accept different flags; connected types accept none. DCTs: mlx5-formats 4.11. */
TEST(flags_of_each_type)
{
	static const uint32_t raw[] = {IBV_QP_CREATE_SCATTER_FCS, IBV_QP_CREATE_CVLAN_STRIPPING};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool datagram = rows[i].type == IBV_QPT_UD;

		if (rows[i].type == IBV_QPT_DRIVER)
			continue;
		note("%s", rows[i].name);
		expect_error(try_create(&rows[i], NULL, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB), datagram ? 0 : EINVAL);
		for (size_t k = 0; k < ARRAY_SIZE(raw); k++)
			expect_error(try_create(&rows[i], NULL, raw[k]), EINVAL);
		if (!datagram)
			expect_error(try_create(&rows[i], NULL, IBV_QP_CREATE_PCI_WRITE_END_PADDING), EINVAL);
	}
}

int main(void)
{
	return run_cases(.setup = open_objects, .teardown = close_objects);
}
