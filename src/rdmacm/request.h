/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests for a connection, as they come. Pure; any thread. */
#ifndef SOFTHCA_RDMACM_REQUEST_H
#define SOFTHCA_RDMACM_REQUEST_H

#include "cm/cm.h"
#include "cm/hello.h"

/** The addresses in the header of a REQ or SIDR_REQ (cm/hello.h). */
enum cm_hello request_addresses(const struct cm_message *message, struct cm_hello_addresses *addresses);

#endif
