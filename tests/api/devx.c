/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests mlx5dv_devx_*(3): capabilities, umems, UARs, objects made by command (mlx5dv_devx_obj_create()), and traffic through
 * rings that only this program fills. Rule numbers are those of docs/reference/explanations.md.
 */
#include "kernel_has.h"
#include "support/devx.h"

/* Bytes of a message. */
enum { BYTES = 64, GRH_BYTES = 40 };

/* ---- calls without an object ------------------------------------------------------------------------------------- */

static int query_capabilities(uint32_t op_mod, uint8_t out[4112])
{
	struct command command = command_of(0x100);

	put32(command.in, 4, op_mod);
	errno = 0;
	return mlx5dv_devx_general_cmd(client.context, command.in, 16, out, 4112);
}

/* Reads bits @low to @high of the word at @byte of the capability, which begins at byte 16 of the output. */
static uint32_t capability(const uint8_t *out, size_t byte, int high, int low)
{
	return get32(out + 16, byte & ~(size_t)3) >> low & (uint32_t)((UINT64_C(1) << (high - low + 1)) - 1);
}

TEST(capabilities)
{
	uint8_t out[4112];

	/* Current and maximum values. */
	for (uint32_t op_mod = 0; op_mod < 2; op_mod++) {
		memset(out, 0xa5, sizeof(out));
		assert_int_equal(query_capabilities(op_mod, out), 0);
		assert_int_equal(out[0], 0);
		assert_int_equal(get32(out, 4), 0);
		assert_int_equal(capability(out, 54, 9, 8), 1);    /* port_type: Ethernet */
		assert_int_equal(capability(out, 55, 7, 0), 1);    /* num_ports */
		assert_int_equal(capability(out, 56, 28, 24), 30); /* log_max_msg, required by UCX to use DEVX */
		assert_int_equal(capability(out, 63, 3, 0), 1);    /* cqe_version */
		assert_int_equal(capability(out, 67, 5, 5), 1);    /* dct */
		assert_int_equal(capability(out, 67, 1, 1), 1);    /* atomic */
		assert_int_equal(capability(out, 78, 20, 16), 9);  /* log_bf_reg_size */
		assert_int_equal(capability(out, 33, 23, 23), 1);  /* fixed_buffer_size, */
		assert_int_equal(capability(out, 35, 7, 7), 1);    /* umr_extended_translation_offset: UCX's keys, */
		assert_int_equal(capability(out, 65, 23, 22), 0);  /* which have atomics, and which UMRs change */
		assert_int_equal(capability(out, 40, 24, 23), 3);  /* sig_crc64_xp10, sig_crc32c */
		assert_int_equal(capability(out, 66, 8, 8), 1);    /* sho */
		assert_true(1 << capability(out, 37, 21, 16) < 255);
		/* Features that no command provides: compressed CQEs, more than the general group has. */
		assert_int_equal(capability(out, 183, 1, 0), 0);
		assert_int_equal(capability(out, 4, 31, 31), 0);
	}
	assert_int_equal(query_capabilities(7, out), 0);
	assert_int_equal(capability(out, 18, 15, 0), 0xf);
	assert_int_equal(capability(out, 22, 15, 0), 0xc);
	assert_int_equal(query_capabilities(0x3fff, out), EREMOTEIO);
	assert_int_equal(out[0], 3);
	assert_int_equal(get32(out, 4), 965);
}

/*
 * Groups that clients query without checking the general capabilities first, treating an error as fatal, such as general 2 (0x20)
 * for SPDK and flow tables (0x7) for DPDK: all of their fields are 0.
 */
TEST(groups_of_which_nothing_is_offered)
{
	static const uint8_t groups[] = {0x1,  0x5,  0x6,  0x7,  0x8,  0x9,  0xb,  0xc,  0xd,  0x11, 0x13,
					 0x15, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x25, 0x26, 0x28, 0x2a};
	uint8_t out[4112], zero[4112] = {0};

	for (size_t i = 0; i < sizeof(groups); i++)
		for (uint32_t current = 0; current < 2; current++) {
			note("group %#x", groups[i]);
			memset(out, 0xa5, sizeof(out));
			assert_int_equal(query_capabilities((uint32_t)groups[i] << 1 | current, out), 0);
			assert_memory_equal(out, zero, sizeof(out));
		}
}

