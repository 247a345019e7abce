/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explanations name the queue pair at the other end and its process or host, although the headers of connected transports
 * do not carry the sender's number. The requester starts the target, which is another process of this host, or of another
 * one:
 *
 *   named [--netns PATH]
 *
 * Each step of the requester makes one mistake. The target checks its explanations on command and answers with a byte.
 * At last the target of the same host is killed: the request in flight fails no earlier than an adapter would notice,
 * and a datagram for the process that has ended gets no line.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <softhca.h>

#include "peers.h"
#include "verbs_connect.h"

enum { PSN = 100, QKEY = 0x11, BYTES = 64, RECORDS = 32 };
enum { REFUSED, UNREADY, STOPPED, DESTROYED, LOST, PAIRS };
enum command { CHECK_STATE, CHECK_NO_QP, CHECK_QKEY };

/* Information exchanged by both ends. */
struct card {
	uint32_t qpn[PAIRS], datagram_qpn, rkey;
	uint64_t address;
	union ibv_gid gid;
	pid_t pid;
};

struct end {
	struct device device;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[PAIRS], *datagram;
	struct card own, peer;
	struct ibv_ah *ah; /* of the peer */
	int socket;
	bool other_host;
	char whereabouts[INET6_ADDRSTRLEN + 16]; /* of the peer, as explanations print it */
};

static struct ibv_qp *datagram_new(struct end *end)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UD};
	struct ibv_qp *qp = ibv_create_qp(end->device.pd, &attr);

	if (!qp || verbs_connect(qp, 0, .qkey = QKEY))
		die("no datagram queue pair");
	return qp;
}

/* Returns when both ends are connected. */
static void open_end(struct end *end, int socket, bool other_host)
{
	char connected;

	device_open(&end->device);
	end->socket = socket;
	end->other_host = other_host;
	end->cq = cq_new(&end->device, 2 * QP_DEPTH);
	end->mr = memory_new(&end->device, 4096);
	for (int i = 0; i < PAIRS; i++) {
		end->qp[i] = qp_new(&end->device, end->cq, end->cq);
		end->own.qpn[i] = end->qp[i]->qp_num;
	}
	end->datagram = datagram_new(end);
	end->own.datagram_qpn = end->datagram->qp_num;
	end->own.rkey = end->mr->rkey;
	end->own.address = (uintptr_t)end->mr->addr;
	end->own.gid = end->device.gid;
	end->own.pid = getpid();
	if (!send_all(socket, &end->own, sizeof(end->own)) || !receive_all(socket, &end->peer, sizeof(end->peer)))
		die("the other end has gone");
	/* A busy machine answers late, so only requests without an answer time out soon. */
	for (int i = 0; i < PAIRS; i++)
		qp_connect(&end->device, end->qp[i], &end->peer.gid, end->peer.qpn[i], PSN, PSN,
			   i == STOPPED || i == DESTROYED
				   ? (struct patience){.timeout = 10, .retries = 1}
				   : (struct patience){.timeout = 19, .retries = 7, .rnr_once = true});
	if (other_host) {
		char address[INET_ADDRSTRLEN];

		if (!inet_ntop(AF_INET, end->peer.gid.raw + 12, address, sizeof(address)))
			die("inet_ntop");
		snprintf(end->whereabouts, sizeof(end->whereabouts), "host %s", address);
	} else {
		snprintf(end->whereabouts, sizeof(end->whereabouts), "process %d", (int)end->peer.pid);
	}
	if (!send_all(socket, "", 1) || !receive_all(socket, &connected, 1))
		die("the other end has gone");
}

/* Ends the process unless an explanation of @rule has @text. It may be made shortly after its packet is sent. */
static void expect_explained(struct end *end, const char *rule, const char *text)
{
	struct softhca_explanation records[RECORDS];
	double until = seconds_now() + 20;
	char line[1024] = "";

	do {
		size_t count = softhca_explanations(end->device.context, 0, records, RECORDS);

		for (size_t i = 0; i < count; i++) {
			if (strcmp(records[i].name, rule))
				continue;
			softhca_explanation_text(&records[i], line, sizeof(line));
			if (strstr(line, text))
				return;
		}
		usleep(1000);
	} while (seconds_now() < until);
	die("no explanation %s with \"%s\"; the latest: %s", rule, text, line);
}

