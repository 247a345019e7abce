/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READ and WRITE without the other side (src/link/shm/direct.c), with a process at the other end that grants, claims and takes
 * what the test wants. That process is the test itself, so the memory that it grants is of this process, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "device_fixture.h"
#include "device/grants.h"
#include "link/shm/peer.h"
#include "transport/commands.h"
#include "shm_hostile.h"

enum {
	WRITE_ONLY = 0x0a,
	ACKNOWLEDGE = 0x11,
	NO_CREDITS = 0x1f, /* IBTA 9.7.7.2 */
	HALF = 1 << 15,    /* of the memory of the device: what requests name */
	BLOCKS = 64,
};

static struct device device;
static struct raw_cq cq;
static struct raw_qp end;
static struct hostile other;
static uint32_t its_qpn;
static uint64_t word = 0x1122334455667788;

static int begin(void **state)
{
	const struct ibv_qp_attr options = {.timeout = 0, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};

	(void)state;
	for (size_t i = 0; i < sizeof(device.memory); i++)
		device.memory[i] = (uint8_t)(i * 31 + (i >> 8));
	raw_cq_make(&device, &cq, 128);
	raw_qp_make(&device, &end, IBV_QPT_RC, &cq, BLOCKS);
	hostile_connect(&other, end.qp->number);
	assert_int_equal(host_claim_slot(&its_qpn), 0);
	its_qpn += 5;
	raw_qp_connect(&device, &end, its_qpn, &options);
	other.out.ring->state.process = (uint32_t)getpid();
	return 0;
}

static int finish(void **state)
{
	(void)state;
	raw_qp_destroy(&end);
	raw_cq_destroy(&cq);
	shutdown(other.socket, SHUT_WR);
	WAIT_FOR(hostile_is_cut_off(&other));
	hostile_leave(&other);
	return 0;
}

static int begin_all(void **state)
{
	(void)state;
	setenv("SOFTHCA_LINK", "shm", 1);
	device_open(&device);
	return 0;
}

static int end_all(void **state)
{
	(void)state;
	device_close(&device);
	return 0;
}

/* ---- grants that the device makes ------------------------------------------------------------------------------ */

static void send_write(uint32_t psn)
{
	struct shm_slot slot = hostile_bth(WRITE_ONLY, end.qp->number, psn, 8);
	uint64_t address = htobe64((uintptr_t)device.memory + HALF);
	uint32_t rkey = htobe32(mkey_number(device.region)), bytes = htobe32(8);

	memcpy(slot.bytes + 12, &address, 8);
	memcpy(slot.bytes + 20, &rkey, 4);
	memcpy(slot.bytes + 24, &bytes, 4);
	slot.headers = 28;
	hostile_send(&other, &slot, &word, 8);
}

static void take_acknowledge(void)
{
	struct shm_record record;
	uint32_t field, value;

	WAIT_FOR(shm_ready(&other.in));
	assert_int_equal(shm_take(&other.in, &record, &field, &value), 0);
	assert_int_equal(record.headers[0], ACKNOWLEDGE);
	assert_int_equal(record.headers[12], NO_CREDITS);
	shm_release(&other.in);
}

/* The one that counts, or NULL. Wherever it is. */
static const struct shm_grant *the_grant(void)
{
	const struct shm_ring *ring = other.in.ring;
	const struct shm_grant *found = NULL;

	for (uint32_t i = 0; i < SHM_GRANTS; i++)
		if (ring->grant[i].generation == ring->generation && ring->grant[i].generation) {
			assert_null(found);
			found = &ring->grant[i];
		}
	return found;
}

/* What the device thread has handled is granted as the responder allows it, and to the QP that it is connected to. */
static void test_grants(void **state)
{
	const struct ibv_qp_attr rights = {.qp_access_flags = IBV_ACCESS_REMOTE_READ};
	const struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	const struct shm_grant *grant;

	(void)state;
	send_write(SQ_START_PSN);
	take_acknowledge();
	grant = the_grant();
	assert_non_null(grant);
	assert_int_equal(grant->source, its_qpn);
	assert_int_equal(grant->destination, end.qp->number);
	assert_int_equal(grant->rkey, mkey_number(device.region));
	assert_int_equal(grant->start, (uintptr_t)device.memory);
	assert_int_equal(grant->length, sizeof(device.memory));
	assert_int_equal(grant->memory, (uintptr_t)device.memory);
	assert_true(grant->reads && grant->writes);
	assert_false(grant->sequence & 1);
	assert_int_equal(other.in.ring->state.granted, 1);
	/* It stays the same one. */
	send_write(psn_add(SQ_START_PSN, 1));
	take_acknowledge();
	assert_int_equal(other.in.ring->state.granted, 1);
	/* Another right of the QP, another state of it: no more. */
	assert_int_equal(hca_qp_modify(end.qp, &rights, IBV_QP_ACCESS_FLAGS), 0);
	assert_null(the_grant());
	assert_int_equal(hca_qp_modify(end.qp,
				       &(struct ibv_qp_attr){.qp_access_flags = ALL_ACCESS & ~IBV_ACCESS_MW_BIND},
				       IBV_QP_ACCESS_FLAGS),
			 0);
	send_write(psn_add(SQ_START_PSN, 2));
	take_acknowledge();
	assert_non_null(the_grant());
	assert_int_equal(hca_qp_modify(end.qp, &error, IBV_QP_STATE), 0);
	assert_null(the_grant());
}

