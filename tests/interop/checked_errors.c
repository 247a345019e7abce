/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cases that must fail. The expected statuses of requester and responder are those of IBTA 10.10.3 and 9.9.2 to 9.9.3. Each case uses
 * new queue pairs.
 */
#include "checked.h"
#include <stdio.h>
#include <string.h>

enum { FROM = 4096, TO = 65536 };

static const unsigned ALL =
	IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/* Names of statuses, as used by -k. */
static const char *const NAMES[] = {[IBV_WC_SUCCESS] = "SUCCESS",
				    [IBV_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
				    [IBV_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
				    [IBV_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
				    [IBV_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
				    [IBV_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
				    [IBV_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
				    [IBV_WC_REM_OP_ERR] = "REM_OP_ERR",
				    [IBV_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
				    [IBV_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR"};

const char *status_name(uint32_t status)
{
	if (status == NO_COMPLETION)
		return "(no completion)";
	if (status == NOT_POSTED)
		return "EINVAL";
	return status < sizeof NAMES / sizeof *NAMES && NAMES[status] ? NAMES[status] : ibv_wc_status_str(status);
}

bool is_known(const char *known, const char *name, const char *outcome)
{
	char entry[128];
	int length = snprintf(entry, sizeof entry, "%s=%s", name, outcome);

	for (const char *found = strstr(known, entry); found; found = strstr(found + 1, entry)) {
		if ((found == known || found[-1] == ',') && (found[length] == ',' || !found[length]))
			return true;
	}
	return false;
}

/* Reports whether a completion has the expected status. Returns false if it has neither that nor a known one. */
static bool expect(const char *known, const char *name, struct outcome outcome, enum ibv_wc_status wanted)
{
	if (outcome.status == wanted)
		return report(true, name, " ");
	if (is_known(known, name, status_name(outcome.status))) {
		printf("# %s: %s instead of %s, as is known\n", name, status_name(outcome.status), status_name(wanted));
		return true;
	}
	return report(false, name, "%s instead of %s", status_name(outcome.status), status_name(wanted));
}

/* A request to the responder's memory, the rights that the responder grants, and the expected status. */
struct access {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t bytes;
	uint64_t remote; /* offset in the memory, or beyond it */
	unsigned region; /* rights of the key; 0: a key that does not exist */
	unsigned qp;     /* rights of the queue pair */
	enum ibv_wc_status wanted;
};

#define READ_WRITE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static const struct access ACCESSES[] = {
	{"write-key", IBV_WR_RDMA_WRITE, 100, TO, 0, ALL, IBV_WC_REM_ACCESS_ERR},
	{"read-key", IBV_WR_RDMA_READ, 100, TO, 0, ALL, IBV_WC_REM_ACCESS_ERR},
	{"atomic-key", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, TO, 0, ALL, IBV_WC_REM_ACCESS_ERR},
	{"write-end", IBV_WR_RDMA_WRITE, 101, REGION - 100, ALL, ALL, IBV_WC_REM_ACCESS_ERR},
	{"write-long-end", IBV_WR_RDMA_WRITE, 8193, REGION - 8192, ALL, ALL, IBV_WC_REM_ACCESS_ERR},
	{"read-end", IBV_WR_RDMA_READ, 101, REGION - 100, ALL, ALL, IBV_WC_REM_ACCESS_ERR},
	{"write-before", IBV_WR_RDMA_WRITE, 100, -1ull, ALL, ALL, IBV_WC_REM_ACCESS_ERR},
	{"write-right", IBV_WR_RDMA_WRITE, 100, TO, IBV_ACCESS_REMOTE_READ, ALL, IBV_WC_REM_ACCESS_ERR},
	{"read-right", IBV_WR_RDMA_READ, 100, TO, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, ALL,
	 IBV_WC_REM_ACCESS_ERR},
	{"atomic-right", IBV_WR_ATOMIC_CMP_AND_SWP, 8, TO, READ_WRITE, ALL, IBV_WC_REM_ACCESS_ERR},
	{"write-qp", IBV_WR_RDMA_WRITE, 100, TO, ALL, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
	 IBV_WC_REM_INV_REQ_ERR},
	{"read-qp", IBV_WR_RDMA_READ, 100, TO, ALL, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	 IBV_WC_REM_INV_REQ_ERR},
	{"atomic-qp", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, TO, ALL, READ_WRITE, IBV_WC_REM_INV_REQ_ERR},
	{"atomic-odd", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, TO + 4, ALL, ALL, IBV_WC_REM_INV_REQ_ERR},
	/* A request of 0 bytes needs neither a key nor an address (C9-88). */
	{"write-nothing", IBV_WR_RDMA_WRITE, 0, -1ull, 0, ALL, IBV_WC_SUCCESS},
};

static void access_memory(struct end *end, const char *known, const struct access *access)
{
	struct options options = {.type = IBV_QPT_RC, .access = access->qp, .retries = 6, .rnr_retries = 6};
	struct outcome outcome = {.status = NOT_POSTED};
	int64_t here, there;
	uint32_t key;

	join(end, &options);
	key = access->region ? ask(end, REGISTER, access->region, 0, 0, 0, 0) : end->other.rkey ^ 0x77700;
	if (post(end, access->opcode, FROM, access->bytes, access->remote, key))
		outcome = await_completion(end);
	if (!expect(known, access->name, outcome, access->wanted))
		return;
	/* A long WRITE may write its valid part before it fails. */
	here = compare(end, 0, REGION, LOCAL, 0);
	there = ask(end, COMPARE, 0, access->bytes > 8192 ? REGION - 8192 : REGION, REMOTE, 0, 0);
	if (here != -1 || there != -1)
		report(false, access->name,
		       "refused, yet byte %lld of the requester's memory or %lld of the responder's is another",
		       (long long)here, (long long)there);
}

/* Receives that are too short, missing, late, or have an invalid key. */
static void receives(struct end *end, const char *known)
{
	struct options options = {.type = IBV_QPT_RC, .access = ALL, .retries = 6, .rnr_retries = 1};

	join(end, &options);
	ask(end, RECEIVE, TO, 99, 0, 0, 0);
	post(end, IBV_WR_SEND, FROM, 100, 0, 0);
	expect(known, "send-long", await_completion(end), IBV_WC_REM_INV_REQ_ERR);
	expect(known, "send-long-responder", ask_outcome(end), IBV_WC_LOC_LEN_ERR);

	join(end, &options);
	ask(end, RECEIVE, TO, 2999, 0, 0, 0);
	post(end, IBV_WR_SEND, FROM, 3000, 0, 0);
	expect(known, "send-long-packets", await_completion(end), IBV_WC_REM_INV_REQ_ERR);
	expect(known, "send-long-packets-responder", ask_outcome(end), IBV_WC_LOC_LEN_ERR);

	join(end, &options);
	ask(end, RECEIVE, TO, 100, 1, 0, 0);
	post(end, IBV_WR_SEND, FROM, 100, 0, 0);
	expect(known, "receive-key", await_completion(end), IBV_WC_REM_OP_ERR);
	expect(known, "receive-key-responder", ask_outcome(end), IBV_WC_LOC_PROT_ERR);

	join(end, &options);
	post(end, IBV_WR_SEND, FROM, 100, 0, 0);
	expect(known, "send-no-receive", await_completion(end), IBV_WC_RNR_RETRY_EXC_ERR);

	join(end, &options);
	post(end, IBV_WR_RDMA_WRITE_WITH_IMM, FROM, 100, TO, end->other.rkey);
	expect(known, "write-immediate-no-receive", await_completion(end), IBV_WC_RNR_RETRY_EXC_ERR);

	options.rnr_retries = 7;
	join(end, &options);
	post(end, IBV_WR_SEND, FROM, 100, 0, 0);
	ask(end, RECEIVE, TO, 100, 0, 0, 0);
	expect(known, "send-late-receive", await_completion(end), IBV_WC_SUCCESS);
	expect(known, "send-late-receive-responder", ask_outcome(end), IBV_WC_SUCCESS);
}

static void windows(struct end *end, const char *known)
{
	struct options options = {.type = IBV_QPT_RC, .access = ALL, .retries = 6, .rnr_retries = 6};
	uint32_t key;

	join(end, &options);
	key = ask(end, BIND, TO, 1000, IBV_ACCESS_REMOTE_WRITE, 0, 0);
	post(end, IBV_WR_RDMA_WRITE, FROM, 1001, TO, key);
	expect(known, "window-end", await_completion(end), IBV_WC_REM_ACCESS_ERR);

	join(end, &options);
	key = ask(end, BIND, TO, 1000, IBV_ACCESS_REMOTE_WRITE, 0, 0);
	post(end, IBV_WR_RDMA_READ, FROM, 1000, TO, key);
	expect(known, "window-right", await_completion(end), IBV_WC_REM_ACCESS_ERR);

	join(end, &options);
	key = ask(end, BIND, TO, 1000, IBV_ACCESS_REMOTE_WRITE, 0, 0);
	ask(end, INVALIDATE, key, 0, 0, 0, 0);
	post(end, IBV_WR_RDMA_WRITE, FROM, 1000, TO, key);
	expect(known, "window-invalid", await_completion(end), IBV_WC_REM_ACCESS_ERR);
}

static void others(struct end *end, const char *known)
{
	struct options options = {.type = IBV_QPT_RC, .access = ALL, .retries = 1, .rnr_retries = 1};
	struct ibv_send_wr requests[3];
	struct ibv_sge pieces[3];
	uint32_t key;

	options.wrong_qpn = 1;
	join(end, &options);
	post(end, IBV_WR_RDMA_WRITE, FROM, 100, TO, end->other.rkey);
	expect(known, "no-queue-pair", await_completion(end), IBV_WC_RETRY_EXC_ERR);
	options = (struct options){.type = IBV_QPT_RC, .access = ALL, .retries = 6, .rnr_retries = 6};

	join(end, &options);
	key = ask(end, REGISTER, ALL, 0, 0, 0, 0);
	post(end, IBV_WR_RDMA_WRITE, FROM, 100, TO, key);
	expect(known, "region", await_completion(end), IBV_WC_SUCCESS);
	ask(end, DEREGISTER, 0, 0, 0, 0, 0);
	post(end, IBV_WR_RDMA_WRITE, FROM, 100, TO, key);
	expect(known, "region-deregistered", await_completion(end), IBV_WC_REM_ACCESS_ERR);

	join(end, &options);
	prepare(end, &requests[0], &pieces[0], IBV_WR_RDMA_WRITE, FROM, 100, TO, end->other.rkey);
	pieces[0].lkey ^= 0x7700;
	post_list(end, &requests[0]);
	expect(known, "local-key", await_completion(end), IBV_WC_LOC_PROT_ERR);

	/* Requests before the failing one succeed; requests after it are flushed. */
	join(end, &options);
	for (int i = 0; i < 3; i++) {
		prepare(end, &requests[i], &pieces[i], IBV_WR_RDMA_WRITE, FROM, 3000, TO,
			i == 1 ? end->other.rkey ^ 0x77700 : end->other.rkey);
		requests[i].next = i < 2 ? &requests[i + 1] : NULL;
	}
	post_list(end, requests);
	expect(known, "list-first", await_completion(end), IBV_WC_SUCCESS);
	expect(known, "list-second", await_completion(end), IBV_WC_REM_ACCESS_ERR);
	expect(known, "list-third", await_completion(end), IBV_WC_WR_FLUSH_ERR);
}

void run_errors(struct end *end, const char *known)
{
	for (unsigned i = 0; i < sizeof ACCESSES / sizeof *ACCESSES; i++)
		access_memory(end, known, &ACCESSES[i]);
	receives(end, known);
	windows(end, known);
	others(end, known);
}
