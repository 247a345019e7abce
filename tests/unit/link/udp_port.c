/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of several processes has the RoCE port: children start to receive and are killed, stopped or end, and the test
 * checks from outside which one has the port. A stranger sends datagrams that are too short, which the receiving
 * process counts: the counts show which one receives, and whether any datagram was lost.
 */
#include "test_case.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "core/descriptor.h"
#include "link/host/hello.h"
#include "link/host/names.h"
#include "../support/udp_fixture.h"

enum { CHILDREN = 5, OTHER_USER = 65533, SOME = 100 };

/* State that the children report while they run. */
static struct board {
	uint64_t taken[CHILDREN];     /* atomic; number of datagrams */
	uint64_t takeovers[CHILDREN]; /* atomic */
	uint32_t end[CHILDREN];       /* atomic; 1: exit */
	int fate[CHILDREN];           /* atomic; signal to raise with the next datagram received but not handled; 0:
				   * none; or… */
} * board;
#define THEFT (-1)        /* …another process then receives the datagram from the socket */
static uint32_t children; /* started in this test, which need not start all of them at once */

/* ---- processes --------------------------------------------------------------------------------------------------- */

struct process {
	pid_t pid;
	uint32_t number; /* index on the board */
	int told;        /* pipe with reports of the child */
};

static uint32_t own_number = CHILDREN;

static void report(void)
{
	__atomic_store_n(&board->takeovers[own_number], counter_read(hca_device(0), COUNTER_UDP_TAKEOVERS),
			 __ATOMIC_SEQ_CST);
	__atomic_store_n(&board->taken[own_number], counter_read(hca_device(0), COUNTER_UDP_MALFORMED),
			 __ATOMIC_SEQ_CST);
}

ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t length = __real_recvmsg(fd, message, flags);
	int fate;

	/* Only datagrams have a sender address. */
	if (length < 0 || !message->msg_name || own_number >= CHILDREN)
		return length;
	fate = __atomic_exchange_n(&board->fate[own_number], 0, __ATOMIC_SEQ_CST);
	/* This thread gets the signal before it does anything else. */
	if (fate != THEFT)
		raise(fate);
	else if (flags & MSG_PEEK)
		__real_recvmsg(fd, &(struct msghdr){0}, flags & ~MSG_PEEK);
	return length;
}

/* Runs after the destructors of the library, which has handled everything it received. */
static void __attribute__((destructor(101))) report_last(void)
{
	if (own_number < CHILDREN)
		report();
}

/* Receives until it is killed or ordered to exit; reports its explanations by rule. */
static void __attribute__((noreturn)) child(int tell, uid_t user)
{
	struct explain_record record;
	uint64_t seen = 0, newest = 0, before;
	uint8_t begun = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Sockets of the test that the child inherits would stay open when the test closes them. */
	tell = dup2(tell, STDERR_FILENO + 1);
	close_range(STDERR_FILENO + 2, ~0u, 0);
	if (user && setuid(user))
		_exit(1);
	udp_begin(hca_device(0));
	if (write(tell, &begun, 1) != 1)
		_exit(1);
	for (;;) {
		report();
		if (__atomic_load_n(&board->end[own_number], __ATOMIC_SEQ_CST))
			exit(0);
		for (before = 0; explain_previous(hca_device(0), 0, before, &record) && record.serial > seen;
		     before = record.serial) {
			uint8_t rule = (uint8_t)record.rule;

			newest = before ? newest : record.serial;
			if (write(tell, &rule, 1) != 1)
				_exit(1);
		}
		seen = newest;
		usleep(2000);
	}
}

static struct process begin_process(uid_t user)
{
	struct process process = {.number = children++ % CHILDREN};
	uint8_t begun;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	board->taken[process.number] = board->takeovers[process.number] = board->end[process.number] = 0;
	board->fate[process.number] = 0;
	process.pid = fork();
	assert_true(process.pid >= 0);
	if (!process.pid) {
		own_number = process.number;
		child(ends[1], user);
	}
	close(ends[1]);
	process.told = ends[0];
	assert_int_equal(read(process.told, &begun, 1), 1);
	return process;
}

static void end_process(struct process *process)
{
	kill(process->pid, SIGKILL);
	assert_int_equal(waitpid(process->pid, NULL, 0), process->pid);
	close(process->told);
	process->pid = 0;
}

