/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections between processes: one per pair, usable at once, and ended on both sides when one process ends. */
#include "../support/host_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

#include "core/tunables.h"

static struct process other;
static uint32_t own, its;

static int begin_pair(void **state)
{
	begin_test(state);
	other = start_process();
	its = (uint32_t)tell(&other, CLAIM, 0);
	own = claim();
	host_accept();
	return 0;
}

static int end_pair(void **state)
{
	(void)state;
	end_process(&other, 0);
	return 0;
}

TEST(usable_at_once)
{
	struct host_peer *peer = peer_of(its + 7);

	assert_non_null(peer);
	assert_true(peer->created);
	assert_int_equal(peer->pid, other.pid);
	assert_ptr_equal(peer, host_peer_known(its));
	assert_ptr_equal(peer, host_peer_known(its + 1023));
	assert_null(host_peer_known(its + 1024));
	/* The other side has recorded nothing yet, and does not accept yet. */
	peer->memory[0] = 77;
	assert_int_equal(tell(&other, PEERS, 0), 0);
	tell(&other, ACCEPT, 0);
	assert_int_equal(tell(&other, LOOP, 0), 1);
	assert_int_equal(tell(&other, PEERS, 0), 1);
	assert_int_equal(tell(&other, PEER_PID, 0), getpid());
	assert_int_equal(tell(&other, READ, 0), 77);
	tell(&other, WRITE, 78);
	assert_int_equal(peer->memory[MEMORY - 1], 78);
	assert_int_equal(world.begun, 1);
	expect_silence();
}

/* Messages sent before this process could find the connection woke the device thread without effect, or not at all. */
TEST(looked_at_once_it_is_found)
{
	struct process third = start_process();
	uint32_t number = (uint32_t)tell(&third, CLAIM, 0);

	/* Made here, and accepted there by a thread that was about to make one. */
	assert_non_null(peer_of(its));
	assert_int_equal(woken(), 1);
	tell(&other, ACCEPT, 0);
	assert_int_equal(tell(&other, PEER, own), 1);
	assert_int_equal(tell(&other, WOKEN, 0), 1);
	/* Found, not made. */
	assert_non_null(peer_of(its + 1));
	assert_int_equal(woken(), 0);
	/*
	 * The device thread also wakes itself when it records a connection, since a thread that substitutes for it may
	 * have polled before.
	 */
	assert_int_equal(tell(&third, PEER, own), 2);
	assert_int_equal(loop_for(1000), 1);
	assert_int_equal(count_peers(), 2);
	assert_int_equal(woken(), 2);
	assert_non_null(peer_of(number));
	assert_int_equal(woken(), 0);
	end_process(&third, 0);
}

TEST(one_connection_for_all_slots_and_both_ways)
{
	uint32_t its_second = (uint32_t)tell(&other, CLAIM, 0), own_second = claim();
	struct host_peer *peer = peer_of(its);
	int before = count_descriptors();

	assert_ptr_equal(peer_of(its_second), peer);
	assert_ptr_equal(host_peer_known(its_second + 3), peer);
	assert_ptr_equal(peer_of(its + 9), peer);
	/* It has accepted nothing when it wants to connect, so it first checks for incoming connections. */
	assert_int_equal(tell(&other, PEER, own), 1);
	assert_int_equal(tell(&other, PEER, own_second), 1);
	assert_int_equal(tell(&other, PEERS, 0), 1);
	tell(&other, LOOP, 0);
	assert_int_equal(tell(&other, PEERS, 0), 1);
	/* The other process connected to find the owner of our slots, and then closed the connection. */
	loop();
	assert_int_equal(count_peers(), 1);
	assert_int_equal(count_descriptors(), before);
	assert_int_equal(world.gone, 0);
	expect_silence();
}

/* Both connect at the same time: each keeps using its first connection, and keeps the other one. */
TEST(two_connections)
{
	struct host_peer *first = peer_of(its), *second;

	assert_int_equal(tell(&other, RAW_HELLO, own), 1);
	assert_int_equal(loop(), 1);
	assert_int_equal(count_peers(), 2);
	assert_ptr_equal(peer_of(its), first);
	second = host_peers();
	assert_ptr_not_equal(second, first);
	assert_false(second->created);
	assert_int_equal(second->pid, first->pid);
	assert_ptr_equal(second->next, first);
}

