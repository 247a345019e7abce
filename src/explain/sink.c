/* SPDX-License-Identifier: BSD-2-Clause */
/* The sink of explanations, see sink.h. */
#include "explain/sink.h"
#include "core/compiler.h"
#include "core/descriptor.h"
#include "core/error_name.h"
#include "core/tunables.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explain/fold.h"
#include "explain/output.h"
#include "explain/rules.h"
#include "explain/search.h"
#include "hca/hca.h"
#include "progress/progress.h"

#include <infiniband/mlx5dv.h>

#define SECOND_NS UINT64_C(1000000000)
#define LINE_BYTES 1280

#define FAILURE "\033[1;31m"
#define FAINT "\033[2m"
#define PLAIN "\033[0m"

static const char all[] = "all";

/* Held refusals that the program may ignore; further ones are written at once. */
enum { IGNORED_RECORDS = 8 };

struct explain_sink {
	pthread_mutex_t lock;
	int fd;                   /* or -1 */
	bool all;                 /* expected records are written */
	enum setting_COLOR color; /* AUTO: on a terminal */
	bool ended;
	uint64_t second_ns; /* start of the second that `lines` counts */
	uint32_t lines;
	struct folds folds;
	struct search search;
	struct ignored {
		const char *device; /* static */
		struct explain_record record;
	} ignored[IGNORED_RECORDS];
	uint32_t ignored_count;
	bool lint;         /* warnings about misuse, including ignored errors */
	const char *marks; /* file for a byte when something goes wrong; NULL: none, or done */
	bool searches;     /* atomic; a refusal is held back, or a search is in progress */
	/*
	 * Omitted lines, not reported yet: the sink accepted nothing; writing failed, with `failure`; limit of lines
	 * per second.
	 */
	uint64_t unread, failed, too_many;
	int failure;
	int error;             /* errno of the last write; EAGAIN: the sink was full */
	char rest[LINE_BYTES]; /* rest of a line that was written in part */
	size_t rest_bytes;
	char text[1024], line[LINE_BYTES]; /* buffers for a line, because stacks may be small */
	struct timer timer;                /* timer of the first device; writes due lines if there is a device thread */
	bool timer_armed;
};

/* ---- making ---------------------------------------------------------------------------------------------------- */

static int sink_open(const char *name)
{
	char line[LINE_BYTES], path[PATH_MAX];
	int fd;

	if (!strcmp(name, "off"))
		return -1;
	if (!strcmp(name, "stderr"))
		return STDERR_FILENO;
	fd = setting_path(name, path, sizeof(path));
	if (!fd)
		fd = output_open(path);
	if (fd >= 0) {
		fd = descriptor_keep(fd);
		if (fd < 0)
			fd = -errno;
	}
	if (fd < 0) {
		snprintf(line, sizeof(line), "softhca: SOFTHCA_EXPLAIN=%.1000s: %s\n", name, strerror(-fd));
		output_write(STDERR_FILENO, line, strlen(line));
		return -1;
	}
	return fd;
}

static const char *after_all(const char *name)
{
	return name[strlen(all)] == ':' ? name + strlen(all) + 1 : "stderr";
}

/* Accepts "all", alone or before a colon; "allow.txt" is a file. */
static bool is_all(const char *name)
{
	return !strncmp(name, all, strlen(all)) && (!name[strlen(all)] || name[strlen(all)] == ':');
}

/* NO_COLOR: see no-color.org; the setting takes precedence. */
static enum setting_COLOR color_setting(enum setting_COLOR setting)
{
	const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");

	if (setting == COLOR_AUTO && ((no_color && *no_color) || !terminal || !*terminal || !strcmp(terminal, "dumb")))
		return COLOR_NEVER;
	return setting;
}

static void sink_fire(struct timer *timer);

struct explain_sink *explain_sink_new(const struct settings *settings)
{
	struct explain_sink *sink = calloc(1, sizeof(*sink));

	if (!sink)
		return NULL;
	pthread_mutex_init(&sink->lock, NULL);
	timer_init(&sink->timer, sink_fire);
	sink->all = is_all(settings->explain);
	sink->fd = sink_open(sink->all ? after_all(settings->explain) : settings->explain);
	sink->lint = strcmp(settings->lint, "off");
	sink->marks = secure_getenv(EXPLAIN_MARKS);
	/* Marks need a sink's decisions, but no lines. */
	if (sink->fd < 0 && sink->marks)
		sink->fd = sink_open("/dev/null");
	sink->color = color_setting(settings->color);
	return sink;
}