static void stop_process(const struct process *process)
{
	int status;

	kill(process->pid, SIGSTOP);
	assert_int_equal(waitpid(process->pid, &status, WUNTRACED), process->pid);
	assert_true(WIFSTOPPED(status));
}

static bool tells(const struct process *process, enum explain_rule rule, int ms)
{
	uint8_t told;

	while (stranger_waits(process->told, ms) && read(process->told, &told, 1) == 1)
		if (told == rule)
			return true;
	return false;
}

/* ---- the port ---------------------------------------------------------------------------------------------------- */

static pid_t owner(void)
{
	struct udp_owner found;

	return udp_find_receiver(UDP_TEST_PORT, &found) ? found.pid : 0;
}

static uint64_t ms_now(void)
{
	return clock_now_ns() / 1000000;
}

/* Waits until a process other than @before has the port. */
static pid_t wait_for_owner(pid_t before)
{
	uint64_t end = ms_now() + 10000;
	pid_t pid;

	do {
		pid = owner();
		if (pid && pid != before)
			return pid;
		usleep(500);
	} while (ms_now() < end);
	return 0;
}

TEST(others_take_over)
{
	struct process processes[CHILDREN];
	uint64_t fastest = UINT64_MAX;
	pid_t pid;

	for (int i = 0; i < CHILDREN; i++)
		processes[i] = begin_process(0);
	pid = wait_for_owner(0);
	assert_int_equal(pid, processes[0].pid);
	for (int left = CHILDREN; left > 1; left--) {
		uint64_t begin = ms_now();
		pid_t next;

		for (int i = 0; i < CHILDREN; i++)
			if (processes[i].pid == pid)
				end_process(&processes[i]);
		next = wait_for_owner(pid);
		assert_int_not_equal(next, 0);
		if (ms_now() - begin < fastest)
			fastest = ms_now() - begin;
		pid = next;
	}
	/* The longest time depends more on the machine than on the library. */
	assert_in_range(fastest, 0, 100);
	for (int i = 0; i < CHILDREN; i++)
		if (processes[i].pid)
			end_process(&processes[i]);
}

/* Several processes at once, of which all but one lose the race, and then all but one of the rest. */
TEST(many_end_at_once)
{
	struct process processes[CHILDREN];

	for (int i = 0; i < CHILDREN; i++)
		processes[i] = begin_process(0);
	for (int i = 0; i < CHILDREN - 1; i++)
		end_process(&processes[i]);
	assert_int_equal(wait_for_owner(processes[0].pid), processes[CHILDREN - 1].pid);
	end_process(&processes[CHILDREN - 1]);
}

TEST(a_program_has_the_port)
{
	int program = stranger_open(AF_INET, UDP_TEST_PORT);
	struct process first, second;
	uint64_t begin;

	first = begin_process(0);
	second = begin_process(0);
	assert_true(tells(&first, RULE_UDP_PORT_TAKEN, 5000));
	/* It has the name, and retries on its own. */
	assert_false(tells(&second, RULE_UDP_PORT_TAKEN, 300));
	close(program);
	begin = ms_now();
	assert_int_equal(wait_for_owner(getpid()), first.pid);
	assert_in_range(ms_now() - begin, 0, 5000);
	end_process(&first);
	assert_int_equal(wait_for_owner(first.pid), second.pid);
	end_process(&second);
}

TEST(another_user_has_the_port)
{
	struct process first, second;

	if (geteuid())
		skip();
	first = begin_process(0);
	assert_int_equal(wait_for_owner(0), first.pid);
	second = begin_process(OTHER_USER);
	assert_true(tells(&second, RULE_UDP_PORT_OTHER_USER, 5000));
	/* Reported once, however often it retries. */
	assert_false(tells(&second, RULE_UDP_PORT_OTHER_USER, 1500));
	end_process(&first);
	assert_int_equal(wait_for_owner(first.pid), second.pid);
	end_process(&second);
}

