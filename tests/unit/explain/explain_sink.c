/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explain/sink: repetitions are counted, omissions are reported, nothing blocks; fork, threads, colour. The time of an
 * explanation is that of its record, so the tests set the time.
 */
#include <fcntl.h>
#include <pthread.h>
#include "test_case.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <infiniband/mlx5dv.h>

#include "explain/sink.h"
#include "core/timer.h"
#include "hca/hca.h"
#include "progress/progress.h"
#include "process/commands.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
/* Limits that the documents promise. */
#define LINES_PER_SECOND 1000

static const char device[] = "mlx5_0";

struct fixture {
	struct settings settings;
	struct explain_sink *sink;
	int reader; /* end of a pipe, O_NONBLOCK */
	char text[1 << 18];
	uint64_t now_ns;
};

/* Makes a sink for the rest of the process: these are not leaks. */
static struct explain_sink *new_sink(const struct settings *settings)
{
	static struct explain_sink *all[32];
	static size_t count;

	assert_true(count < 32);
	all[count] = explain_sink_new(settings);
	return all[count++];
}

/* Opens a pipe as the sink, which the sink uses like a named pipe. */
static void open_sink(struct fixture *fixture)
{
	char directory[] = "/tmp/softhca-sink-XXXXXX";

	assert_non_null(mkdtemp(directory));
	settings_default(&fixture->settings);
	snprintf(fixture->settings.explain, sizeof(fixture->settings.explain), "%s/fifo", directory);
	assert_int_equal(mkfifo(fixture->settings.explain, 0600), 0);
	fixture->reader = open(fixture->settings.explain, O_RDONLY | O_NONBLOCK);
	assert_true(fixture->reader >= 0);
	fixture->sink = new_sink(&fixture->settings);
	assert_non_null(fixture->sink);
	unlink(fixture->settings.explain);
	rmdir(directory);
	/* In the future, so that no timer of the thread that the last tests start is due. */
	fixture->now_ns = clock_now_ns() + 1000 * SECOND;
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	open_sink(fixture);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	close(fixture->reader);
	free(fixture);
	return 0;
}

/* Returns the text written since the last call. */
static const char *written(struct fixture *fixture)
{
	size_t length = 0;
	ssize_t done;

	while ((done = read(fixture->reader, fixture->text + length, sizeof(fixture->text) - 1 - length)) > 0)
		length += (size_t)done;
	fixture->text[length] = '\0';
	return fixture->text;
}

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	while ((text = strstr(text, part))) {
		count++;
		text += strlen(part);
	}
	return count;
}

#define COUNT(text, part, count) assert_int_equal(count_of(text, part), count)

static void explain(struct fixture *fixture, uint32_t qpn, enum explain_rule rule, uint8_t syndrome, uint64_t figure)
{
	struct explain_record record = {.time_ns = fixture->now_ns,
					.rule = rule,
					.subject = {.qpn = qpn, .wr_id = figure, .syndrome = syndrome},
					.args = {figure}};

	explain_sink_record(fixture->sink, device, &record);
}

static void flush(struct fixture *fixture, uint32_t qpn, uint64_t wr_id)
{
	explain(fixture, qpn, RULE_RETRY_EXHAUSTED, MLX5_CQE_SYNDROME_WR_FLUSH_ERR, wr_id);
}

/* One failure and its flushes: one line each, and a count at the end. */
TEST(one_failure)
{
	struct fixture *fixture = *state;
	const char *text;

	explain(fixture, 0x40, RULE_KEY_RANGE, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, 7);
	for (uint64_t i = 8; i < 8 + 127; i++)
		flush(fixture, 0x40, i);
	text = written(fixture);
	COUNT(text, "\n", 2);
	COUNT(text, "wr_id 7 ", 1);
	COUNT(text, "wr_id 8 ", 1);
	explain_sink_finish(fixture->sink, 0);
	assert_string_equal(written(fixture), "mlx5_0 qp 0x40: … and 126 more [95 RETRY_EXHAUSTED]\n");
}

