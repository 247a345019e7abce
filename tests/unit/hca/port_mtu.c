/* SPDX-License-Identifier: BSD-2-Clause */
/* The MTU of a port follows the interface: by the table of values, and after a change of the interface. */
#include "test_case.h"

#include "hca/port_mtu.h"
#include "../support/udp_fixture.h"

/* A RoCE port leaves 96 bytes for headers: GRH 40, UDP 8, BTH 12, XRCETH 4, AtomicETH 28, ICRC 4 (IBTA 9.2 and annex A17). */
static const struct {
	uint32_t interface, port;
} table[] = {
	{1500, 1024}, {4200, 4096}, {9000, 4096}, {65536, 4096},      {4192, 4096}, {4191, 2048},
	{2144, 2048}, {2143, 1024}, {1120, 1024}, {1119, 512},        {608, 512},   {607, 256},
	{352, 256},   {68, 256},    {0, 256},     {UINT32_MAX, 4096},
};

TEST(as_a_roce_port)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(port_mtu_of_interface(table[i].interface), table[i].port);
}

TEST(it_follows_the_interface)
{
	struct hca *hca = hca_device(0);

	assert_int_equal(port_active_mtu(hca), 4096);
	udp_set_mtu(1500);
	assert_int_equal(port_active_mtu(hca), 1024);
	/* More is possible with fragmentation. */
	assert_int_equal(port_most_mtu(hca), 4096);
	udp_set_mtu(2200);
	assert_int_equal(port_active_mtu(hca), 2048);
	/* The smallest MTU of all interfaces in the table. */
	strcpy(hca->gids[hca->gid_count - 1].netdev, "unknown");
	assert_int_equal(port_active_mtu(hca), 1024);
	strcpy(hca->gids[hca->gid_count - 1].netdev, "lo");
	assert_int_equal(port_active_mtu(hca), 2048);
}

TEST(a_number_forces)
{
	struct hca *hca = hca_device(0);

	hca->settings.mtu = 512;
	assert_int_equal(port_active_mtu(hca), 512);
	assert_int_equal(port_most_mtu(hca), 512);
	hca->settings.mtu = 4096;
	udp_set_mtu(1500);
	assert_int_equal(port_active_mtu(hca), 4096);
	hca->settings.mtu = 0;
}

int main(void)
{
	udp_enter_namespace();
	return run_cases();
}