TEST(general_commands)
{
	struct command command = command_of(0x754);
	uint8_t out[272] = {0};

	expect_error(mlx5dv_devx_general_cmd(client.context, command.in, 16, out, sizeof(out)), 0);
	assert_int_equal(get32(out, 16) & 1, 1); /* roce_en */
	command = command_of(0x842);
	expect_error(mlx5dv_devx_general_cmd(client.context, command.in, 16, command.out, 16), 0);
	/* A known command that is not implemented; one of another call; an unknown one; one that is too short. */
	command = command_of(0x101);
	errno = 0;
	expect_device_refusal(mlx5dv_devx_general_cmd(client.context, command.in, 16, command.out, 16), &command, 2,
			      952);
	command = command_of(0x400);
	expect_error(mlx5dv_devx_general_cmd(client.context, command.in, 272, command.out, 16), EINVAL);
	command = command_of(0xffff);
	expect_error(mlx5dv_devx_general_cmd(client.context, command.in, 16, command.out, 16), EINVAL);
	command = command_of(0x842);
	expect_error(mlx5dv_devx_general_cmd(client.context, command.in, 15, command.out, 16), EINVAL);
	expect_error(mlx5dv_devx_general_cmd(client.context, command.in, 16, command.out, 8), EINVAL);
	/* The output is truncated to the room that the program has. */
	command = command_of(0x100);
	memset(command.out, 0xa5, sizeof(command.out));
	expect_error(mlx5dv_devx_general_cmd(client.context, command.in, 16, command.out, 80), 0);
	assert_int_equal(capability(command.out, 55, 7, 0), 1);
	assert_int_equal(command.out[80], 0xa5);
	if (kernel_has_memory_copies())
		expect_error(mlx5dv_devx_general_cmd(client.context, NULL, 16, command.out, 16), EFAULT);
}

TEST(uars)
{
	struct mlx5dv_devx_uar *bf = mlx5dv_devx_alloc_uar(client.context, 0);
	struct mlx5dv_devx_uar *nc = mlx5dv_devx_alloc_uar(client.context, 1);
	struct mlx5dv_devx_uar *again = mlx5dv_devx_alloc_uar(client.context, 1);

	assert_non_null(bf);
	assert_non_null(nc);
	assert_non_null(again);
	assert_ptr_equal(bf->reg_addr, (char *)bf->base_addr + 0x800);
	assert_int_equal((uintptr_t)bf->base_addr % 4096, 0);
	assert_true(bf->page_id && nc->page_id && bf->page_id != nc->page_id);
	/* The uncached UAR is one of the context, and shared. */
	assert_int_equal(nc->page_id, again->page_id);
	/* Programs tell the two types apart by this. */
	assert_int_equal(nc->mmap_off / 4096 >> 8 & 0xff, 3);
	assert_int_not_equal(bf->mmap_off / 4096 >> 8 & 0xff, 3);
	/* Writes two registers of 256 bytes, and that of the CQ. */
	memset((char *)bf->base_addr + 0x800, 0xff, 512);
	*(volatile uint64_t *)((char *)nc->base_addr + 0x20) = 1;
	mlx5dv_devx_free_uar(nc);
	mlx5dv_devx_free_uar(again);
	mlx5dv_devx_free_uar(bf);
	expect_null(mlx5dv_devx_alloc_uar(client.context, 2), EOPNOTSUPP);
}

TEST(event_queues)
{
	uint32_t first = 0, second = 0;

	expect_error(mlx5dv_devx_query_eqn(client.context, 0, &first), 0);
	expect_error(mlx5dv_devx_query_eqn(client.context, (uint32_t)client.context->num_comp_vectors - 1, &second), 0);
	assert_true(first <= 0xff && second <= 0xff && first != second);
	expect_error(mlx5dv_devx_query_eqn(client.context, (uint32_t)client.context->num_comp_vectors, &first), EINVAL);
}

