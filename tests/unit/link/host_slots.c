/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots of QP numbers: each belongs to one process of the host, and has no owner after that process has ended. */
#include "../support/host_fixture.h"

#include <sys/resource.h>

#include "core/limits.h"
#include "core/tunables.h"

enum { SLOT = 1 << HOST_SLOT_BITS };

/* Checks that the slot avoids the numbers reserved by programs and the architecture. */
static void is_a_slot(uint32_t first)
{
	assert_int_equal(first % SLOT, 0);
	assert_true(first >= SLOT);
	assert_true(first + SLOT - 1 < 0xffffff);
}

TEST(slots_differ)
{
	struct process others[4];
	uint32_t first[2 + 2 * 4];
	int count = 0;

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

/* Two processes that prefer the same slot. */
TEST(two_that_want_the_same)
{
	uint32_t first = claim();
	struct host_name name = host_slot_name(host_slot_of(first));
	int fd;

	begin_test(state);
	fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&name.address, name.length), 0);
	assert_int_not_equal(claim(), first);
	expect_silence();
	close(fd);
	begin_test(state);
	assert_int_equal(claim(), first);
}

TEST(numbers_that_are_in_no_slot)
{
	static const uint32_t none[] = {0, 1, SLOT - 1, 0xffffff, 0x1000000, UINT32_MAX};

	claim();
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_false(host_owns(none[i]));
		assert_null(peer_of(none[i]));
		assert_null(host_peer_known(none[i]));
	}
	expect_silence();
}

TEST(the_names_of_the_dead)
{
	struct process other = start_process();
	uint32_t first = (uint32_t)tell(&other, CLAIM, 0);
	int fd = raw_connect(first);

	assert_true(fd >= 0);
	close(fd);
	end_process(&other, SIGKILL);
	assert_int_equal(raw_connect(first), -1);
	assert_null(peer_of(first));
	expect_silence();
}

TEST(a_process_has_as_many_as_the_limit_says)
{
	struct rlimit limit = {.rlim_cur = 2048, .rlim_max = 2048};
	uint32_t first;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < LIMIT_MAX_QP / SLOT; i++)
		is_a_slot(claim());
	assert_int_equal(host_claim_slot(&first), -ENOSPC);
	expect_silence();
}

/* ---- names taken by another user ------------------------------------------------------------------------------- */

enum { SQUATTER = 65532, USER = 65531 };

static struct process squatter;

/* Starts a process of another user, if possible, that takes all plain names of slots. */
static bool begin_squatter(void)
{
	/* Plain names, and one reserve name for each slot of the reserve. */
	const rlim_t names = HOST_SLOTS + HOST_RESERVE_SLOTS + 100;
	struct rlimit before, limit;

	if (!alone || getrlimit(RLIMIT_NOFILE, &before))
		return false;
	limit = (struct rlimit){names, before.rlim_max > names ? before.rlim_max : names};
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return false;
	squatter = start_process();
	if (!getuid())
		assert_int_equal(tell(&squatter, BECOME, SQUATTER), 1);
	assert_int_equal(tell(&squatter, SQUAT, 0), HOST_SLOTS);
	setrlimit(RLIMIT_NOFILE, &before);
	return true;
}

static void expect_reserve(uint32_t first)
{
	is_a_slot(first);
	assert_in_range(host_slot_of(first), HOST_FIRST_RESERVE, HOST_SLOTS - 2);
	expect_rule(HOST_NAMES_TAKEN);
	assert_int_equal(world.args[1], first);
	assert_int_equal(world.args[2], first + SLOT - 1);
}

