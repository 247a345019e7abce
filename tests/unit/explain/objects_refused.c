/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each rule of explain/rules_objects.def is broken once: the record contains the call, the errno value, the rule and
 * the figures. The last test checks that every rule is covered.
 */
#include <arpa/inet.h>
#include "test_case.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "../support/given_routes.h"
#include "abi/entry_points.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "hca/hca.h"
#include "kernel_has.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"

#define PAGE 4096
#define LW IBV_ACCESS_LOCAL_WRITE
#define ODP IBV_ACCESS_ON_DEMAND

static struct hca *hca;
static struct ibv_context *context;
static struct ibv_pd *pd;
static char *page;
static bool seen[1000];

static int setup(void **state)
{
	struct ibv_device **list = softhca_ibv_get_device_list(NULL);

	(void)state;
	hca = hca_device(0);
	context = softhca_ibv_open_device(list[0]);
	softhca_ibv_free_device_list(list);
	pd = softhca_ibv_alloc_pd(context);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return hca && pd && page != MAP_FAILED ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	munmap(page, PAGE);
	return softhca_ibv_dealloc_pd(pd) || softhca_ibv_close_device(context);
}

/* Checks that the last record is of @call, which failed with @error by @rule, and that its text contains @figures. */
static void expect(const char *call, int error, enum explain_rule rule, const char *figures, ...)
{
	char wanted[200], text[1000];
	struct explain_record record;
	va_list args;

	va_start(args, figures);
	vsnprintf(wanted, sizeof(wanted), figures, args);
	va_end(args);
	assert_int_equal(explain_previous(hca, 0, 0, &record), 1);
	explain_render(hca_name(hca), &record, text, sizeof(text));
	if (record.rule != rule || !record.subject.call || strcmp(record.subject.call, call) != 0 ||
	    record.subject.error != error || !strstr(text, wanted))
		fail_msg("expected %s, errno %d, rule %d, \"%s\"; the record says: %s", call, error, rule, wanted,
			 text);
	seen[rule] = true;
}

