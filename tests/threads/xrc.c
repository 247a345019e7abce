/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC among threads: several connections send to two SRQs at once; each SRQ has a thread and a context of its own that
 * takes the messages. Meanwhile one thread opens and closes their XRC_RECV QPs and the domain, and another creates and
 * destroys an SRQ that receives from a further connection, which is recreated when the SRQ did not exist.
 */
#include "fixture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	SENDERS = 3,
	RECEIVERS = 2,
	MESSAGES = 15000, /* of each sender */
	SLOTS = 64,
	SLOT_BYTES = 3000,
	SHORT_LIVED = 4, /* receives of the short-lived SRQ */
};

struct message {
	uint32_t sender, sequence;
	uint8_t filling[SLOT_BYTES - 8];
};

static int file;
static int stop; /* atomic */

struct receiver {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	uint32_t number;
	struct message slot[SLOTS];
	struct ibv_mr *mr;
	uint32_t next[SENDERS]; /* minimum sequence number of each sender's next message */
	uint64_t received;
};

static struct receiver receivers[RECEIVERS];

struct sender {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *send, *recv;
};

static struct sender senders[SENDERS], prober;
static uint32_t short_lived; /* atomic: number of the short-lived SRQ */

/* ---- objects --------------------------------------------------------------------------------------------------- */

static struct ibv_xrcd *open_domain(struct ibv_context *context)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask = 3, .fd = file, .oflags = O_CREAT};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(context, &attr);

	CHECK(xrcd);
	return xrcd;
}

static struct ibv_srq *create_srq(struct receiver *receiver, struct ibv_cq *cq, uint32_t *number)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = SLOTS, .max_sge = 1},
		.comp_mask =
			IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = receiver->pd,
		.xrcd = receiver->xrcd,
		.cq = cq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(receiver->context, &attr);

	CHECK(srq && !ibv_get_srq_num(srq, number));
	return srq;
}

static void post_slot(struct receiver *receiver, struct ibv_srq *srq, uint64_t slot)
{
	struct ibv_sge sge = {(uintptr_t)&receiver->slot[slot], SLOT_BYTES, receiver->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};

	CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
}

static struct ibv_qp *create_recv(struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
	struct ibv_qp *qp = ibv_create_qp_ex(xrcd->context, &attr);

	CHECK(qp);
	return qp;
}

static void open_receiver(struct receiver *receiver)
{
	receiver->context = open_first_device();
	receiver->pd = ibv_alloc_pd(receiver->context);
	receiver->xrcd = open_domain(receiver->context);
	receiver->cq = ibv_create_cq(receiver->context, 2 * SLOTS, NULL, NULL, 0);
	receiver->mr = ibv_reg_mr(receiver->pd, receiver->slot, sizeof(receiver->slot), IBV_ACCESS_LOCAL_WRITE);
	CHECK(receiver->cq && receiver->mr);
	receiver->srq = create_srq(receiver, receiver->cq, &receiver->number);
}

static void open_sender(struct sender *sender, struct ibv_xrcd *xrcd)
{
	sender->context = open_first_device();
	sender->pd = ibv_alloc_pd(sender->context);
	sender->cq = ibv_create_cq(sender->context, 64, NULL, NULL, 0);
	CHECK(sender->pd && sender->cq);
	sender->send = make_qp(sender->pd, IBV_QPT_XRC_SEND, sender->cq, NULL, NULL);
	sender->recv = create_recv(xrcd);
	connect_pair(sender->send, sender->recv);
}

static void close_sender(struct sender *sender)
{
	CHECK(!ibv_destroy_qp(sender->send) && !ibv_destroy_qp(sender->recv));
	CHECK(!ibv_destroy_cq(sender->cq) && !ibv_dealloc_pd(sender->pd));
	CHECK(!ibv_close_device(sender->context));
}

