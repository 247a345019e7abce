/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_reg_mr(3), ibv_rereg_mr(3), ibv_advise_mr(3), ibv_alloc_null_mr(3), ibv_alloc_mw(3) and related calls: what they
 * accept and which errors they return. Other tests check with traffic what the keys allow.
 */
#include "kernel_has.h"
#include "support/objects.h"

#include <sys/mman.h>

#define PAGE 4096
#define LW IBV_ACCESS_LOCAL_WRITE

/*
 * Four readable and writable pages. The page after them is inaccessible and stays reserved: an unmapped page could be
 * reused by another mapping.
 */
static char *pages;

static int pages_map(void **state)
{
	(void)state;
	pages = mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return pages == MAP_FAILED || mprotect(pages + 4 * PAGE, PAGE, PROT_NONE);
}

static int pages_unmap(void **state)
{
	(void)state;
	return munmap(pages, 5 * PAGE);
}

static void accept(struct ibv_mr *mr)
{
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

TEST(region_describes_itself)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, pages + 100, 200, LW), *other;

	assert_non_null(mr);
	assert_ptr_equal(mr->context, context);
	assert_ptr_equal(mr->pd, pd);
	assert_ptr_equal(mr->addr, pages + 100);
	assert_int_equal(mr->length, 200);
	assert_int_equal(mr->lkey, mr->rkey);
	other = ibv_reg_mr(pd, pages + 100, 200, LW);
	assert_non_null(other);
	assert_int_not_equal(mr->lkey >> 8, other->lkey >> 8);
	assert_int_not_equal(mr->handle, other->handle);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dereg_mr(other), 0);
}

/* ibv_reg_mr(3): remote write and atomics need local write; every other set of known flags is accepted. */
TEST(access_flags)
{
	const int known = 0x7f & ~IBV_ACCESS_ON_DEMAND;

	for (int access = 0; access <= known; access++) {
		int remote_change = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

		if (access & ~known)
			continue;
		if (access & remote_change && !(access & LW))
			expect_null(ibv_reg_mr(pd, pages, PAGE, access), EINVAL);
		else
			accept(ibv_reg_mr(pd, pages, PAGE, access));
	}
	for (int bit = 8; bit < 32; bit++) {
		unsigned int access = LW | 1u << bit;

		if (access & IBV_ACCESS_OPTIONAL_RANGE)
			accept(ibv_reg_mr_iova2(pd, pages, PAGE, (uintptr_t)pages, access));
		else
			expect_null(ibv_reg_mr_iova2(pd, pages, PAGE, (uintptr_t)pages, access), EINVAL);
	}
	accept(ibv_reg_mr(pd, pages, PAGE, LW | IBV_ACCESS_RELAXED_ORDERING));
}

TEST(memory_must_be_there)
{
	if (!kernel_has_page_checks())
		skip();
	accept(ibv_reg_mr(pd, pages, 4 * PAGE, LW));
	expect_null(ibv_reg_mr(pd, pages, 4 * PAGE + 1, LW), EFAULT);
	expect_null(ibv_reg_mr(pd, pages + 4 * PAGE, 1, 0), EFAULT);
	expect_null(ibv_reg_mr(pd, NULL, 1, 0), EFAULT);
	/* The permissions of an on-demand region are checked on access. */
	accept(ibv_reg_mr(pd, pages, 5 * PAGE, LW | IBV_ACCESS_ON_DEMAND));
}

TEST(memory_must_be_writable_for_local_write)
{
	if (!kernel_has_page_checks())
		skip();
	assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_READ), 0);
	expect_null(ibv_reg_mr(pd, pages, 2 * PAGE, LW), EFAULT);
	accept(ibv_reg_mr(pd, pages, 2 * PAGE, IBV_ACCESS_REMOTE_READ));
	assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
}

