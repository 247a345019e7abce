/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every control-path call that takes an object, with invalid objects: destroyed, never created, with a wrong handle or
 * context, or of another context. Each call fails with ENOENT, as from a kernel that looks up handles
 * (lookup_get_idr_uobject() of uverbs), or with EBADF where it would look up a descriptor. No freed memory is read, and
 * the object still works afterwards. The last test checks that no call and no object parameter is missing.
 */
#include "alive_calls.h"
#include "softhca.h"
#include "support/check.h"

#include <fcntl.h>

/* docs/reference/explanations.md */
enum { RULE_NONE = 309, RULE_HANDLE = 314, RULE_CONTEXT = 315, RULE_FOREIGN = 316, RULE_CHANNEL = 412 };

static struct alive_world own, other;
static char memory[64];

static const struct {
	const char *name, *structure;
	bool has_handle, has_context;
	size_t handle, context; /* offsets of the members, if any */
	int error;
} kinds[] = {
#define OFFSET_0(structure, member) 0
#define OFFSET_1(structure, member) offsetof(struct structure, member)
#define KIND(NAME, structure, has_handle, has_context, error)                                                          \
	{#NAME,                                                                                                        \
	 "struct " #structure " *",                                                                                    \
	 has_handle,                                                                                                   \
	 has_context,                                                                                                  \
	 OFFSET_##has_handle(structure, handle),                                                                       \
	 OFFSET_##has_context(structure, context),                                                                     \
	 error},
	ALIVE_KINDS(KIND)
#undef KIND
};

/* ---- the worlds ------------------------------------------------------------------------------------------------- */

static struct ibv_xrcd *open_xrcd(struct ibv_context *context_)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask = 3, .fd = -1, .oflags = O_CREAT};

	return ibv_open_xrcd(context_, &attr);
}

static struct ibv_qp *make_qp(const struct alive_world *world)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = world->cq,
		.recv_cq = world->cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = world->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};

	return ibv_create_qp_ex(world->context, &attr);
}

static void world_open(struct alive_world *world)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_alloc_dm_attr dm = {.length = 64};

	world->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	assert_non_null(world->context);
	world->pd = ibv_alloc_pd(world->context);
	world->mr = ibv_reg_mr(world->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	world->mw = ibv_alloc_mw(world->pd, IBV_MW_TYPE_1);
	world->dm = ibv_alloc_dm(world->context, &dm);
	world->xrcd = open_xrcd(world->context);
	world->cq = ibv_create_cq(world->context, 4, NULL, NULL, 0);
	assert_true(world->mr && world->mw && world->dm && world->xrcd && world->cq);
	world->qp = make_qp(world);
	assert_non_null(world->qp);
}

static void world_close(struct alive_world *world)
{
	expect_error(ibv_destroy_qp(world->qp), 0);
	expect_error(ibv_destroy_cq(world->cq), 0);
	expect_error(ibv_close_xrcd(world->xrcd), 0);
	expect_error(ibv_free_dm(world->dm), 0);
	expect_error(ibv_dealloc_mw(world->mw), 0);
	expect_error(ibv_dereg_mr(world->mr), 0);
	expect_error(ibv_dealloc_pd(world->pd), 0);
	expect_error(ibv_close_device(world->context), 0);
}

static int open_both(void **state)
{
	(void)state;
	world_open(&own);
	world_open(&other);
	return 0;
}

static int close_both(void **state)
{
	(void)state;
	world_close(&other);
	world_close(&own);
	return 0;
}

/* ---- an object of each kind ------------------------------------------------------------------------------------- */

static struct mlx5dv_dek *make_dek(const struct alive_world *world)
{
	struct mlx5dv_dek_init_attr attr = {
		.pd = world->pd, .comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN, .key = {1, 2, 3, [16] = 4, 5, 6}};

	return mlx5dv_dek_create(world->context, &attr);
}

/* Allocates a PD with the command ALLOC_PD. */
static struct mlx5dv_devx_obj *make_domain(const struct alive_world *world)
{
	const uint8_t in[16] = {0x08};
	uint8_t out[16];

	return mlx5dv_devx_obj_create(world->context, in, sizeof(in), out, sizeof(out));
}

