/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device as its driver sees it: commands (create, modify, destroy …), doorbells, and nothing else. What a command
 * does not carry goes through rings of genuine mlx5 format in memory that the driver owns (mlx5-formats 1 to 3).
 *
 * Objects are created and destroyed by the driver through this header; the device owns their inner state. Destroy calls
 * return -EBUSY while another object refers to the object (a PD with keys, a CQ with QPs). The driver's ring memory
 * must stay valid until the destroy call returned.
 *
 * Locks: every object brings its own; commands may be called from any thread, doorbells too. Callbacks (wr_id_of, those
 * of the resize commands) run under a lock of the device: they call no command and take no lock.
 *
 * Errors: 0 or -errno. A refusal leaves an explanation record (explain/explain.h).
 */
#ifndef SOFTHCA_HCA_HCA_H
#define SOFTHCA_HCA_HCA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "core/event_queue.h"
#include "core/settings.h"
#include "core/visibility.h"

struct hca;
struct hca_context;
struct hca_pd;
struct hca_cq;
struct hca_srq;
struct hca_qp;
struct hca_xrcd;
struct mkey;

/* ---- devices and contexts ------------------------------------------------------------------------------------- */

/** Number of devices of this process (SOFTHCA_DEVICES). The first call reads the settings and makes the devices. */
size_t hca_count(void);

/** Device @index, or NULL. Devices live until the process ends. */
struct hca *hca_device(size_t index);

const char *hca_name(const struct hca *hca);
const struct settings *hca_settings(const struct hca *hca);
/** Node and system image GUID, network order. Differs per device and host. */
__be64 hca_guid(const struct hca *hca);

/** Time of the device in nanoseconds: the clock of CQE timestamps (free running). */
uint64_t hca_clock_ns(const struct hca *hca);

struct hca_gid {
	union ibv_gid gid;
	enum ibv_gid_type type; /* IBV_GID_TYPE_ROCE_V1 or _V2 */
	uint32_t ifindex;
	char netdev[16];
	uint8_t mac[6];
};

#define HCA_GID_TABLE_SIZE 64

/** The GID table: entries 0…count-1 (design: 0 link-local v1, 1 link-local v2, 2 IPv4 v1, 3 IPv4 v2, …). */
const struct hca_gid *hca_gids(const struct hca *hca, size_t *count);

/**
 * Opens a context. @async: the driver's queue of asynchronous events, owned by the driver, valid until close.
 * Returns 0, -ENOMEM.
 */
int hca_open(struct hca *hca, struct event_queue *async, struct hca_context **context);
/** Closes a context; its objects must be gone (-EBUSY otherwise). */
int hca_close(struct hca_context *context);

/* ---- protection domains, keys --------------------------------------------------------------------------------- */

int hca_pd_alloc(struct hca_context *context, struct hca_pd **pd);
int hca_pd_dealloc(struct hca_pd *pd); /* -EBUSY while keys, queues refer to it */
uint32_t hca_pd_number(const struct hca_pd *pd);
struct hca *hca_pd_device(const struct hca_pd *pd);

enum mr_kind {
	MR_MEMORY,        /* plain virtual memory of this process */
	MR_ON_DEMAND,     /* explicit on-demand: pages are checked at access, not at registration */
	MR_IMPLICIT,      /* implicit on-demand: the whole address space */
	MR_DEVICE_MEMORY, /* memory of ibv_alloc_dm */
	MR_NULL,          /* ibv_alloc_null_mr: reads give zeros, writes are discarded */
};

struct hca_mr_attr {
	enum mr_kind kind;
	void *addr;          /* memory of byte 0; for MR_DEVICE_MEMORY its host address; NULL for IMPLICIT and NULL */
	uint64_t start;      /* address of byte 0 as requests name it (iova; 0 for zero-based keys) */
	uint64_t length;     /* bytes */
	unsigned int access; /* enum ibv_access_flags; optional bits are ignored by the device */
};

/**
 * Makes a direct key (lkey == rkey). The driver has checked the access flags; the device pre-faults MR_MEMORY
 * (-EFAULT for memory that is not mapped or, with write access, not writable).
 */
