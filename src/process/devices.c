/* SPDX-License-Identifier: BSD-2-Clause */
/* The registry and the creation of devices, see hca.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "hca/grants.h"
#include "process/commands.h"
#include "block/import_keys.h"
#include "explain/log.h"
#include "explain/sink.h"
#include "core/cancellation.h"
#include "hca/hca.h"
#include "hca/identity.h"
#include "process/fork.h"
#include "cm_host/handed.h"
#include "cm_host/manager.h"
#include "process/memory_fault.h"
#include "wire/mad.h"
#include "core/descriptor.h"
#include "core/limits.h"
#include "core/lock.h"
#include "progress/progress.h"
#include "progress/watch.h"
#include "observe/timeline.h"
#include "draw/book.h"
#include "transport/control/qp.h"
#include "transport/gsi/gsi.h"
#include "transport/qp/host_window.h"
#include "transport/qp/qp.h"
#include "observe/counter_file.h"
#include "observe/counters.h"
#include "filter/filter.h"
#include "link/host/host.h"
#include "process/route.h"
#include "link/shm/shm.h"
#include "mkey/ended.h"
#include "mkey/refused.h"
#include "transport/run/run.h"
#include "wire/link.h"
#include "link/udp/groups.h"
#include "link/udp/parts.h"
#include "link/udp/udp.h"
#include "process/report.h"

/*
 * Above 15, so that no key's number is mistaken for the mark of a repeat block (mkey/layout.c) or for MLX5_INVALID_LKEY
 * (0x100). QP numbers 0 and 1 are the management QPs; programs use small numbers for special ones.
 */
#define FIRST_KEY 16
#define FIRST_QPN 0x40
#define FIRST_NUMBER 1
#define FIRST_PD 1

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static bool registry_made; /* atomic; set when all devices exist */

