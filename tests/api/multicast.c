/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast (ibv_attach_mcast(3); IBTA 10.5): which QPs receive a datagram for a group, its headers, and errors. The
 * GID table is that of SOFTHCA_GIDS=loopback: 0 and 1 are link-local as RoCE v1 and v2, 2 and 3 ::ffff:127.0.0.1.
 */
#include <arpa/inet.h>
#include <endian.h>

#include "support/program.h"

enum {
	SENT = 100,
	RECEIVED = 200,
	QPS = 4, /* two on each side */
	GRH = 40,
	BYTES = 300,
	SLOT = 1024,
	QKEY = 0x1234,
	MULTICAST_QPN = 0xffffff,
	V1_IPV6 = 0,
	V2_IPV6 = 1,
	V2_IPV4 = 3,
};

/* UD QPs in RTS, each with its own CQ and one receive, into its slot of its side's memory. */
struct member {
	struct side *side;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct member members[QPS];

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1, .qkey = QKEY};

	expect_error(ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE), 0);
}

static void to_init(struct ibv_qp *qp)
{
	to_state(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
}

static struct ibv_qp *create_qp(const struct side *side, struct ibv_cq *cq, uint32_t create_flags)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = side->pd,
		.create_flags = create_flags,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(side->context, &attr);

	assert_non_null(qp);
	to_init(qp);
	to_state(qp, IBV_QPS_RTR, 0);
	to_state(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN);
	return qp;
}

static size_t slot_of(int i)
{
	return (size_t)(1 + i) * SLOT;
}

static void post_slot(int i)
{
	struct ibv_sge sge = side_sge(members[i].side, slot_of(i), GRH + BYTES);
	struct ibv_recv_wr wr = {.wr_id = RECEIVED + i, .sg_list = &sge, .num_sge = 1}, *bad;

	expect_error(ibv_post_recv(members[i].qp, &wr, &bad), 0);
}

static int open_members(void **state)
{
	if (program_open(state))
		return -1;
	for (int i = 0; i < QPS; i++) {
		struct member *member = &members[i];

		member->side = i % 2 ? &server : &client;
		member->cq = ibv_create_cq(member->side->context, 15, NULL, NULL, 0);
		assert_non_null(member->cq);
		member->qp = create_qp(member->side, member->cq, 0);
		post_slot(i);
	}
	return 0;
}

static int close_members(void **state)
{
	for (int i = 0; i < QPS; i++) {
		expect_error(ibv_destroy_qp(members[i].qp), 0);
		expect_error(ibv_destroy_cq(members[i].cq), 0);
	}
	return program_close(state);
}

static union ibv_gid gid_of(const char *text)
{
	union ibv_gid gid;

	assert_int_equal(inet_pton(AF_INET6, text, gid.raw), 1);
	return gid;
}

static void attach(int i, const char *group)
{
	union ibv_gid gid = gid_of(group);

	expect_error(ibv_attach_mcast(members[i].qp, &gid, 0), 0);
}

static void detach(int i, const char *group)
{
	union ibv_gid gid = gid_of(group);

	expect_error(ibv_detach_mcast(members[i].qp, &gid, 0), 0);
}

static bool poll(int i, struct ibv_wc *wc)
{
	int found = ibv_poll_cq(members[i].cq, 1, wc);

	assert_true(found >= 0);
	return found;
}

/* Sends the first bytes of the client's memory from member @from. The datagram has arrived when the call returns. */
static void send_by(int from, uint8_t sgid_index, const char *group, uint32_t qpn, uint32_t qkey)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = gid_of(group), .sgid_index = sgid_index, .hop_limit = 9},
	};
	struct ibv_ah *ah = ibv_create_ah(members[from].side->pd, &attr);
	struct ibv_sge sge = side_sge(members[from].side, 0, BYTES);
	struct ibv_send_wr wr = {
		.wr_id = SENT,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = htobe32(0xabcd),
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = {ah, qpn, qkey},
	};
	struct ibv_send_wr *bad;

	assert_non_null(ah);
	expect_error(ibv_post_send(members[from].qp, &wr, &bad), 0);
	expect_error(ibv_destroy_ah(ah), 0);
}

/*
 * Polls all members: the sender has a completion, the members in mask @receivers have a datagram, and there is nothing else.
 */
#define expect_datagram(from, group, receivers) expect_datagram_(HERE, from, group, receivers)
static void expect_datagram_(struct place place, int from, const char *group, unsigned int receivers)
{
	union ibv_gid gid = gid_of(group);
	struct ibv_wc wc;

	for (int i = 0; i < QPS; i++) {
		struct side *side = members[i].side;
		bool sent = i != from, received = !(receivers & 1u << i);

		while (poll(i, &wc)) {
			if (wc.status != IBV_WC_SUCCESS || wc.qp_num != members[i].qp->qp_num)
				fail_at(place, "member %d: %s", i, ibv_wc_status_str(wc.status));
			if (wc.wr_id == SENT && !sent) {
				sent = true;
				continue;
			}
			if (received || wc.wr_id != (uint64_t)(RECEIVED + i))
				fail_at(place, "member %d has a completion of wr_id %lu", i, wc.wr_id);
			received = true;
			assert_int_equal(wc.byte_len, GRH + BYTES);
			assert_int_equal(wc.src_qp, members[from].qp->qp_num);
			assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
			assert_int_equal(be32toh(wc.imm_data), 0xabcd);
			/* The last 4 bytes are those of the group in either header. */
			assert_memory_equal(side->memory + slot_of(i) + 36, gid.raw + 12, 4);
			memcpy(side->expected + slot_of(i), side->memory + slot_of(i), GRH);
			memcpy(side->expected + slot_of(i) + GRH, members[from].side->expected, BYTES);
			post_slot(i);
		}
		if (!sent || !received)
			fail_at(place, "member %d misses a completion", i);
	}
	side_compare_(place, &client);
	side_compare_(place, &server);
}

