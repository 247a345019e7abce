/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls that are made only while a word has a value (src/core/guarded_call.h). A tracer stops the thread after
 * each instruction, to check that a thread preempted between the check and the call checks again.
 */
#include "test_case.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/guarded_call.h"

static uint64_t word = 7;
static int pipes[2];

static long call(uint64_t expected)
{
	const long arguments[5] = {pipes[1], (long)(uintptr_t) "x", 1, 0, 0};

	return guarded_call(&word, expected, SYS_write, arguments);
}

static unsigned int bytes_in_pipe(void)
{
	char bytes[16];
	ssize_t length = read(pipes[0], bytes, sizeof(bytes));

	return length > 0 ? (unsigned int)length : 0;
}

static int begin(void **state)
{
	(void)state;
	return pipe(pipes);
}

static int finish(void **state)
{
	(void)state;
	close(pipes[0]);
	close(pipes[1]);
	return 0;
}

TEST(test_calls)
{
	if (!guarded_call_works())
		skip();
	assert_int_equal(call(7), 1);
	assert_int_equal(bytes_in_pipe(), 1);
	close(pipes[0]);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(call(7), -EPIPE);
	/* -EPIPE would show that the call was made. */
	assert_int_equal(call(8), -EAGAIN);
}

/* All five arguments are in the registers that the kernel reads. */
TEST(test_arguments)
{
	int file = memfd_create("test", MFD_CLOEXEC);
	const long at_5[5] = {file, (long)(uintptr_t) "xyz", 3, 5, 0};
	/* Invalid flags: EINVAL; with valid flags the result would be ENOENT. */
	const long flags[5] = {AT_FDCWD, (long)(uintptr_t) "/proc/none/a", AT_FDCWD, (long)(uintptr_t) "/proc/none/b",
			       1 << 20};
	char bytes[9] = "";

	if (!guarded_call_works())
		skip();
	assert_true(file >= 0);
	assert_int_equal(guarded_call(&word, 7, SYS_pwrite64, at_5), 3);
	assert_int_equal(pread(file, bytes, sizeof(bytes), 0), 8);
	assert_memory_equal(bytes, "\0\0\0\0\0xyz", 8);
	close(file);
	assert_int_equal(guarded_call(&word, 7, SYS_renameat2, flags), -EINVAL);
}

/* Makes the call in a child that a tracer stops after each instruction. Returns its exit status. */
static int single_step(void)
{
	int status;
	pid_t child = fork();

	if (!child) {
		long result;

		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		result = call(7);
		_exit(result == -EAGAIN ? 3 : result == 1 ? 4 : 5);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	while (WIFSTOPPED(status)) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, 0, 0), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
	}
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(test_looks_again)
{
	if (!guarded_call_works())
		skip();
	assert_int_equal(single_step(), 3);
	close(pipes[1]);
	pipes[1] = -1;
	assert_int_equal(bytes_in_pipe(), 0);
}

int main(void)
{
	return run_cases(.setup = begin, .teardown = finish);
}