TEST(umems)
{
	struct mlx5dv_devx_umem_in in = {.addr = client.memory, .size = 4096, .pgsz_bitmap = 4096};
	struct mlx5dv_devx_umem *one, *other;
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(page != MAP_FAILED);
	one = mlx5dv_devx_umem_reg(client.context, client.memory + 3, 100, 0);
	assert_non_null(one);
	other = mlx5dv_devx_umem_reg_ex(client.context, &in);
	assert_non_null(other);
	assert_true(one->umem_id && other->umem_id && one->umem_id != other->umem_id);
	expect_error(mlx5dv_devx_umem_dereg(one), 0);
	expect_error(mlx5dv_devx_umem_dereg(one), ENOENT);
	expect_error(mlx5dv_devx_umem_dereg(other), 0);
	expect_null(mlx5dv_devx_umem_reg(client.context, client.memory, 4096, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
	expect_null(mlx5dv_devx_umem_reg(client.context, client.memory, 0, 0), EINVAL);
	expect_null(mlx5dv_devx_umem_reg(client.context, client.memory, SIZE_MAX, 0), EFAULT);
	if (kernel_has_page_checks()) {
		expect_null(mlx5dv_devx_umem_reg(client.context, NULL, 4096, 0), EFAULT);
		expect_null(mlx5dv_devx_umem_reg(client.context, page, 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	}
	in.pgsz_bitmap = 0;
	expect_null(mlx5dv_devx_umem_reg_ex(client.context, &in), EINVAL);
	in = (struct mlx5dv_devx_umem_in){.size = 4096, .comp_mask = MLX5DV_UMEM_MASK_DMABUF, .dmabuf_fd = -1};
	expect_null(mlx5dv_devx_umem_reg_ex(client.context, &in), EBADF);
	in.dmabuf_fd = 0;
	expect_null(mlx5dv_devx_umem_reg_ex(client.context, &in), EOPNOTSUPP);
	in.comp_mask = 2;
	expect_null(mlx5dv_devx_umem_reg_ex(client.context, &in), EOPNOTSUPP);
	munmap(page, 4096);
}

/* ---- objects ------------------------------------------------------------------------------------------------------ */

TEST(domains)
{
	struct command command = command_of(0x800);
	struct mlx5dv_devx_obj *pd, *td;
	struct own own;

	pd = create(client.context, &command, 16);
	assert_non_null(pd);
	own_open_cq(&own, &client);
	own.pdn = created_number(&command);
	assert_int_not_equal(own.pdn, pd_number(client.pd));
	/* The PD cannot be destroyed while it has a QP. */
	command = qp_command(&own, 0);
	own.qp = create(client.context, &command, 272);
	assert_non_null(own.qp);
	expect_error(mlx5dv_devx_obj_destroy(pd), EREMOTEIO);
	own_close(&own);
	expect_error(mlx5dv_devx_obj_destroy(pd), 0);
	expect_error(mlx5dv_devx_obj_destroy(pd), ENOENT);
	command = command_of(0x816);
	td = create(client.context, &command, 16);
	assert_non_null(td);
	assert_int_not_equal(created_number(&command), 0);
	expect_error(mlx5dv_devx_obj_destroy(td), 0);
}

/* Objects in use cannot be destroyed. */
TEST(in_use)
{
	struct own own;

	own_open(&own, &client, 0);
	expect_error(mlx5dv_devx_umem_dereg(own.umem), EBUSY);
	expect_error(mlx5dv_devx_obj_destroy(own.cq), EREMOTEIO);
	expect_error(mlx5dv_devx_obj_destroy(own.qp), 0);
	own.qp = NULL;
	expect_error(mlx5dv_devx_umem_dereg(own.umem), EBUSY);
	own_close(&own);
}

TEST(wrong_cqs)
{
	struct command command, short_command = command_of(0x400);
	struct own own;

	own_open_cq(&own, &client);
	command = cq_command(&own);
	refuse_each(client.context, &command, 272,
		    (const struct wrong[]){
			    {16, 1u << 14, 3, 954}, /* compressed */
			    {16, 2u << 21, 3, 954}, /* CQEs of neither size */
			    {28, 23u << 24 | own.uar->page_id, 3, 954},
			    {28, 6u << 24 | 0xabcdef, 5, 955},         /* UAR */
			    {36, 0, 5, 955},                           /* EQ */
			    {20, 0, 5, 955},                           /* umem of the record */
			    {88, 77, 5, 955},                          /* and of the ring */
			    {28, 9u << 24 | own.uar->page_id, 3, 956}, /* 32 KiB in 16 */
			    {80, 0xffffffff, 3, 956},
			    {76, OWN_BYTES - 7, 3, 956},
		    },
		    10);
	errno = 0;
	assert_null(create(client.context, &short_command, 271));
	expect_device_refusal(errno, &short_command, 0x50, 950);
	/* A refused command leaves no reference to the umem. */
	own_close(&own);
}

TEST(wrong_qps)
{
	struct command command;
	struct own own;

	own_open_cq(&own, &client);
	command = qp_command(&own, 0);
	refuse_each(client.context, &command, 272,
		    (const struct wrong[]){
			    {24, 3u << 16, 3, 954}, /* XRC */
			    {24, 0xffu << 16, 3, 954},
			    {28, 0xfffff0, 5, 955},  /* PD */
			    {40, 1u << 30, 3, 954},  /* doorbells without records */
			    {36, 0, 5, 955},         /* UAR */
			    {148, 0xfffff0, 5, 955}, /* CQs */
			    {180, 0xfffff0, 5, 955},
			    {196, 1u << 24 | 0xfffff0, 5, 955}, /* SRQ */
			    {196, 7u << 24, 3, 954},
			    {32, 15u << 19 | 7u << 16 | 6u << 11, 3, 954}, /* entries of 2 KiB */
			    {32, 4u << 19 | 15u << 11, 3, 956},            /* 2 MiB in 16 KiB */
			    {256, 0xffffffff, 3, 956},
			    {188, OWN_BYTES - 4, 3, 956},
			    {252, 0, 5, 955},
		    },
		    14);
	own_close(&own);
}

TEST(states)
{
	struct command command = command_of(0x503), query = command_of(0x50b);
	struct own own, other;
	uint8_t out[272];

	own_open(&own, &client, 0);
	own_open(&other, &server, 0);
	/* INIT2RTR of a QP in RESET; the number of another QP; a command that is not a modification, and one of a CQ. */
	errno = 0;
	expect_device_refusal(own_modify(&own, &command, 272), &command, 0x10, 110);
	put32(command.in, 8, other.qpn);
	expect_error(mlx5dv_devx_obj_modify(own.qp, command.in, 272, command.out, 16), EINVAL);
	command = command_of(0x50b);
	expect_error(own_modify(&own, &command, 16), EINVAL);
	command = command_of(0x402);
	put32(command.in, 8, own.qpn);
	expect_error(mlx5dv_devx_obj_query(own.qp, command.in, 16, out, sizeof(out)), EINVAL);
	own_connect(&own, &other);
	put32(query.in, 8, own.qpn);
	expect_error(mlx5dv_devx_obj_query(own.qp, query.in, 16, out, sizeof(out)), 0);
	assert_int_equal(get32(out, 24) >> 28, 3);              /* state: RTS */
	assert_int_equal(get32(out, 24) >> 16 & 0xff, 0);       /* st: RC */
	assert_int_equal(get32(out, 32) >> 29, 3);              /* mtu: 1024 */
	assert_int_equal(get32(out, 44) & 0xffffff, other.qpn); /* remote_qpn */
	assert_memory_equal(out + 64, server.gid.raw, 16);
	assert_int_equal(get32(out, 144), 0x123);
	assert_int_equal(get32(out, 172) & 0xffffff, 0x123);
	assert_int_equal(get32(out, 168) >> 13 & 7, 7); /* rre, rwe, rae */
	/* Access rights can be changed one by one. */
	command = command_of(0x505);
	put32(command.in, 16, 1u << 3);
	assert_int_equal(own_modify(&own, &command, 272), 0);
	expect_error(mlx5dv_devx_obj_query(own.qp, query.in, 16, out, sizeof(out)), 0);
	assert_int_equal(get32(out, 168) >> 13 & 7, 5);
	/* An MTU that does not exist is refused by the rules of ibv_modify_qp(3). */
	command = command_of(0x50a);
	assert_int_equal(own_modify(&own, &command, 16), 0);
	own_to_init(&own);
	command = command_of(0x503);
	put32(command.in, 32, 7u << 29);
	errno = 0;
	assert_int_equal(own_modify(&own, &command, 272), EREMOTEIO);
	assert_int_equal(command.out[0], 3);
	own_close(&other);
	own_close(&own);
}

/* ---- traffic ---------------------------------------------------------------------------------------------------- */

static void expect_cqe(struct own *own, uint8_t opcode, uint16_t counter)
{
	struct mlx5_cqe64 cqe = own_next_cqe(own);

	assert_int_equal(cqe.op_own >> 4, opcode);
	assert_int_equal(be16toh(cqe.wqe_counter), counter);
	assert_int_equal(be32toh(cqe.sop_drop_qpn) & 0xffffff, own->qpn);
	assert_int_equal(be32toh(cqe.srqn_uidx) & 0xffffff, 0xffffff);
}

static void set_expected(const struct side *from, size_t at, struct side *to, size_t there)
{
	memcpy(to->expected + there, from->memory + at, BYTES);
}

/* Sends more messages than each ring has room for. */
TEST(rc_traffic)
{
	struct own one, other;

	own_open(&one, &client, 0);
	own_open(&other, &server, 0);
	own_connect(&one, &other);
	own_connect(&other, &one);
	for (uint32_t i = 0; i < 2 * OWN_CQES + 5; i++) {
		size_t at = i * BYTES, there = 16384 + i * BYTES;

		own_receive(&other, side_address(&server, there), BYTES);
		own_request(&one, MLX5_OPCODE_SEND_IMM, 0, 0, side_address(&client, at), BYTES, 0x01020304 + i);
		expect_cqe(&one, MLX5_CQE_REQ, (uint16_t)(2 * i));
		{
			struct mlx5_cqe64 cqe = own_next_cqe(&other);

			assert_int_equal(cqe.op_own >> 4, MLX5_CQE_RESP_SEND_IMM);
			assert_int_equal(be16toh(cqe.wqe_counter), i);
			assert_int_equal(be32toh(cqe.byte_cnt), BYTES);
			assert_int_equal(be32toh(cqe.imm_inval_pkey), 0x01020304 + i);
		}
		set_expected(&client, at, &server, there);
		own_request(&one, MLX5_OPCODE_RDMA_WRITE, side_address(&server, at), server.mr->rkey,
			    side_address(&client, at), BYTES, 0);
		expect_cqe(&one, MLX5_CQE_REQ, (uint16_t)(2 * i + 1));
		set_expected(&client, at, &server, at);
	}
	side_compare(&server);
	own_close(&other);
	own_close(&one);
}

/* Requests pending when a QP enters ERR are flushed, and after RESET the queues start anew. */
TEST(flush_and_reset)
{
	struct command command = command_of(0x507), query = command_of(0x402);
	struct own one, other;
	uint8_t out[272];

	own_open(&one, &client, 0);
	own_open(&other, &server, 0);
	own_connect(&one, &other);
	own_connect(&other, &one);
	own_receive(&other, side_address(&server, 0), BYTES);
	own_receive(&other, side_address(&server, 0), BYTES);
	assert_int_equal(own_modify(&other, &command, 16), 0);
	expect_cqe(&other, MLX5_CQE_RESP_ERR, 0);
	expect_cqe(&other, MLX5_CQE_RESP_ERR, 1);
	put32(query.in, 8, other.cqn);
	expect_error(mlx5dv_devx_obj_query(other.cq, query.in, 16, out, sizeof(out)), 0);
	assert_int_equal(get32(out, 60), 2); /* producer counter */
	assert_int_equal(get32(out, 56), 2);
	command = command_of(0x50a);
	assert_int_equal(own_modify(&other, &command, 16), 0);
	put32(other.memory + OWN_QP_RECORD, 0, 0);
	put32(other.memory + OWN_QP_RECORD, 4, 0);
	other.receives = 0;
	other.requests = 0;
	own_connect(&other, &one);
	own_receive(&other, side_address(&server, 0), BYTES);
	own_request(&one, MLX5_OPCODE_SEND, 0, 0, side_address(&client, 0), BYTES, 0);
	expect_cqe(&one, MLX5_CQE_REQ, 0);
	expect_cqe(&other, MLX5_CQE_RESP_SEND, 0);
	set_expected(&client, 0, &server, 0);
	own_close(&other);
	own_close(&one);
}

/*
 * Uses CQs as NVSHMEM's GPU code does: only entry 0 is written, with the newest CQE, and no consumer index is stored. There are
 * more requests than the ring has entries.
 */
TEST(collapsed_cq)
{
	struct command command = command_of(0x400);
	struct own one, other;

	own_open_cq(&one, &client);
	expect_error(mlx5dv_devx_obj_destroy(one.cq), 0);
	command = cq_command(&one);
	put32(command.in, 16, 1u << 20 | 1u << 17);
	one.cq = create(client.context, &command, 272);
	assert_non_null(one.cq);
	one.cqn = created_number(&command);
	command = qp_command(&one, 0);
	one.qp = create(client.context, &command, 272);
	assert_non_null(one.qp);
	one.qpn = created_number(&command);
	own_open(&other, &server, 0);
	own_connect(&one, &other);
	own_connect(&other, &one);
	for (uint32_t i = 0; i < 2 * OWN_CQES + 5; i++) {
		double deadline = seconds_now() + 20;
		struct mlx5_cqe64 cqe;

		own_request(&one, MLX5_OPCODE_RDMA_WRITE, side_address(&server, 0), server.mr->rkey,
			    side_address(&client, i), BYTES, 0);
		do {
			assert_true(seconds_now() < deadline);
			memcpy(&cqe, one.memory + OWN_RING, sizeof(cqe));
		} while (__atomic_load_n(one.memory + OWN_RING + 63, __ATOMIC_ACQUIRE) >> 4 != MLX5_CQE_REQ ||
			 be16toh(cqe.wqe_counter) != i);
		set_expected(&client, i, &server, 0);
		side_compare(&server);
	}
	for (size_t i = 64; i < (size_t)OWN_CQES * 64; i++)
		assert_int_equal(one.memory[OWN_RING + i], 0xff);
	own_close(&other);
	own_close(&one);
}

/* Connects a QP to itself by its number alone, without an address. */
TEST(loopback)
{
	struct command command = command_of(0x503);
	struct own own;

	own_open(&own, &client, 0);
	own_to_init(&own);
	put32(command.in, 32, 1u << 29 | 30u << 24);
	put32(command.in, 44, own.qpn);
	put32(command.in, 48, 1u << 31);
	put32(command.in, 84, 1u << 16);
	put32(command.in, 172, 0x123);
	assert_int_equal(own_modify(&own, &command, 272), 0);
	own_to_rts(&own);
	own_request(&own, MLX5_OPCODE_RDMA_WRITE, side_address(&client, 1024), client.mr->rkey,
		    side_address(&client, 0), BYTES, 0);
	expect_cqe(&own, MLX5_CQE_REQ, 0);
	set_expected(&client, 0, &client, 1024);
	own_close(&own);
}

TEST(uc_traffic)
{
	struct own one, other;

	own_open(&one, &client, 1);
	own_open(&other, &server, 1);
	own_connect(&one, &other);
	own_connect(&other, &one);
	own_receive(&other, side_address(&server, 0), BYTES);
	own_request(&one, MLX5_OPCODE_SEND, 0, 0, side_address(&client, 0), BYTES, 0);
	expect_cqe(&one, MLX5_CQE_REQ, 0);
	expect_cqe(&other, MLX5_CQE_RESP_SEND, 0);
	set_expected(&client, 0, &server, 0);
	own_close(&other);
	own_close(&one);
}

static void send_datagram(struct own *own, struct ibv_ah *ah, const struct own *to, uint64_t address)
{
	uint8_t *wqe = own->memory + OWN_REQUESTS + own->requests % OWN_BLOCKS * 64;
	struct mlx5dv_ah out = {0};
	struct mlx5dv_obj object = {.ah = {.in = ah, .out = &out}};

	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_AH), 0);
	put32(wqe, 0, (own->requests & 0xffff) << 8 | MLX5_OPCODE_SEND);
	put32(wqe, 4, own->qpn << 8 | 5);
	put32(wqe, 8, 8);
	put32(wqe, 12, 0);
	memcpy(wqe + 16, out.av, 48);
	put32(wqe, 16, 0x11111111);
	put32(wqe, 24, 1u << 31 | to->qpn);
	put32(wqe, 64, BYTES);
	put32(wqe, 68, own->side->mr->lkey);
	put32(wqe, 72, (uint32_t)(address >> 32));
	put32(wqe, 76, (uint32_t)address);
	own_ring(own, 2);
}

/* Sends requests of two blocks, more than the ring has room for. */
TEST(ud_traffic)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = server.gid, .sgid_index = client.gid_index, .hop_limit = 64},
	};
	struct ibv_ah *ah = ibv_create_ah(client.pd, &attr);
	struct own one, other;

	assert_non_null(ah);
	own_open(&one, &client, 2);
	own_open(&other, &server, 2);
	own_connect(&one, &other);
	own_connect(&other, &one);
	for (uint32_t i = 0; i < OWN_BLOCKS; i++) {
		size_t at = (size_t)i * 256;
		struct mlx5_cqe64 cqe;

		own_receive(&other, side_address(&server, at), GRH_BYTES + BYTES);
		send_datagram(&one, ah, &other, side_address(&client, at));
		expect_cqe(&one, MLX5_CQE_REQ, (uint16_t)(2 * i));
		cqe = own_next_cqe(&other);
		assert_int_equal(cqe.op_own >> 4, MLX5_CQE_RESP_SEND);
		assert_int_equal(be32toh(cqe.byte_cnt), GRH_BYTES + BYTES);
		assert_int_equal(be32toh(cqe.flags_rqpn) & 0xffffff, one.qpn);
		memcpy(server.expected + at, server.memory + at, GRH_BYTES);
		set_expected(&client, at, &server, at + GRH_BYTES);
	}
	side_compare(&server);
	own_close(&other);
	own_close(&one);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* Objects of verbs and of commands share the device: a verbs QP moved by commands sends to a QP made by command. */
