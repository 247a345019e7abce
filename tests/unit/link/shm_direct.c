/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READ and WRITE without the other side (src/link/shm/direct.c), with a process at the other end that grants, claims
 * and receives as the test requires. That process is the test itself, so the memory that it grants also belongs to this
 * process.
 */
#include "test_case.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "core/guarded_call.h"
#include "hca/grants.h"
#include "filter/filter.h"
#include "link/shm/peer.h"
#include "test_clock.h"
#include "../support/shm_world.h"

enum { FAR_BYTES = 1 << 15 };

/* The peer's counterpart of the second half of the device's memory. */
static _Alignas(64) uint8_t far[FAR_BYTES];
static uint64_t word = 0x1122334455667788;
static uint16_t posted;

static int begin(void **state)
{
	shm_world_begin(state);
	memset(far, 0, sizeof(far));
	posted = 0;
	other.out.ring->state.process = (uint32_t)getpid();
	other.out.ring->state.probe = (uintptr_t)&word;
	other.out.ring->state.probe_value = word;
	other.out.ring->generation = 1;
	return 0;
}

/* ---- grants that the device makes ------------------------------------------------------------------------------ */

static void send_write_to(uint32_t psn, const struct mkey *region, const uint8_t *to)
{
	struct shm_slot slot = hostile_bth(WRITE_ONLY, end.qp->number, psn, 8);
	uint64_t address = htobe64((uintptr_t)to);
	uint32_t rkey = htobe32(mkey_number(region)), bytes = htobe32(8);

	memcpy(slot.bytes + 12, &address, 8);
	memcpy(slot.bytes + 20, &rkey, 4);
	memcpy(slot.bytes + 24, &bytes, 4);
	slot.headers = 28;
	hostile_send(&other, &slot, &word, 8);
}

