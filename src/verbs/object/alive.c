/* SPDX-License-Identifier: BSD-2-Clause */
/* A hash table of the addresses of entries, in parts with one lock each. */
#include "verbs/object/alive.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/lock.h"
#include "explain/explain.h"
#include "process/commands.h"
#include "verbs/object/crypto_login.h"
#include "verbs/object/dek.h"
#include "verbs/object/devx.h"
#include "verbs/object/handles.h"
#include "verbs/object/objects.h"

/* ---- kinds ---------------------------------------------------------------------------------------------------- */

enum { NO_MEMBER = -1 };

#define HANDLE_OFFSET_HANDLE(type) offsetof(struct type, handle)
#define HANDLE_OFFSET_CONTEXT(type) NO_MEMBER
#define HANDLE_OFFSET_NOTHING(type) NO_MEMBER
#define CONTEXT_OFFSET_HANDLE(type) offsetof(struct type, context)
#define CONTEXT_OFFSET_CONTEXT(type) offsetof(struct type, context)
#define CONTEXT_OFFSET_NOTHING(type) NO_MEMBER

static const struct {
	char name[9];
	int error;
	int handle, context; /* offsets in the public structure, or NO_MEMBER */
	ptrdiff_t entry;     /* offset from the public structure to the entry */
} kinds[] = {
#define KIND(NAME, type, name, members, error, structure, member)                                                      \
	{name, error, HANDLE_OFFSET_##members(type), CONTEXT_OFFSET_##members(type),                                   \
	 (ptrdiff_t)offsetof(struct structure, alive) - (ptrdiff_t)offsetof(struct structure, member)},
	OBJECT_KINDS(KIND)
#undef KIND
};

static uint32_t handle_of(enum object_kind kind, const void *object)
{
	uint32_t handle = 0;

	if (kinds[kind].handle != NO_MEMBER)
		memcpy(&handle, (const char *)object + kinds[kind].handle, sizeof(handle));
	return handle;
}

/* Returns the member context of @object, or @otherwise for a kind without that member. */
static struct ibv_context *context_of(enum object_kind kind, const void *object, struct ibv_context *otherwise)
{
	if (kinds[kind].context != NO_MEMBER)
		memcpy(&otherwise, (const char *)object + kinds[kind].context, sizeof(otherwise));
	return otherwise;
}

/* ---- the table ------------------------------------------------------------------------------------------------ */

/*
 * A slot covers 1 KiB of memory, with one bit per multiple of 16 at which an entry begins. Objects are usually
 * allocated and freed one after the other, and slots of neighbouring blocks share a cache line at a pseudo-random
 * position. So lookups cost little more with 10^6 objects than with a few, and those that find nothing read only slots.
 */
struct alive_slot {
	uintptr_t block; /* entry >> BLOCK_BITS; 0: free */
	uint64_t entries;
};

enum { PART_BITS = 4, PARTS = 1 << PART_BITS, BLOCK_BITS = 10, GRANULE_BITS = 4, GROUP_BITS = 2, FEW = 64 };

/* A hash table of slots with linear probing. */
struct alive_part {
	struct queue_lock lock;
	struct alive_slot *slots; /* NULL: use `few` */
	size_t mask;
	size_t used;        /* includes slots without entries; at most three quarters */
	struct alive *rest; /* entries for which memory was missing */
	struct alive_slot few[FEW];
} __attribute__((aligned(64)));

static struct alive_part parts[PARTS];

static uint64_t block_hash(uintptr_t block)
{
	return (block >> GROUP_BITS) * UINT64_C(0x9e3779b97f4a7c15);
}

static struct alive_part *entry_part(uintptr_t entry)
{
	return &parts[block_hash(entry >> BLOCK_BITS) >> (64 - PART_BITS)];
}

static uint64_t entry_bit(uintptr_t entry)
{
	return UINT64_C(1) << (entry >> GRANULE_BITS & ((1 << (BLOCK_BITS - GRANULE_BITS)) - 1));
}

/* Returns the slot of @block, or the free slot where it belongs. */
static struct alive_slot *slot_in(struct alive_slot *slots, size_t mask, uintptr_t block)
{
	size_t index = (block_hash(block) >> 24 << GROUP_BITS | (block & ((1 << GROUP_BITS) - 1))) & mask;