/* Starts a process of another user that takes the plain name of the port, and listens if @listens. */
static pid_t squat(bool listens)
{
	const struct host_name name = host_name("softhca/1/port/%d", UDP_TEST_PORT);
	int ready[2], fd;
	pid_t pid;
	char word;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (setuid(OTHER_USER))
			_exit(1);
		fd = host_bind(&name, SOCK_STREAM);
		if (fd < 0 || (listens && listen(fd, 1)) || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &word, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* It prevents no process from receiving, and processes of one user still succeed each other. */
static void another_user_has_the_name(bool listens)
{
	struct process first, second;
	pid_t squatter = squat(listens);

	first = begin_process(0);
	assert_int_equal(wait_for_owner(0), first.pid);
	second = begin_process(0);
	/* Until it shares the socket. */
	usleep(listens ? 500000 : 3000000);
	assert_int_equal(owner(), first.pid);
	assert_false(tells(&second, RULE_UDP_PORT_TAKEN, 10));
	end_process(&first);
	assert_int_equal(wait_for_owner(first.pid), second.pid);
	end_process(&second);
	kill(squatter, SIGKILL);
	waitpid(squatter, NULL, 0);
}

TEST(a_name_that_another_user_has)
{
	if (geteuid())
		skip();
	another_user_has_the_name(true);
}

TEST(a_name_at_which_another_user_does_not_listen)
{
	if (geteuid())
		skip();
	another_user_has_the_name(false);
}

/*
 * The owner of the name accepts and closes connections, or accepts none: no process spins, and all succeed when it
 * ends.
 */
TEST(a_name_of_no_use)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "softhca/1/port/%d", UDP_TEST_PORT);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	int squatter = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), connections = 0;
	struct process process;
	uint64_t end;

	assert_int_equal(bind(squatter, (struct sockaddr *)&name, size), 0);
	process = begin_process(0);
	usleep(50000);
	assert_int_equal(listen(squatter, 16), 0);
	for (end = ms_now() + 1500; ms_now() < end;) {
		if (!stranger_waits(squatter, 50))
			continue;
		close(accept(squatter, NULL, NULL));
		connections++;
	}
	assert_in_range(connections, 1, 60);
	assert_int_equal(owner(), 0);
	close(squatter);
	assert_int_equal(wait_for_owner(0), process.pid);
	end_process(&process);
}

/*
 * ---- datagrams waiting in the socket
 * ---------------------------------------------------------------------------------
 */

static uint64_t taken(const struct process *process)
{
	return __atomic_load_n(&board->taken[process->number], __ATOMIC_SEQ_CST);
}

static void send_datagrams(int stranger, uint32_t count, useconds_t pause)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(UDP_TEST_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(sendto(stranger, "short", 5, 0, (const struct sockaddr *)&to, sizeof(to)), 5);
		if (pause)
			usleep(pause);
	}
}

static bool waits_for_taken(const struct process *process, uint64_t least)
{
	uint64_t end = ms_now() + 10000;

	while (taken(process) < least && ms_now() < end)
		usleep(1000);
	return taken(process) >= least;
}

/* Sends until @process receives some, as it does once it owns the port. */
static bool receives(int stranger, const struct process *process)
{
	uint64_t end = ms_now() + 10000, before = taken(process);

	while (taken(process) == before && ms_now() < end)
		send_datagrams(stranger, 1, 5000);
	return taken(process) != before;
}

/* Returns the inode of the socket that is bound to the port (proc(5)); 0: none. */
static unsigned long port_inode(void)
{
	FILE *file = fopen("/proc/net/udp6", "re");
	unsigned long inode = 0, found = 0;
	unsigned int port;
	char line[512];

	while (file && !found && fgets(line, sizeof(line), file))
		if (sscanf(line, " %*u: %*[0-9A-F]:%x %*s %*s %*s %*s %*s %*u %*u %lu", &port, &inode) == 2 &&
		    port == UDP_TEST_PORT)
			found = inode;
	if (file)
		fclose(file);
	return found;
}

static bool shares_port(const struct process *process, unsigned long inode)
{
	char path[64], wanted[64], link[64];

	snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
	for (int fd = 0; fd < 8192; fd++) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)process->pid, fd);
		length = readlink(path, link, sizeof(link) - 1);
		link[length > 0 ? length : 0] = '\0';
		if (!strcmp(link, wanted))
			return true;
	}
	return false;
}

