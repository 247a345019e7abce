/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which events of a timeline are merged into one record (observe/timeline_file.h): those that one record describes
 * completely. The fields that it omits have fixed values, so events with other values have a record of their own.
 */
#include "test_case.h"

#include <endian.h>

#include "hca/hca.h"
#include "queue/cq_write.h"
#include "transport/qp/record.h"

enum {
	QPN = 0x4711,
	PEER = 0xabcdef,
	INDEX = 0xfff1,
	PSN = 0xfffffe,
	NOW = 1000,
	ROOM = 64,
	CQN = 77,
	DEVICE = 3,
	WR_ID = 5
};

static struct timeline_record records[ROOM];
static struct hca hca = {.index = DEVICE};
static struct hca_context context = {.hca = &hca};
static struct hca_cq cq = {.number = CQN, .context = &context, .notes = CQ_TIMELINE, .producer_index = 0x1000005};

/* Restarts the chunk of this thread. */
static int begin(void **state)
{
	struct epoch_slot *slot = epoch_this_thread ? epoch_this_thread : epoch_attach();

	(void)state;
	memset(records, 0, sizeof(records));
	slot->timeline_next = records + 1; /* after its header */
	slot->timeline_end = records + ROOM;
	slot->timeline_clock = NOW;
	slot->timeline_lap = 1 << 24;
	return 0;
}

static uint32_t count_records(void)
{
	return (uint32_t)(epoch_this_thread->timeline_next - records - 1);
}

/* ---- a post and its packet ---------------------------------------------------------------------------------------- */

struct sending {
	uint64_t time; /* of the call; 0: not in a call */
	uint8_t opcode, message, place, kind;
	uint32_t count, bytes, qpn;
	uint16_t index;
};

static const struct sending whole = {
	NOW, MLX5_OPCODE_RDMA_WRITE, MESSAGE_WRITE, PLACE_ONLY, TIMELINE_SEND, 1, 0xfedc, QPN, INDEX};

static void send(const struct sending *sending)
{
	struct hca_qp qp = {.number = sending->qpn};
	struct packet packet = {.message = sending->message,
				.place = sending->place,
				.count = sending->count,
				.psn = PSN,
				.destination_qpn = PEER,
				.dma_length = sending->bytes,
				.payload.length = sending->bytes};

	begin(NULL);
	timeline_begin_call(sending->time);
	timeline_put(NOW, TIMELINE_WHAT(TIMELINE_POST, sending->opcode, INDEX), QPN, 0, 0, WR_ID);
	record_sent(&qp, (enum timeline_kind)sending->kind, sending->index, &packet);
	assert_int_equal(timeline_time_of_call, 0);
}

TEST(a_post_and_its_only_packet)
{
	static const uint8_t kinds[][2] = {{TIMELINE_SEND, TIMELINE_POST_SEND}, {TIMELINE_CALL, TIMELINE_POST_CALL}};
	const struct timeline_record *record = records + 1;
	struct sending sending = whole;

	for (size_t i = 0; i < 2; i++) {
		sending.kind = kinds[i][0];
		send(&sending);
		assert_int_equal(count_records(), 1);
		assert_int_equal(record->kind, kinds[i][1]);
		assert_int_equal(record->opcode, MLX5_OPCODE_RDMA_WRITE);
		assert_int_equal(record->index, INDEX);
		assert_int_equal(record->number, QPN | 1 << 24);
		assert_int_equal(record->psn, PSN | 0xfeu << 24);
		assert_int_equal(record->length, PEER | 0xdcu << 24);
		assert_int_equal(record->value, WR_ID);
		assert_int_equal(record->time, NOW);
	}
}

TEST(posts_and_packets_apart)
{
	struct sending other[9];

	for (size_t i = 0; i < 9; i++)
		other[i] = whole;
	other[0].count = 2;
	other[1].bytes = 0x10000;
	other[2].index = INDEX + 1;
	other[3].opcode = MLX5_OPCODE_RDMA_READ;
	other[3].message = MESSAGE_READ_REQUEST;
	other[4].kind = TIMELINE_SEND_AGAIN;
	other[5].place = PLACE_FIRST;
	other[6].opcode = MLX5_OPCODE_RDMA_WRITE_IMM;
	other[7].qpn = QPN + 1;
	other[8].time = 0;
	for (size_t i = 0; i < 9; i++) {
		send(&other[i]);
		if (count_records() != 2)
			fail_msg("case %zu is one record", i);
		assert_int_equal(records[1].kind, TIMELINE_POST);
		assert_int_equal(records[2].kind, other[i].kind);
		assert_int_equal(records[2].length, other[i].bytes);
	}
}