/* Interleaved queue pairs and rules are counted separately; the next explanation after a second reports the counts. */
TEST(mixed)
{
	struct fixture *fixture = *state;
	const char *text;

	for (uint64_t i = 0; i < 10; i++)
		for (uint32_t qpn = 0x40; qpn < 0x50; qpn++) {
			flush(fixture, qpn, i);
			explain(fixture, qpn, RULE_KEY_RANGE, 0, i);
		}
	COUNT(written(fixture), "\n", 32);
	fixture->now_ns += SECOND - 1;
	flush(fixture, 0x41, 1);
	COUNT(written(fixture), "\n", 0);
	fixture->now_ns += 2;
	explain(fixture, 0x60, RULE_KEY_RANGE, 0, 0);
	text = written(fixture);
	COUNT(text, "… and 9 more", 31);
	COUNT(text, "mlx5_0 qp 0x41: … and 10 more [95 ", 1);
	COUNT(text, "\n", 33);
	/* The failure had ended: after another second it gets a line again. */
	fixture->now_ns += 2 * SECOND;
	flush(fixture, 0x41, 3);
	COUNT(written(fixture), "wr_id 3 ", 1);
}

/* An endless repetition gets one line per second. */
TEST(endless)
{
	struct fixture *fixture = *state;
	uint64_t said = 0, more;
	const char *line;

	for (int i = 0; i < 10000; i++) {
		flush(fixture, 0x40, (uint64_t)i);
		fixture->now_ns += MS;
	}
	explain_sink_finish(fixture->sink, 0);
	line = written(fixture);
	assert_in_range(count_of(line, "\n"), 10, 12);
	COUNT(line, "wr_id", 1);
	while ((line = strstr(line, "… and "))) {
		line += strlen("… and ");
		more = strtoull(line, NULL, 10);
		said += more;
	}
	assert_int_equal(said, 9999);
}

/* Without a queue pair, only identical explanations are repetitions; calls are distinguished by name. */
TEST(without_queue_pair)
{
	struct fixture *fixture = *state;
	struct explain_record record = {.time_ns = fixture->now_ns, .rule = RULE_CALL_NOT_IMPLEMENTED};

	for (uint64_t i = 0; i < 10; i++)
		explain(fixture, 0, RULE_KEY_RANGE, 0, i / 5);
	COUNT(written(fixture), "\n", 2);
	record.subject.call = "ibv_one";
	explain_sink_record(fixture->sink, device, &record);
	record.subject.call = "ibv_two";
	explain_sink_record(fixture->sink, device, &record);
	explain_sink_record(fixture->sink, device, &record);
	COUNT(written(fixture), "\n", 2);
	explain_sink_finish(fixture->sink, 0);
	COUNT(written(fixture), "mlx5_0 ibv_two: … and 1 more [700 CALL_NOT_IMPLEMENTED]\n", 1);
}

/* More kinds than table entries: no count is lost. */
TEST(many_kinds)
{
	struct fixture *fixture = *state;
	size_t first = 0, more = 0;

	for (uint32_t qpn = 0x100; qpn < 0x100 + 300; qpn++) {
		for (uint64_t i = 0; i < 3; i++)
			flush(fixture, qpn, i);
		first += count_of(written(fixture), "wr_id 0 ");
		more += count_of(fixture->text, "… and 2 more");
	}
	explain_sink_finish(fixture->sink, 0);
	assert_int_equal(first, 300);
	assert_int_equal(more + count_of(written(fixture), "… and 2 more"), 300);
}

