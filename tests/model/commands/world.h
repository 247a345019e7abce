/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model test of commands (mlx5dv_devx_*(3)): what a random program has made of two contexts, kept in the simplest way, and what
 * each command of it must come to. It knows the device by docs/inside/devx.md and the adapter's layouts, and nothing of the sources: bytes
 * and bits of commands stand in draw_*.c as a program writes them.
 *
 * A command is drafted right, then made wrong in places that are known, each with the status that it must have; of several any will
 * do, as nobody says what a device looks at first. What objects use is held until they go. Every page of a umem is compared with
 * what it must hold, and mailboxes end where memory does.
 */
#ifndef SOFTHCA_TESTS_MODEL_COMMANDS_WORLD_H
#define SOFTHCA_TESTS_MODEL_COMMANDS_WORLD_H

#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#include "../choose.h"

enum { CONTEXTS = 2, OBJECTS = 40, UMEMS = 3, UARS = 4, UMEM_PAGES = 12, PAGE = 4096, USES = 6, COMMAND = 512 };

/* Where in its page of a umem a queue has its ring, and where its record. */
enum { RING_BYTES = 2048, RECORD = 3072 };

enum kind { PD, TD, CQ, QP, DCT, RMP, MKEY, PSV, DEK, KINDS };

/* As commands number them. */
enum state { RESET = 0, INIT = 1, RTR = 2, RTS = 3, SQER = 4, SQD = 5, ERROR = 6 };
enum service { RC = 0, UC = 1, UD = 2, DCI = 5 };

struct object;

struct umem {
	struct context *context;
	uint8_t *memory, *expected; /* UMEM_PAGES pages; a page that nobody may touch before and behind the former */
	uint64_t bytes;             /* registered; the last page is not all of it */
	struct mlx5dv_devx_umem *handle;
	uint32_t users;
	struct object *owner[UMEM_PAGES];
};

struct queue_pair {
	enum service service;
	enum state state;
	bool shares; /* receives of an SRQ or RMP */
	uint32_t rights, remote, mtu, q_key, blocks, posted;
	uint32_t send_at; /* in its page */
	bool can_post;    /* its CQ is one by command */
};

struct object {
	enum kind kind;
	struct context *context;
	uint32_t number;
	struct mlx5dv_devx_obj *handle; /* NULL: of verbs */
	struct ibv_qp *verbs;           /* of such a QP */
	uint32_t users;
	struct object *uses[USES]; /* each of them has one user more; NULL where there is none */
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
	uint32_t subscriptions;   /* to the limit of an RMP, to the last WQE of a QP */
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
	uint64_t cookies[64]; /* events that must wait there, oldest first */
	uint32_t waiting;
};

/* What a command may come to, a set: bit n for status n below 63. */
typedef uint64_t outcomes;
enum { BIT_LENGTH = 62 }; /* status 0x50 */
enum { BY_HOST = 0xff };  /* of a flaw: the kernel refuses the command with EINVAL */
#define OUTCOME(status) (UINT64_C(1) << (status))
#define OUTCOME_OK OUTCOME(0)

/* A place where a draft can be made wrong. */
struct flaw {
	uint16_t byte;
	uint8_t high, low;
	enum { FLAW_VALUE, FLAW_NUMBER, FLAW_RANGE } how;
	uint64_t first, last;    /* FLAW_VALUE */
	enum kind kind;          /* FLAW_NUMBER */
	const struct umem *umem; /* FLAW_RANGE: the 64-bit offset at `byte` is to be beyond it, of `last` bytes */
	uint8_t status;
};

struct draft {
	uint8_t in[COMMAND];
	size_t in_bytes, out_bytes; /* of the program's buffers: at first what the command needs, and says */
	size_t says;
	struct flaw flaws[24];
	size_t flaw_count;
	outcomes outcomes;
	bool refused_by_host; /* EINVAL before the device sees it */
	bool unreadable, unwritable;
	struct object made; /* by it */
};

struct world {
	struct choose choose;
	struct context contexts[CONTEXTS];
	uint8_t *in_end, *out_end; /* of memory behind which there is none */
	uint8_t out[8192];         /* of the last command */
	const char *what;          /* the step */
};

/* ---- world.c --------------------------------------------------------------------------------------------------------- */

void world_open(struct world *world);
/** Ends all that is left by itself, or with its context; then nothing is. */
void world_close(struct world *world);
/** All umems hold what they must, and events that waited are taken. */
void world_check(struct world *world);

/** Prints what differs, and how to repeat it; does not return. */
#define DIFFERENCE(world, ...) difference((world)->what, __VA_ARGS__)
void difference(const char *what, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

struct object *object_enter(const struct object *made);
/** Takes it away from what it used. */
void object_forget(struct object *object);
/** One of @kind that there is in @context, of verbs or not; or NULL. */
struct object *object_some(struct world *world, struct context *context, enum kind kind);
/** Of @number, or NULL. */
struct object *object_find(struct context *context, enum kind kind, uint32_t number);
struct umem *umem_some(struct world *world, struct context *context);
/** A page of a umem of @context that nobody owns, for @made; false if there is none. */
bool page_take(struct world *world, struct context *context, struct object *made);
/** Word at @at of its page, as the program writes it. */
void page_put(const struct object *object, size_t at, uint32_t value);

/* ---- issue.c --------------------------------------------------------------------------------------------------------- */

void put(uint8_t *command, size_t byte, int high, int low, uint64_t value);
uint64_t get(const uint8_t *command, size_t byte, int high, int low);

/** A draft of @opcode with @in and @out bytes. */
struct draft draft_of(struct world *world, uint16_t opcode, size_t in, size_t out);
void draft_flaw(struct draft *draft, size_t byte, int high, int low, uint64_t first, uint64_t last);
void draft_number(struct draft *draft, size_t byte, int high, int low, enum kind kind, const struct object *object);
/** Uses [@offset, +@bytes) of umem 0 of draft->made by its number at byte @id. */
void draft_memory(struct draft *draft, size_t id, size_t offset_byte, uint64_t offset, uint64_t bytes);
/** The number of a UAR that there is; false if there is none. */
bool draft_uar(struct world *world, struct context *context, struct draft *draft, size_t byte);

/** Makes it wrong, perhaps. */
void draft_spoil(struct world *world, struct context *context, struct draft *draft);
/** What its call returned is what was to come: true if the command was done. */
bool expect_outcome(struct world *world, const struct draft *draft, int error);

/** The buffers of a draft: they end where memory does. */
void *issue_in(struct world *world, const struct draft *draft);
void *issue_out(struct world *world, const struct draft *draft);

/* ---- steps ------------------------------------------------------------------------------------------------------------ */

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
