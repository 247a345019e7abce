/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes with a complete device that execute orders of the test: they send management datagrams, claim ports, and
 * report the events of their connection manager, which the test replaces. Each may run on its own host, that is, in its
 * own network namespace. Datagrams are built by hand from the layouts of IBTA 12.6 and 13.4.
 */
#ifndef SOFTHCA_TESTS_UNIT_GSI_AGENTS_H
#define SOFTHCA_TESTS_UNIT_GSI_AGENTS_H

#include <arpa/inet.h>
#include <dirent.h>
#include <endian.h>
#include "test_case.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "observe/counters.h"
#include "hca/hca.h"
#include "explain/explain.h"
#include "process/commands.h"
#include "cm_host/manager.h"
#include "cm_host/services.h"
#include "transport/gsi/gsi.h"
#include "wire/mad.h"
#include "wire/packet.h"

enum { TCP = 0x0106, UDP_SPACE = 0x0111, PORT = 7471 };

/* ---- datagrams ------------------------------------------------------------------------------------------------- */

static inline uint16_t mad_get16(const uint8_t *from)
{
	return (uint16_t)(from[0] << 8 | from[1]);
}

static inline void mad_put16(uint8_t *to, uint16_t value)
{
	value = htobe16(value);
	memcpy(to, &value, sizeof(value));
}

static inline void mad_put32(uint8_t *to, uint32_t value)
{
	value = htobe32(value);
	memcpy(to, &value, sizeof(value));
}

/*
 * Writes the header of IBTA 13.4.3: base version, class, class version, method, attribute. A pattern derived from @seed
 * follows it.
 */
static inline void mad_begin(uint8_t mad[MAD_BYTES], uint16_t attribute, uint8_t seed)
{
	for (int i = 0; i < MAD_BYTES; i++)
		mad[i] = (uint8_t)(seed + i);
	memcpy(mad, (const uint8_t[]){1, 7, 2, 3, 0, 0, 0, 0}, 8);
	mad_put16(mad + 16, attribute);
}

/* Writes a REQ (0x10) or SIDR_REQ (0x17), IBTA 12.6.5, 12.11.1; the service id follows annex A11. */
static inline void mad_request(uint8_t mad[MAD_BYTES], uint16_t attribute, uint16_t space, uint16_t port)
{
	mad_begin(mad, attribute, 0x40);
	mad_put32(mad + 24 + 8, 0);
	mad_put16(mad + 24 + 12, space);
	mad_put16(mad + 24 + 14, port);
}

/* Writes a message that names ids: MRA, REJ, REP, RTU, DREQ, DREP. */
static inline void mad_answer(uint8_t mad[MAD_BYTES], uint16_t attribute, uint32_t local, uint32_t remote)
{
	mad_begin(mad, attribute, 0x20);
	mad_put32(mad + 24, local);
	mad_put32(mad + 28, remote);
}

/* ---- orders and answers of an agent ---------------------------------------------------------------------------- */

enum order {
	SEND,      /* `path`, `mad` */
	SEND_SOON, /* answers the number of events before the call returned, while only that thread ran */
	CLAIM,     /* `space`, `port`: answers the result, as the following orders do */
	LISTEN,    /* LISTEN, RELEASE, OWNER: `space`, `port` */
	RELEASE,
	OWNER,
	SLOT,       /* answers the slot number */
	TAKE,       /* the next event, waits `number` ms */
	COUNTER,    /* `number` */
	EXPLAINED,  /* waits for rule `number`: answers 1 or 0 */
	FORK_CLAIM, /* in a forked child, which stays alive: claims and listens; answers the child's result */
	NO_MANAGER, /* marks the process as one that makes no connections itself; answers 0 */
	SWITCH_USER,
	SEND_AND_LEAVE, /* ends without an answer */
	LEAVE,
};

enum event_kind { NOTHING, RECEIVED, LOST, PROCESS_ENDED, SERVICE_ENDED };

struct event {
	enum event_kind kind;
	struct packet_path path;
	uint8_t mad[MAD_BYTES];
	enum mad_loss why;
	uint64_t number; /* number of the connection to the process, or of the service */
};

struct order_message {
	enum order order;
	uint16_t space, port;
	uint64_t number;
	struct packet_path path;
	uint8_t mad[MAD_BYTES];
};

struct answer_message {
	int64_t result;
	struct event event;
};

struct agent {
	pid_t pid;
	int orders;
};