static bool running(void)
{
	return !__atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

static void *send_all(void *argument)
{
	struct sender *sender = argument;
	uint32_t which = (uint32_t)(sender - senders);
	struct message *message = malloc(sizeof(*message));
	struct ibv_mr *mr = ibv_reg_mr(sender->pd, message, sizeof(*message), 0);

	CHECK(message && mr);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct ibv_sge sge = {(uintptr_t)message, 8 + i * 13 % (SLOT_BYTES - 8), mr->lkey};
		struct ibv_send_wr *bad,
			wr = {
				.sg_list = &sge,
				.num_sge = 1,
				.opcode = IBV_WR_SEND,
				.send_flags = IBV_SEND_SIGNALED,
				.qp_type.xrc.remote_srqn = receivers[(i / 3 + which) % RECEIVERS].number,
			};

		*message = (struct message){.sender = which, .sequence = i};
		memset(message->filling, (int)(i * 7 + which), sizeof(message->filling));
		CHECK(!ibv_post_send(sender->send, &wr, &bad));
		CHECK(wait_completion(sender->cq).status == IBV_WC_SUCCESS);
	}
	CHECK(!ibv_dereg_mr(mr));
	free(message);
	return NULL;
}

static void check_message(struct receiver *receiver, const struct ibv_wc *wc)
{
	const struct message *message = &receiver->slot[wc->wr_id];
	uint32_t sender = message->sender, sequence = message->sequence;

	CHECK(wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV);
	CHECK(sender < SENDERS && wc->qp_num == senders[sender].recv->qp_num);
	CHECK(sequence >= receiver->next[sender] && sequence < MESSAGES);
	CHECK(&receivers[(sequence / 3 + sender) % RECEIVERS] == receiver);
	receiver->next[sender] = sequence + 1;
	CHECK(wc->byte_len == 8 + sequence * 13 % (SLOT_BYTES - 8));
	for (uint32_t i = 0; i < wc->byte_len - 8; i++)
		CHECK(message->filling[i] == (uint8_t)(sequence * 7 + sender));
}

static void *receive_all(void *argument)
{
	struct receiver *receiver = argument;

	while (receiver->received < SENDERS * MESSAGES / RECEIVERS) {
		struct ibv_wc wc = wait_completion(receiver->cq);

		check_message(receiver, &wc);
		post_slot(receiver, receiver->srq, wc.wr_id);
		receiver->received++;
	}
	return NULL;
}

/* ---- short-lived objects --------------------------------------------------------------------------------------- */

static void *open_and_close(void *argument)
{
	struct ibv_context *context = open_first_device();

	(void)argument;
	for (uint32_t i = 0; running(); i++) {
		struct ibv_xrcd *xrcd = open_domain(context);
		struct ibv_qp_open_attr attr = {
			.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
			.qp_num = senders[i % SENDERS].recv->qp_num,
			.xrcd = xrcd,
			.qp_type = IBV_QPT_XRC_RECV,
		};
		struct ibv_qp *opened = ibv_open_qp(context, &attr), *own = create_recv(xrcd);
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr state;

		CHECK(opened);
		CHECK(!ibv_query_qp(opened, &state, IBV_QP_STATE, &init) && state.qp_state == IBV_QPS_RTS);
		CHECK(ibv_close_xrcd(xrcd) == EBUSY);
		CHECK(!ibv_destroy_qp(opened) && !ibv_destroy_qp(own));
		CHECK(!ibv_close_xrcd(xrcd));
	}
	CHECK(!ibv_close_device(context));
	return NULL;
}

static void *srqs_come_and_go(void *argument)
{
	struct receiver *receiver = &receivers[0];
	struct ibv_cq *cq = ibv_create_cq(receiver->context, SLOTS, NULL, NULL, 0);
	uint64_t received = 0;

	(void)argument;
	CHECK(cq);
	while (running() || !received) {
		uint32_t number;
		struct ibv_srq *srq = create_srq(receiver, cq, &number);
		struct ibv_recv_wr *bad, wr = {.wr_id = 1};
		struct ibv_wc wc;

		for (int i = 0; i < SHORT_LIVED; i++)
			CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
		__atomic_store_n(&short_lived, number, __ATOMIC_RELEASE);
		for (int i = 0; i < 50; i++) {
			if (ibv_poll_cq(cq, 1, &wc) == 1) {
				CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == 1);
				CHECK(wc.qp_num == prober.recv->qp_num);
				received++;
				break;
			}
			sched_yield();
		}
		CHECK(!ibv_destroy_srq(srq));
		CHECK(!ibv_poll_cq(cq, 1, &wc));
	}
	CHECK(!ibv_destroy_cq(cq));
	return NULL;
}

