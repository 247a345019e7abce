/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the command interface: a command under way, what its function is given and how it refuses. The lock of the context is
 * held.
 */
#ifndef SOFTHCA_DEVX_COMMAND_H
#define SOFTHCA_DEVX_COMMAND_H

#include <errno.h>
#include <stdbool.h>

#include "devx/context.h"
#include "devx/fields.h"
#include "explain/refusal.h"

enum {
	COMMAND_HEADER = 16,
	COMMAND_INPUT = 464,   /* the longest that is looked at: modifications of a QP with their extension */
	COMMAND_OUTPUT = 4112, /* QUERY_HCA_CAP */
};

/* What an adapter calls the outcome of a command, byte 0 of its output. */
enum devx_status {
	STATUS_OK = 0,
	STATUS_BAD_OPCODE = 0x02,
	STATUS_BAD_PARAMETER = 0x03,
	STATUS_NO_SUCH_RESOURCE = 0x05,
	STATUS_BUSY = 0x06,
	STATUS_BAD_RESOURCE_STATE = 0x09,
	STATUS_NO_RESOURCES = 0x0f,
	STATUS_BAD_QP_STATE = 0x10,
	STATUS_BAD_INPUT_LENGTH = 0x50,
};

enum devx_layout { LAYOUT_CQC, LAYOUT_QPC, LAYOUT_RMPC, LAYOUT_MKC, LAYOUT_KEY_QUERY, LAYOUT_GENERAL };

struct devx_command {
	struct devx *devx;
	uint16_t opcode;
	struct hca_qp *qp;          /* of commands on one */
	struct devx_object *object; /* of CREATE: the one to be; of others NULL for a QP of verbs */
	enum ibv_qp_state state;    /* of a modification: what the QP is in now */
	size_t in_bytes, out_bytes; /* that the program gave; the first of the former are in: */
	const uint8_t *program; /* the input where the program has it: what is behind in[] is read from there, once */
	uint8_t in[COMMAND_INPUT];
	uint8_t out[COMMAND_OUTPUT];
	enum devx_status status; /* of a refusal, with the rule */
	struct refusal why;
};

/* return COMMAND_REFUSE(command, STATUS_…, RULE_…, figures…); */
#define COMMAND_REFUSE(command, status_value, rule, ...)                                                               \
	((command)->status = (status_value), REFUSAL(&(command)->why, EREMOTEIO, rule, __VA_ARGS__))

static inline uint64_t command_get(const struct devx_command *command, struct devx_field field)
{
	return devx_field_get(command->in, field);
}

static inline void command_put(struct devx_command *command, struct devx_field field, uint64_t value)
{
	devx_field_set(command->out, field, value);
}

/** A name of up to eight characters as a figure of an explanation. */
static inline uint64_t devx_name_figure(const char *name)
{
	uint64_t figure = 0;

	memcpy(&figure, name, strnlen(name, sizeof(figure)));
	return figure;
}

/* ---- operands.c ------------------------------------------------------------------------------------------------- */

/** Refuses the value of @field, which the device does not have. */
int command_refuse_field(struct devx_command *command, struct devx_field field);
/** Refuses a field of @layout that asks for what does not exist; 0 if none does. */
int command_check_refused(struct devx_command *command, enum devx_layout layout);
/** Refuses @number, of a @name that does not exist in this context. */
int command_refuse_number(struct devx_command *command, const char *name, uint64_t number);
/** Refuses the command for its length: it needs @bytes of input. */
int command_refuse_length(struct devx_command *command, size_t bytes);
/** Refuses for lack of memory. */
int command_refuse_room(struct devx_command *command);

/* Objects by the number in @field, of verbs and of commands alike. Return 0, or refuse. */
int command_find_pd(struct devx_command *command, struct devx_field field, struct hca_pd **pd);
int command_find_cq(struct devx_command *command, struct devx_field field, struct hca_cq **cq);
int command_find_srq(struct devx_command *command, struct devx_field field, struct hca_srq **srq);
int command_check_uar(struct devx_command *command, struct devx_field field);

/**
 * [@offset, +@size) of the umem that @field names, through @memory; the object that is being made keeps the umem from now on.
 * Returns 0, or refuses.
 */
int command_find_memory(struct devx_command *command, struct devx_field field, uint64_t offset, uint64_t size,
			uint8_t **memory);

/** Bytes of the context that QUERY returns for a @kind, or 0. */
size_t created_bytes(enum devx_kind kind);
/** Keeps the context of the CREATE @command with the @object that it made. */
void created_keep(struct devx_object *object, const struct devx_command *command);
/** Writes the context that the object of a QUERY @command was created with to the output. Objects of verbs have none. */
void created_put(struct devx_command *command);
/** Replaces @field of the kept context by that of the MODIFY @command. */
void created_change(struct devx_command *command, struct devx_field field);

/** The kind of a general object of @type, as commands name it, or DEVX_NONE: there is none. */
enum devx_kind command_general_kind(uint32_t type);

/* The functions of commands.def. */
#define COMMAND(opcode, name, call, kind, in, out, function) int command_##function(struct devx_command *command);
#include "devx/commands.def"

#endif
