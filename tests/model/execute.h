/* SPDX-License-Identifier: BSD-2-Clause */
/* What a single request does, in the model. */
#ifndef SOFTHCA_TESTS_MODEL_EXECUTE_H
#define SOFTHCA_TESTS_MODEL_EXECUTE_H

#include "queues.h"

struct outcome {
	bool waits;        /* for a receive of the peer; nothing has changed that carrying it out again would not */
	bool peer_fails;   /* goes to ERR */
	uint32_t statuses; /* 0: success; else a bit per status, of which the completion must have one */
};

/** Carries out @request of QP @index: memory, keys, the peer's receives and state. */
void execute(struct model *model, int index, const struct request *request, struct outcome *outcome);

/** Adds to what the receive CQ of @qp must show. */
void expect_receive(struct model_qp *qp, const struct expectation *expectation);

#endif