/* NULL: the device does not support this kind. */
static void *make(const struct alive_world *world, enum alive_kind kind)
{
	struct ibv_td_init_attr td = {0};
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct mlx5dv_mkey_init_attr mkey = {.pd = world->pd,
					     .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
							     MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
					     .max_entries = 4};

	switch (kind) {
	case ALIVE_CONTEXT:
		return ibv_open_device(world->context->device);
	case ALIVE_PD:
		return ibv_alloc_pd(world->context);
	case ALIVE_TD:
		return ibv_alloc_td(world->context, &td);
	case ALIVE_MR:
		return ibv_reg_mr(world->pd, memory, sizeof(memory), 0);
	case ALIVE_MW:
		return ibv_alloc_mw(world->pd, IBV_MW_TYPE_1);
	case ALIVE_DM:
		return ibv_alloc_dm(world->context, &dm);
	case ALIVE_AH:
		assert_int_equal(ibv_query_gid(world->context, 1, 0, &ah.grh.dgid), 0);
		return ibv_create_ah(world->pd, &ah);
	case ALIVE_XRCD:
		return open_xrcd(world->context);
	case ALIVE_CHANNEL:
		return ibv_create_comp_channel(world->context);
	case ALIVE_CQ:
		return ibv_create_cq(world->context, 4, NULL, NULL, 0);
	case ALIVE_SRQ:
		return ibv_create_srq(world->pd, &srq);
	case ALIVE_QP:
		return make_qp(world);
	case ALIVE_MKEY:
		return mlx5dv_create_mkey(&mkey);
	case ALIVE_DEK:
		return make_dek(world);
	case ALIVE_DEVX:
		return make_domain(world);
	case ALIVE_UMEM:
		return mlx5dv_devx_umem_reg(world->context, memory, sizeof(memory), 0);
	case ALIVE_UAR:
		return mlx5dv_devx_alloc_uar(world->context, 0);
	case ALIVE_EVENTS:
		return mlx5dv_devx_create_event_channel(world->context, 0);
	case ALIVE_RESPONSES:
		return mlx5dv_devx_create_cmd_comp(world->context);
	default: /* a login needs a device with wrapped keys; the keys of this one are not wrapped */
		return NULL;
	}
}

static int unmake(enum alive_kind kind, void *object)
{
	switch (kind) {
	case ALIVE_CONTEXT:
		return ibv_close_device(object);
	case ALIVE_PD:
		return ibv_dealloc_pd(object);
	case ALIVE_TD:
		return ibv_dealloc_td(object);
	case ALIVE_MR:
		return ibv_dereg_mr(object);
	case ALIVE_MW:
		return ibv_dealloc_mw(object);
	case ALIVE_DM:
		return ibv_free_dm(object);
	case ALIVE_AH:
		return ibv_destroy_ah(object);
	case ALIVE_XRCD:
		return ibv_close_xrcd(object);
	case ALIVE_CHANNEL:
		return ibv_destroy_comp_channel(object);
	case ALIVE_CQ:
		return ibv_destroy_cq(object);
	case ALIVE_SRQ:
		return ibv_destroy_srq(object);
	case ALIVE_QP:
		return ibv_destroy_qp(object);
	case ALIVE_MKEY:
		return mlx5dv_destroy_mkey(object);
	case ALIVE_DEK:
		return mlx5dv_dek_destroy(object);
	case ALIVE_DEVX:
		return mlx5dv_devx_obj_destroy(object);
	case ALIVE_UMEM:
		return mlx5dv_devx_umem_dereg(object);
	case ALIVE_UAR:
		mlx5dv_devx_free_uar(object);
		return 0;
	case ALIVE_EVENTS:
		mlx5dv_devx_destroy_event_channel(object);
		return 0;
	case ALIVE_RESPONSES:
		mlx5dv_devx_destroy_cmd_comp(object);
		return 0;
	default:
		return 0;
	}
}

/* ---- trials ----------------------------------------------------------------------------------------------------- */

/* Checks that the call rejects @object, explains why, and names itself. */
static void refused(const struct alive_call *row, void *object, uint32_t rule)
{
	struct softhca_explanation last;

	expect_error(row->call(&own, object), kinds[row->kind].error);
	assert_int_equal(softhca_explanations(own.context, 0, &last, 1), 1);
	if (last.rule != rule || !last.call || strcmp(last.call, row->name) != 0 ||
	    last.error != kinds[row->kind].error)
		fail_at(HERE, "%s of a %s: expected rule %u, the explanation is %u of %s, errno value %d", row->name,
			kinds[row->kind].name, rule, last.rule, last.call ? last.call : "no call", last.error);
}

static void *make_one(const struct alive_world *world, enum alive_kind kind)
{
	void *object = make(world, kind);

	if (!object && kind != ALIVE_LOGIN)
		fail_at(HERE, "no %s to be had: errno value %d", kinds[kind].name, errno);
	return object;
}

static void try_all(void (*trial)(const struct alive_call *row))
{
	for (size_t i = 0; i < alive_calls_count; i++) {
		note("%s, %s", alive_calls[i].symbol, kinds[alive_calls[i].kind].name);
		trial(&alive_calls[i]);
	}
}

