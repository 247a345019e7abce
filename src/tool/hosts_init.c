/* SPDX-License-Identifier: BSD-2-Clause */
/* The init process of a host of `softhca hosts`, see hosts.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/hosts.h"
#include "tool/mounts.h"
#include "tool/tool.h"

enum { COMMANDS_AT_ONCE = 256 };

struct init {
	const struct hosts_run *run;
	uint32_t number;
	const struct hosts_ends *ends;
	pid_t program; /* 0: none, or it has ended */
	int children;  /* signalfd(2) of SIGCHLD */
	uint32_t count;
	struct hosts_command command[COMMANDS_AT_ONCE];
};

/* ---- set-up -------------------------------------------------------------------------------------------------------- */

/* Makes @names appear as /etc/hosts. Some containers lack it: then /etc becomes a directory that has one. */
static bool init_mount_names(const char *names)
{
	static const char *const except[] = {"hosts", NULL};

	if (!mount(names, "/etc/hosts", NULL, MS_BIND, NULL))
		return true;
	return errno == ENOENT && !mounts_replace("/etc", except) && !mounts_make_file("/etc/hosts") &&
	       !mount(names, "/etc/hosts", NULL, MS_BIND, NULL);
}

static void init_mount(const struct hosts_run *run)
{
	char names[PATH_MAX];

	if (run->pid_namespaces && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		tool_fail(EXIT_CANNOT_RUN, "hosts: cannot mount /proc: %m");
	snprintf(names, sizeof(names), "%s/hosts", run->directory);
	if (!init_mount_names(names))
		fprintf(stderr, "softhca: hosts: names of hosts are not known: cannot mount /etc/hosts: %m\n");
	if (run->presence)
		presence_make(run->settings);
}

static void init_set_up(struct init *init)
{
	char name[HOSTS_NAME_BYTES], number[16];
	char byte;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (read(init->ends->start, &byte, 1) != 1)
		_exit(EXIT_FAILURE);
	hosts_name(init->number, name);
	sethostname(name, strlen(name));
	snprintf(number, sizeof(number), "%u", init->number);
	setenv(HOSTS_NUMBER_VARIABLE, number, 1);
	init_mount(init->run);
	hosts_set_addresses(init->number);
}

/* Reads SIGCHLD from a descriptor, so that one poll(2) waits for everything. */
static void init_watch_children(struct init *init)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	init->children = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- the program --------------------------------------------------------------------------------------------------- */

_Noreturn static void program_exec(const struct init *init)
{
	const struct hosts_ends *ends = init->ends;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	/* Programs cannot share standard input. */
	if (init->number > 1) {
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		dup2(null, STDIN_FILENO);
	}
	if (ends->out >= 0)
		dup2(ends->out, STDOUT_FILENO);
	if (ends->error >= 0)
		dup2(ends->error, STDERR_FILENO);
	execvp(init->run->program[0], init->run->program);
	tool_fail(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN, "cannot run %s: %m", init->run->program[0]);
}

static void program_start(struct init *init)
{
	if (init->run->shell && init->number > 1)
		return;
	init->program = fork();
	if (init->program == 0)
		program_exec(init);
	if (init->program < 0)
		tool_fail(EXIT_CANNOT_RUN, "hosts: cannot start a process: %m");
}

static void program_report(struct init *init, int status)
{
	init->program = 0;
	if (write(init->ends->status, &status, sizeof(status)) != sizeof(status))
		_exit(EXIT_FAILURE);
}

/* ---- serving ------------------------------------------------------------------------------------------------------- */

static void command_remove(struct init *init, uint32_t index)
{
	init->command[index] = init->command[--init->count];
}

static void child_ended(struct init *init, pid_t pid, int status)
{
	if (pid == init->program) {
		program_report(init, status);
		return;
	}
	for (uint32_t i = 0; i < init->count; i++) {
		if (init->command[i].pid != pid)
			continue;
		hosts_serve_status(&init->command[i], status);
		command_remove(init, i);
		return;
	}
}

static void reap_children(struct init *init)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(init->children, &info, sizeof(info)) == sizeof(info))
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		child_ended(init, pid, status);
}

/* The list empties, because orphans become children of this process (PR_SET_CHILD_SUBREAPER). */
static void kill_descendants(void)
{
	char path[64];
	int child;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	do {
		FILE *children = fopen(path, "re");

		while (children && fscanf(children, "%d", &child) == 1)
			kill(child, SIGKILL);
		if (children)
			fclose(children);
	} while (waitpid(-1, NULL, 0) > 0);
}

/* The connection closes when `softhca hosts` ends. The kernel ends a PID namespace with its init process. */
static void obey_order(const struct init *init)
{
	int number;
	ssize_t length = recv(init->ends->orders, &number, sizeof(number), MSG_DONTWAIT);

	if (length == sizeof(number) && init->program)
		kill(init->program, number);
	if (length)
		return;
	if (!init->run->pid_namespaces)
		kill_descendants();
	_exit(EXIT_SUCCESS);
}

enum { FD_CHILDREN, FD_ORDERS, FD_LISTENER, FD_COMMANDS };

static void init_serve_once(struct init *init)
{
	struct pollfd fds[FD_COMMANDS + COMMANDS_AT_ONCE] = {
		[FD_CHILDREN] = {init->children, POLLIN, 0},
		[FD_ORDERS] = {init->ends->orders, POLLIN, 0},
		[FD_LISTENER] = {init->count < COMMANDS_AT_ONCE ? init->ends->listener : -1, POLLIN, 0},
	};
	uint32_t count = init->count;

	for (uint32_t i = 0; i < count; i++)
		fds[FD_COMMANDS + i] = (struct pollfd){hosts_serve_descriptor(&init->command[i]), POLLIN, 0};
	if (poll(fds, FD_COMMANDS + count, -1) < 0)
		return;
	/* Backwards, because the last command replaces a removed one. */
	for (uint32_t i = count; i-- > 0;)
		if (fds[FD_COMMANDS + i].revents && !hosts_serve_signal(&init->command[i])) {
			hosts_serve_close(&init->command[i]);
			command_remove(init, i);
		}
	if (fds[FD_CHILDREN].revents)
		reap_children(init);
	if (fds[FD_ORDERS].revents)
		obey_order(init);
	if (fds[FD_LISTENER].revents && hosts_serve(init->ends->listener, &init->command[init->count]))
		init->count++;
}

void hosts_init_main(const struct hosts_run *run, uint32_t number, const struct hosts_ends *ends)
{
	static struct init init;

	init = (struct init){.run = run, .number = number, .ends = ends};
	init_set_up(&init);
	init_watch_children(&init);
	program_start(&init);
	/* Only the program keeps these, so the pipe ends with its output. */
	close(ends->out);
	close(ends->error);
	for (;;)
		init_serve_once(&init);
}

pid_t hosts_clone(const struct hosts_run *run)
{
	int flags = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | (run->pid_namespaces ? CLONE_NEWPID : 0);

	return (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
}
