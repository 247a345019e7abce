/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host part (src/link/host) alone: the test replaces the device thread, which runs during loop(), the shm link, and
 * the log of explanations. Other processes are children that execute orders.
 *
 * If permitted, a test runs in its own network namespace, where no other process uses names.
 */
#ifndef SOFTHCA_TESTS_UNIT_HOST_FIXTURE_H
#define SOFTHCA_TESTS_UNIT_HOST_FIXTURE_H

#include "test_case.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "core/epoch.h"
#include "explain/explain.h"
#include "explain/limit.h"
#include "observe/counters.h"
#include "hca/hca.h"
#include "link/host/hello.h"
#include "link/host/table.h"

enum { MEMORY = 2 << 20 };

/* Counters are off. */
uint64_t *counters_attach(void)
{
	return NULL;
}

/* ---- replacements of other modules ----------------------------------------------------------------------------- */

static struct {
	int epoll;
	int arrivals;                   /* epoll, inside the other epoll descriptor */
	int watch_error, begin_error;   /* results of the next calls */
	int begun, gone, ended;         /* number of calls for peers */
	int peers_at_wake;              /* peers found at the latest wake-up */
	pid_t kills;                    /* a child that is killed during the connection to it; 0: none */
	void (*while_unwatching)(void); /* action of another thread while a descriptor is being removed; or NULL */
	uint64_t now_ns;                /* time of the clock */
	bool enough;                    /* the limit of explanations about others is used up for this second */
	enum explain_rule rule;         /* the newest explanation */
	uint64_t args[EXPLAIN_ARGS];
	int explanations;
} world = {.epoll = -1, .arrivals = -1};

/* No device. */
struct registry the_registry;

uint64_t clock_now_ns(void)
{
	return world.now_ns;
}

uint64_t explain_make(struct hca *hca, const struct explain_subject *subject, enum explain_rule rule,
		      const uint64_t *args, size_t count)
{
	(void)hca;
	(void)subject;
	world.rule = rule;
	memset(world.args, 0, sizeof(world.args));
	memcpy(world.args, args, count * sizeof(*args));
	world.explanations++;
	return 1;
}

uint64_t explain_limited(struct hca *hca, const struct explain_subject *subject, uint32_t most, enum explain_rule rule,
			 const uint64_t *args, size_t count)
{
	(void)most;
	return world.enough ? 0 : explain_make(hca, subject, rule, args, count);
}

static size_t memory_size(void)
{
	return MEMORY;
}

static int peer_begin(struct host_peer *peer)
{
	/* The creator finds the memory zeroed and complete. */
	if (peer->created)
		assert_true(!peer->memory[0] && !peer->memory[MEMORY - 1]);
	if (world.begin_error)
		return world.begin_error;
	world.begun++;
	if (world.kills) {
		kill(world.kills, SIGKILL);
		assert_int_equal(waitid(P_PID, (id_t)world.kills, &(siginfo_t){.si_pid = 0}, WEXITED | WNOWAIT), 0);
		world.kills = 0;
	}
	return 0;
}

static void peer_gone(struct host_peer *peer)
{
	assert_int_equal(peer->gone, 1);
	assert_true(peer->memory[0] || !peer->memory[0]);
	world.gone++;
}

static void peer_end(struct host_peer *peer)
{
	assert_true(peer->memory[0] || !peer->memory[0]);
	world.ended++;
}

static bool peer_was_accepted(const struct host_peer *peer)
{
	return peer->memory[0] || !peer->memory[0];
}

static void peer_service_released(struct host_peer *peer)
{
	peer->memory[1]++;
}

static uint32_t peer_services_released(const struct host_peer *peer)
{
	return peer->memory[1];
}

static const struct host_carrier test_carrier = {.memory_size = memory_size,
						 .begin = peer_begin,
						 .was_accepted = peer_was_accepted,
						 .service_released = peer_service_released,
						 .services_released = peer_services_released,
						 .gone = peer_gone,
						 .end = peer_end};

