/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting until no other process is at an access to the memory of this one that it began before grants were taken back. That takes a
 * microsecond, unless its thread has lost the processor, was stopped, or has ended in the middle. Stopped or ended it may say for ever that
 * it is at it; but outside of the system call it begins none any more (core/guarded_call.h). The kernel knows where it is.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/compiler.h"
#include "core/epoch.h"
#include "core/limits.h"
#include "core/tunables.h"
#include "explain/explain.h"
#include "explain/limit.h"
#include "hca/hca.h"
#include "link/shm/peer.h"

/* The access of another process that is waited for. */
struct drain {
	uint32_t
		serial; /* of the connection: those that are older are yet to be looked at; they are listed newest first */
	uint64_t ticket; /* 0: nothing is waited for */
	uint32_t rounds;
	uint64_t since_ns; /* of the first look at its thread; 0: there was none */
};

static bool thread_read_file(const struct shm_peer *peer, uint32_t thread, const char *name, char *text, size_t size)
{
	char path[80];
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", (unsigned int)peer->host->pid, thread, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = read(fd, text, size - 1);
	close(fd);
	text[length > 0 ? length : 0] = 0;
	return length > 0;
}

/*
 * Returns true if @thread is known not to be in the system call of an access: it looks at the generation again before the call, or it
 * has ended. proc(5), /proc/PID/syscall: "running", or the number of the system call that the thread is blocked in, -1 if it is in
 * none. A thread that is stopped behind a system call, on its way back, still has that number. The state tells: 'T' is a stop by
 * a signal, which comes on that way only. A debugger stops threads elsewhere, too.
 */
static bool thread_is_elsewhere(const struct shm_peer *peer, uint32_t thread)
{
	char text[512], *end;
	long number;

	if (syscall(SYS_tgkill, peer->host->pid, thread, 0) && errno == ESRCH)
		return true;
	if (thread_read_file(peer, thread, "stat", text, sizeof(text)) && (end = strrchr(text, ')')) && end[1] == ' ' &&
	    end[2] && strchr("TZXx", end[2]))
		return true;
	if (!thread_read_file(peer, thread, "syscall", text, sizeof(text)) ||
	    (!isdigit((unsigned char)text[0]) && text[0] != '-'))
		return false;
	number = strtol(text, NULL, 10);
	return number != SYS_pwrite64 && number != SYS_pwritev && number != SYS_pread64;
}

/*
 * Returns true if the access need not be waited for any longer. The wait is bounded whatever the kernel says of the thread: a lying
 * peer can be in such a system call with a file of its own, and a debugger can stop its thread at the entry of the call.
 */
static bool access_is_over(struct shm_peer *peer, struct drain *drain)
{
	uint32_t thread = __atomic_load_n(&peer->in.ring->access.thread, __ATOMIC_RELAXED);
	uint64_t now_ns = clock_now_ns();

	if (!shm_is_still_there(peer) || thread_is_elsewhere(peer, thread))
		return true;
	if (!drain->since_ns)
		drain->since_ns = now_ns;
	if (now_ns - drain->since_ns < TUNABLE_SHM_SETTLE_MOST_MS * UINT64_C(1000000))
		return false;
	EXPLAIN_LIMITED(first_device(), (&(const struct explain_subject){0}), LIMIT_EXPLAINED_DROPS, RULE_SHM_ACCESS,
			(uint64_t)peer->host->pid, thread, TUNABLE_SHM_SETTLE_MOST_MS);
	shm_break(peer);
	return true;
}

static uint64_t access_ticket(const struct shm_peer *peer)
{
	return __atomic_load_n(&peer->in.ring->access.ticket, __ATOMIC_SEQ_CST);
}

/* True if @peer need not be waited for any longer. */
static bool access_has_ended(struct shm_peer *peer, struct drain *drain)
{
	if (!drain->ticket) {
		*drain = (struct drain){.serial = peer->host->serial, .ticket = access_ticket(peer)};
		for (uint32_t i = 0; drain->ticket && i < TUNABLE_SHM_SETTLE_SPINS; i++) {
			if (access_ticket(peer) != drain->ticket)
				return true;
			pause_cpu();
		}
		return !drain->ticket;
	}
	return access_ticket(peer) != drain->ticket ||
	       (drain->rounds > TUNABLE_SHM_SETTLE_YIELDS && access_is_over(peer, drain));
}

/* The connection that is waited for, or the next older one; NULL: there is none. In an epoch section. */
static struct host_peer *drain_next_peer(const struct drain *drain)
{
	struct host_peer *host = host_peers();

	while (host && host->serial >= drain->serial + (drain->ticket ? 1 : 0))
		host = host_next(host);
	return host;
}

/* True if there is no connection left to look at. */
static bool drain_advance(struct drain *drain)
{
	struct host_peer *host;

	for (;;) {
		host = drain_next_peer(drain);
		if (!host)
			return true;
		/* The one that was waited for has gone. */
		if (host->serial != drain->serial)
			drain->ticket = 0;
		if (!access_has_ended(shm_of(host), drain))
			return false;
		drain->ticket = 0;
		drain->serial = host->serial;
	}
}

void shm_drain(void)
{
	WITHOUT_CANCELLATION;
	const struct timespec nap = {.tv_nsec = TUNABLE_SHM_SETTLE_NAP_NS};
	struct drain drain = {.serial = UINT32_MAX};
	bool done;

	for (;;) {
		epoch_enter();
		done = drain_advance(&drain);
		epoch_leave();
		if (done)
			return;
		if (drain.rounds++ < TUNABLE_SHM_SETTLE_YIELDS)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
}
