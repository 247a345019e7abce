/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 950 to 967: commands, and umem of queues; 975 to 979: events. */
#include "support/rmp.h"
#include "kernel_has.h"
#include "rule_cases.h"

static const char general[] = "mlx5dv_devx_general_cmd", create_call[] = "mlx5dv_devx_obj_create";

static void general_command(struct command *command, size_t in_bytes, size_t out_bytes, int error)
{
	expect_error(mlx5dv_devx_general_cmd(client.context, command->in, in_bytes, command->out, out_bytes), error);
}

RULE_CASE(DEVX_LENGTH)
{
	struct command command = command_of(0x400);

	expect_null(create(client.context, &command, 271), EREMOTEIO);
	expect_refusal(
		DEVX_LENGTH,
		"%s → EREMOTEIO: command 0x400 has 271 bytes of input and room for 16 of output; it needs 272 and 16",
		create_call);
	command = command_of(0x100);
	general_command(&command, 8, 16, EINVAL);
	expect_refusal(DEVX_LENGTH,
		       "%s → EINVAL: command 0x100 has 8 bytes of input and room for 16 of output; it needs 16 and 16",
		       general);
}

RULE_CASE(DEVX_OPCODE)
{
	struct command command = command_of(0x502);

	general_command(&command, 272, 16, EINVAL);
	expect_refusal(DEVX_OPCODE, "%s → EINVAL: this call does not carry command 0x502", general);
}

RULE_CASE(DEVX_UNSERVED)
{
	struct command command = command_of(0x10a);

	general_command(&command, 16, 16, EREMOTEIO);
	expect_refusal(DEVX_UNSERVED, "%s → EREMOTEIO: the device does not have command 0x10a", general);
}

RULE_CASE(DEVX_OTHER_OBJECT)
{
	struct command command = command_of(0x50a);
	struct own own;

	own_open(&own, &client, 0);
	put32(command.in, 8, 1);
	expect_error(mlx5dv_devx_obj_modify(own.qp, command.in, 16, command.out, 16), EINVAL);
	expect_refusal(
		DEVX_OTHER_OBJECT,
		"mlx5dv_devx_obj_modify → EINVAL: command 0x50a names number 0x1, but the given object is a QP with number 0x%x",
		own.qpn);
	own_close(&own);
}

/* CREATE_CQ with one word changed. */
static void wrong_cq(size_t byte, uint32_t value, struct own *own)
{
	struct command command;

	own_open_cq(own, &client);
	command = cq_command(own);
	put32(command.in, byte, value);
	expect_null(create(client.context, &command, 272), EREMOTEIO);
}

RULE_CASE(DEVX_FIELD)
{
	struct own own;

	wrong_cq(16, 1u << 14, &own);
	expect_refusal(
		DEVX_FIELD,
		"%s → EREMOTEIO: command 0x400, bits 14 to 14 of the word at byte 16, is 0x1: the device does not have that",
		create_call);
	own_close(&own);
}

RULE_CASE(DEVX_NUMBER)
{
	struct own own;

	wrong_cq(88, 0x77, &own);
	expect_refusal(DEVX_NUMBER,
		       "%s → EREMOTEIO: command 0x400 names umem 0x77, which does not exist in this context",
		       create_call);
	own_close(&own);
}

RULE_CASE(DEVX_UMEM_RANGE)
{
	struct own own;

	wrong_cq(84, OWN_BYTES - 4095, &own);
	expect_refusal(DEVX_UMEM_RANGE,
		       "%s → EREMOTEIO: command 0x400 needs [0x3001, +0x1000) of umem %u, which has 0x4000 bytes",
		       create_call, own.umem->umem_id);
	own_close(&own);
}

