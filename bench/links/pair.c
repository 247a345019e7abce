/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects two processes and their queue pairs, see pair.h. */
#include "pair.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define INLINE 64

struct hello {
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t target;
};

void die(const char *format, ...)
{
	va_list arguments;

	fputs("softhca-bench-pair: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* ---- TCP ------------------------------------------------------------------------------------------------------ */

static int tcp_open(const struct options *options)
{
	struct addrinfo hints = {.ai_flags = options->address ? 0 : AI_PASSIVE,
				 .ai_family = AF_INET,
				 .ai_socktype = SOCK_STREAM},
			*found;
	int fd, one = 1, error = getaddrinfo(options->address, options->port, &hints, &found);

	if (error)
		die("%s", gai_strerror(error));
	for (int tries = 0;; tries++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)))
			die("socket: %s", strerror(errno));
		if (!options->address) {
			int listener = fd;

			if (bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 1))
				die("port %s: %s", options->port, strerror(errno));
			fd = accept(listener, NULL, NULL);
			close(listener);
			break;
		}
		if (connect(fd, found->ai_addr, found->ai_addrlen) == 0)
			break;
		if (tries == 500)
			die("%s port %s: %s", options->address, options->port, strerror(errno));
		close(fd);
		usleep(10000);
	}
	freeaddrinfo(found);
	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("TCP: %s", strerror(errno));
	return fd;
}

void tcp_send(const struct pair *pair, const void *bytes, size_t length)
{
	if (send(pair->socket, bytes, length, MSG_NOSIGNAL) != (ssize_t)length)
		die("the peer has gone");
}

void tcp_receive(const struct pair *pair, void *bytes, size_t length)
{
	if (recv(pair->socket, bytes, length, MSG_WAITALL) != (ssize_t)length)
		die("the peer has gone");
}

void tcp_meet(const struct pair *pair)
{
	char word = '!';

	tcp_send(pair, &word, 1);
	tcp_receive(pair, &word, 1);
}

/* ---- the device ----------------------------------------------------------------------------------------------- */

/* Chooses RoCE v2 over the address that TCP used, or the first one. */
static void choose_gid(struct pair *pair)
{
	struct sockaddr_in own;
	socklen_t length = sizeof(own);
	union ibv_gid wanted = {.raw = {[10] = 0xff, [11] = 0xff}};
	struct ibv_gid_entry entry;
	bool found = false;

	if (getsockname(pair->socket, (struct sockaddr *)&own, &length))
		die("getsockname: %s", strerror(errno));
	memcpy(wanted.raw + 12, &own.sin_addr, 4);
	for (uint8_t i = 0; i < 64; i++) {
		bool fits;

		if (ibv_query_gid_ex(pair->context, 1, i, &entry, 0) || entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		fits = memcmp(&entry.gid, &wanted, sizeof(wanted)) == 0;
		if (found && !fits)
			continue;
		pair->gid = entry.gid;
		pair->gid_index = i;
		found = true;
	}
	if (!found)
		die("there is no GID of RoCE v2");
}

static struct ibv_mr *buffer_new(struct pair *pair, uint8_t **buffer)
{
	size_t bytes = (pair->options->size + 2 * 4096 - 1) & ~(size_t)4095;
	struct ibv_mr *mr;

	/* Ordinary memory that is not shared. */
	*buffer = aligned_alloc(4096, bytes);
	if (!*buffer)
		die("no memory");
	memset(*buffer, 0, bytes);
	mr = ibv_reg_mr(pair->pd, *buffer, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!mr)
		die("ibv_reg_mr: %s", strerror(errno));
	return mr;
}

static void prepare_requests(struct pair *pair)
{
	pair->sge = (struct ibv_sge){.addr = (uintptr_t)pair->source, .lkey = pair->source_mr->lkey};
	pair->send = (struct ibv_send_wr){.sg_list = &pair->sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	pair->write = (struct ibv_send_wr){.sg_list = &pair->sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
}

void pair_open_device(struct pair *pair, const struct options *options)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	*pair = (struct pair){.options = options, .is_client = options->address != NULL};
	pair->socket = tcp_open(options);
	if (!list || !list[0])
		die("there is no device");
	pair->context = ibv_open_device(list[0]);
	if (!pair->context)
		die("ibv_open_device: %s", strerror(errno));
	ibv_free_device_list(list);
	pair->pd = ibv_alloc_pd(pair->context);
	if (!pair->pd)
		die("ibv_alloc_pd: %s", strerror(errno));
	choose_gid(pair);
	if (options->events) {
		pair->channel = ibv_create_comp_channel(pair->context);
		if (!pair->channel)
			die("ibv_create_comp_channel: %s", strerror(errno));
	}
	pair->send_cq = ibv_create_cq(pair->context, 2 * DEPTH, NULL, NULL, 0);
	pair->receive_cq = ibv_create_cq(pair->context, 2 * DEPTH, NULL, pair->channel, 0);
	if (!pair->send_cq || !pair->receive_cq)
		die("ibv_create_cq: %s", strerror(errno));
	pair->source_mr = buffer_new(pair, &pair->source);
	pair->target_mr = buffer_new(pair, &pair->target);
	prepare_requests(pair);
}

struct ibv_qp *pair_create_qp(struct pair *pair)
{
	struct ibv_qp_init_attr init = {
		.send_cq = pair->send_cq,
		.recv_cq = pair->receive_cq,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = INLINE},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_qp *qp = ibv_create_qp(pair->pd, &init);

	if (!qp)
		die("ibv_create_qp: %s", strerror(errno));
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("ibv_modify_qp to INIT: %s", strerror(errno));
	return qp;
}

static enum ibv_mtu mtu_of(uint32_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && 128u << mtu < bytes)
		mtu++;
	return mtu;
}

void pair_connect_qp(struct pair *pair, struct ibv_qp *qp, const union ibv_gid *gid, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_of(pair->options->mtu),
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = *gid, .sgid_index = pair->gid_index, .hop_limit = 64}},
	};

	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("ibv_modify_qp to RTR: %s", strerror(errno));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_MAX_QP_RD_ATOMIC))
		die("ibv_modify_qp to RTS: %s", strerror(errno));
}