/* ---- in the agent ---------------------------------------------------------------------------------------------- */

enum { MOST_EVENTS_KEPT = 64 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct event event[MOST_EVENTS_KEPT];
	uint32_t first, last;
	pthread_t in_send; /* the thread inside gsi_send() */
	bool sends;
	bool within; /* an event came on that thread */
} events = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static inline void add_event(const struct event *event)
{
	pthread_mutex_lock(&events.lock);
	if (events.last - events.first < MOST_EVENTS_KEPT)
		events.event[events.last++ % MOST_EVENTS_KEPT] = *event;
	events.within |= events.sends && pthread_equal(events.in_send, pthread_self());
	pthread_cond_signal(&events.more);
	pthread_mutex_unlock(&events.lock);
}

static inline void on_receive(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES],
			      bool waited)
{
	struct event event = {.kind = RECEIVED, .path = *path};

	(void)hca;
	(void)waited;
	memcpy(event.mad, mad, MAD_BYTES);
	add_event(&event);
}

static inline void on_loss(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES],
			   enum mad_loss why)
{
	struct event event = {.kind = LOST, .path = *path, .why = why};

	(void)hca;
	memcpy(event.mad, mad, MAD_BYTES);
	add_event(&event);
}

static inline void on_process(uint32_t process)
{
	add_event(&(const struct event){.kind = PROCESS_ENDED, .number = process});
}

static inline void on_service(uint64_t service)
{
	add_event(&(const struct event){.kind = SERVICE_ENDED, .number = service});
}

static const struct management test_management = {
	.receive = on_receive, .lost = on_loss, .process_ended = on_process, .service_ended = on_service};

static inline void take_event(struct event *event, uint64_t ms)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += (time_t)(ms / 1000);
	end.tv_nsec += (long)(ms % 1000) * 1000000;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	*event = (struct event){.kind = NOTHING};
	pthread_mutex_lock(&events.lock);
	while (events.first == events.last && !pthread_cond_timedwait(&events.more, &events.lock, &end))
		;
	if (events.first != events.last)
		*event = events.event[events.first++ % MOST_EVENTS_KEPT];
	pthread_mutex_unlock(&events.lock);
}

static inline bool was_explained(enum explain_rule rule)
{
	struct explain_record record;

	for (int i = 0; i < 200; i++) {
		for (uint64_t before = 0; explain_previous(hca_device(0), 0, before, &record); before = record.serial)
			if (record.rule == rule)
				return true;
		usleep(10000);
	}
	return false;
}

/* Returns 0 if a request to a port of this process arrives. */
static inline int hear_itself(struct hca *hca, uint16_t space, uint16_t port)
{
	const struct packet_path path = {
		.source = hca->gids[3].gid, .destination = hca->gids[3].gid, .type = IBV_GID_TYPE_ROCE_V2};
	uint8_t mad[MAD_BYTES];
	struct event event;

	mad_request(mad, MAD_REQ, space, port);
	gsi_send(hca, &path, mad);
	gsi_wake(the_registry.gsi);
	take_event(&event, 5000);
	return event.kind == RECEIVED && !memcmp(event.mad, mad, MAD_BYTES) ? 0 : -EPROTO;
}

#ifdef __SANITIZE_ADDRESS__
static inline bool is_epoll_call(long call)
{
#ifdef SYS_epoll_wait
	if (call == SYS_epoll_wait)
		return true;
#endif
	return call == SYS_epoll_pwait || call == SYS_epoll_pwait2;
}

/* Returns true if all other threads of the process sleep in an epoll system call. */
static inline bool other_threads_sleep(void)
{
	DIR *tasks = opendir("/proc/self/task");
	bool sleep = tasks != NULL;
	struct dirent *task;

	while (sleep && (task = readdir(tasks))) {
		char name[300];
		long call = -1;
		FILE *file;

		if (task->d_name[0] == '.' || atoi(task->d_name) == gettid())
			continue;
		snprintf(name, sizeof(name), "/proc/self/task/%s/syscall", task->d_name);
		file = fopen(name, "r");
		sleep = file && fscanf(file, "%ld", &call) == 1 && (is_epoll_call(call));
		if (file)
			fclose(file);
	}
	if (tasks)
		closedir(tasks);
	return sleep;
}
#endif

/*
 * GCC's AddressSanitizer does not release the locks of its allocator in a forked child. If another thread allocates at
 * the moment of the fork(2), the child hangs on its first allocation. malloc(3) of the C library releases its locks.
 */
