/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Table for objects_alive.c of each call that takes an object, with one row for each object that it takes. Functions that verbs.h
 * calls inline are listed by the name of their body in src/verbs/object/ops.h and called through the context's tables, because
 * the inline functions read the object before the library can check it.
 */
#ifndef SOFTHCA_TESTS_API_ALIVE_CALLS_H
#define SOFTHCA_TESTS_API_ALIVE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

/* A copy of the kinds of verbs/object/alive.h: KIND(NAME, structure, has a handle, has a context, errno value). */
#define ALIVE_KINDS(KIND)                                                                                              \
	KIND(CONTEXT, ibv_context, 0, 0, EBADF)                                                                        \
	KIND(PD, ibv_pd, 1, 1, ENOENT)                                                                                 \
	KIND(TD, ibv_td, 0, 1, ENOENT)                                                                                 \
	KIND(MR, ibv_mr, 1, 1, ENOENT)                                                                                 \
	KIND(MW, ibv_mw, 1, 1, ENOENT)                                                                                 \
	KIND(DM, ibv_dm, 1, 1, ENOENT)                                                                                 \
	KIND(AH, ibv_ah, 1, 1, ENOENT)                                                                                 \
	KIND(XRCD, ibv_xrcd, 0, 1, ENOENT)                                                                             \
	KIND(CHANNEL, ibv_comp_channel, 0, 1, EBADF)                                                                   \
	KIND(CQ, ibv_cq, 1, 1, ENOENT)                                                                                 \
	KIND(SRQ, ibv_srq, 1, 1, ENOENT)                                                                               \
	KIND(QP, ibv_qp, 1, 1, ENOENT)                                                                                 \
	KIND(MKEY, mlx5dv_mkey, 0, 0, ENOENT)                                                                          \
	KIND(DEK, mlx5dv_dek, 0, 0, ENOENT)                                                                            \
	KIND(LOGIN, mlx5dv_crypto_login_obj, 0, 0, ENOENT)                                                             \
	KIND(DEVX, mlx5dv_devx_obj, 0, 0, ENOENT)                                                                      \
	KIND(UMEM, mlx5dv_devx_umem, 0, 0, ENOENT)                                                                     \
	KIND(UAR, mlx5dv_devx_uar, 0, 0, ENOENT)                                                                       \
	KIND(EVENTS, mlx5dv_devx_event_channel, 0, 0, EBADF)                                                           \
	KIND(RESPONSES, mlx5dv_devx_cmd_comp, 0, 0, EBADF)

#define ALIVE_KIND(NAME, structure, handle, context, error) ALIVE_##NAME,
enum alive_kind { ALIVE_KINDS(ALIVE_KIND) ALIVE_KIND_COUNT };
#undef ALIVE_KIND

/* A valid context and valid objects of each kind that calls need besides the bad one. */
struct alive_world {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_dm *dm;
	struct ibv_xrcd *xrcd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

struct alive_call {
	const char *symbol; /* of src/abi/, or of src/verbs/object/ops.h without its prefix softhca_ */
	const char *name;   /* name used in explanations */
	enum alive_kind kind;
	/* Calls the function with @object; all other arguments are valid. Returns the errno value, 0 for success. */
	int (*call)(const struct alive_world *world, void *object);
	bool beside; /* the call takes another object or a context, which must share the context of @object */
};

extern const struct alive_call alive_calls[];
extern const size_t alive_calls_count;

/* Calls that take an object and are not in the table, with the reason. */
struct alive_exception {
	const char *symbol, *why;
};
extern const struct alive_exception alive_exceptions[];
extern const size_t alive_exceptions_count;

#endif
