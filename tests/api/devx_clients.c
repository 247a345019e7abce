/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs through devx_clients.def: all groups of capabilities and all commands that clients issue are answered, or refused in the
 * way that these clients treat as "not supported".
 */
#include "support/devx.h"

enum call { GENERAL, CREATE, MODIFY, QUERY };
enum kind { NONE, CQ, QP, DCT, RMP, MKEY, DEK, KINDS };
enum { STATUSES = 256, ANSWERED = 256, ZEROS, UNSUPPORTED, INVALID };

/* Answer: a status of the device. */
#define BY_STATUS(status) (status)

struct probe {
	const char *name, *clients;
	uint16_t opcode, op_mod, answer;
	enum call call;
	enum kind kind;
};

static const struct probe groups[] = {
#define GROUP(number, name, answer, clients) {#name, clients, 0x100, (number) << 1 | 1, answer, GENERAL, NONE},
#include "devx_clients.def"
};

static const struct probe probes[] = {
#define PROBE(opcode, name, call, kind, answer, clients) {#name, clients, opcode, 0, answer, call, kind},
#include "devx_clients.def"
};

/* Returns the errno value that libmlx5 derives from a status: mlx5_cmd_status_to_err() of rdma-core. */
static int error_of_status(uint8_t status)
{
	switch (status) {
	case 0x00:
		return 0;
	case 0x02: /* bad opcode */
	case 0x03: /* bad parameter */
	case 0x05: /* bad resource */
	case 0x09: /* bad resource state */
	case 0x0a: /* bad index */
	case 0x10: /* bad QP state */
	case 0x30: /* bad packet */
	case 0x40: /* bad size */
		return EINVAL;
	case 0x06: /* busy */
		return EBUSY;
	case 0x08: /* limit */
		return ENOMEM;
	case 0x0f: /* no resources */
		return EAGAIN;
	default:
		return EIO;
	}
}

struct objects {
	struct own own;
	struct mlx5dv_devx_obj *handle[KINDS];
	uint32_t number[KINDS];
};

static void make(struct objects *objects, enum kind kind, struct command *command)
{
	objects->handle[kind] = create(client.context, command, 272);
	assert_non_null(objects->handle[kind]);
	objects->number[kind] = created_number(command);
}

static void make_all(struct objects *objects)
{
	struct own *own = &objects->own;
	struct command command;

	own_open(own, &client, 0);
	objects->handle[CQ] = own->cq;
	objects->number[CQ] = own->cqn;
	objects->handle[QP] = own->qp;
	objects->number[QP] = own->qpn;
	command = command_of(0x90c);
	put32(command.in, 32, 1u << 20);
	put32(command.in, 80, 1u << 28);
	put32(command.in, 88, own->pdn);
	put32(command.in, 100, OWN_QP_RECORD + 64);
	put32(command.in, 112, 5u << 16 | 4);
	put32(command.in, 120, own->umem->umem_id);
	put32(command.in, 124, own->umem->umem_id);
	put32(command.in, 132, OWN_QUEUES + 0x1000);
	make(objects, RMP, &command);
	command = command_of(0x710);
	put32(command.in, 24, own->cqn);
	put32(command.in, 36, objects->number[RMP]);
	put32(command.in, 40, own->pdn);
	put32(command.in, 56, 3u << 24 | 1u << 16);
	put32(command.in, 60, (uint32_t)client.gid_index << 16 | 64);
	make(objects, DCT, &command);
	command = command_of(0x200);
	put32(command.in, 16, 1u << 15 | 2u << 8);
	put32(command.in, 20, 0xffffff00);
	put32(command.in, 28, own->pdn);
	put32(command.in, 68, 4);
	make(objects, MKEY, &command);
	command = command_of(0xa00);
	put32(command.in, 4, 0xc);
	put32(command.in, 24, 3);
	put32(command.in, 28, own->pdn);
	make(objects, DEK, &command);
}

