/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes and neighbours as a test gives them, instead of those of the machine. The program is linked with
 * -Wl,--wrap=ip_route_find and -Wl,--wrap=ip_neighbour_is_known. One thread.
 */
#ifndef SOFTHCA_TESTS_UNIT_GIVEN_ROUTES_H
#define SOFTHCA_TESTS_UNIT_GIVEN_ROUTES_H

#include <stdbool.h>

struct given_routes {
	bool replaced; /* false: the machine's */
	int error;     /* what ip_route_find() returns. 0: a route by way of 192.0.2.1, which does not answer */
};

extern struct given_routes given_routes;

#endif