static inline void wait_for_other_threads(void)
{
#ifdef __SANITIZE_ADDRESS__
	for (int i = 0; i < 2000 && !other_threads_sleep(); i++)
		usleep(1000);
#endif
}

static inline int64_t fork_and_claim(struct hca *hca, uint16_t space, uint16_t port)
{
	int ends[2], error = 1;
	pid_t child;

	if (pipe(ends))
		return -errno;
	wait_for_other_threads();
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		error = hca_port_claim(hca, space, port);
		if (!error)
			error = hca_port_listen(hca, space, port);
		if (!error)
			error = hear_itself(hca, space, port);
		if (write(ends[1], &error, sizeof(error)) != sizeof(error))
			_exit(1);
		for (;;)
			pause();
	}
	close(ends[1]);
	if (read(ends[0], &error, sizeof(error)) != sizeof(error))
		error = -EIO;
	close(ends[0]);
	return error;
}

static inline bool tracked_send(struct hca *hca, const struct order_message *message)
{
	bool within;

	pthread_mutex_lock(&events.lock);
	events.in_send = pthread_self();
	events.sends = true;
	pthread_mutex_unlock(&events.lock);
	gsi_send(hca, &message->path, message->mad);
	gsi_wake(the_registry.gsi);
	pthread_mutex_lock(&events.lock);
	events.sends = false;
	within = events.within;
	pthread_mutex_unlock(&events.lock);
	return within;
}

static inline int64_t obey(struct hca *hca, const struct order_message *message, struct event *event)
{
	uint32_t slot;
	int error;

	switch (message->order) {
	case SEND:
		gsi_send(hca, &message->path, message->mad);
		gsi_wake(the_registry.gsi);
		return 0;
	case SEND_SOON:
		return tracked_send(hca, message);
	case CLAIM:
		return hca_port_claim(hca, message->space, message->port);
	case LISTEN:
		return hca_port_listen(hca, message->space, message->port);
	case RELEASE:
		hca_port_release(hca, message->space, message->port);
		return 0;
	case OWNER:
		return hca_port_owner(message->space, message->port);
	case SLOT:
		error = hca_manager_slot(hca, &slot);
		return error ? error : (int64_t)slot;
	case TAKE:
		take_event(event, message->number);
		return 0;
	case COUNTER:
		return (int64_t)counter_read(hca, (enum counter)message->number);
	case EXPLAINED:
		return was_explained((enum explain_rule)message->number);
	case FORK_CLAIM:
		return fork_and_claim(hca, message->space, message->port);
	case NO_MANAGER:
		management = &process_management;
		return 0;
	case SWITCH_USER:
		return setuid((uid_t)message->number) ? -errno : 0;
	case SEND_AND_LEAVE:
		gsi_send(hca, &message->path, message->mad);
		gsi_flush(the_registry.gsi);
		_exit(0);
	case LEAVE:
		_exit(0);
	}
	return 0;
}

/* Runs as an agent. @host: descriptor of its network namespace; -1: that of the test. */
static inline void __attribute__((noreturn)) be_agent(int orders, const char *link, int host)
{
	struct order_message message;
	struct hca *hca;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (host >= 0 && setns(host, CLONE_NEWNET))
		_exit(1);
	if (link)
		setenv("SOFTHCA_LINK", link, 1);
	hca = hca_device(0);
	management = &test_management;
	while (recv(orders, &message, sizeof(message), 0) == sizeof(message)) {
		struct answer_message answer = {.result = 0};

		answer.result = obey(hca, &message, &answer.event);
		if (send(orders, &answer, sizeof(answer), 0) != sizeof(answer))
			break;
	}
	_exit(0);
}

/* ---- in the test ----------------------------------------------------------------------------------------------- */

/* Agents that a failing test would leave running. */
static struct agent living[8];

static inline int end_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(living) / sizeof(living[0]); i++) {
		if (!living[i].pid)
			continue;
		kill(living[i].pid, SIGKILL);
		close(living[i].orders);
		waitpid(living[i].pid, NULL, 0);
		living[i].pid = 0;
	}
	return 0;
}

/* Starts an agent. @link: SOFTHCA_LINK, or NULL; @host: see be_agent(). */
static inline struct agent start_agent_on(int host, const char *link)
{
	struct agent agent;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	agent.pid = fork();
	agent.orders = ends[0];
	if (!agent.pid) {
		close(ends[0]);
		be_agent(ends[1], link, host);
	}
	close(ends[1]);
	for (size_t i = 0; i < sizeof(living) / sizeof(living[0]); i++) {
		if (living[i].pid)
			continue;
		living[i] = agent;
		break;
	}
	return agent;
}

