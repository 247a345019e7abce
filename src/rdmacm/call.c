/* SPDX-License-Identifier: BSD-2-Clause */
/* Beginning and end of calls on an ID: see id.h. */
#include "progress/progress.h"
#include "explain/explain.h"
#include "cm_host/manager.h"
#include "rdmacm/devices.h"
#include "rdmacm/id.h"

struct user_cm_id *id_begin(struct rdma_cm_id *base, const char *call)
{
	struct user_cm_id *id = to_user_cm_id(base);

	if (id->process != progress_generation()) {
		errno = REFUSE(hca_of_id(NULL), call, EBADF, RULE_RDMACM_OF_PARENT, (uintptr_t)base);
		return NULL;
	}
	pthread_mutex_lock(&id->lock);
	return id;
}

int id_end(struct user_cm_id *id, int result)
{
	pthread_mutex_unlock(&id->lock);
	/* Sends messages to the peer before the call returns, as a kernel does. */
	hca_manager_push();
	return result_of(result);
}
