/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's objects: what a program's ibv_* pointers point into. Each embeds the public structure, so a cast or
 * container_of leads from one to the other, and refers to the device's object (process/commands.h).
 *
 * Ownership: created and destroyed by the call pair of the man pages; nothing else frees them. A device outlives its
 * list (ibv_get_device_list(3) notwithstanding: clients keep pointers), so devices live until the process ends.
 * Locks: user_qp.sq.lock covers the send ring and the builder between ibv_wr_start and complete/abort, user_qp.rq.lock
 * and user_srq.lock the receive rings, user_cq.lock the consumer side of a CQ. Order: CQ before SRQ; a QP's locks are
 * never held together with a CQ's, except sq before cq in RESET and destroy… which take the CQ locks alone.
 */
#ifndef SOFTHCA_VERBS_OBJECT_OBJECTS_H
#define SOFTHCA_VERBS_OBJECT_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "core/compiler.h"
#include "core/event_queue.h"
#include "core/lock.h"
#include "process/commands.h"
#include "verbs/object/alive.h"

#define user_container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/*
 * Where the paths of devices lead: nowhere, unless they are shown on PCI and `softhca run` made the files. A program that finds
 * PCI identifiers at the end of ibdev_path drives the adapter's queues by itself, and nobody can make a file in /proc.
 * ibv_read_sysfs_file() knows them (verbs/context/sysfs.c).
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
 * User index -> QP or XRC SRQ, read by pollers without a lock: two levels, leaves are never freed before the context is.
 * An entry is the address of a QP, or that of an SRQ negated, or 0; addresses of programs are positive.
 */
struct user_index_table {
	struct queue_lock lock; /* of changes */
	int64_t *leaf[1024];    /* 1024 entries each; user index = leaf << 10 | slot; never needed: one of zeros */
	uint32_t next;          /* where to look for a free index first */
};

/* Keys that may carry signatures, by index, for the errors that polling meets (verbs/memory/signature.h). */
struct signature_table {
	struct queue_lock lock; /* of the lists, and of the error recorded in each key; a leaf under user_cq.lock */
	struct user_mkey *list[256];
	uint32_t count; /* of keys in the lists; atomic */
};

struct user_context {
	struct hca_context *device;
	struct event_queue async; /* its fd is also ibv_context.async_fd */
	struct user_index_table qps;
	struct signature_table signatures;
	struct hca_login *crypto_session; /* of mlx5dv_crypto_login(3), or NULL; under verbs.context.mutex */
	void *doorbell_page;       /* given to programs by mlx5dv_init_obj(3), or NULL; verbs/context/doorbell_page.h */
	struct user_context *next; /* list of open contexts of the process, for ibv_import_device(3) */
	struct devx *devx;         /* its command interface, or NULL; verbs/object/devx.h; under verbs.context.mutex */
	struct devx_handle *devx_handles; /* likewise: what programs have of it, newest first */
	struct handle_table *handles;     /* shared by a context and those imported from it; verbs/object/handles.h */
	struct alive alive;
	struct verbs_context verbs; /* last, as verbs.h demands: public context is verbs.context */
};

struct user_pd {
	struct ibv_pd base;
	struct hca_pd *device;
	/* Parent domain (ibv_alloc_parent_domain(3)): the PD it is made over; NULL for a plain PD. */
	struct user_pd *parent;
	struct user_td *td; /* thread domain of a parent domain, or NULL: its queues elide their locks */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment, uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
	void *custom_blocks; /* what alloc() gave and free() must get back, by address: tsearch(3); verbs/memory/memory.c */
	struct memcpy_buffer *memcpy_buffer; /* of a plain PD, made at first use; verbs/memory/memcpy_buffer.h */
	struct queue_lock lock;              /* of custom_blocks, memcpy_buffer */
	uint32_t references; /* 1 and the driver's objects over this PD: rings, keys, AHs, parent domains; atomic */
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
	uint32_t dm_handle; /* of MR_DEVICE_MEMORY: the memory it keeps allocated */
	bool imported;      /* by ibv_import_mr(3): its address is not known here */
	/* Of src/lint/, which alone uses them; where the device writes: [from, to). */
	struct user_mr *lint_next;
	uint64_t lint_from, lint_to;
	uint16_t *lint_receives; /* posted, by page; or NULL */
	bool lint_shared;        /* another region has some of its memory */
	struct alive alive;
};

struct user_mw {
	struct ibv_mw base;
	struct mkey *key;
	struct alive alive;
};

struct user_dm {
	struct ibv_dm base;
	void *addr; /* host address of the device memory */
	size_t length;
	struct alive alive;
};