static void destroy_all(struct objects *objects)
{
	static const enum kind order[] = {DEK, MKEY, DCT, RMP};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		assert_int_equal(mlx5dv_devx_obj_destroy(objects->handle[order[i]]), 0);
	own_close(&objects->own);
}

/* Issues the command, with only its header, on the object of @kind. Returns the errno value. */
static int issue(const struct probe *probe, const struct objects *objects, enum kind kind, uint8_t *out, size_t bytes)
{
	struct command command = command_of(probe->opcode);
	struct mlx5dv_devx_obj *made;

	memset(out, 0, bytes);
	put32(command.in, 4, probe->op_mod);
	switch (probe->call) {
	case GENERAL:
		return mlx5dv_devx_general_cmd(client.context, command.in, 16, out, bytes);
	case CREATE:
		/* The kernel requires a count of one PSV. */
		if (probe->opcode == 0x600)
			put32(command.in, 8, 1u << 28);
		made = mlx5dv_devx_obj_create(client.context, command.in, 272, out, 272);
		if (!made)
			return errno;
		assert_int_equal(mlx5dv_devx_obj_destroy(made), 0);
		return 0;
	default:
		put32(command.in, 8, objects->number[kind]);
		if (kind == DEK)
			put32(command.in, 4, 0xc);
		return probe->call == MODIFY ? mlx5dv_devx_obj_modify(objects->handle[kind], command.in, 272, out, 16)
					     : mlx5dv_devx_obj_query(objects->handle[kind], command.in, 16, out, 304);
	}
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i])
			return false;
	return true;
}

/* Returns true if a call with @answer may return @error and write @out. */
static bool is_answer(const struct probe *probe, int error, const uint8_t *out, size_t bytes)
{
	bool made = probe->call == CREATE || probe->call == MODIFY;

	switch (probe->answer) {
	case ANSWERED:
		if (made && error == EREMOTEIO)
			return out[0] != 2;
		return !error && (made || !is_zero(out + 16, bytes - 16));
	case ZEROS:
		return !error && is_zero(out, bytes);
	case UNSUPPORTED:
		return error == EOPNOTSUPP;
	case INVALID:
		return error == EINVAL;
	default:
		/* libmlx5 converts the status to EINVAL, which callers treat as "not supported". */
		return error == EREMOTEIO && out[0] == probe->answer && get32(out, 4) &&
		       error_of_status(out[0]) == EINVAL;
	}
}

static void check(const struct probe *probe, const struct objects *objects, enum kind kind)
{
	uint8_t out[4112];
	int error;

	errno = 0;
	error = issue(probe, objects, kind, out, sizeof(out));
	if (!is_answer(probe, error, out, sizeof(out)))
		fail_msg("%s (%#x, op_mod %#x; clients %s) on kind %d: error %d, status %#x, syndrome %u", probe->name,
			 probe->opcode, probe->op_mod, probe->clients, kind, error, out[0], get32(out, 4));
	if (error)
		assert_int_equal(errno, error);
}

TEST(capability_groups)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		check(&groups[i], NULL, NONE);
}

TEST(commands)
{
	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++)
		if (probes[i].call == GENERAL || probes[i].call == CREATE)
			check(&probes[i], NULL, NONE);
}

/* A MODIFY or QUERY command succeeds on objects of its kind, and the kernel refuses it on all others. */
TEST(commands_on_objects)
{
	struct objects objects = {0};

	make_all(&objects);
	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
		struct probe probe = probes[i];

		if (probe.call != MODIFY && probe.call != QUERY)
			continue;
		for (enum kind kind = CQ; kind < KINDS; kind++) {
			probe.answer = kind == probe.kind ? probes[i].answer : INVALID;
			check(&probe, &objects, kind);
		}
	}
	destroy_all(&objects);
}

/* A vhca_tunnel_id other than 0 names an object of another function, which the kernel refuses. */
TEST(objects_of_another_function)
{
	struct command command = command_of(0x800);

	put32(command.in, 4, 1u << 16);
	errno = 0;
	assert_null(create(client.context, &command, 16));
	assert_int_equal(errno, EINVAL);
}
