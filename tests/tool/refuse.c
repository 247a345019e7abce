/* SPDX-License-Identifier: BSD-2-Clause */
/* refuse CALL[,CALL…] PROGRAM…: runs a program to which the kernel refuses these system calls, with EPERM, as a sandbox does. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	long number;
} calls[] = {
	{"memfd_create", SYS_memfd_create}, {"bind", SYS_bind},   {"socket", SYS_socket},
	{"unshare", SYS_unshare},           {"mount", SYS_mount}, {"pwritev", SYS_pwritev},
	{"getdents64", SYS_getdents64},
};

static long number_of(const char *name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(calls[i].name, name))
			return calls[i].number;
	fprintf(stderr, "refuse: %s is not in the table\n", name);
	exit(EXIT_FAILURE);
}

static void refuse(long number)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("refuse");
		exit(EXIT_FAILURE);
	}
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return EXIT_FAILURE;
	for (char *name = strtok(argv[1], ","); name; name = strtok(NULL, ","))
		refuse(number_of(name));
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return EXIT_FAILURE;
}
