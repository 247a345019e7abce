/* SPDX-License-Identifier: BSD-2-Clause */
/* Where our libraries are, and how a program gets them instead of the system's. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/tool.h"

/*
 * Relative to the directory of the command, so that an installation may be moved. SOFTHCA_INSTALLED_LIBRARIES comes
 * from the build; the other is the build tree's. Only our own directory has a libsofthca.so.0.
 */
static const char *const places[] = {SOFTHCA_INSTALLED_LIBRARIES, "../../lib"};

const char *library_directory(void)
{
	static char directory[PATH_MAX];
	char command[PATH_MAX], candidate[2 * PATH_MAX];

	if (*directory)
		return directory;
	if (!realpath("/proc/self/exe", command))
		tool_fail(EXIT_FAILURE, "cannot read /proc/self/exe: %m");
	*strrchr(command, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(candidate, sizeof(candidate), "%s/%s/libsofthca.so.0", command, places[i]);
		if (access(candidate, R_OK) == 0) {
			*strrchr(candidate, '/') = '\0';
			if (realpath(candidate, directory))
				return directory;
		}
	}
	tool_fail(EXIT_FAILURE, "cannot find libsofthca.so.0 in %s/%s", command, places[0]);
}

void library_path_export(void)
{
	const char *directory = library_directory(), *rest = getenv("LD_LIBRARY_PATH");
	size_t length = strlen(directory);
	char *path;

	/* ld.so(8) has no way to quote its separators. */
	if (strpbrk(directory, ":;"))
		tool_fail(EXIT_FAILURE, "%s: a library path cannot have ':' or ';' in it", directory);
	if (rest && strncmp(rest, directory, length) == 0 && (rest[length] == ':' || rest[length] == '\0'))
		return;
	/* An empty element would be the current directory. */
	if (asprintf(&path, "%s%s%s", directory, rest && *rest ? ":" : "", rest ? rest : "") < 0)
		tool_fail(EXIT_FAILURE, "out of memory");
	setenv("LD_LIBRARY_PATH", path, 1);
	free(path);
}