static void devx_in_use(void)
{
	struct own own;

	own_open(&own, &client, 0);
	expect_error(mlx5dv_devx_obj_destroy(own.cq), EREMOTEIO);
	expect_refusal(DEVX_IN_USE, "mlx5dv_devx_obj_destroy → EREMOTEIO: CQ 0x%x is in use by other objects", own.cqn);
	expect_error(mlx5dv_devx_umem_dereg(own.umem), EBUSY);
	expect_refusal(DEVX_UMEM_IN_USE, "mlx5dv_devx_umem_dereg → EBUSY: umem %u is in use by 4 queues",
		       own.umem->umem_id);
	own_close(&own);
}

RULE_CASE(DEVX_RMP_STATE)
{
	struct command command = command_of(0x90d);
	struct shared shared;

	shared_open(&shared, &client, LIST);
	put32(command.in, 8, 3u << 28 | shared.number);
	expect_error(mlx5dv_devx_obj_modify(shared.rmp, command.in, 272, command.out, 16), EREMOTEIO);
	expect_refusal(
		DEVX_RMP_STATE,
		"mlx5dv_devx_obj_modify → EREMOTEIO: RMP 0x%x is declared to be in state 3, but it is in 1, ready, as long as it exists",
		shared.number);
	shared_close(&shared);
}

static const char umem_call[] = "mlx5dv_devx_umem_reg";

RULE_CASE(DEVX_UMEM_ATTR)
{
	expect_null(mlx5dv_devx_umem_reg(client.context, client.memory, 4096, 0x80), EINVAL);
	expect_refusal(
		DEVX_UMEM_ATTR,
		"%s → EINVAL: access is 0x80, page sizes 0xffffffffffffffff, comp_mask 0x0: access may have LOCAL_WRITE, REMOTE_WRITE and REMOTE_READ, and the page sizes must include 4096",
		umem_call);
}

RULE_CASE(DEVX_UMEM_MEMORY)
{
	if (!kernel_has_page_checks())
		skip();
	expect_null(mlx5dv_devx_umem_reg(client.context, (void *)4096, 4096, 1), EFAULT);
	expect_refusal(DEVX_UMEM_MEMORY,
		       "%s → EFAULT: the memory [0x1000, +0x1000) is not mapped, or does not permit access 0x1",
		       umem_call);
}

RULE_CASE(DEVX_UMEM_DMABUF)
{
	struct mlx5dv_devx_umem_in in = {.size = 4096, .comp_mask = MLX5DV_UMEM_MASK_DMABUF, .dmabuf_fd = -1};

	expect_null(mlx5dv_devx_umem_reg_ex(client.context, &in), EBADF);
	expect_refusal(
		DEVX_UMEM_DMABUF,
		"mlx5dv_devx_umem_reg_ex → EBADF: a umem over dma-buf descriptor -1 is requested, but the device reaches only memory of processes");
}

RULE_CASE(DEVX_UAR_TYPE)
{
	expect_null(mlx5dv_devx_alloc_uar(client.context, 7), EOPNOTSUPP);
	expect_refusal(
		DEVX_UAR_TYPE,
		"mlx5dv_devx_alloc_uar → EOPNOTSUPP: the UAR type is 0x7, which is neither MLX5DV_UAR_ALLOC_TYPE_BF nor _NC");
}

RULE_CASE(DEVX_VECTOR)
{
	uint32_t number;

	expect_error(mlx5dv_devx_query_eqn(client.context, 8, &number), EINVAL);
	expect_refusal(DEVX_VECTOR, "mlx5dv_devx_query_eqn → EINVAL: vector 8 does not exist; the device has 8");
}

RULE_CASE(DEVX_CAP_GROUP)
{
	struct command command = command_of(0x100);
	uint8_t out[4112];

	put32(command.in, 4, 0x43);
	expect_error(mlx5dv_devx_general_cmd(client.context, command.in, 16, out, sizeof(out)), EREMOTEIO);
	expect_refusal(DEVX_CAP_GROUP,
		       "%s → EREMOTEIO: QUERY_HCA_CAP asks for group 0x21, which the device does not have", general);
}

