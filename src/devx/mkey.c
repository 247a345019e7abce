/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CREATE_MKEY and QUERY_MKEY. A key maps other keys, by entries with byte counts (KLM) or of fixed size (KSM), or a
 * umem (MTT). The entries follow the context. UMRs change these keys like those of verbs.
 */
#include "devx/command.h"

#include <stdlib.h>

#include "core/limits.h"
#include "progress/program_memory.h"
#include "format/key_kinds.h"

enum { AT_ENTRIES = 272, ENTRY_BYTES = 16, PAGE_BYTES = 4096 };

enum access_mode { MODE_MEMORY = 1, MODE_LIST = 2, MODE_FIXED_ENTRIES = 3 };

/* crypto_en; octowords of a block setup */
enum { ENCRYPTION_OFF = 0, ENCRYPTION_ON = 1, BSF_OCTOWORDS = 4, MAX_BSF_OCTOWORDS = 8 };

/* For command_get_rights(). */
#define MKEY_RIGHTS                                                                                                    \
	((const struct devx_right[]){{MKC_LOCAL_READ, RIGHT_LOCAL_READ},                                               \
				     {MKC_LOCAL_WRITE, RIGHT_LOCAL_WRITE},                                             \
				     {MKC_REMOTE_READ, RIGHT_REMOTE_READ},                                             \
				     {MKC_REMOTE_WRITE, RIGHT_REMOTE_WRITE},                                           \
				     {MKC_ATOMIC, RIGHT_ATOMIC},                                                       \
				     {.bit = 0}})

