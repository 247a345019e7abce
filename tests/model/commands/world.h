/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model test of commands (mlx5dv_devx_*(3)): the objects that a random program has created in two contexts, kept in
 * the simplest form, and the required result of each command. It describes the device by docs/inside/devx.md and the
 * adapter's layouts, and shares nothing with the sources: bytes and bits of commands are in create.c, steps.c and
 * others.c as a program writes them.
 *
 * A command is first drafted correctly, then made wrong in known places, each with its required status; with several
 * flaws any of them is accepted, as the order of checks is undefined. Objects in use are kept until their users are
 * destroyed. Every page of a umem is compared with its expected content, and mailboxes end where memory does.
 */
#ifndef SOFTHCA_TESTS_MODEL_COMMANDS_WORLD_H
#define SOFTHCA_TESTS_MODEL_COMMANDS_WORLD_H

#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#include "../choose.h"

enum { CONTEXTS = 2, OBJECTS = 40, UMEMS = 3, UARS = 4, UMEM_PAGES = 12, PAGE = 4096, USES = 6, COMMAND = 512 };

/* Offsets of the ring and of the record of a queue in its page of a umem. */
enum { RING_BYTES = 2048, RECORD = 3072 };

enum kind { PD, TD, CQ, QP, DCT, RMP, MKEY, PSV, DEK, KINDS };

/* Numbers of states in commands. */
enum state { RESET = 0, INIT = 1, RTR = 2, RTS = 3, SQER = 4, SQD = 5, ERROR = 6 };
enum service { RC = 0, UC = 1, UD = 2, DCI = 5 };

struct object;

struct umem {
	struct context *context;
	uint8_t *memory, *expected; /* UMEM_PAGES pages; the former lies between two inaccessible pages */
	uint64_t bytes;             /* registered; the last page is incomplete */
	struct mlx5dv_devx_umem *handle;
	uint32_t users;
	struct object *owner[UMEM_PAGES];
};

struct queue_pair {
	enum service service;
	enum state state;
	bool shares; /* uses the receives of an SRQ or RMP */
	uint32_t rights, remote, mtu, q_key, blocks, posted;
	uint32_t send_at; /* in its page */
	bool can_post;    /* its CQ was created by command */
};

struct object {
	enum kind kind;
	struct context *context;
	uint32_t number;
	struct mlx5dv_devx_obj *handle; /* NULL: created by verbs */
	struct ibv_qp *verbs;           /* of such a QP */
	uint32_t users;
	struct object *uses[USES]; /* the objects it uses, each with one more user; NULL where there is none */
	struct umem *umem[2];
	uint32_t page; /* of umem[0] */
	struct queue_pair qp;
	struct {
		uint32_t count, size, written, read;
		bool collapsed, ignores_overrun, modulo;
	} cq;
	struct {
		uint32_t count, posted;
	} rmp;
	struct {
		uint64_t opaque;
		bool wide, has_keytag;
	} dek;
	uint8_t created[COMMAND]; /* the CREATE command */
	uint32_t subscriptions;   /* subscriptions to the limit of an RMP, to the last WQE of a QP */
};

struct context {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct mlx5dv_devx_uar *uars[UARS];
	struct umem umems[UMEMS];
	struct object of_verbs[4]; /* PD, CQ, SRQ, QP */
	struct object *objects[OBJECTS];
	struct mlx5dv_devx_event_channel *channel;
	uint64_t cookies[64]; /* events that must be pending there, oldest first */
	uint32_t waiting;
};

/* Set of accepted results of a command: bit n for status n below 63. */
typedef uint64_t outcomes;
enum { BIT_LENGTH = 62 }; /* status 0x50 */
enum { BY_HOST = 0xff };  /* status of a flaw: the kernel refuses the command with EINVAL */
#define OUTCOME(status) (UINT64_C(1) << (status))
#define OUTCOME_OK OUTCOME(0)

