/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys of softhca top: switches the terminal to single keys. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "tool/top.h"

enum { LINES_BY_DEFAULT = 24 };

static struct termios terminal_before, terminal_raw;

static void terminal_restore(void)
{
	tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
}

/* Restores the terminal, then raises the signal again. */
static void terminal_signal(int number)
{
	terminal_restore();
	signal(number, SIG_DFL);
	raise(number);
}

static void terminal_handle_signals(void)
{
	static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
	/* raise(3) takes effect in the handler. */
	struct sigaction action = {.sa_handler = terminal_signal, .sa_flags = SA_NODEFER};

	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		sigaction(ending[i], &action, NULL);
}

static void terminal_continued(int number)
{
	(void)number;
	tcsetattr(STDIN_FILENO, TCSANOW, &terminal_raw);
	terminal_handle_signals();
}

void top_terminal_begin(void)
{
	struct sigaction action = {.sa_handler = terminal_continued};

	if (tcgetattr(STDIN_FILENO, &terminal_before))
		return;
	terminal_raw = terminal_before;
	terminal_raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	terminal_raw.c_cc[VMIN] = 1;
	terminal_raw.c_cc[VTIME] = 0;
	atexit(terminal_restore);
	terminal_handle_signals();
	sigaction(SIGCONT, &action, NULL);
	tcsetattr(STDIN_FILENO, TCSANOW, &terminal_raw);
}

size_t top_terminal_lines(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row ? LINES_BY_DEFAULT : size.ws_row;
}

char top_terminal_key(double seconds)
{
	struct pollfd input = {STDIN_FILENO, POLLIN, 0};
	char key = 0;

	if (seconds < 0)
		seconds = 0;
	if (poll(&input, 1, (int)(seconds * 1e3) + 1) > 0 && read(STDIN_FILENO, &key, 1) != 1)
		/* The terminal is gone. */
		exit(EXIT_SUCCESS);
	return key;
}
