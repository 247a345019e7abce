/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internals of the device. Types of higher layers are incomplete. Not for the driver.
 *
 * The registry (one per process) holds the devices and the QP numbers, which are unique per host. The rest belongs to a
 * struct hca, which lives until the process ends.
 */
#ifndef SOFTHCA_HCA_HCA_H
#define SOFTHCA_HCA_HCA_H

#include <pthread.h>

#include "core/id_table.h"
#include "core/lock.h"
#include "core/timer.h"
#include "hca/commands.h"
#include "hca/dm.h"
#include "hca/gid.h"

struct counter_file;
struct explain_log;
struct explain_sink;
struct filters;
struct gsi;
struct handed;
struct host_windows;
struct import_keys;
struct key_book;
struct key_observer;
struct link;
struct manager;
struct multicast_list;
struct refused_ring;
struct registry;
struct udp_groups;
struct udp_sockets;
struct watcher;
struct ended_ring;
struct xrc_domain;

/* Keys share locks, since there are too many for one each. */
#define HCA_KEY_LOCKS 64

struct hca {
	size_t index;
	char name[64];
	struct settings settings;
	struct hca_gid gids[HCA_GID_TABLE_SIZE];
	size_t gid_count;
	__be64 guid;
	struct id_table keys;
	uint8_t *key_tags;                          /* next tag of direct keys, by index & KEY_TAGS_MASK (mkey/key.c) */
	struct queue_lock key_locks[HCA_KEY_LOCKS]; /* for changes of a key's mapping, by its index */
	struct id_table cqs;
	struct id_table srqs;
	struct id_table deks;
	struct id_table psvs;
	struct id_table pds;
	struct import_keys *import_keys; /* with SOFTHCA_CRYPTO=wrapped, else NULL; block/import_keys.h */
	struct explain_log *explain_log;
	struct dm_pool dm;
	struct timers timers;
	struct watcher *watcher;                 /* progress/watch.h */
	struct xrc_domain *xrc_domains;          /* queue/xrc.h; under `lock` */
	pthread_mutex_t lock;                    /* list of contexts, crypto logins, destruction of DEKs; taken first */
	pthread_mutex_t psv_lock;                /* leaf; contents of PSVs (mkey/psv.h) */
	pthread_mutex_t atomic_lock;             /* leaf; atomics on memory other than one aligned word */
	uint64_t next_serial;                    /* atomic; for keys */
	uint64_t random_state;                   /* atomic; hca_random() */
	uint32_t ring_receives;                  /* atomic; changes with each CQE of a receive in an exported ring */
	const struct link *link;                 /* carries everything, regardless of settings (tests); or NULL */
	struct filters *filters;                 /* filter/filter.h; or NULL */
	const struct key_observer *key_observer; /* observe/key_observer.h; or NULL */
	struct key_book *key_book;               /* draw/book.h; or NULL */
	/*
	 * Keys with a signature record where transfers end, for warnings about misuse (hca_mkey_cut_block()). Set
	 * before any key exists.
	 */
	bool notes_block_ends;
	pthread_mutex_t refused_lock; /* leaf; both rings */
	struct refused_ring *refused; /* mkey/refused.h; or NULL */
	struct ended_ring *ended;     /* mkey/ended.h; or NULL */
	struct registry *registry;
};

struct registry {
	struct hca *devices;
	size_t count;
	struct explain_sink *sink;              /* of all devices; explain/sink.h */
	struct counter_file *counters;          /* of all devices; observe/counter_file.h; or NULL */
	struct id_table qps;                    /* numbers are unique per host */
	struct gsi *gsi;                        /* transport/gsi/gsi.h */
	struct host_windows *host_windows;      /* transport/qp/host_window.h */
	struct handed *handed;                  /* cm_host/handed.h */
	struct manager *manager;                /* cm_host/manager.h */
	struct udp_groups *udp_groups;          /* link/udp/groups.h */
	struct udp_sockets *udp_sockets;        /* link/udp/parts.h */
	const struct multicast_list *multicast; /* atomic; or NULL; transport/qp/multicast.h */
	bool has_barrier;                       /* barrier_on_all_cpus() works */
	bool filters;
	bool window_has_room; /* atomic; a QP waits in host_windows although there is room */
};

/** Returns the registry, made by the first call. Any thread may call. */
struct registry *registry(void);
/** For code that runs only once a device exists. */
extern struct registry the_registry;

/** For facts about the whole process, such as a stranger's connection. NULL if no device exists yet. */
static inline struct hca *first_device(void)
{
	return the_registry.devices;
}

struct hca_context {
	struct hca *hca;
	struct event_queue *async;
	uint32_t references;     /* atomic: objects of the context */
	struct hca_login *login; /* atomic; or NULL; changes under hca.lock */
};

struct hca_pd {
	struct hca_context *context;
	uint32_t number;
	uint32_t references; /* atomic: keys, queues */
};

/** Returns 64 random bits from the device's seed (SOFTHCA_SEED). Any thread may call. */
uint64_t hca_random(struct hca *hca);

/** Raises an asynchronous event (ibv_get_async_event(3)). Any thread; takes only a leaf lock. */
static inline void hca_raise(struct hca_context *context, struct event_source *source)
{
	event_queue_raise(context->async, source);
}

static inline void reference_get(uint32_t *references)
{
	__atomic_add_fetch(references, 1, __ATOMIC_RELAXED);
}

static inline void reference_put(uint32_t *references)
{
	__atomic_sub_fetch(references, 1, __ATOMIC_RELEASE);
}

static inline uint32_t reference_count(const uint32_t *references)
{
	return __atomic_load_n(references, __ATOMIC_ACQUIRE);
}

#endif
