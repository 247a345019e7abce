/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca doctor: checks what this machine supports, explains the consequences for programs, and suggests fixes. */
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "block/chosen.h"
#include "hca/gid.h"
#include "link/udp/parts.h"
#include "tool/json.h"
#include "tool/names.h"
#include "tool/probes.h"
#include "tool/tool.h"
#include "wire/routes.h"

/* ok; works, but slower or with less; something does not work. */
enum verdict { GOOD, LESS, BAD };
static const char *const verdict_names[] = {"ok", "less", "bad"};

struct finding {
	const char *name; /* stable, for scripts */
	enum verdict verdict;
	char found[512];
	const char *advice; /* "" if nothing is to be done */
};

struct findings {
	struct finding list[32];
	size_t count;
};

__attribute__((format(printf, 5, 6))) static void note(struct findings *findings, const char *name,
						       enum verdict verdict, const char *advice, const char *format,
						       ...)
{
	struct finding *finding = &findings->list[findings->count++];
	va_list args;

	finding->name = name;
	finding->verdict = verdict;
	finding->advice = verdict == GOOD ? "" : advice;
	va_start(args, format);
	vsnprintf(finding->found, sizeof(finding->found), format, args);
	va_end(args);
}

/* ---- processes of this host ------------------------------------------------------------------------------------- */

static void examine_host(struct findings *findings)
{
	int error = probe_shared_memory();

	if (error)
		note(findings, "shared_memory", BAD,
		     "Allow memfd_create(2), ftruncate(2) and seals (fcntl(2)) in the sandbox; without them only queue pairs "
		     "of one process talk, and by UDP.",
		     "files of memory cannot be shared: %s", strerror(error));
	else
		note(findings, "shared_memory", GOOD, "", "processes of this host can share memory");
	error = probe_abstract_sockets();
	if (error)
		note(findings, "abstract_sockets", BAD,
		     "Allow UNIX sockets in the sandbox (SOCK_SEQPACKET, abstract names); processes of a host find each "
		     "other by them.",
		     "abstract sockets do not work: %s", strerror(error));
	else
		note(findings, "abstract_sockets", GOOD, "", "processes of this host find each other");
}

/* Slot names of one user without a warning: for four million queue pairs. */
#define MANY_SLOTS (HOST_SLOTS / 4)
#define MOST_HOLDERS 64

/* Checks for users that hold names which others need; programs then use reserve names (link/host/names.h). */
static void examine_names(struct findings *findings)
{
	static const char *const advice =
		"See which program of that user it is. Programs of other users take reserve names meanwhile (rule 102), "
		"which are slower to find.";
	struct name_holder holders[MOST_HOLDERS];
	int count = names_holders(holders, MOST_HOLDERS);

	if (count < 0)
		note(findings, "names", GOOD, "", "the holders of names of softhca are not known: %s",
		     strerror(-count));
	else if (!count)
		note(findings, "names", GOOD, "", "no user holds a name of softhca");
	else
		note(findings, "names", holders[0].slots >= MANY_SLOTS ? LESS : GOOD, advice,
		     "user %u holds %u of %u names of queue pair numbers and %u of ports; %d more users hold names",
		     holders[0].user, holders[0].slots, HOST_SLOTS - 2, holders[0].ports, count - 1);
}

static void examine_memory(struct findings *findings)
{
	int error = probe_memory_of_others(), yama = system_setting("/proc/sys/kernel/yama/ptrace_scope");

	if (!error)
		note(findings, "reading_memory", GOOD, "", "processes of a user can use /proc/PID/mem of each other");
	else if (yama > 0)
		note(findings, "reading_memory", LESS,
		     "sysctl kernel.yama.ptrace_scope=0, if that is acceptable; small READs and WRITEs to a process that does not "
		     "poll wake its device thread instead.",
		     "/proc/PID/mem of another process: %s (kernel.yama.ptrace_scope is %d)", strerror(error), yama);
	else
		note(findings, "reading_memory", LESS,
		     "In a container: --cap-add SYS_PTRACE, or a seccomp profile that allows it; small READs and WRITEs to a "
		     "process that does not poll wake its device thread instead.",
		     "/proc/PID/mem of another process: %s", strerror(error));
}

