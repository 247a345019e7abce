/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits until every access by another process to our memory that began before the grants were revoked has finished
 * (DESIGN.md, "Revoking").
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
#include "explain/explain.h"
#include "explain/limit.h"
#include "hca/hca.h"
#include "link/shm/peer.h"

/* Values chosen for speed. */
enum {
	/* checks of such an access by another process before the processor is yielded: some microseconds */
	SHM_DRAIN_SPINS = 200,
	/* yields before the waiting thread sleeps and queries the kernel for the state of the other thread */
	SHM_DRAIN_YIELDS = 16,
	/* ns of such a sleep */
	SHM_DRAIN_NAP_NS = 50000,
	/*
	 * ms until a connection is closed because its other side still claims an access in progress: destroying a key
	 * never takes longer
	 */
	SHM_DRAIN_MOST_MS = 10000,
};

/* The access that is being waited for. */
struct drain {
	uint32_t
		serial; /* serial number of its connection; older ones are yet to be checked (the list has the newest first) */
	uint64_t ticket; /* 0: none */
	uint32_t rounds;
	uint64_t since_ns; /* first check of its thread; 0: none yet */
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
 * Returns true if @thread is known to be outside the system call of an access: it will check the generation again
 * before the call, or it has ended. /proc/PID/syscall contains "running", or the number of the system call that the
 * thread is blocked in, or -1 (proc(5)). The number remains visible when a signal stops the thread on its way out of a
 * system call; its state is then 'T', which signals cause only there. A debugger ('t') can stop threads elsewhere, too.
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
 * Returns true if the wait is over. It has a limit, whatever the kernel reports: a malicious peer can be in such a
 * system call on a file of its own, and a debugger can stop its thread at the entry of the call.
 */
static bool access_is_over(struct shm_peer *peer, struct drain *drain)
{
	uint32_t thread = __atomic_load_n(&peer->in.ring->access.thread, __ATOMIC_RELAXED);
	uint64_t now_ns = clock_now_ns();

	if (!shm_is_still_there(peer) || thread_is_elsewhere(peer, thread))
		return true;
	if (!drain->since_ns)
		drain->since_ns = now_ns;
	if (now_ns - drain->since_ns < SHM_DRAIN_MOST_MS * UINT64_C(1000000))
		return false;
	EXPLAIN_LIMITED(first_device(), (&(const struct explain_subject){0}), LIMIT_EXPLAINED_DROPS, RULE_SHM_ACCESS,
			(uint64_t)peer->host->pid, thread, SHM_DRAIN_MOST_MS);
	shm_break(peer);
	return true;
}

static uint64_t access_ticket(const struct shm_peer *peer)
{
	return __atomic_load_n(&peer->in.ring->access.ticket, __ATOMIC_SEQ_CST);
}

static bool access_has_ended(struct shm_peer *peer, struct drain *drain)
{
	if (!drain->ticket) {
		*drain = (struct drain){.serial = peer->host->serial, .ticket = access_ticket(peer)};
		for (uint32_t i = 0; drain->ticket && i < SHM_DRAIN_SPINS; i++) {
			if (access_ticket(peer) != drain->ticket)
				return true;
			pause_cpu();
		}
		return !drain->ticket;
	}
	return access_ticket(peer) != drain->ticket ||
	       (drain->rounds > SHM_DRAIN_YIELDS && access_is_over(peer, drain));
}

/* Returns the connection that is waited for, or the next older one, or NULL. In an epoch section. */
static struct host_peer *drain_next_peer(const struct drain *drain)
{
	struct host_peer *host = host_peers();

	while (host && host->serial >= drain->serial + (drain->ticket ? 1 : 0))
		host = host_next(host);
	return host;
}

/* Checks connections until one has an access in progress. Returns true if none is left to check. */
static bool drain_advance(struct drain *drain)
{
	struct host_peer *host;

	for (;;) {
		host = drain_next_peer(drain);
		if (!host)
			return true;
		/* The connection that was waited for has gone. */
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
	const struct timespec nap = {.tv_nsec = SHM_DRAIN_NAP_NS};
	struct drain drain = {.serial = UINT32_MAX};
	bool done;

	for (;;) {
		epoch_enter();
		done = drain_advance(&drain);
		epoch_leave();
		if (done)
			return;
		if (drain.rounds++ < SHM_DRAIN_YIELDS)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
}