struct user_ah {
	struct ibv_ah base;
	struct mlx5_wqe_av av; /* as it goes into the datagram segment; dqp_dct is 0 here */
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
	struct event_queue events; /* its fd is also base.fd; its taken() counts user_cq.comp_events_taken */
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
	void *first;        /* in it, the completion of entry 0; cq_set_ring() (verbs/queue/cqe.h) */
	uint32_t cqe_count; /* power of two; base.cqe + 1 */
	uint32_t entries;   /* cqe_count - 1, to find an entry with */
	uint32_t cqe_size;  /* 64 or 128 */
	uint32_t *dbrec;
	uint32_t consumer_index; /* free running */
	uint32_t arm_sn;
	bool exported; /* ring given away by mlx5dv_init_obj: never scanned for CQEs of a dying QP */
	bool extended;
	/* extended polling, between start_poll and end_poll */
	bool polling;
	const struct mlx5_cqe64 *current; /* the CQE being read; afterwards still the last, which programs read on */
	uint8_t current_wc_opcode;        /* what the send queue remembered of its WQE */
	int64_t wallclock_offset;         /* CLOCK_REALTIME minus the device's clock at start_poll, nanoseconds */
	/* Events handed to the program; like the completed counters of base atomic (verbs/object/events.h). */
	uint32_t comp_events_taken, async_events_taken;
	/* Of src/lint/, which alone uses them: when a completion was polled last; how many can come of what is posted. */
	uint64_t lint_moment;
	uint32_t lint_due;
	bool lint_warned;
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
	uint64_t *wr_id;     /* per entry */
	uint32_t head, tail; /* list of free entries: next to post, last */
	uint32_t used;       /* entries posted and not yet given back; max_wr bounds it */
	uint16_t counter;    /* posted, as in the doorbell record */
	enum ibv_srq_type type;
	/* of an XRC SRQ: where its receives complete, and by what CQEs name it */
	struct user_cq *cq;
	uint32_t user_index;
	uint32_t async_events_taken; /* as in user_cq */
	/* Of src/lint/: the limit that was armed, whose event was taken, and whether so many receives were posted since then. */
	struct {
		uint32_t limit;
		bool raised, refilled, warned;
		struct lint_receives *receives; /* or NULL */
	} lint;
	struct alive alive;
};

struct send_operation;

/* Combinations of the enum ibv_send_flags that a control segment has a place for: they are the lowest three. */
#define WQE_FLAGS 8

struct send_queue {
	struct queue_lock lock;
	void *buffer;          /* wqebb_count * 64 bytes */
	uint32_t wqebb_count;  /* power of two, or 0: no send queue */
	uint32_t wqe_size;     /* bytes of the largest WQE that capabilities promise */
	uint32_t max_post;     /* WRs that fit (returned max_send_wr) */
	int max_gs;            /* SGEs of a WR; -1 until RTS: posting is refused */
	uint32_t max_inline;   /* bytes */
	uint32_t max_payload;  /* bytes that data segments or inline data of a WR take at most */
	uint32_t head;         /* WRs posted, free running */
	uint32_t tail;         /* WRs completed, free running; atomic: stored (release) by pollers under the CQ lock */
	uint32_t cur_post;     /* WQEBBs posted, free running: producer index */
	uint8_t address_bytes; /* of the segment behind the control segment that names the destination; 0: none */
	uint8_t fence_cache;   /* fence bits the next WQE inherits (mlx5-formats 1.3); sq_set_fence() */
	bool oversized;        /* a WQE larger than wqe_size was built: see sq_has_room() */
	/*
	 * A short WQE is what nearly all are: control segment, remote address and operands if any, one data pointer, in one
	 * block. The queue has nothing against one, if there is room, but before RTS, without SGEs, when the next WQE inherits a
	 * fence, and when blocks have to be counted. sq_update_short()
	 */
	bool short_allowed;
	uint64_t *wr_id;    /* per WQEBB slot */
	uint32_t *wqe_head; /* per WQEBB slot: value of head of the WR that starts there */
	uint32_t *wqe_post; /* the other way round, per head & (wqebb_count - 1): cur_post where that WR starts */
	uint8_t *wc_opcode; /* per WQEBB slot: enum ibv_wc_opcode of UMR-built WRs, see WC_OPCODE_FROM_CQE */
	/* What follows from the above and from the queue pair: send_queue_derive() (verbs/post/send_operations.h). */
	const struct send_operation *operations; /* by enum ibv_wr_opcode */
	uint32_t slots;                          /* wqebb_count - 1, to find a slot with */
	__be32 qpn;                              /* second word of control segments, but for `ds` */
	uint8_t flags[WQE_FLAGS];                /* fm_ce_se of control segments, by FENCE, SIGNALED and SOLICITED */
};

/* wc_opcode of a slot whose completion opcode follows from the CQE's send opcode (mlx5-formats 3.8). */
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

