/* SPDX-License-Identifier: BSD-2-Clause */
/* Tries facilities of the kernel, see kernel_has.h. */
#include "kernel_has.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif

/* By number, because tests replace the function of the C library. */
bool kernel_has_memory_copies(void)
{
	char from = 1, to = 0;
	struct iovec here = {&to, 1}, there = {&from, 1};

	return syscall(SYS_process_vm_readv, getpid(), &here, 1UL, &there, 1UL, 0UL) == 1;
}

bool kernel_has_page_checks(void)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool refused = page != MAP_FAILED && madvise(page, bytes, MADV_POPULATE_READ);
	int error = errno;

	munmap(page, bytes);
	return refused && (error == EFAULT || error == ENOMEM || kernel_has_memory_copies());
}

/* Waits until the other end of the pipe @argument is closed. */
static void *wait_for_end(void *argument)
{
	char byte;

	while (read(*(int *)argument, &byte, 1) < 0 && errno == EINTR)
		;
	return NULL;
}

static void *do_nothing(void *argument)
{
	return argument;
}

/* An emulator may end the child by an assertion: without a core file, and quietly. */
static void create_thread_in_child(void)
{
	int null = open("/dev/null", O_RDWR);
	pthread_t thread;

	setrlimit(RLIMIT_CORE, &(const struct rlimit){0});
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	alarm(10);
	_exit(pthread_create(&thread, NULL, do_nothing, NULL) || pthread_join(thread, NULL));
}

bool kernel_has_threads_after_fork(void)
{
	int ends[2], status = -1;
	pthread_t thread;
	pid_t child;

	if (pipe(ends) || pthread_create(&thread, NULL, wait_for_end, ends))
		return false;
	child = fork();
	if (!child)
		create_thread_in_child();
	if (child < 0 || waitpid(child, &status, 0) != child)
		status = -1;
	close(ends[1]);
	pthread_join(thread, NULL);
	close(ends[0]);
	return !status;
}

bool kernel_has_control_truncation(void)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(3 * sizeof(int))];
	} control = {0};
	char byte = 0;
	struct iovec part = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int ends[2], before, after, received[1];
	bool truncated;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return false;
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(3 * sizeof(int));
	memcpy(CMSG_DATA(&control.header), (int[]){ends[0], ends[0], ends[0]}, 3 * sizeof(int));
	before = dup(ends[0]);
	close(before);
	message.msg_controllen = CMSG_LEN(sizeof(int));
	truncated = sendmsg(ends[0],
			    &(struct msghdr){.msg_iov = &part,
					     .msg_iovlen = 1,
					     .msg_control = &control,
					     .msg_controllen = sizeof(control)},
			    0) == 1 &&
		    recvmsg(ends[1], &message, 0) == 1 && message.msg_flags & MSG_CTRUNC;
	if (truncated && message.msg_controllen >= CMSG_LEN(sizeof(int))) {
		memcpy(received, CMSG_DATA(&control.header), sizeof(received));
		close(received[0]);
	}
	/* The lowest free number shows whether the kernel has kept another descriptor. */
	after = dup(ends[0]);
	close(after);
	close(ends[0]);
	close(ends[1]);
	return truncated && after == before;
}

bool kernel_has_flow_labels(void)
{
	const struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT;
	struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_addr = loopback};
	socklen_t length = sizeof(name);
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(uint32_t))];
	} control = {0};
	char byte = 0;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_name = &name,
				 .msg_namelen = sizeof(name),
				 .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	uint32_t label = htonl(0x12345), arrived = 0;
	int to = socket(AF_INET6, SOCK_DGRAM, 0), from = socket(AF_INET6, SOCK_DGRAM, 0), on = 1;
	struct pollfd ready = {.fd = to, .events = POLLIN};

	control.header.cmsg_level = IPPROTO_IPV6;
	control.header.cmsg_type = IPV6_FLOWINFO;
	control.header.cmsg_len = CMSG_LEN(sizeof(label));
	memcpy(CMSG_DATA(&control.header), &label, sizeof(label));
	if (!bind(to, (struct sockaddr *)&name, sizeof(name)) && !getsockname(to, (struct sockaddr *)&name, &length) &&
	    !setsockopt(to, IPPROTO_IPV6, IPV6_FLOWINFO, &on, sizeof(on)) && sendmsg(from, &message, 0) == 1 &&
	    poll(&ready, 1, 1000) == 1) {
		memset(&control, 0, sizeof(control));
		if (recvmsg(to, &message, 0) == 1 && message.msg_controllen >= CMSG_LEN(sizeof(arrived)))
			memcpy(&arrived, CMSG_DATA(&control.header), sizeof(arrived));
	}
	close(to);
	close(from);
	return arrived == label;
}

bool kernel_has_groups_by_index(void)
{
	struct ip_mreqn group = {.imr_ifindex = (int)if_nametoindex("lo")};
	int fd = socket(AF_INET, SOCK_DGRAM, 0), error;

	inet_pton(AF_INET, "239.83.1.1", &group.imr_multiaddr);
	error = setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof(group));
	close(fd);
	return !error;
}

bool kernel_has_neighbour_requests(void)
{
	const struct {
		struct nlmsghdr header;
		struct ndmsg body;
		struct rtattr attribute;
		struct in_addr address;
	} request = {
		.header = {.nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETNEIGH, .nlmsg_flags = NLM_F_REQUEST},
		.body = {.ndm_family = AF_INET, .ndm_ifindex = (int)if_nametoindex("lo")},
		.attribute = {.rta_len = RTA_LENGTH(sizeof(struct in_addr)), .rta_type = NDA_DST},
	};
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	ssize_t sent = send(fd, &request, sizeof(request), 0);

	close(fd);
	return sent == sizeof(request);
}

#ifdef __aarch64__
static void *fault_page;
static volatile bool has_syndrome;

/* The context is a sequence of records; that of the syndrome is optional. */
static void find_syndrome(int signal, siginfo_t *info, void *context)
{
	const uint32_t *record = (const uint32_t *)((ucontext_t *)context)->uc_mcontext.__reserved;

	(void)signal;
	(void)info;
	for (; record[0] && record[1]; record = (const uint32_t *)((const char *)record + record[1]))
		has_syndrome |= record[0] == 0x45535201;
	mprotect(fault_page, 1, PROT_READ);
}

bool kernel_has_kinds_of_faults(void)
{
	struct sigaction action = {.sa_sigaction = find_syndrome, .sa_flags = SA_SIGINFO}, before;
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);

	fault_page = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaction(SIGSEGV, &action, &before);
	(void)*(volatile char *)fault_page;
	sigaction(SIGSEGV, &before, NULL);
	munmap(fault_page, bytes);
	return has_syndrome;
}
#else
bool kernel_has_kinds_of_faults(void)
{
	return true;
}
#endif

bool kernel_has_names_of_calls(void)
{
	char line[64] = "";
	int fd = open("/proc/thread-self/syscall", O_RDONLY);
	ssize_t length = read(fd, line, sizeof(line) - 1);

	close(fd);
	return length > 0 && atoi(line) == SYS_read;
}

int kernel_huge_page_error(void)
{
	size_t bytes = (size_t)2 << 20;
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	int error = pages == MAP_FAILED ? errno : 0;

	if (!error)
		munmap(pages, bytes);
	return error;
}