/* Registration faults pages in, as with a real adapter, and does not change their contents. */
TEST(registration_keeps_the_contents)
{
	struct ibv_mr *mr;

	memset(pages, 0x5a, 4 * PAGE);
	mr = ibv_reg_mr(pd, pages + 1, 4 * PAGE - 2, LW);
	assert_non_null(mr);
	for (int i = 0; i < 4 * PAGE; i++)
		assert_int_equal(pages[i], 0x5a);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

TEST(ranges_at_the_end_of_the_address_space)
{
	expect_null(ibv_reg_mr(pd, pages, SIZE_MAX, LW), EINVAL);
	expect_null(ibv_reg_mr(pd, pages, SIZE_MAX - (uintptr_t)pages, LW), EINVAL);
	expect_null(ibv_reg_mr(pd, (void *)UINTPTR_MAX, 1, 0), EINVAL);
	expect_null(ibv_reg_mr(pd, (void *)(UINTPTR_MAX - PAGE + 1), 1, IBV_ACCESS_ON_DEMAND), EINVAL);
	expect_null(ibv_reg_mr(pd, NULL, SIZE_MAX, LW), EINVAL); /* implicit only with ON_DEMAND */
	expect_null(ibv_reg_mr(pd, pages, SIZE_MAX, LW | IBV_ACCESS_ON_DEMAND), EINVAL);
	expect_null(ibv_reg_mr_iova(pd, pages, PAGE, UINT64_MAX - PAGE + 2, LW), EINVAL);
	accept(ibv_reg_mr_iova(pd, pages, PAGE, UINT64_MAX - PAGE + 1, LW));
}

/* The kernel counts pages: a range of length 0 covers one only if its address is not page-aligned. */
TEST(length_zero)
{
	expect_null(ibv_reg_mr(pd, pages, 0, LW), EINVAL);
	accept(ibv_reg_mr(pd, pages + 1, 0, LW));
}

/* ibv_reg_mr_iova(3): the first byte can have any address; 0 is as with IBV_ACCESS_ZERO_BASED. */
TEST(other_addresses_for_the_first_byte)
{
	accept(ibv_reg_mr_iova(pd, pages, PAGE, 0, LW));
	accept(ibv_reg_mr_iova(pd, pages + 8, 100, 0, LW));
	accept(ibv_reg_mr_iova(pd, pages + 8, 100, 0x1000000000003, LW));
	accept(ibv_reg_mr(pd, pages + 8, 100, LW | IBV_ACCESS_ZERO_BASED));
}

TEST(implicit_on_demand)
{
	const int access = LW | IBV_ACCESS_ON_DEMAND;

	accept(ibv_reg_mr(pd, NULL, SIZE_MAX, access));
	accept(ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND));
	expect_null(ibv_reg_mr_iova(pd, NULL, SIZE_MAX, PAGE, access), EINVAL);
	expect_null(ibv_reg_mr(pd, NULL, SIZE_MAX, access | IBV_ACCESS_HUGETLB), EINVAL);
	expect_null(ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_WRITE), EINVAL);
}

/* ibv_reg_mr(3): IBV_ACCESS_HUGETLB applies to explicit on-demand regions of huge pages; otherwise it is ignored. */
TEST(huge_pages_that_are_none)
{
	expect_null(ibv_reg_mr(pd, pages, PAGE, LW | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB), EINVAL);
	accept(ibv_reg_mr(pd, pages, PAGE, LW | IBV_ACCESS_HUGETLB));
}

TEST(null_region)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(pd);

	assert_non_null(mr);
	assert_null(mr->addr);
	assert_true(mr->length == SIZE_MAX);
	assert_int_not_equal(mr->lkey, 0);
	assert_int_equal(mr->rkey, 0); /* "not exposed as an rkey" */
	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

