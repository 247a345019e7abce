/* SPDX-License-Identifier: BSD-2-Clause */
/* Uses ip_command(8) of iproute2. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tool/hosts.h"
#include "tool/tool.h"

/* Hosts have addresses 10.99.0.N and fd00:99::N; the bridge has none. */
#define NETWORK_IPV4 "10.99.0"
#define NETWORK_IPV6 "fd00:99:"

/* Waits of 2 ms each. */
enum { CARRIER_NAPS = 1000 };

/* ---- namespaces ---------------------------------------------------------------------------------------------------- */

static void write_map(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);

	if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text))
		tool_fail(EXIT_CANNOT_RUN, "hosts: cannot write %s: %m", path);
	close(file);
}

_Noreturn static void fail_namespaces(void)
{
	tool_fail(EXIT_CANNOT_RUN,
		  "hosts: the kernel refuses namespaces to this user: %m. On Ubuntu 24.04: sysctl "
		  "kernel.apparmor_restrict_unprivileged_userns=0; in Docker: --security-opt seccomp=unconfined "
		  "or --cap-add SYS_ADMIN,NET_ADMIN");
}

void hosts_enter_namespaces(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWNET | CLONE_NEWNS)) {
		if (errno != EPERM || unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS))
			fail_namespaces();
		/* user_namespaces(7): setgroups is denied before the group is mapped. */
		snprintf(map, sizeof(map), "%u %u 1\n", uid, uid);
		write_map("/proc/self/uid_map", map);
		write_map("/proc/self/setgroups", "deny\n");
		snprintf(map, sizeof(map), "%u %u 1\n", gid, gid);
		write_map("/proc/self/gid_map", map);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		tool_fail(EXIT_CANNOT_RUN, "hosts: cannot make a mount namespace: %m");
}

/* If a container hides parts of /proc, the kernel refuses another mount of it in a user namespace. */
bool hosts_can_mount_proc(void)
{
	int status;
	pid_t child = (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, NULL, NULL, NULL, NULL);

	if (child < 0)
		return false;
	if (child == 0)
		_exit(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0);
	return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- ip_command(8) --------------------------------------------------------------------------------------------------------- */

/* capabilities(7): an ambient capability survives execve(2), even if not run by root. */
static void keep_net_admin(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (syscall(SYS_capget, &header, data))
		return;
	data[0].inheritable |= 1U << CAP_NET_ADMIN;
	if (!syscall(SYS_capset, &header, data))
		prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_ADMIN, 0, 0);
}

_Noreturn static void become_ip(int commands, bool quiet)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(commands, STDIN_FILENO);
	dup2(quiet ? null : STDERR_FILENO, STDOUT_FILENO);
	if (quiet)
		dup2(null, STDERR_FILENO);
	keep_net_admin();
	setenv("PATH", "/usr/sbin:/sbin:/usr/bin:/bin", 1);
	execlp("ip", "ip", "-batch", "-", NULL);
	_exit(EXIT_NOT_FOUND);
}

/* @commands: one per line. Returns the exit status. */
static int run_ip(const char *commands, bool quiet)
{
	int ends[2], status;
	pid_t child;
	ssize_t written;

	if (pipe2(ends, O_CLOEXEC))
		return EXIT_FAILURE;
	child = fork();
	if (child == 0)
		become_ip(ends[0], quiet);
	close(ends[0]);
	written = child < 0 ? -1 : write(ends[1], commands, strlen(commands));
	close(ends[1]);
	if (written < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return EXIT_FAILURE;
	return WEXITSTATUS(status);
}

static void __attribute__((format(printf, 1, 2))) ip_command(const char *format, ...)
{
	char commands[1024];
	va_list args;
	int status;

	va_start(args, format);
	vsnprintf(commands, sizeof(commands), format, args);
	va_end(args);
	status = run_ip(commands, false);
	if (status == EXIT_NOT_FOUND)
		tool_fail(EXIT_CANNOT_RUN, "hosts: ip is not installed (package iproute2)");
	if (status)
		tool_fail(EXIT_CANNOT_RUN, "hosts: ip_command(8) could not make the network");
}

/* ---- the network --------------------------------------------------------------------------------------------------- */

void hosts_make_bridge(const struct hosts_run *run)
{
	ip_command("link set dev lo up\n"
		   "link add name switch type bridge\n"
		   "link set dev switch mtu %u up\n",
		   run->mtu);
}

void hosts_add_interface(const struct hosts_run *run, uint32_t number, pid_t pid)
{
	ip_command("link add name to-h%u mtu %u type veth peer name eth0 mtu %u netns %d\n"
		   "link set dev to-h%u master switch up\n",
		   number, run->mtu, run->mtu, pid, number);
}

/* Otherwise an IPv6 address is not usable for a second or two. */
static void disable_duplicate_address_detection(void)
{
	int file = open("/proc/sys/net/ipv6/conf/eth0/accept_dad", O_WRONLY | O_CLOEXEC);

	if (file < 0)
		return;
	if (write(file, "0\n", 2) != 2)
		/* /proc/sys may be read-only; the address then works later. */
		errno = 0;
	close(file);
}

/* Addresses become GIDs once there is a carrier, which the kernel reports a moment after `link set up`. */
static void wait_for_carrier(void)
{
	const struct timespec nap = {.tv_nsec = 2000000};
	struct ifreq request = {.ifr_name = "eth0"};
	int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (int i = 0; i < CARRIER_NAPS && probe >= 0; i++) {
		if (ioctl(probe, SIOCGIFFLAGS, &request) || request.ifr_flags & IFF_RUNNING)
			break;
		nanosleep(&nap, NULL);
	}
	close(probe);
}

void hosts_set_addresses(uint32_t number)
{
	char ipv6[128];

	disable_duplicate_address_detection();
	ip_command("link set dev lo up\n"
		   "addr add " NETWORK_IPV4 ".%u/24 dev eth0\n"
		   "link set dev eth0 up\n",
		   number);
	/* Some machines have no IPv6. */
	snprintf(ipv6, sizeof(ipv6), "addr add " NETWORK_IPV6 ":%x/64 dev eth0 nodad\n", number);
	run_ip(ipv6, true);
	wait_for_carrier();
}

void hosts_write_names(const struct hosts_run *run)
{
	char path[PATH_MAX], line[512];
	FILE *names, *of_machine;

	snprintf(path, sizeof(path), "%s/hosts", run->directory);
	names = fopen(path, "we");
	if (!names)
		tool_fail(EXIT_CANNOT_RUN, "hosts: cannot write %s: %m", path);
	for (uint32_t number = 1; number <= run->count; number++)
		fprintf(names, NETWORK_IPV4 ".%u h%u\n" NETWORK_IPV6 ":%x h%u-ipv6\n", number, number, number, number);
	of_machine = fopen("/etc/hosts", "re");
	while (of_machine && fgets(line, sizeof(line), of_machine))
		fputs(line, names);
	if (of_machine)
		fclose(of_machine);
	if (fclose(names))
		tool_fail(EXIT_CANNOT_RUN, "hosts: cannot write %s: %m", path);
}
