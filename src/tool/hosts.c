/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca hosts: runs a program on several hosts of one machine, see hosts.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/hosts.h"
#include "tool/tool.h"

enum {
	DEFAULT_MTU = 1500,
	LEAST_MTU = 1280, /* RFC 8200, 5 */
	MOST_MTU = 65535,
	END_MS = 2000, /* limit for programs that were sent a signal */
};

/* Output of a program, forwarded a line at a time. */
struct stream {
	int from, to;
	size_t length;
	char line[4096];
};

struct host {
	pid_t pid; /* init process */
	int start, orders, status;
	bool ended;
	int wait_status;
	struct stream stream[2];
};

static struct host hosts[HOSTS_MOST];

/* NULL in children. */
static const struct hosts_run *run_to_remove;

/* Standard output or error has no reader. */
static bool output_is_closed;

/* ---- arguments ----------------------------------------------------------------------------------------------------- */

static uint32_t count_parse(const char *text, const char *name, uint32_t least, uint32_t most)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || number < least || number > most)
		tool_fail(EXIT_WRONG_USE, "hosts: %s is a number from %u to %u", name, least, most);
	return (uint32_t)number;
}

static void hosts_options_parse(int argc, char **argv, struct hosts_run *run, struct settings *settings)
{
	static char default_shell[] = "/bin/sh";
	static char *shell[2];
	const char *own[OWN_OPTION_COUNT] = {0};
	int program;

	/* The number precedes the options, except --help. */
	if (argc < 2)
		tool_fail(EXIT_WRONG_USE, "hosts: how many? (try softhca --help)");
	if (*argv[1] != '-') {
		run->count = count_parse(argv[1], "the number of hosts", 1, HOSTS_MOST);
		argc--;
		argv++;
	}
	program = options_parse(COMMAND_HOSTS, argc, argv, settings, own);
	if (!run->count)
		tool_fail(EXIT_WRONG_USE, "hosts: the number of hosts comes first (try softhca --help)");
	run->settings = settings;
	run->mtu = own[OPTION_HOSTS_INTERFACE_MTU]
			   ? count_parse(own[OPTION_HOSTS_INTERFACE_MTU], "--interface-mtu", LEAST_MTU, MOST_MTU)
			   : DEFAULT_MTU;
	run->shell = own[OPTION_HOSTS_SHELL];
	run->presence = !own[OPTION_HOSTS_NO_PRESENCE];
	if (run->shell == (program < argc))
		tool_fail(EXIT_WRONG_USE, "hosts: give either a program or --shell (try softhca --help)");
	shell[0] = getenv("SHELL") ? getenv("SHELL") : default_shell;
	run->program = run->shell ? shell : &argv[program];
	run_defaults(settings, run->presence);
}

/* ---- the directory of the run -------------------------------------------------------------------------------------- */

static void run_directory_remove(void)
{
	const struct hosts_run *run = run_to_remove;
	char name[HOSTS_NAME_BYTES], path[PATH_MAX];

	if (!run)
		return;

	for (uint32_t number = 1; number <= run->count; number++) {
		hosts_name(number, name);
		if (hosts_socket_path(run->directory, name, path, sizeof(path)))
			unlink(path);
	}
	if (hosts_socket_path(run->directory, "hosts", path, sizeof(path)))
		unlink(path);
	rmdir(run->directory);
}

static void run_directory_make(struct hosts_run *run)
{
	const char *parent = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	char count[16], path[108];

	snprintf(run->directory, sizeof(run->directory), "%s/softhca-hosts-XXXXXX", parent);
	/* unix(7): a socket's path has at most 107 bytes. */
	if (!hosts_socket_path(run->directory, "h64", path, sizeof(path)))
		tool_fail(EXIT_CANNOT_RUN, "hosts: the path %s is too long for a socket", run->directory);
	if (!mkdtemp(run->directory))
		tool_fail(EXIT_CANNOT_RUN, "hosts: cannot make %s: %m", run->directory);
	run_to_remove = run;
	atexit(run_directory_remove);
	setenv(HOSTS_VARIABLE, run->directory, 1);
	snprintf(count, sizeof(count), "%u", run->count);
	setenv(HOSTS_COUNT_VARIABLE, count, 1);
}

