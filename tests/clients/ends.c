/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Warnings about connections whose two ends do not fit (SOFTHCA_LINT), when the ends are in two processes of a host, or on two
 * hosts, with an MTU of 1500 bytes between them. The requester starts the target:
 *
 *   ends [--netns PATH]
 *
 * Each pair of queue pairs but the first has one mistake. Both ends use their queue pairs, and each warns of what it can know.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <softhca.h>

#include "peers.h"

enum { PSN = 100, BYTES = 64, READS = 4, RECORDS = 64, FIRST_WARNING = 900 };
enum pair { RIGHT, OTHER_GID, OTHER_PSN, FEW_RESOURCES, LONG_PACKETS, PAIRS };

/* Each pair has its own areas, since both ends send at once: no request writes where another one reads or writes. */
enum area { WRITTEN_BY_PEER, READ_BY_PEER, WRITE_SOURCE, READ_TARGET, AREAS };

/* Information exchanged by both ends. */
struct card {
	uint32_t qpn[PAIRS], rkey;
	uint64_t address;
	union ibv_gid gid;
};

struct end {
	struct device device;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[PAIRS];
	struct card own, peer;
	int socket;
	bool is_target, other_host;
};

/* Waits until the other end has come as far. */
static void meet(struct end *end)
{
	char byte;

	if (!send_all(end->socket, "", 1) || !receive_all(end->socket, &byte, 1))
		die("the other end has gone");
}

/* Returns the index of the RoCE v1 GID with the same address as that of the device. */
static uint8_t v1_index(const struct device *device)
{
	struct ibv_gid_entry entry;

	for (uint8_t i = 0; i < 64; i++)
		if (!ibv_query_gid_ex(device->context, 1, i, &entry, 0) && entry.gid_type == IBV_GID_TYPE_ROCE_V1 &&
		    !memcmp(&entry.gid, &device->gid, sizeof(entry.gid)))
			return i;
	die("there is no GID of RoCE v1");
}

static uint8_t gid_index(const struct end *end, enum pair pair)
{
	return end->is_target && pair == OTHER_GID ? v1_index(&end->device) : end->device.gid_index;
}

static void connect_pair(struct end *end, enum pair pair)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = pair == LONG_PACKETS ? IBV_MTU_4096 : IBV_MTU_1024,
		.dest_qp_num = end->peer.qpn[pair],
		.rq_psn = end->is_target && pair == OTHER_PSN ? PSN + 5 : PSN,
		.max_dest_rd_atomic = end->is_target && pair == FEW_RESOURCES ? 1 : READS,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = end->peer.gid, .sgid_index = gid_index(end, pair), .hop_limit = 64}}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .sq_psn = PSN,
				  .timeout = pair == OTHER_PSN ? 10 : 19,
				  .retry_cnt = pair == OTHER_PSN ? 1 : 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = READS};

	if (ibv_modify_qp(end->qp[pair], &rtr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("pair %d is not in RTR", pair);
	if (ibv_modify_qp(end->qp[pair], &rts,
			  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_MAX_QP_RD_ATOMIC))
		die("pair %d is not in RTS", pair);
}

static void open_end(struct end *end)
{
	device_open(&end->device);
	end->cq = cq_new(&end->device, PAIRS * QP_DEPTH);
	end->mr = memory_new(&end->device, 4096);
	for (int i = 0; i < PAIRS; i++) {
		end->qp[i] = qp_new(&end->device, end->cq, end->cq);
		end->own.qpn[i] = end->qp[i]->qp_num;
	}
	end->own.rkey = end->mr->rkey;
	end->own.address = (uintptr_t)end->mr->addr;
	end->own.gid = end->device.gid;
	if (!send_all(end->socket, &end->own, sizeof(end->own)) ||
	    !receive_all(end->socket, &end->peer, sizeof(end->peer)))
		die("the other end has gone");
	for (int i = 0; i < PAIRS; i++)
		connect_pair(end, (enum pair)i);
	meet(end);
}

/* ---- warnings --------------------------------------------------------------------------------------------------- */

/* Returns the line of the warning @rule about the queue pair of @pair, or NULL. */
static const char *warning(struct end *end, enum pair pair, const char *rule)
{
	static char line[1024];
	struct softhca_explanation records[RECORDS];
	size_t count = softhca_explanations(end->device.context, 0, records, RECORDS);

	for (size_t i = 0; i < count; i++) {
		if (records[i].rule < FIRST_WARNING || records[i].qp_num != end->own.qpn[pair] ||
		    (rule && strcmp(records[i].name, rule)))
			continue;
		softhca_explanation_text(&records[i], line, sizeof(line));
		return line;
	}
	return NULL;
}

static void expect_none(struct end *end, enum pair pair)
{
	const char *line = warning(end, pair, NULL);

	if (line)
		die("pair %d is warned of: %s", pair, line);
}

static void expect_warning(struct end *end, enum pair pair, const char *rule, const char *text)
{
	const char *line = warning(end, pair, rule);

	if (!line || !strstr(line, text))
		die("pair %d: no warning %s with \"%s\": %s", pair, rule, text, line ? line : "none");
}

/* Expects the warnings that this end can make. Those about PSNs and READs are made where requests are posted. */
static void check_near(struct end *end)
{
	uint32_t *peer = end->peer.qpn;
	char text[256];

	snprintf(text, sizeof(text),
		 "uses GID index %u, RoCE v%d, and its peer, queue pair 0x%x, uses GID index %u, RoCE v%d",
		 gid_index(end, OTHER_GID), end->is_target ? 1 : 2, peer[OTHER_GID],
		 end->is_target ? end->device.gid_index : v1_index(&end->device), end->is_target ? 2 : 1);
	expect_warning(end, OTHER_GID, "GID_TYPES_DIFFER", text);
	expect_none(end, LONG_PACKETS);
	if (end->is_target)
		return;
	snprintf(text, sizeof(text),
		 "sq_psn of the queue pair is 0x%x, and rq_psn of its peer, queue pair 0x%x, is 0x%x", PSN,
		 peer[OTHER_PSN], PSN + 5);
	expect_warning(end, OTHER_PSN, "PSN_DIFFERS", text);
	snprintf(text, sizeof(text), "queue pair 0x%x, which executes them, has max_dest_rd_atomic 1",
		 peer[FEW_RESOURCES]);
	expect_warning(end, FEW_RESOURCES, "READS_NOT_GRANTED", text);
}

static void check_far(struct end *end)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "path_mtu is 4096 bytes, and a packet to another host has at most 1024 bytes of data");
	expect_warning(end, LONG_PACKETS, "PATH_MTU_TOO_LARGE", text);
	expect_none(end, OTHER_GID);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static uint64_t area_offset(enum pair pair, enum area area)
{
	return ((uint64_t)pair * AREAS + area) * BYTES;
}

