/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks of ibv_reg_mr(3), and those of the kernel that the page does not mention. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "explain/explain.h"
#include "verbs/object/lint.h"
#include "verbs/memory/mr.h"

enum {
	NEED_LOCAL_WRITE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	KNOWN_ACCESS = ((IBV_ACCESS_HUGETLB << 1) - 1) | IBV_ACCESS_OPTIONAL_RANGE,
};

int mr_check_access(struct hca *hca, const char *call, unsigned int access)
{
	if (access & ~(unsigned int)KNOWN_ACCESS)
		return REFUSE(hca, call, EINVAL, RULE_MR_ACCESS_UNKNOWN, access & ~(unsigned int)KNOWN_ACCESS);
	if (access & NEED_LOCAL_WRITE && !(access & IBV_ACCESS_LOCAL_WRITE))
		return REFUSE(hca, call, EINVAL, RULE_MR_ACCESS_LOCAL_WRITE, access);
	return 0;
}

/* Returns the size of the pages that hold @addr, from /proc/self/smaps; 0 if unmapped or unknown. */
static size_t page_size_at(const void *addr)
{
	WITHOUT_CANCELLATION;
	FILE *file = fopen("/proc/self/smaps", "re");
	unsigned long begin, end, kilobytes;
	bool inside = false;
	char line[512];
	size_t size = 0;

	while (file && size == 0 && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			inside = begin <= (uintptr_t)addr && (uintptr_t)addr < end;
		else if (inside && sscanf(line, "KernelPageSize: %lu kB", &kilobytes) == 1)
			size = kilobytes << 10;
	}
	if (file)
		fclose(file);
	return size;
}

/* Implicit on-demand region: addr 0, length SIZE_MAX, every address maps to itself. */
static int mr_check_implicit(struct hca *hca, const char *call, uint64_t iova, unsigned int access)
{
	if (iova)
		return REFUSE(hca, call, EINVAL, RULE_MR_IMPLICIT_IOVA, iova);
	if (access & IBV_ACCESS_HUGETLB)
		return REFUSE(hca, call, EINVAL, RULE_MR_IMPLICIT_HUGETLB, 0);
	return 0;
}

static int mr_check_range(struct hca *hca, const char *call, const void *addr, size_t length)
{
	uintptr_t start = (uintptr_t)addr, page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t limit = 0 - page; /* the kernel rounds the end up to a page */

	if (start > limit || length > limit - start)
		return REFUSE(hca, call, EINVAL, RULE_MR_RANGE_WRAPS, start, length);
	if (length == 0 && start % page == 0)
		return REFUSE(hca, call, EINVAL, RULE_MR_NO_PAGES, start);
	return 0;
}

/*
 * ibv_reg_mr_iova(3) allows any address, including 0. The kernel of a real adapter requires the same offset in the
 * page.
 */
static int mr_check_iova(struct hca *hca, const char *call, const void *addr, size_t length, uint64_t iova)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	if (iova && length > 0 - iova)
		return REFUSE(hca, call, EINVAL, RULE_MR_IOVA_WRAPS, iova, length);
	if (!((iova ^ (uintptr_t)addr) % page))
		return 0;
	if (hca_settings(hca)->profile == PROFILE_CONNECTX)
		return REFUSE(hca, call, EINVAL, RULE_MR_PAGE_OFFSET, iova, (uintptr_t)addr, page);
	LINT(profile_differs, hca, call, RULE_MR_PAGE_OFFSET);
	return 0;
}

static int mr_check_hugetlb(struct hca *hca, const char *call, const void *addr, unsigned int access)
{
	size_t page;

	if (!(access & IBV_ACCESS_ON_DEMAND) || !(access & IBV_ACCESS_HUGETLB))
		return 0;
	page = page_size_at(addr);
	if (page <= (size_t)sysconf(_SC_PAGESIZE))
		return REFUSE(hca, call, EINVAL, RULE_MR_NOT_HUGE, (uintptr_t)addr, page);
	return 0;
}

int mr_describe(struct hca *hca, const char *call, void *addr, size_t length, uint64_t iova, unsigned int access,
		struct hca_mr_attr *attr)
{
	int error;

	attr->kind = access & IBV_ACCESS_ON_DEMAND ? MR_ON_DEMAND : MR_MEMORY;
	attr->addr = addr;
	attr->length = length;
	attr->start = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	attr->access = access;
	if (attr->kind == MR_ON_DEMAND && !addr && length == SIZE_MAX) {
		attr->kind = MR_IMPLICIT;
		return mr_check_implicit(hca, call, iova, access);
	}
	error = mr_check_range(hca, call, addr, length);
	if (!error && !(access & IBV_ACCESS_ZERO_BASED))
		error = mr_check_iova(hca, call, addr, length, iova);
	if (!error)
		error = mr_check_hugetlb(hca, call, addr, access);
	return error;
}