/* ---- other hosts ------------------------------------------------------------------------------------------------ */

static void examine_port(struct findings *findings, const struct settings *settings)
{
	const struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htobe16((uint16_t)settings->roce_port)};
	uint16_t port = (uint16_t)settings->roce_port;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct udp_owner owner;

	if (fd < 0) {
		note(findings, "udp_port", BAD, "Allow UDP sockets in the sandbox; other hosts are reached by them.",
		     "no UDP socket: %s", strerror(errno));
		return;
	}
	if (!bind(fd, (const struct sockaddr *)&name, sizeof(name)))
		note(findings, "udp_port", GOOD, "", "port %u is free; %s", port, probe_trains(fd));
	else if (errno != EADDRINUSE)
		note(findings, "udp_port", BAD,
		     "Choose a port that may be bound: SOFTHCA_ROCE_PORT, on all hosts alike.", "port %u: %s", port,
		     strerror(errno));
	else if (udp_find_receiver(port, &owner))
		note(findings, "udp_port", GOOD, "", "process %d (%s) of softhca receives on port %u for this host",
		     (int)owner.pid, owner.name, port);
	else if (udp_find_owner(port, &owner))
		note(findings, "udp_port", BAD,
		     "End that program, or choose another port on all hosts: SOFTHCA_ROCE_PORT.",
		     "port %u is taken by process %d (%s): nothing arrives from other hosts", port, (int)owner.pid,
		     owner.name);
	else
		note(findings, "udp_port", BAD,
		     "It is of another user, or of the kernel (rdma_rxe): end it, or choose another port on all hosts: "
		     "SOFTHCA_ROCE_PORT.",
		     "port %u is taken by a process that this one cannot see", port);
	close(fd);
}

static void examine_addresses(struct findings *findings, const struct settings *settings)
{
	struct hca_gid gids[HCA_GID_TABLE_SIZE];
	size_t count = gid_discover(settings->gids, gids), others = 0;
	const char *interface = "";

	for (size_t i = 0; i < count; i++) {
		if (gids[i].type != IBV_GID_TYPE_ROCE_V2 || !strcmp(gids[i].netdev, "lo"))
			continue;
		others++;
		interface = gids[i].netdev;
	}
	if (others)
		note(findings, "addresses", GOOD, "", "%zu that other hosts can reach, such as on %s", others,
		     interface);
	else
		note(findings, "addresses", LESS,
		     "For other hosts, give an interface of this network namespace an address (ip-address(8)).",
		     "no address but those of the loopback interface: only processes of this host are reached");
}

/* ---- softhca run ------------------------------------------------------------------------------------------------ */

static void examine_namespaces(struct findings *findings, const struct settings *settings)
{
	int error = probe_mount_namespace();

	if (!error)
		note(findings, "namespaces", GOOD, "",
		     "softhca run can show programs /dev/infiniband and /sys/class/infiniband%s",
		     geteuid() ? ", by a user namespace" : "");
	else if (presence_nodes_exist(settings->devices))
		note(findings, "namespaces", GOOD, "",
		     "/dev/infiniband is there, so UCX sees the device; no mount namespace (%s), so programs find no files "
		     "in /sys/class/infiniband",
		     strerror(error));
	else
		note(findings, "namespaces", LESS,
		     "Programs that look there for adapters, as UCX, MPI and NCCL do, find none. In a container: docker run "
		     "--device /dev/null:/dev/infiniband/uverbs0 (no capability is needed). On Ubuntu 24.04: sysctl "
		     "kernel.apparmor_restrict_unprivileged_userns=0. Elsewhere allow user namespaces: "
		     "kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0.",
		     "no mount namespace: %s", strerror(error));
}

/* Returns the number of names; lists up to @size characters. */
static size_t list_names(const char *directory, char *names, size_t size)
{
	DIR *entries = opendir(directory);
	const struct dirent *entry;
	size_t count = 0, used = 0;

	*names = '\0';
	while (entries && (entry = readdir(entries))) {
		if (entry->d_name[0] == '.')
			continue;
		if (used < size)
			used += (size_t)snprintf(names + used, size - used, "%s%s", count ? ", " : "", entry->d_name);
		count++;
	}
	if (entries)
		closedir(entries);
	return count;
}

