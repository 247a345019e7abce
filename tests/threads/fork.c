/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork(2) while another thread is inside the library: the child goes on with what it inherited, and finds no
 * lock held by a thread that it does not have (ibv_fork_init(3)).
 */
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

enum { CHILDREN = 200 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static char buffer[4096];
static int stop; /* atomic */

/* All kinds of objects that children use, made and destroyed over and over. */
static void use_everything(void)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};
	struct ibv_mr *mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_dm *dm = ibv_alloc_dm(context, &attr);
	struct ibv_pd *domain = ibv_alloc_pd(context);
	struct ibv_context *second = ibv_open_device(context->device);

	if (!mr || !dm || !domain || !second || ibv_close_device(second) || ibv_dealloc_pd(domain) || ibv_free_dm(dm) ||
	    ibv_dereg_mr(mr))
		abort();
}

/* Is inside of a lock as often as can be. */
static void *worker(void *argument)
{
	uint32_t qpn;

	(void)argument;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		use_everything();
		for (int i = 0; i < 10000; i++) {
			struct ibv_pd *domain = ibv_alloc_pd(context);

			if (!domain || ibv_dealloc_pd(domain))
				abort();
		}
		for (int i = 0; i < 10000; i++)
			if (mlx5dv_reserved_qpn_alloc(context, &qpn) || mlx5dv_reserved_qpn_dealloc(context, qpn))
				abort();
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;

	context = open_first_device();
	pd = ibv_alloc_pd(context);
	CHECK(!ibv_fork_init());
	CHECK(ibv_is_fork_initialized() == IBV_FORK_UNNEEDED);
	CHECK(!pthread_create(&thread, NULL, worker, NULL));
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();
		int status;

		CHECK(child >= 0);
		if (child == 0) {
			alarm(20);
			use_everything();
			_exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child);
		CHECK(!status);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	CHECK(!pthread_join(thread, NULL));
	CHECK(!ibv_dealloc_pd(pd) && !ibv_close_device(context));
	return 0;
}
