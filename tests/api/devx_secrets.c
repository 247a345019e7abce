/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests objects that keys refer to, made by command: PSVs, data encryption keys and logins; and their capabilities, for each
 * value of SOFTHCA_CRYPTO. Rule numbers are those of docs/reference/explanations.md.
 */
#include "support/crypto_keys.h"
#include "support/devx.h"

#include <pthread.h>

enum { DEK = 0x0c, LOGIN = 0x1f, AT_KEY = 80, DEK_BYTES = 272, LOGIN_BYTES = 272 };

static struct mlx5dv_devx_obj *create_pd(uint32_t *number)
{
	struct command command = command_of(0x800);
	struct mlx5dv_devx_obj *pd = create(client.context, &command, 16);

	assert_non_null(pd);
	*number = created_number(&command);
	return pd;
}

/* ---- PSVs --------------------------------------------------------------------------------------------------------- */

static struct command psv_command(uint32_t pdn)
{
	struct command command = command_of(0x600);

	put32(command.in, 8, 1u << 28 | pdn);
	return command;
}

TEST(psvs)
{
	uint32_t pdn = pd_number(client.pd), first, own_pdn;
	struct command command = psv_command(pdn), right = command;
	struct mlx5dv_devx_obj *one, *other, *pd;

	one = mlx5dv_devx_obj_create(client.context, command.in, 16, command.out, 32);
	assert_non_null(one);
	first = get32(command.out, 16);
	assert_true(first && first <= 0xffffff);
	/* The other three of four PSVs are not created. */
	assert_int_equal(get32(command.out, 20), 0);
	pd = create_pd(&own_pdn);
	command = psv_command(own_pdn);
	other = mlx5dv_devx_obj_create(client.context, command.in, 16, command.out, 32);
	assert_non_null(other);
	assert_int_not_equal(get32(command.out, 16), first);
	/* A PSV keeps its PD in use. */
	expect_error(mlx5dv_devx_obj_destroy(pd), EREMOTEIO);
	expect_error(mlx5dv_devx_obj_destroy(other), 0);
	expect_error(mlx5dv_devx_obj_destroy(pd), 0);
	expect_error(mlx5dv_devx_obj_destroy(one), 0);
	expect_error(mlx5dv_devx_obj_destroy(one), ENOENT);
	refuse_each(client.context, &right, 16,
		    (const struct wrong[]){
			    {8, 1u << 28 | 0xfffff0, 5, 955},
		    },
		    1);
	/* The kernel creates exactly one PSV per command. */
	for (uint32_t count = 0; count <= 2; count += 2) {
		command = right;
		put32(command.in, 8, count << 28 | pdn);
		errno = 0;
		assert_null(mlx5dv_devx_obj_create(client.context, command.in, 16, command.out, 32));
		assert_int_equal(errno, EINVAL);
	}
}

/* ---- general objects -------------------------------------------------------------------------------------------- */

static struct command object_command(uint16_t opcode, uint32_t type, uint32_t number)
{
	struct command command = command_of(opcode);

	put32(command.in, 4, type);
	put32(command.in, 8, number);
	return command;
}

/* Returns a command as DPDK and SPDK write it: a 128-bit key, with a key tag of zeros. */
static struct command dek_command(uint32_t pdn)
{
	struct command command = object_command(0xa00, DEK, 0);

	put32(command.in, 24, 0x83);
	put32(command.in, 28, pdn);
	memcpy(command.in + 64, "tenant 1", 8);
	plain_key(command.in + AT_KEY, 32);
	return command;
}

TEST(deks)
{
	uint32_t pdn, number;
	struct mlx5dv_devx_obj *pd = create_pd(&pdn), *dek;
	struct command command = dek_command(pdn), query;
	uint8_t out[DEK_BYTES];

	dek = create(client.context, &command, DEK_BYTES);
	assert_non_null(dek);
	number = get32(command.out, 8);
	assert_true(number && number <= 0xffffff);
	expect_error(mlx5dv_devx_obj_destroy(pd), EREMOTEIO);
	query = object_command(0xa02, DEK, number);
	memset(out, 0xa5, sizeof(out));
	expect_error(mlx5dv_devx_obj_query(dek, query.in, 16, out, sizeof(out)), 0);
	assert_int_equal(get32(out, 24), 0x83); /* ready; attributes as created */
	assert_int_equal(get32(out, 28), pdn);
	assert_memory_equal(out + 64, "tenant 1", 8);
	for (size_t i = AT_KEY; i < sizeof(out); i++)
		assert_int_equal(out[i], 0);
	/* Numbers of general objects have 32 bits. A wrong type; an unknown number; a modification, which does not exist. */
	query = object_command(0xa02, DEK, number | 1u << 24);
	expect_error(mlx5dv_devx_obj_query(dek, query.in, 16, out, sizeof(out)), EINVAL);
	query = object_command(0xa02, LOGIN, number);
	expect_error(mlx5dv_devx_obj_query(dek, query.in, 16, out, sizeof(out)), EINVAL);
	query = object_command(0xa02, 0, number);
	expect_error(mlx5dv_devx_obj_query(dek, query.in, 16, out, sizeof(out)), EINVAL);
	query = object_command(0x402, DEK, number);
	expect_error(mlx5dv_devx_obj_query(dek, query.in, 16, out, sizeof(out)), EINVAL);
	query = object_command(0xa01, DEK, number);
	errno = 0;
	expect_device_refusal(mlx5dv_devx_obj_modify(dek, query.in, 16, query.out, 16), &query, 2, 952);
	expect_error(mlx5dv_devx_obj_destroy(dek), 0);
	expect_error(mlx5dv_devx_obj_destroy(pd), 0);
}