/* For calls that return NULL, and for calls that return an errno value. */
#define NULL_BY(rule, call, name, error, ...)                                                                          \
	do {                                                                                                           \
		errno = 0;                                                                                             \
		assert_null(call);                                                                                     \
		assert_int_equal(errno, error);                                                                        \
		expect(name, error, RULE_##rule, __VA_ARGS__);                                                         \
	} while (0)
#define ERRNO_BY(rule, call, name, error, ...)                                                                         \
	do {                                                                                                           \
		assert_int_equal(call, error);                                                                         \
		expect(name, error, RULE_##rule, __VA_ARGS__);                                                         \
	} while (0)

TEST(queries)
{
	struct ibv_gid_entry entry;
	struct ibv_device_attr_ex device;
	struct ibv_port_attr port;
	struct ibv_values_ex values = {.comp_mask = 6};
	__be16 pkey;

	ERRNO_BY(PORT_NUMBER, softhca_ibv_query_port_ex(context, 7, &port, sizeof(port)), "ibv_query_port", EINVAL,
		 "port 7 does not exist: the device has ports 1 to 1");
	ERRNO_BY(GID_INDEX, softhca__ibv_query_gid_ex(context, 1, 64, &entry, 0, sizeof(entry)), "ibv_query_gid_ex",
		 EINVAL, "index 64");
	assert_int_equal(softhca_ibv_query_gid(context, 1, -1, &entry.gid), -1);
	expect("ibv_query_gid", EINVAL, RULE_GID_INDEX, "index -1 is outside of the table, which has 64");
	assert_int_equal(softhca__ibv_query_gid_table(context, &entry, 1, 0, sizeof(entry)), -EINVAL);
	expect("ibv_query_gid_table", EINVAL, RULE_GID_TABLE_ROOM, "room for 1 entries, but the table has 4");
	ERRNO_BY(QUERY_FLAGS, softhca__ibv_query_gid_ex(context, 1, 0, &entry, 0x10, sizeof(entry)), "ibv_query_gid_ex",
		 EINVAL, "flags 0x10");
	assert_int_equal(softhca_ibv_query_pkey(context, 1, 3, &pkey), -1);
	expect("ibv_query_pkey", EINVAL, RULE_PKEY_INDEX, "index 3 is outside of the table, which has 1");
	assert_int_equal(softhca_ibv_get_pkey_index(context, 1, htons(0x1234)), -1);
	expect("ibv_get_pkey_index", EINVAL, RULE_PKEY_UNKNOWN, "0x1234");
	ERRNO_BY(QUERY_DEVICE_SIZE, softhca_ibv_query_device_ex(context, NULL, &device, 8), "ibv_query_device_ex",
		 EINVAL, "has 8 bytes and must have at least %zu", sizeof(device.orig_attr));
	ERRNO_BY(COMP_MASK, softhca_ibv_query_rt_values(context, &values), "ibv_query_rt_values_ex", EINVAL,
		 "comp_mask 0x6 has bits outside of 0x1");
}

TEST(contexts)
{
	struct ibv_context *second = softhca_ibv_import_device(dup(context->cmd_fd));
	struct ibv_pd *domain = softhca_ibv_alloc_pd(second), *import;
	struct ibv_mr *mr = softhca_ibv_reg_mr(domain, page, PAGE, LW);

	assert_int_equal(softhca_ibv_close_device(second), 0);
	expect("ibv_close_device", 0, RULE_CONTEXT_IN_USE, "objects of the context still exist");
	NULL_BY(IMPORT_DESCRIPTOR, softhca_ibv_import_device(0), "ibv_import_device", ENODEV, "descriptor 0 ");
	NULL_BY(IMPORT_HANDLE, softhca_ibv_import_pd(context, 4711), "ibv_import_pd", ENOENT, "handle 4711");

	import = softhca_ibv_import_pd(context, domain->handle);
	ERRNO_BY(PD_IN_USE_ELSEWHERE, softhca_ibv_dealloc_pd(import), "ibv_dealloc_pd", EBUSY, "another import");
	assert_int_equal(softhca_ibv_dereg_mr(mr), 0);
	assert_int_equal(softhca_ibv_dealloc_pd(import), 0);
	ERRNO_BY(HANDLE_GONE, softhca_ibv_dealloc_pd(domain), "ibv_dealloc_pd", ENOENT, "handle %u", domain->handle);
	softhca_ibv_unimport_pd(domain);
	assert_int_equal(softhca_ibv_close_device(second), 0);
}

static void *no_memory(struct ibv_pd *domain, void *argument, size_t size, size_t alignment, uint64_t type)
{
	(void)domain, (void)argument, (void)size, (void)alignment, (void)type;
	return NULL;
}

static void no_free(struct ibv_pd *domain, void *argument, void *memory, uint64_t type)
{
	(void)domain, (void)argument, (void)memory, (void)type;
}

TEST(domains)
{
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_td *td = softhca_ibv_alloc_td(context, &td_attr);
	struct ibv_parent_domain_init_attr attr = {
		.td = td, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS, .alloc = no_memory, .free = no_free};
	struct ibv_pd *domain;

	NULL_BY(PARENT_DOMAIN_PD, softhca_ibv_alloc_parent_domain(context, &attr), "ibv_alloc_parent_domain", EINVAL,
		"pd is NULL");
	attr.pd = pd;
	domain = softhca_ibv_alloc_parent_domain(context, &attr);
	ERRNO_BY(PD_IN_USE, softhca_ibv_dealloc_pd(pd), "ibv_dealloc_pd", EBUSY, "1 parent domain");
	ERRNO_BY(TD_IN_USE, softhca_ibv_dealloc_td(td), "ibv_dealloc_td", EBUSY, "1 parent domains");
	NULL_BY(ALLOCATOR_FAILED, ring_alloc(to_user_pd(domain), 12345, MLX5DV_RES_TYPE_QP),
		"ibv_parent_domain_init_attr.alloc", ENOMEM, "12345 bytes");
	assert_int_equal(softhca_ibv_dealloc_pd(domain), 0);
	assert_int_equal(softhca_ibv_dealloc_td(td), 0);
}

TEST(regions)
{
	const char reg[] = "ibv_reg_mr", iova[] = "ibv_reg_mr_iova";

	NULL_BY(MR_ACCESS_UNKNOWN, softhca_ibv_reg_mr(pd, page, PAGE, 0x100 | LW), reg, EINVAL, "0x100 ");
	NULL_BY(MR_ACCESS_LOCAL_WRITE, softhca_ibv_reg_mr(pd, page, PAGE, IBV_ACCESS_REMOTE_ATOMIC), reg, EINVAL,
		"need local write");
	NULL_BY(MR_RANGE_WRAPS, softhca_ibv_reg_mr(pd, page, SIZE_MAX, LW), reg, EINVAL, "[%p, +0x%zx)", page,
		SIZE_MAX);
	NULL_BY(MR_NO_PAGES, softhca_ibv_reg_mr(pd, page, 0, LW), reg, EINVAL, "length 0 at %p", page);
	NULL_BY(MR_IMPLICIT_IOVA, softhca_ibv_reg_mr_iova(pd, NULL, SIZE_MAX, PAGE, ODP), iova, EINVAL, "0x1000");
	NULL_BY(MR_IMPLICIT_HUGETLB, softhca_ibv_reg_mr(pd, NULL, SIZE_MAX, ODP | IBV_ACCESS_HUGETLB), reg, EINVAL,
		"explicit");
	NULL_BY(MR_NOT_HUGE, softhca_ibv_reg_mr(pd, page, PAGE, ODP | IBV_ACCESS_HUGETLB), reg, EINVAL,
		"at %p have 4096 bytes", page);
	NULL_BY(MR_IOVA_WRAPS, softhca_ibv_reg_mr_iova(pd, page, PAGE, UINT64_MAX - 7, LW), iova, EINVAL,
		"[0xfffffffffffffff8, +0x1000)");
	if (kernel_has_page_checks())
		NULL_BY(MR_NOT_MAPPED, softhca_ibv_reg_mr(pd, NULL, PAGE, LW), reg, EFAULT,
			"[0x0, +0x1000) is not mapped");
	else
		seen[RULE_MR_NOT_MAPPED] = true;

	hca->settings.profile = PROFILE_CONNECTX;
	NULL_BY(MR_PAGE_OFFSET, softhca_ibv_reg_mr_iova(pd, page + 8, 8, 0, LW), iova, EINVAL,
		"iova 0x0 and address %p", page + 8);
	assert_int_equal(softhca_ibv_dereg_mr(softhca_ibv_reg_mr_iova(pd, page + 8, 8, 0x5008, LW)), 0);
	hca->settings.profile = PROFILE_MAN;
}

/* The table of keys is made so small that it fills up soon. */
TEST(too_many_regions)
{
	uint32_t limit = hca->keys.limit, wrap_limit = hca->keys.wrap_limit, count = 0;
	struct ibv_mr *mr[100];

	hca->keys.limit = hca->keys.fresh;
	hca->keys.wrap_limit = 0;
	do
		mr[count] = softhca_ibv_reg_mr(pd, page, PAGE, LW);
	while (mr[count] && ++count < 100);
	assert_in_range(count, 0, 99);
	assert_int_equal(errno, ENOMEM);
	expect("ibv_reg_mr", ENOMEM, RULE_MR_NO_ROOM, "all 16777216 keys exist");
	hca->keys.limit = limit;
	hca->keys.wrap_limit = wrap_limit;
	while (count)
		assert_int_equal(softhca_ibv_dereg_mr(mr[--count]), 0);
}

TEST(too_many_domains)
{
	uint32_t limit = hca->pds.limit, wrap_limit = hca->pds.wrap_limit, count = 0;
	struct ibv_pd *domain[100];

	hca->pds.limit = hca->pds.fresh;
	hca->pds.wrap_limit = 0;
	do
		domain[count] = softhca_ibv_alloc_pd(context);
	while (domain[count] && ++count < 100);
	assert_in_range(count, 0, 99);
	assert_int_equal(errno, ENOMEM);
	expect("ibv_alloc_pd", ENOMEM, RULE_PD_NO_ROOM, "all 8388608 exist");
	hca->pds.limit = limit;
	hca->pds.wrap_limit = wrap_limit;
	while (count)
		assert_int_equal(softhca_ibv_dealloc_pd(domain[--count]), 0);
}

/* ibv_rereg_mr(3) returns negative codes; errno is more specific. */
static void expect_rereg(struct ibv_mr *mr, int code, enum explain_rule rule, int flags, void *addr, size_t length,
			 int access)
{
	errno = 0;
	assert_int_equal(softhca_ibv_rereg_mr(mr, flags, pd, addr, length, access), code);
	assert_int_equal(errno, EINVAL);
	expect("ibv_rereg_mr", EINVAL, rule, "");
}

TEST(changes_of_regions)
{
	struct ibv_mr *mr = softhca_ibv_reg_mr(pd, page, PAGE, LW), *null = softhca_ibv_alloc_null_mr(pd);
	struct ibv_mr *imported = softhca_ibv_import_mr(pd, mr->handle);
	struct ibv_context *other = softhca_ibv_open_device(context->device);
	struct ibv_pd *foreign = softhca_ibv_alloc_pd(other);

	expect_rereg(null, IBV_REREG_MR_ERR_INPUT, RULE_REREG_KIND, IBV_REREG_MR_CHANGE_ACCESS, NULL, 0, 0);
	expect_rereg(imported, IBV_REREG_MR_ERR_INPUT, RULE_REREG_IMPORTED, IBV_REREG_MR_CHANGE_ACCESS, NULL, 0, 0);
	softhca_ibv_unimport_mr(imported);
	expect_rereg(mr, IBV_REREG_MR_ERR_INPUT, RULE_REREG_FLAGS, 8, NULL, 0, 0);
	expect_rereg(mr, IBV_REREG_MR_ERR_INPUT, RULE_REREG_TRANSLATION, IBV_REREG_MR_CHANGE_TRANSLATION, page, 0, 0);
	expect_rereg(mr, IBV_REREG_MR_ERR_INPUT, RULE_REREG_ACCESS, IBV_REREG_MR_CHANGE_PD, NULL, 0, LW);
	expect_rereg(mr, IBV_REREG_MR_ERR_CMD, RULE_REREG_NOTHING, 0, NULL, 0, 0);
	assert_int_equal(softhca_ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, foreign, NULL, 0, 0), IBV_REREG_MR_ERR_CMD);
	expect("ibv_rereg_mr", ENOENT, RULE_OBJECT_FOREIGN, "the PD at %p belongs to another context", (void *)foreign);
	assert_ptr_equal(mr->pd, pd);
	assert_int_equal(softhca_ibv_dealloc_pd(foreign), 0);
	assert_int_equal(softhca_ibv_close_device(other), 0);
	assert_int_equal(softhca_ibv_dereg_mr(mr), 0);
	assert_int_equal(softhca_ibv_dereg_mr(null), 0);
}

static int advise(enum ibv_advise_mr_advice advice, uint32_t flags, uint32_t lkey, uint32_t length, uint32_t count)
{
	struct ibv_sge sge = {.addr = (uintptr_t)page, .length = length, .lkey = lkey};

	return softhca_ibv_advise_mr(pd, advice, flags, &sge, count);
}

TEST(advice)
{
	struct ibv_mr *mr = softhca_ibv_reg_mr(pd, page, PAGE, ODP);
	struct ibv_mw *mw = softhca_ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	const char call[] = "ibv_advise_mr";

	ERRNO_BY(ADVISE_FLAGS, advise(0, 8, mr->lkey, 1, 1), call, EINVAL, "flags 0x8 has bits outside of 0x1");
	ERRNO_BY(ADVISE_UNKNOWN, advise(9, 0, mr->lkey, 1, 1), call, EOPNOTSUPP, "advice 9");
	ERRNO_BY(ADVISE_EMPTY, advise(0, 0, mr->lkey, 1, 0), call, EINVAL, "empty");
	ERRNO_BY(ADVISE_NO_KEY, advise(0, 0, 0x123456, 1, 1), call, ENOENT, "0x123456");
	ERRNO_BY(ADVISE_NOT_MR, advise(0, 0, mw->rkey, 1, 1), call, EINVAL, "lkey 0x%x", mw->rkey);
	ERRNO_BY(ADVISE_PERMISSION, advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, mr->lkey, 1, 1), call, EPERM,
		 "lkey 0x%x", mr->lkey);
	ERRNO_BY(ADVISE_RANGE, advise(0, 0, mr->lkey, PAGE + 1, 1), call, EFAULT, "[%p, +0x1001)", page);
	assert_int_equal(softhca_ibv_dealloc_mw(mw), 0);
	assert_int_equal(softhca_ibv_dereg_mr(mr), 0);
	NULL_BY(MW_TYPE, softhca_ibv_alloc_mw(pd, 3), "ibv_alloc_mw", EINVAL, "type 3");
}