bool explain_sink_is_on(const struct explain_sink *sink)
{
	return sink->fd >= 0;
}

/* ---- writing; the lock is held --------------------------------------------------------------------------------- */

/* Keeps the rest of a line that was written in part. */
static bool line_put(struct explain_sink *sink, const char *line, size_t bytes)
{
	/* Writes only to standard error, or to a file that the program has not replaced. */
	int done = sink->fd != STDERR_FILENO && !descriptor_is_ours(sink->fd) ? -EBADF
									      : output_write(sink->fd, line, bytes);

	sink->error = done < 0 ? -done : EAGAIN;
	if (done <= 0)
		return false;
	sink->rest_bytes = bytes - (size_t)done;
	memmove(sink->rest, line + done, sink->rest_bytes);
	return true;
}

static bool put_rest(struct explain_sink *sink)
{
	return !sink->rest_bytes || (line_put(sink, sink->rest, sink->rest_bytes) && !sink->rest_bytes);
}

static bool put_left_out(struct explain_sink *sink, uint64_t *count, const char *why)
{
	char *line = sink->line;

	if (!*count)
		return true;
	snprintf(line, sizeof(sink->line), "softhca: … %" PRIu64 " explanations left out: %s\n", *count, why);
	if (!put_rest(sink) || !line_put(sink, line, strlen(line)))
		return false;
	*count = 0;
	return true;
}

/* Reports omitted lines first. Returns false if the sink accepts nothing. */
static bool sink_ready(struct explain_sink *sink)
{
	char limit[64], failure[64];

	snprintf(limit, sizeof(limit), "more than %d in a second", LIMIT_EXPLAIN_LINES);
	snprintf(failure, sizeof(failure), "writing failed with %s", error_name(sink->failure));
	return put_left_out(sink, &sink->too_many, limit) &&
	       put_left_out(sink, &sink->unread, "the sink is not read") &&
	       put_left_out(sink, &sink->failed, failure) && put_rest(sink);
}

static void leave_out(struct explain_sink *sink, uint64_t count)
{
	if (sink->error == EAGAIN) {
		sink->unread += count;
		return;
	}
	sink->failed += count;
	sink->failure = sink->error;
}

