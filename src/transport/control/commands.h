/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of queue pairs. */
#ifndef SOFTHCA_TRANSPORT_CONTROL_COMMANDS_H
#define SOFTHCA_TRANSPORT_CONTROL_COMMANDS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/qp_types.h"
#include "format/wqe_codes.h"
#include "transport/run/doorbell.h"

struct hca;
struct hca_context;
struct hca_cq;
struct hca_pd;
struct hca_qp;
struct hca_srq;
struct hca_xrcd;
struct refusal;

struct hca_qp_attr {
	enum ibv_qp_type type;            /* RC, UC, UD, XRC, QP_TYPE_DCI, QP_TYPE_DCT */
	struct hca_pd *pd;                /* NULL for XRC_RECV, which uses the domain of the request's SRQ */
	struct hca_xrcd *xrcd;            /* XRC_RECV, otherwise NULL */
	struct hca_cq *send_cq, *recv_cq; /* NULL if the type has none */
	struct hca_srq *srq;              /* NULL: own receive queue */
	void *sq_buffer;                  /* sq_wqebb_count * 64 bytes */
	uint32_t sq_wqebb_count;          /* power of two, or 0 */
	/*
	 * sq_buffer, rq_buffer and dbrec are the program's memory, which it may unmap (progress/program_memory.h). The
	 * QP is watched, as after hca_qp_watch().
	 */
	bool in_umem;
	void *rq_buffer;
	uint32_t rq_count;   /* power of two, or 0 */
	uint32_t rq_shift;   /* log2 of the stride */
	uint32_t *dbrec;     /* be32: [0] receive, [1] send (MLX5_RCV_DBR, MLX5_SND_DBR); NULL without queues */
	uint32_t user_index; /* low 24 bits of srqn_uidx in its CQEs (CQE version 1) */
	void *cookie;        /* the driver's QP, object of asynchronous events */
	/* For explanations: returns the wr_id of the send WQE that begins at block @index (16 bits). May be NULL. */
	uint64_t (*wr_id_of)(const void *cookie, uint16_t index);
	/*
	 * Likewise: returns the program's name for the UMR WQE at @index, a static string, or NULL if only its opcode
	 * is known. May be NULL.
	 */
	const char *(*umr_name_of)(const void *cookie, uint16_t index);
	struct ibv_qp_cap cap; /* as returned to the program, for ibv_query_qp */
	/* MLX5DV_QP_CREATE_SIG_PIPELINING: a signature error found by a send WQE drains the send queue. */
	bool stop_at_signature_error;
	bool block_self_multicast; /* IBV_QP_CREATE_BLOCK_SELF_MCAST_LB */
	/*
	 * MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE: data of a READ or atomic may be in its CQE only (mlx5-formats 3.2);
	 * the reader of the ring copies it.
	 */
	bool scatter_to_cqe;
	/* QP_TYPE_DCT: key that requests must carry (mlx5dv_create_qp(3), dct_access_key). */
	uint64_t dc_access_key;
	/* QP_TYPE_DCI: streams in error that move the QP to ERR; 0: no streams, any error does. */
	uint32_t dci_errored_streams;
};

int hca_qp_create(struct hca_context *context, const struct hca_qp_attr *attr, struct hca_qp **qp);
/**
 * Destroys a QP other than XRC_RECV; waits for its running transfers. Type 2 windows bound to it become unusable.
 * Returns 0, or -EBUSY while it is attached to a multicast group.
 */
int hca_qp_destroy(struct hca_qp *qp);

/**
 * ibv_attach_mcast(3). Returns 0, also if already attached; -ENOMEM; -ENOSPC if the group or the device is full.
 * hca_qp_detach() returns 0, -EINVAL if not attached, or -ENOMEM.
 */
int hca_qp_attach(struct hca_qp *qp, const union ibv_gid *group);
int hca_qp_detach(struct hca_qp *qp, const union ibv_gid *group);

/**
 * An XRC_RECV QP may have many openers, which all get its events. hca_qp_create() makes the first; hca_qp_open()
 * returns 0, -EINVAL if the domain has no QP @number, or -ENOMEM. hca_qp_close() closes the handle with @cookie; the
 * last one destroys the QP.
 */
int hca_qp_open(struct hca_xrcd *xrcd, uint32_t number, void *cookie, struct hca_qp **qp);
void hca_qp_close(struct hca_qp *qp, const void *cookie);
uint32_t hca_qp_number(const struct hca_qp *qp);
/** As hca_pd_find(); not for XRC_RECV QPs. */
struct hca_qp *hca_qp_find(const struct hca_context *context, uint32_t number);
enum ibv_qp_type hca_qp_type(const struct hca_qp *qp);

/**
 * ibv_modify_qp(3): checks transition, attributes (IBTA tables 91 and 92; the kernel's state table) and values, then
 * acts. -EINVAL leaves the QP unchanged. To RESET: the driver resets the dbrec and its counters and purges CQEs. To
 * ERR: all requests are flushed before the return.
 */
int hca_qp_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int attr_mask);
/**
 * Moves @qp to ERR because its connection was closed (rdma_disconnect(3)) or refused. Flushed receives, which the
 * program expects, are recorded but not printed (explain.h).
 */
void hca_qp_disconnect(struct hca_qp *qp);
/** As hca_qp_modify(), but stores the refusal in @why instead of explaining it. */
int hca_qp_try_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int attr_mask, struct refusal *why);
/** Fills in all of @attr, as ibv_query_qp(3) does for any mask. */
int hca_qp_query(struct hca_qp *qp, struct ibv_qp_attr *attr);
/** Fills in the objects and sizes that @qp was created with; buffers, records, cookie and functions are NULL. */
void hca_qp_creation(const struct hca_qp *qp, struct hca_qp_attr *attr);
/** Returns true if this process has a QP @number. */
bool hca_qp_exists(uint32_t number);
/** The state may be stale on return. */
enum ibv_qp_state hca_qp_state(const struct hca_qp *qp);

/**
 * For mlx5dv_qp_cancel_posted_send_wrs(3): if the send queue is drained (SQD and nothing in flight), stores the running
 * index of the first WQE not started in @next; otherwise returns -EINVAL. The driver may overwrite WQEs from there on,
 * since none starts in SQD.
 */
int hca_qp_drained(struct hca_qp *qp, uint16_t *next);

/**
 * mlx5dv_dci_stream_id_reset(3) for a DCI. Returns 0, or -EINVAL if @stream is not in error; @errored: streams in
 * error.
 */
int hca_dci_reset_stream(struct hca_qp *qp, uint16_t stream, uint32_t *errored);

/** As hca_cq_watch(), for both records. Returns 0, or -ENOMEM. */
int hca_qp_watch(struct hca_qp *qp);
/**
 * Sets the UDP source port of RoCE v2 packets (mlx5dv_modify_qp_udp_sport(3)); the driver has checked type and state.
 */
void hca_qp_set_udp_source_port(struct hca_qp *qp, uint16_t port);

/** Reserves a QP number (mlx5dv_reserved_qpn_alloc(3)). Returns 0 or -ENOMEM. */
int hca_qpn_reserve(struct hca *hca, uint32_t *qpn);
/** Returns -EINVAL if @qpn was not reserved. */
int hca_qpn_release(struct hca *hca, uint32_t qpn);

#endif