TEST(device_memory)
{
	struct ibv_alloc_dm_attr attr = {.length = 64}, large = {.length = LIMIT_MAX_DM_SIZE + 1},
				 aligned = {.length = 4, .log_align_req = 30}, all = {.length = LIMIT_MAX_DM_SIZE};
	struct ibv_dm *dm = softhca_ibv_alloc_dm(context, &attr);
	struct ibv_context *other = softhca_ibv_open_device(context->device);
	struct ibv_pd *foreign = softhca_ibv_alloc_pd(other);
	struct ibv_mr *mr;

	NULL_BY(DM_LENGTH, softhca_ibv_alloc_dm(context, &large), "ibv_alloc_dm", EINVAL, "131073 bytes are requested");
	NULL_BY(DM_LOG_ALIGN, softhca_ibv_alloc_dm(context, &aligned), "ibv_alloc_dm", EINVAL, "2^30");
	NULL_BY(DM_FULL, softhca_ibv_alloc_dm(context, &all), "ibv_alloc_dm", ENOMEM, "131072 bytes have no");
	ERRNO_BY(DM_RANGE, dm->memcpy_to_dm(dm, 60, page, 8), "ibv_memcpy_to_dm", EFAULT,
		 "[60, +8) is outside of the 64");
	ERRNO_BY(DM_ALIGNMENT, dm->memcpy_from_dm(page, dm, 2, 8), "ibv_memcpy_from_dm", EINVAL,
		 "offset 2 and length 8 must be multiples of 4");
	NULL_BY(DM_MR_ACCESS, softhca_ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_MW_BIND), "ibv_reg_dm_mr", EINVAL,
		"device memory allows");
	NULL_BY(DM_MR_ZERO_BASED, softhca_ibv_reg_dm_mr(pd, dm, 0, 64, LW), "ibv_reg_dm_mr", EINVAL, "zero-based");
	NULL_BY(OBJECT_FOREIGN, softhca_ibv_reg_dm_mr(foreign, dm, 0, 64, IBV_ACCESS_ZERO_BASED), "ibv_reg_dm_mr",
		ENOENT, "the DM at %p belongs to another context", (void *)dm);
	assert_int_equal(softhca_ibv_dealloc_pd(foreign), 0);
	assert_int_equal(softhca_ibv_close_device(other), 0);
	mr = softhca_ibv_reg_dm_mr(pd, dm, 0, 64, LW | IBV_ACCESS_ZERO_BASED);
	ERRNO_BY(DM_IN_USE, softhca_ibv_free_dm(dm), "ibv_free_dm", EBUSY, "1 regions");
	assert_int_equal(softhca_ibv_dereg_mr(mr), 0);
	assert_int_equal(softhca_ibv_free_dm(dm), 0);
}