int hca_mr_register(struct hca_pd *pd, const struct hca_mr_attr *attr, struct mkey **key);
/**
 * Changes a direct key in place: what @flags (enum ibv_rereg_mr_flags) selects: translation (addr, start, length),
 * PD (@pd), access. The key's number stays. On failure the key is unchanged.
 */
int hca_mr_reregister(struct mkey *key, int flags, struct hca_pd *pd, const struct hca_mr_attr *attr);
/** Destroys a key; returns after the last running transfer through it ended. Windows over it become unusable. */
int hca_mr_deregister(struct mkey *key);

/**
 * Prefetch of ibv_advise_mr(3) in an on-demand region of @pd: checks [@address, +@length) and, with @populate, makes its
 * pages present (writable ones with @write). Returns 0, -ENOENT for no on-demand region under @lkey, -EINVAL for a
 * window or an indirect key, -EPERM for another domain or a region without local write, -EFAULT for a range outside of
 * the region or of mapped memory.
 */
int hca_mr_prefetch(struct hca_pd *pd, uint32_t lkey, uint64_t address, uint64_t length, bool write, bool populate);

/** Window key: free until bound. @type: type 1 or 2. */
int hca_mw_alloc(struct hca_pd *pd, enum ibv_mw_type type, struct mkey **key);
int hca_mw_dealloc(struct mkey *key);

struct hca_mkey_attr {
	uint16_t max_entries;   /* capacity in 16-byte translation entries, already rounded up to a multiple of 4 */
	uint8_t bsf_octowords;  /* capacity for block setup: 0, 4 or 8 */
	bool cipher;            /* made for a cipher: cannot be used before it is configured with one */
	bool remote_invalidate; /* en_rinval */
	bool update_tag;        /* a UMR may name the live key with a tag that differs from the current one */
};

/** Indirect key, free until a UMR configures it (mlx5-formats 4.3). */
int hca_mkey_create(struct hca_pd *pd, const struct hca_mkey_attr *attr, struct mkey **key);
int hca_mkey_destroy(struct mkey *key);

/**
 * mlx5dv_mkey_check(3), profile man: takes the signature error that the key keeps, the first that was found since the call
 * before, as the page describes it. Its err_type is MLX5DV_MKEY_NO_ERR if there is none.
 */
void hca_mkey_take_error(struct mkey *key, struct mlx5dv_mkey_err *error);

/**
 * A PSV, which a signature domain of a key names (mlx5-formats 1.11, 1.13): the state of its signature between
 * transfers. @index has 24 bits. Returns 0 or -ENOMEM.
 */
int hca_psv_create(struct hca_pd *pd, uint32_t *index);
/** Returns 0, -ENOENT. Keys that still name it can be used no longer with it. */
int hca_psv_destroy(struct hca *hca, uint32_t index);

/** Current key number: index << 8 | tag. For windows the tag changes with each bind. */
uint32_t mkey_number(const struct mkey *key);

/* ---- encryption ----------------------------------------------------------------------------------------------- */

struct hca_login;

/** True if the device has the import KEKs and credentials that wrapped DEKs need (SOFTHCA_CRYPTO, SOFTHCA_CRYPTO_FILE). */
bool hca_crypto_operational(const struct hca *hca);

struct hca_login_attr {
	uint32_t credential_id, import_kek_id;
	const void *credential; /* wrapped by the import KEK */
	size_t credential_bytes;
	const char *call; /* for explanations */
};

/**
 * Logs @context in, once at a time. Returns 0, -EEXIST (it is), -EINVAL (unknown ids, wrong credential), -ENOMEM.
 * A login keeps its context.
 */
int hca_login_create(struct hca_context *context, const struct hca_login_attr *attr, struct hca_login **login);
void hca_login_destroy(struct hca_login *login);
/** True if @context is logged in. */
bool hca_logged_in(const struct hca_context *context);

struct hca_dek_attr {
	unsigned int key_bytes; /* of both keys together: 32 or 64 */
	bool has_keytag;        /* 8 bytes behind them */
	const void *key;        /* keys and tag; wrapped, 8 bytes more */
	bool wrapped;           /* by the import KEK of the context's login */
};

/**
 * A DEK of @pd; @context is the one that is logged in. Returns 0, -EINVAL (does not unwrap, no login, equal keys),
 * -ENOMEM. @id: 24 bits, not 0.
 */