/* ---- starting ------------------------------------------------------------------------------------------------------ */

/* A host must not keep connections of this process to others open. */
static void close_own_ends(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		close(hosts[i].start);
		close(hosts[i].orders);
		close(hosts[i].status);
		close(hosts[i].stream[0].from);
		close(hosts[i].stream[1].from);
	}
}

static void start_host(const struct hosts_run *run, uint32_t number)
{
	struct host *host = &hosts[number - 1];
	struct hosts_ends ends = {.out = -1, .error = -1};
	int start[2], orders[2], status[2], out[2] = {-1, -1}, error[2] = {-1, -1};

	if (pipe2(start, O_CLOEXEC) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, orders) ||
	    pipe2(status, O_CLOEXEC) || (!run->shell && (pipe2(out, O_CLOEXEC) || pipe2(error, O_CLOEXEC))))
		tool_fail(EXIT_CANNOT_RUN, "hosts: %m");
	/* All hosts listen before any program runs. */
	ends = (struct hosts_ends){start[0], orders[1], status[1], hosts_listen(run, number), out[1], error[1]};
	if (ends.listener < 0)
		tool_fail(EXIT_CANNOT_RUN, "hosts: cannot listen in %s: %m", run->directory);
	host->start = start[1];
	host->orders = orders[0];
	host->status = status[0];
	host->stream[0] = (struct stream){.from = out[0], .to = STDOUT_FILENO};
	host->stream[1] = (struct stream){.from = error[0], .to = STDERR_FILENO};
	host->pid = hosts_clone(run);
	if (host->pid < 0)
		tool_fail(EXIT_CANNOT_RUN, "hosts: cannot start host %u: %m", number);
	if (host->pid == 0) {
		run_to_remove = NULL;
		close_own_ends(number);
		hosts_init_main(run, number, &ends);
	}
	close(start[0]);
	close(orders[1]);
	close(status[1]);
	close(ends.listener);
	if (!run->shell) {
		close(out[1]);
		close(error[1]);
	}
}

/* Called once all hosts are on the network, so that programs can reach any of them. */
static void hosts_start(const struct hosts_run *run)
{
	for (uint32_t number = 1; number <= run->count; number++)
		start_host(run, number);
	for (uint32_t number = 1; number <= run->count; number++)
		hosts_add_interface(run, number, hosts[number - 1].pid);
	for (uint32_t number = 1; number <= run->count; number++)
		if (write(hosts[number - 1].start, "", 1) != 1)
			tool_fail(EXIT_CANNOT_RUN, "hosts: host %u has ended", number);
}

/* ---- output -------------------------------------------------------------------------------------------------------- */

static void output_write_lines(struct stream *stream, uint32_t number, size_t length)
{
	if (dprintf(stream->to, "h%u: %.*s\n", number, (int)length, stream->line) < 0)
		output_is_closed = true;
}

static void stream_print_lines(struct stream *stream, uint32_t number)
{
	char *begin = stream->line, *newline;

	while ((newline = memchr(stream->line, '\n', stream->length))) {
		size_t length = (size_t)(newline - begin);

		output_write_lines(stream, number, length);
		stream->length -= length + 1;
		memmove(stream->line, newline + 1, stream->length);
	}
	if (stream->length == sizeof(stream->line)) {
		output_write_lines(stream, number, stream->length);
		stream->length = 0;
	}
}

static void output_close(struct stream *stream, uint32_t number)
{
	if (stream->length)
		output_write_lines(stream, number, stream->length);
	stream->length = 0;
	close(stream->from);
	stream->from = -1;
}

static void output_read(struct stream *stream, uint32_t number)
{
	ssize_t length = read(stream->from, stream->line + stream->length, sizeof(stream->line) - stream->length);

	if (length > 0) {
		stream->length += (size_t)length;
		stream_print_lines(stream, number);
	} else if (length == 0 || errno != EINTR) {
		output_close(stream, number);
	}
}

/* Background processes may keep a pipe open, so does not wait for its end. */
static void hosts_drain_output(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		for (int j = 0; j < 2; j++) {
			struct stream *stream = &hosts[i].stream[j];
			struct pollfd fd = {stream->from, POLLIN, 0};

			while (stream->from >= 0 && poll(&fd, 1, 0) > 0)
				output_read(stream, i + 1);
			if (stream->from >= 0)
				output_close(stream, i + 1);
		}
}

