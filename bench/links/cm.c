/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of rdma_cm between two processes, each with its own RC QP, compared with TCP connections: all stay open until the
 * last one is made, WINDOW of them in progress at a time. The client prints the time per connection.
 *
 *	softhca-bench-cm rdma|tcp --port N --count N [--connect ADDRESS]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>

enum { WINDOW = 64, BACKLOG = 1024 };

static struct {
	uint32_t count, begun, done;
	struct sockaddr_in peer;
	struct rdma_event_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
} bench;

#define MUST(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s: %s\n", #condition, strerror(errno));                                      \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static double seconds_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double resident(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages;

	MUST(file && fscanf(file, "%*u %lu", &pages) == 1);
	fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* ---- rdma_cm --------------------------------------------------------------------------------------------------------- */

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};

	if (!bench.cq) {
		bench.cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
		MUST(bench.cq);
	}
	attr.send_cq = attr.recv_cq = bench.cq;
	MUST(!rdma_create_qp(id, NULL, &attr));
}

static void begin_one(void)
{
	struct rdma_cm_id *id;

	bench.begun++;
	MUST(!rdma_create_id(bench.channel, &id, NULL, RDMA_PS_TCP));
	MUST(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&bench.peer, 2000));
}

/* Returns false when the peer disconnects. */
static bool handle(const struct rdma_cm_event *event)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		MUST(!rdma_resolve_route(event->id, 2000));
		return true;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		make_qp(event->id);
		MUST(!rdma_connect(event->id, &param));
		return true;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		make_qp(event->id);
		MUST(!rdma_accept(event->id, &param));
		return true;
	case RDMA_CM_EVENT_ESTABLISHED:
		bench.done++;
		return true;
	case RDMA_CM_EVENT_DISCONNECTED:
		return false;
	default:
		fprintf(stderr, "%s, status %d\n", rdma_event_str(event->event), event->status);
		exit(1);
	}
}

static bool next_event(void)
{
	struct rdma_cm_event *event;
	bool goes_on;

	MUST(!rdma_get_cm_event(bench.channel, &event));
	goes_on = handle(event);
	rdma_ack_cm_event(event);
	return goes_on;
}

static void rdma_serve(void)
{
	struct rdma_cm_id *id;

	MUST(!rdma_create_id(bench.channel, &id, NULL, RDMA_PS_TCP));
	MUST(!rdma_bind_addr(id, (struct sockaddr *)&bench.peer));
	MUST(!rdma_listen(id, BACKLOG));
	while (next_event())
		;
	MUST(bench.done == bench.count);
}

static void rdma_run(bool connects)
{
	bench.channel = rdma_create_event_channel();
	MUST(bench.channel);
	if (!connects) {
		rdma_serve();
		return;
	}
	while (bench.done < bench.count) {
		while (bench.begun < bench.count && bench.begun - bench.done < WINDOW)
			begin_one();
		next_event();
	}
}

/* ---- TCP --------------------------------------------------------------------------------------------------------------- */

static void tcp_serve(int listening)
{
	char word;
	int last = -1;

	MUST(!bind(listening, (struct sockaddr *)&bench.peer, sizeof(bench.peer)));
	MUST(!listen(listening, BACKLOG));
	for (; bench.done < bench.count; bench.done++) {
		last = accept(listening, NULL, NULL);
		MUST(last >= 0);
	}
	/* Waits until the client ends. */
	MUST(read(last, &word, sizeof(word)) <= 0);
}

static void tcp_connect_all(int epoll)
{
	struct epoll_event events[WINDOW];

	while (bench.done < bench.count) {
		while (bench.begun < bench.count && bench.begun - bench.done < WINDOW) {
			int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
			struct epoll_event event = {.events = EPOLLOUT | EPOLLONESHOT};

			MUST(fd >= 0);
			bench.begun++;
			MUST(!connect(fd, (struct sockaddr *)&bench.peer, sizeof(bench.peer)) || errno == EINPROGRESS);
			MUST(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
		}
		bench.done += (uint32_t)epoll_wait(epoll, events, WINDOW, -1);
	}
}

static void tcp_run(bool connects)
{
	if (connects)
		tcp_connect_all(epoll_create1(0));
	else
		tcp_serve(socket(AF_INET, SOCK_STREAM, 0));
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"port", required_argument, NULL, 'p'},
		{"count", required_argument, NULL, 'n'},
		{"connect", required_argument, NULL, 'c'},
		{NULL, 0, NULL, 0},
	};
	bool connects = false, rdma = argc > 1 && !strcmp(argv[1], "rdma");
	struct rlimit limit = {.rlim_cur = 1 << 16, .rlim_max = 1 << 16};
	double begin, before;
	int option;

	bench.peer.sin_family = AF_INET;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'p')
			bench.peer.sin_port = htons((uint16_t)atoi(optarg));
		else if (option == 'n')
			bench.count = (uint32_t)atoi(optarg);
		else if (option == 'c')
			connects = inet_pton(AF_INET, optarg, &bench.peer.sin_addr) == 1;
		else
			return 2;
	}
	/* May fail; then the descriptors for TCP must suffice. */
	setrlimit(RLIMIT_NOFILE, &limit);
	before = resident();
	begin = seconds_now();
	(rdma ? rdma_run : tcp_run)(connects);
	if (!connects)
		return 0;
	printf("us_per_connection %.3f\n", (seconds_now() - begin) / bench.count * 1e6);
	printf("bytes_per_connection %.0f\n", (resident() - before) / bench.count);
	return 0;
}
