/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes commands of the device: a program that opens it and passes arbitrary commands to mlx5dv_devx_*(3), mixed with valid
 * ones that create objects for the invalid ones to name; it also rings queues with arbitrary contents, and unmaps their memory
 * while they are in use.
 *
 * An input is a list of steps. Nothing may crash or be accessed outside of a umem, and at the end everything can be destroyed,
 * newest first: LeakSanitizer reports the rest.
 */
#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/entry_points.h"
#include "devx/context.h"
#include "verbs/object/devx.h"
#include "world.h"
#include "transport/control/qp.h"

enum { OBJECTS = 12, UMEMS = 2, UMEM_BYTES = 16384, COMMAND_WORDS = 116, CHANNELS = 2, EVENT_BYTES = 72 };

enum step {
	CREATE,
	MODIFY,
	QUERY,
	GENERAL,
	DESTROY,
	UMEM,
	WRITE,
	RING,
	UNMAP,
	REMAP,
	SUBSCRIBE,
	TAKE_EVENT,
	CHANNEL,
	STEPS
};

static struct ibv_context *context;
static struct mlx5dv_devx_obj *objects[OBJECTS];
static uint32_t numbers[OBJECTS];
static uint32_t order[OBJECTS], count; /* existing objects, in order of creation */
static struct mlx5dv_devx_umem *umems[UMEMS];
static uint8_t *memory[UMEMS];
static bool mapped[UMEMS];
static struct mlx5dv_devx_uar *uar;
static struct mlx5dv_devx_event_channel *channels[CHANNELS];

/* ---- input ---------------------------------------------------------------------------------------------------- */

static const uint8_t *input, *input_end;

static uint8_t next_byte(void)
{
	return input < input_end ? *input++ : 0;
}

static uint32_t next_word(void)
{
	uint32_t word = 0;

	for (int i = 0; i < 4; i++)
		word = word << 8 | next_byte();
	return word;
}

/* ---- commands -------------------------------------------------------------------------------------------------- */

static const uint16_t opcodes[] = {
#define COMMAND(opcode, name, call, kind, in, out, function) opcode,
#define UNSERVED(opcode, name, call, kind) opcode,
#define STEERING(opcode, name) opcode,
#include "devx/commands.def"
};

static void put(uint8_t *command, size_t byte, uint32_t value)
{
	value = htobe32(value);
	memcpy(command + byte, &value, sizeof(value));
}

/* Returns the number of an existing object, if any. */
static uint32_t some_number(void)
{
	return numbers[next_byte() % OBJECTS];
}

/* Enters valid numbers where commands have them; rings at the beginning of one umem, records after them. */
static void fill(uint8_t *command, uint16_t opcode, uint32_t number)
{
	uint32_t umem = umems[0] ? umems[0]->umem_id : 1;

	switch (opcode) {
	case 0x200: /* an indirect key of one to four entries */
		put(command, 16, 0x7c00 | (uint32_t)(2 + next_byte() % 2) << 8);
		put(command, 20, 0xffffff00 | next_byte());
		put(command, 28, some_number());
		put(command, 44, 4096);
		put(command, 68, 4);
		put(command, 72, 12);
		put(command, 96, next_byte() % 5);
		for (size_t entry = 272; entry < 272 + 4 * 16; entry += 16) {
			put(command, entry, 512);
			put(command, entry + 4, some_number() << 8);
		}
		break;
	case 0x600:
		put(command, 8, 1u << 28 | some_number());
		break;
	case 0xa00:
	case 0xa01:
	case 0xa02:
		put(command, 4, next_byte() % 2 ? 0xc : 0x1f);
		put(command, 24, 0x83 | (next_byte() % 2) << 8);
		put(command, 28, some_number());
		break;
	case 0x400:
		put(command, 20, umem);
		put(command, 28, 3u << 24 | uar->page_id);
		put(command, 36, 1);
		put(command, 76, 4096);
		put(command, 88, umem);
		break;
	case 0x500:
		put(command, 28, some_number());
		put(command, 32, 3u << 19 | 3u << 11);
		put(command, 36, uar->page_id);
		put(command, 148, some_number());
		put(command, 180, some_number());
		put(command, 188, 4096 + 64);
		put(command, 252, umem);
		put(command, 260, 8192);
		put(command, 264, umem);
		break;
	case 0x502:
		put(command, 168, 0xe000);
		break;
	case 0x503:
		put(command, 32, 3u << 29);
		put(command, 44, some_number());
		put(command, 48, 1u << 31);
		break;
	case 0x710:
		put(command, 24, some_number());
		put(command, 36, some_number());
		put(command, 40, some_number());
		put(command, 56, 3u << 24);
		break;
	case 0x90d:
		put(command, 8, 1u << 28 | number);
		put(command, 20, 1);
		put(command, 32, 1u << 20);
		put(command, 84, next_byte() % 10);
		break;
	case 0x90c:
		put(command, 80, next_byte() % 3 << 28);
		put(command, 88, some_number());
		put(command, 100, 4096 + 128);
		put(command, 112, 5u << 16 | 3);
		put(command, 120, umem);
		put(command, 124, umem);
		break;
	default:
		break;
	}
}

