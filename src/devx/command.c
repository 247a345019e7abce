/* SPDX-License-Identifier: BSD-2-Clause */
/* Executes a command: finds its entry, checks the call that carries it and the object that it names. */
#include "devx/command.h"

#include <stdlib.h>

#include "progress/program_memory.h"
#include "explain/explain.h"
#include "format/qp_types.h"

enum call { CALL_GENERAL, CALL_CREATE, CALL_MODIFY, CALL_QUERY };

struct entry {
	uint16_t opcode;
	uint8_t call, kind;
	uint16_t in_bytes, out_bytes;
	int (*function)(struct devx_command *command); /* NULL: not implemented */
	bool unsupported;                              /* refused with EOPNOTSUPP */
};

static const struct entry entries[] = {
#define COMMAND(opcode, name, call, kind, in, out, function)                                                           \
	{opcode, CALL_##call, DEVX_##kind, in, out, command_##function, false},
#define UNSERVED(opcode, name, call, kind)                                                                             \
	{opcode, CALL_##call, DEVX_##kind, COMMAND_HEADER, COMMAND_HEADER, NULL, false},
#define STEERING(opcode, name) {opcode, CALL_CREATE, DEVX_NONE, COMMAND_HEADER, COMMAND_HEADER, NULL, true},
#include "devx/commands.def"
};

struct request {
	const char *name;
	enum call call;
	struct devx *devx;
	const void *in;
	size_t in_bytes;
	void *out;
	size_t out_bytes;
	/* MODIFY and QUERY: the object */
	enum devx_kind kind;
	uint32_t number;
};

#define REQUEST(symbol, way)                                                                                           \
	{                                                                                                              \
		.name = (symbol), .call = (way), .devx = devx, .in = in, .in_bytes = in_bytes, .out = out,             \
		.out_bytes = out_bytes                                                                                 \
	}

/* ---- execution --------------------------------------------------------------------------------------------------- */

/* Not in the table: the kernel passes all numbers of this range to the device. */
enum { GENERAL_BEGIN = 0xb00, GENERAL_END = 0xd00 };
static const struct entry unknown_general = {
	.call = CALL_GENERAL, .in_bytes = COMMAND_HEADER, .out_bytes = COMMAND_HEADER};

static const struct entry *command_find_entry(enum call call, uint16_t opcode)
{
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (entries[i].opcode == opcode && entries[i].call == call)
			return &entries[i];
	return call == CALL_GENERAL && opcode >= GENERAL_BEGIN && opcode < GENERAL_END ? &unknown_general : NULL;
}

static enum devx_kind command_kind(const struct entry *entry, const struct devx_command *command)
{
	if (entry->kind != DEVX_GENERAL_OBJECT)
		return entry->kind;
	return command_general_kind((uint32_t)command_get(command, GENERAL_TYPE));
}

/* Returns true if the command names another object, or another kind, than the call. */
static bool names_other_object(const struct request *request, const struct devx_command *command,
			       const struct entry *entry, uint64_t *number)
{
	bool general = entry->kind == DEVX_GENERAL_OBJECT;

	*number = command_get(command, general ? GENERAL_ID : ANY_NUMBER);
	if (request->call != CALL_MODIFY && request->call != CALL_QUERY)
		return false;
	return *number != request->number || command_kind(entry, command) != request->kind;
}

/* Refuses a value of @field that the kernel does not pass to the device. */
static int refuse_field_of_call(const struct request *request, const struct devx_command *command,
				struct devx_field field)
{
	return -REFUSE(request->devx->hca, request->name, EINVAL, RULE_DEVX_FIELD, command->opcode, 4u * field.dword,
		       field.high, field.low, command_get(command, field));
}

/* Returns the error of a command that a kernel does not pass to the device, or 0. */
static int command_check_call(const struct request *request, const struct devx_command *command,
			      const struct entry *entry)
{
	uint64_t number;

	if (request->in_bytes < COMMAND_HEADER || request->out_bytes < COMMAND_HEADER)
		return -REFUSE(request->devx->hca, request->name, EINVAL, RULE_DEVX_LENGTH, command->opcode,
			       request->in_bytes, request->out_bytes, COMMAND_HEADER, COMMAND_HEADER);
	if (!entry)
		return -REFUSE(request->devx->hca, request->name, EINVAL, RULE_DEVX_OPCODE, command->opcode);
	if (names_other_object(request, command, entry, &number))
		return -REFUSE(request->devx->hca, request->name, EINVAL, RULE_DEVX_OTHER_OBJECT, command->opcode,
			       number, request->number, devx_name_figure(devx_kind_name(request->kind)));
	if (entry->unsupported)
		return -REFUSE(request->devx->hca, request->name, EOPNOTSUPP, RULE_DEVX_UNSERVED, command->opcode);
	/* Objects belong to the function of the context, so tunnels are not needed; each PSV is a separate object. */
	if (request->call != CALL_GENERAL && command_get(command, ANY_VHCA_TUNNEL))
		return refuse_field_of_call(request, command, ANY_VHCA_TUNNEL);
	if (entry->kind == DEVX_PSV && command_get(command, PSV_COUNT) != 1)
		return refuse_field_of_call(request, command, PSV_COUNT);
	return 0;
}

static int command_dispatch(const struct request *request, struct devx_command *command, const struct entry *entry)
{
	if (!entry->function)
		return command_refuse(command, STATUS_BAD_OPCODE, RULE_DEVX_UNSERVED, FIGURES(command->opcode));
	if (request->in_bytes < entry->in_bytes)
		return command_refuse_length(command, entry->in_bytes);
	return entry->function(command);
}

/* Returns true if the command only probes for a feature: its refusal is the answer. */
static bool is_question(const struct request *request, const struct devx_command *command)
{
	return request->call == CALL_GENERAL &&
	       (command->why.rule == RULE_DEVX_UNSERVED || command->why.rule == RULE_DEVX_CAP_GROUP);
}

/* Also writes status and syndrome to the output. */
static void command_explain_refusal(const struct request *request, struct devx_command *command)
{
	const struct explain_subject subject = {
		.call = request->name, .error = EREMOTEIO, .expected = is_question(request, command)};

	explain_make(request->devx->hca, &subject, command->why.rule, command->why.args, EXPLAIN_ARGS);
	memset(command->out, 0, COMMAND_HEADER);
	command_put(command, ANY_STATUS, command->status);
	command_put(command, ANY_SYNDROME, command->why.rule);
}

static size_t bytes_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static int command_read(const struct request *request, struct devx_command *command)
{
	memset(command, 0, sizeof(*command));
	command->devx = request->devx;
	command->program = request->in;
	command->in_bytes = request->in_bytes;
	command->out_bytes = request->out_bytes;
	/* As in a kernel, EFAULT if the input cannot be read. */
	if (program_read(command->in, request->in, bytes_min(request->in_bytes, sizeof(command->in))))
		return -EFAULT;
	command->opcode = (uint16_t)command_get(command, ANY_OPCODE);
	return 0;
}

/* @object: created or used by the command, or NULL. */
static int command_execute(const struct request *request, struct devx_command *command, struct devx_object *object)
{
	const struct entry *entry = command_find_entry(request->call, command->opcode);
	size_t size;
	int error = command_check_call(request, command, entry);

	if (error)
		return error;
	command->object = object;
	error = command_dispatch(request, command, entry);
	if (error == -EFAULT)
		return error;
	if (error) {
		command_explain_refusal(request, command);
	} else if (object && request->call == CALL_CREATE) {
		object->kind = command_kind(entry, command);
		created_keep(object, command);
	}
	size = bytes_min(request->out_bytes, error ? COMMAND_HEADER : entry->out_bytes);
	return program_write(request->out, command->out, size) ? -EFAULT : error;
}

int devx_general(struct devx *devx, const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	const struct request request = REQUEST("mlx5dv_devx_general_cmd", CALL_GENERAL);
	struct devx_command command;
	int error = command_read(&request, &command);

	if (error)
		return error;
	pthread_mutex_lock(&devx->lock);
	error = command_execute(&request, &command, NULL);
	pthread_mutex_unlock(&devx->lock);
	return error;
}

int devx_create(struct devx *devx, const void *in, size_t in_bytes, void *out, size_t out_bytes,
		struct devx_object **created)
{
	const struct request request = REQUEST("mlx5dv_devx_obj_create", CALL_CREATE);
	struct devx_object *object;
	struct devx_command command;
	const struct entry *entry;
	int error = command_read(&request, &command);

	if (error)
		return error;
	entry = command_find_entry(CALL_CREATE, command.opcode);
	object = calloc(1, sizeof(*object) + (entry ? created_bytes(entry->kind) : 0));
	if (!object)
		return -ENOMEM;
	pthread_mutex_lock(&devx->lock);
	error = command_execute(&request, &command, object);
	/* No key may remain outside its DEK. */
	explicit_bzero(command.in, sizeof(command.in));
	if (error) {
		devx_object_destroy(devx, object);
	} else {
		devx_object_enter(devx, object);
		*created = object;
	}
	pthread_mutex_unlock(&devx->lock);
	return error;
}

static int command_on_object(struct request *request, struct devx_object *object)
{
	struct devx_command command;
	int error;

	request->kind = object->kind;
	request->number = object->number;
	error = command_read(request, &command);
	if (error)
		return error;
	pthread_mutex_lock(&request->devx->lock);
	command.qp = object->kind == DEVX_QP || object->kind == DEVX_DCT ? object->qp : NULL;
	error = command_execute(request, &command, object);
	pthread_mutex_unlock(&request->devx->lock);
	return error;
}

int devx_modify(struct devx *devx, struct devx_object *object, const void *in, size_t in_bytes, void *out,
		size_t out_bytes)
{
	struct request request = REQUEST("mlx5dv_devx_obj_modify", CALL_MODIFY);

	return command_on_object(&request, object);
}

int devx_query(struct devx *devx, const char *call, struct devx_object *object, const void *in, size_t in_bytes,
	       void *out, size_t out_bytes)
{
	struct request request = REQUEST(call, CALL_QUERY);

	return command_on_object(&request, object);
}

static int command_on_qp(struct request *request, struct hca_qp *qp, enum ibv_qp_state *state)
{
	struct devx_command command;
	int error;

	request->kind = (int)hca_qp_type(qp) == QP_TYPE_DCT ? DEVX_DCT : DEVX_QP;
	request->number = hca_qp_number(qp);
	error = command_read(request, &command);
	if (error)
		return error;
	command.qp = qp;
	pthread_mutex_lock(&request->devx->lock);
	error = command_execute(request, &command, NULL);
	pthread_mutex_unlock(&request->devx->lock);
	if (state)
		*state = command.state;
	return error;
}

int devx_modify_qp(struct devx *devx, struct hca_qp *qp, const void *in, size_t in_bytes, void *out, size_t out_bytes,
		   enum ibv_qp_state *state)
{
	struct request request = REQUEST("mlx5dv_devx_qp_modify", CALL_MODIFY);

	return command_on_qp(&request, qp, state);
}

int devx_query_qp(struct devx *devx, struct hca_qp *qp, const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	struct request request = REQUEST("mlx5dv_devx_qp_query", CALL_QUERY);

	return command_on_qp(&request, qp, NULL);
}

int devx_destroy(struct devx *devx, struct devx_object *object)
{
	struct devx_object *before, **link;
	int error;

	pthread_mutex_lock(&devx->lock);
	before = object->next;
	link = object->link;
	error = devx_object_destroy(devx, object);
	if (!error) {
		*link = before;
		if (before)
			before->link = link;
	} else {
		error = -REFUSE(devx->hca, "mlx5dv_devx_obj_destroy", EREMOTEIO, RULE_DEVX_IN_USE,
				devx_name_figure(devx_kind_name(object->kind)), object->number);
	}
	pthread_mutex_unlock(&devx->lock);
	return error;
}
