/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of the host part (link/host/host.h). Each case runs in its own process, with its own slots. */
#include "test_case.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "beyond.h"
#include "kernel_has.h"
#include "core/epoch.h"
#include "explain/explain.h"
#include "process/commands.h"
#include "link/host/hello.h"
#include "link/host/table.h"
#include "link/shm/shm.h"

enum { OTHER_USER = 65533, UNABLE = 77 };

static uint32_t own;

static void give_up(const char *what)
{
	printf("# %s\n", what);
	fflush(stdout);
	_exit(1);
}

/* Expects the newest explanation to be of @rule and to begin with the format, without the name of the device. */
static void __attribute__((format(printf, 2, 3))) expect(enum explain_rule rule, const char *format, ...)
{
	char expected[600], line[1200];
	struct explain_record record;
	va_list args;

	va_start(args, format);
	vsnprintf(expected, sizeof(expected), format, args);
	va_end(args);
	if (!explain_previous(hca_device(0), 0, 0, &record))
		give_up("nothing was explained");
	explain_render("mlx5_0", &record, line, sizeof(line));
	if (record.rule != rule || strncmp(line, "mlx5_0: ", 8) || strncmp(line + 8, expected, strlen(expected)))
		give_up(line);
}

/* Runs @body in a child, which has no slot, no connection and no thread. */
static void in_a_child(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		alarm(20);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == UNABLE)
		skip();
	assert_int_equal(status, 0);
}

static void claim(void)
{
	if (host_claim_slot(&own))
		give_up("no slot");
}

static void names_taken(void)
{
	const struct rlimit limit = {HOST_SLOTS + 100, HOST_SLOTS + 100};
	uint32_t number;

	/* Uses the names of a new network namespace, so that other tests find theirs free. */
	if ((unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) || setrlimit(RLIMIT_NOFILE, &limit))
		_exit(UNABLE);
	for (number = 1; number < HOST_SLOTS; number++) {
		struct host_name name = host_slot_name(number);

		if (host_bind(&name, SOCK_SEQPACKET) < 0)
			_exit(UNABLE);
	}
	claim();
	expect(RULE_HOST_NAMES_TAKEN,
	       "256 names of slots in a row are taken: queue pairs 0x%x to 0x%x got a fallback name, which other processes need longer to find. [102 HOST_NAMES_TAKEN; ",
	       own, own + (1u << HOST_SLOT_BITS) - 1);
}

static void no_more_descriptors(void)
{
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 1024});
}

static int connect_to(uint32_t qpn)
{
	struct host_name name = host_slot_name(host_slot_of(qpn));
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	if (connect(fd, (struct sockaddr *)&name.address, name.length))
		give_up("no connection");
	return fd;
}

static void take_connections(void)
{
	pthread_mutex_lock(&host_table.lock);
	host_take_connections();
	pthread_mutex_unlock(&host_table.lock);
}

static void connect_and_say(const struct host_hello *hello, size_t length, int memory)
{
	struct iovec bytes = {(void *)(uintptr_t)hello, length};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = control.space,
				 .msg_controllen = sizeof(control.space)};

	claim();
	memcpy(CMSG_DATA(&control.header), &memory, sizeof(memory));
	if (sendmsg(connect_to(own), &message, 0) != (ssize_t)length)
		give_up("nothing was sent");
	take_connections();
}

static struct host_hello hello(void)
{
	return (struct host_hello){.magic = HOST_MAGIC, .version = HOST_VERSION, .memory = shm_carrier.memory_size()};
}

/* ---- the cases --------------------------------------------------------------------------------------------------- */

static void no_socket(void)
{
	no_more_descriptors();
	claim();
	expect(RULE_HOST_NO_SOCKET,
	       "queue pairs 0x%x to 0x%x have no name on this host, because no abstract UNIX socket could be created (EMFILE): only this process can reach them. [200 HOST_NO_SOCKET; ",
	       own, own + 1023);
}

static void no_thread(void)
{
	claim();
	/* The thread sleeps on one descriptor. */
	no_more_descriptors();
	host_accept();
	expect(RULE_HOST_NO_THREAD,
	       "the device thread could not be started (EAGAIN): no other process can connect to this one. [201 "
	       "HOST_NO_THREAD; ");
}

static void become_other_user(void)
{
	if (setresuid(OTHER_USER, OTHER_USER, OTHER_USER))
		_exit(UNABLE);
	epoch_enter();
	if (host_peer_of(own))
		give_up("connected");
	epoch_leave();
	expect(RULE_HOST_OTHER_USER,
	       "process %d belongs to user 0, this one to user %u: they are not connected. [202 HOST_OTHER_USER; ",
	       getppid(), (unsigned int)OTHER_USER);
}

static void other_user(void)
{
	if (geteuid())
		_exit(UNABLE);
	claim();
	in_a_child(become_other_user);
}

