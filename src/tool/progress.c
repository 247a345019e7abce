/* SPDX-License-Identifier: BSD-2-Clause */
/* How far a command is, see progress.h. */
#include "tool/progress.h"

#include <time.h>
#include <unistd.h>

enum { FIRST_MS = 1000, AGAIN_MS = 200 };

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void progress_begin(struct progress *progress, const char *what, FILE *out)
{
	bool wanted = isatty(STDERR_FILENO) && !isatty(fileno(out));

	*progress = (struct progress){.what = what, .next_ms = wanted ? now_ms() + FIRST_MS : INT64_MAX};
}

void progress_tell(struct progress *progress, uint64_t done, uint64_t all)
{
	int64_t now;

	if (progress->next_ms == INT64_MAX)
		return;
	now = now_ms();
	if (now < progress->next_ms)
		return;
	progress->next_ms = now + AGAIN_MS;
	progress->shown = true;
	fprintf(stderr, "\r\033[Ksofthca: %s: %u %%", progress->what, (unsigned int)(100 * (double)done / (double)all));
	fflush(stderr);
}

void progress_end(struct progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
	fflush(stderr);
	progress->shown = false;
}
