/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca info --json: prints softhca info as one object. */
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
#include "tool/json.h"
#include "tool/tool.h"

const char *info_gid_type_name(uint32_t type)
{
	switch (type) {
	case IBV_GID_TYPE_ROCE_V1:
		return "RoCE v1";
	case IBV_GID_TYPE_ROCE_V2:
		return "RoCE v2";
	default:
		return "IB";
	}
}

static void settings_print_json(const struct settings *settings)
{
	char value[4096];

	fputs(",\n \"settings\": {", stdout);
	for (int i = 0; i < SETTING_COUNT; i++) {
		setting_format(settings, i, value, sizeof(value));
		printf("%s\n  \"%s\": {", i ? "," : "", setting_info(i)->variable);
		json_put_member(stdout, "", "value", value);
		json_put_member(stdout, ", ", "origin", setting_origin_name(settings->origin[i]));
		putchar('}');
	}
	putchar('}');
}

static void gids_print_json(struct ibv_context *context, uint8_t port, int count)
{
	char address[INET6_ADDRSTRLEN], interface[IF_NAMESIZE];
	const char *separator = "\n     ";
	struct ibv_gid_entry entry;

	fputs(", \"gids\": [", stdout);
	for (int i = 0; i < count; i++) {
		if (ibv_query_gid_ex(context, port, (uint32_t)i, &entry, 0))
			continue;
		inet_ntop(AF_INET6, entry.gid.raw, address, sizeof(address));
		printf("%s{\"index\": %d", separator, i);
		json_put_member(stdout, ", ", "gid", address);
		json_put_member(stdout, ", ", "type", info_gid_type_name(entry.gid_type));
		if (if_indextoname(entry.ndev_ifindex, interface))
			json_put_member(stdout, ", ", "interface", interface);
		putchar('}');
		separator = ",\n     ";
	}
	putchar(']');
}

static int port_print_json(struct ibv_context *context, uint8_t port)
{
	struct ibv_port_attr attr;
	int error = ibv_query_port(context, port, &attr);

	printf("%s\n    {\"port\": %u", port > 1 ? "," : "", port);
	if (error) {
		json_put_member(stdout, ", ", "error", strerror(error));
	} else {
		json_put_member(stdout, ", ", "state", ibv_port_state_str(attr.state));
		json_put_member(stdout, ", ", "link_layer",
				attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
		printf(", \"active_mtu\": %u, \"max_mtu\": %u, \"max_msg_sz\": %" PRIu32 ", \"pkeys\": %u",
		       128u << attr.active_mtu, 128u << attr.max_mtu, attr.max_msg_sz, attr.pkey_tbl_len);
		gids_print_json(context, port, attr.gid_tbl_len);
	}
	putchar('}');
	return error;
}

static void limits_print_json(const struct ibv_device_attr *attr)
{
	const char *separator = "";

	fputs(",\n   \"limits\": {", stdout);
#define LIMIT(field)                                                                                                   \
	printf("%s\"" #field "\": %" PRIu64, separator, (uint64_t)attr->field);                                        \
	separator = ", ";
#include "tool/info_limits.def"
	putchar('}');
}

static int device_query_print_json(struct ibv_context *context)
{
	struct ibv_device_attr attr;
	int error = ibv_query_device(context, &attr);

	if (error) {
		json_put_member(stdout, ", ", "error", strerror(error));
		return error;
	}
	json_put_member(stdout, ", ", "firmware", attr.fw_ver);
	printf(", \"vendor_id\": %u, \"vendor_part_id\": %u, \"guid\": \"%016" PRIx64 "\",\n   \"ports\": [",
	       attr.vendor_id, attr.vendor_part_id, be64toh(ibv_get_device_guid(context->device)));
	for (uint8_t port = 1; port <= attr.phys_port_cnt; port++)
		if (port_print_json(context, port))
			error = EIO;
	putchar(']');
	limits_print_json(&attr);
	return error;
}

static int device_print_json(struct ibv_device *device)
{
	struct ibv_context *context = ibv_open_device(device);
	int error;

	json_put_member(stdout, "\n  {", "name", ibv_get_device_name(device));
	if (!context) {
		error = errno;
		json_put_member(stdout, ", ", "error", strerror(error));
	} else {
		error = device_query_print_json(context);
		ibv_close_device(context);
	}
	putchar('}');
	return -error;
}

int info_print_json(const struct settings *settings, struct ibv_device **devices)
{
	int result = 0;

	json_put_member(stdout, "{", "version", SOFTHCA_VERSION);
	json_put_member(stdout, ", ", "profile", settings->profile == PROFILE_MAN ? "man" : "connectx");
	json_put_member(stdout, ", ", "libraries", library_directory());
	settings_print_json(settings);
	links_print_json(settings);
	listeners_print_json();
	fputs(",\n \"devices\": [", stdout);
	for (int i = 0; devices[i]; i++) {
		if (i)
			putchar(',');
		if (device_print_json(devices[i]))
			result = -EIO;
	}
	putchar(']');
	counters_print_json();
	puts("}");
	return result;
}
