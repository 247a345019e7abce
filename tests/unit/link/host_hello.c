/* SPDX-License-Identifier: BSD-2-Clause */
/* Any process may connect: only a valid hello makes it a peer, and all others leave no state. */
#include "../support/host_fixture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "kernel_has.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

enum { FEW_DESCRIPTORS = 256 };

static uint32_t own;

static int begin(void **state)
{
	begin_test(state);
	own = claim();
	host_accept();
	return 0;
}

static int memory_of(off_t size, int seals, unsigned int flags)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd < 0)
		return -1;
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static struct host_hello right_hello(void)
{
	return (struct host_hello){.magic = HOST_MAGIC, .version = HOST_VERSION, .memory = MEMORY};
}

static void say(int fd, const void *bytes, size_t length, const int *descriptors, size_t count)
{
	struct iovec part = {(void *)(uintptr_t)bytes, length};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(8 * sizeof(int))];
	} control = {0};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (count) {
		message.msg_control = control.space;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &message, 0), length);
}

static bool is_closed(int fd)
{
	struct pollfd state = {.fd = fd, .events = POLLRDHUP};

	return poll(&state, 1, 0) == 1 && state.revents & POLLHUP;
}

/*
 * Sends the hello, and checks that it is refused and leaves no state. Done twice: before the connection is accepted,
 * and after.
 */
static void expect_refusal(enum explain_rule rule, const void *bytes, size_t length, const int *descriptors,
			   size_t count)
{
	for (int late = 0; late < 2; late++) {
		int before = count_descriptors(), fd = raw_connect(own);

		assert_true(fd >= 0);
		if (late)
			assert_int_equal(loop(), 1);
		say(fd, bytes, length, descriptors, count);
		loop();
		assert_true(is_closed(fd));
		close(fd);
		assert_int_equal(world.rule, rule);
		assert_int_equal(world.explanations, rule != RULE_NONE);
		if (rule != RULE_NONE)
			assert_int_equal(world.args[0], getpid());
		assert_int_equal(count_peers(), 0);
		assert_int_equal(world.begun, 0);
		assert_int_equal(count_descriptors(), before);
		assert_int_equal(loop(), 0);
		world.explanations = 0;
		world.rule = RULE_NONE;
	}
}

/* The base message is valid: the cases below are refused only for their own error. */
TEST(right)
{
	struct host_hello hello = right_hello();

	for (int late = 0; late < 2; late++) {
		int memory = memory_of(MEMORY, SEALS, 0), fd = raw_connect(own), before;
		struct host_peer *peer;

		before = count_descriptors();
		if (late)
			assert_int_equal(loop(), 1);
		say(fd, &hello, sizeof(hello), &memory, 1);
		loop();
		expect_silence();
		assert_int_equal(count_peers(), 1);
		peer = host_peers();
		assert_false(peer->created);
		assert_int_equal(peer->pid, getpid());
		assert_int_equal(pwrite(memory, "m", 1, 9), 1);
		assert_int_equal(peer->memory[9], 'm');
		/* A connection here uses three descriptors, of which one remains: its socket. */
		assert_int_equal(count_descriptors(), before + 1);
		close(fd);
		close(memory);
		assert_int_equal(loop(), 1);
		assert_int_equal(world.gone, late + 1);
		assert_int_equal(world.ended, late + 1);
		assert_int_equal(count_peers(), 0);
	}
}

TEST(wrong_shape)
{
	struct {
		struct host_hello hello;
		char more[100];
	} bytes = {.hello = right_hello()};
	const int memory = memory_of(MEMORY, SEALS, 0);
	const int many[8] = {memory, memory, memory, memory, memory, memory, memory, memory};

	for (size_t length = 1; length < sizeof(bytes); length++)
		if (length != sizeof(bytes.hello))
			expect_refusal(RULE_HOST_HELLO_SHAPE, &bytes, length, many, 1);
	expect_refusal(RULE_HOST_HELLO_SHAPE, &bytes, sizeof(bytes.hello), NULL, 0);
	/* The descriptors beyond the first have no room. */
	for (size_t count = 2; count <= 8 && kernel_has_control_truncation(); count++)
		expect_refusal(RULE_HOST_HELLO_SHAPE, &bytes, sizeof(bytes.hello), many, count);
	/* An empty message is treated as the end. */
	expect_refusal(RULE_NONE, &bytes, 0, NULL, 0);
	expect_refusal(RULE_NONE, &bytes, 0, many, 1);
	close(memory);
}

