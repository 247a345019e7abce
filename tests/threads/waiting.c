/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork(2) while another thread removes QPs from a queue of QPs that wait for room: the child leaves each queue
 * (link_abandon), and would loop forever if a queue were forked half modified.
 */
#include <pthread.h>
#include "test_case.h"

#include <sys/wait.h>
#include <time.h>

#include "../unit/support/device_fixture.h"
#include "wire/waiting.h"
#include "transport/run/run.h"

enum { WAITERS = 8, CHILDREN = 2000, SECONDS = 8, ALARM_SECONDS = 20 };

static struct hca_qp qps[WAITERS];
static struct link_waiter waiters[WAITERS];
static struct link_queue queue;
static int stop; /* atomic */

/* Acts as a sender without room, and as the code that makes room. */
static void *wait_and_resume(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		struct run run;

		run_begin(&run);
		for (int i = 0; i < WAITERS; i++) {
			queue_lock(&qps[i].lock);
			qps[i].scheduled = false;
			link_enqueue(&queue, &waiters[i], &qps[i].sender, false);
			queue_unlock(&qps[i].lock);
		}
		link_resume(&queue, WAITERS, &run);
	}
	return NULL;
}

TEST(children_leave_whole_queues)
{
	time_t end = time(NULL) + SECONDS;
	pthread_t thread;

	/* Makes fork(2) hold the locks. */
	hca_device(0);
	for (int i = 0; i < WAITERS; i++) {
		qps[i].sender.resume = qp_resume;
		queue_lock_init(&qps[i].lock, LOCK_LEVEL_QP, false);
	}
	assert_int_equal(pthread_create(&thread, NULL, wait_and_resume, NULL), 0);
	for (int i = 0; i < CHILDREN && time(NULL) <= end; i++) {
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (!child) {
			alarm(ALARM_SECONDS);
			link_abandon(&queue);
			for (int j = 0; j < WAITERS; j++)
				link_dequeue(&waiters[j]);
			_exit(queue.first || queue.count);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (int i = 0; i < WAITERS; i++)
		queue_lock_destroy(&qps[i].lock);
}