static void *probe(void *argument)
{
	(void)argument;
	while (running()) {
		struct ibv_send_wr *bad, wr = send_wr(0, IBV_WR_SEND, NULL);
		enum ibv_wc_status status;

		wr.qp_type.xrc.remote_srqn = __atomic_load_n(&short_lived, __ATOMIC_ACQUIRE);
		CHECK(!ibv_post_send(prober.send, &wr, &bad));
		status = wait_completion(prober.cq).status;
		if (status == IBV_WC_SUCCESS)
			continue;
		CHECK(status == IBV_WC_REM_INV_REQ_ERR);
		to_reset(prober.send);
		to_reset(prober.recv);
		connect_pair(prober.send, prober.recv);
	}
	return NULL;
}

static void *take_events(void *argument)
{
	struct ibv_async_event event;
	struct ibv_context *context = receivers[0].context;

	(void)argument;
	CHECK(!fcntl(context->async_fd, F_SETFL, O_NONBLOCK));
	while (running()) {
		while (!ibv_get_async_event(context, &event)) {
			CHECK(event.element.qp == prober.recv);
			ibv_ack_async_event(&event);
		}
		sched_yield();
	}
	return NULL;
}

int main(void)
{
	enum { CHURNERS = 4 };
	static void *(*const churners[CHURNERS])(void *) = {open_and_close, srqs_come_and_go, probe, take_events};
	pthread_t sending[SENDERS], receiving[RECEIVERS], churning[CHURNERS];

	file = memfd_create("xrc", MFD_CLOEXEC);
	CHECK(file >= 0);
	for (int i = 0; i < RECEIVERS; i++)
		open_receiver(&receivers[i]);
	for (int i = 0; i < SENDERS; i++)
		open_sender(&senders[i], receivers[1].xrcd);
	open_sender(&prober, receivers[0].xrcd);
	for (int i = 0; i < RECEIVERS; i++)
		for (uint64_t slot = 0; slot < SLOTS / 2; slot++)
			post_slot(&receivers[i], receivers[i].srq, slot);

	for (int i = 0; i < CHURNERS; i++)
		CHECK(!pthread_create(&churning[i], NULL, churners[i], NULL));
	for (int i = 0; i < RECEIVERS; i++)
		CHECK(!pthread_create(&receiving[i], NULL, receive_all, &receivers[i]));
	for (int i = 0; i < SENDERS; i++)
		CHECK(!pthread_create(&sending[i], NULL, send_all, &senders[i]));
	for (int i = 0; i < SENDERS; i++)
		CHECK(!pthread_join(sending[i], NULL));
	for (int i = 0; i < RECEIVERS; i++)
		CHECK(!pthread_join(receiving[i], NULL));
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < CHURNERS; i++)
		CHECK(!pthread_join(churning[i], NULL));

	for (int i = 0; i < SENDERS; i++)
		close_sender(&senders[i]);
	close_sender(&prober);
	for (int i = 0; i < RECEIVERS; i++) {
		struct receiver *receiver = &receivers[i];

		CHECK(!ibv_destroy_srq(receiver->srq) && !ibv_destroy_cq(receiver->cq));
		CHECK(!ibv_dereg_mr(receiver->mr) && !ibv_dealloc_pd(receiver->pd));
		CHECK(!ibv_close_xrcd(receiver->xrcd));
		CHECK(!ibv_close_device(receiver->context));
	}
	close(file);
	return 0;
}
