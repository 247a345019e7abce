/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of queue pairs; see process/commands.h. */
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
	struct hca_pd *pd;                /* NULL for XRC_RECV: packets name an SRQ, and its domain is used */
	struct hca_xrcd *xrcd;            /* for XRC_RECV, otherwise NULL */
	struct hca_cq *send_cq, *recv_cq; /* NULL if the type has none */
	struct hca_srq *srq;              /* NULL if the QP has its own receive queue */
	void *sq_buffer;                  /* sq_wqebb_count * 64 bytes */
	uint32_t sq_wqebb_count;          /* power of two, or 0 */
	/*
	 * sq_buffer, rq_buffer and dbrec are memory of the program, which it may unmap (progress/program_memory.h).
	 * The QP is watched, as after hca_qp_watch().
	 */
	bool in_umem;
	void *rq_buffer;
	uint32_t rq_count;   /* power of two, or 0 */
	uint32_t rq_shift;   /* log2 of the stride */
	uint32_t *dbrec;     /* two be32: [0] receive, [1] send (MLX5_RCV_DBR, MLX5_SND_DBR); NULL without queues */
	uint32_t user_index; /* appears in the low 24 bits of srqn_uidx of every CQE of this QP (CQE version 1) */
	void *cookie;        /* the driver's QP, named by asynchronous events */
	/*
	 * For explanations only: returns the wr_id of the send WQE that begins at the block with the 16-bit @index. May
	 * be NULL.
	 */
	uint64_t (*wr_id_of)(const void *cookie, uint16_t index);
	/*
	 * Likewise: returns the name that the program uses for the UMR WQE at @index, a static string, or NULL if
	 * only its opcode is known. Binding a memory window and invalidating a key are UMRs (mlx5-formats 1.4, 3.8).
	 * May be NULL.
	 */
	const char *(*umr_name_of)(const void *cookie, uint16_t index);
	struct ibv_qp_cap cap; /* as returned to the program, for ibv_query_qp */
	/* MLX5DV_QP_CREATE_SIG_PIPELINING: a signature error found by a send WQE of this QP drains the send queue. */
	bool stop_at_signature_error;
	bool block_self_multicast; /* IBV_QP_CREATE_BLOCK_SELF_MCAST_LB */
	/*
	 * MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE: data of a READ or atomic may be in its CQE only (mlx5-formats 3.2);
	 * the driver, or the program that reads the ring, copies it.
	 */
	bool scatter_to_cqe;
	/* QP_TYPE_DCT: the key that requests must carry (mlx5dv_create_qp(3), dct_access_key). */
	uint64_t dc_access_key;
	/* QP_TYPE_DCI: number of streams in error that moves the QP to ERR; 0: no streams, any error does. */
	uint32_t dci_errored_streams;
};

int hca_qp_create(struct hca_context *context, const struct hca_qp_attr *attr, struct hca_qp **qp);
/**
 * Destroys a QP other than XRC_RECV; returns when its running transfers have ended. Type 2 windows bound to it become
 * unusable. Returns 0, or -EBUSY while it is attached to a multicast group.
 */
int hca_qp_destroy(struct hca_qp *qp);

/**
 * ibv_attach_mcast(3): delivers datagrams for @group to the UD QP from now on. Returns 0, also if it is already
 * attached; -ENOMEM; -ENOSPC if the group or the device is full. hca_qp_detach() returns 0, -EINVAL if it is not
 * attached, or -ENOMEM.
 */
int hca_qp_attach(struct hca_qp *qp, const union ibv_gid *group);
int hca_qp_detach(struct hca_qp *qp, const union ibv_gid *group);

/**
 * XRC_RECV QPs belong to their domain and may have many openers, each of which gets the events of the QP.
 * hca_qp_create() makes the first. hca_qp_open() finds QP @number in the domain; it returns 0, -EINVAL if the QP is not
 * there, or -ENOMEM. hca_qp_close() closes the handle with @cookie; closing the last one destroys the QP.
 */
int hca_qp_open(struct hca_xrcd *xrcd, uint32_t number, void *cookie, struct hca_qp **qp);
void hca_qp_close(struct hca_qp *qp, const void *cookie);
uint32_t hca_qp_number(const struct hca_qp *qp);
/** As hca_pd_find(), for a QP created by @context; not for XRC_RECV QPs, which belong to a domain. */
struct hca_qp *hca_qp_find(const struct hca_context *context, uint32_t number);
enum ibv_qp_type hca_qp_type(const struct hca_qp *qp);

/**
 * ibv_modify_qp(3): checks the transition, required and allowed attributes (IBTA tables 91 and 92; the kernel's state table)
 * and values, then acts. -EINVAL leaves the QP unchanged.
 * To RESET: the device forgets its ring positions; the driver resets the dbrec and its counters and purges CQEs.
 * To RTS and SQD->RTS: the send queue starts. To ERR: all requests are flushed before the call returns.
 */
int hca_qp_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int attr_mask);
/**
 * Moves @qp to ERR because its connection was closed (rdma_disconnect(3)) or refused. The program expects flushed
 * receives, so they are recorded but not printed (explain.h); flushed send requests are printed.
 */
void hca_qp_disconnect(struct hca_qp *qp);
/**
 * As hca_qp_modify(), without an explanation: stores rule and arguments of a refusal in @why, for a caller that knows
 * the name of the call.
 */
int hca_qp_try_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int attr_mask, struct refusal *why);
/** Fills in all of @attr, including cap, as ibv_query_qp(3) does for any mask. */
int hca_qp_query(struct hca_qp *qp, struct ibv_qp_attr *attr);
/**
 * Fills in @attr with the objects and sizes that @qp was created with; buffers, records, cookie and functions are
 * NULL.
 */
void hca_qp_creation(const struct hca_qp *qp, struct hca_qp_attr *attr);
/** Returns true if any device of this process has a QP @number. */
bool hca_qp_exists(uint32_t number);
/** Returns the current state, which may be stale on return. */
enum ibv_qp_state hca_qp_state(const struct hca_qp *qp);

/**
 * For mlx5dv_qp_cancel_posted_send_wrs(3): fills in @next with the running index of the first send WQE that was not
 * started, if the send queue is drained (SQD and nothing in flight); otherwise returns -EINVAL. No WQE starts before
 * the QP leaves SQD, so the driver may overwrite WQEs from there on.
 */
int hca_qp_drained(struct hca_qp *qp, uint16_t *next);

/**
 * mlx5dv_dci_stream_id_reset(3): executes requests of @stream again. Returns 0, or -EINVAL if it is not in error;
 * @errored is the number of streams in error. @qp is a DCI.
 */
int hca_dci_reset_stream(struct hca_qp *qp, uint16_t stream, uint32_t *errored);

/** As hca_cq_watch(), for both doorbell records of the QP. Returns 0, or -ENOMEM. */
int hca_qp_watch(struct hca_qp *qp);
/**
 * Sets the UDP source port of RoCE v2 packets of the QP (mlx5dv_modify_qp_udp_sport(3)); the driver has checked type
 * and state.
 */
void hca_qp_set_udp_source_port(struct hca_qp *qp, uint16_t port);

/** Reserves a QP number that no QP gets (mlx5dv_reserved_qpn_alloc(3)). Returns 0 or -ENOMEM. */
int hca_qpn_reserve(struct hca *hca, uint32_t *qpn);
/** Releases a reserved number; -EINVAL if it was not reserved. */
int hca_qpn_release(struct hca *hca, uint32_t qpn);

#endif
