/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca info: what a program would see, asked through libibverbs, and what it follows from. */
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

static void print_settings(const struct settings *settings)
{
	char value[4096];

	puts("settings");
	for (int i = 0; i < SETTING_COUNT; i++) {
		setting_format(settings, i, value, sizeof(value));
		printf("  %-28s %-20s %s\n", setting_info(i)->variable, value,
		       setting_origin_name(settings->origin[i]));
	}
}

static const char *gid_type_name(uint32_t type)
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

static void print_gids(struct ibv_context *context, uint8_t port, int count)
{
	struct ibv_gid_entry entry;
	char address[INET6_ADDRSTRLEN], interface[IF_NAMESIZE];

	for (int i = 0; i < count; i++) {
		if (ibv_query_gid_ex(context, port, (uint32_t)i, &entry, 0))
			continue;
		inet_ntop(AF_INET6, entry.gid.raw, address, sizeof(address));
		if (!if_indextoname(entry.ndev_ifindex, interface))
			strcpy(interface, "-");
		printf("    gid %-3d %-40s %-8s %s\n", i, address, gid_type_name(entry.gid_type), interface);
	}
}

static void print_port(struct ibv_context *context, uint8_t port)
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
	print_gids(context, port, attr.gid_tbl_len);
}

static void print_limits(const struct ibv_device_attr *attr)
{
#define ROW(field)                                                                                                     \
	{                                                                                                              \
#field, (uint64_t)attr->field                                                                          \
	}
	const struct {
		const char *name;
		uint64_t value;
	} limits[] = {
		ROW(max_qp),         ROW(max_qp_wr),           ROW(max_sge),     ROW(max_sge_rd),
		ROW(max_qp_rd_atom), ROW(max_qp_init_rd_atom), ROW(max_cq),      ROW(max_cqe),
		ROW(max_srq),        ROW(max_srq_wr),          ROW(max_srq_sge), ROW(max_pd),
		ROW(max_mr),         ROW(max_mr_size),         ROW(max_mw),      ROW(max_ah),
		ROW(max_pkeys),
	};
#undef ROW

	puts("  limits");
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		printf("    %-20s %" PRIu64 "\n", limits[i].name, limits[i].value);
}

static int print_device(struct ibv_device *device)
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
			print_port(context, port);
		print_limits(&attr);
	}
	ibv_close_device(context);
	return -error;
}

int command_info(int argc, char **argv)
{
	struct settings settings;
	struct ibv_device **list;
	int count, result = 0;

	options_parse_all(COMMAND_INFO, argc, argv, &settings, NULL);
	printf("softhca %s, profile ", softhca_version());
	puts(settings.profile == PROFILE_MAN ? "man" : "connectx");
	printf("libraries %s\n", library_directory());
	print_settings(&settings);
	links_print(&settings);
	listeners_print();

	/* The device reads its settings from the environment, when it is first asked for. */
	options_export(&settings);
	list = ibv_get_device_list(&count);
	if (!list || count == 0)
		tool_fail(EXIT_FAILURE, "no device: %s", list ? "the list is empty" : strerror(errno));
	for (int i = 0; i < count; i++)
		if (print_device(list[i]))
			result = -EIO;
	ibv_free_device_list(list);
	counters_print();
	return result ? EXIT_FAILURE : EXIT_SUCCESS;
}