/* Buffers of the caller: lengths of any size, each ending exactly at its length. */
struct buffers {
	uint8_t *in, *out;
	size_t in_bytes, out_bytes;
};

static struct buffers next_command(uint32_t number)
{
	uint16_t opcode = opcodes[next_byte() % (sizeof(opcodes) / sizeof(opcodes[0]))];
	uint8_t patches = next_byte() % 8, lengths = next_byte();
	struct buffers buffers = {.in_bytes = 272, .out_bytes = opcode == 0x100 ? 4112 : 272};
	uint8_t command[4 * COMMAND_WORDS] = {0};

	put(command, 0, (uint32_t)opcode << 16);
	put(command, 8, number);
	fill(command, opcode, number);
	if (opcode == 0x200)
		buffers.in_bytes = sizeof(command); /* entries follow the context */
	for (uint8_t i = 0; i < patches; i++)
		put(command, 4u * (next_byte() % COMMAND_WORDS), next_word());
	if (lengths & 1)
		buffers.in_bytes = next_word() % (sizeof(command) + 1);
	if (lengths & 2)
		buffers.out_bytes = next_word() % 5000;
	buffers.in = malloc(buffers.in_bytes);
	buffers.out = malloc(buffers.out_bytes);
	WORLD_CHECK((buffers.in || !buffers.in_bytes) && (buffers.out || !buffers.out_bytes));
	if (buffers.in_bytes)
		memcpy(buffers.in, command, buffers.in_bytes);
	return buffers;
}

static void release(struct buffers *buffers)
{
	free(buffers->in);
	free(buffers->out);
}

static void create(void)
{
	struct buffers command;

	if (count == OBJECTS)
		return;
	command = next_command(next_byte());
	for (uint32_t i = 0; i < OBJECTS; i++) {
		if (objects[i])
			continue;
		objects[i] = softhca_mlx5dv_devx_obj_create(context, command.in, command.in_bytes, command.out,
							    command.out_bytes);
		if (objects[i]) {
			bool psv = command.in[0] == 0x06 && command.in[1] == 0x00;

			memcpy(&numbers[i], command.out + (psv ? 16 : 8), sizeof(numbers[i]));
			numbers[i] = be32toh(numbers[i]) & 0xffffff;
			order[count++] = i;
		}
		break;
	}
	release(&command);
}

static void on_object(enum step step)
{
	uint32_t which = next_byte() % OBJECTS;
	struct buffers command;

	if (!objects[which])
		return;
	command = next_command(numbers[which]);
	if (step == MODIFY)
		softhca_mlx5dv_devx_obj_modify(objects[which], command.in, command.in_bytes, command.out,
					       command.out_bytes);
	else
		softhca_mlx5dv_devx_obj_query(objects[which], command.in, command.in_bytes, command.out,
					      command.out_bytes);
	release(&command);
}

static void general(void)
{
	struct buffers command = next_command(next_word());

	softhca_mlx5dv_devx_general_cmd(context, command.in, command.in_bytes, command.out, command.out_bytes);
	release(&command);
}

/* Destroys the @place-th object, which may be in use. */
static bool destroy(uint32_t place)
{
	uint32_t which = order[place];

	if (softhca_mlx5dv_devx_obj_destroy(objects[which]))
		return false;
	objects[which] = NULL;
	numbers[which] = 0;
	count--;
	memmove(&order[place], &order[place + 1], (count - place) * sizeof(order[0]));
	return true;
}

/* ---- events ---------------------------------------------------------------------------------------------------- */

static void subscribe(void)
{
	struct mlx5dv_devx_event_channel *channel = channels[next_byte() % CHANNELS];
	struct mlx5dv_devx_obj *object = objects[next_byte() % OBJECTS];
	uint8_t types = next_byte() % 18;
	uint16_t events[18];

	for (uint8_t i = 0; i < types; i++)
		events[i] = next_byte() & 1 ? next_byte() % 0x20 : (uint16_t)next_word();
	if (channel)
		softhca_mlx5dv_devx_subscribe_devx_event(channel, object, types * sizeof(events[0]), events,
							 next_word());
}

