/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of a timeline and its chunks. */
#include "observe/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/fault_signal.h"
#include "core/file_size.h"
#include "core/settings.h"
#include "core/timer.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Values chosen for speed. */
enum {
	/* records that a process keeps without the setting TIMELINE_RECORDS */
	TIMELINE_RECORDS = 131072,
	/* queue pairs whose addresses a process records */
	TIMELINE_QPS = 4096,
};

#define CLOCK_TRIES 5
#define MOST_NAMES 100

bool timeline_on, timeline_ticks;
__thread uint64_t timeline_time_of_call;

/* Made by one thread, and made anew after a fork. */
static struct {
	char path[4096 + 64]; /* absolute path of the trace, to which a suffix is appended */
	struct timeline_head *head;
	struct timeline_qp *qps;
	struct timeline_record *records;
	size_t bytes;
	uint32_t chunks;
} file;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Reads the beginning of a file as a string, which is empty on failure. */
static void file_read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[length < 0 ? 0 : length] = '\0';
}

#ifdef __x86_64__
/*
 * Returns true if the kernel reports that the ticks of all processors are synchronous and steady: it takes the time
 * from them, or the hypervisor vouches for them (a virtual machine with kvm-clock).
 */
static bool ticks_are_steady(void)
{
	char text[4096]; /* contains the flags of the first processor */

	file_read_text("/sys/devices/system/clocksource/clocksource0/current_clocksource", text, sizeof(text));
	if (strncmp(text, "tsc", 3) == 0)
		return true;
	file_read_text("/proc/cpuinfo", text, sizeof(text));
	return strstr(text, " constant_tsc ") && strstr(text, " nonstop_tsc ") && strstr(text, " tsc_reliable ");
}

#else
static bool ticks_are_steady(void)
{
	return false;
}
#endif

