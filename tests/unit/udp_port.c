/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of several processes has the RoCE port: children begin to receive and are killed, one after the other, and the test
 * looks from outside who has the port now.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "udp_fixture.h"

enum { CHILDREN = 5, OTHER_USER = 65533 };

/* ---- processes --------------------------------------------------------------------------------------------------- */

struct process {
	pid_t pid;
	int told; /* pipe: what the child has to say */
};

/* Receives until it is killed; tells the first explanations it gets, by rule. */
static void __attribute__((noreturn)) child(int tell, uid_t user)
{
	struct explain_record record;
	uint64_t seen = 0;
	uint8_t begun = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Sockets of the test that the child kept open would not go when the test closes them. */
	tell = dup2(tell, STDERR_FILENO + 1);
	close_range(STDERR_FILENO + 2, ~0u, 0);
	if (user && setuid(user))
		_exit(1);
	udp_begin(hca_device(0));
	if (write(tell, &begun, 1) != 1)
		_exit(1);
	for (;;) {
		if (explain_previous(hca_device(0), 0, 0, &record) && record.serial > seen) {
			uint8_t rule = (uint8_t)record.rule;

			seen = record.serial;
			if (write(tell, &rule, 1) != 1)
				_exit(1);
		}
		usleep(5000);
	}
}

static struct process begin_process(uid_t user)
{
	struct process process;
	uint8_t begun;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	process.pid = fork();
	assert_true(process.pid >= 0);
	if (!process.pid)
		child(ends[1], user);
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

	return udp_find_owner(UDP_TEST_PORT, &found) ? found.pid : 0;
}

static uint64_t ms_now(void)
{
	return clock_now_ns() / 1000000;
}

/* Waits until another process than @before has the port. */
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

static void others_take_over(void **state)
{
	struct process processes[CHILDREN];
	uint64_t fastest = UINT64_MAX;
	pid_t pid;

	(void)state;
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
	/* How long it takes at most says more of the machine than of the library. */
	assert_in_range(fastest, 0, 100);
	for (int i = 0; i < CHILDREN; i++)
		if (processes[i].pid)
			end_process(&processes[i]);
}

/* Several at once, of which all but one lose the race, and then all but one of the others. */
static void many_end_at_once(void **state)
{
	struct process processes[CHILDREN];

	(void)state;
	for (int i = 0; i < CHILDREN; i++)
		processes[i] = begin_process(0);
	for (int i = 0; i < CHILDREN - 1; i++)
		end_process(&processes[i]);
	assert_int_equal(wait_for_owner(processes[0].pid), processes[CHILDREN - 1].pid);
	end_process(&processes[CHILDREN - 1]);
}

static void a_program_has_the_port(void **state)
{
	int program = stranger_open(AF_INET, UDP_TEST_PORT);
	struct process first, second;
	uint64_t begin;

	(void)state;
	first = begin_process(0);
	second = begin_process(0);
	assert_true(tells(&first, RULE_UDP_PORT_TAKEN, 5000));
	/* It has the name, and tries again alone. */
	assert_false(tells(&second, RULE_UDP_PORT_TAKEN, 300));
	close(program);
	begin = ms_now();
	assert_int_equal(wait_for_owner(getpid()), first.pid);
	assert_in_range(ms_now() - begin, 0, 5000);
	end_process(&first);
	assert_int_equal(wait_for_owner(first.pid), second.pid);
	end_process(&second);
}

static void another_user_has_the_port(void **state)
{
	struct process first, second;

	(void)state;
	if (geteuid())
		skip();
	first = begin_process(0);
	assert_int_equal(wait_for_owner(0), first.pid);
	second = begin_process(OTHER_USER);
	assert_true(tells(&second, RULE_UDP_PORT_OTHER_USER, 5000));
	/* Said once, however often it tries. */
	assert_false(tells(&second, RULE_UDP_PORT_OTHER_USER, 1500));
	end_process(&first);
	assert_int_equal(wait_for_owner(first.pid), second.pid);
	end_process(&second);
}

/* Who has the name takes connections and ends them, or takes none: nobody spins, and all are there when it goes. */
static void a_name_of_no_use(void **state)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "softhca/1/port/%d", UDP_TEST_PORT);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	int squatter = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), connections = 0;
	struct process process;
	uint64_t end;

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_take_over),       cmocka_unit_test(many_end_at_once),
		cmocka_unit_test(a_program_has_the_port), cmocka_unit_test(another_user_has_the_port),
		cmocka_unit_test(a_name_of_no_use),
	};

	udp_enter_namespace();
	return cmocka_run_group_tests_name("unit/udp_port", tests, NULL, NULL);
}
