/* SPDX-License-Identifier: BSD-2-Clause */
/* Parent domains (ibv_alloc_parent_domain(3)): a struct user_pd over another one. */
#ifndef SOFTHCA_VERBS_MEMORY_PARENT_DOMAIN_H
#define SOFTHCA_VERBS_MEMORY_PARENT_DOMAIN_H

#include "verbs/object/objects.h"

/** Drops the references of @pd to its underlying PD and thread domain. */
void parent_domain_leave(struct user_pd *pd);

#endif
