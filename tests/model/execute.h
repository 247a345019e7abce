/* SPDX-License-Identifier: BSD-2-Clause */
/* Executes a single request in the model. */
#ifndef SOFTHCA_TESTS_MODEL_EXECUTE_H
#define SOFTHCA_TESTS_MODEL_EXECUTE_H

#include "queues.h"

struct outcome {
	bool waits;        /* for a receive of the peer; executing the request again has the same effect */
	bool peer_fails;   /* goes to ERR */
	uint32_t statuses; /* 0: success; otherwise one bit per status, of which the completion must have one */
};

/** Executes @request of QP @index: memory, keys, the peer's receives and state. */
void execute(struct model *model, int index, const struct request *request, struct outcome *outcome);

/** Adds to the completions expected in the receive CQ of @qp. */
void expect_receive(struct model_qp *qp, const struct expectation *expectation);

#endif
