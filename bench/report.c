/* SPDX-License-Identifier: BSD-2-Clause */
/* The table and the JSON file, see bench.h. */
#include "bench.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

static const char *time_text(double ns, char *text, size_t size)
{
	if (ns < 999.5)
		snprintf(text, size, "%.1f ns", ns);
	else if (ns < 999500)
		snprintf(text, size, "%.2f us", ns / 1e3);
	else
		snprintf(text, size, "%.2f ms", ns / 1e6);
	return text;
}

/* Returns the speed relative to the peer, in the same rounds. */
static struct stat3 against_peer(const struct bench_case *c, unsigned int rounds)
{
	double values[ROUNDS_MAX];

	for (unsigned int i = 0; i < rounds; i++)
		values[i] = c->peer_ns[i] / c->ns[i];
	return statistics(values, rounds);
}

static bool is_met(const struct bench *bench, const struct bench_case *c)
{
	struct stat3 time = statistics(c->ns, bench->rounds), ratio = statistics(c->ratio, bench->rounds);

	switch (c->goal) {
	case GOAL_SPEED:
		return ratio.median >= c->limit;
	case GOAL_TIME:
		return ratio.median <= c->limit;
	case GOAL_NS:
		return time.median <= c->limit;
	case GOAL_RATE:
		return 1e3 / time.median >= c->limit;
	case GOAL_PEER:
		return against_peer(c, bench->rounds).median >= c->limit;
	default:
		return true;
	}
}

static void print_goal(const struct bench_case *c, bool met)
{
	const char *verdict = met ? "met" : "MISSED";

	switch (c->goal) {
	case GOAL_SPEED:
		printf("  >= %.2f x speed  %s", c->limit, verdict);
		break;
	case GOAL_TIME:
		printf("  <= %.1f x time    %s", c->limit, verdict);
		break;
	case GOAL_NS:
		printf("  <= %.0f ns        %s", c->limit, verdict);
		break;
	case GOAL_RATE:
		printf("  >= %.0f M/s        %s", c->limit, verdict);
		break;
	case GOAL_PEER:
		printf("  >= %.2f x %s  %s", c->limit, c->peer_name, verdict);
		break;
	default:
		break;
	}
}

static void print_case(const struct bench *bench, const struct bench_case *c)
{
	struct stat3 time = statistics(c->ns, bench->rounds), yardstick = statistics(c->yardstick_ns, bench->rounds),
		     ratio = statistics(c->ratio, bench->rounds);
	char text[2][32], speed[32] = "";

	if (c->payload)
		snprintf(speed, sizeof(speed), "%.1f GB/s", (double)c->payload / time.median);
	else if (c->batch > 1)
		snprintf(speed, sizeof(speed), "%.1f M/s", 1e3 / time.median);
	printf("  %-34s %10s %11s", c->name, time_text(time.median, text[0], sizeof(text[0])), speed);
	if (c->yardstick)
		printf("  %-11s %10s  %6.2f [%.2f-%.2f]", c->yardstick_name,
		       time_text(yardstick.median, text[1], sizeof(text[1])), ratio.median, ratio.min, ratio.max);
	if (c->peer)
		printf("  %s %5.2f", c->peer_name, statistics(c->peer_ratio, bench->rounds).median);
	print_goal(c, is_met(bench, c));
	putchar('\n');
}

void report_cases(const struct bench *bench, bool threads)
{
	const char *group = "";

	for (size_t i = 0; i < bench->case_count; i++) {
		const struct bench_case *c = &bench->cases[i];

		if (c->threads != threads)
			continue;
		if (strcmp(group, c->group) != 0) {
			group = c->group;
			printf("\n%-36s %10s %11s  %-22s  ratio [min-max]\n", group, "median", "", "yardstick");
		}
		print_case(bench, c);
	}
	fflush(stdout);
}

void report_memory(const struct bench *bench)
{
	if (!bench->row_count)
		return;
	printf("\n%-52s %12s\n", "resident memory", "bytes each");
	for (size_t i = 0; i < bench->row_count; i++)
		printf("  %-50s %12.0f   (%lu made)\n", bench->rows[i].name, bench->rows[i].bytes,
		       (unsigned long)bench->rows[i].objects);
	fflush(stdout);
}

/* Names consist of letters, digits and punctuation that need no escaping in JSON. */
static void json_statistics(FILE *file, const char *name, const double *values, unsigned int count)
{
	struct stat3 s = statistics(values, count);

	fprintf(file, ", \"%s\": {\"median\": %.4f, \"min\": %.4f, \"max\": %.4f}", name, s.median, s.min, s.max);
}

static void json_case(FILE *file, const struct bench *bench, const struct bench_case *c)
{
	static const char *const goals[] = {[GOAL_SPEED] = "speed_at_least",
					    [GOAL_TIME] = "time_at_most",
					    [GOAL_NS] = "ns_at_most",
					    [GOAL_RATE] = "millions_per_second_at_least",
					    [GOAL_PEER] = "speed_of_peer_at_least"};
	const char *name = c->name + strspn(c->name, " ");

	fprintf(file, "{\"group\": \"%s\", \"name\": \"%s\", \"payload\": %lu", c->group, name,
		(unsigned long)c->payload);
	json_statistics(file, "ns", c->ns, bench->rounds);
	if (c->yardstick) {
		fprintf(file, ", \"yardstick\": \"%s\"", c->yardstick_name);
		json_statistics(file, "yardstick_ns", c->yardstick_ns, bench->rounds);
		json_statistics(file, c->goal == GOAL_TIME ? "time_ratio" : "speed_ratio", c->ratio, bench->rounds);
	}
	if (c->peer) {
		fprintf(file, ", \"peer\": \"%s\"", c->peer_name);
		json_statistics(file, "peer_ns", c->peer_ns, bench->rounds);
		json_statistics(file, "peer_ratio", c->peer_ratio, bench->rounds);
	}
	if (c->goal != GOAL_NONE)
		fprintf(file, ", \"goal\": {\"%s\": %g}, \"met\": %s", goals[c->goal], c->limit,
			is_met(bench, c) ? "true" : "false");
	fputc('}', file);
}

int report_json(const struct bench *bench, const char *path)
{
	FILE *file = fopen(path, "w");
	struct utsname host;

	if (!file)
		return -errno;
	uname(&host);
	fprintf(file,
		"{\"softhca\": \"%s\", \"machine\": \"%s\", \"kernel\": \"%s\", \"compiler\": \"%s\", \"cpu\": %d, "
		"\"rounds\": %u, \"quick\": %s,\n\"cases\": [\n",
		SOFTHCA_VERSION, host.machine, host.release, __VERSION__, bench->cpu, bench->rounds,
		bench->quick ? "true" : "false");
	for (size_t i = 0; i < bench->case_count; i++) {
		json_case(file, bench, &bench->cases[i]);
		fputs(i + 1 < bench->case_count ? ",\n" : "\n", file);
	}
	fputs("],\n\"memory\": [\n", file);
	for (size_t i = 0; i < bench->row_count; i++)
		fprintf(file, "{\"name\": \"%s\", \"objects\": %lu, \"bytes_each\": %.0f}%s\n", bench->rows[i].name,
			(unsigned long)bench->rows[i].objects, bench->rows[i].bytes,
			i + 1 < bench->row_count ? "," : "");
	fputs("]}\n", file);
	return fclose(file) ? -errno : 0;
}
