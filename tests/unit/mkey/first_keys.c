/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first keys of a process do not resemble those of another process, unless both have the same seed (SOFTHCA_SEED).
 * Each case runs in its own process, since a process makes its devices once.
 */
#include "test_case.h"

#include <sys/wait.h>

#include "../support/device_fixture.h"

enum { KEYS = 4, FIRST_INDEX = 16 };

/* Reads index and tag of the first regions of a new process. @seed: NULL: none is set. */
static void first_keys(const char *seed, uint32_t keys[KEYS])
{
	static struct device device;
	int ends[2], status;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (seed)
			setenv("SOFTHCA_SEED", seed, 1);
		else
			unsetenv("SOFTHCA_SEED");
		device_open(&device);
		keys[0] = mkey_number(device.region);
		for (int i = 1; i < KEYS; i++) {
			struct hca_mr_attr attr = {.addr = device.memory, .start = 4096, .length = 64};
			struct mkey *key;

			assert_int_equal(hca_mr_register(device.pd, &attr, &key), 0);
			keys[i] = mkey_number(key);
		}
		_exit(write(ends[1], keys, KEYS * sizeof(*keys)) != (ssize_t)(KEYS * sizeof(*keys)));
	}
	assert_int_equal(read(ends[0], keys, KEYS * sizeof(*keys)), KEYS * sizeof(*keys));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ends[0]);
	close(ends[1]);
	for (int i = 0; i < KEYS; i++)
		assert_true(keys[i] >> 8 >= FIRST_INDEX);
}

TEST(the_same_seed)
{
	uint32_t first[KEYS], second[KEYS];

	first_keys("7", first);
	first_keys("7", second);
	assert_memory_equal(first, second, sizeof(first));
}

/* Eight processes: the chance that two indices, or all tags of two, are equal is one in a million. */
TEST(other_processes)
{
	uint32_t keys[8][KEYS];

	for (int i = 0; i < 8; i++) {
		first_keys(i == 1 ? "7" : i == 2 ? "8" : NULL, keys[i]);
		for (int k = 0; k < i; k++) {
			assert_int_not_equal(keys[i][0] >> 8, keys[k][0] >> 8);
			assert_true((keys[i][0] & 0xff) != (keys[k][0] & 0xff) ||
				    (keys[i][1] & 0xff) != (keys[k][1] & 0xff) ||
				    (keys[i][2] & 0xff) != (keys[k][2] & 0xff) ||
				    (keys[i][3] & 0xff) != (keys[k][3] & 0xff));
		}
	}
}