static void destroyed_one(const struct alive_call *row)
{
	void *object = make_one(&own, row->kind);

	if (!object)
		return;
	expect_error(unmake(row->kind, object), 0);
	refused(row, object, RULE_NONE);
}

TEST(destroyed)
{
	try_all(destroyed_one);
}

/* Passes memory that the library did not allocate, and a null pointer unless the object is optional or a member is. */
static void never_made_one(const struct alive_call *row)
{
	static char nothing[4096];

	refused(row, nothing, RULE_NONE);
	if (!row->beside && strcmp(row->symbol, "mlx5dv_qp_cancel_posted_send_wrs") != 0)
		refused(row, NULL, RULE_NONE);
}

TEST(never_made)
{
	try_all(never_made_one);
}

/* Passes an object of the wrong kind: a CQ where a QP is expected, otherwise a QP. */
static void other_kind_one(const struct alive_call *row)
{
	refused(row, row->kind == ALIVE_QP ? (void *)own.cq : (void *)own.qp, RULE_NONE);
}

TEST(other_kind)
{
	try_all(other_kind_one);
}

static void handle_changed_one(const struct alive_call *row)
{
	uint32_t *handle, before;
	void *object;

	if (!kinds[row->kind].has_handle)
		return;
	object = make_one(&own, row->kind);
	handle = (uint32_t *)(void *)((char *)object + kinds[row->kind].handle);
	before = *handle;
	for (unsigned int i = 0; i < 2; i++) {
		*handle = i ? before + 1 : before ^ 0xdeadbeef;
		refused(row, object, RULE_HANDLE);
	}
	*handle = before;
	expect_error(unmake(row->kind, object), 0);
}

TEST(handle_changed)
{
	try_all(handle_changed_one);
}

static void context_changed_one(const struct alive_call *row)
{
	static char nothing[64];
	struct ibv_context **member, *before;
	void *object;

	if (!kinds[row->kind].has_context)
		return;
	object = make_one(&own, row->kind);
	member = (struct ibv_context **)(void *)((char *)object + kinds[row->kind].context);
	before = *member;
	*member = other.context;
	refused(row, object, RULE_CONTEXT);
	*member = (struct ibv_context *)(void *)nothing;
	refused(row, object, RULE_CONTEXT);
	*member = before;
	expect_error(unmake(row->kind, object), 0);
}

TEST(context_changed)
{
	try_all(context_changed_one);
}

static void foreign_one(const struct alive_call *row)
{
	void *object;

	if (!row->beside)
		return;
	object = make_one(&other, row->kind);
	refused(row, object, row->kind == ALIVE_CHANNEL ? RULE_CHANNEL : RULE_FOREIGN);
	expect_error(unmake(row->kind, object), 0);
}

TEST(foreign)
{
	try_all(foreign_one);
}

/* A parent domain is a PD. */
TEST(parent_domains)
{
	struct ibv_parent_domain_init_attr attr = {.pd = own.pd};
	struct ibv_pd *parent = ibv_alloc_parent_domain(own.context, &attr);

	assert_non_null(parent);
	parent->handle++;
	for (size_t i = 0; i < alive_calls_count; i++)
		if (alive_calls[i].kind == ALIVE_PD)
			refused(&alive_calls[i], parent, RULE_HANDLE);
	parent->handle--;
	expect_error(ibv_dealloc_pd(parent), 0);
	for (size_t i = 0; i < alive_calls_count; i++)
		if (alive_calls[i].kind == ALIVE_PD)
			refused(&alive_calls[i], parent, RULE_NONE);
}

/* A region that the library did not create is used by its lkey; only its public members are read. */
TEST(bind_to_no_region)
{
	struct ibv_mr made_up = {.context = own.context, .pd = own.pd, .lkey = 0x123400, .rkey = 0x123400};
	struct ibv_mw_bind bind = {.bind_info = {.mr = &made_up, .addr = (uintptr_t)memory, .length = 8}};

	/* As any other request on a QP in RESET. */
	expect_error(ibv_bind_mw(own.qp, own.mw, &bind), ENOMEM);
}

/* More objects than the initial size of the table. */
TEST(many)
{
	enum { COUNT = 20000 };
	static struct ibv_ah *ahs[COUNT];

	for (size_t i = 0; i < COUNT; i++)
		ahs[i] = make_one(&own, ALIVE_AH);
	for (size_t i = 0; i < COUNT; i += 2)
		expect_error(ibv_destroy_ah(ahs[i]), 0);
	for (size_t i = 0; i < COUNT; i++)
		expect_error(ibv_destroy_ah(ahs[i]), i % 2 ? 0 : ENOENT);
}

