/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes and neighbours set by a test, instead of those of the machine. The program is linked with
 * -Wl,--wrap=ip_route_find and -Wl,--wrap=ip_neighbour_is_known. One thread.
 */
#ifndef SOFTHCA_TESTS_UNIT_GIVEN_ROUTES_H
#define SOFTHCA_TESTS_UNIT_GIVEN_ROUTES_H

#include <stdbool.h>

struct given_routes {
	bool replaced; /* false: use the routes of the machine */
	int error;     /* result of ip_route_find(). 0: a route through 192.0.2.1, which does not answer */
};

extern struct given_routes given_routes;

#endif