static void send_write(uint32_t psn)
{
	send_write_to(psn, device.region, device.memory + SECOND_HALF);
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

/* Returns the valid grant, or NULL, in any place. */
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

/*
 * After the device thread has handled a WRITE, its memory is granted with the rights of the responder, to the connected
 * QP.
 */
TEST(test_grants)
{
	const struct ibv_qp_attr rights = {.qp_access_flags = IBV_ACCESS_REMOTE_READ};
	const struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	const struct shm_grant *grant;

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
	/* The grant stays the same. */
	send_write(psn_add(SQ_START_PSN, 1));
	take_acknowledge();
	assert_int_equal(other.in.ring->state.granted, 1);
	/* After a change of the QP's rights or state there is no grant any more. */
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

/* If process ids have another meaning on the other side, it is impossible to wait for its processes. */
TEST(test_no_grant_to_strangers)
{
	other.out.ring->state.process = (uint32_t)getpid() + 1;
	send_write(SQ_START_PSN);
	take_acknowledge();
	assert_null(the_grant());
}

/* Maps an unnamed file in the working directory; returns NULL if that directory is in memory. */
static uint8_t *map_file(void)
{
	char name[] = "shm_direct.XXXXXX";
	int fd = mkstemp(name);
	struct statfs system;
	uint8_t *memory;

	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(ftruncate(fd, FAR_BYTES), 0);
	assert_int_equal(fstatfs(fd, &system), 0);
	memory = mmap(NULL, FAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(memory != MAP_FAILED);
	close(fd);
	if (system.f_type != TMPFS_MAGIC && system.f_type != RAMFS_MAGIC)
		return memory;
	munmap(memory, FAR_BYTES);
	return NULL;
}

/* Pages of a file come from a file system, for which the peer would have to wait. */
TEST(test_no_grant_of_a_file)
{
	uint8_t *memory = map_file();
	struct hca_mr_attr attr = {
		.addr = memory, .start = (uintptr_t)memory, .length = FAR_BYTES, .access = ALL_ACCESS};
	struct mkey *region;

	if (!memory)
		skip();
	assert_int_equal(hca_mr_register(device.pd, &attr, &region), 0);
	/* Refused, and refused again. */
	for (uint32_t i = 0; i < 2; i++) {
		send_write_to(psn_add(SQ_START_PSN, i), region, memory);
		take_acknowledge();
		assert_memory_equal(memory, &word, 8);
		assert_null(the_grant());
	}
	send_write(psn_add(SQ_START_PSN, 2));
	take_acknowledge();
	assert_non_null(the_grant());
	assert_int_equal(hca_mr_deregister(region), 0);
	munmap(memory, FAR_BYTES);
}

/* Revoking a key: ibv_dereg_mr(3), ibv_rereg_mr(3). */
TEST(test_keys_are_taken_back)
{
	struct hca_mr_attr attr = {.addr = device.memory,
				   .start = (uintptr_t)device.memory,
				   .length = sizeof(device.memory),
				   .access = ALL_ACCESS};

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

/* Later revocations do not find a connection that ends on this side, so no grant may outlive it. */
TEST(test_ends_with_the_connection)
{
	uint64_t generation;

	send_write(SQ_START_PSN);
	take_acknowledge();
	assert_non_null(the_grant());
	generation = other.in.ring->generation;
	/* An invalid record. */
	hostile_send(&other, &(struct shm_slot){.headers = UINT8_MAX}, NULL, 0);
	WAIT_FOR(hostile_is_cut_off(&other));
	assert_true(__atomic_load_n(&other.in.ring->generation, __ATOMIC_ACQUIRE) > generation);
	assert_null(the_grant());
}

static const struct delivery *true_delivery;
static uint32_t breaks; /* atomic */
static uint64_t broken_at;

static bool reach_and_break(struct run *run, const struct packet *packet, struct run_reach *reach)
{
	bool reached = true_delivery->reach(run, packet, reach);

	if (reached && !__atomic_fetch_add(&breaks, 1, __ATOMIC_RELEASE)) {
		broken_at = other.in.ring->generation;
		shm_break(shm_of(host_peers()));
	}
	return reached;
}

/* If another thread ends the connection while a grant is made, the grant is void. */
TEST(test_ends_while_it_grants)
{
	struct delivery breaking = *delivery;

	breaks = 0;
	true_delivery = delivery;
	breaking.reach = reach_and_break;
	__atomic_store_n(&delivery, &breaking, __ATOMIC_SEQ_CST);
	send_write(SQ_START_PSN);
	WAIT_FOR(hostile_is_cut_off(&other));
	__atomic_store_n(&delivery, true_delivery, __ATOMIC_SEQ_CST);
	epoch_synchronize();
	assert_int_equal(breaks, 1);
	/* Not even until the end of the connection is noticed. */
	for (uint32_t i = 0; i < SHM_GRANTS; i++)
		assert_true(other.in.ring->grant[i].generation <= broken_at);
}

/* ---- waiting for accesses of the peer ---------------------------------------------------------------------------- */

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

	grants_revoke_and_drain();
	return test_now_ms() - begin_ms;
}

/* Waits as long as the other side reports an access, unless the kernel shows that none can be in progress. */
TEST(test_waits_for_accesses_in_progress)
{
	uint64_t *ticket = &other.out.ring->access.ticket;
	pthread_t runs, ends;

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

/* Stopped, or in a signal handler: the thread is not in the system call, and would check again before one. */
TEST(test_waits_for_no_sleeper)
{
	pthread_t sleeps = thread_start(0);

	other.out.ring->access.thread = running_thread;
	other.out.ring->access.ticket = 1;
	assert_in_range(ms_to_settle(), 0, 700);
	running_state = 2;
	pthread_join(sleeps, NULL);
	/* Now the access has ended. */
	other.out.ring->access.ticket = 2;
	assert_in_range(ms_to_settle(), 0, 700);
}

TEST(test_does_not_wait_for_processes_that_left)
{
	pthread_t runs = thread_start(1);

	other.out.ring->access.thread = running_thread;
	other.out.ring->access.ticket = 1;
	shutdown(other.socket, SHUT_WR);
	assert_in_range(ms_to_settle(), 0, 700);
	running_state = 2;
	pthread_join(runs, NULL);
}

enum { PAGE = 4096 };

/*
 * Makes the page at @page missing until the descriptor is closed: accesses to it block. Returns -1 if the kernel does
 * not permit that.
 */
static int make_missing(uint8_t *page)
{
	struct uffdio_register range = {.range = {(uintptr_t)page, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		return -1;
	assert_int_equal(madvise(page, PAGE, MADV_DONTNEED), 0);
	assert_int_equal(ioctl(fd, UFFDIO_API, &api), 0);
	assert_int_equal(ioctl(fd, UFFDIO_REGISTER, &range), 0);
	return fd;
}

static void *read_into(void *page)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	__atomic_store_n(&running_thread, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	assert_int_equal(pread(fd, page, 8, 0), 8);
	close(fd);
	return NULL;
}

/* A thread that stays in a system call as accesses do, but in one with its own file and memory. */
TEST(test_waits_not_for_ever)
{
	uint8_t *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t before = explain_latest(device.hca);
	struct explain_record record;
	int fd = make_missing(page);
	pthread_t waits;

	if (fd < 0)
		skip();
	running_thread = 0;
	assert_int_equal(pthread_create(&waits, NULL, read_into, page), 0);
	WAIT_FOR(__atomic_load_n(&running_thread, __ATOMIC_ACQUIRE));
	other.out.ring->access.thread = running_thread;
	other.out.ring->access.ticket = 1;
	grants_revoke_and_drain();
	assert_true(explain_previous(device.hca, 0, 0, &record));
	assert_true(record.serial > before);
	assert_int_equal(record.rule, RULE_SHM_ACCESS);
	WAIT_FOR(hostile_is_cut_off(&other));
	close(fd);
	pthread_join(waits, NULL);
	munmap(page, PAGE);
}

/* ---- accesses of the device ------------------------------------------------------------------------------------ */

/* Writes the grant in all places, since the test does not depend on where the device looks. */
static void grant(const struct shm_grant *wanted)
{
	for (uint32_t i = 0; i < SHM_GRANTS; i++)
		other.out.ring->grant[i] = *wanted;
	other.out.ring->state.granted++;
}

static struct shm_grant good_grant(void)
{
	return (struct shm_grant){
		.sequence = 2,
		.source = end.qp->number,
		.destination = its_qpn,
		.rkey = mkey_number(device.region),
		.generation = 1,
		.start = (uintptr_t)device.memory + SECOND_HALF,
		.length = FAR_BYTES,
		.memory = (uintptr_t)far,
		.reads = 1,
		.writes = 1,
	};
}

/* Posts a WRITE or READ; returns true if it was executed without a record. */
static bool is_direct(uint8_t opcode, uint32_t remote, uint32_t length)
{
	uint64_t before = counted(COUNTER_SHM_DIRECT_WRITES) + counted(COUNTER_SHM_DIRECT_READS);

	put_rdma(&device, &end, opcode, 0, SECOND_HALF + remote, length);
	ring(&end);
	posted++;
	return counted(COUNTER_SHM_DIRECT_WRITES) + counted(COUNTER_SHM_DIRECT_READS) != before;
}

/* Acknowledges all packets so far, the last of which has @psn. */
static void acknowledge_only(uint32_t psn)
{
	struct shm_slot slot = hostile_bth(ACKNOWLEDGE, end.qp->number, psn, 0);
	const uint8_t aeth[4] = {NO_CREDITS};

	memcpy(slot.bytes + 12, aeth, sizeof(aeth));
	slot.headers = 16;
	hostile_send(&other, &slot, NULL, 0);
}

static void acknowledge(uint32_t psn)
{
	acknowledge_only(psn);
	WAIT_FOR(__atomic_load_n(&end.qp->requester.peer_signs, __ATOMIC_RELAXED));
	let_it_finish();
	expect_cqe(&cq, (uint16_t)(posted - 1), 0);
}

/* Makes the other side acknowledge a WRITE, sleep, and grant @wanted. */
static void be_granted(const struct shm_grant *wanted)
{
	if (!guarded_call_works())
		skip();
	grant(wanted);
	other.out.ring->state.sleeps = 1;
	assert_false(is_direct(MLX5_OPCODE_RDMA_WRITE, 0, 8));
	assert_true(shm_ready(&other.in));
	acknowledge(SQ_START_PSN);
	memset(far, 0, sizeof(far));
}

TEST(test_accesses)
{
	const struct shm_grant wanted = good_grant();

	be_granted(&wanted);
	for (uint32_t length = 1; length <= 4096; length = length * 2 + 1) {
		memset(far, 0, sizeof(far));
		assert_true(is_direct(MLX5_OPCODE_RDMA_WRITE, 4096 - 3, length));
		expect_cqe(&cq, (uint16_t)(posted - 1), 0);
		assert_memory_equal(far + 4096 - 3, device.memory, length);
		assert_int_equal(far[4096 - 4], 0);
		assert_int_equal(far[4096 - 3 + length], 0);
	}
	far[FAR_BYTES - 1] = 99;
	assert_true(is_direct(MLX5_OPCODE_RDMA_READ, FAR_BYTES - 20, 20));
	expect_cqe(&cq, (uint16_t)(posted - 1), 0);
	assert_memory_equal(far + FAR_BYTES - 20, device.memory, 20);
	/* It left no trace in the ring, and used no sequence number. The peer sees that there were accesses. */
	assert_int_equal(other.in.ring->access.count, posted - 1);
	assert_int_equal(end.qp->requester.psn, psn_add(SQ_START_PSN, 1));
	assert_false(is_direct(MLX5_OPCODE_RDMA_WRITE, 0, 4097));
	/* While a request is in flight, the ones after it also use the ring. */
	assert_false(is_direct(MLX5_OPCODE_RDMA_WRITE, 0, 8));
}

enum program { WAITS, STREAMS, POSTS_BURSTS, IS_ANSWERED };

enum { BURST = 8 };

/*
 * Posts WRITEs for @seconds, or until one uses the ring. Programs that stream or are answered poll each completion after the
 * next request. Returns true if all were direct.
 */
static bool all_are_direct(enum program program, double seconds)
{
	double until = seconds_now() + seconds;
	uint16_t polled = posted;

	do {
		if (program == IS_ANSWERED)
			other.out.ring->access.count++;
		if (!is_direct(MLX5_OPCODE_RDMA_WRITE, 0, 8))
			return false;
		if (program == POSTS_BURSTS && posted % BURST)
			continue;
		while (polled != posted - (program == STREAMS || program == IS_ANSWERED))
			expect_cqe(&cq, polled++, 0);
	} while (seconds_now() < until);
	return true;
}

/* A program that does not wait for its requests is served faster by the ring, once it has woken the peer. */
TEST(test_stream_uses_the_ring)
{
	const struct shm_grant wanted = good_grant();

	be_granted(&wanted);
	assert_false(all_are_direct(STREAMS, 30));
	assert_true(shm_ready(&other.in));
}

/* The program waits only for the last request of each burst. */
TEST(test_bursts_use_the_ring)
{
	const struct shm_grant wanted = good_grant();

	be_granted(&wanted);
	assert_false(all_are_direct(POSTS_BURSTS, 30));
}

static void wait_until_answered(uint32_t psn)
{
	acknowledge_only(psn);
	WAIT_FOR(__atomic_load_n(&end.qp->requester.first, __ATOMIC_ACQUIRE) ==
		 __atomic_load_n(&end.qp->requester.last, __ATOMIC_ACQUIRE));
	let_it_finish();
	expect_cqe(&cq, (uint16_t)(posted - 1), 0);
}

/* The program turns out to wait for each request: it is served directly again, and the ring is tried later next time. */
TEST(test_no_stream_after_all)
{
	const struct shm_grant wanted = good_grant();
	double begin;
	uint32_t psn = psn_add(SQ_START_PSN, 1);

	be_granted(&wanted);
	assert_false(all_are_direct(STREAMS, 30));
	expect_cqe(&cq, (uint16_t)(posted - 2), 0);
	for (int i = 0; i < 3; i++) {
		wait_until_answered(psn);
		assert_false(is_direct(MLX5_OPCODE_RDMA_WRITE, 0, 8));
		psn = psn_add(psn, 1);
	}
	wait_until_answered(psn);
	assert_true(is_direct(MLX5_OPCODE_RDMA_WRITE, 0, 8));
	expect_cqe(&cq, (uint16_t)(posted - 1), 0);
	begin = seconds_now();
	assert_false(all_are_direct(STREAMS, 30));
	assert_true(seconds_now() - begin >= 0.0008);
}

TEST(test_program_that_waits_uses_no_ring)
{
	const struct shm_grant wanted = good_grant();

	be_granted(&wanted);
	assert_true(all_are_direct(WAITS, 0.02));
}

/* The peer answers each request by a direct access, too. */
TEST(test_program_that_is_answered_uses_no_ring)
{
	const struct shm_grant wanted = good_grant();

	be_granted(&wanted);
	assert_true(all_are_direct(IS_ANSWERED, 0.02));
}

/* The kernel refuses an access to a page that userfaultfd(2) would have to provide: the WRITE uses the ring. */
TEST(test_missing_page)
{
	const struct shm_grant wanted = good_grant();
	uint8_t *page = (uint8_t *)(((uintptr_t)far + PAGE - 1) & -(uintptr_t)PAGE);
	int fd;

	be_granted(&wanted);
	fd = make_missing(page);
	if (fd < 0)
		skip();
	assert_false(is_direct(MLX5_OPCODE_RDMA_WRITE, (uint32_t)(page - far), 8));
	close(fd);
	assert_int_equal(page[0], 0);
	assert_int_equal(counted(COUNTER_SHM_DIRECT_REFUSED), 1);
}

static void expect_none(const struct shm_grant *wanted, uint8_t opcode, uint32_t remote, uint32_t length)
{
	static const uint8_t nothing[FAR_BYTES];

	be_granted(wanted);
	assert_false(is_direct(opcode, remote, length));
	assert_memory_equal(far, nothing, sizeof(far));
}

#define NO_ACCESS(name, change, opcode, remote, length)                                                                \
	TEST(name)                                                                                                     \
	{                                                                                                              \
		struct shm_grant wanted = good_grant();                                                                \
                                                                                                                       \
		change;                                                                                                \
		expect_none(&wanted, opcode, remote, length);                                                          \
	}

NO_ACCESS(test_other_source, wanted.source++, MLX5_OPCODE_RDMA_WRITE, 0, 8)
NO_ACCESS(test_other_destination, wanted.destination++, MLX5_OPCODE_RDMA_WRITE, 0, 8)
NO_ACCESS(test_other_tag, wanted.rkey++, MLX5_OPCODE_RDMA_WRITE, 0, 8)
NO_ACCESS(test_older, wanted.generation = 0, MLX5_OPCODE_RDMA_WRITE, 0, 8)
NO_ACCESS(test_newer, wanted.generation = 2, MLX5_OPCODE_RDMA_WRITE, 0, 8)
NO_ACCESS(test_being_written, wanted.sequence = 3, MLX5_OPCODE_RDMA_WRITE, 0, 8)
NO_ACCESS(test_no_writes, wanted.writes = 0, MLX5_OPCODE_RDMA_WRITE, 0, 8)
NO_ACCESS(test_no_reads, wanted.reads = 0, MLX5_OPCODE_RDMA_READ, 0, 8)
NO_ACCESS(test_before, wanted.start++, MLX5_OPCODE_RDMA_WRITE, 0, 8)
NO_ACCESS(test_behind, wanted.length = 7, MLX5_OPCODE_RDMA_WRITE, 0, 8)
NO_ACCESS(test_far_behind, wanted.length = 8, MLX5_OPCODE_RDMA_WRITE, 16, 8)
NO_ACCESS(test_not_there, wanted.memory = 4096, MLX5_OPCODE_RDMA_WRITE, 0, 8)
NO_ACCESS(test_of_the_kernel, wanted.memory = UINT64_MAX - 7, MLX5_OPCODE_RDMA_WRITE, 0, 8)
NO_ACCESS(test_attends, other.out.ring->state.attends = 1, MLX5_OPCODE_RDMA_WRITE, 0, 8)
NO_ACCESS(test_other_process, other.out.ring->state.process++, MLX5_OPCODE_RDMA_WRITE, 0, 8)
NO_ACCESS(test_other_probe, other.out.ring->state.probe_value++, MLX5_OPCODE_RDMA_WRITE, 0, 8)

/* After a reset of the QP the other side may still have its previous connection. */
TEST(test_needs_an_acknowledgement)
{
	const struct ibv_qp_attr options = {.timeout = 0, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};
	const struct shm_grant wanted = good_grant();

	be_granted(&wanted);
	assert_true(is_direct(MLX5_OPCODE_RDMA_WRITE, 0, 8));
	expect_cqe(&cq, (uint16_t)(posted - 1), 0);
	raw_qp_connect(&device, &end, its_qpn, &options);
	posted = 0;
	assert_false(is_direct(MLX5_OPCODE_RDMA_WRITE, 0, 8));
}

/*
 * softhca_set_faults(3) drops packets that the device sends. Data must therefore be sent as packets: our grants are
 * revoked, and grants of others are not used. Runs last, since the device keeps its filters.
 */
TEST(test_not_with_faults)
{
	const struct shm_grant wanted = good_grant();

	send_write(SQ_START_PSN);
	take_acknowledge();
	assert_non_null(the_grant());
	be_granted(&wanted);
	assert_true(is_direct(MLX5_OPCODE_RDMA_WRITE, 0, 8));
	expect_cqe(&cq, (uint16_t)(posted - 1), 0);
	assert_int_equal(filters_set_faults(device.hca, NULL), 0);
	assert_null(the_grant());
	assert_false(is_direct(MLX5_OPCODE_RDMA_WRITE, 0, 8));
}

int main(void)
{
	return run_cases(.setup = begin, .teardown = shm_world_end, .group_setup = shm_world_open,
			 .group_teardown = shm_world_close);
}
