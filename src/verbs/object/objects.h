/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's objects: the structures that a program's ibv_* pointers point into. Each embeds the public structure and
 * refers to the device's object (process/commands.h).
 *
 * Ownership: only the create and destroy calls of the man pages create and free an object. Devices live until the
 * process ends, because clients use them after ibv_free_device_list(3).
 *
 * Locks (core/locks.def): user_qp.sq.lock covers the send ring, and the builder between ibv_wr_start(3) and
 * ibv_wr_complete(3) or ibv_wr_abort(3); user_qp.rq.lock and user_srq.lock cover the receive rings; user_cq.lock covers
 * the consumer side of a CQ. A CQ's lock is taken before an SRQ's.
 */
#ifndef SOFTHCA_VERBS_OBJECT_OBJECTS_H
#define SOFTHCA_VERBS_OBJECT_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "core/compiler.h"
#include "core/event_queue.h"
#include "core/lock.h"
#include "process/commands.h"
#include "verbs/object/alive.h"

#define user_container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/*
 * Root of ibdev_path and dev_path unless devices are shown on PCI and `softhca run` made their files. It does not exist,
 * and nothing can be created in /proc: a program that finds PCI identifiers at the end of ibdev_path would drive the
 * adapter's queues itself.
 */
#define USER_DEVICE_ROOT "/proc/softhca"

struct user_device {
	struct ibv_device base; /* first: clients hold struct ibv_device * */
	struct hca *hca;
};

struct devx;
struct devx_handle;
struct user_qp;
struct user_srq;
struct handle_table;
struct hca_login;
struct lint_qp;
struct lint_receives;

/*
 * From user index to QP or XRC SRQ, read by pollers without a lock. Leaves live as long as the context. An entry is the
 * address of a QP, the negated address of an SRQ, or 0: user-space addresses are positive.
 */
struct user_index_table {
	struct queue_lock lock; /* for changes */
	/* user index = leaf << 10 | slot; 1024 entries each; unused leaves share an array of zeros */
	int64_t *leaf[1024];
	uint32_t next; /* where to search for a free index */
};

/* Keys with signatures, by index, for errors found while polling (verbs/memory/signature.h). */
struct signature_table {
	/* covers the lists and the errors in keys; taken under user_cq.lock; innermost */
	struct queue_lock lock;
	struct user_mkey *list[256];
	uint32_t count; /* atomic */
};

struct user_context {
	struct hca_context *device;
	struct event_queue async; /* fd: also ibv_context.async_fd */
	struct user_index_table qps;
	struct signature_table signatures;
	struct hca_login *crypto_session; /* session of mlx5dv_crypto_login(3), or NULL; under verbs.context.mutex */
	/* given to programs by mlx5dv_init_obj(3), or NULL; verbs/context/doorbell_page.h */
	void *doorbell_page;
	struct user_context *next; /* list for ibv_import_device(3) */
	struct devx *devx;         /* command interface, or NULL; verbs/object/devx.h; under verbs.context.mutex */
	/* the program's handles, newest first; under verbs.context.mutex */
	struct devx_handle *devx_handles;
	struct handle_table *handles; /* shared with imports; verbs/object/handles.h */
	struct alive alive;
	struct verbs_context verbs; /* last, as verbs.h requires */
};

struct user_pd {
	struct ibv_pd base;
	struct hca_pd *device;
	/* underlying PD of a parent domain (ibv_alloc_parent_domain(3)), otherwise NULL */
	struct user_pd *parent;
	struct user_td *td; /* thread domain of a parent domain, or NULL: its queues skip locking */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment, uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
	/* blocks of alloc(), for free(), by address: tsearch(3); verbs/memory/memory.c */
	void *custom_blocks;
	/* of a plain PD, allocated at first use; verbs/memory/memcpy_buffer.h */
	struct memcpy_buffer *memcpy_buffer;
	struct queue_lock lock;
	/* 1 + driver objects over this PD: rings, keys, AHs, parent domains; atomic */
	uint32_t references;
	struct alive alive;
};

struct user_td {
	struct ibv_td base;
	uint32_t references; /* parent domains; atomic */
	struct alive alive;
};

struct user_mr {
	struct ibv_mr base;
	struct mkey *key;
	enum mr_kind kind;
	uint64_t start; /* iova */
	unsigned int access;
	uint32_t dm_handle; /* for MR_DEVICE_MEMORY, which it keeps allocated */
	bool imported;      /* its address is unknown here */
	/* for src/lint/; the device writes [from, to) */
	struct user_mr *lint_next;
	uint64_t lint_from, lint_to;
	uint16_t *lint_receives; /* posted receives, by page; or NULL */
	bool lint_shared;        /* another region overlaps */
	struct alive alive;
};