static void __attribute__((constructor)) carry(void)
{
	host_carrier = &test_carrier;
}

static int watch(int epoll, int fd, void *found, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = found};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static void open_world(void)
{
	if (world.epoll >= 0)
		return;
	world.epoll = epoll_create1(EPOLL_CLOEXEC);
	world.arrivals = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(watch(world.epoll, world.arrivals, NULL, EPOLLIN), 0);
}

int progress_watch(struct watched_fd *watched, uint32_t events)
{
	open_world();
	return world.watch_error ? world.watch_error : watch(world.epoll, watched->fd, watched, events);
}

int progress_watch_arrivals(struct watched_fd *watched, uint32_t events)
{
	open_world();
	return watch(world.arrivals, watched->fd, watched, events);
}

void progress_unwatch(struct watched_fd *watched)
{
	if (world.while_unwatching)
		world.while_unwatching();
	epoll_ctl(world.arrivals, EPOLL_CTL_DEL, watched->fd, NULL);
	assert_int_equal(epoll_ctl(world.epoll, EPOLL_CTL_DEL, watched->fd, NULL), 0);
}

/* Returns 1, or 0 if the descriptor has ended, which makes it ready as well. */
static int drain_one(void)
{
	struct epoll_event event;
	struct watched_fd *watched;
	struct pollfd state = {.events = POLLRDHUP};

	if (epoll_wait(world.arrivals, &event, 1, 0) != 1)
		return 0;
	watched = event.data.ptr;
	watched->drain(watched);
	state.fd = watched->fd;
	return poll(&state, 1, 0) == 0;
}

/*
 * Handles descriptors that become ready within @ms. Returns their number. Handles one at a time, because one may remove
 * another.
 */
static int loop_for(int ms)
{
	struct epoll_event event;
	int count = 0;

	while (world.epoll >= 0 && epoll_wait(world.epoll, &event, 1, count ? 0 : ms) == 1) {
		struct watched_fd *watched = event.data.ptr;

		if (watched) {
			watched->ready(watched, event.events);
			count++;
		} else {
			count += drain_one();
		}
		if (count == 1000)
			fail_msg("the device thread never sleeps");
	}
	return count;
}

static inline int loop(void)
{
	return loop_for(0);
}

/* ---- this process ---------------------------------------------------------------------------------------------- */

static inline uint32_t claim(void)
{
	uint32_t first = 0;

	assert_int_equal(host_claim_slot(&first), 0);
	return first;
}

static inline int count_peers(void)
{
	int count = 0;

	for (struct host_peer *peer = host_peers(); peer; peer = peer->next)
		count++;
	return count;
}

void progress_wake(void)
{
	world.peers_at_wake = count_peers();
}

/*
 * Returns the number of peers that the device thread found at its latest wake-up since the last call; 0: it was not
 * woken.
 */
static inline int woken(void)
{
	int peers = world.peers_at_wake;

	world.peers_at_wake = 0;
	return peers;
}

static inline int count_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static inline struct host_peer *peer_of(uint32_t qpn)
{
	struct host_peer *peer;

	epoch_enter();
	peer = host_peer_of(qpn);
	epoch_leave();
	return peer;
}

