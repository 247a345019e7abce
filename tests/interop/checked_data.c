/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cases that must succeed. Each moves bytes between two odd offsets and then compares all of both memories with the patterns
 * LOCAL, of the requester, and REMOTE, of the responder, so that a byte written elsewhere is found as well.
 */
#include "checked.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FROM = 4099, TO = 70001, PAUSES = 4, MESSAGES = 16, PAUSE_US = 1500000 };

static const uint32_t SIZES[] = {0, 1, 2, 3, 4, 5, 7, 8, 63, 256, 1023, 1024, 1025, 2048, 4095, 4097, 65539, 1 << 20};
static const unsigned ALL =
	IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
static const struct options RC = {.type = IBV_QPT_RC, .access = ALL, .retries = 7, .rnr_retries = 7};

static bool ended(const char *name, struct outcome outcome)
{
	return outcome.status == IBV_WC_SUCCESS ||
	       report(false, name, "the completion has status %s", status_name(outcome.status));
}

/* Compares both memories after @bytes moved between @local and @remote. */
static void expect(struct end *end, const char *name, uint64_t local, uint64_t remote, uint32_t bytes, bool into_local)
{
	int64_t here, there;

	if (into_local) {
		here = check(end, local, bytes, REMOTE, remote, LOCAL);
		there = ask(end, CHECK, 0, 0, 0, 0, REMOTE);
	} else {
		here = check(end, 0, 0, 0, 0, LOCAL);
		there = ask(end, CHECK, remote, bytes, LOCAL, local, REMOTE);
	}
	report(here == -1 && there == -1, name, "wrong byte at %lld of the requester's memory, %lld of the responder's",
	       (long long)here, (long long)there);
}

static void one_sided(struct end *end, enum ibv_wr_opcode opcode, const char *verb, uint32_t bytes)
{
	bool read = opcode == IBV_WR_RDMA_READ;
	char name[64];

	snprintf(name, sizeof name, "%s of %u bytes", verb, bytes);
	join(end, &RC);
	post(end, opcode, read ? TO : FROM, bytes, read ? FROM : TO, end->other.rkey);
	if (ended(name, await_completion(end)))
		expect(end, name, read ? TO : FROM, read ? FROM : TO, bytes, read);
}

/* Requests that use a receive. Datagrams arrive after a GRH. */
static void two_sided(struct end *end, const struct options *options, enum ibv_wr_opcode opcode, const char *verb,
		      uint32_t bytes)
{
	bool write = opcode == IBV_WR_RDMA_WRITE_WITH_IMM, immediate = write || opcode == IBV_WR_SEND_WITH_IMM;
	bool datagram = options->type == IBV_QPT_UD;
	struct outcome received;
	char name[64];

	snprintf(name, sizeof name, "%s of %u bytes", verb, bytes);
	join(end, options);
	ask(end, RECEIVE, datagram ? TO - GRH : TO, write ? 0 : datagram ? bytes + GRH : bytes, 0, 0, 0);
	post(end, opcode, FROM, bytes, TO, end->other.rkey);
	if (!ended(name, await_completion(end)))
		return;
	received = ask_outcome(end);
	if (!ended(name, received))
		return;
	if (received.bytes != bytes + (datagram ? GRH : 0) ||
	    received.opcode != (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV) ||
	    ((received.flags & IBV_WC_WITH_IMM) != 0) != immediate ||
	    (immediate && received.data != htonl(IMMEDIATE))) {
		report(false, name, "the receive has opcode %u, %u bytes, flags %u, immediate data %x", received.opcode,
		       received.bytes, received.flags, received.data);
		return;
	}
	if (datagram)
		report(ask(end, COMPARE, TO, bytes, LOCAL, FROM, 0) == UINT64_MAX, name,
		       "wrong bytes after the header");
	else
		expect(end, name, FROM, TO, bytes, false);
}

static uint64_t word_at(const struct end *end, uint64_t offset)
{
	uint64_t value;

	memcpy(&value, end->memory + offset, sizeof value);
	return value;
}