static int answer(const uint8_t *header)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_ah_attr attr;

	return softhca_ibv_init_ah_from_wc(context, 1, &wc, (struct ibv_grh *)(void *)header, &attr);
}

TEST(address_handles)
{
	struct ibv_ah_attr attr = {.port_num = 1};
	uint8_t header[40] = {0x60};
	const char call[] = "ibv_init_ah_from_wc";

	NULL_BY(AH_NO_GRH, softhca_ibv_create_ah(pd, &attr), "ibv_create_ah", EINVAL, "is_global is 0");
	attr.is_global = 1;
	attr.grh.sgid_index = 9;
	NULL_BY(GID_EMPTY, softhca_ibv_create_ah(pd, &attr), "ibv_create_ah", EINVAL, "index 9 is empty: the first 4");
	attr.grh.sgid_index = 3;
	NULL_BY(DESTINATION_FAMILY, softhca_ibv_create_ah(pd, &attr), "ibv_create_ah", EINVAL, "0x0:0x0 is zero, or");
	inet_pton(AF_INET6, "::ffff:192.0.2.77", attr.grh.dgid.raw);
	given_routes = (struct given_routes){.replaced = true, .error = -ENETUNREACH};
	NULL_BY(DESTINATION_NO_ROUTE, softhca_ibv_create_ah(pd, &attr), "ibv_create_ah", ENETUNREACH,
		"0x0:0xffffc000024d: ENETUNREACH");
	given_routes.error = 0;
	NULL_BY(DESTINATION_SILENT, softhca_ibv_create_ah(pd, &attr), "ibv_create_ah", ETIMEDOUT,
		"the link address of 0x0:0xffffc0000201 is not known");
	given_routes.replaced = false;
	inet_pton(AF_INET6, "2001:db8::1", attr.grh.dgid.raw);
	assert_int_equal(softhca_ibv_resolve_eth_l2_from_gid(context, &attr, header, NULL), -EHOSTUNREACH);
	expect("ibv_resolve_eth_l2_from_gid", EHOSTUNREACH, RULE_GID_NO_NEIGHBOUR, "0x20010db800000000:0x1");

	memset(header, 0, sizeof(header));
	header[20] = 0x70;
	assert_int_equal(answer(header), -1);
	expect(call, EPROTONOSUPPORT, RULE_WC_HEADER_VERSION, "version 7");
	header[0] = 0x60;
	header[6] = 6;
	assert_int_equal(answer(header), -1);
	expect(call, EPROTONOSUPPORT, RULE_WC_NEXT_HEADER, "next header 6 ");
	header[6] = 17;
	inet_pton(AF_INET6, "2001:db8::2", header + 24);
	assert_int_equal(answer(header), -1);
	expect(call, EINVAL, RULE_WC_GID_UNKNOWN, "0x20010db800000000:0x2");
	header[24] = 0xff;
	assert_int_equal(answer(header), -1);
	expect(call, EINVAL, RULE_WC_MULTICAST, "multicast");
}

