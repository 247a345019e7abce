/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of softhca.h that read explanations: order, limits, sizes; and the file of SOFTHCA_EXPLAIN. */
#include "test_case.h"

#include <infiniband/verbs.h>

#include "softhca.h"

enum { KEPT = 1024, RULE_PORT_NUMBER = 300 };

static struct ibv_context *context;
static char sink[] = "/tmp/softhca-explain-XXXXXX";

static int open_first(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	(void)state;
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	return context ? 0 : -1;
}

static int close_it(void **state)
{
	(void)state;
	return ibv_close_device(context);
}

/* Breaks rule 300 with @port as its figure. */
static void break_rule(uint8_t port)
{
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(context, port, &attr), EINVAL);
}

TEST(newest_first)
{
	struct softhca_explanation read[3];
	size_t i;

	for (uint8_t port = 11; port <= 13; port++)
		break_rule(port);
	assert_int_equal(softhca_explanations(context, 0, read, 3), 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(read[i].rule, RULE_PORT_NUMBER);
		assert_int_equal(read[i].figures, 2);
		assert_int_equal(read[i].figure[0], 13 - i);
		assert_int_equal(read[i].figure[1], 1);
		assert_string_equal(read[i].name, "PORT_NUMBER");
		assert_string_equal(read[i].call, "ibv_query_port");
		assert_string_equal(read[i].device, ibv_get_device_name(context->device));
		assert_int_equal(read[i].error, EINVAL);
		assert_int_equal(read[i].qp_num, 0);
		if (i > 0) {
			assert_int_equal(read[i].serial, read[i - 1].serial - 1);
			assert_true(read[i].time_ns <= read[i - 1].time_ns);
		}
	}
	assert_int_equal(softhca_explanations(context, 0, read, 0), 0);
	assert_int_equal(softhca_explanations(context, 0x123456, read, 3), 0);
}

TEST(last_thousand_are_kept)
{
	struct softhca_explanation *read = calloc(KEPT + 1, sizeof(*read));

	assert_non_null(read);
	for (int i = 0; i < KEPT + 100; i++)
		break_rule(0);
	assert_int_equal(softhca_explanations(context, 0, read, KEPT + 1), KEPT);
	assert_int_equal(read[KEPT - 1].serial, read[0].serial - (KEPT - 1));
	free(read);
}

/* Programs that were compiled with a shorter and a longer structure. */
TEST(structures_of_other_sizes)
{
	const size_t shorter = offsetof(struct softhca_explanation, name);
	uint8_t bytes[2 * (sizeof(struct softhca_explanation) + 16) + 1];
	struct softhca_explanation whole;
	char text[256], again[256];

	break_rule(77);
	break_rule(78);
	memset(bytes, 0xee, sizeof(bytes));
	assert_int_equal(softhca_read_explanations(context, 0, (void *)bytes, 2, shorter), 2);
	assert_int_equal(softhca_explanations(context, 0, &whole, 1), 1);
	assert_memory_equal(bytes, &whole, shorter);
	assert_int_equal(bytes[2 * shorter], 0xee);

	memset(bytes, 0xee, sizeof(bytes));
	assert_int_equal(softhca_read_explanations(context, 0, (void *)bytes, 2, sizeof(whole) + 16), 2);
	assert_memory_equal(bytes, &whole, sizeof(whole));
	for (size_t i = sizeof(whole); i < sizeof(whole) + 16; i++)
		assert_int_equal(bytes[i], 0);
	assert_int_equal(bytes[sizeof(bytes) - 1], 0xee);
	softhca_explanation_text(&whole, text, sizeof(text));
	softhca_render_explanation((void *)bytes, sizeof(whole) + 16, again, sizeof(again));
	assert_string_equal(text, again);
}

TEST(text_is_cut_as_by_snprintf)
{
	struct softhca_explanation newest;
	char text[256], cut[20];
	size_t length;

	break_rule(79);
	assert_int_equal(softhca_explanations(context, 0, &newest, 1), 1);
	length = softhca_explanation_text(&newest, text, sizeof(text));
	assert_int_equal(length, strlen(text));
	assert_int_equal(softhca_explanation_text(&newest, cut, sizeof(cut)), length);
	assert_int_equal(strlen(cut), sizeof(cut) - 1);
	assert_memory_equal(cut, text, sizeof(cut) - 1);
	assert_int_equal(softhca_explanation_text(&newest, NULL, 0), length);
}

/* The file named by SOFTHCA_EXPLAIN gets the same lines, each immediately. */
TEST(file_has_the_same_lines)
{
	struct softhca_explanation newest;
	char text[256], line[256] = "", last[256] = "";
	FILE *file;

	break_rule(80);
	assert_int_equal(softhca_explanations(context, 0, &newest, 1), 1);
	softhca_explanation_text(&newest, text, sizeof(text));
	file = fopen(sink, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		strcpy(last, line);
	fclose(file);
	assert_int_equal(last[strlen(last) - 1], '\n');
	last[strlen(last) - 1] = '\0';
	assert_string_equal(last, text);
}

int main(void)
{
	int failed, fd = mkstemp(sink);

	if (fd < 0)
		return 1;
	close(fd);
	setenv("SOFTHCA_EXPLAIN", sink, 1);
	failed = run_cases(.group_setup = open_first, .group_teardown = close_it);
	unlink(sink);
	return failed;
}
