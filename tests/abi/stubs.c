/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every symbol that is not implemented returns EOPNOTSUPP in the way its table specifies, whatever the arguments.
 * abi/stubs_reference checks the table. Argument: the directory of the front-ends.
 */
#include <dlfcn.h>
#include "test_case.h"

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "abi/private_nodes.h"
#include "abi/undeclared.h"
#include "table_call.h"

static const char *directory;
static int called;

static void *front_end(const char *name)
{
	char path[4096];
	void *library;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fail_msg("%s", dlerror());
	return library;
}

static void *symbol(void *library, const char *name, const char *version)
{
	void *address = dlvsym(library, name, version);

	if (!address)
		fail_msg("%s", dlerror());
	errno = 0;
	called++;
	return address;
}

#define CHECK(name, condition)                                                                                         \
	if (!(condition))                                                                                              \
	fail_msg("%s: %s does not hold, errno is %d", name, #condition, errno)

#define CHECK_ERRNO(name, call) CHECK(name, (call) == EOPNOTSUPP)
#define CHECK_NEGATIVE_ERRNO(name, call) CHECK(name, (call) == -EOPNOTSUPP)
#define CHECK_MINUS_ONE(name, call) CHECK(name, (long)(call) == -1 && errno == EOPNOTSUPP)
#define CHECK_NULL_ERRNO(name, call) CHECK(name, (call) == NULL && errno == EOPNOTSUPP)
#define CHECK_ZERO(name, call) CHECK(name, (call) == 0 && errno == EOPNOTSUPP)
#define CHECK_NOTHING(name, call) call

#define STUB_ERRNO int
#define STUB_MINUS_ONE int
#define STUB_NULL_ERRNO void *
#define STUB_ZERO __be64
#define STUB_NOTHING void

#define CALL(name, version, kind, type, parameters, zeros)                                                             \
	{                                                                                                              \
		type(*call) parameters = (type(*) parameters)symbol(library, name, version);                           \
		CHECK_##kind(name "@" version, call zeros);                                                            \
	}
#define SKIP(...)

#define TRY_IMPLEMENTED SKIP
#define TRY_LATER CALL
#define TRY_UNSUPPORTED CALL
#define TRY_PROBED CALL

/* Once more in each later private node. */
#define AGAIN(node, name, kind) CALL(#name, "IBVERBS_PRIVATE_" #node, kind, STUB_##kind, (void), ())

#define SYMBOL(name, version, state, kind, test, type, parameters, arguments)                                          \
	TRY_##state(#name, version, kind, type, parameters, (ZEROS arguments))
#define STUB(name, version, kind, test) CALL(#name, version, kind, STUB_##kind, (void), ())
#define OLD_STUB(name, suffix, version, kind, test) CALL(#name, version, kind, STUB_##kind, (void), ())
#define PRIVATE_STUB(name, node, kind, test)                                                                           \
	STUB(name, "IBVERBS_PRIVATE_" #node, kind, test)                                                               \
	AFTER_##node(name, kind)

TEST(test_libibverbs)
{
	void *library = front_end("libibverbs.so.1");

	called = 0;
#include "abi/verbs.def"
	/*
	 * 67 names of the providers' interface in five private nodes, and 33 duplicates of version 1.0, will not be
	 * implemented.
	 */
	assert_true(called >= 67 * 5 + 33);
}

#define SYMBOL(name, version, state, kind, test, type, parameters, arguments)                                          \
	TRY_##state(#name, version, kind, type, parameters, (ZEROS arguments))

TEST(test_libmlx5)
{
	void *library = front_end("libmlx5.so.1");

	called = 0;
#define STUB(name, version, kind, test) CALL(#name, version, kind, STUB_##kind, (void), ())
#include "abi/mlx5dv.def"
	/* Steering, scheduling, VFIO and similar calls. */
	assert_true(called >= 70);
}

#define STUB(name, version, kind, test) CALL(#name, version, kind, STUB_##kind, (void), ())

TEST(test_librdmacm)
{
	void *library = front_end("librdmacm.so.1");

	called = 0;
#include "abi/rdmacm.def"
	/* repoll_create(), repoll_ctl(), repoll_wait(). */
	assert_true(called >= 3);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	directory = argv[1];
	return run_cases();
}
