/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads the distribution's own libibverbs.so.1 and libmlx5.so.1 in addition to ours, for comparison: by path, since
 * both have the soname of ours. A test that uses it must not be linked with the front-ends.
 */
#ifndef SOFTHCA_TESTS_ABI_DISTRIBUTION_H
#define SOFTHCA_TESTS_ABI_DISTRIBUTION_H

#include <dlfcn.h>
#include <glob.h>
#include <stddef.h>

/* Loads the first file that matches a pattern and is of this processor; returns NULL if there is none. */
static inline void *distribution_open(const char *const *patterns)
{
	void *library = NULL;
	glob_t found;

	for (; *patterns && !library; patterns++) {
		if (glob(*patterns, 0, NULL, &found) == 0)
			for (size_t i = 0; i < found.gl_pathc && !library; i++)
				library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
		globfree(&found);
	}
	return library;
}

static inline void *distribution_libibverbs(void)
{
	static const char *const patterns[] = {"/usr/lib/*/libibverbs.so.1", "/usr/lib64/libibverbs.so.1", NULL};

	return distribution_open(patterns);
}

/* Loads its libibverbs.so.1 first: a search path could resolve that soname to ours. */
static inline void *distribution_libmlx5(void)
{
	static const char *const patterns[] = {"/usr/lib/*/libmlx5.so.1", "/usr/lib64/libmlx5.so.1", NULL};

	return distribution_libibverbs() ? distribution_open(patterns) : NULL;
}

#endif