/* ---- the target ------------------------------------------------------------------------------------------------- */

static int target(bool other_host)
{
	struct end end = {0};
	uint8_t command;
	char text[256];

	open_end(&end, PROCESS_SOCKET, other_host);
	if (ibv_modify_qp(end.qp[STOPPED], &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE) ||
	    ibv_destroy_qp(end.qp[DESTROYED]))
		die("the queue pairs do not end");
	if (!send_all(end.socket, "", 1))
		die("the requester has gone");
	while (receive_all(end.socket, &command, sizeof(command))) {
		switch ((enum command)command) {
		case CHECK_STATE:
			snprintf(text, sizeof(text), "of queue pair 0x%x from %s for queue pair 0x%x",
				 end.peer.qpn[STOPPED], end.whereabouts, end.own.qpn[STOPPED]);
			expect_explained(&end, "PACKET_STATE", text);
			break;
		case CHECK_NO_QP:
			snprintf(text, sizeof(text), " from %s for queue pair 0x%x", end.whereabouts,
				 end.own.qpn[DESTROYED]);
			expect_explained(&end, "PACKET_NO_QP", text);
			break;
		case CHECK_QKEY:
			snprintf(text, sizeof(text), "from queue pair 0x%x of %s", end.peer.datagram_qpn,
				 end.whereabouts);
			expect_explained(&end, "DATAGRAM_QKEY", text);
			break;
		}
		if (!send_all(end.socket, "", 1))
			break;
	}
	return 0;
}

/* ---- the requester ---------------------------------------------------------------------------------------------- */

static void post(struct ibv_qp *qp, struct end *end, struct ibv_send_wr wr)
{
	struct ibv_sge sge = {(uintptr_t)end->mr->addr, BYTES, end->mr->lkey};
	struct ibv_send_wr *bad;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(qp, &wr, &bad))
		die("ibv_post_send");
}

static void expect_status(struct end *end, enum ibv_wc_status status)
{
	double until = seconds_now() + 20;
	struct ibv_wc wc;

	while (!ibv_poll_cq(end->cq, 1, &wc))
		if (seconds_now() > until)
			die("no completion");
	if (wc.status != status)
		die("%s instead of %s", ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
}

/* Posts WRITEs by pair @pair; the peer refuses or ignores them: @rule explains, names the peer, and continues with @said. */
static void write_in_vain(struct end *end, int pair, uint32_t rkey, enum ibv_wc_status status, const char *rule,
			  const char *said)
{
	char text[256];

	post(end->qp[pair], end,
	     (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = {.remote_addr = end->peer.address, .rkey = rkey}});
	expect_status(end, status);
	snprintf(text, sizeof(text), "queue pair 0x%x of %s %s", end->peer.qpn[pair], end->whereabouts, said);
	expect_explained(end, rule, text);
}

static void ask(struct end *end, enum command command)
{
	uint8_t byte = (uint8_t)command;

	if (!send_all(end->socket, &byte, 1) || !receive_all(end->socket, &byte, 1))
		die("the target ended in check %d", command);
}

static void requester(struct end *end)
{
	struct ibv_ah_attr address = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = end->peer.gid, .sgid_index = end->device.gid_index, .hop_limit = 64}};
	struct ibv_ah *ah = ibv_create_ah(end->device.pd, &address);
	char text[128];

	if (!ah)
		die("ibv_create_ah");
	write_in_vain(
		end, REFUSED, end->peer.rkey ^ 1, IBV_WC_REM_ACCESS_ERR, "NAK_REMOTE_ACCESS",
		/* Over shared memory the rule travels with the NAK; packets between hosts have no place for it. */
		end->other_host ? "refused packet 0x64: remote access error"
				: "refused packet 0x64, by its rule 3 KEY_STALE: remote access error");
	post(end->qp[UNREADY], end, (struct ibv_send_wr){.opcode = IBV_WR_SEND});
	expect_status(end, IBV_WC_RNR_RETRY_EXC_ERR);
	snprintf(text, sizeof(text), "queue pair 0x%x of %s had no receive", end->peer.qpn[UNREADY], end->whereabouts);
	expect_explained(end, "RNR_EXHAUSTED", text);
	write_in_vain(end, STOPPED, end->peer.rkey, IBV_WC_RETRY_EXC_ERR, "RETRY_EXHAUSTED", "did not answer");
	ask(end, CHECK_STATE);
	write_in_vain(end, DESTROYED, end->peer.rkey, IBV_WC_RETRY_EXC_ERR, "RETRY_EXHAUSTED", "did not answer");
	ask(end, CHECK_NO_QP);
	post(end->datagram, end,
	     (struct ibv_send_wr){.opcode = IBV_WR_SEND,
				  .wr.ud = {.ah = ah, .remote_qpn = end->peer.datagram_qpn, .remote_qkey = QKEY + 1}});
	expect_status(end, IBV_WC_SUCCESS);
	ask(end, CHECK_QKEY);
	end->ah = ah;
}

