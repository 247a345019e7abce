/* SPDX-License-Identifier: BSD-2-Clause */
/* Exhausted resources, and a cipher that fails. */
#include "test_case.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "abi/entry_points.h"
#include "core/epoch.h"
#include "devx/devx.h"
#include "process/memory_fault.h"
#include "link/host/table.h"
#include "transport/responder/answer.h"
#include "verbs/object/objects.h"
#include "verbs/object/ops.h"
#include "beyond.h"

/* ---- memory that runs out --------------------------------------------------------------------------------------- */

bool no_memory;
static unsigned int memory_left; /* allocations that still succeed */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	if (no_memory && memory_left)
		memory_left--;
	else if (no_memory)
		return NULL;
	return __real_calloc(count, size);
}

/* ---- threads that run out --------------------------------------------------------------------------------------- */

bool no_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *argument)
{
	return no_threads ? EAGAIN : __real_pthread_create(thread, attr, body, argument);
}

/* ---- a cipher that fails ---------------------------------------------------------------------------------------- */

int __wrap_cipher_transform(struct dek *dek, const struct cipher_units *units, void *to, const void *from,
			    size_t bytes);
int __wrap_cipher_transform(struct dek *dek, const struct cipher_units *units, void *to, const void *from, size_t bytes)
{
	(void)dek, (void)units, (void)to, (void)from, (void)bytes;
	return -EIO;
}

/* ---- memory that is not mapped any more -------------------------------------------------------------------------- */

static const struct ibv_mr *gone;

static void see_explanation(int signal)
{
	expect_line(
		qp[SERVER], RULE_MEMORY_FAULT,
		"mlx5_0 qp 0x%x receive: key 0x%x is a memory region, and its memory at 0x%lx, byte 24, is not mapped, does not permit the access, or is beyond the end of its file: signal %d ends the process unless the program handles it. [123 MEMORY_FAULT; ",
		qp[SERVER]->qp_num, gone->rkey, (unsigned long)(uintptr_t)gone->addr + 24, signal);
	_exit(0);
}

static void touch_it(void)
{
	signal(SIGSEGV, see_explanation);
	memory_fault_explain();
	munmap(gone->addr, gone->length);
	epoch_enter();
	epoch_note(qp[SERVER]->qp_num | EPOCH_RECEIVES);
	((volatile uint8_t *)gone->addr)[24] = 1;
	_exit(1);
}

