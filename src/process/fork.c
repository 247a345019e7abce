/* SPDX-License-Identifier: BSD-2-Clause */
/* fork(2) for the device, see process/fork.md. */
#include "process/fork.h"

#include "block/cipher.h"
#include "core/epoch.h"
#include "core/event_queue.h"
#include "core/fault_signal.h"
#include "explain/log.h"
#include "explain/sink.h"
#include "hca/hca.h"
#include "progress/arrivals.h"
#include "progress/progress.h"
#include "progress/watch.h"
#include "observe/counters.h"
#include "observe/page_guard.h"
#include "observe/timeline.h"
#include "draw/book.h"
#include "filter/filter.h"
#include "cm_host/handed.h"
#include "cm_host/manager.h"
#include "link/host/host.h"
#include "transport/gsi/gsi.h"
#include "transport/qp/host_window.h"
#include "transport/qp/inherited.h"
#include "wire/link.h"
#include "link/udp/udp.h"
#include "link/udp/groups.h"
#include "link/udp/parts.h"

/* For existing devices only: hca_device() would make them. */
#define FOR_EACH_DEVICE(hca)                                                                                           \
	for (struct hca *hca = the_registry.devices; hca && hca < the_registry.devices + the_registry.count; hca++)

static void qp_numbers_before_fork(void)
{
	pthread_mutex_lock(&the_registry.qps.lock);
}

static void qp_numbers_after_fork(bool child)
{
	if (child)
		id_table_after_fork(&the_registry.qps);
	pthread_mutex_unlock(&the_registry.qps.lock);
}

static void filters_before_fork(void)
{
	FOR_EACH_DEVICE(hca)
	filters_lock(hca);
}

static void filters_after_fork(bool child)
{
	FOR_EACH_DEVICE(hca)
	{
		if (child)
			filters_forget(hca);
		filters_unlock(hca);
	}
}

static void key_books_before_fork(void)
{
	FOR_EACH_DEVICE(hca)
	key_book_lock(hca);
}

static void key_books_after_fork(bool child)
{
	FOR_EACH_DEVICE(hca)
	{
		if (child)
			key_book_forget(hca);
		key_book_unlock(hca);
	}
}

static void explain_logs_before_fork(void)
{
	FOR_EACH_DEVICE(hca)
	explain_log_lock(hca->explain_log);
}

static void explain_logs_after_fork(bool child)
{
	(void)child;
	FOR_EACH_DEVICE(hca)
	explain_log_unlock(hca->explain_log);
}

static void sink_before_fork(void)
{
	if (the_registry.sink)
		explain_sink_before_fork(the_registry.sink);
}

static void sink_after_fork(bool child)
{
	if (the_registry.sink)
		explain_sink_after_fork(the_registry.sink, child);
}

static void manager_before_fork(void)
{
	if (the_registry.manager)
		manager_lock(the_registry.manager);
}

static void manager_after_fork(bool child)
{
	(void)child;
	if (the_registry.manager)
		manager_unlock(the_registry.manager);
}

static void handed_before_fork(void)
{
	if (the_registry.handed)
		handed_lock(the_registry.handed);
}

static void handed_after_fork(bool child)
{
	if (!the_registry.handed)
		return;
	if (child)
		handed_forget(the_registry.handed);
	handed_unlock(the_registry.handed);
}

static void udp_groups_before_fork(void)
{
	if (the_registry.udp_groups)
		udp_groups_lock(the_registry.udp_groups);
}

static void udp_groups_after_fork(bool child)
{
	if (!the_registry.udp_groups)
		return;
	if (child)
		udp_groups_forget(the_registry.udp_groups);
	udp_groups_unlock(the_registry.udp_groups);
}

static void udp_sockets_before_fork(void)
{
	if (the_registry.udp_sockets)
		udp_sockets_lock(the_registry.udp_sockets);
}

static void udp_sockets_after_fork(bool child)
{
	if (!the_registry.udp_sockets)
		return;
	if (child)
		udp_sockets_forget(the_registry.udp_sockets);
	udp_sockets_unlock(the_registry.udp_sockets);
}

static void gsi_before_fork(void)
{
	if (the_registry.gsi)
		gsi_lock(the_registry.gsi);
}

static void gsi_after_fork(bool child)
{
	if (!the_registry.gsi)
		return;
	if (child)
		gsi_forget(the_registry.gsi);
	gsi_unlock(the_registry.gsi);
}

static void device_before_fork(void)
{
#define LOCK_OF_PART(part, file, name, covers) part##_before_fork();
#define LOCK_OF_OBJECTS(LEVEL, file, name, covers) queue_locks_before_fork(LOCK_LEVEL_##LEVEL);
#define LOCK_OF_DEVICE(member, file, name, covers)                                                                     \
	FOR_EACH_DEVICE(hca)                                                                                           \
	pthread_mutex_lock(&hca->member);
#include "core/locks.def"
}

static void device_locks_release(bool child)
{
#define LOCK_OF_DEVICE(member, file, name, covers)                                                                     \
	FOR_EACH_DEVICE(hca)                                                                                           \
	pthread_mutex_unlock(&hca->member);
#include "core/locks.def"
#define LOCK_OF_PART(part, file, name, covers) part##_after_fork(child);
#include "core/locks.def"
}

static void device_after_fork_in_parent(void)
{
	device_locks_release(false);
}

static void device_after_fork_in_child(void)
{
	/* First, because earlier counts would go to the parent's counters. */
	counters_after_fork();
	epoch_after_fork();
	timeline_after_fork();
	device_locks_release(true);
	event_queues_after_fork();
	if (the_registry.manager)
		manager_forget(the_registry.manager);
	FOR_EACH_DEVICE(hca)
	{
		timers_after_fork(&hca->timers);
		watcher_after_fork(hca->watcher);
	}
	/* After the timers were removed from the wheel, because it initializes its own again. */
	if (the_registry.host_windows)
		host_windows_forget(the_registry.host_windows);
	qps_after_fork();
}

static void fork_handlers_register(void)
{
	pthread_atfork(device_before_fork, device_after_fork_in_parent, device_after_fork_in_child);
}

void fork_handle(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fork_handlers_register);
}