static void begin_processes(struct process *processes, int count)
{
	uint64_t end = ms_now() + 10000;

	for (int i = 0; i < count; i++) {
		processes[i] = begin_process(0);
		while (!shares_port(&processes[i], port_inode()) && ms_now() < end)
			usleep(1000);
		assert_true(shares_port(&processes[i], port_inode()));
	}
	assert_int_equal(owner(), processes[0].pid);
}

static void end_processes(struct process *processes, int count)
{
	for (int i = 0; i < count; i++)
		if (processes[i].pid)
			end_process(&processes[i]);
}

TEST(waiting_datagrams_survive_their_reader)
{
	struct process processes[2];
	int stranger = stranger_open(AF_INET, 0);

	begin_processes(processes, 2);
	stop_process(&processes[0]);
	send_datagrams(stranger, SOME, 0);
	end_process(&processes[0]);
	assert_true(waits_for_taken(&processes[1], SOME));
	usleep(50000);
	assert_int_equal(taken(&processes[1]), SOME);
	assert_int_equal(owner(), processes[1].pid);
	end_processes(processes, 2);
	close(stranger);
}

/* The owner is killed or stopped between receiving a datagram from the socket and handling it. */
TEST(a_datagram_in_progress_survives_too)
{
	struct process processes[2];
	int stranger = stranger_open(AF_INET, 0), status;

	begin_processes(processes, 2);
	__atomic_store_n(&board->fate[processes[0].number], SIGSTOP, __ATOMIC_SEQ_CST);
	send_datagrams(stranger, 1, 0);
	assert_int_equal(waitpid(processes[0].pid, &status, WUNTRACED), processes[0].pid);
	assert_true(WIFSTOPPED(status));
	assert_true(waits_for_taken(&processes[1], 1));
	/* More are waiting when it continues with that one: it discards none of them. */
	stop_process(&processes[1]);
	send_datagrams(stranger, SOME, 0);
	kill(processes[0].pid, SIGCONT);
	assert_true(waits_for_taken(&processes[0], 1 + SOME));
	kill(processes[1].pid, SIGCONT);
	__atomic_store_n(&board->fate[processes[0].number], SIGKILL, __ATOMIC_SEQ_CST);
	send_datagrams(stranger, 1, 0);
	assert_int_equal(waitpid(processes[0].pid, &status, 0), processes[0].pid);
	assert_true(WIFSIGNALED(status));
	close(processes[0].told);
	processes[0].pid = 0;
	assert_true(waits_for_taken(&processes[1], 2));
	end_processes(processes, 2);
	close(stranger);
}

/*
 * Another process, which considered the owner stopped, received at the same time: the datagrams it left are handled,
 * not discarded.
 */
TEST(datagrams_taken_by_another_are_kept)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(UDP_TEST_PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct process processes[2];
	int stranger = stranger_open(AF_INET, 0);

	begin_processes(processes, 2);
	for (uint64_t round = 1; round <= SOME; round++) {
		/* Both are waiting when it checks. */
		stop_process(&processes[0]);
		__atomic_store_n(&board->fate[processes[0].number], THEFT, __ATOMIC_SEQ_CST);
		assert_int_equal(sendto(stranger, "short", 5, 0, (const struct sockaddr *)&to, sizeof(to)), 5);
		assert_int_equal(sendto(stranger, "other", 5, 0, (const struct sockaddr *)&to, sizeof(to)), 5);
		kill(processes[0].pid, SIGCONT);
		assert_true(waits_for_taken(&processes[0], 2 * round));
	}
	end_processes(processes, 2);
	close(stranger);
}

