/* SPDX-License-Identifier: BSD-2-Clause */
/* See services.h. */
#include "cm_host/services.h"

#include <errno.h>
#include <stdio.h>

#include "core/timer.h"
#include "hca/hca.h"
#include "link/host/host.h"
#include "wire/routes.h"

/* Linux's default, if the file cannot be read. */
#define FIRST_PORT 32768
#define LAST_PORT 60999
/* For how long a range that was read is used: four system calls are a tenth of the time of a connection. */
#define PORT_RANGE_NS 10000000
/* Slot of a process without peers, which may use all communication ids. */
#define ONLY_SLOT 1

static uint64_t port_service(uint16_t space, uint16_t port)
{
	return (uint64_t)space << 16 | port;
}

static bool is_alone(const struct hca *hca)
{
	return hca->settings.link == LINK_LOCAL;
}

int hca_manager_slot(struct hca *hca, uint32_t *slot)
{
	if (!is_alone(hca))
		return host_process_slot(slot);
	*slot = ONLY_SLOT;
	return 0;
}

int hca_port_claim(struct hca *hca, uint16_t space, uint16_t port)
{
	return host_service_claim(port_service(space, port), is_alone(hca));
}

void hca_port_mark(uint16_t space, uint16_t port)
{
	host_service_mark(port_service(space, port));
}

bool hca_port_is_marked(uint16_t space, uint16_t port)
{
	return host_service_is_marked(port_service(space, port));
}

/* Returns the range with the first port in the upper 16 bits. */
static uint32_t port_range_read(void)
{
	uint32_t first, last;
	FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");

	if (!file || fscanf(file, "%u %u", &first, &last) != 2 || !first || first > last || last > UINT16_MAX) {
		first = FIRST_PORT;
		last = LAST_PORT;
	}
	if (file)
		fclose(file);
	return first << 16 | last;
}

void hca_port_range(uint32_t *first, uint32_t *last)
{
	static uint64_t read_ns; /* atomic */
	static uint32_t known;   /* atomic */
	uint64_t now_ns = clock_now_ns();
	uint32_t range;

	if (now_ns - __atomic_load_n(&read_ns, __ATOMIC_ACQUIRE) > PORT_RANGE_NS) {
		__atomic_store_n(&known, port_range_read(), __ATOMIC_RELAXED);
		__atomic_store_n(&read_ns, now_ns, __ATOMIC_RELEASE);
	}
	range = __atomic_load_n(&known, __ATOMIC_RELAXED);
	*first = range >> 16;
	*last = range & UINT16_MAX;
}

int hca_port_listen(struct hca *hca, uint16_t space, uint16_t port)
{
	uint32_t slot;
	int error = hca_manager_slot(hca, &slot);

	if (error)
		return error;
	error = host_service_listen(port_service(space, port));
	if (error || is_alone(hca))
		return error;
	routes->accept();
	routes->listen(hca);
	return 0;
}

void hca_port_release(struct hca *hca, uint16_t space, uint16_t port)
{
	(void)hca;
	host_service_release(port_service(space, port));
}

pid_t hca_port_owner(uint16_t space, uint16_t port)
{
	return host_service_owner(port_service(space, port));
}
