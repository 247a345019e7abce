/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 130 to 134, 460, 522 to 527, 612 to 615: DC. */
#include "rule_cases.h"
#include "support/dc.h"

enum { KEY = 0xd00d, STREAM = 5 };

static struct dci dci;
static struct dct dct;

static void open_all(bool streams)
{
	struct dci_options options = dci_defaults();

	options.streams = streams;
	options.log_streams = 2;
	options.log_errored = 2;
	options.dv_send_ops = MLX5DV_QP_EX_WITH_RAW_WQE;
	dci_open(&dci, &client, &server, &options);
	dct_open(&dct, &server, KEY);
}

static void close_all(void)
{
	dci_close(&dci);
	dct_close(&dct);
}

/* ---- posting ---------------------------------------------------------------------------------------------------- */

RULE_CASE(WR_DC_ADDRESS_MISSING)
{
	open_all(false);
	ibv_wr_start(dci.end.ex);
	dci.end.ex->wr_id = 0x52;
	ibv_wr_send(dci.end.ex);
	ibv_wr_set_sge(dci.end.ex, client.mr->lkey, side_address(&client, 0), 8);
	expect_error(ibv_wr_complete(dci.end.ex), EINVAL);
	expect_about_qp(WR_DC_ADDRESS_MISSING, dci.end.qp->qp_num,
			" ibv_wr_complete → EINVAL: the work request with wr_id 0x52 of a DCI has no address");
	close_all();
}

/* ---- the device ------------------------------------------------------------------------------------------------- */

RULE_CASE(DCI_STREAM_FLUSHED)
{
	struct ibv_sge source = side_sge(&client, 0, BYTES), no_key = source;

	no_key.lkey = 0xfffff00;
	open_all(true);
	dci_write(&dci, &dct, STREAM, 1, no_key, server.mr->rkey, side_address(&server, 0));
	expect_status(&dci.end, 1, IBV_WC_LOC_PROT_ERR);
	dci_write(&dci, &dct, STREAM, 2, source, server.mr->rkey, side_address(&server, 0));
	expect_failure(&dci.end, 2, WR_FLUSH_ERR, DCI_STREAM_FLUSHED, "RDMA_WRITE",
		       "flushed: stream 5 of the queue pair stopped at the failure of record %" PRIu64,
		       serial_of(dci.end.qp->qp_num, RULE_KEY_UNKNOWN));
	close_all();
}

/* Both ends get an explanation. */
RULE_CASE(DC_KEY)
{
	struct dct guess;

	open_all(false);
	guess = dct;
	guess.key = 0xbad;
	dci_send(&dci, &guess, 0, 3, side_sge(&client, 0, BYTES));
	expect_about_qp(DC_KEY, dct.end.qp->qp_num,
			": SEND of queue pair 0x%x for DCT 0x%x carries access key 0xbad, but the DCT has another one",
			dci.end.qp->qp_num, dct.end.qp->qp_num);
	expect_failure(&dci.end, 3, REM_ACCESS_ERR, DC_KEY, "SEND",
		       "SEND of queue pair 0x%x for DCT 0x%x carries access key 0xbad, but the DCT has another one",
		       dci.end.qp->qp_num, dct.end.qp->qp_num);
	close_all();
}

RULE_CASE(DC_COMPACT_ADDRESS)
{
	struct {
		struct mlx5_wqe_ctrl_seg ctrl;
		struct {
			__be64 key;
			__be32 dqp_dct;
			uint8_t rate, loopback, rlid[2];
		} address;
	} wqe = {.address = {.key = htobe64(KEY)}};

	open_all(false);
	mlx5dv_set_ctrl_seg(&wqe.ctrl, 0, MLX5_OPCODE_SEND, 0, dci.end.qp->qp_num, MLX5_WQE_CTRL_CQ_UPDATE, 2, 0, 0);
	wqe.address.dqp_dct = htobe32(dct.end.qp->qp_num);
	ibv_wr_start(dci.end.ex);
	dci.end.ex->wr_id = 4;
	mlx5dv_wr_raw_wqe(dci.end.dv, &wqe);
	expect_error(ibv_wr_complete(dci.end.ex), 0);
	expect_failure(
		&dci.end, 4, LOC_QP_OP_ERR, DC_COMPACT_ADDRESS, "SEND",
		"the address vector has 16 bytes and no GID: on Ethernet it reaches only the device's own port, with the force-loopback bit");
	close_all();
}

/* ---- queues ----------------------------------------------------------------------------------------------------- */

RULE_CASE(QP_QUERY_DCT)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	open_all(false);
	expect_error(ibv_query_qp(dct.end.qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init), EINVAL);
	expect_about_qp(
		QP_QUERY_DCT, dct.end.qp->qp_num,
		" ibv_query_qp → EINVAL: a DCT in state RTR was queried for STATE|CAP; a DCT answers in RTR, and for STATE|ACCESS_FLAGS|PKEY_INDEX|PORT|AV|PATH_MTU|MIN_RNR_TIMER only");
	close_all();
}