/* Tests all key sizes, and the exact lengths of the command. */
TEST(sizes_of_deks)
{
	uint32_t pdn = pd_number(client.pd);

	for (uint32_t form = 0; form < 4; form++) {
		bool wide = form & 1, tag = form & 2;
		size_t bytes = AT_KEY + (wide ? 64 : 32) + (tag ? 8 : 0);
		struct command command = dek_command(pdn);
		struct mlx5dv_devx_obj *dek;

		put32(command.in, 24, (uint32_t)wide << 8 | (uint32_t)tag << 7 | 3);
		plain_key(command.in + AT_KEY, 64);
		expect_short(client.context, &command, bytes - 1);
		dek = create(client.context, &command, bytes);
		assert_non_null(dek);
		expect_error(mlx5dv_devx_obj_destroy(dek), 0);
	}
}

TEST(wrong_objects)
{
	struct command command = dek_command(pd_number(client.pd)), short_command = command;

	refuse_each(client.context, &command, DEK_BYTES,
		    (const struct wrong[]){
			    {4, 0x1d, 3, 954}, /* types: a KEK, an unknown one, and one of 32 bits */
			    {4, 0, 3, 954},
			    {4, 0xffff, 3, 954},
			    {12, 1u << 24, 3, 954}, /* several objects at once */
			    {24, 0x283, 3, 954},    /* key_size */
			    {24, 0x81, 3, 954},     /* purposes other than AES-XTS */
			    {24, 0x80, 3, 954},
			    {28, 0xfffff0, 5, 955},
		    },
		    8);
	/* Only the header of the command is readable. */
	expect_short(client.context, &short_command, 16);
	/* This device does not accept logins. */
	command = object_command(0xa00, LOGIN, 0);
	errno = 0;
	assert_null(create(client.context, &command, LOGIN_BYTES));
	expect_device_refusal(errno, &command, 3, 662);
}

/* ---- capabilities, and the other settings ----------------------------------------------------------------------- */

static int query_group(uint32_t group, uint8_t out[4112])
{
	struct command command = command_of(0x100);

	put32(command.in, 4, group << 1 | 1);
	errno = 0;
	return mlx5dv_devx_general_cmd(client.context, command.in, 16, out, 4112);
}

/* Checks bits of the general capability, and the first word of group 0x1a, or its absence. */
static void expect_capabilities(bool encrypts, bool logins, uint32_t first_word)
{
	uint8_t out[4112];

	assert_int_equal(query_group(0, out), 0);
	assert_int_equal(get32(out, 16 + 124) >> 13 & 3, encrypts ? 2 : 0); /* aes_xts, little-endian */
	assert_int_equal(get32(out, 16 + 132), encrypts << 12 | (uint32_t)logins << 31);
	assert_int_equal(get32(out, 16 + 128), 0);
	assert_int_equal(get32(out, 16 + 140) >> 22, encrypts ? 3 : 0); /* aes_xts, crypto */
	if (!encrypts) {
		assert_int_equal(query_group(0x1a, out), EREMOTEIO);
		assert_int_equal(get32(out, 4), 965);
		return;
	}
	assert_int_equal(query_group(0x1a, out), 0);
	assert_int_equal(get32(out, 16), first_word);
	assert_true(get32(out, 20) >> 16 & 0x1f); /* log_max_num_deks */
	assert_int_equal(get32(out, 24), 0);      /* failed self-tests */
}

TEST(plaintext_capabilities)
{
	expect_capabilities(true, false, 0);
}

TEST(without_encryption)
{
	struct command command;

	if (!in_setting("SOFTHCA_CRYPTO", "off", "plaintext", __func__))
		return;
	expect_capabilities(false, false, 0);
	command = dek_command(pd_number(client.pd));
	errno = 0;
	assert_null(create(client.context, &command, DEK_BYTES));
	expect_device_refusal(errno, &command, 3, 651);
}

