/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of the driver that are alive: what a program's pointer must be before anything behind it is looked at. Behind a
 * real adapter the kernel does this: a command names its objects by handle, and each handle is looked up among those of the
 * command's file. Here each call that is not of the data path asks this table, by pointer, so that an object that was
 * destroyed, whose members were overwritten, or that is of another context, is refused with ENOENT and rule 309, 314, 315 or
 * 316, and nothing that was freed is read.
 *
 * One table for the process, since of a pointer that may be stale nothing is known but its value. The entries are members of
 * the objects, and the table is a set of their addresses: entering one cannot fail, and looking for one reads no other.
 * Owner of an entry: the object, which leaves the table before it is freed. Any thread may call, with no lock of a queue
 * held. Two threads of which one destroys what the other still uses are not kept apart.
 */
#ifndef SOFTHCA_VERBS_OBJECT_ALIVE_H
#define SOFTHCA_VERBS_OBJECT_ALIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

/*
 * KIND(NAME, public structure, name, members, errno value, structure, member): the name has at most eight characters, since
 * explanations carry it as a figure. Members that are compared: HANDLE (and context), CONTEXT alone, or NOTHING. What a kernel
 * knows as a descriptor and not as a handle is EBADF. The last two: what the public structure is a part of, and where.
 */
#define OBJECT_KINDS(KIND)                                                                                             \
	KIND(CONTEXT, ibv_context, "context", NOTHING, EBADF, user_context, verbs.context)                             \
	KIND(PD, ibv_pd, "PD", HANDLE, ENOENT, user_pd, base)                                                          \
	KIND(TD, ibv_td, "TD", CONTEXT, ENOENT, user_td, base)                                                         \
	KIND(MR, ibv_mr, "MR", HANDLE, ENOENT, user_mr, base)                                                          \
	KIND(MW, ibv_mw, "MW", HANDLE, ENOENT, user_mw, base)                                                          \
	KIND(DM, ibv_dm, "DM", HANDLE, ENOENT, user_dm, base)                                                          \
	KIND(AH, ibv_ah, "AH", HANDLE, ENOENT, user_ah, base)                                                          \
	KIND(XRCD, ibv_xrcd, "XRCD", CONTEXT, ENOENT, user_xrcd, base)                                                 \
	KIND(CHANNEL, ibv_comp_channel, "channel", CONTEXT, EBADF, user_comp_channel, base)                            \
	KIND(CQ, ibv_cq, "CQ", HANDLE, ENOENT, user_cq, base)                                                          \
	KIND(SRQ, ibv_srq, "SRQ", HANDLE, ENOENT, user_srq, base)                                                      \
	KIND(QP, ibv_qp, "QP", HANDLE, ENOENT, user_qp, base)                                                          \
	KIND(MKEY, mlx5dv_mkey, "mkey", NOTHING, ENOENT, user_mkey, base)                                              \
	KIND(DEK, mlx5dv_dek, "DEK", NOTHING, ENOENT, user_dek, pd)                                                    \
	KIND(LOGIN, mlx5dv_crypto_login_obj, "login", NOTHING, ENOENT, user_crypto_login, context)                     \
	KIND(DEVX, mlx5dv_devx_obj, "object", NOTHING, ENOENT, user_devx_object, device)                               \
	KIND(UMEM, mlx5dv_devx_umem, "umem", NOTHING, ENOENT, user_umem, base)                                         \
	KIND(UAR, mlx5dv_devx_uar, "UAR", NOTHING, ENOENT, user_uar, base)                                             \
	KIND(EVENTS, mlx5dv_devx_event_channel, "channel", NOTHING, EBADF, user_event_channel, base)                   \
	KIND(RESPONSES, mlx5dv_devx_cmd_comp, "cmd_comp", NOTHING, EBADF, user_responses, base)

#define OBJECT_KIND_NAME_(NAME, ...) OBJECT_##NAME,
enum object_kind { OBJECT_KINDS(OBJECT_KIND_NAME_) OBJECT_KIND_COUNT };
#undef OBJECT_KIND_NAME_

#define OBJECT_OF_TYPE_(NAME, type, ...) struct type * : OBJECT_##NAME,
/* The kind of an object, by the type of the pointer to it. An extended CQ is where its CQ is. cppcheck cannot read it. */
#ifdef __cppcheck__
#define OBJECT_KIND_OF(object) OBJECT_CONTEXT
#else
#define OBJECT_KIND_OF(object) _Generic((object), OBJECT_KINDS(OBJECT_OF_TYPE_) struct ibv_cq_ex * : OBJECT_CQ)
#endif

/* What is known of an object; a member of it. */
struct alive {
	struct alive *next; /* among those that the table had no memory for */
	const void *object; /* the pointer that the program has */
	struct ibv_context *context;
	uint32_t handle;
	enum object_kind kind;
};

/** Makes the table's locks known to fork(2). Any number of times, no lock held. */
void alive_prepare(void);

/** @object, whose public members are filled in, lives from now on, in @context; @entry is a member of it. */
#define object_enter(object, entry, context) object_enter_(OBJECT_KIND_OF(object), object, entry, context)
void object_enter_(enum object_kind kind, const void *object, struct alive *entry, struct ibv_context *context);

/** Counts by kind the objects that live in @context, itself among them. */
void objects_count(const struct ibv_context *context, uint32_t counts[OBJECT_KIND_COUNT]);
/**
 * Calls @visit with each living object of @kind, in no order; it may not enter or leave the table. Locks are held, which
 * @visit must not take: use it in a forked child that has one thread.
 */
void objects_visit(enum object_kind kind, void (*visit)(const void *object));
/** The name of @kind as a figure of an explanation: its characters as they lie in memory. */
uint64_t object_kind_figure(enum object_kind kind);

/** The object of @entry lives no more. Does nothing if it has left, or never entered. */
void object_leave(struct alive *entry);

/** True if @object is alive, whatever its members say. */
#define object_alive(object) object_alive_(OBJECT_KIND_OF(object), object)
bool object_alive_(enum object_kind kind, const void *object);

/**
 * False if @object is alive, and its members handle and context are what they were when the program got it. Else true: leaves
 * an explanation, and the error in errno; @call refuses. NULL is refused, too.
 */
#define object_unknown(call, object) object_unknown_(call, OBJECT_KIND_OF(object), object)
bool object_unknown_(const char *call, enum object_kind kind, const void *object);

/**
 * The same, and the device object behind it must exist, which another import of it may have destroyed (verbs/object/handles.h).
 * @context: of the call, in which the object must be; NULL: any, since the object brings the context. Contexts that were
 * imported from each other (ibv_import_device(3)) are one.
 */
#define object_refused(call, context, object) object_refused_(call, context, OBJECT_KIND_OF(object), object)
bool object_refused_(const char *call, const struct ibv_context *context, enum object_kind kind, const void *object);

/** Of an object that need not be given: NULL is in order. */
#define optional_refused(call, context, object) ((object) && object_refused(call, context, object))

#endif