static inline struct agent start_agent(const char *link)
{
	return start_agent_on(-1, link);
}

static inline void tell_begin(const struct agent *agent, const struct order_message *message)
{
	assert_int_equal(send(agent->orders, message, sizeof(*message), 0), sizeof(*message));
}

static inline int64_t tell_end(const struct agent *agent, struct event *event)
{
	struct answer_message answer;

	assert_int_equal(recv(agent->orders, &answer, sizeof(answer), 0), sizeof(answer));
	if (event)
		*event = answer.event;
	return answer.result;
}

static inline int64_t tell(const struct agent *agent, const struct order_message *message, struct event *event)
{
	tell_begin(agent, message);
	return tell_end(agent, event);
}

static inline int64_t tell_port(const struct agent *agent, enum order order, uint16_t space, uint16_t port)
{
	return tell(agent, &(const struct order_message){.order = order, .space = space, .port = port}, NULL);
}

static inline int64_t ask(const struct agent *agent, enum order order, uint64_t number)
{
	return tell(agent, &(const struct order_message){.order = order, .number = number}, NULL);
}

static inline union ibv_gid gid_of_text(const char *text)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (inet_pton(AF_INET, text, gid.raw + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, text, gid.raw), 1);
	return gid;
}

static inline struct order_message send_message(enum order order, const char *from, const char *to,
						const uint8_t mad[MAD_BYTES])
{
	struct order_message message = {.order = order,
					.path = {.source = gid_of_text(from),
						 .destination = gid_of_text(to),
						 .type = IBV_GID_TYPE_ROCE_V2,
						 .traffic_class = 8,
						 .hop_limit = 64}};

	memcpy(message.mad, mad, MAD_BYTES);
	return message;
}

static inline int64_t tell_send(const struct agent *agent, enum order order, const char *from, const char *to,
				const uint8_t mad[MAD_BYTES])
{
	struct order_message message = send_message(order, from, to, mad);

	return tell(agent, &message, NULL);
}

/* Returns the next event, waiting up to @ms. */
static inline struct event next_event(const struct agent *agent, uint64_t ms)
{
	struct event event;

	tell(agent, &(const struct order_message){.order = TAKE, .number = ms}, &event);
	return event;
}

enum { SOON_MS = 5000, SILENCE_MS = 150 };

#define expect_received(agent, from, to, mad) expect_received_at(__LINE__, agent, from, to, mad)

static inline void expect_received_at(int line, const struct agent *agent, const char *from, const char *to,
				      const uint8_t mad[MAD_BYTES])
{
	struct event event = next_event(agent, SOON_MS);
	union ibv_gid source = gid_of_text(from), destination = gid_of_text(to);

	if (event.kind != RECEIVED) {
		print_message("# line %d: event %d in place of a datagram\n", line, (int)event.kind);
		fail();
	}
	assert_memory_equal(event.mad, mad, MAD_BYTES);
	assert_memory_equal(&event.path.source, &source, sizeof(source));
	assert_memory_equal(&event.path.destination, &destination, sizeof(destination));
}

static inline void expect_lost(const struct agent *agent, const uint8_t mad[MAD_BYTES], enum mad_loss why)
{
	struct event event = next_event(agent, SOON_MS);

	assert_int_equal(event.kind, LOST);
	assert_memory_equal(event.mad, mad, MAD_BYTES);
	assert_int_equal(event.why, why);
}

static inline void expect_nothing(const struct agent *agent)
{
	assert_int_equal(next_event(agent, SILENCE_MS).kind, NOTHING);
}

/* Ends the agent with @signal; 0: the agent exits normally. */
static inline void end_agent(struct agent *agent, int signal)
{
	int status;

	if (signal)
		kill(agent->pid, signal);
	else
		send(agent->orders, &(struct order_message){.order = LEAVE}, sizeof(struct order_message),
		     MSG_NOSIGNAL);
	close(agent->orders);
	for (size_t i = 0; i < sizeof(living) / sizeof(living[0]); i++)
		if (living[i].pid == agent->pid)
			living[i].pid = 0;
	assert_int_equal(waitpid(agent->pid, &status, 0), agent->pid);
	assert_int_equal(status, signal);
}

#endif
