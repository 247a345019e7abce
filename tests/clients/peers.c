/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes, sockets and queue pairs of the tests, see peers.h. */
#include "peers.h"
#include "verbs_connect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../model/choose.h"

const char *role_name = "test";

void die(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s: ", role_name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

/* ---- processes ------------------------------------------------------------------------------------------------ */

/* Runs in the child, between fork and exec. */
static _Noreturn void become(const char *netns, int socket, char *const *argv)
{
	int namespace = netns ? open(netns, O_RDONLY | O_CLOEXEC) : -1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (netns && (namespace < 0 || setns(namespace, CLONE_NEWNET)))
		_exit(125);
	if (dup2(socket, PROCESS_SOCKET) < 0)
		_exit(125);
	execv("/proc/self/exe", argv);
	_exit(125);
}

struct process process_start(const char *netns, const char *const *arguments)
{
	char *argv[16] = {(char *)(uintptr_t) "peer"};
	int sockets[2];
	struct process process;

	for (int i = 0; arguments[i]; i++)
		argv[i + 1] = (char *)(uintptr_t)arguments[i];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		die("socketpair: %s", strerror(errno));
	process.pid = fork();
	if (process.pid < 0)
		die("fork: %s", strerror(errno));
	if (process.pid == 0) {
		/* dup2 of a descriptor onto itself would let exec close it. */
		if (sockets[1] == PROCESS_SOCKET && fcntl(PROCESS_SOCKET, F_SETFD, 0))
			_exit(125);
		become(netns, sockets[1], argv);
	}
	close(sockets[1]);
	process.socket = sockets[0];
	return process;
}

bool send_all(int socket, const void *bytes, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t sent = send(socket, (const char *)bytes + done, length - done, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		done += (size_t)sent;
	}
	return true;
}

bool receive_all(int socket, void *bytes, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t received = recv(socket, (char *)bytes + done, length - done, 0);

		if (received < 0 && errno == EINTR)
			continue;
		if (received <= 0)
			return false;
		done += (size_t)received;
	}
	return true;
}

void process_kill(const struct process *process)
{
	kill(process->pid, SIGKILL);
	close(process->socket);
	while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static unsigned int entries_of(const char *path)
{
	DIR *directory = opendir(path);
	unsigned int count = 0;

	if (!directory)
		die("%s: %s", path, strerror(errno));
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static unsigned int shared_mappings(bool print)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], rights[8];
	unsigned int count = 0;

	if (!maps)
		die("/proc/self/maps: %s", strerror(errno));
	while (fgets(line, sizeof(line), maps)) {
		bool shared = sscanf(line, "%*s %7s", rights) == 1 && rights[3] == 's';

		count += shared;
		if (shared && print)
			fputs(line, stderr);
	}
	fclose(maps);
	return count;
}

/* Prints the address where it listens, or that of its other end. */
static void print_socket(int fd)
{
	struct sockaddr_un name = {.sun_family = AF_UNSPEC};
	struct ucred peer = {.pid = 0};
	socklen_t length = sizeof(name), bytes = sizeof(peer), flag = sizeof(int);
	int listens = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &flag))
		return;
	if (listens && !getsockname(fd, (struct sockaddr *)&name, &length) && name.sun_family == AF_UNIX)
		fprintf(stderr, " at %.*s", (int)(length - sizeof(name.sun_family)) - 1, name.sun_path + 1);
	else if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes))
		fprintf(stderr, " of process %d", (int)peer.pid);
}

/* Prints the objects currently held, to help find leaks. */
static void print_held(void)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;
	char target[256];

	fprintf(stderr, "process %d\n", (int)getpid());
	while (directory && (entry = readdir(directory))) {
		ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);

		if (length <= 0)
			continue;
		fprintf(stderr, "%s: %.*s", entry->d_name, (int)length, target);
		print_socket(atoi(entry->d_name));
		fputc('\n', stderr);
	}
	if (directory)
		closedir(directory);
}

struct held held_now(void)
{
	return (struct held){.descriptors = entries_of("/proc/self/fd"), .mappings = shared_mappings(false)};
}