void pair_open(struct pair *pair, const struct options *options)
{
	struct hello own, peer;

	pair_open_device(pair, options);
	pair->qp = pair_create_qp(pair);
	own = (struct hello){.gid = pair->gid,
			     .qpn = pair->qp->qp_num,
			     .rkey = pair->target_mr->rkey,
			     .target = (uintptr_t)pair->target};
	tcp_send(pair, &own, sizeof(own));
	tcp_receive(pair, &peer, sizeof(peer));
	pair->remote = peer.target;
	pair->rkey = peer.rkey;
	pair_connect_qp(pair, pair->qp, &peer.gid, peer.qpn);
	for (int i = 0; i < DEPTH; i++)
		post_receive(pair);
	tcp_meet(pair);
}

/* ---- work requests -------------------------------------------------------------------------------------------- */

/*
 * The requests persist and are changed field by field. A request that is built and copied for each message is read in wider
 * pieces than it was just stored in, so the copy waits until all earlier stores are in the cache: a quarter of the time of a
 * small WRITE.
 */
static void post(struct pair *pair, struct ibv_send_wr *request, uint32_t length, bool signalled)
{
	struct ibv_send_wr *bad;
	int error;

	pair->sge.length = length;
	request->send_flags = (signalled ? IBV_SEND_SIGNALED : 0) | (length <= INLINE ? IBV_SEND_INLINE : 0);
	error = ibv_post_send(pair->qp, request, &bad);
	if (error)
		die("ibv_post_send: %s", strerror(error));
}

void post_send(struct pair *pair, uint32_t length, bool signalled)
{
	post(pair, &pair->send, length, signalled);
}

void post_write(struct pair *pair, uint32_t length, uint64_t offset, bool signalled)
{
	pair->write.wr.rdma.remote_addr = pair->remote + offset;
	pair->write.wr.rdma.rkey = pair->rkey;
	post(pair, &pair->write, length, signalled);
}

void post_receive(struct pair *pair)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)pair->target, .length = pair->options->size, .lkey = pair->target_mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	int error = ibv_post_recv(pair->qp, &wr, &bad);

	if (error)
		die("ibv_post_recv: %s", strerror(error));
}

uint32_t take(struct ibv_cq *cq)
{
	struct ibv_wc wc[16];
	int found = ibv_poll_cq(cq, 16, wc);

	if (found < 0)
		die("ibv_poll_cq");
	for (int i = 0; i < found; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			die("%s (vendor_err %u)", ibv_wc_status_str(wc[i].status), wc[i].vendor_err);
	return (uint32_t)found;
}