static uint64_t random_seed(const struct settings *settings)
{
	uint64_t seed = settings->seed;

	if (!seed && getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = clock_now_ns();
	return seed ? seed : 1;
}

/* Returns the initial tag of each key index; random, so that one process's rkeys reveal nothing about another's. */
static uint8_t *random_tags(struct hca *hca)
{
	uint8_t *tags = malloc(ID_LEAF_SIZE);

	for (size_t i = 0; tags && i < ID_LEAF_SIZE; i++)
		tags[i] = (uint8_t)hca_random(hca);
	return tags;
}

/* Without the file the device exists but no login succeeds, as with an adapter without a crypto officer. */
static void load_import_keys(struct hca *hca)
{
	char error[5000];

	if (hca->settings.crypto != CRYPTO_WRAPPED)
		return;
	hca->import_keys = calloc(1, sizeof(*hca->import_keys));
	if (hca->import_keys && import_keys_load(hca->import_keys, hca->settings.crypto_file, error, sizeof(error)))
		explain_log_note(hca->explain_log, error);
}

/* A device works without filters that cannot be made. */
static void make_filters(struct hca *hca)
{
	char error[5000];

	if (filters_init(hca, error, sizeof(error)))
		explain_log_note(hca->explain_log, error);
	if (key_book_init(hca, error, sizeof(error)))
		explain_log_note(hca->explain_log, error);
	if (strcmp(hca->settings.counters, "off") != 0 || hca->filters || hca->key_book ||
	    explain_sink_is_on(the_registry.sink))
		report_at_exit();
}

/* Called once per descriptor, possibly while other threads hold locks; an explanation takes only leaf locks. */
static void explain_lost_descriptor(int fd)
{
	EXPLAIN(&the_registry.devices[0], (&(const struct explain_subject){0}), RULE_DESCRIPTOR_LOST, (uint64_t)fd);
}

static int hca_init(struct hca *hca, size_t index, const struct settings *settings)
{
	hca->registry = &the_registry;
	hca->index = index;
	hca->settings = *settings;
	snprintf(hca->name, sizeof(hca->name), "%s%zu", settings->device_name, index);
	hca->random_state = random_seed(settings) + index;
	hca->key_tags = random_tags(hca);
	hca->explain_log = explain_log_new(the_registry.sink);
	hca->watcher = malloc(sizeof(*hca->watcher));
	if (!hca->key_tags || !hca->explain_log || !hca->watcher) {
		free(hca->key_tags);
		free(hca->explain_log);
		free(hca->watcher);
		return -ENOMEM;
	}
	load_import_keys(hca);
	hca->gid_count = gid_discover(settings->gids, hca->gids);
	hca->guid = identity_guid(hca->gids, index);
	id_table_init(&hca->keys, FIRST_KEY, 1u << ID_BITS);
	id_table_begin_at(&hca->keys, FIRST_KEY + (uint32_t)(hca_random(hca) % ((1u << ID_BITS) - FIRST_KEY)));
	for (size_t i = 0; i < HCA_KEY_LOCKS; i++)
		queue_lock_init(&hca->key_locks[i], LOCK_LEVEL_KEY, false);
	id_table_init(&hca->cqs, FIRST_NUMBER, LIMIT_MAX_CQ);
	id_table_init(&hca->srqs, FIRST_NUMBER, LIMIT_MAX_SRQ);
	id_table_init(&hca->psvs, FIRST_NUMBER, 1u << ID_BITS);
	id_table_init(&hca->pds, FIRST_PD, FIRST_PD + LIMIT_MAX_PD);
	id_table_init(&hca->deks, FIRST_NUMBER, (1u << LIMIT_LOG_MAX_DEK) + FIRST_NUMBER);
	dm_pool_init(&hca->dm);
	timers_init(&hca->timers, &progress_timer_thread);
	watcher_init(hca->watcher, hca);
	pthread_mutex_init(&hca->lock, NULL);
	pthread_mutex_init(&hca->psv_lock, NULL);
	pthread_mutex_init(&hca->atomic_lock, NULL);
	pthread_mutex_init(&hca->refused_lock, NULL);
	hca->refused = refused_ring_new();
	hca->ended = ended_ring_new();
	make_filters(hca);
	return 0;
}

void registry_before_fork(void)
{
	pthread_mutex_lock(&registry_lock);
}

void registry_after_fork(bool child)
{
	(void)child;
	pthread_mutex_unlock(&registry_lock);
}

static void read_settings(struct settings *settings, char *errors, size_t size)
{
	size_t used = 0;

	settings_default(settings);
	for (int i = 0; i < SETTING_COUNT; i++) {
		char error[256];

		if (!setting_from_environment(settings, i, error, sizeof(error)))
			continue;
		used += (size_t)snprintf(errors + used, size - used, "%s%s", used ? "; " : "", error);
		if (used >= size)
			used = size - 1;
	}
}

/* Returns false without memory. */
static bool make_shared_parts(struct registry *registry)
{
	struct hca *first = registry->devices;

#define MADE(part, new) (registry->part || (registry->part = (new)))
	return MADE(gsi, gsi_new(first)) && MADE(handed, handed_new(first)) && MADE(manager, manager_new(first)) &&
	       MADE(host_windows, host_windows_new(registry)) && MADE(udp_groups, udp_groups_new()) &&
	       MADE(udp_sockets, udp_sockets_new());
#undef MADE
}

/*
 * A retry uses the number of devices of the first attempt, even if the environment changed. Returns false without
 * memory.
 */
static bool make_registry(void)
{
	static size_t wanted, ready;
	struct settings settings;
	char errors[1024] = "", error[512] = "";

	delivery = &transport_delivery;
	qp_halves = &transport_halves;
	routes = &device_routes;
	management = &process_management;
	host_carrier = &shm_carrier;
	grants = &shm_grants;
	progress_in_run = run_around;
	read_settings(&settings, errors, sizeof(errors));
	timeline_open(&settings, error, sizeof(error));
	if (!the_registry.sink && !(the_registry.sink = explain_sink_new(&settings)))
		return false;
	if (!the_registry.devices) {
		the_registry.devices = calloc(settings.devices, sizeof(struct hca));
		wanted = settings.devices;
	}
	if (explain_sink_is_on(the_registry.sink))
		memory_fault_explain();
	while (the_registry.devices && ready < wanted && !hca_init(&the_registry.devices[ready], ready, &settings))
		ready++;
	if (!the_registry.devices || ready < wanted || !make_shared_parts(&the_registry))
		return false;
	/* A process that other processes cannot reach may use any numbers. */
	if (settings.link == LINK_LOCAL)
		id_table_init(&the_registry.qps, FIRST_QPN, LIMIT_MAX_QP);
	else
		id_table_init_from(&the_registry.qps, &qp_numbers, QP_NUMBERS_REST);
	descriptor_set_report(explain_lost_descriptor);
	the_registry.has_barrier = barrier_on_all_cpus();
	if (errors[0])
		explain_log_note(the_registry.devices[0].explain_log, errors);
	if (error[0])
		explain_log_note(the_registry.devices[0].explain_log, error);
	if (!the_registry.counters)
		the_registry.counters = counter_file_make(wanted);
	the_registry.count = wanted;
	return true;
}

/* If memory is exhausted, the next call tries again; until then no device exists. */
struct registry *registry(void)
{
	if (!__atomic_load_n(&registry_made, __ATOMIC_ACQUIRE)) {
		WITHOUT_CANCELLATION;

		fork_handle();
		pthread_mutex_lock(&registry_lock);
		if (!registry_made)
			__atomic_store_n(&registry_made, make_registry(), __ATOMIC_RELEASE);
		pthread_mutex_unlock(&registry_lock);
	}
	return &the_registry;
}

size_t hca_count(void)
{
	return registry()->count;
}

struct hca *hca_device(size_t index)
{
	return index < registry()->count ? &the_registry.devices[index] : NULL;
}