/* api/objects_alive.c covers each kind of object in each call. */
TEST(objects)
{
	struct ibv_context *second = softhca_ibv_import_device(dup(context->cmd_fd));
	struct ibv_pd *own = softhca_ibv_alloc_pd(context), *import = softhca_ibv_import_pd(second, own->handle);
	uint32_t handle = own->handle;

	own->handle = handle ^ 0xdeadbeef;
	ERRNO_BY(OBJECT_HANDLE, softhca_ibv_dealloc_pd(own), "ibv_dealloc_pd", ENOENT, "the PD at %p was %u and is %u",
		 (void *)own, handle, handle ^ 0xdeadbeef);
	own->handle = handle;
	own->context = NULL;
	ERRNO_BY(OBJECT_CONTEXT, softhca_ibv_dealloc_pd(own), "ibv_dealloc_pd", ENOENT,
		 "the PD at %p was %p and is 0x0", (void *)own, (void *)context);
	own->context = context;
	assert_int_equal(softhca_ibv_close_device(second), 0);
	ERRNO_BY(OBJECT_OF_CLOSED, softhca_ibv_dealloc_pd(import), "ibv_dealloc_pd", ENOENT,
		 "the PD at %p was imported", (void *)import);
	softhca_ibv_unimport_pd(import);
	assert_int_equal(softhca_ibv_dealloc_pd(own), 0);
	ERRNO_BY(OBJECT_NONE, softhca_ibv_dealloc_pd(own), "ibv_dealloc_pd", ENOENT, "no PD at %p", (void *)own);
	assert_int_equal(softhca_ibv_close_device(second), -1);
	expect("ibv_close_device", EBADF, RULE_OBJECT_NONE, "no context at");
}