BEYOND_CASE(MEMORY_FAULT)
{
	void *pages = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	gone = softhca_ibv_reg_mr(pd, pages, 4096, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(gone);
	pid = fork();
	if (!pid)
		touch_it();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(softhca_ibv_dereg_mr((struct ibv_mr *)gone), 0);
	munmap(pages, 4096);
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static sem_t inside, leave;

/* A slow transfer: memory that it may read is not written again. */
static void *long_transfer(void *argument)
{
	(void)argument;
	epoch_enter();
	sem_post(&inside);
	sem_wait(&leave);
	epoch_leave();
	return NULL;
}

/* The first change uses the spare mapping of the key; the second needs one more. */
BEYOND_CASE(UMR_NO_MEMORY)
{
	struct ibv_mw *mw = softhca_ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	pthread_t thread;

	sem_init(&inside, 0, 0);
	sem_init(&leave, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, long_transfer, NULL), 0);
	sem_wait(&inside);
	post(IBV_WR_LOCAL_INV, mw->rkey);
	expect_completion(IBV_WC_SUCCESS, RULE_NONE);
	no_memory = true;
	post(IBV_WR_LOCAL_INV, mw->rkey);
	no_memory = false;
	sem_post(&leave);
	pthread_join(thread, NULL);
	expect_completion(IBV_WC_MW_BIND_ERR, RULE_UMR_NO_MEMORY);
	expect_line(
		qp[CLIENT], RULE_UMR_NO_MEMORY,
		"mlx5_0 qp 0x%x LOCAL_INV wr_id 7 → MW_BIND_ERR: not enough memory to configure key 0x%x. [49 UMR_NO_MEMORY; ",
		qp[CLIENT]->qp_num, mw->rkey);
	assert_int_equal(softhca_ibv_dealloc_mw(mw), 0);
}

/* A key over one data unit of the memory. Its bytes on the wire are all zeros. */
BEYOND_CASE(CIPHER_FAILED)
{
	struct block_setup setup = {.cipher = {.enabled = true, .unit = 512}};
	struct mapping *map = calloc(1, sizeof(*map) + sizeof(map->entries[0]));
	struct walk_access access = to_user_qp(qp[CLIENT])->device->send_access;
	static const uint8_t zeros[512];
	uint8_t wire[512], scratch[STAGE_SCRATCH];
	struct block_stage stage;
	struct refusal why;

	assert_non_null(map);
	map->number = 0x1200;
	map->kind = KEY_INDIRECT;
	map->length = sizeof(wire);
	map->form = LAYOUT_LIST;
	map->count = 1;
	map->period = sizeof(wire);
	map->entries[0] = (struct layout_entry){(uintptr_t)memory, sizeof(wire), 0, 0, mr->lkey, 0};
	map->blocks = &setup;
	memset(memory, 1, sizeof(wire));
	epoch_enter();
	assert_int_equal(stage_begin(&stage, &access, RIGHT_LOCAL_READ, map, 0, sizeof(wire), 0, &why), 0);
	stage_transmit(&stage, wire, sizeof(wire), scratch);
	epoch_leave();
	assert_memory_equal(wire, zeros, sizeof(wire));
	expect_line(
		qp[CLIENT], RULE_CIPHER_FAILED,
		"mlx5_0 qp 0x%x: the cipher of key 0x1200 failed at data unit 0, 512 bytes; zeros were written instead. [179 CIPHER_FAILED; ",
		qp[CLIENT]->qp_num);
	free(map);
}

BEYOND_CASE(MR_NO_ROOM)
{
	struct ibv_mr *refused;

	no_memory = true;
	errno = 0;
	refused = softhca_ibv_reg_mr(pd, memory, 64, 0);
	no_memory = false;
	assert_null(refused);
	assert_int_equal(errno, ENOMEM);
	expect_line(NULL, RULE_MR_NO_ROOM,
		    "mlx5_0 ibv_reg_mr → ENOMEM: not enough memory for another key, or all 16777216 keys exist. [340 "
		    "MR_NO_ROOM; ");
}

/* The QP stays as it was, and can be modified when memory is available again. */
BEYOND_CASE(MODIFY_NO_MEMORY)
{
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *made = softhca_ibv_create_qp(pd, &init);
	const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

	assert_non_null(made);
	assert_int_equal(softhca_ibv_modify_qp(made, &attr,
					       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
			 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = made->qp_num,
				    .max_dest_rd_atomic = 5,
				    .ah_attr = {.is_global = 1, .port_num = 1}};
	assert_int_equal(softhca_ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid), 0);
	no_memory = true;
	assert_int_equal(softhca_ibv_modify_qp(made, &attr, mask), ENOMEM);
	no_memory = false;
	assert_int_equal(made->state, IBV_QPS_INIT);
	expect_line(
		made, RULE_MODIFY_NO_MEMORY,
		"mlx5_0 qp 0x%x ibv_modify_qp → ENOMEM: not enough memory to keep the answers of 5 READs and atomics for repeated requests. [136 MODIFY_NO_MEMORY; ",
		made->qp_num);
	assert_int_equal(softhca_ibv_modify_qp(made, &attr, mask), 0);
	assert_int_equal(softhca_ibv_destroy_qp(made), 0);
}

/* Numbers run out: none is used twice while its domain exists, and freed ones are used again. */
BEYOND_CASE(PD_NO_ROOM)
{
	enum { MOST = 64 }; /* domains freed by earlier cases */
	struct id_table *numbers = &hca_device(0)->pds;
	uint32_t fresh = numbers->fresh, number, count = 0;
	struct ibv_pd *domains[MOST];

	numbers->fresh = numbers->limit - 1;
	while (count < MOST && (domains[count] = softhca_ibv_alloc_pd(pd->context)))
		count++;
	assert_in_range(count, 1, MOST - 1);
	assert_int_equal(errno, ENOMEM);
	expect_line(NULL, RULE_PD_NO_ROOM,
		    "mlx5_0 ibv_alloc_pd → ENOMEM: not enough memory for another protection domain, or all 8388608 "
		    "exist. [319 PD_NO_ROOM; ");
	number = hca_pd_number(to_user_pd(domains[0])->device);
	assert_int_equal(softhca_ibv_dealloc_pd(domains[0]), 0);
	domains[0] = softhca_ibv_alloc_pd(pd->context);
	assert_non_null(domains[0]);
	assert_int_equal(hca_pd_number(to_user_pd(domains[0])->device), number);
	while (count--)
		assert_int_equal(softhca_ibv_dealloc_pd(domains[count]), 0);
	numbers->fresh = fresh;
}

/* Other processes of the host hold all other ranges, and all numbers of this process are in use. */
BEYOND_CASE(QP_NO_ROOM)
{
	enum { MOST = 64 };
	struct id_table *numbers = &registry()->qps;
	uint32_t fresh = numbers->fresh, own_count = host_table.own_count, count = 0;
	struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UC, .cap = {.max_send_wr = 1}};
	struct ibv_qp *more[MOST];

	numbers->fresh = numbers->limit;
	host_table.own_count = LIMIT_MAX_QP >> HOST_SLOT_BITS;
	while (count < MOST && (more[count] = softhca_ibv_create_qp(pd, &attr)))
		count++;
	assert_in_range(count, 0, MOST - 1);
	assert_int_equal(errno, ENOMEM);
	expect_line(
		NULL, RULE_QP_NO_ROOM,
		"mlx5_0 ibv_create_qp → ENOMEM: not enough memory for another queue pair, or this process has 262144, or "
		"the processes of this host together have all numbers. [528 QP_NO_ROOM; ");
	numbers->fresh = fresh;
	host_table.own_count = own_count;
	while (count--)
		assert_int_equal(softhca_ibv_destroy_qp(more[count]), 0);
}

/* ---- commands ----------------------------------------------------------------------------------------------------- */

/* ALLOC_PD fails because memory suffices for the handles but not for the PD; the earlier calls have theirs. */
BEYOND_CASE(DEVX_NO_ROOM)
{
	uint8_t in[16] = {0x08}, out[16];
	struct devx_object *object;
	struct devx *devx;

	assert_int_equal(devx_open(hca_of_context(context), to_user_context(context)->device, &devx), 0);
	memory_left = 1;
	no_memory = true;
	assert_int_equal(devx_create(devx, in, sizeof(in), out, sizeof(out), &object), -EREMOTEIO);
	no_memory = false;
	memory_left = 0;
	assert_int_equal(out[0], 0x0f);
	expect_line(
		NULL, RULE_DEVX_NO_ROOM,
		"mlx5_0 mlx5dv_devx_obj_create → EREMOTEIO: not enough memory for the object of command 0x800. [957 DEVX_NO_ROOM; ");
	devx_close(devx);
}
