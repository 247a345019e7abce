/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP numbers: unique among the processes of a host, thousands in one process, reused in the order in which they were
 * freed, and none left by a process that was killed. Kernel resources (sockets, threads) are allocated late.
 */
#include "test_case.h"
#include "verbs_process.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <infiniband/mlx5dv.h>

enum {
	MANY = 2500,    /* QPs of one process: more than fit in two slots */
	PROCESSES = 6,  /* at the same time */
	OF_EACH = 40,   /* QPs */
	SLOT_BITS = 10, /* src/link/host/DESIGN.md */
	RESTING = 512,  /* numbers freed before the first of them is reused */
	MULTICAST = 0xffffff,
};

static bool local; /* SOFTHCA_LINK=local */

static void open_device(void)
{
	setenv("SOFTHCA_LINK", local ? "local" : "auto", 1);
	verbs_open();
}

static struct ibv_qp *create(enum ibv_qp_type type)
{
	struct ibv_qp *qp = verbs_qp(type);

	CHECK(qp->qp_num && qp->qp_num < MULTICAST);
	/* The first slot is unused. */
	CHECK(local || qp->qp_num >> SLOT_BITS);
	return qp;
}

static void to_init(struct ibv_qp *qp)
{
	CHECK(!verbs_connect_until(qp, IBV_QPS_INIT, 0,
				   (struct ibv_qp_attr){.qkey = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE}));
}

static void to_rtr(struct ibv_qp *qp, uint32_t peer)
{
	CHECK(!verbs_connect_until(qp, IBV_QPS_RTR, peer,
				   (struct ibv_qp_attr){.max_dest_rd_atomic = 1, .min_rnr_timer = 12}));
}

static void to_rts(struct ibv_qp *qp, uint32_t peer)
{
	CHECK(!verbs_connect(qp, peer, .timeout = 14));
}

static void write_over(struct ibv_qp *qp)
{
	static uint64_t memory[2];
	struct ibv_mr *mr = verbs_target(memory, sizeof(memory));

	memory[0] = qp->qp_num;
	memory[1] = 0;
	verbs_post_write(qp, &memory[0], 8, mr, (uintptr_t)&memory[1], mr->rkey);
	CHECK(verbs_next_status() == IBV_WC_SUCCESS && memory[1] == qp->qp_num);
	CHECK(!ibv_dereg_mr(mr));
}