/* A process that ends while datagrams arrive leaves none half-handled. */
TEST(an_ending_process_loses_nothing)
{
	struct process processes[CHILDREN];
	int stranger = stranger_open(AF_INET, 0), status;
	uint64_t all = 0, takeovers = 0, end = ms_now() + 10000;

	begin_processes(processes, CHILDREN);
	for (int left = CHILDREN; left > 1; left--) {
		pid_t pid = wait_for_owner(0);

		send_datagrams(stranger, SOME, 50);
		for (int i = 0; i < CHILDREN; i++) {
			if (processes[i].pid != pid)
				continue;
			__atomic_store_n(&board->end[processes[i].number], 1, __ATOMIC_SEQ_CST);
			send_datagrams(stranger, SOME, 50);
			assert_int_equal(waitpid(pid, &status, 0), pid);
			assert_int_equal(status, 0);
			close(processes[i].told);
			processes[i].pid = 0;
		}
	}
	do {
		usleep(1000);
		all = 0;
		for (int i = 0; i < CHILDREN; i++)
			all += taken(&processes[i]);
	} while (all < 2 * SOME * (CHILDREN - 1) && ms_now() < end);
	for (int i = 0; i < CHILDREN; i++)
		takeovers += __atomic_load_n(&board->takeovers[i], __ATOMIC_SEQ_CST);
	/*
	 * There is one takeover for each process that ends. If it ends so slowly that others consider it stopped, one of
	 * them receives meanwhile: a further takeover, in which a datagram may be handled twice (link/udp/DESIGN.md).
	 */
	assert_in_range(takeovers, CHILDREN - 1, 2 * CHILDREN * CHILDREN);
	assert_in_range(all, 2 * SOME * (CHILDREN - 1), 2 * SOME * (CHILDREN - 1) + takeovers - (CHILDREN - 1));
	end_processes(processes, CHILDREN);
	close(stranger);
}

/* If the owner is stopped, another process receives in its place; when the owner continues, it receives again. */
TEST(a_stopped_process_is_replaced)
{
	struct process processes[3];
	int stranger = stranger_open(AF_INET, 0), second, third;
	uint64_t before;

	begin_processes(processes, 3);
	stop_process(&processes[0]);
	send_datagrams(stranger, SOME, 0);
	for (uint64_t end = ms_now() + 10000; !taken(&processes[1]) && !taken(&processes[2]) && ms_now() < end;)
		usleep(1000);
	second = taken(&processes[1]) ? 1 : 2;
	third = 3 - second;
	assert_true(waits_for_taken(&processes[second], SOME));
	assert_true(tells(&processes[second], RULE_UDP_PORT_SILENT, 5000));
	assert_true(receives(stranger, &processes[second]));
	assert_int_equal(taken(&processes[0]) + taken(&processes[third]), 0);
	stop_process(&processes[second]);
	send_datagrams(stranger, SOME, 0);
	assert_true(waits_for_taken(&processes[third], 1));
	kill(processes[second].pid, SIGCONT);
	kill(processes[0].pid, SIGCONT);
	assert_true(receives(stranger, &processes[0]));
	/* Until both have noticed. */
	send_datagrams(stranger, SOME, 2000);
	before = taken(&processes[second]) + taken(&processes[third]);
	send_datagrams(stranger, SOME, 200);
	usleep(20000);
	assert_int_equal(taken(&processes[second]) + taken(&processes[third]), before);
	assert_int_equal(owner(), processes[0].pid);
	end_processes(processes, 3);
	close(stranger);
}

/*
 * ---- invalid replies from the owner
 * -----------------------------------------------------------------------------------
 */

static struct sockaddr_un port_name(socklen_t *size)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "softhca/1/port/%d", UDP_TEST_PORT);

	*size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	return name;
}

/* Takes the place of the owner. */
static int take_name(void)
{
	socklen_t size;
	struct sockaddr_un name = port_name(&size);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&name, size), 0);
	assert_int_equal(listen(fd, 16), 0);
	return fd;
}

static int memory_file(off_t bytes, unsigned int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* The others survive any reply of the owner that is not the port; the owner may send the right one before it ends. */
TEST(other_sockets_are_refused)
{
	struct udp_share wrong[] = {
		{stranger_open(AF_INET, UDP_TEST_PORT + 1), host_memory_make(UDP_PAGE_BYTES)},
		{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), host_memory_make(UDP_PAGE_BYTES)},
		{open("/dev/zero", O_RDWR | O_CLOEXEC), host_memory_make(UDP_PAGE_BYTES)},
		{-1, memory_file(UDP_PAGE_BYTES, F_SEAL_GROW)},
		{-1, memory_file(4 * UDP_PAGE_BYTES, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)},
		{-1, open("/dev/zero", O_RDWR | O_CLOEXEC)},
	};
	int stranger = stranger_open(AF_INET, 0);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int name = take_name(), port = stranger_open(AF_INET, UDP_TEST_PORT), connection;
		struct process process = begin_process(0);

		connection = accept4(name, NULL, NULL, SOCK_CLOEXEC);
		assert_true(connection >= 0);
		if (wrong[i].socket < 0)
			wrong[i].socket = dup(port);
		assert_int_equal(udp_handover_send(connection, &wrong[i]), 0);
		close(wrong[i].socket);
		close(wrong[i].page);
		if (i % 2)
			assert_true(tells(&process, RULE_UDP_PORT_NOT_GIVEN, 5000));
		close(name);
		close(connection);
		close(port);
		assert_true(receives(stranger, &process));
		end_process(&process);
	}
	close(stranger);
}