static void atomic(struct end *end, const char *name, enum ibv_wr_opcode opcode, bool equal, uint64_t operand)
{
	const uint64_t place = TO / 8 * 8;
	struct ibv_send_wr request;
	uint64_t before, wanted;
	struct ibv_sge piece;

	join(end, &RC);
	before = ask(end, WORD, place, 0, 0, 0, 0);
	prepare(end, &request, &piece, opcode, FROM / 8 * 8, 8, place, end->other.rkey);
	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		request.wr.atomic.compare_add = equal ? before : before + 1;
		request.wr.atomic.swap = operand;
		wanted = equal ? operand : before;
	} else {
		request.wr.atomic.compare_add = operand;
		wanted = before + operand;
	}
	post_list(end, &request);
	if (!ended(name, await_completion(end)))
		return;
	report(word_at(end, FROM / 8 * 8) == before && ask(end, WORD, place, 0, 0, 0, 0) == wanted, name,
	       "it returns %llx of %llx and leaves %llx instead of %llx",
	       (unsigned long long)word_at(end, FROM / 8 * 8), (unsigned long long)before,
	       (unsigned long long)ask(end, WORD, place, 0, 0, 0, 0), (unsigned long long)wanted);
}

void run_atomic_write(struct end *end)
{
	const char *name = "ATOMIC WRITE";
	const uint64_t place = TO / 8 * 8;
	struct options options = RC;
	struct ibv_qp_ex *extended;
	struct outcome outcome;
	uint64_t value;

	options.atomic_write = 1;
	join(end, &options);
	value = word_at(end, FROM);
	extended = ibv_qp_to_qp_ex(end->qp);
	ibv_wr_start(extended);
	extended->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(extended, end->other.rkey, end->other.memory + place, &value);
	/* The READ must return the new value. */
	ibv_wr_rdma_read(extended, end->other.rkey, end->other.memory + place);
	ibv_wr_set_sge(extended, end->mr->lkey, (uintptr_t)end->memory + FROM, 8);
	if (ibv_wr_complete(extended)) {
		report(false, name, "ibv_wr_complete fails");
		return;
	}
	outcome = await_completion(end);
	if (!ended(name, outcome))
		return;
	if (outcome.opcode != IBV_WC_ATOMIC_WRITE) {
		report(false, name, "the completion has opcode %u", outcome.opcode);
		return;
	}
	if (ended(name, await_completion(end)))
		expect(end, name, FROM, place, 8, false);
}

/* Writes through a window of type 2, then invalidates its key by a SEND. */
static void window(struct end *end, const char *known)
{
	const char *write = "WRITE through a window of type 2", *send = "SEND that invalidates a window";
	struct outcome received;
	uint32_t key;

	join(end, &RC);
	key = ask(end, BIND, TO, 5000, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ, 0, 0);
	post(end, IBV_WR_RDMA_WRITE, FROM, 5000, TO, key);
	if (ended(write, await_completion(end)))
		expect(end, write, FROM, TO, 5000, false);
	ask(end, FILL, REMOTE, 0, 0, 0, 0);
	ask(end, RECEIVE, TO, 77, 0, 0, 0);
	post(end, IBV_WR_SEND_WITH_INV, FROM, 77, 0, key);
	if (!ended(send, await_completion(end)))
		return;
	received = ask_outcome(end);
	if ((!(received.flags & IBV_WC_WITH_INV) && !is_known(known, "invalidate-flag", "absent")) ||
	    received.data != key)
		report(false, send, "flags %u, key %x instead of %x", received.flags, received.data, key);
	else
		expect(end, send, FROM, TO, 77, false);
}

/* Posts 32 requests in one list: WRITE, READ and FETCH_ADD in turn. All atomics add to the same word. */
static void in_flight(struct end *end)
{
	enum { COUNT = 32, STEP = 20000, WORD_AT = 1 << 20, RESULTS = (1 << 20) + 4096 };
	const char *name = "32 requests in flight";
	struct ibv_send_wr requests[COUNT];
	struct ibv_sge pieces[COUNT];
	uint64_t before;
	bool right = true;

	join(end, &RC);
	before = ask(end, WORD, WORD_AT, 0, 0, 0, 0);
	for (int i = 0; i < COUNT; i++) {
		enum ibv_wr_opcode opcode =
			(enum ibv_wr_opcode[]){IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}[i % 3];
		uint64_t place = (uint64_t)i * STEP + 1;

		if (i % 3 == 2)
			prepare(end, &requests[i], &pieces[i], opcode, RESULTS + 8 * i, 8, WORD_AT, end->other.rkey);
		else
			prepare(end, &requests[i], &pieces[i], opcode, place, i * 601 + 1, place, end->other.rkey);
		requests[i].wr_id = i;
		if (i % 3 == 2)
			requests[i].wr.atomic.compare_add = 1;
		requests[i].next = i + 1 < COUNT ? &requests[i + 1] : NULL;
	}
	post_list(end, requests);
	for (int i = 0; i < COUNT; i++) {
		if (!ended(name, await_completion(end)))
			return;
	}
	for (int i = 0; right && i < COUNT; i++) {
		uint64_t place = (uint64_t)i * STEP + 1, bytes = i * 601 + 1;

		if (i % 3 == 0)
			right = ask(end, COMPARE, place, bytes, LOCAL, place, 0) == UINT64_MAX;
		else if (i % 3 == 1)
			right = compare(end, place, bytes, REMOTE, place) == -1;
		else
			right = word_at(end, RESULTS + 8 * i) == before + i / 3;
	}
	right = right && ask(end, WORD, WORD_AT, 0, 0, 0, 0) == before + COUNT / 3;
	report(right, name, "a byte or a result is wrong");
}

