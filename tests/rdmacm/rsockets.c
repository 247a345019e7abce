/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket(7): there are none, and rpoll() and rselect() wait for ordinary descriptors. */
#include "support.h"

#include <poll.h>
#include <rdma/rsocket.h>
#include <unistd.h>

static void test_waiting(void **state)
{
	struct timeval none = {0};
	struct pollfd readable;
	int ends[2];
	fd_set set;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	readable = (struct pollfd){.fd = ends[0], .events = POLLIN};
	assert_int_equal(rpoll(&readable, 1, 0), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(rpoll(&readable, 1, 1000), 1);
	assert_int_equal(readable.revents, POLLIN);
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	assert_int_equal(rselect(ends[0] + 1, &set, NULL, NULL, &none), 1);
	assert_true(FD_ISSET(ends[0], &set));
	close(ends[0]);
	close(ends[1]);
}

static void test_none(void **state)
{
	(void)state;
	assert_errno(rsocket(AF_INET, SOCK_STREAM, 0), EOPNOTSUPP);
	assert_errno(rclose(0), EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
