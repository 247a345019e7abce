/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The benchmark: operations of the library timed in turn with a yardstick on the same memory, so that a figure is a ratio
 * within one run rather than between two machines.
 *
 * A case times one operation; a round times each case's yardstick, its peer if it has one, and the operation, one directly
 * after the other. Each file of cases creates its objects, checks that they work, and adds its cases; all of it lives until the
 * process ends. One thread, pinned to one CPU.
 */
#ifndef SOFTHCA_BENCH_BENCH_H
#define SOFTHCA_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#define ROUNDS_MAX 101

/* Runs the measured operation @count times. */
typedef void work_fn(void *subject, uint64_t count);

enum goal {
	GOAL_NONE,
	GOAL_SPEED, /* at least `limit` times as fast as the yardstick */
	GOAL_TIME,  /* at most `limit` times the time of the yardstick */
	GOAL_NS,    /* at most `limit` nanoseconds */
	GOAL_RATE,  /* at least `limit` millions in a second */
	GOAL_PEER,  /* at least `limit` times as fast as the peer */
};

struct bench_case {
	const char *group;
	char name[64];
	work_fn *run;
	void *subject;
	const char *yardstick_name; /* NULL: none */
	work_fn *yardstick;
	void *yardstick_subject;
	const char *peer_name; /* the alternative that a user would have; NULL: none */
	work_fn *peer;
	void *peer_subject;
	void (*prepare)(void *prepare_subject); /* called before each measurement, untimed; NULL: nothing to do */
	void *prepare_subject;
	uint64_t payload; /* bytes that one operation moves, 0 if not relevant */
	uint32_t batch;   /* operations per count; 0 stands for 1 */
	uint32_t yardstick_batch;
	enum goal goal;
	double limit;
	bool threads; /* measured while the process has a second, sleeping thread */
	/* results, per operation */
	uint64_t count, yardstick_count, peer_count;
	double ns[ROUNDS_MAX], yardstick_ns[ROUNDS_MAX], ratio[ROUNDS_MAX];
	double peer_ns[ROUNDS_MAX], peer_ratio[ROUNDS_MAX]; /* the peer's own ratio to the yardstick */
};

struct memory_row {
	char name[64];
	uint64_t objects;
	double bytes; /* of resident memory per object */
};

struct bench {
	bool quick;
	unsigned int rounds;
	double slice_ns;  /* duration of one measurement */
	uint64_t keys;    /* for the look-up */
	const char *only; /* prefix of the names of the groups to run, or NULL for all */
	int cpu;
	struct bench_case *cases;
	size_t case_count;
	struct memory_row *rows;
	size_t row_count;
};

struct stat3 {
	double median, min, max;
};

/* ---- measuring (measure.c) ------------------------------------------------------------------------------------ */

/** Returns the CPU time of the thread, in nanoseconds. */
double now_ns(void);
/** Ends the program with a line on stderr. */
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void *allocate(size_t size);
/** Keeps the compiler from removing or merging copies. */
static inline void memory_barrier_of_compiler(void)
{
	__asm__ volatile("" ::: "memory");
}

/** Adds a copy of @new_case unless another group was asked for. The name is a printf format. */
void add_case(struct bench *bench, const struct bench_case *new_case, const char *name, ...)
	__attribute__((format(printf, 3, 4)));
/** Returns true if @group, which may be the common prefix of several groups, was asked for. */
bool group_wanted(const struct bench *bench, const char *group);
/** Measures all cases with the given value of `threads`. */
void measure(struct bench *bench, bool threads);
struct stat3 statistics(const double *values, unsigned int count);

/* ---- results (report.c) --------------------------------------------------------------------------------------- */

void report_cases(const struct bench *bench, bool threads);
void report_memory(const struct bench *bench);
/** Returns 0, or -errno if the file cannot be written. */
int report_json(const struct bench *bench, const char *path);

/* ---- the device (fixture.c) ----------------------------------------------------------------------------------- */

/* An open device with memory: `source` and `target` are hot, filled, registered as one MR each. */
struct device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	union ibv_gid gid;
	uint8_t gid_index;
	uint8_t *source, *target;
	size_t size; /* bytes of each */
	struct ibv_mr *source_mr, *target_mr;
};

/* Two connected RC QPs over one CQ. QP 0 requests, QP 1 responds. The pair owns its CQ unless it was given one. */
struct pair {
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	bool owns_cq;
};