int hca_dek_create(struct hca_context *context, const struct hca_pd *pd, const struct hca_dek_attr *attr, uint32_t *id);
/** Keys that are configured with it go on until they are configured anew. */
void hca_dek_destroy(struct hca *hca, uint32_t id);

/* ---- completion queues ---------------------------------------------------------------------------------------- */

struct hca_cq_attr {
	void *buffer;                /* cqe_count * cqe_size bytes: zero, but for op_own, 0xf0 (invalid) */
	uint32_t cqe_count;          /* power of two */
	uint32_t cqe_size;           /* 64 or 128 */
	uint32_t *dbrec;             /* two be32: [0] consumer index, [1] arm word (mlx5-formats 3.6) */
	struct event_queue *channel; /* completion channel, or NULL */
	void *cookie;                /* the driver's CQ: object of its completion and asynchronous events */
	bool timestamps;             /* write the timestamp field */
	bool ignore_overrun;
};

int hca_cq_create(struct hca_context *context, const struct hca_cq_attr *attr, struct hca_cq **cq);
int hca_cq_destroy(struct hca_cq *cq); /* -EBUSY while QPs or SRQs use it; drops events not yet taken */
uint32_t hca_cq_number(const struct hca_cq *cq);
/**
 * The ring and its doorbell record were given to the program (mlx5dv_init_obj(3)): from now on the device itself looks at
 * the arm word, which the program rings without a call, and signature errors are told by CQEs. Once is enough. Returns 0 or
 * -EAGAIN.
 */
int hca_cq_watch(struct hca_cq *cq);
/** Doorbell of the CQ: the arm word in dbrec[1] changed. May raise the event at once. */
void hca_cq_arm(struct hca_cq *cq);
/** The same of a driver that says the @word itself, which another thread may have overwritten in dbrec[1] by now. */
void hca_cq_request(struct hca_cq *cq, uint32_t word);
/**
 * Continues in a new ring: one RESIZE_CQ CQE goes into the old ring at the device's position, where it takes an index
 * of its own; all later ones go into @buffer from the index after it. The driver copies what is left of the old ring
 * (mlx5-formats 3.7) and moves the consumer index on by the marker in @copy, under the device's own lock: nobody writes
 * a CQE or arms meanwhile. The new count must exceed the number of CQEs not yet consumed: -EINVAL. The driver holds its
 * own CQ lock.
 */
int hca_cq_resize(struct hca_cq *cq, void *buffer, uint32_t cqe_count, void (*copy)(void *argument), void *argument);
/** Event moderation: an armed CQ raises its event after @count CQEs or @period_us, whichever comes first. 0,0 = off. */
int hca_cq_moderate(struct hca_cq *cq, uint16_t count, uint16_t period_us);

/* ---- XRC domains ---------------------------------------------------------------------------------------------- */

/**
 * Opens the domain of the inode behind @fd, or with @fd -1 a domain of its own, as ibv_open_xrcd(3) says. @oflags:
 * O_CREAT, O_EXCL. The descriptor may be closed afterwards: the inode is held. Returns 0, -EBADF (@fd), -EAGAIN (no
 * domain, and no O_CREAT), -EINVAL (O_EXCL, and there is one), -ENOMEM, -EMFILE.
 */
int hca_xrcd_open(struct hca_context *context, int fd, int oflags, struct hca_xrcd **xrcd);
/** -EBUSY while SRQs, and QPs created or opened, through this opening are left. The last closing ends the domain. */
int hca_xrcd_close(struct hca_xrcd *xrcd);

/* ---- shared receive queues ------------------------------------------------------------------------------------ */

struct hca_srq_attr {
	void *buffer; /* linked list of entries, mlx5-formats 2.2 */
	uint32_t entry_count;
	uint32_t entry_shift; /* log2 of the entry size */
	uint32_t *dbrec;      /* one be32: counter of posted entries, 16 bits */
	uint32_t limit;
	void *cookie; /* the driver's SRQ: object of its asynchronous events */
	/* Of an XRC SRQ, else NULL: where it can be reached, and where its receives complete; user index as for a QP. */
	struct hca_xrcd *xrcd;
	struct hca_cq *cq;
	uint32_t user_index;
};

