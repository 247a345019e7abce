/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A parent domain (ibv_alloc_parent_domain(3)) is a struct user_pd over another; what its deallocation needs.
 */
#ifndef SOFTHCA_VERBS_MEMORY_PARENT_DOMAIN_H
#define SOFTHCA_VERBS_MEMORY_PARENT_DOMAIN_H

#include "verbs/object/objects.h"

/** Lets go of the PD and of the thread domain that the parent domain @pd was made over. */
void parent_domain_leave(struct user_pd *pd);

#endif
