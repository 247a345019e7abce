/* SPDX-License-Identifier: BSD-2-Clause */
/* A context and a PD for a whole program, for tests of objects that need no traffic. */
#ifndef SOFTHCA_TESTS_API_SUPPORT_OBJECTS_H
#define SOFTHCA_TESTS_API_SUPPORT_OBJECTS_H

#include "support/check.h"

/* from the first device, by ibv_open_device(3) */
extern struct ibv_context *context;
extern struct ibv_pd *pd;

/** Group setup and teardown; the latter fails if a test left an object. */
int objects_open(void **state);
int objects_close(void **state);

#endif
