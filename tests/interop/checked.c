/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Main program: arguments, the TCP connection between both processes, and the commands of the responder.
 *
 * 	checked -d DEVICE -g GID -p PORT                                the responder
 * 	checked -d DEVICE -g GID -p PORT [-k NAME=STATUS,…] data|atomic-write|unreliable|errors ADDRESS    the requester
 *
 * -k lists accepted outcomes that differ from IBTA.
 */
#include "checked.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned passed, failed;

void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	fflush(stdout);
	exit(1);
}

bool report(bool right, const char *name, const char *format, ...)
{
	va_list arguments;

	printf("%s %s", right ? "ok" : "not ok", name);
	if (!right) {
		va_start(arguments, format);
		printf(": ");
		vprintf(format, arguments);
		va_end(arguments);
	}
	printf("\n");
	fflush(stdout);
	passed += right;
	failed += !right;
	return right;
}

/* ---- the connection --------------------------------------------------------------------------------------------- */

static void transfer(int socket, void *data, size_t bytes, bool out)
{
	ssize_t done;

	for (size_t sum = 0; sum < bytes; sum += done) {
		done = out ? send(socket, (char *)data + sum, bytes - sum, MSG_NOSIGNAL)
			   : recv(socket, (char *)data + sum, bytes - sum, 0);
		if (done <= 0)
			fail("the other process has ended");
	}
}

static struct message exchange(struct end *end, struct message message)
{
	transfer(end->peer, &message, sizeof message, true);
	transfer(end->peer, &message, sizeof message, false);
	return message;
}

static int await_peer(const char *port)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(port))};
	int one = 1, listener = socket(AF_INET6, SOCK_STREAM, 0), peer;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1))
		fail("cannot listen at port %s: %m", port);
	peer = accept(listener, NULL, NULL);
	if (peer < 0)
		fail("accept: %m");
	close(listener);
	return peer;
}

static int connect_peer(const char *name, const char *port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	int peer, one = 1;

	if (getaddrinfo(name, port, &hints, &found))
		fail("there is no host %s", name);
	peer = socket(found->ai_family, SOCK_STREAM, 0);
	if (connect(peer, found->ai_addr, found->ai_addrlen))
		fail("cannot connect to %s: %m", name);
	setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	freeaddrinfo(found);
	return peer;
}

/* ---- the responder ---------------------------------------------------------------------------------------------- */

static uint64_t second_region(struct end *end, unsigned access)
{
	end->second = ibv_reg_mr(end->pd, end->memory, REGION, access);
	if (!end->second)
		fail("ibv_reg_mr: %m");
	return end->second->rkey;
}

static void answer(struct end *end, struct message *message)
{
	uint64_t *v = message->values;
	struct outcome outcome;

	switch ((enum request)message->request) {
	case OPEN:
		end->other = message->address;
		open_qp(end, &message->options);
		connect_qp(end);
		message->address = end->own;
		break;
	case FILL:
		fill(end, v[0]);
		break;
	case COMPARE:
		v[0] = compare(end, v[0], v[1], v[2], v[3]);
		break;
	case CHECK:
		v[0] = check(end, v[0], v[1], v[2], v[3], v[4]);
		break;
	case WORD:
		memcpy(v, end->memory + v[0], sizeof *v);
		break;
	case RECEIVE:
		receive(end, v[0], v[1], v[2]);
		break;
	case WAIT:
		outcome = await_completion(end);
		for (int i = 0; i < 5; i++)
			v[i] = (uint32_t[]){outcome.status, outcome.opcode, outcome.bytes, outcome.flags,
					    outcome.data}[i];
		break;
	case BIND:
		v[0] = bind_window(end, v[0], v[1], v[2]);
		break;
	case INVALIDATE:
		invalidate(end, v[0]);
		break;
	case REGISTER:
		v[0] = second_region(end, v[0]);
		break;
	case DEREGISTER:
		ibv_dereg_mr(end->second);
		end->second = NULL;
		break;
	case END:
		break;
	}
}

