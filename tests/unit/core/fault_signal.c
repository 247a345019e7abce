/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * core/fault_signal: after its own handler, the handlers of the program run, or the process ends, as if it were not
 * installed. And the timeline, which repairs a fault: its file may be truncated while the process writes to it. Each
 * case is a process of its own.
 */
#include "test_case.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "core/fault_signal.h"
#include "core/settings.h"
#include "observe/timeline.h"

enum { PAGE = 4096, RIGHT = 7, WRONG };

static volatile uint8_t *page;
static volatile sig_atomic_t watched, signalled;
static bool repairs, looks_at_stack;

static bool watcher(int signal, const siginfo_t *info, const void *context)
{
	(void)signal;
	watched++;
	if (info->si_addr != (void *)page)
		_exit(WRONG);
	if (looks_at_stack)
		_exit(fault_signal_has_stack(context, 1) && !fault_signal_has_stack(context, SIGSTKSZ) ? RIGHT : WRONG);
	return repairs && !mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE);
}

static void handler_of_program(int signal, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code > 0)
		_exit(watched == 1 && signal == SIGSEGV && info->si_addr == (void *)page ? RIGHT : WRONG);
	signalled++;
}

static void simple_handler(int signal)
{
	_exit(watched == 1 && signal == SIGSEGV ? RIGHT : WRONG);
}

/* Returns the status of a process that runs @body. */
static int status_of(void (*body)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		alarm(20);
		/* cmocka installs handlers. */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void expect_exit(void (*body)(void), int code)
{
	int status = status_of(body);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), code);
}

static void expect_signal(void (*body)(void), int signal)
{
	int status = status_of(body);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), signal);
}

static void handle_by_program(int flags)
{
	struct sigaction action = {.sa_flags = flags};

	if (flags & SA_SIGINFO)
		action.sa_sigaction = handler_of_program;
	else
		action.sa_handler = simple_handler;
	sigaction(SIGSEGV, &action, NULL);
}

static void fault_with_handler(void)
{
	handle_by_program(SA_SIGINFO);
	fault_signal_watch(watcher);
	/* A second call has no effect. */
	fault_signal_watch(watcher);
	*page = 1;
}

static void fault_with_simple_handler(void)
{
	handle_by_program(0);
	fault_signal_watch(watcher);
	*page = 1;
}

static void fault_without_handler(void)
{
	fault_signal_watch(watcher);
	*page = 1;
}

static void fault_beyond_file(void)
{
	int fd = memfd_create("fault_signal", MFD_CLOEXEC);

	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	fault_signal_watch(watcher);
	*page = 1;
}

static void fault_is_repaired(void)
{
	repairs = true;
	handle_by_program(SA_SIGINFO);
	fault_signal_watch(watcher);
	*page = 1;
	_exit(watched == 1 && *page == 1 ? RIGHT : WRONG);
}

static void sent_to_handler(void)
{
	handle_by_program(SA_SIGINFO);
	fault_signal_watch(watcher);
	raise(SIGSEGV);
	raise(SIGSEGV);
	_exit(!watched && signalled == 2 ? RIGHT : WRONG);
}

static void sent_without_handler(void)
{
	fault_signal_watch(watcher);
	raise(SIGSEGV);
}

/* A one-shot handler of the program is called once. */
static void sent_twice(void)
{
	handle_by_program(SA_SIGINFO | SA_RESETHAND);
	fault_signal_watch(watcher);
	raise(SIGSEGV);
	if (signalled != 1)
		_exit(WRONG);
	raise(SIGSEGV);
}

static void fault_on_small_stack(void)
{
	static uint8_t memory[1 << 16];
	const stack_t small = {.ss_sp = memory, .ss_size = SIGSTKSZ};

	looks_at_stack = true;
	sigaltstack(&small, NULL);
	fault_signal_watch(watcher);
	*page = 1;
}

TEST(test_program_goes_first)
{
	expect_exit(fault_with_handler, RIGHT);
	expect_exit(fault_with_simple_handler, RIGHT);
	expect_exit(sent_to_handler, RIGHT);
	expect_signal(sent_twice, SIGSEGV);
}

TEST(test_process_ends)
{
	expect_signal(fault_without_handler, SIGSEGV);
	expect_signal(fault_beyond_file, SIGBUS);
	expect_signal(sent_without_handler, SIGSEGV);
}

TEST(test_repair)
{
	expect_exit(fault_is_repaired, RIGHT);
}

TEST(test_stack)
{
	expect_exit(fault_on_small_stack, RIGHT);
}

/* ---- the timeline ------------------------------------------------------------------------------------------------ */

static void record(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		timeline_put(timeline_now(), TIMELINE_WHAT(TIMELINE_SEND, 0, i), 0x4711, i, 8, 0);
}

/* Several chunks before the file is truncated, and several laps after. */
static void record_into_cut_file(void)
{
	static struct settings settings;
	char error[512] = "", path[sizeof(settings.timeline) + 64];
	char directory[] = "/tmp/fault_signal.XXXXXX";
	uint32_t row = 0;

	settings_default(&settings);
	if (!mkdtemp(directory))
		_exit(WRONG);
	snprintf(settings.timeline, sizeof(settings.timeline), "%s/trace", directory);
	settings.timeline_records = 8 * TIMELINE_CHUNK_RECORDS;
	if (timeline_open(&settings, error, sizeof(error)))
		_exit(WRONG);
	snprintf(path, sizeof(path), "%s.%d" TIMELINE_SUFFIX, settings.timeline, (int)getpid());
	record(2 * TIMELINE_CHUNK_RECORDS);
	if (truncate(path, 0) || unlink(path) || rmdir(directory))
		_exit(WRONG);
	record(30 * TIMELINE_CHUNK_RECORDS);
	timeline_put_qp(&row, &(struct timeline_qp){.number = 0x4711});
	_exit(RIGHT);
}

TEST(test_cut_timeline)
{
	expect_exit(record_into_cut_file, RIGHT);
}
