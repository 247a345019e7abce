/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 330 to 357: memory regions, buffers, re-registration of regions, and advice on them. */
#include "kernel_has.h"
#include "rule_cases.h"

#include "abi/undeclared.h"

#include <sys/mman.h>

enum { PAGE = 4096, NO_ACCESS_FLAG = 1 << 12 };

/* Expects ibv_reg_mr(3) to fail. */
static void registration_fails(void *addr, size_t length, unsigned int access, int error)
{
	errno = 0;
	assert_null(ibv_reg_mr(client.pd, addr, length, access));
	expect_error(errno, error);
}

static void rereg_fails(struct ibv_mr *mr, int flags, void *addr, size_t length, int access, int result)
{
	errno = 0;
	assert_int_equal(ibv_rereg_mr(mr, flags, client.pd, addr, length, access), result);
	expect_error(errno, EINVAL);
}

static uint8_t *map_pages(size_t pages, int protection)
{
	uint8_t *memory = mmap(NULL, pages * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

RULE_CASE(MR_ACCESS_UNKNOWN)
{
	registration_fails(client.memory, 64, IBV_ACCESS_LOCAL_WRITE | NO_ACCESS_FLAG, EINVAL);
	expect_refusal(MR_ACCESS_UNKNOWN, "ibv_reg_mr → EINVAL: access flags 0x1000 are not defined");
}

RULE_CASE(MR_ACCESS_LOCAL_WRITE)
{
	registration_fails(client.memory, 64, IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
	expect_refusal(MR_ACCESS_LOCAL_WRITE,
		       "ibv_reg_mr → EINVAL: access is REMOTE_ATOMIC: remote write and atomics need local write");
}

RULE_CASE(MR_RANGE_WRAPS)
{
	registration_fails(client.memory, SIZE_MAX - 64, 0, EINVAL);
	expect_refusal(MR_RANGE_WRAPS,
		       "ibv_reg_mr → EINVAL: [0x%" PRIxPTR ", +0xffffffffffffffbf) leaves the address space",
		       (uintptr_t)client.memory);
}

RULE_CASE(MR_NO_PAGES)
{
	uint8_t *memory = map_pages(1, PROT_READ);

	registration_fails(memory, 0, 0, EINVAL);
	expect_refusal(MR_NO_PAGES, "ibv_reg_mr → EINVAL: a region of length 0 at 0x%" PRIxPTR " covers no page",
		       (uintptr_t)memory);
	munmap(memory, PAGE);
}

RULE_CASE(MR_IMPLICIT_IOVA)
{
	errno = 0;
	assert_null(ibv_reg_mr_iova(client.pd, NULL, SIZE_MAX, 0x5000, IBV_ACCESS_ON_DEMAND));
	expect_error(errno, EINVAL);
	expect_refusal(
		MR_IMPLICIT_IOVA,
		"ibv_reg_mr_iova → EINVAL: an implicit on-demand region cannot have another address: iova is 0x5000");
}

RULE_CASE(MR_IMPLICIT_HUGETLB)
{
	registration_fails(NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB, EINVAL);
	expect_refusal(MR_IMPLICIT_HUGETLB,
		       "ibv_reg_mr → EINVAL: IBV_ACCESS_HUGETLB is for explicit on-demand regions only");
}

RULE_CASE(MR_NOT_HUGE)
{
	registration_fails(client.memory, 64, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB, EINVAL);
	expect_refusal(MR_NOT_HUGE,
		       "ibv_reg_mr → EINVAL: IBV_ACCESS_HUGETLB promises huge pages, but the pages at 0x%" PRIxPTR
		       " have 4096 bytes",
		       (uintptr_t)client.memory);
}

RULE_CASE(MR_PAGE_OFFSET, .profile = "connectx")
{
	errno = 0;
	assert_null(ibv_reg_mr_iova(client.pd, client.memory, 64, 0x10008, 0));
	expect_error(errno, EINVAL);
	expect_refusal(MR_PAGE_OFFSET,
		       "ibv_reg_mr_iova → EINVAL: iova 0x10008 and address 0x%" PRIxPTR
		       " have different offsets in their pages of 4096 bytes",
		       (uintptr_t)client.memory);
}

RULE_CASE(MR_IOVA_WRAPS)
{
	errno = 0;
	assert_null(ibv_reg_mr_iova(client.pd, client.memory, 2 * PAGE, 0xfffffffffffff000, 0));
	expect_error(errno, EINVAL);
	expect_refusal(
		MR_IOVA_WRAPS,
		"ibv_reg_mr_iova → EINVAL: [0xfffffffffffff000, +0x2000) as the region's addresses is beyond the 64-bit address space");
}

RULE_CASE(MR_NOT_MAPPED)
{
	if (!kernel_has_page_checks())
		skip();
	uint8_t *memory = map_pages(1, PROT_READ);

	registration_fails(memory, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, EFAULT);
	expect_refusal(MR_NOT_MAPPED,
		       "ibv_reg_mr → EFAULT: [0x%" PRIxPTR
		       ", +0x1000) is not mapped as a whole, or does not permit LOCAL_WRITE|REMOTE_READ",
		       (uintptr_t)memory);
	munmap(memory, PAGE);
}

RULE_CASE(REREG_IMPORTED)
{
	struct ibv_mr *mr = ibv_import_mr(client.pd, client.mr->handle);

	assert_non_null(mr);
	rereg_fails(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, 0, IBV_ACCESS_LOCAL_WRITE, IBV_REREG_MR_ERR_INPUT);
	expect_refusal(REREG_IMPORTED, "ibv_rereg_mr → EINVAL: key 0x%x was imported", mr->lkey);
	ibv_unimport_mr(mr);
}

RULE_CASE(REREG_KIND)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(client.pd);

	rereg_fails(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, 0, IBV_ACCESS_LOCAL_WRITE, IBV_REREG_MR_ERR_INPUT);
	expect_refusal(REREG_KIND, "ibv_rereg_mr → EINVAL: key 0x%x belongs to device memory or to a null region",
		       mr->lkey);
	expect_error(ibv_dereg_mr(mr), 0);
}

RULE_CASE(REREG_FLAGS)
{
	struct ibv_mr *mr = side_register(&client, 0, 64, 0);

	rereg_fails(mr, 0x40, NULL, 0, 0, IBV_REREG_MR_ERR_INPUT);
	expect_refusal(REREG_FLAGS, "ibv_rereg_mr → EINVAL: flags 0x40 has bits outside of 0x7");
}

RULE_CASE(REREG_TRANSLATION)
{
	struct ibv_mr *mr = side_register(&client, 0, 64, 0);

	rereg_fails(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, 64, 0, IBV_REREG_MR_ERR_INPUT);
	expect_refusal(REREG_TRANSLATION,
		       "ibv_rereg_mr → EINVAL: the translation is to change to [0x0, +64), which names no memory");
}

RULE_CASE(REREG_ACCESS)
{
	struct ibv_mr *mr = side_register(&client, 0, 64, 0);

	rereg_fails(mr, IBV_REREG_MR_CHANGE_PD, NULL, 0, IBV_ACCESS_LOCAL_WRITE, IBV_REREG_MR_ERR_INPUT);
	expect_refusal(REREG_ACCESS,
		       "ibv_rereg_mr → EINVAL: access LOCAL_WRITE is passed without IBV_REREG_MR_CHANGE_ACCESS");
}

RULE_CASE(REREG_NOTHING)
{
	struct ibv_mr *mr = side_register(&client, 0, 64, 0);

	rereg_fails(mr, 0, NULL, 0, 0, IBV_REREG_MR_ERR_CMD);
	expect_refusal(REREG_NOTHING, "ibv_rereg_mr → EINVAL: flags is 0: no change is requested");
}

static int advise(enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge sge)
{
	return ibv_advise_mr(client.pd, advice, flags, &sge, 1);
}

RULE_CASE(ADVISE_FLAGS)
{
	expect_error(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 6, side_sge(&client, 0, 64)), EINVAL);
	expect_refusal(ADVISE_FLAGS, "ibv_advise_mr → EINVAL: flags 0x6 has bits outside of 0x1");
}

RULE_CASE(ADVISE_UNKNOWN)
{
	expect_error(advise(77, 0, side_sge(&client, 0, 64)), EOPNOTSUPP);
	expect_refusal(ADVISE_UNKNOWN, "ibv_advise_mr → EOPNOTSUPP: advice 77 is not defined");
}

RULE_CASE(ADVISE_EMPTY)
{
	expect_error(ibv_advise_mr(client.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0), EINVAL);
	expect_refusal(ADVISE_EMPTY, "ibv_advise_mr → EINVAL: the list of ranges is empty");
}

RULE_CASE(ADVISE_NO_KEY)
{
	expect_error(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, side_sge(&client, 0, 64)), ENOENT);
	expect_refusal(ADVISE_NO_KEY, "ibv_advise_mr → ENOENT: lkey 0x%x does not belong to an on-demand region",
		       client.mr->lkey);
}