	while (slots[index].block && slots[index].block != block)
		index = (index + 1) & mask;
	return &slots[index];
}

/* As slot_in(), for the block of @entry. As for all functions up to the public ones, the lock is held. */
static struct alive_slot *entry_slot(struct alive_part *part, uintptr_t entry)
{
	uintptr_t block = entry >> BLOCK_BITS;

	return part->slots ? slot_in(part->slots, part->mask, block) : slot_in(part->few, FEW - 1, block);
}

/* Copies the slots with entries to @slots, which are free. Returns their number. */
static size_t slots_move(const struct alive_slot *from, size_t count, struct alive_slot *slots, size_t mask)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++)
		if (from[i].entries) {
			*slot_in(slots, mask, from[i].block) = from[i];
			used++;
		}
	return used;
}

/* Drops slots without entries, and resizes so that half of the slots are free. Returns false without memory. */
static bool part_make_room(struct alive_part *part)
{
	struct alive_slot *old = part->slots ? part->slots : part->few, *slots;
	size_t old_count = part->slots ? part->mask + 1 : FEW, with_entries = 0, count = FEW;

	for (size_t i = 0; i < old_count; i++)
		with_entries += old[i].entries != 0;
	while (count < 2 * with_entries + 2)
		count *= 2;
	slots = calloc(count, sizeof(*slots));
	if (!slots)
		return false;
	part->used = slots_move(old, old_count, slots, count - 1);
	part->slots = slots;
	part->mask = count - 1;
	if (old != part->few)
		free(old);
	return true;
}

/* Records an entry at @address. Returns false without memory. */
static bool part_put(struct alive_part *part, uintptr_t address)
{
	struct alive_slot *slot = entry_slot(part, address);
	size_t count = part->slots ? part->mask + 1 : FEW;

	if (!slot->block && part->used >= count / 4 * 3) {
		if (!part_make_room(part))
			return false;
		slot = entry_slot(part, address);
	}
	part->used += !slot->block;
	slot->block = address >> BLOCK_BITS;
	slot->entries |= entry_bit(address);
	return true;
}

static void make_locks(void)
{
	for (size_t i = 0; i < PARTS; i++)
		queue_lock_init(&parts[i].lock, LOCK_LEVEL_ALIVE, false);
}

void alive_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_locks);
}

void object_enter_(enum object_kind kind, const void *object, struct alive *entry, struct ibv_context *context)
{
	struct alive_part *part = entry_part((uintptr_t)entry);

	*entry = (struct alive){.object = object, .context = context, .handle = handle_of(kind, object), .kind = kind};
	queue_lock(&part->lock);
	if (!part_put(part, (uintptr_t)entry)) {
		entry->next = part->rest;
		part->rest = entry;
	}
	queue_unlock(&part->lock);
}

void object_leave(struct alive *entry)
{
	struct alive_part *part = entry_part((uintptr_t)entry);
	struct alive **link = &part->rest;
	struct alive_slot *slot;

	queue_lock(&part->lock);
	slot = entry_slot(part, (uintptr_t)entry);
	if (slot->entries & entry_bit((uintptr_t)entry)) {
		slot->entries &= ~entry_bit((uintptr_t)entry);
	} else {
		while (*link && *link != entry)
			link = &(*link)->next;
		if (*link)
			*link = entry->next;
	}
	queue_unlock(&part->lock);
}

/*
 * Copies the entry of @object to @found. If the bit of an address is set, it lies within an object, but not necessarily
 * at its entry. Entries are at least 16 bytes apart.
 */
static bool entry_find(enum object_kind kind, const void *object, struct alive *found)
{
	uintptr_t address = (uintptr_t)object + (uintptr_t)kinds[kind].entry;
	struct alive_part *part = entry_part(address);
	const struct alive *entry;

	if (address % _Alignof(struct alive))
		return false;
	queue_lock(&part->lock);
	entry = part->rest;
	if (entry_slot(part, address)->entries & entry_bit(address))
		entry = (const struct alive *)address;
	else
		while (entry && (uintptr_t)entry != address)
			entry = entry->next;
	if (entry && (entry->object != object || entry->kind != kind))
		entry = NULL;
	if (entry)
		*found = *entry;
	queue_unlock(&part->lock);
	return entry;
}

bool object_alive_(enum object_kind kind, const void *object)
{
	struct alive found;

	return entry_find(kind, object, &found);
}