void serve(struct end *end)
{
	struct message message;

	do {
		transfer(end->peer, &message, sizeof message, false);
		answer(end, &message);
		transfer(end->peer, &message, sizeof message, true);
	} while (message.request != END);
}

/* ---- the requester ---------------------------------------------------------------------------------------------- */

uint64_t ask(struct end *end, enum request request, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	return exchange(end, (struct message){.request = request, .values = {a, b, c, d, e}}).values[0];
}

struct outcome ask_outcome(struct end *end)
{
	struct message message = exchange(end, (struct message){.request = WAIT});

	return (struct outcome){message.values[0], message.values[1], message.values[2], message.values[3],
				message.values[4]};
}

void join(struct end *end, const struct options *options)
{
	struct message message = {.request = OPEN, .options = *options};

	open_qp(end, options);
	message.address = end->own;
	end->other = exchange(end, message).address;
	if (options->wrong_qpn)
		end->other.qpn ^= 0x700000;
	connect_qp(end);
	fill(end, LOCAL);
	ask(end, FILL, REMOTE, 0, 0, 0, 0);
}

void prepare(struct end *end, struct ibv_send_wr *request, struct ibv_sge *piece, enum ibv_wr_opcode opcode,
	     uint64_t local, uint32_t bytes, uint64_t remote, uint32_t key)
{
	*piece = (struct ibv_sge){(uintptr_t)end->memory + local, bytes, end->mr->lkey};
	*request =
		(struct ibv_send_wr){.opcode = opcode, .sg_list = piece, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
	if (opcode == IBV_WR_SEND_WITH_INV)
		request->invalidate_rkey = key;
	else
		request->imm_data = htonl(IMMEDIATE);
	if (end->handle) {
		request->wr.ud.ah = end->handle;
		request->wr.ud.remote_qpn = end->other.qpn;
		request->wr.ud.remote_qkey = QKEY;
	} else if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		request->wr.atomic.remote_addr = end->other.memory + remote;
		request->wr.atomic.rkey = key;
	} else {
		request->wr.rdma.remote_addr = end->other.memory + remote;
		request->wr.rdma.rkey = key;
	}
}

bool post_list(struct end *end, struct ibv_send_wr *request)
{
	struct ibv_send_wr *bad;

	errno = ibv_post_send(end->qp, request, &bad);
	if (errno && errno != EINVAL)
		fail("ibv_post_send: %m");
	return !errno;
}

bool post(struct end *end, enum ibv_wr_opcode opcode, uint64_t local, uint32_t bytes, uint64_t remote, uint32_t key)
{
	struct ibv_send_wr request;
	struct ibv_sge piece;

	prepare(end, &request, &piece, opcode, local, bytes, remote, key);
	return post_list(end, &request);
}

int main(int count, char **arguments)
{
	const char *device = NULL, *port = "18515", *known = "";
	int gid_index = 0, letter;
	struct end *end;

	while ((letter = getopt(count, arguments, "d:g:p:k:")) != -1) {
		switch (letter) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			gid_index = atoi(optarg);
			break;
		case 'p':
			port = optarg;
			break;
		case 'k':
			known = optarg;
			break;
		default:
			return 2;
		}
	}
	end = open_end(device, gid_index);
	if (optind == count) {
		end->peer = await_peer(port);
		serve(end);
		return 0;
	}
	if (optind != count - 2)
		return 2;
	end->peer = connect_peer(arguments[count - 1], port);
	if (!strcmp(arguments[optind], "data"))
		run_data(end, known);
	else if (!strcmp(arguments[optind], "atomic-write"))
		run_atomic_write(end);
	else if (!strcmp(arguments[optind], "unreliable"))
		run_unreliable(end);
	else
		run_errors(end, known);
	ask(end, END, 0, 0, 0, 0, 0);
	printf("%u of %u\n", passed, passed + failed);
	return failed != 0;
}