static void take_event(void)
{
	struct mlx5dv_devx_event_channel *channel = channels[next_byte() % CHANNELS];
	size_t bytes = next_byte() % (EVENT_BYTES + 8);
	void *event = malloc(bytes);

	if (channel && event)
		softhca_mlx5dv_devx_get_event(channel, event, bytes);
	free(event);
}

static void end_channel(uint32_t which)
{
	if (channels[which])
		softhca_mlx5dv_devx_destroy_event_channel(channels[which]);
	channels[which] = NULL;
}

/* With or without the data of events; never waits for one. */
static void channel(void)
{
	uint32_t which = next_byte() % CHANNELS, flags = next_byte() % 4;

	if (channels[which]) {
		end_channel(which);
		return;
	}
	channels[which] = softhca_mlx5dv_devx_create_event_channel(context, flags);
	if (channels[which])
		WORLD_CHECK(!fcntl(channels[which]->fd, F_SETFL, O_NONBLOCK));
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static void umem(void)
{
	uint32_t which = next_byte() % UMEMS;
	uint32_t at = next_word() % UMEM_BYTES;

	if (!umems[which])
		umems[which] =
			softhca_mlx5dv_devx_umem_reg(context, memory[which] + at / 2, UMEM_BYTES - at, next_byte() % 8);
	else if (!softhca_mlx5dv_devx_umem_dereg(umems[which]))
		umems[which] = NULL;
}

static void unmap(uint32_t which)
{
	munmap(memory[which], UMEM_BYTES);
	mapped[which] = false;
}

static void map(uint32_t which)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (memory[which] ? MAP_FIXED : 0);

	memory[which] = mmap(memory[which], UMEM_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
	WORLD_CHECK(memory[which] != MAP_FAILED);
	mapped[which] = true;
}

static void write_word(void)
{
	uint32_t which = next_byte() % UMEMS, word = next_word() % (UMEM_BYTES / 4), value = next_word();

	if (mapped[which])
		put(memory[which], 4 * (size_t)word, value);
}

/* Writes both records of a queue pair, and the register. */
static void ring(void)
{
	if (mapped[0]) {
		put(memory[0], 4096 + 64, next_byte());
		put(memory[0], 4096 + 68, next_byte());
	}
	*(volatile uint64_t *)uar->reg_addr = 1;
	for (uint32_t i = 0; i < OBJECTS; i++) {
		struct hca_qp *qp =
			objects[i] && numbers[i] ? hca_qp_find(to_user_context(context)->devx->own, numbers[i]) : NULL;

		if (qp)
			qp_fetch_requests(qp);
		if (qp)
			hca_qp_send_doorbell(qp);
	}
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

static void take_step(enum step step)
{
	uint32_t which;

	switch (step) {
	case CREATE:
		create();
		break;
	case MODIFY:
	case QUERY:
		on_object(step);
		break;
	case GENERAL:
		general();
		break;
	case DESTROY:
		which = next_byte();
		if (count)
			destroy(which % count);
		break;
	case UMEM:
		umem();
		break;
	case WRITE:
		write_word();
		break;
	case RING:
		ring();
		break;
	case UNMAP:
		which = next_byte() % UMEMS;
		if (mapped[which])
			unmap(which);
		break;
	case REMAP:
		which = next_byte() % UMEMS;
		if (!mapped[which])
			map(which);
		break;
	case SUBSCRIBE:
		subscribe();
		break;
	case TAKE_EVENT:
		take_event();
		break;
	case CHANNEL:
		channel();
		break;
	default:
		break;
	}
}

static void end(void)
{
	for (uint32_t i = 0; i < CHANNELS; i++)
		end_channel(i);
	while (count)
		WORLD_CHECK(destroy(count - 1));
	for (uint32_t i = 0; i < UMEMS; i++) {
		WORLD_CHECK(!umems[i] || !softhca_mlx5dv_devx_umem_dereg(umems[i]));
		umems[i] = NULL;
		if (mapped[i])
			unmap(i);
		map(i);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct ibv_device **list;

	(void)argc;
	(void)argv;
	world_make();
	list = softhca_ibv_get_device_list(NULL);
	WORLD_CHECK(list && list[0]);
	context = softhca_ibv_open_device(list[0]);
	softhca_ibv_free_device_list(list);
	WORLD_CHECK(context);
	uar = softhca_mlx5dv_devx_alloc_uar(context, 0);
	WORLD_CHECK(uar);
	for (uint32_t i = 0; i < UMEMS; i++)
		map(i);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input = data;
	input_end = data + size;
	umems[0] = softhca_mlx5dv_devx_umem_reg(context, memory[0], UMEM_BYTES, IBV_ACCESS_LOCAL_WRITE);
	WORLD_CHECK(umems[0]);
	while (input < input_end)
		take_step(next_byte() % STEPS);
	end();
	return 0;
}