void expect_no_more_held(const struct held *before, double seconds)
{
	double begin = seconds_now();
	struct held now;

	while (now = held_now(), now.descriptors > before->descriptors || now.mappings > before->mappings) {
		if (seconds_now() - begin > seconds) {
			print_held();
			shared_mappings(true);
			die("%u descriptors and %u shared mappings, after %u and %u before", now.descriptors,
			    now.mappings, before->descriptors, before->mappings);
		}
		usleep(10000);
	}
}

/* ---- queue pairs ---------------------------------------------------------------------------------------------- */

static void choose_gid(struct device *device)
{
	static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff};
	struct ibv_gid_entry entry;
	bool found = false;

	for (uint8_t i = 0; i < 64; i++) {
		bool is_ipv4;

		if (ibv_query_gid_ex(device->context, 1, i, &entry, 0) || entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		is_ipv4 = memcmp(entry.gid.raw, ipv4, sizeof(ipv4)) == 0;
		if (found && !is_ipv4)
			continue;
		device->gid = entry.gid;
		device->gid_index = i;
		found = true;
		if (is_ipv4)
			return;
	}
	if (!found)
		die("there is no GID of RoCE v2");
}

void device_open(struct device *device)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		die("there is no device");
	device->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!device->context)
		die("ibv_open_device: %s", strerror(errno));
	device->pd = ibv_alloc_pd(device->context);
	if (!device->pd)
		die("ibv_alloc_pd: %s", strerror(errno));
	choose_gid(device);
}

void device_close(struct device *device)
{
	if (ibv_dealloc_pd(device->pd) || ibv_close_device(device->context))
		die("closing the device: %s", strerror(errno));
}

struct ibv_cq *cq_new(struct device *device, int entries)
{
	struct ibv_cq *cq = ibv_create_cq(device->context, entries, NULL, NULL, 0);

	if (!cq)
		die("ibv_create_cq: %s", strerror(errno));
	return cq;
}

struct ibv_mr *memory_new(struct device *device, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	if (memory == MAP_FAILED)
		die("mmap of %zu bytes: %s", bytes, strerror(errno));
	mr = ibv_reg_mr(device->pd, memory, bytes,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_ATOMIC);
	if (!mr)
		die("ibv_reg_mr: %s", strerror(errno));
	return mr;
}

void memory_free(struct ibv_mr *mr)
{
	void *memory = mr->addr;
	size_t bytes = mr->length;

	if (ibv_dereg_mr(mr) || munmap(memory, bytes))
		die("ibv_dereg_mr: %s", strerror(errno));
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	int error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask);

	if (error)
		die("ibv_modify_qp to state %d: %s", attr.qp_state, strerror(error));
}

struct ibv_qp *qp_new(struct device *device, struct ibv_cq *send_cq, struct ibv_cq *receive_cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = send_cq,
		.recv_cq = receive_cq,
		.cap = {.max_send_wr = QP_DEPTH, .max_recv_wr = QP_DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(device->pd, &attr);

	if (!qp)
		die("ibv_create_qp: %s", strerror(errno));
	modify(qp,
	       (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
						       IBV_ACCESS_REMOTE_ATOMIC},
	       IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	return qp;
}

void qp_connect(struct device *device, struct ibv_qp *qp, const union ibv_gid *gid, uint32_t peer, uint32_t psn,
		uint32_t peer_psn, struct patience patience)
{
	int error = verbs_connect(qp, peer, .ah_attr.grh = {.dgid = *gid, .sgid_index = device->gid_index},
				  .rq_psn = peer_psn, .sq_psn = psn, .max_dest_rd_atomic = 8, .min_rnr_timer = 1,
				  .timeout = patience.timeout, .retry_cnt = patience.retries,
				  .rnr_retry = patience.rnr_once, .max_rd_atomic = 8);

	if (error)
		die("ibv_modify_qp: %s", strerror(error));
}

/* ---- numbers -------------------------------------------------------------------------------------------------- */

uint64_t draw(uint64_t *state)
{
	struct choose choose = {*state};
	uint64_t bits = choose_bits(&choose);

	*state = choose.state;
	return bits;
}

uint32_t draw_below(uint64_t *state, uint32_t bound)
{
	return (uint32_t)((draw(state) >> 32) * bound >> 32);
}