/* Gets the socket and the page from the owner, as any program of the user can. */
static struct udp_share get_share(void)
{
	int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), own = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t size;
	struct sockaddr_un name = port_name(&size);
	struct udp_share share;

	assert_int_equal(connect(connection, (struct sockaddr *)&name, size), 0);
	assert_true(stranger_waits(connection, 5000));
	assert_int_equal(udp_handover_receive(connection, 0, own, UDP_TEST_PORT, &share), 0);
	close(own);
	close(connection);
	return share;
}

/* The socket blocks, and the page has random contents: packets are still received. */
TEST(sharing_processes_cannot_stop_reception)
{
	struct process processes[2];
	int stranger = stranger_open(AF_INET, 0);
	struct udp_share share;
	struct udp_turn *turn;
	uint32_t draw = 1;

	begin_processes(processes, 2);
	share = get_share();
	turn = udp_turn_map(share.page);
	assert_non_null(turn);
	assert_int_equal(fcntl(share.socket, F_SETFL, 0), 0);
	for (int i = 0; i < 400; i++) {
		send_datagrams(stranger, 1, 500);
		draw = draw * 1664525u + 1013904223u;
		__atomic_store_n(&turn->turn, draw >> 8, __ATOMIC_SEQ_CST);
		__atomic_store_n(&turn->beats, draw >> 30, __ATOMIC_SEQ_CST);
	}
	for (uint64_t end = ms_now() + 10000; taken(&processes[0]) + taken(&processes[1]) < 400 && ms_now() < end;)
		usleep(1000);
	/* A datagram may be handled twice, as on a wire. */
	assert_in_range(taken(&processes[0]) + taken(&processes[1]), 400, 800);
	end_process(&processes[0]);
	assert_true(receives(stranger, &processes[1]));
	end_process(&processes[1]);
	udp_turn_unmap(turn);
	udp_share_close(&share);
	close(stranger);
}

/*
 * The owner ends before one of the others has the socket, which no process can bind while another holds it. Both
 * succeed, whichever of them gets the name.
 */
TEST(the_holder_of_the_name_gets_the_socket)
{
	int stranger = stranger_open(AF_INET, 0);

	for (int i = 0; i < 10; i++) {
		int name = take_name(), connection[2];
		struct udp_share share = {descriptor_keep(stranger_open(AF_INET6, UDP_TEST_PORT)),
					  descriptor_keep(host_memory_make(UDP_PAGE_BYTES))};
		struct process processes[2];
		uint64_t end = ms_now() + 10000;
		bool first;

		for (int n = 0; n < 2; n++) {
			processes[n] = begin_process(0);
			connection[n] = accept4(name, NULL, NULL, SOCK_CLOEXEC);
		}
		assert_int_equal(udp_handover_send(connection[i % 2], &share), 0);
		while (!shares_port(&processes[i % 2], port_inode()) && ms_now() < end)
			usleep(1000);
		udp_share_close(&share);
		close(name);
		close(connection[!(i % 2)]);
		close(connection[i % 2]);
		assert_int_not_equal(wait_for_owner(0), 0);
		first = owner() == processes[0].pid;
		assert_true(receives(stranger, &processes[!first]));
		end_process(&processes[!first]);
		assert_true(receives(stranger, &processes[first]));
		end_process(&processes[first]);
	}
	close(stranger);
}

/* An owner that does not share the socket: the others report it. */
TEST(an_owner_that_keeps_the_port)
{
	int name = take_name();
	struct process process = begin_process(0);

	assert_true(tells(&process, RULE_UDP_PORT_KEPT, 5000));
	assert_false(tells(&process, RULE_UDP_PORT_KEPT, 600));
	close(name);
	assert_int_equal(wait_for_owner(0), process.pid);
	end_process(&process);
}

int main(void)
{
	udp_enter_namespace();
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		return 1;
	return run_cases();
}