struct user_mw {
	struct ibv_mw base;
	struct mkey *key;
	struct alive alive;
};

struct user_dm {
	struct ibv_dm base;
	void *addr; /* host address */
	size_t length;
	struct alive alive;
};

struct user_ah {
	struct ibv_ah base;
	struct mlx5_wqe_av av; /* as in the datagram segment, with dqp_dct 0 */
	bool mapped;           /* mlx5dv_map_ah_to_qp(3) was called; atomic */
	struct alive alive;
};

struct user_xrcd {
	struct ibv_xrcd base;
	struct hca_xrcd *device;
	struct alive alive;
};

struct user_comp_channel {
	struct ibv_comp_channel base;
	struct event_queue events; /* fd: also base.fd; taken(): counts into user_cq.comp_events_taken */
	struct alive alive;
};

struct user_cq {
	union {
		struct ibv_cq base;
		struct ibv_cq_ex ex;
	};
	struct hca_cq *device;
	struct queue_lock lock;
	struct user_pd *pd; /* parent domain that allocated the ring, or NULL */
	void *buffer;
	void *first;        /* CQE of entry 0, within buffer; cq_set_ring() (verbs/queue/cqe.h) */
	uint32_t cqe_count; /* power of two; base.cqe + 1 */
	uint32_t entries;   /* cqe_count - 1 */
	uint32_t cqe_size;  /* 64 or 128 */
	uint32_t *dbrec;
	uint32_t consumer_index; /* free running */
	uint32_t arm_sn;
	bool exported; /* ring exported by mlx5dv_init_obj(3): never scanned for CQEs of a dying QP */
	bool extended;
	/* extended polling: true between start_poll and end_poll */
	bool polling;
	/* the CQE being read; after end_poll, still the last one, because programs continue to read it */
	const struct mlx5_cqe64 *current;
	uint8_t current_wc_opcode; /* stored by the send queue */
	int64_t wallclock_offset;  /* CLOCK_REALTIME minus the device's clock at start_poll, nanoseconds */
	/* Atomic, as are the acknowledged events in base (verbs/object/events.h). */
	uint32_t comp_events_taken, async_events_taken;
	/* for src/lint/: time of the last poll with a completion; completions that requests can still generate */
	uint64_t lint_moment;
	uint32_t lint_due;
	bool lint_warned;
	pid_t lint_poller; /* thread that polled last */
	/* Thread lint_armer armed the CQ; completions before index lint_stale_end raise no event (lint/sleeps.c). */
	struct user_cq *lint_stale_next;
	uint32_t lint_stale_end;
	pid_t lint_armer;
	bool lint_slept; /* RULE_SLEEPS_ON_COMPLETIONS was reported */
	struct alive alive;
};

struct user_srq {
	struct ibv_srq base;
	struct hca_srq *device;
	struct queue_lock lock;
	struct user_pd *pd;
	void *buffer;
	uint32_t entry_count, entry_shift;
	uint32_t max_sge, max_wr;
	uint32_t *dbrec;
	uint64_t *wr_id;     /* one per entry */
	uint32_t head, tail; /* list of free entries: next one to post, and the last */
	uint32_t used;       /* entries not in that list; at most max_wr */
	uint16_t counter;    /* posted receives, as in the doorbell record */
	enum ibv_srq_type type;
	/* of XRC: the CQ, and the index by which CQEs name the SRQ */
	struct user_cq *cq;
	uint32_t user_index;
	uint32_t async_events_taken;
	/* For src/lint/: the armed limit, whether its event was taken, whether that many receives were posted since. */
	struct {
		uint32_t limit;
		bool raised, refilled, warned;
		struct lint_receives *receives; /* or NULL */
	} lint;
	struct alive alive;
};

struct send_operation;

/* Combinations of the lowest three enum ibv_send_flags, which a control segment can encode. */
#define WQE_FLAGS 8