static void wait_for_error(const struct own *own)
{
	double deadline = seconds_now() + 20;
	struct command query = command_of(0x50b);
	uint8_t out[272];

	put32(query.in, 8, own->qpn);
	do {
		assert_true(seconds_now() < deadline);
		expect_error(mlx5dv_devx_obj_query(own->qp, query.in, 16, out, sizeof(out)), 0);
	} while (get32(out, 24) >> 28 != 6);
}

RULE_CASE(UMEM_QP_GONE)
{
	struct own one, other;

	own_open(&one, &client, 0);
	own_open(&other, &server, 0);
	own_connect(&one, &other);
	own_unmap(&one, OWN_QUEUES);
	own_ring(&one, 1);
	wait_for_error(&one);
	expect_about_qp(UMEM_QP_GONE, one.qpn,
			": the send ring at 0x%" PRIxPTR ", or the doorbell record at 0x%" PRIxPTR
			", is not mapped any more",
			(uintptr_t)one.memory + OWN_REQUESTS, (uintptr_t)one.memory + OWN_QP_RECORD + 4);
	own_close(&other);
	own_close(&one);
}

/* The device's log names the CQ before its QP. */
RULE_CASE(UMEM_CQ_GONE)
{
	struct softhca_explanation all[8];
	bool found = false;
	struct own one, other;
	size_t count;

	own_open(&one, &client, 0);
	own_open(&other, &server, 0);
	own_connect(&one, &other);
	own_connect(&other, &one);
	mprotect(one.memory, 4096, PROT_READ);
	for (int i = 0; i < 2; i++)
		own_request(&one, MLX5_OPCODE_RDMA_WRITE, side_address(&server, 0), server.mr->rkey,
			    side_address(&client, 0), 8, 0);
	memcpy(server.expected, client.memory, 8);
	wait_for_error(&one);
	count = softhca_explanations(client.context, 0, all, ARRAY_SIZE(all));
	for (size_t i = 0; i < count; i++)
		if (all[i].rule == RULE_UMEM_CQ_GONE) {
			expect_explanation(&all[i], UMEM_CQ_GONE,
					   ": the ring of CQ 0x%x at 0x%" PRIxPTR
					   " is not mapped, or not writable: it cannot take completions",
					   one.cqn, (uintptr_t)one.memory);
			found = true;
		}
	assert_true(found);
	own_close(&other);
	own_close(&one);
}

static const char subscribe_call[] = "mlx5dv_devx_subscribe_devx_event";

RULE_CASE(DEVX_CHANNEL_FLAGS)
{
	expect_null(mlx5dv_devx_create_event_channel(client.context, (enum mlx5dv_devx_create_event_channel_flags)6),
		    EINVAL);
	expect_refusal(
		DEVX_CHANNEL_FLAGS,
		"mlx5dv_devx_create_event_channel → EINVAL: an event channel cannot have flags 0x6; only MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA exists");
}

static void devx_event_list(void)
{
	struct mlx5dv_devx_event_channel *channel = mlx5dv_devx_create_event_channel(client.context, 0);
	uint16_t types[] = {1, 0x10};
	struct own own;

	own_open_cq(&own, &client);
	expect_error(mlx5dv_devx_subscribe_devx_event(channel, own.cq, 3, types, 0), EINVAL);
	expect_refusal(DEVX_EVENT_COUNT,
		       "%s → EINVAL: the list has 3 bytes; it must have one to 16 event numbers of two bytes each",
		       subscribe_call);
	expect_error(mlx5dv_devx_subscribe_devx_event(channel, own.cq, 4, types, 0), EINVAL);
	expect_refusal(DEVX_EVENT_TYPE, "%s → EINVAL: this device does not report event 0x1 for CQ objects",
		       subscribe_call);
	expect_error(mlx5dv_devx_subscribe_devx_event(channel, NULL, 4, types, 0), EINVAL);
	expect_refusal(DEVX_EVENT_TYPE, "%s → EINVAL: this device does not report event 0x1 for no objects",
		       subscribe_call);
	expect_error(mlx5dv_devx_subscribe_devx_event_fd(channel, -1, own.cq, 4), EBADF);
	expect_refusal(DEVX_EVENT_FD, "%s_fd → EBADF: descriptor -1 is not an eventfd", subscribe_call);
	own_close(&own);
	mlx5dv_devx_destroy_event_channel(channel);
}