/* ---- which members receive it ---------------------------------------------------------------------------------- */

static const char group[] = "ff0e::1234:5678", other_group[] = "ff0e::1234:5679", ipv4_group[] = "ff0e::ffff:239.1.2.3";

TEST(members_get_a_copy)
{
	attach(1, group);
	attach(2, group);
	attach(3, other_group);
	send_by(0, V2_IPV6, group, MULTICAST_QPN, QKEY);
	expect_datagram(0, group, 0x6);
	send_by(0, V2_IPV6, other_group, MULTICAST_QPN, QKEY);
	expect_datagram(0, other_group, 0x8);
	/* A QP may be attached to many groups. */
	attach(3, group);
	send_by(0, V2_IPV6, group, MULTICAST_QPN, QKEY);
	expect_datagram(0, group, 0xe);
	detach(2, group);
	send_by(0, V2_IPV6, group, MULTICAST_QPN, QKEY);
	expect_datagram(0, group, 0xa);
	detach(3, group);
	detach(1, group);
	send_by(0, V2_IPV6, group, MULTICAST_QPN, QKEY);
	expect_datagram(0, group, 0);
	send_by(0, V2_IPV6, other_group, MULTICAST_QPN, QKEY);
	expect_datagram(0, other_group, 0x8);
	detach(3, other_group);
	send_by(0, V2_IPV6, other_group, MULTICAST_QPN, QKEY);
	expect_datagram(0, other_group, 0);
}

/* ibv_attach_mcast(3), NOTES: a QP gets a single copy, however often it is attached. */
TEST(attached_twice)
{
	union ibv_gid gid = gid_of(group);

	attach(1, group);
	attach(1, group);
	expect_error(ibv_attach_mcast(members[1].qp, &gid, 0xc001), 0); /* a LID means nothing on Ethernet */
	send_by(0, V2_IPV6, group, MULTICAST_QPN, QKEY);
	expect_datagram(0, group, 0x2);
	detach(1, group);
	expect_error(ibv_detach_mcast(members[1].qp, &gid, 0), EINVAL);
	send_by(0, V2_IPV6, group, MULTICAST_QPN, QKEY);
	expect_datagram(0, group, 0);
}