/* Posts READS requests at once. */
static void post(struct end *end, enum pair pair, enum ibv_wr_opcode opcode)
{
	bool writes = opcode == IBV_WR_RDMA_WRITE;
	uint64_t near = area_offset(pair, writes ? WRITE_SOURCE : READ_TARGET);
	uint64_t far = area_offset(pair, writes ? WRITTEN_BY_PEER : READ_BY_PEER);
	struct ibv_sge sge = {(uintptr_t)end->mr->addr + near, BYTES, end->mr->lkey};
	struct ibv_send_wr wr[READS], *bad;

	for (int i = 0; i < READS; i++)
		wr[i] = (struct ibv_send_wr){.next = i + 1 < READS ? &wr[i + 1] : NULL,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .opcode = opcode,
					     .send_flags = IBV_SEND_SIGNALED,
					     .wr.rdma = {end->peer.address + far, end->peer.rkey}};
	if (ibv_post_send(end->qp[pair], wr, &bad))
		die("ibv_post_send");
}

/* Waits for the completions of @count requests, some of which fail. */
static void await(struct end *end, int count)
{
	double until = seconds_now() + 20;
	struct ibv_wc wc;

	while (count) {
		count -= ibv_poll_cq(end->cq, 1, &wc) > 0;
		if (seconds_now() > until)
			die("no completion");
	}
}

static void use_pairs(struct end *end)
{
	post(end, RIGHT, IBV_WR_RDMA_WRITE);
	await(end, READS);
	post(end, RIGHT, IBV_WR_RDMA_READ);
	await(end, READS);
	post(end, OTHER_GID, IBV_WR_RDMA_WRITE);
	post(end, LONG_PACKETS, IBV_WR_RDMA_WRITE);
	await(end, 2 * READS);
	if (end->is_target)
		return;
	post(end, OTHER_PSN, IBV_WR_RDMA_WRITE);
	post(end, FEW_RESOURCES, IBV_WR_RDMA_READ);
	await(end, 2 * READS);
}

static void run(struct end *end)
{
	open_end(end);
	use_pairs(end);
	if (end->other_host)
		check_far(end);
	else
		check_near(end);
	expect_none(end, RIGHT);
	meet(end);
}

int main(int argc, char **argv)
{
	const char *netns = argc == 3 && !strcmp(argv[1], "--netns") ? argv[2] : NULL;
	struct end end = {.other_host = netns};
	struct process process;

	setenv("SOFTHCA_LINT", "on", 1);
	role_name = "target";
	if (argc == 2) {
		end.is_target = true;
		end.other_host = !strcmp(argv[1], "far");
		end.socket = PROCESS_SOCKET;
		run(&end);
		return 0;
	}
	role_name = "requester";
	process = process_start(netns, (const char *const[]){netns ? "far" : "near", NULL});
	end.socket = process.socket;
	run(&end);
	process_kill(&process);
	printf("1..1\nok 1 - both ends warn\n");
	return 0;
}
