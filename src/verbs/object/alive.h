/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Live objects of the driver: checks a program's pointer before it is dereferenced. The kernel of a real adapter looks
 * up each handle of a command in the file of the command. Here every call outside the data path looks the pointer up in
 * this table. The call is refused by rule 309, 314, 315 or 316 if the object was destroyed, has overwritten members, or
 * belongs to another context. Freed memory is not read.
 *
 * The process has one table, since a stale pointer does not reveal the context of its object. Its entries are members
 * of the objects: entering an object cannot fail, and a lookup reads no other object.
 *
 * An object leaves the table before it is freed. Any thread may call, without holding a queue lock. Does not detect
 * that a thread destroys an object that another thread is using.
 */
#ifndef SOFTHCA_VERBS_OBJECT_ALIVE_H
#define SOFTHCA_VERBS_OBJECT_ALIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

/*
 * KIND(NAME, public structure, name, members, errno value, structure, member)
 *
 * name: at most eight characters, since explanations carry it as a figure. members to compare: HANDLE (and context),
 * CONTEXT alone, or NOTHING. EBADF: for kinds for which a kernel has a descriptor. The structure contains the public
 * one as its member.
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
/* An extended CQ has the address of its CQ. cppcheck cannot parse _Generic. */
#ifdef __cppcheck__
#define OBJECT_KIND_OF(object) OBJECT_CONTEXT
#else
#define OBJECT_KIND_OF(object) _Generic((object), OBJECT_KINDS(OBJECT_OF_TYPE_) struct ibv_cq_ex * : OBJECT_CQ)
#endif

/* A member of each object. */
struct alive {
	struct alive *next; /* next entry for which the table had no memory */
	const void *object; /* the program's pointer */
	struct ibv_context *context;
	uint32_t handle;
	enum object_kind kind;
};

/** Initialises the table's locks, which fork(2) holds. Idempotent; the caller holds no lock. */
void alive_prepare(void);

/** Enters @object of @context, whose public members must be filled in. */
#define object_enter(object, entry, context) object_enter_(OBJECT_KIND_OF(object), object, entry, context)
void object_enter_(enum object_kind kind, const void *object, struct alive *entry, struct ibv_context *context);

/** Counts the live objects of @context by kind, including itself. */
void objects_count(const struct ibv_context *context, uint32_t counts[OBJECT_KIND_COUNT]);
/** Counts by kind the objects that were created over @pd. */
void objects_of_pd_count(const struct ibv_pd *pd, uint32_t counts[OBJECT_KIND_COUNT]);
/**
 * Calls @visit with each live object of @kind. The table's locks are held: @visit must neither take them nor enter or
 * leave the table. For a forked child, which has one thread.
 */
void objects_visit(enum object_kind kind, void (*visit)(const void *object));
/** Returns the name of @kind, as stored in memory, as a figure of an explanation. */
uint64_t object_kind_figure(enum object_kind kind);

/** Removes the object of @entry. Does nothing if it is not in the table. */
void object_leave(struct alive *entry);

/** Returns true if @object is alive, whatever its members contain. */
#define object_alive(object) object_alive_(OBJECT_KIND_OF(object), object)
bool object_alive_(enum object_kind kind, const void *object);

/**
 * Returns false if @object is alive and its handle and context are those that the program received. Otherwise, also for
 * NULL, explains the refusal of @call, sets errno and returns true.
 */
#define object_unknown(call, object) object_unknown_(call, OBJECT_KIND_OF(object), object)
bool object_unknown_(const char *call, enum object_kind kind, const void *object);

/**
 * As object_unknown(), but also refuses an object destroyed through another import (verbs/object/handles.h). @context:
 * to which the object must belong; NULL: any, for calls that get the context from the object. Contexts imported from
 * each other (ibv_import_device(3)) count as one.
 */
#define object_refused(call, context, object) object_refused_(call, context, OBJECT_KIND_OF(object), object)
bool object_refused_(const char *call, const struct ibv_context *context, enum object_kind kind, const void *object);

/** As object_refused(), but NULL is valid. */
#define optional_refused(call, context, object) ((object) && object_refused(call, context, object))

#endif
