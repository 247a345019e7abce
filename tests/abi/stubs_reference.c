/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of libmlx5.so.1 specifies how each call reports an error. This test compares it with the distribution's
 * library: given an object of a device that is not an mlx5 one, most of its calls return EOPNOTSUPP, each in its way.
 * The object is a page on which every pointer leads back to the page, so every path from the argument to the device
 * ends at an unknown device. Calls that use the object in other ways crash, so each runs in a child.
 */
#include "test_case.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "distribution.h"

struct row {
	const char *name, *version, *kind;
	bool returns_pointer;
};

#define ROW_ERRNO(name, version, type) {name, version, "ERRNO", false},
#define ROW_NEGATIVE_ERRNO(name, version, type) {name, version, "NEGATIVE_ERRNO", false},
#define ROW_MINUS_ONE(name, version, type) {name, version, "MINUS_ONE", false},
#define ROW_NULL_ERRNO(name, version, type) {name, version, "NULL_ERRNO", true},
#define ROW_NOTHING(name, version, type)
#define ROW_VALUE(name, version, type)
#define SYMBOL(name, version, state, kind, test, type, parameters, arguments) ROW_##kind(#name, version, type)
static const struct row rows[] = {
#include "abi/mlx5dv.def"
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

struct answer {
	bool returned;
	long value;
	int error;
};

static struct answer *answer; /* written by the child */
static uintptr_t *object;

static void silence(int signal)
{
	(void)signal;
	_exit(1);
}

static void child(const struct row *row)
{
	void *library = distribution_libmlx5();
	/* Registers beyond the parameters are ignored; a number gets the page's address. */
	long (*call)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);
	void *symbol = library ? dlvsym(library, row->name, row->version) : NULL;
	uintptr_t page = (uintptr_t)object;

	signal(SIGSEGV, silence);
	signal(SIGBUS, silence);
	signal(SIGABRT, silence);
	/* A few calls walk a list that leads back to itself. */
	setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = 300000}}, NULL);
	if (!symbol)
		_exit(1);
	memcpy(&call, &symbol, sizeof(call));
	errno = 0;
	answer->value = call(page, page, page, page, page, page);
	answer->error = errno;
	answer->returned = true;
	_exit(0);
}

static const char *kind_of_answer(const struct row *row)
{
	int value = (int)answer->value;

	if (!answer->returned)
		return NULL;
	if (row->returns_pointer)
		return answer->value == 0 && answer->error == EOPNOTSUPP ? "NULL_ERRNO" : NULL;
	if (value == EOPNOTSUPP)
		return "ERRNO";
	if (value == -EOPNOTSUPP)
		return "NEGATIVE_ERRNO";
	return value == -1 && answer->error == EOPNOTSUPP ? "MINUS_ONE" : NULL;
}

TEST(test_kinds)
{
	size_t compared = 0;

	if (!distribution_libmlx5())
		skip();
	for (size_t i = 0; i < ROW_COUNT; i++) {
		pid_t pid;
		const char *kind;

		memset(answer, 0, sizeof(*answer));
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			child(&rows[i]);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		kind = kind_of_answer(&rows[i]);
		if (!kind)
			continue;
		compared++;
		if (strcmp(kind, rows[i].kind) != 0)
			fail_msg("%s: %s in the table, %s in rdma-core", rows[i].name, rows[i].kind, kind);
	}
	print_message("%zu of %zu calls compared\n", compared, ROW_COUNT);
	assert_true(compared >= 70);
}

int main(void)
{
	size_t size = 1 << 16;

	answer = mmap(NULL, sizeof(*answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	object = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (answer == MAP_FAILED || object == MAP_FAILED)
		return 1;
	/* Some calls step back from an object to the structure around it. */
	for (size_t i = 0; i < size / sizeof(*object); i++)
		object[i] = (uintptr_t)object + size / 2;
	object += size / 2 / sizeof(*object);
	return run_cases();
}
