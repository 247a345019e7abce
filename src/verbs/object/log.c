/* SPDX-License-Identifier: BSD-2-Clause */
/* As in libibverbs, the variables are read once, with the first list of devices. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "abi/entry_points.h"
#include "verbs/object/log.h"

/* Set before the first device exists, then constant. NULL without a log. */
static FILE *file;
static uint32_t most;

static void log_open_file(void)
{
	const char *level = getenv("VERBS_LOG_LEVEL"), *path = getenv("VERBS_LOG_FILE");

	most = level ? (uint32_t)strtol(level, NULL, 0) : 0;
	if (!most || !path)
		return;
	__atomic_store_n(&file, fopen(path, "ae"), __ATOMIC_RELEASE);
}

void verbs_log_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, log_open_file);
}

/* The front-end passes a pointer to the va_list of the arguments after @format. */
void softhca___verbs_log(struct verbs_context *context, uint32_t level, const char *format, ...)
{
	FILE *to = __atomic_load_n(&file, __ATOMIC_ACQUIRE);
	int error = errno;
	va_list arguments;

	(void)context;
	if (!to || level > most)
		return;
	va_start(arguments, format);
	vfprintf(to, format, *va_arg(arguments, va_list *));
	va_end(arguments);
	errno = error;
}
