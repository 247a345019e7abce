/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device side of SPDK's accel module (lib/mlx5 and module/accel/mlx5), written by hand. A queue has a CQ with a
 * consumer index that is never stored and a queue pair that DEVX commands connect with itself. The test writes WQEs
 * into the ring, rings one doorbell for all WQEs since the last one, and reads CQEs from memory.
 * docs/inside/devx-spdk.md lists the calls that SPDK makes and their order.
 *
 * Ownership: a CQ and its queues belong to one thread. Keys, PSVs and DEKs belong to the PD; several queues may use them.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_ACCEL_H
#define SOFTHCA_TESTS_API_SUPPORT_ACCEL_H

#include "support/devx.h"

/* Defaults of the module: WRs of a QP, pieces of a WQE, keys and PSVs of a pool. */
enum { ACCEL_WRS = 256, ACCEL_SGES = 16, ACCEL_POOL = 2047 };
enum { ACCEL_MOST_BLOCKS = 4096, ACCEL_MOST_QUEUES = 4 };

enum accel_opcode { ACCEL_WRITE = 0x08, ACCEL_READ = 0x10, ACCEL_SET_PSV = 0x20, ACCEL_UMR = 0x25 };

/* fm_ce_se of a control segment (mlx5-formats 1.3). */
enum accel_flags {
	ACCEL_QUIET = 1 << 2,     /* a CQE only for the first error */
	ACCEL_SIGNALLED = 2 << 2, /* a CQE in any case */
	ACCEL_SMALL_FENCE = 1 << 5,
	ACCEL_STRONG_ORDER = 3 << 5,
};

enum accel_key_kind { ACCEL_KEY_PLAIN, ACCEL_KEY_CRYPTO, ACCEL_KEY_SIGNATURE };

struct accel_key {
	struct mlx5dv_devx_obj *object;
	enum accel_key_kind kind;
	uint32_t number;
	bool odd; /* parity of the signature errors reported so far */
};

/* A PSV or a DEK. */
struct accel_object {
	struct mlx5dv_devx_obj *object;
	uint32_t number;
};

/* Capabilities that the module reads before it creates anything. */
struct accel_caps {
	bool crc32c, crypto, wrapped_only;
	bool single_block_le, multi_block_le, multi_block_be;
	bool relaxed_write, relaxed_read;
};

struct accel_queue;

struct accel_cq {
	struct ibv_cq_ex *verbs;
	struct mlx5dv_cq ring;
	uint32_t consumer;
	struct accel_queue *queues[ACCEL_MOST_QUEUES];
};

/* Kept for each WQE at the index of its first block. */
struct accel_slot {
	uint64_t task;
	uint32_t blocks; /* that become free when the WQE completes; 0 for a quiet one */
};

struct accel_queue {
	struct accel_cq *cq;
	struct ibv_pd *pd;
	struct ibv_qp *verbs;
	struct mlx5dv_qp ring;
	uint32_t producer;  /* in blocks of 64 bytes */
	uint32_t available; /* blocks */
	uint32_t quiet;     /* blocks of quiet WQEs since the last signalled one */
	uint32_t last;      /* first block of the newest WQE */
	bool pending;       /* WQEs were written since the last doorbell */
	struct accel_slot slots[ACCEL_MOST_BLOCKS];
};

/* `task` is 0 for a quiet WQE. `syndrome` is 0 for success. */
struct accel_completion {
	struct accel_queue *queue;
	uint64_t task;
	uint8_t opcode, syndrome;
	uint16_t index;
	struct mlx5_cqe64 cqe;
};

/** Queries capabilities as the module does: general, crypto, general 2. */
struct accel_caps accel_query_caps(struct ibv_context *context);

struct accel_key accel_create_key(struct ibv_pd *pd, enum accel_key_kind kind, const struct accel_caps *caps);
void accel_destroy_key(struct accel_key *key);
struct accel_object accel_create_psv(struct ibv_pd *pd);
/** A DEK with @bytes, 32 or 64, and @tag of 8 bytes or NULL. Queries its state, as the module does. */
struct accel_object accel_create_dek(struct ibv_pd *pd, const uint8_t *key, unsigned int bytes, const uint8_t *tag);
void accel_destroy(struct accel_object *object);

void accel_cq_open(struct accel_cq *cq, struct ibv_context *context, uint32_t entries);
void accel_cq_close(struct accel_cq *cq);

/** Creates a queue pair, makes the module's queries, and connects the queue pair with itself. */
void accel_queue_open(struct accel_queue *queue, struct accel_cq *cq, struct ibv_pd *pd);
void accel_queue_close(struct accel_queue *queue);
/** Checks that all completions arrived and that every block is free again. */
void accel_queue_idle(const struct accel_queue *queue);
enum ibv_qp_state accel_queue_state(const struct accel_queue *queue);

/* Each writes one WQE, without a doorbell. @task: 0 for a quiet WQE. The return value is false if the ring has no room. */
bool accel_put_rdma(struct accel_queue *queue, enum accel_opcode opcode, unsigned int flags, uint64_t task,
		    uint32_t rkey, uint64_t remote, const struct ibv_sge *sges, size_t count);
/** A UMR with the entries @sges; @bsf of 64 bytes or NULL. */
bool accel_put_umr(struct accel_queue *queue, uint64_t task, const struct accel_key *key, const struct ibv_sge *sges,
		   size_t count, const uint8_t *bsf);
bool accel_put_set_psv(struct accel_queue *queue, uint32_t psv, uint32_t value);

struct accel_signature {
	uint32_t psv;
	uint32_t field; /* bytes of the key after the data */
	bool begins, ends, ones, memory;
};
/** A UMR of @key with a transaction signature, CRC-32C, over @sges. */
bool accel_put_signature(struct accel_queue *queue, const struct accel_key *key, const struct ibv_sge *sges,
			 size_t count, const struct accel_signature *signature);

enum accel_direction { ACCEL_ENCRYPT = 2, ACCEL_DECRYPT = 3 }; /* order of encryption in the BSF */

struct accel_cipher {
	enum accel_direction direction;
	uint8_t selector; /* code of the block size: 1 512, 2 520, 3 4096, 4 4160 */
	uint64_t lba;
	uint32_t dek;
	const uint8_t *tag; /* 8 bytes or NULL */
	bool big_endian;
};
bool accel_put_cipher(struct accel_queue *queue, uint64_t task, const struct accel_key *key, const struct ibv_sge *sges,
		      size_t count, const struct accel_cipher *cipher);

/** Rings the doorbell for all WQEs since the last one. */
void accel_ring(struct accel_queue *queue);

/** Takes the next CQE, if there is one. */
bool accel_poll(struct accel_cq *cq, struct accel_completion *completion);
/** Waits for the next CQE. */
struct accel_completion accel_next(struct accel_cq *cq);
/** Rings the doorbell; the next CQE is the successful one of @task. */
#define accel_expect(queue, task) accel_expect_(HERE, queue, task)
void accel_expect_(struct place place, struct accel_queue *queue, uint64_t task);

#endif