static void examine_rdma(struct findings *findings)
{
	char names[128];
	size_t count = list_names("/sys/class/infiniband", names, sizeof(names));

	if (count)
		note(findings, "other_adapters", GOOD, "",
		     "of the kernel: %zu (%s); programs under softhca see softhca's instead", count, names);
	else
		note(findings, "other_adapters", GOOD, "", "none of the kernel");
}

/* ---- the CPU ---------------------------------------------------------------------------------------------------- */

static void examine_cpu(struct findings *findings)
{
	struct softhca_kernels kernels;

	softhca_block_kernels(&kernels);
	note(findings, "cpu", *kernels.missing ? LESS : GOOD,
	     "Nothing to do: the work is done at less speed. A virtual machine may hide what its host has: choose the CPU "
	     "model of the host.",
	     "%s; the CPU has: %s%s%s", kernels.chosen,
	     *kernels.present ? kernels.present : "none of what kernels need",
	     *kernels.missing ? "; faster with: " : "", kernels.missing);
}

/* ---- limits ----------------------------------------------------------------------------------------------------- */

static void examine_limits(struct findings *findings)
{
	struct rlimit limit = {0, 0};
	int pages = system_setting("/proc/sys/vm/nr_hugepages");
	char text[32];

	getrlimit(RLIMIT_NOFILE, &limit);
	note(findings, "open_files", limit.rlim_cur < 1024 ? LESS : GOOD,
	     "ulimit -n 4096, or LimitNOFILE= of the service: each context, event channel and peer process takes a descriptor.",
	     "a process may have %" PRIu64 " descriptors", (uint64_t)limit.rlim_cur);
	getrlimit(RLIMIT_MEMLOCK, &limit);
	snprintf(text, sizeof(text), "%" PRIu64 " kB", (uint64_t)limit.rlim_cur / 1024);
	/* Programs check it, because adapters pin registered memory. */
	note(findings, "locked_memory", limit.rlim_cur < 64u << 20 ? LESS : GOOD,
	     "Nothing for softhca, which pins no memory; programs that ask for it themselves may want ulimit -l unlimited.",
	     "a process may lock %s", limit.rlim_cur == RLIM_INFINITY ? "any memory" : text);
	note(findings, "huge_pages", pages > 0 ? GOOD : LESS,
	     "Nothing for softhca, which takes any memory; SPDK and others want some: sysctl vm.nr_hugepages=1024, or their "
	     "option without (--no-huge).",
	     "%d huge pages", pages > 0 ? pages : 0);
}

/* ---- output ----------------------------------------------------------------------------------------------------- */

static void findings_print_json(const struct findings *findings)
{
	puts("[");
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->list[i];

		printf("  {\"name\": \"%s\", \"verdict\": \"%s\", \"found\": ", finding->name,
		       verdict_names[finding->verdict]);
		json_put_string(stdout, finding->found);
		printf(", \"advice\": ");
		json_put_string(stdout, finding->advice);
		printf("}%s\n", i + 1 < findings->count ? "," : "");
	}
	puts("]");
}

static void findings_print(const struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->list[i];

		printf("%-5s %-17s %s\n", verdict_names[finding->verdict], finding->name, finding->found);
		if (*finding->advice)
			printf("%24s→ %s\n", "", finding->advice);
	}
}

int command_doctor(int argc, char **argv)
{
	const char *own[OWN_OPTION_COUNT] = {0};
	struct findings findings = {.count = 0};
	struct settings settings;
	int status = EXIT_SUCCESS;

	options_parse_all(COMMAND_DOCTOR, argc, argv, &settings, own);
	note(&findings, "libraries", GOOD, "", "%s", library_directory());
	examine_host(&findings);
	examine_names(&findings);
	examine_memory(&findings);
	examine_port(&findings, &settings);
	examine_addresses(&findings, &settings);
	examine_namespaces(&findings, &settings);
	examine_rdma(&findings);
	examine_cpu(&findings);
	examine_limits(&findings);
	if (own[OPTION_DOCTOR_JSON])
		findings_print_json(&findings);
	else
		findings_print(&findings);
	for (size_t i = 0; i < findings.count; i++)
		if (findings.list[i].verdict == BAD)
			status = EXIT_FAILURE;
	return status;
}