/* A place where a draft can be made wrong. */
struct flaw {
	uint16_t byte;
	uint8_t high, low;
	enum { FLAW_VALUE, FLAW_NUMBER, FLAW_RANGE } how;
	uint64_t first, last;    /* FLAW_VALUE */
	enum kind kind;          /* FLAW_NUMBER */
	const struct umem *umem; /* FLAW_RANGE: the 64-bit offset at `byte` must exceed it, of `last` bytes */
	uint8_t status;
};

struct draft {
	uint8_t in[COMMAND];
	size_t in_bytes,
		out_bytes; /* sizes of the program's buffers: initially those that the command needs and returns */
	size_t says;
	struct flaw flaws[24];
	size_t flaw_count;
	outcomes outcomes;
	bool refused_by_host; /* EINVAL before the device sees it */
	bool unreadable, unwritable;
	struct object made; /* created by the command */
};

struct world {
	struct choose choose;
	struct context contexts[CONTEXTS];
	uint8_t *in_end, *out_end; /* ends of memory: nothing follows */
	uint8_t out[8192];         /* output of the last command */
	const char *what;          /* the step */
};

/* ---- world.c --------------------------------------------------------------------------------------------------------- */

void world_open(struct world *world);
/** Destroys all that is left, separately or with its context; then nothing is left. */
void world_close(struct world *world);
/** Checks the content of all umems, and takes pending events. */
void world_check(struct world *world);

/** Prints the difference, and how to repeat it; does not return. */
#define DIFFERENCE(world, ...) difference((world)->what, __VA_ARGS__)
void difference(const char *what, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

struct object *object_enter(const struct object *made);
/** Removes the object from the users of the objects that it uses. */
void object_forget(struct object *object);
/** Returns an object of @kind in @context, made by verbs or not; or NULL. */
struct object *object_some(struct world *world, struct context *context, enum kind kind);
/** Returns the object with @number, or NULL. */
struct object *object_find(struct context *context, enum kind kind, uint32_t number);
struct umem *umem_some(struct world *world, struct context *context);
/** Takes a free page of a umem of @context for @made; returns false if there is none. */
bool page_take(struct world *world, struct context *context, struct object *made);
/** Writes the word at @at of its page, as the program does. */
void page_put(const struct object *object, size_t at, uint32_t value);

/* ---- issue.c --------------------------------------------------------------------------------------------------------- */

void put(uint8_t *command, size_t byte, int high, int low, uint64_t value);
uint64_t get(const uint8_t *command, size_t byte, int high, int low);

/** Makes a draft of @opcode with @in and @out bytes. */
struct draft draft_of(struct world *world, uint16_t opcode, size_t in, size_t out);
void draft_flaw(struct draft *draft, size_t byte, int high, int low, uint64_t first, uint64_t last);
void draft_number(struct draft *draft, size_t byte, int high, int low, enum kind kind, const struct object *object);
/** Makes the draft use [@offset, @offset + @bytes) of umem 0 of draft->made, with its number at byte @id. */
void draft_memory(struct draft *draft, size_t id, size_t offset_byte, uint64_t offset, uint64_t bytes);
/** Writes the number of an existing UAR; returns false if there is none. */
bool draft_uar(struct world *world, struct context *context, struct draft *draft, size_t byte);

/** May add flaws to the draft. */
void draft_spoil(struct world *world, struct context *context, struct draft *draft);
/** Expects the result of the call to be an accepted one; returns true if the command was executed. */
bool expect_outcome(struct world *world, const struct draft *draft, int error);

/** Returns the buffers of a draft, which end where memory does. */
void *issue_in(struct world *world, const struct draft *draft);
void *issue_out(struct world *world, const struct draft *draft);

/* ---- steps ----------------------------------------------------------------------------------------------------------- */

void step_create(struct world *world);
void step_on_qp(struct world *world);
void step_query(struct world *world);
void step_limit(struct world *world);
void step_post(struct world *world);
void step_destroy(struct world *world);
void step_subscribe(struct world *world);
void step_general(struct world *world);
void step_opcode(struct world *world);
void step_umem(struct world *world);
void step_uar(struct world *world);
void step_nonsense(struct world *world);
void step(struct world *world);

#endif