static struct hca_mkey_state mkey_state_given(const struct devx_command *command)
{
	return (struct hca_mkey_state){
		.free = command_get(command, MKC_FREE),
		.rights = (uint8_t)command_get_rights(command, MKEY_RIGHTS),
		.tag = (uint8_t)command_get(command, MKC_TAG),
		.qpn = (uint32_t)command_get(command, MKC_QPN),
		.start = command_get(command, MKC_START),
		.length = command_get(command, MKC_LENGTH),
		.remote_invalidate = command_get(command, MKC_REMOTE_INVALIDATE),
	};
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

/* An address and its target must have the same offset in their pages. */
static int mkey_create_memory(struct devx_command *command, struct hca_pd *pd)
{
	const struct hca_mkey_state state = mkey_state_given(command);
	uint8_t *base;
	int error;

	if (command_get(command, MKC_UMR_ENABLED))
		return command_refuse_field(command, MKC_UMR_ENABLED);
	if (command_get(command, MKC_BSF_ENABLED))
		return command_refuse_field(command, MKC_BSF_ENABLED);
	error = command_find_memory(command, MKC_UMEM_ID, command_get(command, MKC_UMEM_OFFSET), state.length, &base);
	if (error)
		return error;
	if ((state.start ^ (uintptr_t)base) % PAGE_BYTES)
		return command_refuse_field(command, MKC_START);
	error = hca_mkey_create_memory(pd, &state, base, &command->object->mkey);
	if (error == -EFAULT)
		return command_refuse(command, STATUS_BAD_PARAMETER, RULE_DEVX_UMEM_MEMORY,
				      FIGURES((uintptr_t)base, state.length, state.rights));
	return error ? command_refuse_room(command) : 0;
}

/* ---- lists --------------------------------------------------------------------------------------------------------- */

/* UMRs count octowords of entries and block setups in multiples of 4 (mlx5-formats 1.8). */
static uint64_t key_capacity(uint64_t octowords)
{
	return (octowords + 3) & ~UINT64_C(3);
}

static int mkey_read_capacity(struct devx_command *command, struct hca_mkey_layout *layout)
{
	uint64_t octowords = command_get(command, MKC_TRANSLATION_OCTOWORDS), bsf = 0;
	uint64_t encryption = command_get(command, MKC_ENCRYPTION);

	if (octowords > LIMIT_MAX_MKEY_ENTRIES)
		return command_refuse_field(command, MKC_TRANSLATION_OCTOWORDS);
	if (command_get(command, MKC_TRANSLATIONS_GIVEN) > octowords)
		return command_refuse_field(command, MKC_TRANSLATIONS_GIVEN);
	if (command_get(command, MKC_BSF_ENABLED))
		bsf = command_get(command, MKC_BSF_OCTOWORDS);
	if (bsf > MAX_BSF_OCTOWORDS)
		return command_refuse_field(command, MKC_BSF_OCTOWORDS);
	if (encryption > ENCRYPTION_ON)
		return command_refuse_field(command, MKC_ENCRYPTION);
	if (encryption && hca_settings(command->devx->hca)->crypto == CRYPTO_OFF)
		return command_refuse(command, STATUS_BAD_PARAMETER, RULE_CRYPTO_NOT_OFFERED, FIGURES(0));
	/* A block setup describes encryption. */
	if (encryption && bsf < BSF_OCTOWORDS)
		return command_refuse_field(command, MKC_BSF_OCTOWORDS);
	layout->attr = (struct hca_mkey_attr){
		.max_entries = (uint16_t)key_capacity(octowords),
		.bsf_octowords = (uint8_t)key_capacity(bsf),
		.cipher = encryption,
	};
	layout->entry_count = (uint32_t)command_get(command, MKC_TRANSLATIONS_GIVEN);
	return 0;
}

static int mkey_create_layout(struct devx_command *command, struct hca_pd *pd, const struct hca_mkey_layout *layout)
{
	int error = hca_mkey_create_layout(pd, layout, &command->object->mkey, &command->why);

	if (error == -ENOMEM)
		return command_refuse_room(command);
	if (!error)
		return 0;
	command->status = STATUS_BAD_PARAMETER;
	return -EREMOTEIO;
}

/* @fixed_entries: KSM; otherwise KLM. */
static int mkey_create_list(struct devx_command *command, struct hca_pd *pd, bool fixed_entries)
{
	struct hca_mkey_layout layout = {
		.state = mkey_state_given(command),
		.fixed = !command_get(command, MKC_UMR_ENABLED),
		.log_entity = fixed_entries ? (uint8_t)command_get(command, MKC_LOG_ENTITY) : 0,
	};
	uint8_t *entries = NULL;
	size_t bytes;
	int error;

	if (fixed_entries && !layout.log_entity)
		return command_refuse_field(command, MKC_LOG_ENTITY);
	error = mkey_read_capacity(command, &layout);
	if (error)
		return error;
	bytes = (size_t)layout.entry_count * ENTRY_BYTES;
	if (command->in_bytes - AT_ENTRIES < bytes)
		return command_refuse_length(command, AT_ENTRIES + bytes);
	if (bytes) {
		entries = malloc(bytes);
		if (!entries)
			return command_refuse_room(command);
		error = program_read(entries, command->program + AT_ENTRIES, bytes);
		layout.entries = entries;
	}
	if (!error)
		error = mkey_create_layout(command, pd, &layout);
	free(entries);
	return error;
}

static int mkey_create_by_mode(struct devx_command *command, struct hca_pd *pd)
{
	if (command_get(command, MKC_ACCESS_MODE_HIGH))
		return command_refuse_field(command, MKC_ACCESS_MODE_HIGH);
	switch ((enum access_mode)command_get(command, MKC_ACCESS_MODE)) {
	case MODE_MEMORY:
		return mkey_create_memory(command, pd);
	case MODE_LIST:
		return mkey_create_list(command, pd, false);
	case MODE_FIXED_ENTRIES:
		return mkey_create_list(command, pd, true);
	default:
		return command_refuse_field(command, MKC_ACCESS_MODE);
	}
}

int command_create_mkey(struct devx_command *command)
{
	struct devx_object *object = command->object;
	int error = command_check_refused(command, LAYOUT_MKC);
	struct hca_pd *pd;

	if (!error)
		error = command_find_pd(command, MKC_PD, &pd);
	if (!error)
		error = mkey_create_by_mode(command, pd);
	if (error)
		return error;
	/* Only the index: the program chose the tag. */
	object->number = mkey_number(object->mkey) >> 8;
	command_put(command, ANY_NUMBER, object->number);
	return 0;
}

/* Leaves the entries zero in the output; a query that requests them is refused. */
int command_query_mkey(struct devx_command *command)
{
	int error = command_check_refused(command, LAYOUT_KEY_QUERY);
	struct hca_mkey_state state;

	if (error)
		return error;
	created_put(command);
	hca_mkey_query(command->object->mkey, &state);
	command_put(command, MKC_FREE, state.free);
	command_put_rights(command, MKEY_RIGHTS, state.rights);
	command_put(command, MKC_QPN, state.qpn);
	command_put(command, MKC_TAG, state.tag);
	command_put(command, MKC_START, state.start);
	command_put(command, MKC_LENGTH, state.length);
	return 0;
}