struct send_queue {
	struct queue_lock lock;
	void *buffer;         /* wqebb_count * 64 bytes */
	uint32_t wqebb_count; /* power of two, or 0: no send queue */
	uint32_t wqe_size;    /* bytes of the largest WQE that the capabilities allow */
	uint32_t max_post;    /* WRs that fit (returned max_send_wr) */
	int max_gs;           /* -1 before RTS: posting is refused */
	uint32_t max_inline;  /* bytes */
	uint32_t max_payload; /* bytes of data segments or inline data of a WR */
	uint32_t head;        /* WRs posted, free running */
	uint32_t tail;        /* WRs completed, free running; atomic: stored (release) by pollers under the CQ lock */
	uint32_t cur_post;    /* WQEBBs posted, free running: the producer index */
	/* bytes of the segment after the control segment that names the destination; 0: none */
	uint8_t address_bytes;
	uint8_t fence_cache; /* bits that the next WQE inherits (mlx5-formats 1.3); sq_set_fence() */
	bool oversized;      /* a WQE larger than wqe_size was built; sq_has_room() */
	/*
	 * Allows short WQEs: one block of control segment, remote address and operands if any, and one data pointer.
	 * Not before RTS, on a queue without SGEs, while the next WQE inherits a fence, and while blocks have to be
	 * counted. Set by sq_update_short().
	 */
	bool short_allowed;
	uint64_t *wr_id;    /* one per WQEBB slot */
	uint32_t *wqe_head; /* one per WQEBB slot: head of its WR */
	uint32_t *wqe_post; /* inverse, indexed by head & (wqebb_count - 1): cur_post of that WR */
	/* one per WQEBB slot: enum ibv_wc_opcode of WRs built from UMRs; otherwise WC_OPCODE_FROM_CQE */
	uint8_t *wc_opcode;
	/* Derived from the above and from the QP by send_queue_derive() (verbs/post/send_operations.h). */
	const struct send_operation *operations; /* indexed by enum ibv_wr_opcode */
	uint32_t slots;                          /* wqebb_count - 1 */
	__be32 qpn;                              /* second word of control segments, without `ds` */
	/* fm_ce_se of control segments, by FENCE, SIGNALED and SOLICITED */
	uint8_t flags[WQE_FLAGS];
};

/* wc_opcode if the CQE's send opcode determines it (mlx5-formats 3.8). */
#define WC_OPCODE_FROM_CQE 0xff

struct receive_queue {
	struct queue_lock lock;
	void *buffer;
	uint32_t count; /* power of two, or 0 */
	uint32_t shift; /* log2 of the stride */
	int max_gs;     /* -1 in RESET: posting is refused; rq_set_limit() */
	uint32_t room;  /* count, or 0 while posting is refused */
	uint32_t head, tail;
	uint64_t *wr_id;
};

/** Sets the number of SGEs of a WR; -1 refuses all. @rq's lock is held, or @rq not published yet. */
static inline void rq_set_limit(struct receive_queue *rq, int max_gs)
{
	rq->max_gs = max_gs;
	rq->room = max_gs < 0 ? 0 : rq->count;
}

/* Builder between ibv_wr_start(3) and ibv_wr_complete(3) or ibv_wr_abort(3). Covered by sq.lock. */
struct wr_builder {
	int error;      /* first of the chain (errno value) */
	uint32_t count; /* WRs built since start */
	uint32_t rollback_cur_post;
	uint8_t rollback_fence_cache;
	/* WR_SETTER_* that the open WQE still needs; 0: no WQE is open (verbs/post/wqe_builder.h) */
	uint8_t setters_left;
	uint32_t offset; /* bytes of the current WQE, control segment included */
	uint8_t fence;   /* bits for the WQE after this one */
	/* of mlx5dv_wr_mkey_configure(3) (mlx5dv/wr_mkey.c) */
	struct user_mkey *mkey;
	uint8_t mkey_setters_announced, mkey_setters_called;
	bool layout_set, access_set;
	uint64_t umr_mask;
	uint32_t payload_bytes; /* bytes of translation entries; the BSFs follow them */
};

