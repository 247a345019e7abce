/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the command interface: what a context has. The lock covers all of it. See devx.h. */
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
	DEVX_GENERAL_OBJECT, /* of commands: they say which of those that follow */
	DEVX_DEK,
	DEVX_LOGIN,
	DEVX_KIND_COUNT
};

struct devx_umem {
	uint8_t *address;
	uint64_t size;
	uint32_t references; /* of queues, one for each field of a command that named it */
};

/* What a query tells of a DEK but its key. */
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
	struct devx_object *next;  /* made before it */
	struct devx_object **link; /* what leads to it */
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
	struct devx_umem *umem[2];         /* in which it is; or NULL */
	struct subscription *subscription; /* the newest to its events, or NULL; devx.subscriptions */
	uint8_t created[];                 /* the context of its CREATE command; created_bytes() of its kind */
};

/* Numbers from 1 on; a free one has NULL. */
struct devx_numbers {
	void **entry;
	uint32_t count;
};

struct devx {
	pthread_mutex_t lock;
	struct hca *hca;
	struct hca_context *verbs; /* of the objects of verbs */
	struct hca_context *own; /* of those that commands made: their events are not those of ibv_get_async_event(3) */
	struct event_queue
		events; /* a relay to their subscriptions; the object of each source is a struct devx_object */
	struct queue_lock subscriptions; /* devx/events.h */
	struct devx_channel *channels;   /* newest first; under it */
	struct devx_responses *responses;
	struct devx_object *objects; /* newest first */
	struct devx_numbers umems, uars;
	uint8_t *page;                      /* the doorbell registers, which all UARs share; or NULL */
	uint32_t transport_domains, logins; /* made so far */
};

/** Enters @object (not NULL). Returns its number, or 0 without memory. */
uint32_t devx_number_new(struct devx_numbers *numbers, void *object);
/** NULL if there is none. */
void *devx_number_find(const struct devx_numbers *numbers, uint32_t number);
void devx_number_free(struct devx_numbers *numbers, uint32_t number);

/** What the kind is called in explanations. */
const char *devx_kind_name(enum devx_kind kind);

/** Enters @object in the list of the context, as the newest. */
void devx_object_enter(struct devx *devx, struct devx_object *object);
/**
 * Destroys what is behind @object, ends the subscriptions to it, and frees it; the caller takes it out of the list. Returns 0, or
 * -EBUSY and has done nothing.
 */
int devx_object_destroy(struct devx *devx, struct devx_object *object);

/** Frees the registers and the numbers of UARs, and what is registered. */
void devx_uars_close(struct devx *devx);
void devx_umems_close(struct devx *devx);

#endif