TEST(wrong_words)
{
	int memory = memory_of(MEMORY, SEALS, 0);
	static const uint32_t versions[] = {0, HOST_VERSION + 1, UINT32_MAX, HOST_VERSION << 24};
	static const uint64_t sizes[] = {0, MEMORY - 1, MEMORY + 1, (uint64_t)MEMORY << 32, UINT64_MAX};
	struct host_hello hello;

	for (size_t i = 0; i < sizeof(hello.magic); i++) {
		hello = right_hello();
		hello.magic[i] ^= 1;
		expect_refusal(RULE_HOST_HELLO_VERSION, &hello, sizeof(hello), &memory, 1);
	}
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		hello = right_hello();
		hello.version = versions[i];
		expect_refusal(RULE_HOST_HELLO_VERSION, &hello, sizeof(hello), &memory, 1);
		assert_int_equal(world.args[1], versions[i]);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		hello = right_hello();
		hello.memory = sizes[i];
		expect_refusal(RULE_HOST_HELLO_VERSION, &hello, sizeof(hello), &memory, 1);
		assert_int_equal(world.args[2], sizes[i]);
	}
	close(memory);
}

static void refuse_memory(enum explain_rule rule, int descriptor)
{
	struct host_hello hello = right_hello();

	assert_true(descriptor >= 0);
	expect_refusal(rule, &hello, sizeof(hello), &descriptor, 1);
	close(descriptor);
}

TEST(wrong_memory)
{
	const char *path = "host_hello.tmp";
	int ends[2], fd;

	/* A process that can truncate a file can raise SIGBUS in others. */
	for (int missing = 1; missing <= SEALS; missing <<= 1)
		if (SEALS & missing)
			refuse_memory(RULE_HOST_HELLO_SEALS, memory_of(MEMORY, SEALS & ~missing, 0));
	refuse_memory(RULE_HOST_HELLO_MEMORY, memory_of(MEMORY - 1, SEALS, 0));
	refuse_memory(RULE_HOST_HELLO_MEMORY, memory_of(MEMORY + 4096, SEALS, 0));
	refuse_memory(RULE_HOST_HELLO_MEMORY, memory_of(0, SEALS, 0));
	fd = memory_of(MEMORY, SEALS, MFD_HUGETLB);
	if (fd >= 0)
		refuse_memory(RULE_HOST_HELLO_MEMORY, fd);
	/* A descriptor that is not memory. */
	assert_int_equal(pipe(ends), 0);
	refuse_memory(RULE_HOST_HELLO_SEALS, ends[0]);
	refuse_memory(RULE_HOST_HELLO_SEALS, ends[1]);
	refuse_memory(RULE_HOST_HELLO_SEALS, socket(AF_UNIX, SOCK_STREAM, 0));
	refuse_memory(RULE_HOST_HELLO_SEALS, open("/dev/zero", O_RDWR));
	refuse_memory(RULE_HOST_HELLO_SEALS, open("/", O_RDONLY | O_DIRECTORY));
	refuse_memory(RULE_HOST_HELLO_SEALS, open("/", O_PATH));
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(ftruncate(fd, MEMORY), 0);
	refuse_memory(RULE_HOST_HELLO_SEALS, fd);
	/* Sealed against writable mappings: harmless, but useless. */
	fd = memory_of(MEMORY, SEALS | F_SEAL_WRITE, 0);
	refuse_memory(RULE_HOST_NOT_ACCEPTED, fd);
	assert_int_equal(world.args[1], EPERM);
	/* Opened for reading only by another process. */
	fd = memory_of(MEMORY, SEALS, 0);
	{
		char name[40];

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		refuse_memory(RULE_HOST_NOT_ACCEPTED, open(name, O_RDONLY));
		assert_int_equal(world.args[1], EACCES);
	}
	close(fd);
}