struct user_qp {
	struct hca_qp *device;
	struct user_pd *pd;
	struct send_queue sq;
	struct receive_queue rq;
	void *buffer; /* RQ first, then SQ (mlx5-formats 1.1) */
	size_t buffer_size;
	uint32_t *dbrec;
	uint32_t user_index;
	bool has_ex; /* created with send_ops_flags: ibv_qp_to_qp_ex(3) works */
	bool sq_sig_all;
	bool signature_pipelining;
	bool scatter_to_cqe; /* MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE, unless MLX5_SCATTER_TO_CQE is 0 */
	bool block_self_multicast;
	/* inherited by a forked child: posting is refused, as before RTS; verbs/post/inherited.h */
	bool inherited;
	enum ibv_qp_type type : 8;
	enum mlx5dv_dc_type dc_type : 8; /* for IBV_QPT_DRIVER, otherwise 0 */
	struct ibv_qp_cap cap;           /* as returned */
	uint64_t send_ops, dv_send_ops;
	const struct memcpy_buffer *memcpy_buffer; /* buffer of its PD, if it was created for MEMCPY */
	uint64_t dc_access_key;
	uint32_t dci_errored_streams; /* for a DCI; struct hca_qp_attr */
	uint32_t async_events_taken;
	struct lint_qp *lint; /* src/lint/, or NULL */
	struct alive alive;
	/* The public part. Without builders (user_qp_has_builders()) the allocation ends after `base`. */
	union {
		struct ibv_qp base;
		struct ibv_qp_ex ex;
	};
	struct mlx5dv_qp_ex dv;
	struct wr_builder builder;
};

/*
 * State of a key's signature or encryption, for the next UMR (mlx5-formats 4.4, 4.5). INIT: never set; UPDATED: set by
 * the open work request; SET: set by an earlier one; RESET: removed by the open one.
 */
enum block_state { BLOCK_INIT, BLOCK_UPDATED, BLOCK_SET, BLOCK_RESET };

/* States, attributes and length are covered by sq.lock of the QP that configures the key. */
struct user_mkey {
	struct mlx5dv_mkey base;
	struct mkey *key;
	struct user_pd *pd;
	uint16_t max_entries; /* rounded up, as returned */
	uint32_t create_flags;
	uint64_t length; /* length of the last layout, bytes */
	/* for a key with BLOCK_SIGNATURE, otherwise NULL; verbs/memory/signature.h */
	struct key_signature *signature;
	struct key_crypto *crypto; /* for a key with CRYPTO, otherwise NULL; mlx5dv/wr_crypto.h */
	enum block_state signature_state, crypto_state;
	/*
	 * For src/lint/: the open chain set a signature that must be checked; a posted chain did; the key was checked;
	 * a chain that set a signature was dropped; a warning about a cut block was made.
	 */
	struct {
		bool set, checking, checked, unknown, cut;
	} lint;
	struct alive alive;
};

/* Compressed CQEs that a CQ may be created for; the device never compresses (mlx5-formats 3.2). */
#define CQE_FORMATS (MLX5DV_CQE_RES_FORMAT_HASH | MLX5DV_CQE_RES_FORMAT_CSUM | MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX)
/* Mini-CQEs in a compressed CQE that a program must handle. */
#define CQE_COMPRESSED_MAX 64

static inline struct user_context *to_user_context(struct ibv_context *context)
{
	return user_container_of(context, struct user_context, verbs.context);
}

static inline struct hca *hca_of_context(struct ibv_context *context)
{
	return ((struct user_device *)context->device)->hca;
}

