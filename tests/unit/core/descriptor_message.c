/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors in messages: as many as there is room for arrive, and the others are closed (unix(7)). */
#include "test_case.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "core/descriptor_message.h"
#include "kernel_has.h"

enum { MOST = DESCRIPTOR_MESSAGE_MOST };

static const char text[] = "with descriptors";

static int ends[2];
static int pipes[MOST][2];

static int setup(void **state)
{
	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	for (int i = 0; i < MOST; i++)
		assert_int_equal(pipe(pipes[i]), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < MOST; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static unsigned int open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned int count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void send_pipes(unsigned int count)
{
	int descriptors[MOST];

	for (unsigned int i = 0; i < count; i++)
		descriptors[i] = pipes[i][0];
	assert_int_equal(descriptor_message_send(ends[0], text, sizeof(text), descriptors, count, 0), 0);
}

static bool is_same_file(int one, int other)
{
	struct stat first, second;

	return !fstat(one, &first) && !fstat(other, &second) && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

TEST(test_room_for_all)
{
	for (unsigned int count = 1; count <= MOST; count++) {
		struct descriptor_message received;
		char bytes[sizeof(text)];
		int descriptors[MOST];

		send_pipes(count);
		received = descriptor_message_receive(ends[1], bytes, sizeof(bytes), descriptors, MOST, 0);
		assert_int_equal(received.length, sizeof(text));
		assert_string_equal(bytes, text);
		assert_int_equal(received.count, count);
		assert_false(received.truncated);
		for (unsigned int i = 0; i < MOST; i++) {
			if (i >= count) {
				assert_int_equal(descriptors[i], -1);
				continue;
			}
			assert_true(is_same_file(descriptors[i], pipes[i][0]));
			assert_int_equal(fcntl(descriptors[i], F_GETFD), FD_CLOEXEC);
			close(descriptors[i]);
		}
	}
}

/* An array of an odd number of descriptors leaves room for one more in the alignment of the control message. */
TEST(test_more_than_there_is_room_for)
{
	unsigned int before = open_descriptors();

	if (!kernel_has_control_truncation())
		skip();
	for (unsigned int room = 1; room < MOST; room++) {
		struct descriptor_message received;
		int descriptors[MOST];
		char bytes[sizeof(text)];

		memset(descriptors, 0x55, sizeof(descriptors));
		send_pipes(room + 1);
		received = descriptor_message_receive(ends[1], bytes, sizeof(bytes), descriptors, room, 0);
		assert_int_equal(received.count, room);
		assert_true(received.truncated);
		assert_int_equal(descriptors[room], 0x55555555);
		for (unsigned int i = 0; i < room; i++)
			close(descriptors[i]);
		assert_int_equal(open_descriptors(), before);
	}
}

TEST(test_no_descriptors)
{
	struct descriptor_message received;
	char bytes[sizeof(text)];
	int descriptors[2];

	assert_int_equal(send(ends[0], text, sizeof(text), 0), sizeof(text));
	received = descriptor_message_receive(ends[1], bytes, sizeof(bytes), descriptors, 2, 0);
	assert_int_equal(received.length, sizeof(text));
	assert_int_equal(received.count, 0);
	assert_int_equal(descriptors[0], -1);
	assert_int_equal(descriptors[1], -1);
}

TEST(test_errors)
{
	struct descriptor_message received;
	int descriptor = pipes[0][0], other;
	char bytes[sizeof(text)];

	received = descriptor_message_receive(ends[1], bytes, sizeof(bytes), &other, 1, MSG_DONTWAIT);
	assert_int_equal(received.length, -EAGAIN);
	assert_int_equal(received.count, 0);
	close(ends[1]);
	/* No signal is raised. */
	assert_int_equal(descriptor_message_send(ends[0], text, sizeof(text), &descriptor, 1, 0), -EPIPE);
	ends[1] = -1;
}

int main(void)
{
	return run_cases(.setup = setup, .teardown = teardown);
}