int hca_srq_create(struct hca_pd *pd, const struct hca_srq_attr *attr, struct hca_srq **srq);
/** -EBUSY while QPs use it. An XRC SRQ can be reached by no packet any more, and completes nothing, on return. */
int hca_srq_destroy(struct hca_srq *srq);
uint32_t hca_srq_number(const struct hca_srq *srq);
/** Arms the limit event: IBV_EVENT_SRQ_LIMIT_REACHED once fewer than @limit entries are posted; 0 disarms. */
int hca_srq_set_limit(struct hca_srq *srq, uint32_t limit);
uint32_t hca_srq_limit(struct hca_srq *srq);
/**
 * Continues in a new ring. The driver, under its SRQ lock, has copied the entries that are still posted: the next one
 * to consume is @first, the counters restart: @posted entries are posted. (The device's own lock covers the exchange:
 * @fill is called under it to do the copying, with the index of the next entry to consume and the number posted.)
 */
int hca_srq_resize(struct hca_srq *srq, void *buffer, uint32_t entry_count,
		   void (*fill)(void *argument, uint32_t next_index, uint32_t posted, uint32_t *first), void *argument);

/* ---- queue pairs ---------------------------------------------------------------------------------------------- */

/* IBV_QPT_DRIVER is one value for all types of all vendors. The device has a type for each, wherever it takes one. */
#define QP_TYPE_DCI ((enum ibv_qp_type)30)
#define QP_TYPE_DCT ((enum ibv_qp_type)31)

struct hca_qp_attr {
	enum ibv_qp_type type;            /* RC, UC, UD, XRC, QP_TYPE_DCI, QP_TYPE_DCT */
	struct hca_pd *pd;                /* NULL of XRC_RECV: packets name an SRQ, whose domain counts */
	struct hca_xrcd *xrcd;            /* of XRC_RECV, else NULL */
	struct hca_cq *send_cq, *recv_cq; /* NULL where the type has none */
	struct hca_srq *srq;              /* or NULL */
	void *sq_buffer;                  /* sq_wqebb_count * 64 bytes */
	uint32_t sq_wqebb_count;          /* power of two, or 0 */
	void *rq_buffer;
	uint32_t rq_count;   /* power of two, or 0 */
	uint32_t rq_shift;   /* log2 of the stride */
	uint32_t *dbrec;     /* two be32: [0] receive, [1] send (MLX5_RCV_DBR, MLX5_SND_DBR); NULL without queues */
	uint32_t user_index; /* appears in the low 24 bits of srqn_uidx of every CQE of this QP (CQE version 1) */
	void *cookie;        /* the driver's QP: object of its asynchronous events */
	/* For explanations only: the wr_id of the send WQE whose first block has the 16-bit @index. May be NULL. */
	uint64_t (*wr_id_of)(const void *cookie, uint16_t index);
	/*
	 * Likewise: what the program calls the UMR WQE at @index, a static string; NULL: no more is known than its opcode. A
	 * memory window is bound, and a key invalidated, by a UMR (mlx5-formats 1.4, 3.8). May be NULL.
	 */
	const char *(*umr_name_of)(const void *cookie, uint16_t index);
	struct ibv_qp_cap cap; /* as returned to the program, for ibv_query_qp */
	/* MLX5DV_QP_CREATE_SIG_PIPELINING: a signature error that a send WQE of this QP finds drains the send queue. */
	bool stop_at_signature_error;
	bool block_self_multicast; /* IBV_QP_CREATE_BLOCK_SELF_MCAST_LB */
	/* QP_TYPE_DCT: the key that requests must bring (mlx5dv_create_qp(3), dct_access_key). */
	uint64_t dc_access_key;
	/* QP_TYPE_DCI: so many streams in error put the QP into ERR; 0: it has no streams, any error does. */
	uint32_t dci_errored_streams;
};

int hca_qp_create(struct hca_context *context, const struct hca_qp_attr *attr, struct hca_qp **qp);
/**
 * Destroys; returns after running transfers of the QP ended. Bound type 2 windows become unusable. Not of XRC_RECV. Returns
 * 0, or -EBUSY while it is attached to a multicast group.
 */
int hca_qp_destroy(struct hca_qp *qp);

