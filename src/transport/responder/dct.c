/* SPDX-License-Identifier: BSD-2-Clause */
/* The initiators of a DCT. */
#include "transport/responder/dct.h"

#include <stdlib.h>
#include <string.h>

#include "core/limits.h"
#include "core/timer.h"
#include "transport/qp/origin.h"

#define ERA_NS (LIMIT_DCT_INITIATOR_SECONDS * UINT64_C(1000000000))

struct dct *dct_new(uint64_t access_key)
{
	struct dct *dct = calloc(1, sizeof(*dct));

	if (!dct)
		return NULL;
	dct->access_key = access_key;
	dct->era_began_ns = clock_now_ns();
	return dct;
}

void dct_free(struct dct *dct)
{
	struct dct_initiator *initiator;

	if (!dct)
		return;
	while ((initiator = dct->all)) {
		dct->all = initiator->next;
		free(initiator->responder.answers);
		block_progress_release(&initiator->responder.progress);
		free(initiator);
	}
	free(dct);
}

/* QP numbers of one host are adjacent, and hosts use the same numbers, so the GID is hashed as well. */
static uint32_t dct_bucket(const union ibv_gid *gid, uint32_t qpn)
{
	uint64_t low;

	memcpy(&low, gid->raw + 8, sizeof(low));
	return (uint32_t)(((low ^ qpn) * UINT64_C(0x9e3779b97f4a7c15)) >> 56) % DCT_BUCKETS;
}

static bool initiator_sent(const struct dct_initiator *initiator, const struct packet *packet)
{
	return initiator->qpn == packet->source_qpn && initiator->link == packet->link &&
	       same_gid(&initiator->gid, &packet->path->source);
}

struct dct_initiator *dct_find(const struct dct *dct, const struct packet *packet)
{
	struct dct_initiator *initiator = dct->bucket[dct_bucket(&packet->path->source, packet->source_qpn)];

	while (initiator && !initiator_sent(initiator, packet))
		initiator = initiator->next_in_bucket;
	return initiator;
}

static void pass_time(struct dct *dct)
{
	uint64_t now = clock_now_ns();

	if (now - dct->era_began_ns < ERA_NS)
		return;
	dct->era++;
	dct->era_began_ns = now;
}

/* Returns an initiator to replace: a silent one or, if there are too many, one that has left. */
static struct dct_initiator *find_vacant(const struct dct *dct)
{
	struct dct_initiator *left = NULL;

	for (struct dct_initiator *initiator = dct->all; initiator; initiator = initiator->next) {
		if (dct->era - initiator->era >= 2)
			return initiator;
		if (initiator->left)
			left = initiator;
	}
	return dct->count < LIMIT_DCT_INITIATORS ? NULL : left;
}

struct dct_initiator *dct_place(struct dct *dct)
{
	struct dct_initiator *place;

	pass_time(dct);
	place = find_vacant(dct);
	if (place || dct->count == LIMIT_DCT_INITIATORS)
		return place;
	place = calloc(1, sizeof(*place) + RECEIVE_SEGMENTS * sizeof(struct mlx5_wqe_data_seg));
	if (!place)
		return NULL;
	place->responder.resource = place->resource;
	place->responder.resources = LIMIT_MAX_RD_ATOMIC;
	place->next = dct->all;
	dct->all = place;
	dct->count++;
	return place;
}

void dct_assign(struct dct *dct, struct dct_initiator *place, const struct packet *packet)
{
	struct dct_initiator **link = &dct->bucket[dct_bucket(&place->gid, place->qpn)];

	/* A new place is in no bucket yet. */
	while (*link && *link != place)
		link = &(*link)->next_in_bucket;
	if (*link)
		*link = place->next_in_bucket;
	place->link = packet->link;
	place->gid = packet->path->source;
	place->qpn = packet->source_qpn;
	link = &dct->bucket[dct_bucket(&place->gid, place->qpn)];
	place->next_in_bucket = *link;
	*link = place;
}
