/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recording what becomes of requests (`softhca run --timeline`): each step puts a record of 32 bytes into memory that is a file
 * (device/timeline_file.h). Off, it costs those who record a test that is not on the way of most requests: calls of the data
 * path are exchanged in the tables of contexts, and what the device does is recorded where it tests for something else already.
 *
 * Records are put by any thread, under any lock, and wait for nobody: each thread has a chunk of its own, which hangs on its
 * epoch slot. Memory is bounded: the oldest chunk is overwritten.
 */
#ifndef SOFTHCA_DEVICE_TIMELINE_H
#define SOFTHCA_DEVICE_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/compiler.h"
#include "core/epoch.h"
#include "device/timeline_file.h"

struct settings;
union ibv_gid;

/* True from the making of the devices on, if the setting says so. */
extern bool timeline_on;

static inline bool timeline_is_on(void)
{
	return unlikely(timeline_on);
}

/**
 * Begins to record as @settings say. Returns 0, also if they say nothing, or a negative errno with a text in @error. One thread,
 * while devices are made.
 */
int timeline_open(const struct settings *settings, char *error, size_t size);

/** In a forked child: begins a file of its own. */
void timeline_after_fork(void);

/** Now, in the units of the file. */
uint64_t timeline_now(void);

/*
 * The time of what this thread is doing, for what follows from it at once: looking at the clock costs more than all else of a record.
 * Whoever sets it takes it back before the thread does anything else. 0: there is none.
 */
extern __thread uint64_t timeline_time_of_call __attribute__((tls_model("initial-exec")));

static inline void timeline_begin_call(uint64_t time)
{
	timeline_time_of_call = time;
}

static inline void timeline_end_call(void)
{
	timeline_time_of_call = 0;
}

static inline uint64_t timeline_time(void)
{
	return timeline_time_of_call ? timeline_time_of_call : timeline_now();
}

/* Where in a record things go: the members that timeline_put() takes together. */
#define TIMELINE_WHAT(kind, opcode, index)                                                                             \
	((uint32_t)(uint16_t)(index) | (uint32_t)(uint8_t)(opcode) << 16 | (uint32_t)(kind) << 24)

/** Puts a record. @what: TIMELINE_WHAT(); the rest as in struct timeline_record, @number without the lap. Only if it is on. */
void timeline_put(uint64_t time, uint32_t what, uint32_t number, uint32_t psn, uint32_t length, uint64_t value);

/** Enters a queue pair, or changes its @row, which is 0 at first; its number is not 0. The caller has the lock of the QP. */
void timeline_put_qp(uint32_t *row, const struct timeline_qp *qp);

#endif
