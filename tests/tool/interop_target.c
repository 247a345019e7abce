/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The softhca end of interop.py: an RC queue pair that a foreign adapter is connected to. Prints its number, the rkey and
 * the address of its memory, then each completion; ends when the last byte of the memory is written, and prints its
 * beginning.
 *
 *   interop_target OWN-ADDRESS PEER-ADDRESS PEER-QPN
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <infiniband/verbs.h>

enum { BYTES = 1 << 16, RECEIVES = 256, RECEIVE_BYTES = 64, SHOWN = 4096, PSN = 0x123, SECONDS = 60 };

static uint8_t memory[BYTES], received[RECEIVES][RECEIVE_BYTES];

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			perror(#condition);                                                                            \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static union ibv_gid gid_of(const char *address)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	CHECK(inet_pton(AF_INET, address, gid.raw + 12) == 1);
	return gid;
}

static uint8_t index_of(struct ibv_context *context, const char *address)
{
	const union ibv_gid gid = gid_of(address);
	struct ibv_gid_entry entry;

	for (uint32_t i = 0; !ibv_query_gid_ex(context, 1, i, &entry, 0); i++)
		if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 && !memcmp(&entry.gid, &gid, sizeof(gid)))
			return (uint8_t)i;
	CHECK(!"a GID of that address");
	return 0;
}

static void connect_qp(struct ibv_qp *qp, const char *own, const char *peer, uint32_t number)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = number,
		.rq_psn = PSN,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = gid_of(peer), .sgid_index = index_of(qp->context, own), .hop_limit = 64}},
	};

	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
}

static void show(const char *what, const uint8_t *bytes, size_t length)
{
	printf("%s ", what);
	for (size_t i = 0; i < length; i++)
		printf("%02x", bytes[i]);
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {.max_recv_wr = RECEIVES, .max_recv_sge = 1, .max_send_wr = 1}};
	struct ibv_mr *region, *receives;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	time_t end = time(NULL) + SECONDS;
	struct ibv_pd *pd;
	bool ended;

	CHECK(argc == 4 && devices && devices[0]);
	CHECK((context = ibv_open_device(devices[0])));
	CHECK((pd = ibv_alloc_pd(context)));
	CHECK((attr.send_cq = attr.recv_cq = ibv_create_cq(context, RECEIVES, NULL, NULL, 0)));
	CHECK((qp = ibv_create_qp(pd, &attr)));
	CHECK((region = ibv_reg_mr(pd, memory, sizeof(memory),
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
					   IBV_ACCESS_REMOTE_ATOMIC)));
	CHECK((receives = ibv_reg_mr(pd, received, sizeof(received), IBV_ACCESS_LOCAL_WRITE)));
	for (uint64_t i = 0; i < RECEIVES; i++) {
		struct ibv_sge sge = {(uintptr_t)received[i], RECEIVE_BYTES, receives->lkey};
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

		if (!i)
			connect_qp(qp, argv[1], argv[2], (uint32_t)strtoul(argv[3], NULL, 0));
		CHECK(!ibv_post_recv(qp, &wr, &bad));
	}
	printf("%u %u %" PRIu64 "\n", qp->qp_num, region->rkey, (uint64_t)(uintptr_t)memory);
	fflush(stdout);
	do {
		CHECK(time(NULL) < end);
		ended = __atomic_load_n(&memory[BYTES - 1], __ATOMIC_ACQUIRE);
		/* Completions made before the last byte came may wait. */
		if (ibv_poll_cq(attr.recv_cq, 1, &wc) != 1)
			continue;
		ended = false;
		printf("%d ", wc.status);
		show(wc.wc_flags & IBV_WC_WITH_IMM ? "imm" : "recv", received[wc.wr_id], wc.byte_len);
	} while (!ended);
	show("memory", memory, SHOWN);
	return 0;
}
