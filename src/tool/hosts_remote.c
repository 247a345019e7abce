/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both ends of `softhca on`: runs a command on another host with the caller's working directory, environment and
 * standard streams.
 *
 * The requester sends a struct request with its standard streams, then strings, each with its final NUL: working
 * directory, arguments, environment. After that it sends a byte per signal; the host answers with the wait status, an
 * int, and closes.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/descriptor_message.h"
#include "tool/hosts.h"
#include "tool/tool.h"

enum {
	STREAMS = 3,
	MOST_STRING_BYTES = 4 << 20, /* execve(2) accepts less */
	MOST_STRINGS = 1 << 16,
};

struct request {
	uint32_t arguments, variables; /* number of strings */
	uint32_t bytes;                /* of all strings */
};

void hosts_name(uint32_t number, char name[HOSTS_NAME_BYTES])
{
	snprintf(name, HOSTS_NAME_BYTES, "h%u", number);
}

bool hosts_socket_path(const char *directory, const char *name, char *path, size_t size)
{
	return (size_t)snprintf(path, size, "%s/%s", directory, name) < size;
}

static bool address_fill(struct sockaddr_un *address, const char *directory, const char *name)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	return hosts_socket_path(directory, name, address->sun_path, sizeof(address->sun_path));
}

int hosts_listen(const struct hosts_run *run, uint32_t number)
{
	struct sockaddr_un address;
	char name[HOSTS_NAME_BYTES];
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	hosts_name(number, name);
	if (!address_fill(&address, run->directory, name)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (listener < 0 || bind(listener, (const struct sockaddr *)&address, sizeof(address)) || listen(listener, 16))
		return -1;
	return listener;
}

/* ---- messages ------------------------------------------------------------------------------------------------------ */

static bool bytes_send(int socket, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size) {
		ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		at += sent;
		size -= (size_t)sent;
	}
	return true;
}

static bool bytes_receive(int socket, void *bytes, size_t size)
{
	char *at = bytes;

	while (size) {
		ssize_t received = recv(socket, at, size, 0);

		if (received < 0 && errno == EINTR)
			continue;
		if (received <= 0)
			return false;
		at += received;
		size -= (size_t)received;
	}
	return true;
}

static bool request_send(int socket, const struct request *request)
{
	static const int streams[STREAMS] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
	int error = descriptor_message_send(socket, request, sizeof(*request), streams, STREAMS, 0);

	errno = -error;
	return !error;
}

/*
 * Returns true for a well-formed request with three descriptors. The caller closes @streams, even of a malformed
 * request; those that are missing are -1.
 */
static bool request_receive(int socket, struct request *request, int streams[STREAMS])
{
	struct descriptor_message message =
		descriptor_message_receive(socket, request, sizeof(*request), streams, STREAMS, MSG_WAITALL);

	return message.length == sizeof(*request) && message.count == STREAMS && !message.truncated &&
	       request->arguments && request->arguments <= MOST_STRINGS && request->variables <= MOST_STRINGS &&
	       request->bytes <= MOST_STRING_BYTES;
}

/* ---- the host ------------------------------------------------------------------------------------------------------ */

/* Splits @count strings off *@at, before @end; a NULL follows them in @out. Returns false if there are fewer. */
static bool strings_split(char **at, char *end, uint32_t count, char **out)
{
	for (uint32_t i = 0; i < count; i++) {
		char *nul = memchr(*at, '\0', (size_t)(end - *at));

		if (!nul)
			return false;
		out[i] = *at;
		*at = nul + 1;
	}
	out[count] = NULL;
	return true;
}

/* The handlers of exit(3) are those of the host's init process. */
_Noreturn static void command_fail(int status, const char *problem, const char *name)
{
	fprintf(stderr, "softhca: %s %s: %m\n", problem, name);
	_exit(status);
}

_Noreturn static void command_exec(const char *directory, char **arguments, char **variables,
				   const int streams[STREAMS])
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	for (int i = 0; i < STREAMS; i++)
		dup2(streams[i], i);
	if (chdir(directory))
		command_fail(EXIT_CANNOT_RUN, "on: cannot enter", directory);
	environ = variables;
	execvp(arguments[0], arguments);
	command_fail(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN, "cannot run", arguments[0]);
}