#define expect_rule(name)                                                                                              \
	do {                                                                                                           \
		assert_int_equal(world.rule, RULE_##name);                                                             \
		assert_int_equal(world.explanations, 1);                                                               \
		world.explanations = 0;                                                                                \
		world.rule = RULE_NONE;                                                                                \
	} while (0)
#define expect_silence() assert_int_equal(world.explanations, 0)

/* Forks as a program with the library loaded does. */
static inline pid_t fork_process(void)
{
	pid_t pid;

	host_before_fork();
	pid = fork();
	assert_true(pid >= 0);
	if (pid > 0) {
		host_after_fork(false);
		return pid;
	}
	alarm(60);
	if (world.epoll >= 0)
		close(world.epoll);
	world.epoll = -1;
	host_after_fork(true);
	world.begun = world.gone = world.ended = world.explanations = world.peers_at_wake = 0;
	world.rule = RULE_NONE;
	return 0;
}

/* Returns a socket connected to the slot of @qpn, bypassing all that the library does. */
static inline int raw_connect(uint32_t qpn)
{
	struct host_name name = host_slot_name(host_slot_of(qpn));
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	if (!connect(fd, (struct sockaddr *)&name.address, name.length))
		return fd;
	close(fd);
	return -1;
}

/* ---- other processes ------------------------------------------------------------------------------------------- */

enum order {
	CLAIM,             /* claims a slot: answers its first number */
	ACCEPT,            /* accepts from now on */
	LOOP,              /* answers the number of descriptors ready within @argument ms */
	PEER,              /* of QP @argument: 0 none, 1 accepted, 2 created */
	PEERS,             /* answers the number of peers */
	WOKEN,             /* answers woken() */
	PEER_PID,          /* of the newest peer */
	READ,              /* the first byte of the memory of the newest peer */
	WRITE,             /* @argument to the last byte of that memory */
	WAKE,              /* wakes the newest peer */
	GONE,              /* answers how often peers have gone */
	OWNS,              /* whether it owns QP number @argument */
	FORMER,            /* whether the slot of QP @argument belonged to the parent */
	RULE_MADE,         /* of the newest explanation */
	RAW_HELLO,         /* to the slot of QP @argument, regardless of known connections */
	BECOME,            /* becomes user @argument */
	NO_USER,           /* enters a user namespace without mappings; 0: not permitted */
	NEW_PIDS,          /* children are in their own PID namespace; 0: not permitted */
	CHILD,             /* forks an idle child that stays alive: answers its id */
	CHILD_OF,          /* forks a child that executes the following orders */
	SQUAT,             /* takes all plain names of slots: answers how many */
	RELEASE,           /* releases the plain name of slot @argument */
	SQUAT_RESERVE,     /* takes reserve names of slot @argument: answers how many */
	SQUAT_ALL_RESERVE, /* takes a reserve name of each reserve slot: answers how many */
	END,
};

struct order_message {
	enum order order;
	uint32_t argument;
};

struct process {
	pid_t pid;
	int orders;
};

static inline uint64_t raw_hello(uint32_t qpn)
{
	int fd = raw_connect(qpn), memory = host_memory_create();

	return fd >= 0 && memory >= 0 && !host_hello_send(fd, memory);
}

static inline uint64_t lone_child(void)
{
	int ends[2];
	char word;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork_process();
	if (pid) {
		/* It writes a byte when it has closed the inherited descriptors. */
		assert_int_equal(read(ends[0], &word, 1), 1);
		close(ends[0]);
		close(ends[1]);
		return (uint64_t)pid;
	}
	assert_int_equal(write(ends[1], "", 1), 1);
	for (;;)
		pause();
}

static inline int squat_at(const struct host_name *name)
{
	int fd = host_bind(name, SOCK_SEQPACKET);

	return fd >= 0 && !listen(fd, 1) ? fd : -1;
}

static int squatted[HOST_SLOTS];

static inline uint64_t squat(void)
{
	struct host_name name;
	uint64_t count = 0;

	for (uint32_t i = 0; i < HOST_SLOTS; i++) {
		name = host_slot_name(i);
		squatted[i] = squat_at(&name);
		count += squatted[i] >= 0;
	}
	return count;
}

/* @each: names per slot. Some sort before other names in any order. */
static inline uint64_t squat_reserve(uint32_t first, uint32_t slots, uint32_t each)
{
	struct host_name name;
	uint64_t count = 0;

	for (uint32_t i = 0; i < slots * each; i++) {
		name = host_name("softhca/1/slot/%u/%016x", first + i / each, i);
		count += squat_at(&name) >= 0;
	}
	return count;
}

static inline uint64_t obey(const struct order_message *message)
{
	struct host_peer *peer = host_peers();
	uint32_t argument = message->argument;

	switch (message->order) {
	case CLAIM:
		return claim();
	case ACCEPT:
		host_accept();
		return 0;
	case LOOP:
		return (uint64_t)loop_for((int)argument);
	case PEER:
		peer = peer_of(argument);
		return !peer ? 0 : peer->created ? 2 : 1;
	case PEERS:
		return (uint64_t)count_peers();
	case WOKEN:
		return (uint64_t)woken();
	case PEER_PID:
		return (uint64_t)peer->pid;
	case READ:
		return peer->memory[0];
	case WRITE:
		peer->memory[MEMORY - 1] = (uint8_t)argument;
		return 0;
	case WAKE:
		host_wake(peer);
		return 0;
	case GONE:
		return (uint64_t)world.gone;
	case OWNS:
		return host_owns(argument);
	case FORMER:
		return host_table.state[host_slot_of(argument)] == SLOT_FORMER;
	case RULE_MADE:
		return world.rule;
	case RAW_HELLO:
		return raw_hello(argument);
	case BECOME:
		return !setresuid(argument, argument, argument);
	case NO_USER:
		return !unshare(CLONE_NEWUSER);
	case NEW_PIDS:
		return !unshare(CLONE_NEWPID);
	case CHILD:
		return lone_child();
	case CHILD_OF: {
		pid_t pid = fork_process();

		/* The parent lives until it is killed. */
		while (pid)
			pause();
		return (uint64_t)getpid();
	}
	case SQUAT:
		return squat();
	case RELEASE:
		return !close(squatted[argument]);
	case SQUAT_RESERVE:
		return squat_reserve(argument, 1, 200);
	case SQUAT_ALL_RESERVE:
		return squat_reserve(HOST_FIRST_RESERVE, HOST_RESERVE_SLOTS, 1);
	case END:
		_exit(0);
	}
	return 0;
}

static inline struct process start_process(void)
{
	struct process process;
	struct order_message message;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	process.pid = fork_process();
	process.orders = ends[0];
	if (process.pid) {
		close(ends[1]);
		return process;
	}
	close(ends[0]);
	while (recv(ends[1], &message, sizeof(message), 0) == sizeof(message)) {
		uint64_t answer = obey(&message);

		send(ends[1], &answer, sizeof(answer), 0);
	}
	_exit(0);
}

static inline uint64_t tell(const struct process *process, enum order order, uint32_t argument)
{
	struct order_message message = {order, argument};
	uint64_t answer = UINT64_MAX;

	assert_int_equal(send(process->orders, &message, sizeof(message), 0), sizeof(message));
	assert_int_equal(recv(process->orders, &answer, sizeof(answer), 0), sizeof(answer));
	return answer;
}

/* Ends the process with @signal; 0: the process exits normally. */
static inline void end_process(struct process *process, int signal)
{
	int status;

	if (signal)
		kill(process->pid, signal);
	else
		send(process->orders, &(struct order_message){.order = END}, sizeof(struct order_message), 0);
	close(process->orders);
	assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
	assert_int_equal(status, signal);
}

/* ---- a test ---------------------------------------------------------------------------------------------------- */

/* Resets the state to that of a process that has just started. */
static inline int begin_test(void **state)
{
	(void)state;
	host_before_fork();
	if (world.epoll >= 0)
		close(world.epoll);
	host_after_fork(true);
	memset(host_table.state, 0, sizeof(host_table.state));
	memset(&world, 0, sizeof(world));
	world.epoll = -1;
	return 0;
}

static bool alone;

static inline void own_names(void)
{
	/* Most tests do not need a namespace, but other tests run at the same time. */
	alone = !unshare(CLONE_NEWNET);
	if (!alone)
		print_message("# no network namespace of its own\n");
	alarm(100);
}

#endif
