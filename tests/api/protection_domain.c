/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_alloc_pd(3), ibv_alloc_parent_domain(3), ibv_alloc_td(3): which objects keep others alive, and the allocator of
 * queue memory.
 */
#include "kernel_has.h"
#include "support/objects.h"

/* ---- a counting allocator ------------------------------------------------------------------------------ */

enum { BLOCKS = 64 };

struct books {
	struct ibv_pd *pd; /* its parent domain */
	enum { GIVE, DECLINE, FAIL, TAKE_TURNS } mode;
	struct {
		void *memory;
		size_t size;
		uint64_t resource_type;
	} block[BLOCKS];
	int given, returned, asked;
	uint64_t types; /* bit per resource type asked for */
};

static void *books_alloc(struct ibv_pd *domain, void *pd_context, size_t size, size_t alignment, uint64_t resource_type)
{
	struct books *books = pd_context;
	void *memory = NULL;

	assert_ptr_equal(domain, books->pd);
	assert_int_equal(resource_type >> 32, MLX5DV_RES_TYPE_QP >> 32); /* "rdma_driver_id enum (upper 32 bits)" */
	books->types |= UINT64_C(1) << (resource_type & 63);
	books->asked++;
	if (books->mode == FAIL)
		return NULL;
	if (books->mode == DECLINE || (books->mode == TAKE_TURNS && books->asked % 2))
		return IBV_ALLOCATOR_USE_DEFAULT;
	assert_int_equal(posix_memalign(&memory, alignment, size), 0);
	memset(memory, 0, size);
	assert_in_range(books->given, 0, BLOCKS - 1);
	books->block[books->given].memory = memory;
	books->block[books->given].size = size;
	books->block[books->given++].resource_type = resource_type;
	return memory;
}

static void books_free(struct ibv_pd *domain, void *pd_context, void *memory, uint64_t resource_type)
{
	struct books *books = pd_context;
	int i = 0;

	assert_ptr_equal(domain, books->pd);
	while (i < books->given && books->block[i].memory != memory)
		i++;
	assert_in_range(i, 0, books->given - 1); /* allocated here, and not freed before */
	assert_true(books->block[i].resource_type == resource_type);
	books->block[i].memory = NULL;
	books->returned++;
	free(memory);
}

static struct ibv_pd *parent_domain(struct ibv_pd *over, struct ibv_td *td, struct books *books)
{
	struct ibv_parent_domain_init_attr attr = {.pd = over, .td = td};

	if (books) {
		attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
		attr.alloc = books_alloc;
		attr.free = books_free;
		attr.pd_context = books;
	}
	return ibv_alloc_parent_domain(context, &attr);
}

static struct ibv_pd *domain_with_books(struct books *books, int mode)
{
	memset(books, 0, sizeof(*books));
	books->mode = mode;
	books->pd = parent_domain(pd, NULL, books);
	assert_non_null(books->pd);
	return books->pd;
}

/* ---- queues over a domain ------------------------------------------------------------------------------ */

static struct ibv_cq *cq_over(struct ibv_pd *domain)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 15, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = domain};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &attr);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static struct ibv_qp *qp_over(struct ibv_pd *domain, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(domain, &attr);
}

static struct ibv_srq *srq_over(struct ibv_pd *domain)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};

	return ibv_create_srq(domain, &attr);
}

/* ---- tests --------------------------------------------------------------------------------------------- */

TEST(domains_are_distinguished)
{
	struct ibv_pd *domain[3];

	for (int i = 0; i < 3; i++) {
		domain[i] = ibv_alloc_pd(context);
		assert_non_null(domain[i]);
		assert_ptr_equal(domain[i]->context, context);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(domain[i]->handle, domain[k]->handle);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_dealloc_pd(domain[i]), 0);
}

TEST(queues_keep_their_domain)
{
	struct ibv_pd *domain = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 15, NULL, NULL, 0);
	struct ibv_qp *qp = qp_over(domain, cq);
	struct ibv_srq *srq = srq_over(domain);

	assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

TEST(parent_domain_keeps_its_parts)
{
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_td *td = ibv_alloc_td(context, &td_attr);
	struct ibv_pd *over = ibv_alloc_pd(context), *domain = parent_domain(over, td, NULL), *second;

	assert_non_null(td);
	assert_ptr_equal(td->context, context);
	assert_non_null(domain);
	assert_ptr_equal(domain->context, context);
	assert_int_equal(ibv_dealloc_pd(over), EBUSY);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	second = parent_domain(over, td, NULL);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(second), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	assert_int_equal(ibv_dealloc_pd(over), 0);
}

