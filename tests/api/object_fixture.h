/* SPDX-License-Identifier: BSD-2-Clause */
/* A context and a PD, for tests of objects that need no traffic. Include after cmocka.h. */
#ifndef SOFTHCA_TESTS_OBJECT_FIXTURE_H
#define SOFTHCA_TESTS_OBJECT_FIXTURE_H

#include <errno.h>
#include <infiniband/verbs.h>

static struct ibv_context *context;
static struct ibv_pd *pd;

static int fixture_open(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	(void)state;
	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	ibv_free_device_list(list);
	pd = context ? ibv_alloc_pd(context) : NULL;
	return pd ? 0 : -1;
}

/* Fails when a test has left an object behind. */
static int fixture_close(void **state)
{
	(void)state;
	return ibv_dealloc_pd(pd) || ibv_close_device(context);
}

/* @call must return NULL and set errno to @error. */
#define assert_refused(call, error)                                                                          \
	do {                                                                                                 \
		errno = 0;                                                                                   \
		assert_null(call);                                                                           \
		assert_int_equal(errno, error);                                                              \
	} while (0)

#endif