/* Runs @body in a child process that has not initialized the library. */
static void in_a_process(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		alarm(50);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- one process ------------------------------------------------------------------------------------------------ */

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static bool all_differ(uint32_t *numbers, size_t count)
{
	qsort(numbers, count, sizeof(*numbers), by_number);
	for (size_t i = 1; i < count; i++)
		if (numbers[i] == numbers[i - 1])
			return false;
	return true;
}

static void use_many(void)
{
	static struct ibv_qp *qp[MANY];
	static uint32_t numbers[MANY], sorted[MANY];

	open_device();
	for (int i = 0; i < MANY; i++) {
		qp[i] = create(IBV_QPT_RC);
		numbers[i] = sorted[i] = qp[i]->qp_num;
	}
	CHECK(all_differ(sorted, MANY));
	CHECK(numbers[0] >> SLOT_BITS != numbers[MANY - 1] >> SLOT_BITS);
	/* Across slots. */
	to_init(qp[0]);
	to_init(qp[MANY - 1]);
	to_rtr(qp[0], numbers[MANY - 1]);
	to_rtr(qp[MANY - 1], numbers[0]);
	to_rts(qp[0], numbers[MANY - 1]);
	write_over(qp[0]);
	/* Backwards, to check the order. */
	for (int i = MANY - 1; i >= 0; i--)
		CHECK(!ibv_destroy_qp(qp[i]));
	for (int i = 0; i < MANY - RESTING + 1; i++) {
		qp[i] = create(IBV_QPT_RC);
		CHECK(qp[i]->qp_num == numbers[MANY - 1 - i]);
	}
	for (int i = 0; i < MANY - RESTING + 1; i++)
		CHECK(!ibv_destroy_qp(qp[i]));
}

TEST(thousands_of_qps)
{
	in_a_process(use_many);
}

/* A freed number is not reused at once: packets to its previous owner must not reach a new QP. */
static void come_and_go(void)
{
	uint32_t first, last[RESTING] = {0};
	struct ibv_qp *qp;

	open_device();
	qp = create(IBV_QPT_UD);
	first = qp->qp_num;
	CHECK(!ibv_destroy_qp(qp));
	for (int i = 0; i < 5000; i++) {
		qp = create(IBV_QPT_UD);
		for (int j = 0; j < RESTING - 1; j++)
			CHECK(qp->qp_num != last[j]);
		last[i % (RESTING - 1)] = qp->qp_num;
		/* One slot is enough for one QP at a time. */
		CHECK(qp->qp_num >> SLOT_BITS == first >> SLOT_BITS);
		CHECK(!ibv_destroy_qp(qp));
	}
}

TEST(a_number_rests)
{
	in_a_process(come_and_go);
}

static int count_entries(const char *path)
{
	DIR *directory = opendir(path);
	int count = 0;

	CHECK(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void look_at_what_is_there(void)
{
	int descriptors, threads;
	struct ibv_qp *qp[2];

	open_device();
	descriptors = count_entries("/proc/self/fd");
	threads = count_entries("/proc/self/task");
	for (int i = 0; i < 2; i++) {
		qp[i] = create(IBV_QPT_RC);
		to_init(qp[i]);
	}
	to_rtr(qp[0], qp[1]->qp_num);
	to_rtr(qp[1], qp[0]->qp_num);
	to_rts(qp[0], qp[1]->qp_num);
	write_over(qp[0]);
	/* The name of the slot. Other slots may come and go; these two QPs are connected to each other. */
	CHECK(count_entries("/proc/self/fd") == descriptors + !local);
	CHECK(count_entries("/proc/self/task") == threads);
}

static void local_only(void)
{
	local = true;
	look_at_what_is_there();
}

TEST(cost_in_one_process)
{
	in_a_process(look_at_what_is_there);
	in_a_process(local_only);
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

/* Sends the numbers of its QPs and waits to be killed. */
static void have_numbers(int to)
{
	uint32_t numbers[OF_EACH];

	open_device();
	for (int i = 0; i < OF_EACH; i++)
		numbers[i] = create(i & 1 ? IBV_QPT_UD : IBV_QPT_RC)->qp_num;
	CHECK(write(to, numbers, sizeof(numbers)) == sizeof(numbers));
	for (;;)
		pause();
}

static pid_t start(int to, void (*body)(int to))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		alarm(50);
		body(to);
	}
	return pid;
}

static void kill_process(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST(no_number_twice)
{
	uint32_t numbers[PROCESSES][OF_EACH];
	pid_t pid[PROCESSES];
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	for (int i = 0; i < PROCESSES; i++)
		pid[i] = start(ends[1], have_numbers);
	for (int i = 0; i < PROCESSES; i++)
		assert_int_equal(read(ends[0], numbers[i], sizeof(numbers[i])), sizeof(numbers[i]));
	assert_true(all_differ(numbers[0], sizeof(numbers) / sizeof(numbers[0][0])));
	for (int i = 0; i < PROCESSES; i++)
		kill_process(pid[i]);
	close(ends[0]);
	close(ends[1]);
}

/* A child inherits the device, the context and the QPs of its parent; new QPs get numbers of its own. */
static struct ibv_qp *inherited[3];
static uint32_t reserved;

static void go_on(void)
{
	const uint32_t slot = reserved >> SLOT_BITS;
	static struct ibv_qp *many[2 * RESTING];

	for (int i = 0; i < 3; i++)
		CHECK(!ibv_destroy_qp(inherited[i]));
	CHECK(!mlx5dv_reserved_qpn_dealloc(context, reserved));
	/* Nor does the child reuse numbers that the parent freed. */
	for (int i = 0; i < 2 * RESTING; i++) {
		many[i] = create(IBV_QPT_RC);
		CHECK(many[i]->qp_num >> SLOT_BITS != slot);
	}
	CHECK(!mlx5dv_reserved_qpn_alloc(context, &reserved));
	CHECK(reserved >> SLOT_BITS != slot);
	to_init(many[0]);
	to_init(many[1]);
	to_rtr(many[0], many[1]->qp_num);
	to_rtr(many[1], many[0]->qp_num);
	to_rts(many[0], many[1]->qp_num);
	write_over(many[0]);
}

static void fork_with_numbers(void)
{
	struct ibv_qp *qp;

	open_device();
	for (int i = 0; i < 3; i++)
		inherited[i] = create(IBV_QPT_RC);
	CHECK(!mlx5dv_reserved_qpn_alloc(context, &reserved));
	CHECK(reserved >> SLOT_BITS == inherited[0]->qp_num >> SLOT_BITS);
	in_a_process(go_on);
	/* The parent is unaffected. */
	qp = create(IBV_QPT_RC);
	CHECK(qp->qp_num == reserved + 1);
	CHECK(!mlx5dv_reserved_qpn_dealloc(context, reserved));
	for (int i = 0; i < 3; i++)
		CHECK(!ibv_destroy_qp(inherited[i]));
}

TEST(numbers_of_a_child)
{
	in_a_process(fork_with_numbers);
}

/* ---- the end of a process ---------------------------------------------------------------------------------------- */

static bool name_exists(uint32_t qpn)
{
	FILE *file = fopen("/proc/net/unix", "r");
	char name[64], line[512];
	bool found = false;

	assert_non_null(file);
	snprintf(name, sizeof(name), "@softhca/1/slot/%u\n", qpn >> SLOT_BITS);
	while (!found && fgets(line, sizeof(line), file))
		found = strstr(line, name) != NULL;
	fclose(file);
	return found;
}

/* Creates a QP that others could connect to, so that the process has its thread and sockets. */
static void have_a_number(int to)
{
	struct ibv_qp *qp;

	open_device();
	qp = create(IBV_QPT_UD);
	to_init(qp);
	to_rtr(qp, 0);
	CHECK(write(to, &qp->qp_num, sizeof(qp->qp_num)) == sizeof(qp->qp_num));
	for (;;)
		pause();
}

static void have_a_number_and_a_child(int to)
{
	struct ibv_qp *qp;
	uint32_t said[2];
	pid_t child;

	open_device();
	qp = create(IBV_QPT_UD);
	to_init(qp);
	to_rtr(qp, 0);
	child = fork();
	said[0] = qp->qp_num;
	said[1] = (uint32_t)child;
	CHECK(child >= 0);
	CHECK(!child || write(to, said, sizeof(said)) == sizeof(said));
	for (;;)
		pause();
}

TEST(nothing_is_left)
{
	uint32_t number;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = start(ends[1], have_a_number);
	assert_int_equal(read(ends[0], &number, sizeof(number)), sizeof(number));
	assert_true(name_exists(number));
	kill_process(pid);
	assert_false(name_exists(number));
	close(ends[0]);
	close(ends[1]);
}

/* The child does not need its parent's descriptors and closes them. */
TEST(nor_in_a_child)
{
	uint32_t said[2];
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = start(ends[1], have_a_number_and_a_child);
	assert_int_equal(read(ends[0], said, sizeof(said)), sizeof(said));
	assert_true(name_exists(said[0]));
	kill_process(pid);
	/* The child may have just started and not closed them yet. */
	for (int i = 0; i < 2000 && name_exists(said[0]); i++)
		usleep(1000);
	assert_false(name_exists(said[0]));
	assert_int_equal(kill((pid_t)said[1], SIGKILL), 0);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	return run_cases();
}