uint64_t timeline_monotonic(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static struct timeline_chunk *chunk_at(uint64_t number)
{
	return (struct timeline_chunk *)&file.records[number % file.chunks * TIMELINE_CHUNK_RECORDS];
}

static void chunk_release(struct epoch_slot *slot)
{
	struct timeline_record *end = slot->timeline_end;

	if (end)
		__atomic_store_n(&((struct timeline_chunk *)(end - TIMELINE_CHUNK_RECORDS))->owned, 0,
				 __ATOMIC_RELEASE);
	slot->timeline_next = slot->timeline_end = NULL;
}

/* Gives @slot the next chunk in turn. Returns false if other threads own all of them. */
static bool chunk_take(struct epoch_slot *slot)
{
	struct timeline_head *head = file.head;

	chunk_release(slot);
	for (uint32_t tries = 0; head && tries < file.chunks; tries++) {
		uint64_t turn = __atomic_fetch_add(&head->taken, 1, __ATOMIC_RELAXED);
		struct timeline_chunk *chunk = chunk_at(turn);
		uint32_t is_free = 0;

		if (!__atomic_compare_exchange_n(&chunk->owned, &is_free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		if (chunk->lap)
			__atomic_fetch_add(&head->overwritten, TIMELINE_CHUNK_RECORDS - 1, __ATOMIC_RELAXED);
		chunk->turn = turn;
		chunk->lap = chunk->lap % 255 + 1;
		slot->timeline_next = (struct timeline_record *)chunk + 1;
		slot->timeline_end = (struct timeline_record *)chunk + TIMELINE_CHUNK_RECORDS;
		slot->timeline_lap = chunk->lap << 24;
		return true;
	}
	return false;
}

static uint64_t timeline_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t timeline_realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/*
 * Reads @other between two reads of @clock. Takes the attempt with the closest reads, because the thread may lose its
 * processor in between.
 */
static inline SPECIALISED void read_together(uint64_t (*clock)(void), uint64_t (*other)(void), uint64_t *time,
					     uint64_t *other_time)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < CLOCK_TRIES; i++) {
		uint64_t before = clock(), between = other(), after = clock();

		if (after - before >= least)
			continue;
		least = after - before;
		*time = before + least / 2;
		*other_time = between;
	}
}

static void read_clocks(uint64_t *ticks, uint64_t *ns)
{
	read_together(timeline_now, timeline_monotonic_ns, ticks, ns);
}

static void put_clock(struct epoch_slot *slot)
{
	struct timeline_record *record = slot->timeline_next++;
	uint64_t ticks = 0, ns = 0;

	read_clocks(&ticks, &ns);
	*record = (struct timeline_record){.time = ticks, .value = ns, .what = TIMELINE_WHAT(TIMELINE_CLOCK, 0, 0)};
	__atomic_store_n(&record->number, slot->timeline_lap, __ATOMIC_RELEASE);
}

void timeline_put_slowly(uint64_t time, uint32_t what, uint32_t number, uint32_t psn, uint32_t length, uint64_t value)
{
	struct epoch_slot *slot = epoch_this_thread ? epoch_this_thread : epoch_attach();

	/* Room for a clock record and another one. */
	if (slot->timeline_end - slot->timeline_next < 2 && !chunk_take(slot)) {
		if (file.head)
			__atomic_fetch_add(&file.head->dropped, 1, __ATOMIC_RELAXED);
		return;
	}
	if (time - slot->timeline_clock > TIMELINE_CLOCK_EVERY) {
		if (timeline_ticks)
			put_clock(slot);
		slot->timeline_clock = time;
	}
	timeline_put(time, what, number, psn, length, value);
}

void timeline_put_qp(uint32_t *row, const struct timeline_qp *qp)
{
	struct timeline_qp *entry;

	if (!file.head)
		return;
	if (!*row)
		*row = __atomic_add_fetch(&file.head->qps, 1, __ATOMIC_RELAXED);
	if (*row > file.head->qp_rows)
		return;
	entry = &file.qps[*row - 1];
	memcpy(&entry->peer, &qp->peer, sizeof(*qp) - sizeof(qp->number));
	__atomic_store_n(&entry->number, qp->number, __ATOMIC_RELEASE);
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

static void timeline_read_line(const char *path, char *out, size_t size)
{
	file_read_text(path, out, size);
	out[strcspn(out, "\n")] = '\0';
}

static void fill_head(struct timeline_head *head)
{
	uint64_t monotonic = 0;

	read_together(timeline_monotonic_ns, timeline_realtime_ns, &monotonic, &head->started);
	head->version = TIMELINE_VERSION;
	head->clock = timeline_ticks ? TIMELINE_CLOCK_TICKS : TIMELINE_CLOCK_NS;
	head->chunks = file.chunks;
	head->qp_rows = TIMELINE_QPS;
	head->process = (uint32_t)getpid();
	head->realtime_offset = (int64_t)(head->started - monotonic);
	gethostname(head->host, sizeof(head->host) - 1);
	snprintf(head->program, sizeof(head->program), "%s", program_invocation_short_name);
	timeline_read_line("/proc/sys/kernel/random/boot_id", head->boot, sizeof(head->boot));
	/* Last: without it the file is not recognized. */
	order_before_stores();
	memcpy(head->magic, TIMELINE_MAGIC, sizeof(head->magic));
}

/* Never opens an existing file, which may belong to a process with the same number in another container. */
static int timeline_create_file(char *path, size_t size)
{
	int fd = -1;

	for (int i = 0; fd < 0 && i < MOST_NAMES; i++) {
		if (i)
			snprintf(path, size, "%s.%d-%d" TIMELINE_SUFFIX, file.path, (int)getpid(), i);
		else
			snprintf(path, size, "%s.%d" TIMELINE_SUFFIX, file.path, (int)getpid());
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd;
}

/* Returns 0 or a negative errno. */
static int timeline_make_file(void)
{
	uint64_t ticks = 0, ns = 0;
	WITHOUT_SIZE_SIGNAL;
	char path[sizeof(file.path) + 64];
	size_t table = (size_t)TIMELINE_QPS * sizeof(struct timeline_qp);
	uint8_t *memory;
	int fd, error;

	file.bytes = TIMELINE_HEAD_BYTES + table +
		     (size_t)file.chunks * TIMELINE_CHUNK_RECORDS * sizeof(struct timeline_record);
	read_clocks(&ticks, &ns);
	fd = timeline_create_file(path, sizeof(path));
	if (fd < 0)
		return -errno;
	/* Allocates all blocks now: a full disk would cause a SIGBUS later. */
	error = posix_fallocate(fd, 0, (off_t)file.bytes);
	memory = error ? MAP_FAILED : mmap(NULL, file.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (!error && memory == MAP_FAILED)
		error = errno;
	close(fd);
	if (error) {
		unlink(path);
		return -error;
	}
	/*
	 * Without this, the first record in each page would wait for a page fault, in which a file system on a disk
	 * reserves the block: 20 to 100 us that the trace would show. Linux 5.14.
	 */
	madvise(memory, file.bytes, MADV_POPULATE_WRITE);
	file.qps = (struct timeline_qp *)(memory + TIMELINE_HEAD_BYTES);
	file.records = (struct timeline_record *)(memory + TIMELINE_HEAD_BYTES + table);
	file.head = (struct timeline_head *)memory;
	file.head->clock_ticks[0] = ticks;
	file.head->clock_ns[0] = ns;
	read_clocks(&file.head->clock_ticks[1], &file.head->clock_ns[1]);
	fill_head(file.head);
	return 0;
}

/*
 * Handles a SIGBUS after another process has truncated the file: later records go to private memory in its place. In
 * practice mmap(2) is async-signal-safe, though POSIX does not guarantee it.
 */
static bool replace_file(int signal, const siginfo_t *info, const void *context)
{
	uintptr_t address = (uintptr_t)info->si_addr;

	(void)context;
	return signal == SIGBUS && file.head && address - (uintptr_t)file.head < file.bytes &&
	       mmap(file.head, file.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		       file.head;
}

/* Makes the path absolute, since programs may change their directory later. */
static int timeline_set_path(const char *name)
{
	char directory[sizeof(file.path)] = "", path[sizeof(file.path)];
	int result = setting_path(name, path, sizeof(path));

	if (result)
		return result;
	if (*name != '/' && !getcwd(directory, sizeof(directory)))
		return -errno;
	if ((size_t)snprintf(file.path, sizeof(file.path), "%s%s%s", directory, *directory ? "/" : "", path) >=
	    sizeof(file.path))
		return -ENAMETOOLONG;
	return 0;
}

int timeline_open(const struct settings *settings, char *error, size_t size)
{
	uint32_t records = settings->timeline_records ? settings->timeline_records : TIMELINE_RECORDS;
	int result;

	if (timeline_on || strcmp(settings->timeline, "off") == 0)
		return 0;
	timeline_ticks = ticks_are_steady();
	file.chunks = records / TIMELINE_CHUNK_RECORDS;
	result = timeline_set_path(settings->timeline);
	if (!result)
		result = timeline_make_file();
	if (result)
		snprintf(error, size, "SOFTHCA_TIMELINE=%s: %s", settings->timeline, strerror(-result));
	else
		fault_signal_watch(replace_file);
	timeline_on = !result;
	return result;
}

void timeline_after_fork(void)
{
	if (!timeline_on)
		return;
	for (struct epoch_slot *slot = epoch_slots(); slot; slot = slot->next)
		slot->timeline_next = slot->timeline_end = NULL;
	munmap(file.head, file.bytes);
	file.head = NULL;
	/* On failure nothing of the child is recorded. */
	timeline_make_file();
}
