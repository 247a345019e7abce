/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of the shm link (link/shm/shm.h). Each case runs in its own process and connects to itself. */
#include "test_case.h"

#include <sys/wait.h>

#include "../unit/support/shm_hostile.h"
#include "beyond.h"
#include "hca/hca.h"
#include "hca/grants.h"
#include "kernel_has.h"
#include "process/commands.h"
#include "link/shm/peer.h"
#include "wire/link.h"
#include "transport/run/run.h"

static struct hostile hostile;
static uint32_t own;

/* Expects an explanation of @rule that begins with the format, without the name of the device. */
static void __attribute__((format(printf, 2, 3))) expect(enum explain_rule rule, const char *format, ...)
{
	char expected[600], line[1200], *text;
	struct explain_record record;
	uint64_t end = test_now_ms() + 10000;
	va_list args;

	va_start(args, format);
	vsnprintf(expected, sizeof(expected), format, args);
	va_end(args);
	while (!explain_previous(hca_device(0), 0, 0, &record) || record.rule != rule) {
		if (test_now_ms() > end) {
			printf("# rule %d was not explained\n", rule);
			fflush(stdout);
			_exit(1);
		}
		sched_yield();
	}
	explain_render("mlx5_0", &record, line, sizeof(line));
	/* Text after the name of the device and, if present, the queue pair. */
	text = strstr(line, ": ");
	if (strncmp(line, "mlx5_0", 6) || !text || strncmp(text + 2, expected, strlen(expected))) {
		printf("# %s\n", line);
		fflush(stdout);
		_exit(1);
	}
}

static void in_a_child(void (*body)(void))
{
	pid_t pid;
	int status;

	/* The device starts its thread there. */
	if (!kernel_has_threads_after_fork())
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(20);
		if (host_claim_slot(&own))
			_exit(1);
		hostile_connect(&hostile, own);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void record(void)
{
	struct shm_slot slot = hostile_bth(0x04, own, 0, 0);

	slot.headers = 8;
	hostile_send(&hostile, &slot, NULL, 0);
	expect(RULE_SHM_RECORD,
	       "field 3 of a record that process %d wrote into the shared ring is 0x8, which violates the format: its connection is closed. [210 SHM_RECORD; ",
	       getpid());
}

/* Builds a SEND without payload to the process in our own slot: the one that connected last. Called inside an epoch
 * section. */
static void build_send(struct run *run, enum ibv_qp_type transport)
{
	struct packet *packet;

	if (!host_peer_of(own))
		_exit(1);
	run_begin(run);
	packet = run_slot(run);
	memset(packet, 0, offsetof(struct packet, payload));
	stream_begin(&packet->payload, NULL, 0);
	packet->transport = (uint8_t)transport;
	packet->message = MESSAGE_SEND;
	packet->place = PLACE_ONLY;
	packet->source_qpn = 0x4712;
	packet->destination_qpn = own;
	packet->count = 1;
	packet->mtu = 1024;
	packet->link = link_shm();
}

static void head(void)
{
	struct run run;

	hostile.in.ring->head = 1000;
	epoch_enter();
	build_send(&run, IBV_QPT_RC);
	/* Fills a whole ring of records until it reads the head. */
	for (uint32_t i = 0; i <= SHM_SLOTS; i++)
		link_send(hca_device(0), &run);
	epoch_leave();
	expect(RULE_SHM_HEAD,
	       "process %d claims to have taken records from the shared ring that did not exist: its connection is closed. [211 SHM_HEAD; ",
	       getpid());
}

static void dropped(void)
{
	struct run run;

	epoch_enter();
	build_send(&run, IBV_QPT_UC);
	while (link_send(hca_device(0), &run) == LINK_SENT)
		;
	usleep(LIMIT_UNRELIABLE_WAIT_MS * 1000 + 500);
	link_send(hca_device(0), &run);
	epoch_leave();
	expect(RULE_SHM_DROPPED,
	       "SEND of queue pair 0x4712 for queue pair 0x%x was dropped: process %d has taken nothing from the "
	       "shared ring, which is full, for ",
	       own, getpid());
}

static void packet(void)
{
	struct shm_slot slot = hostile_bth(0x11, 0x4711, 0, 0);

	/* An acknowledgement has an AETH and no payload. */
	slot.headers += 4;
	slot.length = 4;
	hostile_send(&hostile, &slot, "abcd", 4);
	expect(RULE_SHM_PACKET,
	       "a record that process %d wrote into the shared ring, for queue pair 0x4711 with 4 bytes of payload, does not have the headers for it: dropped. [212 SHM_PACKET; ",
	       getpid());
}

static void handed_on(void)
{
	struct shm_slot slot = hostile_bth(0x11, 0x4711, 0, 0);
	struct shm_path path = {.source = {0x20, 1, 0xd, 0xb8, [15] = 9}};
	struct shm_cursor to = shm_tail(&hostile.out);

	slot.flags = SHM_FLAG_PATH | SHM_FLAG_FRAME;
	slot.headers += 4;
	slot.length = 4;
	memcpy(hostile.out.ring->data + (size_t)shm_step(&to, shm_record_lines(&slot)) * SHM_LINE, &path, sizeof(path));
	hostile_send(&hostile, &slot, "abcd", 4);
	expect(RULE_FRAME_HANDED_ON,
	       "a frame from 0x20010db800000000:0x9 for queue pair 0x4711, with 4 bytes of payload, does not have the headers for it: dropped; process %d received it and passed it on. [122 FRAME_HANDED_ON; ",
	       getpid());
}

BEYOND_CASE(FRAME_HANDED_ON)
{
	in_a_child(handed_on);
}

/* Claims an access of a thread that does not exist. */
static void access_for_ever(void)
{
	hostile.out.ring->access.thread = 0;
	hostile.out.ring->access.ticket = 1;
	grants_revoke_and_drain();
	expect(RULE_SHM_ACCESS,
	       "process %d has reported for 10000 ms that its thread 0 accesses memory of this process: its connection is closed, so that keys can end. [235 SHM_ACCESS; ",
	       getpid());
}

#define CASE(rule, body)                                                                                               \
	BEYOND_CASE(SHM_##rule)                                                                                        \
	{                                                                                                              \
		in_a_child(body);                                                                                      \
	}

CASE(RECORD, record)
CASE(HEAD, head)
CASE(PACKET, packet)
CASE(DROPPED, dropped)
CASE(ACCESS, access_for_ever)