TEST(channels)
{
	struct ibv_comp_channel *channel = softhca_ibv_create_comp_channel(context);
	struct ibv_cq *cq = softhca_ibv_create_cq(context, 1, NULL, channel, 0);
	struct rlimit before;

	getrlimit(RLIMIT_NOFILE, &before);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, before.rlim_max});
	NULL_BY(NO_DESCRIPTOR, softhca_ibv_create_comp_channel(context), "ibv_create_comp_channel", EMFILE, "EMFILE");
	NULL_BY(NO_DESCRIPTOR, softhca_ibv_open_device(context->device), "ibv_open_device", EMFILE, "EMFILE");
	setrlimit(RLIMIT_NOFILE, &before);
	ERRNO_BY(CHANNEL_IN_USE, softhca_ibv_destroy_comp_channel(channel), "ibv_destroy_comp_channel", EBUSY,
		 "1 completion queues");
	assert_int_equal(softhca_ibv_destroy_cq(cq), 0);
	assert_int_equal(softhca_ibv_destroy_comp_channel(channel), 0);
}

static void refuse_xrcd(uint32_t comp_mask, int fd, int oflags, int error, enum explain_rule rule, const char *figures)
{
	struct ibv_xrcd_init_attr attr = {comp_mask, fd, oflags};

	errno = 0;
	assert_null(softhca_ibv_open_xrcd(context, &attr));
	assert_int_equal(errno, error);
	expect("ibv_open_xrcd", error, rule, figures);
}

