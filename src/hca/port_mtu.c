/* SPDX-License-Identifier: BSD-2-Clause */
/* The MTU of a port. */
#include "hca/port_mtu.h"

#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/limits.h"
#include "hca/hca.h"

/* IP (as long as a GRH), UDP, BTH, XRCETH, AtomicETH (the longest combination), ICRC. */
#define MOST_HEADERS (40 + 8 + 12 + 4 + 28 + 4)
#define LEAST_MTU 256u
/* Assumed if an interface does not report one (Ethernet's). */
#define USUAL_INTERFACE_MTU 1500

uint32_t port_mtu_of_interface(uint32_t bytes)
{
	uint32_t mtu = LIMIT_MAX_MTU;

	while (mtu > LEAST_MTU && (bytes < MOST_HEADERS || mtu > bytes - MOST_HEADERS))
		mtu /= 2;
	return mtu;
}

static uint32_t interface_mtu(int fd, const char *name)
{
	struct ifreq request = {0};

	strncpy(request.ifr_name, name, sizeof(request.ifr_name) - 1);
	if (fd < 0 || ioctl(fd, SIOCGIFMTU, &request) || request.ifr_mtu <= 0)
		return USUAL_INTERFACE_MTU;
	return (uint32_t)request.ifr_mtu;
}

static uint32_t smallest_of_interfaces(const struct hca *hca)
{
	WITHOUT_CANCELLATION;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint32_t smallest = LIMIT_MAX_MTU;

	for (size_t i = 0; i < hca->gid_count; i++) {
		uint32_t mtu;

		/* An interface's entries are adjacent (hca/gid.h). */
		if (i && !strcmp(hca->gids[i].netdev, hca->gids[i - 1].netdev))
			continue;
		mtu = port_mtu_of_interface(interface_mtu(fd, hca->gids[i].netdev));
		if (mtu < smallest)
			smallest = mtu;
	}
	if (fd >= 0)
		close(fd);
	return smallest;
}

uint32_t port_gid_mtu(const struct hca *hca, size_t index)
{
	WITHOUT_CANCELLATION;
	uint32_t mtu;
	int fd;

	if (hca->settings.mtu)
		return hca->settings.mtu;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	mtu = port_mtu_of_interface(interface_mtu(fd, hca->gids[index].netdev));
	if (fd >= 0)
		close(fd);
	return mtu;
}

uint32_t port_active_mtu(const struct hca *hca)
{
	return hca->settings.mtu ? hca->settings.mtu : smallest_of_interfaces(hca);
}

uint32_t port_most_mtu(const struct hca *hca)
{
	return hca->settings.mtu ? hca->settings.mtu : LIMIT_MAX_MTU;
}