/* "Completely interchangeable with the struct ibv_pd used to create it". */
TEST(parent_domain_stands_for_its_pd)
{
	struct ibv_pd *domain = parent_domain(pd, NULL, NULL);
	struct mlx5dv_obj object = {0};
	struct mlx5dv_pd plain = {0}, parent = {0};
	static char buffer[64];
	struct ibv_mr *mr = ibv_reg_mr(domain, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mw *mw = ibv_alloc_mw(domain, IBV_MW_TYPE_1);

	assert_non_null(mr);
	assert_ptr_equal(mr->pd, domain);
	assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	object.pd.in = pd;
	object.pd.out = &plain;
	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_PD), 0);
	object.pd.in = domain;
	object.pd.out = &parent;
	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_PD), 0);
	assert_int_equal(plain.pdn, parent.pdn);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

TEST(attributes_that_are_refused)
{
	struct ibv_parent_domain_init_attr attr = {.pd = pd, .comp_mask = 8};
	struct ibv_pd *domain;
	struct ibv_td_init_attr td_attr = {.comp_mask = 1};

	expect_null(ibv_alloc_parent_domain(context, &attr), EINVAL);
	/* A bit of newer headers. */
	attr.comp_mask = 4;
	domain = ibv_alloc_parent_domain(context, &attr);
	assert_non_null(domain);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
	attr = (struct ibv_parent_domain_init_attr){0};
	expect_null(ibv_alloc_parent_domain(context, &attr), EINVAL);
	expect_null(ibv_alloc_td(context, &td_attr), EINVAL);
}

/* Creates and destroys one queue of each kind over @domain. */
static void use_all_queues(struct ibv_pd *domain)
{
	struct ibv_cq *cq = cq_over(domain);
	struct ibv_qp *qp = qp_over(domain, cq);
	struct ibv_srq *srq = srq_over(domain);

	assert_non_null(cq);
	assert_non_null(qp);
	assert_non_null(srq);
	assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(domain), EBUSY); /* the CQ's ring */
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

TEST(memory_of_queues_comes_from_the_allocator)
{
	struct ibv_pd *domain;
	struct books books;

	domain = domain_with_books(&books, GIVE);
	use_all_queues(domain);
	assert_int_equal(books.given, books.returned);
	/* Rings of QP, SRQ, CQ and their doorbell records. */
	assert_true(books.given >= 6);
	assert_int_equal(books.types, 1 << 1 | 1 << 3 | 1 << 4 | 1 << 5);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

TEST(an_allocator_that_declines)
{
	struct ibv_pd *domain;
	struct books books;

	domain = domain_with_books(&books, DECLINE);
	use_all_queues(domain);
	assert_true(books.asked >= 6);
	assert_int_equal(books.given + books.returned, 0);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

/* Memory from the allocator is returned to it; memory that it declined to provide is not. */
TEST(an_allocator_that_declines_at_times)
{
	struct ibv_pd *domain;
	struct books books;

	domain = domain_with_books(&books, TAKE_TURNS);
	use_all_queues(domain);
	assert_true(books.given > 0 && books.given < books.asked);
	assert_int_equal(books.given, books.returned);
	assert_int_equal(ibv_dealloc_pd(domain), 0);
}

TEST(an_allocator_that_fails)
{
	struct ibv_cq *cq = ibv_create_cq(context, 15, NULL, NULL, 0);
	struct ibv_pd *domain;
	struct books books;

	domain = domain_with_books(&books, FAIL);
	expect_null(cq_over(domain), ENOMEM);
	expect_null(qp_over(domain, cq), ENOMEM);
	expect_null(srq_over(domain), ENOMEM);
	assert_true(books.asked >= 3);
	assert_int_equal(ibv_dealloc_pd(domain), 0); /* nothing leaked */
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* MLX_QP_ALLOC_TYPE and related variables: huge pages that the machine does not have. */
TEST(huge_pages_on_a_machine_without)
{
	struct ibv_cq *cq = ibv_create_cq(context, 15, NULL, NULL, 0);
	struct ibv_qp *qp;

	setenv("MLX_QP_ALLOC_TYPE", "PREFER_HUGE", 1);
	qp = qp_over(pd, cq);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	setenv("MLX_QP_ALLOC_TYPE", "HUGE", 1);
	qp = qp_over(pd, cq);
	if (qp)
		assert_int_equal(ibv_destroy_qp(qp), 0);
	else
		assert_int_equal(errno, kernel_huge_page_error());
	unsetenv("MLX_QP_ALLOC_TYPE");
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

int main(void)
{
	return run_cases(.group_setup = objects_open, .group_teardown = objects_close);
}
