/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_get_cq_event(3) in a thread that substitutes for the device thread (src/progress/substitute_poller.h). The tests
 * check that it does, and that events and packets are handled despite signals, cancellation, other threads and fork.
 * Both ends are in this process, but packets use the link in SOFTHCA_LINK.
 */
#include "fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../include/softhca.h"

enum {
	BYTES = 64,
	ROUNDS = 100,
	MESSAGES = 50,
	LONG = 600,
	TRIES = 20,
	SIGNAL_EVERY = 16,
	WAITERS = 3,
	SOON_MS = 10000,
	SHORT_US = 20000,
	STAY_US = 300000,
	LOOK_MS = 40
};

/* Two connected QPs: `far` receives from `near`, in a CQ with a channel. */
struct pair {
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *receive_cq;
	struct ibv_qp *near, *far;
	int sent;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static char memory[4096];

static void open_pair(struct pair *pair)
{
	pair->sent = 0;
	pair->channel = ibv_create_comp_channel(context);
	pair->send_cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	CHECK(pair->channel && pair->send_cq);
	pair->receive_cq = ibv_create_cq(context, 64, NULL, pair->channel, 0);
	CHECK(pair->receive_cq);
	pair->near = make_qp(pd, IBV_QPT_RC, pair->send_cq, pair->send_cq, NULL);
	pair->far = make_qp(pd, IBV_QPT_RC, pair->receive_cq, pair->receive_cq, NULL);
	connect_pair(pair->near, pair->far);
}

static void close_pair(struct pair *pair)
{
	CHECK(!ibv_destroy_qp(pair->near) && !ibv_destroy_qp(pair->far) && !ibv_destroy_cq(pair->send_cq));
	CHECK(!ibv_destroy_cq(pair->receive_cq) && !ibv_destroy_comp_channel(pair->channel));
}

static void post_receive(struct pair *pair)
{
	struct ibv_recv_wr *bad, wr = {.wr_id = 7};

	CHECK(!ibv_post_recv(pair->far, &wr, &bad));
}

static void post(struct pair *pair, enum ibv_wr_opcode opcode, unsigned int flags)
{
	struct ibv_sge sge = {(uintptr_t)memory, BYTES, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = opcode == IBV_WR_RDMA_WRITE,
				       .opcode = opcode,
				       .send_flags = flags,
				       .wr.rdma = {(uintptr_t)memory + 2048, mr->rkey}};

	CHECK(!ibv_post_send(pair->near, &wr, &bad));
}

/* Arms the CQ and takes earlier completions; returns true if there were any. */
static bool arm(struct pair *pair)
{
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
	int count;

	CHECK(!ibv_req_notify_cq(pair->receive_cq, 0));
	count = ibv_poll_cq(pair->receive_cq, 1, &wc);
	CHECK(wc.status == IBV_WC_SUCCESS);
	return count == 1;
}

/*
 * Waits for a completion; -1 if ibv_get_cq_event() failed, with errno set. Some events may be for completions that were
 * already taken.
 */
static int wait_event(struct pair *pair)
{
	struct ibv_cq *cq;
	void *cookie;

	while (!arm(pair)) {
		if (ibv_get_cq_event(pair->channel, &cq, &cookie))
			return -1;
		CHECK(cq == pair->receive_cq);
		ibv_ack_cq_events(cq, 1);
	}
	return 0;
}

/* ---- a thread that waits ---------------------------------------------------------------------------------------- */

struct waiter {
	struct pair pair;
	pthread_t thread;
	int events; /* atomic; number of events received */
	int error;  /* atomic; errno of a wait that failed, which ends it */
	int last;   /* number of events after which it ends */
	pid_t id;   /* atomic */
};

static void *wait_for_events(void *argument)
{
	struct waiter *waiter = argument;

	__atomic_store_n(&waiter->id, gettid(), __ATOMIC_RELEASE);
	while (__atomic_load_n(&waiter->events, __ATOMIC_RELAXED) < waiter->last) {
		if (wait_event(&waiter->pair)) {
			__atomic_store_n(&waiter->error, errno, __ATOMIC_RELEASE);
			break;
		}
		__atomic_add_fetch(&waiter->events, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void begin(struct waiter *waiter, int last, void *(*body)(void *))
{
	waiter->events = 0;
	waiter->error = 0;
	waiter->last = last;
	waiter->id = 0;
	CHECK(!pthread_create(&waiter->thread, NULL, body, waiter));
}

static void begin_waiting(struct waiter *waiter, int last)
{
	begin(waiter, last, wait_for_events);
}

static bool soon(const int *value, int wanted)
{
	for (int ms = 0; ms < SOON_MS; ms++) {
		if (__atomic_load_n(value, __ATOMIC_ACQUIRE) >= wanted)
			return true;
		usleep(1000);
	}
	return false;
}

/* Waits until the thread sleeps in read(2). */
static void await_sleep(struct waiter *waiter)
{
	char path[64], text[64] = "";
	FILE *file;

	CHECK(soon(&waiter->id, 1));
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", waiter->id);
	for (int ms = 0; ms < SOON_MS && strncmp(text, "0 ", 2) != 0; ms++) {
		usleep(1000);
		file = fopen(path, "re");
		if (!file || !fgets(text, sizeof(text), file))
			usleep(SHORT_US);
		if (!file)
			return;
		fclose(file);
	}
}

static void send_one(struct waiter *waiter)
{
	bool signalled = ++waiter->pair.sent % SIGNAL_EVERY == 0;

	post_receive(&waiter->pair);
	post(&waiter->pair, IBV_WR_SEND, signalled ? IBV_SEND_SIGNALED : 0);
	if (signalled)
		CHECK(wait_completion(waiter->pair.send_cq).status == IBV_WC_SUCCESS);
}

/* Sends one message at a time and waits for each. Send completions are not polled meanwhile. */
static void send_and_see(struct waiter *waiter, int count)
{
	int before = __atomic_load_n(&waiter->events, __ATOMIC_ACQUIRE);

	for (int i = 1; i <= count; i++) {
		send_one(waiter);
		CHECK(soon(&waiter->events, before + i));
	}
}

static void end_waiting(struct waiter *waiter)
{
	CHECK(!pthread_join(waiter->thread, NULL));
}

/* Checks that events reach a thread that starts to wait now. */
static void waiting_works(struct waiter *waiter)
{
	begin_waiting(waiter, 3);
	send_and_see(waiter, 3);
	end_waiting(waiter);
	CHECK(!waiter->error);
}

static uint64_t counter(const char *name)
{
	uint64_t value = softhca_counter(context, name);

	CHECK(value != UINT64_MAX);
	return value;
}

/* ---- the tests -------------------------------------------------------------------------------------------------- */

/* Returns true if packets do not arrive over a link: requests are executed on posting. */
static bool is_local(void)
{
	const char *link = getenv("SOFTHCA_LINK");

	return !link || !strcmp(link, "local");
}

/* A packet that arrives while one thread waits is found by that thread, not by the device thread. */
static void a_thread_stands_in(struct waiter *waiter)
{
	uint64_t found = 0;

	/* On an overloaded machine the device thread has to help. */
	for (int i = 0; i < TRIES && found < MESSAGES / 2; i++) {
		found = counter("program_packets");
		begin_waiting(waiter, MESSAGES);
		send_and_see(waiter, MESSAGES);
		end_waiting(waiter);
		found = is_local() ? MESSAGES : counter("program_packets") - found;
	}
	CHECK(found >= MESSAGES / 2);
}

/* Sends more than the kernel queues notifications for: its limit is a few hundred requests. */
static void for_long(struct waiter *waiter)
{
	begin_waiting(waiter, LONG);
	send_and_see(waiter, LONG);
	end_waiting(waiter);
	a_thread_stands_in(waiter);
}

static void cancelled(struct waiter *waiter)
{
	void *result;

	for (int i = 0; i < 20; i++) {
		begin_waiting(waiter, 1000);
		if (i % 2)
			send_and_see(waiter, 2);
		usleep((useconds_t)(i * 300));
		CHECK(!pthread_cancel(waiter->thread));
		CHECK(!pthread_join(waiter->thread, &result) && result == PTHREAD_CANCELED);
	}
	/* The thread is no longer recorded as the substitute. */
	a_thread_stands_in(waiter);
}

static void *take_one_event(void *argument)
{
	struct waiter *waiter = argument;
	struct ibv_cq *cq;
	void *cookie;

	__atomic_store_n(&waiter->id, gettid(), __ATOMIC_RELEASE);
	CHECK(!ibv_get_cq_event(waiter->pair.channel, &cq, &cookie));
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	ibv_ack_cq_events(cq, 1);
	waiter->events = 1;
	return NULL;
}

/* An event that arrives at that moment goes to this thread or to the next one. */
static void cancelled_as_it_comes(struct waiter *waiter)
{
	struct pollfd readable = {.fd = waiter->pair.channel->fd, .events = POLLIN};

	for (int i = 0; i < 400; i++) {
		while (arm(&waiter->pair))
			;
		begin(waiter, 1, take_one_event);
		CHECK(soon(&waiter->id, 1));
		usleep((useconds_t)(i % 40 * 5));
		send_one(waiter);
		CHECK(!pthread_cancel(waiter->thread));
		end_waiting(waiter);
		if (!waiter->events) {
			CHECK(poll(&readable, 1, SOON_MS) == 1);
			take_one_event(waiter);
			pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
		}
		CHECK(arm(&waiter->pair));
	}
	waiting_works(waiter);
}

static int signals; /* atomic */

static void count_signal(int number)
{
	(void)number;
	__atomic_add_fetch(&signals, 1, __ATOMIC_RELEASE);
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	CHECK(!sigaction(number, &action, NULL));
}

/* Both kinds of handlers are installed: each signal behaves according to its own, as in a read(2) (signal(7)). */
static void interrupted(struct waiter *waiter)
{
	handle(SIGUSR1, count_signal, SA_RESTART);
	handle(SIGUSR2, count_signal, 0);
	for (int i = 0; i < 10; i++) {
		begin_waiting(waiter, 1000);
		send_and_see(waiter, 2);
		await_sleep(waiter);
		CHECK(!pthread_kill(waiter->thread, SIGUSR1));
		usleep(SHORT_US / 4);
		CHECK(!__atomic_load_n(&waiter->error, __ATOMIC_ACQUIRE));
		send_and_see(waiter, 2);
		await_sleep(waiter);
		CHECK(!pthread_kill(waiter->thread, SIGUSR2));
		CHECK(soon(&waiter->error, 1) && waiter->error == EINTR);
		end_waiting(waiter);
	}
	CHECK(signals == 20);
	a_thread_stands_in(waiter);
}

static int flooding; /* atomic */

static void *flood(void *argument)
{
	struct pair *pair = argument;
	struct ibv_wc wc;

	while (__atomic_load_n(&flooding, __ATOMIC_ACQUIRE)) {
		post(pair, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED);
		/* Sleep, so that the other thread finds it. */
		for (int i = 0; i < 1000 && !ibv_poll_cq(pair->send_cq, 1, &wc); i++)
			usleep(20);
	}
	return NULL;
}

/*
 * A program that is asked to terminate: the signal is sent until it is handled. Meanwhile many packets arrive for other
 * threads.
 */
static void interrupted_in_a_flood(struct waiter *waiter)
{
	pthread_t flooder;
	struct pair pair;
	int tries;

	open_pair(&pair);
	flooding = 1;
	CHECK(!pthread_create(&flooder, NULL, flood, &pair));
	for (int i = 0; i < 5; i++) {
		begin_waiting(waiter, 1000);
		usleep(SHORT_US);
		for (tries = 0; tries < 100 && !__atomic_load_n(&waiter->error, __ATOMIC_ACQUIRE); tries++) {
			CHECK(!pthread_kill(waiter->thread, SIGUSR2));
			usleep(10000);
		}
		CHECK(tries < 100 && waiter->error == EINTR);
		end_waiting(waiter);
	}
	__atomic_store_n(&flooding, 0, __ATOMIC_RELEASE);
	CHECK(!pthread_join(flooder, NULL));
	close_pair(&pair);
	usleep(SHORT_US);
	waiting_works(waiter);
}

static void refuses_to_block(struct waiter *waiter)
{
	int fd = waiter->pair.channel->fd, flags = fcntl(fd, F_GETFL);

	CHECK(!fcntl(fd, F_SETFL, flags | O_NONBLOCK));
	CHECK(wait_event(&waiter->pair) == -1 && errno == EAGAIN);
	CHECK(!fcntl(fd, F_SETFL, flags));
	waiting_works(waiter);
}

/* Several threads wait at once, each on its own channel, and leave and return. */
static void several(struct waiter *waiter)
{
	struct waiter many[WAITERS];

	(void)waiter;
	for (int i = 0; i < WAITERS; i++) {
		open_pair(&many[i].pair);
		begin_waiting(&many[i], ROUNDS);
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < WAITERS; i++)
			send_one(&many[i]);
		for (int i = 0; i < WAITERS; i++)
			CHECK(soon(&many[i].events, round + 1));
	}
	for (int i = 0; i < WAITERS; i++) {
		end_waiting(&many[i]);
		close_pair(&many[i].pair);
	}
}

/*
 * poll(2) on the descriptor while another thread substitutes: it returns within one polling interval of the device
 * thread.
 */
static void polled_beside(struct waiter *waiter)
{
	struct pollfd readable;
	struct pair pair;
	struct ibv_cq *cq;
	void *cookie;

	open_pair(&pair);
	readable = (struct pollfd){.fd = pair.channel->fd, .events = POLLIN};
	begin_waiting(waiter, 2 * ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		send_and_see(waiter, 1);
		post_receive(&pair);
		CHECK(!arm(&pair));
		post(&pair, IBV_WR_SEND, IBV_SEND_SIGNALED);
		/* The substituting thread leaves in the middle. */
		send_one(waiter);
		CHECK(poll(&readable, 1, SOON_MS) == 1);
		CHECK(!ibv_get_cq_event(pair.channel, &cq, &cookie) && cq == pair.receive_cq);
		ibv_ack_cq_events(cq, 1);
		CHECK(wait_completion(cq).status == IBV_WC_SUCCESS);
		CHECK(wait_completion(pair.send_cq).status == IBV_WC_SUCCESS);
		CHECK(soon(&waiter->events, 2 * i + 2));
	}
	end_waiting(waiter);
	close_pair(&pair);
}

static void *wait_for_flush(void *argument)
{
	struct waiter *waiter = argument;
	struct ibv_cq *cq;
	void *cookie;

	__atomic_store_n(&waiter->id, gettid(), __ATOMIC_RELEASE);
	CHECK(!arm(&waiter->pair));
	CHECK(!ibv_get_cq_event(waiter->pair.channel, &cq, &cookie));
	ibv_ack_cq_events(cq, 1);
	CHECK(wait_completion(cq).status == IBV_WC_WR_FLUSH_ERR);
	__atomic_add_fetch(&waiter->events, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Events raised by other threads wake the substituting thread: here by flushing, and by the timer of a moderated CQ. */
static void others_raise(struct waiter *waiter)
{
	struct ibv_modify_cq_attr moderate = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {16, 3000}};
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct waiter other;

	(void)waiter;
	open_pair(&other.pair);
	CHECK(!ibv_modify_cq(other.pair.receive_cq, &moderate));
	begin_waiting(&other, 4);
	send_and_see(&other, 4);
	end_waiting(&other);
	CHECK(!other.error);
	moderate.moderate.cq_count = moderate.moderate.cq_period = 0;
	CHECK(!ibv_modify_cq(other.pair.receive_cq, &moderate));
	/* Flush it; wait_event() ignores such completions. */
	post_receive(&other.pair);
	begin(&other, 1, wait_for_flush);
	await_sleep(&other);
	CHECK(!ibv_modify_qp(other.pair.far, &error, IBV_QP_STATE));
	CHECK(soon(&other.events, 1));
	end_waiting(&other);
	close_pair(&other.pair);
}

static sigjmp_buf way_out;

static void jump(int number)
{
	(void)number;
	siglongjmp(way_out, 1);
}

static void *wait_and_jump(void *argument)
{
	if (!sigsetjmp(way_out, 1))
		wait_for_events(argument);
	return NULL;
}

/* The last test: no thread substitutes any more, and the device thread does all the work. */
static void jumped_out(struct waiter *waiter)
{
	struct waiter other;

	handle(SIGUSR2, jump, 0);
	begin(waiter, 1000, wait_and_jump);
	send_and_see(waiter, 2);
	await_sleep(waiter);
	CHECK(!pthread_kill(waiter->thread, SIGUSR2));
	end_waiting(waiter);
	open_pair(&other.pair);
	for (int i = 0; i < 3; i++)
		waiting_works(&other);
	close_pair(&other.pair);
	waiting_works(waiter);
}

static void stay_long(int number)
{
	(void)number;
	usleep(STAY_US);
	count_signal(number);
}

/*
 * A substituting thread that is in a long signal handler delays others until the device thread polls: less than the
 * sender's timer (67 ms at least), which triggers a poll too. Returns the delay.
 */
static uint64_t wait_meanwhile(struct waiter *waiter)
{
	struct timespec begin, end;
	struct pollfd readable;
	struct ibv_cq *cq;
	struct pair pair;
	void *cookie;

	open_pair(&pair);
	readable = (struct pollfd){.fd = pair.channel->fd, .events = POLLIN};
	/* Until a thread may substitute again. */
	usleep(SHORT_US);
	begin_waiting(waiter, 4);
	send_and_see(waiter, 3);
	await_sleep(waiter);
	__atomic_store_n(&signals, 0, __ATOMIC_RELEASE);
	CHECK(!pthread_kill(waiter->thread, SIGUSR1));
	usleep(SHORT_US);
	post_receive(&pair);
	CHECK(!arm(&pair));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	post(&pair, IBV_WR_SEND, 0);
	CHECK(poll(&readable, 1, SOON_MS) == 1);
	clock_gettime(CLOCK_MONOTONIC, &end);
	CHECK(!ibv_get_cq_event(pair.channel, &cq, &cookie));
	ibv_ack_cq_events(cq, 1);
	close_pair(&pair);
	send_and_see(waiter, 1);
	end_waiting(waiter);
	CHECK(__atomic_load_n(&signals, __ATOMIC_ACQUIRE) == 1);
	return (uint64_t)(end.tv_sec - begin.tv_sec) * 1000 + (uint64_t)(end.tv_nsec / 1000000) -
	       (uint64_t)(begin.tv_nsec / 1000000);
}

static void does_not_run(struct waiter *waiter)
{
	uint64_t least_ms = UINT64_MAX;

	handle(SIGUSR1, stay_long, SA_RESTART);
	for (int i = 0; i < 5 && least_ms > LOOK_MS; i++) {
		uint64_t ms = wait_meanwhile(waiter);

		if (ms < least_ms)
			least_ms = ms;
	}
	CHECK(least_ms <= LOOK_MS);
}

/* The child has no substituting thread; its device thread does the work. */
static void forked(struct waiter *waiter)
{
	int status;
	pid_t child;

	for (int i = 0; i < 10; i++) {
		begin_waiting(waiter, 4);
		send_and_see(waiter, 3);
		child = fork();
		CHECK(child >= 0);
		if (!child) {
			struct pair own;

			alarm(30);
			context = open_first_device();
			pd = ibv_alloc_pd(context);
			mr = ibv_reg_mr(pd, memory, sizeof(memory), ACCESS);
			open_pair(&own);
			for (int j = 0; j < 5; j++) {
				post_receive(&own);
				post(&own, IBV_WR_SEND, 0);
				CHECK(!wait_event(&own));
			}
			_exit(0);
		}
		send_and_see(waiter, 1);
		end_waiting(waiter);
		CHECK(waitpid(child, &status, 0) == child && !status);
	}
}

int main(void)
{
	void (*const tests[])(struct waiter *) = {
		a_thread_stands_in,     for_long,         cancelled, cancelled_as_it_comes, interrupted,
		interrupted_in_a_flood, refuses_to_block, several,   polled_beside,         others_raise,
		does_not_run,           forked,           jumped_out};
	struct waiter waiter;
	char port[16];

	/* A port that differs from that of a concurrent test, which would receive for this one. */
	snprintf(port, sizeof(port), "%d", 20000 + getpid() % 20000);
	setenv("SOFTHCA_ROCE_PORT", port, 1);
	context = open_first_device();
	pd = ibv_alloc_pd(context);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), ACCESS);
	CHECK(pd && mr);
	open_pair(&waiter.pair);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tests[i](&waiter);
	close_pair(&waiter.pair);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(context));
	return 0;
}
