/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of ports, see port_names.h. */
#include "rdmacm/port_names.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/commands.h"
#include "cm_host/services.h"

int port_name_claim(uint16_t space, uint16_t port, bool wild)
{
	int error = hca_port_claim(hca_device(0), space, port);

	if (!error && wild)
		hca_port_mark(space, port);
	if (error == -EADDRINUSE && (wild || hca_port_is_marked(space, port)))
		return -EADDRNOTAVAIL;
	return error;
}

pid_t port_name_owner(uint16_t space, uint16_t port)
{
	return hca_port_owner(space, port);
}

int port_name_listen(uint16_t space, uint16_t port)
{
	return hca_port_listen(hca_device(0), space, port);
}

void port_name_release(uint16_t space, uint16_t port)
{
	hca_port_release(hca_device(0), space, port);
}

bool process_may_bind_privileged(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

	return !syscall(SYS_capget, &header, data) && data[0].effective >> CAP_NET_BIND_SERVICE & 1;
}
