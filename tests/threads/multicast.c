/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast among threads: one sends to a group continuously, others create, attach, detach and destroy QPs; one member
 * stays, and gets every datagram exactly once and in order.
 */
#include "fixture.h"

#include <arpa/inet.h>

enum { DATAGRAMS = 30000, CHURNERS = 2, ENOUGH = 300, GRH = 40, QKEY = 0x1234 /* of the fixture */ };

static struct ibv_context *context;
static struct ibv_pd *pd;
static union ibv_gid group;
static int stop;                    /* atomic */
static uint64_t received[CHURNERS]; /* atomic */

struct datagram {
	uint8_t header[GRH];
	uint32_t number;
};

static bool running(void)
{
	return !__atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

static bool all_had_enough(void)
{
	for (int i = 0; i < CHURNERS; i++)
		if (__atomic_load_n(&received[i], __ATOMIC_RELAXED) < ENOUGH)
			return false;
	return true;
}

static void post(struct ibv_qp *qp, struct datagram *datagram, const struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)datagram, sizeof(*datagram), mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	CHECK(!ibv_post_recv(qp, &wr, &bad));
}

/* Short-lived members: each datagram that they receive is complete and from the sender. */
static void *come_and_go(void *argument)
{
	struct datagram datagram;
	struct ibv_mr *mr = ibv_reg_mr(pd, &datagram, sizeof(datagram), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	uint64_t *count = argument;

	CHECK(mr && cq);
	while (running()) {
		struct ibv_qp *qp = make_qp(pd, IBV_QPT_UD, cq, cq, NULL);
		struct ibv_wc wc;

		to_init(qp);
		post(qp, &datagram, mr);
		to_rts(qp, 0);
		CHECK(!ibv_attach_mcast(qp, &group, 0));
		CHECK(ibv_destroy_qp(qp) == EBUSY);
		for (int i = 0; i < 20; i++) {
			if (ibv_poll_cq(cq, 1, &wc) == 1) {
				CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == sizeof(datagram));
				CHECK(wc.qp_num == qp->qp_num);
				__atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
				break;
			}
			sched_yield();
		}
		CHECK(!ibv_detach_mcast(qp, &group, 0));
		CHECK(!ibv_destroy_qp(qp));
	}
	CHECK(!ibv_destroy_cq(cq) && !ibv_dereg_mr(mr));
	return NULL;
}

int main(void)
{
	static uint32_t number;
	static struct datagram datagram;
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}};
	struct ibv_mr *number_mr, *mr;
	struct ibv_qp *sender, *member;
	struct ibv_cq *sender_cq, *cq;
	pthread_t threads[CHURNERS];
	struct ibv_ah *ah;

	CHECK(inet_pton(AF_INET6, "ff0e::77", group.raw) == 1);
	context = open_first_device();
	pd = ibv_alloc_pd(context);
	CHECK(pd);
	attr.grh.dgid = group;
	ah = ibv_create_ah(pd, &attr);
	number_mr = ibv_reg_mr(pd, &number, sizeof(number), 0);
	mr = ibv_reg_mr(pd, &datagram, sizeof(datagram), IBV_ACCESS_LOCAL_WRITE);
	sender_cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	CHECK(ah && number_mr && mr && sender_cq && cq);
	sender = make_qp(pd, IBV_QPT_UD, sender_cq, sender_cq, NULL);
	member = make_qp(pd, IBV_QPT_UD, cq, cq, NULL);
	to_init(sender);
	to_rts(sender, 0);
	to_init(member);
	to_rts(member, 0);
	CHECK(!ibv_attach_mcast(member, &group, 0));

	for (int i = 0; i < CHURNERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, come_and_go, &received[i]));
	for (uint32_t i = 0; i < DATAGRAMS || !all_had_enough(); i++) {
		struct ibv_sge sge = {(uintptr_t)&number, sizeof(number), number_mr->lkey};
		struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					       .num_sge = 1,
					       .opcode = IBV_WR_SEND,
					       .send_flags = IBV_SEND_SIGNALED,
					       .wr.ud = {ah, 0xffffff, QKEY}};
		struct ibv_wc wc;

		post(member, &datagram, mr);
		number = i;
		CHECK(!ibv_post_send(sender, &wr, &bad));
		CHECK(wait_completion(sender_cq).status == IBV_WC_SUCCESS);
		CHECK(wait_completion(cq).status == IBV_WC_SUCCESS);
		CHECK(datagram.number == i);
		CHECK(!ibv_poll_cq(cq, 1, &wc));
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < CHURNERS; i++)
		CHECK(!pthread_join(threads[i], NULL));

	CHECK(!ibv_detach_mcast(member, &group, 0));
	CHECK(!ibv_destroy_qp(sender) && !ibv_destroy_qp(member));
	CHECK(!ibv_destroy_cq(sender_cq) && !ibv_destroy_cq(cq) && !ibv_destroy_ah(ah));
	CHECK(!ibv_dereg_mr(number_mr) && !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(context));
	return 0;
}
