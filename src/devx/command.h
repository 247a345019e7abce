/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal to the command interface: a command in progress. The lock of the context is held. */
#ifndef SOFTHCA_DEVX_COMMAND_H
#define SOFTHCA_DEVX_COMMAND_H

#include <errno.h>
#include <stdbool.h>

#include "devx/context.h"
#include "devx/fields.h"
#include "explain/refusal.h"

enum {
	COMMAND_HEADER = 16,
	/* bytes of input that are read; the longest is a modification of a QP with its extension */
	COMMAND_INPUT = 464,
	COMMAND_OUTPUT = 4112, /* QUERY_HCA_CAP */
};

/* Byte 0 of the output. */
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
	struct hca_qp *qp; /* for commands on a QP or DCT */
	/* CREATE: the object being created; otherwise NULL if the QP belongs to verbs */
	struct devx_object *object;
	enum ibv_qp_state state;    /* state of the QP after a modification */
	size_t in_bytes, out_bytes; /* sizes of the program's buffers; in[] contains the first in_bytes: */
	const uint8_t *program;     /* the program's input; bytes beyond in[] are read once */
	uint8_t in[COMMAND_INPUT];
	uint8_t out[COMMAND_OUTPUT];
	enum devx_status status; /* status and rule (`why`) of a refusal */
	struct refusal why;
};

/** Usage: return command_refuse(command, STATUS_…, RULE_…, FIGURES(…)); */
static inline int command_refuse(struct devx_command *command, enum devx_status status, enum explain_rule rule,
				 const uint64_t *figures, size_t count)
{
	command->status = status;
	return refusal_note(&command->why, EREMOTEIO, rule, figures, count);
}

static inline uint64_t command_get(const struct devx_command *command, struct devx_field field)
{
	return devx_field_get(command->in, field);
}

static inline void command_put(struct devx_command *command, struct devx_field field, uint64_t value)
{
	devx_field_set(command->out, field, value);
}

/** Packs up to eight characters into a figure of an explanation. */
static inline uint64_t devx_name_figure(const char *name)
{
	uint64_t figure = 0;

	memcpy(&figure, name, strnlen(name, sizeof(figure)));
	return figure;
}

/* ---- operands.c ------------------------------------------------------------------------------------------------- */

/** Refuses a value of @field that the device does not support. */
int command_refuse_field(struct devx_command *command, struct devx_field field);
/** Refuses the first REFUSED field of @layout that is not 0; returns 0 if there is none. */
int command_check_refused(struct devx_command *command, enum devx_layout layout);
/** Refuses a @number that no @name has in this context. */
int command_refuse_number(struct devx_command *command, const char *name, uint64_t number);
/** Refuses an input shorter than @bytes. */
int command_refuse_length(struct devx_command *command, size_t bytes);
/** Refuses for lack of memory. */
int command_refuse_room(struct devx_command *command);

/* Return 0, or refuse. */
int command_find_pd(struct devx_command *command, struct devx_field field, struct hca_pd **pd);
int command_find_cq(struct devx_command *command, struct devx_field field, struct hca_cq **cq);
int command_find_srq(struct devx_command *command, struct devx_field field, struct hca_srq **srq);
int command_check_uar(struct devx_command *command, struct devx_field field);

/**
 * Finds the address of [@offset, +@size) of the umem in @field, which the object being created keeps. Returns 0, or
 * refuses.
 */
int command_find_memory(struct devx_command *command, struct devx_field field, uint64_t offset, uint64_t size,
			uint8_t **memory);

/* An access right: its field in a context, and its bit for the device. Bit 0 ends a list. */
struct devx_right {
	struct devx_field field;
	unsigned int bit;
};

/** Returns the bits of @rights set in the input. */
unsigned int command_get_rights(const struct devx_command *command, const struct devx_right *rights);

/** Writes to each field of @rights whether its bit is in @value. */
void command_put_rights(struct devx_command *command, const struct devx_right *rights, unsigned int value);

/** Returns the size of the context that QUERY returns, or 0. */
size_t created_bytes(enum devx_kind kind);
/** Stores the context of the CREATE @command in @object. */
void created_keep(struct devx_object *object, const struct devx_command *command);
/** Writes the stored context to the output of a QUERY. A no-op for objects of verbs. */
void created_put(struct devx_command *command);
/** Copies @field of a MODIFY to the stored context. */
void created_change(struct devx_command *command, struct devx_field field);

/** Returns DEVX_NONE for an unknown @type. */
enum devx_kind command_general_kind(uint32_t type);

#define COMMAND(opcode, name, call, kind, in, out, function) int command_##function(struct devx_command *command);
#include "devx/commands.def"

#endif