TEST(verbs_qp_by_command)
{
	struct ibv_qp_init_attr init = {
		.send_cq = pair.client.cq,
		.recv_cq = pair.client.cq,
		.cap = {.max_send_wr = 4, .max_send_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_sge sge = side_sge(&client, 0, BYTES);
	struct ibv_send_wr wr = send_wr(0, IBV_WR_SEND, &sge), *bad;
	struct ibv_qp *qp = ibv_create_qp(client.pd, &init);
	const uint16_t opcodes[] = {0x502, 0x503, 0x504};
	struct command query = command_of(0x50b);
	struct own other;
	struct ibv_wc wc;
	uint8_t out[272];

	assert_non_null(qp);
	own_open(&other, &server, 0);
	put32(query.in, 8, qp->qp_num);
	put32(query.in, 0, 0x504u << 16);
	errno = 0;
	expect_device_refusal(mlx5dv_devx_qp_modify(qp, query.in, 272, query.out, 16), &query, 0x10, 110);
	query = command_of(0x50b);
	for (size_t i = 0; i < 3; i++) {
		struct command command = command_of(opcodes[i]);

		put32(command.in, 8, qp->qp_num);
		put32(command.in, 84, 1u << 16);
		if (i == 1) {
			put32(command.in, 32, 3u << 29);
			put32(command.in, 44, other.qpn);
			put32(command.in, 56, (uint32_t)client.gid_index << 16 | 64);
			memcpy(command.in + 64, server.gid.raw, 16);
			put32(command.in, 172, 0x123);
		} else if (i == 2) {
			put32(command.in, 56, 18u << 27);
			put32(command.in, 136, 7u << 16 | 7u << 13);
			put32(command.in, 144, 0x123);
		}
		expect_error(mlx5dv_devx_qp_modify(qp, command.in, 272, command.out, 16), 0);
	}
	assert_int_equal(qp->state, IBV_QPS_RTS);
	put32(query.in, 8, qp->qp_num);
	expect_error(mlx5dv_devx_qp_query(qp, query.in, 16, out, sizeof(out)), 0);
	assert_int_equal(get32(out, 24) >> 28, 3);
	own_to_init(&other);
	own_to_rtr(&other, &client, qp->qp_num);
	own_receive(&other, side_address(&server, 0), BYTES);
	expect_error(ibv_post_send(qp, &wr, &bad), 0);
	expect_cqe(&other, MLX5_CQE_RESP_SEND, 0);
	while (!ibv_poll_cq(pair.client.cq, 1, &wc))
		;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	set_expected(&client, 0, &server, 0);
	own_close(&other);
	expect_error(ibv_destroy_qp(qp), 0);
}

/* ---- unmapped memory -------------------------------------------------------------------------------------------- */

/*
 * The ring of requests is unmapped, its record is not: the next doorbell puts the QP into error, without a fault in the process.
 */
TEST(unmapped_ring)
{
	struct command query = command_of(0x50b);
	double deadline = seconds_now() + 20;
	struct own one, other;
	uint8_t out[272];

	own_open(&one, &client, 0);
	own_open(&other, &server, 0);
	own_connect(&one, &other);
	own_unmap(&one, OWN_QUEUES);
	own_ring(&one, 1);
	put32(query.in, 8, one.qpn);
	do {
		assert_true(seconds_now() < deadline);
		expect_error(mlx5dv_devx_obj_query(one.qp, query.in, 16, out, sizeof(out)), 0);
	} while (get32(out, 24) >> 28 != 6);
	own_close(&other);
	own_close(&one);
}

/* Unmaps the memory of a receiver that has a CQ with @word, with or without `oi`. */
static void unmap_receiver(uint32_t word)
{
	struct own one, other;
	struct mlx5_cqe64 cqe;
	struct command command;

	own_open(&one, &client, 0);
	own_open_cq(&other, &server);
	assert_int_equal(mlx5dv_devx_obj_destroy(other.cq), 0);
	command = cq_command(&other);
	put32(command.in, 16, word);
	other.cq = create(server.context, &command, 272);
	assert_non_null(other.cq);
	other.cqn = created_number(&command);
	own_open_qp(&other, 0);
	own_connect(&one, &other);
	own_connect(&other, &one);
	/* Two receives are fetched with the first message, which completes before the memory is unmapped. */
	own_receive(&other, side_address(&server, 0), BYTES);
	own_receive(&other, side_address(&server, 0), BYTES);
	own_receive(&other, side_address(&server, 0), BYTES);
	own_request(&one, MLX5_OPCODE_SEND, 0, 0, side_address(&client, 0), BYTES, 0);
	expect_cqe(&one, MLX5_CQE_REQ, 0);
	expect_cqe(&other, MLX5_CQE_RESP_SEND, 0);
	set_expected(&client, 0, &server, 0);
	own_unmap(&other, 0);
	/* The first SEND that the receiver cannot complete still succeeds; a later one fails. */
	own_request(&one, MLX5_OPCODE_SEND, 0, 0, side_address(&client, 0), BYTES, 0);
	own_request(&one, MLX5_OPCODE_SEND, 0, 0, side_address(&client, 0), BYTES, 0);
	own_request(&one, MLX5_OPCODE_SEND, 0, 0, side_address(&client, 0), BYTES, 0);
	do
		cqe = own_next_cqe(&one);
	while (cqe.op_own >> 4 == MLX5_CQE_REQ);
	assert_int_equal(cqe.op_own >> 4, MLX5_CQE_REQ_ERR);
	own_close(&other);
	own_close(&one);
}

/*
 * Unmaps everything at once, including CQ and records, while a peer sends: the peer gets an error, and everything can be
 * destroyed. Completions must not be lost silently even if overruns are ignored (`oi`).
 */
TEST(unmapped_receiver)
{
	unmap_receiver(0);
	unmap_receiver(1u << 17);
}

/* Closing a context destroys the objects made in it. */
TEST(leftovers)
{
	struct side other = client;
	struct own own;

	other.context = open_device();
	other.pd = ibv_alloc_pd(other.context);
	assert_non_null(other.pd);
	/* A PD of verbs would keep the context open, so the QP is in a PD made by command. */
	own_open_cq(&own, &other);
	{
		struct command command = command_of(0x800);

		assert_non_null(create(other.context, &command, 16));
		own.pdn = created_number(&command);
		command = qp_command(&own, 0);
		assert_non_null(create(other.context, &command, 272));
	}
	expect_error(ibv_dealloc_pd(other.pd), 0);
	expect_error(ibv_close_device(other.context), 0);
	expect_error(mlx5dv_devx_obj_destroy(own.cq), ENOENT);
	expect_error(mlx5dv_devx_umem_dereg(own.umem), ENOENT);
	munmap(own.memory, OWN_BYTES);
}