/* Without a reader all calls return; the omission is reported once there is a reader. */
TEST(no_reader)
{
	struct fixture *fixture = *state;
	char expected[128];
	size_t lines;
	const char *text;

	alarm(60);
	for (uint32_t i = 0; i < 2000; i++) {
		explain(fixture, 0x1000 + i, RULE_KEY_RANGE, 0, i);
		fixture->now_ns += 2 * MS;
	}
	lines = count_of(written(fixture), "\n");
	assert_in_range(lines, 100, 1999);
	explain(fixture, 0x40, RULE_KEY_RANGE, 0, 0);
	text = written(fixture);
	snprintf(expected, sizeof(expected),
		 "softhca: … %zu explanations left out: the sink is not read\nmlx5_0 qp 0x40", 2000 - lines);
	assert_int_equal(strncmp(text, expected, strlen(expected)), 0);
	alarm(0);
}

TEST(left_out_at_the_end)
{
	struct fixture *fixture = *state;
	size_t lines;
	char expected[128];

	for (uint32_t i = 0; i < 900; i++)
		explain(fixture, 0x1000 + i, RULE_KEY_RANGE, 0, i);
	lines = count_of(written(fixture), "\n");
	assert_in_range(lines, 100, 899);
	explain_sink_finish(fixture->sink, 0);
	snprintf(expected, sizeof(expected), "softhca: … %zu explanations left out: the sink is not read\n",
		 900 - lines);
	assert_string_equal(written(fixture), expected);
}

/* A file that first cannot grow, and then can. */
TEST(full_disk)
{
	struct fixture *fixture = *state;
	char path[] = "/tmp/softhca-sink-XXXXXX";
	struct rlimit before, limit;

	close(fixture->reader);
	fixture->reader = mkstemp(path);
	strcpy(fixture->settings.explain, path);
	fixture->sink = new_sink(&fixture->settings);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	/* The first line is truncated; none of the others is started. */
	limit.rlim_cur = 100;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (uint32_t i = 0; i < 5; i++)
		explain(fixture, 0x40 + i, RULE_KEY_RANGE, 0, i);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(strlen(written(fixture)), 100);
	explain_sink_note(fixture->sink, "a remark");
	assert_non_null(strstr(written(fixture), "\nsofthca: … 4 explanations left out: writing failed with EFBIG\n"
						 "softhca: a remark\n"));
	unlink(path);
}

/* The lines per second are limited; repetitions do not count. */
TEST(lines_per_second)
{
	struct fixture *fixture = *state;
	size_t lines = 0;

	for (uint32_t i = 0; i < 3 * LINES_PER_SECOND; i++) {
		explain(fixture, 0x1000 + i, RULE_KEY_RANGE, 0, i);
		if (i % 100 == 0)
			lines += count_of(written(fixture), "\n");
	}
	lines += count_of(written(fixture), "\n");
	assert_int_equal(lines, LINES_PER_SECOND);
	fixture->now_ns += SECOND;
	explain(fixture, 0x40, RULE_KEY_RANGE, 0, 0);
	assert_int_equal(strncmp(written(fixture),
				 "softhca: … 2000 explanations left out: more than 1000 in a second\nmlx5_0 qp 0x40",
				 80),
			 0);
}

/* The parent reports its counts, the child does not. */
TEST(forked_child)
{
	struct fixture *fixture = *state;
	int status;
	pid_t pid;

	for (uint64_t i = 0; i < 3; i++)
		flush(fixture, 0x40, i);
	written(fixture);
	explain_sink_before_fork(fixture->sink);
	pid = fork();
	explain_sink_after_fork(fixture->sink, !pid);
	if (!pid) {
		explain_sink_finish(fixture->sink, 0);
		_exit(written(fixture)[0] != '\0');
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	explain_sink_finish(fixture->sink, 0);
	COUNT(written(fixture), "… and 2 more", 1);
}

static void *explain_much(void *argument)
{
	struct fixture *fixture = argument;

	for (uint64_t i = 0; i < 20000; i++)
		flush(fixture, 0x40 + (uint32_t)(i % 7), i);
	return NULL;
}

/* No line is torn, and the counts include every explanation. */
TEST(threads)
{
	struct fixture *fixture = *state;
	uint64_t said = 0;
	pthread_t thread[4];
	const char *line;

	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, explain_much, fixture), 0);
	for (size_t i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	explain_sink_finish(fixture->sink, 0);
	for (line = written(fixture); *line; line = strchr(line, '\n') + 1) {
		const char *more = strstr(line, "… and ");

		assert_int_equal(strncmp(line, "mlx5_0 qp 0x4", 13), 0);
		said += more && more < strchr(line, '\n') ? strtoull(more + strlen("… and "), NULL, 10) : 1;
	}
	assert_int_equal(said, 80000);
}