/** SGEs of a WR from now on: @max_gs, or -1 to refuse all. The caller holds @rq's lock, or is the only one to know @rq. */
static inline void rq_set_limit(struct receive_queue *rq, int max_gs)
{
	rq->max_gs = max_gs;
	rq->room = max_gs < 0 ? 0 : rq->count;
}

/* Builder state between ibv_wr_start and ibv_wr_complete/abort; covered by sq.lock. Owned by verbs/wr_*.c, mlx5dv/wr_*.c. */
struct wr_builder {
	int error;      /* first error of the chain (errno value), 0 */
	uint32_t count; /* WRs built since start */
	uint32_t rollback_cur_post;
	uint8_t rollback_fence_cache;
	uint8_t setters_left; /* WR_SETTER_* bits until the open WQE is whole; 0: none open (verbs/post/wqe_builder.h) */
	uint32_t offset;      /* bytes of the current WQE built so far (ctrl included) */
	uint8_t fence;        /* fence bits for the next WQE after this one */
	/* mkey configure (mlx5dv/wr_mkey.c) */
	struct user_mkey *mkey;
	uint8_t mkey_setters_announced, mkey_setters_called;
	bool layout_set, access_set;
	uint64_t umr_mask;
	uint32_t payload_bytes; /* translation entries; the BSFs follow them */
};

struct user_qp {
	struct hca_qp *device;
	struct user_pd *pd;
	struct send_queue sq;
	struct receive_queue rq;
	void *buffer; /* RQ first, SQ after it (mlx5-formats 1.1) */
	size_t buffer_size;
	uint32_t *dbrec;
	uint32_t user_index;
	bool has_ex; /* created with send_ops_flags: ibv_qp_to_qp_ex(3) answers */
	bool sq_sig_all;
	bool signature_pipelining; /* MLX5DV_QP_CREATE_SIG_PIPELINING */
	bool scatter_to_cqe;       /* MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE, unless MLX5_SCATTER_TO_CQE is 0 */
	bool block_self_multicast; /* IBV_QP_CREATE_BLOCK_SELF_MCAST_LB */
	bool inherited; /* of the parent of this process: posting is refused, as before RTS; verbs/post/inherited.h */
	enum ibv_qp_type type : 8;
	enum mlx5dv_dc_type dc_type : 8; /* of IBV_QPT_DRIVER, else 0 */
	struct ibv_qp_cap cap;           /* as returned */
	uint64_t send_ops, dv_send_ops;
	const struct memcpy_buffer *memcpy_buffer; /* of its PD, if it was created for MEMCPY */
	uint64_t dc_access_key;                    /* of a DCT */
	uint32_t dci_errored_streams;              /* of a DCI: as struct hca_qp_attr has it */
	uint32_t async_events_taken;               /* as in user_cq */
	struct lint_qp *lint;                      /* what warnings need to know of it, or NULL; src/lint/ */
	struct alive alive;
	/* What the program sees. A QP that lacks the builders (user_qp_has_builders()) has nothing behind `base`. */
	union {
		struct ibv_qp base;
		struct ibv_qp_ex ex;
	};
	struct mlx5dv_qp_ex dv;
	struct wr_builder builder;
};

/*
 * What the next UMR has to say of a key's signature, or of its encryption (mlx5-formats 4.4, 4.5): nothing was ever set;
 * set by a setter of the open work request; set by an earlier one; taken away by the open one.
 */
enum block_state { BLOCK_INIT, BLOCK_UPDATED, BLOCK_SET, BLOCK_RESET };

/* States, attributes and length change under sq.lock of the QP on which the key is configured. */
struct user_mkey {
	struct mlx5dv_mkey base;
	struct mkey *key;
	struct user_pd *pd;
	uint16_t max_entries; /* rounded */
	uint32_t create_flags;
	uint64_t length;                 /* of the layout set last, bytes */
	struct key_signature *signature; /* of a key with BLOCK_SIGNATURE, or NULL; verbs/memory/signature.h */
	struct key_crypto *crypto;       /* of a key with CRYPTO, or NULL; mlx5dv/wr_crypto.h */
	enum block_state signature_state, crypto_state;
	/*
	 * Of src/lint/: a signature to be checked was set by the open chain, by a posted one; the key was checked; a chain that
	 * set a signature was dropped.
	 */
	struct {
		bool set, checking, checked, unknown;
	} lint;
	struct alive alive;
};

/* Formats of compressed CQEs that a CQ may be created for; no CQE is ever compressed (mlx5-formats 3.2). */
#define CQE_FORMATS (MLX5DV_CQE_RES_FORMAT_HASH | MLX5DV_CQE_RES_FORMAT_CSUM | MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX)
/* Mini-CQEs of one compressed CQE that a program must be ready for. */
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

