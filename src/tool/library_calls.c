/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of the libraries that commands call, by their own names. The first call of one loads its library: most
 * commands need none, and loading them, with OpenSSL's, takes as long as the rest of a short command.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/verbs.h>

#include "softhca.h"
#include "block/chosen.h"
#include "tool/tool.h"

#define DEVICE "libibverbs.so.1"
#define LIBRARY "libsofthca.so.0"

/* Loads a library by its absolute path: the command always gets its own, whatever LD_LIBRARY_PATH says. */
static void *library_load(const char *name)
{
	char *path;
	void *handle;

	if (asprintf(&path, "%s/%s", library_directory(), name) < 0)
		tool_fail(EXIT_FAILURE, "out of memory");
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		tool_fail(EXIT_FAILURE, "%s", dlerror());
	free(path);
	return handle;
}

static void *library_call(const char *library, const char *name)
{
	/* First, because the others look for it by its name, in LD_LIBRARY_PATH as well. */
	void *handle = library_load(LIBRARY), *call;

	if (strcmp(library, LIBRARY) != 0)
		handle = library_load(library);
	call = dlsym(handle, name);
	if (!call)
		tool_fail(EXIT_FAILURE, "%s", dlerror());
	return call;
}

/* CALLED(library, result, name, (parameters), (arguments)); parentheses keep macros of verbs.h away from the name. */
#define CALLED(library, result, name, parameters, arguments)                                                           \
	result(name) parameters                                                                                        \
	{                                                                                                              \
		static __typeof__(&(name)) call;                                                                       \
                                                                                                                       \
		if (!call)                                                                                             \
			call = (__typeof__(call))library_call(library, #name);                                         \
		return call arguments;                                                                                 \
	}

CALLED(DEVICE, struct ibv_device **, ibv_get_device_list, (int *count), (count))
CALLED(DEVICE, void, ibv_free_device_list, (struct ibv_device * *list), (list))
CALLED(DEVICE, const char *, ibv_get_device_name, (struct ibv_device * device), (device))
CALLED(DEVICE, __be64, ibv_get_device_guid, (struct ibv_device * device), (device))
CALLED(DEVICE, struct ibv_context *, ibv_open_device, (struct ibv_device * device), (device))
CALLED(DEVICE, int, ibv_close_device, (struct ibv_context * context), (context))
CALLED(DEVICE, int, ibv_query_device, (struct ibv_context * context, struct ibv_device_attr *attr), (context, attr))
CALLED(DEVICE, int, ibv_query_port, (struct ibv_context * context, uint8_t port, struct _compat_ibv_port_attr *attr),
       (context, port, attr))
CALLED(DEVICE, int, _ibv_query_gid_ex,
       (struct ibv_context * context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry, uint32_t flags,
	size_t size),
       (context, port, index, entry, flags, size))
CALLED(DEVICE, const char *, ibv_port_state_str, (enum ibv_port_state state), (state))
CALLED(DEVICE, const char *, ibv_wc_status_str, (enum ibv_wc_status status), (status))
CALLED(LIBRARY, int, softhca_check_faults, (const char *script, char *error, size_t size), (script, error, size))
CALLED(LIBRARY, void, softhca_block_kernels, (struct softhca_kernels * kernels), (kernels))
