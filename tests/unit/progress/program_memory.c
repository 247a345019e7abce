/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings in memory of the program (progress/program_memory.h): no system call for each access, EFAULT instead of a
 * signal if the memory is gone, and the program keeps its signal handlers. Each case is a process of its own.
 */
#include "test_case.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "core/guarded_copy.h"
#include "kernel_has.h"
#include "progress/program_memory.h"

enum { PAGE = 4096, RIGHT = 7, WRONG, LOOKS = 1000, TICK_NS = 20000000 };

/* Replace the functions of the C library, to count them. */
static unsigned int kernel_copies;

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
			 unsigned long remote_count, unsigned long flags)
{
	kernel_copies++;
	return syscall(SYS_process_vm_readv, pid, local, local_count, remote, remote_count, flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
			  unsigned long remote_count, unsigned long flags)
{
	kernel_copies++;
	return syscall(SYS_process_vm_writev, pid, local, local_count, remote, remote_count, flags);
}

/* Two pages, of which the second can be taken away. */
static uint8_t *pages;

static void expect(bool right)
{
	if (!right)
		_exit(WRONG);
}

static void next_tick(void)
{
	const struct timespec time = {.tv_nsec = TICK_NS};

	nanosleep(&time, NULL);
}

static void in_process(void (*body)(void), int expected_signal)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		alarm(20);
		/* cmocka installs handlers. */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		pages = mmap(NULL, (size_t)2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		expect(pages != MAP_FAILED);
		body();
		_exit(RIGHT);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (expected_signal) {
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), expected_signal);
	} else {
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), RIGHT);
	}
}

static uint32_t look(void)
{
	uint32_t value = 0;

	expect(!program_ring_read(&value, pages, sizeof(value)));
	return value;
}

/* Returns the number of copies by the kernel for LOOKS looks. */
static unsigned int look_often(void)
{
	kernel_copies = 0;
	for (int i = 0; i < LOOKS; i++)
		look();
	return kernel_copies;
}

/* ---- copies ----------------------------------------------------------------------------------------------------- */

static void copies_of_each_size(void)
{
	uint8_t from[160], to[160], expected[160];

	program_rings_begin();
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i + 1);
	for (size_t size = 0; size <= 130; size++) {
		size_t at = size % 9;

		memset(to, 0, sizeof(to));
		memset(expected, 0, sizeof(expected));
		memcpy(expected + 5, from + at, size);
		expect(!program_ring_read(to + 5, from + at, size) && !memcmp(to, expected, sizeof(to)));
		memset(to, 0, sizeof(to));
		expect(!program_ring_write(to + 5, from + at, size) && !memcmp(to, expected, sizeof(to)));
	}
	expect(!kernel_copies);
}

static void take_second_page(void)
{
	expect(!munmap(pages + PAGE, PAGE));
}

static void close_second_page(void)
{
	expect(!mprotect(pages + PAGE, PAGE, PROT_NONE));
}

static void cut_file(void)
{
	int fd = memfd_create("program_memory", MFD_CLOEXEC);

	expect(fd >= 0 && !ftruncate(fd, PAGE));
	expect(mmap(pages, (size_t)2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == pages);
}

static void accesses_beyond(void (*lose)(void))
{
	uint8_t bytes[128];
	uint64_t word;
	struct iovec to[3] = {{bytes, 16}, {bytes + 16, 16}, {bytes + 32, 16}};
	struct iovec from[3] = {{pages, 16}, {pages + PAGE - 8, 16}, {pages, 16}};

	program_rings_begin();
	look();
	lose();
	expect(program_ring_read(bytes, pages + PAGE - 64, sizeof(bytes)) == -EFAULT);
	expect(program_ring_read(&word, pages + PAGE, 1) == -EFAULT);
	expect(program_ring_write(pages + PAGE - 64, bytes, sizeof(bytes)) == -EFAULT);
	expect(program_ring_write(pages + 2 * PAGE - 1, bytes, 1) == -EFAULT);
	expect(program_ring_read_each(to, from, 3) == 1);
	expect(!program_ring_write(pages + PAGE - 64, bytes, 64) && look() == 0);
	expect(!kernel_copies);
}

static void beyond_unmapped(void)
{
	accesses_beyond(take_second_page);
}

static void beyond_closed(void)
{
	accesses_beyond(close_second_page);
}

static void beyond_file(void)
{
	accesses_beyond(cut_file);
}

TEST(test_copies)
{
	if (!guarded_copy_works())
		skip();
	in_process(copies_of_each_size, 0);
}

TEST(test_memory_that_is_gone)
{
	if (!guarded_copy_works())
		skip();
	in_process(beyond_unmapped, 0);
	in_process(beyond_closed, 0);
	in_process(beyond_file, 0);
}

/* ---- system calls ----------------------------------------------------------------------------------------------- */

static void looks_make_no_call(void)
{
	program_rings_begin();
	expect(!look_often());
	program_rings_begin();
	program_rings_end();
	expect(!look_often());
	program_rings_end();
	expect(look_often() == LOOKS);
}

static void handler_of_program(int signal)
{
	_exit(signal == SIGSEGV ? RIGHT : WRONG);
}

/* A program that installs its handler later keeps it, for faults of its own, and the kernel copies. */
static void program_installs_later(void)
{
	struct sigaction now;

	program_rings_begin();
	expect(!look_often());
	signal(SIGSEGV, handler_of_program);
	next_tick();
	expect(look_often() == LOOKS);
	take_second_page();
	expect(program_ring_read(&now, pages + PAGE, 1) == -EFAULT);
	program_rings_end();
	program_rings_begin();
	expect(look_often() == LOOKS);
	expect(!sigaction(SIGSEGV, NULL, &now) && now.sa_handler == handler_of_program);
	pages[PAGE] = 1;
	_exit(WRONG);
}

static void program_installed_before(void)
{
	struct sigaction now;

	signal(SIGSEGV, handler_of_program);
	program_rings_begin();
	expect(!look_often());
	take_second_page();
	expect(program_ring_read(&now, pages + PAGE, 1) == -EFAULT);
	program_rings_end();
	expect(!sigaction(SIGSEGV, NULL, &now) && now.sa_handler == handler_of_program);
	program_rings_begin();
	pages[PAGE] = 1;
	_exit(WRONG);
}

/* The kernel would end a process whose thread blocks the signal of its fault. */
static void thread_blocks_signals(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS};
	sigset_t blocked;
	uint8_t byte;

	program_rings_begin();
	take_second_page();
	for (int i = 0; i < 2; i++) {
		sigemptyset(&blocked);
		sigaddset(&blocked, signals[i]);
		expect(!look_often());
		sigprocmask(SIG_BLOCK, &blocked, NULL);
		next_tick();
		expect(look_often() == LOOKS);
		expect(program_ring_read(&byte, pages + PAGE, 1) == -EFAULT);
		sigprocmask(SIG_UNBLOCK, &blocked, NULL);
		next_tick();
		expect(!look_often());
	}
}

static void fault_of_program(void)
{
	program_rings_begin();
	take_second_page();
	pages[PAGE] = 1;
}

TEST(test_no_system_call)
{
	if (!guarded_copy_works())
		skip();
	in_process(looks_make_no_call, 0);
}

TEST(test_handlers_of_the_program)
{
	if (!guarded_copy_works())
		skip();
	in_process(program_installed_before, 0);
	in_process(fault_of_program, SIGSEGV);
}

TEST(test_copies_of_the_kernel)
{
	if (!guarded_copy_works() || !kernel_has_memory_copies())
		skip();
	in_process(program_installs_later, 0);
	in_process(thread_blocks_signals, 0);
}