TEST(a_region_keeps_its_pd)
{
	struct ibv_pd *domain = ibv_alloc_pd(context);
	struct ibv_mr *mr = ibv_reg_mr(domain, pages, PAGE, LW);

	assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

/* libmlx5 does not pass null regions to the kernel, so the kernel deallocates their PD. */
TEST(a_null_region_leaves_its_pd)
{
	struct ibv_pd *domain = ibv_alloc_pd(context);
	struct ibv_mr *mr = ibv_alloc_null_mr(domain);

	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* ---- ibv_rereg_mr(3) ----------------------------------------------------------------------------------- */

enum {
	TRANSLATION = IBV_REREG_MR_CHANGE_TRANSLATION,
	DOMAIN = IBV_REREG_MR_CHANGE_PD,
	ACCESS = IBV_REREG_MR_CHANGE_ACCESS,
};

/* A pointer that must not be dereferenced. */
#define GARBAGE ((struct ibv_pd *)0x6d37e7)

TEST(every_combination_of_changes)
{
	struct ibv_pd *domain = ibv_alloc_pd(context);

	for (int flags = 1; flags < 8; flags++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, pages, PAGE, LW);
		uint32_t lkey = mr->lkey;

		assert_int_equal(ibv_rereg_mr(mr, flags, flags & DOMAIN ? domain : GARBAGE,
					      flags & TRANSLATION ? pages + PAGE : (void *)1,
					      flags & TRANSLATION ? 2 * PAGE : 17,
					      flags & ACCESS ? LW | IBV_ACCESS_REMOTE_READ : 0),
				 0);
		assert_int_equal(mr->lkey, lkey);
		assert_int_equal(mr->rkey, lkey);
		assert_ptr_equal(mr->pd, flags & DOMAIN ? domain : pd);
		assert_ptr_equal(mr->addr, flags & TRANSLATION ? pages + PAGE : pages);
		assert_int_equal(mr->length, flags & TRANSLATION ? 2 * PAGE : PAGE);
		assert_int_equal(ibv_dealloc_pd(flags & DOMAIN ? domain : pd), EBUSY);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

TEST(changing_the_pd_frees_the_old_one)
{
	struct ibv_pd *domain = ibv_alloc_pd(context);
	struct ibv_mr *mr = ibv_reg_mr(domain, pages, PAGE, LW);

	assert_int_equal(ibv_rereg_mr(mr, DOMAIN, pd, NULL, 0, 0), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* Errors that libibverbs itself returns: IBV_REREG_MR_ERR_INPUT, "old MR is valid". */
TEST(input_errors)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, pages, PAGE, LW);

	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr, 8, pd, pages, PAGE, LW), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_rereg_mr(mr, -1, pd, pages, PAGE, LW), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, TRANSLATION, NULL, NULL, PAGE, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, TRANSLATION, NULL, pages, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, TRANSLATION, NULL, pages, PAGE, LW), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, DOMAIN, pd, NULL, 0, LW), IBV_REREG_MR_ERR_INPUT);
	assert_ptr_equal(mr->addr, pages);
	assert_int_equal(mr->length, PAGE);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* Errors that the kernel would return: IBV_REREG_MR_ERR_CMD with errno. */
TEST(command_errors)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, pages, PAGE, LW);

	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr, 0, GARBAGE, NULL, 0, 0), IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr, ACCESS, GARBAGE, NULL, 0, IBV_ACCESS_REMOTE_WRITE), IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, EINVAL);
	if (kernel_has_page_checks()) {
		errno = 0;
		assert_int_equal(ibv_rereg_mr(mr, TRANSLATION, GARBAGE, pages, 5 * PAGE, 0), IBV_REREG_MR_ERR_CMD);
		assert_int_equal(errno, EFAULT);
	}
	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr, TRANSLATION, GARBAGE, pages, SIZE_MAX, 0), IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, EINVAL);
	assert_ptr_equal(mr->addr, pages);
	assert_int_equal(mr->length, PAGE);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* Additional rights need memory with matching permissions. */
TEST(read_only_memory_does_not_become_writable)
{
	struct ibv_mr *mr;

	if (!kernel_has_page_checks())
		skip();
	assert_int_equal(mprotect(pages, PAGE, PROT_READ), 0);
	mr = ibv_reg_mr(pd, pages, PAGE, 0);
	assert_non_null(mr);
	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr, ACCESS, NULL, NULL, 0, LW), IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(mprotect(pages, PAGE, PROT_READ | PROT_WRITE), 0);
}

/* ---- ibv_advise_mr(3) ---------------------------------------------------------------------------------- */

static int advise(enum ibv_advise_mr_advice advice, uint32_t flags, uint32_t lkey, void *addr, uint32_t length)
{
	struct ibv_sge sge = {.addr = (uintptr_t)addr, .length = length, .lkey = lkey};

	return ibv_advise_mr(pd, advice, flags, &sge, 1);
}

