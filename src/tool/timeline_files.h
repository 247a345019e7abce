/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces made of files: of the records of processes, and of traces that are made already. */
#ifndef SOFTHCA_TOOL_TIMELINE_FILES_H
#define SOFTHCA_TOOL_TIMELINE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** Writes to @out the trace of all @files together. Exits if one cannot be read, or is neither. */
void timeline_merge(char **files, int count, FILE *out);

/**
 * Makes the trace @path, which @out is, of the records beside it of all processes that began at @started (ns of CLOCK_REALTIME) or
 * later, and removes those that are over. What is lost, and what is damaged, is said on stderr. Returns false if some of it failed.
 */
bool timeline_collect(const char *path, FILE *out, uint64_t started);

#endif