/*
 * Returns true if an entry begins at @address. It points to its object, whose kind gives the address of the entry;
 * other memory of the object does not match.
 */
static bool is_entry(uintptr_t address)
{
	const struct alive *entry = (const struct alive *)address;

	return entry->kind < OBJECT_KIND_COUNT &&
	       (uintptr_t)entry->object + (uintptr_t)kinds[entry->kind].entry == address;
}

/* The bit does not show in which half of the 16 bytes the entry begins. */
static const struct alive *entry_in(const struct alive_slot *slot, int number)
{
	uintptr_t address = slot->block << BLOCK_BITS | (uintptr_t)number << GRANULE_BITS;

	if (!is_entry(address))
		address += _Alignof(struct alive);
	return is_entry(address) ? (const struct alive *)address : NULL;
}

/* The lock of @part is held. */
static void visit_part(const struct alive_part *part, void (*visit)(const struct alive *entry, void *argument),
		       void *argument)
{
	const struct alive_slot *slots = part->slots ? part->slots : part->few;
	size_t count = part->slots ? part->mask + 1 : FEW;

	for (size_t i = 0; i < count; i++)
		for (uint64_t left = slots[i].entries; left; left &= left - 1) {
			const struct alive *entry = entry_in(&slots[i], __builtin_ctzll(left));

			if (entry)
				visit(entry, argument);
		}
	for (const struct alive *entry = part->rest; entry; entry = entry->next)
		visit(entry, argument);
}

static void visit_all(void (*visit)(const struct alive *entry, void *argument), void *argument)
{
	for (size_t i = 0; i < PARTS; i++) {
		queue_lock(&parts[i].lock);
		visit_part(&parts[i], visit, argument);
		queue_unlock(&parts[i].lock);
	}
}

struct count {
	const struct ibv_context *context;
	uint32_t *of_kind;
};

static void count_entry(const struct alive *entry, void *argument)
{
	const struct count *count = argument;

	if (entry->context == count->context)
		count->of_kind[entry->kind]++;
}

void objects_count(const struct ibv_context *context, uint32_t counts[OBJECT_KIND_COUNT])
{
	struct count count = {context, counts};

	memset(counts, 0, OBJECT_KIND_COUNT * sizeof(counts[0]));
	visit_all(count_entry, &count);
}

static const struct ibv_pd *pd_of(const struct alive *entry)
{
	const struct user_pd *owner = NULL;

	switch (entry->kind) {
	case OBJECT_MR:
		return ((const struct ibv_mr *)entry->object)->pd;
	case OBJECT_MW:
		return ((const struct ibv_mw *)entry->object)->pd;
	case OBJECT_AH:
		return ((const struct ibv_ah *)entry->object)->pd;
	case OBJECT_QP:
		return ((const struct ibv_qp *)entry->object)->pd;
	case OBJECT_SRQ:
		return ((const struct ibv_srq *)entry->object)->pd;
	case OBJECT_CQ:
		owner = ((const struct user_cq *)entry->object)->pd;
		break;
	case OBJECT_PD:
		owner = ((const struct user_pd *)entry->object)->parent;
		break;
	case OBJECT_MKEY:
		owner = ((const struct user_mkey *)entry->object)->pd;
		break;
	case OBJECT_DEK:
		owner = ((const struct user_dek *)entry->object)->pd;
		break;
	default:
		break;
	}
	return owner ? &owner->base : NULL;
}

struct pd_count {
	const struct ibv_pd *pd;
	uint32_t *of_kind;
};

static void count_entry_of_pd(const struct alive *entry, void *argument)
{
	const struct pd_count *count = argument;

	if (pd_of(entry) == count->pd)
		count->of_kind[entry->kind]++;
}

void objects_of_pd_count(const struct ibv_pd *pd, uint32_t counts[OBJECT_KIND_COUNT])
{
	struct pd_count count = {pd, counts};

	memset(counts, 0, OBJECT_KIND_COUNT * sizeof(counts[0]));
	visit_all(count_entry_of_pd, &count);
}

struct visitor {
	enum object_kind kind;
	void (*visit)(const void *object);
};

static void visit_entry(const struct alive *entry, void *argument)
{
	const struct visitor *visitor = argument;

	if (entry->kind == visitor->kind)
		visitor->visit(entry->object);
}