struct pair_attr {
	struct ibv_pd *pd; /* NULL: that of the device; a parent domain: queues of a single thread */
	struct ibv_cq *cq; /* NULL: a new one, with room for both queues of both QPs */
	uint32_t depth, max_inline;
	bool builders; /* for ibv_wr_* and mlx5dv_wr_* */
};

/** Opens device @index with @size bytes in each buffer, a multiple of the page size. */
struct device *device_open(int index, size_t size);
struct ibv_mr *device_register(struct device *device, void *buffer, size_t bytes);
/** Returns page-backed memory in which every word is different. */
uint8_t *buffer_new(size_t size, uint64_t seed);
struct ibv_pd *thread_domain(struct device *device);
void pair_create(struct device *device, const struct pair_attr *attr, struct pair *pair);
void pair_destroy(struct pair *pair);
/** Polls @count completions, all of which must be successful. */
void await(struct pair *pair, uint32_t count);

#define LIST_LENGTH 32

/* A work request of one SGE, ready to be posted repeatedly; and a list of them. */
struct message {
	struct pair *pair;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_sge receive_sge;
	struct ibv_recv_wr receive;
	struct ibv_send_wr list[LIST_LENGTH];
	struct ibv_recv_wr receive_list[LIST_LENGTH];
};

/** Makes a signalled @opcode of @bytes from `source` to `target` (READ: from there back to `target`). */
struct message *message_new(struct device *device, struct pair *pair, enum ibv_wr_opcode opcode, uint32_t bytes);
/** work_fn over a struct message: posts it and polls the completions. */
void post_and_poll(void *message, uint64_t count);
/** As post_and_poll(), with a receive posted before and completed as well. */
void send_and_poll(void *message, uint64_t count);
/** Posts LIST_LENGTH work requests per call and polls their completions. */
void post_list_and_poll(void *message, uint64_t count);
void send_list_and_poll(void *message, uint64_t count);

/* ---- keys (keys.c) -------------------------------------------------------------------------------------------- */

/** Creates an indirect key; @flags: further MLX5DV_MKEY_INIT_ATTR_FLAGS_*. */
struct mlx5dv_mkey *key_new(struct device *device, uint32_t flags, uint16_t entries);
/** Begins a configuration by QP 0 of @pair, which has builders; @setters: including that of access, which is called here. */
struct mlx5dv_qp_ex *configure_begin(struct pair *pair, struct mlx5dv_mkey *key, uint8_t setters);
/** Posts the configuration and waits. */
void configure_end(struct pair *pair);
/** Sets a layout of one piece: the first @bytes of @mr. */
void set_piece(struct mlx5dv_qp_ex *dv, const struct ibv_mr *mr, uint32_t bytes);

/* ---- yardsticks (yardstick.c) --------------------------------------------------------------------------------- */

struct copies {
	uint8_t *to;
	const uint8_t *from;
	size_t bytes, to_stride, from_stride;
	uint64_t pieces;
};

/** Copies `pieces` times `bytes` bytes with memcpy. */
void copy_pieces(void *copies, uint64_t count);
/** As copy_pieces() for 64-byte pieces, as a compiler translates a plain loop. */
void copy_records(void *copies, uint64_t count);
/** The minimal post and poll: a WQE and a CQE in rings, two calls, two locks. 8 bytes. */
void bare_model(void *unused, uint64_t count);
/** As bare_model(), without locks, with LIST_LENGTH WQEs and CQEs per call. */
void bare_model_list(void *unused, uint64_t count);

/* ---- cases ---------------------------------------------------------------------------------------------------- */

void add_bandwidth_cases(struct bench *bench, struct device *device);
void add_latency_cases(struct bench *bench, struct device *device);
void add_rate_cases(struct bench *bench, struct device *device);
void add_layout_cases(struct bench *bench, struct device *device);
void add_signature_cases(struct bench *bench, struct device *device);
void add_cipher_cases(struct bench *bench, struct device *device);
/** Registers bench->keys keys on a second device. */
void add_lookup_cases(struct bench *bench);
void measure_memory(struct bench *bench, struct device *device);
/** Returns the resident bytes of the process. */
uint64_t resident_bytes(void);
void add_memory_row(struct bench *bench, uint64_t objects, uint64_t bytes, const char *name, ...)
	__attribute__((format(printf, 4, 5)));

#endif