/* In the child: closes @received once it has the request. Exits if the request is malformed or its requester ends. */
_Noreturn static void command_receive(int socket, int received)
{
	int streams[STREAMS] = {-1, -1, -1};
	char **arguments, **environment, *bytes, *at, *directory[2], number[64];
	struct request request = {0};

	if (!request_receive(socket, &request, streams))
		_exit(EXIT_CANNOT_RUN);
	bytes = at = malloc(request.bytes + 1);
	arguments = calloc(request.arguments + 1, sizeof(*arguments));
	environment = calloc(request.variables + 2, sizeof(*environment));
	if (!bytes || !arguments || !environment || !bytes_receive(socket, bytes, request.bytes) ||
	    !strings_split(&at, bytes + request.bytes, 1, directory) ||
	    !strings_split(&at, bytes + request.bytes, request.arguments, arguments) ||
	    !strings_split(&at, bytes + request.bytes, request.variables, environment))
		_exit(EXIT_CANNOT_RUN);
	close(received);
	/* SOFTHCA_HOST names this host, not the requester's. */
	snprintf(number, sizeof(number), "%s=%s", HOSTS_NUMBER_VARIABLE, getenv(HOSTS_NUMBER_VARIABLE));
	environment[request.variables] = number;
	command_exec(directory[0], arguments, environment, streams);
}

bool hosts_serve(int listener, struct hosts_command *command)
{
	int received[2];

	command->socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (command->socket < 0)
		return false;
	if (pipe2(received, O_CLOEXEC)) {
		close(command->socket);
		return false;
	}
	/* A requester that stops in the middle of its request must block only this child. */
	command->pid = fork();
	if (command->pid == 0) {
		setpgid(0, 0);
		close(received[0]);
		command_receive(command->socket, received[1]);
	}
	close(received[1]);
	command->received = received[0];
	if (command->pid < 0) {
		close(command->socket);
		close(command->received);
		return false;
	}
	/* Also here, so that a signal that arrives at once finds the group. */
	setpgid(command->pid, command->pid);
	return true;
}

int hosts_serve_descriptor(const struct hosts_command *command)
{
	return command->received >= 0 ? command->received : command->socket;
}

void hosts_serve_close(struct hosts_command *command)
{
	close(command->socket);
	if (command->received >= 0)
		close(command->received);
}

bool hosts_serve_signal(struct hosts_command *command)
{
	unsigned char number;

	/* The pipe has ended: from now on this process reads the socket. */
	if (command->received >= 0) {
		close(command->received);
		command->received = -1;
		return true;
	}
	if (recv(command->socket, &number, 1, MSG_DONTWAIT) != 1) {
		kill(-command->pid, SIGKILL);
		return false;
	}
	kill(-command->pid, number);
	return true;
}

void hosts_serve_status(struct hosts_command *command, int status)
{
	bytes_send(command->socket, &status, sizeof(status));
	hosts_serve_close(command);
}

/* ---- the requester ------------------------------------------------------------------------------------------------- */

static int requester_connect(const char *host)
{
	const char *directory = getenv(HOSTS_VARIABLE);
	struct sockaddr_un address;
	int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!directory)
		tool_fail(EXIT_CANNOT_RUN, "on: this is not a host of `softhca hosts` (%s is not set)", HOSTS_VARIABLE);
	if (strchr(host, '/') || !strcmp(host, "hosts") || !address_fill(&address, directory, host) || connection < 0 ||
	    connect(connection, (const struct sockaddr *)&address, sizeof(address)))
		tool_fail(EXIT_CANNOT_RUN, "on: host \"%s\" does not exist (hosts are h1 to h%s)", host,
			  getenv(HOSTS_COUNT_VARIABLE) ? getenv(HOSTS_COUNT_VARIABLE) : "N");
	return connection;
}