TEST(xrc_domains)
{
	FILE *file = tmpfile();
	struct ibv_xrcd_init_attr attr = {3, fileno(file), O_CREAT};
	struct ibv_qp_init_attr_ex qp_attr = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD};
	struct ibv_qp *qp;

	refuse_xrcd(7, -1, O_CREAT, EOPNOTSUPP, RULE_XRCD_COMP_MASK, "is 0x7; it must be 0x3");
	refuse_xrcd(1, -1, O_CREAT, EINVAL, RULE_XRCD_COMP_MASK, "is 0x1; it must be 0x3");
	refuse_xrcd(3, -2, O_CREAT, EBADF, RULE_XRCD_DESCRIPTOR, "-2 is not");
	refuse_xrcd(3, fileno(file), 0, EAGAIN, RULE_XRCD_NONE, "no XRC domain");
	qp_attr.xrcd = softhca_ibv_open_xrcd(context, &attr);
	assert_non_null(qp_attr.xrcd);
	refuse_xrcd(3, fileno(file), O_CREAT | O_EXCL, EINVAL, RULE_XRCD_EXISTS, "is open");
	qp = softhca_ibv_create_qp_ex(context, &qp_attr);
	assert_non_null(qp);
	ERRNO_BY(XRCD_IN_USE, softhca_ibv_close_xrcd(qp_attr.xrcd), "ibv_close_xrcd", EBUSY, "still has");
	assert_int_equal(softhca_ibv_destroy_qp(qp), 0);
	assert_int_equal(softhca_ibv_close_xrcd(qp_attr.xrcd), 0);
	fclose(file);
}