/* The process is stopped first, so that the request is in flight when it ends. */
static void kill_target(struct end *end, struct process *process, const char *lines)
{
	static char text[1 << 16];
	double begin = seconds_now();
	int fd = open(lines, O_RDONLY);

	kill(process->pid, SIGSTOP);
	/* A thread that runs stops a little later. */
	if (waitpid(process->pid, NULL, WUNTRACED) != process->pid)
		die("the target does not stop");
	post(end->qp[LOST], end, (struct ibv_send_wr){.opcode = IBV_WR_SEND});
	process_kill(process);
	expect_status(end, IBV_WC_RETRY_EXC_ERR);
	if (seconds_now() - begin < 0.5)
		die("the request failed after %.3f s", seconds_now() - begin);
	snprintf(text, sizeof(text), "the process of queue pair 0x%x has ended", end->peer.qpn[LOST]);
	expect_explained(end, "PEER_ENDED", text);
	post(end->datagram, end,
	     (struct ibv_send_wr){.opcode = IBV_WR_SEND,
				  .wr.ud = {.ah = end->ah, .remote_qpn = end->peer.datagram_qpn, .remote_qkey = QKEY}});
	expect_status(end, IBV_WC_SUCCESS);
	expect_explained(end, "PACKET_NO_QP", "which does not exist");
	if (read(fd, text, sizeof(text) - 1) <= 0 || !strstr(text, "PEER_ENDED") || strstr(text, "PACKET_NO_QP"))
		die("the lines are: %s", text);
	close(fd);
}

int main(int argc, char **argv)
{
	const char *netns = argc == 3 && !strcmp(argv[1], "--netns") ? argv[2] : NULL;
	struct end end = {0};
	struct process process;
	char byte, lines[] = "/tmp/softhca-named-XXXXXX";
	int fd;

	role_name = "target";
	if (argc == 2)
		return target(!strcmp(argv[1], "far"));
	role_name = "requester";
	process = process_start(netns, (const char *const[]){netns ? "far" : "near", NULL});
	fd = mkstemp(lines);
	if (fd < 0 || setenv("SOFTHCA_EXPLAIN", lines, 1))
		die("mkstemp");
	close(fd);
	open_end(&end, process.socket, netns);
	if (!receive_all(end.socket, &byte, 1))
		die("the target has gone");
	requester(&end);
	if (netns)
		process_kill(&process);
	else
		kill_target(&end, &process, lines);
	ibv_destroy_ah(end.ah);
	memory_free(end.mr);
	unlink(lines);
	printf("1..1\nok 1 - both ends name each other\n");
	return 0;
}
