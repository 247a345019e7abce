/* SPDX-License-Identifier: BSD-2-Clause */
/* Scheduling of a thread. */
#include "core/thread.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/descriptor.h"

/* Values chosen for speed. */
enum {
	/*
	 * ns; slice of the device thread and the watcher: one shorter than the program's lets them preempt it when
	 * woken; the kernel allows no less
	 */
	THREAD_SLICE_NS = 100000,
};

/*
 * The first version of struct sched_attr, sched_setattr(2). Older kernel headers define it together with definitions
 * that <sched.h> repeats.
 */
struct scheduling {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime; /* ns; slice under SCHED_OTHER and SCHED_BATCH */
	uint64_t deadline;
	uint64_t period;
};

void thread_signals_to_block(sigset_t *signals)
{
	sigfillset(signals);
	sigdelset(signals, SIGSEGV);
	sigdelset(signals, SIGBUS);
}

void thread_run_soon(void)
{
	struct scheduling scheduling = {0};

	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	if (syscall(SYS_sched_getattr, 0, &scheduling, sizeof(scheduling), 0))
		return;
	if (scheduling.policy != SCHED_OTHER && scheduling.policy != SCHED_BATCH)
		return;
	scheduling.runtime = THREAD_SLICE_NS;
	syscall(SYS_sched_setattr, 0, &scheduling, 0);
}

uint64_t thread_waited_ns(void)
{
	int fd = descriptor_keep(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
	char text[64];
	char *waited;
	ssize_t bytes = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	descriptor_close(fd);
	text[bytes > 0 ? bytes : 0] = '\0';
	/* Time on a processor, time waited, number of time slices. */
	waited = strchr(text, ' ');
	return waited ? strtoull(waited, NULL, 10) : 0;
}