/**
 * ibv_attach_mcast(3): from now on the UD QP gets the datagrams for @group. 0, also if it is attached already; -ENOMEM;
 * -ENOSPC: a group or the device has no room for another. hca_qp_detach(): 0, -EINVAL if it is not attached, -ENOMEM.
 */
int hca_qp_attach(struct hca_qp *qp, const union ibv_gid *group);
int hca_qp_detach(struct hca_qp *qp, const union ibv_gid *group);

/**
 * XRC_RECV QPs belong to their domain and may have many openers; each gets the events of the QP. hca_qp_create() makes
 * the first. hca_qp_open() finds the QP of @number in the domain, -EINVAL if there is none, or -ENOMEM. hca_qp_close()
 * ends what was opened with @cookie; the last one destroys the QP.
 */
int hca_qp_open(struct hca_xrcd *xrcd, uint32_t number, void *cookie, struct hca_qp **qp);
void hca_qp_close(struct hca_qp *qp, const void *cookie);
uint32_t hca_qp_number(const struct hca_qp *qp);

/**
 * ibv_modify_qp(3): checks transition, attributes required and allowed (IBTA table 91 and 92; the kernel's state table),
 * and values, then acts. -EINVAL leaves everything as it was.
 * To RESET: the device forgets its ring positions; the driver resets the dbrec and its counters and purges CQEs.
 * To RTS and SQD->RTS: the send queue starts. To ERR: all is flushed before the call returns.
 */
int hca_qp_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int attr_mask);
/** Fills all of @attr as ibv_query_qp(3) does for any mask, cap included. */
int hca_qp_query(struct hca_qp *qp, struct ibv_qp_attr *attr);
/** Whether there is a QP of @number, of any device of this process. */
bool hca_qp_exists(uint32_t number);
/** Current state; cheap, may be stale by the time it returns. */
enum ibv_qp_state hca_qp_state(const struct hca_qp *qp);

/**
 * For mlx5dv_qp_cancel_posted_send_wrs(3): the running index of the first send WQE that was not started, in @next, if
 * the send queue is drained (SQD and nothing under way); else -EINVAL. No WQE starts until SQD is left, so the driver
 * may write over those from there on.
 */
int hca_qp_drained(struct hca_qp *qp, uint16_t *next);

/**
 * mlx5dv_dci_stream_id_reset(3): requests of @stream are executed again. Returns 0, or -EINVAL if it is not in error, and
 * in @errored how many are. @qp is a DCI.
 */
int hca_dci_reset_stream(struct hca_qp *qp, uint16_t stream, uint32_t *errored);

/** Send doorbell: dbrec[MLX5_SND_DBR] moved. Executes what is executable on this thread. No driver lock needed. */
void hca_qp_send_doorbell(struct hca_qp *qp);
/** As hca_cq_watch(), of both doorbell records of the QP. */
int hca_qp_watch(struct hca_qp *qp);
/**
 * The driver gives programs @page (4096 bytes, an anonymous mapping of its own) for the doorbell registers: a store to
 * it can wake the device. Its content does not survive. Until the other call, after which it is an ordinary page.
 */
void hca_watch_page(struct hca *hca, void *page);
void hca_unwatch_page(struct hca *hca, void *page);
/** UDP source port of the QP's RoCE v2 packets (mlx5dv_modify_qp_udp_sport(3)); the driver has checked type and state. */
void hca_qp_set_udp_source_port(struct hca_qp *qp, uint16_t port);

/** Receive doorbell: call after moving dbrec[MLX5_RCV_DBR]. Costs a load unless the QP is in the error state. */
void hca_qp_recv_doorbell(struct hca_qp *qp);

/* ---- QP numbers, device memory -------------------------------------------------------------------------------- */

/** Takes a QP number that no QP gets (mlx5dv_reserved_qpn_alloc(3)). Returns 0, -ENOMEM. */
int hca_qpn_reserve(struct hca *hca, uint32_t *qpn);
/** Gives it back; -EINVAL if it was not reserved. */
int hca_qpn_release(struct hca *hca, uint32_t qpn);

/** Device memory (ibv_alloc_dm(3)): @length bytes at 1 << @log_align. Returns the host address through @addr. */
int hca_dm_alloc(struct hca_context *context, size_t length, uint32_t log_align, void **addr);
void hca_dm_free(struct hca_context *context, void *addr, size_t length);

#endif