/* A process needs no third connection: otherwise it could make this one use any amount of memory and descriptors. */
TEST(no_third_connection)
{
	struct host_peer *first = peer_of(its);
	int before;

	assert_int_equal(tell(&other, RAW_HELLO, own), 1);
	loop();
	assert_int_equal(count_peers(), 2);
	before = count_descriptors();
	for (int i = 0; i < 5; i++) {
		assert_int_equal(tell(&other, RAW_HELLO, own), 1);
		loop();
	}
	assert_int_equal(count_peers(), 2);
	assert_int_equal(count_descriptors(), before);
	assert_int_equal(world.gone, 0);
	assert_ptr_equal(peer_of(its), first);
}

TEST(a_slot_that_was_claimed_later)
{
	uint32_t second = claim();

	assert_int_equal(tell(&other, PEER, second), 2);
	assert_int_equal(loop(), 1);
	assert_int_equal(count_peers(), 1);
}

/* The id of an ended process is reused by another before the end is noticed. */
TEST(an_id_for_the_second_time)
{
	struct process third = start_process();
	struct host_peer *gone, *peer;
	uint32_t number;

	number = (uint32_t)tell(&third, CLAIM, 0);
	gone = peer_of(number);
	assert_non_null(gone);
	end_process(&third, SIGKILL);
	gone->pid = other.pid;
	peer = peer_of(its);
	assert_non_null(peer);
	assert_ptr_not_equal(peer, gone);
	assert_int_equal(loop_for(1000), 1);
	assert_int_equal(count_peers(), 1);
	assert_ptr_equal(host_peer_known(its), peer);
}

/*
 * A process that cannot see the id of this one cannot tell whether two slots belong to one process, so it makes a
 * connection for each. This process can tell.
 */
TEST(ids_that_cannot_be_seen)
{
	uint32_t second = claim(), of_child;
	struct process parent = other;
	struct host_peer *peer;

	if (!tell(&other, NEW_PIDS, 0))
		skip();
	assert_int_equal(tell(&other, CHILD_OF, 0), 1);
	of_child = (uint32_t)tell(&other, CLAIM, 0);
	assert_int_equal(tell(&other, PEER, own), 2);
	assert_int_equal(tell(&other, PEER_PID, 0), 0);
	assert_int_equal(tell(&other, PEER, second), 2);
	assert_int_equal(tell(&other, PEERS, 0), 2);
	peer = peer_of(of_child);
	assert_non_null(peer);
	assert_false(peer->created);
	assert_int_equal(count_peers(), 2);
	assert_true(peer->pid && peer->pid != other.pid && host_peers()->pid == host_peers()->next->pid);
	/* Both connections end with it. */
	kill(peer->pid, SIGKILL);
	while (loop_for(1000))
		;
	assert_int_equal(count_peers(), 0);
	end_process(&parent, SIGKILL);
	other = start_process();
}

TEST(to_this_process)
{
	struct host_peer *peer = peer_of(own), *end;

	assert_true(peer && peer->created);
	assert_int_equal(peer->pid, getpid());
	assert_int_equal(loop(), 1);
	assert_int_equal(count_peers(), 2);
	end = host_peers();
	assert_ptr_not_equal(end, peer);
	assert_false(end->created);
	peer->memory[5] = 5;
	assert_int_equal(end->memory[5], 5);
	assert_ptr_equal(peer_of(own), peer);
	assert_int_equal(count_peers(), 2);
}

TEST(waking)
{
	struct host_peer *peer = peer_of(its);

	assert_int_equal(tell(&other, PEER, own), 1);
	loop();
	host_wake(peer);
	host_wake(peer);
	/* Its socket, and that of the slot, which was queried before. */
	assert_true(tell(&other, LOOP, 1000) >= 1);
	assert_int_equal(tell(&other, LOOP, 0), 0);
	tell(&other, WAKE, 0);
	assert_int_equal(loop_for(1000), 1);
	assert_int_equal(loop(), 0);
	/* More than the peer accepts, without blocking. */
	for (int i = 0; i < 100000; i++)
		host_wake(peer);
	assert_true(tell(&other, LOOP, 1000) >= 1);
	assert_int_equal(tell(&other, LOOP, 0), 0);
	assert_int_equal(tell(&other, GONE, 0), 0);
	assert_int_equal(world.gone, 0);
}

