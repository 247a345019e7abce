/* SPDX-License-Identifier: BSD-2-Clause */
/* General objects: data encryption keys, and logins, which wrapped keys require. */
#include "devx/command.h"

#include "hca/hca.h"

/* Offset and lengths of a key and a credential, which depend on their type. */
enum { AT_KEY = 80, KEYTAG_BYTES = 8, WRAP_BYTES = 8, CREDENTIAL_BYTES = 48 };

/* key_purpose, key_size */
enum { PURPOSE_AES_XTS = 3, KEY_SIZE_128 = 0, KEY_SIZE_256 = 1 };

/* Refuses by command->why, or for lack of memory if @error is -ENOMEM. */
static int refuse_by_rule(struct devx_command *command, int error)
{
	if (error == -ENOMEM)
		return command_refuse_room(command);
	command->status = STATUS_BAD_PARAMETER;
	return -EREMOTEIO;
}

/* ---- data encryption keys --------------------------------------------------------------------------------------- */

static int create_dek(struct devx_command *command)
{
	int offer = (int)hca_settings(command->devx->hca)->crypto;
	struct devx_object *object = command->object;
	struct devx_dek *dek = &object->dek;
	struct hca_dek_attr attr = {
		.key_bytes = command_get(command, DEK_KEY_SIZE) == KEY_SIZE_256 ? 64 : 32,
		.has_keytag = command_get(command, DEK_HAS_KEYTAG),
		.key = command->in + AT_KEY,
		.wrapped = offer == CRYPTO_WRAPPED,
	};
	size_t bytes = AT_KEY + attr.key_bytes + (attr.has_keytag ? KEYTAG_BYTES : 0) + (attr.wrapped ? WRAP_BYTES : 0);
	int error;

	if (offer == CRYPTO_OFF)
		return command_refuse(command, STATUS_BAD_PARAMETER, RULE_CRYPTO_NOT_OFFERED, FIGURES(0));
	if (command_get(command, DEK_KEY_SIZE) > KEY_SIZE_256)
		return command_refuse_field(command, DEK_KEY_SIZE);
	if (command->in_bytes < bytes)
		return command_refuse_length(command, bytes);
	if (command_get(command, DEK_PURPOSE) != PURPOSE_AES_XTS)
		return command_refuse_field(command, DEK_PURPOSE);
	error = command_find_pd(command, DEK_PD, &dek->pd);
	if (error)
		return error;
	error = hca_dek_create(command->devx->verbs, dek->pd, &attr, &object->number, &command->why);
	if (error)
		return refuse_by_rule(command, error);
	reference_get(&dek->pd->references);
	dek->opaque = command_get(command, DEK_OPAQUE);
	dek->wide = attr.key_bytes == 64;
	dek->has_keytag = attr.has_keytag;
	return 0;
}

/* State is 0 (ready), without the key. */
static int query_dek(struct devx_command *command)
{
	const struct devx_dek *dek = &command->object->dek;

	command_put(command, DEK_KEY_SIZE, dek->wide ? KEY_SIZE_256 : KEY_SIZE_128);
	command_put(command, DEK_HAS_KEYTAG, dek->has_keytag);
	command_put(command, DEK_PURPOSE, PURPOSE_AES_XTS);
	command_put(command, DEK_PD, hca_pd_number(dek->pd));
	command_put(command, DEK_OPAQUE, dek->opaque);
	return 0;
}

/* ---- logins ------------------------------------------------------------------------------------------------------ */

/* Includes the context's objects of verbs; a context has one login at a time. */
static int create_login(struct devx_command *command)
{
	struct devx_object *object = command->object;
	struct devx_login *login = &object->login;
	const struct hca_login_attr attr = {
		.credential_id = (uint32_t)command_get(command, LOGIN_CREDENTIAL_ID),
		.import_kek_id = (uint32_t)command_get(command, LOGIN_IMPORT_KEK_ID),
		.credential = command->in + AT_KEY,
		.credential_bytes = CREDENTIAL_BYTES,
	};
	int error;

	if (command->in_bytes < AT_KEY + CREDENTIAL_BYTES)
		return command_refuse_length(command, AT_KEY + CREDENTIAL_BYTES);
	error = hca_login_create(command->devx->verbs, &attr, &login->login, &command->why);
	if (error)
		return refuse_by_rule(command, error);
	login->credential_id = attr.credential_id;
	login->import_kek_id = attr.import_kek_id;
	object->number = ++command->devx->logins;
	return 0;
}

/* State is 0 (valid): credentials and KEKs are never revoked here. */
static int query_login(struct devx_command *command)
{
	command_put(command, LOGIN_CREDENTIAL_ID, command->object->login.credential_id);
	command_put(command, LOGIN_IMPORT_KEK_ID, command->object->login.import_kek_id);
	return 0;
}

/* ---- all types --------------------------------------------------------------------------------------------------- */

static const struct type {
	uint16_t number;
	uint8_t kind;
	int (*create)(struct devx_command *command);
	int (*query)(struct devx_command *command);
} types[] = {
	{0x0c, DEVX_DEK, create_dek, query_dek},
	{0x1f, DEVX_LOGIN, create_login, query_login},
};

static const struct type *find_type(uint64_t number)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].number == number)
			return &types[i];
	return NULL;
}

enum devx_kind command_general_kind(uint32_t number)
{
	const struct type *type = find_type(number);

	return type ? type->kind : DEVX_NONE;
}

int command_create_general_object(struct devx_command *command)
{
	const struct type *type = find_type(command_get(command, GENERAL_TYPE));
	int error = command_check_refused(command, LAYOUT_GENERAL);

	if (!error && !type)
		error = command_refuse_field(command, GENERAL_TYPE);
	if (!error)
		error = type->create(command);
	if (!error)
		command_put(command, GENERAL_ID, command->object->number);
	return error;
}

/* command.c has compared the type with that of the object. */
int command_query_general_object(struct devx_command *command)
{
	return find_type(command_get(command, GENERAL_TYPE))->query(command);
}
