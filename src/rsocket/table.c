/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of descriptors, see table.h. */
#include "rsocket/table.h"

#include <errno.h>
#include <stdlib.h>

#include "progress/progress.h"
#include "explain/explain.h"
#include "rdmacm/devices.h"

enum { PAGE_ENTRIES = 1024, PAGES = 1024 };

static struct {
	pthread_mutex_t lock;
	struct rsocket **pages[PAGES];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void table_before_fork(void)
{
	pthread_mutex_lock(&table.lock);
}

static void table_after_fork(void)
{
	pthread_mutex_unlock(&table.lock);
}

/* Only the table has references: calls in progress belong to threads of the parent. */
static void table_after_fork_in_child(void)
{
	uint32_t page, entry;

	for (page = 0; page < PAGES; page++)
		for (entry = 0; table.pages[page] && entry < PAGE_ENTRIES; entry++)
			if (table.pages[page][entry])
				table.pages[page][entry]->references = 1;
	table_after_fork();
}

/* A leaf lock, so the order of these handlers does not matter. */
static void __attribute__((constructor)) table_handle_fork(void)
{
	pthread_atfork(table_before_fork, table_after_fork, table_after_fork_in_child);
}

/* Returns NULL if @fd is invalid or has no page. The caller holds the lock. */
static struct rsocket **table_entry(int fd)
{
	struct rsocket **page = fd >= 0 && fd / PAGE_ENTRIES < PAGES ? table.pages[fd / PAGE_ENTRIES] : NULL;

	return page ? &page[fd % PAGE_ENTRIES] : NULL;
}

int table_enter(struct rsocket *rs)
{
	struct rsocket **entry;

	if (rs->fd < 0 || rs->fd / PAGE_ENTRIES >= PAGES)
		return -EMFILE;
	pthread_mutex_lock(&table.lock);
	if (!table.pages[rs->fd / PAGE_ENTRIES])
		table.pages[rs->fd / PAGE_ENTRIES] = calloc(PAGE_ENTRIES, sizeof(struct rsocket *));
	entry = table_entry(rs->fd);
	/* The program used close(2) on an old entry; its rsocket is abandoned. */
	if (entry)
		*entry = rs;
	pthread_mutex_unlock(&table.lock);
	return entry ? 0 : -ENOMEM;
}

struct rsocket *table_find(int fd)
{
	struct rsocket **entry, *rs;

	pthread_mutex_lock(&table.lock);
	entry = table_entry(fd);
	rs = entry ? *entry : NULL;
	if (rs)
		rs->references++;
	pthread_mutex_unlock(&table.lock);
	return rs;
}

struct rsocket *table_remove(int fd)
{
	struct rsocket **entry, *rs;

	pthread_mutex_lock(&table.lock);
	entry = table_entry(fd);
	rs = entry ? *entry : NULL;
	if (rs)
		*entry = NULL;
	pthread_mutex_unlock(&table.lock);
	return rs;
}

void rsocket_put(struct rsocket *rs)
{
	uint32_t left;

	pthread_mutex_lock(&table.lock);
	left = --rs->references;
	pthread_mutex_unlock(&table.lock);
	if (!left)
		rsocket_free(rs);
}

struct rsocket *rsocket_begin(int fd, const char *call)
{
	struct rsocket *rs = table_find(fd);

	if (!rs) {
		errno = REFUSE(hca_of_id(NULL), call, EBADF, RULE_RSOCKET_NONE, (uint64_t)fd);
		return NULL;
	}
	if (rs->process != progress_generation()) {
		rsocket_put(rs);
		errno = REFUSE(hca_of_id(NULL), call, EBADF, RULE_RDMACM_OF_PARENT, (uintptr_t)rs);
		return NULL;
	}
	pthread_mutex_lock(&rs->lock);
	if (rs->closed) {
		rsocket_end(rs, 0);
		errno = REFUSE(hca_of_id(NULL), call, EBADF, RULE_RSOCKET_NONE, (uint64_t)fd);
		return NULL;
	}
	return rs;
}

struct rsocket *rsocket_begin_stream(int fd, const char *call)
{
	struct rsocket *rs = rsocket_begin(fd, call);

	if (!rs || !rs->datagram)
		return rs;
	rsocket_end(rs, 0);
	errno = REFUSE(hca_of_id(NULL), call, EOPNOTSUPP, RULE_RSOCKET_NOT_STREAM, (uint64_t)fd);
	return NULL;
}

long rsocket_end(struct rsocket *rs, long result)
{
	pthread_mutex_unlock(&rs->lock);
	rsocket_put(rs);
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}
