/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_req_notify_cq(3) by two threads at once: they share the doorbell record, so the values passed to the device must
 * not depend on the current content of the record (mlx5-formats 3.6 has the arm word). The test acts as the device.
 */
#include <endian.h>
#include "test_case.h"

#include "progress/progress.h"
#include "verbs/queue/cq.h"
#include "verbs/object/ops.h"

enum { CONSUMER = 0x1234567, SOLICITED = 1 << 24 };

static uint32_t dbrec[2], requested[2];
static struct user_cq cq = {.dbrec = dbrec, .consumer_index = CONSUMER, .arm_sn = 6};
static int requests;

/* No links: no packet arrives. */
uint32_t progress_pollers;

void progress_before_sleep(void)
{
}

void hca_cq_request(struct hca_cq *device, uint32_t word)
{
	(void)device;
	requested[requests++] = word;
}

TEST(a_thread_says_its_own_request)
{
	const uint32_t any = 2u << 28 | (CONSUMER & 0xffffff);

	assert_int_equal(softhca_ibv_req_notify_cq(&cq.base, 0), 0);
	assert_int_equal(requested[0], any);
	assert_int_equal(be32toh(dbrec[1]), any);
	assert_int_equal(softhca_ibv_req_notify_cq(&cq.base, 1), 0);
	assert_int_equal(requested[1], any | SOLICITED);
	assert_int_equal(be32toh(dbrec[1]), any | SOLICITED);
	assert_int_equal(requests, 2);
	cq_event_taken(&cq);
	requests = 0;
	assert_int_equal(softhca_ibv_req_notify_cq(&cq.base, 0), 0);
	assert_int_equal(requested[0], 3u << 28 | (CONSUMER & 0xffffff));
}