static void the_end_is_seen(int signal)
{
	int before = count_descriptors();
	struct process third = start_process();
	uint32_t number = (uint32_t)tell(&third, CLAIM, 0);

	assert_non_null(peer_of(its));
	assert_non_null(peer_of(number));
	tell(&third, PEER, own);
	loop();
	end_process(&third, signal);
	/* A wake-up for a peer that is gone: no signal, no failure. */
	host_wake(host_peer_known(number));
	assert_int_equal(loop_for(1000), 1);
	assert_int_equal(world.gone, 1);
	assert_int_equal(world.ended, 1);
	assert_null(host_peer_known(number));
	assert_null(peer_of(number));
	/* The other connection continues. */
	assert_int_equal(count_peers(), 1);
	assert_non_null(host_peer_known(its));
	assert_int_equal(count_descriptors(), before + 1);
	expect_silence();
}

TEST(a_process_exits)
{
	the_end_is_seen(0);
}

TEST(a_process_is_killed)
{
	the_end_is_seen(SIGKILL);
}

/* Between connect(2) and the first message: the slot has no owner any more, which is detected at once. */
TEST(a_process_is_killed_when_connected_to)
{
	int before = count_descriptors();

	world.kills = other.pid;
	errno = 0;
	assert_null(host_peer_of(its));
	assert_int_equal(errno, ENOENT);
	assert_int_equal(world.begun, 1);
	assert_int_equal(world.ended, 1);
	assert_int_equal(count_peers(), 0);
	assert_int_equal(count_descriptors(), before);
	expect_silence();
	end_process(&other, SIGKILL);
	other = start_process();
}

/* A forked child holds copies of the descriptors only for a moment. */
TEST(the_parent_of_a_living_child_is_killed)
{
	pid_t child;

	assert_non_null(peer_of(its));
	tell(&other, PEER, own);
	loop();
	child = (pid_t)tell(&other, CHILD, 0);
	end_process(&other, SIGKILL);
	assert_int_equal(loop_for(1000), 1);
	assert_int_equal(world.gone, 1);
	assert_null(peer_of(its));
	assert_int_equal(kill(child, 0), 0);
	kill(child, SIGKILL);
	begin_pair(state);
}

TEST(a_child_has_no_peers)
{
	pid_t pid;
	int status;

	assert_non_null(peer_of(its));
	pid = fork_process();
	if (!pid) {
		bool empty = !host_peers() && !host_peer_known(its) && !host_owns(own);

		/* Its own connection. */
		_exit(!(empty && claim() != own && peer_of(its) && peer_of(its)->created && peer_of(own)));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* The parent's connection has not changed. */
	assert_int_equal(tell(&other, PEER, own), 1);
	assert_int_equal(world.gone, 0);
	assert_int_equal(count_peers(), 1);
}

/* Another thread uses the peer while it ends. */
static int section; /* atomic; 1 inside, 2 has left */

static void *look(void *argument)
{
	const struct timespec moment = {.tv_nsec = 100000000};
	struct host_peer *peer;

	(void)argument;
	epoch_enter();
	peer = host_peer_of(its);
	__atomic_store_n(&section, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&peer->gone, __ATOMIC_ACQUIRE))
		;
	nanosleep(&moment, NULL);
	peer->memory[0] = 1;
	host_wake(peer);
	__atomic_store_n(&section, 2, __ATOMIC_SEQ_CST);
	epoch_leave();
	return NULL;
}