/* The sender is a member like any other, unless it was created with IBV_QP_CREATE_BLOCK_SELF_MCAST_LB. */
TEST(sender_in_the_group)
{
	attach(0, group);
	attach(1, group);
	send_by(0, V2_IPV6, group, MULTICAST_QPN, QKEY);
	expect_datagram(0, group, 0x3);
	detach(0, group);
	expect_error(ibv_destroy_qp(members[0].qp), 0);
	members[0].qp = create_qp(&client, members[0].cq, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
	post_slot(0);
	attach(0, group);
	send_by(0, V2_IPV6, group, MULTICAST_QPN, QKEY);
	expect_datagram(0, group, 0x2);
	send_by(1, V2_IPV6, group, MULTICAST_QPN, QKEY);
	expect_datagram(1, group, 0x3);
	detach(0, group);
	detach(1, group);
}

/* A datagram that one member cannot receive still reaches the others. */
TEST(members_that_drop_it)
{
	struct ibv_qp_attr attr = {.qkey = QKEY + 1};
	struct ibv_wc wc;

	for (int i = 1; i < QPS; i++)
		attach(i, group);
	expect_error(ibv_modify_qp(members[1].qp, &attr, IBV_QP_QKEY), 0);
	send_by(0, V2_IPV6, group, MULTICAST_QPN, QKEY);
	expect_datagram(0, group, 0xc);
	/* Without a receive, in ERR and in INIT. */
	to_state(members[2].qp, IBV_QPS_RESET, 0);
	to_init(members[2].qp);
	send_by(0, V2_IPV6, group, MULTICAST_QPN, QKEY);
	expect_datagram(0, group, 0x8);
	to_state(members[3].qp, IBV_QPS_ERR, 0);
	assert_true(poll(3, &wc));
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	send_by(0, V2_IPV6, group, MULTICAST_QPN, QKEY);
	expect_datagram(0, group, 0);
	to_state(members[2].qp, IBV_QPS_RTR, 0);
	attr.qkey = QKEY;
	expect_error(ibv_modify_qp(members[1].qp, &attr, IBV_QP_QKEY), 0);
	send_by(0, V2_IPV6, group, MULTICAST_QPN, QKEY); /* it has no receive posted */
	expect_datagram(0, group, 0x2);
	for (int i = 1; i < QPS; i++)
		detach(i, group);
}

/* IBTA 10.5.1: multicast is sent to queue pair 0xffffff. */
TEST(queue_pair_numbers)
{
	char own[64];
	union ibv_gid gid;

	attach(1, group);
	send_by(0, V2_IPV6, group, members[1].qp->qp_num, QKEY);
	expect_datagram(0, group, 0);
	expect_error(ibv_query_gid(client.context, 1, V2_IPV6, &gid), 0);
	assert_non_null(inet_ntop(AF_INET6, gid.raw, own, sizeof(own)));
	send_by(0, V2_IPV6, own, MULTICAST_QPN, QKEY);
	expect_datagram(0, own, 0);
	detach(1, group);
}

/* ---- the header ------------------------------------------------------------------------------------------------ */

TEST(headers)
{
	union ibv_gid gid = gid_of(group), source;
	const uint8_t *header = server.memory + slot_of(1);
	static const uint8_t ipv4[] = {127, 0, 0, 1, 239, 1, 2, 3};

	attach(1, group);
	attach(1, ipv4_group);
	for (uint8_t index = V1_IPV6; index <= V2_IPV6; index++) {
		send_by(0, index, group, MULTICAST_QPN, QKEY);
		expect_datagram(0, group, 0x2);
		expect_error(ibv_query_gid(client.context, 1, index, &source), 0);
		assert_int_equal(header[0] >> 4, 6);
		assert_int_equal(header[6], index == V2_IPV6 ? 17 : 0x1b);
		assert_int_equal(header[7], 9);
		assert_memory_equal(header + 8, source.raw, 16);
		assert_memory_equal(header + 24, gid.raw, 16);
	}
	send_by(0, V2_IPV4, ipv4_group, MULTICAST_QPN, QKEY);
	expect_datagram(0, ipv4_group, 0x2);
	assert_int_equal(header[20], 0x45);
	assert_memory_equal(header + 32, ipv4, sizeof(ipv4));
	detach(1, group);
	detach(1, ipv4_group);
}

/* ---- refusals -------------------------------------------------------------------------------------------------- */

TEST(refusals)
{
	union ibv_gid unicast = gid_of("fe80::1"), gid = gid_of(group);

	expect_error(ibv_attach_mcast(members[0].qp, &unicast, 0), EINVAL);
	expect_error(ibv_detach_mcast(members[0].qp, &unicast, 0), EINVAL);
	expect_error(ibv_attach_mcast(pair.client.qp, &gid, 0), EINVAL); /* RC */
	expect_error(ibv_detach_mcast(members[0].qp, &gid, 0), EINVAL);
	attach(0, group);
	expect_error(ibv_detach_mcast(members[1].qp, &gid, 0), EINVAL);
	expect_error(ibv_destroy_qp(members[0].qp), EBUSY);
	/* The group is unchanged. */
	send_by(1, V2_IPV6, group, MULTICAST_QPN, QKEY);
	expect_datagram(1, group, 0x1);
	detach(0, group);
}

/* ibv_query_device(3): max_mcast_qp_attach, max_total_mcast_qp_attach. */
TEST(limits)
{
	struct ibv_device_attr device;
	union ibv_gid gid = gid_of(group);
	struct ibv_qp **qps;
	int per_group, total;

	expect_error(ibv_query_device(client.context, &device), 0);
	per_group = device.max_mcast_qp_attach;
	total = device.max_total_mcast_qp_attach;
	assert_true(per_group > 1 && per_group < 1000 && total > per_group && total < 10000);
	assert_true(device.max_mcast_grp <= total && device.max_mcast_grp > 0);
	qps = calloc((size_t)per_group + 1, sizeof(*qps));
	for (int i = 0; i <= per_group; i++) {
		qps[i] = create_qp(&client, members[0].cq, 0);
		expect_error(ibv_attach_mcast(qps[i], &gid, 0), i < per_group ? 0 : ENOMEM);
	}
	for (int i = 0; i <= per_group; i++) {
		expect_error(ibv_detach_mcast(qps[i], &gid, 0), i < per_group ? 0 : EINVAL);
		expect_error(ibv_destroy_qp(qps[i]), 0);
	}
	free(qps);
	for (int i = 0; i <= total; i++) {
		gid.raw[4] = (uint8_t)i;
		gid.raw[5] = (uint8_t)(i >> 8);
		expect_error(ibv_attach_mcast(members[i % QPS].qp, &gid, 0), i < total ? 0 : ENOMEM);
	}
	for (int i = 0; i < total; i++) {
		gid.raw[4] = (uint8_t)i;
		gid.raw[5] = (uint8_t)(i >> 8);
		expect_error(ibv_detach_mcast(members[i % QPS].qp, &gid, 0), 0);
	}
}

int main(void)
{
	setenv("SOFTHCA_GIDS", "loopback", 1);
	return run_cases(.setup = open_members, .teardown = close_members);
}
