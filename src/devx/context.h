/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal to the command interface: the state of a context, covered by its lock. See devx.h. */
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
	DEVX_GENERAL_OBJECT, /* in commands: their header selects one of the kinds below */
	DEVX_DEK,
	DEVX_LOGIN,
	DEVX_KIND_COUNT
};

struct devx_umem {
	uint8_t *address;
	uint64_t size;
	uint32_t references; /* held by queues: one for each field of a command that named this memory */
};

/* Attributes of a DEK that a query returns; the key is not returned. */
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
	struct devx_object *next;  /* the next older object */
	struct devx_object **link; /* the pointer that points to this object */
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
	struct subscription *subscription; /* newest subscription to its events, or NULL; under devx.subscriptions */
	uint8_t created[];                 /* context of its CREATE command; created_bytes() of its kind */
};

/* Numbers, from 1. A free one is NULL. */
struct devx_numbers {
	void **entry;
	uint32_t count;
};

struct devx {
	pthread_mutex_t lock;
	struct hca *hca;
	struct hca_context *verbs; /* owns the objects of verbs */
	/* owner of the objects made by commands: their events are not reported by ibv_get_async_event(3) */
	struct hca_context *own;
	struct event_queue events;       /* relays events to their subscriptions; the object of each source is a struct
				    * devx_object */
	struct queue_lock subscriptions; /* lock of subscriptions and channels; devx/events.h */
	struct devx_channel *channels;   /* newest first; under subscriptions */
	struct devx_responses *responses;
	struct devx_object *objects; /* newest first */
	struct devx_numbers umems, uars;
	uint8_t *page;                      /* doorbell registers, shared by all UARs; or NULL */
	uint32_t transport_domains, logins; /* number created so far */
};

/** Enters @object (not NULL). Returns its number, or 0 without memory. */
uint32_t devx_number_new(struct devx_numbers *numbers, void *object);
/** Returns the object of @number, or NULL. */
void *devx_number_find(const struct devx_numbers *numbers, uint32_t number);
void devx_number_free(struct devx_numbers *numbers, uint32_t number);

/** Returns the name of the kind for explanations. */
const char *devx_kind_name(enum devx_kind kind);

/** Adds @object to the list of the context, as the newest. */
void devx_object_enter(struct devx *devx, struct devx_object *object);
/**
 * Destroys the device's object of @object, ends the subscriptions to it, and frees it. The caller removes it from the
 * list. Returns 0, or -EBUSY without any effect.
 */
int devx_object_destroy(struct devx *devx, struct devx_object *object);

/** Free the registers, the numbers of UARs, and the umems. */
void devx_uars_close(struct devx *devx);
void devx_umems_close(struct devx *devx);

#endif