/* The device thread, if there is one, reports counts that no later explanation reports. */
TEST(device_thread)
{
	struct fixture *fixture = *state;

	assert_non_null(hca_device(0));
	assert_int_equal(progress_start(), 0);
	fixture->now_ns = clock_now_ns();
	for (uint64_t i = 0; i < 3; i++)
		flush(fixture, 0x40, i);
	COUNT(written(fixture), "\n", 1);
	for (int i = 0; i < 10000 && !written(fixture)[0]; i++)
		usleep(1000);
	assert_string_equal(fixture->text, "mlx5_0 qp 0x40: … and 2 more [95 RETRY_EXHAUSTED]\n");
	assert_true(clock_now_ns() - fixture->now_ns >= SECOND);
}

TEST(color)
{
	struct fixture *fixture = *state;
	int ends[2], stderr_before;
	const char *text;

	/* A FIFO is not a terminal. */
	explain(fixture, 0x40, RULE_KEY_RANGE, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, 0);
	assert_null(strchr(written(fixture), '\033'));
	/* The program's current stderr, whatever it refers to; no duplicate of ours keeps it open. */
	fixture->settings.color = COLOR_ALWAYS;
	strcpy(fixture->settings.explain, "stderr");
	fixture->sink = new_sink(&fixture->settings);
	stderr_before = dup(STDERR_FILENO);
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	close(fixture->reader);
	fixture->reader = ends[0];
	explain(fixture, 0x40, RULE_KEY_RANGE, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, 7);
	flush(fixture, 0x40, 8);
	flush(fixture, 0x40, 9);
	explain_sink_finish(fixture->sink, 0);
	dup2(stderr_before, STDERR_FILENO);
	close(stderr_before);
	text = written(fixture);
	/* Failures are highlighted, their consequences are dimmed. */
	assert_int_equal(strncmp(text, "\033[1;31mmlx5_0 qp 0x40 ", 22), 0);
	COUNT(text, "LOC_PROT_ERR\033[0m: ", 1);
	COUNT(text, "\n\033[2mmlx5_0 qp 0x40 ", 1);
	COUNT(text, "\n\033[2mmlx5_0 qp 0x40: … and 1 more [95 RETRY_EXHAUSTED]\033[0m\n", 1);
}

static void explain_expected(struct fixture *fixture, uint64_t wr_id)
{
	const struct explain_record record = {.time_ns = fixture->now_ns,
					      .rule = RULE_FLUSHED,
					      .subject = {.qpn = 0x40, .wr_id = wr_id, .expected = true}};

	explain_sink_record(fixture->sink, device, &record);
}

/* A record that results from no mistake gets no line, and does not count as a repetition. */
TEST(expected_ones)
{
	struct fixture *fixture = *state;

	explain_expected(fixture, 1);
	explain_sink_finish(fixture->sink, 0);
	assert_string_equal(written(fixture), "");
}

/* Makes another sink with the same reader. */
static void renew_sink(struct fixture *fixture)
{
	snprintf(fixture->settings.explain, sizeof(fixture->settings.explain), "/proc/self/fd/%d", fixture->reader);
	fixture->sink = new_sink(&fixture->settings);
}

static void record_ignorable(struct fixture *fixture, enum explain_rule rule)
{
	const struct explain_record record = {.time_ns = fixture->now_ns,
					      .rule = rule,
					      .subject = {.call = "ibv_destroy_cq", .error = EBUSY, .ignorable = true}};

	explain_sink_record(fixture->sink, device, &record);
}

