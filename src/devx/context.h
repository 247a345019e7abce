/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal to the command interface: a context, covered by its lock. */
#ifndef SOFTHCA_DEVX_CONTEXT_H
#define SOFTHCA_DEVX_CONTEXT_H

#include <pthread.h>
#include <stdbool.h>

#include "core/event_queue.h"
#include "devx/devx.h"

enum devx_kind {
	DEVX_NONE,
	DEVX_PD,
	DEVX_TRANSPORT_DOMAIN,
	DEVX_CQ,
	DEVX_QP,
	DEVX_DCT,
	DEVX_RMP,
	DEVX_MKEY,
	DEVX_PSV,
	DEVX_GENERAL_OBJECT, /* in commands: the header selects a kind below */
	DEVX_DEK,
	DEVX_LOGIN,
	DEVX_KIND_COUNT
};

struct devx_umem {
	uint8_t *address;
	uint64_t size;
	uint32_t references; /* held by queues: one for each field of a command that named this memory */
};

/* Returned by queries; the key is not. */
struct devx_dek {
	struct hca_pd *pd;
	uint64_t opaque;
	bool wide; /* AES-256 */
	bool has_keytag;
};

struct devx_login {
	struct hca_login *login;
	uint32_t credential_id, import_kek_id;
};
struct subscription;

struct devx_object {
	struct devx_object *next;  /* next older */
	struct devx_object **link; /* points to this object */
	enum devx_kind kind;
	uint32_t number;
	union {
		struct hca_pd *pd;
		struct hca_cq *cq;
		struct hca_qp *qp;
		struct hca_srq *srq;
		struct mkey *mkey;
		struct devx_dek dek;
		struct devx_login login;
	};
	struct devx_umem *umem[2];         /* umems that contain it; or NULL */
	struct subscription *subscription; /* newest, or NULL; under devx.subscriptions */
	uint8_t created[];                 /* context of CREATE; created_bytes() */
};

/* Numbers from 1; NULL is free. */
struct devx_numbers {
	void **entry;
	uint32_t count;
};

struct devx {
	pthread_mutex_t lock;
	struct hca *hca;
	struct hca_context *verbs; /* owns the objects of verbs */
	/* owner of objects made by commands: ibv_get_async_event(3) does not report their events */
	struct hca_context *own;
	struct event_queue events; /* relays events to subscriptions; each source's object is a struct devx_object */
	struct queue_lock subscriptions; /* lock of subscriptions and channels; devx/events.h */
	struct devx_channel *channels;   /* newest first; under subscriptions */
	struct devx_responses *responses;
	struct devx_object *objects; /* newest first */
	struct devx_numbers umems, uars;
	uint8_t *page;                      /* doorbell registers of all UARs; or NULL */
	uint32_t transport_domains, logins; /* created so far */
};

/** Enters @object. Returns its number, or 0 without memory. */
uint32_t devx_number_new(struct devx_numbers *numbers, void *object);
/** Returns NULL for an unknown number. */
void *devx_number_find(const struct devx_numbers *numbers, uint32_t number);
void devx_number_free(struct devx_numbers *numbers, uint32_t number);

/** Returns the name of @kind for explanations. */
const char *devx_kind_name(enum devx_kind kind);

void devx_object_enter(struct devx *devx, struct devx_object *object);
/**
 * Destroys the device's object, ends its subscriptions, and frees @object, which the caller removes from the list.
 * Returns 0, or -EBUSY without effect.
 */
int devx_object_destroy(struct devx *devx, struct devx_object *object);

void devx_uars_close(struct devx *devx);
void devx_umems_close(struct devx *devx);

#endif