static void no_connection(void)
{
	no_more_descriptors();
	epoch_enter();
	if (host_peer_of(0x4711))
		give_up("connected");
	epoch_leave();
	expect(RULE_HOST_NO_CONNECTION,
	       "no connection could be made to a process that is not known, which has queue pair 0x4711: EMFILE. [203 "
	       "HOST_NO_CONNECTION; ");
}

static void hello_shape(void)
{
	const struct host_hello right = hello();

	connect_and_say(&right, sizeof(right) - 1, host_memory_create());
	expect(RULE_HOST_HELLO_SHAPE,
	       "process %d requests a connection with 23 bytes and 1 descriptors instead of 24 bytes and one descriptor: refused. [204 HOST_HELLO_SHAPE; ",
	       getpid());
}

static void hello_version(void)
{
	struct host_hello wrong = hello();

	wrong.version = 99;
	connect_and_say(&wrong, sizeof(wrong), host_memory_create());
	expect(RULE_HOST_HELLO_VERSION,
	       "process %d requests a connection of version 99 over %zu bytes of memory; this process has version %u and %zu bytes: refused. [205 HOST_HELLO_VERSION; ",
	       getpid(), shm_carrier.memory_size(), HOST_VERSION, shm_carrier.memory_size());
}

static void hello_seals(void)
{
	const struct host_hello right = hello();

	connect_and_say(&right, sizeof(right), memfd_create("test", MFD_ALLOW_SEALING));
	expect(RULE_HOST_HELLO_SEALS,
	       "the memory that process %d offers for a connection has the seals 0x0 and must have 0x7: refused. [206 "
	       "HOST_HELLO_SEALS; ",
	       getpid());
}

static void hello_memory(void)
{
	const struct host_hello right = hello();
	int memory = memfd_create("test", MFD_ALLOW_SEALING);

	fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	connect_and_say(&right, sizeof(right), memory);
	expect(RULE_HOST_HELLO_MEMORY,
	       "the memory that process %d offers for a connection has 0 bytes, or is not ordinary memory; it must have %zu: refused. [207 HOST_HELLO_MEMORY; ",
	       getpid(), shm_carrier.memory_size());
}

static void strangers(void)
{
	claim();
	for (int i = 0; i < 17; i++)
		connect_to(own);
	take_connections();
	expect(RULE_HOST_STRANGERS,
	       "16 connections to this process have sent no request, the oldest of them from process %d: that "
	       "one and the newest are closed. [208 HOST_STRANGERS; ",
	       getpid());
}

static void not_accepted(void)
{
	const struct host_hello right = hello();
	char name[40];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", host_memory_create());
	connect_and_say(&right, sizeof(right), open(name, O_RDONLY));
	expect(RULE_HOST_NOT_ACCEPTED,
	       "a connection from process %d could not be accepted: EACCES. [209 HOST_NOT_ACCEPTED; ", getpid());
}

/* Another process; it waits to be ended afterwards. */
static pid_t connect_three_times(int ready)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	for (int i = 0; i < 3; i++)
		if (host_hello_send(connect_to(own), host_memory_create()))
			_exit(1);
	if (write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void connections(void)
{
	int ready[2];
	pid_t pid;
	char byte;

	claim();
	if (pipe(ready))
		give_up("no pipe");
	pid = connect_three_times(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		give_up("no connections");
	take_connections();
	kill(pid, SIGKILL);
	expect(RULE_HOST_CONNECTIONS,
	       "process %d has 2 connections to this process already: another one is refused. [121 HOST_CONNECTIONS; ",
	       pid);
}

#define CASE(rule, body)                                                                                               \
	BEYOND_CASE(HOST_##rule)                                                                                       \
	{                                                                                                              \
		in_a_child(body);                                                                                      \
	}

/* The child's device starts its thread. */
#define CASE_WITH_THREADS(rule, body)                                                                                  \
	BEYOND_CASE(HOST_##rule)                                                                                       \
	{                                                                                                              \
		if (!kernel_has_threads_after_fork())                                                                  \
			skip();                                                                                        \
		in_a_child(body);                                                                                      \
	}

CASE(NO_SOCKET, no_socket)
CASE(NAMES_TAKEN, names_taken)
CASE(NO_THREAD, no_thread)
CASE(OTHER_USER, other_user)
CASE(NO_CONNECTION, no_connection)
CASE(HELLO_SHAPE, hello_shape)
CASE(HELLO_VERSION, hello_version)
CASE(HELLO_SEALS, hello_seals)
CASE(HELLO_MEMORY, hello_memory)
CASE_WITH_THREADS(STRANGERS, strangers)
CASE_WITH_THREADS(CONNECTIONS, connections)
CASE(NOT_ACCEPTED, not_accepted)