/* A program that ignores a refused destruction and succeeds prints nothing. */
TEST(ignored_refusal)
{
	struct fixture *fixture = *state;

	record_ignorable(fixture, RULE_CQ_IN_USE);
	explain_sink_finish(fixture->sink, 0);
	assert_string_equal(written(fixture), "");
}

/* A program that fails afterwards gets the lines, as does one that makes another mistake or requests warnings. */
TEST(refusal_that_matters)
{
	struct fixture *fixture = *state;
	const char *text;

	record_ignorable(fixture, RULE_CQ_IN_USE);
	record_ignorable(fixture, RULE_PD_IN_USE);
	explain_sink_finish(fixture->sink, 1);
	text = written(fixture);
	COUNT(text, "\n", 2);
	COUNT(text, "[424 CQ_IN_USE; ", 1);
	COUNT(text, "[320 PD_IN_USE; ", 1);

	renew_sink(fixture);
	record_ignorable(fixture, RULE_CQ_IN_USE);
	assert_string_equal(written(fixture), "");
	explain(fixture, 0x40, RULE_KEY_RANGE, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, 0);
	text = written(fixture);
	COUNT(text, "[424 CQ_IN_USE; ", 1);
	COUNT(text, "[7 KEY_RANGE; ", 1);

	strcpy(fixture->settings.lint, "on");
	renew_sink(fixture);
	record_ignorable(fixture, RULE_CQ_IN_USE);
	COUNT(written(fixture), "[424 CQ_IN_USE; ", 1);
}

/* Unless everything is requested: "all:FILE". */
TEST(all_of_them)
{
	struct fixture *fixture = *state;
	char path[] = "/tmp/softhca-all-XXXXXX", text[1024] = "";
	int file = mkstemp(path);

	assert_true(file >= 0);
	snprintf(fixture->settings.explain, sizeof(fixture->settings.explain), "all:%s", path);
	fixture->sink = new_sink(&fixture->settings);
	explain_expected(fixture, 7);
	explain(fixture, 0, RULE_QP_MAX_INLINE, 0, 1);
	assert_true(read(file, text, sizeof(text) - 1) > 0);
	COUNT(text, "[34 FLUSHED; ", 1);
	COUNT(text, "[518 QP_MAX_INLINE; ", 1);
	unlink(path);
	close(file);
}

/* Refusals by a limit are steps of a search if a queue pair is created after them; so are refusals soon after it. */
TEST(search)
{
	struct fixture *fixture = *state;

	fixture->now_ns = clock_now_ns();
	for (uint64_t i = 0; i < 5; i++)
		explain(fixture, 0, RULE_QP_MAX_INLINE, 0, i);
	explain_sink_found(fixture->sink);
	explain(fixture, 0, RULE_QP_MAX_INLINE, 0, 6);
	explain_sink_finish(fixture->sink, 0);
	assert_string_equal(written(fixture), "");
}

/* One line for a search without success: after a second, or at exit. */
TEST(search_in_vain)
{
	struct fixture *fixture = *state;

	for (int end = 0; end < 2; end++) {
		for (uint64_t i = 0; i < 5; i++)
			explain(fixture, 0, RULE_QP_MAX_INLINE, 0, i);
		assert_string_equal(written(fixture), "");
		fixture->now_ns += 2 * SECOND;
		if (end)
			explain_sink_finish(fixture->sink, 0);
		else
			explain(fixture, 0x41, RULE_KEY_RANGE, 0, 0);
		COUNT(written(fixture), "[518 QP_MAX_INLINE; ", 1);
		COUNT(fixture->text, "\n", end ? 1 : 2);
		fixture->now_ns += 2 * SECOND;
	}
}

int main(void)
{
	return run_cases(.setup = setup, .teardown = teardown);
}
