/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots of QP numbers: each belongs to one process of the host, and to nobody when that has ended. */
#include "host_fixture.h"

#include <sys/resource.h>

#include "core/limits.h"

enum { SLOT = 1 << HOST_SLOT_BITS };

/* Numbers that programs and the architecture have taken. */
static void is_a_slot(uint32_t first)
{
	assert_int_equal(first % SLOT, 0);
	assert_true(first >= SLOT);
	assert_true(first + SLOT - 1 < 0xffffff);
}

static void slots_differ(void **state)
{
	struct process others[4];
	uint32_t first[2 + 2 * 4];
	int count = 0;

	(void)state;
	first[count++] = claim();
	first[count++] = claim();
	for (int i = 0; i < 4; i++) {
		others[i] = start_process();
		first[count++] = (uint32_t)tell(&others[i], CLAIM, 0);
		first[count++] = (uint32_t)tell(&others[i], CLAIM, 0);
	}
	for (int i = 0; i < count; i++) {
		is_a_slot(first[i]);
		assert_int_equal(host_owns(first[i]), i < 2);
		assert_int_equal(host_owns(first[i] + SLOT - 1), i < 2);
		assert_int_equal(tell(&others[0], OWNS, first[i] + 5), i == 2 || i == 3);
		for (int j = 0; j < i; j++)
			assert_int_not_equal(first[i], first[j]);
	}
	for (int i = 0; i < 4; i++)
		end_process(&others[i], 0);
	expect_silence();
}

/* Two that would like the same slot best. */
static void two_that_want_the_same(void **state)
{
	struct sockaddr_un address;
	uint32_t first = claim();
	socklen_t length;
	int fd;

	(void)state;
	begin_test(state);
	length = host_slot_address(host_slot_of(first), &address);
	fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
	assert_int_not_equal(claim(), first);
	expect_silence();
	close(fd);
	begin_test(state);
	assert_int_equal(claim(), first);
}

static void numbers_that_are_in_no_slot(void **state)
{
	static const uint32_t none[] = {0, 1, SLOT - 1, 0xffffff, 0x1000000, UINT32_MAX};

	(void)state;
	claim();
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_false(host_owns(none[i]));
		assert_null(peer_of(none[i]));
		assert_null(host_peer_known(none[i]));
	}
	expect_silence();
}

static void the_names_of_the_dead(void **state)
{
	struct process other = start_process();
	uint32_t first = (uint32_t)tell(&other, CLAIM, 0);
	int fd = raw_connect(first);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	end_process(&other, SIGKILL);
	assert_int_equal(raw_connect(first), -1);
	assert_null(peer_of(first));
	expect_silence();
}

static void a_process_has_as_many_as_the_limit_says(void **state)
{
	struct rlimit limit = {.rlim_cur = 2048, .rlim_max = 2048};
	uint32_t first;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < LIMIT_MAX_QP / SLOT; i++)
		is_a_slot(claim());
	assert_int_equal(host_claim_slot(&first), -ENOSPC);
	expect_silence();
}

/* A name is no file: another network namespace is another host. */
static void hosts_are_apart(void **state)
{
	struct process other;
	uint32_t first;

	(void)state;
	if (getuid())
		skip();
	first = claim();
	other = start_process();
	assert_int_equal(tell(&other, PEER, first), 2);
	end_process(&other, 0);
	if (fork_process() == 0)
		_exit(unshare(CLONE_NEWNET) || peer_of(first) != NULL);
	else {
		int status;

		wait(&status);
		assert_int_equal(status, 0);
	}
}

/* Everybody else's. All but the first and the last can be had. */
static void all_slots_are_taken(void **state)
{
	struct rlimit before, limit = {.rlim_cur = HOST_SLOTS + 100, .rlim_max = HOST_SLOTS + 100};
	static int taken[HOST_SLOTS];
	uint32_t first;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &before);
	if (before.rlim_max > limit.rlim_max)
		limit.rlim_max = before.rlim_max;
	if (!alone || setrlimit(RLIMIT_NOFILE, &limit))
		skip();
	for (uint32_t i = 1; i < HOST_SLOTS - 1; i++) {
		struct sockaddr_un address;
		socklen_t length = host_slot_address(i, &address);

		taken[i] = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		assert_int_equal(bind(taken[i], (struct sockaddr *)&address, length), 0);
	}
	assert_int_equal(host_claim_slot(&first), -ENOSPC);
	close(taken[HOST_SLOTS - 2]);
	assert_int_equal(claim(), (HOST_SLOTS - 2) * SLOT);
	close(taken[1]);
	assert_int_equal(claim(), SLOT);
	assert_int_equal(host_claim_slot(&first), -ENOSPC);
	for (uint32_t i = 2; i < HOST_SLOTS - 2; i++)
		close(taken[i]);
	setrlimit(RLIMIT_NOFILE, &before);
	expect_silence();
}

static void without_descriptors(void **state)
{
	struct rlimit limit, none;
	uint32_t first;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	first = claim();
	setrlimit(RLIMIT_NOFILE, &limit);
	expect_rule(HOST_NO_SOCKET);
	assert_int_equal(world.args[0], first);
	assert_int_equal(world.args[1], first + SLOT - 1);
	assert_int_equal(world.args[2], EMFILE);
	/* It is this process's, and nobody finds it. */
	is_a_slot(first);
	assert_true(host_owns(first));
	assert_int_equal(raw_connect(first), -1);
	host_accept();
	assert_null(peer_of(first));
	/* The next one may be better. */
	first = claim();
	assert_true(host_owns(first));
	assert_non_null(peer_of(first));
	expect_silence();
}

static void a_child_has_no_slot(void **state)
{
	struct process child, grandchild;
	uint32_t of_parent = claim(), of_child;

	(void)state;
	child = start_process();
	assert_false(tell(&child, OWNS, of_parent));
	assert_true(tell(&child, FORMER, of_parent));
	of_child = (uint32_t)tell(&child, CLAIM, 0);
	assert_int_not_equal(of_child, of_parent);
	/* A grandchild remembers both. */
	grandchild = child;
	grandchild.pid = (pid_t)tell(&child, CHILD_OF, 0);
	assert_int_not_equal(grandchild.pid, child.pid);
	assert_false(tell(&grandchild, OWNS, of_child));
	assert_true(tell(&grandchild, FORMER, of_child));
	assert_true(tell(&grandchild, FORMER, of_parent));
	assert_true(host_owns(of_parent));
	/* Its parent ends, it lives, and the name is free. */
	kill(child.pid, SIGKILL);
	assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
	assert_int_equal(tell(&grandchild, OWNS, of_child), 0);
	assert_int_equal(raw_connect(of_child), -1);
	kill(grandchild.pid, SIGKILL);
	close(grandchild.orders);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(slots_differ, begin_test),
		cmocka_unit_test_setup(two_that_want_the_same, begin_test),
		cmocka_unit_test_setup(numbers_that_are_in_no_slot, begin_test),
		cmocka_unit_test_setup(the_names_of_the_dead, begin_test),
		cmocka_unit_test_setup(a_process_has_as_many_as_the_limit_says, begin_test),
		cmocka_unit_test_setup(all_slots_are_taken, begin_test),
		cmocka_unit_test_setup(hosts_are_apart, begin_test),
		cmocka_unit_test_setup(without_descriptors, begin_test),
		cmocka_unit_test_setup(a_child_has_no_slot, begin_test),
	};

	own_names();
	return cmocka_run_group_tests(tests, NULL, begin_test);
}