/* ---- an acknowledgement and the requests that it completes -------------------------------------------------------- */

/* @of: the QP of the CQE. */
static void acknowledge(uint8_t opcode, uint32_t bytes, uint32_t of)
{
	const struct hca_qp qp = {.number = QPN};
	const struct packet packet = {.message = MESSAGE_ACKNOWLEDGE, .psn = PSN, .source_qpn = PEER, .syndrome = 0x1f};
	struct mlx5_cqe64 cqe = {.sop_drop_qpn = htobe32((uint32_t)MLX5_OPCODE_RDMA_WRITE << 24 | of),
				 .byte_cnt = htobe32(bytes),
				 .wqe_counter = htobe16(INDEX)};

	begin(NULL);
	epoch_this_thread->timeline_clock = timeline_now();
	record_acknowledged(&qp, &packet);
	cq_note(&cq, &cqe, opcode);
	timeline_end_call();
}

TEST(an_acknowledgement_and_a_completion)
{
	const struct timeline_record *record = records + 1;

	acknowledge(MLX5_CQE_REQ, 0xfedc, QPN);
	assert_int_equal(count_records(), 1);
	assert_int_equal(record->kind, TIMELINE_ACKNOWLEDGED);
	assert_int_equal(record->opcode, 0xfe);
	assert_int_equal(record->index, INDEX);
	assert_int_equal(record->psn, PSN | 0x1fu << 24);
	assert_int_equal(record->length, PEER | 0xdcu << 24);
	assert_int_equal(record->value, (uint64_t)CQN | (uint64_t)MLX5_OPCODE_RDMA_WRITE << 24 | UINT64_C(5) << 32 |
						(uint64_t)DEVICE << 56);
	/* More bytes than the field can hold; another completion; one of another queue pair; a later one. */
	acknowledge(MLX5_CQE_REQ, 0x10000, QPN);
	assert_int_equal(count_records(), 2);
	assert_int_equal(records[2].length, 0x10000);
	acknowledge(MLX5_CQE_RESP_WR_IMM, 5, QPN);
	assert_int_equal(count_records(), 2);
	acknowledge(MLX5_CQE_REQ, 5, QPN + 1);
	assert_int_equal(count_records(), 2);
	assert_int_equal(records[2].kind, TIMELINE_COMPLETE);
	assert_int_equal(records[2].value & 0xffffff, QPN + 1);
}

/* ---- completions that are polled together -------------------------------------------------------------------------- */

/*
 * Polls @count completions with wr_ids from @first on, in steps of @step; the one at @failed has an error. Returns the
 * number of records.
 */
static uint32_t polled(uint32_t count, uint64_t first, uint64_t step, uint32_t failed)
{
	struct ibv_wc wc[40] = {{0}};

	for (uint32_t i = 0; i < count; i++)
		wc[i] = (struct ibv_wc){.wr_id = first + i * step,
					.status = i == failed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS};
	begin(NULL);
	hca_cq_polled(&cq, NOW, 0x1fffffe, wc, count);
	return count_records();
}

TEST(several_polled)
{
	assert_int_equal(polled(3, WR_ID, (uint64_t)-2, 99), 1);
	assert_int_equal(records[1].kind, TIMELINE_POLL_SOME);
	assert_int_equal(records[1].index, 3);
	assert_int_equal(records[1].psn, 0xfffffe | (uint32_t)DEVICE << 24);
	assert_int_equal(records[1].length, (uint32_t)-2);
	assert_int_equal(records[1].value, WR_ID);
	/* A single one; more than one record can hold; steps of more than 32 bits; a failed one and its neighbours. */
	assert_int_equal(polled(1, WR_ID, 0, 99), 1);
	assert_int_equal(records[1].kind, TIMELINE_POLL);
	assert_int_equal(polled(TIMELINE_MOST_POLLS + 2, WR_ID, 1, 99), 2);
	assert_int_equal(records[1].index, TIMELINE_MOST_POLLS);
	assert_int_equal(records[2].index, 2);
	assert_int_equal(records[2].value, WR_ID + TIMELINE_MOST_POLLS);
	assert_int_equal(records[2].psn & 0xffffff, (0xfffffe + TIMELINE_MOST_POLLS) & 0xffffff);
	assert_int_equal(polled(2, WR_ID, UINT64_C(1) << 31, 99), 2);
	assert_int_equal(polled(5, WR_ID, 1, 2), 3);
	assert_int_equal(records[1].index, 2);
	assert_int_equal(records[2].kind, TIMELINE_POLL);
	assert_int_equal(records[2].opcode, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(records[3].index, 2);
	assert_int_equal(records[3].value, WR_ID + 3);
}

int main(void)
{
	return run_cases(.setup = begin);
}
