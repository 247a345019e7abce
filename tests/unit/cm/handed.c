/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records that the process with the RoCE port keeps about connections of other processes of its host, to notify the
 * peers when one of these ends. The test replaces gsi_send().
 */
#include "test_case.h"

#include "core/limits.h"
#include "../support/device_fixture.h"
#include "format/cm_message.h"
#include "cm_host/handed.h"

enum { PROCESS = 5, OWN_ID = 3 << 18 | 9, PEER_ID = 0x1234, PEER_QPN = 0x99 };

static struct cm_message last;
static unsigned int sent;
static struct handed *handed;

void __wrap_gsi_send(struct hca *hca, const struct packet_path *path, const uint8_t *mad);
void __wrap_gsi_send(struct hca *hca, const struct packet_path *path, const uint8_t *mad)
{
	(void)hca;
	(void)path;
	sent++;
	assert_int_equal(cm_unpack(mad, &last), CM_WELL_FORMED);
}

static struct packet_path path_of(uint8_t peer)
{
	struct packet_path path = {.hop_limit = 64};

	path.source.raw[15] = peer;
	path.destination.raw[15] = 1;
	return path;
}

static void note(uint8_t peer, const struct cm_message *message)
{
	struct packet_path path = path_of(peer);
	uint8_t mad[CM_MAD_BYTES];

	cm_pack(message, mad);
	handed_note(handed, &path, mad, PROCESS);
}

static void note_request(uint8_t peer, uint32_t peer_id, uint32_t qpn)
{
	const struct cm_message message = {.kind = CM_REQ, .req = {.local_comm_id = peer_id, .local_qpn = qpn}};

	note(peer, &message);
}

static void note_ready(uint8_t peer, uint32_t peer_id, uint32_t own_id)
{
	const struct cm_message message = {.kind = CM_RTU, .rtu = {.local_comm_id = peer_id, .remote_comm_id = own_id}};

	note(peer, &message);
}

/* Ends @process. Returns the number of notified peers. */
static unsigned int end_process(uint32_t process)
{
	sent = 0;
	handed_process_ended(handed, process);
	return sent;
}

static void expect_one(uint32_t peer_qpn)
{
	assert_int_equal(end_process(PROCESS), 1);
	assert_int_equal(last.kind, CM_DREQ);
	assert_int_equal(last.dreq.local_comm_id, OWN_ID);
	assert_int_equal(last.dreq.remote_comm_id, PEER_ID);
	assert_int_equal(last.dreq.remote_qpn, peer_qpn);
	assert_int_equal(end_process(PROCESS), 0);
}

TEST(test_peer_is_notified)
{
	note_request(2, PEER_ID, PEER_QPN);
	assert_int_equal(end_process(PROCESS), 0);
	note_ready(2, PEER_ID, OWN_ID);
	assert_int_equal(end_process(PROCESS + 1), 0);
	expect_one(PEER_QPN);
}

TEST(test_request_that_comes_twice)
{
	note_request(2, PEER_ID, PEER_QPN);
	note_ready(2, PEER_ID, OWN_ID);
	note_request(2, PEER_ID, PEER_QPN);
	expect_one(PEER_QPN);
	/* With another queue pair it is another connection, which has no id yet. */
	note_request(2, PEER_ID, PEER_QPN);
	note_ready(2, PEER_ID, OWN_ID);
	note_request(2, PEER_ID, PEER_QPN + 1);
	assert_int_equal(end_process(PROCESS), 0);
	note_ready(2, PEER_ID, OWN_ID);
	expect_one(PEER_QPN + 1);
}

/* Requests that this host rejected, or that were abandoned, make room for others. */
TEST(test_requests_without_end)
{
	for (uint32_t i = 0; i < 3 * LIMIT_CM_HANDED; i++)
		note_request(3, i, 7);
	note_request(6, PEER_ID, PEER_QPN);
	note_ready(6, PEER_ID, OWN_ID);
	for (uint32_t i = 0; i < 3 * LIMIT_CM_HANDED; i++)
		note_request(4, i, 7);
	expect_one(PEER_QPN);
}

/* Connections are not dropped to make room for requests. */
TEST(test_connections_stay)
{
	for (uint32_t i = 0; i < 2 * LIMIT_CM_HANDED; i++) {
		note_request(5, i, 7);
		note_ready(5, i, OWN_ID + 1 + i % 1000);
	}
	assert_int_equal(end_process(PROCESS), LIMIT_CM_HANDED);
}

static int make_table(void **state)
{
	(void)state;
	handed = handed_new(hca_device(0));
	return handed ? 0 : -1;
}

static int free_table(void **state)
{
	(void)state;
	handed_free(handed);
	return 0;
}

int main(void)
{
	setenv("SOFTHCA_GIDS", "loopback", 1);
	assert_non_null(hca_device(0));
	return run_cases(.setup = make_table, .teardown = free_table);
}