/* Sends one message to @place through the current UC queue pair. Returns true if it arrived intact. */
static bool send_once(struct end *end, const char *name, uint64_t place, uint32_t bytes)
{
	ask(end, RECEIVE, place, bytes, 0, 0, 0);
	post(end, IBV_WR_SEND, FROM, bytes, 0, 0);
	return ended(name, await_completion(end)) && ended(name, ask_outcome(end)) &&
	       (ask(end, COMPARE, place, bytes, LOCAL, FROM, 0) == UINT64_MAX ||
		report(false, name, "a byte is wrong"));
}

/*
 * Sends steady sequences of packets with pauses between them. After a pause, Linux advances its counter of IPv4 identifications
 * by a random number that grows with the length of the pause.
 */
static void pauses(struct end *end, const struct options *options)
{
	const char *name = "UC SEND after a pause";
	bool right = true;

	join(end, options);
	for (int i = 0; right && i < PAUSES; i++) {
		for (int message = 0; right && message < MESSAGES; message++)
			right = send_once(end, name, TO, 32768);
		usleep(PAUSE_US);
		right = right && send_once(end, name, TO + 40000 + (uint64_t)i * 2000, 2000);
	}
	if (right)
		report(true, name, " ");
}

void run_data(struct end *end, const char *known)
{
	for (unsigned i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
		one_sided(end, IBV_WR_RDMA_WRITE, "WRITE", SIZES[i]);
		one_sided(end, IBV_WR_RDMA_READ, "READ", SIZES[i]);
		two_sided(end, &RC, IBV_WR_SEND, "SEND", SIZES[i]);
	}
	for (unsigned i = 0; i < sizeof SIZES / sizeof *SIZES; i += 4) {
		two_sided(end, &RC, IBV_WR_SEND_WITH_IMM, "SEND with immediate data", SIZES[i]);
		two_sided(end, &RC, IBV_WR_RDMA_WRITE_WITH_IMM, "WRITE with immediate data", SIZES[i]);
	}
	atomic(end, "COMPARE AND SWAP, equal", IBV_WR_ATOMIC_CMP_AND_SWP, true, 0x0123456789abcdef);
	atomic(end, "COMPARE AND SWAP, different", IBV_WR_ATOMIC_CMP_AND_SWP, false, 0x0123456789abcdef);
	atomic(end, "FETCH AND ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, false, 1);
	atomic(end, "FETCH AND ADD that wraps", IBV_WR_ATOMIC_FETCH_AND_ADD, false, UINT64_MAX);
	window(end, known);
	in_flight(end);
}

void run_unreliable(struct end *end)
{
	static const uint32_t sizes[] = {0, 1, 1023, 1024};
	struct options uc = {.type = IBV_QPT_UC, .access = ALL}, ud = {.type = IBV_QPT_UD};

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		two_sided(end, &ud, IBV_WR_SEND, "UD SEND", sizes[i]);
		two_sided(end, &ud, IBV_WR_SEND_WITH_IMM, "UD SEND with immediate data", sizes[i]);
	}
	pauses(end, &uc);
	for (unsigned i = 0; i < sizeof SIZES / sizeof *SIZES && SIZES[i] < 65536; i += 3) {
		two_sided(end, &uc, IBV_WR_SEND, "UC SEND", SIZES[i]);
		two_sided(end, &uc, IBV_WR_SEND_WITH_IMM, "UC SEND with immediate data", SIZES[i]);
		two_sided(end, &uc, IBV_WR_RDMA_WRITE_WITH_IMM, "UC WRITE with immediate data", SIZES[i]);
	}
}
