/* SPDX-License-Identifier: BSD-2-Clause */
/* Doorbell registers that trap stores. */
#include "core/descriptor.h"
#include "progress/trap.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct trap_page {
	struct trap_page *next;
	void *memory;
	bool reports; /* registered with the descriptor */
};

void trap_init(struct trap *trap)
{
	*trap = (struct trap){.fd = -1};
}

static struct uffdio_range page_range(const struct trap_page *page)
{
	return (struct uffdio_range){(uintptr_t)page->memory, TRAP_PAGE_BYTES};
}

static void page_register(const struct trap *trap, struct trap_page *page)
{
	struct uffdio_register request = {.range = page_range(page), .mode = UFFDIO_REGISTER_MODE_MISSING};

	page->reports = trap->fd >= 0 && !ioctl(trap->fd, UFFDIO_REGISTER, &request);
}

/* Wakes threads blocked on the page, too. */
static void page_make_present(const struct trap *trap, const struct trap_page *page)
{
	static const uint8_t zeros[TRAP_PAGE_BYTES] __attribute__((aligned(TRAP_PAGE_BYTES)));
	struct uffdio_copy copy = {.dst = (uintptr_t)page->memory, .src = (uintptr_t)zeros, .len = TRAP_PAGE_BYTES};
	struct uffdio_range range = page_range(page);

	if (page->reports && ioctl(trap->fd, UFFDIO_COPY, &copy))
		ioctl(trap->fd, UFFDIO_WAKE, &range);
}

void trap_open(struct trap *trap)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd;

	if (trap->fd >= 0)
		return;
	fd = descriptor_keep((int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
	if (fd < 0)
		return;
	if (ioctl(fd, UFFDIO_API, &api)) {
		descriptor_close(fd);
		return;
	}
	trap->fd = fd;
	for (struct trap_page *page = trap->pages; page; page = page->next) {
		page_register(trap, page);
		page_make_present(trap, page);
	}
}

static bool page_set_writable(const struct trap_page *page, bool writable)
{
	return !mprotect(page->memory, TRAP_PAGE_BYTES, writable ? PROT_READ | PROT_WRITE : PROT_READ);
}

static void pages_make_writable(const struct trap *trap)
{
	for (const struct trap_page *page = trap->pages; page; page = page->next)
		page_set_writable(page, true);
}

void trap_after_fork(struct trap *trap)
{
	if (trap->fd >= 0)
		descriptor_close(trap->fd);
	trap->fd = -1;
	if (trap->state == TRAP_FAULTS)
		pages_make_writable(trap);
	trap->state = TRAP_RELEASED;
	for (struct trap_page *page = trap->pages; page; page = page->next)
		page->reports = false;
}

void trap_add(struct trap *trap, void *memory)
{
	struct trap_page *page = calloc(1, sizeof(*page));

	if (!page)
		return;
	page->memory = memory;
	page->next = trap->pages;
	trap->pages = page;
	page_register(trap, page);
	if (trap->state != TRAP_WAKES)
		page_make_present(trap, page);
	if (trap->state == TRAP_FAULTS)
		page_set_writable(page, false);
}

void trap_remove(struct trap *trap, void *memory)
{
	for (struct trap_page **link = &trap->pages; *link; link = &(*link)->next) {
		struct trap_page *page = *link;
		struct uffdio_range range = page_range(page);

		if (page->memory != memory)
			continue;
		if (page->reports)
			ioctl(trap->fd, UFFDIO_UNREGISTER, &range);
		if (trap->state == TRAP_FAULTS)
			page_set_writable(page, true);
		*link = page->next;
		free(page);
		return;
	}
}

/* Fails for a page that is locked in memory (mlockall(2)). */
static bool page_discard(const struct trap_page *page)
{
	return page->reports && !madvise(page->memory, TRAP_PAGE_BYTES, MADV_DONTNEED);
}

bool trap_arm(struct trap *trap)
{
	bool armed = trap->pages;

	for (struct trap_page *page = trap->pages; page && armed; page = page->next)
		armed = page_discard(page);
	trap->state = TRAP_WAKES;
	if (!armed)
		trap_release(trap);
	return armed;
}

bool trap_protect(struct trap *trap)
{
	bool protected = trap->pages;

	/* First, because a store may fault as soon as a page is protected. */
	trap->state = TRAP_FAULTS;
	for (struct trap_page *page = trap->pages; page && protected; page = page->next)
	protected = page_set_writable(page, false);
	if (!protected)
		trap_release(trap);
	return protected;
}

static void pages_make_present(const struct trap *trap)
{
	struct uffd_msg message;

	/* The reports identify pages, but all are released anyway. */
	while (descriptor_is_ours(trap->fd) && read(trap->fd, &message, sizeof(message)) == sizeof(message))
		;
	for (struct trap_page *page = trap->pages; page; page = page->next)
		page_make_present(trap, page);
}

void trap_release(struct trap *trap)
{
	if (trap->state == TRAP_FAULTS)
		pages_make_writable(trap);
	else
		pages_make_present(trap);
	trap->state = TRAP_RELEASED;
}

void *trap_page_at(const struct trap *trap, uintptr_t address)
{
	for (const struct trap_page *page = trap->pages; page; page = page->next)
		if (address - (uintptr_t)page->memory < TRAP_PAGE_BYTES)
			return page->memory;
	return NULL;
}

/* Two registers of two halves, used alternately: in UARs of several registers they begin at 0x800 and 0xa00. */
static const uint16_t registers[] = {0x800, 0x900, 0xa00, 0xb00};

/* Returns the first register of @page from index *@at on whose doorbell names @number, and its content, or NULL. */
static uint64_t *find_register(const struct trap_page *page, uint32_t number, size_t *at, uint64_t *content)
{
	for (; *at < sizeof(registers) / sizeof(registers[0]); ++*at) {
		uint64_t *reg = (uint64_t *)((uint8_t *)page->memory + registers[*at]);

		*content = __atomic_load_n(reg, __ATOMIC_ACQUIRE);
		/* qpn_ds, the second word */
		if ((be64toh(*content) >> 8 & 0xffffff) == number)
			return reg;
	}
	return NULL;
}

bool trap_holds_doorbell(const struct trap *trap, uint32_t number)
{
	uint64_t content;

	/* A thread that reads an absent page would be blocked forever. */
	if (trap->state == TRAP_WAKES)
		return false;
	for (const struct trap_page *page = trap->pages; page; page = page->next) {
		size_t at = 0;

		if (find_register(page, number, &at, &content))
			return true;
	}
	return false;
}

void trap_clear_doorbell(struct trap *trap, uint32_t number)
{
	uint64_t content, *reg;

	if (trap->state == TRAP_WAKES)
		return;
	for (const struct trap_page *page = trap->pages; page; page = page->next)
		for (size_t at = 0; (reg = find_register(page, number, &at, &content)); at++)
			/* Another queue may store to the register now. */
			__atomic_compare_exchange_n(reg, &content, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
