/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules about the destinations of address handles, with routes and neighbours that the test defines. */
#include "test_case.h"

#include "../unit/support/given_routes.h"
#include "beyond.h"
#include "abi/entry_points.h"
#include "hca/gid.h"

/* An address handle to 192.0.2.77, by way of router 192.0.2.1. */
static void expect_no_address_handle(int error)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = {.dgid = gid_of_ipv4(0xc000024d), .sgid_index = 3}};

	given_routes.replaced = true;
	errno = 0;
	assert_null(softhca_ibv_create_ah(pd, &attr));
	assert_int_equal(errno, error);
	given_routes.replaced = false;
}

BEYOND_CASE(DESTINATION_NO_ROUTE)
{
	given_routes.error = -ENETUNREACH;
	expect_no_address_handle(ENETUNREACH);
	expect_line(
		NULL, RULE_DESTINATION_NO_ROUTE,
		"mlx5_0 ibv_create_ah → ENETUNREACH: the host has no route to the destination GID 0x0:0xffffc000024d: "
		"ENETUNREACH. [388 ");
}

BEYOND_CASE(DESTINATION_SILENT)
{
	given_routes.error = 0;
	expect_no_address_handle(ETIMEDOUT);
	expect_line(
		NULL, RULE_DESTINATION_SILENT,
		"mlx5_0 ibv_create_ah → ETIMEDOUT: no neighbour answers for destination GID 0x0:0xffffc000024d: the link address of 0x0:0xffffc0000201 is not known. [389 ");
}