/* ---- waiting ------------------------------------------------------------------------------------------------------- */

static int signals_open(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static int signal_pass_on(int signals, uint32_t count)
{
	struct signalfd_siginfo info;
	int number;

	if (read(signals, &info, sizeof(info)) != sizeof(info))
		return 0;
	number = (int)info.ssi_signo;
	for (uint32_t i = 0; i < count; i++)
		send(hosts[i].orders, &number, sizeof(number), MSG_DONTWAIT | MSG_NOSIGNAL);
	return number;
}

static void host_take_status(struct host *host)
{
	/* An init process that ends without a status has reported why. */
	if (read(host->status, &host->wait_status, sizeof(host->wait_status)) != sizeof(host->wait_status))
		host->wait_status = EXIT_CANNOT_RUN << 8;
	host->ended = true;
}

static bool host_runs_program(const struct hosts_run *run, uint32_t index)
{
	return !hosts[index].ended && (!run->shell || index == 0);
}

/* Returns the signal that ended the run, or 0. */
static int hosts_wait(const struct hosts_run *run, int signals)
{
	enum { FDS_PER_HOST = 3 };
	struct pollfd fds[1 + FDS_PER_HOST * HOSTS_MOST];
	int signal_number = 0;

	for (;;) {
		uint32_t running = 0;

		fds[0] = (struct pollfd){signals, POLLIN, 0};
		for (uint32_t i = 0; i < run->count; i++) {
			struct pollfd *of_host = &fds[1 + FDS_PER_HOST * i];
			bool runs = host_runs_program(run, i);

			running += runs;
			of_host[0] = (struct pollfd){runs ? hosts[i].status : -1, POLLIN, 0};
			of_host[1] = (struct pollfd){hosts[i].stream[0].from, POLLIN, 0};
			of_host[2] = (struct pollfd){hosts[i].stream[1].from, POLLIN, 0};
		}
		if (output_is_closed)
			return SIGPIPE;
		if (!running)
			return signal_number;
		if (poll(fds, 1 + FDS_PER_HOST * run->count, signal_number ? END_MS : -1) == 0)
			return signal_number;
		if (fds[0].revents)
			signal_number = signal_pass_on(signals, run->count);
		for (uint32_t i = 0; i < run->count; i++) {
			struct pollfd *of_host = &fds[1 + FDS_PER_HOST * i];

			for (int j = 0; j < 2; j++)
				if (of_host[1 + j].revents)
					output_read(&hosts[i].stream[j], i + 1);
			if (of_host[0].revents)
				host_take_status(&hosts[i]);
		}
	}
}

static void hosts_end(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		close(hosts[i].orders);
	for (uint32_t i = 0; i < count; i++)
		waitpid(hosts[i].pid, NULL, 0);
}

/* Returns that of the first program that failed, as a shell. */
static int hosts_exit_status(const struct hosts_run *run, int signal_number)
{
	if (signal_number)
		return 128 + signal_number;
	for (uint32_t i = 0; i < run->count; i++) {
		int status = hosts[i].wait_status;

		if (hosts[i].ended && status)
			return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
	return EXIT_SUCCESS;
}

int command_hosts(int argc, char **argv)
{
	/* Static, because run_directory_remove() uses it at exit. */
	static struct hosts_run run;
	struct settings settings;
	int signals, signal_number;

	hosts_options_parse(argc, argv, &run, &settings);
	outputs_check(&settings);
	options_export(&settings);
	library_path_export();
	signals = signals_open();
	run_directory_make(&run);
	hosts_enter_namespaces();
	run.pid_namespaces = hosts_can_mount_proc();
	hosts_write_names(&run);
	hosts_make_bridge(&run);
	/* The shell handles its terminal's signals. */
	if (run.shell) {
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
	}
	fflush(stdout);
	hosts_start(&run);
	signal(SIGPIPE, SIG_IGN);
	signal_number = hosts_wait(&run, signals);
	hosts_end(run.count);
	hosts_drain_output(run.count);
	return hosts_exit_status(&run, signal_number);
}