/* Every process can still make queue pairs, and processes of one user still find each other. */
TEST(all_plain_names_are_taken)
{
	struct process processes[8];
	uint32_t own, its[8];

	if (!begin_squatter())
		skip();
	own = claim();
	expect_reserve(own);
	for (int i = 0; i < 8; i++) {
		processes[i] = start_process();
		its[i] = (uint32_t)tell(&processes[i], CLAIM, 0);
		assert_int_equal(tell(&processes[i], RULE_MADE, 0), RULE_HOST_NAMES_TAKEN);
		assert_int_not_equal(its[i], own);
		for (int j = 0; j < i; j++)
			assert_int_not_equal(its[i], its[j]);
	}
	for (int i = 0; i < 8; i++) {
		assert_false(host_slot_is_vacant(its[i]));
		assert_non_null(peer_of(its[i] + 3));
		assert_int_equal(host_peers()->pid, processes[i].pid);
		assert_int_equal(tell(&processes[i], PEER, its[(i + 1) % 8]) != 0, 1);
	}
	assert_int_equal(count_peers(), 8);
	for (int i = 0; i < 8; i++)
		end_process(&processes[i], SIGKILL);
	world.now_ns += TUNABLE_HOST_QUESTION_NS;
	/* If the squatter does not hold the plain name. */
	assert_int_equal(tell(&squatter, RELEASE, host_slot_of(its[0])), 1);
	assert_true(host_slot_is_vacant(its[0]));
	end_process(&squatter, SIGKILL);
	expect_silence();
}

/* Names of the same form held by another user do not hide a process. */
TEST(reserve_names_of_another_user)
{
	struct process other;
	uint32_t its;

	if (getuid() || !begin_squatter())
		skip();
	other = start_process();
	its = (uint32_t)tell(&other, CLAIM, 0);
	assert_int_equal(tell(&squatter, SQUAT_RESERVE, host_slot_of(its)), 200);
	assert_non_null(peer_of(its));
	assert_int_equal(host_peers()->pid, other.pid);
	expect_silence();
	end_process(&other, 0);
	end_process(&squatter, SIGKILL);
}

/*
 * Another user holds a name of every reserve slot: they are chosen nevertheless, and the numbers of one user remain
 * distinct.
 */
TEST(all_reserve_slots_of_another_user)
{
	struct process other;
	uint32_t its;

	if (getuid() || !begin_squatter())
		skip();
	assert_int_equal(tell(&squatter, SQUAT_ALL_RESERVE, 0), HOST_RESERVE_SLOTS);
	other = start_process();
	its = (uint32_t)tell(&other, CLAIM, 0);
	assert_in_range(host_slot_of(its), HOST_FIRST_RESERVE, HOST_SLOTS - 2);
	assert_non_null(peer_of(its));
	assert_int_equal(host_peers()->pid, other.pid);
	end_process(&other, 0);
	end_process(&squatter, SIGKILL);
}

/* A name is not a file: another network namespace is another host. */
TEST(hosts_are_apart)
{
	struct process other;
	uint32_t first;

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

TEST(without_descriptors)
{
	struct rlimit limit, none;
	uint32_t first;

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
	/* It belongs to this process, but other processes cannot find it. */
	is_a_slot(first);
	assert_true(host_owns(first));
	assert_int_equal(raw_connect(first), -1);
	host_accept();
	assert_null(peer_of(first));
	/* The next slot may be better. */
	first = claim();
	assert_true(host_owns(first));
	assert_non_null(peer_of(first));
	expect_silence();
}

TEST(a_child_has_no_slot)
{
	struct process child, grandchild;
	uint32_t of_parent = claim(), of_child;

	child = start_process();
	assert_false(tell(&child, OWNS, of_parent));
	assert_true(tell(&child, FORMER, of_parent));
	of_child = (uint32_t)tell(&child, CLAIM, 0);
	assert_int_not_equal(of_child, of_parent);
	/* A grandchild records both slots. */
	grandchild = child;
	grandchild.pid = (pid_t)tell(&child, CHILD_OF, 0);
	assert_int_not_equal(grandchild.pid, child.pid);
	assert_false(tell(&grandchild, OWNS, of_child));
	assert_true(tell(&grandchild, FORMER, of_child));
	assert_true(tell(&grandchild, FORMER, of_parent));
	assert_true(host_owns(of_parent));
	/* Its parent ends, it stays alive, and the name is free. */
	kill(child.pid, SIGKILL);
	assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
	assert_int_equal(tell(&grandchild, OWNS, of_child), 0);
	assert_int_equal(raw_connect(of_child), -1);
	kill(grandchild.pid, SIGKILL);
	close(grandchild.orders);
}

int main(void)
{
	own_names();
	return run_cases(.setup = begin_test, .group_teardown = begin_test);
}