static struct command login_command(void)
{
	struct command command = object_command(0xa00, LOGIN, 0);

	bytes_of_hex(command.in + AT_KEY, built_in_credential);
	return command;
}

TEST(wrapped_keys)
{
	struct command command, right, query;
	struct mlx5dv_devx_obj *login, *dek;
	uint8_t out[128];

	if (!in_setting("SOFTHCA_CRYPTO", "wrapped", "plaintext", __func__))
		return;
	expect_capabilities(true, true, 1u << 31 | 4);
	/* A DEK requires a login. */
	command = dek_command(pd_number(client.pd));
	put32(command.in, 24, 3);
	bytes_of_hex(command.in + AT_KEY, wrapped_128);
	right = command;
	errno = 0;
	assert_null(create(client.context, &command, DEK_BYTES));
	expect_device_refusal(errno, &command, 3, 657);
	command = login_command();
	refuse_each(client.context, &command, LOGIN_BYTES,
		    (const struct wrong[]){
			    {32, 0xffffff, 3, 663}, /* unknown credential id, unknown KEK id; another credential */
			    {36, 0xffffff, 3, 663},
			    {AT_KEY, 0, 3, 664},
		    },
		    3);
	expect_short(client.context, &command, AT_KEY + 47);
	login = create(client.context, &command, AT_KEY + 48);
	assert_non_null(login);
	query = object_command(0xa02, LOGIN, get32(command.out, 8));
	memset(out, 0xa5, sizeof(out));
	expect_error(mlx5dv_devx_obj_query(login, query.in, 16, out, sizeof(out)), 0);
	assert_int_equal(get32(out, 32), 0); /* valid, with credential 0 and KEK 0 */
	assert_int_equal(get32(out, 36), 0);
	for (size_t i = AT_KEY; i < sizeof(out); i++)
		assert_int_equal(out[i], 0);
	/* A second login fails. */
	command = login_command();
	errno = 0;
	assert_null(create(client.context, &command, LOGIN_BYTES));
	expect_device_refusal(errno, &command, 3, 661);
	expect_short(client.context, &right, AT_KEY + 39);
	dek = create(client.context, &right, AT_KEY + 40);
	assert_non_null(dek);
	/* The key was not wrapped. */
	put32(right.in, AT_KEY, 0);
	errno = 0;
	assert_null(create(client.context, &right, DEK_BYTES));
	expect_device_refusal(errno, &right, 3, 659);
	expect_error(mlx5dv_devx_obj_destroy(dek), 0);
	expect_error(mlx5dv_devx_obj_destroy(login), 0);
	command = login_command();
	login = create(client.context, &command, LOGIN_BYTES);
	assert_non_null(login);
	/* The login ends with its context, which the caller closes. */
}

/* ---- copies of key bytes in memory ------------------------------------------------------------------------------ */

enum { STACK_BYTES = 512 * 1024 };

static struct command of_thread; /* not on the thread's stack */

static void *create_in_thread(void *made)
{
	*(struct mlx5dv_devx_obj **)made = create(client.context, &of_thread, DEK_BYTES);
	return NULL;
}

/* Makes a DEK in a thread and then searches its stack. */
static struct mlx5dv_devx_obj *create_and_look(void)
{
	uint8_t *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mlx5dv_devx_obj *made;
	pthread_attr_t attr;
	pthread_t thread;

	assert_true(stack != MAP_FAILED);
	assert_int_equal(pthread_attr_init(&attr), 0);
	assert_int_equal(pthread_attr_setstack(&attr, stack, STACK_BYTES), 0);
	assert_int_equal(pthread_create(&thread, &attr, create_in_thread, &made), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attr);
	assert_null(memmem(stack, STACK_BYTES, of_thread.in + AT_KEY, 16));
	munmap(stack, STACK_BYTES);
	return made;
}

/* A key's bytes exist only in its DEK, and nowhere if none was created. */
TEST(copies_of_keys)
{
	static const struct {
		size_t byte;
		uint32_t value;
	} wrong[] = {{4, DEK + 1}, {12, 1u << 24}, {24, 0x80}, {24, 0x203}, {28, 0xfffff0}};
	struct mlx5dv_devx_obj *dek;

#ifdef __SANITIZE_ADDRESS__
	/* Instrumented code leaves its own temporaries on the stack. */
	skip();
#endif
	of_thread = dek_command(pd_number(client.pd));
	dek = create_and_look();
	assert_non_null(dek);
	expect_error(mlx5dv_devx_obj_destroy(dek), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		of_thread = dek_command(pd_number(client.pd));
		put32(of_thread.in, wrong[i].byte, wrong[i].value);
		assert_null(create_and_look());
	}
}