#define DEFINE_CAST(kind)                                                                                              \
	static inline struct user_##kind *to_user_##kind(struct ibv_##kind *object)                                    \
	{                                                                                                              \
		return (struct user_##kind *)object;                                                                   \
	}
DEFINE_CAST(device)
DEFINE_CAST(pd)
DEFINE_CAST(mr)
DEFINE_CAST(mw)
DEFINE_CAST(dm)
DEFINE_CAST(ah)
DEFINE_CAST(xrcd)
DEFINE_CAST(comp_channel)
DEFINE_CAST(cq)
DEFINE_CAST(srq)
#undef DEFINE_CAST

/* Uses integers because callers convert before they check the object, which may be NULL. */
static inline struct user_qp *to_user_qp(struct ibv_qp *object)
{
	return (struct user_qp *)((uintptr_t)object - offsetof(struct user_qp, base));
}

static inline bool user_qp_has_builders(const struct user_qp *qp)
{
	return qp->has_ex || qp->dv_send_ops;
}

/*
 * ---- shared by the driver's files ---------------------------------------------------------------------------------
 */

/**
 * Takes a reference to @pd (may be NULL): ibv_dealloc_pd(3) fails until user_pd_put(). Rings and doorbell records take
 * their own. (verbs/memory/pd.c)
 */
void user_pd_get(struct user_pd *pd);
void user_pd_put(struct user_pd *pd);

/**
 * Allocates zeroed ring memory: from the parent domain's allocator if @pd has one (IBV_ALLOCATOR_USE_DEFAULT falls
 * back), otherwise page-aligned anonymous memory. @resource_type: MLX5DV_RES_TYPE_*. NULL with errno set on failure.
 * (verbs/memory/memory.c)
 */
void *ring_alloc(struct user_pd *pd, size_t size, uint64_t resource_type);
void ring_free(struct user_pd *pd, void *memory, size_t size, uint64_t resource_type);
/**
 * Allocates a doorbell record: two zeroed be32, aligned to 64 bytes so that no two share a cache line. NULL with errno
 * set on failure.
 */
uint32_t *dbrec_alloc(struct user_pd *pd);
void dbrec_free(struct user_pd *pd, uint32_t *dbrec);
/** Returns true if one thread uses the queues over @pd (may be NULL): thread domain, or MLX5_SINGLE_THREADED=1. */
bool queue_single_threaded(const struct user_pd *pd);

/* User index table (verbs/object/user_index.c) of a context. Adding returns 0 or -ENOMEM. */
void user_index_init(struct user_index_table *table);
void user_index_destroy(struct user_index_table *table);
int user_index_add(struct user_index_table *table, struct user_qp *qp, uint32_t *index);
int user_index_add_srq(struct user_index_table *table, struct user_srq *srq, uint32_t *index);
void user_index_remove(struct user_index_table *table, uint32_t index);
static inline int64_t user_index_load(struct user_index_table *table, uint32_t index)
{
	int64_t *leaf = __atomic_load_n(&table->leaf[index >> 10 & 1023], __ATOMIC_ACQUIRE);

	return __atomic_load_n(&leaf[index & 1023], __ATOMIC_ACQUIRE);
}

static inline struct user_qp *user_index_find(struct user_index_table *table, uint32_t index)
{
	int64_t entry = user_index_load(table, index);

	if (unlikely(entry <= 0))
		return NULL;
	return (struct user_qp *)(uintptr_t)entry;
}

static inline struct user_srq *user_index_find_srq(struct user_index_table *table, uint32_t index)
{
	int64_t entry = user_index_load(table, index);

	return entry < 0 ? (struct user_srq *)(uintptr_t)-entry : NULL;
}

/**
 * Allocates a zeroed QP, with `ex`, `dv` and `builder` if @builders. NULL without memory. The caller frees it with
 * free(3). (verbs/qp/qp.c)
 */
struct user_qp *user_qp_alloc(bool builders);
/* Creates a QP for either library (verbs/qp/qp.c). @dv may be NULL. NULL with errno set on failure. */
struct ibv_qp *user_qp_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
			      struct mlx5dv_qp_init_attr *dv);
/* As user_qp_create() (verbs/queue/cq.c). */
struct ibv_cq_ex *user_cq_create(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
				 struct mlx5dv_cq_init_attr *dv, bool extended);
/**
 * Drops all CQEs of @qp from its CQs (QP reset, destroy) and returns SRQ entries to their SRQ. (verbs/queue/cq_purge.c)
 */
void user_cq_purge_qp(struct user_qp *qp);
void user_cq_purge_srq(struct user_srq *srq);
/**
 * Completes the receive in SRQ entry @index: fills @wr_id and frees the entry. Takes the SRQ lock. Returns 0, or
 * -EINVAL for an index that the SRQ does not have. (verbs/queue/srq_ring.c)
 */
int user_srq_complete(struct user_srq *srq, uint16_t index, uint64_t *wr_id);

/**
 * Fills qp->ex.wr_* for the QP type and send_ops (verbs/post/wr_table.c). Returns 0, or -EOPNOTSUPP for an operation
 * that the type lacks.
 */
int wr_table_fill(struct user_qp *qp, uint64_t send_ops);
/* The builders of mlx5dv. Both functions are set. */
struct dv_builders {
	/* Fills qp->dv.wr_*. Returns 0, -EOPNOTSUPP for an operation that the type lacks, or -ENOMEM. */
	int (*table_fill)(struct user_qp *qp, uint64_t dv_send_ops);
	/*
	 * The WQEs from the builder's rollback position to the producer will not be posted: marks the keys that they
	 * configured with new error settings, so that later WQEs send these again. sq.lock is held.
	 */
	void (*chain_dropped)(struct user_qp *qp);
};

/*
 * Registered when the library is loaded, then constant (verbs/post/wr_table.c). NULL in a program linked without
 * src/mlx5dv/: qp->dv stays empty.
 */
extern const struct dv_builders *dv_builders;

#endif
