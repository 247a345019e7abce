/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca info: the device as a program sees it through libibverbs, and its settings. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <net/if.h>
#include <infiniband/verbs.h>

#include "softhca.h"
#include "tool/tool.h"

static void settings_print(const struct settings *settings)
{
	char value[4096];

	puts("settings");
	for (int i = 0; i < SETTING_COUNT; i++) {
		setting_format(settings, i, value, sizeof(value));
		printf("  %-28s %-20s %s\n", setting_info(i)->variable, value,
		       setting_origin_name(settings->origin[i]));
	}
}

static void gids_print(struct ibv_context *context, uint8_t port, int count)
{
	struct ibv_gid_entry entry;
	char address[INET6_ADDRSTRLEN], interface[IF_NAMESIZE];

	for (int i = 0; i < count; i++) {
		if (ibv_query_gid_ex(context, port, (uint32_t)i, &entry, 0))
			continue;
		inet_ntop(AF_INET6, entry.gid.raw, address, sizeof(address));
		if (!if_indextoname(entry.ndev_ifindex, interface))
			strcpy(interface, "-");
		printf("    gid %-3d %-40s %-8s %s\n", i, address, info_gid_type_name(entry.gid_type), interface);
	}
}

static void port_print(struct ibv_context *context, uint8_t port)
{
	struct ibv_port_attr attr;
	int error = ibv_query_port(context, port, &attr);

	if (error) {
		printf("  port %u: %s\n", port, strerror(error));
		return;
	}
	printf("  port %u: %s, %s, mtu %u of %u, max message %" PRIu32 " bytes, %u pkeys, %d gids\n", port,
	       ibv_port_state_str(attr.state), attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand",
	       128u << attr.active_mtu, 128u << attr.max_mtu, attr.max_msg_sz, attr.pkey_tbl_len, attr.gid_tbl_len);
	gids_print(context, port, attr.gid_tbl_len);
}

static void limits_print(const struct ibv_device_attr *attr)
{
	puts("  limits");
#define LIMIT(field) printf("    %-20s %" PRIu64 "\n", #field, (uint64_t)attr->field);
#include "tool/info_limits.def"
}

static int device_print(struct ibv_device *device)
{
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_device_attr attr;
	int error;

	if (!context) {
		printf("device %s: cannot be opened: %m\n", ibv_get_device_name(device));
		return -errno;
	}
	error = ibv_query_device(context, &attr);
	if (error) {
		printf("device %s: %s\n", ibv_get_device_name(device), strerror(error));
	} else {
		printf("device %s: vendor 0x%04x part %u, firmware %s, guid %016" PRIx64 "\n",
		       ibv_get_device_name(device), attr.vendor_id, attr.vendor_part_id, attr.fw_ver,
		       be64toh(ibv_get_device_guid(device)));
		for (uint8_t port = 1; port <= attr.phys_port_cnt; port++)
			port_print(context, port);
		limits_print(&attr);
	}
	ibv_close_device(context);
	return -error;
}

static int info_print(const struct settings *settings, struct ibv_device **devices)
{
	int result = 0;

	printf("softhca %s, profile %s\n", SOFTHCA_VERSION, settings->profile == PROFILE_MAN ? "man" : "connectx");
	printf("libraries %s\n", library_directory());
	settings_print(settings);
	links_print(settings);
	listeners_print();
	for (int i = 0; devices[i]; i++)
		if (device_print(devices[i]))
			result = -EIO;
	counters_print();
	return result;
}

int command_info(int argc, char **argv)
{
	const char *own[OWN_OPTION_COUNT] = {0};
	struct settings settings;
	struct ibv_device **list;
	int count, result;

	options_parse_all(COMMAND_INFO, argc, argv, &settings, own);
	/* The device reads its settings when it is first queried. */
	options_export(&settings);
	list = ibv_get_device_list(&count);
	if (!list || count == 0)
		tool_fail(EXIT_FAILURE, "no device: %s", list ? "the list is empty" : strerror(errno));
	result = own[OPTION_INFO_JSON] ? info_print_json(&settings, list) : info_print(&settings, list);
	ibv_free_device_list(list);
	return result ? EXIT_FAILURE : EXIT_SUCCESS;
}