/* @out NULL: only counts bytes. Returns the new length. */
static size_t string_add(char *out, size_t length, const char *string)
{
	size_t bytes = strlen(string) + 1;

	if (out)
		memcpy(out + length, string, bytes);
	return length + bytes;
}

static bool is_own_variable(const char *variable)
{
	size_t length = strlen(HOSTS_NUMBER_VARIABLE);

	return !strncmp(variable, HOSTS_NUMBER_VARIABLE, length) && variable[length] == '=';
}

static size_t strings_join(char *out, const char *directory, char **arguments, struct request *request)
{
	size_t length = string_add(out, 0, directory);

	request->arguments = request->variables = 0;
	for (char **argument = arguments; *argument; argument++, request->arguments++)
		length = string_add(out, length, *argument);
	for (char **variable = environ; *variable; variable++) {
		if (is_own_variable(*variable))
			continue;
		length = string_add(out, length, *variable);
		request->variables++;
	}
	return length;
}

static void requester_send(int connection, char **arguments)
{
	char directory[PATH_MAX];
	struct request request = {0};
	size_t bytes;
	char *strings;

	if (!getcwd(directory, sizeof(directory)))
		tool_fail(EXIT_CANNOT_RUN, "on: cannot name the working directory: %m");
	bytes = strings_join(NULL, directory, arguments, &request);
	strings = malloc(bytes);
	if (!strings || bytes > MOST_STRING_BYTES || request.arguments > MOST_STRINGS ||
	    request.variables > MOST_STRINGS)
		tool_fail(EXIT_CANNOT_RUN, "on: arguments and environment are too long");
	strings_join(strings, directory, arguments, &request);
	request.bytes = (uint32_t)bytes;
	if (!request_send(connection, &request) || !bytes_send(connection, strings, bytes))
		tool_fail(EXIT_CANNOT_RUN, "on: the host does not answer: %m");
	free(strings);
}

/* Returns the wait status of the command. */
static int requester_wait(int connection)
{
	struct signalfd_siginfo info;
	struct pollfd fds[2] = {{.fd = connection, .events = POLLIN}, {.events = POLLIN}};
	unsigned char number;
	sigset_t set;
	int status;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fds[1].fd = signalfd(-1, &set, SFD_CLOEXEC);
	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[0].revents)
			break;
		if (read(fds[1].fd, &info, sizeof(info)) == sizeof(info)) {
			number = (unsigned char)info.ssi_signo;
			bytes_send(connection, &number, 1);
		}
	}
	if (!bytes_receive(connection, &status, sizeof(status)))
		tool_fail(EXIT_CANNOT_RUN, "on: the host has ended");
	return status;
}

/* As ssh(1) does. */
static char *words_join(char **words)
{
	size_t bytes = 1;
	char *line;

	for (char **word = words; *word; word++)
		bytes += strlen(*word) + 1;
	line = calloc(1, bytes);
	for (char **word = words; line && *word; word++) {
		if (word != words)
			strcat(line, " ");
		strcat(line, *word);
	}
	return line;
}

int command_on(int argc, char **argv)
{
	static char shell[] = "/bin/sh", shell_option[] = "-c";
	char *in_shell[] = {shell, shell_option, NULL, NULL}, **arguments;
	int connection, status;

	/* Options after the host belong to the command. */
	if (argc < 2 || *argv[1] == '-') {
		own_options_parse(COMMAND_ON, argc, argv, NULL);
		tool_fail(EXIT_WRONG_USE, "on: no host given (try softhca --help)");
	}
	connection = requester_connect(argv[1]);
	arguments = &argv[2];
	if (argc < 3 || (!strcmp(argv[2], "--") && argc < 4))
		tool_fail(EXIT_WRONG_USE, "on: no command given (try softhca --help)");
	if (!strcmp(argv[2], "--")) {
		arguments++;
	} else {
		/* Users of ssh(1), like mpirun, pass words for the shell of the other host. */
		in_shell[2] = words_join(arguments);
		if (!in_shell[2])
			tool_fail(EXIT_CANNOT_RUN, "on: %m");
		arguments = in_shell;
	}
	requester_send(connection, arguments);
	free(in_shell[2]);
	status = requester_wait(connection);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