TEST(prefetch_brings_pages_in)
{
	struct ibv_mr *mr, *all;
	unsigned char resident[4];

	if (!kernel_has_page_checks())
		skip();
	mr = ibv_reg_mr(pd, pages, 4 * PAGE, LW | IBV_ACCESS_ON_DEMAND);
	all = ibv_reg_mr(pd, NULL, SIZE_MAX, LW | IBV_ACCESS_ON_DEMAND);
	assert_int_equal(madvise(pages, 4 * PAGE, MADV_DONTNEED), 0);
	/* Only the two requested pages. */
	assert_int_equal(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, mr->lkey,
				pages + PAGE + 1, PAGE),
			 0);
	assert_int_equal(mincore(pages, 4 * PAGE, resident), 0);
	assert_int_equal(resident[0] & 1, 0);
	assert_int_equal(resident[1] & 1, 1);
	assert_int_equal(resident[2] & 1, 1);
	assert_int_equal(resident[3] & 1, 0);
	assert_int_equal(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, all->lkey,
				pages + 3 * PAGE, PAGE),
			 0);
	assert_int_equal(mincore(pages, 4 * PAGE, resident), 0);
	assert_int_equal(resident[3] & 1, 1);
	assert_int_equal(
		advise(IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, IBV_ADVISE_MR_FLAG_FLUSH, mr->lkey, pages, PAGE), 0);
	assert_int_equal(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, mr->lkey, pages, PAGE), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dereg_mr(all), 0);
}

TEST(advice_that_is_refused)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, pages, 4 * PAGE, LW | IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *whole = ibv_reg_mr(pd, pages, 5 * PAGE, IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *pinned = ibv_reg_mr(pd, pages, PAGE, LW);
	struct ibv_pd *domain = ibv_alloc_pd(context);
	struct ibv_mr *foreign = ibv_reg_mr(domain, pages, PAGE, LW | IBV_ACCESS_ON_DEMAND);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	const enum ibv_advise_mr_advice prefetch = IBV_ADVISE_MR_ADVICE_PREFETCH;
	const uint32_t flush = IBV_ADVISE_MR_FLAG_FLUSH;

	assert_int_equal(advise(prefetch, 2, mr->lkey, pages, PAGE), EINVAL);
	assert_int_equal(advise(3, flush, mr->lkey, pages, PAGE), EOPNOTSUPP);
	assert_int_equal(ibv_advise_mr(pd, prefetch, flush, NULL, 0), EINVAL);
	assert_int_equal(advise(prefetch, flush, mr->lkey + 1, pages, PAGE), ENOENT);
	assert_int_equal(advise(prefetch, flush, pinned->lkey, pages, PAGE), ENOENT);
	assert_int_equal(advise(prefetch, flush, mw->rkey, pages, PAGE), EINVAL);
	assert_int_equal(advise(prefetch, flush, foreign->lkey, pages, PAGE), EPERM);
	assert_int_equal(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, flush, whole->lkey, pages, PAGE), EPERM);
	assert_int_equal(advise(prefetch, flush, mr->lkey, pages, 4 * PAGE + 1), EFAULT);
	assert_int_equal(advise(prefetch, flush, mr->lkey, pages - 1, 1), EFAULT);
	assert_int_equal(advise(prefetch, flush, mr->lkey, (void *)UINTPTR_MAX, UINT32_MAX), EFAULT);
	if (kernel_has_page_checks())
		assert_int_equal(advise(prefetch, flush, whole->lkey, pages + 4 * PAGE, 1), EFAULT);
	/* Without the flush flag, pages may be fetched later or not at all, so missing ones are not reported. */
	assert_int_equal(advise(prefetch, 0, whole->lkey, pages + 4 * PAGE, 1), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(foreign), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	assert_int_equal(ibv_dereg_mr(pinned), 0);
	assert_int_equal(ibv_dereg_mr(whole), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* ---- ibv_alloc_mw(3) ----------------------------------------------------------------------------------- */

TEST(windows_of_both_types)
{
	struct ibv_pd *domain = ibv_alloc_pd(context);

	for (int type = 0; type < 5; type++) {
		struct ibv_mw *mw;

		if (type != 1 && type != 2) {
			expect_null(ibv_alloc_mw(domain, type), EINVAL);
			continue;
		}
		mw = ibv_alloc_mw(domain, type);
		assert_non_null(mw);
		assert_int_equal(mw->type, type);
		assert_ptr_equal(mw->pd, domain);
		assert_ptr_equal(mw->context, context);
		assert_int_not_equal(mw->rkey, 0);
		assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
		assert_int_equal(ibv_dealloc_mw(mw), 0);
	}
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

int main(void)
{
	return run_cases(.setup = pages_map, .teardown = pages_unmap, .group_setup = objects_open,
			 .group_teardown = objects_close);
}