TEST(a_peer_in_use_stays_valid)
{
	pthread_t thread;

	assert_non_null(peer_of(its));
	assert_int_equal(pthread_create(&thread, NULL, look, NULL), 0);
	while (__atomic_load_n(&section, __ATOMIC_SEQ_CST) != 1)
		;
	end_process(&other, SIGKILL);
	loop_for(1000);
	assert_int_equal(world.ended, 1);
	assert_int_equal(__atomic_load_n(&section, __ATOMIC_SEQ_CST), 2);
	pthread_join(thread, NULL);
	begin_pair(state);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void no_connection(int error)
{
	int before = count_descriptors();

	assert_null(peer_of(its));
	expect_rule(HOST_NO_CONNECTION);
	assert_int_equal(world.args[0], its);
	assert_int_equal(world.args[2], error);
	assert_int_equal(count_peers(), 0);
	assert_null(host_peer_known(its));
	assert_int_equal(count_descriptors(), before);
}

TEST(failing_steps)
{
	struct rlimit limit, few;

	world.begin_error = -ENOMEM;
	no_connection(ENOMEM);
	assert_int_equal(world.ended, 0);
	world.begin_error = 0;
	world.watch_error = -EAGAIN;
	no_connection(EAGAIN);
	assert_int_equal(world.ended, world.begun);
	world.watch_error = 0;
	getrlimit(RLIMIT_NOFILE, &limit);
	few = limit;
	for (few.rlim_cur = 0; few.rlim_cur < 64; few.rlim_cur++) {
		struct host_peer *peer;

		setrlimit(RLIMIT_NOFILE, &few);
		peer = peer_of(its);
		setrlimit(RLIMIT_NOFILE, &limit);
		if (peer)
			break;
		/* Not ENOENT: then the packets of the QP would be sent to no process, forever. */
		assert_int_equal(errno, EMFILE);
		expect_rule(HOST_NO_CONNECTION);
		assert_int_equal(world.args[2], EMFILE);
	}
	assert_true(few.rlim_cur < 64);
	assert_int_equal(count_peers(), 1);
}

TEST(no_process_accepts)
{
	const uint32_t slot = host_slot_of(its) == 5 ? 6 : 5;
	struct host_name name = host_slot_name(slot);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), waiting[2];

	assert_int_equal(bind(fd, (struct sockaddr *)&name.address, name.length), 0);
	/* A name with a socket that does not listen. */
	assert_null(peer_of(slot << HOST_SLOT_BITS));
	assert_int_equal(errno, ENOENT);
	expect_silence();
	assert_int_equal(listen(fd, 0), 0);
	waiting[0] = raw_connect(slot << HOST_SLOT_BITS);
	waiting[1] = raw_connect(slot << HOST_SLOT_BITS);
	assert_int_equal(waiting[1], -1);
	assert_null(peer_of(slot << HOST_SLOT_BITS));
	expect_rule(HOST_NO_CONNECTION);
	assert_int_equal(world.args[2], EAGAIN);
	/* Any packet of another host to one of its numbers repeats the attempt: not each one gets a line. */
	world.enough = true;
	assert_null(peer_of(slot << HOST_SLOT_BITS));
	assert_int_equal(errno, EAGAIN);
	expect_silence();
	world.enough = false;
	close(waiting[0]);
	close(fd);
}

TEST(no_thread)
{
	begin_test(state);
	own = claim();
	world.watch_error = -EAGAIN;
	host_accept();
	expect_rule(HOST_NO_THREAD);
	assert_int_equal(world.args[0], EAGAIN);
	world.enough = true;
	host_accept();
	expect_silence();
	world.enough = false;
	world.watch_error = 0;
	host_accept();
	expect_silence();
	assert_int_equal(tell(&other, PEER, own), 2);
	assert_int_equal(loop(), 1);
	assert_int_equal(count_peers(), 1);
}

/* ---- users --------------------------------------------------------------------------------------------------------- */

TEST(another_user)
{
	if (getuid())
		skip();
	assert_int_equal(tell(&other, BECOME, 65533), 1);
	/* The name shows the user at its creation; the other checks use the current user. */
	assert_int_equal(tell(&other, PEER, own), 0);
	assert_int_equal(tell(&other, RULE_MADE, 0), RULE_HOST_OTHER_USER);
	loop();
	expect_rule(HOST_OTHER_USER);
	its = (uint32_t)tell(&other, CLAIM, 0);
	assert_null(peer_of(its));
	expect_rule(HOST_OTHER_USER);
	assert_int_equal(world.args[0], other.pid);
	assert_int_equal(world.args[1], 65533);
	assert_int_equal(world.args[2], 0);
	/* A side that does not check for itself is refused by the other. */
	assert_int_equal(tell(&other, RAW_HELLO, own), 1);
	loop();
	expect_rule(HOST_OTHER_USER);
	assert_int_equal(world.args[1], 65533);
	assert_int_equal(count_peers(), 0);
	end_pair(state);
	begin_pair(state);
}