/* The QP needs an SRQ for the last-WQE event, which does not fit into the buffer. */
RULE_CASE(DEVX_EVENT_ROOM)
{
	struct mlx5dv_devx_event_channel *channel = mlx5dv_devx_create_event_channel(client.context, 0);
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct mlx5dv_srq out = {.comp_mask = MLX5DV_SRQ_MASK_SRQN};
	struct ibv_srq *srq = ibv_create_srq(client.pd, &attr);
	struct mlx5dv_obj object = {.srq = {.in = srq, .out = &out}};
	struct command command;
	uint16_t type = 0x13;
	uint64_t cookie;
	struct own own;

	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_SRQ), 0);
	own_open_cq(&own, &client);
	command = qp_command(&own, 0);
	put32(command.in, 196, 1u << 24 | out.srqn);
	own.qp = create(client.context, &command, 272);
	own.qpn = created_number(&command);
	assert_int_equal(mlx5dv_devx_subscribe_devx_event(channel, own.qp, 2, &type, 0), 0);
	own_to_init(&own);
	own_to_rtr(&own, &server, 0x123);
	command = command_of(0x507);
	assert_int_equal(own_modify(&own, &command, 16), 0);
	errno = 0;
	assert_int_equal(mlx5dv_devx_get_event(channel, (struct mlx5dv_devx_async_event_hdr *)&cookie, sizeof(cookie)),
			 -1);
	assert_int_equal(errno, EINVAL);
	expect_refusal(DEVX_EVENT_ROOM,
		       "mlx5dv_devx_get_event → EINVAL: the next event has 72 bytes, but the buffer has 8");
	own_close(&own);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	mlx5dv_devx_destroy_event_channel(channel);
}

/* Responses of 64 KiB; at most sixteen of them may wait. */
static void devx_responses(void)
{
	struct mlx5dv_devx_cmd_comp *completion = mlx5dv_devx_create_cmd_comp(client.context);
	struct command query = command_of(0x50b);
	struct own own;

	own_open(&own, &client, 0);
	put32(query.in, 8, own.qpn);
	for (int i = 0; i < 16; i++)
		expect_error(mlx5dv_devx_obj_query_async(own.qp, query.in, 16, 64 << 10, 1, completion), 0);
	expect_error(mlx5dv_devx_obj_query_async(own.qp, query.in, 16, 272, 1, completion), EAGAIN);
	expect_refusal(
		DEVX_RESPONSES_FULL,
		"mlx5dv_devx_obj_query_async → EAGAIN: a response of 272 bytes is requested, but others take 1048576 of the 1048576 bytes");
	expect_error(mlx5dv_devx_get_async_cmd_comp(completion, NULL, 8), ENOSPC);
	expect_refusal(
		DEVX_RESPONSE_ROOM,
		"mlx5dv_devx_get_async_cmd_comp → ENOSPC: the next response has 65544 bytes including its wr_id, but the buffer has 8");
	own_close(&own);
	mlx5dv_devx_destroy_cmd_comp(completion);
}

RULE_CASE(DEVX_UMEM_IN_USE)
{
	devx_in_use();
}

RULE_CASE(DEVX_RESPONSE_ROOM)
{
	devx_responses();
}

RULE_CASE(DEVX_EVENT_TYPE)
{
	devx_event_list();
}

RULE_CASE(DEVX_EVENT_FD)
{
	devx_event_list();
}

RULE_CASE(DEVX_IN_USE)
{
	devx_in_use();
}

RULE_CASE(DEVX_RESPONSES_FULL)
{
	devx_responses();
}

RULE_CASE(DEVX_EVENT_COUNT)
{
	devx_event_list();
}