void objects_visit(enum object_kind kind, void (*visit)(const void *object))
{
	struct visitor visitor = {kind, visit};

	visit_all(visit_entry, &visitor);
}

/*
 * ---- refusals -----------------------------------------------------------------------------------------------------
 */

/*
 * Returns the device that records the refusal: of @context if it is open, otherwise the first one; NULL without a
 * device.
 */
static struct hca *refusal_device(struct ibv_context *context)
{
	if (context && object_alive(context))
		return hca_of_context(context);
	return hca_count() ? hca_device(0) : NULL;
}

/* Explains the refusal and sets errno. Returns true. */
static bool object_refuse(const char *call, struct ibv_context *context, enum object_kind kind, enum explain_rule rule,
			  const uint64_t *figures, size_t count)
{
	const struct explain_subject subject = {.call = call, .error = kinds[kind].error};
	struct hca *hca = refusal_device(context);

	if (hca)
		explain_make(hca, &subject, rule, figures, count);
	errno = kinds[kind].error;
	return true;
}

uint64_t object_kind_figure(enum object_kind kind)
{
	uint64_t figure;

	memcpy(&figure, kinds[kind].name, sizeof(figure));
	return figure;
}

/* Implements object_unknown_(). Copies the entry to @found. */
static bool object_refuse_unknown(const char *call, const struct ibv_context *context, enum object_kind kind,
				  const void *object, struct alive *found)
{
	uint64_t name = object_kind_figure(kind), address = (uintptr_t)object;
	struct ibv_context *member;
	uint32_t handle;

	if (!entry_find(kind, object, found))
		return object_refuse(call, (struct ibv_context *)context, kind, RULE_OBJECT_NONE,
				     FIGURES(name, address));
	handle = handle_of(kind, object);
	if (handle != found->handle)
		return object_refuse(call, found->context, kind, RULE_OBJECT_HANDLE,
				     FIGURES(name, address, found->handle, handle));
	member = context_of(kind, object, found->context);
	if (member != found->context)
		return object_refuse(call, found->context, kind, RULE_OBJECT_CONTEXT,
				     FIGURES(name, address, (uintptr_t)found->context, (uintptr_t)member));
	return false;
}

bool object_unknown_(const char *call, enum object_kind kind, const void *object)
{
	struct alive found;

	return object_refuse_unknown(call, NULL, kind, object, &found);
}

/*
 * Returns true if both contexts belong to one file of the kernel, for which a table of handles stands. @own, the
 * context of an object, may be closed.
 */
static bool same_file(struct ibv_context *own, const struct ibv_context *context)
{
	if (own == context)
		return true;
	return object_alive(own) &&
	       to_user_context(own)->handles == to_user_context((struct ibv_context *)context)->handles;
}

/*
 * Returns true if the device object was destroyed through another import, or if its handle was reused. The context is
 * open.
 */
static bool handle_is_gone(struct ibv_context *context, enum object_kind kind, const void *object, uint32_t handle)
{
	struct handle_table *handles = to_user_context(context)->handles;

	switch (kind) {
	case OBJECT_PD:
		return !handle_names(handles, HANDLE_PD, handle, ((const struct user_pd *)object)->device);
	case OBJECT_MR:
		return !handle_names(handles, HANDLE_MR, handle, ((const struct user_mr *)object)->key);
	case OBJECT_DM:
		return !handle_names(handles, HANDLE_DM, handle, ((const struct user_dm *)object)->addr);
	default:
		return false;
	}
}

bool object_refused_(const char *call, const struct ibv_context *context, enum object_kind kind, const void *object)
{
	struct alive found;

	if (object_refuse_unknown(call, context, kind, object, &found))
		return true;
	if (context && !same_file(found.context, context))
		return object_refuse(call, (struct ibv_context *)context, kind, RULE_OBJECT_FOREIGN,
				     FIGURES(object_kind_figure(kind), (uintptr_t)object));
	if (!handle_imports_exist())
		return false;
	/* An import alone does not keep a context open. */
	if (!object_alive(found.context))
		return object_refuse(call, NULL, kind, RULE_OBJECT_OF_CLOSED,
				     FIGURES(object_kind_figure(kind), (uintptr_t)object));
	if (handle_is_gone(found.context, kind, object, found.handle))
		return object_refuse(call, found.context, kind, RULE_HANDLE_GONE, FIGURES(found.handle));
	return false;
}