enum { LATER_USER = 65533 };

static uid_t user_at(int socket)
{
	struct ucred maker = {.uid = (uid_t)-1};
	socklen_t length = sizeof(maker);

	assert_int_equal(getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &maker, &length), 0);
	return maker.uid;
}

/* Two daemons start as root, claim their names, and change to the same user. */
TEST(two_that_have_become_the_same_user)
{
	struct process third;

	if (getuid())
		skip();
	third = start_process();
	tell(&third, CLAIM, 0);
	tell(&other, ACCEPT, 0);
	assert_int_equal(tell(&other, BECOME, LATER_USER), 1);
	/* A process of root and one that used to be root have different users, whichever of them connects. */
	assert_int_equal(tell(&third, PEER, its), 0);
	assert_int_equal(tell(&third, RULE_MADE, 0), RULE_HOST_OTHER_USER);
	assert_int_equal(tell(&other, PEER, own), 0);
	assert_int_equal(tell(&third, BECOME, LATER_USER), 1);
	assert_int_equal(tell(&third, PEER, its), 2);
	tell(&other, LOOP, 0);
	assert_int_equal(tell(&other, PEERS, 0), 1);
	assert_int_equal(tell(&other, PEER_PID, 0), third.pid);
	end_process(&third, 0);
	end_pair(state);
	begin_pair(state);
}

/* A process that used to be root is not connected to root, although root created its name. */
TEST(one_that_was_of_the_same_user)
{
	if (getuid())
		skip();
	assert_int_equal(tell(&other, BECOME, LATER_USER), 1);
	assert_null(peer_of(its));
	assert_int_equal(errno, ENOENT);
	expect_rule(HOST_OTHER_USER);
	assert_int_equal(world.args[0], other.pid);
	assert_int_equal(world.args[1], LATER_USER);
	assert_int_equal(world.args[2], 0);
	end_pair(state);
	begin_pair(state);
}

/*
 * A socket created by another user is refused although its creator has the right user now, as after executing a
 * set-user-ID program.
 */
TEST(a_socket_of_another_user)
{
	uint32_t slot = host_slot_of(own) == 5 ? 6 : 5;
	struct host_name name = host_slot_name(slot);
	int ready[2], listening;
	pid_t pid;
	char word;

	if (getuid() || !alone)
		skip();
	assert_int_equal(pipe(ready), 0);
	pid = fork_process();
	if (!pid) {
		listening = host_bind(&name, SOCK_SEQPACKET);
		if (setresuid(LATER_USER, LATER_USER, 0) || listen(listening, 1) || setresuid(0, 0, 0))
			_exit(1);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &word, 1), 1);
	assert_null(peer_of(slot << HOST_SLOT_BITS));
	expect_rule(HOST_OTHER_USER);
	assert_int_equal(world.args[0], pid);
	assert_int_equal(world.args[1], LATER_USER);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
}

/* Processes that cannot read /proc get the current user from SO_PEERCRED. */
TEST(names_follow_the_user)
{
	int fd;

	if (getuid())
		skip();
	tell(&other, ACCEPT, 0);
	fd = raw_connect(its);
	assert_int_equal(user_at(fd), 0);
	close(fd);
	assert_int_equal(tell(&other, BECOME, LATER_USER), 1);
	/* It sees a connection, and its own change of user. */
	tell(&other, LOOP, 0);
	fd = raw_connect(its);
	assert_int_equal(user_at(fd), LATER_USER);
	close(fd);
	end_pair(state);
	begin_pair(state);
}

/*
 * In a user namespace without mappings, all users appear as nobody. A process of the same user is accepted, because the
 * kernel permits signals to it (SO_PEERPIDFD, Linux 6.5)…
 */
TEST(unknown_but_the_same_user)
{
	int process;
	socklen_t length = sizeof(process);
	int pair[2];
	bool can_tell;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	can_tell = !getsockopt(pair[0], SOL_SOCKET, 77, &process, &length);
	if (can_tell)
		close(process);
	close(pair[0]);
	close(pair[1]);
	if (!tell(&other, NO_USER, 0))
		skip();
	assert_int_equal(tell(&other, PEER, own) != 0, can_tell);
	end_pair(state);
	begin_pair(state);
}