RULE_CASE(ADVISE_NOT_MR)
{
	struct ibv_mw *mw = side_alloc_mw(&client, IBV_MW_TYPE_1);
	struct ibv_sge sge = {.lkey = mw->rkey, .length = 64};

	expect_error(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge), EINVAL);
	expect_refusal(ADVISE_NOT_MR, "ibv_advise_mr → EINVAL: lkey 0x%x belongs to a window or an indirect key",
		       mw->rkey);
}

RULE_CASE(ADVISE_PERMISSION)
{
	struct ibv_mr *mr = side_register(&client, 0, PAGE, IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge = {.addr = side_address(&client, 0), .length = 64, .lkey = mr->lkey};
	struct mlx5dv_pd out = {0};
	struct mlx5dv_obj object = {.pd = {.in = client.pd, .out = &out}};

	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_PD), 0);
	expect_error(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, sge), EPERM);
	expect_refusal(
		ADVISE_PERMISSION,
		"ibv_advise_mr → EPERM: the region of lkey 0x%x is not in domain 0x%x, or does not permit writing, which the advice requires",
		mr->lkey, out.pdn);
}

RULE_CASE(ADVISE_RANGE)
{
	struct ibv_mr *mr = side_register(&client, 0, PAGE, IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge = {.addr = side_address(&client, 64), .length = PAGE, .lkey = mr->lkey};

	expect_error(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge), EFAULT);
	expect_refusal(ADVISE_RANGE,
		       "ibv_advise_mr → EFAULT: [0x%" PRIx64
		       ", +0x1000) is not inside of the region of lkey 0x%x, or not mapped",
		       side_address(&client, 64), mr->lkey);
}