TEST(multicast_groups)
{
	struct ibv_cq *cq = softhca_ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
	union ibv_gid group = {.raw = {0xff, 0x0e}}, unicast = {.raw = {0xfe, 0x80, [15] = 1}};
	struct ibv_qp *rc = softhca_ibv_create_qp(pd, &attr), *ud;

	attr.qp_type = IBV_QPT_UD;
	ud = softhca_ibv_create_qp(pd, &attr);
	assert_true(rc && ud);
	ERRNO_BY(MCAST_GID, softhca_ibv_attach_mcast(ud, &unicast, 0), "ibv_attach_mcast", EINVAL,
		 "0xfe80000000000000:0x1 is");
	ERRNO_BY(MCAST_QP, softhca_ibv_attach_mcast(rc, &group, 0), "ibv_attach_mcast", EINVAL, "of type RC,");
	ERRNO_BY(MCAST_NOT_ATTACHED, softhca_ibv_detach_mcast(ud, &group, 0), "ibv_detach_mcast", EINVAL,
		 "is not attached");
	for (int i = 0; i < LIMIT_MAX_TOTAL_MCAST_QP_ATTACH; i++) {
		memcpy(group.raw + 4, &i, sizeof(i));
		assert_int_equal(softhca_ibv_attach_mcast(ud, &group, 0), 0);
	}
	group.raw[15] = 1;
	ERRNO_BY(MCAST_FULL, softhca_ibv_attach_mcast(ud, &group, 0), "ibv_attach_mcast", ENOMEM,
		 "has 240 queue pairs, or all groups together have 4096:");
	group.raw[15] = 0;
	for (int i = 0; i < LIMIT_MAX_TOTAL_MCAST_QP_ATTACH; i++) {
		memcpy(group.raw + 4, &i, sizeof(i));
		assert_int_equal(softhca_ibv_detach_mcast(ud, &group, 0), 0);
	}
	assert_int_equal(softhca_ibv_destroy_qp(rc) | softhca_ibv_destroy_qp(ud) | softhca_ibv_destroy_cq(cq), 0);
}

TEST(buffers)
{
	struct ibv_pd *other = softhca_ibv_alloc_pd(context);
	/* length, access, comp_mask, and members that comp_mask does not select */
	const uint64_t attr[9] = {PAGE, LW, 0};
	struct ibv_buf *buf;
	char *memory = softhca_ibv_alloc_buf(pd, PAGE, &buf);

	assert_non_null(memory);
	NULL_BY(BUF_DOMAIN, softhca_ibv_reg_buf_mr(other, buf, memory, PAGE, LW), "ibv_reg_buf_mr", EINVAL,
		"the buffer at %p", (void *)memory);
	NULL_BY(BUF_RANGE, softhca_ibv_reg_buf_mr(pd, buf, memory + 1, PAGE, LW), "ibv_reg_buf_mr", EINVAL,
		"[%p, +4096) is not within the buffer [%p, +4096)", (void *)(memory + 1), (void *)memory);
	NULL_BY(MR_FIELDS, softhca_ibv_reg_mr_ex(pd, (struct ibv_mr_init_attr *)attr), "ibv_reg_mr_ex", EINVAL,
		"comp_mask 0x0 does not select");
	softhca_ibv_free_buf(buf);
	assert_int_equal(softhca_ibv_dealloc_pd(other), 0);
}

TEST(no_rule_was_forgotten)
{
#define RULE(number, name, text, source, advice)                                                                       \
	if (!seen[RULE_##name])                                                                                        \
		fail_msg("nothing in this file breaks rule %d, %s", number, #name);
#include "explain/rules_objects.def"
#undef RULE
}

int main(void)
{
	setenv("SOFTHCA_GIDS", "loopback", 1);
	return run_cases(.group_setup = setup, .group_teardown = teardown);
}