/* ---- completeness ----------------------------------------------------------------------------------------------- */

/* Structures that contain objects. */
static const struct {
	const char *structure;
	enum alive_kind kinds[4];
	size_t count;
} bringers[] = {
	{"struct ibv_qp_init_attr *", {ALIVE_CQ, ALIVE_SRQ}, 2},
	{"struct ibv_qp_init_attr_ex *", {ALIVE_PD, ALIVE_CQ, ALIVE_SRQ, ALIVE_XRCD}, 4},
	{"struct ibv_srq_init_attr_ex *", {ALIVE_PD, ALIVE_XRCD, ALIVE_CQ}, 3},
	{"struct ibv_cq_init_attr_ex *", {ALIVE_PD, ALIVE_CHANNEL}, 2},
	{"struct ibv_qp_open_attr *", {ALIVE_XRCD}, 1},
	{"struct ibv_parent_domain_init_attr *", {ALIVE_PD, ALIVE_TD}, 2},
	{"struct mlx5dv_mkey_init_attr *", {ALIVE_PD}, 1},
	{"struct mlx5dv_dek_init_attr *", {ALIVE_PD}, 1}, /* and a login, if keys are wrapped: crypto_objects.c */
	{"struct mlx5dv_obj *", {ALIVE_QP, ALIVE_CQ, ALIVE_SRQ, ALIVE_DM}, 4},
	{"struct mlx5dv_obj *", {ALIVE_AH, ALIVE_PD}, 2},
	{"struct mlx5dv_qp_ex *", {ALIVE_QP}, 1},
};

static size_t missing;

static void wants(const char *symbol, enum alive_kind kind)
{
	for (size_t i = 0; i < alive_calls_count; i++)
		if (alive_calls[i].kind == kind && strcmp(alive_calls[i].symbol, symbol) == 0)
			return;
	fprintf(stderr, "%s takes a %s, and is not in alive_calls.c with one\n", symbol, kinds[kind].name);
	missing++;
}

/* @parameters: as declared, in parentheses. Contexts are not checked: inline calls have already read them. */
static void look_at(const char *symbol, const char *parameters)
{
	/* The attribute structure of this call is an output. */
	const bool answers = strcmp(symbol, "ibv_query_qp") == 0;

	for (size_t i = 0; i < alive_exceptions_count; i++)
		if (strcmp(alive_exceptions[i].symbol, symbol) == 0)
			return;
	for (size_t kind = ALIVE_CONTEXT + 1; kind < ALIVE_KIND_COUNT; kind++)
		if (strstr(parameters, kinds[kind].structure))
			wants(symbol, kind);
	for (size_t i = 0; i < sizeof(bringers) / sizeof(bringers[0]) && !answers; i++)
		for (size_t k = 0; k < bringers[i].count && strstr(parameters, bringers[i].structure); k++)
			wants(symbol, bringers[i].kinds[k]);
}

/* Finds the calls that verbs.h makes through the tables of a context. */
static void look_at_header(const char *path)
{
	static const char prefix[] = "softhca_";
	static char text[1 << 16];
	FILE *file = fopen(path, "r");
	size_t found = 0;

	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	for (char *at = strstr(text, prefix), *open, *close; at; at = strstr(close + 1, prefix)) {
		open = strchr(at, '(');
		close = open ? strchr(open, ';') : NULL;
		assert_non_null(close);
		*open = *close = '\0';
		look_at(at + strlen(prefix), open + 1);
		found++;
	}
	assert_in_range(found, 25, 100);
}

#define LOOK_IMPLEMENTED(name, parameters) look_at(name, parameters)
#define LOOK_LATER(name, parameters) (void)0
#define LOOK_UNSUPPORTED(name, parameters) (void)0
#define LOOK_PROBED(name, parameters) (void)0
#define TEXT(...) #__VA_ARGS__

TEST(no_call_is_forgotten)
{
#define SYMBOL(name, version, state, kind, test, type, parameters, arguments) LOOK_##state(#name, TEXT(parameters));
#include "abi/verbs.def"
#define SYMBOL(name, version, state, kind, test, type, parameters, arguments) LOOK_##state(#name, TEXT(parameters));
#include "abi/mlx5dv.def"
	look_at_header(OPS_HEADER);
	assert_int_equal(missing, 0);
}

int main(void)
{
	/* Keys that do not need a login. */
	setenv("SOFTHCA_CRYPTO", "plaintext", 1);
	return run_cases(.group_setup = open_both, .group_teardown = close_both);
}
