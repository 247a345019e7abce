/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork(2) while other threads are inside the library: the child can use the inherited objects, and no lock is held by a
 * thread that exists only in the parent (ibv_fork_init(3)). For each call of the table (calls.h) two threads repeat the
 * call while the process forks children that make it as well.
 */
#include "calls.h"
#include "test_clock.h"

#include <sys/wait.h>
#include <unistd.h>

enum {
	HAMMERS = 2,
	CHILDREN = 60, /* of each call, at most */
	ALARM_SECONDS = 20,
};

/* For each call; children forked while threads run are slow under a sanitizer. */
static const double seconds_of_call = 0.6;

static struct calls_world world;
static const struct call *current;
static int stop; /* atomic */

static void *hammer(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		current->make(&world);
	return NULL;
}

/* Returns false if a child failed. */
static bool fork_child(void)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		alarm(ALARM_SECONDS);
		current->make(&world);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	return status == 0;
}

static void fork_beside(const struct call *call)
{
	double end = seconds_now() + seconds_of_call;
	pthread_t threads[HAMMERS];

	current = call;
	/*
	 * Do one-time work before forking: ThreadSanitizer's pthread_once(3) does not handle forks as the C library's
	 * does.
	 */
	call->make(&world);
	__atomic_store_n(&stop, 0, __ATOMIC_RELEASE);
	for (int i = 0; i < HAMMERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, hammer, NULL));
	for (int i = 0; i < CHILDREN && (i == 0 || seconds_now() < end); i++) {
		if (fork_child())
			continue;
		fprintf(stderr, "child %d of the call for \"%s\" (row %zu) did not end well\n", i, call->symbols,
			(size_t)(call - calls));
		exit(1);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < HAMMERS; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

int main(void)
{
	calls_complete();
	calls_open(&world);
	CHECK(!ibv_fork_init());
	CHECK(ibv_is_fork_initialized() == IBV_FORK_UNNEEDED);
	for (size_t i = 0; i < calls_count; i++)
		fork_beside(&calls[i]);
	calls_close(&world);
	return 0;
}