/* Marks once for each process that something went wrong, for `softhca run --error-exitcode`. */
static void sink_mark(struct explain_sink *sink)
{
	int fd;

	if (likely(!sink->marks))
		return;
	fd = open(sink->marks, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	sink->marks = NULL;
	if (fd < 0)
		return;
	output_write(fd, "x", 1);
	close(fd);
}

static bool may_write(struct explain_sink *sink, uint64_t now_ns)
{
	if (now_ns - sink->second_ns >= SECOND_NS) {
		sink->second_ns = now_ns;
		sink->lines = 0;
	}
	return sink->lines++ < LIMIT_EXPLAIN_LINES;
}

/* The failure that caused a flush has its own line. */
static bool is_consequence(const struct explain_record *record)
{
	return record->subject.syndrome == MLX5_CQE_SYNDROME_WR_FLUSH_ERR;
}

static bool is_failure(const struct explain_record *record)
{
	return record->subject.syndrome || record->subject.error;
}

/* Checked for each line, because the program may have replaced stderr. */
static bool has_color(const struct explain_sink *sink)
{
	return sink->color == COLOR_ALWAYS || (sink->color == COLOR_AUTO && isatty(sink->fd));
}

/* Highlights the subject if an operation failed. */
static void put_color(char *line, size_t size, const char *text, const struct explain_record *record)
{
	const char *colon = strstr(text, ": ");

	if (is_consequence(record))
		snprintf(line, size, FAINT "%s" PLAIN "\n", text);
	else if (is_failure(record) && colon)
		snprintf(line, size, FAILURE "%.*s" PLAIN "%s\n", (int)(colon - text), text, colon);
	else
		snprintf(line, size, "%s\n", text);
}

static bool put_record(struct explain_sink *sink, const char *device, const struct explain_record *record)
{
	char *line = sink->line, *text = sink->text;

	explain_render(device, record, text, sizeof(sink->text));
	if (has_color(sink))
		put_color(line, sizeof(sink->line), text, record);
	else
		snprintf(line, sizeof(sink->line), "%s\n", text);
	return line_put(sink, line, strlen(line));
}

/* Writes "mlx5_0 qp 0x40: … and 126 more [28 FLUSHED]". */
static bool put_count(struct explain_sink *sink, const struct fold *fold)
{
	const struct explain_subject *subject = &fold->record.subject;
	char *line = sink->line, qp[24] = "";
	bool color = has_color(sink);

	if (subject->qpn)
		snprintf(qp, sizeof(qp), " qp 0x%x", subject->qpn);
	snprintf(line, sizeof(sink->line), "%s%s%s%s%s: … and %" PRIu64 " more [%d %s]%s\n", color ? FAINT : "",
		 fold->device, qp, subject->call ? " " : "", subject->call ? subject->call : "", fold->more,
		 (int)fold->record.rule, rule_text(fold->record.rule)->name, color ? PLAIN : "");
	return line_put(sink, line, strlen(line));
}

/* If the sink accepts nothing, the count continues. */
static bool say_count(struct explain_sink *sink, struct fold *fold, uint64_t now_ns)
{
	if (!sink_ready(sink) || !put_count(sink, fold))
		return false;
	fold->more = 0;
	fold->since_ns = now_ns;
	return true;
}

static void say_counts_before(struct explain_sink *sink, uint64_t before_ns, uint64_t now_ns)
{
	struct fold *fold;

	while ((fold = folds_due(&sink->folds, before_ns)) && may_write(sink, now_ns) && say_count(sink, fold, now_ns))
		;
}

static void say_record(struct explain_sink *sink, const char *device, const struct explain_record *record)
{
	struct fold *place;

	if (!record->subject.expected)
		sink_mark(sink);
	if (!may_write(sink, record->time_ns)) {
		sink->too_many++;
		return;
	}
	place = folds_place(&sink->folds);
	if (place->device && place->more && !say_count(sink, place, record->time_ns)) {
		leave_out(sink, place->more);
		place->more = 0;
	}
	if (!sink_ready(sink) || !put_record(sink, device, record)) {
		leave_out(sink, 1);
		return;
	}
	if (!sink->ended)
		folds_enter(place, device, record);
}

static void say_ignored(struct explain_sink *sink)
{
	for (uint32_t i = 0; i < sink->ignored_count; i++)
		if (!folds_repeats(&sink->folds, sink->ignored[i].device, &sink->ignored[i].record))
			say_record(sink, sink->ignored[i].device, &sink->ignored[i].record);
	sink->ignored_count = 0;
}

/* Returns true if the program may ignore @record. */
static bool ignored_takes(struct explain_sink *sink, const char *device, const struct explain_record *record)
{
	if (!record->subject.ignorable || sink->all || sink->lint || sink->ended)
		return false;
	if (sink->ignored_count == IGNORED_RECORDS)
		say_ignored(sink);
	sink->ignored[sink->ignored_count++] = (struct ignored){device, *record};
	return true;
}

/* Writes a refusal that was held back before @before_ns: no queue pair followed. */
static void say_search(struct explain_sink *sink, uint64_t before_ns)
{
	struct explain_record record;
	const char *device = search_due(&sink->search, before_ns, &record);

	if (device)
		say_record(sink, device, &record);
}

static void say_due(struct explain_sink *sink, uint64_t now_ns)
{
	if (now_ns <= FOLD_NS)
		return;
	say_search(sink, now_ns - TUNABLE_SEARCH_MS * UINT64_C(1000000));
	say_counts_before(sink, now_ns - FOLD_NS, now_ns);
}

/* ---- a program that aborts ------------------------------------------------------------------------------------- */

static struct explain_sink *aborting;

/* A failed assert(3) may end the program before held lines are due. */
static void on_abort(int signal)
{
	if (!pthread_mutex_trylock(&aborting->lock)) {
		say_ignored(aborting);
		say_search(aborting, UINT64_MAX);
	}
	sigaction(signal, &(const struct sigaction){.sa_handler = SIG_DFL}, NULL);
	raise(signal);
}

/* Installs the handler of SIGABRT while a refusal is held back, unless the program has its own. */
static void watch_abort(struct explain_sink *sink, bool watch)
{
	struct sigaction action;

	if (sigaction(SIGABRT, NULL, &action) || action.sa_flags & SA_SIGINFO ||
	    action.sa_handler != (watch ? SIG_DFL : on_abort))
		return;
	aborting = sink;
	sigaction(SIGABRT, &(const struct sigaction){.sa_handler = watch ? on_abort : SIG_DFL}, NULL);
}

/* ---- the timer ------------------------------------------------------------------------------------------------- */

static bool has_something_to_say(struct explain_sink *sink)
{
	return sink->search.device || sink->rest_bytes || sink->unread || sink->failed || sink->too_many ||
	       folds_counting(&sink->folds);
}

/* Releases the lock and arms the timer. Starts no thread: lines can wait for the end of the program. */
static void unlock_and_arm(struct explain_sink *sink, uint64_t now_ns)
{
	bool arm = !sink->timer_armed && progress_runs() && has_something_to_say(sink);

	if (arm)
		sink->timer_armed = true;
	pthread_mutex_unlock(&sink->lock);
	/* Cannot fail: the thread is already running. */
	if (arm)
		timer_arm(&the_registry.devices[0].timers, &sink->timer, now_ns + FOLD_NS);
}

static void sink_fire(struct timer *timer)
{
	struct explain_sink *sink = (struct explain_sink *)((char *)timer - offsetof(struct explain_sink, timer));
	uint64_t now_ns = clock_now_ns();

	pthread_mutex_lock(&sink->lock);
	sink->timer_armed = false;
	say_due(sink, now_ns);
	sink_ready(sink);
	unlock_and_arm(sink, now_ns);
}

/* ---- what others call ------------------------------------------------------------------------------------------ */

void explain_sink_record(struct explain_sink *sink, const char *device, const struct explain_record *record)
{
	int error = errno;

	if (sink->fd < 0 || (record->subject.expected && !sink->all))
		return;
	pthread_mutex_lock(&sink->lock);
	say_due(sink, record->time_ns);
	if (ignored_takes(sink, device, record)) {
		watch_abort(sink, true);
	} else if (!sink->ended && !sink->all && search_takes(&sink->search, device, record)) {
		__atomic_store_n(&sink->searches, true, __ATOMIC_RELAXED);
		watch_abort(sink, sink->search.device || sink->ignored_count);
	} else {
		if (!record->subject.expected)
			say_ignored(sink);
		if (sink->ended || !folds_repeats(&sink->folds, device, record))
			say_record(sink, device, record);
	}
	unlock_and_arm(sink, record->time_ns);
	errno = error;
}

void explain_sink_found(struct explain_sink *sink)
{
	if (likely(!__atomic_load_n(&sink->searches, __ATOMIC_RELAXED)))
		return;
	pthread_mutex_lock(&sink->lock);
	search_found(&sink->search, clock_now_ns());
	watch_abort(sink, sink->ignored_count);
	pthread_mutex_unlock(&sink->lock);
}

void explain_sink_note(struct explain_sink *sink, const char *text)
{
	char line[LINE_BYTES];

	if (sink->fd < 0)
		return;
	snprintf(line, sizeof(line), "softhca: %.*s\n", LINE_BYTES - 32, text);
	pthread_mutex_lock(&sink->lock);
	if (!sink_ready(sink) || !line_put(sink, line, strlen(line)))
		leave_out(sink, 1);
	pthread_mutex_unlock(&sink->lock);
}

void explain_sink_finish(struct explain_sink *sink, int status)
{
	if (sink->fd < 0)
		return;
	pthread_mutex_lock(&sink->lock);
	sink->ended = true;
	/* Lifts the limit of lines per second for the last lines. */
	sink->lines = 0;
	if (status)
		say_ignored(sink);
	say_search(sink, UINT64_MAX);
	say_counts_before(sink, UINT64_MAX, clock_now_ns());
	sink_ready(sink);
	pthread_mutex_unlock(&sink->lock);
}

void explain_sink_before_fork(struct explain_sink *sink)
{
	pthread_mutex_lock(&sink->lock);
}

void explain_sink_after_fork(struct explain_sink *sink, bool child)
{
	if (child) {
		sink->folds = (struct folds){0};
		sink->search = (struct search){0};
		sink->ignored_count = 0;
		sink->unread = sink->failed = sink->too_many = 0;
		sink->rest_bytes = 0;
		sink->timer_armed = false;
	}
	pthread_mutex_unlock(&sink->lock);
}