/* By integers: callers convert before they ask whether @object is one, and it may be NULL. */
static inline struct user_qp *to_user_qp(struct ibv_qp *object)
{
	return (struct user_qp *)((uintptr_t)object - offsetof(struct user_qp, base));
}

/** True if @qp has `ex`, `dv` and `builder`; else it ends with `base`. */
static inline bool user_qp_has_builders(const struct user_qp *qp)
{
	return qp->has_ex || qp->dv_send_ops;
}

/* ---- what the driver's files share ---------------------------------------------------------------------------- */

/**
 * Keeps @pd (may be NULL) alive and ibv_dealloc_pd(3) from succeeding, until the put. Rings and doorbell records do
 * so by themselves. (verbs/memory/pd.c)
 */
void user_pd_get(struct user_pd *pd);
void user_pd_put(struct user_pd *pd);

/**
 * Ring memory: from the parent domain's allocator if @pd has one (IBV_ALLOCATOR_USE_DEFAULT falls back), else page
 * aligned anonymous memory, zeroed. @resource_type: MLX5DV_RES_TYPE_*. NULL with errno set on failure. (verbs/memory/memory.c)
 */
void *ring_alloc(struct user_pd *pd, size_t size, uint64_t resource_type);
void ring_free(struct user_pd *pd, void *memory, size_t size, uint64_t resource_type);
/** A doorbell record: two zeroed be32, 64-byte aligned so that no two share a cache line. */
uint32_t *dbrec_alloc(struct user_pd *pd);
void dbrec_free(struct user_pd *pd, uint32_t *dbrec);
/** True if queues created over @pd (may be NULL) have one thread only: thread domain, or MLX5_SINGLE_THREADED=1. */
bool queue_single_threaded(const struct user_pd *pd);

/* User index table (verbs/object/user_index.c). init and destroy with the context; add: -ENOMEM. */
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

/** The QP of @index, or NULL. */
static inline struct user_qp *user_index_find(struct user_index_table *table, uint32_t index)
{
	int64_t entry = user_index_load(table, index);

	if (unlikely(entry <= 0))
		return NULL;
	return (struct user_qp *)(uintptr_t)entry;
}

/** The XRC SRQ of @index, or NULL. */
static inline struct user_srq *user_index_find_srq(struct user_index_table *table, uint32_t index)
{
	int64_t entry = user_index_load(table, index);

	return entry < 0 ? (struct user_srq *)(uintptr_t)-entry : NULL;
}

/** A zeroed QP, which has what the builders need if it is to have @builders. NULL without memory. free(3) frees it. (verbs/qp/qp.c) */
struct user_qp *user_qp_alloc(bool builders);
/* QP creation for both libraries (verbs/qp/qp.c). @dv may be NULL. errno and NULL on failure. */
struct ibv_qp *user_qp_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
			      struct mlx5dv_qp_init_attr *dv);
/* CQ creation for both libraries (verbs/queue/cq.c). @dv may be NULL. */
struct ibv_cq_ex *user_cq_create(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
				 struct mlx5dv_cq_init_attr *dv, bool extended);
/** Drops all CQEs of @qp from its CQs' rings (QP reset, destroy), giving SRQ entries back. (verbs/queue/cq_purge.c) */
void user_cq_purge_qp(struct user_qp *qp);
/** The same for an XRC SRQ that is being destroyed. */
void user_cq_purge_srq(struct user_srq *srq);
/**
 * The receive in SRQ entry @index is over: fills its @wr_id and gives the entry back to the free list. Takes the SRQ
 * lock. Returns -EINVAL for an index that the SRQ does not have. (verbs/queue/srq_ring.c)
 */
int user_srq_complete(struct user_srq *srq, uint16_t index, uint64_t *wr_id);

/* Per-QP function tables. */
/** Fills qp->ex.wr_* for the QP type and send_ops (verbs/post/wr_table.c). -EOPNOTSUPP for an operation the type lacks. */
int wr_table_fill(struct user_qp *qp, uint64_t send_ops);
/* The builders of mlx5dv. Both functions are set. */
struct dv_builders {
	/* Fills qp->dv.wr_*. -EOPNOTSUPP for an operation that the type lacks, -ENOMEM. */
	int (*table_fill)(struct user_qp *qp, uint64_t dv_send_ops);
	/*
	 * The WQEs from the rollback position of the builder to the producer will not be posted: the settings of signature
	 * errors that they carry must reach the device by later WQEs. The caller holds sq.lock.
	 */
	void (*chain_dropped)(struct user_qp *qp);
};

/*
 * Registered by src/mlx5dv/ when the library is loaded, constant after that (verbs/post/wr_table.c). NULL in a program that is linked
 * without src/mlx5dv/: qp->dv stays empty.
 */
extern const struct dv_builders *dv_builders;

#endif