/* …and one of another user is not. */
TEST(unknown_users)
{
	if (getuid())
		skip();
	assert_int_equal(tell(&other, BECOME, 65533), 1);
	if (!tell(&other, NO_USER, 0))
		skip();
	assert_int_equal(tell(&other, PEER, own), 0);
	assert_int_equal(tell(&other, RULE_MADE, 0), RULE_HOST_OTHER_USER);
}

/* Querying whether a process has a slot does not connect the two processes. */
TEST(a_vacant_slot)
{
	struct process third = start_process();
	uint32_t number = (uint32_t)tell(&third, CLAIM, 0);

	assert_false(host_slot_is_vacant(own));
	assert_false(host_slot_is_vacant(its));
	assert_false(host_slot_is_vacant(number + 5));
	end_process(&third, SIGKILL);
	world.now_ns += TUNABLE_HOST_QUESTION_NS;
	assert_true(host_slot_is_vacant(number + 5));
	assert_false(host_slot_is_vacant(its));
	assert_int_equal(count_peers(), 0);
	/* No slot contains the numbers below the first slot. */
	assert_true(host_slot_is_vacant(1));
	expect_silence();
}

static int count_questions(int listening)
{
	int count = 0, fd;

	while ((fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		close(fd);
		count++;
	}
	return count;
}

/* Regardless of the number of queue pairs that query a slot, and of the answer, a slot is queried once per interval. */
TEST(one_question_per_slot_and_interval)
{
	uint32_t slot = host_slot_of(own) == 5 ? 6 : 5;
	struct host_name name = host_slot_name(slot);
	int listening;

	if (!alone)
		skip();
	world.now_ns += TUNABLE_HOST_QUESTION_NS;
	listening = host_bind(&name, SOCK_SEQPACKET);
	assert_true(listening >= 0);
	assert_int_equal(listen(listening, 1000), 0);
	for (int i = 0; i < 500; i++)
		assert_false(host_slot_is_vacant((slot << HOST_SLOT_BITS) + (uint32_t)i));
	assert_int_equal(count_questions(listening), 1);
	/* Another slot is queried independently. */
	assert_true(host_slot_is_vacant((slot + 2) << HOST_SLOT_BITS));
	world.now_ns += TUNABLE_HOST_QUESTION_NS;
	for (int i = 0; i < 500; i++)
		assert_false(host_slot_is_vacant(slot << HOST_SLOT_BITS));
	assert_int_equal(count_questions(listening), 1);
	close(listening);
	assert_false(host_slot_is_vacant(slot << HOST_SLOT_BITS));
	world.now_ns += TUNABLE_HOST_QUESTION_NS;
	for (int i = 0; i < 500; i++)
		assert_true(host_slot_is_vacant(slot << HOST_SLOT_BITS));
}

/* ---- services ------------------------------------------------------------------------------------------------------ */

enum { SERVICE = 0x0106 << 16 | 7471 };

static int asked;

/* Looks up the service, as each repetition of a request does. */
static void ask_for_service(void)
{
	epoch_enter();
	errno = 0;
	assert_null(host_peer_of_service(SERVICE));
	assert_int_equal(errno, ENOENT);
	epoch_leave();
	asked++;
}

/*
 * Once the service is not found in the process any more, no process finds it: not even this one, which would connect to
 * itself.
 */
TEST(a_service_that_is_given_up)
{
	claim();
	host_accept();
	assert_int_equal(host_service_claim(SERVICE, false), 0);
	assert_int_equal(host_service_listen(SERVICE), 0);
	ask_for_service();
	world.while_unwatching = ask_for_service;
	host_service_release(SERVICE);
	world.while_unwatching = NULL;
	assert_int_equal(asked, 2);
	ask_for_service();
	assert_int_equal(count_peers(), 0);
	loop();
	assert_int_equal(count_peers(), 0);
	expect_silence();
}

int main(void)
{
	own_names();
	return run_cases(.setup = begin_pair, .teardown = end_pair, .group_teardown = begin_test);
}