/* ---- creation, posting ------------------------------------------------------------------------------------------- */

static struct ibv_qp_init_attr_ex attributes(void)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = pair.client.cq,
		.recv_cq = pair.client.cq,
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = client.pd,
	};
}

static void fails(struct ibv_qp_init_attr_ex attr, enum mlx5dv_dc_type type, uint64_t mask)
{
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC | mask,
		.dc_init_attr.dc_type = type,
	};

	if (mask & MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS)
		dv.dc_init_attr.dci_streams = (struct mlx5dv_dci_streams){9, 3};
	errno = 0;
	assert_null(mlx5dv_create_qp(client.context, &attr, &dv));
	expect_error(errno, EINVAL);
}

RULE_CASE(QP_DCT_ATTR)
{
	struct ibv_qp_init_attr_ex attr = attributes();

	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	fails(attr, MLX5DV_DCTYPE_DCT, MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS);
	expect_refusal(
		QP_DCT_ATTR,
		"mlx5dv_create_qp → EINVAL: a DCT was requested with comp_mask 0x5 of struct ibv_qp_init_attr_ex and 0x6 of struct mlx5dv_qp_init_attr; it takes 0x1 and 0x3");
}

RULE_CASE(QP_DCT_SRQ)
{
	fails(attributes(), MLX5DV_DCTYPE_DCT, 0);
	expect_refusal(QP_DCT_SRQ, "mlx5dv_create_qp → EINVAL: a QP of type DCT was requested without an SRQ");
}

RULE_CASE(QP_DCI_RECEIVES)
{
	struct ibv_qp_init_attr_ex attr = attributes();

	attr.cap.max_recv_wr = 3;
	attr.cap.max_recv_sge = 2;
	fails(attr, MLX5DV_DCTYPE_DCI, 0);
	expect_refusal(
		QP_DCI_RECEIVES,
		"mlx5dv_create_qp → EINVAL: a DCI was requested with max_recv_wr 3 and max_recv_sge 2, but a DCI does not receive");
}

RULE_CASE(QP_DCI_STREAMS)
{
	fails(attributes(), MLX5DV_DCTYPE_DCI, MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS);
	expect_refusal(
		QP_DCI_STREAMS,
		"mlx5dv_create_qp → EINVAL: a DCI was requested with 2^9 streams, 2^3 of which may fail; the device has 2^6 and 2^6");
}

RULE_CASE(SEND_ON_DCI)
{
	struct ibv_send_wr wr = request(IBV_WR_SEND_WITH_IMM, BYTES), *bad;

	open_all(false);
	expect_error(ibv_post_send(dci.end.qp, &wr, &bad), EINVAL);
	expect_about_qp(SEND_ON_DCI, dci.end.qp->qp_num,
			" ibv_post_send wr_id %d → EINVAL: a WR of ibv_post_send(3) cannot name the target of a DCI "
			"(opcode 3)",
			WR_ID);
	close_all();
}

/* ---- mlx5dv ------------------------------------------------------------------------------------------------------ */

RULE_CASE(DV_STREAM_STATE)
{
	open_all(true);
	expect_error(mlx5dv_dci_stream_id_reset(dct.end.qp, 1), EOPNOTSUPP);
	expect_about_qp(
		DV_STREAM_STATE, dct.end.qp->qp_num,
		" mlx5dv_dci_stream_id_reset → EOPNOTSUPP: the QP, of type DRIVER, is in state RTR, but streams are reset in RTS");
	close_all();
}

RULE_CASE(DV_STREAM_NO_DCI)
{
	expect_error(mlx5dv_dci_stream_id_reset(pair.client.qp, 1), EINVAL);
	expect_about_qp(DV_STREAM_NO_DCI, pair.client.qp->qp_num,
			" mlx5dv_dci_stream_id_reset → EINVAL: a QP of type RC has no streams");
}

RULE_CASE(DV_STREAM_NOT_IN_ERROR)
{
	struct ibv_sge no_key = side_sge(&client, 0, BYTES);

	no_key.lkey = 0xfffff00;
	open_all(true);
	dci_write(&dci, &dct, STREAM, 1, no_key, server.mr->rkey, side_address(&server, 0));
	expect_status(&dci.end, 1, IBV_WC_LOC_PROT_ERR);
	expect_error(mlx5dv_dci_stream_id_reset(dci.end.qp, STREAM + 1), EINVAL);
	expect_about_qp(DV_STREAM_NOT_IN_ERROR, dci.end.qp->qp_num,
			" mlx5dv_dci_stream_id_reset → EINVAL: stream 6 is not in error; 1 streams of the QP are");
	close_all();
}

RULE_CASE(DV_MAP_AH_QP)
{
	open_all(false);
	expect_error(mlx5dv_map_ah_to_qp(dci.ah, 0xfffffe), EINVAL);
	expect_refusal(DV_MAP_AH_QP, "mlx5dv_map_ah_to_qp → EINVAL: QP 0xfffffe does not exist");
	close_all();
}