RULE_CASE(BUF_DOMAIN)
{
	struct ibv_pd *other = ibv_alloc_pd(client.context);
	struct ibv_buf *buf;
	uint8_t *memory = ibv_alloc_buf(other, PAGE, &buf);

	assert_non_null(memory);
	errno = 0;
	assert_null(ibv_reg_buf_mr(client.pd, buf, memory, PAGE, 0));
	expect_error(errno, EINVAL);
	expect_refusal(BUF_DOMAIN,
		       "ibv_reg_buf_mr → EINVAL: the buffer at 0x%" PRIxPTR
		       " was allocated from another protection domain",
		       (uintptr_t)memory);
	ibv_free_buf(buf);
	expect_error(ibv_dealloc_pd(other), 0);
}

RULE_CASE(BUF_RANGE)
{
	struct ibv_buf *buf;
	uint8_t *memory = ibv_alloc_buf(client.pd, PAGE, &buf);

	assert_non_null(memory);
	errno = 0;
	assert_null(ibv_reg_buf_mr(client.pd, buf, memory + 1, PAGE, 0));
	expect_error(errno, EINVAL);
	expect_refusal(BUF_RANGE,
		       "ibv_reg_buf_mr → EINVAL: [0x%" PRIxPTR ", +4096) is not within the buffer [0x%" PRIxPTR
		       ", +4096)",
		       (uintptr_t)memory + 1, (uintptr_t)memory);
	ibv_free_buf(buf);
}

RULE_CASE(MR_FIELDS)
{
	/* length, access, comp_mask, and members that no bit selects */
	const uint64_t attr[9] = {PAGE, 0, 0};

	errno = 0;
	assert_null(ibv_reg_mr_ex(client.pd, (struct ibv_mr_init_attr *)attr));
	expect_error(errno, EINVAL);
	expect_refusal(MR_FIELDS, "ibv_reg_mr_ex → EINVAL: comp_mask 0x0 does not select one kind of memory");
}
