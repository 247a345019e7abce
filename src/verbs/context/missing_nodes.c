/* SPDX-License-Identifier: BSD-2-Clause */
/* Only programs that use UCX look for /dev/infiniband/uverbs0 before they use a device. */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain/log.h"
#include "hca/hca.h"
#include "verbs/context/context.h"

/* Set by `softhca run` to the error (tool/presence.c). */
#define MISSING_NODES "SOFTHCA_MISSING_NODES"

static int is_ucx(struct dl_phdr_info *object, size_t size, void *argument)
{
	(void)size, (void)argument;
	return strstr(object->dlpi_name, "/libucs.so") != NULL;
}

void missing_nodes_report(void)
{
	static uint32_t reported; /* atomic */
	const char *error = secure_getenv(MISSING_NODES);
	char note[256];

	if (!error || __atomic_load_n(&reported, __ATOMIC_RELAXED) || !dl_iterate_phdr(is_ucx, NULL) ||
	    __atomic_exchange_n(&reported, 1, __ATOMIC_RELAXED))
		return;
	snprintf(note, sizeof(note),
		 "no /dev/infiniband/uverbs0 for the program (%.80s); UCX will not see the device (softhca doctor says "
		 "what to do; --no-presence: do not try)",
		 error);
	explain_log_note(first_device()->explain_log, note);
}
