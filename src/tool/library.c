/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the libraries and scripts of softhca, and makes programs use these libraries instead of the system's. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/tool.h"

/* Relative to the command, so that an installation can be moved: installed, then build tree. */
#define LIBRARY_PLACES SOFTHCA_INSTALLED_LIBRARIES, "../../lib"
#define SCRIPT_PLACES SOFTHCA_INSTALLED_SCRIPTS, "python"

/* Returns the absolute path of the first place with a file @name. */
static const char *find_directory(const char *const places[2], const char *name, char directory[PATH_MAX])
{
	char command[PATH_MAX], candidate[2 * PATH_MAX];

	if (*directory)
		return directory;
	if (!realpath("/proc/self/exe", command))
		tool_fail(EXIT_FAILURE, "cannot read /proc/self/exe: %m");
	*strrchr(command, '/') = '\0';
	for (int i = 0; i < 2; i++) {
		snprintf(candidate, sizeof(candidate), "%s/%s/%s", command, places[i], name);
		if (access(candidate, R_OK) == 0) {
			*strrchr(candidate, '/') = '\0';
			if (realpath(candidate, directory))
				return directory;
		}
	}
	tool_fail(EXIT_FAILURE, "cannot find %s in %s/%s", name, command, places[0]);
}

const char *library_directory(void)
{
	static const char *const places[] = {LIBRARY_PLACES};
	static char directory[PATH_MAX];

	/* A file of that name is in no other directory. */
	return find_directory(places, "libsofthca.so.0", directory);
}

const char *script_directory(void)
{
	static const char *const places[] = {SCRIPT_PLACES};
	static char directory[PATH_MAX];

	return find_directory(places, "timeline_maker.py", directory);
}

void library_path_export(void)
{
	const char *directory = library_directory(), *rest = getenv("LD_LIBRARY_PATH");
	size_t length = strlen(directory);
	char *path;

	/* ld.so(8) cannot quote its separators. */
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
