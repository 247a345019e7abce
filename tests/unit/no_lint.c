/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver's parts without src/lint/: no warnings are asked for, and none of this is called. */
#include <stdlib.h>

#include "verbs/lint.h"

uint64_t lint_wanted;

void lint_qp_created(struct user_qp *qp)
{
	(void)qp;
	abort();
}

void lint_qp_destroying(struct user_qp *qp)
{
	(void)qp;
	abort();
}

void lint_qp_destroyed(struct user_qp *qp)
{
	(void)qp;
	abort();
}

void lint_receives_posting(void)
{
	abort();
}

void lint_receives_posted(struct user_qp *qp)
{
	(void)qp;
	abort();
}

void lint_sends_posted(struct user_qp *qp, uint32_t count, const char *call)
{
	(void)qp;
	(void)count;
	(void)call;
	abort();
}

void lint_chain_dropped(struct user_qp *qp)
{
	(void)qp;
	abort();
}

void lint_profile_differs(struct hca *hca, const char *call, uint32_t rule)
{
	(void)hca;
	(void)call;
	(void)rule;
	abort();
}

void lint_receive_posting(struct user_qp *qp, uint32_t number, const struct ibv_recv_wr *wr)
{
	(void)qp;
	(void)number;
	(void)wr;
	abort();
}

void lint_qp_entered(struct user_qp *qp, enum ibv_qp_state state)
{
	(void)qp;
	(void)state;
	abort();
}

void lint_qp_modified(struct user_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	(void)attr;
	(void)mask;
	abort();
}