/* Ids of processes that mean others on the other side: nobody could be waited for. */
static void test_no_grant_to_strangers(void **state)
{
	(void)state;
	other.out.ring->state.process = (uint32_t)getpid() + 1;
	send_write(SQ_START_PSN);
	take_acknowledge();
	assert_null(the_grant());
}

/* A key that is taken back: ibv_dereg_mr(3), ibv_rereg_mr(3). */
static void test_keys_are_taken_back(void **state)
{
	struct hca_mr_attr attr = {.addr = device.memory,
				   .start = (uintptr_t)device.memory,
				   .length = sizeof(device.memory),
				   .access = ALL_ACCESS};

	(void)state;
	send_write(SQ_START_PSN);
	take_acknowledge();
	assert_non_null(the_grant());
	assert_int_equal(hca_mr_reregister(device.region, IBV_REREG_MR_CHANGE_ACCESS, device.pd, &attr), 0);
	assert_null(the_grant());
	send_write(psn_add(SQ_START_PSN, 1));
	take_acknowledge();
	assert_non_null(the_grant());
	assert_int_equal(hca_mr_deregister(device.region), 0);
	assert_null(the_grant());
	assert_int_equal(hca_mr_register(device.pd, &attr, &device.region), 0);
}

/* ---- accesses of others that are waited for --------------------------------------------------------------------- */

static uint32_t running_thread; /* atomic */
static uint32_t running_state;  /* atomic; 0: sleeps, 1: runs, 2: ends */

static void *thread(void *argument)
{
	(void)argument;
	__atomic_store_n(&running_thread, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (__atomic_load_n(&running_state, __ATOMIC_RELAXED) != 2)
		if (!__atomic_load_n(&running_state, __ATOMIC_RELAXED))
			nanosleep(&(struct timespec){.tv_nsec = 1000000000 - 1}, NULL);
	return NULL;
}

static pthread_t thread_start(uint32_t does)
{
	pthread_t made;

	running_thread = 0;
	running_state = does;
	assert_int_equal(pthread_create(&made, NULL, thread, NULL), 0);
	WAIT_FOR(__atomic_load_n(&running_thread, __ATOMIC_ACQUIRE));
	return made;
}

static void *end_access_later(void *argument)
{
	nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
	__atomic_store_n((uint64_t *)argument, 0, __ATOMIC_RELEASE);
	return NULL;
}

static uint64_t ms_to_settle(void)
{
	uint64_t begin_ms = test_now_ms();

	grants_end();
	return test_now_ms() - begin_ms;
}

/* As long as the other side says that it is at it, and the kernel does not say that it cannot be. */
static void test_waits_for_who_is_at_it(void **state)
{
	uint64_t *ticket = &other.out.ring->access.ticket;
	pthread_t runs, ends;

	(void)state;
	assert_in_range(ms_to_settle(), 0, 100);
	runs = thread_start(1);
	other.out.ring->access.thread = running_thread;
	*ticket = 1;
	assert_int_equal(pthread_create(&ends, NULL, end_access_later, ticket), 0);
	assert_in_range(ms_to_settle(), 150, 5000);
	assert_int_equal(*ticket, 0);
	pthread_join(ends, NULL);
	running_state = 2;
	pthread_join(runs, NULL);
}

/* Stopped, or in a handler of a signal: it is not in the system call, and would look again before. */
static void test_waits_for_no_sleeper(void **state)
{
	pthread_t sleeps = thread_start(0);

	(void)state;
	other.out.ring->access.thread = running_thread;
	other.out.ring->access.ticket = 1;
	assert_in_range(ms_to_settle(), 0, 700);
	running_state = 2;
	pthread_join(sleeps, NULL);
	/* And now it has ended. */
	other.out.ring->access.ticket = 2;
	assert_in_range(ms_to_settle(), 0, 700);
}

static void test_waits_for_nobody_who_left(void **state)
{
	pthread_t runs = thread_start(1);

	(void)state;
	other.out.ring->access.thread = running_thread;
	other.out.ring->access.ticket = 1;
	shutdown(other.socket, SHUT_WR);
	assert_in_range(ms_to_settle(), 0, 700);
	running_state = 2;
	pthread_join(runs, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_grants),
		TEST(test_no_grant_to_strangers),
		TEST(test_keys_are_taken_back),
		TEST(test_waits_for_who_is_at_it),
		TEST(test_waits_for_no_sleeper),
		TEST(test_waits_for_nobody_who_left),
	};

	return cmocka_run_group_tests(tests, begin_all, end_all);
}