/* Peers that connect and close without a message, and peers that keep sending after the hello. */
TEST(before_and_after)
{
	struct host_hello hello = right_hello();
	int memory = memory_of(MEMORY, SEALS, 0), before = count_descriptors();
	int fd = raw_connect(own);

	loop();
	close(fd);
	assert_int_equal(loop(), 1);
	fd = raw_connect(own);
	close(fd);
	assert_int_equal(loop(), 1);
	assert_int_equal(count_descriptors(), before);
	/* Unexpected descriptors. */
	fd = raw_connect(own);
	say(fd, &hello, sizeof(hello), &memory, 1);
	loop();
	before = count_descriptors();
	for (int i = 0; i < 100; i++) {
		say(fd, &hello, sizeof(hello), &memory, 1);
		loop();
	}
	assert_int_equal(count_descriptors(), before);
	assert_int_equal(count_peers(), 1);
	/* An empty message afterwards. */
	say(fd, "", 0, NULL, 0);
	loop();
	assert_int_equal(count_peers(), 0);
	assert_true(is_closed(fd));
	expect_silence();
	close(fd);
	close(memory);
}

/* The other half of a connection may be shut while the process lives. */
TEST(half_an_end)
{
	struct host_hello hello = right_hello();
	int memory = memory_of(MEMORY, SEALS, 0), fd = raw_connect(own);

	say(fd, &hello, sizeof(hello), &memory, 1);
	loop();
	assert_int_equal(count_peers(), 1);
	shutdown(fd, SHUT_WR);
	assert_int_equal(loop(), 1);
	assert_int_equal(count_peers(), 0);
	assert_int_equal(loop(), 0);
	close(fd);
	close(memory);
}

TEST(many_that_say_nothing)
{
	enum { MANY = 40 };
	struct host_hello hello = right_hello();
	int memory = memory_of(MEMORY, SEALS, 0), before = count_descriptors(), fd[MANY], closed = 0, last;

	for (int i = 0; i < 16; i++)
		fd[i] = raw_connect(own);
	loop();
	expect_silence();
	fd[16] = raw_connect(own);
	loop();
	expect_rule(HOST_STRANGERS);
	assert_int_equal(world.args[0], 16);
	assert_true(is_closed(fd[0]));
	assert_true(is_closed(fd[16]));
	for (int i = 1; i < 16; i++)
		assert_false(is_closed(fd[i]));
	for (int i = 17; i < MANY; i++) {
		fd[i] = raw_connect(own);
		loop();
	}
	assert_true(count_descriptors() <= before + MANY + 16);
	/* A valid peer is still accepted. */
	last = raw_connect(own);
	say(last, &hello, sizeof(hello), &memory, 1);
	loop();
	assert_int_equal(count_peers(), 1);
	for (int i = 0; i < MANY; i++) {
		closed += is_closed(fd[i]);
		close(fd[i]);
	}
	assert_true(closed >= MANY - 16);
	close(last);
	loop();
	assert_int_equal(count_descriptors(), before);
	close(memory);
}

/* A peer waiting to be accepted must not keep the thread awake forever. */
TEST(no_descriptor_left)
{
	int fd = raw_connect(own), again = raw_connect(own), taken[FEW_DESCRIPTORS], count = 0;

	while ((taken[count] = dup(0)) >= 0)
		count++;
	/* Twice: the spare descriptor is opened again. */
	assert_in_range(loop(), 1, 2);
	assert_true(is_closed(fd));
	assert_true(is_closed(again));
	assert_int_equal(loop(), 0);
	while (count)
		close(taken[--count]);
	close(fd);
	close(again);
}

/* There is no room here for the descriptor of the memory. */
TEST(no_descriptor_for_the_memory)
{
	struct host_hello hello = right_hello();
	int memory = memory_of(MEMORY, SEALS, 0), fd = raw_connect(own);
	struct rlimit limit, few;

	getrlimit(RLIMIT_NOFILE, &limit);
	loop();
	say(fd, &hello, sizeof(hello), &memory, 1);
	few = limit;
	few.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &few);
	loop();
	setrlimit(RLIMIT_NOFILE, &limit);
	expect_rule(HOST_NOT_ACCEPTED);
	assert_int_equal(world.args[1], EMFILE);
	assert_true(is_closed(fd));
	close(fd);
	close(memory);
}

int main(void)
{
	/* All descriptors can be used up. */
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){FEW_DESCRIPTORS, FEW_DESCRIPTORS});
	own_names();
	return run_cases(.setup = begin, .group_teardown = begin_test);
}
